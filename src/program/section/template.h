/* Texts and formulas with the values of axes in them: "--batch {batch}", "2*batch*filters". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "model/workload.h"

struct template
{
    const struct config *point; /* values of the axes; its workload has the axes as parameters */
    bool *used;                 /* set for each axis that occurs in a text or formula */
};

/* Appends a word to `text`, of `size` bytes, with the value for each {AXIS}; "{{" and "}}" stand
 * for braces. STATUS_USAGE: an unknown axis, a single brace, or a text that does not fit. */
enum status template_fill(const struct template *t, const char *word, char *text, size_t size,
                          struct error *error);
/* Fills each word of a command line, and appends the words. */
enum status template_words(const struct template *t, const char *words, char *text, size_t size,
                           struct error *error);
/* Evaluates a formula of numbers, axes, + - * / and parentheses. The value of an axis of words may
 * be a number, such as 0.5. STATUS_USAGE: `formula` is no formula, the value of an axis is no
 * number, or the result is not finite or not above 0. */
enum status template_formula(const struct template *t, const char *formula, double *value,
                             struct error *error);

/* The axis as a program sees it: without quotes. */
void template_axis(const struct config *point, size_t axis, char text[WORKLOAD_VALUE_TEXT]);
