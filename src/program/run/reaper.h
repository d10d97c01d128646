/* What the reaper, roofsweep-reaper, and the worker that starts it say to each other.
 *
 *   roofsweep-reaper FOLDER COMMAND [ARGUMENT...]
 *
 * The reaper runs the command in the folder, in a process group of its own, and ends all that it
 * has started when the command ends, or when the worker is dead: REAPER_LIFE is closed then, and
 * scratch folders are swept. It is of a session of its own, so that it outlives a worker that is
 * killed with its group. */
#pragma once

enum { REAPER_LIFE = 3, REAPER_NEWS = 4 }; /* descriptors: it reads the one and writes the other */

#define REAPER_PROGRAM "roofsweep-reaper"

/* Written once, when all are dead or hang in the system. */
struct reaper_news {
    int status;     /* of the command, as of waitpid */
    double seconds; /* from its start to its end */
};
