#include "results/choices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "results/journal.h"

/* Whose choice it is. */
struct owner {
    uint64_t high, low; /* of configuration, model and library; both 0: none */
};

struct entry {
    struct owner owner;
    char *choice; /* its JSON; owned */
    double time;  /* s since the epoch, of an entry of the file; 0: of this run */
};

struct choices {
    char *path; /* NULL: no file */
    bool keep;
    struct entry
        *entries; /* open addressing; `room` is a power of two, and less than three quarters full */
    size_t count, room;
    json_t *pending; /* array of what is not in the file yet */
};

static const char kind_text[] = "choice";

/* ---- the table ---- */

static struct owner owner_of(const char *config_hash, const char *model, const char *library)
{
    char text[512];
    int length = snprintf(text, sizeof text, "%s\n%s\n%s", config_hash, model, library);
    XXH128_hash_t hash = XXH3_128bits(text, (size_t)length);
    return (struct owner){hash.high64, hash.low64 ? hash.low64 : 1};
}

static bool same_owner(struct owner a, struct owner b)
{
    return a.high == b.high && a.low == b.low;
}

/* The owner's place, or the free one that would be its. */
static struct entry *place_of(const struct entry *entries, size_t room, struct owner owner)
{
    size_t at = (size_t)owner.low & (room - 1);
    while (entries[at].choice && !same_owner(entries[at].owner, owner))
        at = (at + 1) & (room - 1);
    return (struct entry *)&entries[at];
}

static bool table_grow(struct choices *choices)
{
    if (4 * (choices->count + 1) <= 3 * choices->room)
        return true;
    size_t room = choices->room ? 2 * choices->room : 64;
    struct entry *entries = calloc(room, sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < choices->room; ++i)
        if (choices->entries[i].choice)
            *place_of(entries, room, choices->entries[i].owner) = choices->entries[i];
    free(choices->entries);
    choices->entries = entries;
    choices->room = room;
    return true;
}

