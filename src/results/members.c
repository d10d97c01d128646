#include "results/members.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *at, *end;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static char peek(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_space(*cursor->at))
        ++cursor->at;
    return cursor->at < cursor->end ? *cursor->at : '\0';
}

static bool take(struct cursor *cursor, char c)
{
    bool there = c != '\0' && peek(cursor) == c;
    cursor->at += there;
    return there;
}

static bool skip_string(struct cursor *cursor)
{
    if (!take(cursor, '"'))
        return false;
    for (; cursor->at < cursor->end && *cursor->at != '"'; ++cursor->at)
        if (*cursor->at == '\\')
            ++cursor->at;
    return take(cursor, '"');
}

static bool opens(char c)
{
    return c == '{' || c == '[';
}

static bool closes(char c)
{
    return c == '}' || c == ']';
}

/* From an opening bracket after the one that closes it. */
static bool skip_nested(struct cursor *cursor)
{
    size_t depth = 0;
    do {
        char c = peek(cursor);
        if (c == '"') {
            if (!skip_string(cursor))
                return false;
            continue;
        }
        if (c == '\0')
            return false;
        depth += opens(c);
        depth -= closes(c);
        ++cursor->at;
    } while (depth > 0);
    return true;
}

/* A number, true, false, null: up to what ends it. */
static bool skip_word(struct cursor *cursor)
{
    const char *begin = cursor->at;
    while (cursor->at < cursor->end && *cursor->at != ',' && !closes(*cursor->at) &&
           !is_space(*cursor->at))
        ++cursor->at;
    return cursor->at > begin;
}

static bool skip_value(struct cursor *cursor)
{
    char c = peek(cursor);
    return c == '"' ? skip_string(cursor) : opens(c) ? skip_nested(cursor) : skip_word(cursor);
}

/* `name` with its quotes. */
static struct member *find_member(struct member *members, size_t count, const char *name,
                                  size_t length)
{
    for (size_t i = 0; i < count; ++i)
        if (strlen(members[i].name) == length - 2 &&
            memcmp(members[i].name, name + 1, length - 2) == 0)
            return &members[i];
    return NULL;
}

static bool take_member(struct cursor *cursor, struct member *members, size_t count)
{
    peek(cursor);
    const char *name = cursor->at;
    if (!skip_string(cursor))
        return false;
    struct member *found = find_member(members, count, name, (size_t)(cursor->at - name));
    if (!take(cursor, ':') || (found && found->value))
        return false;
    peek(cursor);
    const char *value = cursor->at;
    if (!skip_value(cursor))
        return false;
    if (found) {
        found->value = value;
        found->length = (size_t)(cursor->at - value);
    }
    return true;
}

bool members_find(const char *text, size_t length, struct member *members, size_t count)
{
    struct cursor cursor = {text, text + length};
    for (size_t i = 0; i < count; ++i) {
        members[i].value = NULL;
        members[i].length = 0;
    }
    if (!take(&cursor, '{'))
        return false;
    if (!take(&cursor, '}')) {
        do
            if (!take_member(&cursor, members, count))
                return false;
        while (take(&cursor, ','));
        if (!take(&cursor, '}'))
            return false;
    }
    return peek(&cursor) == '\0';
}

size_t member_elements(const struct member *member)
{
    if (!member->value)
        return 0;
    struct cursor cursor = {member->value, member->value + member->length};
    size_t count = 0;
    if (!take(&cursor, '[') || peek(&cursor) == ']')
        return 0;
    do
        count += skip_value(&cursor);
    while (take(&cursor, ','));
    return count;
}

double member_number(const struct member *member)
{
    char *end = NULL;
    double value = member->value ? strtod(member->value, &end) : NAN;
    return end && end == member->value + member->length ? value : NAN;
}

bool member_text(const struct member *member, char *text)
{
    if (!member->value || member->length < 2 || *member->value != '"')
        return false;
    if (!memchr(member->value, '\\', member->length)) {
        memcpy(text, member->value + 1, member->length - 2);
        text[member->length - 2] = '\0';
        return true;
    }
    json_t *string = json_loadb(member->value, member->length, JSON_DECODE_ANY, NULL);
    if (string)
        strcpy(text, json_string_value(string)); /* no escape is shorter than what it stands for */
    json_decref(string);
    return string != NULL;
}
