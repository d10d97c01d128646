#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* s; clocks do not resolve shorter times, and longer times are typos */
#define DURATION_MIN 1e-6
#define DURATION_MAX 1e9

static const char *blanks_skip(const char *text)
{
    return text + strspn(text, " \t");
}

const char *units_number(const char *text, double *number)
{
    char *rest;
    text = blanks_skip(text);
    const char *digits = text + strspn(text, "+-");
    if (strspn(digits, ".0123456789") == 0 || tolower((unsigned char)digits[1]) == 'x')
        return NULL;
    *number = strtod(text, &rest);
    return rest == text || !isfinite(*number) ? NULL : blanks_skip(rest);
}

enum status units_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *value,
                          struct error *error)
{
    const char *digits = blanks_skip(text);
    char *rest = NULL;
    errno = 0;
    long long number = 0;
    if (isdigit((unsigned char)digits[digits[0] == '-']))
        number = strtoll(digits, &rest, 10);
    if (!rest || *blanks_skip(rest) || errno || number < minimum || number > maximum)
        return error_set(error, STATUS_USAGE, "'%.60s' is not a whole number from %lld to %lld",
                         text, (long long)minimum, (long long)maximum);
    *value = number;
    return STATUS_OK;
}

/* Parses durations as Slurm writes them: D-HH, D-HH:MM, D-HH:MM:SS, H:MM:SS, M:SS. */
static bool clock_scan(const char *text, double *seconds)
{
    double parts[4] = {0};
    int count = 0, days = 0;
    for (text = blanks_skip(text); count < 4; ++text) {
        const char *digits = text;
        for (; isdigit((unsigned char)*text); ++text)
            parts[count] = parts[count] * 10 + (*text - '0');
        if (text == digits || (count > days && (text - digits != 2 || parts[count] >= 60)))
            return false;
        days |= count++ == 0 && *text == '-';
        if (*text != (count == 1 && days ? '-' : ':'))
            break;
    }
    if (*blanks_skip(text) || count < 2 || count > 3 + days)
        return false;
    const double unit[] = {86400, 3600, 60, 1};
    const int first = days ? 0 : 4 - count;
    *seconds = 0;
    for (int i = 0; i < count; ++i)
        *seconds += parts[i] * unit[first + i];
    return true;
}

enum status units_duration(const char *text, double *seconds, struct error *error)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
    double number;
    if (clock_scan(text, &number) && number >= DURATION_MIN && number <= DURATION_MAX) {
        *seconds = number;
        return STATUS_OK;
    }
    const char *unit = units_number(text, &number);
    size_t length = unit ? strcspn(unit, " \t") : 0;
    for (size_t i = 0; length && !*blanks_skip(unit + length) && i < sizeof units / sizeof *units;
         ++i) {
        double result = number * units[i].seconds;
        if (strlen(units[i].name) == length && !memcmp(unit, units[i].name, length) &&
            result >= DURATION_MIN && result <= DURATION_MAX) {
            *seconds = result;
            return STATUS_OK;
        }
    }
    return error_set(
        error, STATUS_USAGE,
        "'%.60s' is not a duration; write a positive number and a unit (us, ms, s, min, "
        "h), as in '1.5 s', or D-HH:MM:SS, H:MM:SS, M:SS; from 1 us to %.0f s",
        text, DURATION_MAX);
}

enum status units_fraction(const char *text, double *fraction, struct error *error)
{
    double number;
    const char *rest = units_number(text, &number);
    if (!rest || *rest != '%' || *blanks_skip(rest + 1) || !(number >= 1e-6) || number >= 100)
        return error_set(error, STATUS_USAGE,
                         "'%.60s' is not a percentage; write a number from 1e-6 to below 100 and "
                         "a %%, as in '0.5 %%'",
                         text);
    *fraction = number / 100;
    return STATUS_OK;
}

enum status units_flag(const char *text, int *value, struct error *error)
{
    bool yes = strcmp(text, "yes") == 0;
    if (!yes && strcmp(text, "no") != 0)
        return error_set(error, STATUS_USAGE, "'%.60s' is neither yes nor no", text);
    *value = yes;
    return STATUS_OK;
}

void units_format(double value, const char *unit, char text[UNITS_TEXT])
{
    static const char *const prefixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    enum { BASE = 3, LAST = sizeof prefixes / sizeof *prefixes - 1 };
    int prefix = BASE;
    if (isnan(value)) {
        snprintf(text, UNITS_TEXT, "-");
        return;
    }
    /* Four digits would print 999.95 as 1000, which belongs to the next prefix. */
    for (; value != 0 && fabs(value) < 0.99995 && prefix > 0; --prefix)
        value *= 1000;
    for (; isfinite(value) && fabs(value) >= 999.95 && prefix < LAST; ++prefix)
        value /= 1000;
    snprintf(text, UNITS_TEXT, "%#.4g %s%s", value, prefixes[prefix], unit);
}
