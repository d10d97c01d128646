#include <stdlib.h>

#include "worker/cpu/onednn_primitive.h"

#if DNNL_VERSION_MAJOR < 3

dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, dnnl_data_type_t type,
                                bool free, descriptor *made)
{
    *made = malloc(sizeof **made);
    if (!*made)
        return dnnl_out_of_memory;
    return free ? dnnl_memory_desc_init_by_tag(*made, tensor->axes, tensor->extents, type,
                                               dnnl_format_tag_any)
                : dnnl_memory_desc_init_by_strides(*made, tensor->axes, tensor->extents, type,
                                                   tensor->strides);
}

void descriptor_destroy(descriptor made)
{
    free(made);
}

dnnl_status_t primitive_append(dnnl_post_ops_t operations, dnnl_alg_kind_t function, float number)
{
    return dnnl_post_ops_append_eltwise(operations, 1.0F, function, number, 0.0F);
}

union operation {
    dnnl_convolution_desc_t convolution;
    dnnl_matmul_desc_t matmul;
    dnnl_inner_product_desc_t linear;
    dnnl_eltwise_desc_t elementwise;
    dnnl_binary_desc_t sum;
    dnnl_pooling_desc_t pool;
    dnnl_softmax_v2_desc_t softmax;
    dnnl_rnn_desc_t recurrent;
};

/* Of elementwise work the library takes one description for both tensors. */
static dnnl_status_t forward_describe(const struct primitive_request *r, union operation *o)
{
    descriptor x = r->tensors[ONEDNN_SOURCE], w = r->tensors[ONEDNN_WEIGHTS];
    descriptor b = r->tensors[ONEDNN_BIAS], y = r->tensors[ONEDNN_DESTINATION];
    switch (r->kind) {
    case ONEDNN_CONVOLUTION:
        return dnnl_dilated_convolution_forward_desc_init(
            &o->convolution, r->forward_kind, dnnl_convolution_direct, x, w, b, y, r->strides,
            r->gaps, r->padding, r->padding);
    case ONEDNN_MATMUL:
        return dnnl_matmul_desc_init(&o->matmul, x, w, b, y);
    case ONEDNN_LINEAR:
        return dnnl_inner_product_forward_desc_init(&o->linear, r->forward_kind, x, w, b, y);
    case ONEDNN_ELEMENTWISE:
        return dnnl_eltwise_forward_desc_init(&o->elementwise, r->forward_kind, r->function, x,
                                              r->number, 0.0F);
    case ONEDNN_SUM:
        return dnnl_binary_desc_init(&o->sum, dnnl_binary_add, x, r->tensors[ONEDNN_SECOND], y);
    case ONEDNN_POOL:
        return dnnl_pooling_forward_desc_init(&o->pool, r->forward_kind, r->function, x, y,
                                              r->strides, r->window, r->padding, r->padding);
    case ONEDNN_SOFTMAX:
        return dnnl_softmax_v2_forward_desc_init(&o->softmax, r->forward_kind,
                                                 dnnl_softmax_accurate, x, y, 1);
    default:
        return dnnl_unimplemented;
    }
}

static dnnl_status_t backward_describe(const struct primitive_request *r, union operation *o)
{
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], w = t[ONEDNN_WEIGHTS], dx = t[ONEDNN_DIFF_SOURCE];
    descriptor dw = t[ONEDNN_DIFF_WEIGHTS], db = t[ONEDNN_DIFF_BIAS];
    descriptor dy = t[ONEDNN_DIFF_DESTINATION];
    bool data = r->pass == ONEDNN_BACKWARD_DATA, weights = r->pass == ONEDNN_BACKWARD_WEIGHTS;
    if (r->kind == ONEDNN_SOFTMAX && r->pass == ONEDNN_BACKWARD)
        return dnnl_softmax_v2_backward_desc_init(&o->softmax, dnnl_softmax_accurate, dx, dy,
                                                  t[ONEDNN_DESTINATION], 1);
    if (r->kind == ONEDNN_CONVOLUTION && data)
        return dnnl_dilated_convolution_backward_data_desc_init(
            &o->convolution, dnnl_convolution_direct, dx, w, dy, r->strides, r->gaps, r->padding,
            r->padding);
    if (r->kind == ONEDNN_CONVOLUTION && weights)
        return dnnl_dilated_convolution_backward_weights_desc_init(
            &o->convolution, dnnl_convolution_direct, x, dw, db, dy, r->strides, r->gaps,
            r->padding, r->padding);
    if (r->kind == ONEDNN_LINEAR && data)
        return dnnl_inner_product_backward_data_desc_init(&o->linear, dx, w, dy);
    if (r->kind == ONEDNN_LINEAR && weights)
        return dnnl_inner_product_backward_weights_desc_init(&o->linear, x, dw, db, dy);
    return dnnl_unimplemented;
}

