/* What differs between the versions of oneDNN's interface: how a memory and an operation are described.
 * 2.x has structs that the caller keeps, 3.x objects that the library keeps. */
#ifndef ROOFSWEEP_CPU_ONEDNN_PRIMITIVE_H
#define ROOFSWEEP_CPU_ONEDNN_PRIMITIVE_H

#include <oneapi/dnnl/dnnl.h>

#include "worker/cpu/onednn.h"

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t descriptor;
typedef const_dnnl_memory_desc_t descriptor_view;
#else
typedef dnnl_memory_desc_t *descriptor;
typedef const dnnl_memory_desc_t *descriptor_view;
#endif

/* The tensor as the caller has it, or with `free` as the library likes it. *made is NULL for one
 * without axes. The caller destroys it. */
dnnl_status_t descriptor_create(const struct onednn_tensor *tensor, bool free, descriptor *made);
void descriptor_destroy(descriptor made);

/* The operation's function behind a product, as an attribute of it. */
dnnl_status_t attributes_append(dnnl_primitive_attr_t attributes,
                                const struct onednn_operation *operation);

/* What an operation is described with; nothing is owned. */
struct primitive_request {
    const struct onednn_operation *operation;
    dnnl_engine_t engine;
    const_dnnl_primitive_attr_t attributes;
    const descriptor *tensors;           /* [ONEDNN_ARGUMENTS] */
    const_dnnl_primitive_desc_t forward; /* NULL where there is none */
};
typedef dnnl_status_t primitive_description(const struct primitive_request *request,
                                            dnnl_primitive_desc_t *made);
primitive_description primitive_describe;

/* What descriptions are made of. */
dnnl_prop_kind_t primitive_forward_kind(const struct primitive_request *request);
/* dnnl_alg_kind_undef: there is no such function. */
dnnl_alg_kind_t primitive_algorithm(enum onednn_function function);
#if DNNL_VERSION_MAJOR < 3
/* From the library's struct, if that was described well. */
dnnl_status_t primitive_finish(const struct primitive_request *request, dnnl_status_t described,
                               const_dnnl_op_desc_t description, dnnl_primitive_desc_t *made);
#endif

/* Whether this CPU has instructions for the precision. */
bool primitive_is_native(enum precision precision);

#endif
