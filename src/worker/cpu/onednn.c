#include "worker/cpu/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Descriptions of memory are the caller's structs in 2.x, the library's objects in 3.x. */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t descriptor;
typedef const_dnnl_memory_desc_t descriptor_view;
#else
typedef dnnl_memory_desc_t *descriptor;
typedef const dnnl_memory_desc_t *descriptor_view;
#endif

enum { ALIGNMENT = 64 };

static const struct {
    int number;    /* oneDNN's index of the argument */
    bool gradient; /* a backward pass writes the tensor */
} arguments[ONEDNN_ARGUMENTS] = {
    [ONEDNN_SOURCE] = {DNNL_ARG_SRC, false},
    [ONEDNN_SECOND] = {DNNL_ARG_SRC_1, false},
    [ONEDNN_WEIGHTS] = {DNNL_ARG_WEIGHTS, false},
    [ONEDNN_RECURRENT] = {DNNL_ARG_WEIGHTS_ITER, false},
    [ONEDNN_PROJECTION] = {DNNL_ARG_WEIGHTS_PROJECTION, false},
    [ONEDNN_BIAS] = {DNNL_ARG_BIAS, false},
    [ONEDNN_DESTINATION] = {DNNL_ARG_DST, false},
    [ONEDNN_STATE] = {DNNL_ARG_SRC_ITER, false},
    [ONEDNN_CELL] = {DNNL_ARG_SRC_ITER_C, false},
    [ONEDNN_DIFF_SOURCE] = {DNNL_ARG_DIFF_SRC, true},
    [ONEDNN_DIFF_WEIGHTS] = {DNNL_ARG_DIFF_WEIGHTS, true},
    [ONEDNN_DIFF_RECURRENT] = {DNNL_ARG_DIFF_WEIGHTS_ITER, true},
    [ONEDNN_DIFF_BIAS] = {DNNL_ARG_DIFF_BIAS, true},
    [ONEDNN_DIFF_DESTINATION] = {DNNL_ARG_DIFF_DST, false},
    [ONEDNN_DIFF_STATE] = {DNNL_ARG_DIFF_SRC_ITER, true},
    [ONEDNN_DIFF_CELL] = {DNNL_ARG_DIFF_SRC_ITER_C, true},
};

/* A tensor of an operation. */
struct slot {
    descriptor described;
    descriptor_view chosen; /* the library's layout, owned by `description`; NULL: no tensor */
    bool packed, written;
    size_t offset, bytes;      /* place and size of `own` in the scratch memory */
    dnnl_memory_t caller, own; /* own: in the library's layout; NULL: both layouts are equal */
    dnnl_primitive_t reorder;
};

static const struct {
    const char *name, *text; /* in kernels' names; in messages */
    bool activated;          /* `function` is fused */
    bool recurrent;          /* the library adds to the gradients of weights */
} kinds[ONEDNN_KINDS] = {
    [ONEDNN_CONVOLUTION] = {"convolution", "convolution", true, false},
    [ONEDNN_MATMUL] = {"matmul", "matrix product", true, false},
    [ONEDNN_LINEAR] = {"linear", "linear layer", true, false},
    [ONEDNN_LSTM] = {"lstm", "LSTM", false, true},
    [ONEDNN_GRU] = {"gru", "GRU", false, true},
    [ONEDNN_RNN] = {"rnn", "plain recurrent layer", false, true},
    [ONEDNN_ELEMENTWISE] = {"elementwise", "elementwise function", false, false},
    [ONEDNN_SUM] = {"sum", "sum", false, false},
    [ONEDNN_POOL] = {"pool", "pool", false, false},
    [ONEDNN_SOFTMAX] = {"softmax", "softmax", false, false},
};

struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    const struct onednn *forward;
    struct slot slots[ONEDNN_ARGUMENTS];
    bool accumulates; /* kinds[].recurrent, in a backward pass */
    size_t workspace_offset, scratch_offset, size;
    dnnl_memory_t workspace, scratch; /* ONEDNN_BACKWARD uses the workspace of its forward pass */
    char name[64], label[96];
    bool *failed; /* set if a run fails; NULL: nobody asks */
};

