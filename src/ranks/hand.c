#include "ranks/hand.h"

#include <stdlib.h>
#include <string.h>

void hand_clear(struct hand *hand)
{
    free(hand->items);
    *hand = (struct hand){0};
}

bool hand_give(struct hand *hand, size_t item)
{
    if (hand->count == hand->capacity) {
        size_t capacity = 2 * hand->capacity + 4;
        struct hand_item *items = realloc(hand->items, capacity * sizeof *items);
        if (!items)
            return false;
        hand->items = items;
        hand->capacity = capacity;
    }
    hand->items[hand->count++] = (struct hand_item){.item = item};
    return true;
}

struct hand_item *hand_find(const struct hand *hand, size_t item)
{
    for (size_t i = 0; i < hand->count; ++i)
        if (hand->items[i].item == item)
            return &hand->items[i];
    return NULL;
}

struct hand_item *hand_find_config(const struct hand *hand, const struct plan *plan,
                                   const char *configuration)
{
    char text[WORKLOAD_TEXT];
    for (size_t i = 0; i < hand->count; ++i) {
        config_format(&plan->items[hand->items[i].item].config, text);
        if (strcmp(text, configuration) == 0)
            return &hand->items[i];
    }
    return NULL;
}

void hand_take(struct hand *hand, size_t item)
{
    struct hand_item *found = hand_find(hand, item);
    if (!found)
        return;
    size_t behind = (size_t)(hand->items + --hand->count - found);
    memmove(found, found + 1, behind * sizeof *found);
}

const struct hand_item *hand_measured(const struct hand *hand)
{
    for (size_t i = 0; i < hand->count; ++i)
        if (!hand->items[i].timed)
            return &hand->items[i];
    return NULL;
}

double hand_stake(const struct hand *hand)
{
    double seconds = 0;
    for (size_t i = 0; i < hand->count; ++i)
        seconds += hand->items[i].timed ? hand->items[i].seconds : 0;
    return seconds;
}
