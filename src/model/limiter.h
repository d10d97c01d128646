/* What limits a row: its time, split by what was measured of it. Pure functions.
 *
 * The time of an iteration is what the device idles between kernels (gap), what the work would need at
 * its roofs (the longer of compute and bandwidth), and the rest: kernels that ran below their roofs. The
 * largest part limits:
 *   host       before all others: the host needs longer to enqueue the iteration than the device to run
 *              it, so that an ordinary caller would see the host's pace
 *   overhead   the gap
 *   compute, bandwidth   what the work would need; the longer of the two
 *   latency    the rest, where most of the kernels' time passes in kernels without enough parallelism
 *   kernel     the rest, where the kernels had enough to do: they reach no roof by themselves
 *   unknown    a part is not known that might be the largest: one of compute and bandwidth says nothing without the
 *              other; or the rest is the largest, and nobody knows whether the kernels had enough to do
 * The paper's `bound` (roofline.h) asks another question: which roof is the lowest. */
#ifndef ROOFSWEEP_LIMITER_H
#define ROOFSWEEP_LIMITER_H

enum limiter {
    LIMITER_COMPUTE,
    LIMITER_BANDWIDTH,
    LIMITER_LATENCY,
    LIMITER_KERNEL,
    LIMITER_OVERHEAD,
    LIMITER_HOST,
    LIMITER_UNKNOWN
};
extern const char *const limiter_name[]; /* "compute", ..., "unknown", NULL */

/* Shares of the time of one iteration; NaN: not known. */
struct limiter_shares {
    double compute;   /* the FLOPs at the roofs of their units */
    double bandwidth; /* the bytes at the roof of the slowest memory level */
    double gap;       /* the device is idle between kernels */
    double host;      /* the host enqueues it; may be above 1 */
    /* of the kernels' time, what passes in kernels without enough parallelism */
    double few_blocks;
};

enum limiter limiter_of(const struct limiter_shares *shares);

/* One sentence of the shares. `level`: of the bandwidth, "" where it is not known. */
enum { LIMITER_TEXT = 256 };
void limiter_evidence(const struct limiter_shares *shares, const char *level,
                      char text[LIMITER_TEXT]);

#endif
