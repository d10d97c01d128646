#include "kernels.h"

#include "element.cuh"

/* The softmax of attention, in place: a block for each query. It goes through the scores three times,
 * as one would first write it; what lies in the caches is theirs to know. */
static const int softmax_threads = 256;

/* Sums in what the products of two elements need. */
template <typename T> struct sum_of {
    typedef float type;
};
template <> struct sum_of<double> {
    typedef double type;
};

__device__ static inline double exponential(double x)
{
    return exp(x);
}
__device__ static inline float exponential(float x)
{
    return expf(x);
}

/* Of all threads of the block: the largest, or the sum. */
template <typename S> __device__ static inline S combine(S value, bool add, S *shared)
{
    for (int lane = 16; lane > 0; lane /= 2) {
        S other = __shfl_xor_sync(0xffffffffu, value, lane);
        value = add ? value + other : (other > value ? other : value);
    }
    __syncthreads(); /* what was shared before has been read */
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < softmax_threads / 32; ++warp)
        value = add ? value + shared[warp] : (shared[warp] > value ? shared[warp] : value);
    return value;
}

template <typename T>
__global__ void __launch_bounds__(softmax_threads)
    attention_softmax(T *scores, int64_t sequence, int64_t keys, bool causal)
{
    typedef typename sum_of<T>::type sum_type;
    __shared__ sum_type shared[softmax_threads / 32];
    int64_t query = blockIdx.x % sequence;
    int64_t seen = causal && query + 1 < keys ? query + 1 : keys;
    T *row = scores + (int64_t)blockIdx.x * keys;
    sum_type largest = (sum_type)element_to_double(row[0]), sum = 0;
    for (int64_t i = threadIdx.x; i < seen; i += softmax_threads) {
        sum_type value = (sum_type)element_to_double(row[i]);
        largest = value > largest ? value : largest;
    }
    largest = combine(largest, false, shared);
    for (int64_t i = threadIdx.x; i < seen; i += softmax_threads)
        sum += exponential((sum_type)element_to_double(row[i]) - largest);
    sum = combine(sum, true, shared);
    for (int64_t i = threadIdx.x; i < keys; i += softmax_threads)
        row[i] = element_from<T>(
            i < seen ? exponential((sum_type)element_to_double(row[i]) - largest) / sum : 0);
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
