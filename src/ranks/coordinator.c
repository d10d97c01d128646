#include "ranks/coordinator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/protocol.h"
#include "ranks/crew.h"
#include "ranks/experience.h"
#include "ranks/forecast.h"
#include "ranks/ledger.h"
#include "ranks/losses.h"
#include "ranks/offer.h"
#include "ranks/resumption.h"
#include "ranks/schedule.h"
#include "ranks/shortage.h"
#include "ranks/turn.h"

struct coordinator {
    const struct manifest *manifest;
    const struct plan *plan;
    const struct device *devices;
    struct crew_patience patience;
    double stop_patience; /* s, 0: for ever */
    double now, stopped;  /* s, as told by coordinator_watch */
    bool watched;         /* it has been told */
    bool unsettled;       /* since coordinator_settle something has come */
    struct ledger *ledger;
    struct post post;
    const struct log *log;
    struct schedule *schedule;
    struct experience experience;
    struct time_limit limit;
    double room; /* s that were left for rows when the first one could begin; NaN before that */
    struct crew crew;
    struct losses losses;
    size_t dropped; /* with replicate, configurations whose device was lost; of roofs, devices */
    bool stopping;
    enum status status;
    struct error error;
};

static bool resume(struct coordinator *coordinator, const struct coordinator_settings *settings)
{
    const struct resumption resumption = {
        .plan = settings->plan,
        .earlier = settings->earlier,
        .devices = settings->devices,
        .ranks = settings->ranks,
        .replicate = settings->manifest->sweep.replicate,
        .schedule = coordinator->schedule,
        .forecast = coordinator->experience.forecast,
    };
    return resumption_apply(&resumption);
}

struct coordinator *coordinator_create(const struct coordinator_settings *settings,
                                       struct journal *journal, const struct post *post,
                                       const struct log *log)
{
    struct coordinator *created = calloc(1, sizeof *created);
    if (!created)
        return NULL;
    created->manifest = settings->manifest;
    created->plan = settings->plan;
    created->devices = settings->devices;
    created->patience = (struct crew_patience){settings->roofs_patience, settings->work_patience,
                                               settings->count_patience};
    created->stop_patience = settings->stop_patience;
    created->post = *post;
    created->log = log;
    created->schedule =
        schedule_create(settings->plan, settings->ranks, settings->manifest->sweep.replicate);
    created->experience = (struct experience){
        .plan = settings->plan,
        .devices = settings->devices,
        .log = log,
        .schedule = created->schedule,
        .forecast =
            forecast_create(&settings->manifest->measure, settings->manifest->sweep.timeout),
        .choices = settings->choices,
    };
    created->limit = settings->limit ? *settings->limit : time_limit_none();
    created->room = NAN;
    if (crew_create(&created->crew, settings->ranks) &&
        losses_create(&created->losses, settings->plan->count) && created->schedule &&
        created->experience.forecast && resume(created, settings)) {
        size_t total = schedule_total(created->schedule);
        size_t left = schedule_remaining(created->schedule);
        created->ledger =
            ledger_create(journal, log, settings->manifest, settings->plan, total - left, total);
        if (created->ledger)
            return created;
    }
    coordinator_destroy(created);
    return NULL;
}

void coordinator_destroy(struct coordinator *coordinator)
{
    if (!coordinator)
        return;
    ledger_destroy(coordinator->ledger);
    schedule_destroy(coordinator->schedule);
    forecast_destroy(coordinator->experience.forecast);
    losses_clear(&coordinator->losses);
    crew_clear(&coordinator->crew);
    free(coordinator);
}

/* The first reason counts. Everyone is told, the lost ranks too: they wait for it. */
static void stop(struct coordinator *coordinator, enum status status, const char *why)
{
    struct error error;
    if (coordinator->stopping)
        return;
    coordinator->stopping = true;
    coordinator->stopped = coordinator->now;
    coordinator->status = error_set(&coordinator->error, status, "%s", why);
    for (int rank = 0; rank < coordinator->crew.count; ++rank)
        if (post_send(&coordinator->post, rank, LETTER_STOP, "", &error))
            abort(); /* out of memory: the others would wait for ever */
}

