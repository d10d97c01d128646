#include "worker/cuda/workloads/conv2d_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/choice.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/workloads/conv2d_calls.h"
#include "worker/cuda/workloads/conv2d_format.h"
#include "worker/cuda/workloads/conv2d_graph.h"
#include "worker/gpu/search.h"

/* cuDNN has two ways to a convolution. Calls have named algorithms (conv2d_calls.h). Operation graphs
 * (conv2d_graph.h) reach more engines, but the numbers of their plans mean something in one version
 * of cuDNN only. "auto" takes the fastest of both, "graph" the fastest plan. */

enum { CANDIDATES_MAX = CONV2D_CALLS_MAX + CONV2D_PLANS_MAX, CALL = -1 };

struct candidate {
    int plan; /* of the graph; CALL: the call below */
    struct conv2d_call call;
};

struct conv2d_work {
    struct work base;
    struct conv2d shape;
    const struct conv2d_format *format;
    struct arena *arena; /* whose memory it has */
    struct conv2d_memory memory;
    bool lent; /* the memory belongs to the caller, who has filled it */
    void *workspace;
    size_t workspace_bytes;
    struct conv2d_calls *calls; /* NULL: none takes this precision */
    struct conv2d_graph *graph; /* NULL: not wanted, or cuDNN has no plan */
    struct candidate candidates[CANDIDATES_MAX];
    int candidate_count, call_count; /* calls come first */
    cudnnStatus_t refusal;           /* of the last call that cuDNN does not take */
    const struct candidate *bound;
    char refused[SEARCH_REFUSED]; /* algorithm_id of wrong results, separated by spaces */
    bool recalled;                /* the candidates are those of an earlier choice's kind alone */
};

/* ---- candidates ---- */

static const char *candidate_name(const struct work *work, int candidate)
{
    const struct conv2d_work *c = (const struct conv2d_work *)work;
    const struct candidate *named = &c->candidates[candidate];
    return named->plan == CALL ? named->call.name : conv2d_graph_plan(c->graph, named->plan)->name;
}

static bool candidate_tensor(const struct conv2d_work *c, const struct candidate *candidate)
{
    return candidate->plan == CALL ? candidate->call.tensor
                                   : conv2d_graph_plan(c->graph, candidate->plan)->tensor;
}

static cudnnMathType_t candidate_math(const struct conv2d_work *c,
                                      const struct candidate *candidate)
{
    if (candidate->plan == CALL)
        return candidate->call.math;
    return candidate_tensor(c, candidate) ? c->format->math : CUDNN_FMA_MATH;
}

/* Of a plan that is built. */
static size_t candidate_workspace(const struct conv2d_work *c, const struct candidate *candidate)
{
    return candidate->plan == CALL ? candidate->call.workspace
                                   : conv2d_graph_plan(c->graph, candidate->plan)->workspace;
}

/* It only grows, because candidates are bound in turn. */
static enum status workspace_reserve(struct conv2d_work *c, size_t bytes, struct error *error)
{
    if (bytes <= c->workspace_bytes)
        return STATUS_OK;
    arena_give(c->arena, c->workspace);
    c->workspace = NULL;
    c->workspace_bytes = 0;
    TRY(arena_take(c->arena, (double)bytes, "the workspace", &c->workspace, error));
    c->workspace_bytes = bytes;
    return STATUS_OK;
}

static enum status candidate_bind(struct gpu *gpu, struct work *work, int candidate,
                                  struct error *error)
{
    struct conv2d_work *c = (struct conv2d_work *)work;
    const struct candidate *chosen = &c->candidates[candidate];
    (void)gpu;
    if (chosen->plan != CALL)
        TRY(conv2d_graph_build(c->graph, chosen->plan, error));
    TRY(workspace_reserve(c, candidate_workspace(c, chosen), error));
    if (chosen->plan != CALL)
        TRY(conv2d_graph_bind(c->graph, chosen->plan, c->memory.x, c->memory.w, c->memory.y,
                              c->workspace, error));
    else
        TRY(conv2d_calls_bind(c->calls, &chosen->call, &c->memory, c->workspace, error));
    c->bound = chosen;
    return STATUS_OK;
}

