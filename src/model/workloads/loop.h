/* compute-loop and shared-loop: multiply-adds whose number and place are known. */
#pragma once

#include "model/workload.h"

extern const struct workload compute_loop_workload, shared_loop_workload;

/* The loops in numbers. x and y are [tiles][tile]; within a tile v begins as x, then in each step,
 * all values at once,
 *   v[i] = a v[(i + 1) mod tile] + x[i],  a = LOOP_FACTOR(step) rounded to the precision,
 * and y is v in the end. compute-loop: tiles of one value, which stays in a register; shared-loop:
 * the neighbour's comes through shared memory or, on a CPU, its cache. The two factors differ, so
 * that v changes in every step for ever; they are below 1, so that rounding does not add up; x
 * keeps coming in, so that y tells one input from another after any number of steps. Nothing is
 * round: see fill.h. */
struct loop {
    int64_t tiles, tile, steps;
    enum precision precision;
    bool shared; /* shared-loop */
};
struct loop loop_from(const struct config *config);

enum { LOOP_TILE_MAX = 2048 }; /* two of them in fp64 are within what any block may have */
#define LOOP_FACTOR(step) ((step) % 2 == 0 ? -0.57168429 : 0.91372318)
double loop_factor(enum precision precision, int64_t step);
