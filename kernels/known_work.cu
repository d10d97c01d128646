#include "kernels.h"

#include <cuda_fp16.h>

#include "image.cuh"

/* Instructions are inline PTX, so that the compiler folds and merges none of them. No other code of
 * these kernels uses a floating-point unit. */

static const int threads = 256;

/* ---- instructions ----
 *
 * word: a register. warp_flops: FLOPs of a warp. chains: independent chains that fill the pipe. */

#define VECTOR(name, least, type, letter, flops, many, statement)                                  \
    struct name {                                                                                  \
        typedef type word;                                                                         \
        static const int words = 1, warp_flops = flops * 32, chains = many;                        \
        static __device__ void step(word *x)                                                       \
        {                                                                                          \
            FROM_##least(asm volatile(statement : "+" letter(x[0]));)                              \
        }                                                                                          \
    };
VECTOR(fma_fp64, 700, double, "d", 2, 8, "fma.rn.f64 %0, %0, %0, %0;")
VECTOR(add_mul_fp64, 700, double, "d", 2, 8, "add.rn.f64 %0, %0, %0; mul.rn.f64 %0, %0, %0;")
VECTOR(fma_fp32, 700, float, "f", 2, 8, "fma.rn.f32 %0, %0, %0, %0;")
VECTOR(add_mul_fp32, 700, float, "f", 2, 8, "add.rn.f32 %0, %0, %0; mul.rn.f32 %0, %0, %0;")
VECTOR(fma_fp16x2, 700, uint32_t, "r", 4, 8, "fma.rn.f16x2 %0, %0, %0, %0;")
/* The unit works on both lanes even if one is used, and its counter counts both. There is one
 * chain, because the compiler would pack two chains into one instruction. */
VECTOR(fma_fp16, 700, uint16_t, "h", 4, 1, "fma.rn.f16 %0, %0, %0, %0;")
VECTOR(fma_bf16x2, 800, uint32_t, "r", 4, 8, "fma.rn.bf16x2 %0, %0, %0, %0;")

/* mma.sync: zeros times zeros, added to at most four accumulators a thread. */
#define MMA(name, least, type, letter, m, n, k, statement)                                         \
    struct name {                                                                                  \
        typedef type word;                                                                         \
        static const int words = 4, warp_flops = 2 * m * n * k, chains = 8;                        \
        static __device__ void step(word *c)                                                       \
        {                                                                                          \
            FROM_##least(asm volatile("{.reg .b32 z; mov.b32 z, 0; " statement "}"                 \
                                      : "+" letter(c[0]), "+" letter(c[1]), "+" letter(c[2]),      \
                                        "+" letter(c[3]));)                                        \
        }                                                                                          \
    };
#define OPERANDS   " {%0, %1, %2, %3}, {z, z, z, z}, {z, z}, {%0, %1, %2, %3};"
#define OPERANDS_2 " {%0, %1}, {z, z, z, z}, {z, z}, {%0, %1};"
MMA(mma_fp64, 800, double, "d", 8, 8, 4,
    ".reg .f64 a; mov.b64 a, {z, z}; mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
    "{%0, %1}, {a}, {a}, {%0, %1};")
