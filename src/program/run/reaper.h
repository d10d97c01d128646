/* The program roofsweep-reaper, which runs one command for a worker:
 *
 *   roofsweep-reaper FOLDER COMMAND [ARGUMENT...]
 *
 * The reaper runs the command in the folder, in a process group of its own. When the command ends,
 * or the worker dies and so closes REAPER_LIFE, the reaper ends all that the command has started
 * and sweeps scratch folders. It leads a session of its own, so that it outlives a worker that is
 * killed with its group. */
#pragma once

enum { REAPER_LIFE = 3, REAPER_REPORT = 4 }; /* descriptors; the reaper reads 3 and writes 4 */

#define REAPER_PROGRAM "roofsweep-reaper"

/* Written once, when all processes are dead or hang in the system. */
struct reaper_report {
    int status;     /* status of the command by waitpid */
    double seconds; /* from start to end of the command */
};
