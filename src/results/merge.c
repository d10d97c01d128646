#include "results/merge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/array.h"
#include "results/journal.h"
#include "results/result_file.h"

/* Rows that are in memory at a time; as many as a chunk of the file has. */
enum { SLAB = 1024, CLASHES_NAMED = 3 };

/* Where a row is, and what it is of: two rows of one identity clash. */
struct claim {
    XXH128_hash_t identity; /* of configuration, host and UUID */
    double start_time;
    size_t file, row;
    bool dropped; /* a newer one holds */
};

struct merge {
    const char *const *paths;
    size_t count;
    struct result_file *files;
    const struct log *log;
    struct claim *claims; /* in the order of files and rows */
    size_t claim_count;
    struct journal *journal;
    struct record *slab;
    bool newest;
};

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_SYSTEM, "no memory to merge files");
}

/* ---- files ---- */

static bool same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static enum status check_twice(const struct merge *m, size_t file, struct error *error)
{
    for (size_t i = 0; i < file; ++i)
        if (same_file(m->paths[i], m->paths[file]))
            return error_set(error, STATUS_USAGE, "%.400s and %.400s are the same file",
                             m->paths[i], m->paths[file]);
    return STATUS_OK;
}

static enum status check_settings(const struct merge *m, size_t file, struct error *error)
{
    const char *first = m->files[0].sessions[0].settings;
    const char *own = m->files[file].sessions[0].settings;
    if (strcmp(first, own) == 0)
        return STATUS_OK;
    return error_set(
        error, STATUS_USAGE,
        "%.200s was measured with '%s', %.200s with '%s': their rows cannot be compared",
        m->paths[0], first, m->paths[file], own);
}

/* ---- clashes ---- */

static enum status claims_add(struct merge *m, size_t file, size_t first, size_t count,
                              struct row_key *keys, struct error *error)
{
    struct result_file *of = &m->files[file];
    enum status status = result_file_keys(of, first, count, keys, error);
    for (size_t i = 0; i < count && status == STATUS_OK; ++i) {
        int64_t index = of->config_device[first + i];
        const struct device *device = index < 0 ? NULL : &of->devices[index];
        char text[sizeof keys->config_hash + sizeof device->hostname + sizeof device->uuid];
        int length = snprintf(text, sizeof text, "%s\n%s\n%s", keys[i].config_hash,
                              device ? device->hostname : "", device ? device->uuid : "");
        m->claims[m->claim_count++] = (struct claim){.identity = XXH3_128bits(text, (size_t)length),
                                                     .start_time = keys[i].start_time,
                                                     .file = file,
                                                     .row = first + i};
    }
    return status;
}

static enum status claims_read(struct merge *m, struct error *error)
{
    size_t rows = 0;
    for (size_t i = 0; i < m->count; ++i)
        rows += m->files[i].rows;
    struct row_key *keys = calloc(SLAB, sizeof *keys);
    m->claims = calloc(rows + 1, sizeof *m->claims);
    enum status status = keys && m->claims ? STATUS_OK : no_memory(error);
    for (size_t i = 0; i < m->count; ++i)
        for (size_t row = 0; row < m->files[i].rows && status == STATUS_OK; row += SLAB) {
            size_t left = m->files[i].rows - row;
            status = claims_add(m, i, row, left < SLAB ? left : SLAB, keys, error);
            if (left <= SLAB)
                result_file_rest(&m->files[i]);
        }
    free(keys);
    return status;
}

/* By identity, then by time; of equal ones the later file is the later one. */
static int compare_claims(const void *a, const void *b)
{
    const struct claim *x = *(const struct claim *const *)a, *y = *(const struct claim *const *)b;
    int order = XXH128_cmp(&x->identity, &y->identity);
    if (order == 0 && x->start_time != y->start_time && !isnan(x->start_time + y->start_time))
        order = x->start_time < y->start_time ? -1 : 1;
    return order ? order : (x > y) - (x < y);
}

/* "CONFIGURATION on HOST UUID in A and B". */
static void clash_name(struct merge *m, const struct claim *earlier, const struct claim *later,
                       FILE *stream)
{
    struct row_key *key = malloc(sizeof *key);
    struct error unread;
    struct result_file *file = &m->files[later->file];
    if (key && result_file_keys(file, later->row, 1, key, &unread) == STATUS_OK) {
        int64_t index = file->config_device[later->row];
        const struct device *device = index < 0 ? NULL : &file->devices[index];
        fprintf(stream, "; %.200s", key->configuration);
        if (device)
            fprintf(stream, " on %s of %s", device->uuid, device->hostname);
        fprintf(stream, " in %.200s and %.200s", m->paths[earlier->file], m->paths[later->file]);
    }
    free(key);
}

