/* One convolution by cuDNN, which offers two interfaces. Calls, which cuDNN marks as deprecated,
 * have named algorithms, which a sweep can select. Operation graphs (cudnn_graph.h) reach more
 * engines, but the numbers of their plans change with the version of cuDNN. "auto" takes the
 * fastest call or plan, "graph" the fastest plan. */
#include "worker/cuda/workloads/conv2d.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gpu/arena.h"
#include "worker/gpu/search.h"
#include "worker/cuda/workloads/cudnn_graph.h"
#include "worker/cuda/workloads/workloads.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const struct format {
    bool tensor;         /* runs on tensor units; otherwise CUDNN_FMA_MATH keeps TF32 out of fp32 */
    bool vector_allowed; /* vector units compute in the same precision: sums of fp32 or wider */
    bool graphs_alone;   /* no call takes this precision */
    int capability;      /* least compute capability */
} formats[PRECISION_COUNT] = {
    [PRECISION_FP64] = {.vector_allowed = true},
    [PRECISION_FP32] = {.vector_allowed = true},
    [PRECISION_TF32] = {.tensor = true, .capability = 80},
    [PRECISION_FP16] = {.tensor = true, .vector_allowed = true, .capability = 70},
    [PRECISION_BF16] = {.tensor = true, .vector_allowed = true, .capability = 80},
    [PRECISION_FP8] = {.tensor = true, .graphs_alone = true, .capability = 89},
};

enum { CALL = -1 };
struct candidate {
    const char *name; /* "implicit-precomp-gemm", "engine-38 k2=5" */
    int plan;         /* index among the graph's plans, or CALL */
    int number;       /* cuDNN's number of a call in this pass */
    cudnnMathType_t math;
    bool tensor;      /* runs on tensor units */
    size_t workspace; /* byte; of a plan: known once it is bound */
};

struct conv2d_work {
    struct tensor_work tensors; /* no arrays in a part of a step: the step owns them */
    struct conv2d shape;
    const struct format *format;
    cudnnDataType_t compute;
    cudnnMathType_t math;
    struct conv2d_memory memory;
    void *workspace; /* owned */
    size_t workspace_bytes;
    /* Used by calls; NULL without has_calls. */
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t convolution;
    struct cudnn_graph *graph;    /* NULL: not searched, or cuDNN has no plan */
    struct candidate *candidates; /* owned */
    int candidate_count;
    cudnnStatus_t refusal; /* cuDNN's reason for the last refused call */
    const struct candidate *bound;
    struct cudnn_binding plan;    /* the bound plan of the graph; empty if a call is bound */
    char key[CONFIG_HASH_TEXT];   /* the graph's key: hash of the configuration with a hot cache */
    char refused[SEARCH_REFUSED]; /* see struct search */
    bool recalled;                /* the offered algorithm is bound; candidates are incomplete */
};

/* A call pads both sides alike. */
static bool has_calls(const struct conv2d *s)
{
    return !formats[s->precision].graphs_alone && s->pad_height == s->after_height &&
           s->pad_width == s->after_width;
}

/* ---- the three passes by cuDNN's functions, without its graphs ---- */

/* cuDNN's number of an algorithm for each pass; NONE: the pass has no such algorithm. */
enum { PASSES = CONV2D_BACKWARD_FILTER + 1, FOUND_MAX = 16, NONE = -1 };
#define FORWARD(NAME)                                                                              \
    {                                                                                              \
        CUDNN_CONVOLUTION_FWD_ALGO_##NAME, NONE, NONE                                              \
    }
#define ALL(NAME)                                                                                  \
    {                                                                                              \
        CUDNN_CONVOLUTION_FWD_ALGO_##NAME, CUDNN_CONVOLUTION_BWD_DATA_ALGO_##NAME,                 \
            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_##NAME                                               \
    }
