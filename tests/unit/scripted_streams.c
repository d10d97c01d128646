#include "scripted_streams.h"

#include "kernels/kernels.h"
#include "scripted_machine.h"

struct script_stream streamed;

static cudaError_t stream_run(const char *what, enum precision precision, int choice, double bytes,
                              cudaStream_t stream)
{
    const double bandwidth = 4e12;
    streamed.what = what;
    streamed.precision = precision;
    streamed.choice = choice;
    ++streamed.launches;
    return script_enqueue(bytes / bandwidth, stream);
}

static void within(const void *memory, int64_t elements, enum precision precision)
{
    assert_int_equal((uintptr_t)memory % 16, 0);
    script_within(memory, (size_t)elements * precision_info[precision].bytes, script.own);
}

cudaError_t kernel_elementwise(enum precision precision, enum elementwise_operation operation,
                               void *y, const void *x, const void *w, int64_t count,
                               cudaStream_t stream)
{
    size_t bytes = (size_t)count * precision_info[precision].bytes;
    bool two = elementwise_inputs(operation) == 2;
    assert_true(precision != PRECISION_TF32 && precision <= PRECISION_BF16);
    script_assert_filled(x, bytes, precision, script.own);
    assert_int_equal(w != NULL, two);
    if (w)
        script_assert_filled(w, bytes, precision, script.own);
    within(y, count, precision);
    streamed.elements = count;
    return stream_run("kernel elementwise", precision, (int)operation,
                      (double)bytes * (two ? 3.0 : 2.0), stream);
}

cudaError_t kernel_pool(const struct pool *shape, void *y, const void *x, cudaStream_t stream)
{
    enum precision precision = shape->precision;
    size_t element = precision_info[precision].bytes;
    int64_t x_size = pool_x_size(shape), y_size = pool_y_size(shape);
    assert_true(precision != PRECISION_TF32 && precision <= PRECISION_BF16);
    script_assert_filled(x, (size_t)x_size * element, precision, script.own);
    within(y, y_size, precision);
    streamed.elements = x_size;
    return stream_run("kernel pool", precision, (int)shape->operation,
                      (double)(x_size + y_size) * (double)element, stream);
}

cudaError_t kernel_pool_gradient(const struct pool *shape, void *dx, const void *x, const void *dy,
                                 cudaStream_t stream)
{
    enum precision precision = shape->precision;
    size_t element = precision_info[precision].bytes;
    int64_t x_size = pool_x_size(shape), y_size = pool_y_size(shape);
    assert_true(precision != PRECISION_TF32 && precision <= PRECISION_BF16);
    if (shape->operation == POOL_MAX)
        script_assert_filled(x, (size_t)x_size * element, precision, script.own);
    script_assert_filled(dy, (size_t)y_size * element, precision, script.own);
    within(dx, x_size, precision);
    assert_ptr_not_equal(dx, x);
    streamed.elements = x_size;
    return stream_run("kernel pool gradient", precision, (int)shape->operation,
                      (double)(2 * x_size + y_size) * (double)element, stream);
}

static cudaError_t softmax_run(const char *what, enum precision precision, void *result,
                               const void *x, const void *other, int64_t count, int pass,
                               cudaStream_t stream)
{
    size_t bytes = (size_t)count * precision_info[precision].bytes;
    assert_true(precision != PRECISION_TF32 && precision <= PRECISION_BF16);
    script_assert_filled(x, bytes, precision, script.own);
    if (other)
        script_assert_filled(other, bytes, precision, script.own);
    within(result, count, precision);
    assert_true(result != x && result != other && x != other);
    streamed.elements = count;
    return stream_run(what, precision, pass, (double)bytes * (other ? 3.0 : 2.0), stream);
}

cudaError_t kernel_softmax(enum precision precision, void *y, const void *x, int64_t rows,
                           int64_t columns, cudaStream_t stream)
{
    return softmax_run("kernel softmax", precision, y, x, NULL, rows * columns, 0, stream);
}

