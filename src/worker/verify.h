/* Comparison of a configuration's output with the fp64 reference, on a slice or the whole. */
#pragma once

#include "model/record.h"
#include "model/reference.h"
#include "worker/device_ops.h"

/* What the last result had to be: rows of one shape with a hot and a cold cache, and algorithms of
 * a row that are refused in turn, have the same reference. All zero: nothing yet. */
struct expected {
    char configuration[WORKLOAD_TEXT]; /* with a hot cache */
    uint64_t seed;
    struct expectation expectation; /* owned */
};
void expected_clear(struct expected *expected);

/* Runs the work once and sets verify_* and accuracy of *record, whose layout_chosen tells where the
 * result lies. STATUS_FAILED "wrong result: ..." beyond the second tolerance, or where the output
 * holds a NaN. A workload without a reference leaves them missing, and `error` of *record says so:
 * that is STATUS_OK. */
enum status verify_work(const struct device_ops *device, struct device_state *state,
                        struct work *work, const struct config *config, uint64_t seed,
                        struct expected *expected, struct record *record, struct error *error);
