#include "results/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* What results_create really makes: results, and where to find a row by its identity. */
struct indexed_results {
    struct results results; /* first, so that a pointer to it is a pointer to the whole */
    json_t *devices;        /* device key -> row */
    json_t *records;        /* record identity -> row */
};

struct results *results_create(void)
{
    struct indexed_results *owner = calloc(1, sizeof *owner);
    if (!owner)
        return NULL;
    owner->devices = json_object();
    owner->records = json_object();
    if (owner->devices && owner->records)
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
    for (size_t i = 0; i < results->record_count; ++i)
        record_clear(&results->records[i]);
    free(results->sessions);
    free(results->devices);
    free(results->records);
    json_decref(owner->devices);
    json_decref(owner->records);
    free(owner);
}

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_SYSTEM, "no memory for more results");
}

/* Row of an identity, `count` for one that is new, -1 without memory. */
static int64_t index_row(json_t *index, const char *identity, size_t count)
{
    const json_t *row = json_object_get(index, identity);
    if (row)
        return json_integer_value(row);
    int failed = json_object_set_new_nocheck(index, identity, json_integer((json_int_t)count));
    return failed ? -1 : (int64_t)count;
}

enum status results_add_session(struct results *results, struct session *session,
                                struct error *error)
{
    void *grown = array_grow(results->sessions, results->session_count, sizeof *session);
    if (!grown)
        return no_memory(error);
    results->sessions = grown;
    results->sessions[results->session_count++] = *session;
    session->manifest_text = NULL;
    session_clear(session);
    return STATUS_OK;
}

enum status results_add_device(struct results *results, const struct device *device,
                               struct error *error)
{
    struct indexed_results *owner = (struct indexed_results *)results;
    void *grown = array_grow(results->devices, results->device_count, sizeof *device);
    if (!grown)
        return no_memory(error);
    results->devices = grown;
    int64_t row = index_row(owner->devices, device->key, results->device_count);
    if (row < 0)
        return no_memory(error);
    results->devices[row] = *device;
    results->device_count += (size_t)row == results->device_count;
    return STATUS_OK;
}

/* The same GPU is the same device in a later session, where its key is another one. */
static void record_identity(const struct results *results, const struct record *record,
                            char text[384])
{
    int64_t row = results_device(results, record->device_key);
    const struct device *device = row < 0 ? NULL : &results->devices[row];
    snprintf(text, 384, "%s %s %s", record->config_hash,
             device ? device->hostname : record->device_key, device ? device->uuid : "");
}

enum status results_add_record(struct results *results, struct record *record, struct error *error)
{
    struct indexed_results *owner = (struct indexed_results *)results;
    char identity[384];
    void *grown = array_grow(results->records, results->record_count, sizeof *record);
    if (!grown)
        return no_memory(error);
    results->records = grown;
    record_identity(results, record, identity);
    int64_t row = index_row(owner->records, identity, results->record_count);
    if (row < 0)
        return no_memory(error);
    if ((size_t)row == results->record_count)
        ++results->record_count;
    else
        record_clear(&results->records[row]);
    results->records[row] = *record;
    record_init(record);
    return STATUS_OK;
}

static int compare_devices(const void *a, const void *b)
{
    const struct device *x = a, *y = b;
    return strverscmp(x->key, y->key);
}

void results_order_devices(struct results *results)
{
    const struct indexed_results *owner = (const struct indexed_results *)results;
    if (results->device_count > 1)
        qsort(results->devices, results->device_count, sizeof *results->devices, compare_devices);
    for (size_t i = 0; i < results->device_count; ++i)
        json_integer_set(json_object_get(owner->devices, results->devices[i].key), (json_int_t)i);
}

int64_t results_device(const struct results *results, const char *key)
{
    const struct indexed_results *owner = (const struct indexed_results *)results;
    const json_t *row = json_object_get(owner->devices, key);
    return !row ? -1 : (int64_t)json_integer_value(row);
}

static bool same_session(const char *a, const char *b)
{
    size_t length = strcspn(a, "/");
    return length == strcspn(b, "/") && strncmp(a, b, length) == 0;
}

static bool neighbours(const struct device *a, const struct device *b)
{
    return strcmp(a->hostname, b->hostname) == 0 && strcmp(a->kind, b->kind) == 0 &&
           same_session(a->key, b->key);
}

/* Of one roof, over the devices that were seen so far. */
struct spread {
    double lowest, highest, sum;
    int count;
};

static void spread_add(struct spread *spread, double value)
{
    if (isnan(value))
        return;
    spread->lowest = spread->count ? fmin(spread->lowest, value) : value;
    spread->highest = spread->count ? fmax(spread->highest, value) : value;
    spread->sum += value;
    ++spread->count;
}

void results_node_spreads(const struct results *results, size_t device, double spreads[ROOFS_MAX])
{
    const struct device *own = &results->devices[device];
    struct spread seen[ROOFS_MAX] = {{0}};
    for (size_t i = 0; i < results->device_count; ++i) {
        const struct device *other = &results->devices[i];
        if (!neighbours(own, other))
            continue;
        for (int64_t j = 0; j < own->roof_count; ++j) {
            const struct roof *same = device_same_roof(other, &own->roofs[j]);
            if (same)
                spread_add(&seen[j], roof_value(same));
        }
    }
    for (int64_t j = 0; j < own->roof_count; ++j)
        spreads[j] = seen[j].count > 1
                         ? (seen[j].highest - seen[j].lowest) / (seen[j].sum / seen[j].count)
                         : NAN;
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = *(const struct record *const *)a;
    const struct record *y = *(const struct record *const *)b;
    int order = strcmp(x->label, y->label);
    if (order == 0)
        order = strverscmp(x->configuration, y->configuration);
    return order ? order : strverscmp(x->device_key, y->device_key);
}

const struct record **results_order(const struct results *results)
{
    size_t count = results->record_count;
    const struct record **order = malloc((count ? count : 1) * sizeof *order);
    if (!order)
        return NULL;
    for (size_t i = 0; i < count; ++i)
        order[i] = &results->records[i];
    qsort(order, count, sizeof *order, compare_records);
    return order;
}
