#include "model/parallelism.h"

#include <math.h>

static int64_t product(int64_t x, int64_t y, int64_t z)
{
    bool known = x != FIELD_MISSING && y != FIELD_MISSING && z != FIELD_MISSING;
    return known ? x * y * z : FIELD_MISSING;
}

static double number_of(int64_t value)
{
    return value == FIELD_MISSING ? NAN : (double)value;
}

static double occupancy_of(int64_t threads, double resident, const struct device *device)
{
    const double group = 32; /* threads that are scheduled together */
    double each = group * ceil(number_of(threads) / group);
    double most = number_of(device->multiprocessors) * number_of(device->multiprocessor_threads);
    return resident * each / most;
}

static int64_t enough_of(int64_t blocks, int64_t threads, const struct device *device)
{
    if (blocks == FIELD_MISSING || threads == FIELD_MISSING ||
        device->multiprocessors == FIELD_MISSING)
        return FIELD_MISSING;
    int64_t least = PARALLELISM_BLOCKS * device->multiprocessors;
    return blocks >= least && blocks * threads >= least * PARALLELISM_THREADS;
}

struct parallelism parallelism_of(const struct kernel *kernel, const struct device *device)
{
    int64_t blocks = product(kernel->grid_x, kernel->grid_y, kernel->grid_z);
    int64_t threads = product(kernel->block_x, kernel->block_y, kernel->block_z);
    double resident = number_of(kernel->resident), waves = number_of(blocks) / resident;
    return (struct parallelism){
        .blocks = blocks,
        .threads = threads,
        .occupancy = occupancy_of(threads, resident, device),
        .waves = waves,
        .tail_loss = 1 - waves / ceil(waves),
        .enough = enough_of(blocks, threads, device),
    };
}
