/* Trials of kernels on the device: a configuration's arrays are filled, its kernels launched, and
 * every element of every result (where one takes many products, some) compared with the workload's
 * reference in fp64. The arrays begin 16 bytes after a multiple of 256, and nothing may be written
 * after their ends.
 *
 * With the argument "exact" no guard lies after the arrays, so that compute-sanitizer sees the
 * first byte too far. A second argument: only configurations with it in their text. A third one: so
 * many seconds; a configuration that has not begun by then is left out, and told. The first ones
 * are then of all kinds. */
#pragma once

#include <stdbool.h>
#include <cuda_runtime.h>

#include "model/workload.h"

/* Of one configuration, on the device. */
struct trial_arrays {
    int64_t reads[TENSOR_COUNT], writes[TENSOR_COUNT]; /* elements; 0: there is none */
    bool wide[TENSOR_COUNT]; /* in fp32, of fp64 in fp64: not in the configuration's precision */
    int64_t between;         /* elements of what kernels leave each other */
    void *input[TENSOR_COUNT], *result[TENSOR_COUNT], *scratch;
};

struct trial {
    const char *workload;
    void (*size)(const struct config *config, struct trial_arrays *arrays);
    cudaError_t (*launch)(const struct config *config, const struct trial_arrays *arrays);
};

struct trials {
    const struct trial *kinds; /* ends with workload NULL */
    size_t guard;              /* byte */
    const char *only;          /* NULL: all */
    double until;              /* s, of a clock that goes on; INFINITY: no end */
    int turn, turns;           /* in each turn one of so many configurations is tried */
    int seen;                  /* in this turn */
    int checked, failures, left;
};

enum { TRIAL_SEED = 5 };

/* The text with a word of each list after it, in all ways: each is a configuration of one of the
 * kinds. The lists and what is in them end with NULL. */
void trial_cross(struct trials *trials, const char *text, const char *const *const *lists);
/* A program's main: all that `check` tries. Returns its exit status. */
int trial_main(int count, char **arguments, const struct trial *kinds,
               void (*check)(struct trials *trials));
