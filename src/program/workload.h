/* Any program as a workload: a command, its environment and the values that led to it. */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

/* Its parameters are what a section [program] becomes for one point of its axes:
 *   axes          the point, "batch=16 mode=eager", sorted by name
 *   command       the words that run, the axes replaced
 *   environment   "NAME=value" is set, a bare NAME is inherited as well
 *   iterations    of what one region of the program holds
 *   model_bytes, model_flops   of one iteration, as numbers; "": by modelled_as
 *   modelled_as   the workload whose model it has, of the axes that have the names of its
 *   parameters
 *   precision     whose peak it is set against; mixed: by what was counted
 *   region        what counts: a word of program_regions, or "nvtx NAME"
 *   replay        what is repeated for the passes of the counters: a word of program_replays
 *   ungraphed     how the command becomes one whose kernels no CUDA graph launches: "INDEX:WORD" is
 *   a word
 *                 of it, from 0, "NAME=VALUE" a variable; "": nobody says
 * axes, command, environment and ungraphed are words as command_line_split takes them. */
extern const struct workload program_workload;

enum {
    PROGRAM_COMMAND = 767, /* bytes at most, as of the others */
    PROGRAM_ENVIRONMENT = 511,
    PROGRAM_AXES = 511,
    PROGRAM_NUMBER = 31, /* of model_bytes, model_flops, modelled_as */
    PROGRAM_REGION = 63,
    PROGRAM_UNGRAPHED = 79
};

/* A variable of the environment: the words NAME=VALUE of the axes that the program asks for. One
 * that has it measures several rows in one process. */
#define PROGRAM_POINT "ROOFSWEEP_POINT"

/* What is between cuProfilerStart and cuProfilerStop; the whole program. */
extern const char *const program_regions[]; /* "profiler", "all", NULL */
#define PROGRAM_NVTX "nvtx "

/* The program's regions and runs; each kernel, by the profiler, in one run. */
extern const char *const program_replays[]; /* "runs", "kernel", NULL */

/* The configuration of `model` that has the program's axes for parameters. STATUS_USAGE: one has a
 * value that the parameter has not. */
enum status program_model_config(const struct config *program, const struct workload *model,
                                 struct config *config, struct error *error);
