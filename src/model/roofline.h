/* The time-based Roofline (Wang et al., "Time-Based Roofline for Deep Learning Performance
 * Analysis", 2020): pure functions.
 *
 * For F FLOPs, B bytes at one memory level, run time T and n kernel launches, on a device of peak
 * performance P (same precision and unit), bandwidth W of that level and launch overhead L:
 *   AI = F / B,  machine balance M = P / W,  roof(AI) = min(P, AI * W, F / (n * L))
 *   AI >= M: compute time = T,          bandwidth time = T * M / AI
 *   AI <  M: compute time = T * AI / M, bandwidth time = T
 *   overhead time = n * L
 * The bound is overhead if F / P and B / W are both below n * L, which makes the overhead roof the
 * lowest of the three; else it is the longer of compute and bandwidth time. The paper compares
 * compute and bandwidth time with n * L instead: there T is the sum of kernel times, which may be
 * below n * L. Here T is elapsed time with gaps, which is never below. If a quantity is missing
 * (NaN), only values that depend on it are missing. */
#pragma once

struct roofline_work {
    double flops;    /* F, FLOPs in one iteration */
    double bytes;    /* B, byte in one iteration */
    double time;     /* T, s */
    double launches; /* n, in one iteration */
};

struct roofline_roofs {
    double peak;            /* P, s-1 */
    double bandwidth;       /* W, byte s-1 */
    double launch_overhead; /* L, s */
};

enum roofline_bound { BOUND_COMPUTE, BOUND_BANDWIDTH, BOUND_OVERHEAD, BOUND_UNKNOWN };

struct roofline {
    double intensity;   /* AI, FLOP per byte; infinite if there are no bytes */
    double performance; /* F / T, s-1 */
    double balance;     /* M, FLOP per byte */
    double roof;        /* roof(AI), s-1 */
    double fraction;    /* performance / roof; if there are no FLOPs, B / T / W */
    double compute_time, bandwidth_time, overhead_time; /* s */
    enum roofline_bound bound;
};

extern const char *const roofline_bound_name[]; /* by enum roofline_bound, NULL-terminated */

struct roofline roofline_evaluate(const struct roofline_work *work,
                                  const struct roofline_roofs *roofs);
