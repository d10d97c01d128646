#include "program/section/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/text.h"
#include "program/section/formula.h"

/* Text that grows within its room. */
struct output {
    char *text;
    size_t size, used;
    bool fits;
};

static void put(struct output *out, const char *text, size_t length)
{
    out->fits = out->fits && out->used + length < out->size;
    if (!out->fits)
        return;
    memcpy(out->text + out->used, text, length);
    out->used += length;
    out->text[out->used] = '\0';
}

void template_axis(const struct config *point, size_t axis, char text[WORKLOAD_VALUE_TEXT])
{
    const struct parameter *parameter = &point->workload->parameters[axis];
    struct value value = config_get(point, axis);
    if (parameter->kind == PARAMETER_TEXT)
        memcpy(text, value.text, sizeof value.text);
    else
        parameter_format(parameter, value, text);
}

static enum status unknown_axis(const struct workload *workload, const char *name,
                                struct error *error)
{
    const char *names[WORKLOAD_PARAMETERS_MAX + 1] = {NULL};
    char hint[WORDS_HINT];
    for (size_t i = 0; i < workload->count; ++i)
        names[i] = workload->parameters[i].name;
    words_hint(names, name, hint);
    if (workload->count == 0)
        return error_set(
            error, STATUS_USAGE,
            "{%s} is no axis of this section, which has none; add a line '%s = VALUES', "
            "or write {{%s}} for the braces",
            name, name, name);
    return error_set(error, STATUS_USAGE, "{%s} is no axis of this section%s", name, hint);
}

static enum status axis_put(const struct template *t, const char *name, struct output *out,
                            struct error *error)
{
    int axis = workload_parameter(t->point->workload, name);
    char text[WORKLOAD_VALUE_TEXT];
    if (axis < 0)
        return unknown_axis(t->point->workload, name, error);
    if (t->used)
        t->used[axis] = true;
    template_axis(t->point, (size_t)axis, text);
    put(out, text, strlen(text));
    return STATUS_OK;
}

/* From the opening brace on; *word moves after the closing one. */
static enum status brace_fill(const struct template *t, const char **word, struct output *out,
                              struct error *error)
{
    char name[WORDS_ITEM];
    const char *text = *word;
    size_t length = strcspn(text + 1, "{}");
    if (*text == '}' || text[1 + length] != '}' || length >= sizeof name)
        return error_set(error, STATUS_USAGE, "'%.40s': write {AXIS}, and {{ or }} for a brace",
                         text);
    snprintf(name, sizeof name, "%.*s", (int)length, text + 1);
    *word += length + 2;
    return axis_put(t, name, out, error);
}

enum status template_fill(const struct template *t, const char *word, char *text, size_t size,
                          struct error *error)
{
    struct output out = {text, size, strlen(text), true};
    enum status status = STATUS_OK;
    while (*word && status == STATUS_OK) {
        size_t plain = strcspn(word, "{}");
        put(&out, word, plain);
        word += plain;
        if (*word && word[1] == word[0]) {
            put(&out, word, 1);
            word += 2;
        } else if (*word) {
            status = brace_fill(t, &word, &out, error);
        }
    }
    if (status == STATUS_OK && !out.fits)
        return error_set(error, STATUS_USAGE, "with its axes longer than %zu bytes", size - 1);
    return status;
}

enum status template_words(const struct template *t, const char *words, char *text, size_t size,
                           struct error *error)
{
    struct command_line line;
    TRY(command_line_split(words, &line, error));
    enum status status = STATUS_OK;
    for (size_t i = 0; i < line.count && status == STATUS_OK; ++i) {
        char word[WORKLOAD_STRING] = "";
        status = template_fill(t, line.words[i], word, sizeof word, error);
        if (status == STATUS_OK && !command_line_append(text, size, word))
            status =
                error_set(error, STATUS_USAGE, "with its axes longer than %zu bytes", size - 1);
    }
    command_line_clear(&line);
    return status;
}

/* A formula_lookup. Words that are numbers, as 0.5, count as well. */
static bool axis_number(void *user, const char *name, double *value)
{
    const struct template *t = user;
    int axis = workload_parameter(t->point->workload, name);
    char text[WORKLOAD_VALUE_TEXT], *end;
    if (axis < 0)
        return false;
    if (t->used)
        t->used[axis] = true;
    template_axis(t->point, (size_t)axis, text);
    *value = strtod(text, &end);
    return end != text && *end == '\0';
}

enum status template_formula(const struct template *t, const char *formula, double *value,
                             struct error *error)
{
    struct template copy = *t;
    return formula_evaluate(formula, axis_number, &copy, value, error);
}
