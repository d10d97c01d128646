/* Rank 0's assignment of work: queue, states of the ranks, rows in flight, and a list of actions.
 *
 * Set-up: dispatcher_create marks rows of earlier sessions as done and feeds their times to the
 * estimator. Each rank starts in RANK_PREPARING; once no rank prepares, assign_work gives one row
 * at a time to each idle rank. Failure: a lost or silent rank returns its items to the queue. After
 * a second lost device an item fails. A failed action, a signal or the time limit call `stop`,
 * which keeps the first reason. A failed sync replaces the reason "all work is done", because rows
 * are missing on disk. Without memory the process aborts. Rounds: each begins when the one before
 * is done. A row stays on its device, so that devices do not add to the spread of its rounds. Cost:
 * per message a few scans of the ranks and one of the queue; each record is decoded once. */
#include "ranks/dispatcher.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/device_kind.h"
#include "model/protocol.h"
#include "ranks/estimate.h"
#include "ranks/queue.h"
#include "ranks/resume.h"
#include "results/derive.h"

enum rank_state {
    RANK_PREPARING,
    RANK_IDLE,      /* ready for work; rows in flight are all timed */
    RANK_MEASURING, /* one of the rows in flight is being measured */
    RANK_COUNTING,  /* counts its rows in flight */
    RANK_LOST,      /* has lost its device */
    RANK_SILENT,    /* timed out while preparing; may send again */
    RANK_OVERDUE,   /* timed out while measuring or counting; may send again */
    RANK_GONE
};

/* An item that was sent to a rank, and has no record yet. */
struct in_flight {
    size_t item; /* index into the plan */
    int round;
    bool timed;     /* waits for counting */
    double seconds; /* s, from assignment to MESSAGE_TIMED */
};

struct rank {
    enum rank_state state;
    struct in_flight *in_flight; /* owned, oldest first */
    size_t count;
    double since;       /* s, begin of the state, or the last record in RANK_COUNTING */
    double count_began; /* s, begin of RANK_COUNTING */
    size_t count_rows;  /* rows in flight at count_began */
    double count_timed; /* s, timed_seconds at count_began */
    bool has_counters;  /* the device's counters can be read */
};

/* The latest algorithm that a search found on a device of one model, library and driver. Other such
 * devices use the algorithm instead of searching. */
struct searched {
    struct algorithm algorithm;
    int rank; /* rank of the first search */
    struct searched *next;
};

struct dispatcher {
    struct dispatcher_settings settings; /* without `earlier` and `limit` */
    const struct log *log;
    struct time_limit limit;
    struct queue *queue;
    struct estimator *estimator;
    struct rank *ranks;
    int lists;                   /* number of lists of items: with replicate one per rank, else 1 */
    bool *counted_alone;         /* by item: rows that must be counted alone */
    unsigned char *devices_lost; /* by item: number of devices lost while measuring it */
    /* Algorithm of each row for its further rounds, by list and item; NULL: none. Devices of one
     * model may have found different algorithms. */
    struct algorithm **algorithms;
    size_t algorithm_room;      /* 0: there is only one round */
    struct searched **searched; /* by item; NULL: none; used with replicate */
    double now, stopped_at;     /* s, from dispatcher_time */
    bool started;               /* the first dispatcher_time has come */
    bool changed;               /* messages came since dispatcher_commit */
    struct outcome refusal;     /* last logged refusal of counters */
    double rows_time;           /* s; time left when the first row could begin; NaN before */
    double count_longest;       /* s; longest collection of counters so far; NaN: none */
    double count_ratio;         /* largest time of a collection / its timed_seconds */
    size_t failures;
    size_t dropped; /* rounds given up with their device; devices lost in a sweep without rows */
    bool stopping;
    bool unwritten;     /* an action failed, so `left` stays as it is */
    size_t left;        /* rounds of configurations that were not on disk at the last sync */
    enum status status; /* outcome, by the first reason to stop */
    struct error error;
    struct dispatcher_action *actions; /* dispatcher_next has returned the first `taken` */
    size_t action_count, taken;
};

static void *or_abort(void *memory)
{
    if (!memory)
        abort(); /* or the ranks would wait for ever */
    return memory;
}

static void add_earlier_time(struct dispatcher *dispatcher, const struct device *device,
                             const struct row *row, size_t item)
{
    if (!estimate_is_usable(row->status, row->attempts) || !(row->wall_time > 0))
        return;
    for (int rank = 0; rank < dispatcher->settings.ranks; ++rank) {
        const struct device *own = &dispatcher->settings.devices[rank];
        if (strcmp(device->kind, own->kind) == 0 && strcmp(device->model, own->model) == 0) {
            estimator_add(dispatcher->estimator, &dispatcher->settings.plan->items[item],
                          row->wall_time);
            return;
        }
    }
}

static struct algorithm **algorithm_of(const struct dispatcher *dispatcher, int rank, size_t item)
{
    const size_t list = dispatcher->lists > 1 ? (size_t)rank : 0;
    return &dispatcher->algorithms[list * dispatcher->settings.plan->count + item];
}

static struct searched *searched_find(const struct dispatcher *dispatcher, int rank, size_t item)
{
    const struct device *devices = dispatcher->settings.devices, *own = &devices[rank];
    struct searched *found = dispatcher->searched[item];
    while (found && (strcmp(devices[found->rank].model, own->model) != 0 ||
                     strcmp(devices[found->rank].library_version, own->library_version) != 0 ||
                     strcmp(devices[found->rank].driver_version, own->driver_version) != 0))
        found = found->next;
    return found;
}

