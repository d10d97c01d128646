#include "ranks/pause.h"

#include <math.h>

static const double least = 50e-6;     /* s */
static const double most_of_it = 0.75; /* of what is usual, before the first look */
static const double part_of_it = 0.125;
static const double weight_of_less = 0.5,
                    weight_of_more = 0.25; /* of the last answer in what is usual */
/* s: who waited for longer waited for others, not for an answer. */
static const double usual_most = 50e-3;
/* An answer that is there at the first look may have come long before. It is taken for this part of what
 * is usual. */
static const double part_at_first_look = 0.4;

struct pause pause_none(void)
{
    return (struct pause){.asked = NAN};
}

static void learn(struct pause *pause, double seconds)
{
    if (seconds > usual_most)
        return;
    bool at_once = pause->usual > 0 && pause->looks == 0;
    double answer = fmax(at_once ? part_at_first_look * pause->usual : seconds, least);
    double weight = answer < pause->usual ? weight_of_less : weight_of_more;
    pause->usual = pause->usual > 0 ? (1 - weight) * pause->usual + weight * answer : answer;
}

/* An answer that takes far longer than usual is looked for less and less often. */
static double until_answer(const struct pause *pause, double now, double longest)
{
    double waited = now - pause->asked, first = most_of_it * pause->usual;
    double part = part_of_it * pause->usual;
    double later = fmin(part_of_it * fmax(waited, pause->usual), fmax(longest, part));
    return fmax(waited < first ? first - waited : later, least);
}

void pause_look(struct pause *pause, double now, bool moved, bool due, double longest)
{
    if (!due && !isnan(pause->asked))
        learn(pause, now - pause->asked);
    pause->looks = due && !isnan(pause->asked) ? pause->looks + 1 : 0;
    if (!due)
        pause->asked = NAN;
    else if (isnan(pause->asked))
        pause->asked = now;
    if (due && pause->usual > 0)
        pause->seconds = until_answer(pause, now, longest);
    else
        pause->seconds = moved ? 0 : fmin(fmax(2 * pause->seconds, least), longest);
}
