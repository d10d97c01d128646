#include "model/json_text.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct json_text json_text_of(const char *text)
{
    return (struct json_text){text, strlen(text)};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the next character after blanks; NUL at the end. */
static char peek(struct json_reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at))
        ++reader->at;
    return reader->at < reader->end ? *reader->at : '\0';
}

static bool take(struct json_reader *reader, char c)
{
    bool found = c != '\0' && peek(reader) == c;
    reader->at += found;
    return found;
}

static bool skip_string(struct json_reader *reader)
{
    if (!take(reader, '"'))
        return false;
    const char *at = reader->at, *end = reader->end;
    for (; at < end && *at != '"'; ++at)
        at += *at == '\\' && at + 1 < end;
    reader->at = at < end ? at + 1 : end;
    return at < end;
}

/* Skips an object or an array by its brackets. */
static bool skip_nested(struct json_reader *reader)
{
    size_t depth = 0;
    while (reader->at < reader->end) {
        const char c = *reader->at;
        if (c == '"') {
            if (!skip_string(reader))
                return false;
            continue;
        }
        ++reader->at;
        depth += c == '{' || c == '[';
        if ((c == '}' || c == ']') && --depth == 0)
            return true;
    }
    return false;
}

/* Skips a number, true, false or null. */
static bool skip_word(struct json_reader *reader)
{
    const char *begin = reader->at;
    while (reader->at < reader->end && *reader->at != ',' && *reader->at != '}' &&
           *reader->at != ']' && !is_blank(*reader->at))
        ++reader->at;
    return reader->at > begin;
}

static bool take_value(struct json_reader *reader, struct json_text *value)
{
    const char c = peek(reader);
    value->at = reader->at;
    if (!(c == '"'               ? skip_string(reader)
          : c == '{' || c == '[' ? skip_nested(reader)
                                 : skip_word(reader)))
        return false;
    value->length = (size_t)(reader->at - value->at);
    return true;
}

static struct json_reader reader_start(struct json_text value, char open, char close)
{
    const char *at = value.at ? value.at : "";
    struct json_reader reader = {at, at + value.length, close, false};
    reader.broken = !take(&reader, open);
    if (!reader.broken && take(&reader, close))
        reader.bracket = '\0';
    return reader;
}

struct json_reader json_reader_object(struct json_text value)
{
    return reader_start(value, '{', '}');
}

struct json_reader json_reader_array(struct json_text value)
{
    return reader_start(value, '[', ']');
}

bool json_reader_next(struct json_reader *reader, struct json_text *name, struct json_text *value)
{
    if (!reader->broken && reader->bracket == '\0') { /* nothing may follow the closing bracket */
        peek(reader);
        reader->broken = reader->at < reader->end;
    }
    if (reader->broken || reader->bracket == '\0')
        return false;
    reader->broken =
        (name && (!take_value(reader, name) || *name->at != '"' || !take(reader, ':'))) ||
        !take_value(reader, value);
    if (!reader->broken && !take(reader, ',')) {
        reader->broken = !take(reader, reader->bracket);
        reader->bracket = '\0';
    }
    return !reader->broken;
}

struct json_text json_member(struct json_text object, const char *name)
{
    struct json_reader reader = json_reader_object(object);
    struct json_text key, value, found = {NULL, 0};
    while (json_reader_next(&reader, &key, &value))
        if (json_text_is(key, name))
            found = value;
    return reader.broken ? (struct json_text){NULL, 0} : found;
}

bool json_text_is(struct json_text value, const char *string)
{
    return value.length > 2 && *value.at == '"' &&
           value.at[1] == *string && /* most names differ in the first letter */
           strlen(string) == value.length - 2 &&
           memcmp(value.at + 1, string, value.length - 2) == 0;
}

/* Refuses "nan" and "0x1", which strtod accepts. strtod stops after the number, because a bracket,
 * comma or blank follows. */
static bool begins_number(struct json_text value)
{
    const char *digit = value.at + (value.length > 1 && *value.at == '-');
    return value.at && isdigit((unsigned char)*digit) && !memchr(value.at, 'x', value.length);
}

bool json_text_number(struct json_text value, double *number)
{
    char *end;
    if (!begins_number(value))
        return false;
    *number = strtod(value.at, &end);
    return end == value.at + value.length;
}

bool json_text_integer(struct json_text value, int64_t *number)
{
    char *end;
    if (!begins_number(value))
        return false;
    errno = 0;
    *number = strtoll(value.at, &end, 10);
    return end == value.at + value.length && errno == 0;
}

static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; ++i)
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x80 || text[i] == '\\')
            return false;
    return true;
}

bool json_text_string(struct json_text value, char *string, size_t size)
{
    if (!value.at || value.length < 2 || *value.at != '"')
        return false;
    if (is_plain(value.at + 1, value.length - 2)) {
        utf8_copy(string, size, value.at + 1, value.length - 2);
        return true;
    }
    json_t *parsed = json_loadb(value.at, value.length, JSON_DECODE_ANY, NULL);
    if (parsed)
        utf8_copy(string, size, json_string_value(parsed), json_string_length(parsed));
    json_decref(parsed);
    return parsed != NULL;
}
