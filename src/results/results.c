#include "results/results.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "results/members.h"

/* What results_create really makes: results, and where to find a row by its identity. */
struct indexed_results {
    struct results results; /* first, so that a pointer to it is a pointer to the whole */
    json_t *devices;        /* device key -> row */
    size_t *slots;          /* hash of a row's identity -> row + 1; 0: none */
    size_t slot_count;      /* a power of two, at least twice the rows */
    char *journal;          /* NULL without one */
    int fd;
};

struct results *results_create(void)
{
    struct indexed_results *owner = calloc(1, sizeof *owner);
    if (!owner)
        return NULL;
    owner->fd = -1;
    owner->devices = json_object();
    if (owner->devices)
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
    for (size_t i = 0; i < results->row_count; ++i)
        row_clear(&results->rows[i]);
    free(results->sessions);
    free(results->devices);
    free(results->rows);
    json_decref(owner->devices);
    free(owner->slots);
    free(owner->journal);
    if (owner->fd >= 0)
        close(owner->fd);
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
struct identity {
    const char *hash, *host, *uuid;
};

static struct identity identity_of(const struct results *results, const struct row *row)
{
    int64_t at = results_device(results, row->device_key);
    const struct device *device = at < 0 ? NULL : &results->devices[at];
    return (struct identity){row->config_hash, device ? device->hostname : row->device_key,
                             device ? device->uuid : ""};
}

static bool same_identity(struct identity a, struct identity b)
{
    return strcmp(a.hash, b.hash) == 0 && strcmp(a.host, b.host) == 0 &&
           strcmp(a.uuid, b.uuid) == 0;
}

static size_t identity_hash(struct identity identity)
{
    uint64_t hash = XXH3_64bits(identity.hash, strlen(identity.hash));
    hash = XXH3_64bits_withSeed(identity.host, strlen(identity.host), hash);
    return (size_t)XXH3_64bits_withSeed(identity.uuid, strlen(identity.uuid), hash);
}

/* The slot of the row with this identity, or the free one where it belongs. */
static size_t *slot_find(const struct indexed_results *owner, struct identity identity)
{
    size_t at = identity_hash(identity) & (owner->slot_count - 1);
    while (owner->slots[at] &&
           !same_identity(identity,
                          identity_of(&owner->results, &owner->results.rows[owner->slots[at] - 1])))
        at = (at + 1) & (owner->slot_count - 1);
    return &owner->slots[at];
}

static bool slots_grow(struct indexed_results *owner)
{
    enum { FIRST = 64 };
    if (2 * (owner->results.row_count + 1) <= owner->slot_count)
        return true;
    size_t count = owner->slot_count ? 2 * owner->slot_count : FIRST;
    size_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    free(owner->slots);
    owner->slots = slots;
    owner->slot_count = count;
    for (size_t i = 0; i < owner->results.row_count; ++i)
        *slot_find(owner, identity_of(&owner->results, &owner->results.rows[i])) = i + 1;
    return true;
}

enum status results_add_row(struct results *results, struct row *row, struct error *error)
{
    struct indexed_results *owner = (struct indexed_results *)results;
    void *grown = array_grow(results->rows, results->row_count, sizeof *row);
    if (!grown)
        return no_memory(error);
    results->rows = grown;
    if (!slots_grow(owner))
        return no_memory(error);
    size_t *slot = slot_find(owner, identity_of(results, row));
    if (*slot == 0)
        *slot = ++results->row_count;
    else
        row_clear(&results->rows[*slot - 1]);
    results->rows[*slot - 1] = *row;
    *row = (struct row){.texts = NULL};
    return STATUS_OK;
}

enum status results_add_record(struct results *results, struct record *record, struct error *error)
{
    struct row row;
    enum status status = row_of_record(record, &row, error);
    if (status)
        return status;
    row.record = malloc(sizeof *row.record);
    if (row.record) {
        *row.record = *record;
        record_init(record);
        status = results_add_row(results, &row, error);
    } else {
        status = no_memory(error);
    }
    row_clear(&row);
    return status;
}

enum status results_attach(struct results *results, const char *journal, struct error *error)
{
    struct indexed_results *owner = (struct indexed_results *)results;
    owner->journal = strdup(journal);
    owner->fd = open(journal, O_RDONLY | O_CLOEXEC);
    if (!owner->journal || owner->fd < 0)
        return error_set(error, STATUS_SYSTEM, "%s: cannot open: %s", journal, strerror(errno));
    return STATUS_OK;
}

static enum status record_copy(const struct record *from, struct record *copy, struct error *error)
{
    record_clear(copy);
    struct record own = *from;
    own.sample = calloc(from->sample_count + 1, sizeof *own.sample);
    own.kernels = NULL;
    if (!own.sample || record_set_kernels(&own, from->kernels, from->kernel_count, error)) {
        free(own.sample);
        return no_memory(error);
    }
    if (from->sample_count > 0)
        memcpy(own.sample, from->sample, from->sample_count * sizeof *own.sample);
    *copy = own;
    return STATUS_OK;
}

static enum status line_decode(const char *line, size_t length, struct record *record,
                               struct error *error)
{
    struct member entry = {.name = "entry"};
    json_t *object = NULL;
    if (members_find(line, length, &entry, 1) && entry.value)
        object = json_loadb(entry.value, entry.length, 0, NULL);
    enum status status = record_decode(object, record, error);
    json_decref(object);
    return status;
}

enum status results_fetch(const struct results *results, const struct row *row,
                          struct record *record, struct error *error)
{
    const struct indexed_results *owner = (const struct indexed_results *)results;
    if (row->record)
        return record_copy(row->record, record, error);
    char *line = malloc(row->length + 1);
    if (!line)
        return no_memory(error);
    ssize_t got = pread(owner->fd, line, row->length, row->place);
    enum status status = STATUS_OK;
    if (got == (ssize_t)row->length)
        status = line_decode(line, row->length, record, error);
    else
        status = error_set(error, STATUS_SYSTEM, "cannot read it again: %s",
                           got < 0 ? strerror(errno) : "it has become shorter");
    free(line);
    if (status)
        error_prefix(error, "%s:%zu", owner->journal, row->line);
    return status;
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

static int compare_rows(const void *a, const void *b)
{
    return row_compare(*(const struct row *const *)a, *(const struct row *const *)b);
}

const struct row **results_order(const struct results *results)
{
    size_t count = results->row_count;
    const struct row **order = malloc((count ? count : 1) * sizeof *order);
    if (!order)
        return NULL;
    for (size_t i = 0; i < count; ++i)
        order[i] = &results->rows[i];
    qsort(order, count, sizeof *order, compare_rows);
    return order;
}
