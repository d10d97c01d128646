#include "manifest/program_section.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/command_line.h"
#include "base/text.h"
#include "base/units.h"
#include "manifest/axis.h"
#include "manifest/section.h"
#include "manifest/template.h"
#include "model/workloads/program.h"

/* env.NAME: a variable of the program's environment. */
#define VARIABLE "env."
/* ungraphed.AXIS: the axis' value in a run without CUDA graphs. */
#define UNGRAPHED "ungraphed."

/* Whether each row has a process of its own, or asks one for its axes that others ask, too. */
static const char *const processes[] = {"own", "shared", NULL};

struct line {
    char *key, *value; /* owned */
    int number;
};

struct program_section {
    struct line *lines; /* owned; as they stand */
    size_t line_count;
    struct workload workload; /* the axes, once finished; their names lie in lines */
    struct parameter parameters[WORKLOAD_PARAMETERS_MAX];
};

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

static const char *line_find(const struct program_section *program, const char *key, int *number)
{
    for (size_t i = 0; i < program->line_count; ++i)
        if (strcmp(program->lines[i].key, key) == 0) {
            *number = program->lines[i].number;
            return program->lines[i].value;
        }
    return NULL;
}

/* NULL: the section has no such key. */
static const char *value_of(const struct program_section *program, const char *key)
{
    int unused;
    return line_find(program, key, &unused);
}

/* Its number in `words`, whose case does not matter; 0 where the key is not there. A checked value.
 */
static int named_word(const struct program_section *program, const char *key,
                      const char *const *words)
{
    const char *text = value_of(program, key);
    struct error unused;
    int number = 0;
    if (text)
        (void)words_parse(words, text, &number, &unused);
    return number;
}

static bool is_name(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        ++length;
    return length > 0 && text[length] == '\0' && !isdigit((unsigned char)*text);
}

enum status program_section_take(struct section *section, const struct ini_line *line,
                                 struct error *error)
{
    struct program_section *program = section->program;
    const char *const prefixes[] = {VARIABLE, UNGRAPHED};
    size_t prefix = 0;
    int noted = 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; ++i)
        prefix = begins(line->key, prefixes[i]) ? strlen(prefixes[i]) : prefix;
    if (!is_name(line->key + prefix))
        return error_set(
            error, STATUS_USAGE,
            "'%s' is no name of an axis or of a variable, env.NAME, ungraphed.AXIS; allowed: "
            "letters, digits and _, no digit first",
            line->key);
    line_find(program, line->key, &noted);
    TRY(ini_line_first(line, &noted, error));
    struct line kept = {strdup(line->key), strdup(line->value), line->number};
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

/* ---- axes: the keys that are no settings ---- */

static const struct program_key *key_find(const char *key);

