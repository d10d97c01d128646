#include "ranks/losses.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOSSES_MOST = 2 };

bool losses_create(struct losses *losses, size_t items)
{
    losses->alone = calloc(items, sizeof *losses->alone);
    losses->counts = calloc(items, sizeof *losses->counts);
    return losses->alone && losses->counts;
}

void losses_clear(struct losses *losses)
{
    free(losses->alone);
    free(losses->counts);
}

void losses_part(struct losses *losses, size_t item)
{
    losses->alone[item] = true;
}

bool losses_condemn(struct losses *losses, size_t item)
{
    return ++losses->counts[item] >= LOSSES_MOST;
}

void losses_record(const struct config *config, const char *why, struct record *record)
{
    record_init(record);
    record_set_config(record, config);
    record->status = RECORD_FAILED;
    snprintf(record->error, sizeof record->error,
             "%d devices were lost while measuring it, the last: %s", LOSSES_MOST, why);
}
