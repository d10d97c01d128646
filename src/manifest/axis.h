/* A parameter's list of values, such as "16, 32, 64:512:*2". */
#pragma once

#include "base/status.h"
#include "model/parameter.h"

struct axis {
    struct value *values;
    size_t count; /* 0: the section does not name the parameter */
    int line;     /* line of the key; INT_MAX: [measure] has the values */
};

enum {
    AXIS_VALUES_MAX = 65536,
    MANIFEST_VALUES_MAX = 200000 /* values in all lists, ranges and excludes of a manifest */
};

/* Takes `count` values from *room, the number of values that the manifest may still have.
 * STATUS_USAGE: too few are left. */
enum status room_take(size_t count, size_t *room, struct error *error);

/* Parses values in the order of the text: words, numbers and free texts, which need double quotes
 * if they have commas or outer blanks. Integers and square steps may be inclusive ranges "a:b:*f"
 * and "a:b:+s", which are counted before they are expanded. Sets *axis, except for its line, on
 * success only. */
enum status axis_parse(const struct parameter *parameter, const char *text, size_t *room,
                       struct axis *axis, struct error *error);
/* STATUS_USAGE: a value comes twice. */
enum status axis_distinct(const struct parameter *parameter, const struct axis *axis,
                          struct error *error);
void axis_clear(struct axis *axis);
