/* The manifests that come along, which a name without folder and ending stands
 * for. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

enum { SWEEP_PATH = PATH_MAX + NAME_MAX + 2 };
/* The file of `name`: a file of the user's, or else the sweep of that name.
 * STATUS_USAGE: there is neither. */
enum status named_sweep_find(const char *name, char path[SWEEP_PATH], struct error *error);
/* A line for each, with its title. */
enum status named_sweeps_list(bool json, FILE *stream, struct error *error);