/* Rows that the file will have. */
static size_t row_count(const struct coordinator *coordinator)
{
    return schedule_total(coordinator->schedule) - schedule_remaining(coordinator->schedule);
}

static double time_left(const struct coordinator *coordinator)
{
    return time_limit_left(&coordinator->limit, coordinator->now, row_count(coordinator));
}

static struct offer offer_to(const struct coordinator *coordinator, int rank)
{
    return (struct offer){
        .manifest = coordinator->manifest,
        .plan = coordinator->plan,
        .forecast = coordinator->experience.forecast,
        .left = time_left(coordinator),
        .alone = coordinator->losses.alone,
        .choices = coordinator->experience.choices,
        .device = &coordinator->devices[rank],
        .hand = &coordinator->crew.ranks[rank].hand,
    };
}

static void order_count(struct coordinator *coordinator, int rank)
{
    struct rank *state = &coordinator->crew.ranks[rank];
    struct error error;
    if (coordinator->stopping)
        return;
    state->state = RANK_COUNTING;
    state->since = state->count_began = coordinator->now;
    state->count_rows = state->hand.count;
    if (post_send(&coordinator->post, rank, LETTER_COUNT, "", &error))
        stop(coordinator, STATUS_SYSTEM, "no memory");
}

static void order_work(struct coordinator *coordinator, int rank, const struct offer *offer,
                       size_t item)
{
    struct rank *state = &coordinator->crew.ranks[rank];
    struct error error;
    char *line = offer_request(offer, item);
    state->state = RANK_BUSY;
    state->since = coordinator->now;
    if (!line || !hand_give(&state->hand, item) ||
        post_send(&coordinator->post, rank, LETTER_WORK, line, &error))
        stop(coordinator, STATUS_SYSTEM, "no memory");
    free(line);
}

/* One configuration at a time, so that those that are left go to whoever is free. What a rank has timed is
 * counted when its turn has come, or when there is nothing more for this rank. */
static void hand_out(struct coordinator *coordinator, int rank)
{
    const struct offer offer = offer_to(coordinator, rank);
    const struct turn turn = {&offer, rank, &coordinator->crew, coordinator->devices};
    bool waiting = offer.hand->count > 0;
    size_t item;
    if (coordinator->stopping)
        return;
    if (waiting && turn_has_come(&turn))
        order_count(coordinator, rank);
    else if (schedule_next(coordinator->schedule, rank, offer_suits, &offer, &item))
        order_work(coordinator, rank, &offer, item);
    else if (waiting)
        order_count(coordinator, rank);
}

/* What is left, and why; see shortage.h. */
static void stop_for_time(struct coordinator *coordinator)
{
    struct shortage shortage = shortage_of(time_left(coordinator), coordinator->room);
    char text[SHORTAGE_TEXT];
    shortage_add_left(&shortage, coordinator->plan, coordinator->schedule,
                      coordinator->experience.forecast,
                      coordinator->manifest->sweep.replicate ? coordinator->crew.count : 1);
    shortage_format(&shortage, &coordinator->limit, schedule_total(coordinator->schedule), text);
    stop(coordinator, shortage_is_hopeless(&shortage) ? STATUS_FAILED : STATUS_INTERRUPTED, text);
}

static void stop_when_done(struct coordinator *coordinator)
{
    const struct crew_census census = crew_look(&coordinator->crew);
    if (schedule_remaining(coordinator->schedule) == 0 && !census.preparing)
        stop(coordinator, coordinator->dropped ? STATUS_DEVICE : STATUS_OK,
             "a device was lost before it had measured everything; --resume measures the rest");
    else if (!census.able)
        stop(coordinator, STATUS_DEVICE, "no rank is left that has a usable device");
    else if (!census.preparing && !census.at_work && !isinf(coordinator->limit.end) &&
             !coordinator->stopping)
        stop_for_time(coordinator); /* what could still end has been handed out */
}

