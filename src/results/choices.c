#include "results/choices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "results/earlier.h"
#include "results/journal.h"

struct choices {
    char *path; /* of the file that is added to; NULL: none */
    bool keep;
    json_t *entries; /* choices by their owners' keys, as compact text */
    json_t *pending; /* array of what is not in the file yet */
};

static const char kind_text[] = "choice";

/* Whose choice it is. False: no record and device have so long texts. */
enum { KEY_TEXT = 512 };
static bool key_format(const char *config_hash, const char *model, const char *library,
                       const char *driver, char key[KEY_TEXT])
{
    return snprintf(key, KEY_TEXT, "%s\n%s\n%s\n%s", config_hash, model, library, driver) <
           KEY_TEXT;
}

/* False: there is no memory. */
static bool entry_put(struct choices *choices, const char *key, const struct choice *choice)
{
    json_t *object = fields_encode(choice_fields, choice);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    bool put =
        text && json_object_set_new_nocheck(choices->entries, key, json_string_nocheck(text)) == 0;
    free(text);
    return put;
}

/* What a row says that is measured with a choice of that time of a file. */
static void origin_set(double time, struct choice *choice)
{
    time_t seconds = (time_t)time;
    struct tm day;
    snprintf(choice->algorithm_origin, sizeof choice->algorithm_origin, "file");
    if (time > 0 && time <= FIELD_DATE_MAX && gmtime_r(&seconds, &day))
        strftime(choice->algorithm_origin, sizeof choice->algorithm_origin, "file of %Y-%m-%d",
                 &day);
}

/* ---- the file ---- */

static const char *member_of(const json_t *entry, const char *name)
{
    const char *text = json_string_value(json_object_get(entry, name));
    return text ? text : "";
}

/* False: without memory. *good: it was an entry. */
static bool entry_take(struct choices *choices, const json_t *line, bool *good)
{
    const json_t *entry = json_object_get(line, "entry");
    json_t *made = json_object_get(entry, "choice");
    char key[KEY_TEXT];
    double time = json_number_value(json_object_get(entry, "time"));
    struct choice choice;
    struct error unused;
    choice_init(&choice);
    *good = json_is_object(made) && strcmp(member_of(line, "kind"), kind_text) == 0 &&
            fields_decode(choice_fields, made, &choice, &unused) == STATUS_OK &&
            fields_check(choice_fields, &choice, &unused) == STATUS_OK &&
            field_check_number("time", time, FIELD_DATE_MAX, &unused) == STATUS_OK &&
            choice_is_made(&choice) &&
            key_format(member_of(entry, "config_hash"), member_of(entry, "model"),
                       member_of(entry, "library"), member_of(entry, "driver"), key);
    origin_set(time, &choice);
    return !*good || entry_put(choices, key, &choice);
}

static bool line_take(struct choices *choices, const char *text, size_t length,
                      struct choices_file *file)
{
    bool good = false, enough = true;
    json_t *line = journal_line_holds(text, length) ? json_loadb(text, length, 0, NULL) : NULL;
    if (line)
        enough = entry_take(choices, line, &good);
    json_decref(line);
    ++*(good ? &file->entries : &file->damaged);
    return enough;
}

static enum status lines_read(struct choices *choices, FILE *stream, struct choices_file *file,
                              struct error *error)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length = 0;
    bool enough = true;
    while (enough && (length = line_read(stream, JOURNAL_LINE_BYTES, &line, &size)) > 0 &&
           line[length - 1] == '\n') /* a torn last line is what a kill leaves */
        enough = line_take(choices, line, (size_t)length - 1, file);
    free(line);
    if (enough && length >= 0)
        return STATUS_OK;
    return error_set(error, STATUS_SYSTEM, "%s: cannot read: %s", choices->path,
                     enough ? strerror(errno) : "no memory");
}

/* A file of somebody else must not be appended to. */
static enum status own_file_read(struct choices *choices, struct choices_file *file,
                                 struct error *error)
{
    const char *path = choices->path;
    FILE *stream;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return STATUS_OK;
    TRY(file_open(path, &stream, error));
    enum status status = lines_read(choices, stream, file, error);
    bool empty = ftello(stream) == 0;
    fclose(stream);
    if (status == STATUS_OK && !empty && file->entries == 0 &&
        (file->damaged > 0 || !journal_recognised(path)))
        status = error_set(error, STATUS_USAGE,
                           "%s is there, and neither a file of algorithms nor a result file", path);
    return status;
}

