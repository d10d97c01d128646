#include "ranks/schedule.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "ranks/forecast.h"
#include "ranks/prediction.h"

enum state { WAITING, GIVEN, DONE };

/* Items of one cell of the prediction, in `order` from `begin` to before `end`. */
struct group {
    size_t begin, end;
    size_t waiting, given; /* of them, by state; without replicate */
};

/* `state` has a row of `count` for each queue; there is one queue, or with replicate one a rank. */
struct schedule {
    struct prediction *prediction;
    size_t count;
    int queues, ranks;
    double *modelled;     /* s, by item; INFINITY: without a model */
    size_t *order;        /* items by group, those of a group longest first as modelled */
    struct group *groups; /* by cell */
    size_t group_count;
    unsigned char *state; /* enum state */
    int *holder;          /* rank that has a GIVEN item */
    size_t *held;         /* by rank: GIVEN items */
    size_t *first;        /* by queue and group: all before it in `order` are given or done */
    size_t total, remaining;
};

/* What is not modelled may take long, and comes first. */
static double duration(struct cost cost)
{
    double seconds = forecast_modelled(cost);
    return isnan(seconds) ? INFINITY : seconds;
}

struct entry {
    size_t cell;
    double modelled;
    size_t item;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    if (x->modelled != y->modelled)
        return x->modelled < y->modelled ? 1 : -1;
    return x->item < y->item ? -1 : 1; /* the manifest's order among equals */
}

static bool set_order(struct schedule *schedule, const struct plan *plan)
{
    struct entry *entries = malloc((plan->count + 1) * sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < plan->count; ++i) {
        schedule->modelled[i] = duration(plan->items[i].cost);
        entries[i] =
            (struct entry){prediction_cell(schedule->prediction, i), schedule->modelled[i], i};
    }
    qsort(entries, plan->count, sizeof *entries, compare_entries);
    for (size_t i = 0; i < plan->count; ++i) {
        struct group *group = &schedule->groups[entries[i].cell];
        schedule->order[i] = entries[i].item;
        group->begin = group->end == 0 ? i : group->begin;
        group->end = i + 1;
        ++group->waiting;
    }
    free(entries);
    return true;
}

/* Room for all, by plan and prediction. */
static bool reserve(struct schedule *schedule)
{
    size_t queues = (size_t)schedule->queues;
    schedule->modelled = malloc((schedule->count + 1) * sizeof *schedule->modelled);
    schedule->order = malloc((schedule->count + 1) * sizeof *schedule->order);
    schedule->groups = calloc(schedule->group_count + 1, sizeof *schedule->groups);
    schedule->state = calloc(schedule->total + 1, 1);
    schedule->holder = malloc((schedule->total + 1) * sizeof *schedule->holder);
    schedule->held = calloc((size_t)schedule->ranks, sizeof *schedule->held);
    schedule->first = calloc(queues * schedule->group_count + 1, sizeof *schedule->first);
    return schedule->modelled && schedule->order && schedule->groups && schedule->state &&
           schedule->holder && schedule->held && schedule->first;
}

static void rewind_queue(struct schedule *schedule, size_t queue)
{
    for (size_t i = 0; i < schedule->group_count; ++i)
        schedule->first[queue * schedule->group_count + i] = schedule->groups[i].begin;
}

struct schedule *schedule_create(const struct plan *plan, int ranks, bool replicate)
{
    struct schedule *schedule = calloc(1, sizeof *schedule);
    if (!schedule)
        return NULL;
    schedule->prediction = prediction_create(plan, ranks);
    schedule->count = plan->count;
    schedule->ranks = ranks;
    schedule->queues = replicate ? ranks : 1;
    schedule->total = schedule->remaining = plan->count * (size_t)schedule->queues;
    schedule->group_count = schedule->prediction ? prediction_cells(schedule->prediction) : 0;
    if (schedule->prediction && reserve(schedule) && set_order(schedule, plan)) {
        for (size_t queue = 0; queue < (size_t)schedule->queues; ++queue)
            rewind_queue(schedule, queue);
        return schedule;
    }
    schedule_destroy(schedule);
    return NULL;
}

void schedule_destroy(struct schedule *schedule)
{
    if (!schedule)
        return;
    prediction_destroy(schedule->prediction);
    free(schedule->modelled);
    free(schedule->order);
    free(schedule->groups);
    free(schedule->state);
    free(schedule->holder);
    free(schedule->held);
    free(schedule->first);
    free(schedule);
}

static size_t queue_of(const struct schedule *schedule, int rank)
{
    return schedule->queues == 1 ? 0 : (size_t)rank;
}

/* Keeps the counts by group and by rank. */
static void set_state(struct schedule *schedule, size_t queue, size_t item, enum state to)
{
    size_t at = queue * schedule->count + item;
    struct group *group = &schedule->groups[prediction_cell(schedule->prediction, item)];
    enum state from = (enum state)schedule->state[at];
    group->waiting += (size_t)(to == WAITING) - (size_t)(from == WAITING);
    group->given += (size_t)(to == GIVEN) - (size_t)(from == GIVEN);
    if (from == GIVEN)
        --schedule->held[schedule->holder[at]];
    if (to == GIVEN)
        ++schedule->held[schedule->holder[at]];
    schedule->state[at] = (unsigned char)to;
}

