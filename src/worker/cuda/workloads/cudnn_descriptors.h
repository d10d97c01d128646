/* Descriptors of cuDNN's backend, which an operation graph and its plans are made of. They refer to each
 * other in ways that cuDNN does not tell, so they form a stack: none is destroyed before those that
 * were made after it. */
#ifndef ROOFSWEEP_CUDNN_DESCRIPTORS_H
#define ROOFSWEEP_CUDNN_DESCRIPTORS_H

#include "worker/cuda/gpu/libraries.h"
#include "worker/cuda/gpu/plan_shelf.h"

/* All zero: empty. Owns what is in it, and its memory. */
struct cudnn_descriptors {
    cudnnBackendDescriptor_t *descriptors;
    int count, room;
};

/* An attribute of a descriptor. */
struct cudnn_attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    const void *values; /* NULL ends a list */
};

/* A new one on top of the stack, for cuDNN to write into. */
enum status cudnn_descriptor_create(struct cudnn_descriptors *stack,
                                    cudnnBackendDescriptorType_t type,
                                    cudnnBackendDescriptor_t *descriptor, struct error *error);
/* The same with these attributes, finalized. After a failure it may be on the stack, unfinished. */
enum status cudnn_descriptor_build(struct cudnn_descriptors *stack,
                                   cudnnBackendDescriptorType_t type,
                                   const struct cudnn_attribute *attributes,
                                   cudnnBackendDescriptor_t *descriptor, struct error *error);

/* Destroys those above the first `kept`. */
void cudnn_descriptors_destroy(struct cudnn_descriptors *stack, int kept);
/* All go to the shelf, or are destroyed if it is NULL, and the stack is empty. */
void cudnn_descriptors_shelve(struct cudnn_descriptors *stack, struct plan_shelf *shelf);

/* At most `room` values of an attribute; *count: how many there are of them. */
enum status cudnn_attribute_get(cudnnBackendDescriptor_t descriptor,
                                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                int64_t room, void *values, int64_t *count, struct error *error);
enum status cudnn_integer_get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                              int64_t *value, struct error *error);

#endif
