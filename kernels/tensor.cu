#include "kernels.h"

#include <limits.h>

#include "image.cuh"
#include "operand.cuh"

/* A warp holds `rows` fragments of A and `columns` fragments of B, as in a matrix product. It adds
 * their products to rows * columns sums, which are independent chains. Every second time it takes
 * -B, so that sums stay near their start in any number of iterations. Integers wrap around. */
static const int threads = 256, blocks_each = 2; /* threads of a block, blocks a multiprocessor */
static const int unroll = 8;

/* ASM_424 is an instruction with 4 registers of A, 2 of B and 4 of C. s, o: letters of the asm
 * constraints for sums and operands. */
#define ASM_112(instruction, s, o)                                                                 \
    asm volatile(instruction " {%0, %1}, {%2}, {%3}, {%0, %1};"                                    \
                 : "+" s(c[0]), "+" s(c[1])                                                        \
                 : o(a[0]), o(b[0]))
#define ASM_424(instruction, s, o)                                                                 \
    asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"    \
                 : "+" s(c[0]), "+" s(c[1]), "+" s(c[2]), "+" s(c[3])                              \
                 : o(a[0]), o(a[1]), o(a[2]), o(a[3]), o(b[0]), o(b[1]))
#define ASM_844(instruction, s, o)                                                                 \
    asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "             \
                             "{%12, %13, %14, %15}, {%0, %1, %2, %3};"                             \
                 : "+" s(c[0]), "+" s(c[1]), "+" s(c[2]), "+" s(c[3])                              \
                 : o(a[0]), o(a[1]), o(a[2]), o(a[3]), o(a[4]), o(a[5]), o(a[6]), o(a[7]),         \
                   o(b[0]), o(b[1]), o(b[2]), o(b[3]))

#define MMA(name, from, operands, type, m, n, k, of_a, of_b, statement)                            \
    struct name {                                                                                  \
        typedef operands operand;                                                                  \
        typedef operand::word word;                                                                \
        typedef type sum;                                                                          \
        static const int least = from / 10, rows = of_a, columns = of_b, flops = 2 * m * n * k,    \
                         a_words = m * k / 32 / operand::elements,                                 \
                         b_words = n * k / 32 / operand::elements, sums = m * n / 32;              \
        static __device__ void step(sum *c, const word *a, const word *b)                          \
        {                                                                                          \
            FROM_##from(statement;)                                                                \
        }                                                                                          \
    };
