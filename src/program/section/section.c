/* A section [program LABEL]: a command with axes of its own. Each key that is no setting is an
 * axis. An axis of whole numbers is a shape, and an axis of words is a series.
 *
 * Lines are kept as they come, since a setting may name axes of later lines. After the last line
 * the axes become a workload of this section, and each setting is tested with the first value of
 * each axis. The plan then expands each point: the same functions fill a configuration of
 * program_workload. Errors name the line; errors of a single point name the section's first line.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/command_line.h"
#include "base/text.h"
#include "base/units.h"
#include "manifest/section.h"
#include "program/section/template.h"
#include "program/workload.h"

#define VARIABLE  "env."       /* env.NAME: a variable of the program's environment */
#define UNGRAPHED "ungraphed." /* ungraphed.AXIS: the axis' value in a run without CUDA graphs */

struct line {
    char *key, *value; /* owned */
    int number;
};

/* Largest number of lines of a section; settings, axes and variables are fewer. */
enum { LINES_MAX = 256 };

struct lines {
    struct line *list; /* owned; in the order of the file */
    size_t count;
    struct workload axes; /* set after the last line; the names belong to `list` */
    struct parameter parameters[WORKLOAD_PARAMETERS_MAX];
};

/* A point of the axes, and the configuration that is made from it. */
struct point {
    const struct lines *lines;
    const struct config *axes;
    struct config *config;                 /* configuration of program_workload */
    bool written[WORKLOAD_PARAMETERS_MAX]; /* the axis is in the command or the environment */
    bool used[WORKLOAD_PARAMETERS_MAX];    /* a formula, a model or the process takes the axis */
    bool shared;                           /* process = shared */
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const struct line *line_find(const struct lines *lines, const char *key)
{
    for (size_t i = 0; i < lines->count; ++i)
        if (strcmp(lines->list[i].key, key) == 0)
            return &lines->list[i];
    return NULL;
}

static bool is_name(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        ++length;
    return length > 0 && text[length] == '\0' && !isdigit((unsigned char)*text);
}

static void lines_destroy(void *own)
{
    struct lines *lines = own;
    if (!lines)
        return;
    for (size_t i = 0; i < lines->count; ++i) {
        free(lines->list[i].key);
        free(lines->list[i].value);
    }
    free(lines->list);
    free(lines);
}

/* Whether a word of the variable's name marks a secret: HF_TOKEN, not TOKENIZERS. */
static bool is_secret(const char *name)
{
    static const char *const secrets[] = {"token", "key", "secret", "password", NULL};
    for (size_t length; *name; name += length + (name[length] == '_')) {
        length = strcspn(name, "_");
        for (size_t i = 0; secrets[i]; ++i)
            if (length == strlen(secrets[i]) && strncasecmp(name, secrets[i], length) == 0)
                return true;
    }
    return false;
}

static enum status line_take(struct section *section, const struct ini_line *line,
                             struct error *error)
{
    const char *name = line->key;
    if (begins(name, VARIABLE) || begins(name, UNGRAPHED))
        name = strchr(name, '.') + 1;
    if (!is_name(name))
        return error_set(
            error, STATUS_USAGE,
            "'%s' is no name of an axis or of a variable, env.NAME, ungraphed.AXIS; allowed: "
            "letters, digits and _, no digit first",
            line->key);
    if (strcmp(line->key, "list") == 0)
        return error_set(error, STATUS_USAGE,
                         "a section of programs has no list; give the axis another name");
    if (begins(line->key, VARIABLE) && is_secret(name))
        return error_set(error, STATUS_USAGE,
                         "the result file would hold the value of %s, which anybody may read; "
                         "export %s, and write its name into inherit",
                         line->key, name);
    struct lines *lines = section->own ? section->own : calloc(1, sizeof *lines);
    section->own = lines;
    const struct line *first = lines ? line_find(lines, line->key) : NULL;
    int noted = first ? first->number : 0;
    TRY(ini_line_first(line, &noted, error));
    if (lines && lines->count == LINES_MAX)
        return error_set(error, STATUS_USAGE, "more than %d keys in [%s]", LINES_MAX,
                         line->section);
    if (!lines || !ARRAY_GROW(lines->list, lines->count))
        return error_set(error, STATUS_SYSTEM, "out of memory");
    struct line *kept = &lines->list[lines->count++];
    *kept = (struct line){strdup(line->key), strdup(line->value), line->number};
    return kept->key && kept->value ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
}

/* ---- settings: each fills its part of a configuration ---- */

static void value_set(struct config *config, const char *parameter, const struct value *value)
{
    config_set(config, (size_t)workload_parameter(config->workload, parameter), value);
}

static void text_set(struct config *config, const char *parameter, const char *text)
{
    struct value value = {0};
    snprintf(value.text, sizeof value.text, "%s", text);
    value_set(config, parameter, &value);
}

static enum status shell_refuse(const char *command, struct error *error)
{
    static const char way[] = "no shell runs the command; sh -c 'COMMAND' does";
    static const char *const words[] = {"&&", "||", ";", "&", NULL};
    struct command_line line;
    enum status status = STATUS_OK;
    TRY(command_line_split(command, &line, error));
    const char *first = line.count > 0 ? line.words[0] : "", *equals = strchr(first, '=');
    char name[WORKLOAD_STRING];
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - first) : 0, first);
    if (is_name(name))
        status =
            error_set(error, STATUS_USAGE,
                      "'%.60s' is no command; write env.%s = %.60s, or --set program.env.%s=%.60s",
                      first, name, equals + 1, name, equals + 1);
    else if (strcmp(first, "cd") == 0)
        status = error_set(error, STATUS_USAGE, "'cd' is no command: %s", way);
    for (size_t i = 0; i < line.count && status == STATUS_OK; ++i)
        if (words_find(words, line.words[i]) >= 0 || begins(line.words[i], "~/"))
            status = error_set(error, STATUS_USAGE, "'%.60s': %s", line.words[i], way);
    command_line_clear(&line);
    return status;
}

