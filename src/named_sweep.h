/* The manifests that come with roofsweep. A name without folder and ending stands for one. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

enum { SWEEP_PATH = PATH_MAX + NAME_MAX + 2 };
/* Finds a file `name`, or else roofsweep's own sweep of that name. STATUS_USAGE: neither exists. */
enum status named_sweep_find(const char *name, char path[SWEEP_PATH], struct error *error);
/* Prints each name and title. */
enum status named_sweeps_list(bool json, FILE *stream, struct error *error);
