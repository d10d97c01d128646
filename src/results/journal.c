/* Writes and reads journals.
 *
 * Set-up: journal_open locks the file and copies its content, up to COPY_BYTES, into an anonymous
 * file. A reader needs no set-up.
 * Failure: lines that cannot be written whole or cannot be synced are cut off. If other processes
 * change or remove the file, the journal goes on in a copy under a spare name, and the sweep ends.
 * Readers report the numbers of damaged lines, or skip these lines (journal_salvage).
 * Cost: one write for each line, one fdatasync for each journal_sync. A reader decodes and checks
 * each record once and keeps only its struct row in memory; the record remains in the file. */
#include "results/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/target.h"

/* Frame of a line. The checksum covers the bytes from CHECKED_AT to the last brace. */
#define FRAME_START "{\"xxh3\":\""
#define FRAME_KIND  "\",\"kind\":"
enum {
    CHECKSUM_LENGTH = 16,
    CHECKSUM_AT = sizeof FRAME_START - 1,
    KIND_AT = CHECKSUM_AT + CHECKSUM_LENGTH,
    CHECKED_AT = KIND_AT + sizeof FRAME_KIND - 1,
};

static char *line_format(const char *kind, const char *entry, bool first, size_t *length)
{
    char *line = NULL, format[32] = "", checksum[CHECKSUM_LENGTH + 1];
    if (first)
        snprintf(format, sizeof format, "\"format\":%d,", JOURNAL_FORMAT);
    int size = asprintf(&line, FRAME_START "%16s" FRAME_KIND "\"%s\",%s\"entry\":%s}\n", "", kind,
                        format, entry);
    if (size < 0)
        return NULL;
    size_t checked = (size_t)size - CHECKED_AT - strlen("}\n");
    snprintf(checksum, sizeof checksum, "%016" PRIx64, XXH3_64bits(line + CHECKED_AT, checked));
    memcpy(line + CHECKSUM_AT, checksum, CHECKSUM_LENGTH);
    *length = (size_t)size;
    return line;
}

/* True if `text`, which may be shorter than a frame, can be the beginning of a line. */
static bool line_begins(const char *text, size_t length)
{
    return length > 0 &&
           memcmp(text, FRAME_START, length < CHECKSUM_AT ? length : CHECKSUM_AT) == 0;
}

static bool line_is_valid(const char *line, size_t length)
{
    if (length <= CHECKED_AT || line[length - 1] != '}' ||
        memcmp(line, FRAME_START, CHECKSUM_AT) != 0 ||
        memcmp(line + KIND_AT, FRAME_KIND, CHECKED_AT - KIND_AT) != 0)
        return false;
    char checksum[CHECKSUM_LENGTH + 1];
    snprintf(checksum, sizeof checksum, "%016" PRIx64,
             XXH3_64bits(line + CHECKED_AT, length - CHECKED_AT - 1));
    return memcmp(line + CHECKSUM_AT, checksum, CHECKSUM_LENGTH) == 0;
}

/* ---- writing ---- */

static const char journal_suffix[] = ".journal";

struct journal {
    int fd;
    int copy; /* descriptor of the copy, an anonymous file; -1: no copy */
    char path[LINK_TARGET];
    struct error moved; /* why the journal has a new name; "": it has its first name */
    off_t synced;       /* bytes before this offset are durable */
    off_t end;          /* offset of the end of the last whole line */
    bool torn;          /* the file has bytes after `end`, which must be cut off */
};

/* Journals up to this size have a copy, because other processes may cut or overwrite the file. */
enum { COPY_BYTES = 256 << 20 };

