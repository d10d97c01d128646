/* What was lost while it was measured, by plan item: what goes by itself from then on, and what is taken
 * for the cause. */
#ifndef ROOFSWEEP_LOSSES_H
#define ROOFSWEEP_LOSSES_H

#include <stdbool.h>
#include <stddef.h>

#include "model/record.h"

/* Owned; losses_clear frees both. */
struct losses {
    bool *alone;           /* it was lost with others, and goes by itself from now on */
    unsigned char *counts; /* devices that were lost while measuring it */
};

bool losses_create(struct losses *losses, size_t items); /* false without memory */
void losses_clear(struct losses *losses);

void losses_part(struct losses *losses, size_t item); /* it goes by itself */

/* One more device is lost over it. True: it is taken for the cause, and has failed. */
bool losses_condemn(struct losses *losses, size_t item);

/* The record of a configuration that is taken for the cause. `why`: how the last device was lost. */
void losses_record(const struct config *config, const char *why, struct record *record);

#endif
