/* A rank's device, and the worker process that owns it at the moment: how both are chosen and opened, and
 * how a worker that is lost is replaced by one with the same device.
 *
 * Life cycle: station_create, station_open, station_ask as often as one likes (both wait), then
 * station_send, station_replace and station_step, which do not. It knows no MPI, no letters and nothing of
 * rows. */
#ifndef ROOFSWEEP_STATION_H
#define ROOFSWEEP_STATION_H

#include <signal.h>
#include <stdbool.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "model/device_kind.h"
#include "model/protocol.h"
#include "ranks/binding.h"
#include "ranks/worker_client.h"

struct station_settings {
    const char *worker_folder;        /* where the workers of all kinds are */
    const struct device_kind *device; /* NULL: the first kind that opens */
    struct binding binding;
    double open_timeout;           /* s, each request of opening the device */
    enum counters_choice counters; /* unless off they are tried when the device opens */
    /* Set by a signal: what waits comes back. May be NULL. */
    const volatile sig_atomic_t *interrupted;
};

struct station;

/* Settings are copied, what they point to is not. NULL without memory. */
struct station *station_create(const struct station_settings *settings, const struct log *log);
/* Kills the worker. Takes NULL. */
void station_destroy(struct station *station);

/* The longest that opening a device of one kind may take, s. */
double station_opening(const struct station_settings *settings);

/* Chooses a device and opens it. A worker that is lost on the way costs a try; there are three, within
 * 3.5 open_timeout. STATUS_DEVICE with the reason and the way out. STATUS_OK also if the workers were
 * lost one after the other: then station_lost has the reason, and the device knows kind, host and
 * number. STATUS_INTERRUPTED. */
enum status station_open(struct station *station, struct error *error);
/* What was opened, the caller's to complete; its kind; and why it is this one, for people. */
struct device *station_device(struct station *station);
const struct device_kind *station_kind(const struct station *station);
const char *station_choice(const struct station *station);
/* UUID, or kind and number of a device that never opened. */
void station_name(const struct station *station, char name[160]);
/* Why the device is lost for good; NULL: it is not. */
const char *station_lost(const struct station *station);
/* So it is, for this reason. */
void station_lose(struct station *station, const char *why);

/* Waits for one reply, of this kind and to this request, for `timeout` seconds; a worker that says
 * anything else but an error is ended. STATUS_DEVICE and STATUS_INTERRUPTED: the worker
 * is gone, and station_reopen must come before the next request. */
enum status station_ask(struct station *station, const struct request *request,
                        enum reply_kind kind, double timeout, struct reply *reply,
                        struct error *error);
/* A new worker with the same device; waits for it. STATUS_DEVICE: the device is lost. */
enum status station_reopen(struct station *station, struct error *error);

/* ---- without waiting ---- */

bool station_has_worker(const struct station *station);
/* The answer must come within `timeout` seconds, as a STATION_LINE. */
void station_send(struct station *station, const struct request *request, double timeout);
/* Ends the worker. */
void station_drop(struct station *station);
/* There is no worker: starts one with the same device. The end of it is STATION_READY or STATION_LOST. */
void station_replace(struct station *station);

enum station_event {
    STATION_QUIET,
    STATION_LINE,        /* from the worker */
    STATION_WORKER_LOST, /* it has ended, or was killed because it took too long */
    STATION_READY,       /* the new worker has the device */
    STATION_LOST         /* no worker can open the device any more */
};
/* STATION_LINE: *line is the caller's to free. STATION_WORKER_LOST and STATION_LOST: *why. */
enum station_event station_step(struct station *station, char **line, struct error *why);
void station_poll(const struct station *station, struct pollfd descriptors[2], nfds_t *count);

/* What the worker's line says to this request: STATUS_OK if it is the reply that is due. STATUS_DEVICE
 * also if it is about something else. */
enum status station_read(const struct station *station, const struct request *request,
                         enum reply_kind kind, const char *line, struct reply *reply,
                         struct error *error);
extern const char station_out_of_turn[];

#endif
