/* One line of a journal, and of the other files that are appended to while a sweep may be killed:
 *
 *   {"xxh3":"<16 hex digits>","kind":"record","entry":{...}}
 *
 * The checksum (XXH3, 64 bit) is of the line's bytes behind `"kind":` up to the end without the final
 * brace. The first line of a file also has "format":1 behind its kind. */
#ifndef ROOFSWEEP_JOURNAL_LINE_H
#define ROOFSWEEP_JOURNAL_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { JOURNAL_FORMAT = 1 };

/* The line with its newline, to be freed; NULL without memory. */
char *journal_line_format(const char *kind, const json_t *entry, bool first, size_t *length);

/* Of a line without its newline: it is whole, and its checksum right. */
bool journal_line_holds(const char *line, size_t length);

/* The text begins as a line does, as far as it goes. */
enum { JOURNAL_LINE_START = 9 };
bool journal_line_begins(const char *text, size_t length);

#endif
