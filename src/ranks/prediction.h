/* How long configurations take, to put the longest first: learnt from the rows of this run, and of the
 * journal that it goes on with. A pure data structure.
 *
 * The model. Configurations of one cell are taken for equal: the same workload, the same words (precision,
 * pass, layout, cache, ...), and a modelled duration within a factor of two. A cell's prediction is a mean of
 * the logarithms of all times known, weighted by nearness: a row counts a twentieth for each word that is
 * another one, less the further its modelled duration is away, and next to nothing if it is of another workload.
 *
 * The reason. What a row takes is the search, the trace, the counters and the check much more than its
 * iterations, so the modelled duration says little of it, and the words say much. A mean of neighbours needs no
 * form of the law, cannot run off like a fitted one, and does with one row. Logarithms: one row that took
 * ten times as long, for a reason of its own, must not rule its cell.
 *
 * Not learnt from: the first row of a rank, which has its libraries' start in it.
 *
 * Devices of unequal speed: a rank's slowness is the ratio of its times to the predicted ones, and its times are
 * divided by it before they are learnt from. */
#ifndef ROOFSWEEP_PREDICTION_H
#define ROOFSWEEP_PREDICTION_H

#include <stdbool.h>
#include <stddef.h>

#include "manifest/plan.h"

struct prediction;

/* The plan is not kept. NULL without memory. */
struct prediction *prediction_create(const struct plan *plan, int ranks);
void prediction_destroy(struct prediction *prediction); /* takes NULL */

size_t prediction_cells(const struct prediction *prediction);
size_t prediction_cell(const struct prediction *prediction, size_t item);

/* s, on a rank of slowness 1. INFINITY of a cell without modelled cost: its rows may be long, whatever others
 * took. 0 of configurations that cannot exist. While nothing is known, the same for all others. */
double prediction_seconds(const struct prediction *prediction, size_t cell);

/* 1 until enough rows tell otherwise. Only ratios between ranks mean something. */
double prediction_slowness(const struct prediction *prediction, int rank);

/* The item took so long on this rank, s. `earlier`: in a run before this one. */
void prediction_learn(struct prediction *prediction, int rank, size_t item, double seconds,
                      bool earlier);

#endif
