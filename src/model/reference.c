#include "model/reference.h"

#include <math.h>
#include <stdlib.h>

const char *const tensor_name[TENSOR_COUNT] = {
    [TENSOR_INPUT] = "input",
    [TENSOR_WEIGHT] = "weights",
    [TENSOR_OUTPUT] = "output",
    [TENSOR_BIAS] = "bias",
    [TENSOR_WEIGHT_UPDATED] = "updated weights",
    [TENSOR_BIAS_UPDATED] = "updated bias",
    [TENSOR_VALUE] = "values",
};

void reference_in_turn(int64_t count, reference_task *task, void *context)
{
    for (int64_t i = 0; i < count; ++i)
        task(context, i);
}

void expectation_clear(struct expectation *expectation)
{
    for (size_t i = 0; i < expectation->count; ++i) {
        free(expectation->slices[i].offsets);
        free(expectation->slices[i].expected);
        free(expectation->slices[i].ends);
    }
    *expectation = (struct expectation){.count = 0};
}

enum status expectation_add(struct expectation *expectation, enum tensor tensor, int64_t count,
                            struct slice **slice, struct error *error)
{
    struct slice added = {.tensor = tensor, .count = count};
    added.offsets = malloc((size_t)count * sizeof *added.offsets);
    added.expected = malloc((size_t)count * sizeof *added.expected);
    if (!added.offsets || !added.expected) {
        free(added.offsets);
        free(added.expected);
        return error_set(error, STATUS_FAILED, "no memory to verify %lld elements",
                         (long long)count);
    }
    *slice = &expectation->slices[expectation->count++];
    **slice = added;
    return STATUS_OK;
}

static void spread(int64_t size, uint64_t seed, struct slice *slice)
{
    for (int64_t i = 0; i < slice->count; ++i) {
        int64_t begin = (int64_t)((double)size / (double)slice->count * (double)i);
        int64_t end = (int64_t)((double)size / (double)slice->count * (double)(i + 1));
        int64_t width = end > begin ? end - begin : 1;
        slice->offsets[i] = begin + (int64_t)(fill_mix(seed + (uint64_t)i + 1) % (uint64_t)width);
    }
    slice->offsets[0] = 0;
    slice->offsets[slice->count - 1] = size - 1;
}

struct reference_inputs reference_inputs(const struct reference_request *request, const void *shape)
{
    struct reference_inputs in = {.shape = shape};
    for (int tensor = 0; tensor < TENSOR_COUNT; ++tensor)
        in.fill[tensor] = config_fill(request->config, request->seed, (enum tensor)tensor);
    return in;
}

struct element_task {
    const struct elements *elements;
    struct reference_inputs inputs;
    struct slice *slice;
};

static void element_compute(void *context, int64_t i)
{
    const struct element_task *task = context;
    task->slice->expected[i] = task->elements->element(&task->inputs, task->slice->offsets[i]);
}

enum status reference_elements(const struct reference_request *request, const void *shape,
                               const struct elements *elements, struct expectation *expectation,
                               struct error *error)
{
    double affordable = fmax(request->products / elements->products, (double)request->least);
    double count = fmin(fmin(affordable, (double)request->most), (double)elements->size);
    struct slice *slice = NULL;
    TRY(expectation_add(expectation, elements->tensor, (int64_t)count, &slice, error));
    struct element_task task = {elements, reference_inputs(request, shape), slice};
    spread(elements->size, request->seed, slice);
    request->loop(slice->count, element_compute, &task);
    return STATUS_OK;
}
