#include "ranks/queue.h"

#include <math.h>
#include <stdlib.h>

#include "ranks/estimate.h"

enum state { WAITING, IN_FLIGHT, DONE };

/* Each list has a state for each of `count` items. There is one list, or with replicate one per
 * rank. */
struct queue {
    size_t count;
    int lists;
    size_t *order;        /* items, longest first */
    unsigned char *state; /* enum state */
    int *rank;            /* rank of an item in flight */
    size_t *first;        /* by list: no item before this index into `order` waits */
    size_t total, left;
};

struct entry {
    double modelled; /* s; INFINITY: first */
    size_t item;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->modelled != y->modelled)
        return x->modelled < y->modelled ? 1 : -1;
    return x->item < y->item ? -1 : 1; /* ties in the manifest's order */
}

static bool set_order(struct queue *queue, const struct plan *plan)
{
    struct entry *entries = malloc((plan->count + 1) * sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < plan->count; ++i) {
        double modelled = estimate_modelled(plan->items[i].cost);
        bool first = isnan(modelled) || config_is_shared(&plan->items[i].config);
        entries[i] = (struct entry){first ? INFINITY : modelled, i};
    }
    qsort(entries, plan->count, sizeof *entries, compare_entries);
    for (size_t i = 0; i < plan->count; ++i)
        queue->order[i] = entries[i].item;
    free(entries);
    return true;
}

struct queue *queue_create(const struct plan *plan, int ranks, bool replicate)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->count = plan->count;
    queue->lists = replicate ? ranks : 1;
    queue->total = queue->left = plan->count * (size_t)queue->lists;
    queue->order = malloc((queue->count + 1) * sizeof *queue->order);
    queue->state = calloc(queue->total + 1, 1);
    queue->rank = malloc((queue->total + 1) * sizeof *queue->rank);
    queue->first = calloc((size_t)queue->lists, sizeof *queue->first);
    if (queue->order && queue->state && queue->rank && queue->first && set_order(queue, plan))
        return queue;
    queue_destroy(queue);
    return NULL;
}

void queue_destroy(struct queue *queue)
{
    if (!queue)
        return;
    free(queue->order);
    free(queue->state);
    free(queue->rank);
    free(queue->first);
    free(queue);
}

static size_t list_of(const struct queue *queue, int rank)
{
    return queue->lists == 1 ? 0 : (size_t)rank;
}

void queue_done(struct queue *queue, int rank, size_t item)
{
    unsigned char *state = &queue->state[list_of(queue, rank) * queue->count + item];
    queue->left -= *state != DONE;
    *state = DONE;
}

bool queue_is_done(const struct queue *queue, int rank, size_t item)
{
    return queue->state[list_of(queue, rank) * queue->count + item] == DONE;
}

bool queue_next(struct queue *queue, int rank, queue_filter *may, const void *context, size_t *item)
{
    size_t list = list_of(queue, rank), *first = &queue->first[list];
    unsigned char *state = &queue->state[list * queue->count];
    while (*first < queue->count && state[queue->order[*first]] != WAITING)
        ++*first;
    for (size_t i = *first; i < queue->count; ++i) {
        size_t next = queue->order[i];
        if (state[next] != WAITING || (may && !may(context, next)))
            continue;
        state[next] = IN_FLIGHT;
        queue->rank[list * queue->count + next] = rank;
        *item = next;
        return true;
    }
    return false;
}

void queue_return(struct queue *queue, int rank, size_t item)
{
    size_t list = list_of(queue, rank), at = list * queue->count + item;
    if (queue->state[at] != IN_FLIGHT || queue->rank[at] != rank)
        return;
    queue->state[at] = WAITING;
    queue->first[list] = 0;
}

void queue_rank_lost(struct queue *queue, int rank)
{
    for (size_t item = 0; item < queue->count; ++item) {
        if (queue->lists == 1) {
            queue_return(queue, rank, item);
        } else if (!queue_is_done(queue, rank, item)) {
            queue_done(queue, rank, item);
            --queue->total;
        }
    }
}

size_t queue_total(const struct queue *queue)
{
    return queue->total;
}

size_t queue_left(const struct queue *queue)
{
    return queue->left;
}
