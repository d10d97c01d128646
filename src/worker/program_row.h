/* A row of a program: its command is run, and what it hands back becomes a record. */
#ifndef ROOFSWEEP_PROGRAM_ROW_H
#define ROOFSWEEP_PROGRAM_ROW_H

#include "model/protocol.h"
#include "worker/device_ops.h"

/* Everything that is done for a configuration of program_workload: *record, which was initialised, is
 * measured, skipped or failed. All runs together may take request->timeout. Only a lost device is an
 * error: STATUS_DEVICE. */
enum status program_row_measure(const struct device_ops *device, struct device_state *state,
                                const struct request *request, struct record *record,
                                struct error *error);

#endif