void onednn_describe(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

/* Returns whether the library uses the same OpenMP as this program. */
static bool threads_are_ours(void)
{
    union {
        const dnnl_version_t *(*call)(void);
        void *address;
    } known = {dnnl_version};
    union {
        int (*call)(void);
        void *address;
    } ours = {omp_get_max_threads};
    Dl_info info;
    void *library =
        dladdr(known.address, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *theirs = library ? dlsym(library, "omp_get_max_threads") : NULL;
    if (library)
        dlclose(library);
    return dnnl_version()->cpu_runtime == DNNL_RUNTIME_OMP && theirs == ours.address;
}

/* Returns whether this CPU has instructions for the precision. Each bit of the library's value is
 * an instruction set of x86; other processors have none of these bits. */
static bool is_native(enum precision precision)
{
    static const unsigned needed[PRECISION_COUNT] = {
        [PRECISION_BF16] = dnnl_cpu_isa_avx512_core_bf16,
#if DNNL_VERSION_MAJOR >= 3
        [PRECISION_FP16] = dnnl_cpu_isa_avx512_core_fp16,
#endif
    };
    unsigned present = (unsigned)dnnl_get_effective_cpu_isa();
    return precision == PRECISION_FP32 ||
           (needed[precision] != 0 && (present & needed[precision]) == needed[precision]);
}

enum status onednn_check(enum precision precision, struct error *error)
{
    char version[32];
    onednn_describe(version, sizeof version);
    if (!threads_are_ours())
        return error_set(
            error, STATUS_UNSUPPORTED,
            "%s has threads of its own, which would share the cores with this worker's", version);
    if (!is_native(precision))
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s has no native instructions for %s on this CPU", version,
                         precision_info[precision].name);
    return STATUS_OK;
}

static enum status status_set(struct error *error, dnnl_status_t status, const char *what)
{
    char version[32];
    onednn_describe(version, sizeof version);
    if (status == dnnl_unimplemented || status == dnnl_invalid_arguments)
        return error_set(error, STATUS_UNSUPPORTED, "%s does not offer this %s", version, what);
    return error_set(error, status == dnnl_out_of_memory ? STATUS_UNSUPPORTED : STATUS_FAILED,
                     "%s: %s: %s", version, what,
                     status == dnnl_out_of_memory ? "no memory" : "an error of the library");
}

/* ---- descriptions, in both versions of the library ---- */

/* Calls of 3.x make the description of a primitive. Calls of 2.x fill a struct, from which
 * primitive_describe makes it. 3.x has the last of several versions of a call in 2.x. */
#if DNNL_VERSION_MAJOR >= 3
#define FORWARD(call, ...)                                                                         \
    dnnl_##call##_primitive_desc_create(made, r->engine, __VA_ARGS__, r->attributes)
#define BACKWARD(call, ...) FORWARD(call, __VA_ARGS__, r->forward)
#define SINCE_3(argument)   argument,
#else
#define FORWARD(call, ...)                       dnnl_##call##_desc_init(made, __VA_ARGS__)
#define BACKWARD(call, ...)                      FORWARD(call, __VA_ARGS__)
#define SINCE_3(argument)                        /* 2.x lacks the argument */
#define dnnl_convolution_forward_desc_init       dnnl_dilated_convolution_forward_desc_init
#define dnnl_convolution_backward_data_desc_init dnnl_dilated_convolution_backward_data_desc_init
#define dnnl_convolution_backward_weights_desc_init                                                \
    dnnl_dilated_convolution_backward_weights_desc_init
#define dnnl_softmax_forward_desc_init  dnnl_softmax_v2_forward_desc_init
#define dnnl_softmax_backward_desc_init dnnl_softmax_v2_backward_desc_init
#define dnnl_lstm_forward_desc_init     dnnl_lstm_forward_desc_init_v3
#define dnnl_lstm_backward_desc_init    dnnl_lstm_backward_desc_init_v3
#endif

static dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, dnnl_data_type_t type,
                                       bool free, descriptor *made)
{
#if DNNL_VERSION_MAJOR >= 3
    return free ? dnnl_memory_desc_create_with_tag(made, tensor->axes, tensor->extents, type,
                                                   dnnl_format_tag_any)
                : dnnl_memory_desc_create_with_strides(made, tensor->axes, tensor->extents, type,
                                                       tensor->strides);
#else
    *made = malloc(sizeof **made);
    if (!*made)
        return dnnl_out_of_memory;
    return free ? dnnl_memory_desc_init_by_tag(*made, tensor->axes, tensor->extents, type,
                                               dnnl_format_tag_any)
                : dnnl_memory_desc_init_by_strides(*made, tensor->axes, tensor->extents, type,
                                                   tensor->strides);
#endif
}

