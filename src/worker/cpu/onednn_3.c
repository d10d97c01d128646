#include "worker/cpu/onednn_primitive.h"

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, dnnl_data_type_t type,
                                bool free, descriptor *made)
{
    return free ? dnnl_memory_desc_create_with_tag(made, tensor->axes, tensor->extents, type,
                                                   dnnl_format_tag_any)
                : dnnl_memory_desc_create_with_strides(made, tensor->axes, tensor->extents, type,
                                                       tensor->strides);
}

void descriptor_destroy(descriptor made)
{
    if (made)
        dnnl_memory_desc_destroy(made);
}

dnnl_status_t primitive_append(dnnl_post_ops_t operations, dnnl_alg_kind_t function, float number)
{
    return dnnl_post_ops_append_eltwise(operations, function, number, 0.0F);
}

static dnnl_status_t forward_describe(const struct primitive_request *r,
                                      dnnl_primitive_desc_t *made)
{
    descriptor x = r->tensors[ONEDNN_SOURCE], w = r->tensors[ONEDNN_WEIGHTS];
    descriptor b = r->tensors[ONEDNN_BIAS], y = r->tensors[ONEDNN_DESTINATION];
    const dnnl_dims_t none = {0};
    switch (r->kind) {
    case ONEDNN_CONVOLUTION:
        return dnnl_convolution_forward_primitive_desc_create(
            made, r->engine, r->forward_kind, dnnl_convolution_direct, x, w, b, y, r->strides,
            r->gaps, r->padding, r->padding, r->attributes);
    case ONEDNN_MATMUL:
        return dnnl_matmul_primitive_desc_create(made, r->engine, x, w, b, y, r->attributes);
    case ONEDNN_LINEAR:
        return dnnl_inner_product_forward_primitive_desc_create(made, r->engine, r->forward_kind, x,
                                                                w, b, y, r->attributes);
    case ONEDNN_ELEMENTWISE:
        return dnnl_eltwise_forward_primitive_desc_create(
            made, r->engine, r->forward_kind, r->function, x, y, r->number, 0.0F, r->attributes);
    case ONEDNN_SUM:
        return dnnl_binary_primitive_desc_create(made, r->engine, dnnl_binary_add, x,
                                                 r->tensors[ONEDNN_SECOND], y, r->attributes);
    case ONEDNN_POOL:
        return dnnl_pooling_forward_primitive_desc_create(
            made, r->engine, r->forward_kind, r->function, x, y, r->strides, r->window, none,
            r->padding, r->padding, r->attributes);
    case ONEDNN_SOFTMAX:
        return dnnl_softmax_forward_primitive_desc_create(
            made, r->engine, r->forward_kind, dnnl_softmax_accurate, x, y, 1, r->attributes);
    default:
        return dnnl_unimplemented;
    }
}

static dnnl_status_t backward_describe(const struct primitive_request *r,
                                       dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], w = t[ONEDNN_WEIGHTS], dx = t[ONEDNN_DIFF_SOURCE];
    descriptor dw = t[ONEDNN_DIFF_WEIGHTS], db = t[ONEDNN_DIFF_BIAS];
    descriptor dy = t[ONEDNN_DIFF_DESTINATION];
    bool data = r->pass == ONEDNN_BACKWARD_DATA, weights = r->pass == ONEDNN_BACKWARD_WEIGHTS;
    if (r->kind == ONEDNN_SOFTMAX && r->pass == ONEDNN_BACKWARD)
        return dnnl_softmax_backward_primitive_desc_create(made, r->engine, dnnl_softmax_accurate,
                                                           dx, dy, t[ONEDNN_DESTINATION], 1,
                                                           r->forward, r->attributes);
    if (r->kind == ONEDNN_CONVOLUTION && data)
        return dnnl_convolution_backward_data_primitive_desc_create(
            made, r->engine, dnnl_convolution_direct, dx, w, dy, r->strides, r->gaps, r->padding,
            r->padding, r->forward, r->attributes);
    if (r->kind == ONEDNN_CONVOLUTION && weights)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            made, r->engine, dnnl_convolution_direct, x, dw, db, dy, r->strides, r->gaps,
            r->padding, r->padding, r->forward, r->attributes);
    if (r->kind == ONEDNN_LINEAR && data)
        return dnnl_inner_product_backward_data_primitive_desc_create(made, r->engine, dx, w, dy,
                                                                      r->forward, r->attributes);
    if (r->kind == ONEDNN_LINEAR && weights)
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            made, r->engine, x, dw, db, dy, r->forward, r->attributes);
    return dnnl_unimplemented;
}