static const struct {
    const char *name;
    int number[PASSES];
} algorithms[] = {
    /* clang-format off */
    {"implicit-gemm", FORWARD(IMPLICIT_GEMM)},
    {"implicit-precomp-gemm", FORWARD(IMPLICIT_PRECOMP_GEMM)},
    {"gemm", FORWARD(GEMM)},
    {"direct", FORWARD(DIRECT)},
    {"fft", ALL(FFT)},
    {"fft-tiling", ALL(FFT_TILING)},
    {"winograd", ALL(WINOGRAD)},
    {"winograd-nonfused", ALL(WINOGRAD_NONFUSED)},
    {"algo-0", {NONE, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0}},
    {"algo-1", {NONE, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}},
    {"algo-3", {NONE, NONE, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3}},
    /* clang-format on */
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

static const char *algorithm_name(enum conv2d_pass pass, int number)
{
    for (int i = 0; i < ALGORITHMS; ++i)
        if (algorithms[i].number[pass] == number)
            return algorithms[i].name;
    return "unknown";
}

static int algorithm_number(enum conv2d_pass pass, const char *name)
{
    for (int i = 0; i < ALGORITHMS; ++i)
        if (strcmp(algorithms[i].name, name) == 0)
            return algorithms[i].number[pass];
    return NONE;
}

/* cuDNN's result for a call, in one form for all passes. */
struct answer {
    int number;
    cudnnStatus_t status;
    size_t workspace;
    cudnnMathType_t math;
};

/* Defines PASS_run and PASS_ask of the pass that computes `result` from `a` and `b`. cuDNN's
 * functions for the three passes differ in the order of the tensors and in the type of the
 * algorithm's number. With a workspace cuDNN runs each algorithm; without a workspace it estimates
 * the times. */
#define PASS_BY_CALLS(pass, Pass, Bwd, a, b, result)                                               \
    static cudnnStatus_t pass##_run(const struct conv2d_work *c, cudnnHandle_t cudnn)              \
    {                                                                                              \
        return cudnnConvolution##Pass(                                                             \
            cudnn, cudnn_one(c->shape.precision), c->a, c->memory.a, c->b, c->memory.b,            \
            c->convolution, (cudnnConvolution##Bwd##Algo_t)c->bound->number, c->workspace,         \
            c->bound->workspace, cudnn_zero(c->shape.precision), c->result, c->memory.result);     \
    }                                                                                              \
    static cudnnStatus_t pass##_ask(const struct conv2d_work *c, cudnnHandle_t cudnn,              \
                                    void *workspace, size_t bytes,                                 \
                                    struct answer answers[FOUND_MAX], int *count)                  \
    {                                                                                              \
        cudnnConvolution##Bwd##AlgoPerf_t found[FOUND_MAX];                                        \
        cudnnStatus_t status =                                                                     \
            workspace                                                                              \
                ? cudnnFindConvolution##Pass##AlgorithmEx(                                         \
                      cudnn, c->a, c->memory.a, c->b, c->memory.b, c->convolution, c->result,      \
                      c->memory.result, FOUND_MAX, count, found, workspace, bytes)                 \
                : cudnnGetConvolution##Pass##Algorithm_v7(cudnn, c->a, c->b, c->convolution,       \
                                                          c->result, FOUND_MAX, count, found);     \
        for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < *count; ++i)                         \
            answers[i] = (struct answer){(int)found[i].algo, found[i].status, found[i].memory,     \
                                         found[i].mathType};                                       \
        return status;                                                                             \
    }
PASS_BY_CALLS(forward, Forward, Fwd, x, w, y)
PASS_BY_CALLS(backward_data, BackwardData, BwdData, w, y, x)
PASS_BY_CALLS(backward_filter, BackwardFilter, BwdFilter, x, y, w)

