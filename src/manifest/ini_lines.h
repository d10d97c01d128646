/* An INI text, line by line: `[section]`, `key = value`, comments after `;` or in lines that begin
 * with `#`. A line that begins with '|' has the key "|" and the rest as its value. Lines that begin
 * with '|' or `#` may have any length, others INI_LINE_BYTES at most. Text after a section,
 * `key: value`, continuation lines and control characters are errors. */
#pragma once

#include <stddef.h>

#include "base/status.h"

enum { INI_LINE_BYTES = 4096, INI_NAME_BYTES = 49, INI_WORD_BYTES = 197 };

struct ini_line {
    const char *section; /* the text between the brackets; "" before the first section */
    const char *key;     /* NULL: the line begins the section */
    const char *value;   /* without comment and outer blanks; may be "" */
    int number;          /* from 1 */
};
typedef enum status (*ini_visit)(void *user, const struct ini_line *line, struct error *error);

/* Calls `visit` for each section and key in order, until it fails. Errors are STATUS_USAGE (or what
 * `visit` returned) with "PATH:LINE: " in front. The text is UTF-8 with LF or CRLF line ends. */
enum status ini_lines_visit(const char *path, const char *text, size_t length, ini_visit visit,
                            void *user, struct error *error);

/* Splits "NAME LABEL"; `label` is "" without a label. */
void ini_section_split(const char *text, char name[INI_NAME_BYTES + 1],
                       char label[INI_NAME_BYTES + 1]);

/* Sets *noted to the line's number. STATUS_USAGE: *noted is not 0, as the key or section is
 * repeated. */
enum status ini_line_first(const struct ini_line *line, int *noted, struct error *error);
/* Returns STATUS_USAGE with the error for a line whose key is not in `keys`. `home`: another
 * section that has the key; NULL: none. */
enum status ini_line_unknown(const struct ini_line *line, const char *const *keys, const char *home,
                             struct error *error);
