#include "results/algorithm_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "results/earlier.h"
#include "results/journal.h"

struct algorithm_cache {
    char *path; /* of the file that is added to; NULL: none */
    bool keep;
    json_t *entries; /* cache by their owners' keys, as compact text */
    json_t *pending; /* array of what is not in the file yet */
};

static const char kind_text[] = "algorithm";

/* Whose algorithm it is. False: no record and device have so long texts. */
enum { KEY_TEXT = 512 };
static bool key_format(const char *config_hash, const char *model, const char *library,
                       const char *driver, char key[KEY_TEXT])
{
    return snprintf(key, KEY_TEXT, "%s\n%s\n%s\n%s", config_hash, model, library, driver) <
           KEY_TEXT;
}

/* False: there is no memory. */
static bool entry_put(struct algorithm_cache *cache, const char *key,
                      const struct algorithm *algorithm)
{
    json_t *object = fields_encode(algorithm_fields, algorithm);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    bool put =
        text && json_object_set_new_nocheck(cache->entries, key, json_string_nocheck(text)) == 0;
    free(text);
    return put;
}

/* What a row says that is measured with a algorithm of that time of a file. */
static void origin_set(double time, struct algorithm *algorithm)
{
    time_t seconds = (time_t)time;
    struct tm day;
    snprintf(algorithm->algorithm_origin, sizeof algorithm->algorithm_origin, "file");
    if (time > 0 && time <= FIELD_DATE_MAX && gmtime_r(&seconds, &day))
        strftime(algorithm->algorithm_origin, sizeof algorithm->algorithm_origin,
                 "file of %Y-%m-%d", &day);
}

/* ---- the file ---- */

static const char *member_of(const json_t *entry, const char *name)
{
    const char *text = json_string_value(json_object_get(entry, name));
    return text ? text : "";
}

/* False: without memory. *good: it was an entry. */
static bool entry_take(struct algorithm_cache *cache, const json_t *line, bool *good)
{
    const json_t *entry = json_object_get(line, "entry");
    json_t *made = json_object_get(entry, "algorithm");
    char key[KEY_TEXT];
    double time = json_number_value(json_object_get(entry, "time"));
    struct algorithm algorithm;
    struct error unused;
    algorithm_init(&algorithm);
    *good = json_is_object(made) && strcmp(member_of(line, "kind"), kind_text) == 0 &&
            fields_decode(algorithm_fields, made, &algorithm, &unused) == STATUS_OK &&
            fields_check(algorithm_fields, &algorithm, &unused) == STATUS_OK &&
            field_check_number("time", time, FIELD_DATE_MAX, &unused) == STATUS_OK &&
            algorithm_is_known(&algorithm) &&
            key_format(member_of(entry, "config_hash"), member_of(entry, "model"),
                       member_of(entry, "library"), member_of(entry, "driver"), key);
    origin_set(time, &algorithm);
    return !*good || entry_put(cache, key, &algorithm);
}

static bool line_take(struct algorithm_cache *cache, const char *text, size_t length,
                      struct algorithm_cache_file *file)
{
    bool good = false, enough = true;
    json_t *line = journal_line_holds(text, length) ? json_loadb(text, length, 0, NULL) : NULL;
    if (line)
        enough = entry_take(cache, line, &good);
    json_decref(line);
    ++*(good ? &file->entries : &file->damaged);
    return enough;
}

static enum status lines_read(struct algorithm_cache *cache, FILE *stream,
                              struct algorithm_cache_file *file, struct error *error)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length = 0;
    bool enough = true;
    while (enough && (length = line_read(stream, JOURNAL_LINE_BYTES, &line, &size)) > 0 &&
           line[length - 1] == '\n') /* a torn last line is what a kill leaves */
        enough = line_take(cache, line, (size_t)length - 1, file);
    free(line);
    if (enough && length >= 0)
        return STATUS_OK;
    return error_set(error, STATUS_SYSTEM, "%s: cannot read: %s", cache->path,
                     enough ? strerror(errno) : "no memory");
}

/* A file of somebody else must not be appended to. */
static enum status own_file_read(struct algorithm_cache *cache, struct algorithm_cache_file *file,
                                 struct error *error)
{
    const char *path = cache->path;
    FILE *stream;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return STATUS_OK;
    TRY(file_open(path, &stream, error));
    enum status status = lines_read(cache, stream, file, error);
    bool empty = ftello(stream) == 0;
    fclose(stream);
    if (status == STATUS_OK && !empty && file->entries == 0 &&
        (file->damaged > 0 || !journal_recognised(path)))
        status = error_set(error, STATUS_USAGE,
                           "%s is there, and neither a file of algorithms nor a result file", path);
    return status;
}