static void descriptor_destroy(descriptor made)
{
#if DNNL_VERSION_MAJOR >= 3
    if (made)
        dnnl_memory_desc_destroy(made);
#else
    free(made);
#endif
}

static dnnl_status_t primitive_append(dnnl_post_ops_t operations, dnnl_alg_kind_t function,
                                      float number)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(operations, function, number, 0.0F);
#else
    return dnnl_post_ops_append_eltwise(operations, 1.0F, function, number, 0.0F);
#endif
}

static const dnnl_alg_kind_t functions[] = {
    [ONEDNN_IDENTITY] = dnnl_alg_kind_undef,  [ONEDNN_RELU] = dnnl_eltwise_relu,
    [ONEDNN_SIGMOID] = dnnl_eltwise_logistic, [ONEDNN_TANH] = dnnl_eltwise_tanh,
    [ONEDNN_GELU] = dnnl_eltwise_gelu_tanh,   [ONEDNN_SCALE] = dnnl_eltwise_linear,
    [ONEDNN_MAXIMUM] = dnnl_pooling_max,      [ONEDNN_AVERAGE] = dnnl_pooling_avg_include_padding,
};

/* Slope below zero of a relu, or factor of a scale. */
static float number_of(const struct onednn_operation *operation)
{
    return operation->function == ONEDNN_SCALE ? (float)operation->factor : 0.0F;
}

static dnnl_rnn_direction_t direction_of(const struct onednn_operation *operation)
{
    return operation->bidirectional ? dnnl_bidirectional_concat : dnnl_unidirectional_left2right;
}

/* Owns nothing. */
struct primitive_request {
    const struct onednn_operation *operation;
    dnnl_engine_t engine;
    const_dnnl_primitive_attr_t attributes;
    const_dnnl_primitive_desc_t forward;  /* NULL: none */
    descriptor tensors[ONEDNN_ARGUMENTS]; /* NULL: no tensor */
};

/* 2.x takes one description for both tensors of an elementwise function. */
static dnnl_status_t forward_describe(const struct primitive_request *r, void *made)
{
    const struct onednn_operation *o = r->operation;
    const dnnl_prop_kind_t kind =
        o->pass == ONEDNN_INFERENCE ? dnnl_forward_inference : dnnl_forward_training;
    const dnnl_rnn_direction_t direction = direction_of(o);
    const dnnl_dims_t gaps = {o->dilation[0] - 1, o->dilation[1] - 1};
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], h = t[ONEDNN_STATE], w = t[ONEDNN_WEIGHTS];
    descriptor u = t[ONEDNN_RECURRENT], b = t[ONEDNN_BIAS], y = t[ONEDNN_DESTINATION];
    switch (o->kind) {
    case ONEDNN_CONVOLUTION:
        return FORWARD(convolution_forward, kind, dnnl_convolution_direct, x, w, b, y, o->stride,
                       gaps, o->padding, o->padding_after);
    case ONEDNN_MATMUL:
        return FORWARD(matmul, x, w, b, y);
    case ONEDNN_LINEAR:
        return FORWARD(inner_product_forward, kind, x, w, b, y);
    case ONEDNN_LSTM:
        return FORWARD(lstm_forward, kind, direction, x, h, t[ONEDNN_CELL], w, u, NULL,
                       t[ONEDNN_PROJECTION], b, y, NULL, NULL, 0);
    case ONEDNN_GRU:
        return FORWARD(lbr_gru_forward, kind, direction, x, h, w, u, b, y, NULL, 0);
    case ONEDNN_RNN:
        return FORWARD(vanilla_rnn_forward, kind, functions[o->function], direction, x, h, w, u, b,
                       y, NULL, 0, 0.0F, 0.0F);
    case ONEDNN_ELEMENTWISE:
        return FORWARD(eltwise_forward, kind, functions[o->function], x, SINCE_3(y) number_of(o),
                       0.0F);
    case ONEDNN_SUM:
        return FORWARD(binary, dnnl_binary_add, x, t[ONEDNN_SECOND], y);
    case ONEDNN_POOL:
        return FORWARD(pooling_forward, kind, functions[o->function], x, y, o->stride, o->window,
                       SINCE_3((dnnl_dims_t){0}) o->padding, o->padding_after);
    case ONEDNN_SOFTMAX:
        return FORWARD(softmax_forward, kind, dnnl_softmax_accurate, x, y, 1);
    default:
        return dnnl_unimplemented;
    }
}

