#include "worker/cuda/workloads/conv2d_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/cuda/workloads/cudnn_descriptors.h"

struct conv2d_graph {
    cudnnHandle_t cudnn;
    struct plan_shelf *shelf; /* NULL: what is made is destroyed at once */
    struct cudnn_descriptors stack;
    size_t workspace_limit;
    double compiling; /* s, spent on plans that cuDNN compiles */
    struct conv2d_plan plans[CONV2D_PLANS_MAX];
    int plan_count;
    const struct conv2d_plan *bound;
    cudnnBackendDescriptor_t pack; /* of `bound`: its memory */
    int pack_place;                /* in the stack */
};

/* ---- engines ---- */

enum { NOTES_MAX = 32 };
_Static_assert((int)CUDNN_NUMERICAL_NOTE_TYPE_COUNT <= NOTES_MAX &&
                   (int)CUDNN_BEHAVIOR_NOTE_TYPE_COUNT <= NOTES_MAX,
               "a note for each bit");

/* The notes of one kind that cuDNN has on an engine, as a set of bits. */
static enum status notes_get(cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t kind,
                             cudnnBackendAttributeType_t type, int64_t kinds, unsigned *set,
                             struct error *error)
{
    unsigned notes[NOTES_MAX], found = 0;
    int64_t count;
    TRY(cudnn_attribute_get(engine, kind, type, kinds, notes, &count, error));
    for (int64_t i = 0; i < count; ++i)
        found |= 1u << notes[i];
    *set = found;
    return STATUS_OK;
}

/* Tensor units round fp32 inputs to TF32, so an engine that uses them computes something else. An
 * engine that converts inputs or sums to a narrower format never computes what is asked for. */
static enum status engine_check(cudnnBackendDescriptor_t engine,
                                const struct conv2d_graph_request *request,
                                struct conv2d_plan *plan, struct error *error)
{
    const unsigned tensor_core = 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    const unsigned narrow = 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                            1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    const unsigned compiled = 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    unsigned numerical, behavior;
    TRY(notes_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &numerical, error));
    TRY(notes_get(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                  CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &behavior, error));
    plan->tensor = (numerical & tensor_core) != 0;
    plan->compiled = (behavior & compiled) != 0;
    if (!(plan->tensor ? request->tensor : request->vector) || numerical & narrow)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's engines for it compute in another precision");
    return STATUS_OK;
}

/* ---- plans ---- */

static enum status knob_append(cudnnBackendDescriptor_t knob, char name[CONV2D_PLAN_NAME],
                               struct error *error)
{
    cudnnBackendKnobType_t type;
    int64_t count, value;
    TRY(cudnn_attribute_get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type,
                            &count, error));
    TRY(cudnn_integer_get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &value, error));
    size_t used = strlen(name);
    snprintf(name + used, CONV2D_PLAN_NAME - used, " k%d=%lld", (int)type, (long long)value);
    return STATUS_OK;
}

static enum status plan_name(struct conv2d_graph *graph, cudnnBackendDescriptor_t config,
                             cudnnBackendDescriptor_t engine, char name[CONV2D_PLAN_NAME],
                             struct error *error)
{
    int64_t index, count;
    cudnnBackendDescriptor_t knobs[CUDNN_KNOB_TYPE_COUNTS];
    TRY(cudnn_integer_get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &index, error));
    for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i)
        TRY(cudnn_descriptor_create(&graph->stack, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[i],
                                    error));
    TRY(cudnn_attribute_get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, knobs, &count,
                            error));
    snprintf(name, CONV2D_PLAN_NAME, "engine-%lld", (long long)index);
    for (int64_t i = 0; i < count; ++i)
        TRY(knob_append(knobs[i], name, error));
    return STATUS_OK;
}

static bool plan_is_new(const struct conv2d_graph *graph, const char *name)
{
    for (int i = 0; i < graph->plan_count; ++i)
        if (strcmp(graph->plans[i].name, name) == 0)
            return false;
    return true;
}

