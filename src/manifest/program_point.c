#include "manifest/program_point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/text.h"
#include "manifest/program_section.h"
#include "manifest/template.h"
#include "model/workloads/program.h"

static void text_set(struct config *config, const char *parameter, const char *text)
{
    struct value value = {0};
    snprintf(value.text, sizeof value.text, "%s", text);
    config_set(config, (size_t)workload_parameter(config->workload, parameter), &value);
}

static enum status axes_put(const struct config *point, char *out, size_t size, struct error *error)
{
    for (size_t i = 0; i < point->workload->count; ++i) {
        char value[WORKLOAD_VALUE_TEXT], word[2 * WORKLOAD_VALUE_TEXT];
        template_axis(point, i, value);
        snprintf(word, sizeof word, "%s=%s", point->workload->parameters[i].name, value);
        if (!command_line_append(out, size, word))
            return error_set(error, STATUS_USAGE, "a point of more than %zu bytes", size - 1);
    }
    return STATUS_OK;
}

static int variable_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status inherited_put(const char *text, char *out, size_t size, struct error *error)
{
    while (true) {
        char item[WORDS_ITEM];
        enum status status = words_next(&text, ",", item, error);
        if (status)
            return status;
        if (!command_line_append(out, size, item))
            return error_set(error, STATUS_USAGE, "an environment of more than %zu bytes",
                             size - 1);
        if (*text == '\0')
            return STATUS_OK;
        ++text;
    }
}

/* Sorted by name: the order of lines says nothing. */
static enum status environment_put(const struct program_section *program, const struct template *t,
                                   char *out, size_t size, struct error *error)
{
    const char *keys[64];
    size_t count = 0;
    const struct program_line *inherit = program_section_line(program, "inherit");
    for (size_t i = 0; i < program->line_count; ++i)
        if (program_line_is_variable(&program->lines[i])) {
            if (count == sizeof keys / sizeof *keys)
                return error_set(error, STATUS_USAGE, "more than %zu variables", count);
            keys[count++] = program->lines[i].key;
        }
    qsort(keys, count, sizeof *keys, variable_compare);
    for (size_t i = 0; i < count; ++i) {
        char word[WORKLOAD_STRING];
        snprintf(word, sizeof word, "%s=", keys[i] + strlen(PROGRAM_VARIABLE));
        enum status status = template_fill(t, program_section_line(program, keys[i])->value, word,
                                           sizeof word, error);
        if (status)
            return status;
        if (!command_line_append(out, size, word))
            return error_set(error, STATUS_USAGE, "an environment of more than %zu bytes",
                             size - 1);
    }
    return inherit ? inherited_put(inherit->value, out, size, error) : STATUS_OK;
}

static enum status formula_put(const struct program_section *program, const struct template *t,
                               const char *key, const char *parameter, struct config *config,
                               struct error *error)
{
    const struct program_line *line = program_section_line(program, key);
    char text[PROGRAM_NUMBER + 1];
    double value;
    if (!line)
        return STATUS_OK;
    enum status status = template_formula(t, line->value, &value, error);
    if (status)
        return status;
    snprintf(text, sizeof text, "%.15g", value);
    text_set(config, parameter, text);
    return STATUS_OK;
}

static enum status texts_put(const struct program_section *program, const struct template *t,
                             struct config *config, struct error *error)
{
    char command[PROGRAM_COMMAND + 1] = "", environment[PROGRAM_ENVIRONMENT + 1] = "";
    char axes[PROGRAM_AXES + 1] = "";
    enum status status = template_words(t, program_section_line(program, "command")->value, command,
                                        sizeof command, error);
    if (status == STATUS_OK)
        status = environment_put(program, t, environment, sizeof environment, error);
    if (status == STATUS_OK)
        status = axes_put(t->point, axes, sizeof axes, error);
    if (status)
        return status;
    text_set(config, "command", command);
    text_set(config, "environment", environment);
    text_set(config, "axes", axes);
    return STATUS_OK;
}

/* ---- the same without CUDA graphs ---- */

/* The entry is a word of its own, see `ungraphed` in model/workloads/program.h. */
static enum status entry_put(char *out, size_t size, const char *entry, struct error *error)
{
    return command_line_append(out, size, entry)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "ungraphed: what differs takes more than %zu bytes",
                           size - 1);
}

