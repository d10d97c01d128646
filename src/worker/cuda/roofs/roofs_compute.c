/* Vector and tensor units, by hand-written kernels that stay on chip. */

#include <stdio.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/roof_family.h"

/* ---- vector units ---- */

/* Numbers of blocks for each multiprocessor and of threads for each block. */
static const struct {
    int blocks, threads;
} shapes[] = {{1, 1024}, {2, 1024}, {8, 256}, {4, 256}, {2, 512}, {1, 512}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const void *vector_row(struct roofs *roofs, int kind, int n)
{
    const struct roof_kind *info = &roof_kinds[kind];
    const bool vector = info->measure == ROOF_COMPUTE && info->unit == UNIT_VECTOR;
    if (!vector || roofs->gpu->chip->vector[info->precision] == 0.0)
        return NULL;
    for (const struct fma_kernel *kernel = fma_kernels; kernel->flops_per_iteration > 0; ++kernel)
        if (kernel->precision == info->precision && n-- == 0)
            return kernel;
    return NULL;
}

static enum status vector_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                  struct variant *variant, struct error *error)
{
    const struct fma_kernel *kernel = row;
    (void)kind;
    *variant = (struct variant){.row = kernel,
                                .blocks = shapes[choice].blocks * roofs->gpu->multiprocessors,
                                .threads = shapes[choice].threads,
                                .iterations = 8,
                                .elastic = true};
    int64_t threads = (int64_t)variant->blocks * variant->threads;
    variant->work = (double)kernel->flops_per_iteration * (double)threads;
    snprintf(variant->text, sizeof variant->text, "%d blocks of %d threads", variant->blocks,
             variant->threads);
    return roofs_reserve(roofs, &roofs->results, (size_t)threads * sizeof(double), error);
}

static enum status vector_run(struct roofs *roofs, const struct variant *variant,
                              struct error *error)
{
    const struct fma_kernel *kernel = variant->row;
    return cuda_check(kernel->launch(roofs->results.data, variant->iterations, variant->blocks,
                                     variant->threads, roofs->gpu->stream),
                      "fma kernel", error);
}

const struct roof_family roofs_vector = {.row = vector_row,
                                         .choices = SHAPES,
                                         .prepare = vector_prepare,
                                         .run = vector_run,
                                         .counted = true};

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

static const void *tensor_row(struct roofs *roofs, int kind, int n)
{
    int capability = roofs->gpu->capability;
    for (int i = 0; i < TABLES; ++i)
        for (const struct tensor_kernel *kernel = tables[i]; kernel->launch; ++kernel)
            if (kernel->roof == (enum roof_id)kind && capability >= kernel->least &&
                capability <= kernel->most && n-- == 0)
                return kernel;
    return NULL;
}

static enum status tensor_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                  struct variant *variant, struct error *error)
{
    const struct tensor_kernel *kernel = row;
    (void)kind, (void)choice;
    *variant = (struct variant){.row = kernel,
                                .blocks = kernel->blocks * roofs->gpu->multiprocessors,
                                .threads = kernel->threads,
                                .iterations = 100,
                                .elastic = true};
    variant->work = kernel->flops * variant->blocks;
    snprintf(variant->text, sizeof variant->text, "%s, %d blocks of %d threads", kernel->what,
             variant->blocks, variant->threads);
    size_t results = (size_t)variant->blocks * (size_t)variant->threads * sizeof(float);
    return roofs_reserve(roofs, &roofs->results, results, error);
}

static enum status tensor_run(struct roofs *roofs, const struct variant *variant,
                              struct error *error)
{
    const struct tensor_kernel *kernel = variant->row;
    return cuda_check(kernel->launch(roofs->results.data, variant->iterations, variant->blocks,
                                     roofs->gpu->stream),
                      roof_kinds[kernel->roof].name, error);
}

const struct roof_family roofs_tensor = {
    .row = tensor_row, .choices = 1, .prepare = tensor_prepare, .run = tensor_run, .counted = true};
