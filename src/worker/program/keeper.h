/* What the keeper, roofsweep-keeper, and the worker that starts it say to each other.
 *
 *   roofsweep-keeper FOLDER COMMAND [ARGUMENT...]
 *
 * The keeper runs the command in the folder, in a process group of its own, and ends all that it
 * has started when the command ends, or when the worker is dead: KEEPER_LIFE is closed then, and
 * scratch folders are swept. It is of a session of its own, so that it outlives a worker that is
 * killed with its group. */
#pragma once

enum { KEEPER_LIFE = 3, KEEPER_NEWS = 4 }; /* descriptors: it reads the one and writes the other */

#define KEEPER_PROGRAM "roofsweep-keeper"

/* Written once, when all are dead or hang in the system. */
struct keeper_news {
    int status;     /* of the command, as of waitpid */
    double seconds; /* from its start to its end */
};
