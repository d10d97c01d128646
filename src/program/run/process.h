/* A command that runs to its end, together with all that it starts. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

/* Pointers stay the caller's. */
struct process {
    char *const *words;       /* NULL-terminated; PATH of `environment` is searched for the first */
    char *const *environment; /* NULL-terminated; nothing else is inherited */
    const char *folder;       /* working folder */
    const cpu_set_t *cpus;    /* allowed processors; NULL: the caller's */
    size_t cpus_size;         /* byte */
    struct countdown *time;   /* left for the command */
    bool served;              /* standard input is a socket; process_point sets it */
};

struct process_end {
    bool timed_out;
    int status; /* as of waitpid, unless it timed out */
    double seconds;
    struct tail tail; /* end of standard output and error, on one line */
};

/* Runs a command to its end. STATUS_OK: its exit status is 0. STATUS_FAILED: another end, or its
 * reaper was killed; *error has status, signal and the last lines of output, and *end is set.
 * STATUS_SYSTEM: the command cannot be started. STATUS_DEVICE: it hangs in the system and cannot be
 * ended. */
enum status process_run(const struct process *process, struct process_end *end,
                        struct error *error);

/* Persistent processes: programs that start once and measure one point after the other. A process
 * is known by its words and its environment, without the variables ROOFSWEEP_* of a point. Each
 * further point comes as a line of words NAME=VALUE on its standard input; the program answers
 * "done" there. All of them end together, and also when process_run ends a command. */
struct persistent;
void persistent_end(struct persistent **persistent); /* frees; sets NULL */

/* Measures one point, in a process that waits for it or in a new one. *persistent is NULL before
 * the first point. Errors are those of process_run; a program that ends without an answer has
 * failed. */
enum status process_point(const struct process *process, struct persistent **persistent,
                          struct error *error);