static void keep_algorithm(struct dispatcher *dispatcher, int rank, size_t item,
                           const struct record *record)
{
    const struct sweep_settings *sweep = &dispatcher->settings.manifest->sweep;
    struct algorithm found;
    if (!algorithm_of_record(record, &found))
        return;
    if (sweep->rounds > 1) {
        struct algorithm **own = algorithm_of(dispatcher, rank, item);
        *own = or_abort(realloc(*own, sizeof found));
        **own = found;
    }
    if (!sweep->replicate || strcmp(found.algorithm_origin, algorithm_searched) != 0)
        return;
    struct searched *kept = searched_find(dispatcher, rank, item);
    if (!kept) {
        kept = or_abort(malloc(sizeof *kept));
        *kept = (struct searched){.rank = rank, .next = dispatcher->searched[item]};
        dispatcher->searched[item] = kept;
    }
    kept->algorithm = found;
    strcpy(kept->algorithm.algorithm_origin, "run");
}

/* Marks the rounds of an earlier row as done for rank `owner`, which has the row's device; -1: no
 * rank has it. Gives up missing rounds if there is no owner, or if the row was not measured. True:
 * gave up rounds of a measured row. */
static bool resume_row(struct dispatcher *dispatcher, const struct results *earlier,
                       const struct row *row, size_t item, int owner)
{
    struct record record;
    struct error unread;
    record_init(&record);
    if (owner >= 0 && resume_rounds(row, dispatcher->settings.manifest->sweep.rounds) > 0 &&
        results_fetch(earlier, row, &record, &unread) == STATUS_OK)
        keep_algorithm(dispatcher, owner, item, &record);
    record_clear(&record);
    queue_done(dispatcher->queue, owner, item, 1);
    for (size_t round = 1; round < row->round_count; ++round)
        if (row->rounds[round].there)
            queue_done(dispatcher->queue, owner, item, (int)round + 1);
    const bool measured = row->status == RECORD_MEASURED;
    const bool given_up = owner < 0 || !measured;
    return given_up && queue_drop(dispatcher->queue, owner, item) > 0 && measured;
}

/* Marks rows of earlier sessions as done: with split for the first rank with the row's device, with
 * replicate for each such rank. */
static bool resume(struct dispatcher *dispatcher, const struct results *earlier)
{
    const struct sweep_settings *sweep = &dispatcher->settings.manifest->sweep;
    size_t *items = resume_items(dispatcher->settings.plan, earlier), short_rows = 0;
    for (size_t i = 0; items && i < earlier->row_count; ++i) {
        const struct row *row = &earlier->rows[i];
        int64_t index = results_device(earlier, row->device_key);
        const struct device *device = index < 0 ? NULL : &earlier->devices[index];
        bool found = false;
        if (items[i] == RESUME_NONE)
            continue;
        for (int rank = 0; device && rank < dispatcher->settings.ranks; ++rank)
            if (device_same(device, &dispatcher->settings.devices[rank]) &&
                (sweep->replicate || !found)) {
                resume_row(dispatcher, earlier, row, items[i], rank);
                found = true;
            }
        if (!found && !sweep->replicate)
            short_rows += resume_row(dispatcher, earlier, row, items[i], -1);
        if (device)
            add_earlier_time(dispatcher, device, row, items[i]);
    }
    if (short_rows > 0)
        log_print(dispatcher->log, LOG_WARNING,
                  "%zu rows keep fewer than %d rounds: their devices are not in this job",
                  short_rows, sweep->rounds);
    free(items);
    return items;
}

struct dispatcher *dispatcher_create(const struct dispatcher_settings *settings,
                                     const struct log *log)
{
    const struct manifest *manifest = settings->manifest;
    const struct plan *plan = settings->plan;
    struct dispatcher *created = calloc(1, sizeof *created);
    if (!created)
        return NULL;
    created->settings = *settings;
    created->settings.earlier = NULL;
    created->settings.limit = NULL;
    created->log = log;
    created->limit = settings->limit ? *settings->limit : time_limit_none();
    created->rows_time = created->count_longest = created->count_ratio = NAN;
    created->lists = manifest->sweep.replicate ? settings->ranks : 1;
    created->queue =
        queue_create(plan, settings->ranks, manifest->sweep.replicate, manifest->sweep.rounds);
    created->estimator = estimator_create(&manifest->measure, manifest->sweep.timeout);
    created->ranks = calloc((size_t)settings->ranks, sizeof *created->ranks);
    created->counted_alone = calloc(plan->count + 1, sizeof *created->counted_alone);
    created->devices_lost = calloc(plan->count + 1, sizeof *created->devices_lost);
    created->algorithm_room = manifest->sweep.rounds > 1 ? (size_t)created->lists * plan->count : 0;
    created->algorithms = calloc(created->algorithm_room + 1, sizeof *created->algorithms);
    created->searched = calloc(plan->count + 1, sizeof *created->searched);
    if (created->queue && created->estimator && created->ranks && created->counted_alone &&
        created->devices_lost && created->algorithms && created->searched &&
        (!settings->earlier || resume(created, settings->earlier))) {
        created->left = queue_left(created->queue);
        return created;
    }
    dispatcher_destroy(created);
    return NULL;
}

static void action_clear(struct dispatcher_action *action)
{
    if (action->record)
        record_clear(action->record);
    free(action->record);
    free(action->text);
    *action = (struct dispatcher_action){0};
}

