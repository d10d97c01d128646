#include "program/section/template.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/command_line.h"
#include "base/text.h"
#include "base/units.h"

void template_axis(const struct config *point, size_t axis, char text[WORKLOAD_VALUE_TEXT])
{
    const struct parameter *parameter = &point->workload->parameters[axis];
    struct value value = config_get(point, axis);
    if (parameter->kind == PARAMETER_TEXT)
        memcpy(text, value.text, sizeof value.text);
    else
        parameter_format(parameter, value, text);
}

static bool axis_find(const struct template *t, const char *name, char text[WORKLOAD_VALUE_TEXT])
{
    int axis = workload_parameter(t->point->workload, name);
    if (axis < 0)
        return false;
    t->used[axis] = true;
    template_axis(t->point, (size_t)axis, text);
    return true;
}

/* ---- texts ---- */

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

enum status template_fill(const struct template *t, const char *word, char *text, size_t size,
                          struct error *error)
{
    size_t used = strlen(text);
    if (strchr(word, '\t')) /* a configuration's text may have no tabs */
        return error_set(error, STATUS_USAGE, "a tab in '%.60s'; write blanks", word);
    while (*word) {
        char value[WORKLOAD_VALUE_TEXT], name[WORDS_ITEM];
        const char *piece = word;
        size_t length = strcspn(word, "{}");
        if (length > 0) {
            word += length;
        } else if (word[1] == word[0]) {
            length = 1;
            word += 2;
        } else {
            length = strcspn(word + 1, "{}");
            if (*word == '}' || word[1 + length] != '}' || length >= sizeof name)
                return error_set(error, STATUS_USAGE,
                                 "'%.40s': write {AXIS}, and {{ or }} for a brace", word);
            snprintf(name, sizeof name, "%.*s", (int)length, word + 1);
            if (!axis_find(t, name, value))
                return unknown_axis(t->point->workload, name, error);
            word += length + 2;
            piece = value;
            length = strlen(value);
        }
        if (used < size)
            snprintf(text + used, size - used, "%.*s", (int)length, piece);
        used += length;
    }
    return used < size
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "with its axes longer than %zu bytes", size - 1);
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

/* ---- formulas: a sum has terms, a term has factors, as in C ---- */

enum { DEPTH_MAX = 64 };

struct parser {
    const struct template *template;
    const char *next;
    int depth;          /* open parentheses */
    enum status status; /* a part failed: later values have no meaning */
    struct error *error;
};

static double fail(struct parser *p, const char *what)
{
    const char *quote = *p->next ? "'" : "";
    if (p->status == STATUS_OK)
        p->status = error_set(p->error, STATUS_USAGE,
                              "%s at %s%.40s%s; allowed: numbers, axes, + - * / and parentheses",
                              what, quote, *p->next ? p->next : "the end", quote);
    return NAN;
}

static bool accept(struct parser *p, char c)
{
    p->next += strspn(p->next, " \t");
    if (*p->next != c)
        return false;
    ++p->next;
    return true;
}

static double sum(struct parser *p);

static double name(struct parser *p)
{
    char text[WORDS_ITEM], value[WORKLOAD_VALUE_TEXT];
    double number = NAN;
    size_t length = 0;
    while (isalnum((unsigned char)p->next[length]) || p->next[length] == '_')
        ++length;
    snprintf(text, sizeof text, "%.*s", (int)length, p->next);
    const char *end = axis_find(p->template, text, value) ? units_number(value, &number) : NULL;
    if (!end || *end)
        return fail(p, "no axis of numbers");
    p->next += length;
    return number;
}

static double factor(struct parser *p)
{
    p->next += strspn(p->next, " \t");
    char c = *p->next;
    if (c == '(') {
        ++p->next;
        if (++p->depth > DEPTH_MAX)
            return fail(p, "too many parentheses");
        double inner = sum(p);
        --p->depth;
        return accept(p, ')') ? inner : fail(p, "no closing parenthesis");
    }
    if (isalpha((unsigned char)c) || c == '_')
        return name(p);
    if (!isdigit((unsigned char)c) && c != '.')
        return fail(p, c ? "nothing that has a value" : "a value is missing");
    double number = NAN;
    const char *end = units_number(p->next, &number);
    if (!end)
        return fail(p, "no decimal number");
    p->next = end;
    return number;
}

static double term(struct parser *p)
{
    double value = factor(p);
    while (p->status == STATUS_OK) {
        if (accept(p, '*'))
            value *= factor(p);
        else if (accept(p, '/'))
            value /= factor(p);
        else
            break;
    }
    return value;
}

static double sum(struct parser *p)
{
    double value = term(p);
    while (p->status == STATUS_OK) {
        if (accept(p, '+'))
            value += term(p);
        else if (accept(p, '-'))
            value -= term(p);
        else
            break;
    }
    return value;
}

enum status template_formula(const struct template *t, const char *formula, double *value,
                             struct error *error)
{
    struct parser p = {.template = t, .next = formula, .error = error};
    double result = sum(&p);
    p.next += strspn(p.next, " \t");
    if (p.status == STATUS_OK && *p.next)
        fail(&p, "something after the formula's end");
    if (p.status)
        return p.status;
    if (!isfinite(result) || result <= 0.0)
        return error_set(error, STATUS_USAGE, "'%.80s' is %g; allowed: finite, above 0", formula,
                         result);
    *value = result;
    return STATUS_OK;
}
