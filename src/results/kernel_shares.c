#include "results/kernel_shares.h"

#include <math.h>

#include "model/parallelism.h"

/* FLOPs of a kernel's launches, as far as they are known without counts of each. */
static double flops_of(const struct record *record, const struct kernel *kernel)
{
    bool whole = record->kernel_count == 1 || record->flops_counted == 0;
    return isnan(kernel->flops_counted) && whole ? record->flops_counted : kernel->flops_counted;
}

static double time_of(const struct record *record)
{
    double time = 0;
    for (size_t i = 0; i < record->kernel_count; ++i)
        time += record->kernels[i].time;
    return time;
}

struct kernel_shares kernel_shares(const struct record *record, const struct device *device)
{
    double time = time_of(record), idle = 0, few = 0;
    int64_t launches = 0;
    bool flops_known = record->kernel_count > 0, blocks_known = flops_known;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        const struct kernel *kernel = &record->kernels[i];
        double flops = flops_of(record, kernel);
        int64_t enough = parallelism_of(kernel, device).enough;
        flops_known &= !isnan(flops);
        blocks_known &= enough != FIELD_MISSING;
        if (flops == 0) {
            launches += kernel->count;
            idle += kernel->time;
        }
        few += enough == 0 ? kernel->time : 0;
    }
    return (struct kernel_shares){
        .zero_flop_launches = flops_known ? launches : FIELD_MISSING,
        .zero_flop_share = flops_known ? idle / time : NAN,
        .few_blocks = blocks_known ? few / time : NAN,
    };
}
