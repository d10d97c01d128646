/* Reads JSON in place, without building a tree, because a journal may have 100,000 records. A value
 * is a slice of a text that the caller keeps. To find the end of a value, these functions look only
 * for brackets and quotes, so values that nobody reads are not checked. They never read beyond the
 * text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_text {
    const char *at; /* NULL: no value */
    size_t length;  /* bytes, without blanks around the value */
};

struct json_text json_text_of(const char *text);

/* Iterates over the members of an object or the elements of an array. */
struct json_reader {
    const char *at, *end;
    char bracket; /* closing bracket; NUL after the last member */
    bool broken;  /* the text is no object or array */
};
struct json_reader json_reader_object(struct json_text value);
struct json_reader json_reader_array(struct json_text value);
/* Sets `name` (a string with its quotes; NULL for elements of an array) and `value`. False at the
 * end and for a broken text. */
bool json_reader_next(struct json_reader *reader, struct json_text *name, struct json_text *value);

/* Returns the last member with this name, or no value if there is none or the object is broken. The
 * name must not need escapes. */
struct json_text json_member(struct json_text object, const char *name);

/* Compares a value with a string that is not empty and needs no escapes. */
bool json_text_is(struct json_text value, const char *string);

/* False: the value is no number. Integers: it has a fraction or more than 64 bits. */
bool json_text_number(struct json_text value, double *number);
bool json_text_integer(struct json_text value, int64_t *number);

/* Copies a string into `size` bytes, including the NUL; cuts a longer string between characters.
 * False: the value is no string, or not UTF-8. */
bool json_text_string(struct json_text value, char *string, size_t size);
