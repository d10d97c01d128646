/* How oneDNN has memory and operations described: 2.x in structs that the caller keeps, 3.x in
 * objects that the library keeps. */
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "worker/cpu/onednn.h"

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t descriptor;
typedef const_dnnl_memory_desc_t descriptor_view;
#else
typedef dnnl_memory_desc_t *descriptor;
typedef const dnnl_memory_desc_t *descriptor_view;
#endif

/* The tensor as the caller has it, or with `free` as the library likes it. The caller destroys
 * it. */
dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, dnnl_data_type_t type,
                                bool free, descriptor *made);
void descriptor_destroy(descriptor made);

/* What an operation is described with; nothing is owned. */
struct primitive_request {
    enum onednn_kind kind;
    enum onednn_pass pass;
    dnnl_engine_t engine;
    const_dnnl_primitive_attr_t attributes;
    const_dnnl_primitive_desc_t forward; /* NULL where there is none */
    dnnl_prop_kind_t forward_kind;
    dnnl_alg_kind_t function; /* dnnl_alg_kind_undef: there is none */
    float number; /* of the function: of a relu the slope below zero, of a scale its factor */
    dnnl_rnn_direction_t direction;
    dnnl_dims_t strides, gaps, padding, window; /* gaps: zeros between a kernel's elements */
    descriptor tensors[ONEDNN_ARGUMENTS];       /* NULL for one without axes */
};
/* dnnl_unimplemented where the library has no such operation. */
dnnl_status_t primitive_describe(const struct primitive_request *request,
                                 dnnl_primitive_desc_t *made);
/* Adds a function of each result to what is done before it is written. */
dnnl_status_t primitive_append(dnnl_post_ops_t operations, dnnl_alg_kind_t function, float number);
