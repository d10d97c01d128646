/* Launches of small kernels. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/timer.h"
#include "worker/cuda/roofs/family.h"

enum { LAUNCHES = 500 }; /* a stream's queue holds about a thousand */
/* s, that the device waits while the host enqueues: 10 us a launch, more than they take; later so many times what
 * they took. */
static const double enqueueing = 5e-3, patience = 2.0;

/* 16 blocks: a step of a small recurrent network has about as many. */
enum { LINK_NUMBERS = 2048 };

/* What is launched, again and again; a graph holds a chain of it. */
enum launched { LAUNCHED_EMPTY, LAUNCHED_LINK, LAUNCHED_KINDS };
struct launches {
    struct roofs_buffer numbers; /* two times LINK_NUMBERS */
    cudaGraphExec_t graphs[LAUNCHED_KINDS];
    double enqueueing[2]; /* s, that the host takes, of launches and of graphs; 0: not known */
};

static cudaError_t launch(struct roofs *roofs, enum launched what, int number)
{
    cudaStream_t stream = roofs->gpu->stream;
    if (what == LAUNCHED_EMPTY)
        return kernel_empty(stream);
    float *numbers = roofs->launches->numbers.data;
    return kernel_link(number, numbers, numbers + LINK_NUMBERS, LINK_NUMBERS, stream);
}

static cudaError_t launch_all(struct roofs *roofs, enum launched what, int count)
{
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < count && code == cudaSuccess; ++i)
        code = launch(roofs, what, i);
    return code;
}

static cudaError_t graph_launch(struct roofs *roofs, enum launched what, int count)
{
    (void)count;
    return cudaGraphLaunch(roofs->launches->graphs[what], roofs->gpu->stream);
}

/* The device waits until all are enqueued, as in timing.c: what is left is the time from one kernel to
 * the next, not the pace of the host. */
static enum status device_time(struct roofs *roofs, enum launched what, int count,
                               cudaError_t (*enqueue)(struct roofs *roofs, enum launched what,
                                                      int count),
                               double *seconds, struct error *error)
{
    const struct gpu *gpu = roofs->gpu;
    double *known = &roofs->launches->enqueueing[enqueue == graph_launch];
    TRY(CUDA(kernel_delay(*known > 0.0 ? patience * *known : enqueueing, gpu->stream)));
    const double begin = clock_monotonic();
    TRY(CUDA(cudaEventRecord(gpu->timer->events[0], gpu->stream)));
    TRY(CUDA(enqueue(roofs, what, count)));
    TRY(CUDA(cudaEventRecord(gpu->timer->events[1], gpu->stream)));
    *known = fmin(fmax(*known / 2.0, clock_monotonic() - begin), enqueueing / patience);
    TRY(CUDA(cudaEventSynchronize(gpu->timer->events[1])));
    return timer_elapsed(gpu->timer, 0, 1, seconds, error);
}

static enum status gap_time(struct roofs *roofs, enum launched what, int count, double *seconds,
                            struct error *error)
{
    return device_time(roofs, what, count, launch_all, seconds, error);
}

static enum status graph_time(struct roofs *roofs, enum launched what, int count, double *seconds,
                              struct error *error)
{
    return device_time(roofs, what, count, graph_launch, seconds, error);
}

/* Into an empty queue, and fewer than it holds: the host never waits. */
static enum status host_time(struct roofs *roofs, enum launched what, int count, double *seconds,
                             struct error *error)
{
    double begin = clock_monotonic();
    TRY(CUDA(launch_all(roofs, what, count)));
    *seconds = clock_monotonic() - begin;
    return CUDA(cudaStreamSynchronize(roofs->gpu->stream));
}

static enum status latency_time(struct roofs *roofs, enum launched what, int count, double *seconds,
                                struct error *error)
{
    double begin = clock_monotonic();
    for (int i = 0; i < count; ++i) {
        TRY(CUDA(launch(roofs, what, i)));
        TRY(CUDA(cudaStreamSynchronize(roofs->gpu->stream)));
    }
    *seconds = clock_monotonic() - begin;
    return STATUS_OK;
}

