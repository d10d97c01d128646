/* Converts quantities with units from and to text. All values are in SI units; only these functions
 * scale them. */
#pragma once

#include <stdint.h>

#include "base/status.h"

/* Parses a whole decimal number from `minimum` to `maximum`; blanks around it are allowed. */
enum status units_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *value,
                          struct error *error);
/* Parses a finite decimal number; blanks around it are allowed. Returns the place after the number;
 * NULL: there is none. Refuses "inf", "nan" and hexadecimal numbers, which strtod accepts. */
const char *units_number(const char *text, double *number);
/* Converts "120 s", "500 ms", "20 us", "2 min", "1.5 h" or "01:30:00" to seconds, from 1e-6 to 1e9.
 * The error for a number without a unit names the units. */
enum status units_duration(const char *text, double *seconds, struct error *error);
/* Converts "0.5 %" to a fraction, at least 1e-8 and less than 1. Refuses a number without "%". */
enum status units_fraction(const char *text, double *fraction, struct error *error);
/* Parses "yes" or "no". */
enum status units_flag(const char *text, int *value, struct error *error);

enum { UNITS_TEXT = 24 };
/* "4.680 TB/s", "1.230 ms": four significant digits and an SI prefix before `unit`; "-" for NaN. */
void units_format(double value, const char *unit, char text[UNITS_TEXT]);
