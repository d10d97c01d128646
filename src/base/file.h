/* Files, folders, links and lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/status.h"

/* Whether this errno of a lock, link or sync means that the file system lacks the call. */
bool file_lacks(int code);

/* Syncs the folder of `path`, after `path` was created or renamed. Only then does the name survive
 * a crash. The caller adds `path` to the error. */
enum status folder_sync(const char *path, struct error *error);

/* The folder of the running program, which also has the worker programs. */
enum status folder_of_program(char *folder, size_t size, struct error *error);

/* Opens a regular file for reading, without waiting for a pipe; the caller closes it. STATUS_USAGE:
 * not a regular file; STATUS_SYSTEM: cannot be opened. Both messages name the path. */
enum status file_open(const char *path, FILE **stream, struct error *error);

/* Whether a regular file begins with these bytes. Compares at most 64 bytes, and at most as many as
 * the file has. False for an empty or unreadable file. */
bool file_begins(const char *path, const char *bytes, size_t length);

/* Writes all bytes. False: write() failed and has set errno. */
bool file_write(int fd, const char *data, size_t length);
/* Appends the first `length` bytes of file `from` to file `to`. False: reading or writing
 * failed. */
bool file_copy(int from, int to, off_t length);

/* Whether both files begin with the same `length` bytes. */
bool file_equal(int a, int b, off_t length);

/* Whether both paths lead to the same file. False if one of them does not exist. */
bool file_same(const char *a, const char *b);

enum { LINK_TARGET = 4096 }; /* bytes of a path */

/* Whether the owner is the effective user or root. */
bool owner_is_trusted(uid_t owner);
/* Writes the name of a user, or the number if the user has no name. */
enum { OWNER_TEXT = 64 };
void owner_format(uid_t owner, char text[OWNER_TEXT]);

/* Writes number and user of the process of this node that has locked the open file (flock);
 * "another job" if there is none. */
enum { HOLDER_TEXT = 96 };
void lock_holder(int fd, char text[HOLDER_TEXT]);

/* Makes name number `index` (0 to SPARE_NAMES - 1) for a file that must not replace the existing
 * `path`. Names have ".spare-1" to ".spare-9" before the suffix: first in the folder of `path`,
 * then in the working folder, then in TMPDIR or /tmp. */
enum { SPARE_NUMBERS = 9, SPARE_NAMES = 3 * SPARE_NUMBERS };
void spare_name(const char *path, const char *suffix, int index, char name[LINK_TARGET]);

/* Reads the next line, with its newline, into *line. The line is not NUL-terminated. The buffer of
 * *size bytes grows; the caller frees it. Stops after `most` + 1 bytes. Returns the number of
 * bytes; 0 at the end of the file; -1 if reading fails or there is no memory. */
ssize_t line_read(FILE *stream, size_t most, char **line, size_t *size);
