#include "kernels.h"

#include <limits.h>

#include "image.cuh"

/* A warp moves one chunk at a time: `loads` accesses of 16 bytes a lane, all in flight together.
 * Four cover the latency of HBM with few warps; one, in many short blocks, walks through memory in
 * order, which writes prefer. Chunks divide 4096 bytes: no tail. */
template <int loads> constexpr int chunk_bytes = loads * 32 * (int)sizeof(float4);

enum pattern { READ, WRITE, COPY, TRIAD };

/* Data that nobody comes back to, said for nothing, for what is loaded, for both, or for what is
 * stored: L2 then gives such lines up before others. */
enum streamed { NOTHING, LOADS, ALL, STORES };

/* Through L2 only: a cache level is measured by its own hits, and L1 must not answer in its place.
 */
template <enum streamed streamed> __device__ static inline float4 load(const float4 *address)
{
    return streamed == LOADS || streamed == ALL ? __ldcs(address) : __ldcg(address);
}

template <enum streamed streamed> __device__ static inline void store(float4 *address, float4 x)
{
    if (streamed == STORES || streamed == ALL)
        __stcs(address, x);
    else
        *address = x;
}

__device__ static inline float4 triad(float4 b, float4 c, float s)
{
    return make_float4(b.x + s * c.x, b.y + s * c.y, b.z + s * c.z, b.w + s * c.w);
}

__device__ static inline float total(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

/* The warps take turns over `chunks * repeat` chunks, so that the work stays even when one pass is
 * too short to fill the device. step: how many warps there are, modulo chunks: divisions take long.
 */
template <enum pattern pattern, int loads, enum streamed streamed>
__global__ void move(float4 *a, const float4 *b, const float4 *c, int64_t chunks, int64_t step,
                     int repeat)
{
    const float s = 0.40625f;
    int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int64_t at = warp < chunks ? warp : warp % chunks;
    float sum = 0.0f;
#pragma unroll 1
    for (int64_t done = warp; done < chunks * repeat; done += warps) {
        int64_t first = at * (loads * 32) + threadIdx.x % 32;
        float4 x[loads], y[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            x[i] = pattern == WRITE ? make_float4(s, s, s, s) : load<streamed>(b + first + i * 32);
            if (pattern == TRIAD)
                y[i] = load<streamed>(c + first + i * 32);
        }
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            if (pattern == READ)
                sum += total(x[i]);
            else
                store<streamed>(a + first + i * 32, pattern == TRIAD ? triad(x[i], y[i], s) : x[i]);
        }
        at += step;
        at -= at >= chunks ? chunks : 0;
    }
    /* Inputs lie in [-1, 1): no sum comes near; but the compiler must keep the loads. */
    if (pattern == READ && sum == 3.0e38f)
        a[0] = make_float4(sum, sum, sum, sum);
}

template <enum pattern pattern, int loads, enum streamed streamed>
static cudaError_t launch(void *a, const void *b, const void *c, size_t bytes, int repeat,
                          int blocks, int threads, cudaStream_t stream)
{
    const int most_passes = 65535; /* of a grid's second dimension */
    int64_t chunks = (int64_t)(bytes / chunk_bytes<loads>), warps = threads / 32;
    if (chunks < 1 || warps < 1)
        return cudaErrorInvalidValue;
    int64_t grid = blocks > 0 ? blocks : (chunks + warps - 1) / warps;
    int passes = blocks > 0 ? 1 : repeat; /* each with blocks of its own, one behind the other */
    if (grid > INT_MAX || passes > most_passes)
        return cudaErrorInvalidValue;
    move<pattern, loads, streamed><<<dim3((unsigned)grid, passes), threads, 0, stream>>>(
        (float4 *)a, (const float4 *)b, (const float4 *)c, chunks, grid * warps % chunks,
        blocks > 0 ? repeat : 1);
    return cudaGetLastError();
}

/* ---- bulk copies: the one thread of a block orders pieces into shared memory and out again. They
 * pass through its STAGES in turn, AHEAD of them on their way in, the others on their way out.
 * ---- */

enum { PIECE = 4096, STAGES = 8, AHEAD = 4 }; /* PIECE: bytes */

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/* What L2 is told of both sides. */
template <enum streamed streamed> static __device__ uint64_t bulk_policy()
{
    uint64_t policy;
    if (streamed == ALL)
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    else
        asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

static __device__ void bulk_load(uint32_t stage, const char *from, uint32_t barrier,
                                 uint64_t policy)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%2], [%3], %1, [%0], %4;" ::"r"(barrier),
                 "n"((int)PIECE), "r"(stage), "l"(__cvta_generic_to_global(from)), "l"(policy)
                 : "memory");
}

/* Until the barrier's phase number `phase`, from 0, is over. */
static __device__ void bulk_wait(uint32_t barrier, uint32_t phase)
{
    uint32_t is_over;
    do
        asm volatile("{.reg .pred over;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, over;}"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(phase % 2)
                     : "memory");
    while (!is_over);
}

static __device__ void bulk_store(char *to, uint32_t stage, uint64_t policy)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;\n"
                 "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(stage), "n"((int)PIECE), "l"(policy)
                 : "memory");
}
#endif

