#include "image.cuh"
#include "kernels.h"

#include <type_traits>

#include "element.cuh"
#include "model/workloads/loop.h"

/* The elements that fill a register: a pair in fp16 and bf16, otherwise one. */
template <typename T> struct lane_pair {
    typedef T type;
};
template <> struct lane_pair<__half> {
    typedef __half2 type;
};
template <> struct lane_pair<__nv_bfloat16> {
    typedef __nv_bfloat162 type;
};

/* A multiply-add of all elements in a register, by one instruction. */
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
 * Chains are independent, as in fma.cu. Eight chains cover the latency with one warp on each
 * scheduler. One pass of the loop has 512 multiply-adds; the three instructions of the loop itself
 * are below 1 %. The factors are immediates. Blocks are small, so that all multiprocessors get
 * nearly the same number of blocks. */
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

cudaError_t kernel_compute_loop(enum precision precision, void *y, const void *x, int64_t elements,
                                int steps, cudaStream_t stream)
{
    const int lanes = precision == PRECISION_FP16 || precision == PRECISION_BF16 ? 2 : 1;
    const int64_t count = (elements + lanes - 1) / lanes, each = compute_threads * chains;
    const int64_t blocks = (count + each - 1) / each;
    if (blocks > INT32_MAX || precision == PRECISION_TF32)
        return cudaErrorInvalidValue;
    return by_precision(precision, [&](auto element) {
        typedef typename lane_pair<decltype(element)>::type T;
        compute_loop<T>
            <<<(unsigned)blocks, compute_threads, 0, stream>>>((T *)y, (const T *)x, count, steps);
    });
}

/* ---- shared loop ----
 *
 * A block has one tile. A thread has every 256th value of the tile, at most `each` values. The
 * first `each` / 2 are always within the tile; later values may lie beyond its end. A step reads
 * one buffer and writes the other, so one barrier a step is enough. All reads of a step precede its
 * writes in the code, because the compiler does not know that the buffers differ. */
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
        x[i] = at < tile ? in[first + at] : factor<T>(0); /* values beyond the tile are not used */
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

cudaError_t kernel_shared_loop(enum precision precision, void *y, const void *x, int64_t tiles,
                               int tile, int steps, cudaStream_t stream)
{
    int size = 0;
    while (size < 3 && tile > shared_threads << size)
        ++size;
    if (tile > shared_threads << size || tiles > INT32_MAX ||
        (precision != PRECISION_FP64 && precision != PRECISION_FP32))
        return cudaErrorInvalidValue;
    return by_precision(precision, [&](auto element) {
        typedef std::conditional_t<sizeof element == sizeof(double), double, float> T;
        typedef void kernel(T *, const T *, int, int);
        static kernel *const kernels[] = {shared_loop<T, 1>, shared_loop<T, 2>, shared_loop<T, 4>,
                                          shared_loop<T, 8>};
        kernels[size]<<<(unsigned)tiles, shared_threads, 0, stream>>>((T *)y, (const T *)x, tile,
                                                                      steps);
    });
}
