/* A command that runs and is over: with all that it started, whatever that is. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

/* Nothing is owned. */
struct process {
    char *const *words;       /* NULL-terminated; the first is looked for in PATH of environment */
    char *const *environment; /* NULL-terminated, all of it */
    const char *folder;       /* that it runs in */
    const cpu_set_t *cpus;    /* that it may use; NULL: the caller's */
    size_t cpus_size;         /* byte */
    struct countdown *time;   /* that is left for it */
    bool asked;               /* its standard input is a socket; process_point sets it */
};

struct process_end {
    bool timed_out;
    int status; /* as of waitpid, unless it timed out */
    double seconds;
    struct tail tail; /* of standard output and error, on one line */
};

/* Runs it to its end. STATUS_OK if it ended with status 0. STATUS_FAILED: it did not, and *error
 * has status, signal and the last lines of the output; *end is set as well. Or its keeper was
 * killed. STATUS_SYSTEM: it cannot be run; STATUS_DEVICE: it cannot be ended, as it hangs in the
 * system. */
enum status process_run(const struct process *process, struct process_end *end,
                        struct error *error);

/* Processes that measure one point after the other: a program starts once. Each is known by its
 * words and its environment, but for the variables ROOFSWEEP_* of a point; these are told with each
 * further one, as a line of words NAME=VALUE on its standard input. It answers "done" there. What
 * ends one of them, or runs beside them by process_run, ends all. */
struct residents;
struct residents *residents_create(void);            /* NULL without memory */
void residents_destroy(struct residents *residents); /* takes NULL */
void residents_end(struct residents *residents);

/* One point: by a resident that waits for it, or by a new one. Errors are those of process_run; a
 * program that ends without an answer has failed. */
enum status process_point(const struct process *process, struct residents *residents,
                          struct error *error);
