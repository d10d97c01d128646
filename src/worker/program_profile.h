/* Kernels and counts of a program: the runs that find them, and what of it is its row's. */
#ifndef ROOFSWEEP_WORKER_PROGRAM_PROFILE_H
#define ROOFSWEEP_WORKER_PROGRAM_PROFILE_H

#include "model/record.h"
#include "worker/program_run.h"

/* `regions`: that the program opened when it was timed. Where they are three or more the first is traced, and
 * those that follow are counted in the same run. What cannot be had is missing, and record->counters says
 * why. Fails only with STATUS_DEVICE. */
enum status program_profile(struct program_run *run, size_t regions, struct record *record,
                            struct error *error);

#endif
