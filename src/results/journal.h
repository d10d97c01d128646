/* The journal, OUTPUT.journal: the durable content of a sweep, which may be killed at any moment.
 *
 * JSON lines of the kinds session, device and record, each appended by one write:
 *
 *   {"xxh3":"<16 hex digits>","kind":"record","entry":{...}}
 *
 * The checksum (XXH3, 64 bit) covers the bytes from the kind to the end without the final brace.
 * The entry of a record is the worker's text, completed by record_complete. A kill may leave a torn
 * last line: readers drop it with a warning, and the next append cuts it off.
 *
 * The first line also has "format":1 after its kind; a missing format is 1. Later formats keep the
 * frame, so that every version can refuse a newer journal. */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "results/results.h"

enum { JOURNAL_FORMAT = 1 };

/* An open journal, locked against other jobs if the filesystem has locks. */
struct journal;

/* JOURNAL_CREATE refuses an existing file; other modes need one. The first append cuts off a torn
 * line, and with JOURNAL_REPLACE all content. JOURNAL_RESUME waits 10 s for another job to end and
 * refuses files of other users; JOURNAL_ADOPT accepts these; JOURNAL_SHARE does neither.
 * STATUS_USAGE: the file exists, does not exist, is in use or is refused. */
enum journal_mode { JOURNAL_CREATE, JOURNAL_RESUME, JOURNAL_ADOPT, JOURNAL_SHARE, JOURNAL_REPLACE };
enum status journal_open(const char *path, enum journal_mode mode, struct journal **journal,
                         struct error *error);

/* Steals the reference to `entry`. Cuts off a line that cannot be written whole. Before
 * journal_sync a line may be lost with the machine, but not with the process. */
enum status journal_append(struct journal *journal, const char *kind, json_t *entry,
                           struct error *error);
/* Appends an entry that is JSON text, unchanged. */
enum status journal_append_text(struct journal *journal, const char *kind, const char *entry,
                                struct error *error);
/* Makes all lines durable with one fdatasync; on failure cuts off the others. */
enum status journal_sync(struct journal *journal, struct error *error);
/* Checks that the open file is intact and still has its name, as every append does; call it before
 * publishing. If others cut, overwrote, replaced or removed the file, its content continues in
 * another file (spare_name). STATUS_SYSTEM from then on, with the new name or the reason in *error.
 */
enum status journal_check_path(struct journal *journal, struct error *error);
const char *journal_path(const struct journal *journal); /* current name, valid while open */
void journal_close(struct journal *journal);             /* takes NULL */

/* Longer than any record, and any session with its manifest. A file with a longer line is no
 * journal. */
enum { JOURNAL_LINE_BYTES = 64 << 20 };

/* True if the file begins as a journal. False for unreadable and irregular files. */
bool journal_recognised(const char *path);

/* Lines with a wrong checksum or an invalid entry. */
struct journal_damage {
    bool torn;    /* incomplete last line, not in `count` */
    size_t count; /* lines */
    size_t first[8];
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

/* Warns of a torn last line, and of records without a device. */
void journal_warn_left_out(const char *path, bool torn, const struct results *results,
                           const struct log *log);
