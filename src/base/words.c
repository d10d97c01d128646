#include "base/words.h"

#include <stdio.h>
#include <string.h>

enum { NEAR = 2, COMPARED_MAX = 31 };
static const char blanks[] = " \t";

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

/* Levenshtein's distance, row by row; two neighbours in the wrong order are one slip (optimal string
 * alignment). A word too long for the row counts as far from everything. */
static size_t distance(const char *a, const char *b)
{
    size_t width = strlen(b), rows[3][COMPARED_MAX + 1];
    if (strlen(a) > COMPARED_MAX || width > COMPARED_MAX)
        return COMPARED_MAX;
    for (size_t j = 0; j <= width; ++j)
        rows[0][j] = j;
    for (size_t i = 1; a[i - 1]; ++i) {
        size_t *row = rows[i % 3], *last = rows[(i - 1) % 3], *last_but_one = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= width; ++j) {
            size_t replaced = last[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(replaced, least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], last_but_one[j - 2] + 1);
        }
    }
    return rows[strlen(a) % 3][width];
}

void words_hint(const char *const *words, const char *text, char hint[WORDS_HINT])
{
    const char *nearest = NULL;
    /* More than half of the letters must be right: 'cpu' is no slip for 'gpu'. */
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

const char *words_quote_end(const char *text)
{
    for (++text; *text; ++text) {
        if (*text == '"')
            return text + 1;
        if (*text == '\\' && text[1])
            ++text;
    }
    return NULL;
}

/* The item from `start` to `end`, without the blanks behind it. */
static enum status item_copy(const char *start, const char *end, char *item, size_t size,
                             struct error *error)
{
    size_t length = (size_t)(end - start);
    while (length && strchr(blanks, start[length - 1]))
        --length;
    if (length == 0)
        return *end ? error_set(error, STATUS_USAGE, "an empty item before '%.40s'", end)
                    : error_set(error, STATUS_USAGE, "an empty item at the end");
    if (length >= size)
        return error_set(error, STATUS_USAGE, "'%.*s...' is longer than %zu bytes", WORDS_ITEM / 2,
                         start, size - 1);
    memcpy(item, start, length);
    item[length] = '\0';
    return STATUS_OK;
}

enum status words_next(const char **text, const char *separators, char item[WORDS_ITEM],
                       struct error *error)
{
    const char *start = *text + strspn(*text, blanks);
    const char *end = start + strcspn(start, separators);
    enum status status = item_copy(start, end, item, WORDS_ITEM, error);
    if (status == STATUS_OK)
        *text = end;
    return status;
}

enum status words_next_quoted(const char **text, const char *separators, char *item, size_t size,
                              struct error *error)
{
    const char *start = *text + strspn(*text, blanks), *end = start;
    while (*end && !strchr(separators, *end)) {
        const char *behind = *end == '"' ? words_quote_end(end) : end + 1;
        if (!behind)
            return error_set(error, STATUS_USAGE, "%.40s has no closing quote", end);
        end = behind;
    }
    enum status status = item_copy(start, end, item, size, error);
    if (status == STATUS_OK)
        *text = end;
    return status;
}
