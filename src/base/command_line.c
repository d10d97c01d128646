#include "base/command_line.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The rest of the text, and the end of the word so far. `out` has room for the whole text. */
struct reading {
    const char *next;
    char *out;
};

static void take(struct reading *r)
{
    *r->out++ = *r->next++;
}

/* Takes the text up to the closing quote, and skips that quote. */
static enum status take_quoted(struct reading *r, char quote, struct error *error)
{
    for (; *r->next && *r->next != quote; take(r))
        if (quote == '"' && *r->next == '\\' && r->next[1] && strchr("\"\\", r->next[1]))
            ++r->next;
    if (*r->next == '\0')
        return error_set(error, STATUS_USAGE, "a %c that is not closed", quote);
    ++r->next;
    return STATUS_OK;
}

static enum status take_word(struct reading *r, struct error *error)
{
    while (*r->next && !strchr(" \t", *r->next)) {
        char c = *r->next;
        if (c == '"' || c == '\'') {
            ++r->next;
            TRY(take_quoted(r, c, error));
            continue;
        }
        if (c == '\\' && *++r->next == '\0')
            return error_set(error, STATUS_USAGE, "nothing after the last \\");
        take(r);
    }
    *r->out = '\0';
    return STATUS_OK;
}

static enum status word_add(struct command_line *line, const char *word, struct error *error)
{
    char *copy = word ? strdup(word) : NULL;
    if ((word && !copy) || !ARRAY_GROW(line->words, line->count)) {
        free(copy);
        return error_set(error, STATUS_SYSTEM, "out of memory");
    }
    line->words[line->count] = copy;
    line->count += word != NULL;
    return STATUS_OK;
}

enum status command_line_split(const char *text, struct command_line *line, struct error *error)
{
    struct command_line split = {NULL, 0};
    char *room = malloc(strlen(text) + 1);
    struct reading r = {.next = text};
    enum status status = room ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
    while (status == STATUS_OK && *(r.next += strspn(r.next, " \t"))) {
        r.out = room;
        status = take_word(&r, error);
        status = status ? status : word_add(&split, room, error);
    }
    free(room);
    status = status ? status : word_add(&split, NULL, error);
    if (status)
        command_line_clear(&split);
    else
        *line = split;
    return status;
}

void command_line_clear(struct command_line *line)
{
    for (size_t i = 0; i < line->count; ++i)
        free(line->words[i]);
    free(line->words);
    *line = (struct command_line){NULL, 0};
}

/* Copies `length` bytes and a NUL to `at`. Returns the place of the NUL; NULL if there is no room
 * or `at` is NULL. */
static char *put(char *at, const char *end, const char *text, size_t length)
{
    if (!at || length >= (size_t)(end - at))
        return NULL;
    memcpy(at, text, length);
    at[length] = '\0';
    return at + length;
}

/* Quotes only VALUE in NAME=VALUE, which is easier to read. */
static char *put_word(char *at, const char *end, const char *word)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:,=+@%{}";
    const char *equals = strchr(word, '=');
    size_t named = equals ? (size_t)(equals - word) + 1 : 0, safe = strspn(word, plain);
    if (*word && word[safe] == '\0')
        return put(at, end, word, safe);
    if (safe < named)
        named = 0;
    at = put(at, end, word, named);
    at = put(at, end, "'", 1);
    for (word += named; *word; ++word)
        at = *word == '\'' ? put(at, end, "'\\''", 4) : put(at, end, word, 1);
    return put(at, end, "'", 1);
}

bool command_line_append(char *text, size_t size, const char *word)
{
    char *begin = text + strlen(text), *at = begin, *end = text + size;
    if (at > text)
        at = put(at, end, " ", 1);
    at = put_word(at, end, word);
    if (!at)
        *begin = '\0';
    return at != NULL;
}
