/* Commands as a workload: a command, its environment, and the values of the axes that were filled
 * into them. */
#pragma once

#include "model/workload.h"

/* clang-format off */
/* A section [program] sets these parameters for each point of its axes:
 *
 *   axes          the point as words NAME=VALUE, "batch=16 mode=eager", sorted by name
 *   command       words to run, with the values of the axes filled in
 *   environment   "NAME=VALUE" sets a variable, a bare NAME inherits it
 *   iterations    number of iterations in one region of the program
 *   model_bytes   bytes of one iteration, as a number; "": modelled_as decides
 *   model_flops   FLOPs of one iteration, as a number; "": modelled_as decides
 *   modelled_as   workload whose model gives bytes and FLOPs; an axis with the name of one of the
 *                 workload's parameters sets this parameter
 *   precision     the peak of this precision is the roof; "mixed": the counts decide
 *   region        a word of program_regions, or "nvtx NAME"
 *   replay        a word of program_replays
 *   ungraphed     how the command without CUDA graphs differs: "INDEX:WORD" replaces the word with
 *                 this index (from 0), "NAME=VALUE" sets a variable; "": no such command is known
 *
 * axes, command, environment and ungraphed are words as command_line_split takes them. */
/* clang-format on */
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

/* Environment variable of a shared process: the axes of the row that are neither in the command nor
 * in another variable, as words NAME=VALUE; the program reads them from here. A configuration with
 * this variable shares its process with other rows. */
#define PROGRAM_POINT "ROOFSWEEP_POINT"

/* "profiler": from cuProfilerStart to cuProfilerStop; "all": the whole program. NULL-terminated. */
extern const char *const program_regions[];
#define PROGRAM_NVTX "nvtx "

/* Ways to repeat the work for the passes of the counters. "runs": the whole program runs again, or
 * opens further regions; "kernel": the profiler repeats each kernel in one run. NULL-terminated. */
extern const char *const program_replays[];

/* Makes the configuration of `model` with the program's axes as parameters. STATUS_USAGE: a
 * parameter of `model` does not allow the axis' value. */
enum status program_model_config(const struct config *program, const struct workload *model,
                                 struct config *config, struct error *error);
