/* What a row's kernels share its time by. Pure. */
#ifndef ROOFSWEEP_KERNEL_SHARES_H
#define ROOFSWEEP_KERNEL_SHARES_H

#include "model/device.h"
#include "model/record.h"

/* Missing where there is no trace, or a kernel lacks what decides. */
struct kernel_shares {
    /* Kernels that do no FLOPs: launches in one iteration, and their share of all kernels' time. Known
     * with the FLOPs of each kernel; or of all together, if there is one kernel or they are 0. */
    int64_t zero_flop_launches;
    double zero_flop_share;
    double few_blocks; /* share of the kernels' time in those without enough parallelism */
};
struct kernel_shares kernel_shares(const struct record *record, const struct device *device);

#endif
