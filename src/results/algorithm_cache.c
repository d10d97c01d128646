#include "results/algorithm_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "results/journal.h"
#include "results/outputs.h"

struct algorithm_cache {
    char *path; /* file that gets new entries; NULL: no file */
    bool keep;
    json_t *entries; /* {key: bytes of a struct algorithm} */
    json_t *pending; /* {KIND: ENTRY, ...} for each line that the file lacks */
};

/* Devices with equal hashes can run the same algorithms. */
static void device_hash(const struct device *device, char hash[CONFIG_HASH_TEXT])
{
    char
        text[sizeof device->model + sizeof device->library_version + sizeof device->driver_version];
    snprintf(text, sizeof text, "%s\n%s\n%s", device->model, device->library_version,
             device->driver_version);
    config_text_hash(text, hash);
}

enum { KEY_TEXT = 2 * CONFIG_HASH_TEXT };
static void key_format(const char *config_hash, const struct device *device, char key[KEY_TEXT])
{
    char hash[CONFIG_HASH_TEXT];
    device_hash(device, hash);
    snprintf(key, KEY_TEXT, "%s %s", config_hash, hash);
}

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_SYSTEM, "no memory for the algorithm cache");
}

static enum status entry_put(struct algorithm_cache *cache, const char *config_hash,
                             const struct device *device, const struct algorithm *algorithm,
                             struct error *error)
{
    char key[KEY_TEXT];
    key_format(config_hash, device, key);
    json_t *bytes = json_stringn_nocheck((const char *)algorithm, sizeof *algorithm);
    return json_object_set_new_nocheck(cache->entries, key, bytes) == 0 ? STATUS_OK
                                                                        : no_memory(error);
}

/* ---- the file ---- */

static enum status record_take(struct algorithm_cache *cache, const struct record *record,
                               const struct device *device, struct error *error)
{
    const time_t start = (time_t)record->start_time;
    struct algorithm algorithm;
    struct tm day;
    if (!algorithm_of_record(record, &algorithm))
        return STATUS_OK;
    if (strncmp(algorithm.algorithm_origin, "file", strlen("file")) != 0) {
        snprintf(algorithm.algorithm_origin, sizeof algorithm.algorithm_origin, "file");
        if (record->start_time > 0 && gmtime_r(&start, &day))
            strftime(algorithm.algorithm_origin, sizeof algorithm.algorithm_origin,
                     "file of %Y-%m-%d", &day);
    }
    return entry_put(cache, record->config_hash, device, &algorithm, error);
}

static enum status rows_take(struct algorithm_cache *cache, const struct results *results,
                             struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < results->row_count && status == STATUS_OK; ++i) {
        const int64_t device = results_device(results, results->rows[i].device_key);
        struct record record;
        if (device < 0 || results->rows[i].status != RECORD_MEASURED)
            continue;
        record_init(&record);
        status = results_fetch(results, &results->rows[i], &record, error);
        if (status == STATUS_OK)
            status = record_take(cache, &record, &results->devices[device], error);
        record_clear(&record);
    }
    return status;
}

/* Refuses a journal with sessions: it belongs to a result, and only its sweep may append to it. */
static enum status file_read(struct algorithm_cache *cache, const char *path, size_t *damaged,
                             struct error *error)
{
    char journal[OUTPUTS_JOURNAL];
    struct journal_damage damage;
    struct results *results;
    bool entries_fit = true;
    outputs_journal_of(path, journal);
    if (strcmp(journal, path) != 0 || access(path, F_OK) == 0) {
        if (journal_salvage(journal, &results, &damage, error))
            return STATUS_USAGE;
        enum status status = rows_take(cache, results, error);
        *damaged = damage.count;
        entries_fit = results->session_count == 0;
        results_destroy(results);
        TRY(status);
    }
    if (entries_fit)
        cache->path = strdup(path);
    return entries_fit && !cache->path ? no_memory(error) : STATUS_OK;
}

enum status algorithm_cache_open(const char *path, bool keep, struct algorithm_cache **cache,
                                 size_t *damaged, struct error *error)
{
    struct algorithm_cache *opened = calloc(1, sizeof *opened);
    *damaged = 0;
    if (!opened || !(opened->entries = json_object()) || !(opened->pending = json_array())) {
        algorithm_cache_close(opened);
        return no_memory(error);
    }
    opened->keep = keep;
    enum status status = path ? file_read(opened, path, damaged, error) : STATUS_OK;
    if (status)
        algorithm_cache_close(opened);
    else
        *cache = opened;
    return status;
}

