#include "worker/cuda/workloads/conv2d_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gpu/arena.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* cuDNN's number of an algorithm for each pass; NONE: the pass has no such algorithm. */
enum { PASSES = 3, FOUND_MAX = 16, NONE = -1 };
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

struct conv2d_calls {
    struct conv2d shape;
    struct conv2d_calls_request request;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t convolution;
    const void *one, *zero;
    struct conv2d_call bound;
    struct conv2d_memory memory;
    void *workspace;
};

/* ---- the three passes ---- */

/* One of cuDNN's answers, in the same form for all passes. */
struct answer {
    int number;
    cudnnStatus_t status;
    size_t workspace;
    cudnnMathType_t math;
};

/* `workspace` NULL: what cuDNN expects, without running anything. */
struct inquiry {
    cudnnHandle_t cudnn;
    const struct conv2d_memory *memory;
    void *workspace;
    size_t bytes;
};

static cudnnStatus_t forward(struct conv2d_calls *c, cudnnHandle_t cudnn)
{
    return cudnnConvolutionForward(cudnn, c->one, c->x, c->memory.x, c->w, c->memory.w,
                                   c->convolution, (cudnnConvolutionFwdAlgo_t)c->bound.number,
                                   c->workspace, c->bound.workspace, c->zero, c->y, c->memory.y);
}

static cudnnStatus_t forward_ask(struct conv2d_calls *c, const struct inquiry *inquiry,
                                 struct answer answers[FOUND_MAX], int *count)
{
    const struct conv2d_memory *m = inquiry->memory;
    cudnnConvolutionFwdAlgoPerf_t found[FOUND_MAX];
    cudnnStatus_t status =
        inquiry->workspace
            ? cudnnFindConvolutionForwardAlgorithmEx(inquiry->cudnn, c->x, m->x, c->w, m->w,
                                                     c->convolution, c->y, m->y, FOUND_MAX, count,
                                                     found, inquiry->workspace, inquiry->bytes)
            : cudnnGetConvolutionForwardAlgorithm_v7(inquiry->cudnn, c->x, c->w, c->convolution,
                                                     c->y, FOUND_MAX, count, found);
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < *count; ++i)
        answers[i] = (struct answer){(int)found[i].algo, found[i].status, found[i].memory,
                                     found[i].mathType};
    return status;
}

static cudnnStatus_t backward_data(struct conv2d_calls *c, cudnnHandle_t cudnn)
{
    return cudnnConvolutionBackwardData(
        cudnn, c->one, c->w, c->memory.w, c->y, c->memory.y, c->convolution,
        (cudnnConvolutionBwdDataAlgo_t)c->bound.number, c->workspace, c->bound.workspace, c->zero,
        c->x, c->memory.x);
}

static cudnnStatus_t backward_data_ask(struct conv2d_calls *c, const struct inquiry *inquiry,
                                       struct answer answers[FOUND_MAX], int *count)
{
    const struct conv2d_memory *m = inquiry->memory;
    cudnnConvolutionBwdDataAlgoPerf_t found[FOUND_MAX];
    cudnnStatus_t status =
        inquiry->workspace ? cudnnFindConvolutionBackwardDataAlgorithmEx(
                                 inquiry->cudnn, c->w, m->w, c->y, m->y, c->convolution, c->x, m->x,
                                 FOUND_MAX, count, found, inquiry->workspace, inquiry->bytes)
                           : cudnnGetConvolutionBackwardDataAlgorithm_v7(inquiry->cudnn, c->w, c->y,
                                                                         c->convolution, c->x,
                                                                         FOUND_MAX, count, found);
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < *count; ++i)
        answers[i] = (struct answer){(int)found[i].algo, found[i].status, found[i].memory,
                                     found[i].mathType};
    return status;
}

static cudnnStatus_t backward_filter(struct conv2d_calls *c, cudnnHandle_t cudnn)
{
    return cudnnConvolutionBackwardFilter(
        cudnn, c->one, c->x, c->memory.x, c->y, c->memory.y, c->convolution,
        (cudnnConvolutionBwdFilterAlgo_t)c->bound.number, c->workspace, c->bound.workspace, c->zero,
        c->w, c->memory.w);
}