/* `only`: the plan of that name; NULL: all. */
static enum status plans_find(struct gpu *gpu, struct conv2d_work *c, const char *only,
                              size_t bytes, struct error *error)
{
    const struct conv2d_graph_request request = {
        .cudnn = gpu->cudnn,
        .shelf = gpu->plans,
        .operation = {.shape = &c->shape,
                      .data = c->format->data,
                      .result = c->format->result,
                      .compute = c->format->compute},
        .tensor = c->format->tensor,
        .vector = c->format->vector_allowed,
        .only = only,
        .workspace_limit = bytes,
    };
    TRY(conv2d_graph_create(&request, &c->graph, error));
    for (int i = 0; i < conv2d_graph_plans(c->graph); ++i)
        c->candidates[c->candidate_count++] = (struct candidate){.plan = i};
    return STATUS_OK;
}

static enum status calls_find(struct gpu *gpu, struct conv2d_work *c, const char *name,
                              size_t bytes, struct error *error)
{
    struct conv2d_call found[CONV2D_CALLS_MAX];
    int count;
    TRY(conv2d_calls_find(c->calls, gpu->cudnn, name, &c->memory, bytes, found, &count, &c->refusal,
                          error));
    for (int i = 0; i < count; ++i)
        c->candidates[c->candidate_count++] = (struct candidate){.plan = CALL, .call = found[i]};
    c->call_count = c->candidate_count;
    return STATUS_OK;
}

/* ---- work_ops ---- */

static const struct {
    const char *name;
    enum tensor result;
} passes[] = {
    [CONV2D_FORWARD] = {"forward", TENSOR_OUTPUT},
    [CONV2D_BACKWARD_DATA] = {"backward-data", TENSOR_INPUT},
    [CONV2D_BACKWARD_FILTER] = {"backward-filter", TENSOR_WEIGHT},
};

static void *tensor_of(const struct conv2d_work *c, enum tensor tensor)
{
    void *const memory[TENSOR_BASIC_COUNT] = {
        [TENSOR_INPUT] = c->memory.x, [TENSOR_WEIGHT] = c->memory.w, [TENSOR_OUTPUT] = c->memory.y};
    return memory[tensor];
}

static int64_t tensor_size(const struct conv2d *s, enum tensor tensor)
{
    return tensor == TENSOR_INPUT    ? conv2d_x_size(s)
           : tensor == TENSOR_WEIGHT ? conv2d_w_size(s)
                                     : conv2d_y_size(s);
}

static enum status conv2d_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    struct conv2d_work *c = (struct conv2d_work *)work;
    cudnnStatus_t code = c->bound->plan == CALL ? conv2d_calls_run(c->calls, gpu->cudnn)
                                                : conv2d_graph_run(c->graph);
    return cudnn_check(code, "the convolution", error);
}

/* All bits set is a NaN in every format. */
static enum status conv2d_run(struct gpu *gpu, struct work *work, int64_t samples,
                              struct error *error)
{
    (void)samples;
    struct conv2d_work *c = (struct conv2d_work *)work;
    enum tensor result = passes[c->shape.pass].result;
    size_t bytes =
        (size_t)tensor_size(&c->shape, result) * precision_result(work->precision)->bytes;
    TRY(CUDA(cudaMemsetAsync(tensor_of(c, result), 0xff, bytes, gpu->stream)));
    return conv2d_iterate(gpu, work, error);
}

static const void *conv2d_result(const struct work *work, enum tensor tensor)
{
    return tensor_of((const struct conv2d_work *)work, tensor);
}

static void conv2d_release(struct work *work)
{
    struct conv2d_work *c = (struct conv2d_work *)work;
    conv2d_graph_destroy(c->graph);
    conv2d_calls_destroy(c->calls);
    arena_give(c->arena, c->workspace);
    if (!c->lent) {
        arena_give(c->arena, c->memory.y);
        arena_give(c->arena, c->memory.w);
        arena_give(c->arena, c->memory.x);
    }
    free(c);
}

/* ---- preparation ---- */

static enum status calls_create(struct conv2d_work *c, struct error *error)
{
    if (c->format->graphs_alone)
        return STATUS_OK;
    const struct conv2d_calls_request request = {
        .shape = &c->shape,
        .arena = c->arena,
        .data = c->format->data,
        .compute = c->format->compute,
        .math = c->format->math,
        .tensor = c->format->tensor,
        .vector = c->format->vector_allowed,
    };
    return conv2d_calls_create(&request, &c->calls, error);
}