/* Nothing is handed out while a rank measures its roofs: on shared cores or memory that would spoil
 * both. */
static void hand_out_when_prepared(struct coordinator *coordinator)
{
    if (crew_look(&coordinator->crew).preparing)
        return;
    if (isnan(coordinator->room))
        coordinator->room = time_left(coordinator);
    for (int rank = 0; rank < coordinator->crew.count; ++rank)
        if (coordinator->crew.ranks[rank].state == RANK_IDLE)
            hand_out(coordinator, rank);
}

static void take_device(struct coordinator *coordinator, const struct letter *letter)
{
    struct error error;
    json_t *object = json_loads(letter->text, 0, NULL);
    if (!object) {
        stop(coordinator, STATUS_SYSTEM, "a rank sent a device description that is no JSON");
        return;
    }
    if (ledger_device(coordinator->ledger, object, &error))
        stop(coordinator, STATUS_SYSTEM, error.text);
    log_print(coordinator->log, LOG_DEBUG, "rank %d has measured its roofs", letter->from);
    coordinator->crew.ranks[letter->from].state = RANK_IDLE;
}

static struct progress_left what_is_left(const struct coordinator *coordinator)
{
    return (struct progress_left){schedule_remaining(coordinator->schedule),
                                  crew_timed(&coordinator->crew)};
}

/* Counts the item as done for this rank. Steals the reference. */
static void finish_item(struct coordinator *coordinator, int rank, size_t item,
                        const struct record *record, json_t *json)
{
    struct error error;
    schedule_done(coordinator->schedule, rank, item);
    if (ledger_record(coordinator->ledger, item, record, json, what_is_left(coordinator), &error))
        stop(coordinator, STATUS_SYSTEM, error.text);
    if (ledger_is_spent(coordinator->ledger))
        stop(coordinator, STATUS_FAILED, "as many configurations failed as max_failures allows");
}

/* A silent rank that writes again may be late: another one has measured its configuration. */
static void take_item(struct coordinator *coordinator, int from, size_t item,
                      const struct record *record, json_t *object)
{
    if (!schedule_is_done(coordinator->schedule, from, item)) {
        finish_item(coordinator, from, item, record, object);
        return;
    }
    log_print(coordinator->log, LOG_DEBUG, "rank %d is late, there is a row already: %s", from,
              record->configuration);
    json_decref(object);
}

/* After something of what the rank has in hand was done. One that was silent gets no more before it has
 * nothing in hand: others may have been given it meanwhile. */
static void follow_hand(struct coordinator *coordinator, int from)
{
    struct rank *rank = &coordinator->crew.ranks[from];
    if (hand_measured(&rank->hand))
        return;
    if (rank->hand.count == 0 || rank->state == RANK_BUSY)
        rank->state = RANK_IDLE;
    else if (rank->state == RANK_OVERDUE)
        order_count(coordinator, from);
    rank->since = coordinator->now;
}

static void take_row(struct coordinator *coordinator, int from, const struct hand_item *in_hand,
                     const struct record *record, json_t *object)
{
    struct rank *rank = &coordinator->crew.ranks[from];
    const size_t item = in_hand->item;
    bool late = rank->state == RANK_OVERDUE;
    experience_add(&coordinator->experience, from, item, record,
                   late ? 0 : crew_duration(rank, in_hand, coordinator->now), in_hand->timed);
    hand_take(&rank->hand, item);
    take_item(coordinator, from, item, record, object);
    follow_hand(coordinator, from);
}