static cudnnStatus_t backward_filter_ask(struct conv2d_calls *c, const struct inquiry *inquiry,
                                         struct answer answers[FOUND_MAX], int *count)
{
    const struct conv2d_memory *m = inquiry->memory;
    cudnnConvolutionBwdFilterAlgoPerf_t found[FOUND_MAX];
    cudnnStatus_t status =
        inquiry->workspace
            ? cudnnFindConvolutionBackwardFilterAlgorithmEx(
                  inquiry->cudnn, c->x, m->x, c->y, m->y, c->convolution, c->w, m->w, FOUND_MAX,
                  count, found, inquiry->workspace, inquiry->bytes)
            : cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                  inquiry->cudnn, c->x, c->y, c->convolution, c->w, FOUND_MAX, count, found);
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < *count; ++i)
        answers[i] = (struct answer){(int)found[i].algo, found[i].status, found[i].memory,
                                     found[i].mathType};
    return status;
}

static const struct {
    cudnnStatus_t (*run)(struct conv2d_calls *c, cudnnHandle_t cudnn);
    cudnnStatus_t (*ask)(struct conv2d_calls *c, const struct inquiry *inquiry,
                         struct answer answers[FOUND_MAX], int *count);
} passes[PASSES] = {
    [CONV2D_FORWARD] = {forward, forward_ask},
    [CONV2D_BACKWARD_DATA] = {backward_data, backward_data_ask},
    [CONV2D_BACKWARD_FILTER] = {backward_filter, backward_filter_ask},
};

/* ---- names ---- */

static const char *algorithm_name(enum conv2d_pass pass, int number)
{
    for (int i = 0; i < ALGORITHM_NAMES; ++i)
        if (algorithms[i].number[pass] == number)
            return algorithms[i].name;
    return "unknown";
}

/* NONE if the pass has no such algorithm. */
static int algorithm_number(enum conv2d_pass pass, const char *name)
{
    for (int i = 0; i < ALGORITHM_NAMES; ++i)
        if (strcmp(algorithms[i].name, name) == 0)
            return algorithms[i].number[pass];
    return NONE;
}

bool conv2d_calls_has(const struct conv2d_calls *calls, const char *name)
{
    return algorithm_number(calls->shape.pass, name) != NONE;
}

void conv2d_calls_list(const struct conv2d_calls *calls, char names[CONV2D_CALL_NAMES])
{
    size_t used = 0;
    names[0] = '\0';
    for (int i = 0; i < ALGORITHM_NAMES && used < CONV2D_CALL_NAMES; ++i)
        if (algorithms[i].number[calls->shape.pass] != NONE)
            used += (size_t)snprintf(names + used, CONV2D_CALL_NAMES - used, "%s%s",
                                     used ? ", " : "", algorithms[i].name);
}

/* ---- finding, binding, running ---- */

/* A result of a math type that would compute in another precision is not taken. */
static bool call_from(const struct conv2d_calls *c, const struct answer *answer,
                      struct conv2d_call *call)
{
    const struct conv2d_calls_request *request = &c->request;
    bool vector = answer->math == CUDNN_FMA_MATH || answer->math == CUDNN_DEFAULT_MATH;
    *call = (struct conv2d_call){
        .name = algorithm_name(c->shape.pass, answer->number),
        .math = request->tensor ? answer->math : request->math,
        .tensor = request->tensor && answer->math == request->math,
        .workspace = answer->workspace,
        .number = answer->number,
    };
    return answer->math == request->math || (vector && request->vector);
}

static enum status calls_ask(struct conv2d_calls *c, const struct inquiry *inquiry,
                             struct answer answers[FOUND_MAX], int *count, struct error *error)
{
    cudnnStatus_t code = passes[c->shape.pass].ask(c, inquiry, answers, count);
    return cudnn_check(code, "cudnnFindConvolutionAlgorithmEx", error);
}

