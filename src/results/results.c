#include "results/results.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/stats.h"
#include "model/device_kind.h"
#include "model/naming.h"

struct indexed_results {
    struct results results; /* first member, so that pointers can be cast */
    json_t *devices;        /* {device key: index of the device} */
    json_t *linked;         /* {device key: index in `links`}; results_sort does not change it */
    struct link_list *links;
    size_t links_count;
    json_t *rows; /* {identity of a row: index of the row} */
    json_t *lost; /* {"HASH ROUND": device key} of rounds without a device, until they come again */
    char *journal; /* name of the journal that results_fetch reads; NULL: none */
    int fd;        /* descriptor of the journal; -1: none */
};

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_SYSTEM, "no memory for more results");
}

/* ---- sessions ---- */

#define S(member, type, units, long_name) FIELD(struct session, member, type, units, long_name)
static const struct field session_fields[] = {
    S(id, FIELD_TEXT, "1", "session"),
    S(version, FIELD_TEXT, "1", "version of roofsweep"),
    S(settings, FIELD_TEXT, "1", "how measurements were made"),
    S(title, FIELD_TEXT, "1", "title"),
    S(manifest_path, FIELD_TEXT, "1", "manifest"),
    S(command, FIELD_TEXT, "1", "command line"),
    S(job_id, FIELD_TEXT, "1", "job identifier of the batch system"),
    S(hostname, FIELD_TEXT, "1", "host of rank 0"),
    S(mpi, FIELD_TEXT, "1", "MPI library"),
    S(ranks, FIELD_INTEGER, "1", "MPI ranks"),
    S(rows, FIELD_INTEGER, "1", "rows of the manifest"),
    S(rounds, FIELD_INTEGER, "1", "rounds of the manifest"),
    FIELD_OF_DATE(struct session, start_time, "start"),
    {0},
};

json_t *session_encode(const struct session *session)
{
    json_t *object = fields_encode(session_fields, session);
    if (session->manifest_text)
        json_object_set_new(object, "manifest_text", json_string(session->manifest_text));
    return object;
}

static enum status session_decode(struct json_text object, struct session *session,
                                  struct error *error)
{
    struct session decoded = {.manifest_text = NULL};
    const struct json_text text = json_member(object, "manifest_text");
    TRY(fields_decode(session_fields, object, &decoded, error));
    TRY(fields_check(session_fields, &decoded, error));
    decoded.manifest_text = calloc(1, text.length + 1); /* decoding makes no text longer */
    if (!decoded.manifest_text)
        return no_memory(error);
    json_text_string(text, decoded.manifest_text, text.length + 1);
    *session = decoded;
    return STATUS_OK;
}

void session_clear(struct session *session)
{
    free(session->manifest_text);
    session->manifest_text = NULL;
    fields_clear(session_fields, session);
}

/* ---- rows ---- */

static void row_clear(struct row *row)
{
    free(row->texts);
    free(row->name);
    free(row->listed);
    free(row->planned);
    free(row->rounds);
    *row = (struct row){.texts = NULL};
}

/* Sets a round, counted from 0. Earlier rounds that are missing get no time. */
static enum status round_set(struct row *row, size_t round, const struct record *record,
                             struct error *error)
{
    const size_t count = round < row->round_count ? row->round_count : round + 1;
    struct round *grown = realloc(row->rounds, count * sizeof *grown);
    if (!grown)
        return no_memory(error);
    for (size_t i = row->round_count; i < count; ++i)
        grown[i] = (struct round){false, NAN, NAN, ""};
    const bool measured = record->status == RECORD_MEASURED;
    grown[round] =
        (struct round){true, measured ? record->time_median : NAN, record->start_time, ""};
    memcpy(grown[round].output_hash, record->output_hash, sizeof record->output_hash);
    row->rounds = grown;
    row->round_count = count;
    return STATUS_OK;
}

static enum status rounds_into_record(const struct row *row, struct record *record,
                                      struct error *error)
{
    double times[ROUNDS_MAX];
    struct stats stats;
    size_t count = 0;
    for (size_t i = 0; i < row->round_count; ++i)
        if (!isnan(row->rounds[i].time)) {
            times[count++] = row->rounds[i].time;
            if (strcmp(record->output_hash, row->rounds[i].output_hash) != 0)
                strcpy(record->output_hash, "varies");
        }
    if (count < 2)
        return STATUS_OK;
    TRY(stats_rounds(times, count, &stats, error));
    record->time_median = stats.median;
    record->time_median_low = stats.median_low;
    record->time_median_high = stats.median_high;
    return STATUS_OK;
}