static int line_compare(const void *a, const void *b)
{
    const struct line *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

/* Whole numbers, lists and ranges of them are numbers, everything else is words. */
static enum status axis_make(const struct line *line, struct parameter *parameter,
                             struct axis *axis, size_t *room, struct error *error)
{
    bool numbers = line->value[strspn(line->value, "0123456789,:*+ \t")] == '\0';
    *parameter = (struct parameter){
        .name = line->key,
        .kind = numbers ? PARAMETER_INTEGER : PARAMETER_TEXT,
        .series = !numbers,
        .maximum = numbers ? INT64_MAX / 2 : WORKLOAD_STRING - 1,
        .initial = numbers ? "0" : "",
        .help = "axis of a program",
    };
    axis->line = line->number;
    TRY(axis_parse(parameter, line->value, room, axis, error));
    if (numbers)
        return STATUS_OK;
    /* A text has as much room in a configuration as its longest value takes. */
    parameter->maximum = 0;
    for (size_t i = 0; i < axis->count; ++i) {
        int64_t length = (int64_t)strlen(axis->values[i].text);
        parameter->maximum = length > parameter->maximum ? length : parameter->maximum;
    }
    return STATUS_OK;
}

/* *line: the one that an error is about. */
static enum status axes_make(struct section *section, size_t *room, int *line, struct error *error)
{
    struct program_section *program = section->program;
    const struct line *axes[WORKLOAD_PARAMETERS_MAX];
    size_t count = 0;
    int64_t strings = 0;
    program->workload =
        (struct workload){.name = program_workload.name, .parameters = program->parameters};
    section->workload = &program->workload;
    for (size_t i = 0; i < program->line_count; ++i) {
        if (key_find(program->lines[i].key))
            continue;
        if (count == WORKLOAD_PARAMETERS_MAX)
            return error_set(error, STATUS_USAGE, "more than %d axes", WORKLOAD_PARAMETERS_MAX);
        axes[count++] = &program->lines[i];
    }
    qsort(axes, count, sizeof(const struct line *), line_compare);
    program->workload.count = count;
    for (size_t i = 0; i < count; ++i) {
        struct parameter *parameter = &program->parameters[i];
        *line = axes[i]->number;
        TRY(axis_make(axes[i], parameter, &section->axes[i], room, error));
        strings += parameter->kind == PARAMETER_TEXT ? parameter->maximum + 1 : 0;
        if (strings > WORKLOAD_STRINGS)
            return error_set(error, STATUS_USAGE, "the words of all axes are too long");
    }
    return STATUS_OK;
}

static enum status axis_set(struct config *point, const char *name, const char *text,
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

/* ---- keys that are no axes ---- */

/* What the lines of a section are checked with, once its axes are known. */
struct check {
    struct section *section;
    struct config first; /* the first value of each axis */
    bool used[WORKLOAD_PARAMETERS_MAX];
    size_t *room;
};

static enum status command_check(struct check *c, const struct line *line, struct error *error)
{
    const struct template template = {&c->first, c->used};
    char unused[PROGRAM_COMMAND + 1] = "";
    return template_words(&template, line->value, unused, sizeof unused, error);
}

static enum status variable_check(struct check *c, const struct line *line, struct error *error)
{
    const struct template template = {&c->first, c->used};
    char unused[PROGRAM_COMMAND + 1] = "";
    return template_fill(&template, line->value, unused, sizeof unused, error);
}

static enum status formula_check(struct check *c, const struct line *line, struct error *error)
{
    const struct template template = {&c->first, c->used};
    double unused;
    return template_formula(&template, line->value, &unused, error);
}

static enum status region_check(struct check *c, const struct line *line, struct error *error)
{
    char hint[WORDS_HINT];
    bool known = begins(line->value, PROGRAM_NVTX) || words_find(program_regions, line->value) >= 0;
    (void)c;
    if (known && strlen(line->value) <= PROGRAM_REGION)
        return STATUS_OK;
    words_hint(program_regions, line->value, hint);
    return error_set(error, STATUS_USAGE, "'%s' is unknown%s, or nvtx NAME", line->value, hint);
}

static bool is_modelled(const struct workload *workload)
{
    return workload && workload->cost && workload != &program_workload;
}

static enum status model_check(struct check *c, const struct line *line, struct error *error)
{
    const struct workload *model = workload_find(line->value), *axes = c->section->workload;
    char hint[WORDS_HINT];
    if (!is_modelled(model)) {
        workload_hint(NULL, is_modelled, line->value, hint);
        return error_set(error, STATUS_USAGE, "'%.60s' is no workload that is modelled%s",
                         line->value, hint);
    }
    for (size_t i = 0; i < axes->count; ++i)
        c->used[i] |= workload_parameter(model, axes->parameters[i].name) >= 0;
    return STATUS_OK;
}

static enum status inherit_check(struct check *c, const struct line *line, struct error *error)
{
    char item[WORDS_ITEM];
    (void)c;
    for (const char *text = line->value;; ++text) {
        TRY(words_next(&text, ",", item, error));
        if (!is_name(item))
            return error_set(error, STATUS_USAGE, "'%s' is no name of a variable", item);
        if (*text == '\0')
            return STATUS_OK;
    }
}

static enum status iterations_check(struct check *c, const struct line *line, struct error *error)
{
    int64_t unused;
    (void)c;
    return units_integer(line->value, 1, 1000000000, &unused, error);
}

static enum status replay_check(struct check *c, const struct line *line, struct error *error)
{
    int unused;
    (void)c;
    return words_parse(program_replays, line->value, &unused, error);
}

static enum status process_check(struct check *c, const struct line *line, struct error *error)
{
    const char *region = value_of(c->section->program, "region");
    int chosen;
    TRY(words_parse(processes, line->value, &chosen, error));
    if (chosen == 0)
        return STATUS_OK;
    if (region && strcmp(region, program_regions[0]) != 0)
        return error_set(
            error, STATUS_USAGE,
            "a shared process needs region = profiler: each row has regions of its own");
    memset(c->used, true, sizeof c->used); /* the program is asked for the others */
    return STATUS_OK;
}

/* A value that the axis could have. */
static enum status ungraphed_check(struct check *c, const struct line *line, struct error *error)
{
    struct config point = c->first;
    return axis_set(&point, line->key + strlen(UNGRAPHED), line->value, error);
}

static enum status vary_check(struct check *c, const struct line *line, struct error *error)
{
    return section_vary(c->section, line->value, error);
}

static enum status exclude_check(struct check *c, const struct line *line, struct error *error)
{
    c->section->exclude_line = line->number;
    return section_exclude(c->section, line->value, c->room, error);
}

/* One with a dot is the beginning of keys. */
static const struct program_key {
    const char *key;
    enum status (*check)(struct check *c, const struct line *line, struct error *error);
    bool named;                           /* errors begin with the key */
    const char *initial, *allowed, *help; /* for --list; NULL: it is a key of every section */
} keys[] = {
    {"command", command_check, false, "-", "words", "what runs; {axis} is the axis' value"},
    {VARIABLE "NAME", variable_check, false, "-", "text",
     "a variable of the program's environment; {axis} as in command"},
    {"inherit", inherit_check, true, "-", "names", "further variables that the program inherits"},
    {"iterations", iterations_check, true, "1", "1 to 1000000000",
     "iterations that one region holds"},
    {"region", region_check, true, "profiler", "profiler, all or nvtx NAME",
     "what of the program counts"},
    {"replay", replay_check, true, "runs", "runs or kernel",
     "what is repeated to count: regions and runs, or each kernel"},
    {"process", process_check, true, "own", "own or shared",
     "shared: one process measures row after row; it gets what its command lacks"},
    {"model", model_check, true, "-", "workload",
     "workload whose model holds, of the axes with its parameters' names"},
    {"flops", formula_check, false, "-", "formula", "of one iteration, where nothing is counted"},
    {"bytes", formula_check, false, "-", "formula",
     "byte, of one iteration, where nothing is counted"},
    {UNGRAPHED "AXIS", ungraphed_check, true, "-", "value",
     "of the axis where no CUDA graph launches the same kernels"},
    {"vary", vary_check, true, NULL, NULL, NULL},
    {"exclude", exclude_check, true, NULL, NULL, NULL},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* NULL: it is an axis. */
static const struct program_key *key_find(const char *key)
{
    for (size_t i = 0; i < KEYS; ++i) {
        const char *dot = strchr(keys[i].key, '.');
        if (dot ? strncmp(keys[i].key, key, (size_t)(dot - keys[i].key) + 1) == 0
                : strcmp(keys[i].key, key) == 0)
            return &keys[i];
    }
    return NULL;
}

void program_section_list(FILE *stream)
{
    for (size_t i = 0; i < KEYS; ++i)
        if (keys[i].help)
            fprintf(stream, "  %-15s %-10s %s\n  %26s %s\n", keys[i].key, keys[i].initial,
                    keys[i].allowed, "", keys[i].help);
}

json_t *program_section_encode(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < KEYS; ++i)
        if (keys[i].help)
            json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s}", "name", keys[i].key,
                                                   "default", keys[i].initial, "allowed",
                                                   keys[i].allowed, "help", keys[i].help));
    return array;
}