static enum status result_read(struct choices *choices, const char *path, struct choices_file *file,
                               struct error *error)
{
    struct earlier_choice *rows;
    struct error unused;
    size_t count;
    char key[KEY_TEXT];
    bool enough = true;
    TRY(earlier_choices_read(path, &rows, &count, error));
    for (size_t i = 0; i < count && enough; ++i) {
        struct earlier_choice *row = &rows[i];
        bool good = fields_check(choice_fields, &row->choice, &unused) == STATUS_OK &&
                    key_format(row->config_hash, row->owner.model, row->owner.library_version,
                               row->owner.driver_version, key);
        if (strncmp(row->choice.algorithm_origin, "file", strlen("file")) != 0)
            origin_set(row->start_time, &row->choice);
        enough = !good || entry_put(choices, key, &row->choice);
        ++*(good ? &file->entries : &file->damaged);
    }
    free(rows);
    return enough ? STATUS_OK : error_set(error, STATUS_SYSTEM, "%s: no memory for it", path);
}

enum status choices_open(const char *path, bool keep, struct choices **choices,
                         struct choices_file *file, struct error *error)
{
    struct choices *opened = calloc(1, sizeof *opened);
    *file = (struct choices_file){0, 0};
    const char *ending = path ? strrchr(path, '.') : NULL;
    const bool named = ending && strcmp(ending, ".nc") == 0 && access(path, F_OK) != 0;
    const bool result = path && (named || earlier_is_result(path));
    if (!opened || !(opened->entries = json_object()) || !(opened->pending = json_array()) ||
        (path && !result && !(opened->path = strdup(path)))) {
        choices_close(opened);
        return error_set(error, STATUS_SYSTEM, "no memory for the choices of algorithms");
    }
    opened->keep = keep;
    enum status status = result ? result_read(opened, path, file, error)
                         : path ? own_file_read(opened, file, error)
                                : STATUS_OK;
    if (status == STATUS_OK)
        *choices = opened;
    else
        choices_close(opened);
    return status;
}

void choices_close(struct choices *choices)
{
    if (!choices)
        return;
    json_decref(choices->entries);
    json_decref(choices->pending);
    free(choices->path);
    free(choices);
}

/* ---- use ---- */

bool choices_find(const struct choices *choices, const char *config_hash,
                  const struct device *device, struct choice *choice)
{
    struct error unused;
    char key[KEY_TEXT];
    key_format(config_hash, device->model, device->library_version, device->driver_version, key);
    const json_t *text = json_object_get(choices->entries, key);
    if (!text) { /* of a roofsweep that did not ask for the driver */
        key_format(config_hash, device->model, device->library_version, "", key);
        text = json_object_get(choices->entries, key);
    }
    choice_init(choice);
    json_t *object = text ? json_loads(json_string_value(text), 0, NULL) : NULL;
    bool found = object && fields_decode(choice_fields, object, choice, &unused) == STATUS_OK;
    if (!found)
        choice_init(choice);
    json_decref(object);
    return found;
}

/* A line's entry, new. */
static json_t *entry_encode(const struct record *record, const char *config_hash,
                            const struct device *device, const json_t *choice)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "configuration", text_encode(record->configuration));
    json_object_set_new(entry, "config_hash", text_encode(config_hash));
    json_object_set_new(entry, "model", text_encode(device->model));
    json_object_set_new(entry, "library", text_encode(device->library_version));
    json_object_set_new(entry, "driver", text_encode(device->driver_version));
    json_object_set_new(entry, "time", json_real(record->start_time));
    json_object_set(entry, "choice", (json_t *)choice);
    return entry;
}

enum status choices_learn(struct choices *choices, const struct record *record,
                          const char *config_hash, const struct device *device, struct error *error)
{
    struct choice choice;
    char key[KEY_TEXT];
    if (!choice_of_record(record, &choice))
        return STATUS_OK;
    choice.algorithm_origin[0] = '\0';
    json_t *object = fields_encode(choice_fields, &choice);
    snprintf(choice.algorithm_origin, sizeof choice.algorithm_origin, "run");
    key_format(config_hash, device->model, device->library_version, device->driver_version, key);
    bool enough = !choices->keep || entry_put(choices, key, &choice);
    if (choices->path)
        enough = json_array_append_new(choices->pending,
                                       entry_encode(record, config_hash, device, object)) == 0 &&
                 enough;
    json_decref(object);
    return enough ? STATUS_OK
                  : error_set(error, STATUS_SYSTEM, "no memory for the choices of algorithms");
}

enum status choices_save(struct choices *choices, struct error *error)
{
    struct journal *journal = NULL;
    json_t *entry;
    size_t index;
    if (json_array_size(choices->pending) == 0)
        return STATUS_OK;
    enum status status = journal_open(choices->path, JOURNAL_SHARE, &journal, error);
    if (status == STATUS_USAGE && access(choices->path, F_OK) != 0 &&
        journal_open(choices->path, JOURNAL_CREATE, &journal, error) == STATUS_OK)
        status = STATUS_OK;
    TRY(status);
    json_array_foreach(choices->pending, index, entry) if (status == STATUS_OK) status =
        journal_append(journal, kind_text, json_incref(entry), error);
    if (status == STATUS_OK)
        status = journal_sync(journal, error);
    journal_close(journal);
    if (status == STATUS_OK)
        json_array_clear(choices->pending);
    return status;
}
