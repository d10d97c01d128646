#include "results/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "results/journal_line.h"
#include "results/members.h"

struct journal {
    int fd;
    char *path;
    off_t synced; /* byte; what lies behind it was never acknowledged */
    off_t end;    /* byte, of the last whole line */
    bool torn;    /* something may lie behind `end`, and is to be cut off */
};

static enum status system_error(struct error *error, const char *path, const char *what)
{
    return error_set(error, STATUS_SYSTEM, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* s. The processes of a job that was killed may hold its journal for a moment longer. */
static const double holder_patience = 10;

static bool lock_within(int fd, double seconds)
{
    double deadline = clock_monotonic() + seconds;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_monotonic() > deadline)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return true;
}

static enum status file_lock(int fd, const char *path, enum journal_mode mode, struct error *error)
{
    if (lock_within(fd, mode == JOURNAL_RESUME ? holder_patience : 0))
        return STATUS_OK;
    if (errno == EWOULDBLOCK)
        return error_set(error, STATUS_USAGE,
                         "%s is in use by another job; wait for its end, or choose another output",
                         path);
    /* Some parallel filesystems are mounted without locks. A sweep must still run there. */
    if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP)
        return STATUS_OK;
    return system_error(error, path, "lock");
}

/* Sets *end to the offset behind the last newline. */
static enum status find_end(int fd, const char *path, off_t *end, struct error *error)
{
    char block[4096];
    struct stat info;
    if (fstat(fd, &info) != 0)
        return system_error(error, path, "read");
    off_t at = info.st_size;
    while (at > 0) {
        size_t size = at < (off_t)sizeof block ? (size_t)at : sizeof block;
        if (pread(fd, block, size, at - (off_t)size) != (ssize_t)size)
            return system_error(error, path, "read");
        const char *newline = memrchr(block, '\n', size);
        at -= (off_t)size;
        if (newline) {
            at += newline - block + 1;
            break;
        }
    }
    *end = at;
    return STATUS_OK;
}

static enum status file_open(const char *path, enum journal_mode mode, int *fd, struct error *error)
{
    int flags = O_RDWR | O_APPEND | O_CLOEXEC | (mode == JOURNAL_CREATE ? O_CREAT | O_EXCL : 0);
    *fd = open(path, flags, 0666);
    if (*fd >= 0)
        return STATUS_OK;
    if (errno == EEXIST)
        return error_set(error, STATUS_USAGE,
                         "%s exists; continue it with --resume, or start anew with --overwrite",
                         path);
    if (errno == ENOENT && (mode == JOURNAL_RESUME || mode == JOURNAL_SHARE))
        return error_set(error, STATUS_USAGE,
                         "%s does not exist: there is nothing to resume; run without --resume",
                         path);
    return system_error(error, path, mode == JOURNAL_CREATE ? "create" : "open");
}

enum status journal_open(const char *path, enum journal_mode mode, struct journal **journal,
                         struct error *error)
{
    struct journal *opened = calloc(1, sizeof *opened);
    if (!opened || !(opened->path = strdup(path))) {
        free(opened);
        return error_set(error, STATUS_SYSTEM, "%s: no memory", path);
    }
    enum status status = file_open(path, mode, &opened->fd, error);
    if (status == STATUS_OK)
        status = file_lock(opened->fd, path, mode, error);
    opened->torn = true;
    if (status == STATUS_OK && (mode == JOURNAL_RESUME || mode == JOURNAL_SHARE))
        status = find_end(opened->fd, path, &opened->end, error);
    if (status == STATUS_OK && mode == JOURNAL_CREATE)
        status = folder_sync(path, error);
    opened->synced = opened->end;
    if (status == STATUS_OK)
        *journal = opened;
    else
        journal_close(opened);
    return status;
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->path);
    free(journal);
}

static bool write_whole(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            data += written;
            length -= (size_t)written;
        }
    }
    return true;
}

/* A part of a line must not stay: the next one would be appended to it, and lost with it. */
static void cut_off(struct journal *journal, off_t end)
{
    journal->end = end;
    journal->torn = ftruncate(journal->fd, end) != 0;
}

static enum status write_error(const struct journal *journal, struct error *error)
{
    return error_set(error, STATUS_SYSTEM,
                     "%s: cannot write: %s; --resume goes on with what it holds", journal->path,
                     strerror(errno));
}

enum status journal_append(struct journal *journal, const char *kind, json_t *entry,
                           struct error *error)
{
    size_t length = 0;
    char *line = journal_line_format(kind, entry, journal->end == 0, &length);
    json_decref(entry);
    if (!line)
        return error_set(error, STATUS_SYSTEM, "%s: no memory for a line", journal->path);
    bool written = (!journal->torn || ftruncate(journal->fd, journal->end) == 0) &&
                   write_whole(journal->fd, line, length);
    enum status status = written ? STATUS_OK : write_error(journal, error);
    free(line);
    if (written) {
        journal->end += (off_t)length;
        journal->torn = false;
    } else {
        cut_off(journal, journal->end);
    }
    return status;
}

