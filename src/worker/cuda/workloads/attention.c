#include "worker/cuda/workloads/workloads.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "model/workloads/attention.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/workloads/attention_graph.h"
#include "worker/cuda/workloads/product.h"
#include "worker/gpu/search.h"

static const size_t workspace_most = (size_t)256 << 20; /* bytes */

struct attention_work {
    struct work base;
    struct attention shape;
    struct arena *arena;         /* whose memory it has */
    void *tensors[TENSOR_COUNT]; /* owned */
    /* cudnn */
    struct cudnn_graph *graph;
    void *workspace;
    float scale, hidden; /* passed by value when the graph runs */
    /* plain: scores = q k^T, their softmax in place, o = scores v */
    struct product first, second;
    void *scores;
};

static double tensor_bytes(const struct attention_work *a, enum tensor tensor)
{
    return (double)attention_size(&a->shape, tensor) *
           (double)precision_info[a->shape.precision].bytes;
}

/* ---- work_ops ---- */

static enum status cudnn_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)gpu;
    return CUDNN(cudnn_graph_run(((const struct attention_work *)work)->graph));
}

static enum status plain_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct attention_work *a = (const struct attention_work *)work;
    const struct attention *s = &a->shape;
    TRY(product_run(gpu, &a->first, a->tensors[TENSOR_WEIGHT], a->tensors[TENSOR_INPUT], a->scores,
                    error));
    TRY(CUDA(kernel_softmax(s->precision, a->scores, a->scores, s->batch * s->heads * s->sequence,
                            s->keys, s->causal ? s->sequence : 0, gpu->stream)));
    return product_run(gpu, &a->second, a->tensors[TENSOR_VALUE], a->scores,
                       a->tensors[TENSOR_OUTPUT], error);
}

static double scores_bytes(const struct attention_work *a)
{
    const struct attention *s = &a->shape;
    return (double)s->batch * (double)s->heads * (double)s->sequence * (double)s->keys *
           (double)precision_info[s->precision].bytes;
}

/* All bits set is a NaN in every format. */
static enum status attention_run(struct gpu *gpu, struct work *work, int64_t samples,
                                 struct error *error)
{
    const struct attention_work *a = (const struct attention_work *)work;
    (void)samples;
    if (a->scores)
        TRY(CUDA(cudaMemsetAsync(a->scores, 0xff, (size_t)scores_bytes(a), gpu->stream)));
    TRY(CUDA(cudaMemsetAsync(a->tensors[TENSOR_OUTPUT], 0xff,
                             (size_t)tensor_bytes(a, TENSOR_OUTPUT), gpu->stream)));
    return work->ops->iterate(gpu, work, error);
}

static const void *attention_result(const struct work *work, enum tensor tensor)
{
    return ((const struct attention_work *)work)->tensors[tensor];
}

static void attention_release(struct work *work)
{
    struct attention_work *a = (struct attention_work *)work;
    cudnn_graph_destroy(a->graph);
    product_close(&a->second);
    product_close(&a->first);
    arena_give(a->arena, a->scores);
    arena_give(a->arena, a->workspace);
    for (int i = 0; i < TENSOR_COUNT; ++i)
        arena_give(a->arena, a->tensors[i]);
    free(a);
}

static const struct work_ops cudnn_ops = {
    .iterate = cudnn_iterate,
    .run = attention_run,
    .result = attention_result,
    .release = attention_release,
};
static const struct work_ops plain_ops = {
    .iterate = plain_iterate,
    .run = attention_run,
    .result = attention_result,
    .release = attention_release,
};

/* ---- preparation ---- */

static enum status tensors_create(struct gpu *gpu, struct attention_work *a,
                                  const struct config *config, uint64_t seed, struct error *error)
{
    static const char *const names[TENSOR_COUNT] = {
        [TENSOR_INPUT] = "the queries",
        [TENSOR_WEIGHT] = "the keys",
        [TENSOR_VALUE] = "the values",
        [TENSOR_OUTPUT] = "the outputs",
    };
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        int64_t size = attention_size(&a->shape, (enum tensor)i);
        const struct fill fill = config_fill(config, seed, (enum tensor)i);
        if (size == 0)
            continue;
        TRY(arena_take(a->arena, tensor_bytes(a, (enum tensor)i), names[i], &a->tensors[i], error));
        if (i != TENSOR_OUTPUT)
            TRY(CUDA(kernel_fill(a->shape.precision, a->tensors[i], size, fill, 0, gpu->stream)));
    }
    return STATUS_OK;
}

/* What both implementations need. */
static enum status attention_create(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    const struct work_ops *ops, struct attention_work **created,
                                    struct error *error)
{
    struct attention_work *a = calloc(1, sizeof *a);
    if (!a)
        return error_set(error, STATUS_FAILED, "no memory");
    a->base.ops = ops;
    a->arena = gpu->arena;
    a->shape = attention_from(config);
    a->base.precision = a->shape.precision;
    a->scale = (float)attention_scale(&a->shape);
    a->hidden = -FLT_MAX;
    enum status status = tensors_create(gpu, a, config, seed, error);
    if (status) {
        attention_release(&a->base);
        return status;
    }
    *created = a;
    return STATUS_OK;
}

/* ---- fused ---- */

bool attention_cudnn_takes(const struct config *config)
{
    enum precision precision = config_precision(config);
    return precision == PRECISION_FP16 || precision == PRECISION_BF16;
}