static dnnl_status_t recurrent_forward_describe(const struct primitive_request *r,
                                                union operation *o)
{
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], h = t[ONEDNN_STATE], w = t[ONEDNN_WEIGHTS];
    descriptor u = t[ONEDNN_RECURRENT], b = t[ONEDNN_BIAS], y = t[ONEDNN_DESTINATION];
    if (r->kind == ONEDNN_LSTM)
        return dnnl_lstm_forward_desc_init_v3(&o->recurrent, r->forward_kind, r->direction, x, h,
                                              t[ONEDNN_CELL], w, u, NULL, t[ONEDNN_PROJECTION], b,
                                              y, NULL, NULL, 0);
    if (r->kind == ONEDNN_GRU)
        return dnnl_lbr_gru_forward_desc_init(&o->recurrent, r->forward_kind, r->direction, x, h, w,
                                              u, b, y, NULL, 0);
    return dnnl_vanilla_rnn_forward_desc_init(&o->recurrent, r->forward_kind, r->function,
                                              r->direction, x, h, w, u, b, y, NULL, 0, 0.0F, 0.0F);
}

/* Of an LSTM without a projection. */
static dnnl_status_t recurrent_backward_describe(const struct primitive_request *r,
                                                 union operation *o)
{
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], h = t[ONEDNN_STATE], w = t[ONEDNN_WEIGHTS];
    descriptor u = t[ONEDNN_RECURRENT], b = t[ONEDNN_BIAS], y = t[ONEDNN_DESTINATION];
    descriptor dx = t[ONEDNN_DIFF_SOURCE], dh = t[ONEDNN_DIFF_STATE], dw = t[ONEDNN_DIFF_WEIGHTS];
    descriptor du = t[ONEDNN_DIFF_RECURRENT], db = t[ONEDNN_DIFF_BIAS];
    descriptor dy = t[ONEDNN_DIFF_DESTINATION];
    if (r->kind == ONEDNN_LSTM)
        return dnnl_lstm_backward_desc_init(&o->recurrent, dnnl_backward, r->direction, x, h,
                                            t[ONEDNN_CELL], w, u, b, y, NULL, NULL, dx, dh,
                                            t[ONEDNN_DIFF_CELL], dw, du, db, dy, NULL, NULL, 0);
    if (r->kind == ONEDNN_GRU)
        return dnnl_lbr_gru_backward_desc_init(&o->recurrent, dnnl_backward, r->direction, x, h, w,
                                               u, b, y, NULL, dx, dh, dw, du, db, dy, NULL, 0);
    return dnnl_vanilla_rnn_backward_desc_init(&o->recurrent, dnnl_backward, r->function,
                                               r->direction, x, h, w, u, b, y, NULL, dx, dh, dw, du,
                                               db, dy, NULL, 0, 0.0F, 0.0F);
}

dnnl_status_t primitive_describe(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    bool recurrent = r->kind == ONEDNN_LSTM || r->kind == ONEDNN_GRU || r->kind == ONEDNN_RNN;
    union operation operation;
    dnnl_status_t status =
        r->pass <= ONEDNN_TRAINING
            ? (recurrent ? recurrent_forward_describe : forward_describe)(r, &operation)
            : (recurrent ? recurrent_backward_describe : backward_describe)(r, &operation);
    return status
               ? status
               : dnnl_primitive_desc_create(made, &operation, r->attributes, r->engine, r->forward);
}

#endif
