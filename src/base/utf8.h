/* What is text: UTF-8 without control characters. */
#ifndef ROOFSWEEP_UTF8_H
#define ROOFSWEEP_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character at `text`, of which `left` bytes are there; 0 if it is none, or a
 * control character other than a tab. */
size_t utf8_character(const char *text, size_t left);

#endif
