/* Rank 0's half of a sweep: assigns configurations to ranks. A state machine: messages, time and
 * signals in, actions out. No MPI, no files, no waiting.
 *
 * A rank that is silent beyond its timeout counts as lost; other ranks get its configurations. A
 * rank that sends again takes part again. The first of two records of one configuration counts.
 *
 * Timed rows may wait and be counted together. They wait until a batch is full ([measure]
 * count_together, by default the device's own number), until they took 10 s, which would be lost
 * with the worker, or until no work is left for the rank. A rank counts a little earlier if no
 * other rank of its host is counting, so that ranks of a host count at different times. Rows that
 * are lost before counting are measured again and counted alone.
 *
 * With a time limit, only configurations that fit are assigned (estimate.h). The sweep ends, with a
 * report of remaining configurations, if no configuration fits or the limit is reached. */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "ranks/message.h"
#include "ranks/progress.h"
#include "ranks/time_limit.h"
#include "results/results.h"

struct dispatcher_settings {
    const struct manifest *manifest;
    const struct plan *plan;
    const struct results *earlier; /* content of the journal; NULL: empty */
    const struct device *devices;  /* open device of each rank */
    int ranks;
    const char *session; /* identifier, the first part of struct device.key */
    const char *job_id;  /* identifier of the batch job; "": none */
    /* longest silences, s; 0: no limit */
    double roofs_timeout;           /* from the first dispatcher_time until a rank has its roofs */
    double work_timeout;            /* while a rank measures a configuration */
    double count_timeout;           /* added for each timed row that waits for counting */
    double stop_timeout;            /* from MESSAGE_STOP to MESSAGE_FINISHED */
    const struct time_limit *limit; /* NULL: no limit */
};

/* Actions, which the caller carries out in the order of dispatcher_next. */
enum action_kind {
    ACTION_STORE_DEVICE, /* append `text` to the journal */
    ACTION_STORE_RECORD, /* append `text` to the journal; kind "round" if record->round is set */
    ACTION_SYNC,         /* make stored text durable before the next action */
    ACTION_SEND,         /* send `message` with `text` to `rank` */
    ACTION_PROGRESS      /* show `left` and `failed` */
};

struct dispatcher_action {
    enum action_kind kind;
    int rank;    /* SEND: receiver; STORE: origin */
    size_t item; /* STORE_RECORD: index into the plan */
    struct record *record;
    enum message_kind message;
    char *text; /* STORE: JSON; SEND: text */
    struct progress_left left;
    size_t failed;
};

struct dispatcher;

/* Keeps `log` and the pointers in `settings`, except `earlier` and `limit`. If an earlier row lacks
 * rounds, fetches its record, because further rounds use the record's algorithm. NULL: no memory.
 * If memory is missing later, the process aborts, because ranks would wait for ever. */
struct dispatcher *dispatcher_create(const struct dispatcher_settings *settings,
                                     const struct log *log);
void dispatcher_destroy(struct dispatcher *dispatcher); /* takes NULL */

/* ---- events ---- */

/* `now`: s, never decreasing. Call before the messages of that moment. */
void dispatcher_time(struct dispatcher *dispatcher, double now);
/* Rank 0 was suspended for `seconds`, most likely with the job. This time counts neither as silence
 * nor as time of a row. Call before the next dispatcher_time. */
void dispatcher_suspended(struct dispatcher *dispatcher, double seconds);
/* Handles a rank's message. Carry out the resulting actions at once. */
void dispatcher_message(struct dispatcher *dispatcher, const struct message *message);
/* Call after a moment's messages: one sync makes text durable, then ranks get work or stop. */
void dispatcher_commit(struct dispatcher *dispatcher);
/* After a signal: assigns nothing, stops all workers, and keeps no failed rows, because the signal
 * may be the cause. */
void dispatcher_interrupt(struct dispatcher *dispatcher);
/* Stops after a failed action, and drops all actions except those with MESSAGE_STOP. The status
 * becomes STATUS_SYSTEM. A dispatcher that had stopped with an error keeps its status, and appends
 * the text of `error`. */
void dispatcher_failed(struct dispatcher *dispatcher, const struct error *error);

/* ---- actions ---- */

/* Returns the next action, valid until the next call. False: no action. */
bool dispatcher_next(struct dispatcher *dispatcher, struct dispatcher_action *action);

/* ---- queries ---- */

/* Number of rounds of all configurations; with replicate, summed over the ranks. */
size_t dispatcher_total(const struct dispatcher *dispatcher);
/* Number of these rounds that were not on disk at the last ACTION_SYNC. */
size_t dispatcher_left(const struct dispatcher *dispatcher);

/* True if every rank has sent MESSAGE_FINISHED or is silent beyond stop_timeout. */
bool dispatcher_finished(const struct dispatcher *dispatcher);
/* Lists ranks without MESSAGE_FINISHED: "rank 3 on node7, rank 5 on node8". False: none. */
bool dispatcher_missing(const struct dispatcher *dispatcher, char *text, size_t size);

/* Outcome: STATUS_OK; STATUS_FAILED: rows that no run with this time limit can
 * measure; STATUS_DEVICE: no rank can measure, or a replicate device was lost early;
 * STATUS_INTERRUPTED: signal or time limit; STATUS_SYSTEM: failed action or invalid message. */
enum status dispatcher_status(const struct dispatcher *dispatcher, struct error *error);
