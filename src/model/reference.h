/* References (member of struct workload): expected values of some elements of a result, in fp64,
 * computed from the definition without a library. Inputs come from config_fill, not from a device.
 * References start no threads: the caller passes a loop, which may run tasks concurrently. */
#pragma once

#include <stdint.h>

#include "base/status.h"
#include "model/fill.h"
#include "model/workload.h"

/* Runs task(context, i) once for each i of [0, count), in any order. */
typedef void reference_task(void *context, int64_t i);
typedef void reference_loop(int64_t count, reference_task *task, void *context);

/* Input of a reference. Nothing is owned. */
struct reference_request {
    const struct config *config;
    uint64_t seed;   /* determines the inputs, and which elements are compared */
    double products; /* approximate limit on multiply-adds */
    /* limits on the number of compared elements, whatever they cost; a result with fewer than
     * `least` elements is compared whole */
    int64_t least, most;
    reference_loop *loop;
    /* Reads elements of the device's results, for references that start from these. */
    enum status (*read)(void *context, enum tensor tensor, const int64_t *offsets, int64_t count,
                        double *values, struct error *error);
    void *context;
    /* Computes results on the device in fp64 (struct lstm_results). STATUS_UNSUPPORTED: the device
     * cannot, so the host must. NULL: the host computes. */
    enum status (*compute)(void *context, const void *results, struct error *error);
};

/* Names of roles for messages. In a backward pass results are gradients of the named tensors. */
extern const char *const tensor_name[TENSOR_COUNT];

/* Compared elements of one result tensor: places and expected values. */
struct slice {
    enum tensor tensor;
    int64_t count;
    int64_t *offsets; /* in elements, in the layout that workloads/ defines */
    double *expected;
    /* Largest term in the sum of each element, if terms may cancel. Errors are then relative to
     * this term, because rounding errors are. NULL: errors are relative to the elements. */
    double *terms;
    int64_t *ends; /* ends of consecutive parts of different magnitude; NULL: one part */
    size_t parts;
};

/* Errors of a result. `norm` is the 2-norm of the difference / that of the reference, for the worst
 * part. `element` is the largest error of an element, relative to the larger of that element and
 * the root mean square of its part. NaN is the worst error. All zero: nothing was compared. */
struct slice_errors {
    double norm;
    enum tensor tensor; /* the tensor with the worst part */
    int64_t count;
    double element;
    enum tensor element_tensor;
    int64_t offset;
    double value, expected;
};
/* Compares `values`, the device's elements at the slice's offsets, part by part. Updates *errors if
 * a norm or an element is worse. */
void slice_compare(const struct slice *slice, const double *values, enum precision precision,
                   struct slice_errors *errors);

/* All compared elements of a configuration. */
struct expectation {
    struct slice slices[TENSOR_COUNT];
    size_t count;
    int64_t samples; /* samples of the batch that the reference has, see device_ops.run; 0: all */
};
void expectation_clear(struct expectation *expectation); /* frees the slices */

/* Adds a slice with room for `count` elements. STATUS_FAILED: no memory; earlier slices are
 * kept. */
enum status expectation_add(struct expectation *expectation, enum tensor tensor, int64_t count,
                            struct slice **slice, struct error *error);

/* Selects `count` of the `size` places from `begin` on: both ends, and a random place in each of
 * `count` equal stretches. */
void places_spread(int64_t *places, int64_t count, int64_t begin, int64_t size, uint64_t seed);

/* Input of the function that computes an element: shape of the workload, and tensors by role. */
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

/* A result tensor whose elements are independent. */
struct elements {
    enum tensor tensor;
    double products; /* multiply-adds in one element */
    double (*element)(const struct reference_inputs *in, int64_t offset);
    double (*terms)(const struct reference_inputs *in, int64_t offset); /* see struct slice; NULL */
};

/* The reference for a result of independent elements. Computes as many elements as the request
 * allows, at the places of places_spread. */
enum status reference_elements(const struct reference_request *request, const void *shape,
                               const struct elements *elements, struct expectation *expectation,
                               struct error *error);