static void clear_actions(struct dispatcher *dispatcher)
{
    for (size_t i = 0; i < dispatcher->action_count; ++i)
        action_clear(&dispatcher->actions[i]);
    dispatcher->action_count = dispatcher->taken = 0;
}

void dispatcher_destroy(struct dispatcher *dispatcher)
{
    if (!dispatcher)
        return;
    clear_actions(dispatcher);
    free(dispatcher->actions);
    for (int rank = 0; dispatcher->ranks && rank < dispatcher->settings.ranks; ++rank)
        free(dispatcher->ranks[rank].in_flight);
    free(dispatcher->ranks);
    queue_destroy(dispatcher->queue);
    estimator_destroy(dispatcher->estimator);
    const size_t items = dispatcher->settings.plan->count;
    for (size_t i = 0; dispatcher->algorithms && i < dispatcher->algorithm_room; ++i)
        free(dispatcher->algorithms[i]);
    for (size_t i = 0; dispatcher->searched && i < items; ++i)
        for (struct searched *each = dispatcher->searched[i], *next; each; each = next) {
            next = each->next;
            free(each);
        }
    free(dispatcher->algorithms);
    free(dispatcher->searched);
    free(dispatcher->counted_alone);
    free(dispatcher->devices_lost);
    free(dispatcher);
}

/* ---- actions ---- */

static void queue_action(struct dispatcher *dispatcher, struct dispatcher_action action)
{
    if (!ARRAY_ADD(dispatcher->actions, dispatcher->action_count, action))
        abort(); /* or the ranks would wait for ever */
}

static void send_to(struct dispatcher *dispatcher, int rank, enum message_kind kind, char *text)
{
    queue_action(dispatcher,
                 (struct dispatcher_action){
                     .kind = ACTION_SEND, .rank = rank, .message = kind, .text = or_abort(text)});
}

bool dispatcher_next(struct dispatcher *dispatcher, struct dispatcher_action *action)
{
    if (dispatcher->taken > 0) {
        struct dispatcher_action *done = &dispatcher->actions[dispatcher->taken - 1];
        if (done->kind == ACTION_SYNC && !dispatcher->unwritten)
            dispatcher->left = done->left.count;
        action_clear(done);
    }
    if (dispatcher->taken == dispatcher->action_count) {
        clear_actions(dispatcher);
        return false;
    }
    *action = dispatcher->actions[dispatcher->taken++];
    return true;
}

/* Stops all ranks, at the first call. Lost ranks get the message too, because they wait for it. */
static void stop(struct dispatcher *dispatcher, enum status status, const char *why)
{
    if (dispatcher->stopping)
        return;
    dispatcher->stopping = true;
    dispatcher->stopped_at = dispatcher->now;
    dispatcher->status = error_set(&dispatcher->error, status, "%s", why);
    for (int rank = 0; rank < dispatcher->settings.ranks; ++rank)
        send_to(dispatcher, rank, MESSAGE_STOP, strdup(""));
}

void dispatcher_failed(struct dispatcher *dispatcher, const struct error *error)
{
    size_t kept = 0;
    dispatcher->unwritten = true;
    for (size_t i = 0; i < dispatcher->action_count; ++i) {
        struct dispatcher_action action = dispatcher->actions[i];
        if (i >= dispatcher->taken && action.kind == ACTION_SEND && action.message == MESSAGE_STOP)
            dispatcher->actions[kept++] = action;
        else
            action_clear(&action);
    }
    dispatcher->action_count = kept;
    dispatcher->taken = 0;
    if (!dispatcher->stopping)
        stop(dispatcher, STATUS_SYSTEM, error->text);
    else if (dispatcher->status == STATUS_OK) /* the last rows are not on disk */
        dispatcher->status = error_set(&dispatcher->error, STATUS_SYSTEM, "%s", error->text);
    else {
        const struct error first = dispatcher->error;
        error_set(&dispatcher->error, dispatcher->status, "%s; %s", first.text, error->text);
    }
}

/* ---- the ranks ---- */

static bool any_rank(const struct dispatcher *dispatcher, enum rank_state first,
                     enum rank_state last)
{
    for (int rank = 0; rank < dispatcher->settings.ranks; ++rank)
        if (dispatcher->ranks[rank].state >= first && dispatcher->ranks[rank].state <= last)
            return true;
    return false;
}

static struct in_flight *find_in_flight(const struct dispatcher *dispatcher, int from,
                                        const char *configuration)
{
    const struct rank *rank = &dispatcher->ranks[from];
    char text[WORKLOAD_TEXT];
    for (size_t i = 0; i < rank->count; ++i) {
        config_format(&dispatcher->settings.plan->items[rank->in_flight[i].item].config, text);
        if (strcmp(text, configuration) == 0)
            return &rank->in_flight[i];
    }
    return NULL;
}

static void remove_in_flight(struct rank *rank, struct in_flight *found)
{
    size_t after = (size_t)(rank->in_flight + --rank->count - found);
    memmove(found, found + 1, after * sizeof *found);
}

static const struct in_flight *measured_by(const struct rank *rank)
{
    for (size_t i = 0; i < rank->count; ++i)
        if (!rank->in_flight[i].timed)
            return &rank->in_flight[i];
    return NULL;
}

static size_t count_timed(const struct rank *rank)
{
    return rank->count - (rank->state == RANK_MEASURING && rank->count > 0);
}

/* Returns the time, s, that would be lost with the worker: timed rows have no record yet. */
static double timed_seconds(const struct rank *rank)
{
    double seconds = 0;
    for (size_t i = 0; i < rank->count; ++i)
        seconds += rank->in_flight[i].timed ? rank->in_flight[i].seconds : 0;
    return seconds;
}

