/* Texts: words and lists of words, what of any bytes a terminal may see, and the end of what a
 * process prints. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

/* Index of `text` in the NULL-terminated `words`, or -1. */
int words_find(const char *const *words, const char *text);

/* The word that `text` is a typo or the first letters of; NULL: none is near. */
const char *words_nearest(const char *const *words, const char *text);

/* "; did you mean 'filters'? allowed: batch, filters", or without the question if no word is near.
 */
enum { WORDS_HINT = 512 };
void words_hint(const char *const *words, const char *text, char hint[WORDS_HINT]);

/* Sets *index to that of `text`, in small letters or capitals; STATUS_USAGE with the hint if it is
 * none of them. */
enum status words_parse(const char *const *words, const char *text, int *index,
                        struct error *error);

/* Copies the item of a list that starts at *text, without the blanks around it, and moves *text to
 * the separator after it or to the final NUL. STATUS_USAGE: the item is empty, or too long. */
enum { WORDS_ITEM = 80 };
enum status words_next(const char **text, const char *separators, char item[WORDS_ITEM],
                       struct error *error);
/* The same, but a part of the item in double quotes is kept as it is, with its quotes: it may hold
 * separators, blanks, \" and \\. `size` bytes at `item`. STATUS_USAGE also if a quote is not
 * closed. */
enum status words_next_quoted(const char **text, const char *separators, char *item, size_t size,
                              struct error *error);

/* The place after the quoted text which begins at `text` with a double quote; NULL: no end. */
const char *words_quote_end(const char *text);

/* Text is UTF-8 without control characters. Files keep it as it is. What is written for people goes
 * through utf8_clean: log_print, log_error and utf8_print do that, so that those who call them need
 * not think of it. */

/* Bytes of the UTF-8 character at `text`, of which `left` bytes are there; 0 if it is none, or a
 * control character other than a tab. */
size_t utf8_character(const char *text, size_t left);

/* Copies `length` bytes, and a NUL, into `size` bytes; a longer text is cut between characters. */
void utf8_copy(char *copy, size_t size, const char *text, size_t length);

/* '?' for each control character (of C0, without the tab, and C1), each one that turns the
 * direction of writing or ends a line, and each byte that is no UTF-8. In place: `length` bytes
 * become the returned number of bytes, which is no larger. */
size_t utf8_clean(char *text, size_t length);
/* The same, but newlines stay. */
size_t utf8_clean_lines(char *text, size_t length);

/* fprintf for people: all but the newlines at both ends of `format` is cleaned. */
void utf8_print(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The end of what a process prints: its last lines, kept as they come. All zero: nothing was
 * printed. */
enum { TAIL_MAX = 600 };

struct tail {
    char text[TAIL_MAX + 1];
    size_t length;
};

/* Keeps the last TAIL_MAX bytes of what is there and of what comes. */
void tail_append(struct tail *tail, const char *text, size_t length);

/* Puts its lines on one: '|' between them, a blank for any other control character. */
void tail_join(struct tail *tail);