static enum status system_error(struct error *error, const char *path, const char *what)
{
    return error_set(error, STATUS_SYSTEM, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* s; processes of a killed job may keep the lock of its journal for a moment. */
static const double lock_timeout = 10;

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
    if (lock_within(fd, mode == JOURNAL_RESUME || mode == JOURNAL_ADOPT ? lock_timeout : 0))
        return STATUS_OK;
    if (errno == EWOULDBLOCK) {
        char holder[HOLDER_TEXT];
        lock_holder(fd, holder);
        return error_set(error, STATUS_USAGE,
                         "%s is in use by %s; wait for its end, or choose another output", path,
                         holder);
    }
    /* Some parallel filesystems have no locks; a sweep must still run there. */
    if (file_lacks(errno))
        return STATUS_OK;
    return system_error(error, path, "lock");
}

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

static bool is_resumed(enum journal_mode mode)
{
    return mode != JOURNAL_CREATE && mode != JOURNAL_REPLACE;
}

/* Advice if the journal belongs to another user, who could change the rows later. */
static const char *const owner_advice[] = {
    [JOURNAL_RESUME] = ": --resume --any-owner trusts its rows",
    [JOURNAL_REPLACE] = ", who could change its rows: remove it, or choose another --output",
};

static enum status open_file(const char *path, enum journal_mode mode, int *fd, struct error *error)
{
    int flags = O_RDWR | O_APPEND | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
    struct target target;
    struct stat info;
    enum status status = target_open(path, true, &target, error);
    TRY(error_prefix(error, status, "%s", path));
    *fd = open(target.path, flags | (mode == JOURNAL_CREATE ? O_CREAT | O_EXCL : 0), 0666);
    target_close(&target);
    if (*fd >= 0 && fstat(*fd, &info) == 0 && !S_ISREG(info.st_mode))
        return error_set(error, STATUS_USAGE, "%s: it is no regular file", path);
    if (*fd >= 0 && owner_advice[mode] && !owner_is_trusted(info.st_uid)) {
        char owner[OWNER_TEXT];
        owner_format(info.st_uid, owner);
        return error_set(error, STATUS_USAGE, "%s belongs to user %s%s", path, owner,
                         owner_advice[mode]);
    }
    if (*fd >= 0)
        return STATUS_OK;
    if (errno == EEXIST)
        return error_set(error, STATUS_USAGE,
                         "%s: another job has begun this file; wait for its end, or choose "
                         "another output",
                         path);
    if (errno == ENOENT && is_resumed(mode))
        return error_set(error, STATUS_USAGE,
                         "%s does not exist: there is nothing to resume; run without --resume",
                         path);
    return system_error(error, path, mode == JOURNAL_CREATE ? "create" : "open");
}

static int anonymous_file(void)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 ? memfd_create("journal", MFD_CLOEXEC) : fd;
}

/* Closes the copy unless `good`; the journal then goes on without a copy. */
static void keep_copy(struct journal *journal, bool good)
{
    if (good || journal->copy < 0)
        return;
    close(journal->copy);
    journal->copy = -1;
}

enum status journal_open(const char *path, enum journal_mode mode, struct journal **journal,
                         struct error *error)
{
    struct journal *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_set(error, STATUS_SYSTEM, "%s: no memory", path);
    snprintf(opened->path, sizeof opened->path, "%s", path);
    opened->fd = opened->copy = -1;
    enum status status = open_file(path, mode, &opened->fd, error);
    if (status == STATUS_OK)
        status = file_lock(opened->fd, path, mode, error);
    opened->torn = true;
    if (status == STATUS_OK && is_resumed(mode))
        status = find_end(opened->fd, path, &opened->end, error);
    if (status == STATUS_OK && mode == JOURNAL_CREATE)
        status = error_prefix(error, folder_sync(path, error), "%s", path);
    opened->synced = opened->end;
    if (status == STATUS_OK && opened->end < COPY_BYTES) {
        opened->copy = anonymous_file();
        keep_copy(opened, file_copy(opened->fd, opened->copy, opened->end));
    }
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
    keep_copy(journal, false);
    free(journal);
}

/* Cuts off all bytes after `end`, because the next line would continue a partial line. */
static void truncate_to(struct journal *journal, off_t end)
{
    journal->end = end;
    journal->torn = ftruncate(journal->fd, end) != 0;
    keep_copy(journal, journal->copy < 0 || (ftruncate(journal->copy, end) == 0 &&
                                             lseek(journal->copy, end, SEEK_SET) == end));
}

/* Continues in a new file after other processes changed or replaced the journal. The new file gets
 * the content of the open file if that is `whole`, or else the content of the copy. */
