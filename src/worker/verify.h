/* Compares results of a configuration, or a part of them, with the fp64 reference. */
#pragma once

#include "model/record.h"
#include "model/reference.h"
#include "worker/device_ops.h"

/* The reference of the last row, kept for other algorithms of the row, and for the row with the
 * other state of the cache. All zero: none yet. */
struct expected {
    char configuration[WORKLOAD_TEXT]; /* configuration of the row, with cache = hot */
    uint64_t seed;
    struct expectation expectation; /* owned */
};
void expected_clear(struct expected *expected);

/* Runs the work once, and sets verify_* and accuracy of *record. STATUS_FAILED "wrong result: ...":
 * an error exceeds tolerance.right, or is NaN. If there is no reference, the members stay missing,
 * record->error says so, and the status is STATUS_OK. */
enum status verify_work(const struct device_ops *device, struct device_state *state,
                        struct work *work, const struct config *config, uint64_t seed,
                        struct expected *expected, struct record *record, struct error *error);
