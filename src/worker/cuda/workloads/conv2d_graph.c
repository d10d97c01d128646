#include "worker/cuda/workloads/conv2d_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Descriptors refer to each other in ways that cuDNN does not tell, so they form a stack: none is
 * destroyed before those that were made after it. */
struct conv2d_graph {
    cudnnHandle_t cudnn;
    cudnnBackendDescriptor_t *descriptors;
    int descriptor_count, descriptor_room;
    size_t workspace_limit;
    double compiling; /* s, spent on plans that cuDNN compiles */
    struct conv2d_plan plans[CONV2D_PLANS_MAX];
    int plan_count;
    const struct conv2d_plan *bound;
    cudnnBackendDescriptor_t pack; /* of `bound`: its memory */
    int pack_place;                /* in the stack */
};

/* ---- descriptors ---- */

static enum status descriptor_create(struct conv2d_graph *graph, cudnnBackendDescriptorType_t type,
                                     cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    if (graph->descriptor_count == graph->descriptor_room) {
        int room = 2 * graph->descriptor_room + 64;
        cudnnBackendDescriptor_t *descriptors =
            realloc(graph->descriptors, (size_t)room * sizeof *descriptors);
        if (!descriptors)
            return error_set(error, STATUS_FAILED, "no memory for %d descriptors", room);
        graph->descriptors = descriptors;
        graph->descriptor_room = room;
    }
    TRY(CUDNN(cudnnBackendCreateDescriptor(type, descriptor)));
    graph->descriptors[graph->descriptor_count++] = *descriptor;
    return STATUS_OK;
}

static void descriptors_destroy(struct conv2d_graph *graph, int kept)
{
    while (graph->descriptor_count > kept)
        cudnnBackendDestroyDescriptor(graph->descriptors[--graph->descriptor_count]);
}

struct attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    const void *values; /* NULL ends a list */
};

static enum status descriptor_build(struct conv2d_graph *graph, cudnnBackendDescriptorType_t type,
                                    const struct attribute *attributes,
                                    cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    cudnnBackendDescriptor_t built;
    TRY(descriptor_create(graph, type, &built, error));
    for (const struct attribute *a = attributes; a->values; ++a)
        TRY(CUDNN(cudnnBackendSetAttribute(built, a->name, a->type, a->count, a->values)));
    TRY(CUDNN(cudnnBackendFinalize(built)));
    *descriptor = built;
    return STATUS_OK;
}

/* At most `room` values. */
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

/* ---- the convolution as a graph of one operation ---- */

