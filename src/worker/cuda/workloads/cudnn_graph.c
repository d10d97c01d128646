/* Operation graphs of cuDNN: descriptors, heuristics, plans and their names, and the shelf.
 *
 * A graph keeps all its descriptors on a stack until it is destroyed. A failed attempt to add a
 * plan removes its own descriptors. A heuristic that does not know the graph, and an engine
 * that does not take it, are no failures: the last refusal becomes the error if no plan is left.
 * Finding plans costs milliseconds, building one costs microseconds to seconds. */
#include "worker/cuda/workloads/cudnn_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

/* Descriptors refer to each other in ways that cuDNN does not document, so the newest is destroyed
 * first. All zero: empty. */
struct stack {
    cudnnBackendDescriptor_t *descriptors; /* owned */
    size_t count;
};

struct cudnn_graph {
    int users;
    char key[CONFIG_HASH_TEXT]; /* "": not shared */
    cudnnHandle_t cudnn;
    struct plan_shelf *shelf;
    size_t workspace_limit;
    struct stack stack;
    cudnnBackendDescriptor_t *operations; /* owned */
    cudnnBackendDescriptor_t described;   /* the graph of all operations */
    struct cudnn_plan *plans;             /* owned */
    int operation_count, plan_count;
    double compiling; /* s, time of cuDNN to compile plans */
    bool built;       /* any plan was built */
};

/* ---- descriptors ---- */

/* Puts a new descriptor on the stack, for cuDNN to write into. */
static enum status descriptor_create(struct stack *stack, cudnnBackendDescriptorType_t type,
                                     cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    if (!ARRAY_GROW(stack->descriptors, stack->count))
        return error_set(error, STATUS_FAILED, "no memory for %zu descriptors", stack->count + 1);
    TRY(CUDNN(cudnnBackendCreateDescriptor(type, descriptor)));
    stack->descriptors[stack->count++] = *descriptor;
    return STATUS_OK;
}

/* Destroys all descriptors but the first `kept`. */
static void descriptors_destroy(struct stack *stack, size_t kept)
{
    while (stack->count > kept)
        cudnnBackendDestroyDescriptor(stack->descriptors[--stack->count]);
}

static void stack_clear(struct stack *stack)
{
    descriptors_destroy(stack, 0);
    free(stack->descriptors);
    *stack = (struct stack){0};
}

/* Reads at most `room` values of an attribute; *count: values that were read. */
static enum status attribute_get(cudnnBackendDescriptor_t descriptor,
                                 cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                 int64_t room, void *values, int64_t *count, struct error *error)
{
    int64_t offered = 0;
    TRY(CUDNN(cudnnBackendGetAttribute(descriptor, name, type, room, &offered, values)));
    *count = offered < room ? offered : room;
    return STATUS_OK;
}

static enum status integer_get(cudnnBackendDescriptor_t descriptor,
                               cudnnBackendAttributeName_t name, int64_t *value,
                               struct error *error)
{
    int64_t count;
    return attribute_get(descriptor, name, CUDNN_TYPE_INT64, 1, value, &count, error);
}

/* After a failure an unfinished descriptor may be on the stack. */
enum status cudnn_graph_describe(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                 const struct cudnn_attribute *attributes,
                                 cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    cudnnBackendDescriptor_t built;
    TRY(descriptor_create(&graph->stack, type, &built, error));
    for (const struct cudnn_attribute *a = attributes; a->values; ++a)
        TRY(CUDNN(cudnnBackendSetAttribute(built, a->name, a->type, a->count, a->values)));
    TRY(CUDNN(cudnnBackendFinalize(built)));
    *descriptor = built;
    return STATUS_OK;
}

enum status cudnn_graph_tensor(struct cudnn_graph *graph, const struct cudnn_graph_tensor *tensor,
                               cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &tensor->uid},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &tensor->type},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &tensor->alignment},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, tensor->extents.extent},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, tensor->extents.stride},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &tensor->inner},
        {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &tensor->by_value},
        {0},
    };
    return cudnn_graph_describe(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, descriptor,
                                error);
}

