/* One piece of work to trace or to count. Whoever owns it repeats it as often as it is asked to, so
 * that a profiler saves and restores no memory. Plain data. */
#pragma once

#include "base/status.h"

/* `prepare` and `run` leave the device idle. What lies in the caches when `run` begins is what
 * `prepare` leaves there. */
struct profiled_work {
    enum status (*prepare)(void *argument, struct error *error); /* not counted, not traced */
    enum status (*run)(void *argument, struct error *error);
    void *argument;
    /* Right before a run that is traced: launches one kernel, which is no part of the trace and
     * keeps the device waiting while `run` enqueues. NULL: the device does not wait. */
    enum status (*block)(void *argument, struct error *error);
};
