#include "ranks/crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool crew_create(struct crew *crew, int count)
{
    crew->ranks = calloc((size_t)count, sizeof *crew->ranks);
    crew->count = crew->ranks ? count : 0;
    return crew->ranks;
}

void crew_clear(struct crew *crew)
{
    for (int rank = 0; rank < crew->count; ++rank)
        hand_clear(&crew->ranks[rank].hand);
    free(crew->ranks);
    *crew = (struct crew){0};
}

struct crew_census crew_look(const struct crew *crew)
{
    struct crew_census census = {0};
    for (int rank = 0; rank < crew->count; ++rank) {
        enum rank_state state = crew->ranks[rank].state;
        census.preparing |= state == RANK_PREPARING;
        census.at_work |= state == RANK_BUSY || state == RANK_COUNTING;
        census.able |= state < RANK_LOST;
    }
    return census;
}

size_t crew_timed(const struct crew *crew)
{
    size_t timed = 0;
    for (int i = 0; i < crew->count; ++i) {
        const struct rank *rank = &crew->ranks[i];
        if (rank->state < RANK_LOST)
            timed += rank->hand.count - (rank->state == RANK_BUSY && rank->hand.count > 0);
    }
    return timed;
}

bool crew_gone(const struct crew *crew)
{
    for (int rank = 0; rank < crew->count; ++rank)
        if (crew->ranks[rank].state != RANK_GONE)
            return false;
    return true;
}

bool crew_absent(const struct crew *crew, const struct device *devices, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int rank = 0; rank < crew->count; ++rank)
        if (crew->ranks[rank].state != RANK_GONE && used < size)
            used += (size_t)snprintf(text + used, size - used, "%srank %d on %s", used ? ", " : "",
                                     rank, devices[rank].hostname);
    return used > 0;
}

void crew_work_format(const struct rank *rank, const struct plan *plan, char text[CREW_WORK])
{
    const struct hand_item *measured = hand_measured(&rank->hand);
    text[0] = '\0';
    if (rank->state == RANK_BUSY && measured) {
        strcpy(text, " over ");
        config_format(&plan->items[measured->item].config, text + strlen(text));
    } else if (rank->state == RANK_COUNTING) {
        sprintf(text, " over the counters of %zu configurations", rank->hand.count);
    }
}

/* A rank may have to count what waits before it measures. */
bool crew_is_silent(const struct rank *rank, const struct crew_patience *patience, double now)
{
    size_t waiting = rank->hand.count - (rank->state == RANK_BUSY && rank->hand.count > 0);
    double count = (double)waiting * patience->count;
    const struct {
        bool bounded;
        double seconds;
    } bounds[] = {
        [RANK_PREPARING] = {patience->roofs > 0, patience->roofs},
        [RANK_BUSY] = {patience->work > 0, patience->work + count},
        [RANK_COUNTING] = {patience->count > 0, count},
        [RANK_GONE] = {false, 0},
    };
    return bounds[rank->state].bounded && now - rank->since > bounds[rank->state].seconds;
}

double crew_duration(const struct rank *rank, const struct hand_item *item, double now)
{
    return item->timed ? item->seconds + (now - rank->count_began) / (double)rank->count_rows
                       : now - rank->since;
}
