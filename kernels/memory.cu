#include "kernels.h"

/* A warp moves one chunk at a time: `loads` accesses of 16 bytes a lane, all in flight together.
 * Four cover the latency of HBM with few warps; one, in many short blocks, walks through memory in
 * order, which writes prefer. Chunks divide 4096 bytes: no tail. */
template <int loads> constexpr size_t chunk_bytes = (size_t)loads * 32 * sizeof(float4);

enum pattern { READ, WRITE, COPY, TRIAD };

/* Through L2 only: a cache level is measured by its own hits, and L1 must not answer in its place.
 */
__device__ static inline float4 load(const float4 *address)
{
    return __ldcg(address);
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
 * too short to fill the device. */
template <enum pattern pattern, int loads>
__global__ void move(float4 *a, const float4 *b, const float4 *c, int64_t chunks, int repeat)
{
    const float s = 0.40625f;
    int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int64_t at = warp % chunks, step = warps % chunks;
    float sum = 0.0f;
    for (int64_t done = warp; done < chunks * repeat; done += warps) {
        int64_t first = at * (loads * 32) + threadIdx.x % 32;
        float4 x[loads], y[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            x[i] = pattern == WRITE ? make_float4(s, s, s, s) : load(b + first + i * 32);
            if (pattern == TRIAD)
                y[i] = load(c + first + i * 32);
        }
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            if (pattern == READ)
                sum += total(x[i]);
            else
                a[first + i * 32] = pattern == TRIAD ? triad(x[i], y[i], s) : x[i];
        }
        at += step;
        at -= at >= chunks ? chunks : 0;
    }
    /* Inputs lie in [-1, 1): no sum comes near; but the compiler must keep the loads. */
    if (pattern == READ && sum == 3.0e38f)
        a[0] = make_float4(sum, sum, sum, sum);
}

template <enum pattern pattern, int loads>
static cudaError_t launch(void *a, const void *b, const void *c, size_t bytes, int repeat,
                          int blocks, int threads, cudaStream_t stream)
{
    int64_t chunks = (int64_t)(bytes / chunk_bytes<loads>), warps = threads / 32;
    int64_t grid = blocks > 0 ? blocks : (chunks * repeat + warps - 1) / warps;
    move<pattern, loads><<<(unsigned)grid, threads, 0, stream>>>((float4 *)a, (const float4 *)b,
                                                                 (const float4 *)c, chunks, repeat);
    return cudaGetLastError();
}

const struct memory_kernel memory_kernels[] = {
    {"read", 1, 1, launch<READ, 4>},
    {"read", 1, 1, launch<READ, 1>},
    {"write", 1, 1, launch<WRITE, 4>},
    {"write", 1, 1, launch<WRITE, 1>},
    {"copy", 2, 2, launch<COPY, 4>},
    {"copy", 2, 2, launch<COPY, 1>},
    {"triad", 3, 3, launch<TRIAD, 4>},
    {"triad", 3, 3, launch<TRIAD, 1>},
    {NULL, 0, 0, NULL},
};