static enum status command_put(struct point *p, const struct line *line, struct error *error)
{
    const struct template template = {p->axes, p->written};
    char command[PROGRAM_COMMAND + 1] = "";
    TRY(template_words(&template, line->value, command, sizeof command, error));
    TRY(shell_refuse(command, error));
    text_set(p->config, "command", command);
    return STATUS_OK;
}

/* Only checks the line; environment_put joins all variables later. */
static enum status variable_check(struct point *p, const struct line *line, struct error *error)
{
    const struct template template = {p->axes, p->written};
    char unused[PROGRAM_COMMAND + 1] = "";
    return template_fill(&template, line->value, unused, sizeof unused, error);
}

static enum status inherit_check(struct point *p, const struct line *line, struct error *error)
{
    char item[WORDS_ITEM], variable[sizeof VARIABLE + WORDS_ITEM];
    for (const char *text = line->value;; ++text) {
        TRY(words_next(&text, ",", item, error));
        if (!is_name(item))
            return error_set(error, STATUS_USAGE, "'%s' is no name of a variable", item);
        snprintf(variable, sizeof variable, VARIABLE "%s", item);
        if (line_find(p->lines, variable))
            return error_set(error, STATUS_USAGE, "%s sets %s already; leave out one", variable,
                             item);
        if (*text == '\0')
            return STATUS_OK;
    }
}

static enum status iterations_put(struct point *p, const struct line *line, struct error *error)
{
    struct value value = {0};
    TRY(units_integer(line->value, 1, 1000000000, &value.first, error));
    value_set(p->config, "iterations", &value);
    return STATUS_OK;
}

static enum status region_put(struct point *p, const struct line *line, struct error *error)
{
    const int index = workload_parameter(&program_workload, "region");
    struct value value;
    char hint[WORDS_HINT];
    bool known = begins(line->value, PROGRAM_NVTX) || words_find(program_regions, line->value) >= 0;
    if (!known || strlen(line->value) > PROGRAM_REGION) {
        words_hint(program_regions, line->value, hint);
        return error_set(error, STATUS_USAGE, "region: '%s' is unknown%s, or nvtx NAME",
                         line->value, hint);
    }
    TRY(parameter_parse(&program_workload.parameters[index], line->value, &value, error));
    config_set(p->config, (size_t)index, &value);
    return STATUS_OK;
}