static enum status result_read(struct algorithm_cache *cache, const char *path,
                               struct algorithm_cache_file *file, struct error *error)
{
    struct earlier_algorithm *rows;
    struct error unused;
    size_t count;
    char key[KEY_TEXT];
    bool enough = true;
    TRY(earlier_algorithms_read(path, &rows, &count, error));
    for (size_t i = 0; i < count && enough; ++i) {
        struct earlier_algorithm *row = &rows[i];
        bool good = fields_check(algorithm_fields, &row->algorithm, &unused) == STATUS_OK &&
                    key_format(row->config_hash, row->owner.model, row->owner.library_version,
                               row->owner.driver_version, key);
        if (strncmp(row->algorithm.algorithm_origin, "file", strlen("file")) != 0)
            origin_set(row->start_time, &row->algorithm);
        enough = !good || entry_put(cache, key, &row->algorithm);
        ++*(good ? &file->entries : &file->damaged);
    }
    free(rows);
    return enough ? STATUS_OK : error_set(error, STATUS_SYSTEM, "%s: no memory for it", path);
}

enum status algorithm_cache_open(const char *path, bool keep, struct algorithm_cache **cache,
                                 struct algorithm_cache_file *file, struct error *error)
{
    struct algorithm_cache *opened = calloc(1, sizeof *opened);
    *file = (struct algorithm_cache_file){0, 0};
    const char *ending = path ? strrchr(path, '.') : NULL;
    const bool named = ending && strcmp(ending, ".nc") == 0 && access(path, F_OK) != 0;
    const bool result = path && (named || earlier_is_result(path));
    if (!opened || !(opened->entries = json_object()) || !(opened->pending = json_array()) ||
        (path && !result && !(opened->path = strdup(path)))) {
        algorithm_cache_close(opened);
        return error_set(error, STATUS_SYSTEM, "no memory for the algorithm cache");
    }
    opened->keep = keep;
    enum status status = result ? result_read(opened, path, file, error)
                         : path ? own_file_read(opened, file, error)
                                : STATUS_OK;
    if (status == STATUS_OK)
        *cache = opened;
    else
        algorithm_cache_close(opened);
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

/* ---- use ---- */

bool algorithm_cache_find(const struct algorithm_cache *cache, const char *config_hash,
                          const struct device *device, struct algorithm *algorithm)
{
    struct error unused;
    char key[KEY_TEXT];
    key_format(config_hash, device->model, device->library_version, device->driver_version, key);
    const json_t *text = json_object_get(cache->entries, key);
    if (!text) { /* of a roofsweep that did not ask for the driver */
        key_format(config_hash, device->model, device->library_version, "", key);
        text = json_object_get(cache->entries, key);
    }
    algorithm_init(algorithm);
    json_t *object = text ? json_loads(json_string_value(text), 0, NULL) : NULL;
    bool found = object && fields_decode(algorithm_fields, object, algorithm, &unused) == STATUS_OK;
    if (!found)
        algorithm_init(algorithm);
    json_decref(object);
    return found;
}

/* A line's entry, new. */
static json_t *entry_encode(const struct record *record, const char *config_hash,
                            const struct device *device, const json_t *algorithm)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "configuration", text_encode(record->configuration));
    json_object_set_new(entry, "config_hash", text_encode(config_hash));
    json_object_set_new(entry, "model", text_encode(device->model));
    json_object_set_new(entry, "library", text_encode(device->library_version));
    json_object_set_new(entry, "driver", text_encode(device->driver_version));
    json_object_set_new(entry, "time", json_real(record->start_time));
    json_object_set(entry, "algorithm", (json_t *)algorithm);
    return entry;
}

enum status algorithm_cache_learn(struct algorithm_cache *cache, const struct record *record,
                                  const char *config_hash, const struct device *device,
                                  struct error *error)
{
    struct algorithm algorithm;
    char key[KEY_TEXT];
    if (!algorithm_of_record(record, &algorithm))
        return STATUS_OK;
    algorithm.algorithm_origin[0] = '\0';
    json_t *object = fields_encode(algorithm_fields, &algorithm);
    snprintf(algorithm.algorithm_origin, sizeof algorithm.algorithm_origin, "run");
    key_format(config_hash, device->model, device->library_version, device->driver_version, key);
    bool enough = !cache->keep || entry_put(cache, key, &algorithm);
    if (cache->path)
        enough = json_array_append_new(cache->pending,
                                       entry_encode(record, config_hash, device, object)) == 0 &&
                 enough;
    json_decref(object);
    return enough ? STATUS_OK
                  : error_set(error, STATUS_SYSTEM, "no memory for the algorithm cache");
}

enum status algorithm_cache_save(struct algorithm_cache *cache, struct error *error)
{
    struct journal *journal = NULL;
    json_t *entry;
    size_t index;
    if (json_array_size(cache->pending) == 0)
        return STATUS_OK;
    enum status status = journal_open(cache->path, JOURNAL_SHARE, &journal, error);
    if (status == STATUS_USAGE && access(cache->path, F_OK) != 0 &&
        journal_open(cache->path, JOURNAL_CREATE, &journal, error) == STATUS_OK)
        status = STATUS_OK;
    TRY(status);
    json_array_foreach(cache->pending, index, entry) if (status == STATUS_OK) status =
        journal_append(journal, kind_text, json_incref(entry), error);
    if (status == STATUS_OK)
        status = journal_sync(journal, error);
    journal_close(journal);
    if (status == STATUS_OK)
        json_array_clear(cache->pending);
    return status;
}