static enum status plan_build(struct conv2d_graph *graph, struct conv2d_plan *plan,
                              struct error *error)
{
    int64_t workspace;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->cudnn},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &plan->config},
        {0},
    };
    cudnnBackendDescriptor_t built;
    TRY(cudnn_descriptor_build(&graph->stack, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attributes,
                               &built, error));
    TRY(cudnn_integer_get(built, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, &workspace, error));
    plan->workspace = (size_t)workspace;
    if (plan->workspace > graph->workspace_limit)
        return error_set(error, STATUS_UNSUPPORTED, "%s needs a workspace of %lld bytes",
                         plan->name, (long long)workspace);
    plan->descriptor = built;
    return STATUS_OK;
}

static enum status plan_add(struct conv2d_graph *graph, const struct conv2d_graph_request *request,
                            cudnnBackendDescriptor_t config, struct error *error)
{
    struct conv2d_plan plan = {.config = config};
    cudnnBackendDescriptor_t engine;
    int64_t count;
    TRY(cudnn_descriptor_create(&graph->stack, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine, error));
    TRY(cudnn_attribute_get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            &engine, &count, error));
    TRY(plan_name(graph, config, engine, plan.name, error));
    if (!plan_is_new(graph, plan.name))
        return error_set(error, STATUS_UNSUPPORTED, "%s is there already", plan.name);
    TRY(engine_check(engine, request, &plan, error));
    graph->plans[graph->plan_count++] = plan;
    return STATUS_OK;
}

/* ---- heuristics ---- */

/* Each heuristic lists engines, the likely fastest first. */
static const cudnnBackendHeurMode_t heuristics[] = {
    CUDNN_HEUR_MODE_A,
    CUDNN_HEUR_MODE_B,
    CUDNN_HEUR_MODE_FALLBACK,
};
/* What a heuristic lists later was far from the fastest wherever this was looked at. */
enum { HEURISTICS = sizeof heuristics / sizeof *heuristics, CONFIGS_MAX = 100, PLANS_EACH = 16 };
_Static_assert((int)HEURISTICS *(int)PLANS_EACH <= (int)CONV2D_PLANS_MAX, "room for all");

static enum status configs_find(struct conv2d_graph *graph,
                                cudnnBackendDescriptor_t operation_graph,
                                cudnnBackendHeurMode_t mode,
                                cudnnBackendDescriptor_t configs[CONFIGS_MAX], int64_t *count,
                                struct error *error)
{
    cudnnBackendDescriptor_t heuristic;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation_graph},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
        {0},
    };
    TRY(cudnn_descriptor_build(&graph->stack, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes,
                               &heuristic, error));
    for (int i = 0; i < CONFIGS_MAX; ++i)
        TRY(cudnn_descriptor_create(&graph->stack, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i],
                                    error));
    return cudnn_attribute_get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, configs, count, error);
}

/* It is no failure if a heuristic does not know the graph, or an engine does not take it. *refusal is
 * the last such reason. */
static enum status plans_find(struct conv2d_graph *graph,
                              const struct conv2d_graph_request *request,
                              cudnnBackendDescriptor_t operation_graph, cudnnBackendHeurMode_t mode,
                              struct error *refusal)
{
    cudnnBackendDescriptor_t configs[CONFIGS_MAX];
    int64_t count = 0;
    int most = graph->plan_count + PLANS_EACH;
    enum status status = configs_find(graph, operation_graph, mode, configs, &count, refusal);
    for (int64_t i = 0; i < count && graph->plan_count < most && status != STATUS_DEVICE; ++i) {
        int kept = graph->stack.count;
        status = plan_add(graph, request, configs[i], refusal);
        if (status)
            cudnn_descriptors_destroy(&graph->stack, kept);
    }
    return status == STATUS_DEVICE ? STATUS_DEVICE : STATUS_OK;
}

/* Knobs that are set; without any, an engine has those that it has by itself. */
struct knobs {
    cudnnBackendDescriptor_t choices[CUDNN_KNOB_TYPE_COUNTS];
    int64_t count;
};

