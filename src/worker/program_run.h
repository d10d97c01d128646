/* One row's program, and what one run of it hands back. */
#ifndef ROOFSWEEP_WORKER_PROGRAM_RUN_H
#define ROOFSWEEP_WORKER_PROGRAM_RUN_H

#include <stdint.h>

#include "base/command_line.h"
#include "base/status.h"
#include "model/request.h"
#include "worker/program/handback.h"
#include "worker/program/injected.h"
#include "worker/program/loan.h"
#include "worker/program/process.h"
#include "worker/program/surroundings.h"

struct program_run {
    const struct request *request;
    struct program_loan loan;
    struct command_line command;     /* owned */
    struct surroundings environment; /* owned; all but what a run adds */
    char folder[4096];               /* that it runs in, absolute */
    int64_t iterations;
    double deadline; /* s, CLOCK_MONOTONIC; INFINITY: none */
};

/* Of the request and the loan. To be cleared in any case. */
enum status program_run_prepare(struct program_run *run, struct error *error);
void program_run_clear(struct program_run *run);

/* Makes of a prepared run the one without CUDA graphs, see `ungraphed` in model/workloads/program.h. */
enum status program_run_ungraph(struct program_run *run, struct error *error);

/* A variable of the environment, of all runs from now on. */
void program_run_number(struct program_run *run, const char *name, size_t number);

/* One run. Either of `handback` and `injected` may be NULL: nobody asks. */
enum status program_run_once(struct program_run *run, struct process_end *end,
                             struct handback *handback, struct injected *injected,
                             struct error *error);
/* One run with the injection library, see worker/cuda/inject/task.h. `handback` may be NULL. */
enum status program_run_injected(struct program_run *run, const char *task,
                                 struct handback *handback, struct injected *injected,
                                 struct error *error);

#endif
