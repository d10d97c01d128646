#include "ranks/queue.h"

#include <math.h>
#include <stdlib.h>

#include "ranks/estimate.h"

enum state { WAITING, IN_FLIGHT, DONE };

/* Each list has a state for each of `count` items. There is one list, or with replicate one per
 * rank. */
struct queue {
    size_t count;
    int lists, ranks, rounds, round;
    size_t *longest;      /* items, longest first */
    size_t *order;        /* items in the order of this round */
    unsigned char *state; /* enum state in this round */
    uint32_t *done;       /* rounds that are done; bit 0 is round 1 */
    int *rank;     /* rank of an item in flight; owner of an item whose first round is done */
    size_t *first; /* for each rank: no item waits for it before this index into `order` */
    size_t total, left;
    size_t open; /* items of this round, in all lists, that are not done */
};

struct entry {
    double modelled; /* s; INFINITY: the item comes first */
    size_t item;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->modelled != y->modelled)
        return x->modelled < y->modelled ? 1 : -1;
    return x->item < y->item ? -1 : 1; /* equal costs keep the manifest's order */
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
        queue->longest[i] = queue->order[i] = entries[i].item;
    free(entries);
    return true;
}

struct queue *queue_create(const struct plan *plan, int ranks, bool replicate, int rounds)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->count = plan->count;
    queue->lists = replicate ? ranks : 1;
    queue->ranks = ranks;
    queue->rounds = rounds;
    queue->round = 1;
    queue->open = plan->count * (size_t)queue->lists;
    queue->total = queue->left = queue->open * (size_t)rounds;
    queue->longest = malloc((queue->count + 1) * sizeof *queue->longest);
    queue->order = malloc((queue->count + 1) * sizeof *queue->order);
    queue->state = calloc(queue->open + 1, 1);
    queue->done = calloc(queue->open + 1, sizeof *queue->done);
    queue->rank = malloc((queue->open + 1) * sizeof *queue->rank);
    queue->first = calloc((size_t)ranks + 1, sizeof *queue->first);
    if (queue->longest && queue->order && queue->state && queue->done && queue->rank &&
        queue->first && set_order(queue, plan))
        return queue;
    queue_destroy(queue);
    return NULL;
}

void queue_destroy(struct queue *queue)
{
    if (!queue)
        return;
    free(queue->longest);
    free(queue->order);
    free(queue->state);
    free(queue->done);
    free(queue->rank);
    free(queue->first);
    free(queue);
}

static size_t place_of(const struct queue *queue, int rank, size_t item)
{
    return (queue->lists == 1 ? 0 : (size_t)rank) * queue->count + item;
}

static void mark_done(struct queue *queue, size_t at, int round)
{
    if (round > queue->rounds || queue->done[at] >> (round - 1) & 1)
        return;
    queue->done[at] |= (uint32_t)1 << (round - 1);
    --queue->left;
    if (round == queue->round && queue->state[at] != DONE) {
        queue->state[at] = DONE;
        --queue->open;
    }
}

void queue_done(struct queue *queue, int rank, size_t item, int round)
{
    size_t at = place_of(queue, rank, item);
    if (round == 1 && !(queue->done[at] & 1))
        queue->rank[at] = rank;
    mark_done(queue, at, round);
}

size_t queue_drop(struct queue *queue, int rank, size_t item)
{
    const size_t left = queue->left;
    for (int round = 1; round <= queue->rounds; ++round)
        mark_done(queue, place_of(queue, rank, item), round);
    queue->total -= left - queue->left;
    return left - queue->left;
}

bool queue_is_done(const struct queue *queue, int rank, size_t item, int round)
{
    return queue->done[place_of(queue, rank, item)] >> (round - 1) & 1;
}

/* ---- rounds ---- */

int queue_round(const struct queue *queue)
{
    return queue->round;
}

/* Puts `count` items into the order of this round: 1, -1, 2, -2, ..., 0, all shifted by a number of
 * the round, modulo an even number. In the rows of this square (Williams, 1949) each item follows
 * each other one once, and long items alternate with short ones. An odd number of items leaves one
 * place empty. Odd numbers and 2 use only half of the shifts, with which no item follows its
 * predecessor of the first round, if there is one rank. */