/* Words that differ; with `index`, as "INDEX:WORD". */
static enum status differences_put(const char *text, const char *other, bool index, char *out,
                                   size_t size, struct error *error)
{
    struct command_line a, b;
    enum status status = command_line_split(text, &a, error);
    if (status)
        return status;
    status = command_line_split(other, &b, error);
    for (size_t i = 0; status == STATUS_OK && i < a.count && i < b.count; ++i) {
        char entry[WORKLOAD_STRING + 24];
        if (strcmp(a.words[i], b.words[i]) == 0)
            continue;
        snprintf(entry, sizeof entry, "%zu:%s", i, b.words[i]);
        status = entry_put(out, size, index ? entry : b.words[i], error);
    }
    command_line_clear(&a);
    if (status == STATUS_OK)
        command_line_clear(&b);
    return status;
}

/* The point with the axes that ungraphed.AXIS names. */
static enum status ungraphed_point(const struct program_section *program, struct config *point,
                                   struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < program->line_count && status == STATUS_OK; ++i)
        if (program_line_is_ungraphed(&program->lines[i]))
            status = program_axis_set(point, program->lines[i].key + strlen(PROGRAM_UNGRAPHED_AXIS),
                                      program->lines[i].value, error);
    return status;
}

/* Nothing, where the point is without graphs itself. */
static enum status ungraphed_put(const struct program_section *program, const struct template *t,
                                 struct config *config, struct error *error)
{
    struct config point = *t->point;
    const struct template plain = {&point, NULL};
    char command[PROGRAM_COMMAND + 1] = "", environment[PROGRAM_ENVIRONMENT + 1] = "";
    char out[PROGRAM_UNGRAPHED + 1] = "";
    enum status status = ungraphed_point(program, &point, error);
    if (status == STATUS_OK)
        status = template_words(&plain, program_section_line(program, "command")->value, command,
                                sizeof command, error);
    if (status == STATUS_OK)
        status = environment_put(program, &plain, environment, sizeof environment, error);
    if (status == STATUS_OK)
        status = differences_put(config_value(config, "command").text, command, true, out,
                                 sizeof out, error);
    if (status == STATUS_OK)
        status = differences_put(config_value(config, "environment").text, environment, false, out,
                                 sizeof out, error);
    if (status == STATUS_OK)
        text_set(config, "ungraphed", out);
    return status;
}

/* ---- settings ---- */

/* An axis `precision` that is a word of the parameter says whose peak is the roof. */
static void precision_put(struct config *config)
{
    int parameter = workload_role(config->workload, ROLE_PRECISION);
    char text[WORKLOAD_STRING];
    struct value value;
    struct error unused;
    if (program_axis(config, "precision", text) &&
        parameter_parse(&config->workload->parameters[parameter], text, &value, &unused) ==
            STATUS_OK)
        config_set(config, (size_t)parameter, &value);
}

static enum status settings_put(const struct program_section *program, struct config *config,
                                struct error *error)
{
    const struct program_line *iterations = program_section_line(program, "iterations");
    const struct program_line *region = program_section_line(program, "region");
    const struct program_line *model = program_section_line(program, "model");
    const struct program_line *replay = program_section_line(program, "replay");
    struct value value = {.first = 1};
    struct config modelled;
    if (iterations)
        value.first = strtoll(iterations->value, NULL, 10);
    config_set(config, (size_t)workload_parameter(config->workload, "iterations"), &value);
    if (region)
        text_set(config, "region", region->value);
    if (replay) {
        value.first = words_find(program_replays, replay->value);
        config_set(config, (size_t)workload_parameter(config->workload, "replay"), &value);
    }
    precision_put(config);
    if (!model)
        return STATUS_OK;
    text_set(config, "modelled_as", model->value);
    enum status status =
        program_model_config(config, workload_find(model->value), &modelled, error);
    if (status)
        error_prefix(error, "model = %s", model->value);
    return status;
}

enum status program_point_expand(const struct section *section, const char *path,
                                 const struct config *point, struct config *config,
                                 struct error *error)
{
    const struct program_section *program = section->program;
    const struct template template = {point, NULL};
    struct config made = config_default(&program_workload);
    enum status status = texts_put(program, &template, &made, error);
    if (status == STATUS_OK)
        status = settings_put(program, &made, error);
    if (status == STATUS_OK)
        status = ungraphed_put(program, &template, &made, error);
    if (status == STATUS_OK)
        status = formula_put(program, &template, "flops", "model_flops", &made, error);
    if (status == STATUS_OK)
        status = formula_put(program, &template, "bytes", "model_bytes", &made, error);
    if (status)
        error_prefix(error, "%s:%d: [program %s]", path, section->line, section->label);
    else
        *config = made;
    return status;
}