/* An LSTM must have no projection. */
static dnnl_status_t backward_describe(const struct primitive_request *r, void *made)
{
    const struct onednn_operation *o = r->operation;
    const dnnl_rnn_direction_t direction = direction_of(o);
    const dnnl_dims_t gaps = {o->dilation[0] - 1, o->dilation[1] - 1};
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], h = t[ONEDNN_STATE], w = t[ONEDNN_WEIGHTS];
    descriptor u = t[ONEDNN_RECURRENT], b = t[ONEDNN_BIAS], y = t[ONEDNN_DESTINATION];
    descriptor dx = t[ONEDNN_DIFF_SOURCE], dh = t[ONEDNN_DIFF_STATE], dw = t[ONEDNN_DIFF_WEIGHTS];
    descriptor du = t[ONEDNN_DIFF_RECURRENT], db = t[ONEDNN_DIFF_BIAS];
    descriptor dy = t[ONEDNN_DIFF_DESTINATION];
    bool data = o->pass == ONEDNN_BACKWARD_DATA, weights = o->pass == ONEDNN_BACKWARD_WEIGHTS;
    if (o->kind == ONEDNN_SOFTMAX && o->pass == ONEDNN_BACKWARD)
        return BACKWARD(softmax_backward, dnnl_softmax_accurate, dx, dy, y, 1);
    if (o->kind == ONEDNN_CONVOLUTION && data)
        return BACKWARD(convolution_backward_data, dnnl_convolution_direct, dx, w, dy, o->stride,
                        gaps, o->padding, o->padding_after);
    if (o->kind == ONEDNN_CONVOLUTION && weights)
        return BACKWARD(convolution_backward_weights, dnnl_convolution_direct, x, dw, db, dy,
                        o->stride, gaps, o->padding, o->padding_after);
    if (o->kind == ONEDNN_LINEAR && data)
        return BACKWARD(inner_product_backward_data, dx, w, dy);
    if (o->kind == ONEDNN_LINEAR && weights)
        return BACKWARD(inner_product_backward_weights, x, dw, db, dy);
    if (o->kind == ONEDNN_LSTM)
        return BACKWARD(lstm_backward, dnnl_backward, direction, x, h, t[ONEDNN_CELL], w, u, NULL,
                        NULL, b, y, NULL, NULL, dx, dh, t[ONEDNN_DIFF_CELL], dw, du, NULL, NULL, db,
                        dy, NULL, NULL, 0);
    if (o->kind == ONEDNN_GRU)
        return BACKWARD(lbr_gru_backward, dnnl_backward, direction, x, h, w, u, b, y, NULL, dx, dh,
                        dw, du, db, dy, NULL, 0);
    if (o->kind == ONEDNN_RNN)
        return BACKWARD(vanilla_rnn_backward, dnnl_backward, functions[o->function], direction, x,
                        h, w, u, b, y, NULL, dx, dh, dw, du, db, dy, NULL, 0, 0.0F, 0.0F);
    return dnnl_unimplemented;
}

