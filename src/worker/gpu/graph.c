#include "worker/gpu/graph.h"

#include <stdlib.h>

/* ---- capturing ---- */

/* During a capture the host cannot wait for the device, so a vendor reports any failure as a lost
 * device. After the capture a wait shows whether the device is lost. */
static enum status captured(struct gpu *gpu, gpu_enqueue *enqueue, void *argument,
                            struct graph **graph, struct error *error)
{
    struct graph *made = NULL;
    struct error refusal;
    TRY(vendor_capture_begin(gpu, error));
    enum status status = enqueue(gpu, argument, error);
    enum status ended = vendor_capture_end(gpu, &made, &refusal);
    if (status == STATUS_OK && ended == STATUS_OK) {
        *graph = made;
        return STATUS_OK;
    }
    vendor_graph_drop(made);
    if (status == STATUS_DEVICE && vendor_synchronize(gpu, &refusal) == STATUS_DEVICE)
        return status;
    if (status == STATUS_OK)
        *error = refusal;
    return error_prefix(error, STATUS_UNSUPPORTED, "it cannot be captured in a graph");
}

enum status graph_capture(struct gpu *gpu, gpu_enqueue *enqueue, void *argument,
                          struct graph **graph, struct error *error)
{
    struct graph *made = NULL;
    TRY(captured(gpu, enqueue, argument, &made, error));
    enum status status = vendor_graph_ready(made, error);
    if (status)
        vendor_graph_drop(made);
    else
        *graph = made;
    return status;
}

struct iterations {
    struct work *work;
    int count;
};

static enum status iterations_enqueue(struct gpu *gpu, void *argument, struct error *error)
{
    const struct iterations *i = argument;
    for (int done = 0; done < i->count; ++done)
        TRY(i->work->ops->iterate(gpu, i->work, error));
    return STATUS_OK;
}

enum status graph_of_work(struct gpu *gpu, struct work *work, int iterations, struct graph **graph,
                          struct error *error)
{
    struct iterations i = {work, iterations};
    return graph_capture(gpu, iterations_enqueue, &i, graph, error);
}

/* A refused capture is no failure: the library may run the work without a capture. */
enum status graph_kernels(struct gpu *gpu, struct work *work, graph_kernel_visit *visit,
                          void *argument, bool *known, struct error *error)
{
    struct iterations once = {work, 1};
    struct graph *graph = NULL;
    *known = false;
    enum status status = captured(gpu, iterations_enqueue, &once, &graph, error);
    if (status != STATUS_OK && status != STATUS_UNSUPPORTED)
        return status;
    *known = status == STATUS_OK && vendor_graph_kernels(graph, visit, argument);
    vendor_graph_drop(graph);
    return STATUS_OK;
}

/* ---- replay ---- */

struct replay {
    struct work base;
    struct work_ops ops; /* optional functions are NULL if the stream's work has none */
    struct graph *graph;
};

static enum status replay_reset(struct gpu *gpu, struct work *work, struct error *error)
{
    return work->stream->ops->reset(gpu, work->stream, error);
}

static enum status replay_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    return vendor_graph_launch(gpu, ((const struct replay *)work)->graph, error);
}

struct evaluation {
    struct work *work;
    int64_t samples;
};

static enum status evaluation_enqueue(struct gpu *gpu, void *argument, struct error *error)
{
    const struct evaluation *e = argument;
    return e->work->ops->run(gpu, e->work, e->samples, error);
}

static enum status replay_run(struct gpu *gpu, struct work *work, int64_t samples,
                              struct error *error)
{
    struct evaluation evaluation = {work->stream, samples};
    struct graph *graph = NULL;
    TRY(graph_capture(gpu, evaluation_enqueue, &evaluation, &graph, error));
    enum status status = vendor_graph_launch(gpu, graph, error);
    if (status == STATUS_OK)
        status = vendor_synchronize(gpu, error);
    vendor_graph_drop(graph);
    return status;
}

static enum status recapture(struct gpu *gpu, struct replay *replay, struct error *error)
{
    vendor_graph_drop(replay->graph);
    replay->graph = NULL;
    return graph_of_work(gpu, replay->base.stream, 1, &replay->graph, error);
}

static enum status replay_reject(struct gpu *gpu, struct work *work, struct record *record,
                                 struct error *error)
{
    TRY(work->stream->ops->reject(gpu, work->stream, record, error));
    return recapture(gpu, (struct replay *)work, error);
}

static void replay_release(struct work *work)
{
    struct replay *replay = (struct replay *)work;
    vendor_graph_drop(replay->graph);
    if (work->stream) {
        free(work->stream->launches);
        work->stream->ops->release(work->stream);
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
        .reject = stream->ops->reject ? replay_reject : NULL,
        .release = replay_release,
    };
    replay->base.ops = &replay->ops;
    replay->base.precision = stream->precision;
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
