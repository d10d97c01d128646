#include "worker/cpu/onednn_primitive.h"

#include <stdlib.h>

#include "worker/cpu/onednn_recurrent.h"

static const dnnl_data_type_t data_types[PRECISION_COUNT] = {
    [PRECISION_FP32] = dnnl_f32,
    [PRECISION_FP16] = dnnl_f16,
    [PRECISION_BF16] = dnnl_bf16,
};

dnnl_alg_kind_t primitive_algorithm(enum onednn_function function)
{
    static const dnnl_alg_kind_t algorithms[] = {
        [ONEDNN_IDENTITY] = dnnl_alg_kind_undef,
        [ONEDNN_RELU] = dnnl_eltwise_relu,
        [ONEDNN_SIGMOID] = dnnl_eltwise_logistic,
        [ONEDNN_TANH] = dnnl_eltwise_tanh,
        [ONEDNN_GELU] = dnnl_eltwise_gelu_tanh,
        [ONEDNN_SCALE] = dnnl_eltwise_linear,
        [ONEDNN_MAXIMUM] = dnnl_pooling_max,
        [ONEDNN_AVERAGE] = dnnl_pooling_avg_include_padding,
    };
    return algorithms[function];
}

dnnl_prop_kind_t primitive_forward_kind(const struct primitive_request *r)
{
    return r->operation->pass == ONEDNN_INFERENCE ? dnnl_forward_inference : dnnl_forward_training;
}

/* The first number of a function: of a relu the slope below zero, of a scale its factor. */
static float number_of(const struct onednn_operation *operation)
{
    return operation->function == ONEDNN_SCALE ? (float)operation->factor : 0.0F;
}

/* The library counts the zeros between a kernel's elements. */
struct window {
    dnnl_dims_t strides, gaps, padding, extents;
};

static struct window window_of(const struct onednn_operation *o)
{
    return (struct window){
        .strides = {o->stride[0], o->stride[1]},
        .gaps = {o->dilation[0] - 1, o->dilation[1] - 1},
        .padding = {o->padding[0], o->padding[1]},
        .extents = {o->window[0], o->window[1]},
    };
}

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, bool free, descriptor *made)
{
    dnnl_data_type_t type = data_types[tensor->precision];
    *made = NULL;
    if (tensor->axes == 0)
        return dnnl_success;
    if (free)
        return dnnl_memory_desc_create_with_tag(made, tensor->axes, tensor->extents, type,
                                                dnnl_format_tag_any);
    return dnnl_memory_desc_create_with_strides(made, tensor->axes, tensor->extents, type,
                                                tensor->strides);
}

void descriptor_destroy(descriptor made)
{
    if (made)
        dnnl_memory_desc_destroy(made);
}

static dnnl_status_t convolution_forward(const struct primitive_request *r,
                                         dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    struct window w = window_of(r->operation);
    return dnnl_convolution_forward_primitive_desc_create(
        made, r->engine, primitive_forward_kind(r), dnnl_convolution_direct, t[ONEDNN_SOURCE],
        t[ONEDNN_WEIGHTS], t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], w.strides, w.gaps, w.padding,
        w.padding, r->attributes);
}

static dnnl_status_t convolution_data(const struct primitive_request *r,
                                      dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    struct window w = window_of(r->operation);
    return dnnl_convolution_backward_data_primitive_desc_create(
        made, r->engine, dnnl_convolution_direct, t[ONEDNN_DIFF_SOURCE], t[ONEDNN_WEIGHTS],
        t[ONEDNN_DIFF_DESTINATION], w.strides, w.gaps, w.padding, w.padding, r->forward,
        r->attributes);
}

static dnnl_status_t convolution_weights(const struct primitive_request *r,
                                         dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    struct window w = window_of(r->operation);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        made, r->engine, dnnl_convolution_direct, t[ONEDNN_SOURCE], t[ONEDNN_DIFF_WEIGHTS],
        t[ONEDNN_DIFF_BIAS], t[ONEDNN_DIFF_DESTINATION], w.strides, w.gaps, w.padding, w.padding,
        r->forward, r->attributes);
}

static dnnl_status_t matmul_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_matmul_primitive_desc_create(made, r->engine, t[ONEDNN_SOURCE], t[ONEDNN_WEIGHTS],
                                             t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], r->attributes);
}