static const struct operation {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t convolution, tensor[TENSOR_BASIC_COUNT], alpha, beta;
} operations[] = {
    /* clang-format off */
    [CONV2D_FORWARD] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        {[TENSOR_INPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
         [TENSOR_WEIGHT] = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         [TENSOR_OUTPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CONV2D_BACKWARD_DATA] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
        {[TENSOR_INPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
         [TENSOR_WEIGHT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         [TENSOR_OUTPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CONV2D_BACKWARD_FILTER] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
        {[TENSOR_INPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         [TENSOR_WEIGHT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         [TENSOR_OUTPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    /* clang-format on */
};

/* cuDNN's name of a tensor in the graph and in a variant pack. */
static int64_t tensor_uid(enum tensor tensor)
{
    return 1 + (int64_t)tensor;
}

/* Dimensions are in the order N, C, H, W whatever the layout; the strides tell that. The groups
 * follow from the channels of the input and of the weights. */
static enum status tensor_build(struct conv2d_graph *graph, const struct conv2d *s,
                                cudnnDataType_t data, enum tensor tensor,
                                cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    const struct {
        int64_t size[4], stride[4];
    } shapes[TENSOR_BASIC_COUNT] = {
        [TENSOR_INPUT] = {{s->batch, s->channels, s->height, s->width},
                          {conv2d_x_at(s, 1, 0, 0, 0), conv2d_x_at(s, 0, 0, 0, 1),
                           conv2d_x_at(s, 0, 1, 0, 0), conv2d_x_at(s, 0, 0, 1, 0)}},
        [TENSOR_WEIGHT] = {{s->filters, s->channels / s->groups, s->kernel_height, s->kernel_width},
                           {conv2d_w_at(s, 1, 0, 0, 0), conv2d_w_at(s, 0, 0, 0, 1),
                            conv2d_w_at(s, 0, 1, 0, 0), conv2d_w_at(s, 0, 0, 1, 0)}},
        [TENSOR_OUTPUT] = {{s->batch, s->filters, s->out_height, s->out_width},
                           {conv2d_y_at(s, 1, 0, 0, 0), conv2d_y_at(s, 0, 0, 0, 1),
                            conv2d_y_at(s, 0, 1, 0, 0), conv2d_y_at(s, 0, 0, 1, 0)}},
    };
    const int64_t uid = tensor_uid(tensor), alignment = 128;
    const struct attribute attributes[] = {
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &data},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shapes[tensor].size},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shapes[tensor].stride},
        {0},
    };
    return descriptor_build(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, descriptor, error);
}

static enum status convolution_build(struct conv2d_graph *graph, const struct conv2d *s,
                                     cudnnDataType_t compute, cudnnBackendDescriptor_t *descriptor,
                                     struct error *error)
{
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dimensions = 2, paddings[] = {s->pad_height, s->pad_width};
    const int64_t strides[] = {s->stride, s->stride}, dilations[] = {s->dilation, s->dilation};
    const struct attribute attributes[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, paddings},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, paddings},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations},
        {0},
    };
    return descriptor_build(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, attributes, descriptor,
                            error);
}

static enum status operation_build(struct conv2d_graph *graph,
                                   const struct conv2d_graph_request *request,
                                   cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    static const float one_float = 1.0f, zero_float = 0.0f;
    static const double one_double = 1.0, zero_double = 0.0;
    const struct operation *names = &operations[request->shape->pass];
    bool wide = request->compute == CUDNN_DATA_DOUBLE;
    cudnnBackendAttributeType_t scale = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
    const void *alpha = wide ? (const void *)&one_double : &one_float;
    const void *beta = wide ? (const void *)&zero_double : &zero_float;
    cudnnBackendDescriptor_t convolution, tensor[TENSOR_BASIC_COUNT];
    TRY(convolution_build(graph, request->shape, request->compute, &convolution, error));
    for (int i = 0; i < TENSOR_BASIC_COUNT; ++i)
        TRY(tensor_build(graph, request->shape,
                         i == TENSOR_OUTPUT ? request->result : request->data, (enum tensor)i,
                         &tensor[i], error));
    const struct attribute attributes[] = {
        {names->convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &convolution},
        {names->tensor[TENSOR_INPUT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor[TENSOR_INPUT]},
        {names->tensor[TENSOR_WEIGHT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor[TENSOR_WEIGHT]},
        {names->tensor[TENSOR_OUTPUT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor[TENSOR_OUTPUT]},
        {names->alpha, scale, 1, alpha},
        {names->beta, scale, 1, beta},
        {0},
    };
    return descriptor_build(graph, names->type, attributes, descriptor, error);
}

static enum status operation_graph_build(struct conv2d_graph *graph,
                                         const struct conv2d_graph_request *request,
                                         cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    cudnnBackendDescriptor_t operation;
    TRY(operation_build(graph, request, &operation, error));
    const struct attribute attributes[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation},
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->cudnn},
        {0},
    };
    return descriptor_build(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, descriptor,
                            error);
}

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
    TRY(attribute_get(engine, kind, type, kinds, notes, &count, error));
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
    TRY(attribute_get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type,
                      &count, error));
    TRY(integer_get(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &value, error));
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
    TRY(integer_get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &index, error));
    for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i)
        TRY(descriptor_create(graph, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[i], error));
    TRY(attribute_get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                      CUDNN_KNOB_TYPE_COUNTS, knobs, &count, error));
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
    const struct attribute attributes[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->cudnn},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &plan->config},
        {0},
    };
    cudnnBackendDescriptor_t built;
    TRY(descriptor_build(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attributes, &built,
                         error));
    TRY(integer_get(built, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, &workspace, error));
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
    TRY(descriptor_create(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine, error));
    TRY(attribute_get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
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
    const struct attribute attributes[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation_graph},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
        {0},
    };
    TRY(descriptor_build(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes, &heuristic,
                         error));
    for (int i = 0; i < CONFIGS_MAX; ++i)
        TRY(descriptor_create(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i], error));
    return attribute_get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         CONFIGS_MAX, configs, count, error);
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
        int kept = graph->descriptor_count;
        status = plan_add(graph, request, configs[i], refusal);
        if (status)
            descriptors_destroy(graph, kept);
    }
    return status == STATUS_DEVICE ? STATUS_DEVICE : STATUS_OK;
}

