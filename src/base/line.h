/* Lines of a file that somebody else may have written: they need not end. */
#ifndef ROOFSWEEP_LINE_H
#define ROOFSWEEP_LINE_H

#include <stdio.h>
#include <sys/types.h>

/* As getline: the next line with its newline into *line, which has *size bytes and is the caller's
 * to free. Returns its bytes; 0 at the end of the file, -1 where reading fails or memory is wanting.
 * A line of more than `most` bytes is read no further than its byte `most` + 1. */
ssize_t line_read(FILE *stream, size_t most, char **line, size_t *size);

#endif
