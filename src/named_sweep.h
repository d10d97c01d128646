/* The manifests that come with roofsweep. A name without folder and ending selects one of them. */
#pragma once

#include <limits.h>
#include <stdio.h>

#include "base/status.h"

enum { SWEEP_PATH = PATH_MAX + NAME_MAX + 2 };
/* Sets `path` to the file `name`, or else to roofsweep's own sweep of that name. STATUS_USAGE:
 * neither exists. */
enum status named_sweep_find(const char *name, char path[SWEEP_PATH], struct error *error);
/* Prints name and title of each manifest that comes with roofsweep. */
enum status named_sweeps_list(FILE *stream, struct error *error);