static bool table_put(struct choices *choices, struct owner owner, const json_t *choice,
                      double time)
{
    char *text = json_dumps(choice, JSON_COMPACT);
    if (!text || !table_grow(choices)) {
        free(text);
        return false;
    }
    struct entry *entry = place_of(choices->entries, choices->room, owner);
    choices->count += entry->choice == NULL;
    free(entry->choice);
    *entry = (struct entry){owner, text, time};
    return true;
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
    const json_t *made = json_object_get(entry, "choice");
    struct choice choice;
    struct error unused;
    choice_init(&choice);
    *good = json_is_object(made) && strcmp(member_of(line, "kind"), kind_text) == 0 &&
            fields_decode(choice_fields, made, &choice, &unused) == STATUS_OK &&
            choice_is_made(&choice);
    struct owner owner = owner_of(member_of(entry, "config_hash"), member_of(entry, "model"),
                                  member_of(entry, "library"));
    return !*good ||
           table_put(choices, owner, made, json_number_value(json_object_get(entry, "time")));
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

/* Something is there. A file of somebody else must not be appended to. */
static enum status file_check(const char *path, bool *empty, struct error *error)
{
    struct stat info;
    *empty = stat(path, &info) != 0;
    if (*empty)
        return errno == ENOENT
                   ? STATUS_OK
                   : error_set(error, STATUS_SYSTEM, "%s: cannot read: %s", path, strerror(errno));
    *empty = S_ISREG(info.st_mode) && info.st_size == 0;
    if (!*empty && !journal_recognised(path))
        return error_set(error, STATUS_USAGE, "%s is there and no file of algorithms", path);
    return STATUS_OK;
}

static enum status file_read(struct choices *choices, struct choices_file *file,
                             struct error *error)
{
    bool empty;
    enum status status = file_check(choices->path, &empty, error);
    if (status || empty)
        return status;
    FILE *stream = fopen(choices->path, "re");
    if (!stream)
        return error_set(error, STATUS_SYSTEM, "%s: cannot open: %s", choices->path,
                         strerror(errno));
    status = lines_read(choices, stream, file, error);
    fclose(stream);
    if (status == STATUS_OK && file->entries == 0 && file->damaged > 0)
        status =
            error_set(error, STATUS_USAGE, "%s is there and no file of algorithms", choices->path);
    return status;
}

enum status choices_open(const char *path, bool keep, struct choices **choices,
                         struct choices_file *file, struct error *error)
{
    struct choices *opened = calloc(1, sizeof *opened);
    *file = (struct choices_file){0, 0};
    if (!opened || !(opened->pending = json_array()) || (path && !(opened->path = strdup(path)))) {
        choices_close(opened);
        return error_set(error, STATUS_SYSTEM, "no memory for the choices of algorithms");
    }
    opened->keep = keep;
    enum status status = path ? file_read(opened, file, error) : STATUS_OK;
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
    for (size_t i = 0; i < choices->room; ++i)
        free(choices->entries[i].choice);
    free(choices->entries);
    json_decref(choices->pending);
    free(choices->path);
    free(choices);
}

/* ---- use ---- */

static void origin_format(double time, char *text, size_t size)
{
    time_t seconds = (time_t)time;
    struct tm day;
    if (time > 0 && gmtime_r(&seconds, &day))
        strftime(text, size, "file of %Y-%m-%d", &day);
    else
        snprintf(text, size, "%s", time > 0 ? "file" : "run");
}

bool choices_find(const struct choices *choices, const char *config_hash,
                  const struct device *device, struct choice *choice)
{
    struct error unused;
    if (choices->count == 0)
        return false;
    const struct entry *entry =
        place_of(choices->entries, choices->room,
                 owner_of(config_hash, device->model, device->library_version));
    json_t *object = entry->choice ? json_loads(entry->choice, 0, NULL) : NULL;
    choice_init(choice);
    bool found = object && fields_decode(choice_fields, object, choice, &unused) == STATUS_OK;
    json_decref(object);
    if (found)
        origin_format(entry->time, choice->algorithm_origin, sizeof choice->algorithm_origin);
    else
        choice_init(choice);
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
    json_object_set_new(entry, "time", json_real(record->start_time));
    json_object_set(entry, "choice", (json_t *)choice);
    return entry;
}

enum status choices_learn(struct choices *choices, const struct record *record,
                          const char *config_hash, const struct device *device, struct error *error)
{
    struct choice choice;
    if (!choice_of_record(record, &choice))
        return STATUS_OK;
    choice.algorithm_origin[0] = '\0';
    json_t *object = fields_encode(choice_fields, &choice);
    struct owner owner = owner_of(config_hash, device->model, device->library_version);
    bool enough = !choices->keep || table_put(choices, owner, object, 0);
    if (choices->path)
        enough = json_array_append_new(choices->pending,
                                       entry_encode(record, config_hash, device, object)) == 0 &&
                 enough;
    json_decref(object);
    return enough ? STATUS_OK
                  : error_set(error, STATUS_SYSTEM, "no memory for the choices of algorithms");
}

static enum status file_open(const char *path, struct journal **journal, struct error *error)
{
    enum status status = journal_open(path, JOURNAL_SHARE, journal, error);
    if (status == STATUS_USAGE && access(path, F_OK) != 0 &&
        journal_open(path, JOURNAL_CREATE, journal, error) == STATUS_OK)
        status = STATUS_OK;
    return status;
}

enum status choices_save(struct choices *choices, struct error *error)
{
    struct journal *journal = NULL;
    json_t *entry;
    size_t index;
    if (json_array_size(choices->pending) == 0)
        return STATUS_OK;
    enum status status = file_open(choices->path, &journal, error);
    if (status)
        return status;
    json_array_foreach(choices->pending, index, entry) if (status == STATUS_OK) status =
        journal_append(journal, kind_text, json_incref(entry), error);
    if (status == STATUS_OK)
        status = journal_sync(journal, error);
    journal_close(journal);
    if (status == STATUS_OK)
        json_array_clear(choices->pending);
    return status;
}
