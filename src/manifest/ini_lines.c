#include "manifest/ini_lines.h"

#include <ini.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"

static const char blanks[] = " \t";

/* Where the reading of a text stands; the stream that inih's reader sees, and its handler's user.
 */
struct lines {
    const char *next, *end;        /* what is still unread */
    int number;                    /* of the line being read, from 1 */
    char line[INI_LINE_BYTES + 1]; /* it */
    const char *rest;              /* what of it inih has not got yet; "" at its end */
    bool begins;                   /* inih has got a section, and is yet to report it */
    bool continues;                /* the next piece continues a value */
    char key[INI_NAME_BYTES + 1], value[INI_LINE_BYTES + 1];
    ini_visit visit;
    void *user;
    enum status status; /* of the first failure */
    struct error *error;
};

/* Bytes of the UTF-8 character at `text`, 0 if it is none or a control character. */
static size_t character_bytes(const unsigned char *text, size_t left)
{
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

static enum status bytes_check(const char *text, size_t length, struct error *error)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0, step; i < length; i += step)
        if ((step = character_bytes(bytes + i, length - i)) == 0)
            return error_set(error, STATUS_USAGE, "not %s (byte 0x%02x)",
                             bytes[i] < 0x80 ? "a text file" : "UTF-8 text", bytes[i]);
    if (length > INI_LINE_BYTES)
        return error_set(error, STATUS_USAGE, "a line of %zu bytes; at most %d are allowed", length,
                         INI_LINE_BYTES);
    return STATUS_OK;
}

/* Cuts a comment and trailing blanks off. */
static void line_trim(char *line)
{
    size_t length = 0;
    bool comment = line[strspn(line, blanks)] == '#';
    for (size_t i = 0; line[i] && !comment; ++i) {
        bool blank = strchr(blanks, line[i]) != NULL;
        comment = line[i] == ';' && (i == 0 || strchr(blanks, line[i - 1]));
        if (!comment && !blank)
            length = i + 1;
    }
    line[length] = '\0';
}

static enum status section_check(const char *line, struct error *error)
{
    size_t length = strcspn(line + 1, "]");
    const char *close = line + 1 + length;
    if (*close != ']')
        return error_set(error, STATUS_USAGE, "'%.60s' has no closing bracket", line);
    if (length > INI_NAME_BYTES)
        return error_set(error, STATUS_USAGE, "a section name of %zu bytes; at most %d are allowed",
                         length, INI_NAME_BYTES);
    if (close[1] != '\0')
        return error_set(error, STATUS_USAGE, "'%.60s' behind a section; begin a new line",
                         close + 1 + strspn(close + 1, blanks));
    return STATUS_OK;
}

/* Refuses what inih would take in silence. */
static enum status line_check(const char *line, struct error *error)
{
    size_t indent = strspn(line, blanks);
    if (indent)
        return error_set(error, STATUS_USAGE,
                         "'%.60s' is indented; sections and keys begin in the first column",
                         line + indent);
    if (line[0] == '[')
        return section_check(line, error);
    size_t key = strcspn(line, "=:");
    if (line[0] && (line[key] != '=' || key == 0))
        return error_set(error, STATUS_USAGE,
                         "'%.60s' is neither '[section]', 'key = value' nor '; comment'", line);
    if (key > INI_NAME_BYTES)
        return error_set(error, STATUS_USAGE, "a key of %zu bytes; at most %d are allowed", key,
                         INI_NAME_BYTES);
    return STATUS_OK;
}

/* Reads the next line; false at the end of the text, or with lines->status set. */
static bool line_next(struct lines *lines)
{
    if (lines->next == lines->end)
        return false;
    const char *start = lines->next;
    const char *newline = memchr(start, '\n', (size_t)(lines->end - start));
    size_t length = (size_t)((newline ? newline : lines->end) - start);
    lines->next += length + (newline != NULL);
    lines->number += 1;
    if (length && start[length - 1] == '\r')
        --length;
    lines->status = bytes_check(start, length, lines->error);
    if (lines->status)
        return false;
    memcpy(lines->line, start, length);
    lines->line[length] = '\0';
    line_trim(lines->line);
    lines->status = line_check(lines->line, lines->error);
    lines->rest = lines->line;
    return lines->status == STATUS_OK;
}