/* ---- assignment ---- */

static double time_left(const struct dispatcher *dispatcher)
{
    return time_limit_left(&dispatcher->limit, dispatcher->now,
                           queue_total(dispatcher->queue) - queue_left(dispatcher->queue));
}

static size_t batch_size(const struct dispatcher *dispatcher, int rank)
{
    const struct measure_settings *measure = &dispatcher->settings.manifest->measure;
    const struct device *device = &dispatcher->settings.devices[rank];
    int64_t most = measure->count_together ? measure->count_together : device->count_together;
    bool counted = measure->counters != COUNTERS_OFF && dispatcher->ranks[rank].has_counters;
    return counted && most > 1 ? (size_t)most : 1;
}

struct selection {
    const struct dispatcher *dispatcher;
    bool waiting; /* the rank has rows in flight */
    double left;  /* s, time for another row; INFINITY: no limit */
};

static double estimated(const struct dispatcher *dispatcher, size_t item)
{
    return estimator_estimate(dispatcher->estimator, &dispatcher->settings.plan->items[item])
        .seconds;
}

/* A queue_filter. Accepts items that fit the time left. Items that are counted alone wait until no
 * row is in flight. */
static bool may_measure(const void *context, size_t item)
{
    const struct selection *selection = context;
    return !(selection->waiting && selection->dispatcher->counted_alone[item]) &&
           (isinf(selection->left) || estimated(selection->dispatcher, item) <= selection->left);
}

/* Takes an item for the rank out of the queue. Timed rows still await counting: they take 1.5 times
 * the longest collection so far from the budget, and before a collection their whole estimates. */
static bool next_item(const struct dispatcher *dispatcher, int to, size_t *item)
{
    const struct rank *rank = &dispatcher->ranks[to];
    struct selection selection = {dispatcher, rank->count > 0, time_left(dispatcher)};
    double counting = dispatcher->count_ratio * timed_seconds(rank), estimates = 0;
    for (size_t i = 0; i < rank->count && !isinf(selection.left); ++i)
        estimates += estimated(dispatcher, rank->in_flight[i].item);
    selection.left -= fmin(estimates, 1.5 * fmax(dispatcher->count_longest, counting));
    return queue_next(dispatcher->queue, to, may_measure, &selection, item);
}

/* Each collection of counters has a fixed cost, so a rank counts as late as possible: with a full
 * batch, or with 7/8 of a batch if other ranks work on its host and none of them counts. A driver
 * programs the counters of one process at a time, so ranks that start together should drift apart.
 */
static bool should_count(const struct dispatcher *dispatcher, int asking)
{
    static const double seconds_most = 10, early = 7.0 / 8;
    const struct device *devices = dispatcher->settings.devices;
    const struct rank *rank = &dispatcher->ranks[asking];
    double filled = fmax((double)rank->count / (double)batch_size(dispatcher, asking),
                         timed_seconds(rank) / seconds_most);
    bool neighbours = false;
    if (filled >= 1 || filled < early)
        return filled >= 1;
    for (int other = 0; other < dispatcher->settings.ranks; ++other) {
        enum rank_state state = dispatcher->ranks[other].state;
        if (other == asking || state >= RANK_LOST ||
            strcmp(devices[other].hostname, devices[asking].hostname) != 0)
            continue;
        if (state == RANK_COUNTING)
            return false;
        neighbours = true;
    }
    return neighbours;
}

static void send_count(struct dispatcher *dispatcher, int to)
{
    struct rank *rank = &dispatcher->ranks[to];
    if (dispatcher->stopping)
        return;
    rank->state = RANK_COUNTING;
    rank->since = rank->count_began = dispatcher->now;
    rank->count_rows = rank->count;
    rank->count_timed = timed_seconds(rank);
    send_to(dispatcher, to, MESSAGE_COUNT, strdup(""));
}

static void send_work(struct dispatcher *dispatcher, int to, size_t item)
{
    const struct manifest *manifest = dispatcher->settings.manifest;
    const struct plan_item *planned = &dispatcher->settings.plan->items[item];
    struct rank *rank = &dispatcher->ranks[to];
    struct request request = request_default(REQUEST_MEASURE);
    const struct device_kind *kind = device_kind_find(dispatcher->settings.devices[to].kind);
    request.measure = manifest->measure;
    if (request.measure.by_kind && kind && kind->stop > 0) {
        request.measure.iterations = 0;
        request.measure.stop = kind->stop;
        request.measure.min_time = kind->min_time;
        request.measure.max_time = kind->max_time;
    }
    request.seed = manifest->sweep.seed;
    request.round = queue_round(dispatcher->queue);
    request.config = planned->config;
    snprintf(request.row, sizeof request.row, "%s", planned->name);
    request.count_later = batch_size(dispatcher, to) > 1 && !dispatcher->counted_alone[item];
    const struct searched *searched = searched_find(dispatcher, to, item);
    if (searched)
        request.algorithm = searched->algorithm;
    if (request.round > 1) { /* only times, with the algorithm of the first round */
        request.measure.counters = COUNTERS_OFF;
        request.measure.kernels = request.measure.verify = request.measure.energy = false;
        request.count_later = false;
        const struct algorithm *own = *algorithm_of(dispatcher, to, item);
        request.algorithm = own ? *own : request.algorithm;
    }
    if (config_is_program(&request.config)) {
        /* The program must end before its worker times out, so that the row has the program's last
         * output. */
        const double share = 0.9;
        snprintf(request.folder, sizeof request.folder, "%s",
                 manifest->folder ? manifest->folder : "");
        request.timeout = share * manifest->sweep.timeout;
    }
    rank->state = RANK_MEASURING;
    rank->since = dispatcher->now;
    if (!ARRAY_ADD(rank->in_flight, rank->count,
                   (struct in_flight){.item = item, .round = request.round}))
        abort(); /* or the ranks would wait for ever */
    send_to(dispatcher, to, MESSAGE_MEASURE, request_encode(&request));
}

