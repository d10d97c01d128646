#include "image.cuh"
#include "kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "model/workloads/loop.h"

/* One register's worth of the type: a multiply-add of it is one instruction. */
__device__ static inline double fused(double v, double a, double x)
{
    return __fma_rn(v, a, x);
}
__device__ static inline float fused(float v, float a, float x)
{
    return __fmaf_rn(v, a, x);
}
__device__ static inline __half2 fused(__half2 v, __half2 a, __half2 x)
{
    return __hfma2(v, a, x);
}
__device__ static inline __nv_bfloat162 fused(__nv_bfloat162 v, __nv_bfloat162 a, __nv_bfloat162 x)
{
    FROM_800(v = __hfma2(v, a, x);)
    return v;
}

template <typename T> __device__ static inline T factor(int step)
{
    return (T)LOOP_FACTOR(step);
}
template <> __device__ inline __half2 factor<__half2>(int step)
{
    return __float2half2_rn((float)LOOP_FACTOR(step));
}
template <> __device__ inline __nv_bfloat162 factor<__nv_bfloat162>(int step)
{
    return __float2bfloat162_rn((float)LOOP_FACTOR(step));
}

/* ---- compute loop ----
 *
 * Independent chains, as in fma.cu: eight cover the latency with one warp a scheduler, and 512
 * instructions a turn keep its own three below 1 %. The factors are immediates. Blocks are small,
 * so that their number divides well among the multiprocessors. */
static const int chains = 8, unroll = 64, compute_threads = 64;

template <typename T> __device__ static inline void advance(T *v, const T *x, int step)
{
#pragma unroll
    for (int i = 0; i < chains; ++i)
        v[i] = fused(v[i], factor<T>(step), x[i]);
}

template <typename T>
__global__ void __launch_bounds__(compute_threads)
    compute_loop(T *out, const T *in, int64_t count, int steps)
{
    int64_t first = (int64_t)blockIdx.x * (compute_threads * chains) + threadIdx.x;
    T x[chains], v[chains];
    if (first >= count)
        return;
#pragma unroll
    for (int i = 0; i < chains; ++i) {
        int64_t at = first + i * compute_threads;
        v[i] = x[i] = at < count ? in[at] : factor<T>(0);
    }
    int step = 0;
#pragma unroll 1
    for (; step + unroll <= steps; step += unroll)
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            advance(v, x, u);
#pragma unroll 1
    for (; step + 2 <= steps; step += 2) {
        advance(v, x, 0);
        advance(v, x, 1);
    }
    if (step < steps)
        advance(v, x, 0);
#pragma unroll
    for (int i = 0; i < chains; ++i) {
        int64_t at = first + i * compute_threads;
        if (at < count)
            out[at] = v[i];
    }
}

/* `lanes` elements in one T. */
template <typename T>
static cudaError_t compute(void *y, const void *x, int64_t elements, int lanes, int steps,
                           cudaStream_t stream)
{
    int64_t count = (elements + lanes - 1) / lanes, each = compute_threads * chains;
    int64_t blocks = (count + each - 1) / each;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    compute_loop<T>
        <<<(unsigned)blocks, compute_threads, 0, stream>>>((T *)y, (const T *)x, count, steps);
    return cudaGetLastError();
}

cudaError_t kernel_compute_loop(enum precision precision, void *y, const void *x, int64_t elements,
                                int steps, cudaStream_t stream)
{
    switch (precision) {
    case PRECISION_FP64:
        return compute<double>(y, x, elements, 1, steps, stream);
    case PRECISION_FP32:
        return compute<float>(y, x, elements, 1, steps, stream);
    case PRECISION_FP16:
        return compute<__half2>(y, x, elements, 2, steps, stream);
    case PRECISION_BF16:
        return compute<__nv_bfloat162>(y, x, elements, 2, steps, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

/* ---- shared loop ----
 *
 * A block has one tile. A thread has every 256th value of it, `each` in all; the first half of them
 * lies in the tile for sure. A step reads one buffer and writes the other, so that one barrier a
 * step is enough. All reads of a step come first, because the compiler does not know that the
 * writes go to the other buffer. */
static const int shared_threads = 256;

template <typename T, int each>
__global__ void __launch_bounds__(shared_threads)
    shared_loop(T *out, const T *in, int tile, int steps)
{
    __shared__ T values[2][each * shared_threads];
    int64_t first = (int64_t)blockIdx.x * tile;
    T x[each];
    int neighbour[each];
#pragma unroll
    for (int i = 0; i < each; ++i) {
        int at = i * shared_threads + threadIdx.x;
        x[i] = at < tile ? in[first + at] : factor<T>(0); /* beyond the tile: not used */
        neighbour[i] = at + 1 < tile ? at + 1 : 0;
        values[0][at] = x[i];
    }
    __syncthreads();
#pragma unroll 4
    for (int step = 0; step < steps; ++step) {
        T v[each];
#pragma unroll
        for (int i = 0; i < each; ++i)
            v[i] = values[step % 2][neighbour[i]];
#pragma unroll
        for (int i = 0; i < each; ++i) {
            int at = i * shared_threads + threadIdx.x;
            if (i < each / 2 || at < tile)
                values[(step + 1) % 2][at] = fused(v[i], factor<T>(step), x[i]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
        int at = i * shared_threads + threadIdx.x;
        if (at < tile)
            out[first + at] = values[steps % 2][at];
    }
}

template <typename T, int each>
static cudaError_t shared(void *y, const void *x, int64_t tiles, int tile, int steps,
                          cudaStream_t stream)
{
    shared_loop<T, each>
        <<<(unsigned)tiles, shared_threads, 0, stream>>>((T *)y, (const T *)x, tile, steps);
    return cudaGetLastError();
}

cudaError_t kernel_shared_loop(enum precision precision, void *y, const void *x, int64_t tiles,
                               int tile, int steps, cudaStream_t stream)
{
    typedef cudaError_t function(void *y, const void *x, int64_t tiles, int tile, int steps,
                                 cudaStream_t stream);
    static function *const functions[][2] = {{shared<float, 1>, shared<double, 1>},
                                             {shared<float, 2>, shared<double, 2>},
                                             {shared<float, 4>, shared<double, 4>},
                                             {shared<float, 8>, shared<double, 8>}};
    int size = 0;
    while (size < 3 && tile > shared_threads << size)
        ++size;
    if (tile > shared_threads << size || tiles > INT32_MAX ||
        (precision != PRECISION_FP64 && precision != PRECISION_FP32))
        return cudaErrorInvalidValue;
    return functions[size][precision == PRECISION_FP64](y, x, tiles, tile, steps, stream);
}