static dnnl_status_t recurrent_forward_describe(const struct primitive_request *r,
                                                dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], h = t[ONEDNN_STATE], w = t[ONEDNN_WEIGHTS];
    descriptor u = t[ONEDNN_RECURRENT], b = t[ONEDNN_BIAS], y = t[ONEDNN_DESTINATION];
    if (r->kind == ONEDNN_LSTM)
        return dnnl_lstm_forward_primitive_desc_create(
            made, r->engine, r->forward_kind, r->direction, x, h, t[ONEDNN_CELL], w, u, NULL,
            t[ONEDNN_PROJECTION], b, y, NULL, NULL, 0, r->attributes);
    if (r->kind == ONEDNN_GRU)
        return dnnl_lbr_gru_forward_primitive_desc_create(made, r->engine, r->forward_kind,
                                                          r->direction, x, h, w, u, b, y, NULL, 0,
                                                          r->attributes);
    return dnnl_vanilla_rnn_forward_primitive_desc_create(made, r->engine, r->forward_kind,
                                                          r->function, r->direction, x, h, w, u, b,
                                                          y, NULL, 0, 0.0F, 0.0F, r->attributes);
}

/* Of an LSTM without a projection. */
static dnnl_status_t recurrent_backward_describe(const struct primitive_request *r,
                                                 dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    descriptor x = t[ONEDNN_SOURCE], h = t[ONEDNN_STATE], w = t[ONEDNN_WEIGHTS];
    descriptor u = t[ONEDNN_RECURRENT], b = t[ONEDNN_BIAS], y = t[ONEDNN_DESTINATION];
    descriptor dx = t[ONEDNN_DIFF_SOURCE], dh = t[ONEDNN_DIFF_STATE], dw = t[ONEDNN_DIFF_WEIGHTS];
    descriptor du = t[ONEDNN_DIFF_RECURRENT], db = t[ONEDNN_DIFF_BIAS];
    descriptor dy = t[ONEDNN_DIFF_DESTINATION];
    if (r->kind == ONEDNN_LSTM)
        return dnnl_lstm_backward_primitive_desc_create(
            made, r->engine, dnnl_backward, r->direction, x, h, t[ONEDNN_CELL], w, u, NULL, NULL, b,
            y, NULL, NULL, dx, dh, t[ONEDNN_DIFF_CELL], dw, du, NULL, NULL, db, dy, NULL, NULL, 0,
            r->forward, r->attributes);
    if (r->kind == ONEDNN_GRU)
        return dnnl_lbr_gru_backward_primitive_desc_create(
            made, r->engine, dnnl_backward, r->direction, x, h, w, u, b, y, NULL, dx, dh, dw, du,
            db, dy, NULL, 0, r->forward, r->attributes);
    return dnnl_vanilla_rnn_backward_primitive_desc_create(
        made, r->engine, dnnl_backward, r->function, r->direction, x, h, w, u, b, y, NULL, dx, dh,
        dw, du, db, dy, NULL, 0, 0.0F, 0.0F, r->forward, r->attributes);
}

dnnl_status_t primitive_describe(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    bool recurrent = r->kind == ONEDNN_LSTM || r->kind == ONEDNN_GRU || r->kind == ONEDNN_RNN;
    if (r->pass <= ONEDNN_TRAINING)
        return (recurrent ? recurrent_forward_describe : forward_describe)(r, made);
    return (recurrent ? recurrent_backward_describe : backward_describe)(r, made);
}

#endif
