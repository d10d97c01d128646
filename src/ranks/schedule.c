#include "ranks/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "ranks/forecast.h"

enum state { WAITING, GIVEN, DONE };

/* `state` has a row of `count` for each queue; there is one queue, or with replicate one a rank. */
struct schedule {
    size_t count;
    int queues;
    size_t *order;        /* items, longest first */
    unsigned char *state; /* enum state */
    int *holder;          /* rank that has a GIVEN item */
    size_t *first;        /* per queue: all before it in `order` are given or done */
    size_t total, remaining;
};

/* What is not modelled may take long, and comes first. */
static double duration(struct cost cost)
{
    double seconds = forecast_modelled(cost);
    return isnan(seconds) ? INFINITY : seconds;
}

struct entry {
    double duration;
    size_t item;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->duration != y->duration)
        return x->duration < y->duration ? 1 : -1;
    return x->item < y->item ? -1 : 1; /* the manifest's order among equals */
}

static bool set_order(struct schedule *schedule, const struct plan *plan)
{
    struct entry *entries = malloc(plan->count * sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < plan->count; ++i)
        entries[i] = (struct entry){duration(plan->items[i].cost), i};
    qsort(entries, plan->count, sizeof *entries, compare_entries);
    for (size_t i = 0; i < plan->count; ++i)
        schedule->order[i] = entries[i].item;
    free(entries);
    return true;
}

struct schedule *schedule_create(const struct plan *plan, int ranks, bool replicate)
{
    struct schedule *schedule = calloc(1, sizeof *schedule);
    if (!schedule)
        return NULL;
    schedule->count = plan->count;
    schedule->queues = replicate ? ranks : 1;
    schedule->total = schedule->remaining = plan->count * (size_t)schedule->queues;
    schedule->order = malloc(plan->count * sizeof *schedule->order);
    schedule->state = calloc(schedule->total, 1);
    schedule->holder = malloc(schedule->total * sizeof *schedule->holder);
    schedule->first = calloc((size_t)schedule->queues, sizeof *schedule->first);
    if (schedule->order && schedule->state && schedule->holder && schedule->first &&
        set_order(schedule, plan))
        return schedule;
    schedule_destroy(schedule);
    return NULL;
}

void schedule_destroy(struct schedule *schedule)
{
    if (!schedule)
        return;
    free(schedule->order);
    free(schedule->state);
    free(schedule->holder);
    free(schedule->first);
    free(schedule);
}

static size_t queue_of(const struct schedule *schedule, int rank)
{
    return schedule->queues == 1 ? 0 : (size_t)rank;
}

void schedule_done(struct schedule *schedule, int rank, size_t item)
{
    unsigned char *state = &schedule->state[queue_of(schedule, rank) * schedule->count + item];
    if (*state != DONE)
        --schedule->remaining;
    *state = DONE;
}

bool schedule_is_done(const struct schedule *schedule, int rank, size_t item)
{
    return schedule->state[queue_of(schedule, rank) * schedule->count + item] == DONE;
}

bool schedule_next(struct schedule *schedule, int rank, schedule_filter *may, const void *context,
                   size_t *item)
{
    size_t queue = queue_of(schedule, rank);
    unsigned char *state = &schedule->state[queue * schedule->count];
    size_t *first = &schedule->first[queue];
    while (*first < schedule->count && state[schedule->order[*first]] != WAITING)
        ++*first;
    for (size_t i = *first; i < schedule->count; ++i) {
        size_t next = schedule->order[i];
        if (state[next] != WAITING || (may && !may(context, next)))
            continue;
        *item = next;
        state[next] = GIVEN;
        schedule->holder[queue * schedule->count + next] = rank;
        return true;
    }
    return false;
}

void schedule_lose(struct schedule *schedule, int rank)
{
    size_t queue = queue_of(schedule, rank);
    for (size_t i = 0; i < schedule->count; ++i) {
        size_t at = queue * schedule->count + i;
        if (schedule->queues > 1 && schedule->state[at] != DONE) {
            schedule->state[at] = DONE;
            --schedule->remaining;
            --schedule->total;
        } else if (schedule->state[at] == GIVEN && schedule->holder[at] == rank) {
            schedule->state[at] = WAITING;
        }
    }
    schedule->first[queue] = 0;
}

size_t schedule_total(const struct schedule *schedule)
{
    return schedule->total;
}

size_t schedule_remaining(const struct schedule *schedule)
{
    return schedule->remaining;
}
