/* The journal, OUTPUT.journal: the one source of truth of a sweep that may be killed at any moment.
 *
 * JSON lines of the kinds session, device and record, each appended with one write:
 *
 *   {"xxh3":"<16 hex digits>","kind":"record","entry":{...}}
 *
 * The checksum (XXH3, 64 bit) is of the line's bytes after `"kind":` up to the end without the
 * final brace. journal_sync makes all that were appended durable, with one fdatasync. A torn last
 * line is what a kill leaves: it is dropped with a warning, and cut off before appending.
 *
 * The first line also has "format":1 after its kind; without, as older versions wrote it, the
 * format is 1. Every later format keeps that line's frame, so that each version can say that a
 * journal is too new for it. */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "results/results.h"

enum { JOURNAL_FORMAT = 1 };

/* Open for appending, locked against a second job where the filesystem has locks. */
struct journal;

/* JOURNAL_CREATE refuses a file that exists; the others refuse one that does not. The first append
 * cuts off a torn last line, and with JOURNAL_REPLACE all that the file holds. STATUS_USAGE: exists
 * / does not exist / is in use by another job; JOURNAL_RESUME waits 10 s for the end of that,
 * and is STATUS_USAGE too where another user owns the file. JOURNAL_ADOPT takes that, and
 * JOURNAL_SHARE does not wait either. */
enum journal_mode { JOURNAL_CREATE, JOURNAL_RESUME, JOURNAL_ADOPT, JOURNAL_SHARE, JOURNAL_REPLACE };
enum status journal_open(const char *path, enum journal_mode mode, struct journal **journal,
                         struct error *error);

/* Steals the reference to `entry`. A line that cannot be written whole is cut off again. Until
 * journal_sync it may be lost with the machine, though not with the process. */
enum status journal_append(struct journal *journal, const char *kind, json_t *entry,
                           struct error *error);
/* The same of an entry that was printed already: it is stored as it is. */
enum status journal_append_text(struct journal *journal, const char *kind, const char *entry,
                                struct error *error);
/* All that was appended is on disk. If that fails, what was not there yet is cut off again. */
enum status journal_sync(struct journal *journal, struct error *error);
/* Looks whether it is still the file of its name, as every append does, and before publishing.
 * Where it was cut, overwritten, replaced or removed meanwhile, what it held goes on under another
 * name (spare_name). STATUS_SYSTEM, from then on: it did, and *error says where; or it could not.
 */
enum status journal_check_path(struct journal *journal, struct error *error);
const char *journal_path(const struct journal *journal); /* its name now, as long as it is open */
void journal_close(struct journal *journal);             /* takes NULL */

/* A record, and a session with its manifest, is shorter: a file with a longer line is no
 * journal. */
enum { JOURNAL_LINE_BYTES = 64 << 20 };

/* Whether the file begins as a journal does; false of what cannot be read or is no regular file. */
bool journal_recognised(const char *path);

/* Lines that cannot be used: their checksum is wrong, or what they hold cannot be. */
struct journal_damage {
    bool torn;    /* an incomplete last line, which is not counted */
    size_t count; /* lines */
    size_t first[8];
};

/* "line 3", or "lines 3, 7 and 12 more". */
enum { JOURNAL_DAMAGE_TEXT = 256 };
void journal_damage_format(const struct journal_damage *damage, char text[JOURNAL_DAMAGE_TEXT]);

/* Reads all that can be read. STATUS_SYSTEM: it cannot be opened, no line of it is one of a
 * journal, or a newer version wrote it. The caller owns *results. */
enum status journal_salvage(const char *path, struct results **results,
                            struct journal_damage *damage, struct error *error);

/* Reads all of it. *torn is set if a last incomplete line was left out. Damage is STATUS_SYSTEM,
 * and the lines are named by their numbers. The caller owns *results. */
enum status journal_read(const char *path, struct results **results, bool *torn,
                         struct error *error);

/* Warns of a torn last line, and of records that were left out with their device. */
void journal_warn_left_out(const char *path, bool torn, const struct results *results,
                           const struct log *log);
