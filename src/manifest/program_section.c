#include "manifest/program_section.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "base/text.h"
#include "manifest/axis.h"
#include "manifest/exclusion.h"
#include "manifest/template.h"
#include "manifest/vary.h"
#include "model/workloads/program.h"

/* Keys that are no axes. */
static const char *const settings[] = {"command", "inherit", "iterations", "region",
                                       "replay",  "model",   "flops",      "bytes",
                                       "vary",    "exclude", NULL};
/* clang-format off */
const struct program_setting program_settings[] = {
    {"bytes", "-", "formula", "byte, of one iteration, where nothing is counted"},
    {"command", "-", "words", "what runs; {axis} is the axis' value"},
    {"env.NAME", "-", "text", "a variable of the program's environment; {axis} as in command"},
    {"flops", "-", "formula", "of one iteration, where nothing is counted"},
    {"inherit", "-", "names", "further variables that the program inherits"},
    {"iterations", "1", "1 to 1000000000", "iterations that one region holds"},
    {"model", "-", "workload", "workload whose model holds, of the axes with its parameters' names"},
    {"region", "profiler", "profiler, all or nvtx NAME", "what of the program counts"},
    {"replay", "runs", "runs or kernel", "what is repeated to count: regions and runs, or each kernel"},
    {"ungraphed.AXIS", "-", "value", "of the axis where no CUDA graph launches the same kernels"},
    {0},
};
/* clang-format on */

struct program_section *program_section_create(void)
{
    return calloc(1, sizeof(struct program_section));
}

void program_section_destroy(struct program_section *program)
{
    if (!program)
        return;
    for (size_t i = 0; i < program->line_count; ++i) {
        free(program->lines[i].key);
        free(program->lines[i].value);
    }
    free(program->lines);
    free(program);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool program_line_is_variable(const struct program_line *line)
{
    return begins(line->key, PROGRAM_VARIABLE);
}

bool program_line_is_ungraphed(const struct program_line *line)
{
    return begins(line->key, PROGRAM_UNGRAPHED_AXIS);
}

static bool is_axis(const struct program_line *line)
{
    return words_find(settings, line->key) < 0 && !program_line_is_variable(line) &&
           !program_line_is_ungraphed(line);
}

const struct program_line *program_section_line(const struct program_section *program,
                                                const char *key)
{
    for (size_t i = 0; i < program->line_count; ++i)
        if (strcmp(program->lines[i].key, key) == 0)
            return &program->lines[i];
    return NULL;
}

static bool is_name(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        ++length;
    return length > 0 && text[length] == '\0' && !isdigit((unsigned char)*text);
}

static enum status key_check(const struct program_section *program, const struct ini_line *line,
                             struct error *error)
{
    const struct program_line *earlier = program_section_line(program, line->key);
    int noted = earlier ? earlier->number : 0;
    const char *const prefixes[] = {PROGRAM_VARIABLE, PROGRAM_UNGRAPHED_AXIS};
    size_t prefix = 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; ++i)
        prefix = begins(line->key, prefixes[i]) ? strlen(prefixes[i]) : prefix;
    if (!is_name(line->key + prefix))
        return error_set(
            error, STATUS_USAGE,
            "'%s' is no name of an axis or of a variable, env.NAME, ungraphed.AXIS; allowed: letters, "
            "digits and _, no digit first",
            line->key);
    return ini_line_first(line, &noted, error);
}

enum status program_section_take(struct section *section, const struct ini_line *line,
                                 struct error *error)
{
    struct program_section *program = section->program;
    enum status status = key_check(program, line, error);
    if (status)
        return status;
    struct program_line kept = {strdup(line->key), strdup(line->value), line->number};
    void *lines = array_grow(program->lines, program->line_count, sizeof kept);
    if (lines)
        program->lines = lines;
    if (!lines || !kept.key || !kept.value) {
        free(kept.key);
        free(kept.value);
        return error_set(error, STATUS_SYSTEM, "out of memory");
    }
    program->lines[program->line_count++] = kept;
    return STATUS_OK;
}

/* ---- axes ---- */

/* Whole numbers, lists and ranges of them; everything else is words. */
static bool is_numbers(const char *text)
{
    return text[strspn(text, "0123456789,:*+ \t")] == '\0';
}

