/* The journal, OUTPUT.journal: the durable content of a sweep, even if the sweep is killed.
 *
 * JSON lines of the kinds session, device, record and round, each appended by one write:
 *
 *   {"xxh3":"<16 hex digits>","kind":"record","entry":{...}}
 *
 * The checksum (XXH3, 64 bit) covers the bytes from the kind up to the final brace.
 * The entry of a record is the worker's text, completed by record_complete. A round is the record
 * of a later round of a row; versions without rounds refuse the kind. A kill may leave a torn last
 * line: readers drop it with a warning, and the next append cuts it off.
 *
 * The first line also has "format":1 after its kind; a missing format means 1. Later formats must
 * keep the frame of a line, so that every version can refuse a newer journal. */
#pragma once

#include <stdbool.h>

#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "results/results.h"

enum { JOURNAL_FORMAT = 1 };

/* An open journal, locked against other jobs if the filesystem has locks. */
struct journal;

/* JOURNAL_CREATE refuses an existing file; the other modes need an existing file. The first append
 * cuts off a torn line, and with JOURNAL_REPLACE all content. JOURNAL_RESUME and JOURNAL_ADOPT wait
 * up to 10 s for another job to end. JOURNAL_RESUME and JOURNAL_REPLACE refuse files of other
 * users. STATUS_USAGE: the file is refused, missing or in use. */
enum journal_mode { JOURNAL_CREATE, JOURNAL_RESUME, JOURNAL_ADOPT, JOURNAL_REPLACE };
enum status journal_open(const char *path, enum journal_mode mode, struct journal **journal,
                         struct error *error);

/* Appends a line, and owns the reference to `entry`. Cuts off a line that cannot be written whole.
 * The line is lost only if the machine fails before journal_sync. */
enum status journal_append(struct journal *journal, const char *kind, json_t *entry,
                           struct error *error);
/* Appends an entry that is JSON text, unchanged. */
enum status journal_append_text(struct journal *journal, const char *kind, const char *entry,
                                struct error *error);
/* Makes all lines durable with one fdatasync; on failure cuts off the lines since the last sync. */
enum status journal_sync(struct journal *journal, struct error *error);
/* Checks that the open file is intact, byte by byte, and still has its name; call it before and
 * after publishing. Every append checks length and name. If other processes cut, edited, replaced
 * or removed the file, the journal continues in another file (spare_name). From then on this
 * function returns STATUS_SYSTEM, with the new name or the reason in *error. */
enum status journal_check_path(struct journal *journal, struct error *error);
const char *journal_path(const struct journal *journal); /* current name, valid while open */
/* Sets the path of the journal's copy, which other processes cannot change, or of the open file if
 * the journal is too large for a copy. Valid while open. */
enum { JOURNAL_SOURCE = 32 };
void journal_source(const struct journal *journal, char source[JOURNAL_SOURCE]);
void journal_close(struct journal *journal); /* takes NULL */

/* Largest length of a line; every record, and every session with its manifest, is shorter. A file
 * with a longer line is no journal. */
enum { JOURNAL_LINE_BYTES = 64 << 20 };

/* True if a job has the journal open; `holder` then names the job, see lock_holder. False where the
 * filesystem has no locks. */
bool journal_in_use(const char *path, char holder[HOLDER_TEXT]);

/* True if the file begins as a journal. False for unreadable and irregular files. */
bool journal_recognised(const char *path);

/* Lines with a wrong checksum or an invalid entry. */
struct journal_damage {
    bool torn;       /* the last line is incomplete; `count` does not include it */
    size_t count;    /* number of damaged lines */
    size_t first[8]; /* numbers of the first damaged lines, from 1 */
};

/* "line 3", or "lines 3, 7 and 12 more". */
enum { JOURNAL_DAMAGE_TEXT = 256 };
void journal_damage_format(const struct journal_damage *damage, char text[JOURNAL_DAMAGE_TEXT]);

/* Reads all valid lines. STATUS_SYSTEM: cannot open, no valid line, or a newer version wrote the
 * journal. The caller owns *results. */
enum status journal_salvage(const char *path, struct results **results,
                            struct journal_damage *damage, struct error *error);

/* Reads a journal without damaged lines. *torn: an incomplete last line was dropped. STATUS_SYSTEM:
 * damage, with line numbers. The caller owns *results. */
enum status journal_read(const char *path, struct results **results, bool *torn,
                         struct error *error);

/* Warns of a torn last line, and of rows whose device the journal lacks. */
void journal_warn_left_out(const char *path, bool torn, const struct results *results,
                           const struct log *log);
