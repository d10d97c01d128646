/* The rank's end of one worker process: start it, write it lines, read its replies, know when it is
 * gone. Never blocks; the caller polls the descriptors and calls worker_process_step. */
#pragma once

#include <poll.h>
#include <sched.h>
#include <stdio.h>

#include "base/status.h"

struct worker_process;

enum worker_event {
    WORKER_QUIET,    /* nothing new */
    WORKER_LINE,     /* a reply */
    WORKER_LOST,     /* it has ended, or was killed because it took too long; its group is gone */
    WORKER_SIGNALLED /* the same, by a signal that ends a sweep (signals.h) */
};

/* `watched`: after --watch; NULL: without. `cpus`: where it may run; NULL: where the caller may.
 * `echo`: stream that a copy of its standard error goes to, or NULL. It leads a process group of
 * its own, which what it starts belongs to. A worker asks the kernel by itself to die with the
 * thread that started it (worker.c). */
enum status worker_process_start(const char *path, const char *watched, const cpu_set_t *cpus,
                                 FILE *echo, struct worker_process **process, struct error *error);

/* Kills its group and reaps it; after a few seconds a worker that hangs in a driver is left.
 * Takes NULL. */
void worker_process_destroy(struct worker_process *process);

/* Adds the newline. The reply must come within `timeout` seconds, if worker_process_step is
 * called at least once a second. A worker that is gone is no error
 * here: the next step says WORKER_LOST. */
void worker_process_send(struct worker_process *process, const char *line, double timeout);

/* WORKER_LINE: *line, without newline, is the caller's to free. WORKER_LOST: *why says how it
 * ended, with the last lines of its standard error. */
enum worker_event worker_process_step(struct worker_process *process, char **line,
                                      struct error *why);

/* Fills in the two descriptors to poll for reading. */
void worker_process_poll(const struct worker_process *process, struct pollfd descriptors[2]);