static enum status clashes_report(struct merge *m, size_t clashes, char *names, struct error *error)
{
    if (clashes == 0)
        return STATUS_OK;
    if (m->newest) {
        log_print(m->log, LOG_WARNING,
                  "%zu rows are in several files, of the same device: the one measured last holds",
                  clashes);
        return STATUS_OK;
    }
    return error_set(error, STATUS_USAGE,
                     "%zu rows are in several files, of the same device%.1500s%s; --newest takes "
                     "those measured last",
                     clashes, names, clashes > CLASHES_NAMED ? "; ..." : "");
}

static enum status clashes_find(struct merge *m, struct error *error)
{
    struct claim **order = calloc(m->claim_count + 1, sizeof *order);
    char *names = NULL;
    size_t size = 0, clashes = 0;
    FILE *stream = open_memstream(&names, &size);
    enum status status = order && stream ? STATUS_OK : no_memory(error);
    for (size_t i = 0; order && i < m->claim_count; ++i)
        order[i] = &m->claims[i];
    if (order)
        qsort(order, m->claim_count, sizeof(struct claim *), compare_claims);
    for (size_t i = 1; status == STATUS_OK && i < m->claim_count; ++i) {
        if (!XXH128_isEqual(order[i - 1]->identity, order[i]->identity))
            continue;
        order[i - 1]->dropped = true;
        if (++clashes <= CLASHES_NAMED)
            clash_name(m, order[i - 1], order[i], stream);
    }
    if (stream)
        fclose(stream);
    if (status == STATUS_OK)
        status = clashes_report(m, clashes, names, error);
    free(names);
    free(order);
    return status;
}

/* ---- sessions and devices ---- */

static bool session_known(const struct merge *m, size_t file, const char *id)
{
    for (size_t i = 0; i < file; ++i)
        for (size_t j = 0; j < m->files[i].session_count; ++j)
            if (strcmp(m->files[i].sessions[j].id, id) == 0)
                return true;
    return false;
}

static int compare_sessions(const void *a, const void *b)
{
    const struct session *x = *(const struct session *const *)a;
    const struct session *y = *(const struct session *const *)b;
    int order = (x->start_time > y->start_time) - (x->start_time < y->start_time);
    return order ? order : strcmp(x->id, y->id);
}

/* Each once, in the order of their times. */
static enum status sessions_write(struct merge *m, struct error *error)
{
    size_t count = 0, room = 1;
    for (size_t i = 0; i < m->count; ++i)
        room += m->files[i].session_count;
    const struct session **sessions = calloc(room, sizeof *sessions);
    if (!sessions)
        return no_memory(error);
    for (size_t i = 0; i < m->count; ++i)
        for (size_t j = 0; j < m->files[i].session_count; ++j)
            if (!session_known(m, i, m->files[i].sessions[j].id))
                sessions[count++] = &m->files[i].sessions[j];
    qsort(sessions, count, sizeof *sessions, compare_sessions);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; ++i)
        status = journal_append(m->journal, "session", session_encode(sessions[i]), error);
    free(sessions);
    return status;
}

