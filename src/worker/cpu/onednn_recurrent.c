#include "worker/cpu/onednn_recurrent.h"

static dnnl_rnn_direction_t direction_of(const struct primitive_request *r)
{
    return r->operation->bidirectional ? dnnl_bidirectional_concat : dnnl_unidirectional_left2right;
}

static dnnl_alg_kind_t activation_of(const struct primitive_request *r)
{
    return primitive_algorithm(r->operation->function);
}

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t recurrent_lstm_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_lstm_forward_primitive_desc_create(
        made, r->engine, primitive_forward_kind(r), direction_of(r), t[ONEDNN_SOURCE],
        t[ONEDNN_STATE], t[ONEDNN_CELL], t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], NULL,
        t[ONEDNN_PROJECTION], t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], NULL, NULL, 0, r->attributes);
}

dnnl_status_t recurrent_lstm_backward(const struct primitive_request *r,
                                      dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_lstm_backward_primitive_desc_create(
        made, r->engine, dnnl_backward, direction_of(r), t[ONEDNN_SOURCE], t[ONEDNN_STATE],
        t[ONEDNN_CELL], t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], NULL, NULL, t[ONEDNN_BIAS],
        t[ONEDNN_DESTINATION], NULL, NULL, t[ONEDNN_DIFF_SOURCE], t[ONEDNN_DIFF_STATE],
        t[ONEDNN_DIFF_CELL], t[ONEDNN_DIFF_WEIGHTS], t[ONEDNN_DIFF_RECURRENT], NULL, NULL,
        t[ONEDNN_DIFF_BIAS], t[ONEDNN_DIFF_DESTINATION], NULL, NULL, 0, r->forward, r->attributes);
}

dnnl_status_t recurrent_gru_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_lbr_gru_forward_primitive_desc_create(
        made, r->engine, primitive_forward_kind(r), direction_of(r), t[ONEDNN_SOURCE],
        t[ONEDNN_STATE], t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], t[ONEDNN_BIAS],
        t[ONEDNN_DESTINATION], NULL, 0, r->attributes);
}

dnnl_status_t recurrent_gru_backward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_lbr_gru_backward_primitive_desc_create(
        made, r->engine, dnnl_backward, direction_of(r), t[ONEDNN_SOURCE], t[ONEDNN_STATE],
        t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], NULL,
        t[ONEDNN_DIFF_SOURCE], t[ONEDNN_DIFF_STATE], t[ONEDNN_DIFF_WEIGHTS],
        t[ONEDNN_DIFF_RECURRENT], t[ONEDNN_DIFF_BIAS], t[ONEDNN_DIFF_DESTINATION], NULL, 0,
        r->forward, r->attributes);
}

dnnl_status_t recurrent_rnn_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_vanilla_rnn_forward_primitive_desc_create(
        made, r->engine, primitive_forward_kind(r), activation_of(r), direction_of(r),
        t[ONEDNN_SOURCE], t[ONEDNN_STATE], t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], t[ONEDNN_BIAS],
        t[ONEDNN_DESTINATION], NULL, 0, 0.0F, 0.0F, r->attributes);
}

dnnl_status_t recurrent_rnn_backward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    return dnnl_vanilla_rnn_backward_primitive_desc_create(
        made, r->engine, dnnl_backward, activation_of(r), direction_of(r), t[ONEDNN_SOURCE],
        t[ONEDNN_STATE], t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], t[ONEDNN_BIAS],
        t[ONEDNN_DESTINATION], NULL, t[ONEDNN_DIFF_SOURCE], t[ONEDNN_DIFF_STATE],
        t[ONEDNN_DIFF_WEIGHTS], t[ONEDNN_DIFF_RECURRENT], t[ONEDNN_DIFF_BIAS],
        t[ONEDNN_DIFF_DESTINATION], NULL, 0, 0.0F, 0.0F, r->forward, r->attributes);
}

#else

