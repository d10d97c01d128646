#include "results/advice_value.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *advice_rule_get(const struct advice_rule *rule, const char *key)
{
    for (size_t i = 0; i < rule->count; ++i)
        if (strcmp(rule->keys[i], key) == 0)
            return rule->values[i];
    return "";
}

/* Copies without the blanks around it what lies before `end`. */
static void trimmed(const char *begin, const char *end, char text[ADVICE_VALUE])
{
    while (begin < end && *begin == ' ')
        ++begin;
    while (end > begin && end[-1] == ' ')
        --end;
    snprintf(text, ADVICE_VALUE, "%.*s", (int)(end - begin), begin);
}

/* Calls `visit` with each part of a list until it returns true, and says whether it did. */
static bool any_part(const char *list, char separator, bool (*visit)(void *user, const char *part),
                     void *user)
{
    char part[ADVICE_VALUE];
    for (const char *end; *list; list = *end ? end + 1 : end) {
        for (end = list; *end && *end != separator;)
            ++end;
        trimmed(list, end, part);
        if (visit(user, part))
            return true;
    }
    return false;
}

static bool is_equal(void *user, const char *part)
{
    return strcmp(user, part) == 0;
}

bool advice_among(const char *word, const char *words)
{
    char copy[ADVICE_VALUE];
    snprintf(copy, sizeof copy, "%s", word);
    return any_part(words, ',', is_equal, copy);
}

/* ---- values ---- */

static bool is_missing(const struct advice_value *value)
{
    return isnan(value->number) && !*value->word;
}

static void number_read(const char *text, struct advice_value *value)
{
    char *end;
    double number = strtod(text, &end);
    *value = (struct advice_value){"", NAN};
    if (end != text && *end == '\0')
        value->number = number;
    else
        snprintf(value->word, sizeof value->word, "%s", text);
}

struct search {
    const struct advice_row *row;
    struct advice_value *value;
};

static bool variable_find(void *user, const char *name)
{
    const struct search *search = user;
    return search->row->lookup(search->row->row, name, "", search->value) &&
           !is_missing(search->value);
}

static const struct advice_rule *constant_find(const struct advice_row *row, const char *name)
{
    for (size_t i = 0; i < row->count; ++i)
        if (strcmp(row->rules[i].kind, "constant") == 0 && strcmp(row->rules[i].name, name) == 0)
            return &row->rules[i];
    return NULL;
}

static bool constant_value(const struct advice_row *row, const struct advice_rule *constant,
                           struct advice_value *value)
{
    struct search search = {row, value};
    if (!any_part(advice_rule_get(constant, "of"), ',', variable_find, &search))
        return false;
    const char *found = advice_rule_get(constant, value->word);
    number_read(found, value);
    return *found != '\0';
}

/* NAME, NAME[OTHER], a constant, or a number. */
static bool operand_value(const struct advice_row *row, const char *operand,
                          struct advice_value *value)
{
    char name[ADVICE_VALUE], other[ADVICE_VALUE];
    struct advice_value level = {"", NAN};
    const struct advice_rule *constant = constant_find(row, operand);
    if (constant)
        return constant_value(row, constant, value);
    if (isdigit((unsigned char)*operand)) {
        number_read(operand, value);
        return true;
    }
    const char *bracket = strchr(operand, '['), *close = strchr(operand, ']');
    trimmed(operand, bracket ? bracket : operand + strlen(operand), name);
    if (bracket && close) {
        trimmed(bracket + 1, close, other);
        if (!row->lookup(row->row, other, "", &level) || !*level.word)
            return false;
    }
    return row->lookup(row->row, name, level.word, value) && !is_missing(value);
}

bool advice_value_of(const struct advice_row *row, const char *expression,
                     struct advice_value *value)
{
    char left[ADVICE_VALUE], right[ADVICE_VALUE];
    struct advice_value divisor;
    size_t length = strcspn(expression, "/%");
    char operator= expression[length];
    trimmed(expression, expression + length, left);
    if (!operand_value(row, left, value))
        return false;
    if (!operator)
        return true;
    trimmed(expression + length + 1, expression + strlen(expression), right);
    if (!operand_value(row, right, &divisor))
        return false;
    value->number = operator== '%' ? fmod(value->number, divisor.number)
                                   : value->number / divisor.number;
    return isfinite(value->number);
}

/* ---- conditions ---- */

struct comparison {
    const struct advice_value *value;
};

static bool value_is(void *user, const char *part)
{
    const struct comparison *comparison = user;
    struct advice_value other;
    number_read(part, &other);
    if (!isnan(comparison->value->number))
        return comparison->value->number == other.number;
    return strcmp(comparison->value->word, part) == 0;
}

/* A visit of any_part: true once a term does not hold. */
static bool term_fails(void *user, const char *term)
{
    const struct advice_row *row = user;
    char expression[ADVICE_VALUE];
    struct advice_value value;
    size_t length = strcspn(term, "=!<>");
    trimmed(term, term + length, expression);
    if (!advice_value_of(row, expression, &value))
        return true;
    const char *behind = term + length + strspn(term + length, "=!<>");
    struct comparison comparison = {&value};
    switch (term[length]) {
    case '=':
        return !any_part(behind, ',', value_is, &comparison);
    case '!':
        return any_part(behind, ',', value_is, &comparison);
    case '>':
        return !(value.number > strtod(behind, NULL));
    case '<':
        return !(value.number < strtod(behind, NULL));
    default:
        return false;
    }
}

bool advice_holds(const struct advice_row *row, const char *when)
{
    struct advice_row copy = *row;
    return !any_part(when, '&', term_fails, &copy);
}
