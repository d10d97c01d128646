/* Work that a profiler traces or counts. The profiler calls these functions to repeat the work, so
 * it need not save and restore memory. Plain data. */
#pragma once

#include "base/status.h"

/* `prepare` and `run` leave the device idle. `prepare` brings the caches into the state that `run`
 * expects. */
struct profiled_work {
    enum status (*prepare)(void *argument, struct error *error); /* neither counted nor traced */
    enum status (*run)(void *argument, struct error *error);
    void *argument;
    /* Called right before a traced run: launches one kernel, absent from the trace, that blocks the
     * device while `run` enqueues. NULL: no blocking kernel. */
    enum status (*block)(void *argument, struct error *error);
};