static bool next_round(struct dispatcher *dispatcher, bool skip)
{
    const struct sweep_settings *sweep = &dispatcher->settings.manifest->sweep;
    if (!queue_next_round(dispatcher->queue, sweep->seed, skip))
        return false;
    log_print(dispatcher->log, LOG_DEBUG, "round %d of %d", queue_round(dispatcher->queue),
              sweep->rounds);
    for (int rank = 0; rank < dispatcher->settings.ranks; ++rank)
        if (dispatcher->ranks[rank].state >= RANK_LOST)
            dispatcher->dropped += queue_rank_lost(dispatcher->queue, rank);
    return true;
}

/* Assigns nothing until all ranks have their roofs, because rows would disturb roofs on shared
 * cores or memory. Assigns one row at a time, so that the last rows go to free ranks. */
static void assign_work(struct dispatcher *dispatcher)
{
    if (any_rank(dispatcher, RANK_PREPARING, RANK_PREPARING))
        return;
    if (isnan(dispatcher->rows_time))
        dispatcher->rows_time = time_left(dispatcher);
    while (next_round(dispatcher, false))
        ;
    for (int to = 0; to < dispatcher->settings.ranks && !dispatcher->stopping; ++to) {
        bool waiting = dispatcher->ranks[to].count > 0;
        size_t item;
        if (dispatcher->ranks[to].state != RANK_IDLE)
            continue;
        if (waiting && should_count(dispatcher, to))
            send_count(dispatcher, to);
        else if (next_item(dispatcher, to, &item))
            send_work(dispatcher, to, item);
        else if (waiting)
            send_count(dispatcher, to);
    }
}

/* ---- the end ---- */

static void stop_for_time(struct dispatcher *dispatcher)
{
    const struct plan *plan = dispatcher->settings.plan;
    struct left_over left_over = {.left = time_left(dispatcher),
                                  .rows_time = dispatcher->rows_time};
    char text[LEFT_OVER_TEXT];
    const struct sweep_settings *sweep = &dispatcher->settings.manifest->sweep;
    for (int rank = 0; rank < dispatcher->lists; ++rank)
        for (size_t item = 0; item < plan->count; ++item)
            for (int round = 1; round <= sweep->rounds; ++round)
                if (!queue_is_done(dispatcher->queue, rank, item, round))
                    left_over_add(&left_over,
                                  estimator_estimate(dispatcher->estimator, &plan->items[item]));
    left_over_format(&left_over, &dispatcher->limit, queue_total(dispatcher->queue), text);
    if (sweep->rounds > 1)
        strncat(text, "; each round of a configuration counts", sizeof text - strlen(text) - 1);
    stop(dispatcher, left_over_is_permanent(&left_over) ? STATUS_FAILED : STATUS_INTERRUPTED, text);
}

static void stop_when_done(struct dispatcher *dispatcher)
{
    bool preparing = any_rank(dispatcher, RANK_PREPARING, RANK_PREPARING);
    if (queue_left(dispatcher->queue) == 0 && !preparing)
        stop(dispatcher, dispatcher->dropped ? STATUS_DEVICE : STATUS_OK,
             "a device was lost before it had measured everything; --resume measures the rest");
    else if (!any_rank(dispatcher, RANK_PREPARING, RANK_COUNTING))
        stop(dispatcher, STATUS_DEVICE, "no rank is left that has a usable device");
    else if (!preparing && !any_rank(dispatcher, RANK_MEASURING, RANK_COUNTING) &&
             !isinf(dispatcher->limit.end) && !dispatcher->stopping)
        stop_for_time(dispatcher); /* all rows that fit are assigned */
}

/* ---- messages from ranks ---- */

/* Logs a refusal that differs from the last logged one, because ranks usually share a cause. */
static void note_counters(struct dispatcher *dispatcher, int from, const struct device *device)
{
    const struct outcome *counters = &device->counters;
    const struct device_kind *kind = device_kind_find(device->kind);
    char refusal[OUTCOME_TEXT];
    dispatcher->ranks[from].has_counters = counters->code == COUNTED_YES;
    if (counters->code == OUTCOME_MISSING || counters->code == COUNTED_YES ||
        outcome_same(counters, &dispatcher->refusal))
        return;
    dispatcher->refusal = *counters;
    outcome_format(counters, counted_word, refusal);
    log_print(dispatcher->log, kind && !kind->has_counters ? LOG_DEBUG : LOG_WARNING,
              "hardware counters of rank %d on %s %s; FLOPs and bytes are the modelled ones", from,
              device->hostname, refusal);
}