template <enum streamed streamed>
__global__ void __launch_bounds__(1)
    copy_bulk(char *a, const char *b, int64_t pieces, int64_t step, int repeat)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    __shared__ __align__(128) char buffer[STAGES][PIECE];
    __shared__ uint64_t arrived[STAGES];
    uint32_t stage = (uint32_t)__cvta_generic_to_shared(buffer);
    uint32_t barrier = (uint32_t)__cvta_generic_to_shared(arrived);
    uint64_t policy = bulk_policy<streamed>();
    for (int i = 0; i < STAGES; ++i)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier + i * 8) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    int64_t mine = (pieces * repeat - blockIdx.x + gridDim.x - 1) / gridDim.x;
    int64_t in = blockIdx.x < pieces ? blockIdx.x : blockIdx.x % pieces, out = in;
    for (int64_t n = 0; n < mine + AHEAD; ++n) {
        if (n < mine) { /* its stage is free once all but the last few stores have read theirs */
            int i = (int)(n % STAGES);
            asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(STAGES - AHEAD - 1) : "memory");
            bulk_load(stage + i * PIECE, b + in * PIECE, barrier + i * 8, policy);
            in += step;
            in -= in >= pieces ? pieces : 0;
        }
        if (n >= AHEAD) {
            int i = (int)((n - AHEAD) % STAGES);
            bulk_wait(barrier + i * 8, (uint32_t)((n - AHEAD) / STAGES));
            bulk_store(a + out * PIECE, stage + i * PIECE, policy);
            out += step;
            out -= out >= pieces ? pieces : 0;
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

/* Without a number of blocks each fills its stages once. */
template <enum streamed streamed>
static cudaError_t launch_bulk(void *a, const void *b, const void *, size_t bytes, int repeat,
                               int blocks, int, cudaStream_t stream)
{
    int64_t pieces = (int64_t)(bytes / PIECE);
    if (pieces < 1)
        return cudaErrorInvalidValue;
    int64_t grid = blocks > 0 ? blocks : (pieces * repeat + STAGES - 1) / STAGES;
    if (grid > INT_MAX)
        return cudaErrorInvalidValue;
    cudaError_t code = image_check((const void *)copy_bulk<streamed>, 90);
    if (code != cudaSuccess)
        return code;
    cudaFuncSetAttribute(copy_bulk<streamed>, cudaFuncAttributePreferredSharedMemoryCarveout,
                         cudaSharedmemCarveoutMaxShared);
    copy_bulk<streamed><<<(unsigned)grid, 1, 0, stream>>>((char *)a, (const char *)b, pieces,
                                                          grid % pieces, repeat);
    return cudaGetLastError();
}

#define ROW(name, what, arrays, moved, pattern, loads)                                             \
    {                                                                                              \
        name, what, chunk_bytes<loads>, arrays, moved, 70, 0, false,                               \
            launch<pattern, loads, NOTHING>                                                        \
    }
#define STREAM(name, what, arrays, moved, pattern, loads, streamed)                                \
    {                                                                                              \
        name, what, chunk_bytes<loads>, arrays, moved, 70, 0, true,                                \
            launch<pattern, loads, streamed>                                                       \
    }
#define BULK(what, streamed)                                                                       \
    {                                                                                              \
        "copy", what, PIECE, 2, 2, 90, 1, true, launch_bulk<streamed>                              \
    }
const struct memory_kernel memory_kernels[] = {
    ROW("read", "4 in flight", 1, 1, READ, 4),
    ROW("read", "1 in flight", 1, 1, READ, 1),
    ROW("write", "4 in flight", 1, 1, WRITE, 4),
    ROW("write", "1 in flight", 1, 1, WRITE, 1),
    ROW("copy", "4 in flight", 2, 2, COPY, 4),
    ROW("copy", "1 in flight", 2, 2, COPY, 1),
    ROW("triad", "4 in flight", 3, 3, TRIAD, 4),
    ROW("triad", "1 in flight", 3, 3, TRIAD, 1),
    STREAM("read", "4 in flight, streamed", 1, 1, READ, 4, LOADS),
    STREAM("write", "4 in flight, streamed", 1, 1, WRITE, 4, ALL),
    STREAM("write", "1 in flight, streamed", 1, 1, WRITE, 1, ALL),
    STREAM("copy", "8 in flight, streamed", 2, 2, COPY, 8, ALL),
    STREAM("copy", "4 in flight, streamed", 2, 2, COPY, 4, ALL),
    STREAM("copy", "2 in flight, streamed", 2, 2, COPY, 2, ALL),
    STREAM("copy", "1 in flight, streamed", 2, 2, COPY, 1, ALL),
    STREAM("copy", "2 in flight, loads streamed", 2, 2, COPY, 2, LOADS),
    STREAM("copy", "2 in flight, stores streamed", 2, 2, COPY, 2, STORES),
    BULK("bulk copies of 4096 bytes, 4 in flight", NOTHING),
    BULK("bulk copies of 4096 bytes, 4 in flight, streamed", ALL),
    STREAM("triad", "4 in flight, streamed", 3, 3, TRIAD, 4, ALL),
    STREAM("triad", "2 in flight, streamed", 3, 3, TRIAD, 2, ALL),
    STREAM("triad", "1 in flight, streamed", 3, 3, TRIAD, 1, ALL),
    STREAM("triad", "2 in flight, loads streamed", 3, 3, TRIAD, 2, LOADS),
    STREAM("triad", "2 in flight, stores streamed", 3, 3, TRIAD, 2, STORES),
    {NULL, NULL, 0, 0, 0, 0, 0, false, NULL},
};