static void take_record(struct coordinator *coordinator, const struct letter *letter)
{
    struct record record;
    struct error error;
    json_t *object = json_loads(letter->text, 0, NULL);
    record_init(&record);
    enum status status = record_decode(object, &record, &error);
    const struct hand_item *in_hand =
        status ? NULL
               : hand_find_config(&coordinator->crew.ranks[letter->from].hand, coordinator->plan,
                                  record.configuration);
    if (in_hand) {
        take_row(coordinator, letter->from, in_hand, &record, object);
    } else {
        stop(coordinator, STATUS_SYSTEM, "a rank sent something that is no record");
        json_decref(object);
    }
    record_clear(&record);
}

static void take_timed(struct coordinator *coordinator, const struct letter *letter)
{
    const struct rank *rank = &coordinator->crew.ranks[letter->from];
    struct hand_item *item = hand_find_config(&rank->hand, coordinator->plan, letter->text);
    if (!item) {
        stop(coordinator, STATUS_SYSTEM, "a rank has timed what nobody gave it");
        return;
    }
    item->timed = true;
    item->seconds = coordinator->now - rank->since;
    if (rank->state == RANK_BUSY)
        experience_add_timing(&coordinator->experience, letter->from, item->item, item->seconds);
    follow_hand(coordinator, letter->from);
    ledger_timed(coordinator->ledger, what_is_left(coordinator));
}

/* It was timed, and lost with its worker. By itself it is lost with nothing else, and its own attempts are
 * counted: so this happens to an item once. */
static void take_back(struct coordinator *coordinator, const struct letter *letter)
{
    const struct hand_item *in_hand = hand_find_config(&coordinator->crew.ranks[letter->from].hand,
                                                       coordinator->plan, letter->text);
    if (!in_hand) {
        stop(coordinator, STATUS_SYSTEM, "a rank gave back what nobody gave it");
        return;
    }
    const size_t item = in_hand->item;
    log_print(coordinator->log, LOG_DEBUG, "%s: lost before it was counted; it is handed out again",
              letter->text);
    losses_part(&coordinator->losses, item);
    schedule_return(coordinator->schedule, letter->from, item);
    hand_take(&coordinator->crew.ranks[letter->from].hand, item);
    follow_hand(coordinator, letter->from);
}

/* With which it may be that the device was lost goes by itself from now on. Over which too many were lost
 * has failed: otherwise it would go on to all the others. */
static void count_loss_of(struct coordinator *coordinator, int from, size_t item, const char *why)
{
    struct record record;
    losses_part(&coordinator->losses, item);
    if (schedule_is_done(coordinator->schedule, from, item) ||
        !losses_condemn(&coordinator->losses, item))
        return;
    losses_record(&coordinator->plan->items[item].config, why, &record);
    finish_item(coordinator, from, item, &record, record_encode(&record));
}

/* What a lost rank was measuring, or counting, goes to another rank; with replicate nothing does. */
static void count_device_loss(struct coordinator *coordinator, int from, const char *why)
{
    const struct rank *rank = &coordinator->crew.ranks[from];
    const struct hand *hand = &rank->hand;
    bool counting = rank->state == RANK_COUNTING;
    if (coordinator->manifest->sweep.replicate || (rank->state != RANK_BUSY && !counting))
        return;
    for (size_t i = 0; i < hand->count; ++i)
        if (counting || !hand->items[i].timed)
            count_loss_of(coordinator, from, hand->items[i].item, why);
}

/* Whatever the rank had goes to the others. */
static void lose_rank(struct coordinator *coordinator, int from, enum rank_state state,
                      const char *why)
{
    struct rank *rank = &coordinator->crew.ranks[from];
    count_device_loss(coordinator, from, why);
    rank->state = state;
    if (state != RANK_OVERDUE)
        hand_clear(&rank->hand);
    size_t total = schedule_total(coordinator->schedule);
    schedule_lose(coordinator->schedule, from);
    coordinator->dropped += total - schedule_total(coordinator->schedule);
    coordinator->dropped += coordinator->plan->count == 0; /* its roofs were all that was wanted */
    coordinator->unsettled = true;
}

