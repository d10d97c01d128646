#include "manifest/exclusion.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "manifest/axis.h"

/* A parameter, a comparison and a value. */
enum { TERM_TEXT = WORDS_ITEM + WORKLOAD_VALUE_TEXT };

static const char *const comparison_text[] = {
    [COMPARE_EQ] = "=",  [COMPARE_NE] = "!=", [COMPARE_LT] = "<",
    [COMPARE_LE] = "<=", [COMPARE_GT] = ">",  [COMPARE_GE] = ">=",
};

static int name_find(const struct workload *workload, const char *name, struct error *error)
{
    const char *names[WORKLOAD_PARAMETERS_MAX + 1] = {NULL};
    char hint[WORDS_HINT];
    for (size_t i = 0; i < workload->count; ++i)
        names[i] = workload->parameters[i].name;
    int parameter = words_find(names, name);
    if (parameter < 0) {
        words_hint(names, name, hint);
        error_set(error, STATUS_USAGE, "unknown parameter '%s' of %s%s", name, workload->name,
                  hint);
    }
    return parameter;
}

/* -1: no comparison. */
static int comparison_find(const char *text, size_t length)
{
    for (int i = COMPARE_EQ; i <= COMPARE_GE; ++i)
        if (strlen(comparison_text[i]) == length && memcmp(comparison_text[i], text, length) == 0)
            return i;
    return -1;
}

/* Numbers and square extents have an order. */
static bool value_ordered(const struct parameter *parameter, struct value value)
{
    return parameter->kind == PARAMETER_EXTENT
               ? value.first == value.second
               : parameter->kind != PARAMETER_WORD && parameter->kind != PARAMETER_TEXT &&
                     value.first >= 0;
}

static enum status term_parse(const struct workload *workload, const char *text, struct term *term,
                              struct error *error)
{
    size_t name_length = strcspn(text, "=!<>");
    const char *sign = text + name_length;
    size_t sign_length = strspn(sign, "=!<>");
    bool doubled =
        sign_length == 2 && sign[1] == '=' && sign[0] == '='; /* as programmers write it */
    int comparison = comparison_find(sign, sign_length - doubled);
    char name[WORDS_ITEM];
    if (comparison < 0)
        return error_set(
            error, STATUS_USAGE,
            "'%s' is no comparison; write PARAMETER, one of = != < <= > >=, and a value", text);
    snprintf(name, sizeof name, "%.*s", (int)name_length, text);
    name[strcspn(name, " \t")] = '\0';
    int parameter = name_find(workload, name, error);
    if (parameter < 0)
        return STATUS_USAGE;
    const char *value_text = sign + sign_length;
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

static enum status term_append(struct exclusion *exclusion, struct term term, struct error *error)
{
    void *terms = array_grow(exclusion->terms, exclusion->count, sizeof *exclusion->terms);
    if (!terms)
        return error_set(error, STATUS_SYSTEM, "out of memory");
    exclusion->terms = terms;
    exclusion->terms[exclusion->count++] = term;
    return STATUS_OK;
}

/* Sets *text to the comma after the rule, or to the final NUL. */
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
        if (status == STATUS_OK)
            status = term_append(&parsed, term, error);
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
        void *grown = array_grow(parsed, parsed_count, sizeof *parsed);
        status = grown ? rule_parse(workload, &text, room, &exclusion, error)
                       : error_set(error, STATUS_SYSTEM, "out of memory");
        parsed = grown ? grown : parsed;
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
    switch (comparison) {
    case COMPARE_LT:
        return a < b;
    case COMPARE_LE:
        return a <= b;
    case COMPARE_GT:
        return a > b;
    default:
        return a >= b;
    }
}

/* Copies only free texts, because the plan evaluates each term for each configuration. */
static bool term_equal(const struct term *term, const struct config *config)
{
    size_t parameter = (size_t)term->parameter;
    if (config->workload->parameters[parameter].kind != PARAMETER_TEXT)
        return config->values[parameter].first == term->value.first &&
               config->values[parameter].second == term->value.second;
    struct value value = config_get(config, parameter);
    return value_equal(&value, &term->value);
}

static bool term_holds(const struct term *term, const struct config *config)
{
    enum parameter_kind kind = config->workload->parameters[term->parameter].kind;
    int64_t first = config->values[term->parameter].first;
    int64_t second = config->values[term->parameter].second;
    if (term->comparison == COMPARE_EQ || term->comparison == COMPARE_NE)
        return term_equal(term, config) == (term->comparison == COMPARE_EQ);
    if (kind == PARAMETER_PADDING && first < 0)
        return false;
    return order_holds(term->comparison, first, term->value.first) &&
           (kind != PARAMETER_EXTENT || order_holds(term->comparison, second, term->value.second));
}

bool exclusion_holds(const struct exclusion *exclusion, const struct config *config)
{
    for (size_t i = 0; i < exclusion->count; ++i)
        if (!term_holds(&exclusion->terms[i], config))
            return false;
    return true;
}
