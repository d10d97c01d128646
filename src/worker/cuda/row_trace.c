#include "worker/cuda/row_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cuda/gpu/check.h"
#include "worker/gpu/timing.h"
#include "worker/gpu/vendor.h"
#include "worker/cuda/iteration.h"

/* Clusters are placed as a whole: of them CUPTI tells how many there can be. */
static int64_t resident_blocks(const struct traced_kernel *traced, const struct gpu *gpu)
{
    const struct occupancy_kernel kernel = {
        .threads = traced->block_x * traced->block_y * traced->block_z,
        .registers = traced->registers,
        .static_shared = traced->static_shared,
        .dynamic_shared = traced->dynamic_shared,
        .shared_room = traced->shared_room,
    };
    int64_t blocks = occupancy_blocks(&gpu->limits, &kernel);
    if (traced->cluster > 1)
        return traced->clusters_most > 0 ? traced->cluster * traced->clusters_most : FIELD_MISSING;
    return blocks > 0 ? blocks * gpu->multiprocessors : FIELD_MISSING;
}

static struct kernel kernel_of(const struct traced_kernel *traced, const struct gpu *gpu)
{
    struct kernel kernel;
    fields_clear(kernel_fields, &kernel);
    kernel.count = traced->count;
    kernel.time = traced->time;
    kernel.grid_x = traced->grid_x;
    kernel.grid_y = traced->grid_y;
    kernel.grid_z = traced->grid_z;
    kernel.block_x = traced->block_x;
    kernel.block_y = traced->block_y;
    kernel.block_z = traced->block_z;
    kernel.registers = traced->registers;
    kernel.static_shared = traced->static_shared;
    kernel.dynamic_shared = traced->dynamic_shared;
    kernel.cluster = traced->cluster;
    kernel.resident = resident_blocks(traced, gpu);
    snprintf(kernel.name, sizeof kernel.name, "%s", traced->name);
    return kernel;
}

static enum status record_trace(const struct trace *trace, const struct iteration *iteration,
                                struct record *record, struct error *error)
{
    struct kernel *kernels = malloc(trace->kernel_count * sizeof *kernels);
    if (!kernels)
        return error_set(error, STATUS_FAILED, "no memory for %zu kernels", trace->kernel_count);
    for (size_t i = 0; i < trace->kernel_count; ++i)
        kernels[i] = kernel_of(&trace->kernels[i], iteration->gpu);
    enum status status = record_set_kernels(record, kernels, trace->kernel_count, error);
    free(kernels);
    if (status)
        return status;
    record->launches = (int64_t)trace->launch_count;
    record->busy_time = trace->busy_time;
    record->trace_time = iteration->held ? trace->span : NAN;
    return STATUS_OK;
}

/* To count each of them by itself, perhaps after other works have been traced. */
static enum status launches_keep(const struct trace *trace, struct work *work, struct error *error)
{
    size_t *launches = realloc(work->launches, (trace->launch_count + 1) * sizeof *launches);
    if (!launches)
        return error_set(error, STATUS_FAILED, "no memory for %zu launches", trace->launch_count);
    for (size_t i = 0; i < trace->launch_count; ++i)
        launches[i] = trace->launches[i].kernel;
    work->launches = launches;
    work->launch_count = trace->launch_count;
    return STATUS_OK;
}

void row_release(struct work *work)
{
    free(work->launches);
    work->launches = NULL;
    work->launch_count = 0;
}

static enum status work_trace(struct profiler *profiler, struct gpu *gpu, struct work *work,
                              bool cold, struct record *record, struct error *error)
{
    struct iteration iteration = {.gpu = gpu, .work = work, .cold = cold};
    struct outcome outcome;
    TRY(timing_host_pace(gpu, work, &record->host_time, error));
    TRY(vendor.reserve(gpu, 1, false, error));
    const struct profiled_work traced = iteration_traced(&iteration, record->host_time);
    TRY(profiler_trace(profiler, &traced, &outcome, error));
    const struct trace trace = profiler_last_trace(profiler);
    row_release(work);
    if (outcome.code == TRACED_WELL) {
        TRY(launches_keep(&trace, work, error));
        return record_trace(&trace, &iteration, record, error);
    }
    if (outcome.code != OUTCOME_MISSING)
        fprintf(stderr, "no kernel trace: CUPTI: %s%s\n", outcome.reason,
                outcome.code == TRACED_REFUSED ? "; there will be none from this worker" : "");
    return STATUS_OK;
}

/* ---- what is replayed from a graph ---- */

static bool same_kernel(const struct kernel *a, const struct kernel *b)
{
    return strcmp(a->name, b->name) == 0 && a->count == b->count && a->grid_x == b->grid_x &&
           a->grid_y == b->grid_y && a->grid_z == b->grid_z && a->block_x == b->block_x &&
           a->block_y == b->block_y && a->block_z == b->block_z &&
           a->dynamic_shared == b->dynamic_shared;
}

/* In the same order: counts of launches find their kernel by its place. */
static bool same_kernels(const struct record *a, const struct record *b)
{
    if (a->kernel_count == 0 || a->kernel_count != b->kernel_count || a->launches != b->launches)
        return false;
    for (size_t i = 0; i < a->kernel_count; ++i)
        if (!same_kernel(&a->kernels[i], &b->kernels[i]))
            return false;
    return true;
}

/* The same work in the stream is what will be counted, if it is the same kernels. */
static enum status stream_trace(struct profiler *profiler, struct gpu *gpu, struct work *work,
                                bool cold, const struct record *record, struct error *error)
{
    struct record streamed;
    record_init(&streamed);
    enum status status = work_trace(profiler, gpu, work->stream, cold, &streamed, error);
    work->stream_differs = status != STATUS_OK || !same_kernels(record, &streamed);
    record_clear(&streamed);
    return status;
}

enum status row_trace(struct profiler *profiler, struct gpu *gpu, struct work *work, bool cold,
                      struct record *record, struct error *error)
{
    TRY(work_trace(profiler, gpu, work, cold, record, error));
    return work->stream ? stream_trace(profiler, gpu, work, cold, record, error) : STATUS_OK;
}
