/* What a right result is: some of its elements in fp64, from the definition, without any library.
 *
 * Each workload's row has a function (struct workload, member `reference`) that takes a request and
 * makes an expectation. Inputs come from config_fill; nothing is read from a device. The model has
 * no threads of its own: the caller passes a loop, which may run its tasks at the same time. */
#pragma once

#include <stdint.h>

#include "base/status.h"
#include "model/fill.h"
#include "model/workload.h"

/* Runs task(context, i) once for each i of [0, count), in any order. */
typedef void reference_task(void *context, int64_t i);
typedef void reference_loop(int64_t count, reference_task *task, void *context);

/* What is asked for. Nothing is owned. */
struct reference_request {
    const struct config *config;
    uint64_t seed;       /* of the inputs, and of the places that are looked at */
    double products;     /* multiply-adds that the reference may take, about */
    int64_t least, most; /* elements, whatever they cost; a result of fewer is compared whole */
    reference_loop *loop;
    /* Reads a result that the device has computed from these inputs, for a reference that starts
     * from it. */
    enum status (*read)(void *context, enum tensor tensor, const int64_t *offsets, int64_t count,
                        double *values, struct error *error);
    void *context;
};

/* For people: the role of a result. In backward passes it is the role's gradient. */
extern const char *const tensor_name[TENSOR_COUNT];

/* Elements of one result tensor: where they lie, and what they must be. */
struct slice {
    enum tensor tensor;
    int64_t count;
    int64_t *offsets; /* in the layout that workloads/ defines, in elements */
    double *expected;
    /* The largest of the terms that add up to each element, where they may cancel: what rounding
     * leaves of them is relative to that. NULL: errors are relative to the elements. */
    double *terms;
    /* Parts whose elements have sizes of their own, one after the other: each is held to the
     * tolerances by itself. Where each ends, in elements of the slice; NULL: the slice is one
     * part. */
    int64_t *ends;
    size_t parts;
};

/* How far results are off: 2-norm of the difference over that of the reference, and the worst
 * element, whose error is relative to the larger of itself and the root mean square of its part.
 * A NaN is the worst. All zero: nothing was compared. */
struct slice_errors {
    double norm;
    enum tensor tensor; /* of these elements */
    int64_t count;
    double element;
    enum tensor element_tensor;
    int64_t offset;
    double value, expected;
};
/* Of `values`, read at the slice's offsets: the larger norm of *errors and of the slice, and the
 * worse element; each part by itself. */
void slice_compare(const struct slice *slice, const double *values, enum precision precision,
                   struct slice_errors *errors);

/* All that is compared of one configuration. */
struct expectation {
    struct slice slices[TENSOR_COUNT];
    size_t count;
    int64_t samples; /* of the batch that the results are of, see device_ops.run; 0: not used */
};
void expectation_clear(struct expectation *expectation); /* frees the slices */

/* Adds a slice with room for `count` elements. STATUS_FAILED without memory; what was added before
 * stays the caller's. */
enum status expectation_add(struct expectation *expectation, enum tensor tensor, int64_t count,
                            struct slice **slice, struct error *error);

/* What an element is computed from: the shape that its workload makes of the configuration, and the
 * inputs by their roles. */
struct reference_inputs {
    const void *shape;
    struct fill fill[TENSOR_COUNT];
};
struct reference_inputs reference_inputs(const struct reference_request *request,
                                         const void *shape);
static inline double input_value(const struct reference_inputs *in, enum tensor tensor,
                                 int64_t index)
{
    return fill_value(in->fill[tensor], (uint64_t)index);
}

/* A result tensor each element of which is computed by itself. */
struct elements {
    enum tensor tensor;
    int64_t size;
    double products; /* multiply-adds in one element */
    double (*element)(const struct reference_inputs *in, int64_t offset);
    double (*terms)(const struct reference_inputs *in, int64_t offset); /* struct slice; NULL */
};

/* A whole reference for such a result: as many elements as the request affords, one at a random
 * place in each of as many equal stretches, the two ends always among them. */
enum status reference_elements(const struct reference_request *request, const void *shape,
                               const struct elements *elements, struct expectation *expectation,
                               struct error *error);