enum status cudnn_graph_operate(struct cudnn_graph *graph, cudnnBackendDescriptorType_t type,
                                const struct cudnn_attribute *attributes, struct error *error)
{
    const size_t count = (size_t)graph->operation_count;
    if (!ARRAY_GROW(graph->operations, count))
        return error_set(error, STATUS_FAILED, "no memory");
    TRY(cudnn_graph_describe(graph, type, attributes, &graph->operations[count], error));
    ++graph->operation_count;
    return STATUS_OK;
}

/* ---- graphs and the shelf ---- */

/* A row searches among the plans of three graphs at most. */
enum { SHELF_MOST = 128, SEARCHED_MOST = 3 };
struct plan_shelf {
    struct stack graphs[SHELF_MOST];
    int count;
    struct cudnn_graph *searched[SEARCHED_MOST]; /* the last searched graphs; NULL: none */
    int oldest;                                  /* index of the oldest of these graphs */
};

static void shelf_empty(struct plan_shelf *shelf)
{
    while (shelf->count > 0)
        stack_clear(&shelf->graphs[--shelf->count]);
}

struct plan_shelf *plan_shelf_create(void)
{
    return calloc(1, sizeof(struct plan_shelf));
}

void plan_shelf_destroy(struct plan_shelf *shelf)
{
    for (int i = 0; shelf && i < SEARCHED_MOST; ++i)
        cudnn_graph_destroy(shelf->searched[i]);
    if (shelf)
        shelf_empty(shelf);
    free(shelf);
}

enum status cudnn_graph_create(cudnnHandle_t cudnn, struct plan_shelf *shelf, const char *key,
                               size_t workspace_limit, struct cudnn_graph **graph,
                               struct error *error)
{
    for (int i = 0; shelf && key && i < SEARCHED_MOST; ++i) {
        struct cudnn_graph *searched = shelf->searched[i];
        if (searched && strcmp(searched->key, key) == 0 &&
            searched->workspace_limit == workspace_limit) {
            ++searched->users;
            *graph = searched;
            return STATUS_OK;
        }
    }
    struct cudnn_graph *created = calloc(1, sizeof *created);
    if (!created)
        return error_set(error, STATUS_FAILED, "no memory");
    created->users = 1;
    snprintf(created->key, sizeof created->key, "%s", key ? key : "");
    created->cudnn = cudnn;
    created->shelf = shelf;
    created->workspace_limit = workspace_limit;
    *graph = created;
    return STATUS_OK;
}

void cudnn_graph_destroy(struct cudnn_graph *graph)
{
    if (!graph || --graph->users > 0)
        return;
    struct plan_shelf *shelf = graph->key[0] ? NULL : graph->shelf;
    if (shelf && shelf->count == SHELF_MOST)
        shelf_empty(shelf);
    if (shelf)
        shelf->graphs[shelf->count++] = graph->stack;
    else
        stack_clear(&graph->stack);
    free(graph->plans);
    free(graph->operations);
    free(graph);
}

/* ---- plans ---- */

enum { NOTES_MAX = 32 };
_Static_assert((int)CUDNN_NUMERICAL_NOTE_TYPE_COUNT <= NOTES_MAX &&
                   (int)CUDNN_BEHAVIOR_NOTE_TYPE_COUNT <= NOTES_MAX,
               "a bit for each note");

/* Reads an engine's notes of one kind, as a set of bits. */
static enum status notes_get(cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t kind,
                             cudnnBackendAttributeType_t type, int64_t kinds, unsigned *set,
                             struct error *error)
{
    unsigned notes[NOTES_MAX], found = 0;
    int64_t count;
    TRY(attribute_get(engine, kind, type, kinds, notes, &count, error));
    for (int64_t i = 0; i < count; ++i)
        found |= 1u << notes[i];
    *set = found;
    return STATUS_OK;
}

/* Sets flags of the plan from the engine's notes. Refuses engines of another precision: tensor
 * units round fp32 inputs to TF32, and some engines convert inputs or sums to a narrower format. */
