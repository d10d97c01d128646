#include "manifest/exclusion.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "manifest/axis.h"

/* bytes of a parameter, a comparison and a value */
enum { TERM_TEXT = WORDS_ITEM + WORKLOAD_VALUE_TEXT };

static const char *const comparison_text[] = {
    [COMPARE_EQ] = "=",  [COMPARE_NE] = "!=", [COMPARE_LT] = "<",
    [COMPARE_LE] = "<=", [COMPARE_GT] = ">",  [COMPARE_GE] = ">=",
};

static int name_find(const struct workload *workload, const char *name, struct error *error)
{
    const char *names[WORKLOAD_PARAMETERS_MAX + 1];
    char hint[WORDS_HINT];
    workload_names(workload, names, 0);
    int parameter = words_find(names, name);
    if (parameter < 0) {
        words_hint(names, name, hint);
        error_set(error, STATUS_USAGE, "unknown parameter '%s' of %s%s", name, workload->name,
                  hint);
    }
    return parameter;
}

/* Numbers, square extents and padding of one number have an order. */
static bool value_ordered(const struct parameter *parameter, struct value value)
{
    return parameter->kind == PARAMETER_INTEGER ||
           (parameter->kind < PARAMETER_WORD && value.first >= 0 && value.first == value.second &&
            (parameter->kind != PARAMETER_PADDING ||
             padding_before(value.first) == padding_after(value.first)));
}

static enum status term_parse(const struct workload *workload, const char *text, struct term *term,
                              struct error *error)
{
    size_t name_length = strcspn(text, "=!<>");
    const char *sign = text + name_length;
    size_t sign_length = strspn(sign, "=!<>");
    bool doubled = sign_length == 2 && sign[1] == '=' && sign[0] == '='; /* "==", as in C */
    int comparison = COMPARE_EQ;
    char name[WORDS_ITEM];
    sign_length -= doubled;
    while (comparison <= COMPARE_GE &&
           (strlen(comparison_text[comparison]) != sign_length ||
            memcmp(comparison_text[comparison], sign, sign_length) != 0))
        ++comparison;
    if (comparison > COMPARE_GE)
        return error_set(
            error, STATUS_USAGE,
            "'%s' is no comparison; write PARAMETER, one of = != < <= > >=, and a value", text);
    while (name_length > 0 && strchr(" \t", text[name_length - 1]))
        --name_length;
    snprintf(name, sizeof name, "%.*s", (int)name_length, text);
    int parameter = name_find(workload, name, error);
    if (parameter < 0)
        return STATUS_USAGE;
    const char *value_text = sign + sign_length + doubled;
    struct value value;
    enum status status = parameter_parse(&workload->parameters[parameter],
                                         value_text + strspn(value_text, " \t"), &value, error);
    if (status && value_text[strcspn(value_text, "=!<>")])
        return error_append(error, status, "; join comparisons with &");
    TRY(status);
    if (comparison >= COMPARE_LT && !value_ordered(&workload->parameters[parameter], value))
        return error_set(error, STATUS_USAGE, "'%s': this value has no order; use = or !=", text);
    *term = (struct term){parameter, (enum comparison)comparison, value};
    return STATUS_OK;
}

/* Parses one rule. Sets *text to the comma after the rule, or to the final NUL. */
static enum status rule_parse(const struct workload *workload, const char **text, size_t *room,
                              struct exclusion *exclusion, struct error *error)
{
    struct exclusion parsed = {NULL, 0};
    enum status status;
    for (;; ++*text) {
        char item[TERM_TEXT];
        struct term term = {0};
        status = words_next_quoted(text, ",&", item, sizeof item, error);
        if (status == STATUS_OK)
            status = term_parse(workload, item, &term, error);
        if (status == STATUS_OK)
            status = room_take(1, room, error);
        if (status == STATUS_OK && !ARRAY_ADD(parsed.terms, parsed.count, term))
            status = error_set(error, STATUS_SYSTEM, "out of memory");
        if (status || **text != '&')
            break;
    }
    if (status)
        free(parsed.terms);
    else
        *exclusion = parsed;
    return status;
}

enum status exclusions_parse(const struct workload *workload, const char *text, size_t *room,
                             struct exclusion **exclusions, size_t *count, struct error *error)
{
    struct exclusion *parsed = NULL;
    size_t parsed_count = 0;
    enum status status;
    for (;; ++text) {
        struct exclusion exclusion;
        status = ARRAY_GROW(parsed, parsed_count)
                     ? rule_parse(workload, &text, room, &exclusion, error)
                     : error_set(error, STATUS_SYSTEM, "out of memory");
        if (status)
            break;
        parsed[parsed_count++] = exclusion;
        if (*text == '\0')
            break;
    }
    if (status) {
        exclusions_destroy(parsed, parsed_count);
        return status;
    }
    *exclusions = parsed;
    *count = parsed_count;
    return STATUS_OK;
}

void exclusions_destroy(struct exclusion *exclusions, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        free(exclusions[i].terms);
    free(exclusions);
}

static bool order_holds(enum comparison comparison, int64_t a, int64_t b)
{
    return comparison == COMPARE_LT   ? a < b
           : comparison == COMPARE_LE ? a <= b
           : comparison == COMPARE_GT ? a > b
                                      : a >= b;
}

static bool term_holds(const struct term *term, const struct config *config)
{
    size_t parameter = (size_t)term->parameter;
    enum parameter_kind kind = config->workload->parameters[parameter].kind;
    int64_t first = config->values[parameter].first, second = config->values[parameter].second;
    if (term->comparison == COMPARE_EQ || term->comparison == COMPARE_NE) {
        /* Copies only free texts, because the plan evaluates each term for each configuration. */
        bool equal = kind == PARAMETER_TEXT
                         ? strcmp(config_get(config, parameter).text, term->value.text) == 0
                         : first == term->value.first && second == term->value.second;
        return equal == (term->comparison == COMPARE_EQ);
    }
    const bool padding = kind == PARAMETER_PADDING;
    if (padding && first < 0)
        return false;
    const int64_t limit = padding ? padding_before(term->value.first) : term->value.first;
    const int64_t sides[] = {padding ? padding_before(first) : first,
                             padding ? padding_before(second) : second, padding_after(first),
                             padding_after(second)};
    const size_t count = kind == PARAMETER_INTEGER ? 1 : padding ? 4 : 2;
    for (size_t i = 0; i < count; ++i)
        if (!order_holds(term->comparison, sides[i], limit))
            return false;
    return true;
}

bool exclusion_holds(const struct exclusion *exclusion, const struct config *config)
{
    for (size_t i = 0; i < exclusion->count; ++i)
        if (!term_holds(&exclusion->terms[i], config))
            return false;
    return true;
}
