#include "worker/cuda/workloads/conv2d.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/gpu/memory.h"
#include "worker/cuda/gpu/timing.h"
#include "worker/cuda/workloads/conv2d_graph.h"

/* cuDNN has two ways to a convolution. Calls have named algorithms, which a sweep can ask for; cuDNN
 * marks them as deprecated. Operation graphs (conv2d_graph.h) reach more engines, but the numbers of
 * their plans mean something in one version of cuDNN only. "auto" takes the fastest of both, "graph"
 * the fastest plan. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { PASSES = 3, FOUND_MAX = 16, CALLS_MAX = 4, CANDIDATES_MAX = CALLS_MAX + CONV2D_PLANS_MAX };

/* cuDNN's number of an algorithm for each pass; NONE: the pass has no such algorithm. */
enum { NONE = -1, ANY = -2 };
static const struct {
    const char *name;
    int number[PASSES];
} algorithms[] = {
    /* clang-format off */
    {"implicit-gemm",         {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NONE, NONE}},
    {"implicit-precomp-gemm", {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, NONE, NONE}},
    {"gemm",                  {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, NONE, NONE}},
    {"direct",                {CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, NONE, NONE}},
    {"fft",                   {CUDNN_CONVOLUTION_FWD_ALGO_FFT,
                               CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
                               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT}},
    {"fft-tiling",            {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
                               CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
                               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING}},
    {"winograd",              {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
                               CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
                               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD}},
    {"winograd-nonfused",     {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
                               CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
                               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED}},
    {"algo-0",                {NONE, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0}},
    {"algo-1",                {NONE, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}},
    {"algo-3",                {NONE, NONE, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3}},
    /* clang-format on */
};
enum { ALGORITHM_NAMES = sizeof algorithms / sizeof *algorithms };

/* alpha = 1, beta = 0, in the type that cuDNN scales in. */
static const float one_float = 1.0f, zero_float = 0.0f;
static const double one_double = 1.0, zero_double = 0.0;

/* How a precision is asked for. CUDNN_FMA_MATH keeps TF32 out of fp32; a search result of a math
 * type that would compute in another precision is not taken. */
static const struct format {
    cudnnDataType_t data, compute;
    cudnnMathType_t math;
    bool tensor;         /* `math` runs on tensor units */
    bool vector_allowed; /* vector units compute in the same precision: sums of fp32 or wider */
    int capability;      /* least */
    const void *one, *zero;
} formats[PRECISION_COUNT] = {
    /* clang-format off */
    [PRECISION_FP64] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_FMA_MATH, false, true, 0,
                        &one_double, &zero_double},
    [PRECISION_FP32] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, false, true, 0,
                        &one_float, &zero_float},
    [PRECISION_TF32] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true, false, 80,
                        &one_float, &zero_float},
    [PRECISION_FP16] = {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true, true, 70,
                        &one_float, &zero_float},
    [PRECISION_BF16] = {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, true, true, 80,
                        &one_float, &zero_float},
    /* clang-format on */
};

struct conv2d_work;

struct candidate {
    const char *name;
    cudnnMathType_t math;
    bool tensor; /* runs on tensor units */
    size_t workspace;
    enum status (*bind)(struct conv2d_work *c, const struct candidate *candidate,
                        struct error *error);
    cudnnStatus_t (*run)(cudnnHandle_t cudnn, struct conv2d_work *c);
    int algorithm;                  /* of a call: cuDNN's number in this pass */
    const struct conv2d_plan *plan; /* of a graph */
};

struct conv2d_work {
    struct work base;
    struct conv2d shape;
    const struct format *format;
    cudnnTensorDescriptor_t x_descriptor, y_descriptor;
    cudnnFilterDescriptor_t w_descriptor;
    cudnnConvolutionDescriptor_t convolution;
    void *x, *w, *y;
    void *workspace;
    int wanted; /* cuDNN's number of the algorithm asked for, ANY, or NONE: no call */
    bool graph_wanted;
    struct conv2d_graph *graph; /* NULL: not wanted, or cuDNN has no plan */
    struct candidate candidates[CANDIDATES_MAX];
    int candidate_count, call_count; /* calls among the candidates */
    cudnnStatus_t refusal;           /* of the last algorithm that the search could not run */
    struct candidate bound;
};