static enum status engine_check(cudnnBackendDescriptor_t engine,
                                const struct cudnn_engines *engines, struct cudnn_plan *plan,
                                struct error *error)
{
    const unsigned tensor_core = 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    const unsigned narrow = 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                            1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    const unsigned compiled = 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    unsigned numerical, behavior;
    TRY(notes_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &numerical, error));
    plan->tensor = (numerical & tensor_core) != 0;
    if (!engines)
        return STATUS_OK;
    TRY(notes_get(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                  CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &behavior, error));
    plan->compiled = (behavior & compiled) != 0;
    if (!(plan->tensor ? engines->tensor : engines->vector) || numerical & narrow)
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's engines for it compute in another precision");
    return STATUS_OK;
}

static enum status knobs_append(struct cudnn_graph *graph, cudnnBackendDescriptor_t config,
                                char name[CUDNN_PLAN_NAME], struct error *error)
{
    cudnnBackendDescriptor_t knobs[CUDNN_KNOB_TYPE_COUNTS];
    int64_t count;
    for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i)
        TRY(descriptor_create(&graph->stack, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[i],
                              error));
    TRY(attribute_get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                      CUDNN_KNOB_TYPE_COUNTS, knobs, &count, error));
    for (int64_t i = 0; i < count; ++i) {
        cudnnBackendKnobType_t type;
        int64_t types, value;
        TRY(attribute_get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                          &type, &types, error));
        TRY(integer_get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &value, error));
        size_t used = strlen(name);
        snprintf(name + used, CUDNN_PLAN_NAME - used, " k%d=%lld", (int)type, (long long)value);
    }
    return STATUS_OK;
}

static enum status plan_build(struct cudnn_graph *graph, struct cudnn_plan *plan,
                              struct error *error)
{
    int64_t workspace;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->cudnn},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &plan->config},
        {0},
    };
    cudnnBackendDescriptor_t built;
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attributes, &built,
                             error));
    TRY(integer_get(built, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, &workspace, error));
    plan->workspace = (size_t)workspace;
    if (plan->workspace > graph->workspace_limit)
        return error_set(error, STATUS_UNSUPPORTED, "%s needs a workspace of %lld bytes",
                         plan->name, (long long)workspace);
    plan->descriptor = built;
    return STATUS_OK;
}

/* Adds the plan of an engine configuration. `engines`, here and below: see cudnn_graph_plan. */
static enum status plan_add(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                            cudnnBackendDescriptor_t config, struct error *error)
{
    struct cudnn_plan plan = {.config = config};
    cudnnBackendDescriptor_t engine;
    int64_t count, index;
    TRY(descriptor_create(&graph->stack, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine, error));
    TRY(attribute_get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                      &engine, &count, error));
    TRY(integer_get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &index, error));
    snprintf(plan.name, sizeof plan.name, "engine-%lld", (long long)index);
    if (engines)
        TRY(knobs_append(graph, config, plan.name, error));
    for (int i = 0; engines && i < graph->plan_count; ++i)
        if (strcmp(graph->plans[i].name, plan.name) == 0)
            return error_set(error, STATUS_UNSUPPORTED, "%s is there already", plan.name);
    TRY(engine_check(engine, engines, &plan, error));
    if (!engines)
        TRY(plan_build(graph, &plan, error));
    if (!ARRAY_GROW(graph->plans, (size_t)graph->plan_count))
        return error_set(error, STATUS_FAILED, "no memory for %d plans", graph->plan_count + 1);
    graph->plans[graph->plan_count++] = plan;
    return STATUS_OK;
}

/* ---- heuristics ---- */

/* The first plans of one heuristic suffice: later plans were far from the fastest in every measured
 * shape. */
enum { CONFIGS_MAX = 100, PLANS_EACH = 16, PLANS_FIRST = 8 };

static enum status configs_find(struct cudnn_graph *graph, cudnnBackendHeurMode_t mode, int most,
                                cudnnBackendDescriptor_t *configs, int64_t *count,
                                struct error *error)
{
    cudnnBackendDescriptor_t heuristic;
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &graph->described},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
        {0},
    };
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes, &heuristic,
                             error));
    for (int i = 0; i < most; ++i)
        TRY(descriptor_create(&graph->stack, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i],
                              error));
    return attribute_get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         most, configs, count, error);
}