static dnnl_status_t primitive_describe(const struct primitive_request *r,
                                        dnnl_primitive_desc_t *made)
{
    const bool forward = r->operation->pass <= ONEDNN_TRAINING;
#if DNNL_VERSION_MAJOR >= 3
    return (forward ? forward_describe : backward_describe)(r, made);
#else
    union {
        dnnl_convolution_desc_t convolution;
        dnnl_matmul_desc_t matmul;
        dnnl_inner_product_desc_t linear;
        dnnl_eltwise_desc_t elementwise;
        dnnl_binary_desc_t sum;
        dnnl_pooling_desc_t pool;
        dnnl_softmax_v2_desc_t softmax;
        dnnl_rnn_desc_t recurrent;
    } operation;
    dnnl_status_t status = (forward ? forward_describe : backward_describe)(r, &operation);
    return status
               ? status
               : dnnl_primitive_desc_create(made, &operation, r->attributes, r->engine, r->forward);
#endif
}

/* ---- an operation ---- */

static dnnl_status_t attributes_create(const struct onednn_operation *operation,
                                       dnnl_primitive_attr_t *made)
{
    dnnl_post_ops_t after = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(made);
    if (!status) /* use the caller's scratch memory, which the row's workspace includes */
        status = dnnl_primitive_attr_set_scratchpad_mode(*made, dnnl_scratchpad_mode_user);
    if (!status) /* overrides the environment: fp32 stays fp32 */
        status = dnnl_primitive_attr_set_fpmath_mode(*made, dnnl_fpmath_mode_strict);
    if (status || !kinds[operation->kind].activated || operation->function == ONEDNN_IDENTITY)
        return status;
    status = dnnl_post_ops_create(&after);
    if (!status)
        status = primitive_append(after, functions[operation->function], number_of(operation));
    if (!status)
        status = dnnl_primitive_attr_set_post_ops(*made, after);
    dnnl_post_ops_destroy(after);
    return status;
}

/* Returns the forward pass of a backward pass, which the library needs as a hint. */
static struct onednn_operation operation_forward(const struct onednn_operation *operation)
{
    static const enum onednn_argument pairs[][2] = {{ONEDNN_SOURCE, ONEDNN_DIFF_SOURCE},
                                                    {ONEDNN_WEIGHTS, ONEDNN_DIFF_WEIGHTS},
                                                    {ONEDNN_BIAS, ONEDNN_DIFF_BIAS},
                                                    {ONEDNN_DESTINATION, ONEDNN_DIFF_DESTINATION}};
    struct onednn_operation forward = *operation;
    forward.pass = ONEDNN_TRAINING;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i)
        if (forward.tensors[pairs[i][0]].axes == 0)
            forward.tensors[pairs[i][0]] = forward.tensors[pairs[i][1]];
    return forward;
}

static dnnl_status_t tensor_describe(const struct onednn_tensor *tensor, bool free,
                                     descriptor *made)
{
    static const dnnl_data_type_t types[PRECISION_COUNT] = {
        [PRECISION_FP32] = dnnl_f32,
        [PRECISION_FP16] = dnnl_f16,
        [PRECISION_BF16] = dnnl_bf16,
    };
    return tensor->axes ? descriptor_create(tensor, types[tensor->precision], free, made)
                        : dnnl_success;
}

static dnnl_status_t description_create(const struct onednn_operation *o, dnnl_engine_t engine,
                                        const_dnnl_primitive_desc_t forward,
                                        dnnl_primitive_desc_t *made)
{
    struct primitive_request request = {.operation = o, .engine = engine, .forward = forward};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = attributes_create(o, &attributes);
    request.attributes = attributes;
    for (int i = 0; !status && i < ONEDNN_ARGUMENTS; ++i)
        status = tensor_describe(&o->tensors[i], o->tensors[i].place != ONEDNN_PLAIN,
                                 &request.tensors[i]);
    if (!status)
        status = primitive_describe(&request, made);
    for (int i = 0; i < ONEDNN_ARGUMENTS; ++i)
        descriptor_destroy(request.tensors[i]);
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t primitive_create(const struct onednn_operation *operation, struct onednn *made)
{
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t status = dnnl_engine_create(&made->engine, dnnl_cpu, 0);
    if (!status)
        status = dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags);
    if (!status && operation->pass >= ONEDNN_BACKWARD && !made->forward) {
        const struct onednn_operation forward = operation_forward(operation);
        status = description_create(&forward, made->engine, NULL, &hint);
    }
    if (!status)
        status = description_create(operation, made->engine,
                                    made->forward ? made->forward->description : hint,
                                    &made->description);
    dnnl_primitive_desc_destroy(hint);
    return status ? status : dnnl_primitive_create(&made->primitive, made->description);
}

