#include "results/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice_rules.h"
#include "base/array.h"
#include "base/units.h"
#include "base/words.h"
#include "manifest/ini_lines.h"
#include "results/advice_value.h"

enum { TRIES_MAX = 3 };

struct advice {
    struct advice_rule *rules; /* owned */
    size_t count;
};

static const char *const kinds[] = {"cause", "try", "constant", NULL};

static enum status rule_begin(struct advice *advice, const char *section, struct error *error)
{
    size_t length = strcspn(section, " ");
    struct advice_rule rule = {.count = 0};
    snprintf(rule.kind, sizeof rule.kind, "%.*s", (int)length, section);
    snprintf(rule.name, sizeof rule.name, "%s", section + length + strspn(section + length, " "));
    if (words_find(kinds, rule.kind) < 0 || !*rule.name)
        return error_set(error, STATUS_USAGE, "[%s] is no rule; begin with cause, try or constant",
                         section);
    void *grown = array_grow(advice->rules, advice->count, sizeof *advice->rules);
    if (!grown)
        return error_set(error, STATUS_SYSTEM, "no memory for the rules of advice");
    advice->rules = grown;
    advice->rules[advice->count++] = rule;
    return STATUS_OK;
}

/* An ini_visit. */
static enum status line_take(void *user, const struct ini_line *line, struct error *error)
{
    struct advice *advice = user;
    if (!line->key)
        return rule_begin(advice, line->section, error);
    struct advice_rule *rule = advice->count > 0 ? &advice->rules[advice->count - 1] : NULL;
    if (!rule || rule->count == ADVICE_KEYS)
        return error_set(error, STATUS_USAGE, "'%s' is one key too many", line->key);
    char *key = strdup(line->key), *value = strdup(line->value);
    if (!key || !value) {
        free(key);
        free(value);
        return error_set(error, STATUS_SYSTEM, "no memory for the rules of advice");
    }
    rule->keys[rule->count] = key;
    rule->values[rule->count++] = value;
    return STATUS_OK;
}

void advice_destroy(struct advice *advice)
{
    if (!advice)
        return;
    for (size_t i = 0; i < advice->count; ++i)
        for (size_t j = 0; j < advice->rules[i].count; ++j) {
            free(advice->rules[i].keys[j]);
            free(advice->rules[i].values[j]);
        }
    free(advice->rules);
    free(advice);
}

enum status advice_parse(const char *text, size_t length, struct advice **advice,
                         struct error *error)
{
    struct advice *read = calloc(1, sizeof *read);
    if (!read)
        return error_set(error, STATUS_SYSTEM, "no memory for the rules of advice");
    enum status status = ini_lines_visit("advice.ini", text, length, line_take, read, error);
    if (status) {
        advice_destroy(read);
        return status;
    }
    *advice = read;
    return STATUS_OK;
}

enum status advice_create(struct advice **advice, struct error *error)
{
    return advice_parse((const char *)advice_rules, sizeof advice_rules, advice, error);
}

/* ---- sentences ---- */

struct sentence {
    struct advice_row row;
    char *text;
    size_t used;
};

static void put(struct sentence *sentence, const char *text, size_t length)
{
    size_t room = ADVICE_TEXT - 1 - sentence->used;
    length = length < room ? length : room;
    memcpy(sentence->text + sentence->used, text, length);
    sentence->used += length;
    sentence->text[sentence->used] = '\0';
}

static void value_format(const struct advice_value *value, const char *format,
                         char text[ADVICE_VALUE])
{
    char scaled[UNITS_TEXT];
    if (isnan(value->number))
        snprintf(text, ADVICE_VALUE, "%s", *value->word ? value->word : "-");
    else if (!*format)
        snprintf(text, ADVICE_VALUE, "%.0f", value->number);
    else if (strcmp(format, "%") == 0)
        snprintf(text, ADVICE_VALUE, "%.1f %%", 100 * value->number);
    else if (strcmp(format, "x") == 0)
        snprintf(text, ADVICE_VALUE, "%.2g", value->number);
    else {
        units_format(value->number, format, scaled);
        snprintf(text, ADVICE_VALUE, "%s", scaled);
    }
}

/* "{VALUE: FORMAT}" without its braces. */
static void hole_fill(struct sentence *sentence, const char *hole, size_t length)
{
    char expression[ADVICE_VALUE], *colon, text[ADVICE_VALUE];
    struct advice_value value;
    const char *format = "";
    snprintf(expression, sizeof expression, "%.*s", (int)length, hole);
    if ((colon = strchr(expression, ':'))) {
        *colon = '\0';
        format = colon + 1 + strspn(colon + 1, " ");
    }
    if (!advice_value_of(&sentence->row, expression, &value))
        value = (struct advice_value){"", NAN};
    value_format(&value, format, text);
    put(sentence, text, strlen(text));
}

static void text_fill(struct sentence *sentence, const struct advice_rule *rule)
{
    const char *text = advice_rule_get(rule, "text");
    while (*text) {
        size_t plain = strcspn(text, "{");
        put(sentence, text, plain);
        text += plain;
        if (!*text)
            break;
        size_t length = strcspn(++text, "}");
        hole_fill(sentence, text, length);
        text += length + (text[length] == '}');
    }
}

/* Whether the first word is this one. */
static bool begins(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && (text[length] == ' ' || text[length] == '\0');
}

/* NULL: no cause of this limiter fits the row. */
static const struct advice_rule *cause_find(const struct advice *advice, const char *limiter,
                                            const struct advice_row *row)
{
    for (size_t i = 0; i < advice->count; ++i) {
        const struct advice_rule *rule = &advice->rules[i];
        if (strcmp(rule->kind, "cause") == 0 && begins(rule->name, limiter) &&
            advice_holds(row, advice_rule_get(rule, "when")))
            return rule;
    }
    return NULL;
}

static bool is_said(const struct advice_rule *const said[TRIES_MAX], size_t count,
                    const struct advice_rule *rule)
{
    char word[ADVICE_NAME];
    for (size_t i = 0; i < count; ++i) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(said[i]->name, " "), said[i]->name);
        if (begins(rule->name, word))
            return true;
    }
    return false;
}

/* The tries that are said, in order. */
static size_t tries_find(const struct advice *advice, const char *limiter,
                         const struct advice_row *row, const struct advice_rule *said[TRIES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < advice->count && count < TRIES_MAX; ++i) {
        const struct advice_rule *rule = &advice->rules[i];
        if (strcmp(rule->kind, "try") == 0 &&
            advice_among(limiter, advice_rule_get(rule, "against")) &&
            !is_said(said, count, rule) && advice_holds(row, advice_rule_get(rule, "when")))
            said[count++] = rule;
    }
    return count;
}

void advice_sentence(const struct advice *advice, const char *limiter, advice_lookup *lookup,
                     const void *row, char text[ADVICE_TEXT])
{
    struct sentence sentence = {{advice->rules, advice->count, lookup, row}, text, 0};
    const struct advice_rule *said[TRIES_MAX];
    const struct advice_rule *cause = cause_find(advice, limiter, &sentence.row);
    if (!cause)
        cause = cause_find(advice, "unknown", &sentence.row);
    *text = '\0';
    if (cause)
        text_fill(&sentence, cause);
    size_t count = tries_find(advice, limiter, &sentence.row, said);
    for (size_t i = 0; i < count; ++i) {
        const char *joint = i == 0 ? "; try " : ", or ";
        put(&sentence, joint, strlen(joint));
        text_fill(&sentence, said[i]);
    }
    put(&sentence, ".", 1);
}