/* An engine with the knobs that it has by itself. */
static enum status engine_add(struct conv2d_graph *graph,
                              const struct conv2d_graph_request *request,
                              cudnnBackendDescriptor_t operation_graph, int64_t index,
                              struct error *error)
{
    cudnnBackendDescriptor_t engine, config;
    const struct attribute engine_attributes[] = {
        {CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation_graph},
        {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index},
        {0},
    };
    const struct attribute config_attributes[] = {
        {CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine},
        {0},
    };
    TRY(descriptor_build(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine_attributes, &engine,
                         error));
    TRY(descriptor_build(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, config_attributes, &config,
                         error));
    TRY(plan_add(graph, request, config, error));
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
    enum status status = integer_get(operation_graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                     &engines, refusal);
    for (int64_t i = 0;
         i < engines && graph->plan_count < CONV2D_PLANS_MAX && status != STATUS_DEVICE; ++i) {
        int kept = graph->descriptor_count;
        status = engine_add(graph, request, operation_graph, i, refusal);
        if (status)
            descriptors_destroy(graph, kept);
    }
    return status == STATUS_DEVICE ? STATUS_DEVICE : STATUS_OK;
}

static enum status graph_prepare(struct conv2d_graph *graph,
                                 const struct conv2d_graph_request *request, struct error *error)
{
    cudnnBackendDescriptor_t operation_graph;
    struct error refusal = {"cuDNN's heuristics know no engine for it"};
    enum status status = operation_graph_build(graph, request, &operation_graph, error);
    if (status)
        return status;
    for (int i = 0; i < HEURISTICS && !status; ++i)
        status = plans_find(graph, request, operation_graph, heuristics[i], &refusal);
    if (!status && !request->tensor)
        status = engines_add(graph, request, operation_graph, &refusal);
    if (!status && graph->plan_count == 0)
        status = STATUS_UNSUPPORTED;
    if (status)
        return error_set(error, status, "%s", refusal.text);
    graph->pack_place = graph->descriptor_count;
    return STATUS_OK;
}

enum status conv2d_graph_create(const struct conv2d_graph_request *request,
                                struct conv2d_graph **graph, struct error *error)
{
    struct conv2d_graph *created = calloc(1, sizeof *created);
    if (!created)
        return error_set(error, STATUS_FAILED, "no memory");
    created->cudnn = request->cudnn;
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
    descriptors_destroy(graph, 0);
    free(graph->descriptors);
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
    descriptors_destroy(graph, graph->pack_place);
    p->status = plan_build(graph, p, error);
    if (p->compiled)
        graph->compiling += clock_monotonic() - begin;
    if (p->status)
        descriptors_destroy(graph, graph->pack_place);
    graph->pack_place = graph->descriptor_count;
    return p->status;
}

enum status conv2d_graph_bind(struct conv2d_graph *graph, int plan, void *x, void *w, void *y,
                              void *workspace, struct error *error)
{
    const int64_t uids[] = {tensor_uid(TENSOR_INPUT), tensor_uid(TENSOR_WEIGHT),
                            tensor_uid(TENSOR_OUTPUT)};
    void *const memory[] = {x, w, y};
    const struct attribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, TENSOR_BASIC_COUNT, uids},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, TENSOR_BASIC_COUNT, memory},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace},
        {0},
    };
    descriptors_destroy(graph, graph->pack_place);
    TRY(descriptor_build(graph, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes, &graph->pack,
                         error));
    graph->bound = &graph->plans[plan];
    return STATUS_OK;
}

cudnnStatus_t conv2d_graph_run(struct conv2d_graph *graph)
{
    return cudnnBackendExecute(graph->cudnn, graph->bound->descriptor, graph->pack);
}