static descriptor_view argument_descriptor(const struct onednn *made, int number)
{
    return dnnl_primitive_desc_query_md(made->description, dnnl_query_exec_arg_md, number);
}

static size_t memory_take(struct onednn *made, size_t bytes)
{
    size_t offset = made->size;
    made->size += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return offset;
}

/* If the library's layout is not the caller's, makes a reorder. */
static dnnl_status_t slot_create(const struct onednn_operation *operation, struct onednn *made,
                                 int argument)
{
    const struct onednn_tensor *tensor = &operation->tensors[argument];
    struct slot *slot = &made->slots[argument];
    if (tensor->axes == 0)
        return dnnl_success;
    slot->chosen = argument_descriptor(made, arguments[argument].number);
    slot->packed = tensor->place == ONEDNN_PACKED;
    slot->written = operation->pass >= ONEDNN_BACKWARD ? arguments[argument].gradient
                                                       : argument == ONEDNN_DESTINATION;
    dnnl_status_t status = tensor_describe(tensor, false, &slot->described);
    if (status || dnnl_memory_desc_equal(slot->described, slot->chosen))
        return status;
    slot->bytes = dnnl_memory_desc_get_size(slot->chosen);
    slot->offset = memory_take(made, slot->bytes);
    dnnl_primitive_desc_t description = NULL;
    status = dnnl_reorder_primitive_desc_create(
        &description, slot->written ? slot->chosen : slot->described, made->engine,
        slot->written ? slot->described : slot->chosen, made->engine, NULL);
    if (!status)
        status = dnnl_primitive_create(&slot->reorder, description);
    dnnl_primitive_desc_destroy(description);
    return status;
}

static dnnl_status_t everything_create(const struct onednn_operation *operation,
                                       struct onednn *made)
{
    static const char *const passes[] = {"", "", "_backward", "_backward_data",
                                         "_backward_weights"};
    const char *name = NULL;
    dnnl_set_verbose(0); /* its lines on standard output would mix with this worker's replies */
    dnnl_status_t status = primitive_create(operation, made);
    for (int i = 0; !status && i < ONEDNN_ARGUMENTS; ++i)
        status = slot_create(operation, made, i);
    if (status)
        return status;
    if (operation->pass == ONEDNN_TRAINING)
        made->workspace_offset = memory_take(
            made, dnnl_memory_desc_get_size(argument_descriptor(made, DNNL_ARG_WORKSPACE)));
    made->scratch_offset = memory_take(
        made, dnnl_memory_desc_get_size(argument_descriptor(made, DNNL_ARG_SCRATCHPAD)));
    made->accumulates = kinds[operation->kind].recurrent && operation->pass == ONEDNN_BACKWARD;
    dnnl_primitive_desc_query(made->description, dnnl_query_impl_info_str, 0, &name);
    snprintf(made->name, sizeof made->name, "%s", name ? name : "oneDNN");
    snprintf(made->label, sizeof made->label, "onednn_%s%s %s", kinds[operation->kind].name,
             passes[operation->pass], made->name);
    return dnnl_success;
}

enum status onednn_create(const struct onednn_operation *operation, const struct onednn *forward,
                          struct onednn **made, struct error *error)
{
    struct onednn *created = calloc(1, sizeof *created);
    if (!created)
        return error_set(error, STATUS_FAILED, "no memory for an operation of oneDNN");
    created->forward = forward;
    dnnl_status_t status = everything_create(operation, created);
    if (status) {
        onednn_destroy(created);
        return status_set(error, status, kinds[operation->kind].text);
    }
    *made = created;
    return STATUS_OK;
}

