/* Commands as a workload: a command, its environment, and the values of the axes behind them. */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

/* A section [program] sets these parameters for each point of its axes:
 *
 *   axes          the point as words NAME=VALUE, "batch=16 mode=eager", sorted by name
 *   command       words to run, with the values of axes
 *   environment   "NAME=VALUE" is set, a bare NAME is inherited
 *   iterations    in one region of the program
 *   model_bytes, model_flops   of one iteration, as numbers; "": those of modelled_as
 *   modelled_as   workload whose model holds; axes with names of its parameters set them
 *   precision     its peak is the roof; mixed: the counts decide
 *   region        a word of program_regions, or "nvtx NAME"
 *   replay        a word of program_replays
 *   ungraphed     differences of the same command without CUDA graphs: "INDEX:WORD" replaces a
 *                 word, from 0, "NAME=VALUE" a variable; "": unknown
 *
 * axes, command, environment and ungraphed are words as command_line_split takes them. */
extern const struct workload program_workload;

/* Largest lengths, in bytes. */
enum {
    PROGRAM_COMMAND = 767,
    PROGRAM_ENVIRONMENT = 511,
    PROGRAM_AXES = 511,
    PROGRAM_NUMBER = 31, /* model_bytes, model_flops, modelled_as */
    PROGRAM_REGION = 63,
    PROGRAM_UNGRAPHED = 79
};

/* The variable of a shared process: axes of the row, as words NAME=VALUE, which the program asks
 * for. A configuration with this variable shares its process with other rows. */
#define PROGRAM_POINT "ROOFSWEEP_POINT"

/* "profiler": from cuProfilerStart to cuProfilerStop; "all": the whole program. NULL-terminated. */
extern const char *const program_regions[];
#define PROGRAM_NVTX "nvtx "

/* Names of what is repeated for the passes of the counters. "runs": the whole program with its
 * regions; "kernel": each kernel, which the profiler repeats in one run. NULL-terminated. */
extern const char *const program_replays[];

/* Makes the configuration of `model` with the program's axes as parameters. STATUS_USAGE: the
 * parameter does not have the axis' value. */
enum status program_model_config(const struct config *program, const struct workload *model,
                                 struct config *config, struct error *error);