static enum status tensors_create(struct conv2d_work *c, struct error *error)
{
    double bytes = (double)precision_info[c->base.precision].bytes;
    const struct conv2d *s = &c->shape;
    TRY(arena_take(c->arena, bytes * (double)conv2d_x_size(s), "the input", &c->memory.x, error));
    TRY(arena_take(c->arena, bytes * (double)conv2d_w_size(s), "the weights", &c->memory.w, error));
    if (s->pass == CONV2D_FORWARD)
        bytes = (double)precision_result(c->base.precision)->bytes;
    return arena_take(c->arena, bytes * (double)conv2d_y_size(s), "the output", &c->memory.y,
                      error);
}

static enum status tensors_fill(struct gpu *gpu, struct conv2d_work *c, const struct config *config,
                                uint64_t seed, struct error *error)
{
    for (int i = 0; i < TENSOR_BASIC_COUNT; ++i) {
        enum tensor tensor = (enum tensor)i;
        struct fill fill = config_fill(config, seed, tensor);
        if (tensor != passes[c->shape.pass].result)
            TRY(CUDA(kernel_fill(c->base.precision, tensor_of(c, tensor),
                                 tensor_size(&c->shape, tensor), fill, 0, gpu->stream)));
    }
    return STATUS_OK;
}

/* It has room for algorithms that need much, but no more than a framework would give. */
static enum status workspace_limit(const struct arena *arena, size_t *bytes, struct error *error)
{
    const size_t limit = (size_t)4 << 30;
    double available;
    TRY(arena_available(arena, &available, error));
    *bytes = available / 4 < (double)limit ? (size_t)(available / 4) : limit;
    return STATUS_OK;
}

/* Calls come first, so that what has a name is known by it. Plans are in the order of cuDNN's own
 * heuristic. */
static enum status candidates_find(struct gpu *gpu, struct conv2d_work *c, struct error *error)
{
    const char *algorithm = c->shape.algorithm;
    bool automatic = strcmp(algorithm, "auto") == 0, graph = strcmp(algorithm, "graph") == 0;
    size_t bytes;
    TRY(workspace_limit(c->arena, &bytes, error));
    enum status status = STATUS_OK;
    if (c->calls && !graph)
        status = calls_find(gpu, c, automatic ? NULL : algorithm, bytes, error);
    if ((status == STATUS_OK || status == STATUS_UNSUPPORTED) && (automatic || graph))
        status = plans_find(gpu, c, NULL, bytes, error);
    bool enough = status == STATUS_UNSUPPORTED && c->candidate_count > 0;
    return enough ? STATUS_OK : status;
}

static bool is_call(const struct conv2d_work *c, const char *algorithm)
{
    return c->calls && conv2d_calls_has(c->calls, algorithm);
}

static enum status algorithm_refuse(const struct conv2d_work *c, const char *reason,
                                    struct error *error)
{
    char names[CONV2D_CALL_NAMES] = "";
    if (c->calls)
        conv2d_calls_list(c->calls, names);
    return error_set(error, STATUS_UNSUPPORTED, "algorithm %s in %s: %s; %s has auto, graph%s%s",
                     c->shape.algorithm, precision_info[c->shape.precision].name, reason,
                     passes[c->shape.pass].name, *names ? ", " : "", names);
}

static enum status algorithm_check(const struct conv2d_work *c, struct error *error)
{
    const char *algorithm = c->shape.algorithm;
    bool known =
        strcmp(algorithm, "auto") == 0 || strcmp(algorithm, "graph") == 0 || is_call(c, algorithm);
    return known ? STATUS_OK : algorithm_refuse(c, "not in this pass", error);
}

static void candidates_forget(struct conv2d_work *c)
{
    conv2d_graph_destroy(c->graph);
    c->graph = NULL;
    c->bound = NULL;
    c->candidate_count = c->call_count = 0;
    c->recalled = false;
}

static struct search search_of(struct gpu *gpu, struct conv2d_work *c)
{
    return (struct search){
        .gpu = gpu,
        .work = &c->base,
        .cold = c->shape.cold,
        .count = c->candidate_count,
        .ordered = c->call_count < c->candidate_count ? c->call_count : 0,
        .bind = candidate_bind,
        .name = candidate_name,
        .refused = c->refused,
    };
}

