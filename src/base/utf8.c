#include "base/utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* Characters of several bytes that a terminal or a figure must not see: first and last of a row. */
static const struct {
    const char *first, *last;
} unseen[] = {
    {"\xc2\x80", "\xc2\x9f"},         /* C1: a terminal takes some for the begin of a command */
    {"\xd8\x9c", "\xd8\x9c"},         /* U+061C, turns the direction, as do the next ones */
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

/* Newlines at the end of the format, and none of those at its beginning. */
static size_t newlines_behind(const char *format)
{
    size_t length = strlen(format), count = 0;
    while (count < length && format[length - 1 - count] == '\n')
        ++count;
    return count;
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
    size_t behind = newlines_behind(format), front = strspn(format, "\n");
    front = front == strlen(format) ? 0 : front;
    size_t cleaned = utf8_clean(text + front, (size_t)length - front - behind);
    fwrite(text, 1, front + cleaned, stream);
    fwrite(text + length - behind, 1, behind, stream);
    free(text);
}