static void set_round_order(const struct queue *queue, const size_t *items, size_t count,
                            uint64_t seed, size_t *order)
{
    const size_t even = count + count % 2, round = (size_t)queue->round - 1;
    const bool half = count % 2 || count == 2;
    const size_t shifts = half ? even / 2 : even, first = count % 2 ? even / 2 : 0;
    for (size_t i = 1; i <= even; ++i) {
        const size_t j = i % even, step = j % 2 ? (j + 1) / 2 : even - j / 2;
        const size_t shift = first + (seed + round * shifts / (size_t)queue->rounds) % shifts;
        const size_t at = (step + shift) % even;
        if (at < count)
            *order++ = items[at];
    }
}

/* With one list the items of each rank are together, in the order of the ranks. */
bool queue_next_round(struct queue *queue, uint64_t seed, bool skip)
{
    const int owners = queue->lists == 1 ? queue->ranks : 1;
    size_t *own = malloc((queue->count + 1) * sizeof *own), ordered = 0;
    if ((queue->open > 0 && !skip) || queue->round == queue->rounds || !own) {
        free(own);
        return false;
    }
    ++queue->round;
    queue->open = 0;
    for (size_t at = 0; at < queue->count * (size_t)queue->lists; ++at) {
        const uint32_t done = queue->done[at];
        queue->state[at] = done & 1 && !(done >> (queue->round - 1) & 1) ? WAITING : DONE;
        queue->open += queue->state[at] == WAITING;
    }
    for (int owner = 0; owner < owners; ++owner) {
        size_t count = 0;
        for (size_t i = 0; i < queue->count; ++i)
            if (queue->lists > 1 ||
                (queue->done[queue->longest[i]] & 1 && queue->rank[queue->longest[i]] == owner))
                own[count++] = queue->longest[i];
        set_round_order(queue, own, count, seed, queue->order + ordered);
        queue->first[owner] = ordered;
        ordered += count;
    }
    for (int rank = owners; rank < queue->ranks; ++rank)
        queue->first[rank] = 0;
    free(own);
    return true;
}

static bool waits_for(const struct queue *queue, int rank, size_t item)
{
    const size_t at = place_of(queue, rank, item);
    return queue->state[at] == WAITING &&
           (queue->round == 1 || queue->lists > 1 || queue->rank[at] == rank);
}

bool queue_next(struct queue *queue, int rank, queue_filter *may, const void *context, size_t *item)
{
    size_t *first = &queue->first[queue->round == 1 && queue->lists == 1 ? 0 : rank];
    while (*first < queue->count && !waits_for(queue, rank, queue->order[*first]))
        ++*first;
    for (size_t i = *first; i < queue->count; ++i) {
        size_t next = queue->order[i], at = place_of(queue, rank, next);
        if (!waits_for(queue, rank, next) || (may && !may(context, next)))
            continue;
        queue->state[at] = IN_FLIGHT;
        queue->rank[at] = rank;
        *item = next;
        return true;
    }
    return false;
}

void queue_return(struct queue *queue, int rank, size_t item)
{
    size_t at = place_of(queue, rank, item);
    if (queue->state[at] != IN_FLIGHT || queue->rank[at] != rank)
        return;
    queue->state[at] = WAITING;
    queue->first[queue->round == 1 && queue->lists == 1 ? 0 : rank] = 0;
}

size_t queue_rank_lost(struct queue *queue, int rank)
{
    size_t dropped = 0;
    for (size_t item = 0; item < queue->count; ++item) {
        const size_t at = place_of(queue, rank, item);
        queue_return(queue, rank, item);
        if (queue->lists > 1 || (queue->done[at] & 1 && queue->rank[at] == rank))
            dropped += queue_drop(queue, rank, item);
    }
    return dropped;
}

size_t queue_total(const struct queue *queue)
{
    return queue->total;
}

size_t queue_left(const struct queue *queue)
{
    return queue->left;
}
