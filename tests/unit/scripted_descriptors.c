#include "scripted_descriptors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "scripted_backend.h"

struct scripted_backend scripted_backend;

struct descriptor *descriptor_own(cudnnBackendDescriptor_t descriptor)
{
    return (struct descriptor *)descriptor;
}

static cudnnStatus_t called(void)
{
    return ++scripted_backend.calls == scripted_backend.fail_at ? CUDNN_STATUS_NOT_SUPPORTED
                                                                : CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_NORM_MODE:
    case CUDNN_TYPE_NORM_FWD_PHASE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_KNOB_TYPE:
        return sizeof(int);
    case CUDNN_TYPE_FLOAT:
        return sizeof(float);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(int64_t);
    default:
        fail_msg("attribute of type %d", (int)type);
        return 0;
    }
}

const void *attribute_get(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < d->count; ++i)
        if (d->attributes[i].name == name)
            return d->attributes[i].bytes;
    return NULL;
}

const void *attribute_need(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    const void *value = attribute_get(d, name);
    if (!value)
        fail_msg("descriptor of type %d lacks attribute %d", (int)d->type, (int)name);
    return value;
}

struct descriptor *descriptor_need(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    struct descriptor *found = *(struct descriptor *const *)attribute_need(d, name);
    assert_true(found->finalized);
    return found;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *descriptor)
{
    cudnnStatus_t status = called();
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    struct descriptor *made = calloc(1, sizeof *made);
    assert_non_null(made);
    made->type = type;
    *descriptor = (cudnnBackendDescriptor_t)made;
    ++scripted_backend.alive;
    return status;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    free(descriptor);
    --scripted_backend.alive;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    struct descriptor *d = descriptor_own(descriptor);
    assert_true(!d->finalized && d->count < ATTRIBUTES && (size_t)count * size_of(type) <= BYTES);
    d->attributes[d->count].name = name;
    d->attributes[d->count].count = count;
    memcpy(d->attributes[d->count++].bytes, values, (size_t)count * size_of(type));
    return called();
}

static const struct descriptor *last_graph;

const struct descriptor *descriptor_last_graph(void)
{
    return last_graph;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *d = descriptor_own(descriptor);
    if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
        last_graph = d;
    if (d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        for (int name = CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT; name <= CUDNN_ATTR_TENSOR_STRIDES; ++name)
            attribute_need(d, (cudnnBackendAttributeName_t)name);
    d->finalized = true;
    return called();
}

/* Of a configuration that was made by hand, or of one that a heuristic has named. */
static int64_t engine_of(const struct descriptor *config)
{
    return attribute_get(config, CUDNN_ATTR_ENGINECFG_ENGINE)
               ? *(const int64_t *)attribute_need(
                     descriptor_need(config, CUDNN_ATTR_ENGINECFG_ENGINE),
                     CUDNN_ATTR_ENGINE_GLOBAL_INDEX)
               : config->engine;
}

/* Copies of the knobs that were set. */
static int64_t knobs_of(const struct descriptor *config, struct descriptor **found)
{
    struct descriptor *const *set = attribute_get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    int64_t count = 0;
    for (int i = 0; set && i < config->count; ++i)
        if (config->attributes[i].name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)
            count = config->attributes[i].count;
    for (int64_t i = 0; i < count; ++i)
        *found[i] = *set[i];
    return count;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t *count, void *values)
{
    struct descriptor *d = descriptor_own(descriptor), **found = values;
    (void)type;
    *count = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        ++scripted_backend.heuristics;
        *count = *(const int *)attribute_need(d, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A
                     ? scripted_backend.engines
                     : 0;
        for (int64_t i = 0; i < *count && i < wanted; ++i)
            found[i]->engine = i + 1;
        break;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        found[0]->engine = engine_of(d);
        break;
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        *count = knobs_of(d, found);
        break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
        *(int *)values = *(const int *)attribute_need(d, name);
        break;
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
        *(int64_t *)values = *(const int64_t *)attribute_need(d, name);
        break;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        *count = 0;
        break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = d->engine;
        break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *(cudnnBackendNumericalNote_t *)values = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        break;
    default:
        assert_int_equal(name, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        *(int64_t *)values = scripted_backend.workspace;
    }
    return called();
}
