/* A section [program LABEL]: a command with axes of its own. Keys that are not settings are the
 * axes.
 *
 * The plan takes its points as it takes those of any workload: `workload` has the axes for
 * parameters, numbers as shape, words as series. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "manifest/ini_lines.h"
#include "manifest/manifest.h"

struct program_section *program_section_create(void);          /* NULL without memory */
void program_section_destroy(struct program_section *program); /* takes NULL */

/* Keeps one key; section->program is there. */
enum status program_section_take(struct section *section, const struct ini_line *line,
                                 struct error *error);
/* After the last line: sets vary, axes and exclusions of the section. "PATH:LINE: " is in front of
 * the error. */
enum status program_section_finish(struct section *section, const char *path, size_t *room,
                                   struct error *error);

/* One point of the axes as the configuration that runs: `point` is a configuration of the section's
 * own workload, *config becomes one of program_workload. STATUS_USAGE, with "PATH:LINE: " in front:
 * with these values a text is too long, a formula has no value, or the model knows no such
 * parameter. */
enum status program_section_expand(const struct section *section, const char *path,
                                   const struct config *point, struct config *config,
                                   struct error *error);

/* Keys that are no axes, for --list. vary and exclude are those of every section. */
json_t *program_section_encode(void); /* the same as an array of objects */
void program_section_list(FILE *stream);