MMA(mma_tf32, 800, float, "f", 16, 8, 8,
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" OPERANDS)
MMA(mma_fp16, 800, float, "f", 16, 8, 16,
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" OPERANDS)
MMA(mma_fp16_sum16, 800, uint32_t, "r", 16, 8, 16,
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16" OPERANDS_2)
MMA(mma_bf16, 800, float, "f", 16, 8, 16,
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" OPERANDS)
MMA(mma_fp8, 890, float, "f", 16, 8, 32,
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32" OPERANDS)
MMA(mma_int8, 800, uint32_t, "r", 16, 8, 32,
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" OPERANDS)

template <typename instruction>
__global__ void known_chains(int iterations, typename instruction::word *out)
{
    const int chains = instruction::chains;
    typename instruction::word
        x[chains][instruction::words]; /* different values, so that no two are merged */
    for (int i = 0; i < chains * instruction::words; ++i)
        x[i / instruction::words][i % instruction::words] = (typename instruction::word)(i + 1);
#pragma unroll 1
    for (int n = 0; n < iterations; ++n)
#pragma unroll
        for (int i = 0; i < chains; ++i)
            instruction::step(x[i]);
    if (out) /* never true, but the compiler does not know that */
        for (int i = 0; i < chains * instruction::words; ++i)
            out[i] = x[i / instruction::words][i % instruction::words];
}

template <typename instruction>
static cudaError_t launch(int iterations, int blocks, cudaStream_t stream)
{
    known_chains<instruction><<<blocks, threads, 0, stream>>>(iterations, NULL);
    return cudaGetLastError();
}

/* ---- movement ---- */

/* Loads from L1: each block reads its own KNOWN_L1_CHUNK bytes again and again. */
static __global__ void read_chunks(const uint4 *data, int repeat, uint32_t *out)
{
    uint32_t sum = 0;
    const uint4 *chunk = data + (size_t)blockIdx.x * (KNOWN_L1_CHUNK / sizeof *data);
    for (int n = 0; n < repeat; ++n)
        for (size_t i = threadIdx.x; i < KNOWN_L1_CHUNK / sizeof *data; i += threads) {
            uint4 x;
            asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                         : "l"(chunk + i));
            sum ^= x.x ^ x.y ^ x.z ^ x.w;
        }
    if (out)
        *out = sum;
}

cudaError_t known_read_l1(const void *data, int repeat, int blocks, cudaStream_t stream)
{
    read_chunks<<<blocks, threads, 0, stream>>>((const uint4 *)data, repeat, NULL);
    return cudaGetLastError();
}

static __global__ void widen(float *out, const __half *in, size_t count)
{
    size_t step = (size_t)gridDim.x * threads;
    for (size_t i = (size_t)blockIdx.x * threads + threadIdx.x; i < count; i += step)
        out[i] = __half2float(in[i]);
}

cudaError_t known_widen(void *out, const void *in, size_t count, int blocks, cudaStream_t stream)
{
    widen<<<blocks, threads, 0, stream>>>((float *)out, (const __half *)in, count);
    return cudaGetLastError();
}

#define ROW(name, quantity, least, most, instruction)                                              \
    {                                                                                              \
        name, quantity, least, most, launch<instruction>,                                          \
            (double)instruction::warp_flops *instruction::chains *threads / 32                     \
    }
const struct known_kernel known_kernels[] = {
    ROW("fma fp64", QUANTITY_VECTOR_FP64, 70, 999, fma_fp64),
    ROW("add and multiply fp64", QUANTITY_VECTOR_FP64, 70, 999, add_mul_fp64),
    ROW("fma fp32", QUANTITY_VECTOR_FP32, 70, 999, fma_fp32),
    ROW("add and multiply fp32", QUANTITY_VECTOR_FP32, 70, 999, add_mul_fp32),
    ROW("fma fp16, packed", QUANTITY_VECTOR_FP16, 70, 999, fma_fp16x2),
    ROW("fma fp16, scalar", QUANTITY_VECTOR_FP16, 70, 999, fma_fp16),
    ROW("fma bf16, packed", QUANTITY_VECTOR_FP16, 80, 999, fma_bf16x2),
    ROW("mma fp64", QUANTITY_TENSOR_FP64, 80, 999, mma_fp64),
    ROW("mma tf32", QUANTITY_TENSOR_TF32, 80, 999, mma_tf32),
    ROW("mma fp16", QUANTITY_TENSOR_FP16, 80, 999, mma_fp16),
    ROW("mma fp16, fp16 sums", QUANTITY_TENSOR_FP16, 80, 999, mma_fp16_sum16),
    ROW("mma bf16", QUANTITY_TENSOR_BF16, 80, 999, mma_bf16),
    ROW("mma fp8", QUANTITY_TENSOR_FP8, 89, 89, mma_fp8),
    /* From 9.0 to 11.x only wgmma and tcgen05 have fp8; the compiler converts mma to fp16. */
    ROW("mma fp8", QUANTITY_TENSOR_FP8, 120, 999, mma_fp8),
    ROW("mma int8", QUANTITY_TENSOR_INT8, 80, 999, mma_int8),
    {NULL, QUANTITY_COUNT, 0, 0, NULL, 0.0},
};