/* Differences between the passes. */
static const struct {
    const char *name;
    enum tensor result;
    cudnnStatus_t (*run)(const struct conv2d_work *c, cudnnHandle_t cudnn);
    cudnnStatus_t (*ask)(const struct conv2d_work *c, cudnnHandle_t cudnn, void *workspace,
                         size_t bytes, struct answer answers[FOUND_MAX], int *count);
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t convolution, tensor[TENSOR_BASIC_COUNT], alpha, beta;
} passes[PASSES] = {
#define PASS(name, result, pass, PASS, ATTRIBUTE, X, W, Y)                                         \
    {                                                                                              \
        name, result, pass##_run, pass##_ask,                                                      \
            CUDNN_BACKEND_OPERATION_CONVOLUTION_##PASS##_DESCRIPTOR,                               \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_CONV_DESC,                              \
            {[TENSOR_INPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_##X,                  \
             [TENSOR_WEIGHT] = CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_##W,                 \
             [TENSOR_OUTPUT] = CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_##Y},                \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_ALPHA,                                  \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##ATTRIBUTE##_BETA                                    \
    }
    [CONV2D_FORWARD] = PASS("forward", TENSOR_OUTPUT, forward, FORWARD, FORWARD, X, W, Y),
    [CONV2D_BACKWARD_DATA] =
        PASS("backward-data", TENSOR_INPUT, backward_data, BACKWARD_DATA, BWD_DATA, DX, W, DY),
    [CONV2D_BACKWARD_FILTER] = PASS("backward-filter", TENSOR_WEIGHT, backward_filter,
                                    BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
#undef PASS
};

/* ---- the convolution as cuDNN describes it ---- */

static enum status descriptors_create(struct conv2d_work *c, struct error *error)
{
    const struct conv2d *s = &c->shape;
    cudnnTensorFormat_t layout = s->layout == LAYOUT_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    cudnnDataType_t data = cudnn_data_type(s->precision);
    TRY(CUDNN(cudnnCreateTensorDescriptor(&c->x)));
    TRY(CUDNN(cudnnCreateTensorDescriptor(&c->y)));
    TRY(CUDNN(cudnnCreateFilterDescriptor(&c->w)));
    TRY(CUDNN(cudnnCreateConvolutionDescriptor(&c->convolution)));
    TRY(CUDNN(cudnnSetTensor4dDescriptor(c->x, layout, data, (int)s->batch, (int)s->channels,
                                         (int)s->height, (int)s->width)));
    TRY(CUDNN(cudnnSetTensor4dDescriptor(c->y, layout, data, (int)s->batch, (int)s->filters,
                                         (int)s->out_height, (int)s->out_width)));
    TRY(CUDNN(cudnnSetFilter4dDescriptor(c->w, data, layout, (int)s->filters,
                                         (int)(s->channels / s->groups), (int)s->kernel_height,
                                         (int)s->kernel_width)));
    TRY(CUDNN(cudnnSetConvolution2dDescriptor(c->convolution, (int)s->pad_height, (int)s->pad_width,
                                              (int)s->stride_height, (int)s->stride_width,
                                              (int)s->dilation_height, (int)s->dilation_width,
                                              CUDNN_CROSS_CORRELATION, c->compute)));
    return CUDNN(cudnnSetConvolutionGroupCount(c->convolution, (int)s->groups));
}

static int64_t tensor_uid(enum tensor tensor)
{
    return 1 + (int64_t)tensor;
}

static struct cudnn_graph_tensor graph_tensor(const struct conv2d *s, enum tensor tensor)
{
    const int64_t shapes[TENSOR_BASIC_COUNT][4] = {
        [TENSOR_INPUT] = {s->batch, s->channels, s->height, s->width},
        [TENSOR_WEIGHT] = {s->filters, s->channels / s->groups, s->kernel_height, s->kernel_width},
        [TENSOR_OUTPUT] = {s->batch, s->filters, s->out_height, s->out_width},
    };
    const int64_t *shape = shapes[tensor];
    const bool result = tensor == TENSOR_OUTPUT;
    return (struct cudnn_graph_tensor){
        .uid = tensor_uid(tensor),
        .type = cudnn_data_type(result ? precision_info[s->precision].result : s->precision),
        .extents = (s->layout == LAYOUT_NHWC ? cudnn_extents_nhwc : cudnn_extents_nchw)(
            shape[0], shape[1], shape[2], shape[3]),
        .alignment = 128,
    };
}

static enum status operation_describe(const struct conv2d_work *c, struct error *error)
{
    const struct conv2d *s = &c->shape;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dimensions = 2, before[] = {s->pad_height, s->pad_width};
    const int64_t after[] = {s->after_height, s->after_width};
    const int64_t strides[] = {s->stride_height, s->stride_width};
    const int64_t dilations[] = {s->dilation_height, s->dilation_width};
    const cudnnBackendAttributeType_t scale =
        c->compute == CUDNN_DATA_DOUBLE ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
    cudnnBackendDescriptor_t convolution, tensors[TENSOR_BASIC_COUNT];
    const struct cudnn_attribute attributes[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &c->compute},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations},
        {0},
    };
    TRY(cudnn_graph_describe(c->graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, attributes,
                             &convolution, error));
    for (int i = 0; i < TENSOR_BASIC_COUNT; ++i) {
        const struct cudnn_graph_tensor tensor = graph_tensor(s, (enum tensor)i);
        TRY(cudnn_graph_tensor(c->graph, &tensor, &tensors[i], error));
    }
    const struct cudnn_attribute operation[] = {
        {passes[s->pass].convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &convolution},
        {passes[s->pass].tensor[TENSOR_INPUT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &tensors[TENSOR_INPUT]},
        {passes[s->pass].tensor[TENSOR_WEIGHT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &tensors[TENSOR_WEIGHT]},
        {passes[s->pass].tensor[TENSOR_OUTPUT], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &tensors[TENSOR_OUTPUT]},
        {passes[s->pass].alpha, scale, 1, cudnn_one(s->precision)},
        {passes[s->pass].beta, scale, 1, cudnn_zero(s->precision)},
        {0},
    };
    return cudnn_graph_operate(c->graph, passes[s->pass].type, operation, error);
}

/* ---- candidates ---- */

static enum status candidate_add(struct conv2d_work *c, struct candidate candidate,
                                 struct error *error)
{
    struct candidate *candidates =
        realloc(c->candidates, (size_t)(c->candidate_count + 1) * sizeof *candidates);
    if (!candidates)
        return error_set(error, STATUS_FAILED, "no memory");
    candidates[c->candidate_count++] = candidate;
    c->candidates = candidates;
    return STATUS_OK;
}

/* Adds the calls that compute in the precision, the likely fastest first. `name` selects one
 * algorithm; NULL: all. With a name cuDNN runs each call once, because only a run reveals its math.
 * c->refusal becomes the reason for the last refused call. */
static enum status calls_find(struct gpu *gpu, struct conv2d_work *c, const char *name,
                              size_t bytes, struct error *error)
{
    const int wanted = name ? algorithm_number(c->shape.pass, name) : NONE;
    const bool tensor = c->format->tensor;
    struct answer answers[FOUND_MAX];
    void *workspace = NULL;
    int count = 0;
    c->refusal = CUDNN_STATUS_SUCCESS;
    TRY(CUDNN(cudnnSetConvolutionMathType(c->convolution, c->math)));
    if (name)
        TRY(arena_allocate(c->tensors.arena, (double)bytes, "the search's workspace", &workspace,
                           error));
    cudnnStatus_t code =
        passes[c->shape.pass].ask(c, gpu->cudnn, workspace, bytes, answers, &count);
    enum status status = cudnn_check(code, "cudnnFindConvolutionAlgorithmEx", error);
    arena_free(c->tensors.arena, workspace);
    for (int i = 0; status == STATUS_OK && i < count; ++i) {
        const struct answer *a = &answers[i];
        bool vector = a->math == CUDNN_FMA_MATH || a->math == CUDNN_DEFAULT_MATH;
        bool exact = a->math == c->math || (vector && c->format->vector_allowed);
        if (name && a->number != wanted)
            continue;
        if (a->status != CUDNN_STATUS_SUCCESS)
            c->refusal = a->status;
        else if (a->workspace <= bytes && exact)
            status = candidate_add(c,
                                   (struct candidate){
                                       .name = algorithm_name(c->shape.pass, a->number),
                                       .plan = CALL,
                                       .number = a->number,
                                       .math = tensor ? a->math : c->math,
                                       .tensor = tensor && a->math == c->math,
                                       .workspace = a->workspace,
                                   },
                                   error);
    }
    return status;
}

/* Adds the plan of the name `only`; NULL: all plans, from the graph of recent rows of this shape if
 * there is one.
 *
 * The fallback's compiled plan, which compiles for 45 ms, is a last resort in forward passes in 16
 * bits whose windows overlap: on an H200 it ran at least 1.17 times the best time in all 214 of
 * them. It won backward passes, and 12 of 163 forward passes without overlap, mostly 1x1. */
static enum status plans_find(struct gpu *gpu, struct conv2d_work *c, const char *only,
                              size_t bytes, struct error *error)
{
    const struct conv2d *s = &c->shape;
    const bool forward_16_bits =
        s->pass == CONV2D_FORWARD && precision_info[s->precision].bytes == 2;
    const bool windows_overlap =
        s->kernel_height > s->stride_height || s->kernel_width > s->stride_width;
    const struct cudnn_engines engines = {.tensor = c->format->tensor,
                                          .vector = c->format->vector_allowed,
                                          .compiled_last = forward_16_bits && windows_overlap,
                                          .only = only};
    TRY(cudnn_graph_create(gpu->cudnn, gpu->plans, only ? NULL : c->key, bytes, &c->graph, error));
    if (cudnn_graph_plans(c->graph) == 0) {
        TRY(operation_describe(c, error));
        TRY(cudnn_graph_plan(c->graph, &engines, error));
    }
    for (int i = 0; i < cudnn_graph_plans(c->graph); ++i) {
        const struct cudnn_plan *plan = cudnn_graph_plan_at(c->graph, i);
        TRY(candidate_add(c,
                          (struct candidate){.name = plan->name,
                                             .plan = i,
                                             .math = plan->tensor ? c->math : CUDNN_FMA_MATH,
                                             .tensor = plan->tensor},
                          error));
    }
    return STATUS_OK;
}

/* The workspace only grows, because the search binds candidates in turn. */
static enum status candidate_bind(struct gpu *gpu, struct work *work, int candidate,
                                  struct error *error)
{
    struct conv2d_work *c = (struct conv2d_work *)work;
    struct candidate *chosen = &c->candidates[candidate];
    const int64_t uids[] = {tensor_uid(TENSOR_INPUT), tensor_uid(TENSOR_WEIGHT),
                            tensor_uid(TENSOR_OUTPUT)};
    void *const memory[] = {c->memory.x, c->memory.w, c->memory.y};
    (void)gpu;
    if (chosen->plan != CALL) {
        TRY(cudnn_graph_build(c->graph, chosen->plan, error));
        chosen->workspace = cudnn_graph_plan_at(c->graph, chosen->plan)->workspace;
    }
    if (chosen->workspace > c->workspace_bytes) {
        arena_free(c->tensors.arena, c->workspace);
        c->workspace = NULL;
        c->workspace_bytes = 0;
        TRY(arena_allocate(c->tensors.arena, (double)chosen->workspace, "the workspace",
                           &c->workspace, error));
        c->workspace_bytes = chosen->workspace;
    }
    if (chosen->plan != CALL)
        TRY(cudnn_graph_bind(c->graph, chosen->plan, uids, memory, TENSOR_BASIC_COUNT, c->workspace,
                             &c->plan, error));
    else
        TRY(CUDNN(cudnnSetConvolutionMathType(c->convolution, chosen->math)));
    c->bound = chosen;
    return STATUS_OK;
}

static const char *candidate_name(const struct work *work, int candidate)
{
    return ((const struct conv2d_work *)work)->candidates[candidate].name;
}

static double *candidate_hot_time(const struct work *work, int candidate)
{
    const struct conv2d_work *c = (const struct conv2d_work *)work;
    const int plan = c->candidates[candidate].plan;
    return plan == CALL ? NULL : &cudnn_graph_plan_at(c->graph, plan)->hot_time;
}

/* ---- the algorithm ---- */

/* Returns the largest workspace: enough for demanding algorithms, and no more than a framework
 * allows. */
static enum status workspace_limit(const struct arena *arena, size_t *bytes, struct error *error)
{
    const size_t limit = (size_t)4 << 30;
    double available;
    TRY(arena_available(arena, &available, error));
    *bytes = available / 4 < (double)limit ? (size_t)(available / 4) : limit;
    return STATUS_OK;
}

/* Adds plans in the order of cuDNN's heuristics, then calls. If a plan and a call have the same
 * kernels, the search keeps the plan: it takes the host 5 us, the call up to 0.4 ms. */
static enum status candidates_find(struct gpu *gpu, struct conv2d_work *c, struct error *error)
{
    const char *algorithm = c->shape.algorithm;
    bool automatic = strcmp(algorithm, "auto") == 0, graph = strcmp(algorithm, "graph") == 0;
    size_t bytes;
    TRY(workspace_limit(c->tensors.arena, &bytes, error));
    enum status status = STATUS_OK;
    if (automatic || graph)
        status = plans_find(gpu, c, NULL, bytes, error);
    if ((status == STATUS_OK || status == STATUS_UNSUPPORTED) && c->convolution && !graph)
        status = calls_find(gpu, c, automatic ? NULL : algorithm, bytes, error);
    bool enough = status == STATUS_UNSUPPORTED && c->candidate_count > 0;
    return enough ? STATUS_OK : status;
}

static bool is_call(const struct conv2d *s, const char *algorithm)
{
    return has_calls(s) && algorithm_number(s->pass, algorithm) != NONE;
}

static enum status algorithm_refuse(const struct conv2d *s, const char *reason, struct error *error)
{
    char names[160] = "";
    size_t used = 0;
    for (int i = 0; i < ALGORITHMS && used < sizeof names; ++i)
        if (is_call(s, algorithms[i].name))
            used += (size_t)snprintf(names + used, sizeof names - used, ", %s", algorithms[i].name);
    return error_set(error, STATUS_UNSUPPORTED, "algorithm %s in %s: %s; %s has auto, graph%s",
                     s->algorithm, precision_info[s->precision].name, reason, passes[s->pass].name,
                     names);
}

static void candidates_forget(struct conv2d_work *c)
{
    cudnn_graph_unbind(&c->plan);
    cudnn_graph_destroy(c->graph);
    c->graph = NULL;
    c->bound = NULL;
    c->candidate_count = 0;
    c->recalled = false;
}

static struct search search_of(struct gpu *gpu, struct conv2d_work *c)
{
    return (struct search){
        .gpu = gpu,
        .work = &c->tensors.base,
        .count = c->candidate_count,
        .bind = candidate_bind,
        .name = candidate_name,
        .hot_time = candidate_hot_time,
        .refused = c->refused,
    };
}

static void algorithm_describe(const struct conv2d_work *c, struct record *record)
{
    tensor_work_describe(c->bound->name, c->bound->tensor ? UNIT_TENSOR : UNIT_VECTOR,
                         (double)c->bound->workspace, record);
    snprintf(record->math, sizeof record->math, "%s", cudnn_math_name[c->bound->math]);
}

/* Binds the offered algorithm, a call or a plan. c->recalled stays false if cuDNN does not offer
 * the algorithm any more; the status is STATUS_OK or STATUS_DEVICE. */
static enum status algorithm_recall(struct gpu *gpu, struct conv2d_work *c, struct record *record,
                                    struct error *error)
{
    const char *named = strcmp(c->shape.algorithm, "auto") == 0 ? NULL : c->shape.algorithm;
    int chosen = 0;
    if (record->offer) {
        const char *offered = record->offer->algorithm;
        size_t bytes;
        enum status status = workspace_limit(c->tensors.arena, &bytes, error);
        if (status == STATUS_OK)
            status = is_call(&c->shape, offered) ? calls_find(gpu, c, named, bytes, error)
                                                 : plans_find(gpu, c, offered, bytes, error);
        if (status == STATUS_OK) {
            const struct search search = search_of(gpu, c);
            c->recalled = search_recall(&search, &chosen, record, &status, error);
        }
        record->offer = NULL;
        if (c->recalled)
            algorithm_describe(c, record);
        else
            candidates_forget(c);
        return status == STATUS_DEVICE ? status : STATUS_OK;
    }
    return STATUS_OK;
}

static enum status algorithm_choose(struct gpu *gpu, struct conv2d_work *c, struct record *record,
                                    struct error *error)
{
    const struct search search = search_of(gpu, c);
    int chosen;
    if (c->candidate_count == 0)
        return algorithm_refuse(&c->shape,
                                c->refusal ? cudnnGetErrorString(c->refusal)
                                           : "cuDNN runs it only in the math of another precision",
                                error);
    TRY(search_run(&search, &chosen, record, error));
    algorithm_describe(c, record);
    return STATUS_OK;
}

/* ---- work_ops ---- */

static enum status conv2d_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    struct conv2d_work *c = (struct conv2d_work *)work;
    cudnnStatus_t code = c->bound->plan == CALL ? passes[c->shape.pass].run(c, gpu->cudnn)
                                                : cudnn_graph_run(c->graph, &c->plan);
    return cudnn_check(code, "the convolution", error);
}

/* Searches again without the kernels of the bound algorithm, whatever their name. */
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

static void conv2d_close(struct work *work)
{
    struct conv2d_work *c = (struct conv2d_work *)work;
    cudnn_graph_unbind(&c->plan);
    cudnn_graph_destroy(c->graph);
    if (c->convolution)
        cudnnDestroyConvolutionDescriptor(c->convolution);
    if (c->w)
        cudnnDestroyFilterDescriptor(c->w);
    if (c->y)
        cudnnDestroyTensorDescriptor(c->y);
    if (c->x)
        cudnnDestroyTensorDescriptor(c->x);
    arena_free(c->tensors.arena, c->workspace);
    free(c->candidates);
}

/* ---- preparation ---- */

enum status conv2d_single_check(const struct gpu *gpu, const struct config *config,
                                struct error *error)
{
    const struct conv2d s = conv2d_from(config);
    const struct format *format = &formats[s.precision];
    const bool any = strcmp(s.algorithm, "auto") == 0 || strcmp(s.algorithm, "graph") == 0;
    TRY(capability_check(gpu, format->capability, precision_info[s.precision].name, error));
    if (s.pass == CONV2D_BACKWARD_FILTER && s.precision == PRECISION_FP64 && !has_calls(&s))
        return error_set(error, STATUS_UNSUPPORTED,
                         "cuDNN's gradient of fp64 weights is wrong with padding that differs "
                         "before and after; implementation = plain is right");
    if (has_calls(&s))
        TRY(cudnn_count_check(fmax((double)conv2d_x_size(&s), (double)conv2d_y_size(&s)),
                              "implementation = plain has no such bound", error));
    return any || is_call(&s, s.algorithm) ? STATUS_OK
                                           : algorithm_refuse(&s,
                                                              has_calls(&s) || format->graphs_alone
                                                                  ? "not in this pass"
                                                                  : "calls pad both sides alike",
                                                              error);
}

TENSOR_SHAPE(conv2d)

/* Finds the algorithm of a convolution whose shape and memory are set. */
static enum status conv2d_open(struct gpu *gpu, const struct config *config, struct conv2d_work *c,
                               struct record *record, struct error *error)
{
    const struct config hot = config_hot(config);
    c->format = &formats[c->shape.precision];
    c->compute = c->shape.precision == PRECISION_FP64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    c->math = c->format->tensor ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
    config_hash(&hot, c->key);
    if (has_calls(&c->shape))
        TRY(descriptors_create(c, error));
    TRY(algorithm_recall(gpu, c, record, error));
    if (c->recalled)
        return STATUS_OK;
    TRY(candidates_find(gpu, c, error));
    return algorithm_choose(gpu, c, record, error);
}

static enum status single_open(struct gpu *gpu, const struct config *config, struct work *work,
                               struct record *record, struct error *error)
{
    struct conv2d_work *c = (struct conv2d_work *)work;
    struct tensor_work *t = &c->tensors;
    void **const memory[TENSOR_BASIC_COUNT] = {[TENSOR_INPUT] = &c->memory.x,
                                               [TENSOR_WEIGHT] = &c->memory.w,
                                               [TENSOR_OUTPUT] = &c->memory.y};
    for (int i = 0; i < TENSOR_BASIC_COUNT; ++i)
        *memory[i] = t->result[i] ? t->result[i] : t->input[i];
    t->ops.reject = conv2d_reject;
    return conv2d_open(gpu, config, c, record, error);
}

const struct tensor_routine conv2d_single = {
    .bytes = sizeof(struct conv2d_work),
    .shape = conv2d_shape,
    .check = conv2d_single_check,
    .open = single_open,
    .iterate = conv2d_iterate,
    .close = conv2d_close,
};

static void part_release(struct work *work)
{
    conv2d_close(work);
    free(work);
}

enum status conv2d_part_prepare(struct gpu *gpu, const struct config *config,
                                const struct conv2d_memory *memory, struct work **work,
                                struct record *record, struct error *error)
{
    static const struct work_ops ops = {.iterate = conv2d_iterate, .release = part_release};
    struct conv2d_work *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(error, STATUS_FAILED, "no memory");
    c->shape = conv2d_from(config);
    c->memory = *memory;
    c->tensors.arena = gpu->arena;
    c->tensors.base.ops = &ops;
    c->tensors.base.precision = c->shape.precision;
    enum status status = conv2d_open(gpu, config, c, record, error);
    if (status)
        part_release(&c->tensors.base);
    else
        *work = &c->tensors.base;
    return status;
}
