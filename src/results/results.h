/* Sessions, devices and rows of a sweep so far, as journal_read collects them for results_nc and
 * report. A row has the few members of its record that order and count rows; results_fetch reads
 * the whole record from the journal. Owns all its contents. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <jansson.h>

#include "base/status.h"
#include "manifest/plan.h"
#include "model/device.h"
#include "model/record.h"
#include "results/derive.h"

/* One job of the sweep: the first, or one that resumed it. */
struct session {
    char id[64];        /* unique; the first part of struct device.key */
    char version[64];   /* roofsweep's, with revision */
    char settings[256]; /* manifest_settings_text */
    char title[256];
    char manifest_path[1024];
    char *manifest_text; /* owned */
    char command[1024];  /* command line */
    char job_id[64];
    char hostname[128]; /* rank 0's */
    char mpi[256];      /* library version */
    int64_t ranks;
    int64_t rows;      /* that the manifest makes on these ranks */
    double start_time; /* s since 1970-01-01T00:00:00Z */
};

/* New reference; the caller owns it. */
json_t *session_encode(const struct session *session);
void session_clear(struct session *session); /* frees what it owns */

/* The JSON of a record in the journal. */
struct place {
    off_t start;   /* byte */
    size_t length; /* bytes */
    size_t line;   /* number, from 1 */
};

struct row {
    char *texts; /* owned: memory of the four texts below */
    char *name;  /* owned, naming.h; set by results_sort */
    size_t item; /* in the plan; SIZE_MAX: the plan lacks it; set by results_sort */
    const char *configuration, *label, *device_key;
    const char *error; /* "" for a measured row */
    char config_hash[CONFIG_HASH_TEXT];
    int64_t status; /* enum record_status */
    int64_t attempts;
    double end_time;         /* s since 1970-01-01T00:00:00Z; missing: NaN */
    double wall_time;        /* s */
    double sm_clock_free;    /* s-1, before the samples; missing: NaN */
    char marks[TIME_MARKS];  /* see time_marks */
    size_t kernels, samples; /* counts */
    struct place place;
};

struct results {
    struct session *sessions;
    size_t session_count;
    struct device *devices;
    size_t device_count;
    struct row *rows; /* one per configuration (and device, with distribute = replicate) */
    size_t row_count;
    size_t unplanned;      /* rows behind row_count that results_sort left out */
    size_t without_device; /* rows that results_finish left out */
    char missing_key[sizeof((struct device *)0)->key]; /* device of one of these */
};

struct results *results_create(void);          /* NULL without memory */
void results_destroy(struct results *results); /* takes NULL */

/* A later record of a configuration and device replaces the earlier one. */
enum status results_add_session(struct results *results, struct json_text session,
                                struct error *error);
enum status results_add_device(struct results *results, const struct device *device,
                               struct error *error);
enum status results_add_record(struct results *results, const struct record *record,
                               struct place place, struct error *error);

/* Call after the last record. Leaves out rows whose device no line describes: without identity and
 * roofs, a resumed sweep measures them again. Sets sm_clock_free of the devices. */
void results_finish(struct results *results);

/* Sets the journal that results_fetch reads, and its name for errors. Takes over the descriptor. */
enum status results_attach(struct results *results, const char *journal, int fd,
                           struct error *error);

/* Parses the row's record from the journal, at each call; the caller clears it. STATUS_SYSTEM: the
 * line cannot be read, or is no valid record. */
enum status results_fetch(const struct results *results, const struct row *row,
                          struct record *record, struct error *error);

/* Names and sorts the results for files and tables: devices by session and rank; rows by place in
 * the plan, then those that the plan lacks by label and configuration (numbers within compare as
 * numbers), and rows of one place by device. Leaves out rows that the plan lacks and that were not
 * measured. A device that several sessions describe keeps its entries with rows, or else its last
 * entry. plan: NULL: unknown, all rows have the same place. STATUS_SYSTEM: no memory. */
enum status results_sort(struct results *results, const struct plan *plan, struct error *error);

/* The entry of the same device under the same conditions (UUID, driver and power cap) that has the
 * most roofs, since a session may have been interrupted; among equals the latest. NULL: none has
 * roofs. */
const struct device *results_roofs(const struct results *results, const struct device *device);

/* Returns the index of a key in devices, or -1. */
int64_t results_device(const struct results *results, const char *key);
