/* Vector and tensor units: our own kernels, which stay on chip. */
#include "worker/cuda/roofs/roofs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"

/* ---- vector units ---- */

/* Blocks for each SM, threads for each block. */
static const struct {
    int blocks, threads;
} shapes[] = {{1, 1024}, {2, 1024}, {8, 256}, {4, 256}, {2, 512}, {1, 512}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const struct fma_kernel *fma_find(int kind)
{
    const struct fma_kernel *kernel = fma_kernels;
    while (kernel->flops_per_iteration > 0 && kernel->precision != roof_kinds[kind].precision)
        ++kernel;
    return kernel;
}

static int vector_candidates(const struct roofs *roofs, int kind)
{
    const struct roof_kind *info = &roof_kinds[kind];
    bool offered = info->measure == ROOF_COMPUTE && info->unit == UNIT_VECTOR &&
                   chip_find(roofs->state->capability)->vector[info->precision] != 0.0;
    return offered && fma_find(kind)->flops_per_iteration > 0 ? SHAPES : 0;
}

static enum status vector_choose(struct roofs *roofs, int kind, int candidate, struct way *way,
                                 struct error *error)
{
    const struct fma_kernel *kernel = fma_find(kind);
    *way = (struct way){.row = kernel,
                        .blocks = shapes[candidate].blocks * roofs->state->multiprocessors,
                        .threads = shapes[candidate].threads,
                        .iterations = 8,
                        .elastic = true};
    int64_t threads = (int64_t)way->blocks * way->threads;
    way->work = (double)kernel->flops_per_iteration * (double)threads;
    snprintf(way->text, sizeof way->text, "%d blocks of %d threads", way->blocks, way->threads);
    return roofs_reserve(roofs, &roofs->results, (size_t)threads * sizeof(double), error);
}

static enum status vector_run(struct roofs *roofs, const struct way *way, struct error *error)
{
    const struct fma_kernel *kernel = way->row;
    return cuda_check(kernel->launch(roofs->results.data, way->iterations, way->blocks,
                                     way->threads, roofs->state->stream),
                      "fma kernel", error);
}

const struct roof_family roofs_vector = {
    .candidates = vector_candidates, .choose = vector_choose, .run = vector_run};

/* ---- tensor units ---- */

static const struct tensor_kernel *const tables[] = {
    tensor_kernels,
#ifdef ROOFSWEEP_WGMMA
    tensor_wgmma_kernels,
#endif
};
enum { TABLES = sizeof tables / sizeof *tables };

/* The n-th kernel of the kind that runs on this device; NULL after the last. */
static const struct tensor_kernel *tensor_find(const struct roofs *roofs, int kind, int n)
{
    int capability = roofs->state->capability;
    for (int i = 0; i < TABLES; ++i)
        for (const struct tensor_kernel *kernel = tables[i]; kernel->roof; ++kernel)
            if (strcmp(kernel->roof, roof_kinds[kind].name) == 0 && capability >= kernel->least &&
                capability <= kernel->most && n-- == 0)
                return kernel;
    return NULL;
}

static int tensor_candidates(const struct roofs *roofs, int kind)
{
    int count = 0;
    while (tensor_find(roofs, kind, count))
        ++count;
    return count;
}

static enum status tensor_choose(struct roofs *roofs, int kind, int candidate, struct way *way,
                                 struct error *error)
{
    const struct tensor_kernel *kernel = tensor_find(roofs, kind, candidate);
    *way = (struct way){.row = kernel,
                        .blocks = kernel->blocks * roofs->state->multiprocessors,
                        .threads = kernel->threads,
                        .iterations = 100,
                        .elastic = true};
    way->work = kernel->flops * way->blocks;
    snprintf(way->text, sizeof way->text, "%s, %d blocks of %d threads", kernel->what, way->blocks,
             way->threads);
    size_t results = (size_t)way->blocks * (size_t)way->threads * sizeof(float);
    return roofs_reserve(roofs, &roofs->results, results, error);
}

static enum status tensor_run(struct roofs *roofs, const struct way *way, struct error *error)
{
    const struct tensor_kernel *kernel = way->row;
    return cuda_check(
        kernel->launch(roofs->results.data, way->iterations, way->blocks, roofs->state->stream),
        kernel->roof, error);
}

const struct roof_family roofs_tensor = {
    .candidates = tensor_candidates, .choose = tensor_choose, .run = tensor_run};
