/* A rank for tests: an executor, a scripted worker, and collected messages. No MPI. */
#pragma once

#include "unit.h"
#include "collected.h"
#include "ranks/executor.h"

/* Kinds of device that `auto` tries first and last. */
#define FIRST_KIND (&device_kinds[0])
#define LAST_KIND  (&device_kinds[DEVICE_KINDS - 1])

/* Shell commands of the worker for each request. executor_bench.c lists the words. */
struct worker_script {
    const char *describe, *measure; /* NULL: describes device u1, sends a record */
    const char *count;              /* NULL: replies with the record of the oldest waiting row */
    double timeout; /* s, timeout of each request, for workers that hang; 0: a long timeout */
};

struct bench {
    char folder[64];
    struct log log;
    struct collected sent;
    struct executor *executor;
    int round; /* of the configurations that the rank gets; 0: the first round */
};

/* `kind`: of the worker. `requested`: by the user; NULL: any. */
struct bench_settings {
    struct worker_script script;
    const struct device_kind *kind, *requested;
    int local_rank;
    const volatile sig_atomic_t *interrupted;
};
void bench_create(struct bench *bench, const struct bench_settings *settings);
/* Opens a device of LAST_KIND and reports it to rank 0. */
void bench_begin(struct bench *bench, struct worker_script script);
void bench_end(struct bench *bench); /* stops the rank; fails if a message was repeated */

int starts(const struct bench *bench);

/* later: the row may wait for counting. */
void give_work(struct bench *bench, const char *configuration, bool later);
/* Runs the rank's loop until a message of this kind, which must contain `part`. */
void assert_message(struct bench *bench, enum message_kind kind, const char *part);
/* Measures a configuration and returns its record, which the caller clears. */
struct record measured(struct bench *bench, const char *configuration);