static enum status replay_put(struct point *p, const struct line *line, struct error *error)
{
    int word;
    TRY(words_parse(program_replays, line->value, &word, error));
    value_set(p->config, "replay", &(struct value){.first = word});
    return STATUS_OK;
}

static enum status process_put(struct point *p, const struct line *line, struct error *error)
{
    static const char *const processes[] = {"own", "shared", NULL};
    const struct line *region = line_find(p->lines, "region");
    int chosen;
    TRY(words_parse(processes, line->value, &chosen, error));
    p->shared = chosen == 1;
    if (p->shared && region && strcmp(region->value, program_regions[0]) != 0)
        return error_set(
            error, STATUS_USAGE,
            "a shared process needs region = profiler: each row has regions of its own");
    if (p->shared) /* the process gets each axis that the command lacks */
        memset(p->used, true, sizeof p->used);
    return STATUS_OK;
}

static bool is_modelled(const struct workload *workload)
{
    return workload && workload->cost && workload != &program_workload;
}

static enum status model_put(struct point *p, const struct line *line, struct error *error)
{
    const struct workload *model = workload_find(line->value), *axes = &p->lines->axes;
    char hint[WORDS_HINT];
    if (!is_modelled(model)) {
        workload_hint(NULL, is_modelled, line->value, hint);
        return error_set(error, STATUS_USAGE, "'%.60s' is no workload that is modelled%s",
                         line->value, hint);
    }
    for (size_t i = 0; i < axes->count; ++i)
        p->used[i] |= workload_parameter(model, axes->parameters[i].name) >= 0;
    text_set(p->config, "modelled_as", line->value);
    return STATUS_OK;
}

static enum status formula_put(struct point *p, const struct line *line, struct error *error)
{
    const struct template template = {p->axes, p->used};
    char parameter[32], text[PROGRAM_NUMBER + 1];
    double value;
    TRY(template_formula(&template, line->value, &value, error));
    snprintf(parameter, sizeof parameter, "model_%s", line->key);
    const bool whole = value == floor(value) && value < 0x1p53;
    snprintf(text, sizeof text, whole ? "%.0f" : "%.15g", value);
    text_set(p->config, parameter, text);
    return STATUS_OK;
}

static enum status axis_set(struct config *axes, const struct line *line, struct error *error)
{
    const char *name = line->key + strlen(UNGRAPHED);
    int axis = workload_parameter(axes->workload, name);
    struct value value;
    if (axis < 0)
        return error_set(error, STATUS_USAGE, "'%s' is no axis of this section", name);
    TRY(parameter_parse(&axes->workload->parameters[axis], line->value, &value, error));
    config_set(axes, (size_t)axis, &value);
    return STATUS_OK;
}

/* Only checks the line; ungraphed_put later makes the command without graphs. */
static enum status ungraphed_check(struct point *p, const struct line *line, struct error *error)
{
    struct config axes = *p->axes;
    return axis_set(&axes, line, error);
}

/* The row env.NAME matches all keys that begin with "env.", the row ungraphed.AXIS all that begin
 * with "ungraphed.". */
