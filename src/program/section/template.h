/* Text with the values of axes in it: "--batch {batch}". "{{" and "}}" are braces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "model/workload.h"

struct template
{
    const struct config *point; /* the axes are the parameters of its workload */
    bool *used;                 /* by axis, set for those that occur; NULL: nobody asks */
};

/* Appends the word to the text, which has room for `size` bytes. STATUS_USAGE: {NAME} is no axis, a
 * brace is left over, or the room does not do. */
enum status template_fill(const struct template *t, const char *word, char *text, size_t size,
                          struct error *error);
/* The same of each word of a command line. */
enum status template_words(const struct template *t, const char *words, char *text, size_t size,
                           struct error *error);
/* See formula.h; the names are axes. */
enum status template_formula(const struct template *t, const char *formula, double *value,
                             struct error *error);

/* One axis as a program is to see it: without quotes. */
void template_axis(const struct config *point, size_t axis, char text[WORKLOAD_VALUE_TEXT]);
