/* The parameters of configurations as variables of a result file: each parameter is one, missing in
 * the rows of workloads that have none of its name. */
#pragma once

#include "results/dataset.h"
#include "results/results.h"

struct parameters;

/* Defines the variables, in a group: of the workloads that have rows, and those in which a program
 * has an axis of the name. Numbers become integers, words and free texts strings, without quotes.
 * NULL: see dataset_close. */
struct parameters *parameters_define(struct dataset *set, const struct results *results, int group);
void parameters_destroy(struct parameters *parameters); /* takes NULL */

/* What dataset_put needs of a configuration, at `row`, which has so many bytes. */
size_t parameters_row_size(const struct parameters *parameters);
void parameters_row(const struct parameters *parameters, const struct config *config, void *row);