void onednn_destroy(struct onednn *made)
{
    if (!made)
        return;
    for (int i = 0; i < ONEDNN_ARGUMENTS; ++i) {
        struct slot *slot = &made->slots[i];
        dnnl_primitive_destroy(slot->reorder);
        dnnl_memory_destroy(slot->caller);
        dnnl_memory_destroy(slot->own);
        descriptor_destroy(slot->described);
    }
    if (!made->forward)
        dnnl_memory_destroy(made->workspace);
    dnnl_memory_destroy(made->scratch);
    dnnl_primitive_destroy(made->primitive);
    dnnl_primitive_desc_destroy(made->description);
    dnnl_stream_destroy(made->stream);
    dnnl_engine_destroy(made->engine);
    free(made);
}

const char *onednn_name(const struct onednn *made)
{
    return made->name;
}

size_t onednn_memory(const struct onednn *made)
{
    return made->size;
}

static dnnl_status_t slot_reorder(const struct onednn *made, const struct slot *slot)
{
    const dnnl_exec_arg_t moved[] = {
        {DNNL_ARG_FROM, slot->written ? slot->own : slot->caller},
        {DNNL_ARG_TO, slot->written ? slot->caller : slot->own},
    };
    return dnnl_primitive_execute(slot->reorder, made->stream, 2, moved);
}

enum status onednn_bind(struct onednn *made, void *const data[ONEDNN_ARGUMENTS], void *memory,
                        struct error *error)
{
    char *own = memory;
    descriptor_view workspace = argument_descriptor(made, DNNL_ARG_WORKSPACE);
    dnnl_status_t status = dnnl_success;
    if (made->forward)
        made->workspace = made->forward->workspace;
    else if (dnnl_memory_desc_get_size(workspace) > 0)
        status = dnnl_memory_create(&made->workspace, workspace, made->engine,
                                    own + made->workspace_offset);
    if (!status)
        status = dnnl_memory_create(&made->scratch, argument_descriptor(made, DNNL_ARG_SCRATCHPAD),
                                    made->engine, own + made->scratch_offset);
    for (int i = 0; !status && i < ONEDNN_ARGUMENTS; ++i) {
        struct slot *slot = &made->slots[i];
        if (!slot->chosen)
            continue;
        status = dnnl_memory_create(&slot->caller, slot->described, made->engine, data[i]);
        if (!status && slot->reorder)
            status = dnnl_memory_create(&slot->own, slot->chosen, made->engine, own + slot->offset);
        if (!status && slot->reorder && slot->packed)
            status = slot_reorder(made, slot);
    }
    return status ? status_set(error, status, "memory") : STATUS_OK;
}

void onednn_move(struct onednn *made, enum onednn_argument argument, void *data)
{
    dnnl_memory_set_data_handle(made->slots[argument].caller, data);
}

static void run_note(const struct onednn *made, dnnl_status_t status)
{
    if (status && made->failed)
        *made->failed = true;
}

static void slots_reorder(const struct onednn *made, bool written, struct trace *trace)
{
    for (int i = 0; i < ONEDNN_ARGUMENTS; ++i) {
        const struct slot *slot = &made->slots[i];
        if (!slot->reorder || slot->packed || slot->written != written)
            continue;
        double begin = trace_begin(trace);
        run_note(made, slot_reorder(made, slot));
        trace_end(trace, "onednn_reorder", begin);
    }
}

/* Clears the gradients of weights, because a recurrent layer's backward pass adds to them. */
static void gradients_clear(const struct onednn *made)
{
    static const enum onednn_argument added[] = {ONEDNN_DIFF_WEIGHTS, ONEDNN_DIFF_RECURRENT,
                                                 ONEDNN_DIFF_BIAS};
    for (size_t i = 0; i < sizeof added / sizeof *added; ++i) {
        const struct slot *slot = &made->slots[added[i]];
        void *data = NULL;
        if (slot->chosen &&
            !dnnl_memory_get_data_handle(slot->own ? slot->own : slot->caller, &data))
            memset(data, 0, dnnl_memory_desc_get_size(slot->chosen));
    }
}

