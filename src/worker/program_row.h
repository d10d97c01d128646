/* A row of a program: its command is run, once for its times and again for its kernels and counts,
 * and what the runs hand back becomes a record. */
#pragma once

#include "model/protocol.h"
#include "worker/device_ops.h"
#include "worker/program/process.h"

/* Everything that is done for a configuration of program_workload: *record, which was initialised,
 * is measured, skipped or failed. All runs together may take request->timeout. A row
 * that shares its process goes on with residents of earlier rows; before others they are ended.
 * Errors are STATUS_DEVICE: the device is lost; and STATUS_INTERRUPTED: a signal came that the
 * worker blocks, and the row is worth nothing. */
enum status program_row_measure(const struct device_ops *device, struct device_state *state,
                                struct residents *residents, const struct request *request,
                                struct record *record, struct error *error);

enum { PROGRAM_HASH = 33 };
/* The hash of a program's text: 128-bit xxHash (XXH3) of the contents, one after the other, of all
 * words that name a regular file, seen from the folder, as 32 hexadecimal digits. "" if there is
 * none: a command from PATH alone. */
void program_hash(char *const *words, const char *folder, char hash[PROGRAM_HASH]);