static const char *text_take(const char *text, char **at)
{
    const char *copy = strcpy(*at, text);
    *at += strlen(text) + 1;
    return copy;
}

static enum status row_of_record(const struct record *record, struct row *row, struct error *error)
{
    const char *why = record->status == RECORD_MEASURED ? "" : record->error;
    char *at = malloc(strlen(record->configuration) + strlen(record->label) +
                      strlen(record->device_key) + strlen(why) + 4);
    if (!at)
        return no_memory(error);
    *row = (struct row){
        .texts = at,
        .status = record->status,
        .attempts = record->attempts,
        .wall_time = record->wall_time,
        .end_time = record->start_time + record->wall_time,
        .sm_clock_free = record->sm_clock_free,
        .host_load = record->host_load,
        .kernels = record->kernel_count,
        .samples = record->sample_count,
        .count = FIELD_MISSING,
    };
    row->configuration = text_take(record->configuration, &at);
    row->label = text_take(record->label, &at);
    row->device_key = text_take(record->device_key, &at);
    row->error = text_take(why, &at);
    memcpy(row->config_hash, record->config_hash, sizeof row->config_hash);
    time_marks(record, row->marks);
    if (record->status != RECORD_MEASURED || round_set(row, 0, record, error) == STATUS_OK)
        return STATUS_OK;
    row_clear(row);
    return STATUS_SYSTEM;
}

/* ---- results ---- */

struct results *results_create(void)
{
    struct indexed_results *owner = calloc(1, sizeof *owner);
    if (!owner)
        return NULL;
    owner->fd = -1;
    owner->devices = json_object();
    owner->linked = json_object();
    owner->rows = json_object();
    owner->lost = json_object();
    if (owner->devices && owner->linked && owner->rows && owner->lost)
        return &owner->results;
    results_destroy(&owner->results);
    return NULL;
}

void results_destroy(struct results *results)
{
    if (!results)
        return;
    struct indexed_results *owner = (struct indexed_results *)results;
    for (size_t i = 0; i < results->session_count; ++i)
        session_clear(&results->sessions[i]);
    for (size_t i = 0; i < results->row_count + results->unplanned; ++i)
        row_clear(&results->rows[i]);
    free(results->sessions);
    free(results->devices);
    free(results->rows);
    for (size_t i = 0; i < owner->links_count; ++i)
        link_list_clear(&owner->links[i]);
    free(owner->links);
    json_decref(owner->devices);
    json_decref(owner->linked);
    json_decref(owner->rows);
    json_decref(owner->lost);
    free(owner->journal);
    if (owner->fd >= 0)
        close(owner->fd);
    free(owner);
}

/* Returns the index of a row or device; a new `identity` gets index `count`. -1: no memory. */
static int64_t index_row(json_t *index, const char *identity, size_t count)
{
    const json_t *row = json_object_get(index, identity);
    if (row)
        return json_integer_value(row);
    int failed = json_object_set_new_nocheck(index, identity, json_integer((json_int_t)count));
    return failed ? -1 : (int64_t)count;
}

enum status results_add_session(struct results *results, struct json_text session,
                                struct error *error)
{
    if (!ARRAY_GROW(results->sessions, results->session_count))
        return no_memory(error);
    enum status status = session_decode(session, &results->sessions[results->session_count], error);
    results->session_count += status == STATUS_OK;
    return status;
}

enum status results_add_device(struct results *results, const struct device *device,
                               struct link_list *links, struct error *error)
{
    struct indexed_results *owner = (struct indexed_results *)results;
    int64_t row = index_row(owner->devices, device->key, results->device_count);
    if (row < 0 || index_row(owner->linked, device->key, (size_t)row) < 0 ||
        !ARRAY_GROW(results->devices, results->device_count) ||
        !ARRAY_GROW(owner->links, results->device_count)) {
        link_list_clear(links);
        return no_memory(error);
    }
    if ((size_t)row < results->device_count)
        link_list_clear(&owner->links[row]);
    results->devices[row] = *device;
    owner->links[row] = *links;
    results->device_count += (size_t)row == results->device_count;
    owner->links_count = results->device_count;
    return STATUS_OK;
}

const struct link_list *results_links(const struct results *results, const struct device *device)
{
    const struct indexed_results *owner = (const struct indexed_results *)results;
    return &owner->links[json_integer_value(json_object_get(owner->linked, device->key))];
}