/* ---- the section as a whole ---- */

/* An axis says something: to the program, to its model, or whose roof it is (precision). */
static enum status axes_check(const struct check *c, int *line, struct error *error)
{
    const struct workload *workload = c->section->workload;
    const char *settings[KEYS + 1] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < KEYS; ++i)
        if (!strchr(keys[i].key, '.'))
            settings[count++] = keys[i].key;
    for (size_t i = 0; i < workload->count; ++i) {
        const char *name = workload->parameters[i].name;
        char hint[WORDS_HINT];
        if (c->used[i] || strcmp(name, "precision") == 0)
            continue;
        *line = c->section->axes[i].line;
        words_hint(settings, name, hint);
        return error_set(
            error, STATUS_USAGE,
            "axis '%s' is used by neither command, env., flops, bytes nor model; write "
            "{%s} into the command, or process = shared. Keys that are no axes%s, env.NAME, "
            "ungraphed.AXIS",
            name, name, hint);
    }
    return STATUS_OK;
}

static enum status finish(struct section *section, size_t *room, int *line, struct error *error)
{
    const struct program_section *program = section->program;
    *line = section->line;
    if (!value_of(program, "command"))
        return error_set(error, STATUS_USAGE, "[program %s] has no command", section->label);
    TRY(axes_make(section, room, line, error));
    struct check c = {.section = section, .first = config_default(section->workload), .room = room};
    for (size_t i = 0; i < section->workload->count; ++i)
        config_set(&c.first, i, &section->axes[i].values[0]);
    for (size_t i = 0; i < program->line_count; ++i) {
        const struct program_key *key = key_find(program->lines[i].key);
        *line = program->lines[i].number;
        enum status status = key ? key->check(&c, &program->lines[i], error) : STATUS_OK;
        if (status && key->named)
            error_prefix(error, status, "%s", program->lines[i].key);
        TRY(status);
    }
    return axes_check(&c, line, error);
}

