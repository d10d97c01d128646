/* A kind of row that does not run on device_ops, as a table of functions. worker.c measures all
 * other rows itself (batch.h). */
#pragma once

#include "model/protocol.h"
#include "worker/device_ops.h"

struct row_kind {
    const struct workload *workload; /* the workload of these rows */
    /* Measures a configuration: *record, which was initialised, becomes measured, skipped or
     * failed. The device is idle, and no row waits for counters. *kept, NULL at first, passes from
     * row to row. It owns processes that later rows may use. STATUS_DEVICE: the device is lost.
     * STATUS_INTERRUPTED: a signal came that the worker blocks, and the row is void. */
    enum status (*measure)(const struct device_ops *device, struct device_state *state, void **kept,
                           const struct request *request, struct record *record,
                           struct error *error);
    /* Ends and frees what *kept holds, so that the device is idle; *kept becomes NULL. */
    void (*release)(void **kept);
};

/* Defined in src/program/run, which is not built with -DROOFSWEEP_PROGRAMS=OFF. */
extern const struct row_kind program_row;
