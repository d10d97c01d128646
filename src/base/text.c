#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NEAR = 2, BEGIN = 3, COMPARED_MAX = 31 };
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

/* Optimal string alignment: Levenshtein's distance in which two swapped neighbours are one typo. A
 * word of more than COMPARED_MAX bytes has the distance COMPARED_MAX from all others. */
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
            size_t replaced = last[j - 1] + (strncasecmp(a + i - 1, b + j - 1, 1) != 0);
            row[j] = least(replaced, least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], last_but_one[j - 2] + 1);
        }
    }
    return rows[strlen(a) % 3][width];
}

/* Words of other programs and papers, each followed by roofsweep's word. */
static const char *const synonyms[] = {
    "rnn",         "lstm",   "gru",         "lstm",      "gemm",         "matmul",   "fc",
    "linear",      "dtype",  "precision",   "data_type", "precision",    "float",    "fp32",
    "single",      "fp32",   "float32",     "fp32",      "double",       "fp64",     "float64",
    "fp64",        "half",   "fp16",        "float16",   "fp16",         "bfloat16", "bf16",
    "kernel_size", "kernel", "in_channels", "channels",  "out_channels", "filters"};

const char *words_nearest(const char *const *words, const char *text)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i += 2)
        if (strcasecmp(synonyms[i], text) == 0 && words_find(words, synonyms[i + 1]) >= 0)
            return synonyms[i + 1];
    /* A typo has fewer wrong letters than half its length, rounded down. A text of three letters
     * may have none wrong, so 'cpu' is no typo of 'gpu'. */
    size_t length = strlen(text), bound = least(NEAR + 1, length / 2);
    for (size_t i = 0; words[i]; ++i)
        if (distance(text, words[i]) < bound) {
            bound = distance(text, words[i]);
            nearest = words[i];
        }
    for (size_t i = 0; words[i] && !nearest && length >= BEGIN; ++i)
        if (strncmp(words[i], text, length) == 0)
            nearest = words[i];
    return nearest;
}

void words_hint(const char *const *words, const char *text, char hint[WORDS_HINT])
{
    const char *nearest = words_nearest(words, text);
    size_t used =
        nearest ? (size_t)snprintf(hint, WORDS_HINT, "; did you mean '%s'? allowed: ", nearest)
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
    for (int i = 0; words[i] && found < 0; ++i)
        found = strcasecmp(words[i], text) == 0 ? i : -1;
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

/* Copies the item from `start` to `end`, without trailing blanks. */
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
        const char *after = *end == '"' ? words_quote_end(end) : end + 1;
        if (!after)
            return error_set(error, STATUS_USAGE, "%.40s has no closing quote", end);
        end = after;
    }
    enum status status = item_copy(start, end, item, size, error);
    if (status == STATUS_OK)
        *text = end;
    return status;
}

/* ---- UTF-8 ---- */

size_t utf8_character(const char *characters, size_t left)
{
    const unsigned char *text = (const unsigned char *)characters;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80)
        return (text[0] >= 0x20 && text[0] != 0x7f) || text[0] == '\t';
    size_t bytes = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc0 || text[0] > 0xf7 || bytes > left)
        return 0;
    uint32_t code = text[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; ++i) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[bytes] || code > 0x10ffff || surrogate ? 0 : bytes;
}

void utf8_copy(char *copy, size_t size, const char *text, size_t length)
{
    if (length >= size)
        for (length = size - 1; length > 0 && (text[length] & 0xc0) == 0x80;)
            --length;
    memcpy(copy, text, length);
    copy[length] = '\0';
}

/* Ranges (first and last) of multi-byte characters that terminals and figures must not get. */
static const struct {
    const char *first, *last;
} unseen[] = {
    {"\xc2\x80", "\xc2\x9f"},         /* C1: some begin a command of a terminal */
    {"\xd8\x9c", "\xd8\x9c"},         /* U+061C changes the direction, as do the next rows */
    {"\xe2\x80\x8e", "\xe2\x80\x8f"}, /* U+200E, U+200F */
    {"\xe2\x80\xa8", "\xe2\x80\xae"}, /* U+2028, U+2029: ends of lines; U+202A to U+202E */
    {"\xe2\x81\xa6", "\xe2\x81\xa9"}, /* U+2066 to U+2069 */
};

static bool is_seen(const char *text, size_t bytes)
{
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; ++i)
        if (strlen(unseen[i].first) == bytes && memcmp(text, unseen[i].first, bytes) >= 0 &&
            memcmp(text, unseen[i].last, bytes) <= 0)
            return false;
    return bytes > 0;
}

static size_t clean(char *text, size_t length, char kept)
{
    size_t to = 0;
    for (size_t from = 0, bytes; from < length; from += bytes ? bytes : 1) {
        bytes = utf8_character(text + from, length - from);
        if (is_seen(text + from, bytes)) {
            memmove(text + to, text + from, bytes);
            to += bytes;
        } else {
            text[to++] = kept && text[from] == kept ? kept : '?';
        }
    }
    return to;
}

size_t utf8_clean(char *text, size_t length)
{
    return clean(text, length, '\0');
}

size_t utf8_clean_lines(char *text, size_t length)
{
    return clean(text, length, '\n');
}

void utf8_print(FILE *stream, const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        fputs("(no memory for this line)\n", stream);
        return;
    }
    /* Keeps the newlines at the beginning and the end of the format. */
    size_t whole = strlen(format), front = strspn(format, "\n"), after = 0;
    while (after < whole && format[whole - 1 - after] == '\n')
        ++after;
    front = front == whole ? 0 : front;
    size_t cleaned = utf8_clean(text + front, (size_t)length - front - after);
    fwrite(text, 1, front + cleaned, stream);
    fwrite(text + length - after, 1, after, stream);
    free(text);
}

void tail_append(struct tail *tail, const char *text, size_t length)
{
    if (length > TAIL_MAX) {
        text += length - TAIL_MAX;
        length = TAIL_MAX;
    }
    size_t kept = tail->length;
    if (kept + length > TAIL_MAX)
        kept = TAIL_MAX - length;
    memmove(tail->text, tail->text + tail->length - kept, kept);
    memcpy(tail->text + kept, text, length);
    tail->length = kept + length;
    tail->text[tail->length] = '\0';
}

void tail_join(struct tail *tail)
{
    /* strchr also finds a NUL. */
    while (tail->length > 0 && strchr("\n", tail->text[tail->length - 1]))
        tail->text[--tail->length] = '\0';
    for (char *c = tail->text; c < tail->text + tail->length; ++c)
        if ((unsigned char)*c < ' ')
            *c = *c == '\n' ? '|' : ' ';
}
