/* Everything that a sweep has produced so far: sessions, devices, records, and what follows from
 * them.
 *
 * Filled by journal_read, consumed by results_nc and report. Owns all it holds. */
#ifndef ROOFSWEEP_RESULTS_H
#define ROOFSWEEP_RESULTS_H

#include <stddef.h>

#include "model/device.h"
#include "model/record.h"
#include "model/roofline.h"
#include "base/status.h"

/* One job that worked on the sweep: the first, or one that resumed it. */
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

struct results {
    struct session *sessions;
    size_t session_count;
    struct device *devices;
    size_t device_count;
    struct record *records; /* one per configuration (and device, with distribute = replicate) */
    size_t record_count;
};

struct results *results_create(void);          /* NULL without memory */
void results_destroy(struct results *results); /* takes NULL */

/* Take over the contents of what they are given (which is then empty). A record of the same
 * configuration and device replaces the earlier one. */
enum status results_add_session(struct results *results, struct session *session,
                                struct error *error);
enum status results_add_device(struct results *results, const struct device *device,
                               struct error *error);
enum status results_add_record(struct results *results, struct record *record, struct error *error);

/* Puts the devices, which were added as they arrived, in the order of sessions and ranks. */
void results_order_devices(struct results *results);

/* Index into devices, or -1. */
int64_t results_device(const struct results *results, const char *key);

/* Spread of each of a device's roofs over the devices of its node: highest minus lowest value, over
 * the mean, among devices of the same host, kind and session; NaN if there are fewer than two. */
void results_node_spreads(const struct results *results, size_t device, double spreads[ROOFS_MAX]);

/* All records in the order in which people read them, whoever finished first: by label,
 * configuration (numbers in it as numbers) and device. The caller frees the array; NULL without
 * memory. */
const struct record **results_order(const struct results *results);

json_t *session_encode(const struct session *session);
enum status session_decode(const json_t *object, struct session *session, struct error *error);
void session_clear(struct session *session);

/* Where a derived value's FLOPs and bytes come from. */
enum source { SOURCE_COUNTED, SOURCE_MODELLED, SOURCE_NONE };
extern const char *const source_name[]; /* "counted", "modelled", "none", NULL */

/* A record on its device's roofs. Counted values are used where they exist; of counted bytes, those
 * of the memory level that needs longest for them at its measured bandwidth. Modelled bytes are
 * compulsory traffic, so they are set against the level that they must come from: with a hot cache
 * the last-level cache if it holds the whole footprint and its roof was measured, otherwise device
 * memory. (Nearer caches are private to a core, so none of them holds the whole.) */
struct derived {
    struct roofline roofline;
    enum memory_level level;       /* of roofline's bytes and bandwidth */
    double intensity[LEVEL_COUNT]; /* NaN where the bytes are not known */
    enum source flops_source, bytes_source;
};
struct derived results_derive(const struct record *record, const struct device *device);

#endif