/* Adds plans of a heuristic. *refusal: the reason of the last plan that was not added. */
static enum status plans_find(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                              cudnnBackendHeurMode_t mode, struct error *refusal)
{
    cudnnBackendDescriptor_t configs[CONFIGS_MAX];
    int64_t count = 0;
    int most = graph->plan_count + (engines ? PLANS_EACH : PLANS_FIRST);
    enum status status =
        configs_find(graph, mode, engines ? CONFIGS_MAX : PLANS_FIRST, configs, &count, refusal);
    for (int64_t i = 0; i < count && graph->plan_count < most && status != STATUS_DEVICE; ++i) {
        size_t kept = graph->stack.count;
        status = plan_add(graph, engines, configs[i], refusal);
        if (status)
            descriptors_destroy(&graph->stack, kept);
        else if (engines && engines->compiled_last && mode == CUDNN_HEUR_MODE_FALLBACK)
            graph->plans[graph->plan_count - 1].last_resort =
                graph->plans[graph->plan_count - 1].compiled;
    }
    return status == STATUS_DEVICE ? STATUS_DEVICE : STATUS_OK;
}

/* Knobs of a plan. Engines have defaults for all other knobs. */
struct knobs {
    cudnnBackendDescriptor_t choices[CUDNN_KNOB_TYPE_COUNTS];
    int64_t count;
};

static enum status config_add(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                              int64_t index, const struct knobs *knobs, struct error *error)
{
    cudnnBackendDescriptor_t engine, config;
    const struct cudnn_attribute engine_attributes[] = {
        {CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->described},
        {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index},
        {0},
    };
    const struct cudnn_attribute config_attributes[] = {
        {CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine},
        {CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, knobs->count,
         knobs->count > 0 ? knobs->choices : NULL},
        {0},
    };
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine_attributes, &engine,
                             error));
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, config_attributes, &config,
                             error));
    return plan_add(graph, engines, config, error);
}

/* Adds the plan with the name `only`, as plan_add writes it: "engine-38 k2=5 k13=1". */
static enum status named_add(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                             struct error *error)
{
    struct knobs knobs = {.count = 0};
    const char *text = engines->only;
    long long engine, value;
    int length = 0, number;
    if (sscanf(text, "engine-%lld%n", &engine, &length) != 1)
        return error_set(error, STATUS_UNSUPPORTED, "'%s' is no plan's name", text);
    for (text += length; *text; text += length) {
        if (knobs.count == CUDNN_KNOB_TYPE_COUNTS ||
            sscanf(text, " k%d=%lld%n", &number, &value, &length) != 2)
            return error_set(error, STATUS_UNSUPPORTED, "'%s': no knobs of an engine", text);
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)number;
        const int64_t wide = value;
        const struct cudnn_attribute attributes[] = {
            {CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type},
            {CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &wide},
            {0},
        };
        TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, attributes,
                                 &knobs.choices[knobs.count++], error));
    }
    return config_add(graph, engines, engine, &knobs, error);
}

/* Adds the engines that the heuristics leave out, mostly engines for vector units. Engines that
 * cuDNN would have to compile are not tried. */
static enum status engines_add(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                               struct error *refusal)
{
    const struct knobs none = {.count = 0};
    int64_t count = 0;
    enum status status = integer_get(
        graph->described, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, &count, refusal);
    for (int64_t i = 0; i < count && status != STATUS_DEVICE; ++i) {
        size_t kept = graph->stack.count;
        status = config_add(graph, engines, i, &none, refusal);
        if (status == STATUS_OK && graph->plans[graph->plan_count - 1].compiled) {
            --graph->plan_count;
            status = error_set(refusal, STATUS_UNSUPPORTED, "cuDNN would have to compile it");
        }
        if (status)
            descriptors_destroy(&graph->stack, kept);
    }
    return status == STATUS_DEVICE ? STATUS_DEVICE : STATUS_OK;
}

