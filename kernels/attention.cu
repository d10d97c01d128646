#include "kernels.h"

#include "row.cuh"

/* The softmax of attention, in place: a block for each query. It goes through the scores three times,
 * as one would first write it; what lies in the caches is theirs to know. */
static const int softmax_threads = 256;

__device__ static inline double exponential(double x)
{
    return exp(x);
}
__device__ static inline float exponential(float x)
{
    return expf(x);
}

template <typename T>
__global__ void __launch_bounds__(softmax_threads)
    attention_softmax(T *scores, int64_t sequence, int64_t keys, bool causal)
{
    typedef typename computed<T>::type C;
    __shared__ C room[32];
    int64_t query = blockIdx.x % sequence;
    int64_t seen = causal && query + 1 < keys ? query + 1 : keys;
    T *row = scores + (int64_t)blockIdx.x * keys;
    C largest = to_computed(row[0]), sum = 0;
    for (int64_t i = threadIdx.x; i < seen; i += softmax_threads)
        largest = row_larger()(largest, (C)to_computed(row[i]));
    largest = row_reduce(largest, row_larger(), room);
    for (int64_t i = threadIdx.x; i < seen; i += softmax_threads)
        sum += exponential(to_computed(row[i]) - largest);
    sum = row_reduce(sum, row_sum(), room);
    for (int64_t i = threadIdx.x; i < keys; i += softmax_threads)
        row[i] = to_stored<T>(i < seen ? exponential(to_computed(row[i]) - largest) / sum : (C)0);
}

template <typename T>
static cudaError_t launch(void *scores, int64_t rows, int64_t sequence, int64_t keys, bool causal,
                          cudaStream_t stream)
{
    if (rows > INT32_MAX)
        return cudaErrorInvalidValue;
    attention_softmax<T>
        <<<(unsigned)rows, softmax_threads, 0, stream>>>((T *)scores, sequence, keys, causal);
    return cudaGetLastError();
}

cudaError_t kernel_attention_softmax(enum precision precision, void *scores, int64_t rows,
                                     int64_t sequence, int64_t keys, bool causal,
                                     cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return launch<double>(scores, rows, sequence, keys, causal, stream);
    case PRECISION_FP32:
    case PRECISION_TF32:
        return launch<float>(scores, rows, sequence, keys, causal, stream);
    case PRECISION_FP16:
        return launch<__half>(scores, rows, sequence, keys, causal, stream);
    case PRECISION_BF16:
        return launch<__nv_bfloat16>(scores, rows, sequence, keys, causal, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
