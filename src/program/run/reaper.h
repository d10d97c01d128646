/* The program roofsweep-reaper, which runs one command for a worker:
 *
 *   roofsweep-reaper FOLDER COMMAND [ARGUMENT...]
 *
 * The reaper runs the command in the folder, in a process group of its own. The reaper ends all
 * that the command has started, and reports, when the command ends, when the worker writes a byte
 * to REAPER_LIFE, or when the worker's death closes REAPER_LIFE. Then the reaper waits: it sweeps
 * scratch folders if the worker dies; a worker that has removed its own folder kills the reaper.
 * The reaper leads a session of its own, and its name differs from those of the other programs, so
 * that it outlives a worker that is killed with its group, or by `pkill -f roofsweep`. */
#pragma once

#include <stdbool.h>

enum { REAPER_LIFE = 3, REAPER_REPORT = 4 }; /* descriptors; the reaper reads 3 and writes 4 */

#define REAPER_PROGRAM "roofsweep-reaper" /* the file */
#define REAPER_NAME    "program-reaper"   /* name of the process */

/* Written once, when all processes are dead or hang in the system. */
struct reaper_report {
    bool gone;      /* all processes are dead */
    int status;     /* status of the command by waitpid */
    double seconds; /* from start to end of the command */
};
