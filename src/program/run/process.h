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
    bool served;              /* its standard input is a socket; process_point sets it */
};

struct process_end {
    bool timed_out;
    int status; /* as of waitpid, unless it timed out */
    double seconds;
    struct tail tail; /* of standard output and error, on one line */
};

/* Runs it to its end. STATUS_OK if it ended with status 0. STATUS_FAILED: it did not, and *error
 * has status, signal and the last lines of the output; *end is set as well. Or its reaper was
 * killed. STATUS_SYSTEM: it cannot be run; STATUS_DEVICE: it cannot be ended, as it hangs in the
 * system. */
enum status process_run(const struct process *process, struct process_end *end,
                        struct error *error);

/* Persistent processes: programs that start once and measure one point after the other. A process
 * is known by its words and its environment, without the variables ROOFSWEEP_* of a point. Each
 * further point comes as a line of words NAME=VALUE on its standard input; the program answers
 * "done" there. All of them end together: also when process_run ends a command. */
struct persistent;
void persistent_end(struct persistent **persistent); /* frees; sets NULL */

/* Measures one point, in a process that waits for it or in a new one. *persistent is NULL before
 * the first point. Errors are those of process_run; a program that ends without an answer has
 * failed. */
enum status process_point(const struct process *process, struct persistent **persistent,
                          struct error *error);
