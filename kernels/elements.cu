#include "kernels.h"

#include "activation.cuh"
#include "block.cuh"
#include "element.cuh"

#include <cuda_fp8.h>

template <typename T> __device__ inline T rounded(double value)
{
    return (T)value;
}
template <> __device__ inline __half rounded<__half>(double value)
{
    return __double2half(value);
}
template <> __device__ inline __nv_bfloat16 rounded<__nv_bfloat16>(double value)
{
    return __double2bfloat16(value);
}

template <typename T>
__global__ void fill_elements(T *data, int64_t count, struct fill fill, int64_t first)
{
    for (int64_t i = first_element(); i < count; i += next_element())
        data[i] = rounded<T>(fill_value(fill, (uint64_t)(first + i)));
}

cudaError_t kernel_fill(enum precision precision, void *data, int64_t count, struct fill fill,
                        int64_t first, cudaStream_t stream)
{
    auto launch = [&](auto element) {
        fill_elements<<<element_blocks(count), element_threads, 0, stream>>>(
            (decltype(element) *)data, count, fill, first);
        return cudaGetLastError();
    };
    if (precision == PRECISION_FP8)
        return launch(__nv_fp8_e4m3());
    if (precision ==
        PRECISION_INT8) /* the fill must have exponent 7, so that values are integers */
        return launch(int8_t());
    return by_precision(precision, launch);
}

template <typename T>
__global__ void gather_elements(const T *data, const int64_t *offsets, int64_t count,
                                double *values)
{
    for (int64_t i = first_element(); i < count; i += next_element())
        values[i] = to_computed(data[offsets[i]]);
}

cudaError_t kernel_gather(enum precision precision, const void *data, const int64_t *offsets,
                          int64_t count, double *values, cudaStream_t stream)
{
    return by_precision(precision, [&](auto element) {
        gather_elements<<<element_blocks(count), element_threads, 0, stream>>>(
            (const decltype(element) *)data, offsets, count, values);
    });
}

/* Maps different words at one index to different values, so a changed word changes the sum. */
__device__ static inline uint64_t mixed(uint64_t word, enum tensor tensor, int64_t index)
{
    return fill_mix(word + (((uint64_t)tensor << 56) + (uint64_t)index + 1) * 0x9e3779b97f4a7c15u);
}

__global__ void hash_words(const uint64_t *data, size_t bytes, enum tensor tensor,
                           unsigned long long *hash)
{
    const int64_t words = (int64_t)(bytes / sizeof *data);
    uint64_t rest = 0, sum = 0;
    memcpy(&rest, data + words, bytes % sizeof rest);
    if (first_element() == 0)
        sum = mixed(rest, tensor, words);
    for (int64_t i = first_element(); i < words; i += next_element())
        sum += mixed(data[i], tensor, i);
    sum = block_reduce(sum, added());
    if (threadIdx.x == 0)
        atomicAdd(hash, (unsigned long long)sum);
}

cudaError_t kernel_hash(const void *data, size_t bytes, enum tensor tensor, void *hash,
                        cudaStream_t stream)
{
    const int most = 2048, needed = element_blocks((int64_t)(bytes / sizeof(uint64_t)));
    const int blocks = needed < most ? needed : most;
    hash_words<<<blocks, row_threads, 0, stream>>>((const uint64_t *)data, bytes, tensor,
                                                   (unsigned long long *)hash);
    return cudaGetLastError();
}

template <typename C> __device__ inline C element_of(enum elementwise_operation operation, C x, C w)
{
    return operation == ELEMENTWISE_ADD       ? x + w
           : operation == ELEMENTWISE_SCALE   ? (C)ELEMENTWISE_FACTOR * x
           : operation == ELEMENTWISE_RELU    ? activated(ACTIVATION_RELU, x)
           : operation == ELEMENTWISE_SIGMOID ? activated(ACTIVATION_SIGMOID, x)
                                              : activated(ACTIVATION_TANH, x);
}

template <typename T, int each>
__global__ void elementwise_values(struct elementwise s, pack<T, each> *y, const pack<T, each> *x,
                                   const pack<T, each> *w)
{
    for (int64_t i = first_element(); i < s.elements / each; i += next_element()) {
        pack<T, each> values = x[i];
        const pack<T, each> others = w ? w[i] : values;
        for (int k = 0; k < each; ++k)
            values.at[k] = to_stored<T>(
                element_of(s.operation, to_computed(values.at[k]), to_computed(others.at[k])));
        y[i] = values;
    }
}

cudaError_t kernel_elementwise(const struct elementwise *s, void *y, const void *x, const void *w,
                               cudaStream_t stream)
{
    return by_precision(s->precision, [&](auto element) {
        typedef decltype(element) T;
        typedef pack<T> P;
        const int each = sizeof(P) / sizeof(T);
        if (s->elements % each == 0)
            elementwise_values<T, each>
                <<<element_blocks(s->elements / each), element_threads, 0, stream>>>(
                    *s, (P *)y, (const P *)x, (const P *)w);
        else
            elementwise_values<T, 1><<<element_blocks(s->elements), element_threads, 0, stream>>>(
                *s, (pack<T, 1> *)y, (const pack<T, 1> *)x, (const pack<T, 1> *)w);
    });
}
