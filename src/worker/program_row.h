/* A row of a program: its command is run, and what it hands back becomes a record. */
#ifndef ROOFSWEEP_PROGRAM_ROW_H
#define ROOFSWEEP_PROGRAM_ROW_H

#include "model/protocol.h"
#include "worker/device_ops.h"

/* As measure_config, of a configuration of program_workload. All runs together may take
 * request->timeout. */
enum status program_row_measure(const struct device_ops *device, struct device_state *state,
                                const struct request *request, struct record *record,
                                struct error *error);

#endif
