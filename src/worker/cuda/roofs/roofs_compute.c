/* Vector and tensor units: our own kernels, which stay on chip. */

#include <math.h>
#include <stdio.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/roofs/family.h"

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

static int vector_count(const struct roofs *roofs, int kind)
{
    const struct roof_kind *info = &roof_kinds[kind];
    const bool vector = info->measure == ROOF_COMPUTE && info->unit == UNIT_VECTOR;
    const bool offered = vector && roofs->gpu->chip->vector[info->precision] != 0.0;
    return offered && fma_find(kind)->flops_per_iteration > 0 ? SHAPES : 0;
}

static enum status vector_prepare(struct roofs *roofs, int kind, int number, struct method *method,
                                  struct error *error)
{
    const struct fma_kernel *kernel = fma_find(kind);
    *method = (struct method){.row = kernel,
                              .blocks = shapes[number].blocks * roofs->gpu->multiprocessors,
                              .threads = shapes[number].threads,
                              .iterations = 8,
                              .elastic = true};
    int64_t threads = (int64_t)method->blocks * method->threads;
    method->work = (double)kernel->flops_per_iteration * (double)threads;
    snprintf(method->text, sizeof method->text, "%d blocks of %d threads", method->blocks,
             method->threads);
    return roofs_reserve(roofs, &roofs->results, (size_t)threads * sizeof(double), error);
}

static enum status vector_run(struct roofs *roofs, const struct method *method, struct error *error)
{
    const struct fma_kernel *kernel = method->row;
    return cuda_check(kernel->launch(roofs->results.data, method->iterations, method->blocks,
                                     method->threads, roofs->gpu->stream),
                      "fma kernel", error);
}

const struct roof_family roofs_vector = {
    .count = vector_count, .prepare = vector_prepare, .run = vector_run, .counted = true};

/* ---- tensor units ---- */

static const struct tensor_kernel *const tables[] = {
    tensor_kernels,
#ifdef ROOFSWEEP_WGMMA
    tensor_wgmma_kernels,
#endif
#ifdef ROOFSWEEP_TCGEN05
    tensor_tcgen05_kernels,
#endif
};
enum { TABLES = sizeof tables / sizeof *tables };

/* The n-th kernel of the kind that runs on this device; NULL after the last. */
static const struct tensor_kernel *tensor_find(const struct roofs *roofs, int kind, int n)
{
    int capability = roofs->gpu->capability;
    for (int i = 0; i < TABLES; ++i)
        for (const struct tensor_kernel *kernel = tables[i]; kernel->launch; ++kernel)
            if (kernel->roof == (enum roof_id)kind && capability >= kernel->least &&
                capability <= kernel->most && n-- == 0)
                return kernel;
    return NULL;
}

static int tensor_count(const struct roofs *roofs, int kind)
{
    int count = 0;
    while (tensor_find(roofs, kind, count))
        ++count;
    return count;
}

static enum status tensor_prepare(struct roofs *roofs, int kind, int number, struct method *method,
                                  struct error *error)
{
    const struct tensor_kernel *kernel = tensor_find(roofs, kind, number);
    *method = (struct method){.row = kernel,
                              .blocks = kernel->blocks * roofs->gpu->multiprocessors,
                              .threads = kernel->threads,
                              .iterations = 100,
                              .elastic = true};
    method->work = kernel->flops * method->blocks;
    snprintf(method->text, sizeof method->text, "%s, %d blocks of %d threads", kernel->what,
             method->blocks, method->threads);
    size_t results = (size_t)method->blocks * (size_t)method->threads * sizeof(float);
    return roofs_reserve(roofs, &roofs->results, results, error);
}

static enum status tensor_run(struct roofs *roofs, const struct method *method, struct error *error)
{
    const struct tensor_kernel *kernel = method->row;
    return cuda_check(
        kernel->launch(roofs->results.data, method->iterations, method->blocks, roofs->gpu->stream),
        roof_kinds[kernel->roof].name, error);
}

const struct roof_family roofs_tensor = {
    .count = tensor_count, .prepare = tensor_prepare, .run = tensor_run, .counted = true};
