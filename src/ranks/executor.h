/* A rank's half of a sweep: one device, one worker process, one configuration at a time.
 *
 * Life cycle: executor_create; executor_open and any number of executor_call, which wait;
 * executor_start; then executor_poll, executor_handle and executor_step in the rank's loop until
 * executor_stopped.
 *
 * Timed rows may wait in the worker for counting (protocol.h, "count_later"). Rank 0 decides which
 * rows wait and when they are counted. If the worker is lost before, the executor returns the rows
 * to rank 0. Each waiting row adds one `timeout` to the limit of a request, because the worker may
 * have to count first.
 *
 * The executor does not call MPI: it sends through the sender, and receives by executor_handle. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/log.h"
#include "model/device_kind.h"
#include "model/protocol.h"
#include "ranks/binding.h"
#include "ranks/message.h"
#include "ranks/worker_process.h"

struct executor_settings {
    const char *worker_folder;        /* folder with the workers of all kinds */
    const struct device_kind *device; /* NULL: the first kind that opens */
    struct binding binding;
    double open_timeout;   /* s; limit of each request while opening */
    bool require_counters; /* the worker tries counters while opening, not with the roofs */
    /* Set by a signal, ends waiting. May be NULL. */
    const volatile sig_atomic_t *interrupted;
    double timeout; /* s; limit of an attempt at a configuration */
    int retries;
    const char *device_key; /* struct device.key of this rank in this session */
};

struct executor;

/* Copies settings and sender, but not what they point to. NULL: no memory. */
struct executor *executor_create(const struct executor_settings *settings,
                                 const struct sender *sender, const struct log *log);
/* Kills the worker. Takes NULL. */
void executor_destroy(struct executor *executor);

/* s; longest time of executor_open, which may try all kinds of devices. */
double executor_opening(const struct executor_settings *settings);

/* s; longest time of a rank for a configuration: all attempts, each with a worker that opens
 * slowly. Each waiting row adds `timeout`. */
double executor_longest(const struct executor_settings *settings);

/* ---- the device; its functions wait ---- */

/* Devices that the rank sees; empty if a worker reports no addresses. */
struct visible executor_visible(struct executor *executor);
/* Replaces the binding of the settings; before executor_open. */
void executor_bind(struct executor *executor, const struct binding *binding);

/* Chooses and opens a device. For each kind it starts at most three workers within 3.5
 * open_timeout. STATUS_DEVICE with reason and remedy; STATUS_INTERRUPTED. STATUS_OK also if workers
 * hung, or were lost after they had answered: executor_lost has the reason, the device has kind,
 * host and number, and executor_start reports the loss. */
enum status executor_open(struct executor *executor, struct error *error);

/* Sends a request and waits for its reply of this kind, at most `timeout` seconds. A reply of
 * another kind, except an error, ends the worker. STATUS_DEVICE and STATUS_INTERRUPTED: the worker
 * is gone; executor_reopen must precede the next request. */
enum status executor_call(struct executor *executor, const struct request *request,
                          enum reply_kind kind, double timeout, struct reply *reply,
                          struct error *error);
/* Requests links from a second worker, which has opened no device. Starts the worker if *separate
 * is NULL; the caller destroys it. */
enum status executor_call_links(struct executor *executor, struct worker_process **separate,
                                const struct request *request, double timeout, struct reply *reply,
                                struct error *error);
/* Starts a new worker with the same device. STATUS_DEVICE: the device is lost; executor_start
 * reports it. */
enum status executor_reopen(struct executor *executor, struct error *error);

/* The open device, its kind, and a text for people why this kind was chosen. */
const struct device *executor_device(const struct executor *executor);
const struct device_kind *executor_kind(const struct executor *executor);
const char *executor_reason(const struct executor *executor);

/* Reason for the permanent loss of the device; NULL: not lost. */
const char *executor_lost(const struct executor *executor);

/* Renames the device for all later messages. */
void executor_name_device(struct executor *executor, const char *uuid);

/* Links that executor_start sends with the device. */
struct link_list *executor_links(struct executor *executor);

/* Copies the roofs of *device and their origin, and the outcome of its counters. */
void executor_set_roofs(struct executor *executor, const struct device *device);

/* ---- the loop; nothing waits ---- */

/* Sends MESSAGE_DEVICE, with the roofs, to rank 0. */
void executor_start(struct executor *executor);

void executor_poll(const struct executor *executor, struct pollfd descriptors[2], nfds_t *count);
/* Handles MESSAGE_MEASURE, MESSAGE_COUNT or MESSAGE_STOP. */
void executor_handle(struct executor *executor, const struct message *message);
void executor_step(struct executor *executor);
bool executor_stopped(const struct executor *executor);
/* True while the worker measures or counts: the rank's next message comes from it. */
bool executor_works(const struct executor *executor);