static void handle_device(struct dispatcher *dispatcher, const struct message *message)
{
    struct device *device = malloc(sizeof *device);
    struct error unread;
    if (!device) {
        error_set(&unread, STATUS_SYSTEM, "no memory for a device description");
        dispatcher_failed(dispatcher, &unread);
    } else if (device_decode(json_text_of(message->text), device, &unread) || !device->key[0]) {
        stop(dispatcher, STATUS_SYSTEM, "a rank sent a device description that cannot be read");
    } else {
        queue_action(dispatcher,
                     (struct dispatcher_action){.kind = ACTION_STORE_DEVICE,
                                                .rank = message->from,
                                                .text = or_abort(strdup(message->text))});
        if (message->kind == MESSAGE_DEVICE) {
            log_print(dispatcher->log, LOG_DEBUG, "rank %d has measured its roofs", message->from);
            note_counters(dispatcher, message->from, device);
            device_set_peaks(device);
            estimator_set_peaks(dispatcher->estimator, device);
            dispatcher->ranks[message->from].state = RANK_IDLE;
        }
    }
    free(device);
}

static void report_progress(struct dispatcher *dispatcher)
{
    struct progress_left left = {.count = queue_left(dispatcher->queue),
                                 .round = queue_round(dispatcher->queue),
                                 .rounds = dispatcher->settings.manifest->sweep.rounds};
    for (int rank = 0; rank < dispatcher->settings.ranks; ++rank)
        if (dispatcher->ranks[rank].state < RANK_LOST)
            left.timed += count_timed(&dispatcher->ranks[rank]);
    queue_action(dispatcher, (struct dispatcher_action){.kind = ACTION_PROGRESS,
                                                        .left = left,
                                                        .failed = dispatcher->failures});
}

/* A row that is not measured has no further rounds. `text` is the record as printed. Takes over the
 * content of `record`. */
static void store_record(struct dispatcher *dispatcher, int rank, size_t item, int round,
                         struct record *record, const char *text)
{
    struct record *stored = or_abort(malloc(sizeof *stored));
    char parts[256];
    const struct plan_item *planned = &dispatcher->settings.plan->items[item];
    snprintf(record->label, sizeof record->label, "%s", planned->label);
    record_format_parts(record, parts, sizeof parts);
    log_print(dispatcher->log, LOG_DEBUG, "%s: %s%s%s%s", planned->name,
              record_status_name[record->status], record->error[0] ? ": " : "", record->error,
              parts);
    if (record->round > 1 && record->status != RECORD_MEASURED)
        log_print(dispatcher->log, LOG_WARNING, "%s: round %d is missing: %s", planned->name, round,
                  record->error);
    if (record->host_paced == 1)
        log_print(dispatcher->log, LOG_INFO, "%s: %s", planned->name, time_mark_text('h'));
    if (record->bimodal == 1)
        log_print(dispatcher->log, LOG_INFO, "%s: %s", planned->name, time_mark_text('b'));
    queue_done(dispatcher->queue, rank, item, round);
    if (round == 1)
        keep_algorithm(dispatcher, rank, item, record);
    if (round == 1 && record->status != RECORD_MEASURED)
        queue_drop(dispatcher->queue, rank, item);
    dispatcher->failures += record->status == RECORD_FAILED;
    *stored = *record;
    record_init(record);
    queue_action(dispatcher, (struct dispatcher_action){
                                 .kind = ACTION_STORE_RECORD,
                                 .rank = rank,
                                 .item = item,
                                 .text = or_abort(record_complete(text, stored, planned->listed)),
                                 .record = stored});
    report_progress(dispatcher);
}

/* An overdue rank gets no work until nothing is in flight there: other ranks may have its rows. */
static void update_rank(struct dispatcher *dispatcher, int from)
{
    struct rank *rank = &dispatcher->ranks[from];
    if (measured_by(rank))
        return;
    if (rank->state == RANK_MEASURING || rank->count == 0)
        rank->state = RANK_IDLE;
    else if (rank->state == RANK_OVERDUE)
        send_count(dispatcher, from);
    rank->since = dispatcher->now;
}

/* Returns a row's time of measuring and its share of the time of counting, s; 0: unknown. */
static double row_seconds(const struct dispatcher *dispatcher, const struct rank *rank,
                          const struct in_flight *in_flight)
{
    if (rank->state == RANK_OVERDUE)
        return 0;
    return in_flight->timed ? in_flight->seconds +
                                  (dispatcher->now - rank->count_began) / (double)rank->count_rows
                            : dispatcher->now - rank->since;
}

static struct in_flight *decode_record(const struct dispatcher *dispatcher, int from,
                                       const char *text, struct record *record)
{
    const struct dispatcher_settings *settings = &dispatcher->settings;
    struct error error;
    if (record_decode(json_text_of(text), record, &error))
        return NULL;
    struct in_flight *in_flight = find_in_flight(dispatcher, from, record->configuration);
    if (!in_flight || strcmp(record->config_hash, settings->plan->items[in_flight->item].hash) != 0)
        return NULL;
    snprintf(record->device_key, sizeof record->device_key, "%.100s/%d", settings->session, from);
    snprintf(record->job_id, sizeof record->job_id, "%s", settings->job_id);
    return in_flight;
}

