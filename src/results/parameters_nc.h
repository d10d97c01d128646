/* The parameters of configurations as variables of a result file. A parameter's variable is missing
 * in rows of workloads without a parameter of that name. */
#pragma once

#include "results/dataset.h"
#include "results/results.h"

struct parameters;

/* Defines the variables, in a group: parameters of workloads with rows, and parameters whose name
 * is an axis of a program. Numbers become integers, words and free texts strings without quotes.
 * NULL: no memory, which dataset_close reports. */
struct parameters *parameters_define(struct dataset *set, const struct results *results, int group);
void parameters_destroy(struct parameters *parameters); /* takes NULL */

/* Fills `row`, of parameters_row_size bytes, with a configuration, for dataset_put. */
size_t parameters_row_size(const struct parameters *parameters);
void parameters_row(const struct parameters *parameters, const struct config *config, void *row);
