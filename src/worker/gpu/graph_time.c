#include "worker/gpu/graph_time.h"

#include <math.h>

#include "base/stats.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/timer.h"

/* As many as make the launch of the graph and the timer's own time small. */
static int graph_iterations(const struct work *work)
{
    const double enough = 4e-4; /* s */
    enum { LEAST = 2, MOST = 50 };
    double iteration = work->pace.iteration_time;
    return iteration > 0.0 ? (int)fmin(MOST, fmax(LEAST, ceil(enough / iteration))) : LEAST;
}

/* Leaves *executable NULL if the work cannot be captured. */
static enum status graph_make(struct gpu *gpu, struct work *work, int iterations,
                              cudaGraphExec_t *executable, struct error *error)
{
    cudaGraph_t graph = NULL;
    struct error refusal;
    TRY(CUDA(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeRelaxed)));
    enum status status = STATUS_OK;
    for (int i = 0; i < iterations && status == STATUS_OK; ++i)
        status = work->ops->iterate(gpu, work, &refusal);
    cudaError_t ended = cudaStreamEndCapture(gpu->stream, &graph);
    if (status == STATUS_OK && ended == cudaSuccess && graph &&
        cudaGraphInstantiate(executable, graph, 0) != cudaSuccess)
        *executable = NULL;
    if (graph)
        cudaGraphDestroy(graph);
    cudaGetLastError();
    return STATUS_OK;
}

static enum status launch_enqueue(struct gpu *gpu, cudaGraphExec_t executable, struct error *error)
{
    TRY(CUDA(cudaEventRecord(gpu->timer->events[0], gpu->stream)));
    TRY(CUDA(cudaGraphLaunch(executable, gpu->stream)));
    return CUDA(cudaEventRecord(gpu->timer->events[1], gpu->stream));
}

/* One launch: the device is held until it is enqueued. A graph of more nodes than the queue takes lets the
 * host wait for the device, and then a long limit would be lost time. */
static enum status graph_launch(struct gpu *gpu, cudaGraphExec_t executable, double *seconds,
                                struct error *error)
{
    const double limit = 10e-3; /* s */
    TRY(timer_hold(gpu->timer, limit, error));
    enum status status = launch_enqueue(gpu, executable, error);
    timer_release(gpu->timer);
    if (status)
        return status;
    TRY(CUDA(cudaStreamSynchronize(gpu->stream)));
    return timer_elapsed(gpu->timer, 0, 1, seconds, error);
}

/* A first launch brings the graph to the device. */
static enum status graph_run(struct gpu *gpu, cudaGraphExec_t executable, double *seconds,
                             struct error *error)
{
    enum { LAUNCHES = 4 };
    double times[LAUNCHES];
    struct stats stats;
    TRY(timer_reserve(gpu->timer, 2, error));
    TRY(CUDA(cudaGraphLaunch(executable, gpu->stream)));
    for (int i = 0; i < LAUNCHES; ++i)
        TRY(graph_launch(gpu, executable, &times[i], error));
    TRY(stats_compute(times, LAUNCHES, &stats, error));
    *seconds = stats.median;
    return STATUS_OK;
}

enum status graph_time_measure(struct gpu *gpu, struct work *work, bool cold, double *seconds,
                               struct error *error)
{
    cudaGraphExec_t executable = NULL;
    int iterations = graph_iterations(work);
    *seconds = NAN;
    if (cold || work->ops->reset)
        return STATUS_OK;
    TRY(graph_make(gpu, work, iterations, &executable, error));
    if (!executable)
        return STATUS_OK;
    double all;
    enum status status = graph_run(gpu, executable, &all, error);
    cudaGraphExecDestroy(executable);
    if (status == STATUS_OK)
        *seconds = all / iterations;
    return status;
}
