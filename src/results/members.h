/* Members of a JSON object's text, found without making the object: rank 0 needs a few of each of
 * many records. What is skipped is skipped by its brackets and quotes alone, and not checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct member {
    const char *name;  /* the caller's; without what JSON would have to escape */
    const char *value; /* in the text; NULL: there is no such member */
    size_t length;
};

/* Sets value and length of each. False: the text is no object, or what has these names is there
 * twice. */
bool members_find(const char *text, size_t length, struct member *members, size_t count);

/* Elements of an array; 0 of anything else. */
size_t member_elements(const struct member *member);

/* Missing (NaN) of what is no number. What follows the value in the text ends it: a comma or a
 * brace. */
double member_number(const struct member *member);

/* The string into `text`, which has room for member->length bytes. False: it is none. */
bool member_text(const struct member *member, char *text);
