/* Texts and formulas with the values of axes in them: "--batch {batch}", "2*batch*filters". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "model/workload.h"

struct template
{
    const struct config *point; /* the axes are the parameters of its workload */
    bool *used;                 /* by axis; set for axes that occur */
};

/* Appends a word to `text`, of `size` bytes, with the value for each {AXIS}; "{{" and "}}" stand
 * for braces. STATUS_USAGE: an unknown axis, a single brace, or a text that does not fit. */
enum status template_fill(const struct template *t, const char *word, char *text, size_t size,
                          struct error *error);
/* Fills each word of a command line, and appends the words. */
enum status template_words(const struct template *t, const char *words, char *text, size_t size,
                           struct error *error);
/* Evaluates numbers, axes, + - * / and parentheses. A word that is a number, as 0.5, counts as one.
 * STATUS_USAGE: no formula, an axis whose value is no number, or a result that is not finite and
 * above 0. */
enum status template_formula(const struct template *t, const char *formula, double *value,
                             struct error *error);

/* The axis as a program sees it: without quotes. */
void template_axis(const struct config *point, size_t axis, char text[WORKLOAD_VALUE_TEXT]);