enum status program_section_finish(struct section *section, const char *path, size_t *room,
                                   struct error *error)
{
    int line;
    enum status status = finish(section, room, &line, error);
    return error_prefix(error, status, "%s:%d", path, line);
}

/* ---- one point of the axes as the configuration that runs ---- */

static void text_set(struct config *config, const char *parameter, const char *text)
{
    struct value value = {0};
    snprintf(value.text, sizeof value.text, "%s", text);
    config_set(config, (size_t)workload_parameter(config->workload, parameter), &value);
}

static enum status word_put(char *out, size_t size, const char *word, const char *what,
                            struct error *error)
{
    return command_line_append(out, size, word)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "%s more than %zu bytes", what, size - 1);
}

/* But for those that are `left` out; NULL: none is. */
static enum status axes_put(const struct config *point, const bool *left, char *out, size_t size,
                            struct error *error)
{
    for (size_t i = 0; i < point->workload->count; ++i) {
        char value[WORKLOAD_VALUE_TEXT], word[2 * WORKLOAD_VALUE_TEXT];
        if (left && left[i])
            continue;
        template_axis(point, i, value);
        snprintf(word, sizeof word, "%s=%s", point->workload->parameters[i].name, value);
        TRY(word_put(out, size, word, "a point of", error));
    }
    return STATUS_OK;
}

static int variable_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted by name: the order of lines says nothing. Axes that the template has not used by then are
 * those that a shared process gets. */
static enum status environment_put(const struct program_section *program, const struct template *t,
                                   char *out, size_t size, struct error *error)
{
    static const char what[] = "an environment of";
    const char *names[64], *inherit = value_of(program, "inherit");
    char word[WORKLOAD_STRING];
    size_t count = 0;
    for (size_t i = 0; i < program->line_count; ++i)
        if (begins(program->lines[i].key, VARIABLE)) {
            if (count == sizeof names / sizeof *names)
                return error_set(error, STATUS_USAGE, "more than %zu variables", count);
            names[count++] = program->lines[i].key;
        }
    qsort(names, count, sizeof *names, variable_compare);
    for (size_t i = 0; i < count; ++i) {
        snprintf(word, sizeof word, "%s=", names[i] + strlen(VARIABLE));
        TRY(template_fill(t, value_of(program, names[i]), word, sizeof word, error));
        TRY(word_put(out, size, word, what, error));
    }
    for (bool more = inherit; more; more = *inherit++ != '\0') {
        TRY(words_next(&inherit, ",", word, error));
        TRY(word_put(out, size, word, what, error));
    }
    if (named_word(program, "process", processes) == 1) {
        char axes[PROGRAM_AXES + 1] = PROGRAM_POINT "=", *point = axes + strlen(axes);
        TRY(axes_put(t->point, t->used, point, sizeof axes - strlen(axes), error));
        return word_put(out, size, axes, what, error);
    }
    return STATUS_OK;
}

static enum status formula_put(const struct program_section *program, const struct template *t,
                               const char *key, const char *parameter, struct config *config,
                               struct error *error)
{
    const char *formula = value_of(program, key);
    char text[PROGRAM_NUMBER + 1];
    double value;
    if (!formula)
        return STATUS_OK;
    TRY(template_formula(t, formula, &value, error));
    snprintf(text, sizeof text, "%.15g", value);
    text_set(config, parameter, text);
    return STATUS_OK;
}

