/* A rank without MPI: an executor, a worker that is a scripted program, and its letters, collected. For tests
 * only; include cmocka.h first. */
#ifndef ROOFSWEEP_TEST_DESK_H
#define ROOFSWEEP_TEST_DESK_H

#include "collected_post.h"
#include "ranks/executor.h"

/* The rank, its worker's folder, its letters. */
struct desk {
    char folder[64], program[128];
    const char
        *count; /* what the worker does to count; NULL: the record of what has waited longest */
    struct log log;
    struct collected sent;
    struct executor *executor;
};

/* The kind of device that `auto` tries last. */
const struct device_kind *last_kind(void);

/* A folder; a worker in it, in shell (desk.c); the executor. */
void desk_make(struct desk *desk);
void write_worker(struct desk *desk, const struct device_kind *kind, const char *describe,
                  const char *measure);
void desk_create(struct desk *desk, const struct device_kind *kind, int local_rank);
/* All of that, with an open device, and rank 0 told so. */
void desk_begin(struct desk *desk, const char *describe, const char *measure);
void desk_end(struct desk *desk); /* told to stop, having said nothing twice */

/* How many workers were started. */
int starts(const struct desk *desk);

void give_work(struct desk *desk, const char *configuration);
/* Runs the rank's loop until it has written a letter of this kind; the caller frees it. */
char *wait_for(struct desk *desk, enum letter_kind kind);
/* Gives work, and the record that comes of it; the caller clears it. */
struct record measured(struct desk *desk, const char *configuration);

void assert_says(const char *text, const char *part);

#endif
