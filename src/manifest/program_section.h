/* A section [program LABEL]: a command with axes of its own. Keys that are not settings are the axes.
 *
 * The plan takes its points as it takes those of any workload: `workload` has the axes for parameters,
 * numbers as shape, words as series. program_point.h makes a configuration of program_workload of a
 * point. */
#ifndef ROOFSWEEP_PROGRAM_SECTION_H
#define ROOFSWEEP_PROGRAM_SECTION_H

#include "manifest/ini_lines.h"
#include "manifest/manifest.h"

/* Keys that are no axes, for --list; ends with key NULL. vary and exclude are those of every section. */
struct program_setting {
    const char *key, *initial, *allowed, *help;
};
extern const struct program_setting program_settings[];

struct program_line {
    char *key, *value; /* owned */
    int number;
};

struct program_section {
    struct program_line *lines; /* owned; as they stand */
    size_t line_count;
    struct workload workload; /* the axes, once finished; their names lie in lines */
    struct parameter parameters[WORKLOAD_PARAMETERS_MAX];
};

struct program_section *program_section_create(void);          /* NULL without memory */
void program_section_destroy(struct program_section *program); /* takes NULL */

/* Keeps one key; section->program is there. */
enum status program_section_take(struct section *section, const struct ini_line *line,
                                 struct error *error);
/* After the last line: sets vary, axes and exclusions of the section. "PATH:LINE: " is in front of the
 * error. */
enum status program_section_finish(struct section *section, const char *path, size_t *room,
                                   struct error *error);

/* The line of this key; NULL if there is none. */
const struct program_line *program_section_line(const struct program_section *program,
                                                const char *key);
/* env.NAME: a variable of the program's environment. */
#define PROGRAM_VARIABLE "env."
bool program_line_is_variable(const struct program_line *line);
/* ungraphed.AXIS: the axis' value in a run without CUDA graphs. */
#define PROGRAM_UNGRAPHED_AXIS "ungraphed."
bool program_line_is_ungraphed(const struct program_line *line);
/* Gives one axis of a point this value. STATUS_USAGE: it cannot have it. */
enum status program_axis_set(struct config *point, const char *name, const char *text,
                             struct error *error);

#endif
