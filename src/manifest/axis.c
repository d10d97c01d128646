#include "manifest/axis.h"

#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "base/text.h"

enum status room_take(size_t count, size_t *room, struct error *error)
{
    if (count > *room)
        return error_set(error, STATUS_USAGE,
                         "more than %d values in all lists, ranges and excludes together; make "
                         "several manifests of this one",
                         MANIFEST_VALUES_MAX);
    *room -= count;
    return STATUS_OK;
}

static enum status values_expect(const struct parameter *parameter, const struct axis *axis,
                                 uint64_t count, size_t *room, struct error *error)
{
    if (count > AXIS_VALUES_MAX - axis->count)
        return error_set(error, STATUS_USAGE, "%s: more than %d values", parameter->name,
                         AXIS_VALUES_MAX);
    return error_prefix(error, room_take((size_t)count, room, error), "%s", parameter->name);
}

static enum status value_append(struct axis *axis, struct value value, struct error *error)
{
    return ARRAY_ADD(axis->values, axis->count, value)
               ? STATUS_OK
               : error_set(error, STATUS_SYSTEM, "out of memory");
}

struct range {
    int64_t first, last, step;
    char operation; /* '*' or '+' */
};

static enum status range_parse(const struct parameter *parameter, char *item, struct range *range,
                               struct error *error)
{
    char *last = strchr(item, ':'), *step = strchr(last + 1, ':');
    char operation = step ? step[1 + strspn(step + 1, " \t")] : '\0';
    struct value a, b;
    bool step_kind = parameter->kind == PARAMETER_STEP && !strchr(item, 'x');
    if (parameter->kind != PARAMETER_INTEGER && !step_kind)
        return error_set(error, STATUS_USAGE,
                         "%s: '%s' is a range; only parameters that are one whole number have them",
                         parameter->name, item);
    if (operation != '*' && operation != '+')
        return error_set(error, STATUS_USAGE,
                         "%s: range '%s' has no step; write FIRST:LAST:*FACTOR or FIRST:LAST:+STEP",
                         parameter->name, item);
    *last++ = '\0';
    *step++ = '\0';
    TRY(parameter_parse(parameter, item, &a, error));
    TRY(parameter_parse(parameter, last, &b, error));
    *range = (struct range){a.first, b.first, 0, operation};
    enum status status = units_integer(strchr(step, operation) + 1, operation == '*' ? 2 : 1,
                                       INT32_MAX, &range->step, error);
    TRY(error_prefix(error, status, "%s: %s of a range", parameter->name,
                     operation == '*' ? "factor" : "step"));
    if (range->last < range->first)
        return error_set(error, STATUS_USAGE,
                         "%s: a range from %lld down to %lld; write it upwards", parameter->name,
                         (long long)range->first, (long long)range->last);
    return STATUS_OK;
}

static uint64_t range_count(const struct range *range)
{
    uint64_t count = 1;
    if (range->operation == '+')
        return (uint64_t)(range->last - range->first) / (uint64_t)range->step + 1;
    if (range->first == 0)
        return AXIS_VALUES_MAX + 1; /* a range from 0 would be endless, as 0 times a factor is 0 */
    for (int64_t i = range->first; i <= range->last / range->step; i *= range->step)
        ++count;
    return count;
}

static enum status range_append(const struct parameter *parameter, const struct range *range,
                                struct axis *axis, struct error *error)
{
    const bool both = parameter->kind == PARAMETER_STEP; /* an extent has rows and columns */
    bool geometric = range->operation == '*';
    /* The last value that a step may start from: the next one is in the range, and in int64_t. */
    int64_t stop = geometric ? range->last / range->step : range->last - range->step;
    for (int64_t i = range->first;; i = geometric ? i * range->step : i + range->step) {
        TRY(value_append(axis, (struct value){.first = i, .second = both ? i : 0}, error));
        if (i > stop)
            return STATUS_OK;
    }
}

static enum status item_append(const struct parameter *parameter, char *item, size_t *room,
                               struct axis *axis, struct error *error)
{
    struct value value;
    struct range range;
    enum status status;
    const bool sides = parameter->kind == PARAMETER_PADDING && !strpbrk(item, "*+"); /* 1:2 */
    if (parameter->kind != PARAMETER_TEXT && strchr(item, ':') && !sides) {
        status = range_parse(parameter, item, &range, error);
        if (status == STATUS_OK)
            status = values_expect(parameter, axis, range_count(&range), room, error);
        return status ? status : range_append(parameter, &range, axis, error);
    }
    status = parameter_parse(parameter, item, &value, error);
    bool several = strpbrk(item + (*item == '-'), " -[") || strstr(item, "..");
    if (status && several && !strchr(item, '#') &&
        (parameter->kind == PARAMETER_INTEGER || parameter->kind == PARAMETER_STEP))
        error_append(error, status, "; a list is 16, 32, 64, a range 16:64:*2");
    if (status == STATUS_OK)
        status = values_expect(parameter, axis, 1, room, error);
    return status ? status : value_append(axis, value, error);
}

enum status axis_parse(const struct parameter *parameter, const char *text, size_t *room,
                       struct axis *axis, struct error *error)
{
    struct axis parsed = {.line = axis->line};
    enum status status;
    for (;; ++text) {
        char item[WORKLOAD_VALUE_TEXT];
        status = parameter->kind == PARAMETER_TEXT
                     ? words_next_quoted(&text, ",", item, sizeof item, error)
                     : words_next(&text, ",", item, error);
        if (error_prefix(error, status, "%s", parameter->name) == STATUS_OK)
            status = item_append(parameter, item, room, &parsed, error);
        if (status || *text == '\0')
            break;
    }
    if (status)
        axis_clear(&parsed);
    else
        *axis = parsed;
    return status;
}

static int value_compare(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->second != y->second)
        return x->second < y->second ? -1 : 1;
    return strcmp(x->text, y->text);
}

enum status axis_distinct(const struct parameter *parameter, const struct axis *axis,
                          struct error *error)
{
    if (axis->count < 2)
        return STATUS_OK;
    struct value *sorted = malloc(axis->count * sizeof *sorted);
    if (!sorted)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    memcpy(sorted, axis->values, axis->count * sizeof *sorted);
    qsort(sorted, axis->count, sizeof *sorted, value_compare);
    enum status status = STATUS_OK;
    for (size_t i = 1; i < axis->count && status == STATUS_OK; ++i) {
        char text[WORKLOAD_VALUE_TEXT];
        if (value_compare(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        parameter_format(parameter, sorted[i], text);
        status = error_set(error, STATUS_USAGE, "%s: %s comes twice", parameter->name, text);
    }
    free(sorted);
    return status;
}

void axis_clear(struct axis *axis)
{
    free(axis->values);
    *axis = (struct axis){.line = axis->line};
}