static dnnl_status_t linear_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_inner_product_forward_primitive_desc_create(
        made, r->engine, primitive_forward_kind(r), t[ONEDNN_SOURCE], t[ONEDNN_WEIGHTS],
        t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], r->attributes);
}

static dnnl_status_t linear_data(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_inner_product_backward_data_primitive_desc_create(
        made, r->engine, t[ONEDNN_DIFF_SOURCE], t[ONEDNN_WEIGHTS], t[ONEDNN_DIFF_DESTINATION],
        r->forward, r->attributes);
}

static dnnl_status_t linear_weights(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_inner_product_backward_weights_primitive_desc_create(
        made, r->engine, t[ONEDNN_SOURCE], t[ONEDNN_DIFF_WEIGHTS], t[ONEDNN_DIFF_BIAS],
        t[ONEDNN_DIFF_DESTINATION], r->forward, r->attributes);
}

static dnnl_status_t elementwise_forward(const struct primitive_request *r,
                                         dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_eltwise_forward_primitive_desc_create(
        made, r->engine, primitive_forward_kind(r), primitive_algorithm(r->operation->function),
        t[ONEDNN_SOURCE], t[ONEDNN_DESTINATION], number_of(r->operation), 0.0F, r->attributes);
}

static dnnl_status_t sum_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_binary_primitive_desc_create(made, r->engine, dnnl_binary_add, t[ONEDNN_SOURCE],
                                             t[ONEDNN_SECOND], t[ONEDNN_DESTINATION],
                                             r->attributes);
}

static dnnl_status_t pool_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    struct window w = window_of(r->operation);
    const dnnl_dims_t none = {0};
    return dnnl_pooling_forward_primitive_desc_create(
        made, r->engine, primitive_forward_kind(r), primitive_algorithm(r->operation->function),
        t[ONEDNN_SOURCE], t[ONEDNN_DESTINATION], w.strides, w.extents, none, w.padding, w.padding,
        r->attributes);
}

static dnnl_status_t softmax_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_softmax_forward_primitive_desc_create(made, r->engine, primitive_forward_kind(r),
                                                      dnnl_softmax_accurate, t[ONEDNN_SOURCE],
                                                      t[ONEDNN_DESTINATION], 1, r->attributes);
}

static dnnl_status_t softmax_backward(const struct primitive_request *r,
                                      dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_softmax_backward_primitive_desc_create(
        made, r->engine, dnnl_softmax_accurate, t[ONEDNN_DIFF_SOURCE], t[ONEDNN_DIFF_DESTINATION],
        t[ONEDNN_DESTINATION], 1, r->forward, r->attributes);
}

dnnl_status_t attributes_append(dnnl_primitive_attr_t attributes,
                                const struct onednn_operation *operation)
{
    dnnl_post_ops_t after = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&after);
    if (!status)
        status = dnnl_post_ops_append_eltwise(after, primitive_algorithm(operation->function),
                                              number_of(operation), 0.0F);
    if (!status)
        status = dnnl_primitive_attr_set_post_ops(attributes, after);
    dnnl_post_ops_destroy(after);
    return status;
}

#else

dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, bool free, descriptor *made)
{
    dnnl_data_type_t type = data_types[tensor->precision];
    *made = NULL;
    if (tensor->axes == 0)
        return dnnl_success;
    *made = malloc(sizeof **made);
    if (!*made)
        return dnnl_out_of_memory;
    if (free)
        return dnnl_memory_desc_init_by_tag(*made, tensor->axes, tensor->extents, type,
                                            dnnl_format_tag_any);
    return dnnl_memory_desc_init_by_strides(*made, tensor->axes, tensor->extents, type,
                                            tensor->strides);
}

void descriptor_destroy(descriptor made)
{
    free(made);
}

dnnl_status_t primitive_finish(const struct primitive_request *r, dnnl_status_t described,
                               const_dnnl_op_desc_t operation, dnnl_primitive_desc_t *made)
{
    return described
               ? described
               : dnnl_primitive_desc_create(made, operation, r->attributes, r->engine, r->forward);
}

