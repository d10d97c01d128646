/* Everything that a sweep has produced so far: sessions, devices and rows. Of a record only its row
 * is in memory: what orders the rows of a file, and what is asked of all of them before the file is
 * written. The record itself stays in the journal and is fetched from there.
 *
 * Filled by journal_read, consumed by results_nc and report. Owns all it holds. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <jansson.h>

#include "base/status.h"
#include "model/device.h"
#include "model/record.h"
#include "results/derive.h"

/* The first job of the sweep, or one that resumed it. Plain data, but for the manifest's text. */
struct session {
    char id[64];        /* unique; the first part of struct device.key */
    char version[64];   /* of roofsweep, with revision */
    char settings[256]; /* manifest_settings_text */
    char title[256];
    char manifest_path[1024];
    char *manifest_text; /* owned */
    char command[1024];  /* command line */
    char job_id[64];
    char hostname[128]; /* of rank 0 */
    char mpi[256];      /* library version */
    int64_t ranks;
    double start_time; /* s since 1970-01-01T00:00:00Z */
};

/* New reference; the caller owns it. */
json_t *session_encode(const struct session *session);
void session_clear(struct session *session); /* frees what it owns */

/* Where the JSON of a record stands in the journal. */
struct place {
    off_t start;         /* byte */
    size_t length, line; /* bytes; number of the line, from 1 */
};

struct row {
    char *texts; /* owned: those that follow */
    const char *configuration, *label, *device_key;
    const char *error; /* empty of a measured one */
    char config_hash[CONFIG_HASH_TEXT];
    int64_t status; /* enum record_status */
    int64_t attempts;
    double end_time;         /* s since 1970-01-01T00:00:00Z; missing: NaN */
    double wall_time;        /* s */
    double sm_clock_free;    /* s-1, before its samples; missing: NaN */
    char marks[TIME_MARKS];  /* of its time */
    size_t kernels, samples; /* how many */
    struct place place;
};

struct results {
    struct session *sessions;
    size_t session_count;
    struct device *devices;
    size_t device_count;
    struct row *rows; /* one per configuration (and device, with distribute = replicate) */
    size_t row_count;
    /* What results_settle has left out: how many records, and the key of one. */
    size_t without_device;
    char missing_key[sizeof((struct device *)0)->key];
};

struct results *results_create(void);          /* NULL without memory */
void results_destroy(struct results *results); /* takes NULL */

/* A record of the same configuration and device replaces the earlier one. */
enum status results_add_session(struct results *results, struct json_text session,
                                struct error *error);
enum status results_add_device(struct results *results, const struct device *device,
                               struct error *error);
enum status results_add_record(struct results *results, const struct record *record,
                               struct place place, struct error *error);

/* After the last record: leaves out those of a device that nothing describes. They have neither
 * identity nor roofs, so that a resumed sweep measures them again. Sets sm_clock_free of the
 * devices, now that all rows are known. */
void results_settle(struct results *results);

/* The file in which the rows' places are, and its name for errors. It takes over the descriptor. */
enum status results_attach(struct results *results, const char *journal, int fd,
                           struct error *error);

/* The row's record, parsed anew each time; the caller clears it. STATUS_SYSTEM: it cannot be read,
 * or the line holds no record, whatever its checksum. */
enum status results_fetch(const struct results *results, const struct row *row,
                          struct record *record, struct error *error);

/* Puts the results in the order of files and tables, before they are written: devices by session and
 * rank; rows by label, configuration (numbers in it as numbers) and device. Of the entries of one
 * device those without rows are left out; if none has rows, all but the last. */
void results_sort(struct results *results);

/* The entry of the same device under the same conditions (UUID, driver and power cap) that has the
 * most roofs, since a session may have been interrupted; among equals the latest. NULL: none has
 * roofs. */
const struct device *results_roofs(const struct results *results, const struct device *device);

/* Index into devices, or -1. */
int64_t results_device(const struct results *results, const char *key);
