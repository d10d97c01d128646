/* The parameters of configurations as variables of a result file. A variable has no value in rows
 * whose workload lacks the parameter. */
#pragma once

#include "results/dataset.h"
#include "results/results.h"

struct parameters;

/* Defines, in a group, a variable for each parameter of the workloads in `results`, and for each
 * axis of their programs. Numbers become integers; words and free texts become strings without
 * quotes. NULL: no memory; dataset_close reports it. */
struct parameters *parameters_define(struct dataset *set, const struct results *results, int group);
void parameters_destroy(struct parameters *parameters); /* takes NULL */

/* Fills `row`, which has parameters_row_size bytes, with a configuration, for dataset_put. */
size_t parameters_row_size(const struct parameters *parameters);
void parameters_row(const struct parameters *parameters, const struct config *config, void *row);
