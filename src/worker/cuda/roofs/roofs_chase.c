/* Latencies of memories: the time from a load to the load that needs its result. One block loads a
 * chain of whole cache lines in random order. */

#include <stdio.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/roof_family.h"

enum { LINE = CHASE_LANES * sizeof(uint64_t), LOADS = 16384 /* loads of an iteration */ };

/* The chain for L2 is larger than L1 and much smaller than L2. In device memory a run continues
 * where the last run ended, so that the cache has lost a line when the chain returns to it. */
static const struct chase {
    enum roof_id roof;
    int lines;          /* least number of lines */
    double parts_of_l2; /* least size of the chain, in sizes of L2 */
} chases[] = {{ROOF_DRAM_LATENCY, 4096, 8.0},
              {ROOF_L2_LATENCY, 4096, 0.0},
              {ROOF_L1_LATENCY, 128, 0.0},
              {ROOF_SHARED_LATENCY, 1, 0.0}};

static const void *chase_row(struct roofs *roofs, int kind, int n)
{
    (void)roofs;
    for (size_t i = 0; n == 0 && i < sizeof chases / sizeof *chases; ++i)
        if (chases[i].roof == (enum roof_id)kind)
            return &chases[i];
    return NULL;
}

static enum status chase_prepare(struct roofs *roofs, int kind, const void *row, int choice,
                                 struct variant *variant, struct error *error)
{
    const struct chase *chase = row;
    struct roofs_buffer *chain = &roofs->chains[chase - chases];
    int lines = chase->lines;
    (void)kind, (void)choice;
    while (lines < chase->parts_of_l2 * (double)roofs->gpu->l2_bytes / LINE)
        lines *= 2;
    *variant = (struct variant){.row = row,
                                .bytes = (size_t)lines * LINE,
                                .iterations = 1,
                                .elastic = true,
                                .work = LOADS,
                                .access = LINE};
    snprintf(variant->text, sizeof variant->text, "a chain of %d line%s, median", lines,
             lines > 1 ? "s" : "");
    TRY(roofs_reserve(roofs, chain, variant->bytes + LINE, error));
    return CUDA(kernel_chain(chain->data, lines, roofs->gpu->stream));
}

static enum status chase_run(struct roofs *roofs, const struct variant *variant,
                             struct error *error)
{
    const struct chase *chase = variant->row;
    uint64_t *words = roofs->chains[chase - chases].data;
    return CUDA(kernel_chase(chase->roof == ROOF_SHARED_LATENCY,
                             words + variant->bytes / sizeof *words, LOADS * variant->iterations,
                             roofs->gpu->stream));
}

const struct roof_family roofs_chase = {
    .row = chase_row, .choices = 1, .prepare = chase_prepare, .run = chase_run, .counted = true};
