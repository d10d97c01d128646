/* Device memory, L2, L1 and shared memory. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/roof_family.h"

struct shape {
    int blocks;  /* for each multiprocessor; 0: each warp gets one piece of work */
    int threads; /* for each block */
};

/* ---- device memory and L2 ---- */

static const struct shape shapes[] = {{1, 512}, {1, 1024}, {2, 512},  {2, 1024}, {4, 256},
                                      {4, 512}, {8, 256},  {16, 128}, {32, 256}, {64, 256},
                                      {0, 128}, {0, 256},  {0, 1024}};
/* The working set as a part of L2. Each of two partitions can hold copies of the other's lines, and
 * a larger set would write bytes to device memory (docs/measurements.md, "L2 roofs"). */
static const double part_of_l2 = 1.0 / 4;
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const void *memory_row(struct roofs *roofs, int kind, int n)
{
    const struct roof_kind *info = &roof_kinds[kind];
    const bool cache = info->level == LEVEL_L2 && roofs->gpu->l2_bytes > 0;
    if (!cache && info->level != LEVEL_DRAM)
        return NULL;
    for (const struct memory_kernel *kernel = memory_kernels; kernel->launch; ++kernel)
        if (kernel->pattern == info->pattern && n-- == 0)
            return kernel;
    return NULL;
}

/* A pass over these arrays spends below 1 % of its time on launch and tail. Longer arrays would
 * make trials longer, because a trial is at least one pass. */
static enum status arrays_reserve(struct roofs *roofs, struct error *error)
{
    const double most = 2.0 * 1024 * 1024 * 1024; /* byte */
    const double share = 1.0 / 8;                 /* of the free memory */
    size_t available, total;
    if (roofs->array_bytes > 0)
        return STATUS_OK;
    TRY(CUDA(cudaMemGetInfo(&available, &total)));
    double bytes = 4096.0 * floor(fmin(most, (double)available * share) / 4096.0);
    for (int i = 0; i < 3; ++i) {
        if (!roofs->arrays[i])
            TRY(memory_allocate(bytes, "the memory roofs", &roofs->arrays[i], error));
        struct fill fill = fill_make(1, (enum tensor)i, 24, 0);
        TRY(CUDA(kernel_fill(PRECISION_FP32, roofs->arrays[i], (int64_t)(bytes / sizeof(float)),
                             fill, 0, roofs->gpu->stream)));
    }
    roofs->array_bytes = (size_t)bytes;
    return STATUS_OK;
}

/* Rounds down, so that all warps have the same amount of work. */
static size_t bytes_round(const struct variant *variant, double bytes)
{
    const double page = 4096.0;
    const struct memory_kernel *kernel = variant->row;
    int warps = variant->blocks * (variant->threads / 32);
    double all = warps > 0 ? (double)warps * kernel->piece : page;
    return (size_t)(floor(bytes / all) * all);
}

static enum status memory_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                  struct variant *variant, struct error *error)
{
    const double beyond =
        8.0; /* least size of an array / size of L2, so that L2 holds little of it */
    const double first_traffic = 4e9; /* byte, moved in about a millisecond */
    const double mib = 1024.0 * 1024.0;
    char blocks[48] = "a block for every tile";
    const struct shape *shape = &shapes[choice];
    const struct memory_kernel *kernel = row;
    double l2 = (double)roofs->gpu->l2_bytes;
    TRY(arrays_reserve(roofs, error));
    double bytes = (double)roofs->array_bytes;
    *variant = (struct variant){.row = kernel,
                                .threads = shape->threads,
                                .blocks = shape->blocks * roofs->gpu->multiprocessors,
                                .elastic = true};
    if (roof_kinds[kind].level == LEVEL_DRAM && bytes < beyond * l2)
        return error_set(error, STATUS_UNSUPPORTED, "too little device memory is free");
    if (roof_kinds[kind].level == LEVEL_L2)
        bytes = fmin(bytes, l2 * part_of_l2 / kernel->arrays);
    variant->bytes = bytes_round(variant, bytes);
    if (variant->bytes == 0)
        return error_set(error, STATUS_UNSUPPORTED, "its warps take more memory than there is");
    variant->work = (double)variant->bytes * kernel->bytes_moved;
    variant->iterations = (int64_t)fmax(1.0, first_traffic / variant->work);
    if (variant->blocks > 0)
        snprintf(blocks, sizeof blocks, "%d blocks", variant->blocks);
    snprintf(variant->text, sizeof variant->text, "%d x %.4g MiB, %s of %d threads, %s",
             kernel->arrays, (double)variant->bytes / mib, blocks, variant->threads, kernel->what);
    return STATUS_OK;
}

static enum status memory_run(struct roofs *roofs, const struct variant *variant,
                              struct error *error)
{
    const struct memory_kernel *kernel = variant->row;
    return cuda_check(kernel->launch(roofs->arrays[0], roofs->arrays[1], roofs->arrays[2],
                                     variant->bytes, (int)variant->iterations, variant->blocks,
                                     variant->threads, roofs->gpu->stream),
                      memory_pattern_name[kernel->pattern], error);
}

/* ---- working set of L2 ---- */

/* Returns the read with the smallest piece that has enough bytes in flight. Blocks read in the
 * order of addresses, as in most kernels; other orders would reach larger working sets. */
static struct variant reach_variant(struct roofs *roofs)
{
    const int enough = 2048; /* bytes of a warp's accesses */
    struct variant variant = {.threads = 256};
    const struct memory_kernel *kernel, *best = NULL;
    for (int i = 0; (kernel = memory_row(roofs, ROOF_L2_READ, i)); ++i)
        if (!best || (kernel->piece >= enough && kernel->piece < best->piece))
            variant.row = best = kernel;
    return variant;
}

