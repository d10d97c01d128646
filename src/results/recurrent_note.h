/* Why cuDNN's kernels that do all steps of an LSTM layer in one launch count more than the model: they
 * pad the layer's width, and sigmoids and tangents count. Pure. */
#ifndef ROOFSWEEP_RECURRENT_NOTE_H
#define ROOFSWEEP_RECURRENT_NOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/products.h"
#include "model/record.h"

/* `own`: FLOPs of the unit and precision that the record is about; `products`: the modelled ones of
 * all matrix products. Writes a reason only if such a kernel ran in one layer of one direction and
 * the counts are what its name and the others' tiles tell. */
bool recurrent_note(const struct record *record, const struct products *shape, double own,
                    double products, char *reason, size_t size);

#endif
