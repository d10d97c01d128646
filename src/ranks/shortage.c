#include "ranks/shortage.h"

#include <math.h>
#include <stdio.h>

struct shortage shortage_of(double left, double room)
{
    return (struct shortage){.left = left, .room = room, .shortest = INFINITY};
}

void shortage_add(struct shortage *shortage, struct estimate estimate)
{
    if (estimate.measured && estimate.seconds > shortage->room) {
        ++shortage->never;
        shortage->longest = fmax(shortage->longest, estimate.seconds);
    } else {
        ++shortage->late;
        shortage->shortest = fmin(shortage->shortest, estimate.seconds);
    }
}

void shortage_add_left(struct shortage *shortage, const struct plan *plan,
                       const struct schedule *schedule, const struct forecast *forecast, int queues)
{
    for (int rank = 0; rank < queues; ++rank)
        for (size_t item = 0; item < plan->count; ++item) {
            const struct plan_item *left = &plan->items[item];
            if (!schedule_is_done(schedule, rank, item))
                shortage_add(shortage,
                             forecast_estimate(forecast, left->config.workload, left->cost));
        }
}

bool shortage_is_hopeless(const struct shortage *shortage)
{
    return shortage->never > 0 && shortage->late == 0;
}

/* "0.12 s", "12.3 s", "1234 s" */
enum { SECONDS_TEXT = 32 };
static const char *seconds_format(double seconds, char text[SECONDS_TEXT])
{
    int digits = seconds < 10 ? 2 : seconds < 100 ? 1 : 0;
    snprintf(text, SECONDS_TEXT, "%.*f s", digits, seconds);
    return text;
}

enum { PART_TEXT = 192 }; /* of one of the two reasons */

/* Why none of those that could fit another run was begun. */
static void format_late(const struct shortage *shortage, char text[PART_TEXT])
{
    char left[SECONDS_TEXT], shortest[SECONDS_TEXT];
    if (shortage->left > 0)
        snprintf(text, PART_TEXT, "%s remain for rows, and the shortest of them may take %s",
                 seconds_format(shortage->left, left),
                 seconds_format(shortage->shortest, shortest));
    else
        snprintf(text, PART_TEXT, "it has come, less the time to write the file");
}

static void format_never(const struct shortage *shortage, char text[PART_TEXT])
{
    char longest[SECONDS_TEXT], room[SECONDS_TEXT];
    snprintf(text, PART_TEXT,
             "%zu of them may take up to %s, more than any run with this limit has for a row (%s): "
             "give it a longer one",
             shortage->never, seconds_format(shortage->longest, longest),
             seconds_format(shortage->room, room));
}

void shortage_format(const struct shortage *shortage, const struct time_limit *limit, size_t total,
                     char text[SHORTAGE_TEXT])
{
    char late[PART_TEXT] = "", never[PART_TEXT] = "";
    size_t count = shortage->late + shortage->never;
    if (count == 0) {
        snprintf(text, SHORTAGE_TEXT,
                 "the time limit (%s) came before all roofs were measured; go on with --resume",
                 limit->text);
        return;
    }
    if (shortage->late > 0)
        format_late(shortage, late);
    if (shortage->never > 0)
        format_never(shortage, never);
    snprintf(text, SHORTAGE_TEXT,
             "%zu of %zu configurations are left for lack of time (%s): %s%s%s%s", count, total,
             limit->text, late, *late && *never ? "; " : "", never,
             *late ? "; go on with --resume" : "");
}
