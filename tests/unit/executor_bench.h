/* A rank without MPI: an executor, a worker that is a scripted program, and its messages, collected. For tests
 * only; include cmocka.h first. */
#ifndef ROOFSWEEP_TEST_EXECUTOR_BENCH_H
#define ROOFSWEEP_TEST_EXECUTOR_BENCH_H

#include "collected.h"
#include "ranks/executor.h"

/* The rank, its worker's folder, its messages. */
struct bench {
    char folder[64], program[128];
    const char
        *count; /* what the worker does to count; NULL: the record of what has waited longest */
    struct log log;
    struct collected sent;
    struct executor *executor;
};

/* The kind of device that `auto` tries last. */
const struct device_kind *last_kind(void);

/* A folder; a worker in it, in shell (bench.c); the executor. */
void bench_make(struct bench *bench);
void write_worker(struct bench *bench, const struct device_kind *kind, const char *describe,
                  const char *measure);
void bench_create(struct bench *bench, const struct device_kind *kind, int local_rank);
/* All of that, with an open device, and rank 0 told so. */
void bench_begin(struct bench *bench, const char *describe, const char *measure);
void bench_end(struct bench *bench); /* told to stop, having said nothing twice */

/* How many workers were started. */
int starts(const struct bench *bench);

void give_work(struct bench *bench, const char *configuration);
/* Runs the rank's loop until it has written a message of this kind; the caller frees it. */
char *wait_for(struct bench *bench, enum message_kind kind);
/* Gives work, and the record that comes of it; the caller clears it. */
struct record measured(struct bench *bench, const char *configuration);

void assert_says(const char *text, const char *part);

#endif
