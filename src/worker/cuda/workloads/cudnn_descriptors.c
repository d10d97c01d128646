#include "worker/cuda/workloads/cudnn_descriptors.h"

#include <stdlib.h>

enum status cudnn_descriptor_create(struct cudnn_descriptors *stack,
                                    cudnnBackendDescriptorType_t type,
                                    cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    if (stack->count == stack->room) {
        int room = 2 * stack->room + 64;
        cudnnBackendDescriptor_t *descriptors =
            realloc(stack->descriptors, (size_t)room * sizeof *descriptors);
        if (!descriptors)
            return error_set(error, STATUS_FAILED, "no memory for %d descriptors", room);
        stack->descriptors = descriptors;
        stack->room = room;
    }
    TRY(CUDNN(cudnnBackendCreateDescriptor(type, descriptor)));
    stack->descriptors[stack->count++] = *descriptor;
    return STATUS_OK;
}

void cudnn_descriptors_destroy(struct cudnn_descriptors *stack, int kept)
{
    while (stack->count > kept)
        cudnnBackendDestroyDescriptor(stack->descriptors[--stack->count]);
}

void cudnn_descriptors_shelve(struct cudnn_descriptors *stack, struct plan_shelf *shelf)
{
    plan_shelf_put(shelf, stack->descriptors, stack->count);
    *stack = (struct cudnn_descriptors){0};
}

enum status cudnn_descriptor_build(struct cudnn_descriptors *stack,
                                   cudnnBackendDescriptorType_t type,
                                   const struct cudnn_attribute *attributes,
                                   cudnnBackendDescriptor_t *descriptor, struct error *error)
{
    cudnnBackendDescriptor_t built;
    TRY(cudnn_descriptor_create(stack, type, &built, error));
    for (const struct cudnn_attribute *a = attributes; a->values; ++a)
        TRY(CUDNN(cudnnBackendSetAttribute(built, a->name, a->type, a->count, a->values)));
    TRY(CUDNN(cudnnBackendFinalize(built)));
    *descriptor = built;
    return STATUS_OK;
}

enum status cudnn_attribute_get(cudnnBackendDescriptor_t descriptor,
                                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                int64_t room, void *values, int64_t *count, struct error *error)
{
    int64_t offered = 0;
    TRY(CUDNN(cudnnBackendGetAttribute(descriptor, name, type, room, &offered, values)));
    *count = offered < room ? offered : room;
    return STATUS_OK;
}

enum status cudnn_integer_get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                              int64_t *value, struct error *error)
{
    int64_t count;
    return cudnn_attribute_get(descriptor, name, CUDNN_TYPE_INT64, 1, value, &count, error);
}