/* ---- the three passes ---- */

static cudnnStatus_t forward(cudnnHandle_t cudnn, struct conv2d_work *c)
{
    return cudnnConvolutionForward(cudnn, c->format->one, c->x_descriptor, c->x, c->w_descriptor,
                                   c->w, c->convolution,
                                   (cudnnConvolutionFwdAlgo_t)c->bound.algorithm, c->workspace,
                                   c->bound.workspace, c->format->zero, c->y_descriptor, c->y);
}

static cudnnStatus_t backward_data(cudnnHandle_t cudnn, struct conv2d_work *c)
{
    return cudnnConvolutionBackwardData(
        cudnn, c->format->one, c->w_descriptor, c->w, c->y_descriptor, c->y, c->convolution,
        (cudnnConvolutionBwdDataAlgo_t)c->bound.algorithm, c->workspace, c->bound.workspace,
        c->format->zero, c->x_descriptor, c->x);
}

static cudnnStatus_t backward_filter(cudnnHandle_t cudnn, struct conv2d_work *c)
{
    return cudnnConvolutionBackwardFilter(
        cudnn, c->format->one, c->x_descriptor, c->x, c->y_descriptor, c->y, c->convolution,
        (cudnnConvolutionBwdFilterAlgo_t)c->bound.algorithm, c->workspace, c->bound.workspace,
        c->format->zero, c->w_descriptor, c->w);
}

static enum status call_bind(struct conv2d_work *c, const struct candidate *candidate,
                             struct error *error)
{
    return CUDNN(cudnnSetConvolutionMathType(c->convolution, candidate->math));
}

static const char *algorithm_name(enum conv2d_pass pass, int algorithm)
{
    for (int i = 0; i < ALGORITHM_NAMES; ++i)
        if (algorithms[i].number[pass] == algorithm)
            return algorithms[i].name;
    return "unknown";
}

/* One of cuDNN's own measurements, which come fastest first. cuDNN times each only once, which is
 * noisy, so the first few are timed again. */
static void call_add(struct conv2d_work *c, cudnnStatus_t status, int algorithm,
                     cudnnMathType_t math, size_t workspace,
                     cudnnStatus_t (*run)(cudnnHandle_t cudnn, struct conv2d_work *c))
{
    const struct format *format = c->format;
    bool vector = math == CUDNN_FMA_MATH || math == CUDNN_DEFAULT_MATH;
    bool right = math == format->math || (vector && format->vector_allowed);
    if (c->wanted != ANY && algorithm != c->wanted)
        return;
    if (status != CUDNN_STATUS_SUCCESS)
        c->refusal = status;
    else if (right && c->call_count < CALLS_MAX) {
        ++c->call_count;
        c->candidates[c->candidate_count++] = (struct candidate){
            .name = algorithm_name(c->shape.pass, algorithm),
            .math = format->tensor ? math : format->math,
            .tensor = format->tensor && math == format->math,
            .workspace = workspace,
            .bind = call_bind,
            .run = run,
            .algorithm = algorithm,
        };
    }
}

static cudnnStatus_t forward_find(cudnnHandle_t cudnn, struct conv2d_work *c, void *workspace,
                                  size_t bytes)
{
    cudnnConvolutionFwdAlgoPerf_t found[FOUND_MAX];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionForwardAlgorithmEx(
        cudnn, c->x_descriptor, c->x, c->w_descriptor, c->w, c->convolution, c->y_descriptor, c->y,
        FOUND_MAX, &count, found, workspace, bytes);
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < count; ++i)
        call_add(c, found[i].status, (int)found[i].algo, found[i].mathType, found[i].memory,
                 forward);
    return status;
}

static cudnnStatus_t backward_data_find(cudnnHandle_t cudnn, struct conv2d_work *c, void *workspace,
                                        size_t bytes)
{
    cudnnConvolutionBwdDataAlgoPerf_t found[FOUND_MAX];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionBackwardDataAlgorithmEx(
        cudnn, c->w_descriptor, c->w, c->y_descriptor, c->y, c->convolution, c->x_descriptor, c->x,
        FOUND_MAX, &count, found, workspace, bytes);
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < count; ++i)
        call_add(c, found[i].status, (int)found[i].algo, found[i].mathType, found[i].memory,
                 backward_data);
    return status;
}

