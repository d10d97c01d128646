/* A rank without MPI: an executor, a worker that is a scripted program, and its messages,
 * collected. For tests only. */
#pragma once

#include "unit.h"
#include "collected.h"
#include "ranks/executor.h"

/* The kind of device that `auto` tries first, and last. */
#define FIRST_KIND (&device_kinds[0])
#define LAST_KIND  (&device_kinds[DEVICE_KINDS - 1])

/* What the worker does when it is asked, in shell. The words that there are stand in
 * executor_bench.c. */
struct worker_script {
    const char *describe, *measure; /* NULL: it has device u1; it measures what it is asked */
    const char *count;              /* NULL: the record of what has waited longest */
    double timeout;                 /* s, of each request; 0: long. For workers that hang. */
};

/* The rank, its worker's folder, its messages. */
struct bench {
    char folder[64];
    struct log log;
    struct collected sent;
    struct executor *executor;
};

/* A worker of that kind, and the executor of this rank of its node, which is to open the kind that
 * was asked for, NULL: any. */
struct bench_settings {
    struct worker_script script;
    const struct device_kind *kind, *asked;
    int local_rank;
    const volatile sig_atomic_t *interrupted;
};
void bench_create(struct bench *bench, const struct bench_settings *settings);
/* With an open device of LAST_KIND, and rank 0 told so. */
void bench_begin(struct bench *bench, struct worker_script script);
void bench_end(struct bench *bench); /* told to stop, having said nothing twice */

/* How many workers were started. */
int starts(const struct bench *bench);

/* later: its counters may wait. */
void give_work(struct bench *bench, const char *configuration, bool later);
/* Runs the rank's loop until it has written a message of this kind, which says that. */
void assert_message(struct bench *bench, enum message_kind kind, const char *part);
/* Gives work, and the record that comes of it; the caller clears it. */
struct record measured(struct bench *bench, const char *configuration);

void assert_says(const char *text, const char *part);