static void take_loss(struct coordinator *coordinator, const struct letter *letter)
{
    char work[CREW_WORK];
    crew_work_format(&coordinator->crew.ranks[letter->from], coordinator->plan, work);
    log_print(coordinator->log, LOG_WARNING, "rank %d has lost its device%s, the others go on: %s",
              letter->from, work, letter->text);
    lose_rank(coordinator, letter->from, RANK_LOST, letter->text);
}

static void lose_if_silent(struct coordinator *coordinator, int from)
{
    const struct rank *rank = &coordinator->crew.ranks[from];
    char why[400], work[CREW_WORK];
    if (!crew_is_silent(rank, &coordinator->patience, coordinator->now))
        return;
    snprintf(why, sizeof why, "rank %d on %.200s has said nothing for %.0f s", from,
             coordinator->devices[from].hostname, coordinator->now - rank->since);
    crew_work_format(rank, coordinator->plan, work);
    log_print(coordinator->log, LOG_WARNING, "%s%s; the others go on", why, work);
    lose_rank(coordinator, from, rank->state == RANK_PREPARING ? RANK_SILENT : RANK_OVERDUE, why);
}

void coordinator_settle(struct coordinator *coordinator)
{
    struct error error;
    if (!coordinator->unsettled)
        return;
    coordinator->unsettled = false;
    if (ledger_sync(coordinator->ledger, &error))
        stop(coordinator, STATUS_SYSTEM, error.text);
    experience_save(&coordinator->experience);
    hand_out_when_prepared(coordinator); /* what has been learnt may free others' as well */
    stop_when_done(coordinator);
}

void coordinator_watch(struct coordinator *coordinator, double now)
{
    coordinator->now = now;
    for (int rank = 0; !coordinator->watched && rank < coordinator->crew.count; ++rank)
        coordinator->crew.ranks[rank].since = now;
    coordinator->watched = true;
    for (int rank = 0; !coordinator->stopping && rank < coordinator->crew.count; ++rank)
        lose_if_silent(coordinator, rank);
    coordinator_settle(coordinator);
    if (!coordinator->stopping && time_left(coordinator) <= 0)
        stop_for_time(coordinator); /* with rows, or roofs, under way */
}

void coordinator_interrupt(struct coordinator *coordinator)
{
    stop(coordinator, STATUS_INTERRUPTED, "interrupted by a signal; go on with --resume");
}

void coordinator_handle(struct coordinator *coordinator, const struct letter *letter)
{
    switch (letter->kind) {
    case LETTER_DEVICE:
        take_device(coordinator, letter);
        break;
    case LETTER_RECORD:
        take_record(coordinator, letter);
        break;
    case LETTER_TIMED:
        take_timed(coordinator, letter);
        break;
    case LETTER_BACK:
        take_back(coordinator, letter);
        break;
    case LETTER_LOST:
        take_loss(coordinator, letter);
        break;
    case LETTER_INTERRUPT:
        coordinator_interrupt(coordinator);
        break;
    case LETTER_BYE:
        coordinator->crew.ranks[letter->from].state = RANK_GONE;
        return;
    case LETTER_WORK:
    case LETTER_COUNT:
    case LETTER_STOP:
        return;
    }
    coordinator->unsettled = true;
}

bool coordinator_finished(const struct coordinator *coordinator)
{
    double patience = coordinator->stop_patience;
    bool late = patience > 0 && coordinator->now - coordinator->stopped > patience;
    return crew_gone(&coordinator->crew) || (coordinator->stopping && late);
}

bool coordinator_absent(const struct coordinator *coordinator, char *text, size_t size)
{
    return crew_absent(&coordinator->crew, coordinator->devices, text, size);
}

size_t coordinator_left(const struct coordinator *coordinator)
{
    return schedule_remaining(coordinator->schedule);
}

enum status coordinator_status(const struct coordinator *coordinator, struct error *error)
{
    *error = coordinator->error;
    return coordinator->status;
}