/* Returns the index of the row of this configuration and device; -1: no memory. A new row has the
 * index row_count; `add` adds it to owner->rows. Devices are compared by host and UUID, because
 * each session gives a device another key. */
static int64_t row_place(const struct indexed_results *owner, const char *config_hash,
                         const char *device_key, bool add)
{
    const int64_t at = results_device(&owner->results, device_key);
    const struct device *device = at < 0 ? NULL : &owner->results.devices[at];
    char *identity;
    if (asprintf(&identity, "%s\n%s\n%s", config_hash, device ? device->hostname : device_key,
                 device ? device->uuid : "") < 0)
        return -1;
    int64_t place = add || json_object_get(owner->rows, identity)
                        ? index_row(owner->rows, identity, owner->results.row_count)
                        : (int64_t)owner->results.row_count;
    free(identity);
    return place;
}

static enum status add_round(struct results *results, const struct record *record,
                             struct error *error)
{
    const struct indexed_results *owner = (const struct indexed_results *)results;
    const int64_t at = row_place(owner, record->config_hash, record->device_key, false);
    struct record times = {.time_median = NAN};
    if (at < 0)
        return no_memory(error);
    struct row *row = (size_t)at < results->row_count ? &results->rows[at] : NULL;
    char lost[sizeof record->config_hash + 24];
    snprintf(lost, sizeof lost, "%s %" PRId64, record->config_hash, record->round);
    if (!row && results_device(results, record->device_key) < 0)
        return json_object_set_new(owner->lost, lost, json_string(record->device_key))
                   ? no_memory(error)
                   : STATUS_OK;
    json_object_del(owner->lost, lost);
    if (!row || row->round_count == 0)
        return STATUS_OK;
    TRY(round_set(row, (size_t)record->round - 1, record, error));
    TRY(rounds_into_record(row, &times, error));
    time_mark_noise(&times, row->marks);
    row->end_time = fmax(row->end_time, record->start_time + record->wall_time);
    return STATUS_OK;
}

enum status results_add_record(struct results *results, const struct record *record,
                               struct place place, struct error *error)
{
    struct indexed_results *owner = (struct indexed_results *)results;
    struct row row;
    if (record->round != FIELD_MISSING)
        return add_round(results, record, error);
    TRY(row_of_record(record, &row, error));
    row.place = place;
    int64_t at = ARRAY_GROW(results->rows, results->row_count)
                     ? row_place(owner, row.config_hash, row.device_key, true)
                     : -1;
    if (at < 0) {
        row_clear(&row);
        return no_memory(error);
    }
    if ((size_t)at == results->row_count)
        ++results->row_count;
    else
        row_clear(&results->rows[at]);
    results->rows[at] = row;
    return STATUS_OK;
}

/* Sets sm_clock_free to the highest clock of the device's roofs and of readings before samples;
 * clocks above the device's limit do not count. */
static void clocks_set(struct results *results)
{
    for (size_t i = 0; i < results->device_count; ++i) {
        struct device *device = &results->devices[i];
        const struct device_kind *kind = device_kind_find(device->kind);
        device->sm_clock_free = NAN;
        for (int64_t j = 0; kind && kind->accelerator && j < device->roof_count; ++j)
            device->sm_clock_free =
                fmax(device->sm_clock_free, device_clock(device, device->roofs[j].sm_clock));
    }
    for (size_t i = 0; i < results->row_count; ++i) {
        int64_t at = results_device(results, results->rows[i].device_key);
        struct device *device = at >= 0 ? &results->devices[at] : NULL;
        if (device)
            device->sm_clock_free =
                fmax(device->sm_clock_free, device_clock(device, results->rows[i].sm_clock_free));
    }
}

/* Rows without a device key failed on several devices, or because no rank had one. They stay. */
static bool row_stays(const struct results *results, const struct row *row)
{
    return results_device(results, row->device_key) >= 0 ||
           (!row->device_key[0] && row->status != RECORD_MEASURED);
}

static bool same_session(const struct row *row, const struct row *other)
{
    const size_t length = strcspn(row->device_key, "/") + 1;
    return strncmp(row->device_key, other->device_key, length) == 0;
}

