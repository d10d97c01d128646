/* What rank 0 keeps in memory of each record: what orders the rows of a file, and what is asked of all of
 * them before the file is written. The whole record is read when its turn comes (results_fetch). */
#ifndef ROOFSWEEP_ROW_H
#define ROOFSWEEP_ROW_H

#include <sys/types.h>

#include "base/status.h"
#include "model/record.h"
#include "results/derive.h"

struct row {
    char *texts; /* owned: those that follow */
    const char *configuration, *label, *device_key;
    const char *error; /* empty of a measured one */
    char config_hash[CONFIG_HASH_TEXT];
    int64_t status; /* enum record_status */
    int64_t attempts;
    double end_time;            /* s since 1970-01-01T00:00:00Z; missing: NaN */
    double wall_time;           /* s */
    char marks[TIME_MARKS]; /* of its time */
    size_t kernels, samples;    /* how many */
    /* where it is: in the journal, or here */
    off_t place;           /* byte */
    size_t length, line;   /* bytes; its number there */
    struct record *record; /* owned, NULL of one in the journal */
};

/* Of a record's JSON, which is looked at no further than for this. STATUS_SYSTEM: it is no record. */
enum status row_of_text(const char *text, size_t length, struct row *row, struct error *error);
enum status row_of_record(const struct record *record, struct row *row, struct error *error);
void row_clear(struct row *row);

/* The order in which people read them: by label, configuration (numbers in it as numbers), device. */
int row_compare(const struct row *a, const struct row *b);

#endif
