/* A parameter's list of values, as in "16, 32, 64:512:*2"; struct axis is in manifest.h. */
#pragma once

#include "manifest/manifest.h"

enum {
    AXIS_VALUES_MAX = 65536,
    MANIFEST_VALUES_MAX = 200000 /* of all lists, ranges and excludes of a manifest */
};

/* Takes `count` values from *room, which is how many more a manifest may have. STATUS_USAGE: it has
 * not so many. */
enum status room_take(size_t count, size_t *room, struct error *error);

/* Values in the order of the text: words and numbers, for integers the inclusive ranges "a:b:*f"
 * and "a:b:+s", which are counted before they are expanded, and free texts, in double quotes if
 * they have commas or blanks at their ends. Sets *axis, but for its line, on success only. */
enum status axis_parse(const struct parameter *parameter, const char *text, size_t *room,
                       struct axis *axis, struct error *error);
/* STATUS_USAGE if a value comes twice. */
enum status axis_distinct(const struct parameter *parameter, const struct axis *axis,
                          struct error *error);
void axis_clear(struct axis *axis);