/* Counts the rows that do not stay and whose configuration has no later row of another session. */
static void count_without_device(struct results *results)
{
    json_t *last = json_object(); /* {config_hash: index of the last row that stays} */
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct row *row = &results->rows[i];
        const json_t *at = json_object_get(last, row->config_hash);
        if (row_stays(results, row) &&
            (!at || results->rows[json_integer_value(at)].place.line < row->place.line))
            json_object_set_new(last, row->config_hash, json_integer((json_int_t)i));
    }
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct row *row = &results->rows[i];
        const json_t *at = json_object_get(last, row->config_hash);
        const struct row *other = at ? &results->rows[json_integer_value(at)] : NULL;
        if (row_stays(results, row) ||
            (other && other->place.line > row->place.line && !same_session(row, other)))
            continue;
        ++results->without_device;
        snprintf(results->missing_key, sizeof results->missing_key, "%s", row->device_key);
    }
    json_decref(last);
}

void results_finish(struct results *results)
{
    struct indexed_results *owner = (struct indexed_results *)results;
    const char *round;
    json_t *key;
    size_t kept = 0;
    count_without_device(results);
    results->without_device += json_object_size(owner->lost);
    json_object_foreach(owner->lost, round, key)
        snprintf(results->missing_key, sizeof results->missing_key, "%s", json_string_value(key));
    for (size_t i = 0; i < results->row_count; ++i) {
        struct row *row = &results->rows[i];
        if (row_stays(results, row))
            results->rows[kept++] = *row;
        else
            row_clear(row);
    }
    results->row_count = kept;
    json_object_clear(owner->rows); /* rows moved, so the indices are stale */
    clocks_set(results);
}

enum status results_attach(struct results *results, const char *journal, int fd,
                           struct error *error)
{
    struct indexed_results *owner = (struct indexed_results *)results;
    owner->fd = fd;
    owner->journal = strdup(journal);
    return owner->journal ? STATUS_OK : no_memory(error);
}

/* Sets the configuration without a workload if this version does not know the text. */
static void config_read(const char *text, struct config *config)
{
    struct error unknown;
    if (config_parse(text, config, &unknown) != STATUS_OK)
        config->workload = NULL;
}

static enum status entry_decode(struct json_text entry, struct record *record, struct error *error)
{
    TRY(record_decode(entry, record, error));
    if (record_check(record, error)) {
        record_clear(record);
        return STATUS_SYSTEM;
    }
    config_read(record->configuration, &record->config);
    return STATUS_OK;
}

enum status results_fetch(const struct results *results, const struct row *row,
                          struct record *record, struct error *error)
{
    const struct indexed_results *owner = (const struct indexed_results *)results;
    size_t length = row->place.length;
    char *entry = calloc(1, length + 1);
    if (!entry)
        return no_memory(error);
    ssize_t got = pread(owner->fd, entry, length, row->place.start);
    enum status status = STATUS_OK;
    if (got == (ssize_t)length)
        status = entry_decode((struct json_text){entry, length}, record, error);
    else
        status = error_set(error, STATUS_SYSTEM, "cannot read it again: %s",
                           got < 0 ? strerror(errno) : "it has become shorter");
    free(entry);
    if (status == STATUS_OK)
        snprintf(record->label, sizeof record->label, "%s", row->label);
    if (status == STATUS_OK && rounds_into_record(row, record, error)) {
        record_clear(record);
        status = STATUS_SYSTEM;
    }
    return error_prefix(error, status, "%s:%zu", owner->journal, row->place.line);
}

static int compare_devices(const void *a, const void *b)
{
    const struct device *x = a, *y = b;
    return strverscmp(x->key, y->key);
}

/* If sessions describe a device several times, keeps the descriptions with rows, or else the last
 * one. If memory is lacking, keeps all descriptions. */
static void leave_out_repeated(struct results *results)
{
    size_t count = results->device_count, kept = 0;
    bool *has_rows = calloc(count + 1, sizeof *has_rows);
    json_t *best = json_object(); /* {identity: index of the description that is kept} */
    char text[DEVICE_IDENTITY];
    for (size_t i = 0; has_rows && i < results->row_count; ++i) {
        int64_t at = results_device(results, results->rows[i].device_key);
        if (at >= 0)
            has_rows[at] = true;
    }
    for (size_t i = 0; has_rows && i < count; ++i) {
        const json_t *other = json_object_get(best, device_identity(&results->devices[i], text));
        if (!other || has_rows[i] || !has_rows[json_integer_value(other)])
            json_object_set_new_nocheck(best, text, json_integer((json_int_t)i));
    }
    for (size_t i = 0; has_rows && i < count; ++i) {
        const json_t *own = json_object_get(best, device_identity(&results->devices[i], text));
        if (has_rows[i] || !device_is_open(&results->devices[i]) ||
            (size_t)json_integer_value(own) == i)
            results->devices[kept++] = results->devices[i];
    }
    results->device_count = has_rows ? kept : count;
    json_decref(best);
    free(has_rows);
}

