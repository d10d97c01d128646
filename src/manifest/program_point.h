/* One point of the axes of a section [program], as the configuration that runs. */
#ifndef ROOFSWEEP_PROGRAM_POINT_H
#define ROOFSWEEP_PROGRAM_POINT_H

#include "manifest/manifest.h"

/* `point` is a configuration of the section's own workload, *config becomes one of program_workload.
 * STATUS_USAGE, with "PATH:LINE: " in front: with these values a text is too long, a formula has no
 * value, or the model knows no such parameter. */
enum status program_point_expand(const struct section *section, const char *path,
                                 const struct config *point, struct config *config,
                                 struct error *error);

#endif
