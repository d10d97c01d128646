/* Compares the results of a configuration with the fp64 reference, in parts or as a whole. */
#pragma once

#include "model/record.h"
#include "model/reference.h"
#include "worker/device_ops.h"

/* The reference of the last row, kept because the same shape with a hot and a cold cache, and all
 * algorithms of a row, have the same reference. All zero: none yet. */
struct expected {
    char configuration[WORKLOAD_TEXT]; /* the row's configuration, with cache = hot */
    uint64_t seed;
    struct expectation expectation; /* owned */
};
void expected_clear(struct expected *expected);

/* Runs the work once, and sets verify_* and accuracy of *record. Reads the result in the layout
 * record->layout_chosen. STATUS_FAILED "wrong result: ...": an error exceeds tolerance.right, or is
 * NaN. Without a reference the members stay missing, and record->error says so; that is
 * STATUS_OK. */
enum status verify_work(const struct device_ops *device, struct device_state *state,
                        struct work *work, const struct config *config, uint64_t seed,
                        struct expected *expected, struct record *record, struct error *error);
