#include "manifest/ini_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char blanks[] = " \t";

/* A text while it is read. */
struct lines {
    const char *next, *end;           /* the unread rest */
    int number;                       /* number of `line`, from 1 */
    char *line;                       /* owned; without comment and trailing blanks */
    char section[INI_NAME_BYTES + 1]; /* section of the line; "" before the first section */
};

static enum status bytes_check(const char *text, size_t length, struct error *error)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0, step; i < length; i += step)
        if ((step = utf8_character(text + i, length - i)) == 0)
            return error_set(error, STATUS_USAGE, "not %s (byte 0x%02x)%s",
                             bytes[i] < 0x80 ? "a text file" : "UTF-8 text", bytes[i],
                             bytes[i] == '\r'   ? "; lines end in CR alone: save it with LF"
                             : bytes[i] >= 0x80 ? "; save it as UTF-8"
                                                : "");
    if (length > INI_LINE_BYTES && !strchr("|#", *text))
        return error_set(error, STATUS_USAGE, "a line of %zu bytes; at most %d are allowed", length,
                         INI_LINE_BYTES);
    return STATUS_OK;
}

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

/* Checks "[NAME]" and "KEY = VALUE". */
static enum status names_check(const char *line, struct error *error)
{
    const bool section = line[0] == '[';
    size_t length = section ? strcspn(line + 1, "]") : strcspn(line, "=:");
    const char *end = line + section + length;
    if (section && *end != ']')
        return error_set(error, STATUS_USAGE, "'%.60s' has no closing bracket", line);
    if (!section && (*end != '=' || length == 0))
        return error_set(error, STATUS_USAGE,
                         "'%.60s' is neither '[section]', 'key = value' nor '; comment'", line);
    if (length > INI_NAME_BYTES)
        return error_set(error, STATUS_USAGE, "a %s of %zu bytes; at most %d are allowed",
                         section ? "section name" : "key", length, INI_NAME_BYTES);
    if (section && end[1] != '\0')
        return error_set(error, STATUS_USAGE, "'%.60s' after a section; begin a new line",
                         end + 1 + strspn(end + 1, blanks));
    return STATUS_OK;
}

static enum status line_check(const char *line, struct error *error)
{
    size_t indent = strspn(line, blanks), begin = 0, length = strlen(line);
    if (indent)
        return error_set(error, STATUS_USAGE,
                         "'%.60s' is indented; sections and keys begin in the first column",
                         line + indent);
    if (line[0] == '\0')
        return STATUS_OK;
    TRY(names_check(line, error));
    for (size_t i = 1; i <= length; ++i) {
        /* Words end after a blank or a comma. */
        if (i < length && !(strchr(" \t,", line[i - 1]) && !strchr(" \t;#", line[i])))
            continue;
        if (i - begin > INI_WORD_BYTES)
            return error_set(error, STATUS_USAGE,
                             "'%.40s...' is longer than %d bytes without a blank or a comma",
                             line + begin, INI_WORD_BYTES);
        begin = i;
    }
    return STATUS_OK;
}

/* Reads the next line, which must exist. */
static enum status line_read(struct lines *lines, struct error *error)
{
    const char *start = lines->next;
    const char *newline = memchr(start, '\n', (size_t)(lines->end - start));
    size_t length = (size_t)((newline ? newline : lines->end) - start);
    lines->next += length + (newline != NULL);
    lines->number += 1;
    if (length && start[length - 1] == '\r')
        --length;
    TRY(bytes_check(start, length, error));
    memcpy(lines->line, start, length);
    lines->line[length] = '\0';
    if (*lines->line == '|')
        return STATUS_OK;
    line_trim(lines->line);
    return line_check(lines->line, error);
}

static enum status line_visit(struct lines *lines, ini_visit visit, void *user, struct error *error)
{
    TRY(line_read(lines, error));
    if (lines->line[0] == '\0')
        return STATUS_OK;
    struct ini_line line = {lines->section, NULL, "", lines->number};
    if (lines->line[0] == '|') {
        line.key = "|";
        line.value = lines->line + 1;
    } else if (lines->line[0] == '[') {
        snprintf(lines->section, sizeof lines->section, "%.*s",
                 (int)(strlen(lines->line) - strlen("[]")), lines->line + 1);
    } else {
        char *end = strchr(lines->line, '=');
        line.value = end + 1 + strspn(end + 1, blanks);
        while (end > lines->line && strchr(blanks, end[-1]))
            --end;
        *end = '\0';
        line.key = lines->line;
    }
    enum status status = visit(user, &line, error);
    /* Errors quote values; only a value can contain '#'. */
    if (status == STATUS_USAGE && line.key && *line.key != '|' && strstr(line.value, " #") &&
        strchr(error->text, '#'))
        error_append(error, status, "; a comment after a value begins with a blank and ';'");
    return status;
}

enum status ini_lines_visit(const char *path, const char *text, size_t length, ini_visit visit,
                            void *user, struct error *error)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark; some editors write it */
    size_t skipped = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    struct lines lines = {.next = text + skipped, .end = text + length, .line = malloc(length + 1)};
    enum status status = lines.line ? STATUS_OK : error_set(error, STATUS_SYSTEM, "out of memory");
    while (status == STATUS_OK && lines.next < lines.end)
        status = line_visit(&lines, visit, user, error);
    free(lines.line);
    return error_prefix(error, status, "%s:%d", path, lines.number);
}

void ini_section_split(const char *text, char name[INI_NAME_BYTES + 1],
                       char label[INI_NAME_BYTES + 1])
{
    text += strspn(text, blanks);
    size_t length = strcspn(text, blanks);
    snprintf(name, INI_NAME_BYTES + 1, "%.*s", (int)length, text);
    text += length;
    snprintf(label, INI_NAME_BYTES + 1, "%s", text + strspn(text, blanks));
    length = strlen(label);
    while (length && strchr(blanks, label[length - 1]))
        label[--length] = '\0';
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