enum status journal_sync(struct journal *journal, struct error *error)
{
    if (journal->end == journal->synced)
        return STATUS_OK;
    if (fdatasync(journal->fd) != 0) {
        write_error(journal, error);
        cut_off(journal, journal->synced);
        return STATUS_SYSTEM;
    }
    journal->synced = journal->end;
    return STATUS_OK;
}

bool journal_recognised(const char *path)
{
    char start[JOURNAL_LINE_START];
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = 0;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        got = read(fd, start, sizeof start);
    if (fd >= 0)
        close(fd);
    return got > 0 && journal_line_begins(start, (size_t)got);
}

/* A file while it is read. */
struct reading {
    struct results *results;
    struct journal_damage damage;
    struct error first;  /* why the first damaged line is one, or why the file is useless */
    size_t number, good; /* lines */
    off_t place;         /* byte, of the line */
    size_t length;       /* of the line, without its newline */
    bool begins_as_journal;
    bool useless;  /* a newer version wrote it, or a line does not end */
    bool checking; /* records are decoded, too, to see whether they can be */
    bool kept;     /* records stay in memory: the file cannot be read twice */
};

static enum status add_session(struct reading *reading, const struct member *entry,
                               struct error *error)
{
    struct session session;
    json_t *object = json_loadb(entry->value, entry->length, 0, NULL);
    enum status status = session_decode(object, &session, error);
    json_decref(object);
    if (status == STATUS_OK) {
        status = results_add_session(reading->results, &session, error);
        session_clear(&session);
    }
    return status;
}

static enum status add_device(struct reading *reading, const struct member *entry,
                              struct error *error)
{
    struct device device;
    json_t *object = json_loadb(entry->value, entry->length, 0, NULL);
    enum status status = device_decode(object, &device, error);
    json_decref(object);
    return status == STATUS_OK ? results_add_device(reading->results, &device, error) : status;
}

static enum status decode_record(struct reading *reading, const struct member *entry,
                                 struct error *error)
{
    struct record record;
    json_t *object = json_loadb(entry->value, entry->length, 0, NULL);
    record_init(&record);
    enum status status = record_decode(object, &record, error);
    json_decref(object);
    if (status == STATUS_OK && reading->kept)
        status = results_add_record(reading->results, &record, error);
    record_clear(&record);
    return status;
}

static enum status add_record(struct reading *reading, const struct member *entry,
                              struct error *error)
{
    struct row row;
    enum status status = STATUS_OK;
    if (reading->checking || reading->kept)
        status = decode_record(reading, entry, error);
    if (status || reading->kept)
        return status;
    status = row_of_text(entry->value, entry->length, &row, error);
    if (status)
        return status;
    row.place = reading->place;
    row.length = reading->length;
    row.line = reading->number;
    status = results_add_row(reading->results, &row, error);
    row_clear(&row);
    return status;
}

struct entry_kind {
    const char *name; /* with its quotes */
    enum status (*add)(struct reading *reading, const struct member *entry, struct error *error);
};
static const struct entry_kind entry_kinds[] = {
    {"\"session\"", add_session}, {"\"device\"", add_device}, {"\"record\"", add_record}, {0}};

static bool is_kind(const struct member *member, const char *name)
{
    return member->value && strlen(name) == member->length &&
           memcmp(member->value, name, member->length) == 0;
}

static enum status entry_add(struct reading *reading, const char *line, size_t length,
                             struct error *error)
{
    struct member members[] = {{.name = "kind"}, {.name = "format"}, {.name = "entry"}};
    const struct entry_kind *kind = entry_kinds;
    if (!members_find(line, length, members, sizeof members / sizeof *members))
        return error_set(error, STATUS_SYSTEM, "not a JSON object");
    while (kind->name && !is_kind(&members[0], kind->name))
        ++kind;
    reading->useless = !kind->name || member_number(&members[1]) > JOURNAL_FORMAT;
    if (reading->useless)
        return error_set(error, STATUS_SYSTEM,
                         "%s; a newer version of roofsweep wrote it: use that version",
                         kind->name ? "a journal of a later format" : "an entry of unknown kind");
    if (!members[2].value)
        return error_set(error, STATUS_SYSTEM, "not a JSON object");
    return kind->add(reading, &members[2], error);
}

static enum status line_add(struct reading *reading, const char *line, size_t length,
                            struct error *error)
{
    if (!journal_line_holds(line, length))
        return error_set(error, STATUS_SYSTEM, "%s",
                         journal_line_begins(line, length)
                             ? "the checksum of this line is wrong"
                             : "this is no line of a roofsweep journal");
    return entry_add(reading, line, length, error);
}

static enum status line_too_long(struct error *error)
{
    return error_set(error, STATUS_SYSTEM,
                     "a line of more than %d bytes, which no journal of roofsweep has; delete the "
                     "line, and --resume measures again what is then missing",
                     JOURNAL_LINE_BYTES);
}

