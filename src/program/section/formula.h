/* Formulas over the axes of a section, as in "2*batch*(height/stride)*filters": numbers, names, + -
 * * / and parentheses. */
#pragma once

#include <stdbool.h>

#include "base/status.h"

/* Sets *value to that of the name; false if there is no such name, or it is no number. */
typedef bool formula_lookup(void *user, const char *name, double *value);

/* STATUS_USAGE: what is no formula, what has no value, and a result that is not finite and above
 * 0. */
enum status formula_evaluate(const char *text, formula_lookup *lookup, void *user, double *value,
                             struct error *error);