static dnnl_status_t convolution_forward(const struct primitive_request *r,
                                         dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    struct window w = window_of(r->operation);
    dnnl_convolution_desc_t d;
    return primitive_finish(r,
                            dnnl_dilated_convolution_forward_desc_init(
                                &d, primitive_forward_kind(r), dnnl_convolution_direct,
                                t[ONEDNN_SOURCE], t[ONEDNN_WEIGHTS], t[ONEDNN_BIAS],
                                t[ONEDNN_DESTINATION], w.strides, w.gaps, w.padding, w.padding),
                            &d, made);
}

static dnnl_status_t convolution_data(const struct primitive_request *r,
                                      dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    struct window w = window_of(r->operation);
    dnnl_convolution_desc_t d;
    return primitive_finish(r,
                            dnnl_dilated_convolution_backward_data_desc_init(
                                &d, dnnl_convolution_direct, t[ONEDNN_DIFF_SOURCE],
                                t[ONEDNN_WEIGHTS], t[ONEDNN_DIFF_DESTINATION], w.strides, w.gaps,
                                w.padding, w.padding),
                            &d, made);
}

static dnnl_status_t convolution_weights(const struct primitive_request *r,
                                         dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    struct window w = window_of(r->operation);
    dnnl_convolution_desc_t d;
    return primitive_finish(r,
                            dnnl_dilated_convolution_backward_weights_desc_init(
                                &d, dnnl_convolution_direct, t[ONEDNN_SOURCE],
                                t[ONEDNN_DIFF_WEIGHTS], t[ONEDNN_DIFF_BIAS],
                                t[ONEDNN_DIFF_DESTINATION], w.strides, w.gaps, w.padding,
                                w.padding),
                            &d, made);
}

static dnnl_status_t matmul_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_matmul_desc_t d;
    return primitive_finish(r,
                            dnnl_matmul_desc_init(&d, t[ONEDNN_SOURCE], t[ONEDNN_WEIGHTS],
                                                  t[ONEDNN_BIAS], t[ONEDNN_DESTINATION]),
                            &d, made);
}

static dnnl_status_t linear_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_inner_product_desc_t d;
    return primitive_finish(r,
                            dnnl_inner_product_forward_desc_init(
                                &d, primitive_forward_kind(r), t[ONEDNN_SOURCE], t[ONEDNN_WEIGHTS],
                                t[ONEDNN_BIAS], t[ONEDNN_DESTINATION]),
                            &d, made);
}

static dnnl_status_t linear_data(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_inner_product_desc_t d;
    return primitive_finish(r,
                            dnnl_inner_product_backward_data_desc_init(&d, t[ONEDNN_DIFF_SOURCE],
                                                                       t[ONEDNN_WEIGHTS],
                                                                       t[ONEDNN_DIFF_DESTINATION]),
                            &d, made);
}

static dnnl_status_t linear_weights(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_inner_product_desc_t d;
    return primitive_finish(r,
                            dnnl_inner_product_backward_weights_desc_init(
                                &d, t[ONEDNN_SOURCE], t[ONEDNN_DIFF_WEIGHTS], t[ONEDNN_DIFF_BIAS],
                                t[ONEDNN_DIFF_DESTINATION]),
                            &d, made);
}

/* The library takes one description for both tensors. */
static dnnl_status_t elementwise_forward(const struct primitive_request *r,
                                         dnnl_primitive_desc_t *made)
{
    dnnl_eltwise_desc_t d;
    return primitive_finish(
        r,
        dnnl_eltwise_forward_desc_init(&d, primitive_forward_kind(r),
                                       primitive_algorithm(r->operation->function),
                                       r->tensors[ONEDNN_SOURCE], number_of(r->operation), 0.0F),
        &d, made);
}

static dnnl_status_t sum_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_binary_desc_t d;
    return primitive_finish(r,
                            dnnl_binary_desc_init(&d, dnnl_binary_add, t[ONEDNN_SOURCE],
                                                  t[ONEDNN_SECOND], t[ONEDNN_DESTINATION]),
                            &d, made);
}

