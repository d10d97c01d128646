/* Results that are computed in a way, right or worse on purpose, for a device without any. For tests only. */
#ifndef ROOFSWEEP_TEST_COMPUTED_H
#define ROOFSWEEP_TEST_COMPUTED_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/device_ops.h"

extern const uint64_t seed; /* of all inputs */

/* How something is computed: significands in bits, 53 for no rounding. */
struct way {
    int inputs, sums, result;
    bool taps_dropped; /* those in the kernel's last column */
    int64_t wrong;     /* every such element is off by `shift`; 0: none */
    double shift;
};

struct computed {
    struct config config; /* layout as it lies */
    struct way way;
};

/* To the nearest value of `significand` bits; the exponent has no end. */
double rounded(double value, int significand);

/* A device_ops.run that does nothing: what is read is computed then. */
enum status computed_run(struct device_state *state, struct work *work, int64_t samples,
                         struct error *error);

#endif
