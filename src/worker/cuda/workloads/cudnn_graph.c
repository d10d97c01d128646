#include "worker/cuda/workloads/cudnn_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cudnn_graph {
    cudnnHandle_t cudnn;
    struct plan_shelf *shelf;
    size_t workspace_limit;
    struct cudnn_descriptors stack;
    cudnnBackendDescriptor_t operations[CUDNN_GRAPH_OPERATIONS];
    int operation_count;
    struct cudnn_plan plans[CUDNN_GRAPH_PLANS];
    int plan_count;
    const struct cudnn_plan *bound;
    cudnnBackendDescriptor_t pack; /* of `bound`: its memory */
    int pack_place;                /* in the stack */
};

enum status cudnn_graph_describe(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                 const struct cudnn_attribute *attributes,
                                 cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    return cudnn_descriptor_build(&graph->stack, type, attributes, descriptor, error);
}

enum status cudnn_graph_operate(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                const struct cudnn_attribute *attributes, struct error *error)
{
    if (graph->operation_count == CUDNN_GRAPH_OPERATIONS)
        return error_set(error, STATUS_FAILED, "more than %d operations in a graph",
                         (int)CUDNN_GRAPH_OPERATIONS);
    TRY(cudnn_graph_describe(graph, type, attributes, &graph->operations[graph->operation_count],
                             error));
    ++graph->operation_count;
    return STATUS_OK;
}

enum status cudnn_graph_create(cudnnHandle_t cudnn, struct plan_shelf *shelf,
                               size_t workspace_limit, struct cudnn_graph **graph,
                               struct error *error)
{
    struct cudnn_graph *created = calloc(1, sizeof *created);
    if (!created)
        return error_set(error, STATUS_FAILED, "no memory");
    created->cudnn = cudnn;
    created->shelf = shelf;
    created->workspace_limit = workspace_limit;
    *graph = created;
    return STATUS_OK;
}

void cudnn_graph_destroy(struct cudnn_graph *graph)
{
    if (!graph)
        return;
    cudnn_descriptors_shelve(&graph->stack, graph->shelf);
    free(graph);
}

/* ---- plans ---- */

/* Whether cuDNN notes of the engine that it uses tensor units. */
static enum status tensor_get(cudnnBackendDescriptor_t engine, bool *tensor, struct error *error)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    TRY(CUDNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                       CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                       &count, notes)));
    *tensor = false;
    for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; ++i)
        *tensor = *tensor || notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    return STATUS_OK;
}

static enum status plan_name(struct cudnn_graph *graph, cudnnBackendDescriptor_t config,
                             struct cudnn_plan *plan, struct error *error)
{
    cudnnBackendDescriptor_t engine;
    int64_t index, count;
    TRY(cudnn_descriptor_create(&graph->stack, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine, error));
    TRY(CUDNN(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine)));
    TRY(cudnn_integer_get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &index, error));
    snprintf(plan->name, sizeof plan->name, "engine-%lld", (long long)index);
    return tensor_get(engine, &plan->tensor, error);
}

static enum status plan_build(struct cudnn_graph *graph, cudnnBackendDescriptor_t config,
                              struct cudnn_plan *plan, struct error *error)
{
    int64_t workspace;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->cudnn},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config},
        {0},
    };
    TRY(plan_name(graph, config, plan, error));
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attributes,
                             &plan->descriptor, error));
    TRY(cudnn_integer_get(plan->descriptor, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, &workspace,
                          error));
    plan->workspace = (size_t)workspace;
    if (plan->workspace > graph->workspace_limit)
        return error_set(error, STATUS_UNSUPPORTED, "%s needs a workspace of %lld bytes",
                         plan->name, (long long)workspace);
    return STATUS_OK;
}

/* It is no failure if an engine does not take the graph; *refusal is then the reason. */
static enum status plans_build(struct cudnn_graph *graph, const cudnnBackendDescriptor_t *configs,
                               int64_t count, struct error *refusal)
{
    for (int64_t i = 0; i < count && graph->plan_count < CUDNN_GRAPH_PLANS; ++i) {
        struct cudnn_plan plan = {.tensor = false};
        int kept = graph->stack.count;
        enum status status = plan_build(graph, configs[i], &plan, refusal);
        if (status == STATUS_DEVICE)
            return status;
        if (status)
            cudnn_descriptors_destroy(&graph->stack, kept);
        else
            graph->plans[graph->plan_count++] = plan;
    }
    return STATUS_OK;
}

static enum status heuristic_ask(struct cudnn_graph *graph,
                                 cudnnBackendDescriptor_t operation_graph,
                                 cudnnBackendHeurMode_t mode, struct error *refusal)
{
    struct error *error = refusal;
    cudnnBackendDescriptor_t heuristic, configs[CUDNN_GRAPH_PLANS];
    int64_t count = 0;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation_graph},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
        {0},
    };
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes, &heuristic,
                             error));
    for (int i = 0; i < CUDNN_GRAPH_PLANS; ++i)
        TRY(cudnn_descriptor_create(&graph->stack, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i],
                                    error));
    TRY(CUDNN(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_GRAPH_PLANS, &count,
                                       configs)));
    return plans_build(graph, configs, count < CUDNN_GRAPH_PLANS ? count : CUDNN_GRAPH_PLANS,
                       refusal);
}

enum status cudnn_graph_plan(struct cudnn_graph *graph, struct error *error)
{
    static const cudnnBackendHeurMode_t heuristics[] = {CUDNN_HEUR_MODE_A,
                                                        CUDNN_HEUR_MODE_FALLBACK};
    struct error refusal = {"cuDNN's heuristics know no engine for it"};
    cudnnBackendDescriptor_t operation_graph;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->operation_count,
         graph->operations},
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->cudnn},
        {0},
    };
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes,
                             &operation_graph, error));
    for (size_t i = 0; i < sizeof heuristics / sizeof *heuristics && graph->plan_count == 0; ++i)
        if (heuristic_ask(graph, operation_graph, heuristics[i], &refusal) == STATUS_DEVICE)
            return error_set(error, STATUS_DEVICE, "%s", refusal.text);
    graph->pack_place = graph->stack.count;
    return graph->plan_count > 0 ? STATUS_OK
                                 : error_set(error, STATUS_UNSUPPORTED, "%s", refusal.text);
}

int cudnn_graph_plans(const struct cudnn_graph *graph)
{
    return graph->plan_count;
}

const struct cudnn_plan *cudnn_graph_plan_at(const struct cudnn_graph *graph, int plan)
{
    return &graph->plans[plan];
}

enum status cudnn_graph_bind(struct cudnn_graph *graph, int plan, const int64_t *uids,
                             void *const *memory, int64_t count, void *workspace,
                             struct error *error)
{
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, memory},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace},
        {0},
    };
    cudnn_descriptors_destroy(&graph->stack, graph->pack_place);
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes, &graph->pack,
                             error));
    graph->bound = &graph->plans[plan];
    return STATUS_OK;
}

cudnnStatus_t cudnn_graph_run(struct cudnn_graph *graph)
{
    return cudnnBackendExecute(graph->cudnn, graph->bound->descriptor, graph->pack);
}