/* clang-format off */
static const struct setting {
    enum status (*put)(struct point *p, const struct line *line, struct error *error);
    bool named;             /* whether errors begin with the key */
    struct section_key key; /* help is NULL for keys that every section has */
} settings[] = {
    {command_put, false, {"command", "-", "words",
     "command line; {axis} stands for the value of the axis"}},
    {variable_check, false, {VARIABLE "NAME", "-", "text",
     "variable of the program's environment; {axis} as in command"}},
    {inherit_check, true, {"inherit", "-", "names", "further variables that the program inherits"}},
    {iterations_put, true, {"iterations", "1", "1 to 1000000000",
     "iterations that one region holds"}},
    {region_put, false, {"region", "profiler", "profiler, all or nvtx NAME",
     "measured part of the program"}},
    {replay_put, true, {"replay", "runs", "runs or kernel",
     "repeated for counting: regions and runs, or each kernel"}},
    {process_put, true, {"process", "own", "own or shared",
     "shared: one process measures all rows; the axes that its command lacks are passed to it"}},
    {model_put, true, {"model", "-", "workload",
     "workload that gives modelled FLOPs and bytes; axes named like its parameters set these"}},
    {formula_put, false, {"flops", "-", "formula",
     "FLOPs of one iteration, used if none are counted"}},
    {formula_put, false, {"bytes", "-", "formula",
     "bytes of one iteration, used if none are counted"}},
    {ungraphed_check, true, {UNGRAPHED "AXIS", "-", "value",
     "value of the axis with which the kernels are launched without CUDA graphs"}},
    {NULL, false, {.name = "vary"}},
    {NULL, false, {.name = "exclude"}},
};
/* clang-format on */
enum { SETTINGS = sizeof settings / sizeof *settings };

/* NULL: the key is an axis. */
static const struct setting *setting_find(const char *key)
{
    for (size_t i = 0; i < SETTINGS; ++i) {
        const char *name = settings[i].key.name, *dot = strchr(name, '.');
        if (dot ? strncmp(name, key, (size_t)(dot - name) + 1) == 0 : strcmp(name, key) == 0)
            return &settings[i];
    }
    return NULL;
}

static const struct section_key *setting_key(size_t i)
{
    return i < SETTINGS && settings[i].key.help ? &settings[i].key : NULL;
}

/* ---- after the last line: axes, then settings ---- */

static int line_compare(const void *a, const void *b)
{
    const struct line *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

/* The axis has numbers if its line is a list or range of whole numbers without leading zeros, and
 * words otherwise. */
static struct parameter axis_parameter(const struct line *line)
{
    bool numbers = line->value[strspn(line->value, "0123456789,:*+ \t")] == '\0';
    const bool ranges = strchr(line->value, ':');
    for (const char *digit = line->value; *digit; ++digit) /* "007" would become "7" */
        numbers &= ranges || *digit != '0' || !isdigit((unsigned char)digit[1]) ||
                   (digit > line->value && isdigit((unsigned char)digit[-1]));
    return (struct parameter){
        .name = line->key,
        .kind = numbers ? PARAMETER_INTEGER : PARAMETER_TEXT,
        .series = !numbers,
        .maximum = numbers ? INT64_MAX / 2 : WORKLOAD_STRING - 1,
        .initial = numbers ? "0" : "",
        .help = "axis of a program",
    };
}

static enum status line_apply(struct section *section, const struct line *line, size_t *room,
                              struct error *error)
{
    const struct ini_line taken = {"program", line->key, line->value, line->number};
    return section_take(section, &taken, room, error);
}

/* Makes the axes a workload, and parses their values. *at: the line that an error is about. */
static enum status axes_make(struct section *section, size_t *room, int *at, struct error *error)
{
    struct lines *lines = section->own;
    const struct line *axes[WORKLOAD_PARAMETERS_MAX];
    size_t count = 0;
    int64_t strings = 0;
    for (size_t i = 0; i < lines->count; ++i) {
        if (setting_find(lines->list[i].key))
            continue;
        if (count == WORKLOAD_PARAMETERS_MAX)
            return error_set(error, STATUS_USAGE, "more than %d axes", WORKLOAD_PARAMETERS_MAX);
        axes[count++] = &lines->list[i];
    }
    qsort(axes, count, sizeof(const struct line *), line_compare);
    for (size_t i = 0; i < count; ++i)
        lines->parameters[i] = axis_parameter(axes[i]);
    lines->axes = (struct workload){
        .name = program_workload.name, .parameters = lines->parameters, .count = count};
    section->workload = &lines->axes;
    for (size_t i = 0; i < count; ++i) {
        struct parameter *parameter = &lines->parameters[i];
        *at = axes[i]->number;
        TRY(line_apply(section, axes[i], room, error));
        if (parameter->kind != PARAMETER_TEXT)
            continue;
        /* Checks that a configuration has room for the longest value of the axis. */
        char key[WORKLOAD_STRING];
        snprintf(key, sizeof key, UNGRAPHED "%s", parameter->name);
        const struct line *other = line_find(lines, key);
        parameter->maximum = other ? (int64_t)strlen(other->value) : 0;
        for (size_t j = 0; j < section->axes[i].count; ++j) {
            int64_t length = (int64_t)strlen(section->axes[i].values[j].text);
            parameter->maximum = length > parameter->maximum ? length : parameter->maximum;
        }
        strings += parameter->maximum + 1;
        if (strings > WORKLOAD_STRINGS)
            return error_set(error, STATUS_USAGE, "the words of all axes are too long");
    }
    return STATUS_OK;
}

/* An axis must change something: the command, the model, or the precision of the roof. */
static enum status axes_check(const struct section *section, const struct point *p, int *at,
                              struct error *error)
{
    const struct workload *workload = section->workload;
    const char *names[SETTINGS + 1] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < SETTINGS; ++i)
        if (!strchr(settings[i].key.name, '.'))
            names[count++] = settings[i].key.name;
    for (size_t i = 0; i < workload->count; ++i) {
        const char *name = workload->parameters[i].name;
        char hint[WORDS_HINT];
        if (p->written[i] || p->used[i] || strcmp(name, "precision") == 0)
            continue;
        *at = section->axes[i].line;
        words_hint(names, name, hint);
        return error_set(
            error, STATUS_USAGE,
            "axis '%s' is used by neither command, env., flops, bytes nor model; write "
            "{%s} into the command, or process = shared. Keys that are no axes%s, env.NAME, "
            "ungraphed.AXIS",
            name, name, hint);
    }
    return STATUS_OK;
}