static dnnl_status_t pool_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    struct window w = window_of(r->operation);
    dnnl_pooling_desc_t d;
    return primitive_finish(r,
                            dnnl_pooling_forward_desc_init(
                                &d, primitive_forward_kind(r),
                                primitive_algorithm(r->operation->function), t[ONEDNN_SOURCE],
                                t[ONEDNN_DESTINATION], w.strides, w.extents, w.padding, w.padding),
                            &d, made);
}

static dnnl_status_t softmax_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_softmax_v2_desc_t d;
    return primitive_finish(
        r,
        dnnl_softmax_v2_forward_desc_init(&d, primitive_forward_kind(r), dnnl_softmax_accurate,
                                          t[ONEDNN_SOURCE], t[ONEDNN_DESTINATION], 1),
        &d, made);
}

static dnnl_status_t softmax_backward(const struct primitive_request *r,
                                      dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_softmax_v2_desc_t d;
    return primitive_finish(
        r,
        dnnl_softmax_v2_backward_desc_init(&d, dnnl_softmax_accurate, t[ONEDNN_DIFF_SOURCE],
                                           t[ONEDNN_DIFF_DESTINATION], t[ONEDNN_DESTINATION], 1),
        &d, made);
}

dnnl_status_t attributes_append(dnnl_primitive_attr_t attributes,
                                const struct onednn_operation *operation)
{
    dnnl_post_ops_t after = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&after);
    if (!status)
        status = dnnl_post_ops_append_eltwise(after, 1.0F, primitive_algorithm(operation->function),
                                              number_of(operation), 0.0F);
    if (!status)
        status = dnnl_primitive_attr_set_post_ops(attributes, after);
    dnnl_post_ops_destroy(after);
    return status;
}

#endif

/* A new operation is a function in each version, and a row. */
static primitive_description *const functions[ONEDNN_KINDS][ONEDNN_BACKWARD_WEIGHTS + 1] = {
    [ONEDNN_CONVOLUTION] = {[ONEDNN_INFERENCE] = convolution_forward,
                            [ONEDNN_TRAINING] = convolution_forward,
                            [ONEDNN_BACKWARD_DATA] = convolution_data,
                            [ONEDNN_BACKWARD_WEIGHTS] = convolution_weights},
    [ONEDNN_MATMUL] = {[ONEDNN_INFERENCE] = matmul_forward},
    [ONEDNN_LINEAR] = {[ONEDNN_INFERENCE] = linear_forward,
                       [ONEDNN_TRAINING] = linear_forward,
                       [ONEDNN_BACKWARD_DATA] = linear_data,
                       [ONEDNN_BACKWARD_WEIGHTS] = linear_weights},
    [ONEDNN_ELEMENTWISE] = {[ONEDNN_INFERENCE] = elementwise_forward},
    [ONEDNN_SUM] = {[ONEDNN_INFERENCE] = sum_forward},
    [ONEDNN_POOL] = {[ONEDNN_INFERENCE] = pool_forward},
    [ONEDNN_SOFTMAX] = {[ONEDNN_INFERENCE] = softmax_forward,
                        [ONEDNN_TRAINING] = softmax_forward,
                        [ONEDNN_BACKWARD] = softmax_backward},
    [ONEDNN_LSTM] = {[ONEDNN_INFERENCE] = recurrent_lstm_forward,
                     [ONEDNN_TRAINING] = recurrent_lstm_forward,
                     [ONEDNN_BACKWARD] = recurrent_lstm_backward},
    [ONEDNN_GRU] = {[ONEDNN_INFERENCE] = recurrent_gru_forward,
                    [ONEDNN_TRAINING] = recurrent_gru_forward,
                    [ONEDNN_BACKWARD] = recurrent_gru_backward},
    [ONEDNN_RNN] = {[ONEDNN_INFERENCE] = recurrent_rnn_forward,
                    [ONEDNN_TRAINING] = recurrent_rnn_forward,
                    [ONEDNN_BACKWARD] = recurrent_rnn_backward},
};

dnnl_status_t primitive_describe(const struct primitive_request *request,
                                 dnnl_primitive_desc_t *made)
{
    primitive_description *describe = functions[request->operation->kind][request->operation->pass];
    return describe ? describe(request, made) : dnnl_unimplemented;
}

/* The library's sets of instructions hold those that they build on as bits. A set of another family of
 * processors has none of these bits. */
bool primitive_is_native(enum precision precision)
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
