/* Lists of words, UTF-8 that is safe on a terminal, and the last output of a process. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

/* Index of `text` in the NULL-terminated `words`, or -1. */
int words_find(const char *const *words, const char *text);

/* Returns the word that `text` probably means, because `text` is a typo of it or its beginning.
 * NULL: none. */
const char *words_nearest(const char *const *words, const char *text);

/* Writes "; did you mean 'filters'? allowed: batch, filters". The question is left out if `text`
 * resembles no word. */
enum { WORDS_HINT = 512 };
void words_hint(const char *const *words, const char *text, char hint[WORDS_HINT]);

/* Sets *index to the index of the word that equals `text`, ignoring case. STATUS_USAGE, with the
 * text of words_hint: no word does. */
enum status words_parse(const char *const *words, const char *text, int *index,
                        struct error *error);

/* *text is the rest of a list. Copies its first item, without outer blanks. Moves *text to the
 * separator after the item, or to the final NUL. STATUS_USAGE: the item is empty or too long. */
enum { WORDS_ITEM = 80 };
enum status words_next(const char **text, const char *separators, char item[WORDS_ITEM],
                       struct error *error);
/* As words_next, but an item may have parts in double quotes, which may contain separators, blanks,
 * \" and \\. Quotes are copied. `item` has `size` bytes. STATUS_USAGE also if a quote is not
 * closed. */
enum status words_next_quoted(const char **text, const char *separators, char *item, size_t size,
                              struct error *error);

/* `text` begins with a double quote. Returns the place after the closing quote; NULL if there is
 * none. */
const char *words_quote_end(const char *text);

/* Text for people is UTF-8 without control characters. Files store texts unchanged. log_print,
 * log_error and utf8_print call utf8_clean, so that their callers need not. */

/* Returns the number of bytes of the first UTF-8 character of `text`, which has `left` bytes; 0 for
 * invalid bytes and for control characters except the tab. */
size_t utf8_character(const char *text, size_t left);

/* Copies `length` bytes and a NUL into `copy`, which has `size` bytes. A text that does not fit is
 * cut between characters. */
void utf8_copy(char *copy, size_t size, const char *text, size_t length);

/* Replaces by '?', in place, each control character (C0 without the tab, and C1), each character
 * that changes the direction of writing or ends a line, and each byte that is not UTF-8. Returns
 * the new length, at most `length`. */
size_t utf8_clean(char *text, size_t length);
/* As utf8_clean, but keeps newlines. */
size_t utf8_clean_lines(char *text, size_t length);

/* Prints as fprintf does, after utf8_clean. Newlines at the beginning and the end of `format` are
 * kept. */
void utf8_print(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last output of a process. All zero: no output so far. */
enum { TAIL_MAX = 600 };

struct tail {
    char text[TAIL_MAX + 1];
    size_t length;
};

/* Appends the text and keeps the last TAIL_MAX bytes. */
void tail_append(struct tail *tail, const char *text, size_t length);

/* Makes a single line of the text: '|' replaces a newline, a blank any other control character. */
void tail_join(struct tail *tail);
