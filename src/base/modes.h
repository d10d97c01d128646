/* Whether repeated timings have one mode or two. Pure functions; inputs are not changed. */
#ifndef ROOFSWEEP_MODES_H
#define ROOFSWEEP_MODES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { MODES_SAMPLES_LEAST = 10 };

/* *two: the values come from two modes, and it matters. Two things are asked:
 * - The dip test refuses one mode at the level of 1 %. It supposes no shape of that one mode. (Hartigan
 *   and Hartigan, The dip test of unimodality, Annals of Statistics 13, 1985.)
 * - The values, parted where the two parts are most alike in themselves, have medians that differ by
 *   more than 2 % of the lower one. A clock's own steps are modes as well, but none that matter.
 * Fewer than MODES_SAMPLES_LEAST values are never two modes. STATUS_SYSTEM without memory. */
enum status modes_test(const double *values, size_t count, bool *two, struct error *error);

/* The dip: the largest distance of the values' distribution from the nearest one with a single mode.
 * `sorted` ascends, count >= 1. scratch: 4 * (count + 1). */
double modes_dip(const double *sorted, size_t count, size_t *scratch);
/* What the dip of `count` values of one mode exceeds in 1 % of all cases at most. */
double modes_dip_critical(size_t count);

#endif
