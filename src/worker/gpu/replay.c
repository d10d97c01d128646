#include "worker/gpu/replay.h"

#include <stdlib.h>

#include "worker/cuda/gpu/check.h"

struct replay {
    struct work base;
    struct work_ops ops; /* those that the work in the stream has */
    cudaGraphExec_t executable;
};

static struct work *stream_of(const struct work *work)
{
    return work->stream;
}

/* ---- capturing ---- */

typedef enum status enqueue_function(struct gpu *gpu, struct work *work, int64_t samples,
                                     struct error *error);

static enum status iteration_enqueue(struct gpu *gpu, struct work *work, int64_t samples,
                                     struct error *error)
{
    (void)samples;
    return work->ops->iterate(gpu, work, error);
}

/* A capture that was begun is ended whatever happens, and leaves no error behind. */
static enum status captured(struct gpu *gpu, struct work *work, enqueue_function *enqueue,
                            int64_t samples, cudaGraph_t *graph, struct error *error)
{
    TRY(CUDA(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeRelaxed)));
    enum status status = enqueue(gpu, work, samples, error);
    cudaError_t ended = cudaStreamEndCapture(gpu->stream, graph);
    (void)cudaGetLastError();
    if (status == STATUS_DEVICE)
        return status;
    if (status)
        error_prefix(error, "it cannot be captured in a graph");
    else if (ended != cudaSuccess || !*graph)
        error_set(error, STATUS_UNSUPPORTED, "it cannot be captured in a graph: %s",
                  ended != cudaSuccess ? cudaGetErrorString(ended) : "nothing was captured");
    else
        return STATUS_OK;
    return STATUS_UNSUPPORTED;
}

static enum status graph_make(struct gpu *gpu, struct work *work, enqueue_function *enqueue,
                              int64_t samples, cudaGraphExec_t *executable, struct error *error)
{
    cudaGraph_t graph = NULL;
    enum status status = captured(gpu, work, enqueue, samples, &graph, error);
    if (status == STATUS_OK)
        status = CUDA(cudaGraphInstantiate(executable, graph, 0));
    if (graph)
        cudaGraphDestroy(graph);
    return status;
}

/* ---- work_ops ---- */

static enum status replay_reset(struct gpu *gpu, struct work *work, struct error *error)
{
    return stream_of(work)->ops->reset(gpu, stream_of(work), error);
}

static enum status replay_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct replay *replay = (const struct replay *)work;
    return CUDA(cudaGraphLaunch(replay->executable, gpu->stream));
}

static enum status run_enqueue(struct gpu *gpu, struct work *work, int64_t samples,
                               struct error *error)
{
    return work->ops->run(gpu, work, samples, error);
}

/* A graph that runs must not be destroyed. */
static enum status replay_run(struct gpu *gpu, struct work *work, int64_t samples,
                              struct error *error)
{
    cudaGraphExec_t executable = NULL;
    TRY(graph_make(gpu, stream_of(work), run_enqueue, samples, &executable, error));
    enum status status = CUDA(cudaGraphLaunch(executable, gpu->stream));
    if (status == STATUS_OK)
        status = CUDA(cudaStreamSynchronize(gpu->stream));
    cudaGraphExecDestroy(executable);
    return status;
}

static const void *replay_result(const struct work *work, enum tensor tensor)
{
    return stream_of(work)->ops->result(stream_of(work), tensor);
}

static int64_t replay_element(const struct work *work, enum tensor tensor, int64_t offset)
{
    return stream_of(work)->ops->element(stream_of(work), tensor, offset);
}

static enum precision replay_stored(const struct work *work, enum tensor tensor)
{
    return stream_of(work)->ops->stored(stream_of(work), tensor);
}

static enum status recapture(struct gpu *gpu, struct replay *replay, struct error *error)
{
    if (replay->executable)
        cudaGraphExecDestroy(replay->executable);
    replay->executable = NULL;
    return graph_make(gpu, stream_of(&replay->base), iteration_enqueue, 0, &replay->executable,
                      error);
}

static enum status replay_reject(struct gpu *gpu, struct work *work, struct record *record,
                                 struct error *error)
{
    TRY(stream_of(work)->ops->reject(gpu, stream_of(work), record, error));
    return recapture(gpu, (struct replay *)work, error);
}

static void replay_release(struct work *work)
{
    struct replay *replay = (struct replay *)work;
    struct work *stream = stream_of(work);
    if (replay->executable)
        cudaGraphExecDestroy(replay->executable);
    if (stream) {
        free(stream->launches);
        stream->ops->release(stream);
    }
    free(replay);
}

enum status replay_create(struct gpu *gpu, struct work *stream, struct work **work,
                          struct error *error)
{
    struct replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return error_set(error, STATUS_FAILED, "no memory");
    replay->ops = (struct work_ops){
        .reset = stream->ops->reset ? replay_reset : NULL,
        .iterate = replay_iterate,
        .run = replay_run,
        .result = replay_result,
        .element = stream->ops->element ? replay_element : NULL,
        .stored = stream->ops->stored ? replay_stored : NULL,
        .reject = stream->ops->reject ? replay_reject : NULL,
        .release = replay_release,
    };
    replay->base.ops = &replay->ops;
    replay->base.precision = stream->precision;
    replay->base.sparse = stream->sparse;
    replay->base.stream = stream;
    enum status status = recapture(gpu, replay, error);
    if (status) {
        replay->base.stream = NULL;
        replay_release(&replay->base);
        return status;
    }
    *work = &replay->base;
    return STATUS_OK;
}
