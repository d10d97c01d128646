/* What it costs to launch a kernel: an empty one, so that what is left is the launch. */
#include "worker/cuda/roofs/roofs_launch.h"

#include <stdio.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/timer.h"
#include "base/clock.h"

enum { LAUNCHES = 500 };                /* a stream's queue holds about a thousand */
static const double enqueueing = 10e-3; /* s, more than so many launches take the host */

static enum status launch_all(struct roofs *roofs, int count, struct error *error)
{
    for (int i = 0; i < count; ++i)
        TRY(CUDA(kernel_empty(roofs->gpu->stream)));
    return STATUS_OK;
}

static enum status graph_launch(struct roofs *roofs, int count, struct error *error)
{
    (void)count;
    return CUDA(cudaGraphLaunch(roofs->graph, roofs->gpu->stream));
}

/* The device waits until all are enqueued, as in timing.c: what is left is the gap from one kernel
 * to the next, not the pace of the host. */
static enum status device_time(struct roofs *roofs, int count,
                               enum status (*enqueue)(struct roofs *roofs, int count,
                                                      struct error *error),
                               double *seconds, struct error *error)
{
    const struct gpu *gpu = roofs->gpu;
    TRY(CUDA(kernel_delay(enqueueing, gpu->stream)));
    TRY(CUDA(cudaEventRecord(gpu->timer->events[0], gpu->stream)));
    TRY(enqueue(roofs, count, error));
    TRY(CUDA(cudaEventRecord(gpu->timer->events[1], gpu->stream)));
    TRY(CUDA(cudaEventSynchronize(gpu->timer->events[1])));
    return timer_elapsed(gpu->timer, 0, 1, seconds, error);
}

static enum status gap_time(struct roofs *roofs, int count, double *seconds, struct error *error)
{
    return device_time(roofs, count, launch_all, seconds, error);
}

static enum status graph_time(struct roofs *roofs, int count, double *seconds, struct error *error)
{
    return device_time(roofs, count, graph_launch, seconds, error);
}

/* Into an empty queue, and fewer than it holds: the host never waits. */
static enum status host_time(struct roofs *roofs, int count, double *seconds, struct error *error)
{
    double begin = clock_monotonic();
    TRY(launch_all(roofs, count, error));
    *seconds = clock_monotonic() - begin;
    return CUDA(cudaStreamSynchronize(roofs->gpu->stream));
}

static enum status latency_time(struct roofs *roofs, int count, double *seconds,
                                struct error *error)
{
    double begin = clock_monotonic();
    for (int i = 0; i < count; ++i) {
        TRY(CUDA(kernel_empty(roofs->gpu->stream)));
        TRY(CUDA(cudaStreamSynchronize(roofs->gpu->stream)));
    }
    *seconds = clock_monotonic() - begin;
    return STATUS_OK;
}

/* A chain of empty kernels, captured from the stream. */
static enum status graph_build(struct roofs *roofs, int count, struct error *error)
{
    cudaStream_t stream = roofs->gpu->stream;
    cudaGraph_t graph = NULL;
    if (roofs->graph)
        return STATUS_OK;
    TRY(CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)));
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < count && code == cudaSuccess; ++i)
        code = kernel_empty(stream);
    cudaError_t end = cudaStreamEndCapture(stream, &graph); /* even if a launch failed */
    if (code == cudaSuccess)
        code = end;
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&roofs->graph, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return cuda_check(code, "a graph of empty kernels", error);
}

static const struct launch_method {
    enum roof_id roof;
    int count; /* of launches in a sample */
    const char *what;
    enum status (*open)(struct roofs *roofs, int count, struct error *error); /* NULL: nothing */
    enum status (*time)(struct roofs *roofs, int count, double *seconds, struct error *error);
} launch_methods[] = {
    {ROOF_LAUNCH_HOST, LAUNCHES, "launches of empty kernels into an empty queue", NULL, host_time},
    {ROOF_LAUNCH_LATENCY, 10, "empty kernels, each waited for", NULL, latency_time},
    {ROOF_LAUNCH_GAP, LAUNCHES, "empty kernels, all queued", NULL, gap_time},
    {ROOF_LAUNCH_GAP_GRAPH, LAUNCHES, "empty kernels, a chain in a graph", graph_build, graph_time},
};

static const struct launch_method *launch_find(int kind)
{
    const struct launch_method *method = launch_methods;
    while (method->roof != (enum roof_id)kind)
        ++method;
    return method;
}

static int launch_count(const struct roofs *roofs, int kind)
{
    (void)roofs;
    (void)kind;
    return 1;
}

static enum status launch_prepare(struct roofs *roofs, int kind, int number, struct method *method,
                                  struct error *error)
{
    const struct launch_method *row = launch_find(kind);
    (void)number;
    if (row->open)
        TRY(row->open(roofs, row->count, error));
    *method = (struct method){.row = row, .iterations = 1, .work = row->count};
    snprintf(method->text, sizeof method->text, "%d %s, median", row->count, row->what);
    return STATUS_OK;
}

static enum status launch_time(struct roofs *roofs, const struct method *method, double *seconds,
                               struct error *error)
{
    const struct launch_method *row = method->row;
    return row->time(roofs, row->count, seconds, error);
}

static void launch_close(struct roofs *roofs)
{
    if (roofs->graph)
        cudaGraphExecDestroy(roofs->graph);
    roofs->graph = NULL;
}

const struct roof_family roofs_launch = {
    .count = launch_count,
    .prepare = launch_prepare,
    .time = launch_time,
    .close = launch_close,
};
