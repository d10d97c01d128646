/* How long a rank sleeps before it looks for letters again. MPI has no descriptor to wait for, so letters are
 * looked for again and again: soon after something has moved, then less and less often. Each look takes the
 * processor from somebody where ranks share cores.
 *
 * Whoever waits for an answer first sleeps for most of what answers took so far, and then looks at short
 * intervals: so it neither looks often nor misses the answer for long. Pure but for its own memory. */
#ifndef ROOFSWEEP_PAUSE_H
#define ROOFSWEEP_PAUSE_H

#include <stdbool.h>

struct pause {
    double seconds; /* of the next sleep */
    double asked;   /* s, on the clock that pause_look is told; NaN: no answer is due */
    double usual;   /* s, that an answer takes; 0: none has come yet */
    int looks;      /* in vain, since it was asked */
};

struct pause pause_none(void); /* the next look comes at once */

/* After each look. `moved`: something came or went. `due`: the rank waits for a letter that answers it.
 * `longest`: s, of a sleep, unless answers take much longer. */
void pause_look(struct pause *pause, double now, bool moved, bool due, double longest);

#endif
