#include "worker/cpu/onednn_primitive.h"

#include <stdlib.h>

/* Calls of 3.x make the description of a primitive. Calls of 2.x fill a struct, from which
 * primitive_describe makes the description. If 2.x has several versions of a call, 3.x has the last
 * one. */
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

dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, dnnl_data_type_t type,
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

void descriptor_destroy(descriptor made)
{
#if DNNL_VERSION_MAJOR >= 3
    if (made)
        dnnl_memory_desc_destroy(made);
#else
    free(made);
#endif
}

dnnl_status_t primitive_append(dnnl_post_ops_t operations, dnnl_alg_kind_t function, float number)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(operations, function, number, 0.0F);
#else
    return dnnl_post_ops_append_eltwise(operations, 1.0F, function, number, 0.0F);
#endif
}

/* For elementwise functions 2.x takes one description for both tensors. */
static dnnl_status_t forward_describe(const struct primitive_request *r, void *made)
{
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], h = t[ONEDNN_STATE], w = t[ONEDNN_WEIGHTS];
    descriptor u = t[ONEDNN_RECURRENT], b = t[ONEDNN_BIAS], y = t[ONEDNN_DESTINATION];
    switch (r->kind) {
    case ONEDNN_CONVOLUTION:
        return FORWARD(convolution_forward, r->forward_kind, dnnl_convolution_direct, x, w, b, y,
                       r->strides, r->gaps, r->padding, r->padding);
    case ONEDNN_MATMUL:
        return FORWARD(matmul, x, w, b, y);
    case ONEDNN_LINEAR:
        return FORWARD(inner_product_forward, r->forward_kind, x, w, b, y);
    case ONEDNN_LSTM:
        return FORWARD(lstm_forward, r->forward_kind, r->direction, x, h, t[ONEDNN_CELL], w, u,
                       NULL, t[ONEDNN_PROJECTION], b, y, NULL, NULL, 0);
    case ONEDNN_GRU:
        return FORWARD(lbr_gru_forward, r->forward_kind, r->direction, x, h, w, u, b, y, NULL, 0);
    case ONEDNN_RNN:
        return FORWARD(vanilla_rnn_forward, r->forward_kind, r->function, r->direction, x, h, w, u,
                       b, y, NULL, 0, 0.0F, 0.0F);
    case ONEDNN_ELEMENTWISE:
        return FORWARD(eltwise_forward, r->forward_kind, r->function, x, SINCE_3(y) r->number,
                       0.0F);
    case ONEDNN_SUM:
        return FORWARD(binary, dnnl_binary_add, x, t[ONEDNN_SECOND], y);
    case ONEDNN_POOL:
        return FORWARD(pooling_forward, r->forward_kind, r->function, x, y, r->strides, r->window,
                       SINCE_3((dnnl_dims_t){0}) r->padding, r->padding);
    case ONEDNN_SOFTMAX:
        return FORWARD(softmax_forward, r->forward_kind, dnnl_softmax_accurate, x, y, 1);
    default:
        return dnnl_unimplemented;
    }
}

/* For LSTMs without a projection. */
static dnnl_status_t backward_describe(const struct primitive_request *r, void *made)
{
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], h = t[ONEDNN_STATE], w = t[ONEDNN_WEIGHTS];
    descriptor u = t[ONEDNN_RECURRENT], b = t[ONEDNN_BIAS], y = t[ONEDNN_DESTINATION];
    descriptor dx = t[ONEDNN_DIFF_SOURCE], dh = t[ONEDNN_DIFF_STATE], dw = t[ONEDNN_DIFF_WEIGHTS];
    descriptor du = t[ONEDNN_DIFF_RECURRENT], db = t[ONEDNN_DIFF_BIAS];
    descriptor dy = t[ONEDNN_DIFF_DESTINATION];
    bool data = r->pass == ONEDNN_BACKWARD_DATA, weights = r->pass == ONEDNN_BACKWARD_WEIGHTS;
    if (r->kind == ONEDNN_SOFTMAX && r->pass == ONEDNN_BACKWARD)
        return BACKWARD(softmax_backward, dnnl_softmax_accurate, dx, dy, y, 1);
    if (r->kind == ONEDNN_CONVOLUTION && data)
        return BACKWARD(convolution_backward_data, dnnl_convolution_direct, dx, w, dy, r->strides,
                        r->gaps, r->padding, r->padding);
    if (r->kind == ONEDNN_CONVOLUTION && weights)
        return BACKWARD(convolution_backward_weights, dnnl_convolution_direct, x, dw, db, dy,
                        r->strides, r->gaps, r->padding, r->padding);
    if (r->kind == ONEDNN_LINEAR && data)
        return BACKWARD(inner_product_backward_data, dx, w, dy);
    if (r->kind == ONEDNN_LINEAR && weights)
        return BACKWARD(inner_product_backward_weights, x, dw, db, dy);
    if (r->kind == ONEDNN_LSTM)
        return BACKWARD(lstm_backward, dnnl_backward, r->direction, x, h, t[ONEDNN_CELL], w, u,
                        NULL, NULL, b, y, NULL, NULL, dx, dh, t[ONEDNN_DIFF_CELL], dw, du, NULL,
                        NULL, db, dy, NULL, NULL, 0);
    if (r->kind == ONEDNN_GRU)
        return BACKWARD(lbr_gru_backward, dnnl_backward, r->direction, x, h, w, u, b, y, NULL, dx,
                        dh, dw, du, db, dy, NULL, 0);
    if (r->kind == ONEDNN_RNN)
        return BACKWARD(vanilla_rnn_backward, dnnl_backward, r->function, r->direction, x, h, w, u,
                        b, y, NULL, dx, dh, dw, du, db, dy, NULL, 0, 0.0F, 0.0F);
    return dnnl_unimplemented;
}

dnnl_status_t primitive_describe(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const bool forward = r->pass <= ONEDNN_TRAINING;
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
