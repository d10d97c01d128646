/* Words, lists of words, and what to say about a word that is not allowed. */
#ifndef ROOFSWEEP_WORDS_H
#define ROOFSWEEP_WORDS_H

#include <stddef.h>

#include "base/status.h"

/* Index of `text` in the NULL-terminated `words`, or -1. */
int words_find(const char *const *words, const char *text);

/* "; did you mean 'filters'? allowed: batch, filters", or without the question if no word is near.
 */
enum { WORDS_HINT = 512 };
void words_hint(const char *const *words, const char *text, char hint[WORDS_HINT]);

/* Sets *index to that of `text`; STATUS_USAGE with the hint if it is none of them. */
enum status words_parse(const char *const *words, const char *text, int *index,
                        struct error *error);

/* Copies the item of a list that starts at *text, without the blanks around it, and moves *text to
 * the separator behind it or to the final NUL. STATUS_USAGE: the item is empty, or too long. */
enum { WORDS_ITEM = 80 };
enum status words_next(const char **text, const char *separators, char item[WORDS_ITEM],
                       struct error *error);
/* The same, but a part of the item in double quotes is kept as it is, with its quotes: it may hold
 * separators, blanks, \" and \\. `size` bytes at `item`. STATUS_USAGE also if a quote is not closed. */
enum status words_next_quoted(const char **text, const char *separators, char *item, size_t size,
                              struct error *error);

/* Behind the quoted text that begins at `text` with a double quote; NULL if it does not end. */
const char *words_quote_end(const char *text);

#endif
