#include "base/line.h"

#include <stdbool.h>
#include <stdlib.h>

/* Room for one byte more than `length`. */
static bool line_grow(char **line, size_t *size, size_t length)
{
    if (length < *size)
        return true;
    size_t larger = *size ? 2 * *size : 4096;
    char *grown = realloc(*line, larger);
    if (!grown)
        return false;
    *line = grown;
    *size = larger;
    return true;
}

ssize_t line_read(FILE *stream, size_t most, char **line, size_t *size)
{
    size_t length = 0;
    int byte = 0;
    while (length <= most && byte != '\n' && (byte = getc_unlocked(stream)) != EOF) {
        if (!line_grow(line, size, length))
            return -1;
        (*line)[length++] = (char)byte;
    }
    return byte == EOF && ferror(stream) ? -1 : (ssize_t)length;
}
