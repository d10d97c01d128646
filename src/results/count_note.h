/* Why counted FLOPs and bytes are far from the modelled ones, as far as a record shows it. Pure. */
#ifndef ROOFSWEEP_COUNT_NOTE_H
#define ROOFSWEEP_COUNT_NOTE_H

#include "model/device.h"
#include "model/record.h"

enum { COUNT_NOTE_TEXT = 512 };

/* "" if FLOPs and bytes of device memory were not counted, or are within a tenth of the model. */
void count_note(const struct record *record, const struct device *device,
                char text[COUNT_NOTE_TEXT]);

#endif