static enum status settings_try(struct section *section, size_t *room, int *at, struct error *error)
{
    const struct lines *lines = section->own;
    *at = section->line;
    if (!lines || !line_find(lines, "command"))
        return error_set(error, STATUS_USAGE, "[program %s] has no command", section->label);
    TRY(axes_make(section, room, at, error));
    struct config first = config_default(section->workload);
    struct config made = config_default(&program_workload);
    struct point p = {.lines = lines, .axes = &first, .config = &made};
    for (size_t i = 0; i < section->workload->count; ++i)
        config_set(&first, i, &section->axes[i].values[0]);
    for (size_t i = 0; i < lines->count; ++i) {
        const struct line *line = &lines->list[i];
        const struct setting *setting = setting_find(line->key);
        if (!setting)
            continue;
        *at = line->number;
        enum status status =
            setting->put ? setting->put(&p, line, error) : line_apply(section, line, room, error);
        TRY(setting->named ? error_prefix(error, status, "%s", line->key) : status);
    }
    return axes_check(section, &p, at, error);
}

static enum status section_end(struct section *section, const char *path, size_t *room,
                               struct error *error)
{
    int line;
    enum status status = settings_try(section, room, &line, error);
    return error_prefix(error, status, "%s:%d", path, line);
}

/* ---- from one point of the axes to the configuration that runs ---- */

static enum status word_put(char *out, size_t size, const char *word, const char *what,
                            struct error *error)
{
    return command_line_append(out, size, word)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "%s more than %zu bytes", what, size - 1);
}

/* Appends the axes as words NAME=VALUE, except the axes marked in `left` (NULL: all axes). */
static enum status axes_put(const struct config *axes, const bool *left, char *out, size_t size,
                            struct error *error)
{
    for (size_t i = 0; i < axes->workload->count; ++i) {
        char value[WORKLOAD_VALUE_TEXT], word[2 * WORKLOAD_VALUE_TEXT];
        if (left && left[i])
            continue;
        template_axis(axes, i, value);
        snprintf(word, sizeof word, "%s=%s", axes->workload->parameters[i].name, value);
        TRY(word_put(out, size, word, "a point of", error));
    }
    return STATUS_OK;
}