static void algorithm_describe(const struct conv2d_work *c, int chosen, struct record *record)
{
    snprintf(record->algorithm, sizeof record->algorithm, "%s", candidate_name(&c->base, chosen));
    snprintf(record->math, sizeof record->math, "%s", cudnn_math_name[candidate_math(c, c->bound)]);
    record->unit = candidate_tensor(c, c->bound) ? UNIT_TENSOR : UNIT_VECTOR;
    record->workspace = (double)candidate_workspace(c, c->bound);
}

/* What is offered is looked for among calls alone, or is a plan that its name makes. */
static enum status offer_find(struct gpu *gpu, struct conv2d_work *c, const char *algorithm,
                              struct error *error)
{
    const char *named = strcmp(c->shape.algorithm, "auto") == 0 ? NULL : c->shape.algorithm;
    size_t bytes;
    TRY(workspace_limit(c->arena, &bytes, error));
    return is_call(c, algorithm) ? calls_find(gpu, c, named, bytes, error)
                                 : plans_find(gpu, c, algorithm, bytes, error);
}

/* It is no failure if what is offered cannot be had: then c->recalled stays false. */
static enum status algorithm_recall(struct gpu *gpu, struct conv2d_work *c, struct record *record,
                                    struct error *error)
{
    enum status status = STATUS_OK;
    int chosen = 0;
    if (record->offer)
        status = offer_find(gpu, c, record->offer->algorithm, error);
    if (status == STATUS_OK && record->offer) {
        const struct search search = search_of(gpu, c);
        c->recalled = search_recall(&search, &chosen, record, &status, error);
    }
    record->offer = NULL;
    if (c->recalled)
        algorithm_describe(c, chosen, record);
    else
        candidates_forget(c);
    return status == STATUS_DEVICE ? status : STATUS_OK;
}

static enum status algorithm_choose(struct gpu *gpu, struct conv2d_work *c, struct record *record,
                                    struct error *error)
{
    const struct search search = search_of(gpu, c);
    int chosen;
    if (c->candidate_count == 0)
        return algorithm_refuse(c,
                                c->refusal ? cudnnGetErrorString(c->refusal)
                                           : "cuDNN has it in another precision's math only",
                                error);
    TRY(search_run(&search, &chosen, record, error));
    algorithm_describe(c, chosen, record);
    return STATUS_OK;
}

/* The whole search again, without these kernels under any name. */
static enum status conv2d_reject(struct gpu *gpu, struct work *work, struct record *record,
                                 struct error *error)
{
    struct conv2d_work *c = (struct conv2d_work *)work;
    TRY(search_refuse(c->refused, c->recalled, record, error));
    if (c->recalled) {
        candidates_forget(c);
        TRY(candidates_find(gpu, c, error));
    }
    return algorithm_choose(gpu, c, record, error);
}

static const struct work_ops conv2d_ops = {
    .iterate = conv2d_iterate,
    .run = conv2d_run,
    .result = conv2d_result,
    .reject = conv2d_reject,
    .release = conv2d_release,
};

static enum status work_prepare(struct gpu *gpu, struct conv2d_work *c, const struct config *config,
                                uint64_t seed, struct record *record, struct error *error)
{
    TRY(calls_create(c, error));
    TRY(algorithm_check(c, error));
    if (!c->lent) {
        TRY(tensors_create(c, error));
        TRY(tensors_fill(gpu, c, config, seed, error));
    }
    TRY(algorithm_recall(gpu, c, record, error));
    if (c->recalled)
        return STATUS_OK;
    TRY(candidates_find(gpu, c, error));
    return algorithm_choose(gpu, c, record, error);
}

enum status conv2d_part_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                const struct conv2d_memory *lent, struct work **work,
                                struct record *record, struct error *error)
{
    struct conv2d_work *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(error, STATUS_FAILED, "no memory");
    c->base.ops = &conv2d_ops;
    c->arena = gpu->arena;
    c->shape = conv2d_from(config);
    c->base.precision = c->shape.precision;
    c->format = &conv2d_formats[c->shape.precision];
    c->lent = lent != NULL;
    if (lent)
        c->memory = *lent;
    enum status status = work_prepare(gpu, c, config, seed, record, error);
    if (status) {
        conv2d_release(&c->base);
        return status;
    }
    *work = &c->base;
    return STATUS_OK;
}

bool conv2d_part_recalled(const struct work *work)
{
    return ((const struct conv2d_work *)work)->recalled;
}