/* *rate: byte s-1, the best of four runs of about a millisecond; the first run fetches the set. */
static enum status reach_rate(struct roofs *roofs, struct variant *variant, size_t bytes,
                              double *rate, struct error *error)
{
    enum { RUNS = 4 };
    const double traffic = 8e9; /* byte moved in a run */
    double seconds;
    variant->bytes = bytes;
    variant->work = (double)bytes;
    variant->iterations = (int64_t)fmax(2.0, traffic / (double)bytes);
    *rate = 0.0;
    for (int run = 0; run < RUNS; ++run) {
        const struct winner winner = {.family = &roofs_memory, .variant = *variant};
        TRY(run_time(roofs, &winner, &seconds, error));
        *rate = fmax(*rate, run_work(variant) / seconds);
    }
    return STATUS_OK;
}

/* The rate is flat while the set fits, and falls towards that of device memory beyond. Finds the
 * largest set before the rate falls below nine tenths of the best rate. */
static enum status memory_reach(struct roofs *roofs, int kind, double *bytes, struct error *error)
{
    enum { STEPS = 32 }; /* sizes are multiples of L2 / STEPS */
    const double l2 = (double)roofs->gpu->l2_bytes, page = 4096.0, nearly = 0.9;
    double rate, best = 0.0;
    if (kind != ROOF_L2_READ)
        return STATUS_OK;
    struct variant variant = reach_variant(roofs);
    for (int step = (int)(part_of_l2 * STEPS); step <= 2 * STEPS; ++step) {
        double set = floor(l2 * step / STEPS / page) * page;
        if (set > (double)roofs->array_bytes)
            return STATUS_OK;
        TRY(reach_rate(roofs, &variant, (size_t)set, &rate, error));
        best = fmax(best, rate);
        if (rate < nearly * best)
            return STATUS_OK;
        *bytes = set;
    }
    return STATUS_OK;
}

static void memory_close(struct roofs *roofs)
{
    for (int i = 0; i < 3; ++i)
        cudaFree(roofs->arrays[i]);
    memset(roofs->arrays, 0, sizeof roofs->arrays);
}

const struct roof_family roofs_memory = {
    .row = memory_row,
    .choices = SHAPES,
    .prepare = memory_prepare,
    .run = memory_run,
    .reach = memory_reach,
    .close = memory_close,
    .counted = true,
};

/* ---- memories on the multiprocessor: L1 and shared memory ---- */

static const struct shape onchip_shapes[] = {{1, 1024}, {2, 1024}, {2, 512}, {4, 512},
                                             {4, 256},  {8, 256},  {1, 512}};
/* Size of the data of a multiprocessor's blocks, as a part of L1 (with shared memory). */
static const double parts_of_l1[] = {1.0 / 2, 1.0 / 4, 1.0 / 8};
enum {
    ONCHIP_SHAPES = sizeof onchip_shapes / sizeof *onchip_shapes,
    ONCHIP_PARTS = sizeof parts_of_l1 / sizeof *parts_of_l1
};

static const void *onchip_row(struct roofs *roofs, int kind, int n)
{
    (void)roofs;
    for (const struct onchip_kernel *kernel = onchip_kernels; kernel->launch; ++kernel)
        if (kernel->roof == (enum roof_id)kind && n-- == 0)
            return kernel;
    return NULL;
}

static enum status onchip_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                  struct variant *variant, struct error *error)
{
    (void)kind;
    const double known = roofs->gpu->chip->l1_bytes;
    const double l1 =
        isnan(known) ? 64.0 * 1024 : known; /* the smallest L1 of all chips since 2017 */
    const size_t step = 64;                 /* byte that a thread reads at once */
    const struct shape *shape = &onchip_shapes[choice % ONCHIP_SHAPES];
    const double part = parts_of_l1[choice / ONCHIP_SHAPES];
    const struct onchip_kernel *kernel = row;
    const size_t round = step * (size_t)shape->threads;
    *variant = (struct variant){
        .row = kernel, .threads = shape->threads, .iterations = 1000, .elastic = true};
    variant->blocks = shape->blocks * roofs->gpu->multiprocessors;
    variant->bytes = (size_t)(l1 * part / shape->blocks) / round * round;
    if (variant->bytes == 0)
        return error_set(error, STATUS_UNSUPPORTED, "its blocks are too large for L1");
    variant->work = (double)variant->bytes * variant->blocks;
    TRY(roofs_reserve(roofs, &roofs->operands, variant->bytes * (size_t)variant->blocks, error));
    snprintf(variant->text, sizeof variant->text, "%d blocks of %d threads, %zu KiB each, %s",
             variant->blocks, variant->threads, variant->bytes / 1024, kernel->what);
    return STATUS_OK;
}

static enum status onchip_run(struct roofs *roofs, const struct variant *variant,
                              struct error *error)
{
    const struct onchip_kernel *kernel = variant->row;
    return cuda_check(kernel->launch(roofs->operands.data, variant->bytes, (int)variant->iterations,
                                     variant->blocks, variant->threads, roofs->gpu->stream),
                      roof_kinds[kernel->roof].name, error);
}

const struct roof_family roofs_onchip = {.row = onchip_row,
                                         .choices = ONCHIP_SHAPES * ONCHIP_PARTS,
                                         .prepare = onchip_prepare,
                                         .run = onchip_run,
                                         .counted = true};