MMA(warp_fp64_k4, 800, single_fp64, double, 8, 8, 4, 4, 2,
    ASM_112("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "d", "d"))
MMA(warp_fp64_k8, 900, single_fp64, double, 16, 8, 8, 2, 2,
    ASM_424("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", "d", "d"))
MMA(warp_fp64_k16, 900, single_fp64, double, 16, 8, 16, 2, 2,
    ASM_844("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "d", "d"))
MMA(warp_tf32, 800, packed_tf32, float, 16, 8, 8, 4, 2,
    ASM_424("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "f", "r"))
MMA(warp_fp16, 800, packed_fp16, float, 16, 8, 16, 4, 2,
    ASM_424("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f", "r"))
MMA(warp_bf16, 800, packed_bf16, float, 16, 8, 16, 4, 2,
    ASM_424("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "f", "r"))
MMA(warp_fp8, 890, packed_fp8, float, 16, 8, 32, 4, 2,
    ASM_424("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "f", "r"))
MMA(warp_int8, 800, packed_int8, uint32_t, 16, 8, 32, 4, 2,
    ASM_424("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "r", "r"))

template <typename instruction>
__global__ void __launch_bounds__(threads, blocks_each) mma_chains(float *out, int iterations)
{
    const int registers = 256; /* number of indices of each thread, more than it needs */
    int64_t thread = (int64_t)blockIdx.x * threads + threadIdx.x;
    uint64_t index = (uint64_t)thread * registers;
    typename instruction::word a[instruction::rows][instruction::a_words],
        b[2][instruction::columns][instruction::b_words];
    typename instruction::sum c[instruction::rows][instruction::columns][instruction::sums];
#pragma unroll
    for (int i = 0; i < instruction::rows * instruction::a_words; ++i)
        a[i / instruction::a_words][i % instruction::a_words] = instruction::operand::make(index++);
#pragma unroll
    for (int i = 0; i < instruction::columns * instruction::b_words; ++i) {
        typename instruction::word x = instruction::operand::make(index++);
        b[0][i / instruction::b_words][i % instruction::b_words] = x;
        b[1][i / instruction::b_words][i % instruction::b_words] =
            instruction::operand::opposite(x);
    }
#pragma unroll
    for (int i = 0; i < instruction::rows; ++i)
#pragma unroll
        for (int j = 0; j < instruction::columns; ++j)
#pragma unroll
            for (int s = 0; s < instruction::sums; ++s)
                c[i][j][s] = operand_sum<typename instruction::sum>(index++);
#pragma unroll 1
    for (int n = 0; n < iterations; ++n) {
#pragma unroll
        for (int u = 0; u < 2 * unroll; ++u)
#pragma unroll
            for (int i = 0; i < instruction::rows; ++i)
#pragma unroll
                for (int j = 0; j < instruction::columns; ++j)
                    instruction::step(c[i][j], a[i], b[u % 2][j]);
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < instruction::rows; ++i)
#pragma unroll
        for (int j = 0; j < instruction::columns; ++j)
#pragma unroll
            for (int s = 0; s < instruction::sums; ++s)
                total += (float)c[i][j][s];
    out[thread] = total;
}

template <typename instruction>
static cudaError_t launch(void *out, int64_t iterations, int blocks, cudaStream_t stream)
{
    if (iterations < 0 || iterations > INT_MAX)
        return cudaErrorInvalidValue;
    cudaError_t code = image_check((const void *)mma_chains<instruction>, instruction::least);
    if (code != cudaSuccess)
        return code;
    mma_chains<instruction><<<blocks, threads, 0, stream>>>((float *)out, (int)iterations);
    return cudaGetLastError();
}

#define ROW(roof, what, least, most, instruction)                                                  \
    {                                                                                              \
        roof, what, least, most, blocks_each, threads, launch<instruction>,                        \
            (double)instruction::flops *instruction::rows *instruction::columns * 2 *              \
                unroll *threads / 32                                                               \
    }
const struct tensor_kernel tensor_kernels[] = {
    ROW(ROOF_FP64_TENSOR_MMA, "m8n8k4, 8 chains a warp", 80, 999, warp_fp64_k4),
    ROW(ROOF_FP64_TENSOR_MMA, "m16n8k8, 4 chains a warp", 90, 999, warp_fp64_k8),
    ROW(ROOF_FP64_TENSOR_MMA, "m16n8k16, 4 chains a warp", 90, 999, warp_fp64_k16),
    ROW(ROOF_TF32_TENSOR_MMA, "m16n8k8, 8 chains a warp", 80, 999, warp_tf32),
    ROW(ROOF_FP16_TENSOR_MMA, "m16n8k16, fp32 sums, 8 chains a warp", 80, 999, warp_fp16),
    ROW(ROOF_BF16_TENSOR_MMA, "m16n8k16, fp32 sums, 8 chains a warp", 80, 999, warp_bf16),
    ROW(ROOF_FP8_TENSOR_MMA, "m16n8k32, e4m3, fp32 sums, 8 chains a warp", 89, 89, warp_fp8),
    /* From 9.0 to 11.x only wgmma and tcgen05 have fp8; the compiler converts mma to fp16. */
    ROW(ROOF_FP8_TENSOR_MMA, "m16n8k32, e4m3, fp32 sums, 8 chains a warp", 120, 999, warp_fp8),
    ROW(ROOF_INT8_TENSOR_MMA, "m16n8k32, 8 chains a warp", 80, 999, warp_int8),
    {ROOF_KINDS, NULL, 0, 0, 0, 0, NULL, 0.0},
};
