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