cudaError_t kernel_softmax_gradient(enum precision precision, void *dx, const void *y,
                                    const void *dy, int64_t rows, int64_t columns,
                                    cudaStream_t stream)
{
    assert_non_null(dy);
    return softmax_run("kernel softmax gradient", precision, dx, y, dy, rows * columns, 1, stream);
}

/* ---- norms ---- */

static void norm_input(const void *memory, int64_t elements, enum precision precision)
{
    script_assert_filled(memory, (size_t)elements * precision_info[precision].bytes, precision,
                         script.own);
}

static int64_t norm_elements(const struct norm_arrays *a, enum precision precision)
{
    assert_true(precision != PRECISION_TF32 && precision <= PRECISION_BF16);
    assert_true(a->chunks >= 1 && a->chunks <= NORM_CHUNKS);
    norm_input(a->x, a->rows * a->columns, precision);
    return a->rows * a->columns;
}

cudaError_t kernel_layer_norm(enum precision precision, const struct norm_arrays *a,
                              cudaStream_t stream)
{
    enum precision wide = norm_wide(precision);
    int64_t elements = norm_elements(a, precision);
    double element = (double)precision_info[precision].bytes;
    norm_input(a->gamma, a->columns, wide);
    if (a->dy) {
        norm_input(a->dy, elements, precision);
        within(a->mean_given, a->rows, wide);
        within(a->inverse_given, a->rows, wide);
        within(a->dx, elements, precision);
        within(a->partial, 2 * a->chunks * a->columns, wide);
    } else {
        norm_input(a->beta, a->columns, wide);
        within(a->y, elements, precision);
        assert_int_equal(a->mean != NULL, a->inverse != NULL);
        if (a->mean) {
            within(a->mean, a->rows, wide);
            within(a->inverse, a->rows, wide);
        }
    }
    streamed.elements = elements;
    return stream_run(a->dy ? "kernel layer norm gradient" : "kernel layer norm", precision,
                      a->mean != NULL, (double)elements * element * (a->dy ? 3.0 : 2.0), stream);
}

bool kernel_layer_norm_sums(enum precision precision, int64_t columns)
{
    const int64_t most = 16384; /* byte */
    return columns * (int64_t)precision_info[precision].bytes <= most;
}

cudaError_t kernel_norm_step(enum precision precision, enum norm_step step,
                             const struct norm_arrays *a, cudaStream_t stream)
{
    enum precision wide = norm_wide(precision);
    int64_t elements = norm_elements(a, precision);
    bool sums = step <= NORM_STEP_SUM_LAYER, apply = step == NORM_STEP_APPLY;
    bool gradients = step == NORM_STEP_BATCH_GRADIENTS || step == NORM_STEP_LAYER_GRADIENTS;
    if (!apply)
        within(a->partial, 2 * a->chunks * a->columns, wide);
    if (step == NORM_STEP_SUM_BATCH || step == NORM_STEP_SUM_LAYER || (apply && a->dy)) {
        int64_t moments = step == NORM_STEP_SUM_LAYER ? a->rows : a->columns;
        norm_input(a->dy, elements, precision);
        within(a->mean_given, moments, wide);
    }
    if (step == NORM_STEP_MOMENTS) {
        within(a->mean, a->columns, wide);
        within(a->inverse, a->columns, wide);
    }
    if (gradients || (apply && a->dy)) {
        within(a->dgamma, a->columns, wide);
        within(a->dbeta, a->columns, wide);
    }
    if (apply)
        within(a->dy ? a->dx : a->y, elements, precision);
    streamed.elements = elements;
    double tensors = sums ? (a->dy ? 2.0 : 1.0) : apply ? (a->dy ? 3.0 : 2.0) : 0.0;
    return stream_run("kernel norm step", precision, (int)step,
                      (double)elements * (double)precision_info[precision].bytes * tensors, stream);
}
