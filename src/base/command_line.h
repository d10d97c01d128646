/* The words of a command as one writes it: blanks separate them, '...' and "..." keep them
 * together, a backslash takes the meaning of the character after it (within "..." of \" and \\
 * alone). No shell is there: $, *, > and | are characters like others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct command_line {
    char **words; /* owned; NULL-terminated, as exec takes them */
    size_t count;
};

/* STATUS_USAGE: a quote is not closed, or nothing is after the last backslash. Sets *line, owned
 * by the caller, on success only. */
enum status command_line_split(const char *text, struct command_line *line, struct error *error);
void command_line_clear(struct command_line *line);

/* Appends the word to the text, with a blank before it unless it is the first, in quotes where it
 * needs them: splitting gives it back. False, and the text as it was, if it has no room. */
bool command_line_append(char *text, size_t size, const char *word);