static enum status move(struct journal *journal, bool whole, const char *what, struct error *error)
{
    char name[LINK_TARGET];
    struct target target;
    int fd = -1, from = whole ? journal->fd : journal->copy;
    for (int i = 0; fd < 0 && i < SPARE_NAMES; ++i) {
        spare_name(journal->path, journal_suffix, i, name);
        if (target_open(name, false, &target, error))
            continue;
        fd = open(target.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        target_close(&target);
    }
    off_t length = from < 0 ? 0 : journal->end;
    if (fd < 0 || !file_copy(from, fd, length) || fcntl(fd, F_SETFL, O_APPEND) != 0 ||
        fdatasync(fd) != 0 || folder_sync(name, error)) {
        error_set(error, STATUS_SYSTEM, "%.800s %s, and no other file can be written: %s",
                  journal->path, what, strerror(errno));
        if (fd >= 0) {
            unlink(name);
            close(fd);
        }
        return STATUS_SYSTEM;
    }
    flock(fd, LOCK_EX | LOCK_NB);
    close(journal->fd);
    error_set(&journal->moved, STATUS_SYSTEM,
              "%.300s %s while it was written: %s are in %.300s; --resume --output %.*s goes on",
              journal->path, what, from < 0 ? "rows from then on" : "its rows", name,
              (int)(strlen(name) - strlen(journal_suffix)), name);
    journal->fd = fd;
    strcpy(journal->path, name);
    journal->synced = journal->end = length;
    journal->torn = false;
    return STATUS_OK;
}

/* STATUS_SYSTEM: other processes changed or replaced the file; *error has the new name, or the
 * reason why no new file could be written. */
static enum status check_path(struct journal *journal, struct error *error)
{
    struct stat own, named;
    bool whole = fstat(journal->fd, &own) == 0 && own.st_size >= journal->end &&
                 (journal->torn || own.st_size == journal->end);
    if (!whole)
        return move(journal, whole, "was changed by others", error);
    if (stat(journal->path, &named) != 0)
        return move(journal, whole, "was removed", error);
    return own.st_dev == named.st_dev && own.st_ino == named.st_ino
               ? STATUS_OK
               : move(journal, whole, "was replaced", error);
}

enum status journal_check_path(struct journal *journal, struct error *error)
{
    TRY(check_path(journal, error));
    if (journal->copy >= 0 && !file_equal(journal->fd, journal->copy, journal->end))
        TRY(move(journal, false, "was changed by others", error));
    if (!*journal->moved.text)
        return STATUS_OK;
    *error = journal->moved;
    return STATUS_SYSTEM;
}

void journal_source(const struct journal *journal, char source[JOURNAL_SOURCE])
{
    snprintf(source, JOURNAL_SOURCE, "/proc/self/fd/%d",
             journal->copy >= 0 ? journal->copy : journal->fd);
}

const char *journal_path(const struct journal *journal)
{
    return journal->path;
}

static enum status write_error(const struct journal *journal, struct error *error)
{
    return error_set(error, STATUS_SYSTEM,
                     "%s: cannot write: %s; --resume goes on with the rows in it", journal->path,
                     strerror(errno));
}

enum status journal_append(struct journal *journal, const char *kind, json_t *entry,
                           struct error *error)
{
    char *text = json_dumps(entry, JSON_COMPACT);
    json_decref(entry);
    enum status status =
        text ? journal_append_text(journal, kind, text, error)
             : error_set(error, STATUS_SYSTEM, "%s: no memory for a line", journal->path);
    free(text);
    return status;
}

enum status journal_append_text(struct journal *journal, const char *kind, const char *entry,
                                struct error *error)
{
    size_t length = 0;
    char *line = line_format(kind, entry, journal->end == 0, &length);
    if (!line)
        return error_set(error, STATUS_SYSTEM, "%s: no memory for a line", journal->path);
    enum status status = check_path(journal, error);
    if (status) {
        free(line);
        return status;
    }
    bool written = (!journal->torn || ftruncate(journal->fd, journal->end) == 0) &&
                   file_write(journal->fd, line, length);
    status = written ? STATUS_OK : write_error(journal, error);
    keep_copy(journal,
              journal->copy < 0 || (journal->end < COPY_BYTES &&
                                    (!written || file_write(journal->copy, line, length))));
    free(line);
    if (written) {
        journal->end += (off_t)length;
        journal->torn = false;
    } else {
        truncate_to(journal, journal->end);
    }
    return status;
}

enum status journal_sync(struct journal *journal, struct error *error)
{
    if (journal->end == journal->synced)
        return STATUS_OK;
    if (fdatasync(journal->fd) != 0) {
        write_error(journal, error);
        truncate_to(journal, journal->synced);
        return STATUS_SYSTEM;
    }
    journal->synced = journal->end;
    return STATUS_OK;
}

bool journal_in_use(const char *path, char holder[HOLDER_TEXT])
{
    FILE *stream = NULL;
    if (file_open(path, &stream, &(struct error){""}))
        return false;
    bool used = flock(fileno(stream), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (used)
        lock_holder(fileno(stream), holder);
    fclose(stream);
    return used;
}

bool journal_recognised(const char *path)
{
    return file_begins(path, FRAME_START, CHECKSUM_AT);
}

/* ---- reading ---- */

struct reader {
    struct results *results;
    struct journal_damage damage;
    struct error first; /* first damage, or reason why the file is unusable */
    size_t good;        /* number of valid lines */
    off_t start;        /* offset of the present line */
    size_t line;        /* number of the present line, from 1 */
    struct place entry; /* place of the present line's entry */
    bool begins_as_journal;
    bool unusable;        /* newer format, or a line longer than JOURNAL_LINE_BYTES */
    struct record record; /* memory for the entries of records */
};

static enum status add_session(struct reader *reader, struct json_text entry, struct error *error)
{
    return results_add_session(reader->results, entry, error);
}

static enum status add_device(struct reader *reader, struct json_text entry, struct error *error)
{
    struct device device;
    struct link_list links = {NULL, 0};
    TRY(device_decode(entry, &device, error));
    TRY(device_check(&device, error));
    if (!device.key[0])
        return error_set(error, STATUS_SYSTEM, "a device without 'key'");
    TRY(link_list_decode(entry, &links, error));
    return results_add_device(reader->results, &device, &links, error);
}

static enum status add_record(struct reader *reader, struct json_text entry, struct error *error)
{
    TRY(record_decode(entry, &reader->record, error));
    TRY(record_check(&reader->record, error));
    return results_add_record(reader->results, &reader->record, reader->entry, error);
}

struct entry_kind {
    const char *name;
    enum status (*add)(struct reader *reader, struct json_text entry, struct error *error);
};
static const struct entry_kind entry_kinds[] = {{"session", add_session},
                                                {"device", add_device},
                                                {"record", add_record},
                                                {"round", add_record},
                                                {0}};

static enum status line_add(struct reader *reader, const char *line, size_t length,
                            struct error *error)
{
    struct json_reader members = json_reader_object((struct json_text){line, length});
    struct json_text name, value, entry = {0}, kind_name = {0};
    const struct entry_kind *kind = entry_kinds;
    double format = 1;
    if (!line_is_valid(line, length))
        return error_set(error, STATUS_SYSTEM, "%s",
                         line_begins(line, length) ? "the checksum of this line is wrong"
                                                   : "this is no line of a roofsweep journal");
    while (json_reader_next(&members, &name, &value))
        if (json_text_is(name, "kind"))
            kind_name = value;
        else if (json_text_is(name, "format"))
            json_text_number(value, &format);
        else if (json_text_is(name, "entry"))
            entry = value;
    if (members.broken)
        return error_set(error, STATUS_SYSTEM, "not a JSON object");
    if (!(format >= 1))
        return error_set(error, STATUS_SYSTEM, "a journal of format %g, which no version writes",
                         format);
    while (kind->name && !json_text_is(kind_name, kind->name))
        ++kind;
    reader->unusable = !kind->name || format > JOURNAL_FORMAT;
    if (reader->unusable)
        return error_set(error, STATUS_SYSTEM,
                         "%s; a newer version of roofsweep wrote it: use that version",
                         kind->name ? "a journal of a later format" : "an entry of unknown kind");
    if (!entry.at)
        return error_set(error, STATUS_SYSTEM, "not a JSON object");
    reader->entry = (struct place){reader->start + (entry.at - line), entry.length, reader->line};
    return kind->add(reader, entry, error);
}

static void line_take(struct reader *reader, const char *line, size_t length)
{
    struct journal_damage *damage = &reader->damage;
    struct error error;
    ++reader->line;
    if (length > JOURNAL_LINE_BYTES) {
        reader->unusable = true;
        error_set(&reader->first, STATUS_SYSTEM,
                  "a line of more than %d bytes, which no journal of roofsweep has; delete the "
                  "line, and --resume measures the missing rows again",
                  JOURNAL_LINE_BYTES);
        return;
    }
    damage->torn = line[length - 1] != '\n';
    if (reader->line == 1)
        reader->begins_as_journal = line_begins(line, damage->torn ? length : length - 1);
    if (damage->torn)
        return;
    if (line_add(reader, line, length - 1, &error) == STATUS_OK) {
        ++reader->good;
        return;
    }
    if (reader->unusable || damage->count == 0)
        reader->first = error;
    if (reader->unusable)
        return;
    if (damage->count < sizeof damage->first / sizeof *damage->first)
        damage->first[damage->count] = reader->line;
    ++damage->count;
}

static enum status check_file(const struct reader *reader, const char *path, struct error *error)
{
    if (reader->unusable) {
        *error = reader->first;
        return error_prefix(error, STATUS_SYSTEM, "%s:%zu", path, reader->line);
    }
    if (reader->good == 0 && reader->line > 0 && !reader->begins_as_journal)
        return error_set(error, STATUS_SYSTEM,
                         "%s:1: this file has no line of a roofsweep journal; name the file "
                         "OUTPUT.journal that a sweep wrote",
                         path);
    return STATUS_OK;
}

static enum status lines_read(struct reader *reader, FILE *stream, const char *path,
                              struct error *error)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    while (!reader->unusable &&
           (length = line_read(stream, JOURNAL_LINE_BYTES, &line, &size)) > 0) {
        line_take(reader, line, (size_t)length);
        reader->start += length;
    }
    free(line);
    if (!reader->unusable && !feof(stream))
        return system_error(error, path, "read");
    results_finish(reader->results);
    return check_file(reader, path, error);
}

static enum status file_read(const char *path, struct reader *reader, struct error *error)
{
    FILE *stream;
    TRY(file_open(path, &stream, error));
    int fd = fcntl(fileno(stream), F_DUPFD_CLOEXEC, 0);
    enum status status = STATUS_OK;
    reader->results = results_create();
    record_init(&reader->record);
    if (fd < 0)
        status = system_error(error, path, "open");
    else if (!reader->results)
        status = error_set(error, STATUS_SYSTEM, "%s: no memory", path);
    else
        status = results_attach(reader->results, path, fd, error);
    if (status == STATUS_OK)
        status = lines_read(reader, stream, path, error);
    else if (fd >= 0 && !reader->results)
        close(fd);
    fclose(stream);
    record_clear(&reader->record);
    if (status)
        results_destroy(reader->results);
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
    struct reader reader = {0};
    TRY(file_read(path, &reader, error));
    *results = reader.results;
    *damage = reader.damage;
    return STATUS_OK;
}

enum status journal_read(const char *path, struct results **results, bool *torn,
                         struct error *error)
{
    struct reader reader = {0};
    char lines[JOURNAL_DAMAGE_TEXT];
    TRY(file_read(path, &reader, error));
    if (reader.damage.count == 0) {
        *results = reader.results;
        *torn = reader.damage.torn;
        return STATUS_OK;
    }
    results_destroy(reader.results);
    journal_damage_format(&reader.damage, lines);
    return error_set(
        error, STATUS_SYSTEM,
        "%s:%zu: %s (damaged: %s); delete these lines, and --resume measures the missing "
        "rows again; or --gather --skip-damaged keeps all other rows",
        path, reader.damage.first[0], reader.first.text, lines);
}

void journal_warn_left_out(const char *path, bool torn, const struct results *results,
                           const struct log *log)
{
    if (torn)
        log_print(log, LOG_WARNING, "%s: the last line is incomplete and left out", path);
    if (results->without_device > 0)
        log_print(
            log, LOG_WARNING,
            "%s: %zu rows or rounds are left out, because no line describes their device '%s'; "
            "--resume measures them again",
            path, results->without_device, results->missing_key);
}