enum status conv2d_calls_find(struct conv2d_calls *calls, cudnnHandle_t cudnn, const char *name,
                              const struct conv2d_memory *memory, size_t workspace_limit,
                              struct conv2d_call found[CONV2D_CALLS_MAX], int *count,
                              cudnnStatus_t *refusal, struct error *error)
{
    struct answer answers[FOUND_MAX];
    struct inquiry inquiry = {cudnn, memory, NULL, workspace_limit};
    int answered = 0, wanted = name ? algorithm_number(calls->shape.pass, name) : NONE;
    *count = 0;
    *refusal = CUDNN_STATUS_SUCCESS;
    TRY(CUDNN(cudnnSetConvolutionMathType(calls->convolution, calls->request.math)));
    if (name)
        TRY(arena_take(calls->request.arena, (double)workspace_limit, "the search's workspace",
                       &inquiry.workspace, error));
    enum status status = calls_ask(calls, &inquiry, answers, &answered, error);
    arena_give(calls->request.arena, inquiry.workspace);
    for (int i = 0; status == STATUS_OK && i < answered; ++i) {
        if (name && answers[i].number != wanted)
            continue;
        if (answers[i].status != CUDNN_STATUS_SUCCESS)
            *refusal = answers[i].status;
        else if (answers[i].workspace <= workspace_limit && *count < CONV2D_CALLS_MAX &&
                 call_from(calls, &answers[i], &found[*count]))
            ++*count;
    }
    return status;
}

enum status conv2d_calls_bind(struct conv2d_calls *calls, const struct conv2d_call *call,
                              const struct conv2d_memory *memory, void *workspace,
                              struct error *error)
{
    TRY(CUDNN(cudnnSetConvolutionMathType(calls->convolution, call->math)));
    calls->bound = *call;
    calls->memory = *memory;
    calls->workspace = workspace;
    return STATUS_OK;
}

cudnnStatus_t conv2d_calls_run(struct conv2d_calls *calls, cudnnHandle_t cudnn)
{
    return passes[calls->shape.pass].run(calls, cudnn);
}

/* ---- descriptors ---- */

static enum status descriptors_create(struct conv2d_calls *c, struct error *error)
{
    const struct conv2d *s = &c->shape;
    cudnnTensorFormat_t layout = s->layout == LAYOUT_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    cudnnDataType_t data = c->request.data;
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
    TRY(CUDNN(cudnnSetConvolution2dDescriptor(
        c->convolution, (int)s->pad_height, (int)s->pad_width, (int)s->stride, (int)s->stride,
        (int)s->dilation, (int)s->dilation, CUDNN_CROSS_CORRELATION, c->request.compute)));
    return CUDNN(cudnnSetConvolutionGroupCount(c->convolution, (int)s->groups));
}

enum status conv2d_calls_create(const struct conv2d_calls_request *request,
                                struct conv2d_calls **calls, struct error *error)
{
    struct conv2d_calls *created = calloc(1, sizeof *created);
    if (!created)
        return error_set(error, STATUS_FAILED, "no memory");
    bool wide = request->compute == CUDNN_DATA_DOUBLE;
    created->shape = *request->shape;
    created->request = *request;
    created->request.shape = &created->shape;
    created->one = wide ? (const void *)&one_double : &one_float;
    created->zero = wide ? (const void *)&zero_double : &zero_float;
    enum status status = descriptors_create(created, error);
    if (status)
        conv2d_calls_destroy(created);
    else
        *calls = created;
    return status;
}

void conv2d_calls_destroy(struct conv2d_calls *calls)
{
    if (!calls)
        return;
    if (calls->convolution)
        cudnnDestroyConvolutionDescriptor(calls->convolution);
    if (calls->w)
        cudnnDestroyFilterDescriptor(calls->w);
    if (calls->y)
        cudnnDestroyTensorDescriptor(calls->y);
    if (calls->x)
        cudnnDestroyTensorDescriptor(calls->x);
    free(calls);
}
