/* Splits a command into words as a shell does: blanks separate words, '...' and "..." keep blanks,
 * and a backslash quotes the next character (within "..." only " and \). The characters $, *, > and
 * | have no meaning, because no shell runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct command_line {
    char **words; /* owned; NULL-terminated, as exec takes them */
    size_t count;
};

/* STATUS_USAGE: a quote is not closed, or the text ends with a backslash. The caller owns *line. */
enum status command_line_split(const char *text, struct command_line *line, struct error *error);
void command_line_clear(struct command_line *line);

/* Appends `word` to `text`, with a blank and quotes where needed, so that command_line_split
 * returns the word. False: the word does not fit into the `size` bytes of `text`, which is
 * unchanged. */
bool command_line_append(char *text, size_t size, const char *word);
