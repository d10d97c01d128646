/* Launches of small kernels. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/graph.h"
#include "worker/gpu/roof_family.h"

enum { LAUNCHES = 500 }; /* half of what a stream's queue holds */
/* s; at first the device waits this time while the host enqueues: 10 us a launch. Later the device
 * waits `patience` times the host's time. */
static const double enqueueing = 5e-3, patience = 2.0;

/* 16 blocks, as in a step of a small recurrent network. */
enum { LINK_NUMBERS = 2048 };

enum launched { LAUNCHED_EMPTY, LAUNCHED_LINK, LAUNCHED_KINDS };
struct launches {
    struct roofs_buffer numbers;          /* two arrays of LINK_NUMBERS numbers */
    struct graph *graphs[LAUNCHED_KINDS]; /* chains of launches; NULL: not captured */
    double enqueueing[2]; /* s, host's time to enqueue launches [0] or a graph [1]; 0: not known */
};

struct launch_variant {
    enum roof_id roof;
    enum launched launched;
    int count; /* launches in a sample */
    const char *what;
    bool graph;
    enum status (*time)(struct roofs *roofs, const struct launch_variant *variant, double *seconds,
                        struct error *error);
};

static enum status launch(struct roofs *roofs, enum launched what, int number, struct error *error)
{
    cudaStream_t stream = roofs->gpu->stream;
    if (what == LAUNCHED_EMPTY)
        return CUDA(kernel_empty(stream));
    float *numbers = roofs->launches->numbers.data;
    return CUDA(kernel_link(number, numbers, numbers + LINK_NUMBERS, LINK_NUMBERS, stream));
}

struct chain {
    struct roofs *roofs;
    const struct launch_variant *variant;
};

static enum status chain_enqueue(struct gpu *gpu, void *argument, struct error *error)
{
    const struct chain *chain = argument;
    (void)gpu;
    for (int i = 0; i < chain->variant->count; ++i)
        TRY(launch(chain->roofs, chain->variant->launched, i, error));
    return STATUS_OK;
}

/* The device waits until all launches are enqueued, as in timing.c. So a sample shows the time from
 * one kernel to the next, not the pace of the host. */
static enum status gap_time(struct roofs *roofs, const struct launch_variant *variant,
                            double *seconds, struct error *error)
{
    struct gpu *gpu = roofs->gpu;
    struct chain chain = {roofs, variant};
    double *known = &roofs->launches->enqueueing[variant->graph];
    TRY(CUDA(kernel_delay(*known > 0.0 ? patience * *known : enqueueing, gpu->stream)));
    const double begin = clock_monotonic();
    TRY(vendor_record(gpu, 0, error));
    if (variant->graph)
        TRY(vendor_graph_launch(gpu, roofs->launches->graphs[variant->launched], error));
    else
        TRY(chain_enqueue(gpu, &chain, error));
    TRY(vendor_record(gpu, 1, error));
    *known = fmin(fmax(*known / 2.0, clock_monotonic() - begin), enqueueing / patience);
    TRY(vendor_wait(gpu, 1, error));
    return vendor_elapsed(gpu, 0, 1, seconds, error);
}

/* The queue is empty and has room for these launches, so the host never waits. */
static enum status host_time(struct roofs *roofs, const struct launch_variant *variant,
                             double *seconds, struct error *error)
{
    struct chain chain = {roofs, variant};
    double begin = clock_monotonic();
    TRY(chain_enqueue(roofs->gpu, &chain, error));
    *seconds = clock_monotonic() - begin;
    return vendor_synchronize(roofs->gpu, error);
}

static enum status latency_time(struct roofs *roofs, const struct launch_variant *variant,
                                double *seconds, struct error *error)
{
    double begin = clock_monotonic();
    for (int i = 0; i < variant->count; ++i) {
        TRY(launch(roofs, variant->launched, i, error));
        TRY(vendor_synchronize(roofs->gpu, error));
    }
    *seconds = clock_monotonic() - begin;
    return STATUS_OK;
}

/* clang-format off */
static const struct launch_variant launch_variants[] = {
    {ROOF_LAUNCH_HOST, LAUNCHED_EMPTY, LAUNCHES, "launches of empty kernels into an empty queue",
     false, host_time},
    {ROOF_LAUNCH_LATENCY, LAUNCHED_EMPTY, 10, "empty kernels, each waited for", false,
     latency_time},
    {ROOF_LAUNCH_GAP, LAUNCHED_EMPTY, LAUNCHES, "empty kernels, all queued", false, gap_time},
    {ROOF_LAUNCH_GAP_GRAPH, LAUNCHED_EMPTY, LAUNCHES, "empty kernels, a chain in a graph", true,
     gap_time},
    {ROOF_LAUNCH_GAP_DEPENDENT, LAUNCHED_LINK, LAUNCHES,
     "kernels of 16 blocks, two alternating, each on the other's result, all queued", false,
     gap_time},
    {ROOF_LAUNCH_GAP_DEPENDENT_GRAPH, LAUNCHED_LINK, LAUNCHES,
     "kernels of 16 blocks, two alternating, each on the other's result, in a graph", true,
     gap_time},
};
/* clang-format on */

static const void *launch_row(struct roofs *roofs, int kind, int n)
{
    (void)roofs;
    for (size_t i = 0; n == 0 && i < sizeof launch_variants / sizeof *launch_variants; ++i)
        if (launch_variants[i].roof == (enum roof_id)kind)
            return &launch_variants[i];
    return NULL;
}

static enum status launch_prepare(struct roofs *roofs, int kind, const void *of, int choice,
                                  struct variant *variant, struct error *error)
{
    const struct launch_variant *row = of;
    struct chain chain = {roofs, row};
    (void)kind, (void)choice;
    if (!roofs->launches)
        roofs->launches = calloc(1, sizeof *roofs->launches);
    if (!roofs->launches)
        return error_set(error, STATUS_FAILED, "no memory");
    TRY(roofs_reserve(roofs, &roofs->launches->numbers, 2 * LINK_NUMBERS * sizeof(float), error));
    struct graph **graph = &roofs->launches->graphs[row->launched];
    if (row->graph && !*graph)
        TRY(graph_capture(roofs->gpu, chain_enqueue, &chain, graph, error));
    *variant = (struct variant){.row = row, .iterations = 1, .work = row->count};
    snprintf(variant->text, sizeof variant->text, "%d %s, median", row->count, row->what);
    return STATUS_OK;
}

static enum status launch_time(struct roofs *roofs, const struct variant *variant, double *seconds,
                               struct error *error)
{
    const struct launch_variant *row = variant->row;
    return row->time(roofs, row, seconds, error);
}

static void launch_close(struct roofs *roofs)
{
    struct launches *launches = roofs->launches;
    if (!launches)
        return;
    for (int i = 0; i < LAUNCHED_KINDS; ++i)
        vendor_graph_drop(launches->graphs[i]);
    cudaFree(launches->numbers.data);
    free(launches);
    roofs->launches = NULL;
}

const struct roof_family roofs_launch = {
    .row = launch_row,
    .choices = 1,
    .prepare = launch_prepare,
    .time = launch_time,
    .close = launch_close,
};