/* All that is known of them is equal, but for what depends on the job. */
static bool same_device(const struct device *a, const struct device *b)
{
    static const char *const of_the_job[] = {"key", "index", "counters", "roofs_reused"};
    json_t *x = device_encode(a), *y = device_encode(b);
    for (size_t i = 0; i < sizeof of_the_job / sizeof *of_the_job; ++i) {
        json_object_del(x, of_the_job[i]);
        json_object_del(y, of_the_job[i]);
    }
    bool same = x && y && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

static bool is_one(const struct device *a, const struct device *b)
{
    return strcmp(a->hostname, b->hostname) == 0 && strcmp(a->uuid, b->uuid) == 0;
}

/* A device of an earlier file gives its key to the same one of a later file. */
static void device_unify(struct merge *m, size_t file, struct device *device)
{
    for (size_t i = 0; i < file; ++i)
        for (size_t j = 0; j < m->files[i].device_count; ++j) {
            const struct device *earlier = &m->files[i].devices[j];
            if (strcmp(earlier->key, device->key) == 0 || !device_is_open(device) ||
                !is_one(earlier, device))
                continue;
            if (same_device(earlier, device)) {
                memcpy(device->key, earlier->key, sizeof device->key);
                return;
            }
            log_print(m->log, LOG_WARNING,
                      "%s of %s has other roofs in %s than in %s: both stay, each for the rows of "
                      "its file",
                      device->uuid, device->hostname, m->paths[file], m->paths[i]);
        }
}

/* The one of a session and rank that has the most roofs; of equal ones the first. A file may have been written
 * before its device had all. */
static bool is_best(const struct merge *m, size_t file, const struct device *device)
{
    for (size_t i = 0; i < m->count; ++i)
        for (size_t j = 0; j < m->files[i].device_count; ++j) {
            const struct device *other = &m->files[i].devices[j];
            bool more = other->roof_count > device->roof_count ||
                        (other->roof_count == device->roof_count && i < file);
            if (i != file && strcmp(other->key, device->key) == 0 && more)
                return false;
        }
    return true;
}

static enum status devices_write(struct merge *m, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < m->count; ++i)
        for (size_t j = 0; j < m->files[i].device_count; ++j)
            device_unify(m, i, &m->files[i].devices[j]);
    for (size_t i = 0; i < m->count; ++i)
        for (size_t j = 0; j < m->files[i].device_count && status == STATUS_OK; ++j) {
            const struct device *device = &m->files[i].devices[j];
            if (*device->key && is_best(m, i, device))
                status = journal_append(m->journal, "device", device_encode(device), error);
        }
    return status;
}

/* ---- rows ---- */

static enum status slab_write(struct merge *m, size_t file, size_t first, size_t count,
                              const struct claim *claims, struct error *error)
{
    enum status status = result_file_records(&m->files[file], first, count, m->slab, error);
    for (size_t i = 0; i < count && status == STATUS_OK; ++i)
        if (!claims[i].dropped)
            status = journal_append(m->journal, "record", record_encode(&m->slab[i]), error);
    for (size_t i = 0; i < count; ++i)
        record_clear(&m->slab[i]);
    return status;
}

static enum status rows_write(struct merge *m, struct error *error)
{
    const struct claim *claims = m->claims;
    enum status status = STATUS_OK;
    m->slab = calloc(SLAB, sizeof *m->slab);
    if (!m->slab)
        return no_memory(error);
    for (size_t i = 0; i < SLAB; ++i)
        record_init(&m->slab[i]);
    for (size_t i = 0; i < m->count; ++i)
        for (size_t row = 0; row < m->files[i].rows && status == STATUS_OK; row += SLAB) {
            size_t left = m->files[i].rows - row, count = left < SLAB ? left : SLAB;
            status = slab_write(m, i, row, count, claims, error);
            claims += count;
            if (left <= SLAB)
                result_file_rest(&m->files[i]);
        }
    return status;
}

/* ---- all of it ---- */

static enum status write_all(struct merge *m, struct journals *merged, struct error *error)
{
    struct journals made;
    enum status status = journals_create(&made, error);
    if (status)
        return status;
    status = journal_open(made.path, JOURNAL_REPLACE, &m->journal, error);
    if (status == STATUS_OK)
        status = sessions_write(m, error);
    if (status == STATUS_OK)
        status = devices_write(m, error);
    if (status == STATUS_OK)
        status = rows_write(m, error);
    journal_close(m->journal);
    if (status == STATUS_OK)
        *merged = made;
    else
        journals_close(&made);
    return status;
}

static enum status files_open(struct merge *m, const char *const *paths, size_t count,
                              struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; ++i) {
        status = check_twice(m, i, error);
        if (status == STATUS_OK)
            status = result_file_open(paths[i], &m->files[i], error);
        m->count += status == STATUS_OK;
        if (status == STATUS_OK)
            result_file_rest(&m->files[i]);
        if (status == STATUS_OK)
            status = check_settings(m, i, error);
    }
    return status;
}

enum status merge_files(const char *const *paths, size_t count, bool newest, const struct log *log,
                        struct journals *merged, struct error *error)
{
    struct merge m = {.paths = paths, .log = log, .newest = newest};
    m.files = calloc(count + 1, sizeof *m.files);
    if (!m.files)
        return no_memory(error);
    enum status status = files_open(&m, paths, count, error);
    if (status == STATUS_OK)
        status = claims_read(&m, error);
    if (status == STATUS_OK)
        status = clashes_find(&m, error);
    if (status == STATUS_OK)
        status = write_all(&m, merged, error);
    for (size_t i = 0; i < m.count; ++i)
        result_file_close(&m.files[i]);
    free(m.files);
    free(m.claims);
    free(m.slab);
    return status;
}