static void damage_note(struct reading *reading, const struct error *error)
{
    struct journal_damage *damage = &reading->damage;
    if (damage->count == 0)
        reading->first = *error;
    if (damage->count < sizeof damage->first / sizeof *damage->first)
        damage->first[damage->count] = reading->number;
    ++damage->count;
}

static void line_take(struct reading *reading, const char *line, size_t length)
{
    struct error error;
    ++reading->number;
    if (length > JOURNAL_LINE_BYTES) {
        reading->useless = true;
        line_too_long(&reading->first);
        return;
    }
    reading->damage.torn = line[length - 1] != '\n';
    if (reading->number == 1)
        reading->begins_as_journal =
            journal_line_begins(line, reading->damage.torn ? length : length - 1);
    if (reading->damage.torn)
        return;
    reading->length = (size_t)length - 1;
    if (line_add(reading, line, length - 1, &error) == STATUS_OK)
        ++reading->good;
    else if (reading->useless)
        reading->first = error;
    else
        damage_note(reading, &error);
}

static enum status verdict(const struct reading *reading, const char *path, struct error *error)
{
    if (reading->useless) {
        *error = reading->first;
        error_prefix(error, "%s:%zu", path, reading->number);
        return STATUS_SYSTEM;
    }
    if (reading->good == 0 && reading->number > 0 && !reading->begins_as_journal)
        return error_set(error, STATUS_SYSTEM,
                         "%s:1: no line of a roofsweep journal, nor is any other of this file; "
                         "name the file OUTPUT.journal that a sweep wrote",
                         path);
    return STATUS_OK;
}

static enum status lines_read(struct reading *reading, FILE *stream, const char *path,
                              struct error *error)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    while (!reading->useless &&
           (length = line_read(stream, JOURNAL_LINE_BYTES, &line, &size)) > 0) {
        line_take(reading, line, (size_t)length);
        reading->place += length;
    }
    free(line);
    if (!reading->useless && !feof(stream))
        return system_error(error, path, "read");
    return verdict(reading, path, error);
}

static enum status file_read(const char *path, struct reading *reading, struct error *error)
{
    FILE *stream = fopen(path, "re");
    if (!stream)
        return system_error(error, path, "open");
    struct stat info;
    enum status status = STATUS_OK;
    reading->kept = fstat(fileno(stream), &info) != 0 || !S_ISREG(info.st_mode);
    if (!(reading->results = results_create()))
        status = error_set(error, STATUS_SYSTEM, "%s: no memory", path);
    else if (!reading->kept)
        status = results_attach(reading->results, path, error);
    if (status == STATUS_OK)
        status = lines_read(reading, stream, path, error);
    fclose(stream);
    if (status)
        results_destroy(reading->results);
    return status;
}

void journal_damage_format(const struct journal_damage *damage, char text[JOURNAL_DAMAGE_TEXT])
{
    const size_t kept = sizeof damage->first / sizeof *damage->first;
    int used = snprintf(text, JOURNAL_DAMAGE_TEXT, "line%s", damage->count == 1 ? "" : "s");
    for (size_t i = 0; i < damage->count && i < kept; ++i)
        used += snprintf(text + used, JOURNAL_DAMAGE_TEXT - (size_t)used, "%s %zu", i ? "," : "",
                         damage->first[i]);
    if (damage->count > kept)
        snprintf(text + used, JOURNAL_DAMAGE_TEXT - (size_t)used, " and %zu more",
                 damage->count - kept);
}

enum status journal_salvage(const char *path, struct results **results,
                            struct journal_damage *damage, struct error *error)
{
    struct reading reading = {.checking = true};
    enum status status = file_read(path, &reading, error);
    if (status)
        return status;
    *results = reading.results;
    *damage = reading.damage;
    return STATUS_OK;
}

static enum status read_whole(const char *path, bool checking, struct results **results, bool *torn,
                              struct error *error)
{
    struct reading reading = {.checking = checking};
    char lines[JOURNAL_DAMAGE_TEXT];
    enum status status = file_read(path, &reading, error);
    if (status)
        return status;
    if (reading.damage.count == 0) {
        *results = reading.results;
        *torn = reading.damage.torn;
        return STATUS_OK;
    }
    results_destroy(reading.results);
    journal_damage_format(&reading.damage, lines);
    return error_set(
        error, STATUS_SYSTEM,
        "%s:%zu: %s (damaged: %s); delete what is damaged, and --resume measures again "
        "what is then missing; --gather with --skip-damaged keeps the rest",
        path, reading.damage.first[0], reading.first.text, lines);
}

enum status journal_read(const char *path, struct results **results, bool *torn,
                         struct error *error)
{
    return read_whole(path, true, results, torn, error);
}

enum status journal_index(const char *path, struct results **results, bool *torn,
                          struct error *error)
{
    return read_whole(path, false, results, torn, error);
}