void schedule_learn(struct schedule *schedule, int rank, size_t item, double seconds, bool earlier)
{
    prediction_learn(schedule->prediction, rank, item, seconds, earlier);
}

void schedule_done(struct schedule *schedule, int rank, size_t item)
{
    size_t queue = queue_of(schedule, rank);
    if (schedule->state[queue * schedule->count + item] != DONE)
        --schedule->remaining;
    set_state(schedule, queue, item, DONE);
}

bool schedule_is_done(const struct schedule *schedule, int rank, size_t item)
{
    return schedule->state[queue_of(schedule, rank) * schedule->count + item] == DONE;
}

/* ---- ranks of unequal speed ---- */

/* So much longer than the fastest rank at work it takes before anything is kept from a slow one. */
static const double slow_least = 1.25;

/* The slowness of the fastest rank that has an item; INFINITY: none has. */
static double fastest_at_work(const struct schedule *schedule)
{
    double fastest = INFINITY;
    for (int rank = 0; rank < schedule->ranks; ++rank)
        if (schedule->held[rank] > 0)
            fastest = fmin(fastest, prediction_slowness(schedule->prediction, rank));
    return fastest;
}

/* s that the ranks at work and this one need for all that is left, as predicted. What is under way is half
 * done. */
static double time_to_come(const struct schedule *schedule, int asking)
{
    double work = 0, speed = 0;
    for (size_t i = 0; i < schedule->group_count; ++i) {
        const struct group *group = &schedule->groups[i];
        double items = (double)group->waiting + (double)group->given / 2;
        work += items > 0 ? items * prediction_seconds(schedule->prediction, i) : 0;
    }
    for (int rank = 0; rank < schedule->ranks; ++rank)
        if (rank == asking || schedule->held[rank] > 0)
            speed += 1 / prediction_slowness(schedule->prediction, rank);
    return work / speed;
}

/* The longest item that this rank may begin, s on a rank of slowness 1. */
static double longest_for(const struct schedule *schedule, int rank)
{
    double slowness = prediction_slowness(schedule->prediction, rank);
    if (schedule->queues > 1 || slowness < slow_least * fastest_at_work(schedule))
        return INFINITY;
    return time_to_come(schedule, rank) / slowness;
}

/* ---- the next one ---- */

/* The first of the group that waits and may be had. */
static bool group_next(struct schedule *schedule, size_t queue, size_t group, schedule_filter *may,
                       const void *context, size_t *item)
{
    const unsigned char *state = &schedule->state[queue * schedule->count];
    size_t *first = &schedule->first[queue * schedule->group_count + group];
    size_t end = schedule->groups[group].end;
    while (*first < end && state[schedule->order[*first]] != WAITING)
        ++*first;
    for (size_t i = *first; i < end; ++i) {
        *item = schedule->order[i];
        if (state[*item] == WAITING && (!may || may(context, *item)))
            return true;
    }
    return false;
}

static bool comes_before(const struct schedule *schedule, size_t a, size_t b)
{
    double x = prediction_seconds(schedule->prediction, prediction_cell(schedule->prediction, a));
    double y = prediction_seconds(schedule->prediction, prediction_cell(schedule->prediction, b));
    if (x != y)
        return x > y;
    if (schedule->modelled[a] != schedule->modelled[b])
        return schedule->modelled[a] > schedule->modelled[b];
    return a < b;
}

bool schedule_next(struct schedule *schedule, int rank, schedule_filter *may, const void *context,
                   size_t *item)
{
    size_t queue = queue_of(schedule, rank), best = SIZE_MAX, next;
    double longest = longest_for(schedule, rank);
    for (size_t group = 0; group < schedule->group_count; ++group)
        if (prediction_seconds(schedule->prediction, group) <= longest &&
            group_next(schedule, queue, group, may, context, &next) &&
            (best == SIZE_MAX || comes_before(schedule, next, best)))
            best = next;
    if (best == SIZE_MAX)
        return false;
    *item = best;
    schedule->holder[queue * schedule->count + best] = rank;
    set_state(schedule, queue, best, GIVEN);
    return true;
}

void schedule_return(struct schedule *schedule, int rank, size_t item)
{
    size_t queue = queue_of(schedule, rank), at = queue * schedule->count + item;
    if (schedule->state[at] != GIVEN || schedule->holder[at] != rank)
        return;
    set_state(schedule, queue, item, WAITING);
    rewind_queue(schedule, queue);
}

void schedule_lose(struct schedule *schedule, int rank)
{
    size_t queue = queue_of(schedule, rank);
    for (size_t i = 0; i < schedule->count; ++i) {
        size_t at = queue * schedule->count + i;
        if (schedule->queues > 1 && schedule->state[at] != DONE) {
            set_state(schedule, queue, i, DONE);
            --schedule->remaining;
            --schedule->total;
        } else if (schedule->state[at] == GIVEN && schedule->holder[at] == rank) {
            set_state(schedule, queue, i, WAITING);
        }
    }
    rewind_queue(schedule, queue);
}

size_t schedule_total(const struct schedule *schedule)
{
    return schedule->total;
}

size_t schedule_remaining(const struct schedule *schedule)
{
    return schedule->remaining;
}