static bool row_unplanned(const struct row *row)
{
    return row->item == SIZE_MAX && row->status != RECORD_MEASURED;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = row_unplanned(x) - row_unplanned(y);
    if (order == 0)
        order = (x->item > y->item) - (x->item < y->item);
    if (order == 0)
        order = strcmp(x->label, y->label);
    if (order == 0)
        order = strverscmp(x->configuration, y->configuration);
    return order ? order : strverscmp(x->device_key, y->device_key);
}

/* Names all rows. A name has the parameters that differ among the first row_count rows. */
static enum status rows_name(struct results *results, struct error *error)
{
    struct naming *naming = naming_create();
    struct config config;
    bool made = naming;
    for (size_t i = 0; made && i < results->row_count; ++i) {
        config_read(results->rows[i].configuration, &config);
        made = naming_add(naming, results->rows[i].label, results->rows[i].listed, &config);
    }
    for (size_t i = 0; made && i < results->row_count + results->unplanned; ++i) {
        struct row *row = &results->rows[i];
        char name[WORKLOAD_TEXT];
        config_read(row->configuration, &config);
        bool named = naming_format(naming, row->label, row->listed, &config, name);
        free(row->name);
        row->name = strdup(named ? name : row->configuration);
        made = row->name;
    }
    naming_destroy(naming);
    return made ? STATUS_OK : no_memory(error);
}

ssize_t results_list(struct results *results, const struct plan *plan)
{
    ssize_t left = 0;
    for (size_t i = 0; i < results->row_count; ++i) {
        struct row *row = &results->rows[i];
        size_t item = row->listed ? plan->count : plan_find(plan, row->config_hash);
        left += !row->listed && item == plan->count;
        if (item == plan->count)
            continue;
        const char *listed = plan->items[item].listed;
        row->listed = strdup(listed ? listed : "");
        row->count = listed ? plan->items[item].count : FIELD_MISSING;
        row->planned = strdup(plan->items[item].label);
        if (!row->listed || !row->planned)
            return -1;
        row->label = row->planned;
    }
    return left;
}

enum status results_sort(struct results *results, const struct plan *plan, struct error *error)
{
    const struct indexed_results *owner = (const struct indexed_results *)results;
    for (size_t i = 0; i < results->row_count; ++i) {
        struct row *row = &results->rows[i];
        row->item = plan ? plan_find(plan, row->config_hash) : 0;
        if (plan && row->item == plan->count)
            row->item = SIZE_MAX;
    }
    if (results->row_count > 1)
        qsort(results->rows, results->row_count, sizeof *results->rows, compare_rows);
    while (results->row_count > 0 && row_unplanned(&results->rows[results->row_count - 1])) {
        --results->row_count;
        ++results->unplanned;
    }
    leave_out_repeated(results);
    if (results->device_count > 1)
        qsort(results->devices, results->device_count, sizeof *results->devices, compare_devices);
    json_object_clear(owner->devices);
    for (size_t i = 0; i < results->device_count; ++i)
        index_row(owner->devices, results->devices[i].key, i);
    return rows_name(results, error);
}

static bool same_conditions(const struct device *a, const struct device *b)
{
    return strcmp(a->uuid, b->uuid) == 0 && strcmp(a->driver_version, b->driver_version) == 0 &&
           ((isnan(a->power_limit) && isnan(b->power_limit)) || a->power_limit == b->power_limit);
}

const struct device *results_roofs(const struct results *results, const struct device *device)
{
    const struct device *best = NULL;
    for (size_t i = 0; i < results->device_count; ++i) {
        const struct device *other = &results->devices[i];
        if (other->roof_count > 0 && same_conditions(other, device) &&
            (!best || other->roof_count >= best->roof_count))
            best = other;
    }
    return best;
}

int64_t results_device(const struct results *results, const char *key)
{
    const struct indexed_results *owner = (const struct indexed_results *)results;
    const json_t *row = json_object_get(owner->devices, key);
    return !row ? -1 : (int64_t)json_integer_value(row);
}