dnnl_status_t recurrent_lstm_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_rnn_desc_t d;
    return primitive_finish(r,
                            dnnl_lstm_forward_desc_init_v3(
                                &d, primitive_forward_kind(r), direction_of(r), t[ONEDNN_SOURCE],
                                t[ONEDNN_STATE], t[ONEDNN_CELL], t[ONEDNN_WEIGHTS],
                                t[ONEDNN_RECURRENT], NULL, t[ONEDNN_PROJECTION], t[ONEDNN_BIAS],
                                t[ONEDNN_DESTINATION], NULL, NULL, 0),
                            &d, made);
}

dnnl_status_t recurrent_lstm_backward(const struct primitive_request *r,
                                      dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_rnn_desc_t d;
    return primitive_finish(
        r,
        dnnl_lstm_backward_desc_init(
            &d, dnnl_backward, direction_of(r), t[ONEDNN_SOURCE], t[ONEDNN_STATE], t[ONEDNN_CELL],
            t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], NULL,
            NULL, t[ONEDNN_DIFF_SOURCE], t[ONEDNN_DIFF_STATE], t[ONEDNN_DIFF_CELL],
            t[ONEDNN_DIFF_WEIGHTS], t[ONEDNN_DIFF_RECURRENT], t[ONEDNN_DIFF_BIAS],
            t[ONEDNN_DIFF_DESTINATION], NULL, NULL, 0),
        &d, made);
}

dnnl_status_t recurrent_gru_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_rnn_desc_t d;
    return primitive_finish(r,
                            dnnl_lbr_gru_forward_desc_init(
                                &d, primitive_forward_kind(r), direction_of(r), t[ONEDNN_SOURCE],
                                t[ONEDNN_STATE], t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT],
                                t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], NULL, 0),
                            &d, made);
}

dnnl_status_t recurrent_gru_backward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_rnn_desc_t d;
    return primitive_finish(
        r,
        dnnl_lbr_gru_backward_desc_init(
            &d, dnnl_backward, direction_of(r), t[ONEDNN_SOURCE], t[ONEDNN_STATE],
            t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], NULL,
            t[ONEDNN_DIFF_SOURCE], t[ONEDNN_DIFF_STATE], t[ONEDNN_DIFF_WEIGHTS],
            t[ONEDNN_DIFF_RECURRENT], t[ONEDNN_DIFF_BIAS], t[ONEDNN_DIFF_DESTINATION], NULL, 0),
        &d, made);
}

dnnl_status_t recurrent_rnn_forward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_rnn_desc_t d;
    return primitive_finish(
        r,
        dnnl_vanilla_rnn_forward_desc_init(&d, primitive_forward_kind(r), activation_of(r),
                                           direction_of(r), t[ONEDNN_SOURCE], t[ONEDNN_STATE],
                                           t[ONEDNN_WEIGHTS], t[ONEDNN_RECURRENT], t[ONEDNN_BIAS],
                                           t[ONEDNN_DESTINATION], NULL, 0, 0.0F, 0.0F),
        &d, made);
}

dnnl_status_t recurrent_rnn_backward(const struct primitive_request *r, dnnl_primitive_desc_t *made)
{
    const descriptor *t = r->tensors;
    dnnl_rnn_desc_t d;
    return primitive_finish(r,
                            dnnl_vanilla_rnn_backward_desc_init(
                                &d, dnnl_backward, activation_of(r), direction_of(r),
                                t[ONEDNN_SOURCE], t[ONEDNN_STATE], t[ONEDNN_WEIGHTS],
                                t[ONEDNN_RECURRENT], t[ONEDNN_BIAS], t[ONEDNN_DESTINATION], NULL,
                                t[ONEDNN_DIFF_SOURCE], t[ONEDNN_DIFF_STATE], t[ONEDNN_DIFF_WEIGHTS],
                                t[ONEDNN_DIFF_RECURRENT], t[ONEDNN_DIFF_BIAS],
                                t[ONEDNN_DIFF_DESTINATION], NULL, 0, 0.0F, 0.0F),
                            &d, made);
}

#endif