static cudnnStatus_t backward_filter_find(cudnnHandle_t cudnn, struct conv2d_work *c,
                                          void *workspace, size_t bytes)
{
    cudnnConvolutionBwdFilterAlgoPerf_t found[FOUND_MAX];
    int count = 0;
    cudnnStatus_t status = cudnnFindConvolutionBackwardFilterAlgorithmEx(
        cudnn, c->x_descriptor, c->x, c->y_descriptor, c->y, c->convolution, c->w_descriptor, c->w,
        FOUND_MAX, &count, found, workspace, bytes);
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < count; ++i)
        call_add(c, found[i].status, (int)found[i].algo, found[i].mathType, found[i].memory,
                 backward_filter);
    return status;
}

static const struct {
    const char *name;
    enum tensor result;
    cudnnStatus_t (*find)(cudnnHandle_t cudnn, struct conv2d_work *c, void *workspace,
                          size_t bytes);
} passes[PASSES] = {
    [CONV2D_FORWARD] = {"forward", TENSOR_OUTPUT, forward_find},
    [CONV2D_BACKWARD_DATA] = {"backward-data", TENSOR_INPUT, backward_data_find},
    [CONV2D_BACKWARD_FILTER] = {"backward-filter", TENSOR_WEIGHT, backward_filter_find},
};

static enum status calls_find(struct gpu *gpu, struct conv2d_work *c, size_t bytes,
                              struct error *error)
{
    void *workspace = NULL;
    TRY(memory_allocate((double)bytes, "the search's workspace", &workspace, error));
    cudnnStatus_t code = passes[c->shape.pass].find(gpu->cudnn, c, workspace, bytes);
    enum status status = cudnn_check(code, "cudnnFindConvolutionAlgorithmEx", error);
    cudaFree(workspace);
    return status;
}

/* ---- plans ---- */

static enum status plan_bind(struct conv2d_work *c, const struct candidate *candidate,
                             struct error *error)
{
    return conv2d_graph_bind(c->graph, candidate->plan, c->x, c->w, c->y, c->workspace, error);
}

static cudnnStatus_t plan_run(cudnnHandle_t cudnn, struct conv2d_work *c)
{
    (void)cudnn;
    return conv2d_graph_run(c->graph);
}

static enum status plans_find(struct gpu *gpu, struct conv2d_work *c, size_t bytes,
                              struct error *error)
{
    const struct conv2d_graph_request request = {
        .cudnn = gpu->cudnn,
        .shape = &c->shape,
        .data = c->format->data,
        .compute = c->format->compute,
        .tensor = c->format->tensor,
        .vector = c->format->vector_allowed,
        .workspace_limit = bytes,
    };
    TRY(conv2d_graph_create(&request, &c->graph, error));
    int count;
    const struct conv2d_plan *plans = conv2d_graph_plans(c->graph, &count);
    for (int i = 0; i < count; ++i)
        c->candidates[c->candidate_count++] = (struct candidate){
            .name = plans[i].name,
            .math = plans[i].tensor ? c->format->math : CUDNN_FMA_MATH,
            .tensor = plans[i].tensor,
            .workspace = plans[i].workspace,
            .bind = plan_bind,
            .run = plan_run,
            .plan = &plans[i],
        };
    return STATUS_OK;
}

/* ---- work_ops ---- */

static void *tensor_of(const struct conv2d_work *c, enum tensor tensor)
{
    void *const memory[TENSOR_COUNT] = {
        [TENSOR_INPUT] = c->x, [TENSOR_WEIGHT] = c->w, [TENSOR_OUTPUT] = c->y};
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
    return cudnn_check(c->bound.run(gpu->cudnn, c), c->bound.name, error);
}

