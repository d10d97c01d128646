#include "kernels.h"

#include "wgmma.cuh"

/* Matrix multiply-adds of warpgroups. These instructions exist in sm_90a only, so this file is
 * compiled for sm_90a only. Operands are zeros in shared memory. */
static const int chains = 4, threads = 128; /* one warpgroup */

#define WGMMA(name, type, letter, k, shape, scales)                                                \
    struct name {                                                                                  \
        typedef type word;                                                                         \
        static const int flops = 2 * 64 * 8 * k;                                                   \
        static __device__ void step(word *c, uint64_t a, uint64_t b)                               \
        {                                                                                          \
            asm volatile("wgmma.mma_async.sync.aligned." shape                                     \
                         " {%0, %1, %2, %3}, %4, %5, " scales ";"                                  \
                         : "+" letter(c[0]), "+" letter(c[1]), "+" letter(c[2]), "+" letter(c[3])  \
                         : "l"(a), "l"(b));                                                        \
        }                                                                                          \
    };
WGMMA(wgmma_tf32, float, "f", 8, "m64n8k8.f32.tf32.tf32", "1, 1, 1")
WGMMA(wgmma_fp16, float, "f", 16, "m64n8k16.f32.f16.f16", "1, 1, 1, 0, 0")
WGMMA(wgmma_bf16, float, "f", 16, "m64n8k16.f32.bf16.bf16", "1, 1, 1, 0, 0")
WGMMA(wgmma_fp8, float, "f", 32, "m64n8k32.f32.e4m3.e4m3", "1, 1, 1")
WGMMA(wgmma_int8, uint32_t, "r", 32, "m64n8k32.s32.s8.s8", "1")

template <typename instruction>
__global__ void known_wgmma(int iterations, typename instruction::word *out)
{
    __shared__ __align__(128) uint4 tile[256]; /* A: 64 rows of 32 bytes; B: 8 of these rows */
    for (int i = threadIdx.x; i < 256; i += threads)
        tile[i] = make_uint4(0, 0, 0, 0);
    wgmma_publish();
    uint64_t matrix = wgmma_descriptor(tile, PLAIN);
    typename instruction::word c[4] = {};
#pragma unroll 1
    for (int n = 0; n < iterations; ++n) {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < chains; ++i)
            instruction::step(c, matrix, matrix);
        wgmma_finish();
    }
    if (out) /* never true, but the compiler does not know that */
        for (int i = 0; i < 4; ++i)
            out[i] = c[i];
}

template <typename instruction>
static cudaError_t launch(int iterations, int blocks, cudaStream_t stream)
{
    known_wgmma<instruction><<<blocks, threads, 0, stream>>>(iterations, NULL);
    return cudaGetLastError();
}

#define ROW(name, quantity, instruction)                                                           \
    {                                                                                              \
        name, quantity, 90, 90, launch<instruction>, (double)instruction::flops *chains            \
    }
const struct known_kernel known_wgmma_kernels[] = {
    ROW("wgmma tf32", QUANTITY_TENSOR_TF32, wgmma_tf32),
    ROW("wgmma fp16", QUANTITY_TENSOR_FP16, wgmma_fp16),
    ROW("wgmma bf16", QUANTITY_TENSOR_BF16, wgmma_bf16),
    ROW("wgmma fp8", QUANTITY_TENSOR_FP8, wgmma_fp8),
    ROW("wgmma int8", QUANTITY_TENSOR_INT8, wgmma_int8),
    {NULL, QUANTITY_COUNT, 0, 0, NULL, 0.0},
};