/* A chain, captured from the stream. */
static enum status graph_build(struct roofs *roofs, enum launched what, int count,
                               struct error *error)
{
    cudaStream_t stream = roofs->gpu->stream;
    cudaGraphExec_t *built = &roofs->launches->graphs[what];
    cudaGraph_t graph = NULL;
    if (*built)
        return STATUS_OK;
    TRY(CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)));
    cudaError_t code = launch_all(roofs, what, count);
    cudaError_t end = cudaStreamEndCapture(stream, &graph); /* even if a launch failed */
    if (code == cudaSuccess)
        code = end;
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(built, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return cuda_check(code, "a graph of small kernels", error);
}

static const struct launch_method {
    enum roof_id roof;
    enum launched launched;
    int count; /* of launches in a sample */
    const char *what;
    bool graph;
    enum status (*time)(struct roofs *roofs, enum launched what, int count, double *seconds,
                        struct error *error);
} launch_methods[] = {
    {ROOF_LAUNCH_HOST, LAUNCHED_EMPTY, LAUNCHES, "launches of empty kernels into an empty queue",
     false, host_time},
    {ROOF_LAUNCH_LATENCY, LAUNCHED_EMPTY, 10, "empty kernels, each waited for", false,
     latency_time},
    {ROOF_LAUNCH_GAP, LAUNCHED_EMPTY, LAUNCHES, "empty kernels, all queued", false, gap_time},
    {ROOF_LAUNCH_GAP_GRAPH, LAUNCHED_EMPTY, LAUNCHES, "empty kernels, a chain in a graph", true,
     graph_time},
    {ROOF_LAUNCH_GAP_DEPENDENT, LAUNCHED_LINK, LAUNCHES,
     "kernels of 16 blocks, two by turns, each on the other's result, all queued", false, gap_time},
    {ROOF_LAUNCH_GAP_DEPENDENT_GRAPH, LAUNCHED_LINK, LAUNCHES,
     "kernels of 16 blocks, two by turns, each on the other's result, in a graph", true,
     graph_time},
};

/* NULL: the kind is none. */
static const struct launch_method *launch_find(int kind)
{
    for (size_t i = 0; i < sizeof launch_methods / sizeof *launch_methods; ++i)
        if (launch_methods[i].roof == (enum roof_id)kind)
            return &launch_methods[i];
    return NULL;
}

static int launch_count(const struct roofs *roofs, int kind)
{
    (void)roofs;
    return launch_find(kind) != NULL;
}

static enum status launches_open(struct roofs *roofs, struct error *error)
{
    if (!roofs->launches)
        roofs->launches = calloc(1, sizeof *roofs->launches);
    if (!roofs->launches)
        return error_set(error, STATUS_FAILED, "no memory");
    return roofs_reserve(roofs, &roofs->launches->numbers, 2 * LINK_NUMBERS * sizeof(float), error);
}

static enum status launch_prepare(struct roofs *roofs, int kind, int number, struct method *method,
                                  struct error *error)
{
    const struct launch_method *row = launch_find(kind);
    (void)number;
    TRY(launches_open(roofs, error));
    if (row->graph)
        TRY(graph_build(roofs, row->launched, row->count, error));
    *method = (struct method){.row = row, .iterations = 1, .work = row->count};
    snprintf(method->text, sizeof method->text, "%d %s, median", row->count, row->what);
    return STATUS_OK;
}

static enum status launch_time(struct roofs *roofs, const struct method *method, double *seconds,
                               struct error *error)
{
    const struct launch_method *row = method->row;
    return row->time(roofs, row->launched, row->count, seconds, error);
}

static void launch_close(struct roofs *roofs)
{
    struct launches *launches = roofs->launches;
    for (int i = 0; launches && i < LAUNCHED_KINDS; ++i)
        if (launches->graphs[i])
            cudaGraphExecDestroy(launches->graphs[i]);
    if (launches)
        cudaFree(launches->numbers.data);
    free(launches);
    roofs->launches = NULL;
}

const struct roof_family roofs_launch = {
    .count = launch_count,
    .prepare = launch_prepare,
    .time = launch_time,
    .close = launch_close,
};