static enum status config_add(struct conv2d_graph *graph,
                              const struct conv2d_graph_request *request,
                              cudnnBackendDescriptor_t operation_graph, int64_t index,
                              const struct knobs *knobs, struct error *error)
{
    cudnnBackendDescriptor_t engine, config;
    const struct cudnn_attribute engine_attributes[] = {
        {CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation_graph},
        {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index},
        {0},
    };
    const struct cudnn_attribute config_attributes[] = {
        {CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine},
        {CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, knobs->count,
         knobs->count > 0 ? knobs->choices : NULL},
        {0},
    };
    TRY(cudnn_descriptor_build(&graph->stack, CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine_attributes,
                               &engine, error));
    TRY(cudnn_descriptor_build(&graph->stack, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, config_attributes,
                               &config, error));
    return plan_add(graph, request, config, error);
}

/* The knob at *text, " k13=1", which then is behind it. */
static enum status knob_add(struct conv2d_graph *graph, const char **text, struct knobs *knobs,
                            struct error *error)
{
    int number, length = 0;
    long long wanted;
    if (knobs->count == CUDNN_KNOB_TYPE_COUNTS ||
        sscanf(*text, " k%d=%lld%n", &number, &wanted, &length) != 2)
        return error_set(error, STATUS_UNSUPPORTED, "'%s': no knobs of an engine", *text);
    const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)number;
    const int64_t value = wanted;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type},
        {CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value},
        {0},
    };
    *text += length;
    return cudnn_descriptor_build(&graph->stack, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, attributes,
                                  &knobs->choices[knobs->count++], error);
}

/* The plan of that name, as plan_name writes it. */
static enum status named_add(struct conv2d_graph *graph, const struct conv2d_graph_request *request,
                             cudnnBackendDescriptor_t operation_graph, struct error *error)
{
    struct knobs knobs = {.count = 0};
    const char *text = request->only;
    long long engine;
    int length = 0;
    if (sscanf(text, "engine-%lld%n", &engine, &length) != 1)
        return error_set(error, STATUS_UNSUPPORTED, "'%s' is no plan's name", text);
    for (text += length; *text;)
        TRY(knob_add(graph, &text, &knobs, error));
    return config_add(graph, request, operation_graph, engine, &knobs, error);
}

static enum status engine_add(struct conv2d_graph *graph,
                              const struct conv2d_graph_request *request,
                              cudnnBackendDescriptor_t operation_graph, int64_t index,
                              struct error *error)
{
    const struct knobs none = {.count = 0};
    TRY(config_add(graph, request, operation_graph, index, &none, error));
    if (!graph->plans[graph->plan_count - 1].compiled)
        return STATUS_OK;
    --graph->plan_count;
    return error_set(error, STATUS_UNSUPPORTED, "cuDNN would have to compile it");
}

/* Heuristics leave engines out, those for vector units above all. What they leave out and cuDNN would
 * have to compile is not tried. */
static enum status engines_add(struct conv2d_graph *graph,
                               const struct conv2d_graph_request *request,
                               cudnnBackendDescriptor_t operation_graph, struct error *refusal)
{
    int64_t engines = 0;
    enum status status = cudnn_integer_get(
        operation_graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, &engines, refusal);
    for (int64_t i = 0;
         i < engines && graph->plan_count < CONV2D_PLANS_MAX && status != STATUS_DEVICE; ++i) {
        int kept = graph->stack.count;
        status = engine_add(graph, request, operation_graph, i, refusal);
        if (status)
            cudnn_descriptors_destroy(&graph->stack, kept);
    }
    return status == STATUS_DEVICE ? STATUS_DEVICE : STATUS_OK;
}

static enum status proposals_add(struct conv2d_graph *graph,
                                 const struct conv2d_graph_request *request,
                                 cudnnBackendDescriptor_t operation_graph, struct error *refusal)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < HEURISTICS && !status; ++i)
        status = plans_find(graph, request, operation_graph, heuristics[i], refusal);
    return !status && !request->tensor ? engines_add(graph, request, operation_graph, refusal)
                                       : status;
}