void onednn_run(const struct onednn *made, struct trace *trace)
{
    dnnl_exec_arg_t given[ONEDNN_ARGUMENTS + 2];
    int count = 0;
    for (int i = 0; i < ONEDNN_ARGUMENTS; ++i) {
        const struct slot *slot = &made->slots[i];
        if (slot->chosen)
            given[count++] =
                (dnnl_exec_arg_t){arguments[i].number, slot->own ? slot->own : slot->caller};
    }
    if (made->workspace)
        given[count++] = (dnnl_exec_arg_t){DNNL_ARG_WORKSPACE, made->workspace};
    given[count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, made->scratch};
    slots_reorder(made, false, trace);
    double begin = trace_begin(trace);
    if (made->accumulates)
        gradients_clear(made);
    run_note(made, dnnl_primitive_execute(made->primitive, made->stream, count, given));
    trace_end(trace, made->label, begin);
    slots_reorder(made, true, trace);
}

struct onednn_tensor onednn_vector(enum precision precision, int64_t count)
{
    return (struct onednn_tensor){
        .precision = precision, .axes = 1, .extents = {count}, .strides = {1}};
}

struct onednn_tensor onednn_matrix(enum precision precision, enum onednn_place place, int64_t rows,
                                   int64_t columns)
{
    return (struct onednn_tensor){place, precision, 2, {rows, columns}, {columns, 1}};
}

struct onednn_tensor onednn_matrices(enum precision precision, int64_t count, int64_t rows,
                                     int64_t columns)
{
    return (struct onednn_tensor){
        ONEDNN_PLAIN, precision, 3, {count, rows, columns}, {rows * columns, columns, 1}};
}

struct onednn_tensor onednn_image(enum precision precision, enum onednn_place place, bool nhwc,
                                  int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (struct onednn_tensor){
        .place = place,
        .precision = precision,
        .axes = 4,
        .extents = {n, c, h, w},
        .strides = {c * h * w, nhwc ? 1 : h * w, nhwc ? w * c : w, nhwc ? c : 1},
    };
}

enum status onednn_create_for(struct work *work, const struct onednn_operation *operation,
                              const struct onednn *forward, struct onednn **made, size_t *memory,
                              struct error *error)
{
    TRY(onednn_create(operation, forward, made, error));
    (*made)->failed = &work->failed;
    const char *name = (*made)->name;
    bool definition = strncmp(name, "ref", 3) == 0 || strncmp(name, "simple", 6) == 0;
    if (definition && !kinds[operation->kind].recurrent &&
        strcmp(config_word(&work->config, ROLE_IMPLEMENTATION), "auto") == 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "oneDNN has only a definition of it, not made for speed (\"%s\")", name);
    *memory = scratch_take(work, (*made)->size);
    return STATUS_OK;
}

enum status onednn_plan_operation(struct work *work, const struct onednn_operation *operation,
                                  const struct onednn_roles *roles, struct error *error)
{
    struct onednn_plan *plan = work->plan;
    size_t memory;
    TRY(onednn_create_for(work, operation, NULL, &plan->made, &memory, error));
    plan->roles = *roles;
    work->scratch_size = plan->made->size;
    return STATUS_OK;
}

enum status onednn_plan_ready(struct work *work, struct error *error)
{
    const struct onednn_plan *plan = work->plan;
    void *data[ONEDNN_ARGUMENTS] = {NULL};
    for (int tensor = 0; tensor < TENSOR_COUNT; ++tensor) {
        if (work->reads[tensor])
            data[plan->roles.inputs[tensor]] = work->input[tensor];
        if (work->writes[tensor])
            data[plan->roles.results[tensor]] = work->result[tensor];
    }
    return onednn_bind(plan->made, data, work->scratch, error);
}

void onednn_plan_run(struct work *work, struct trace *trace)
{
    onednn_run(((const struct onednn_plan *)work->plan)->made, trace);
}

void onednn_plan_release(struct work *work)
{
    onednn_destroy(((const struct onednn_plan *)work->plan)->made);
}

const char *onednn_plan_name(const struct work *work)
{
    return ((const struct onednn_plan *)work->plan)->made->name;
}
