/* Rank 0's half of a sweep: which rank measures what. A state machine: messages, the time and
 * signals come in, actions come out. It never waits, knows no MPI and writes no file.
 *
 * A rank that is silent for longer than its timeout counts as lost: what it measures goes to
 * another rank. If it writes again, it takes part again; of two records of one configuration the
 * first is kept.
 *
 * Rows of a rank may wait until their counters are read together: as many as [measure]
 * count_together or its device says, or until 10 s of their timings would be lost with the worker;
 * a little fewer where that lets ranks of a host count at different times. They are counted, too,
 * when there is nothing more for that rank. What is lost before it was counted is handed out again,
 * to be counted by itself.
 *
 * With a time limit, nothing is handed out that cannot end before it (estimate.h). When nothing
 * that is left can, or the limit has come, the sweep ends, and says what is left. */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "ranks/message.h"
#include "ranks/progress.h"
#include "ranks/time_limit.h"
#include "results/algorithm_cache.h"
#include "results/results.h"

struct dispatcher_settings {
    const struct manifest *manifest;
    const struct plan *plan;
    const struct results *earlier; /* what the journal already holds; NULL: nothing */
    const struct device *devices;  /* of each rank, as opened */
    int ranks;
    const char *session; /* its identifier, the first part of struct device.key */
    const char *job_id;  /* of the batch system; "": there is none */
    /* s, how long a rank may say nothing; 0: for ever */
    double roofs_timeout; /* before it has a device with roofs, from the first dispatcher_time on */
    double work_timeout;  /* while it measures a configuration */
    double
        count_timeout; /* in addition, for each that it has timed and that waits for its counters */
    double stop_timeout;                           /* after MESSAGE_STOP */
    const struct time_limit *limit;                /* NULL: there is none */
    const struct algorithm_cache *algorithm_cache; /* NULL: every row searches */
};

/* What the caller carries out, in this order. */
enum action_kind {
    ACTION_STORE_DEVICE, /* `text` goes into the journal */
    ACTION_STORE_RECORD, /* `text` goes into the journal; the algorithm of `record` may be kept */
    ACTION_SYNC,         /* what was stored must be on disk before the next action */
    ACTION_SEND,         /* `message` with `text` goes to `rank` */
    ACTION_PROGRESS      /* for people: `left`, `failed` */
};

struct dispatcher_action {
    enum action_kind kind;
    int rank;    /* of SEND: to whom; of STORE: whose it is */
    size_t item; /* of STORE_RECORD: of the plan */
    struct record *record;
    enum message_kind message;
    char *text; /* of STORE, the JSON */
    struct progress_left left;
    size_t failed;
};

struct dispatcher;

/* Everything given stays the caller's; `settings`, `earlier` and `limit` only need to live during
 * the call. NULL without memory. Later on, without memory the process ends: ranks would wait for
 * what could not be sent. */
struct dispatcher *dispatcher_create(const struct dispatcher_settings *settings,
                                     const struct log *log);
void dispatcher_destroy(struct dispatcher *dispatcher); /* takes NULL */

/* ---- events ---- */

/* `now`: s, never less than before. Before the messages of that moment. */
void dispatcher_time(struct dispatcher *dispatcher, double now);
/* Rank 0, and most likely the job, did not run for so long: no rank was silent, and no row took
 * that long. Before the dispatcher_time that follows. */
void dispatcher_suspended(struct dispatcher *dispatcher, double seconds);
/* From a rank. What it brings is stored by the actions that follow, which are to be carried out at
 * once. */
void dispatcher_message(struct dispatcher *dispatcher, const struct message *message);
/* All messages of this moment are in: they are made durable by one sync, and only then those who
 * wrote get more work, or hear of the end. */
void dispatcher_commit(struct dispatcher *dispatcher);
/* A signal arrived: nothing more is handed out, and all workers are stopped. What fails from now on
 * may have failed of the same signal: it gets no row. */
void dispatcher_interrupt(struct dispatcher *dispatcher);
/* An action failed: those that are left are dropped, but for MESSAGE_STOP, and all stop. */
void dispatcher_failed(struct dispatcher *dispatcher, const struct error *error);

/* ---- actions ---- */

/* The next one; what it points to is the dispatcher's, until the next call. False: there is
 * none. */
bool dispatcher_next(struct dispatcher *dispatcher, struct dispatcher_action *action);

/* ---- queries ---- */

/* Configurations of the sweep, and those that have no row yet; with replicate those of each
 * rank. */
size_t dispatcher_total(const struct dispatcher *dispatcher);
size_t dispatcher_left(const struct dispatcher *dispatcher);

/* Every rank has said its last word, or is silent beyond stop_timeout. */
bool dispatcher_finished(const struct dispatcher *dispatcher);
/* Ranks that have not said their last word, with their hosts: "rank 3 on node7, rank 5 on node8".
 * False: there are none. */
bool dispatcher_missing(const struct dispatcher *dispatcher, char *text, size_t size);

/* How it ended: STATUS_OK; STATUS_FAILED after max_failures; STATUS_DEVICE if no rank is left that
 * can measure, or with replicate if a device was lost before it had measured everything;
 * STATUS_INTERRUPTED, also by the time limit, but STATUS_FAILED if no run with this limit can
 * measure what is left; STATUS_SYSTEM if an action failed, or a rank sent nonsense. */
enum status dispatcher_status(const struct dispatcher *dispatcher, struct error *error);