void algorithm_cache_close(struct algorithm_cache *cache)
{
    if (!cache)
        return;
    json_decref(cache->entries);
    json_decref(cache->pending);
    free(cache->path);
    free(cache);
}

/* ---- entries ---- */

bool algorithm_cache_find(const struct algorithm_cache *cache, const char *config_hash,
                          const struct device *device, struct algorithm *algorithm)
{
    char key[KEY_TEXT];
    key_format(config_hash, device, key);
    const json_t *bytes = json_object_get(cache->entries, key);
    algorithm_init(algorithm);
    if (bytes)
        memcpy(algorithm, json_string_value(bytes), sizeof *algorithm);
    return bytes;
}

/* A device with only those members that an algorithm depends on. `hash` is written as key and as
 * UUID. */
static json_t *device_reduce(const struct device *device, const char *hash)
{
    json_t *object = json_object();
    json_object_set_new(object, "key", json_string(hash));
    json_object_set_new(object, "uuid", json_string(hash));
    json_object_set_new(object, "model", text_encode(device->model));
    json_object_set_new(object, "library_version", text_encode(device->library_version));
    json_object_set_new(object, "driver_version", text_encode(device->driver_version));
    return object;
}

static json_t *record_reduce(const struct record *record, const struct algorithm *algorithm,
                             const char *config_hash, const char *device_key)
{
    struct record reduced;
    record_init(&reduced);
    snprintf(reduced.configuration, sizeof reduced.configuration, "%s", record->configuration);
    snprintf(reduced.config_hash, sizeof reduced.config_hash, "%s", config_hash);
    snprintf(reduced.device_key, sizeof reduced.device_key, "%s", device_key);
    reduced.status = RECORD_MEASURED;
    reduced.start_time = record->start_time;
    reduced.time_median = record->time_median;
    algorithm_into_record(algorithm, &reduced);
    return record_encode(&reduced);
}

enum status algorithm_cache_learn(struct algorithm_cache *cache, const struct record *record,
                                  const char *config_hash, const struct device *device,
                                  struct error *error)
{
    struct algorithm algorithm;
    char hash[CONFIG_HASH_TEXT];
    if (strcmp(record->algorithm_origin, algorithm_searched) != 0 ||
        !algorithm_of_record(record, &algorithm))
        return STATUS_OK;
    if (cache->path) {
        device_hash(device, hash);
        json_t *lines = json_pack("{s:o, s:o}", "device", device_reduce(device, hash), "record",
                                  record_reduce(record, &algorithm, config_hash, hash));
        if (json_array_append_new(cache->pending, lines) != 0)
            return no_memory(error);
    }
    if (!cache->keep)
        return STATUS_OK;
    snprintf(algorithm.algorithm_origin, sizeof algorithm.algorithm_origin, "run");
    return entry_put(cache, config_hash, device, &algorithm, error);
}

static enum status cache_file_open(const char *path, double patience, struct journal **journal,
                                   struct error *error)
{
    const double start = clock_monotonic();
    for (;;) {
        enum status status = journal_open(path, JOURNAL_SHARE, journal, error);
        if (status == STATUS_USAGE && access(path, F_OK) != 0)
            status = journal_open(path, JOURNAL_CREATE, journal, error);
        if (status != STATUS_USAGE || clock_monotonic() - start >= patience)
            return status;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

enum status algorithm_cache_save(struct algorithm_cache *cache, double patience,
                                 struct error *error)
{
    struct journal *journal = NULL;
    json_t *lines, *entry;
    const char *kind;
    size_t index;
    if (json_array_size(cache->pending) == 0)
        return STATUS_OK;
    enum status status = STATUS_OK;
    TRY(cache_file_open(cache->path, patience, &journal, error));
    json_array_foreach(cache->pending, index, lines)
        json_object_foreach(lines, kind, entry) if (status == STATUS_OK) status =
            journal_append(journal, kind, json_incref(entry), error);
    if (status == STATUS_OK)
        status = journal_sync(journal, error);
    journal_close(journal);
    if (status == STATUS_OK)
        json_array_clear(cache->pending);
    return status;
}