/* All bits set is a NaN in every format. */
static enum status conv2d_run(struct gpu *gpu, struct work *work, int64_t samples,
                              struct error *error)
{
    (void)samples;
    struct conv2d_work *c = (struct conv2d_work *)work;
    enum tensor result = passes[c->shape.pass].result;
    size_t bytes = (size_t)tensor_size(&c->shape, result) * precision_info[work->precision].bytes;
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
    cudaFree(c->workspace);
    cudaFree(c->y);
    cudaFree(c->w);
    cudaFree(c->x);
    if (c->convolution)
        cudnnDestroyConvolutionDescriptor(c->convolution);
    if (c->w_descriptor)
        cudnnDestroyFilterDescriptor(c->w_descriptor);
    if (c->y_descriptor)
        cudnnDestroyTensorDescriptor(c->y_descriptor);
    if (c->x_descriptor)
        cudnnDestroyTensorDescriptor(c->x_descriptor);
    free(c);
}

static const struct work_ops conv2d_ops = {
    .iterate = conv2d_iterate,
    .run = conv2d_run,
    .result = conv2d_result,
    .release = conv2d_release,
};

/* ---- preparation ---- */

static enum status descriptors_create(struct conv2d_work *c, struct error *error)
{
    const struct conv2d *s = &c->shape;
    cudnnTensorFormat_t layout = s->layout == LAYOUT_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    cudnnDataType_t data = c->format->data;
    TRY(CUDNN(cudnnCreateTensorDescriptor(&c->x_descriptor)));
    TRY(CUDNN(cudnnCreateTensorDescriptor(&c->y_descriptor)));
    TRY(CUDNN(cudnnCreateFilterDescriptor(&c->w_descriptor)));
    TRY(CUDNN(cudnnCreateConvolutionDescriptor(&c->convolution)));
    TRY(CUDNN(cudnnSetTensor4dDescriptor(c->x_descriptor, layout, data, (int)s->batch,
                                         (int)s->channels, (int)s->height, (int)s->width)));
    TRY(CUDNN(cudnnSetTensor4dDescriptor(c->y_descriptor, layout, data, (int)s->batch,
                                         (int)s->filters, (int)s->out_height, (int)s->out_width)));
    TRY(CUDNN(cudnnSetFilter4dDescriptor(c->w_descriptor, data, layout, (int)s->filters,
                                         (int)(s->channels / s->groups), (int)s->kernel_height,
                                         (int)s->kernel_width)));
    TRY(CUDNN(cudnnSetConvolution2dDescriptor(
        c->convolution, (int)s->pad_height, (int)s->pad_width, (int)s->stride, (int)s->stride,
        (int)s->dilation, (int)s->dilation, CUDNN_CROSS_CORRELATION, c->format->compute)));
    TRY(CUDNN(cudnnSetConvolutionGroupCount(c->convolution, (int)s->groups)));
    return CUDNN(cudnnSetConvolutionMathType(c->convolution, c->format->math));
}

static enum status tensors_create(struct conv2d_work *c, struct error *error)
{
    double bytes = (double)precision_info[c->base.precision].bytes;
    const struct conv2d *s = &c->shape;
    TRY(memory_allocate(bytes * (double)conv2d_x_size(s), "the input", &c->x, error));
    TRY(memory_allocate(bytes * (double)conv2d_w_size(s), "the weights", &c->w, error));
    return memory_allocate(bytes * (double)conv2d_y_size(s), "the output", &c->y, error);
}

static enum status tensors_fill(struct gpu *gpu, struct conv2d_work *c, const struct config *config,
                                uint64_t seed, struct error *error)
{
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        enum tensor tensor = (enum tensor)i;
        struct fill fill = config_fill(config, seed, tensor);
        if (tensor != passes[c->shape.pass].result)
            TRY(CUDA(kernel_fill(c->base.precision, tensor_of(c, tensor),
                                 tensor_size(&c->shape, tensor), fill, 0, gpu->stream)));
    }
    return STATUS_OK;
}

static enum status candidate_bind(struct gpu *gpu, struct work *work, int candidate,
                                  struct error *error)
{
    (void)gpu;
    struct conv2d_work *c = (struct conv2d_work *)work;
    const struct candidate *chosen = &c->candidates[candidate];
    TRY(CUDA(cudaFree(c->workspace)));
    c->workspace = NULL;
    TRY(memory_allocate((double)chosen->workspace, "the workspace", &c->workspace, error));
    TRY(chosen->bind(c, chosen, error));
    c->bound = *chosen;
    return STATUS_OK;
}