/* Drops a record of an overdue rank if another rank has sent one meanwhile. */
static void handle_record(struct dispatcher *dispatcher, const struct message *message)
{
    struct rank *rank = &dispatcher->ranks[message->from];
    struct record record;
    char *text;
    const long attempts = strtol(message->text, &text, 10);
    text += *text == ' ';
    record_init(&record);
    struct in_flight *in_flight = decode_record(dispatcher, message->from, text, &record);
    if (in_flight) {
        size_t item = in_flight->item;
        double seconds = row_seconds(dispatcher, rank, in_flight);
        record.attempts = attempts;
        record.round = in_flight->round > 1 ? in_flight->round : FIELD_MISSING;
        const int round = in_flight->round;
        if (seconds > 0 && round == 1 && estimate_is_usable(record.status, record.attempts))
            estimator_add(dispatcher->estimator, &dispatcher->settings.plan->items[item], seconds);
        remove_in_flight(rank, in_flight);
        if (rank->state == RANK_COUNTING && rank->count == 0) {
            const double took = dispatcher->now - rank->count_began;
            dispatcher->count_longest = fmax(dispatcher->count_longest, took);
            dispatcher->count_ratio = fmax(dispatcher->count_ratio, took / rank->count_timed);
        }
        if (dispatcher->status == STATUS_INTERRUPTED && record.status == RECORD_FAILED)
            log_print(dispatcher->log, LOG_DEBUG,
                      "%s failed while the job ends, no row is kept: %s",
                      dispatcher->settings.plan->items[item].name, record.error);
        else if (queue_is_done(dispatcher->queue, message->from, item, round))
            log_print(dispatcher->log, LOG_DEBUG, "rank %d is late, there is a row already: %s",
                      message->from, dispatcher->settings.plan->items[item].name);
        else
            store_record(dispatcher, message->from, item, round, &record, text);
        update_rank(dispatcher, message->from);
    } else {
        stop(dispatcher, STATUS_SYSTEM, "a rank sent no record of its own rows");
    }
    record_clear(&record);
}

static void handle_timed(struct dispatcher *dispatcher, const struct message *message)
{
    struct in_flight *in_flight = find_in_flight(dispatcher, message->from, message->text);
    if (!in_flight) {
        stop(dispatcher, STATUS_SYSTEM, "a rank has timed a row that it was not assigned");
        return;
    }
    in_flight->timed = true;
    in_flight->seconds = dispatcher->now - dispatcher->ranks[message->from].since;
    update_rank(dispatcher, message->from);
    report_progress(dispatcher);
}

/* The row was timed, then lost with the worker. From now on it is counted alone, so that it cannot
 * be lost with another row. */
static void handle_returned(struct dispatcher *dispatcher, const struct message *message)
{
    struct in_flight *in_flight = find_in_flight(dispatcher, message->from, message->text);
    if (!in_flight) {
        stop(dispatcher, STATUS_SYSTEM, "a rank returned a configuration that it was not assigned");
        return;
    }
    log_print(dispatcher->log, LOG_DEBUG, "%s: lost before it was counted; it is assigned again",
              dispatcher->settings.plan->items[in_flight->item].name);
    dispatcher->counted_alone[in_flight->item] = true;
    queue_return(dispatcher->queue, message->from, in_flight->item);
    remove_in_flight(&dispatcher->ranks[message->from], in_flight);
    update_rank(dispatcher, message->from);
}

/* ---- lost ranks ---- */

/* The item may have caused the loss, so it is counted alone from now on. After a second lost device
 * the item fails, or it could take all devices. Only losses in the first round count. */
static void count_device_loss(struct dispatcher *dispatcher, int from, size_t item, const char *why)
{
    enum { LOSSES_MAX = 2 };
    struct record record;
    dispatcher->counted_alone[item] = true;
    if (queue_is_done(dispatcher->queue, from, item, 1) ||
        ++dispatcher->devices_lost[item] < LOSSES_MAX)
        return;
    record_init(&record);
    record_set_config(&record, &dispatcher->settings.plan->items[item].config);
    record.status = RECORD_FAILED;
    snprintf(record.error, sizeof record.error,
             "%d devices were lost while measuring it, the last: %s", LOSSES_MAX, why);
    char *text = or_abort(record_print(&record));
    store_record(dispatcher, from, item, 1, &record, text);
    free(text);
}

static void lose_rank(struct dispatcher *dispatcher, int from, enum rank_state state,
                      const char *why)
{
    struct rank *rank = &dispatcher->ranks[from];
    bool counting = rank->state == RANK_COUNTING;
    if (!dispatcher->settings.manifest->sweep.replicate &&
        (counting || rank->state == RANK_MEASURING))
        for (size_t i = 0; i < rank->count; ++i)
            if (counting || !rank->in_flight[i].timed)
                count_device_loss(dispatcher, from, rank->in_flight[i].item, why);
    rank->state = state;
    if (state != RANK_OVERDUE)
        rank->count = 0;
    dispatcher->dropped += queue_rank_lost(dispatcher->queue, from);
    dispatcher->dropped += dispatcher->settings.plan->count == 0; /* a sweep of roofs alone */
    dispatcher->changed = true;
}

/* Text for messages: " over NAME", " over the counters of N configurations", or "". */
enum { WORK_TEXT = WORKLOAD_TEXT + 8 };
static const char *work_format(const struct dispatcher *dispatcher, const struct rank *rank,
                               char text[WORK_TEXT])
{
    const struct in_flight *measured = measured_by(rank);
    text[0] = '\0';
    if (rank->state == RANK_COUNTING)
        sprintf(text, " over the counters of %zu configurations", rank->count);
    else if (rank->state == RANK_MEASURING && measured)
        snprintf(text, WORK_TEXT, " over %s",
                 dispatcher->settings.plan->items[measured->item].name);
    return text;
}

static void handle_device_lost(struct dispatcher *dispatcher, const struct message *message)
{
    char work[WORK_TEXT];
    log_print(dispatcher->log, LOG_WARNING, "rank %d has lost its device%s, the others go on: %s",
              message->from, work_format(dispatcher, &dispatcher->ranks[message->from], work),
              message->text);
    lose_rank(dispatcher, message->from, RANK_LOST, message->text);
}

static void handle_signal(struct dispatcher *dispatcher, const struct message *message)
{
    (void)message;
    dispatcher_interrupt(dispatcher);
}

