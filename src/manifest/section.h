/* A workload section of the manifest, [conv2d LABEL]; struct section is in manifest.h. */
#pragma once

#include "manifest/ini_lines.h"
#include "manifest/manifest.h"

/* Sets one key: vary, exclude or a parameter. Values take from *room, see axis.h. */
enum status section_take(struct section *section, const struct ini_line *line, size_t *room,
                         struct error *error);
/* What `vary` and `exclude` say, also in a section of a program. */
enum status section_vary(struct section *section, const char *text, struct error *error);
enum status section_exclude(struct section *section, const char *text, size_t *room,
                            struct error *error);
/* After the last line: checks the axes against each other, and gives a section that does not name
 * `cache` the values in the text `cache`. "PATH:LINE: " is in front of the error. */
enum status section_finish(struct section *section, const char *path, const char *cache,
                           size_t *room, struct error *error);
void section_clear(struct section *section);
