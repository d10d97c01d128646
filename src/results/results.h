/* Sessions, devices and rows of a sweep: journal_read collects them for results_nc and report. A
 * row has only those members of its record that are needed to sort and count rows; results_fetch
 * reads the whole record from the journal. struct results owns all its contents. */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <jansson.h>

#include "base/status.h"
#include "manifest/plan.h"
#include "model/device.h"
#include "model/link.h"
#include "model/record.h"
#include "results/derive.h"

/* One job of the sweep: the first job, or a job that resumed the sweep. */
struct session {
    char id[64];        /* unique; the first part of struct device.key */
    char version[64];   /* version of roofsweep, with revision */
    char settings[256]; /* settings of the measurements, as text by manifest_settings_text */
    char title[256];
    char manifest_path[1024];
    char *manifest_text; /* owned */
    char command[1024];  /* command line */
    char job_id[64];
    char hostname[128]; /* host of rank 0 */
    char mpi[256];      /* version of the MPI library */
    int64_t ranks;
    int64_t rows;      /* configurations of the manifest on these ranks */
    int64_t rounds;    /* rounds of the manifest; missing means 1 */
    double start_time; /* s since 1970-01-01T00:00:00Z */
};

/* New reference; the caller owns it. */
json_t *session_encode(const struct session *session);
void session_clear(struct session *session); /* frees manifest_text */

/* Place of a record's JSON text in the journal. */
struct place {
    off_t start;   /* offset in bytes */
    size_t length; /* number of bytes */
    size_t line;   /* number of the line, from 1 */
};

/* A round of a row. */
struct round {
    bool there;           /* the journal has the round */
    double time;          /* s, median; NaN: not measured */
    double start;         /* s since 1970-01-01T00:00:00Z; NaN: not measured */
    char output_hash[17]; /* as in struct record */
};

/* A configuration on a device. */
struct row {
    char *texts;   /* owned: memory of configuration, label, device_key and error */
    char *name;    /* owned, see naming.h; set by results_sort */
    char *listed;  /* owned; as in struct plan_item, "": none; NULL before results_list */
    char *planned; /* owned; label in the plan, which replaces the record's; NULL: as `listed` */
    int64_t count; /* occurrences of the configuration in lists: the sum over `listed`;
                      FIELD_MISSING: none */
    size_t item;   /* index in the plan, set by results_sort; SIZE_MAX: the plan lacks the row */
    const char *configuration, *label, *device_key;
    const char *error; /* "" for a measured row */
    char config_hash[CONFIG_HASH_TEXT];
    int64_t status; /* enum record_status */
    int64_t attempts;
    double end_time;         /* s since 1970-01-01T00:00:00Z; missing: NaN */
    double wall_time;        /* s */
    double sm_clock_free;    /* s-1, read before the samples; missing: NaN */
    double host_load;        /* load average of the host; missing: NaN */
    char marks[TIME_MARKS];  /* see time_marks */
    size_t kernels, samples; /* numbers of kernels and of samples */
    struct round *rounds;    /* owned; rounds[0] is the row's own record */
    size_t round_count;      /* 0: the row is not measured */
    struct place place;      /* place of the row's record */
};

struct results {
    struct session *sessions;
    size_t session_count;
    struct device *devices;
    size_t device_count;
    struct row *rows; /* one per configuration (and device, with distribute = replicate) */
    size_t row_count;
    size_t unplanned;      /* number of rows left out by results_sort, behind the row_count rows */
    size_t without_device; /* number of rows that results_finish left out, less those whose
                            * configuration has a later row of another session; and of rounds
                            * that were left out and did not come again */
    char missing_key[sizeof((struct device *)0)->key]; /* device key of one of them */
};

struct results *results_create(void);          /* NULL: no memory */
void results_destroy(struct results *results); /* takes NULL */

/* A later record of a configuration and device replaces the earlier one. The record of a later
 * round adds its time to the row; without a row it is ignored. */
enum status results_add_session(struct results *results, struct json_text session,
                                struct error *error);
enum status results_add_device(struct results *results, const struct device *device,
                               struct link_list *links, struct error *error);
enum status results_add_record(struct results *results, const struct record *record,
                               struct place place, struct error *error);

/* Call after the last record. Leaves out rows whose device no line of the journal describes: the
 * device's identity and roofs are unknown, so a resumed sweep measures these rows again. Sets
 * sm_clock_free of the devices. */
void results_finish(struct results *results);

/* Sets the journal that results_fetch reads: its name, for errors, and `fd`, which results owns. */
enum status results_attach(struct results *results, const char *journal, int fd,
                           struct error *error);

/* Reads and parses the row's record from the journal; the caller clears the record. If the row has
 * several rounds, time_median is their median, with the interval of stats_rounds. STATUS_SYSTEM:
 * the line cannot be read, or is no valid record. */
enum status results_fetch(const struct results *results, const struct row *row,
                          struct record *record, struct error *error);

/* Sets `listed` and `count` of rows that the plan has and whose `listed` is NULL. Returns the
 * number of rows whose `listed` remains NULL; -1: no memory. Call before results_sort. */
ssize_t results_list(struct results *results, const struct plan *plan);

/* Names and sorts the results for files and tables. Devices are sorted by session and rank. Rows
 * are sorted by their place in the plan; rows that the plan lacks follow, by label and
 * configuration (numbers in texts compare as numbers). Rows of one place are sorted by device.
 * Leaves out rows that the plan lacks and that were not measured. If several sessions describe a
 * device, keeps the descriptions with rows, or else the last one. If `plan` is NULL, all rows have
 * the same place. STATUS_SYSTEM: no memory. */
enum status results_sort(struct results *results, const struct plan *plan, struct error *error);

/* Returns the latest description of this device (same UUID, driver and power cap) among those with
 * the most roofs: a session may have been interrupted before it measured all roofs. NULL: no
 * description has roofs. */
const struct device *results_roofs(const struct results *results, const struct device *device);

/* Links that came with one of the devices; the first device of a node has the node's links. */
const struct link_list *results_links(const struct results *results, const struct device *device);

/* Returns the index of a key in devices, or -1. */
int64_t results_device(const struct results *results, const char *key);
