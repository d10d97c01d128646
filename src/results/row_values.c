#include "results/row_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/workloads/program.h"

struct row_values row_values_of(const struct record *record, const struct device *device)
{
    return (struct row_values){record, device, derived_row_of(record, device)};
}

static void word_set_plain(struct advice_value *value, const char *word)
{
    snprintf(value->word, sizeof value->word, "%.*s", ADVICE_VALUE - 1, word);
}

static void text_take(const struct field *field, const void *member, struct advice_value *value)
{
    (void)field;
    word_set_plain(value, member);
}

static void integer_take(const struct field *field, const void *member, struct advice_value *value)
{
    (void)field;
    const int64_t *number = member;
    value->number = *number == FIELD_MISSING ? NAN : (double)*number;
}

static void double_take(const struct field *field, const void *member, struct advice_value *value)
{
    (void)field;
    memcpy(&value->number, member, sizeof value->number);
}

static void flag_take(const struct field *field, const void *member, struct advice_value *value)
{
    const int64_t *flag = member;
    if (*flag != FIELD_MISSING)
        word_set_plain(value, field->flags[*flag]);
}

static void outcome_take(const struct field *field, const void *member, struct advice_value *value)
{
    char text[OUTCOME_TEXT];
    outcome_format(member, field->flags, text);
    word_set_plain(value, text);
}

/* By type; NULL: no single value, or by level. */
static void (*const takes[])(const struct field *field, const void *member,
                             struct advice_value *value) = {
    [FIELD_TEXT] = text_take, [FIELD_INTEGER] = integer_take, [FIELD_DOUBLE] = double_take,
    [FIELD_FLAG] = flag_take, [FIELD_OUTCOME] = outcome_take, [FIELD_WORD] = NULL,
};

static bool level_take(const double values[LEVEL_COUNT], const char *level,
                       struct advice_value *value)
{
    for (int i = 0; i < LEVEL_COUNT; ++i)
        if (strcmp(memory_level_name[i], level) == 0) {
            value->number = values[i];
            return true;
        }
    return false;
}

static bool field_value(const struct field *table, const void *structure, const char *name,
                        const char *level, struct advice_value *value)
{
    for (const struct field *field = table; field->name; ++field) {
        const void *member = (const char *)structure + field->offset;
        if (strcmp(field->name, name) != 0)
            continue;
        if (field->type == FIELD_LEVELS)
            return level_take(member, level, value);
        if (!takes[field->type] || *level)
            return false;
        takes[field->type](field, member, value);
        return true;
    }
    return false;
}

/* A program has the parameters of other workloads as axes. */
static bool parameter_value(const struct config *config, const char *name,
                            struct advice_value *value)
{
    char text[WORKLOAD_VALUE_TEXT], *end;
    int i = config->workload ? workload_parameter(config->workload, name) : -1;
    if (i >= 0)
        parameter_format(&config->workload->parameters[i], config_get(config, (size_t)i), text);
    else if (!config_is_program(config) || !program_axis(config, name, text))
        return false;
    double number = strtod(text, &end);
    if (end != text && *end == '\0')
        value->number = number;
    else
        word_set_plain(value, text);
    return true;
}

bool row_value(const void *row, const char *name, const char *level, struct advice_value *value)
{
    static const char prefix[] = "config_";
    const struct row_values *values = row;
    *value = (struct advice_value){"", NAN};
    if (strcmp(name, "device_kind") == 0) {
        word_set_plain(value, values->device->kind);
        return true;
    }
    /* A parameter whose name is taken; parameters_nc.c. */
    if (strncmp(name, prefix, strlen(prefix)) == 0 &&
        parameter_value(&values->record->config, name + strlen(prefix), value))
        return true;
    return field_value(record_fields, values->record, name, level, value) ||
           field_value(derived_row_fields, &values->derived, name, level, value) ||
           (!*level && parameter_value(&values->record->config, name, value));
}
