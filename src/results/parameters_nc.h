/* The parameters of configurations as variables of a result file: each parameter is one, missing in
 * the rows of workloads that have none of its name. */
#ifndef ROOFSWEEP_PARAMETERS_NC_H
#define ROOFSWEEP_PARAMETERS_NC_H

#include "model/record.h"
#include "results/dataset.h"

/* Of the workloads in the table of workload.h, and of those that only records have. One record for
 * each row of DIM_CONFIG. Numbers become integers, words and free texts strings, without quotes. */
void parameters_write(struct dataset *set, const struct record *const *records);

#endif
