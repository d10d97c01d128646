#include "base/words.h"

#include <stdio.h>
#include <string.h>

enum { NEAR = 2, COMPARED_MAX = 31 };

int words_find(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; ++i)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, row by row; words are short, longer ones are near to nothing. */
static size_t distance(const char *a, const char *b)
{
    size_t width = strlen(b), row[COMPARED_MAX + 1];
    if (strlen(a) > COMPARED_MAX || width > COMPARED_MAX)
        return COMPARED_MAX;
    for (size_t j = 0; j <= width; ++j)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; ++j) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(replaced, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[width];
}

void words_hint(const char *const *words, const char *text, char hint[WORDS_HINT])
{
    const char *nearest = NULL;
    /* Below half of its length: 'cpu' is near to 'gpu', and not what was meant. */
    size_t bound = least(NEAR + 1, strlen(text) / 2), used;
    for (size_t i = 0; words[i]; ++i)
        if (distance(text, words[i]) < bound) {
            bound = distance(text, words[i]);
            nearest = words[i];
        }
    used = nearest ? (size_t)snprintf(hint, WORDS_HINT, "; did you mean '%s'? allowed: ", nearest)
                   : (size_t)snprintf(hint, WORDS_HINT, "; allowed: ");
    for (size_t i = 0; words[i] && used < WORDS_HINT; ++i)
        used += (size_t)snprintf(hint + used, WORDS_HINT - used, "%s%s", i ? ", " : "", words[i]);
    if (used >= WORDS_HINT)
        memcpy(hint + WORDS_HINT - sizeof " ...", " ...", sizeof " ...");
}

enum status words_parse(const char *const *words, const char *text, int *index, struct error *error)
{
    char hint[WORDS_HINT];
    int found = words_find(words, text);
    if (found < 0) {
        words_hint(words, text, hint);
        return error_set(error, STATUS_USAGE, "'%.60s' is unknown%s", text, hint);
    }
    *index = found;
    return STATUS_OK;
}

enum status words_next(const char **text, const char *separators, char item[WORDS_ITEM],
                       struct error *error)
{
    static const char blanks[] = " \t";
    const char *start = *text + strspn(*text, blanks);
    const char *end = start + strcspn(start, separators);
    size_t length = (size_t)(end - start);
    while (length && strchr(blanks, start[length - 1]))
        --length;
    if (length == 0)
        return *end ? error_set(error, STATUS_USAGE, "an empty item before '%.40s'", end)
                    : error_set(error, STATUS_USAGE, "an empty item at the end");
    if (length >= WORDS_ITEM)
        return error_set(error, STATUS_USAGE, "'%.*s...' is longer than %d bytes", WORDS_ITEM / 2,
                         start, WORDS_ITEM - 1);
    memcpy(item, start, length);
    item[length] = '\0';
    *text = end;
    return STATUS_OK;
}
