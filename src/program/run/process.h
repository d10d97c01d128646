/* Runs a command until it and all processes that it started have ended. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

/* The caller owns the data behind the pointers. */
struct process {
    char *const *words;       /* NULL-terminated; words[0] is searched in PATH of `environment` */
    char *const *environment; /* NULL-terminated; no other variable is inherited */
    const char *folder;       /* working folder */
    const cpu_set_t *cpus;    /* allowed processors; NULL: the caller's */
    size_t cpus_size;         /* byte */
    struct countdown *time;   /* time that is left for the command */
    bool served;              /* standard input is a socket; only process_point sets this */
};

struct process_end {
    bool timed_out;
    int status; /* status by waitpid; unset if timed_out */
    double seconds;
    struct tail tail; /* end of standard output and error, on one line */
    int life;         /* owned: the worker's end of the pipe to the reaper; -1: no reaper */
};

/* Runs a command to its end, and sets *end. STATUS_OK: its exit status is 0. STATUS_FAILED: it
 * ended in another way, or its reaper was killed; *error has status, signal and the last lines of
 * output. STATUS_SYSTEM: the command cannot be started. STATUS_DEVICE: the command hangs in a
 * system call and cannot be ended. */
enum status process_run(const struct process *process, struct process_end *end,
                        struct error *error);
/* Ends the reaper of process_run. Until then the reaper sweeps scratch folders if the worker dies.
 */
void process_release(struct process_end *end);

/* Persistent processes: programs that start once and measure one point after the other. Points go
 * to the same process if words and environment are equal, apart from the variables ROOFSWEEP_* of a
 * point. The program reads each further point from its standard input, a socket, as a line of words
 * NAME=VALUE, and answers "done" there. All persistent processes end together: by persistent_end,
 * or by process_release, which ends all descendants of the worker. */
struct persistent;
void persistent_end(struct persistent **persistent); /* frees; sets NULL */

/* Measures one point, in a persistent process that is idle or in a new one. *persistent is NULL
 * before the first point. Errors are as for process_run; also STATUS_FAILED if the program ends
 * without an answer. After an error the caller calls persistent_end. */
enum status process_point(const struct process *process, struct persistent **persistent,
                          struct error *error);
