/* How much is enqueued before the device may begin, and how much a sample holds. Pure functions.
 *
 * The host takes longer to launch small kernels than the device to run them. Timed as they come, they
 * would show the host's pace. So the device is kept waiting until so much of a chunk of samples is enqueued
 * that it never comes to the end of what there is, and then runs them back to back. */
#ifndef ROOFSWEEP_CHUNK_H
#define ROOFSWEEP_CHUNK_H

#include <stdbool.h>

/* What is known of one piece of bound work. All zero: nothing yet. */
struct pace {
    double enqueue_time;   /* s, of the host, for all that belongs to one iteration */
    double iteration_time; /* s, of the device, the shortest seen, less the timer's overhead */
    int iterations;        /* of a sample that is recorded; 0: not chosen yet */
    bool given_up; /* even one sample with the longest delay could not be enqueued in time */
};

struct chunk {
    int samples;
    double delay; /* s; 0: none, since nothing is known yet: such a chunk shows the host's pace */
};

enum { CHUNK_SAMPLES_MAX = 256, CHUNK_ATTEMPTS = 6 };

/* As many iterations as make the timer's overhead the `share` of a sample, at least 1. That follows from
 * the device alone, so that a busy host changes no sample. Since a launch takes the device about a
 * microsecond, a sample never has more launches than the stream's queue holds. */
int chunk_sample_iterations(const struct pace *pace, double overhead, double share);

/* The next chunk of the `left` samples of so many iterations each, left >= 1. With each attempt that failed, from 0, it has half as
 * many samples, and twice the time for each. */
struct chunk chunk_plan(const struct pace *pace, int iterations, int left, int attempt);

#endif
