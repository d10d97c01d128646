#include "program/run/handback.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/field.h"
#include "program/run/injected.h"

enum { LINE_BYTES = 4096 };

static enum status number_read(char **text, double *value, struct error *error)
{
    char *end;
    double read = strtod(*text, &end);
    if (end == *text || !strchr(" \n", *end) || !isfinite(read) || read < 0)
        return error_set(error, STATUS_FAILED, "'%.60s' is no number from 0", *text);
    *text = end;
    *value = read;
    return STATUS_OK;
}

static enum status region_take(double seconds, struct handback *handback, struct error *error)
{
    if (seconds == 0)
        return error_set(error, STATUS_FAILED, "a region of 0 s: nothing is done in no time");
    if (seconds > FIELD_SECONDS_MAX || handback->region_count == HANDBACK_REGIONS_MAX)
        return error_set(error, STATUS_FAILED, "more regions, or longer ones, than there can be");
    void *regions = array_grow(handback->regions, handback->region_count, sizeof seconds);
    if (!regions)
        return error_set(error, STATUS_FAILED, "out of memory");
    handback->regions = regions;
    handback->regions[handback->region_count++] = seconds;
    return STATUS_OK;
}

static enum status line_take(char *line, struct handback *handback, struct error *error)
{
    const bool region = strncmp(line, "region ", 7) == 0, verify = strncmp(line, "verify ", 7) == 0;
    char *text = line + 7;
    double first = 0, second = 0;
    if (!region && !verify) {
        line[strcspn(line, "\n")] = '\0';
        return error_set(error, STATUS_FAILED,
                         "'%.60s' is none of: region SECONDS, verify ERROR TOLERANCE", line);
    }
    TRY(number_read(&text, &first, error));
    if (region)
        return region_take(first, handback, error);
    TRY(number_read(&text, &second, error));
    /* The worst of several results is kept. */
    if (isnan(handback->verify_error) ||
        first - second > handback->verify_error - handback->verify_tolerance) {
        handback->verify_error = first;
        handback->verify_tolerance = second;
    }
    return STATUS_OK;
}

static enum status file_take(const char *name, FILE *file, void *argument, struct error *error)
{
    char line[LINE_BYTES];
    while (!injected_is(name) && fgets(line, sizeof line, file))
        TRY(line_take(line, argument, error));
    return STATUS_OK;
}

enum status handback_read(const struct scratch *folder, struct handback *handback,
                          struct error *error)
{
    struct handback read = {.verify_error = NAN, .verify_tolerance = NAN};
    enum status status = scratch_each(folder, file_take, &read, error);
    if (status)
        handback_clear(&read);
    else
        *handback = read;
    return error_prefix(error, status, "the program handed back");
}

void handback_clear(struct handback *handback)
{
    free(handback->regions);
    *handback = (struct handback){.verify_error = NAN, .verify_tolerance = NAN};
}
