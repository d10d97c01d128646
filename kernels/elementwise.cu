#include "kernels.h"

#include "activation.cuh"
#include "element.cuh"

template <enum elementwise_operation operation, typename C>
__device__ static inline C value_of(C x, C w)
{
    switch (operation) {
    case ELEMENTWISE_RELU:
        return activated(ACTIVATION_RELU, x);
    case ELEMENTWISE_SIGMOID:
        return activated(ACTIVATION_SIGMOID, x);
    case ELEMENTWISE_TANH:
        return activated(ACTIVATION_TANH, x);
    case ELEMENTWISE_ADD:
        return x + w;
    default:
        return (C)ELEMENTWISE_FACTOR * x;
    }
}

/* Each operation has a kernel of its own, so that no kernel does FLOPs of another operation. */
template <typename T, enum elementwise_operation operation>
__global__ void __launch_bounds__(element_threads)
    elementwise(T *y, const T *x, const T *w, int64_t count)
{
    typedef typename computed<T>::type C;
    for (int64_t i = first_element(); i < count; i += next_element()) {
        C other = operation == ELEMENTWISE_ADD ? (C)to_computed(w[i]) : 0;
        y[i] = to_stored<T>(value_of<operation>((C)to_computed(x[i]), other));
    }
}

cudaError_t kernel_elementwise(enum precision precision, enum elementwise_operation operation,
                               void *y, const void *x, const void *w, int64_t count,
                               cudaStream_t stream)
{
    return by_precision(precision, [&](auto element) {
        typedef decltype(element) T;
        typedef void kernel(T *, const T *, const T *, int64_t);
        static kernel *const kernels[ELEMENTWISE_OPERATIONS] = {
            elementwise<T, ELEMENTWISE_RELU>, elementwise<T, ELEMENTWISE_SIGMOID>,
            elementwise<T, ELEMENTWISE_TANH>, elementwise<T, ELEMENTWISE_ADD>,
            elementwise<T, ELEMENTWISE_SCALE>};
        kernels[operation]<<<element_blocks(count), element_threads, 0, stream>>>(
            (T *)y, (const T *)x, (const T *)w, count);
    });
}