/* Joins the variables and the inherited names. The variables are sorted by name, because the order
 * of lines has no meaning. A shared process also gets the axes that are in neither command nor
 * variables. */
static enum status environment_put(struct point *p, struct error *error)
{
    static const char what[] = "an environment of";
    const struct template template = {p->axes, p->written};
    const struct line *variables[64], *inherit = line_find(p->lines, "inherit");
    char out[PROGRAM_ENVIRONMENT + 1] = "", word[WORKLOAD_STRING];
    size_t count = 0;
    for (size_t i = 0; i < p->lines->count; ++i)
        if (begins(p->lines->list[i].key, VARIABLE)) {
            if (count == sizeof variables / sizeof *variables)
                return error_set(error, STATUS_USAGE, "more than %zu variables", count);
            variables[count++] = &p->lines->list[i];
        }
    qsort(variables, count, sizeof(const struct line *), line_compare);
    for (size_t i = 0; i < count; ++i) {
        snprintf(word, sizeof word, "%s=", variables[i]->key + strlen(VARIABLE));
        TRY(template_fill(&template, variables[i]->value, word, sizeof word, error));
        TRY(word_put(out, sizeof out, word, what, error));
    }
    const char *names = inherit ? inherit->value : NULL;
    for (bool more = inherit; more; more = *names++ != '\0') {
        TRY(words_next(&names, ",", word, error));
        TRY(word_put(out, sizeof out, word, what, error));
    }
    if (p->shared) {
        char axes[PROGRAM_AXES + 1] = PROGRAM_POINT "=", *point = axes + strlen(axes);
        TRY(axes_put(p->axes, p->written, point, sizeof axes - strlen(axes), error));
        TRY(word_put(out, sizeof out, axes, what, error));
    }
    text_set(p->config, "environment", out);
    return STATUS_OK;
}

/* Appends the words of `other` that differ from `text`, for `ungraphed` (program/workload.h).
 * `index`: as "INDEX:WORD". */
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

/* Sets `ungraphed` to the differences of command and environment in a run without CUDA graphs. */
static enum status ungraphed_put(const struct point *p, struct error *error)
{
    struct config axes = *p->axes, made = config_default(&program_workload);
    struct point plain = {.lines = p->lines, .axes = &axes, .config = &made, .shared = p->shared};
    char out[PROGRAM_UNGRAPHED + 1] = "";
    for (size_t i = 0; i < p->lines->count; ++i)
        if (begins(p->lines->list[i].key, UNGRAPHED))
            TRY(axis_set(&axes, &p->lines->list[i], error));
    TRY(command_put(&plain, line_find(p->lines, "command"), error));
    TRY(environment_put(&plain, error));
    TRY(differences_put(config_value(p->config, "command").text,
                        config_value(&made, "command").text, true, out, sizeof out, error));
    TRY(differences_put(config_value(p->config, "environment").text,
                        config_value(&made, "environment").text, false, out, sizeof out, error));
    text_set(p->config, "ungraphed", out);
    return STATUS_OK;
}

/* An axis named precision sets the parameter `precision`, except for formats that programs do not
 * have as a roof, such as fp8. */
static enum status precision_put(struct config *config, struct error *error)
{
    int parameter = workload_role(config->workload, ROLE_PRECISION);
    char text[WORKLOAD_STRING];
    struct value value;
    if (!config_axis(config, "precision", text))
        return STATUS_OK;
    enum status status =
        parameter_parse(&config->workload->parameters[parameter], text, &value, error);
    if (status == STATUS_OK)
        config_set(config, (size_t)parameter, &value);
    for (int i = 0; status && i < PRECISION_COUNT; ++i)
        if (strcmp(text, precision_info[i].name) == 0)
            status = STATUS_OK;
    return status ? error_append(error, status, "; fp8, fp4 and int8 count as mixed") : STATUS_OK;
}

