/* The injection library in a program, over a scripted CUPTI (scripted_cupti.h). Each program is a process of its
 * own, as the library begins once in each; what it does are the calls that CUPTI would report. For tests only. */
#ifndef ROOFSWEEP_TEST_INJECT_BENCH_H
#define ROOFSWEEP_TEST_INJECT_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "scripted_cupti.h"
#include "worker/program/injected.h"

/* CUDA's current one. */
extern CUcontext program_context;

/* For cmocka: nothing has happened. */
int inject_set_up(void **state);

/* ---- what a program does ---- */

#define CALL(name) call(CUPTI_DRIVER_TRACE_CBID_##name, NULL)
void call(CUpti_CallbackId id, const char *symbol);
void launch(const char *kernel);
/* A record of the trace, of 100 ns; node: of a graph, 0: none. */
void kernel_ran(uint64_t start, uint64_t node);
/* Allocates, warms up, and has two regions of two launches. */
void usual(void);

/* ---- a program ---- */

/* The folder of what is handed back, and what the library found in this program. */
struct run {
    char folder[4096];
    struct injected found;
    const char *regions, *ranges; /* NULL: one, the region */
};

/* Which must end well. The task and the region are what the library is told; run->found is the caller's to clear. */
void run_program(void (*behaviour)(void), const char *task, const char *region, struct run *run);

#endif
