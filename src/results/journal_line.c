#include "results/journal_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The line's frame. The checksum is of what stands between CHECKED and the last brace. */
#define FRAME_START "{\"xxh3\":\""
#define FRAME_KIND  "\",\"kind\":"
enum {
    CHECKSUM_LENGTH = 16,
    CHECKSUM_AT = sizeof FRAME_START - 1,
    KIND_AT = CHECKSUM_AT + CHECKSUM_LENGTH,
    CHECKED_AT = KIND_AT + sizeof FRAME_KIND - 1,
};
_Static_assert((int)CHECKSUM_AT == (int)JOURNAL_LINE_START, "the frame's start");

char *journal_line_format(const char *kind, const json_t *entry, bool first, size_t *length)
{
    char *text = json_dumps(entry, JSON_COMPACT), *line = NULL, format[32] = "";
    int size = -1;
    if (first)
        snprintf(format, sizeof format, "\"format\":%d,", JOURNAL_FORMAT);
    if (text)
        size = asprintf(&line, FRAME_START "%16s" FRAME_KIND "\"%s\",%s\"entry\":%s}\n", "", kind,
                        format, text);
    free(text);
    if (size < 0)
        return NULL;
    char checksum[CHECKSUM_LENGTH + 1];
    size_t checked = (size_t)size - CHECKED_AT - strlen("}\n");
    snprintf(checksum, sizeof checksum, "%016" PRIx64, XXH3_64bits(line + CHECKED_AT, checked));
    memcpy(line + CHECKSUM_AT, checksum, CHECKSUM_LENGTH);
    *length = (size_t)size;
    return line;
}

bool journal_line_begins(const char *text, size_t length)
{
    return memcmp(text, FRAME_START, length < CHECKSUM_AT ? length : CHECKSUM_AT) == 0;
}

bool journal_line_holds(const char *line, size_t length)
{
    if (length <= CHECKED_AT || line[length - 1] != '}' ||
        memcmp(line, FRAME_START, CHECKSUM_AT) != 0 ||
        memcmp(line + KIND_AT, FRAME_KIND, CHECKED_AT - KIND_AT) != 0)
        return false;
    char checksum[CHECKSUM_LENGTH + 1];
    snprintf(checksum, sizeof checksum, "%016" PRIx64,
             XXH3_64bits(line + CHECKED_AT, length - CHECKED_AT - 1));
    return memcmp(line + CHECKSUM_AT, checksum, CHECKSUM_LENGTH) == 0;
}
