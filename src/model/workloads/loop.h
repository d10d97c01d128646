/* compute-loop and shared-loop: a known number of multiply-adds in registers, or with operands from
 * shared memory. */
#pragma once

#include "model/workload.h"

extern const struct workload compute_loop_workload, shared_loop_workload;

/* The shape. x and y are [tiles][tile]. The values v of a tile start as its x. Each step sets all
 * values at once,
 *   v[i] = a v[(i + 1) mod tile] + x[i],  a = LOOP_FACTOR(step) rounded to the precision,
 * and y is the last v. In a compute-loop a tile is one value, which stays in a register. In a
 * shared-loop the neighbour's value comes through shared memory, or on a CPU through the cache. The
 * two factors differ, so that v keeps changing. They are below 1, so that rounding errors do not
 * grow. Each step adds x, so that y depends on the input after any number of steps. The factors
 * have as many random bits as the inputs (fill.h). */
struct loop {
    int64_t tiles, tile, steps;
    enum precision precision;
    bool shared; /* shared-loop */
};
struct loop loop_from(const struct config *config);

enum { LOOP_TILE_MAX = 2048 }; /* two tiles in fp64 fit into a block's shared memory on any GPU */
#define LOOP_FACTOR(step) ((step) % 2 == 0 ? -0.57168429 : 0.91372318)
double loop_factor(enum precision precision, int64_t step);
