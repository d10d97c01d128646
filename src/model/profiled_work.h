/* Work to trace or count. Its owner repeats it on request, so a profiler never saves and restores
 * memory. Plain data. */
#pragma once

#include "base/status.h"

/* Both functions leave the device idle. `prepare` determines the contents of the caches before
 * `run`. */
struct profiled_work {
    enum status (*prepare)(void *argument, struct error *error); /* neither counted nor traced */
    enum status (*run)(void *argument, struct error *error);
    void *argument;
    /* Called right before a traced run: launches, outside the trace, one kernel that blocks the
     * device while `run` enqueues. NULL: no blocking kernel. */
    enum status (*block)(void *argument, struct error *error);
};
