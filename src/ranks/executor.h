/* A rank's half of a sweep: one device, one worker process, one configuration at a time.
 *
 * Life cycle: executor_create, executor_open, executor_call as often as one likes (both wait),
 * executor_start, then executor_poll / executor_handle / executor_step in the rank's loop until
 * executor_stopped. A worker that crashes, hangs or loses its device is replaced and the
 * configuration tried again, as often as `retries` says; after that its record is a failed one. If
 * no new worker can open the device, the rank is lost and says so to rank 0, and its configuration
 * goes to another rank.
 *
 * Rows may wait in the worker until their counters are read together (protocol.h, "count_later").
 * Rank 0 decides which do, and when they are counted; the rank only remembers which ones wait. If
 * the worker is lost before they have their counts, it gives them back to rank 0. For each row that
 * waits a request may take a `timeout` longer: the worker may have to count them first.
 *
 * It knows no MPI: messages leave by the sender, and executor_handle is given those that arrive. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "model/device_kind.h"
#include "model/protocol.h"
#include "ranks/binding.h"
#include "ranks/message.h"
#include "ranks/worker_process.h"

struct executor_settings {
    const char *worker_folder;        /* where the workers of all kinds are */
    const struct device_kind *device; /* NULL: the first kind that opens */
    struct binding binding;
    double open_timeout;           /* s, each request of opening the device */
    enum counters_choice counters; /* unless off they are tried when the device opens */
    /* Set by a signal: what waits comes back. May be NULL. */
    const volatile sig_atomic_t *interrupted;
    double timeout; /* s, one attempt at a configuration */
    int retries;
    const char *device_key; /* struct device.key of this rank in this session */
};

struct executor;

/* Settings and sender are copied, what they point to is not. NULL without memory. */
struct executor *executor_create(const struct executor_settings *settings,
                                 const struct sender *sender, const struct log *log);
/* Kills the worker. Takes NULL. */
void executor_destroy(struct executor *executor);

/* The longest that executor_open may take, s, whatever kinds it tries. */
double executor_opening(const struct executor_settings *settings);

/* The longest that a rank with these settings may keep a configuration, s: all attempts, each with
 * a new worker that is slow to open the device. For each row that waits beside it one `timeout`
 * more. */
double executor_longest(const struct executor_settings *settings);

/* ---- the device; these wait ---- */

/* The devices that this rank sees, of which it is to have one; none where a worker does not tell.
 */
struct visible executor_visible(struct executor *executor);
/* From now on; before executor_open. Until then the binding of the settings holds. */
void executor_bind(struct executor *executor, const struct binding *binding);

/* Chooses a device and opens it. A worker that is lost on the way costs a try; there are three,
 * within 3.5 open_timeout. STATUS_DEVICE with the reason and the way out. STATUS_OK also if the
 * workers were lost one after the other: then executor_lost has the reason, the device knows kind,
 * host and number, and executor_start reports it. STATUS_INTERRUPTED. */
enum status executor_open(struct executor *executor, struct error *error);

/* One reply, of this kind and to this request, within `timeout` seconds; a worker that says
 * anything else but an error is ended. STATUS_DEVICE and STATUS_INTERRUPTED: the worker
 * is gone, and executor_reopen must come before the next request. */
enum status executor_call(struct executor *executor, const struct request *request,
                          enum reply_kind kind, double timeout, struct reply *reply,
                          struct error *error);
/* The same to a worker of its own, which has opened nothing. The caller keeps *separate, NULL at
 * first, for the next request, and destroys it. */
enum status executor_call_separate(struct executor *executor, struct worker_process **separate,
                                   const struct request *request, enum reply_kind kind,
                                   double timeout, struct reply *reply, struct error *error);
/* A new worker with the same device. STATUS_DEVICE: the device is lost; executor_start reports
 * it. */
enum status executor_reopen(struct executor *executor, struct error *error);

/* What was opened; its kind; and why it is this one, for people. */
const struct device *executor_device(const struct executor *executor);
const struct device_kind *executor_kind(const struct executor *executor);
const char *executor_reason(const struct executor *executor);

/* Why the device is lost for good; NULL: it is not. */
const char *executor_lost(const struct executor *executor);

/* This UUID stands in what the rank says of its device from now on. */
void executor_name_device(struct executor *executor, const char *uuid);

/* Takes the roofs, the links, the peaks and their origin of *device. */
void executor_set_roofs(struct executor *executor, const struct device *device);

/* ---- the loop; nothing waits ---- */

/* Sends rank 0 MESSAGE_DEVICE: what this rank has, with its roofs. */
void executor_start(struct executor *executor);

void executor_poll(const struct executor *executor, struct pollfd descriptors[2], nfds_t *count);
/* MESSAGE_MEASURE, MESSAGE_COUNT or MESSAGE_STOP. */
void executor_handle(struct executor *executor, const struct message *message);
void executor_step(struct executor *executor);
bool executor_stopped(const struct executor *executor);
/* The worker measures or counts: what comes next for this rank comes from it. */
bool executor_works(const struct executor *executor);