static enum status texts_put(const struct program_section *program, const struct template *t,
                             struct config *config, struct error *error)
{
    char command[PROGRAM_COMMAND + 1] = "", environment[PROGRAM_ENVIRONMENT + 1] = "";
    char axes[PROGRAM_AXES + 1] = "";
    TRY(template_words(t, value_of(program, "command"), command, sizeof command, error));
    TRY(environment_put(program, t, environment, sizeof environment, error));
    TRY(axes_put(t->point, NULL, axes, sizeof axes, error));
    text_set(config, "command", command);
    text_set(config, "environment", environment);
    text_set(config, "axes", axes);
    return STATUS_OK;
}

/* ---- the same without CUDA graphs ---- */

/* Words that differ; with `index`, as "INDEX:WORD". Each is a word of its own, see `ungraphed` in
 * model/workloads/program.h. */
static enum status differences_put(const char *text, const char *other, bool index, char *out,
                                   size_t size, struct error *error)
{
    struct command_line a, b;
    TRY(command_line_split(text, &a, error));
    enum status status = command_line_split(other, &b, error);
    for (size_t i = 0; status == STATUS_OK && i < a.count && i < b.count; ++i) {
        char entry[WORKLOAD_STRING + 24];
        if (strcmp(a.words[i], b.words[i]) == 0)
            continue;
        snprintf(entry, sizeof entry, "%zu:%s", i, b.words[i]);
        status =
            word_put(out, size, index ? entry : b.words[i], "ungraphed: what differs takes", error);
    }
    command_line_clear(&a);
    if (status == STATUS_OK)
        command_line_clear(&b);
    return status;
}

/* Nothing, where the point is without graphs itself. */
static enum status ungraphed_put(const struct program_section *program, const struct template *t,
                                 struct config *config, struct error *error)
{
    struct config point = *t->point;
    bool used[WORKLOAD_PARAMETERS_MAX] = {false};
    const struct template plain = {&point, used};
    char command[PROGRAM_COMMAND + 1] = "", environment[PROGRAM_ENVIRONMENT + 1] = "";
    char out[PROGRAM_UNGRAPHED + 1] = "";
    for (size_t i = 0; i < program->line_count; ++i)
        if (begins(program->lines[i].key, UNGRAPHED))
            TRY(axis_set(&point, program->lines[i].key + strlen(UNGRAPHED), program->lines[i].value,
                         error));
    TRY(template_words(&plain, value_of(program, "command"), command, sizeof command, error));
    TRY(environment_put(program, &plain, environment, sizeof environment, error));
    TRY(differences_put(config_value(config, "command").text, command, true, out, sizeof out,
                        error));
    TRY(differences_put(config_value(config, "environment").text, environment, false, out,
                        sizeof out, error));
    text_set(config, "ungraphed", out);
    return STATUS_OK;
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

static void integer_set(struct config *config, const char *parameter, int64_t number)
{
    const struct value value = {.first = number};
    config_set(config, (size_t)workload_parameter(config->workload, parameter), &value);
}

static enum status settings_put(const struct program_section *program, struct config *config,
                                struct error *error)
{
    const char *iterations = value_of(program, "iterations"), *region = value_of(program, "region");
    const char *model = value_of(program, "model");
    struct config modelled;
    integer_set(config, "iterations", iterations ? strtoll(iterations, NULL, 10) : 1);
    if (region)
        text_set(config, "region", region);
    integer_set(config, "replay", named_word(program, "replay", program_replays));
    precision_put(config);
    if (!model)
        return STATUS_OK;
    text_set(config, "modelled_as", model);
    return error_prefix(error, program_model_config(config, workload_find(model), &modelled, error),
                        "model = %s", model);
}

enum status program_section_expand(const struct section *section, const char *path,
                                   const struct config *point, struct config *config,
                                   struct error *error)
{
    const struct program_section *program = section->program;
    bool used[WORKLOAD_PARAMETERS_MAX] = {false};
    const struct template template = {point, used};
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
    if (status == STATUS_OK)
        *config = made;
    return error_prefix(error, status, "%s:%d: [program %s]", path, section->line, section->label);
}
