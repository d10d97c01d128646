/* Text to quantity, and quantity to text that people read. SI inside, scaled only here. */
#pragma once

#include <stdint.h>

#include "base/status.h"

/* A whole decimal number within [minimum, maximum]; nothing before or after it but blanks. */
enum status units_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *value,
                          struct error *error);
/* "120 s", "500 ms", "20 us", "2 min", "1.5 h", "01:30:00" to seconds, positive, at most 1e9. A
 * bare number is an error that names the units. */
enum status units_duration(const char *text, double *seconds, struct error *error);
/* "0.5 %" to a fraction in (0, 1). A bare 0.5 could be meant as either, and is refused. */
enum status units_fraction(const char *text, double *fraction, struct error *error);
enum status units_flag(const char *text, int *value, struct error *error); /* yes, no */

enum { UNITS_TEXT = 24 };
/* "4.680 TB/s", "1.230 ms": four significant digits, so that the numbers of a column have one form,
 * and an SI prefix in front of `unit`; "-" for NaN. */
void units_format(double value, const char *unit, char text[UNITS_TEXT]);