/* Adds the engines that the heuristics list, the likely fastest first. */
static enum status proposals_add(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                                 struct error *refusal)
{
    static const cudnnBackendHeurMode_t heuristics[] = {
        CUDNN_HEUR_MODE_A,
        CUDNN_HEUR_MODE_B,
        CUDNN_HEUR_MODE_FALLBACK,
    };
    for (size_t i = 0; i < sizeof heuristics / sizeof *heuristics; ++i)
        if (engines || (graph->plan_count == 0 && heuristics[i] != CUDNN_HEUR_MODE_B))
            TRY(plans_find(graph, engines, heuristics[i], refusal));
    return engines && !engines->tensor ? engines_add(graph, engines, refusal) : STATUS_OK;
}

enum status cudnn_graph_plan(struct cudnn_graph *graph, const struct cudnn_engines *engines,
                             struct error *error)
{
    struct error refusal = {"cuDNN's heuristics know no engine for it"};
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->operation_count,
         graph->operations},
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->cudnn},
        {0},
    };
    TRY(cudnn_graph_describe(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes,
                             &graph->described, error));
    bool named = engines && engines->only;
    enum status status = (named ? named_add : proposals_add)(graph, engines, &refusal);
    if (!status && graph->plan_count == 0)
        status = STATUS_UNSUPPORTED;
    if (status)
        return error_set(error, status, "%s", refusal.text);
    if (graph->key[0] && graph->shelf) {
        struct cudnn_graph **place = &graph->shelf->searched[graph->shelf->oldest];
        graph->shelf->oldest = (graph->shelf->oldest + 1) % SEARCHED_MOST;
        cudnn_graph_destroy(*place);
        *place = graph;
        ++graph->users;
    }
    return STATUS_OK;
}

int cudnn_graph_plans(const struct cudnn_graph *graph)
{
    return graph->plan_count;
}

struct cudnn_plan *cudnn_graph_plan_at(const struct cudnn_graph *graph, int plan)
{
    return &graph->plans[plan];
}

/* ---- running ---- */

/* Compiling a plan takes 45 ms to seconds. Few compiled plans win; likely winners come first. */
static const double compiling_enough = 0.1; /* s; a graph then compiles no further plan */

enum status cudnn_graph_build(struct cudnn_graph *graph, int plan, struct error *error)
{
    struct cudnn_plan *p = &graph->plans[plan];
    if (p->descriptor)
        return STATUS_OK;
    if (p->status)
        return error_set(error, p->status, "%s could not be built", p->name);
    if (p->compiled && graph->compiling > compiling_enough)
        return error_set(error, STATUS_UNSUPPORTED, "%s is not compiled any more", p->name);
    if (p->last_resort && graph->built)
        return error_set(error, STATUS_UNSUPPORTED, "%s is not compiled: another plan was built",
                         p->name);
    double begin = clock_monotonic();
    const size_t kept = graph->stack.count;
    p->status = plan_build(graph, p, error);
    if (p->compiled)
        graph->compiling += clock_monotonic() - begin;
    if (p->status)
        descriptors_destroy(&graph->stack, kept);
    graph->built |= p->status == STATUS_OK;
    return p->status;
}

enum status cudnn_graph_bind(struct cudnn_graph *graph, int plan, const int64_t *uids,
                             void *const *memory, int64_t count, void *workspace,
                             struct cudnn_binding *binding, struct error *error)
{
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, memory},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace},
        {0},
    };
    const size_t kept = graph->stack.count;
    cudnn_graph_unbind(binding);
    enum status status = cudnn_graph_describe(graph, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                                              attributes, &binding->pack, error);
    if (status)
        descriptors_destroy(&graph->stack, kept);
    else
        graph->stack.count = kept; /* the binding owns the pack */
    binding->plan = graph->plans[plan].descriptor;
    return status;
}

void cudnn_graph_unbind(struct cudnn_binding *binding)
{
    if (binding->pack)
        cudnnBackendDestroyDescriptor(binding->pack);
    *binding = (struct cudnn_binding){0};
}

cudnnStatus_t cudnn_graph_run(const struct cudnn_graph *graph, const struct cudnn_binding *binding)
{
    return cudnnBackendExecute(graph->cudnn, binding->plan, binding->pack);
}
