/* Files and folders: what survives a crash, what a path names in the end, and lines that need not
 * end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/status.h"

/* Brings the folder of `path` to disk, after `path` was created or renamed: before that, a new
 * file's name does not survive a crash. */
enum status folder_sync(const char *path, struct error *error);

/* Where the running program lies, and its workers with it. */
enum status folder_of_program(char *folder, size_t size, struct error *error);

/* A regular file to read; the caller closes it. STATUS_USAGE: it is something else, such as a pipe,
 * which nobody waits for; STATUS_SYSTEM: it cannot be opened. Both name the path. */
enum status file_open(const char *path, FILE **stream, struct error *error);

/* A regular file begins with these bytes, as far as it goes; false of an empty one, and of what
 * cannot be read. */
bool file_begins(const char *path, const char *bytes, size_t length);

/* Writes all of it; false as of write. */
bool file_write(int fd, const char *data, size_t length);
/* Appends the first `length` bytes of a file to another one; false as of write. */
bool file_copy(int from, int to, off_t length);

/* Both paths name the same file, by links or not; false also where one of them is not there. */
bool file_same(const char *a, const char *b);

enum { LINK_TARGET = 4096 }; /* bytes of a path */

/* `path`, or if that is a link the file that it names, through links to links; the file need not
 * exist. STATUS_SYSTEM: the links lead in a circle, a name is too long, or another user could have
 * made a link: it belongs neither to this user nor to root, and others may write to its folder. */
enum status link_follow(const char *path, char target[LINK_TARGET], struct error *error);

/* The user or root, whom nothing is kept from. */
bool owner_is_trusted(uid_t owner);
/* For people. */
enum { OWNER_TEXT = 64 };
void owner_format(uid_t owner, char text[OWNER_TEXT]);

/* Other names for `path`, for what must not replace what has that name now: a number from 1 on is
 * put before the suffix, in its folder, then in the working folder, then in TMPDIR or /tmp. */
enum { SPARE_NUMBERS = 9, SPARE_NAMES = 3 * SPARE_NUMBERS };
void spare_name(const char *path, const char *suffix, int index, char name[LINK_TARGET]);

/* As getline: the next line with its newline into *line, which has *size bytes and is the caller's
 * to free. Returns its bytes; 0 at the end of the file, -1 where reading fails or memory is
 * wanting. A line of more than `most` bytes is read no further than its byte `most` + 1. */
ssize_t line_read(FILE *stream, size_t most, char **line, size_t *size);
