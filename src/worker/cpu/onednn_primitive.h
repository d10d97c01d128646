/* Descriptions of memory and operations in both versions of oneDNN: structs of the caller in 2.x,
 * objects of the library in 3.x. */
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "worker/cpu/onednn_operation.h"

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t descriptor;
typedef const_dnnl_memory_desc_t descriptor_view;
#else
typedef dnnl_memory_desc_t *descriptor;
typedef const dnnl_memory_desc_t *descriptor_view;
#endif

/* Describes the tensor in the caller's layout, or with `free` in any layout that the library
 * chooses. The caller destroys *made. */
dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, dnnl_data_type_t type,
                                bool free, descriptor *made);
void descriptor_destroy(descriptor made);

/* The description of an operation. Owns nothing. */
struct primitive_request {
    enum onednn_kind kind;
    enum onednn_pass pass;
    dnnl_engine_t engine;
    const_dnnl_primitive_attr_t attributes;
    const_dnnl_primitive_desc_t forward; /* NULL: none */
    dnnl_prop_kind_t forward_kind;
    dnnl_alg_kind_t function; /* dnnl_alg_kind_undef: none */
    float number;             /* slope below zero of a relu, or factor of a scale */
    dnnl_rnn_direction_t direction;
    dnnl_dims_t strides, gaps, padding, window; /* gaps: zeros between elements of a kernel */
    descriptor tensors[ONEDNN_ARGUMENTS];       /* NULL: no tensor */
};
/* dnnl_unimplemented: the library lacks the operation. */
dnnl_status_t primitive_describe(const struct primitive_request *request,
                                 dnnl_primitive_desc_t *made);
/* Appends a function that is fused to the operation. */
dnnl_status_t primitive_append(dnnl_post_ops_t operations, dnnl_alg_kind_t function, float number);
