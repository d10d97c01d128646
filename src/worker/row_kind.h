/* The functions for a kind of row that device_ops does not measure: programs. The worker measures
 * all other rows by batch.h. */
#pragma once

#include "model/protocol.h"
#include "worker/device_ops.h"

struct row_kind {
    const struct workload *workload;
    /* Measures a configuration: *record, which the caller has initialised, becomes measured,
     * skipped or failed. The device must be idle, and no row may wait for counters. *kept, NULL at
     * first, is passed from row to row; it owns processes that later rows may use. STATUS_DEVICE:
     * the device is lost. STATUS_INTERRUPTED: a signal came, and the row does not count. */
    enum status (*measure)(const struct device_ops *device, struct device_state *state, void **kept,
                           const struct request *request, struct record *record,
                           struct error *error);
    /* Ends and frees the processes of *kept, so that the device is idle, and sets *kept to NULL. */
    void (*release)(void **kept);
};

/* Defined in src/program/run, which is not built with -DROOFSWEEP_PROGRAMS=OFF. */
extern const struct row_kind program_row;
