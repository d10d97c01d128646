/* Which units did a row's FLOPs, and how long they need for them at their roofs. Pure. */
#ifndef ROOFSWEEP_UNIT_USE_H
#define ROOFSWEEP_UNIT_USE_H

#include "model/device.h"
#include "model/record.h"

enum { UNIT_NOTE_TEXT = 128 };

struct unit_use {
    /* s, the sum over units and precisions of their FLOPs over their own roof at the row's clock
     * (compute_roof.h). A part of less than 1 % of
     * the FLOPs may lack a peak and then counts as nothing; any other that lacks one makes this NaN.
     * Without counts the FLOPs are those of record.unit in the configured precision. */
    double time;
    double peak;       /* s-1, FLOPs over that time; without FLOPs, the peak of record.unit */
    double sustained;  /* s-1, of record.unit once the clock has settled */
    double configured; /* s-1, highest roof for the configured precision, of any unit */
    char
        note[UNIT_NOTE_TEXT]; /* if vector units did most of it where tensor units exist; else "" */
};
/* `counted`: `flops` are the record's counted ones. */
struct unit_use unit_use(const struct record *record, const struct device *device, double flops,
                         bool counted);

#endif
