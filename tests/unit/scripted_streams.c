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
