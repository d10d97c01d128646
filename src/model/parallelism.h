/* How a kernel fills a device: waves, their tail, and whether there is enough to do. Pure.
 *
 * Source of waves, tail and the rule: the vendor's "GPU Performance Background User's Guide": a wave is the
 * blocks that run at the same time; the last one may be small ("tail effect"); parallelism is likely
 * enough with at least about 4 blocks for each multiprocessor, of a few hundred threads each. */
#ifndef ROOFSWEEP_PARALLELISM_H
#define ROOFSWEEP_PARALLELISM_H

#include "model/device.h"
#include "model/record.h"

/* At least 4 blocks for each multiprocessor, and threads as if each had 128: more blocks may be smaller.
 * (128 are a group of 32 for each of a multiprocessor's four schedulers.) */
enum { PARALLELISM_BLOCKS = 4, PARALLELISM_THREADS = 128 };

/* NaN or FIELD_MISSING where the kernel's shape or the device is not known: on CPUs. */
struct parallelism {
    int64_t blocks, threads; /* of one launch; of one block */
    double occupancy;        /* threads on a full multiprocessor, in whole 32s, over its most */
    double waves;            /* blocks over those that the device holds at a time */
    double tail_loss; /* share of places that stays empty in all waves: 1 - waves / ceil(waves) */
    int64_t enough;   /* 1: by the guide's rule */
};
struct parallelism parallelism_of(const struct kernel *kernel, const struct device *device);

#endif
