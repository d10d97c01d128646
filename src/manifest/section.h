/* A workload section of the manifest, [conv2d LABEL]. */
#pragma once

#include "manifest/axis.h"
#include "manifest/exclusion.h"
#include "manifest/ini_lines.h"
#include "manifest/list.h"

enum vary { VARY_PRODUCT, VARY_ZIP, VARY_ONE_AT_A_TIME };

struct section {
    const struct workload *workload; /* its parameters are the section's axes */
    const struct section_kind *kind; /* NULL: the keys are the workload's parameters */
    void *own; /* owned; state of `kind`; NULL before the section's first line */
    char *label;
    enum vary vary;
    struct axis axes[WORKLOAD_PARAMETERS_MAX]; /* in the order of the workload's parameters */
    struct list list;                          /* each row is combined with all axes */
    struct exclusion *exclusions;              /* a configuration is excluded if any holds */
    size_t exclusion_count;
    int line, vary_line, exclude_line; /* lines of the section and its keys; 0: no such key */
};

/* Takes a key (vary, exclude, list or a parameter) or a line of the list. Takes the key's values
 * from *room, see axis.h. */
enum status section_take(struct section *section, const struct ini_line *line, size_t *room,
                         struct error *error);
/* After the last line: checks the axes against each other. A section without the key `cache` gets
 * the values in the text `cache`. The error begins with "PATH:LINE: ". */
enum status section_finish(struct section *section, const char *path, const char *cache,
                           size_t *room, struct error *error);
void section_clear(struct section *section);

/* A key of a section, for --list. */
struct section_key {
    const char *name, *initial, *allowed, *help;
};

enum { SECTION_NOTE = 512 };

/* Sections whose lines are not the parameters of a workload. The plan combines the axes of such a
 * section like parameters; then `expand` makes a configuration from each point. */
struct section_kind {
    const struct workload *workload; /* names the section; `expand` makes its configurations */
    /* Stores one line of the section. */
    enum status (*take)(struct section *section, const struct ini_line *line, struct error *error);
    /* After the last line, before section_finish: sets workload, vary, axes and exclusions of the
     * section. The error begins with "PATH:LINE: ". */
    enum status (*finish)(struct section *section, const char *path, size_t *room,
                          struct error *error);
    /* Converts `point`, a configuration whose parameters are the section's axes, to the
     * configuration that runs. STATUS_USAGE: none has these values; see `finish` for the error. */
    enum status (*expand)(const struct section *section, const char *path,
                          const struct config *point, struct config *config, struct error *error);
    /* STATUS_USAGE: the program of the configuration does not exist on this node. */
    enum status (*find)(const struct config *config, const char *folder, struct error *error);
    /* Writes a note on values of the configuration that no line of the manifest sets; "": none. */
    void (*note)(const struct config *config, char text[SECTION_NOTE]);
    void (*destroy)(void *own);                 /* takes NULL */
    const struct section_key *(*key)(size_t i); /* keys that are no axes; NULL after the last */
};

/* The kind of the workload's sections; NULL: none, or this build lacks the kind. */
const struct section_kind *section_kind_of(const struct workload *workload);
/* Defined in src/program/section, which is not built with -DROOFSWEEP_PROGRAMS=OFF. */
extern const struct section_kind program_section;
