#include "worker/cuda/workloads/graph_work.h"

#include "worker/gpu/arena.h"
#include "worker/gpu/search.h"

static const size_t workspace_most = (size_t)256 << 20; /* bytes */

enum status graph_work_create(const struct gpu *gpu, struct graph_work *work, struct error *error)
{
    return cudnn_graph_create(gpu->cudnn, gpu->plans, NULL, workspace_most, &work->graph, error);
}

void graph_work_bind(struct graph_work *work, int64_t uid, const void *memory)
{
    work->uids[work->count] = uid;
    work->memory[work->count++] = (void *)memory; /* the graph writes results only */
}

static enum status plan_bind(struct gpu *gpu, struct work *work, int candidate, struct error *error)
{
    struct graph_work *w = (struct graph_work *)work;
    (void)gpu;
    return cudnn_graph_bind(w->graph, candidate, w->uids, w->memory, w->count, w->workspace,
                            &w->bound, error);
}

static const char *plan_name(const struct work *work, int candidate)
{
    return cudnn_graph_plan_at(((const struct graph_work *)work)->graph, candidate)->name;
}

enum status graph_work_choose(struct gpu *gpu, struct graph_work *work, struct record *record,
                              struct error *error)
{
    int chosen = 0;
    size_t most = 0;
    TRY(cudnn_graph_plan(work->graph, NULL, error));
    for (int i = 0; i < cudnn_graph_plans(work->graph); ++i) {
        const size_t needed = cudnn_graph_plan_at(work->graph, i)->workspace;
        most = needed > most ? needed : most;
    }
    TRY(arena_allocate(gpu->arena, (double)most, "the workspace", &work->workspace, error));
    const struct search search = {
        .gpu = gpu,
        .work = &work->tensors.base,
        .count = cudnn_graph_plans(work->graph),
        .bind = plan_bind,
        .name = plan_name,
    };
    TRY(search_run(&search, &chosen, record, error));
    const struct cudnn_plan *plan = cudnn_graph_plan_at(work->graph, chosen);
    tensor_work_describe(plan->name, plan->tensor ? UNIT_TENSOR : UNIT_VECTOR,
                         (double)plan->workspace, record);
    return STATUS_OK;
}

void graph_work_close(struct work *work)
{
    struct graph_work *w = (struct graph_work *)work;
    cudnn_graph_unbind(&w->bound);
    cudnn_graph_destroy(w->graph);
    arena_free(w->tensors.arena, w->workspace);
}

enum status graph_work_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct graph_work *w = (const struct graph_work *)work;
    (void)gpu;
    return CUDNN(cudnn_graph_run(w->graph, &w->bound));
}
