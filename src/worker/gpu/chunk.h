/* How much is enqueued before the device may begin, and how much a sample holds. Pure functions.
 *
 * The host takes longer to launch small kernels than the device to run them. Timed as they come, they
 * would show the host's pace. So the device is held until a chunk of samples is enqueued, and then runs
 * them back to back. */
#ifndef ROOFSWEEP_CHUNK_H
#define ROOFSWEEP_CHUNK_H

#include <stdbool.h>

/* What is known of one piece of bound work. All zero: nothing yet. */
struct pace {
    double enqueue_time;   /* s, of the host, for all that belongs to one iteration */
    double iteration_time; /* s, of the device, the shortest seen, less the timer's overhead */
    int iterations;        /* of a sample that is recorded; 0: not chosen yet */
    bool one_by_one;       /* several samples could not be enqueued within the limit of a hold */
    bool given_up;         /* nor could a single one within that of a second attempt */
};

struct chunk {
    int samples;
    /* s, after which the device is no longer held; 0: it is not held at all, since nothing is known yet:
     * such a chunk shows the host's pace */
    double limit;
};

enum { CHUNK_SAMPLES_MAX = 256, CHUNK_ATTEMPTS = 2 };

/* As many iterations as make the timer's overhead the `share` of a sample, at least 1. That follows from
 * the device alone, so that a busy host changes no sample. Since a launch takes the device about a
 * microsecond, a sample never has more launches than the stream's queue holds. */
int chunk_sample_iterations(const struct pace *pace, double overhead, double share);

/* s, for which the device is held at most, while the host enqueues what it should need `host_time` s for.
 * The host releases the device as soon as it can: a long limit costs nothing, unless the host itself
 * waits for the device. */
double chunk_limit(double host_time);

/* The next chunk of the `left` samples of so many iterations each, left >= 1. After an attempt that failed,
 * attempt 1, the limit is twice as long. Of work that was given up it is about as long as the host should
 * need. */
struct chunk chunk_plan(const struct pace *pace, int iterations, int left, int attempt);

#endif