static enum status fused_check(const struct gpu *gpu, const struct config *config,
                               struct error *error)
{
    const struct attention s = attention_from(config);
    const int least = 80, step = 8;
    if (!attention_cudnn_takes(config))
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's fused attention is of fp16 and bf16; in %s use "
                         "implementation=plain",
                         precision_info[s.precision].name);
    if (gpu->capability < least)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's fused attention needs compute capability 8.0; this GPU has %d.%d",
                         gpu->capability / 10, gpu->capability % 10);
    if (s.head_size % step != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's fused attention needs a head_size that is a multiple of %d",
                         step);
    return STATUS_OK;
}

static enum status plan_bind(struct gpu *gpu, struct work *work, int candidate, struct error *error)
{
    static const int64_t uids[] = {ATTENTION_Q, ATTENTION_K,     ATTENTION_V,
                                   ATTENTION_O, ATTENTION_SCALE, ATTENTION_HIDDEN};
    struct attention_work *a = (struct attention_work *)work;
    void *const memory[] = {a->tensors[TENSOR_INPUT],
                            a->tensors[TENSOR_WEIGHT],
                            a->tensors[TENSOR_VALUE],
                            a->tensors[TENSOR_OUTPUT],
                            &a->scale,
                            &a->hidden};
    (void)gpu;
    return cudnn_graph_bind(a->graph, candidate, uids, memory, a->shape.causal ? 6 : 5,
                            a->workspace, error);
}

static const char *plan_name(const struct work *work, int candidate)
{
    return cudnn_graph_plan_at(((const struct attention_work *)work)->graph, candidate)->name;
}

static enum status workspace_create(struct attention_work *a, struct error *error)
{
    size_t bytes = 0;
    for (int i = 0; i < cudnn_graph_plans(a->graph); ++i) {
        size_t needed = cudnn_graph_plan_at(a->graph, i)->workspace;
        bytes = needed > bytes ? needed : bytes;
    }
    return arena_take(a->arena, (double)bytes, "the workspace", &a->workspace, error);
}

static void plan_describe(const struct cudnn_plan *plan, struct record *record)
{
    snprintf(record->algorithm, sizeof record->algorithm, "%s", plan->name);
    snprintf(record->math, sizeof record->math, "%s", plan->tensor ? "tensor-op" : "fma");
    record->unit = plan->tensor ? UNIT_TENSOR : UNIT_VECTOR;
    record->workspace = (double)plan->workspace;
}

static enum status fused_prepare(struct gpu *gpu, struct attention_work *a, struct record *record,
                                 struct error *error)
{
    int chosen = 0;
    TRY(cudnn_graph_create(gpu->cudnn, gpu->plans, workspace_most, &a->graph, error));
    TRY(attention_graph_describe(a->graph, &a->shape, error));
    TRY(cudnn_graph_plan(a->graph, NULL, error));
    TRY(workspace_create(a, error));
    const struct search search = {
        .gpu = gpu,
        .work = &a->base,
        .cold = a->shape.cold,
        .count = cudnn_graph_plans(a->graph),
        .bind = plan_bind,
        .name = plan_name,
    };
    TRY(search_run(&search, &chosen, record, error));
    plan_describe(cudnn_graph_plan_at(a->graph, chosen), record);
    return STATUS_OK;
}

enum status attention_cudnn_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    struct work **work, struct record *record, struct error *error)
{
    struct attention_work *a;
    TRY(fused_check(gpu, config, error));
    TRY(attention_create(gpu, config, seed, &cudnn_ops, &a, error));
    enum status status = fused_prepare(gpu, a, record, error);
    if (status) {
        attention_release(&a->base);
        return status;
    }
    *work = &a->base;
    return STATUS_OK;
}

/* ---- three steps ---- */

/* For the library, column by column: scores^T = k q^T, and o^T = v^T scores^T. */
static enum status products_open(struct gpu *gpu, struct attention_work *a, struct error *error)
{
    const struct attention *s = &a->shape;
    const struct product_matrix q = {s->head_size, s->sequence, s->head_size,
                                     s->sequence * s->head_size, false};
    const struct product_matrix v = {s->head_size, s->keys, s->head_size, s->keys * s->head_size,
                                     false};
    const struct product_matrix scores = {s->keys, s->sequence, s->keys, s->keys * s->sequence,
                                          false};
    struct product_matrix k = v;
    k.transposed = true;
    const struct product_form first = {.precision = s->precision,
                                       .scale = attention_scale(s),
                                       .batches = s->batch * s->heads,
                                       .a = k,
                                       .b = q,
                                       .d = scores};
    const struct product_form second = {.precision = s->precision,
                                        .scale = 1.0,
                                        .batches = s->batch * s->heads,
                                        .a = v,
                                        .b = scores,
                                        .d = q};
    TRY(product_open(gpu, &first, &a->first, error));
    return product_open(gpu, &second, &a->second, error);
}

static enum status plain_prepare(struct gpu *gpu, struct attention_work *a, struct record *record,
                                 struct error *error)
{
    TRY(arena_take(a->arena, scores_bytes(a), "the scores", &a->scores, error));
    TRY(products_open(gpu, a, error));
    TRY(product_describe(&a->first, record, error));
    snprintf(record->algorithm, sizeof record->algorithm, "three-steps %.50s %.50s",
             a->first.names[0], a->second.names[0]);
    record->workspace += scores_bytes(a) + (double)a->second.bound.workspaceSize;
    return STATUS_OK;
}

enum status attention_plain_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                    struct work **work, struct record *record, struct error *error)
{
    struct attention_work *a;
    TRY(attention_create(gpu, config, seed, &plain_ops, &a, error));
    enum status status = plain_prepare(gpu, a, record, error);
    if (status) {
        attention_release(&a->base);
        return status;
    }
    *work = &a->base;
    return STATUS_OK;
}
