/* Reads JSON where it lies, without a tree: a journal of 100,000 records is read value by value. A
 * value is a part of a text that outlives it; brackets and quotes alone tell where it ends, so
 * skipped values are not checked. Nothing is read beyond the text, whatever it holds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_text {
    const char *at; /* NULL: there is no value */
    size_t length;  /* bytes, without blanks around the value */
};

/* A whole text that ends with NUL. */
struct json_text json_text_of(const char *text);

/* Steps over the members of an object, or the elements of an array. */
struct json_reader {
    const char *at, *end;
    char bracket; /* that closes the value; NUL: the last member was read */
    bool broken;  /* the text is no such value */
};
struct json_reader json_reader_object(struct json_text value);
struct json_reader json_reader_array(struct json_text value);
/* Sets `name` (with its quotes; NULL for elements of an array) and `value`. False at the end, and
 * for a broken text. */
bool json_reader_next(struct json_reader *reader, struct json_text *name, struct json_text *value);

/* The last member of this name. An absent one, and a broken object, have no value. `name` needs no
 * escape. */
struct json_text json_member(struct json_text object, const char *name);

/* The value is this string, which is not empty, written without escapes. */
bool json_text_is(struct json_text value, const char *string);

/* False: the value is no number (of any kind, or without a fraction and within 64 bits). */
bool json_text_number(struct json_text value, double *number);
bool json_text_integer(struct json_text value, int64_t *number);

/* Copies a string, and cuts it between two characters if `size` bytes are too few. False: the value
 * is no string, or not UTF-8. */
bool json_text_string(struct json_text value, char *string, size_t size);
