/* References: some elements of a result in fp64, computed from the definition without a library.
 *
 * The row of each workload has a function (struct workload, member `reference`) that makes an
 * expectation from a request. Inputs come from config_fill; nothing is read from a device. The
 * model has no threads: the caller passes a loop, which may run tasks concurrently. */
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
    uint64_t seed;   /* seed of the inputs and of the compared places */
    double products; /* approximate limit on multiply-adds */
    /* limits on the number of compared elements, regardless of cost; a smaller result is compared
     * whole */
    int64_t least, most;
    reference_loop *loop;
    /* Reads a result that the device computed from these inputs, for references that start from it.
     */
    enum status (*read)(void *context, enum tensor tensor, const int64_t *offsets, int64_t count,
                        double *values, struct error *error);
    void *context;
    /* Computes the results that a workload's header describes (struct lstm_results) in fp64 on the
     * device. STATUS_UNSUPPORTED: the device does not; the host has to. NULL: the host computes. */
    enum status (*compute)(void *context, const void *results, struct error *error);
};

/* For people: name of a result's role, of which a backward pass computes the gradient. */
extern const char *const tensor_name[TENSOR_COUNT];

/* Compared elements of one result tensor: places and expected values. */
struct slice {
    enum tensor tensor;
    int64_t count;
    int64_t *offsets; /* in elements, in the layout that workloads/ defines */
    double *expected;
    /* Largest term in the sum of each element, if terms may cancel: errors are relative to it,
     * because rounding is. NULL: errors are relative to the elements. */
    double *terms;
    /* Ends of consecutive parts whose elements have different sizes: tolerances apply to each part.
     * NULL: the slice is one part. */
    int64_t *ends;
    size_t parts;
};

/* Errors of a result: 2-norm of the difference over that of the reference; and the worst element,
 * relative to the larger of itself and the root mean square of its part. NaN is the worst error.
 * All zero: nothing was compared. */
struct slice_errors {
    double norm;
    enum tensor tensor; /* tensor of the worst part */
    int64_t count;
    double element;
    enum tensor element_tensor;
    int64_t offset;
    double value, expected;
};
/* Compares `values` at the slice's offsets, each part separately, and keeps the larger norm and the
 * worse element in *errors. */
void slice_compare(const struct slice *slice, const double *values, enum precision precision,
                   struct slice_errors *errors);

/* All compared elements of a configuration. */
struct expectation {
    struct slice slices[TENSOR_COUNT];
    size_t count;
    /* number of samples of the batch that were computed, see device_ops.run; 0: not used */
    int64_t samples;
};
void expectation_clear(struct expectation *expectation); /* frees the slices */

/* Adds a slice with room for `count` elements. STATUS_FAILED: no memory; the caller keeps
 * earlier slices. */
enum status expectation_add(struct expectation *expectation, enum tensor tensor, int64_t count,
                            struct slice **slice, struct error *error);

/* Selects `count` places among `size` from `begin` on, a random one in each of as many equal
 * stretches, always including both ends. */
void places_spread(int64_t *places, int64_t count, int64_t begin, int64_t size, uint64_t seed);

/* Inputs of an element: shape, made from the configuration, and tensors by role. */
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

/* The reference for a result of independent elements. Splits the tensor into as many equal
 * stretches as the request affords and computes one random element of each, always including both
 * ends. */
enum status reference_elements(const struct reference_request *request, const void *shape,
                               const struct elements *elements, struct expectation *expectation,
                               struct error *error);