static enum status point_expand(struct point *p, struct error *error)
{
    char axes[PROGRAM_AXES + 1] = "";
    struct config modelled;
    for (size_t i = 0; i < p->lines->count; ++i) {
        const struct setting *setting = setting_find(p->lines->list[i].key);
        if (setting && setting->put)
            TRY(setting->put(p, &p->lines->list[i], error));
    }
    TRY(environment_put(p, error));
    TRY(axes_put(p->axes, NULL, axes, sizeof axes, error));
    text_set(p->config, "axes", axes);
    TRY(precision_put(p->config, error));
    const struct value model = config_value(p->config, "modelled_as");
    if (model.text[0])
        TRY(error_prefix(
            error, program_model_config(p->config, workload_find(model.text), &modelled, error),
            "model = %s", model.text));
    return ungraphed_put(p, error);
}

static enum status section_expand(const struct section *section, const char *path,
                                  const struct config *axes, struct config *config,
                                  struct error *error)
{
    struct config made = config_default(&program_workload);
    struct point p = {.lines = section->own, .axes = axes, .config = &made};
    enum status status = point_expand(&p, error);
    if (status == STATUS_OK)
        *config = made;
    return error_prefix(error, status, "%s:%d: [program %s]", path, section->line, section->label);
}

/* Whether any folder of the colon-separated `path` has the program. Relative folders of `path` are
 * below `folder`. */
static bool path_has(const char *path, const char *folder, const char *program)
{
    for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        const int length = (int)strcspn(at, ":");
        char file[8192];
        struct stat about;
        snprintf(file, sizeof file, "%s%s%.*s/%s", *at == '/' ? "" : folder, *at == '/' ? "" : "/",
                 length, at, program);
        if (access(file, X_OK) == 0 && stat(file, &about) == 0 && S_ISREG(about.st_mode))
            return true;
    }
    return false;
}

static enum status program_find(const struct config *config, const char *folder,
                                struct error *error)
{
    struct command_line command, environment;
    const char *path = getenv("PATH");
    const struct value words = config_value(config, "command"),
                       variables = config_value(config, "environment");
    TRY(command_line_split(words.text, &command, error));
    enum status status = command_line_split(variables.text, &environment, error);
    if (status == STATUS_OK) {
        const char *program = command.count > 0 ? command.words[0] : "";
        for (size_t i = 0; i < environment.count; ++i)
            if (begins(environment.words[i], "PATH="))
                path = environment.words[i] + strlen("PATH=");
        const bool named = strchr(program, '/');
        if (!path_has(named ? *program == '/' ? "/" : "." : path, folder, program))
            status = error_set(error, STATUS_USAGE, "the program '%.200s' is not %s%s", program,
                               named ? "there, or cannot be run; programs start in " : "in PATH",
                               named ? folder : "");
        command_line_clear(&environment);
    }
    command_line_clear(&command);
    return status;
}

/* Names the parameters of the model that no axis sets, except those without effect on the cost. */
static void program_note(const struct config *config, char text[SECTION_NOTE])
{
    const struct workload *model = workload_find(config_value(config, "modelled_as").text);
    int used = 0;
    for (size_t i = 0; model && i < model->count; ++i) {
        const struct parameter *parameter = &model->parameters[i];
        char unused[WORKLOAD_STRING];
        if (config_axis(config, parameter->name, unused) || used >= SECTION_NOTE ||
            (parameter->series && strcmp(parameter->name, "precision") != 0 &&
             strcmp(parameter->name, "pass") != 0))
            continue;
        used += snprintf(text + used, (size_t)(SECTION_NOTE - used), "%s %s=%s",
                         used > 0 ? "" : "model has defaults, which axes can set:", parameter->name,
                         parameter->initial);
    }
}

const struct section_kind program_section = {
    .workload = &program_workload,
    .take = line_take,
    .finish = section_end,
    .expand = section_expand,
    .find = program_find,
    .note = program_note,
    .destroy = lines_destroy,
    .key = setting_key,
};