/* The workspace has room for algorithms that need much, but no more than a framework would give. A
 * named algorithm is searched for as well, because only the search tells in which math it runs. Plans
 * are timed first: one of them is likely fast, and slow calls are then given up early. */
static enum status candidates_find(struct gpu *gpu, struct conv2d_work *c, struct error *error)
{
    const size_t limit = (size_t)4 << 30;
    size_t available, total;
    TRY(CUDA(cudaMemGetInfo(&available, &total)));
    size_t bytes = available / 4 < limit ? available / 4 : limit;
    enum status status = c->graph_wanted ? plans_find(gpu, c, bytes, error) : STATUS_OK;
    bool go_on = status == STATUS_OK || status == STATUS_UNSUPPORTED;
    if (go_on && c->wanted != NONE)
        status = calls_find(gpu, c, bytes, error);
    bool enough = status == STATUS_UNSUPPORTED && c->candidate_count > 0;
    return enough ? STATUS_OK : status;
}

static enum status algorithm_refuse(const struct conv2d_work *c, const char *reason,
                                    struct error *error)
{
    char names[256] = "auto, graph";
    for (int i = 0; i < ALGORITHM_NAMES; ++i)
        if (algorithms[i].number[c->shape.pass] != NONE) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, ", %s", algorithms[i].name);
        }
    return error_set(error, STATUS_UNSUPPORTED, "algorithm %s in %s: %s; %s has %s",
                     c->shape.algorithm, precision_info[c->shape.precision].name, reason,
                     passes[c->shape.pass].name, names);
}

static enum status algorithm_parse(struct conv2d_work *c, struct error *error)
{
    bool automatic = strcmp(c->shape.algorithm, "auto") == 0;
    c->graph_wanted = automatic || strcmp(c->shape.algorithm, "graph") == 0;
    c->wanted = automatic ? ANY : NONE;
    for (int i = 0; i < ALGORITHM_NAMES; ++i)
        if (strcmp(algorithms[i].name, c->shape.algorithm) == 0)
            c->wanted = algorithms[i].number[c->shape.pass];
    bool known = c->graph_wanted || c->wanted != NONE;
    return !known ? algorithm_refuse(c, "not in this pass", error) : STATUS_OK;
}

static enum status algorithm_choose(struct gpu *gpu, struct conv2d_work *c, struct error *error)
{
    int fastest;
    if (c->candidate_count == 0)
        return algorithm_refuse(c,
                                c->refusal ? cudnnGetErrorString(c->refusal)
                                           : "cuDNN has it in another precision's math only",
                                error);
    return work_choose(gpu, &c->base, c->candidate_count, candidate_bind, &fastest, error);
}

static enum status work_prepare(struct gpu *gpu, struct conv2d_work *c, const struct config *config,
                                uint64_t seed, struct error *error)
{
    TRY(algorithm_parse(c, error));
    TRY(descriptors_create(c, error));
    TRY(tensors_create(c, error));
    TRY(tensors_fill(gpu, c, config, seed, error));
    TRY(candidates_find(gpu, c, error));
    return algorithm_choose(gpu, c, error);
}

enum status conv2d_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                           struct work **work, struct record *record, struct error *error)
{
    struct conv2d shape = conv2d_from(config);
    const struct format *format = &formats[shape.precision];
    if (gpu->capability < format->capability)
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s needs compute capability %d.%d, this GPU has %d.%d",
                         precision_info[shape.precision].name, format->capability / 10,
                         format->capability % 10, gpu->capability / 10, gpu->capability % 10);
    struct conv2d_work *c = calloc(1, sizeof *c);
    if (!c)
        return error_set(error, STATUS_FAILED, "no memory");
    c->base.ops = &conv2d_ops;
    c->base.precision = shape.precision;
    c->shape = shape;
    c->format = format;
    enum status status = work_prepare(gpu, c, config, seed, error);
    if (status) {
        conv2d_release(&c->base);
        return status;
    }
    snprintf(record->algorithm, sizeof record->algorithm, "%s", c->bound.name);
    snprintf(record->math, sizeof record->math, "%s", cudnn_math_name[c->bound.math]);
    record->unit = c->bound.tensor ? UNIT_TENSOR : UNIT_VECTOR;
    record->workspace = (double)c->bound.workspace;
    *work = &c->base;
    return STATUS_OK;
}
