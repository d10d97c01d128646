/* How a configuration is measured: what a manifest says under [measure], and what a rank asks its
 * worker for. The words and defaults of both stand here. */
#ifndef ROOFSWEEP_MEASUREMENT_H
#define ROOFSWEEP_MEASUREMENT_H

#include <stdbool.h>

enum counters_choice { COUNTERS_AUTO, COUNTERS_REQUIRE, COUNTERS_OFF };
extern const char *const counters_words[]; /* by enum counters_choice, NULL-terminated */

enum { WARMUP_MAX = 1000000, ITERATIONS_MAX = 1000000, COUNT_TOGETHER_MAX = 1000 };

struct measure_settings {
    int warmup;
    int iterations; /* timed samples, each of one or more iterations; 0: the adaptive rule below */
    double stop;    /* fraction: half the width of the 95 % confidence interval of the median, over
                          the median; 0 with a fixed number of samples */
    double min_time, max_time; /* s, of the adaptive rule; 0 without it */
    enum counters_choice counters;
    bool kernels;       /* count each kernel by itself as well */
    int count_together; /* rows whose counters are read together, at most; 0: as its device says */
    bool verify;
    bool energy; /* repeat the work for as long as the energy of one iteration needs */
};

/* What holds where nothing is said: a fixed number of iterations, and the times of the adaptive
 * rule, should it be chosen. */
extern const struct measure_settings measure_default;
enum { SEED_DEFAULT = 1 }; /* of the inputs */

#endif
