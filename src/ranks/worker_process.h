/* A worker process: start, requests, replies, end. Never blocks; the caller polls the descriptors
 * and calls worker_process_step. */
#pragma once

#include <poll.h>
#include <stdio.h>

#include "base/status.h"
#include "ranks/cpus.h"

struct worker_process;

enum worker_event {
    WORKER_QUIET,    /* nothing new */
    WORKER_LINE,     /* a reply */
    WORKER_LOST,     /* ended, or killed after a timeout, with its group */
    WORKER_SIGNALLED /* lost by a signal that ends a sweep (signals.h) */
};

/* `watched`: address for --watch; NULL: a measuring worker. `cpus`: the worker's cores; NULL: the
 * caller's. `echo`: stream for the worker's standard error, or NULL. The worker leads a process
 * group for its children. The kernel kills it when the thread that started it ends (worker.c). */
enum status worker_process_start(const char *path, const char *watched, const struct cpus *cpus,
                                 FILE *echo, struct worker_process **process, struct error *error);

/* Kills the group and reaps the worker; leaves it behind after a few seconds if it hangs in a
 * driver. Takes NULL. */
void worker_process_destroy(struct worker_process *process);

/* Sends the line and a newline. The reply must come within `timeout` seconds, provided that
 * worker_process_step is called every second. A lost worker shows at the next step. */
void worker_process_send(struct worker_process *process, const char *line, double timeout);

/* WORKER_LINE: the caller frees *line, which has no newline. WORKER_LOST: *why has reason and last
 * lines of standard error. */
enum worker_event worker_process_step(struct worker_process *process, char **line,
                                      struct error *why);

/* Sets the two descriptors to poll for reading. */
void worker_process_poll(const struct worker_process *process, struct pollfd descriptors[2]);
