/* Lists of words, UTF-8 that is safe on a terminal, and the last output of a process. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

/* Index of `text` in the NULL-terminated `words`, or -1. */
int words_find(const char *const *words, const char *text);

/* The word of which `text` is a typo or the beginning. NULL: none. */
const char *words_nearest(const char *const *words, const char *text);

/* Writes "; did you mean 'filters'? allowed: batch, filters", without the question if `text`
 * resembles no word. */
enum { WORDS_HINT = 512 };
void words_hint(const char *const *words, const char *text, char hint[WORDS_HINT]);

/* Sets *index to the word that equals `text`, ignoring case. STATUS_USAGE, with the hint, if there
 * is none. */
enum status words_parse(const char *const *words, const char *text, int *index,
                        struct error *error);

/* Copies the item of a list that starts at *text, without the blanks around it, and moves *text to
 * the separator after it or to the final NUL. STATUS_USAGE: the item is empty, or too long. */
enum { WORDS_ITEM = 80 };
enum status words_next(const char **text, const char *separators, char item[WORDS_ITEM],
                       struct error *error);
/* words_next for items with parts in double quotes, which may hold separators, blanks, \" and \\.
 * The quotes stay. `item` has `size` bytes. STATUS_USAGE also if a quote is not closed. */
enum status words_next_quoted(const char **text, const char *separators, char *item, size_t size,
                              struct error *error);

/* Returns the place after the closing quote of the text that begins with a double quote at `text`;
 * NULL if the text has no closing quote. */
const char *words_quote_end(const char *text);

/* Text is UTF-8 without control characters. Files store text unchanged. log_print, log_error and
 * utf8_print call utf8_clean, so their callers need not. */

/* Bytes of the UTF-8 character at the beginning of `text`, which has `left` bytes; 0 for invalid
 * bytes and for control characters except the tab. */
size_t utf8_character(const char *text, size_t left);

/* Copies `length` bytes and a NUL into `size` bytes; cuts a longer text between characters. */
void utf8_copy(char *copy, size_t size, const char *text, size_t length);

/* Replaces by '?', in place, each control character (C0 without the tab, and C1), each character
 * that changes the direction of writing or ends a line, and each byte that is not UTF-8. Returns
 * the new length, at most `length`. */
size_t utf8_clean(char *text, size_t length);
/* As utf8_clean, but keeps newlines. */
size_t utf8_clean_lines(char *text, size_t length);

/* Prints as fprintf does, cleaned by utf8_clean. Newlines at both ends of `format` stay. */
void utf8_print(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last output of a process. All zero: no output so far. */
enum { TAIL_MAX = 600 };

struct tail {
    char text[TAIL_MAX + 1];
    size_t length;
};

/* Appends the text and keeps the last TAIL_MAX bytes. */
void tail_append(struct tail *tail, const char *text, size_t length);

/* Makes one line of all: '|' for a newline, a blank for any other control character. */
void tail_join(struct tail *tail);
