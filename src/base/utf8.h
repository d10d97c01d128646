/* What is text: UTF-8 without control characters, and what of any bytes a terminal may see.
 *
 * Files keep text as it is. What is written for people goes through utf8_clean: log_print, log_error
 * and utf8_print do that, so that those who call them need not think of it. */
#ifndef ROOFSWEEP_UTF8_H
#define ROOFSWEEP_UTF8_H

#include <stddef.h>
#include <stdio.h>

/* Bytes of the UTF-8 character at `text`, of which `left` bytes are there; 0 if it is none, or a
 * control character other than a tab. */
size_t utf8_character(const char *text, size_t left);

/* '?' for each control character (of C0, without the tab, and C1), each one that turns the direction
 * of writing or ends a line, and each byte that is no UTF-8. In place: `length` bytes become the
 * returned number of bytes, which is no larger. */
size_t utf8_clean(char *text, size_t length);
/* The same, but newlines stay. */
size_t utf8_clean_lines(char *text, size_t length);

/* fprintf for people: all but the newlines at both ends of `format` is cleaned. */
void utf8_print(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