/* Returns the longest silence, s; INFINITY: no limit. The rank may have to count waiting rows
 * before it measures. */
static double silence_allowed(const struct dispatcher *dispatcher, const struct rank *rank)
{
    const struct dispatcher_settings *settings = &dispatcher->settings;
    const double count = (double)count_timed(rank) * settings->count_timeout;
    if (rank->state == RANK_PREPARING && settings->roofs_timeout > 0)
        return settings->roofs_timeout;
    if (rank->state == RANK_MEASURING && settings->work_timeout > 0)
        return settings->work_timeout + count;
    return rank->state == RANK_COUNTING && settings->count_timeout > 0 ? count : INFINITY;
}

static void lose_if_silent(struct dispatcher *dispatcher, int from)
{
    const struct rank *rank = &dispatcher->ranks[from];
    double silent = dispatcher->now - rank->since;
    char why[400], work[WORK_TEXT];
    if (silent <= silence_allowed(dispatcher, rank))
        return;
    snprintf(why, sizeof why, "rank %d on %.200s has said nothing for %.0f s", from,
             dispatcher->settings.devices[from].hostname, silent);
    log_print(dispatcher->log, LOG_WARNING, "%s%s; the others go on", why,
              work_format(dispatcher, rank, work));
    lose_rank(dispatcher, from, rank->state == RANK_PREPARING ? RANK_SILENT : RANK_OVERDUE, why);
}

/* ---- events ---- */

void dispatcher_time(struct dispatcher *dispatcher, double now)
{
    dispatcher->now = now;
    for (int rank = 0; !dispatcher->started && rank < dispatcher->settings.ranks; ++rank)
        dispatcher->ranks[rank].since = now;
    dispatcher->started = true;
    for (int rank = 0; !dispatcher->stopping && rank < dispatcher->settings.ranks; ++rank)
        lose_if_silent(dispatcher, rank);
    dispatcher_commit(dispatcher);
    if (!dispatcher->stopping && time_left(dispatcher) <= 0)
        stop_for_time(dispatcher); /* rows or roofs are unfinished */
}

void dispatcher_suspended(struct dispatcher *dispatcher, double seconds)
{
    dispatcher->stopped_at += seconds;
    for (int rank = 0; rank < dispatcher->settings.ranks; ++rank) {
        dispatcher->ranks[rank].since += seconds;
        dispatcher->ranks[rank].count_began += seconds;
    }
}

void dispatcher_message(struct dispatcher *dispatcher, const struct message *message)
{
    static void (*const handlers[])(struct dispatcher *, const struct message *) = {
        [MESSAGE_DEVICE] = handle_device,     [MESSAGE_HEALTH] = handle_device,
        [MESSAGE_RECORD] = handle_record,     [MESSAGE_TIMED] = handle_timed,
        [MESSAGE_RETURNED] = handle_returned, [MESSAGE_DEVICE_LOST] = handle_device_lost,
        [MESSAGE_SIGNAL] = handle_signal,     [MESSAGE_FINISHED] = NULL,
    };
    if (message->kind == MESSAGE_FINISHED)
        dispatcher->ranks[message->from].state = RANK_GONE;
    if (!handlers[message->kind])
        return;
    handlers[message->kind](dispatcher, message);
    dispatcher->changed = true;
}

void dispatcher_commit(struct dispatcher *dispatcher)
{
    if (!dispatcher->changed)
        return;
    dispatcher->changed = false;
    queue_action(dispatcher, (struct dispatcher_action){
                                 .kind = ACTION_SYNC, .left.count = queue_left(dispatcher->queue)});
    assign_work(dispatcher); /* new estimates may admit rows for other ranks as well */
    /* Rows that do not fit the time limit do not delay the next round of other rows. */
    while (!dispatcher->stopping && !isinf(dispatcher->limit.end) &&
           any_rank(dispatcher, RANK_IDLE, RANK_IDLE) &&
           !any_rank(dispatcher, RANK_PREPARING, RANK_PREPARING) &&
           !any_rank(dispatcher, RANK_MEASURING, RANK_COUNTING) && next_round(dispatcher, true))
        assign_work(dispatcher);
    stop_when_done(dispatcher);
}

void dispatcher_interrupt(struct dispatcher *dispatcher)
{
    stop(dispatcher, STATUS_INTERRUPTED, "interrupted by a signal; go on with --resume");
}

/* ---- queries ---- */

size_t dispatcher_total(const struct dispatcher *dispatcher)
{
    return queue_total(dispatcher->queue);
}

size_t dispatcher_left(const struct dispatcher *dispatcher)
{
    return dispatcher->left;
}

bool dispatcher_finished(const struct dispatcher *dispatcher)
{
    double timeout = dispatcher->settings.stop_timeout;
    bool late = timeout > 0 && dispatcher->now - dispatcher->stopped_at > timeout;
    return !any_rank(dispatcher, RANK_PREPARING, RANK_OVERDUE) || (dispatcher->stopping && late);
}

bool dispatcher_missing(const struct dispatcher *dispatcher, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int rank = 0; rank < dispatcher->settings.ranks; ++rank)
        if (dispatcher->ranks[rank].state != RANK_GONE && used < size)
            used += (size_t)snprintf(text + used, size - used, "%srank %d on %s", used ? ", " : "",
                                     rank, dispatcher->settings.devices[rank].hostname);
    return used > 0;
}

enum status dispatcher_status(const struct dispatcher *dispatcher, struct error *error)
{
    *error = dispatcher->error;
    return dispatcher->status;
}