static enum status graph_prepare(struct conv2d_graph *graph,
                                 const struct conv2d_graph_request *request, struct error *error)
{
    cudnnBackendDescriptor_t operation_graph;
    struct error refusal = {"cuDNN's heuristics know no engine for it"};
    enum status status = conv2d_operation_describe(&request->operation, request->cudnn,
                                                   &graph->stack, &operation_graph, error);
    if (status)
        return status;
    status = (request->only ? named_add : proposals_add)(graph, request, operation_graph, &refusal);
    if (!status && graph->plan_count == 0)
        status = STATUS_UNSUPPORTED;
    if (status)
        return error_set(error, status, "%s", refusal.text);
    graph->pack_place = graph->stack.count;
    return STATUS_OK;
}

enum status conv2d_graph_create(const struct conv2d_graph_request *request,
                                struct conv2d_graph **graph, struct error *error)
{
    struct conv2d_graph *created = calloc(1, sizeof *created);
    if (!created)
        return error_set(error, STATUS_FAILED, "no memory");
    created->cudnn = request->cudnn;
    created->shelf = request->only ? request->shelf : NULL; /* hundreds would take much memory */
    created->workspace_limit = request->workspace_limit;
    enum status status = graph_prepare(created, request, error);
    if (status)
        conv2d_graph_destroy(created);
    else
        *graph = created;
    return status;
}

void conv2d_graph_destroy(struct conv2d_graph *graph)
{
    if (!graph)
        return;
    cudnn_descriptors_shelve(&graph->stack, graph->shelf);
    free(graph);
}

int conv2d_graph_plans(const struct conv2d_graph *graph)
{
    return graph->plan_count;
}

const struct conv2d_plan *conv2d_graph_plan(const struct conv2d_graph *graph, int plan)
{
    return &graph->plans[plan];
}

/* cuDNN compiles for a tenth of a second to seconds, and few such plans win. The heuristics have named
 * the likely ones first. */
static const double compiling_enough = 0.1; /* s, for one convolution */

/* A plan lies below the pack on the stack. */
enum status conv2d_graph_build(struct conv2d_graph *graph, int plan, struct error *error)
{
    struct conv2d_plan *p = &graph->plans[plan];
    if (p->descriptor)
        return STATUS_OK;
    if (p->status)
        return error_set(error, p->status, "%s could not be built", p->name);
    if (p->compiled && graph->compiling > compiling_enough)
        return error_set(error, STATUS_UNSUPPORTED, "%s is not compiled any more", p->name);
    double begin = clock_monotonic();
    cudnn_descriptors_destroy(&graph->stack, graph->pack_place);
    p->status = plan_build(graph, p, error);
    if (p->compiled)
        graph->compiling += clock_monotonic() - begin;
    if (p->status)
        cudnn_descriptors_destroy(&graph->stack, graph->pack_place);
    graph->pack_place = graph->stack.count;
    return p->status;
}

enum status conv2d_graph_bind(struct conv2d_graph *graph, int plan, void *x, void *w, void *y,
                              void *workspace, struct error *error)
{
    const int64_t uids[] = {conv2d_operation_uid(TENSOR_INPUT), conv2d_operation_uid(TENSOR_WEIGHT),
                            conv2d_operation_uid(TENSOR_OUTPUT)};
    void *const memory[] = {x, w, y};
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, TENSOR_BASIC_COUNT, uids},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, TENSOR_BASIC_COUNT, memory},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace},
        {0},
    };
    cudnn_descriptors_destroy(&graph->stack, graph->pack_place);
    TRY(cudnn_descriptor_build(&graph->stack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes,
                               &graph->pack, error));
    graph->bound = &graph->plans[plan];
    return STATUS_OK;
}

cudnnStatus_t conv2d_graph_run(struct conv2d_graph *graph)
{
    return cudnnBackendExecute(graph->cudnn, graph->bound->descriptor, graph->pack);
}
