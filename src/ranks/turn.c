#include "ranks/turn.h"

#include <string.h>

static const double stake_most = 10, stake_least = 2; /* s */
static const double nearly = 7.0 / 8;                 /* of a bound */

/* So much of one of the bounds. */
static bool is_filled(const struct offer *offer, double part)
{
    return (double)offer->hand->count >= part * (double)offer_together(offer) ||
           hand_stake(offer->hand) >= part * stake_most;
}

static bool outweighs_rest(const struct turn *turn)
{
    double stake = hand_stake(turn->offer->hand);
    return stake >= stake_least && stake >= schedule_share(turn->schedule, turn->rank);
}

/* Of the other ranks that get work. */
struct neighbours {
    bool any;
    bool on_host;
    bool counting; /* on this rank's host */
};

static struct neighbours look(const struct turn *turn)
{
    struct neighbours found = {0};
    for (int rank = 0; rank < turn->crew->count && !found.counting; ++rank) {
        enum rank_state state = turn->crew->ranks[rank].state;
        if (rank == turn->rank || state >= RANK_LOST)
            continue;
        found.any = true;
        if (strcmp(turn->devices[rank].hostname, turn->offer->device->hostname) != 0)
            continue;
        found.on_host = true;
        found.counting |= state == RANK_COUNTING;
    }
    return found;
}

bool turn_has_come(const struct turn *turn)
{
    if (is_filled(turn->offer, 1))
        return true;
    bool filled = is_filled(turn->offer, nearly), outweighs = outweighs_rest(turn);
    if (!filled && !outweighs)
        return false;
    const struct neighbours others = look(turn);
    bool shared = others.on_host || (others.any && !turn->offer->manifest->sweep.replicate);
    return !others.counting && ((filled && others.on_host) || (outweighs && shared));
}
