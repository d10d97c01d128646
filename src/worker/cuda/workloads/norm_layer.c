#include "worker/cuda/workloads/norm_layer.h"

#include <stdio.h>
#include <stdlib.h>

#include "worker/gpu/arena.h"
#include "worker/cuda/workloads/norm_graph.h"
#include "worker/cuda/workloads/norm_work.h"
#include "worker/gpu/search.h"

static const size_t workspace_most = (size_t)256 << 20; /* bytes */

struct layer_work {
    struct norm_work norm;
    struct cudnn_graph *graph;
    bool has[NORM_TENSORS];
    void *workspace; /* owned */
    float epsilon;   /* passed by value when the graph runs */
    double wide_epsilon;
};

static enum status layer_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)gpu;
    return CUDNN(cudnn_graph_run(((const struct layer_work *)work)->graph));
}

static void layer_release(struct work *work)
{
    struct layer_work *l = (struct layer_work *)work;
    cudnn_graph_destroy(l->graph);
    arena_give(l->norm.tensors.arena, l->workspace);
    norm_work_clear(&l->norm);
    free(l);
}

static const struct work_ops layer_ops = {
    .iterate = layer_iterate,
    .run = tensor_work_run,
    .result = tensor_work_result,
    .stored = tensor_work_stored,
    .release = layer_release,
};

static enum status plan_bind(struct gpu *gpu, struct work *work, int candidate, struct error *error)
{
    struct layer_work *l = (struct layer_work *)work;
    const struct norm_arrays *a = &l->norm.arrays;
    const bool backward = l->norm.shape.pass == NORM_BACKWARD;
    const bool wide = l->norm.shape.precision == PRECISION_FP64;
    /* The graph only reads its inputs. */
    void *const all[NORM_TENSORS] = {
        [NORM_X] = (void *)a->x,
        [NORM_GAMMA] = (void *)a->gamma,
        [NORM_BETA] = (void *)a->beta,
        [NORM_MEAN] = backward ? l->norm.mean : a->mean,
        [NORM_INVERSE] = backward ? l->norm.inverse : a->inverse,
        [NORM_DY] = (void *)a->dy,
        [NORM_Y] = a->y,
        [NORM_DX] = a->dx,
        [NORM_DGAMMA] = a->dgamma,
        [NORM_DBETA] = a->dbeta,
        [NORM_EPSILON_VALUE] = wide ? (void *)&l->wide_epsilon : &l->epsilon,
    };
    int64_t uids[NORM_TENSORS], count = 0;
    void *memory[NORM_TENSORS];
    (void)gpu;
    for (int i = 0; i < NORM_TENSORS; ++i)
        if (l->has[i]) {
            uids[count] = i;
            memory[count++] = all[i];
        }
    return cudnn_graph_bind(l->graph, candidate, uids, memory, count, l->workspace, error);
}

static const char *plan_name(const struct work *work, int candidate)
{
    return cudnn_graph_plan_at(((const struct layer_work *)work)->graph, candidate)->name;
}

static enum status workspace_create(struct layer_work *l, struct error *error)
{
    size_t bytes = 0;
    for (int i = 0; i < cudnn_graph_plans(l->graph); ++i) {
        size_t needed = cudnn_graph_plan_at(l->graph, i)->workspace;
        bytes = needed > bytes ? needed : bytes;
    }
    return arena_take(l->norm.tensors.arena, (double)bytes, "the workspace", &l->workspace, error);
}

static enum status layer_plan(struct gpu *gpu, const struct config *config, struct layer_work *l,
                              struct record *record, struct error *error)
{
    int chosen = 0;
    TRY(cudnn_graph_create(gpu->cudnn, gpu->plans, workspace_most, &l->graph, error));
    TRY(norm_graph_describe(l->graph, &l->norm.shape, l->has, error));
    TRY(cudnn_graph_plan(l->graph, NULL, error));
    TRY(workspace_create(l, error));
    const struct search search = {
        .gpu = gpu,
        .work = &l->norm.tensors.base,
        .cold = config_cold(config),
        .count = cudnn_graph_plans(l->graph),
        .bind = plan_bind,
        .name = plan_name,
    };
    TRY(search_run(&search, &chosen, record, error));
    tensor_work_describe(plan_name(search.work, chosen), record);
    record->workspace = (double)cudnn_graph_plan_at(l->graph, chosen)->workspace;
    return STATUS_OK;
}

enum status norm_layer_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                               struct work **work, struct record *record, struct error *error)
{
    struct layer_work *l = calloc(1, sizeof *l);
    if (!l)
        return error_set(error, STATUS_FAILED, "no memory");
    l->norm.tensors.base.ops = &layer_ops;
    l->epsilon = (float)NORM_EPSILON;
    l->wide_epsilon = NORM_EPSILON;
    enum status status = norm_work_create(gpu, config, seed, &l->norm, error);
    if (status == STATUS_OK)
        status = layer_plan(gpu, config, l, record, error);
    if (status) {
        layer_release(&l->norm.tensors.base);
        return status;
    }
    *work = &l->norm.tensors.base;
    return STATUS_OK;
}