static int line_compare(const void *a, const void *b)
{
    const struct program_line *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static enum status axes_collect(const struct program_section *program,
                                const struct program_line *axes[WORKLOAD_PARAMETERS_MAX],
                                size_t *count, struct error *error)
{
    for (size_t i = 0; i < program->line_count; ++i) {
        if (!is_axis(&program->lines[i]))
            continue;
        if (*count == WORKLOAD_PARAMETERS_MAX)
            return error_set(error, STATUS_USAGE, "more than %d axes", WORKLOAD_PARAMETERS_MAX);
        axes[(*count)++] = &program->lines[i];
    }
    qsort(axes, *count, sizeof(const struct program_line *), line_compare);
    return STATUS_OK;
}

/* A text has as much room in a configuration as its longest value takes. */
static int64_t longest(const struct axis *axis)
{
    size_t most = 0;
    for (size_t i = 0; i < axis->count; ++i)
        if (strlen(axis->values[i].text) > most)
            most = strlen(axis->values[i].text);
    return (int64_t)most;
}

static enum status axis_make(const struct program_line *line, struct parameter *parameter,
                             struct axis *axis, size_t *room, struct error *error)
{
    bool numbers = is_numbers(line->value);
    *parameter = (struct parameter){
        .name = line->key,
        .kind = numbers ? PARAMETER_INTEGER : PARAMETER_TEXT,
        .series = !numbers,
        .maximum = numbers ? INT64_MAX / 2 : WORKLOAD_STRING - 1,
        .initial = numbers ? "0" : "",
        .help = "axis of a program",
    };
    axis->line = line->number;
    enum status status = axis_parse(parameter, line->value, room, axis, error);
    if (status == STATUS_OK && !numbers)
        parameter->maximum = longest(axis);
    return status;
}

static enum status axes_make(struct section *section, size_t *room, int *line, struct error *error)
{
    struct program_section *program = section->program;
    const struct program_line *axes[WORKLOAD_PARAMETERS_MAX];
    size_t count = 0;
    int64_t strings = 0;
    enum status status = axes_collect(program, axes, &count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; ++i) {
        struct parameter *parameter = &program->parameters[i];
        *line = axes[i]->number;
        status = axis_make(axes[i], parameter, &section->axes[i], room, error);
        strings += parameter->kind == PARAMETER_TEXT ? parameter->maximum + 1 : 0;
        if (status == STATUS_OK && strings > WORKLOAD_STRINGS)
            status = error_set(error, STATUS_USAGE, "the words of all axes are too long");
    }
    program->workload = (struct workload){
        .name = program_workload.name, .parameters = program->parameters, .count = count};
    section->workload = &program->workload;
    return status;
}

enum status program_axis_set(struct config *point, const char *name, const char *text,
                             struct error *error)
{
    int axis = workload_parameter(point->workload, name);
    struct value value;
    if (axis < 0)
        return error_set(error, STATUS_USAGE, "'%s' is no axis of this section", name);
    const struct parameter *parameter = &point->workload->parameters[axis];
    enum status status = parameter_parse(parameter, text, &value, error);
    if (status == STATUS_OK)
        config_set(point, (size_t)axis, &value);
    return status;
}

/* ---- the section as a whole ---- */

/* The first value of each axis. */
static struct config point_first(const struct section *section)
{
    struct config point = config_default(section->workload);
    for (size_t i = 0; i < section->workload->count; ++i)
        config_set(&point, i, &section->axes[i].values[0]);
    return point;
}

static enum status region_check(const char *text, struct error *error)
{
    char hint[WORDS_HINT];
    bool range = strncmp(text, PROGRAM_NVTX, strlen(PROGRAM_NVTX)) == 0;
    if (strlen(text) <= PROGRAM_REGION && (range || words_find(program_regions, text) >= 0))
        return STATUS_OK;
    words_hint(program_regions, text, hint);
    return error_set(error, STATUS_USAGE, "region: '%s' is unknown%s, or nvtx NAME", text, hint);
}

static bool is_modelled(const struct workload *workload)
{
    return workload && workload->cost && workload != &program_workload;
}

static enum status refuse_model(const char *text, struct error *error)
{
    char hint[WORDS_HINT];
    workload_hint(NULL, is_modelled, text, hint);
    return error_set(error, STATUS_USAGE, "model: '%.60s' is no workload that is modelled%s", text,
                     hint);
}

static enum status model_check(const char *text, bool *used, const struct workload *axes,
                               struct error *error)
{
    const struct workload *model = workload_find(text);
    if (!is_modelled(model))
        return refuse_model(text, error);
    for (size_t i = 0; i < axes->count; ++i)
        used[i] |= workload_parameter(model, axes->parameters[i].name) >= 0;
    return STATUS_OK;
}

static enum status inherit_check(const char *text, struct error *error)
{
    while (true) {
        char item[WORDS_ITEM];
        enum status status = words_next(&text, ",", item, error);
        if (status == STATUS_OK && !is_name(item))
            status = error_set(error, STATUS_USAGE, "'%s' is no name of a variable", item);
        if (status) {
            error_prefix(error, "inherit");
            return status;
        }
        if (*text == '\0')
            return STATUS_OK;
        ++text;
    }
}

static enum status number_check(const char *text, struct error *error)
{
    int64_t unused;
    enum status status = units_integer(text, 1, 1000000000, &unused, error);
    if (status)
        error_prefix(error, "iterations");
    return status;
}

static enum status replay_check(const char *text, struct error *error)
{
    int unused;
    enum status status = words_parse(program_replays, text, &unused, error);
    if (status)
        error_prefix(error, "replay");
    return status;
}

/* A value that the axis could have. */
static enum status ungraphed_check(const struct section *section, const struct program_line *line,
                                   struct error *error)
{
    struct config point = point_first(section);
    enum status status =
        program_axis_set(&point, line->key + strlen(PROGRAM_UNGRAPHED_AXIS), line->value, error);
    if (status)
        error_prefix(error, "%s", line->key);
    return status;
}

static enum status line_check(struct section *section, const struct program_line *line, bool *used,
                              size_t *room, struct error *error)
{
    const struct config first = point_first(section);
    const struct template template = {&first, used};
    const char *key = line->key, *value = line->value;
    char unused[PROGRAM_COMMAND + 1] = "";
    double number;
    if (strcmp(key, "command") == 0)
        return template_words(&template, value, unused, sizeof unused, error);
    if (program_line_is_variable(line))
        return template_fill(&template, value, unused, sizeof unused, error);
    if (program_line_is_ungraphed(line))
        return ungraphed_check(section, line, error);
    if (strcmp(key, "replay") == 0)
        return replay_check(value, error);
    if (strcmp(key, "flops") == 0 || strcmp(key, "bytes") == 0)
        return template_formula(&template, value, &number, error);
    if (strcmp(key, "region") == 0)
        return region_check(value, error);
    if (strcmp(key, "model") == 0)
        return model_check(value, used, section->workload, error);
    if (strcmp(key, "inherit") == 0)
        return inherit_check(value, error);
    if (strcmp(key, "iterations") == 0)
        return number_check(value, error);
    if (strcmp(key, "vary") == 0)
        return vary_parse(value, &section->vary, error);
    if (strcmp(key, "exclude") == 0) {
        section->exclude_line = line->number;
        enum status status = exclusions_parse(section->workload, value, room, &section->exclusions,
                                              &section->exclusion_count, error);
        if (status)
            error_prefix(error, "exclude");
        return status;
    }
    return STATUS_OK;
}

/* An axis says something: to the program, to its model, or whose roof it is (precision). */
static enum status axes_check(const struct section *section, const bool *used, int *line,
                              struct error *error)
{
    const struct workload *workload = section->workload;
    for (size_t i = 0; i < workload->count; ++i) {
        const char *name = workload->parameters[i].name;
        char hint[WORDS_HINT];
        if (used[i] || strcmp(name, "precision") == 0)
            continue;
        *line = section->axes[i].line;
        words_hint(settings, name, hint);
        return error_set(
            error, STATUS_USAGE,
            "axis '%s' is used by neither command, env., flops, bytes nor model; write "
            "{%s} into the command. Keys that are no axes%s, env.NAME, ungraphed.AXIS",
            name, name, hint);
    }
    return STATUS_OK;
}

static enum status finish(struct section *section, size_t *room, int *line, struct error *error)
{
    const struct program_section *program = section->program;
    bool used[WORKLOAD_PARAMETERS_MAX] = {false};
    *line = section->line;
    if (!program_section_line(program, "command"))
        return error_set(error, STATUS_USAGE, "[program %s] has no command", section->label);
    enum status status = axes_make(section, room, line, error);
    for (size_t i = 0; i < program->line_count && status == STATUS_OK; ++i) {
        *line = program->lines[i].number;
        status = line_check(section, &program->lines[i], used, room, error);
    }
    return status ? status : axes_check(section, used, line, error);
}

enum status program_section_finish(struct section *section, const char *path, size_t *room,
                                   struct error *error)
{
    int line;
    enum status status = finish(section, room, &line, error);
    if (status)
        error_prefix(error, "%s:%d", path, line);
    return status;
}