/* Bytes of `rest` that fit, up to a place between two words or items; 0 if there is no such place.
 * No piece begins with what inih would take for a comment. */
static size_t piece_bytes(const char *rest, size_t room)
{
    size_t bytes = strlen(rest);
    if (bytes <= room)
        return bytes;
    for (bytes = room; bytes; --bytes)
        if (strchr(" \t,", rest[bytes - 1]) && !strchr(" \t;#", rest[bytes]))
            break;
    return bytes;
}

/* An ini_reader. After a section it adds a line of its own, without a key, because inih reports a
 * section only together with a key. A blank in front makes a piece continue the value before it. */
static char *line_read(char *piece, int size, void *stream)
{
    struct lines *lines = stream;
    if (lines->begins) {
        lines->begins = false;
        snprintf(piece, (size_t)size, "=\n");
        return piece;
    }
    while (lines->status == STATUS_OK && *lines->rest == '\0')
        if (!line_next(lines))
            return NULL;
    if (lines->status)
        return NULL;
    size_t bytes = piece_bytes(lines->rest, (size_t)size - sizeof " \n");
    if (bytes == 0) {
        lines->status = error_set(lines->error, STATUS_USAGE,
                                  "'%.40s...' is longer than %d bytes without a blank or a comma",
                                  lines->rest, size - (int)sizeof " \n");
        return NULL;
    }
    snprintf(piece, (size_t)size, "%s%.*s\n", lines->continues ? " " : "", (int)bytes, lines->rest);
    lines->begins = piece[0] == '[';
    lines->rest += bytes;
    return piece;
}

/* An ini_handler. */
static int piece_take(void *user, const char *section, const char *key, const char *value)
{
    struct lines *lines = user;
    size_t used = lines->continues ? strlen(lines->value) : 0;
    if (!lines->continues)
        snprintf(lines->key, sizeof lines->key, "%s", key);
    snprintf(lines->value + used, sizeof lines->value - used, "%s%s", value,
             *lines->rest && strchr(blanks, lines->rest[-1]) ? " " : "");
    lines->continues = *lines->rest != '\0';
    if (lines->continues)
        return 1;
    struct ini_line line = {section, *lines->key ? lines->key : NULL, lines->value, lines->number};
    lines->status = lines->visit(lines->user, &line, lines->error);
    return lines->status == STATUS_OK;
}

enum status ini_lines_visit(const char *path, const char *text, size_t length, ini_visit visit,
                            void *user, struct error *error)
{
    static const char mark[] = "\xef\xbb\xbf"; /* how some editors begin a UTF-8 file */
    size_t skipped = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    struct lines lines = {
        .next = text + skipped,
        .end = text + length,
        .rest = "",
        .visit = visit,
        .user = user,
        .error = error,
    };
    int refused = ini_parse_stream(line_read, &lines, piece_take, &lines);
    if (refused && lines.status == STATUS_OK)
        return error_set(error, STATUS_SYSTEM, "%s: the INI library refuses it (%d)", path,
                         refused);
    if (lines.status)
        error_prefix(error, "%s:%d", path, lines.number);
    return lines.status;
}

enum status ini_line_first(const struct ini_line *line, int *noted, struct error *error)
{
    if (*noted)
        return error_set(error, STATUS_USAGE, "%s%s%s is here a second time; first in line %d",
                         line->key ? "key '" : "section [", line->key ? line->key : line->section,
                         line->key ? "'" : "]", *noted);
    *noted = line->number;
    return STATUS_OK;
}

enum status ini_line_unknown(const struct ini_line *line, const char *const *keys, const char *home,
                             struct error *error)
{
    char hint[WORDS_HINT];
    if (home)
        return error_set(error, STATUS_USAGE, "unknown key '%s' in [%s]; it belongs in [%s]",
                         line->key, line->section, home);
    words_hint(keys, line->key, hint);
    return error_set(error, STATUS_USAGE, "unknown key '%s' in [%s]%s", line->key, line->section,
                     hint);
}
