#include "ranks/turn.h"

#include <string.h>

static const double stake_most = 10;  /* s */
static const double nearly = 7.0 / 8; /* of a bound */

/* So much of one of the bounds. */
static bool is_filled(const struct offer *offer, double part)
{
    return (double)offer->hand->count >= part * (double)offer_together(offer) ||
           hand_stake(offer->hand) >= part * stake_most;
}

static bool is_neighbour(const struct turn *turn, int rank)
{
    return rank != turn->rank && turn->crew->ranks[rank].state < RANK_LOST &&
           strcmp(turn->devices[rank].hostname, turn->offer->device->hostname) == 0;
}

/* There are some, and none counts. */
static bool neighbours_leave_room(const struct turn *turn)
{
    bool any = false;
    for (int rank = 0; rank < turn->crew->count; ++rank) {
        if (!is_neighbour(turn, rank))
            continue;
        if (turn->crew->ranks[rank].state == RANK_COUNTING)
            return false;
        any = true;
    }
    return any;
}

bool turn_has_come(const struct turn *turn)
{
    return is_filled(turn->offer, 1) ||
           (is_filled(turn->offer, nearly) && neighbours_leave_room(turn));
}
