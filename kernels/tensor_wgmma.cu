#include "kernels.h"

#include <limits.h>

#include "operand.cuh"
#include "wgmma.cuh"

/* A multiprocessor runs two warpgroups, each with products of 64 rows by 256 columns. While one
 * warpgroup waits for its last product, the tensor cores work for the other. If both warpgroups
 * wait at once, the wait is at most 1 % of a long iteration.
 *
 * Each warpgroup has its own A; both share B. A and B hold `steps` pieces of 32 bytes along k. An
 * iteration adds all products to the sums and then subtracts them again, so that the sums stay near
 * their start. Integers have no negative operands: their sums wrap around.
 *
 * An instruction does 64 * 256 * 32 / (bytes of an element) multiply-adds in 128 cycles. It reads
 * 256 * 32 bytes of B from shared memory, and 64 * 32 bytes of A unless A is in registers. At 128
 * bytes a cycle these reads take 64 or 80 cycles. So tensor cores set the pace. */
static const int threads = 256, rows = 64, columns = 256, sums = rows * columns / 128;
static const int steps = 4, unroll = 8;
static const int a_bytes = rows * steps * 32, b_bytes = columns * steps * 32;

/* Returns the offset behind an operand's last core matrix, in the layout of wgmma.cuh. */
static constexpr int end_of(int operand_rows, enum tiling tiling)
{
    return tiling == PLAIN
               ? (steps - 1) * operand_rows * 32 + (operand_rows / 8 - 1) * 256 + 128 + 128
               : (operand_rows / 8 - 1) * 1024 + 8 * 128;
}
static_assert(end_of(rows, PLAIN) == a_bytes && end_of(rows, SWIZZLED) == a_bytes, "A");
static_assert(end_of(columns, PLAIN) == b_bytes && end_of(columns, SWIZZLED) == b_bytes, "B");
static_assert(a_bytes % 1024 == 0, "the second A and B are aligned like the first A");

/* from_shared and from_registers are the instruction's arguments after the operands, with A in
 * shared memory or in registers: whether to add to the sums, the signs of A and B, and for 16-bit
 * types whether the operands in shared memory are transposed. */
#define WGMMA(name, operands, type, letter, k, shape, from_shared, from_registers)                 \
    struct name {                                                                                  \
        typedef operands operand;                                                                  \
        typedef type sum;                                                                          \
        static const int flops = 2 * rows * columns * k;                                           \
        template <int sign> static __device__ void step(sum *c, uint64_t a, uint64_t b)            \
        {                                                                                          \
            asm volatile("wgmma.mma_async.sync.aligned." shape WGMMA_NAMES_128                     \
                         "%128, %129, " from_shared ";"                                            \
                         : WGMMA_EACH_128(letter)                                                  \
                         : "l"(a), "l"(b), "n"(sign));                                             \
        }                                                                                          \
        template <int sign> static __device__ void step(sum *c, const uint32_t *a, uint64_t b)     \
        {                                                                                          \
            asm volatile("wgmma.mma_async.sync.aligned." shape WGMMA_NAMES_128                     \
                         "{%128, %129, %130, %131}, %132, " from_registers ";"                     \
                         : WGMMA_EACH_128(letter)                                                  \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(sign));         \
        }                                                                                          \
    };
WGMMA(group_tf32, packed_tf32, float, "f", 8, "m64n256k8.f32.tf32.tf32", "1, %130, 1", "1, %133, 1")
WGMMA(group_fp16, packed_fp16, float, "f", 16, "m64n256k16.f32.f16.f16", "1, %130, 1, 0, 0",
      "1, %133, 1, 0")
WGMMA(group_bf16, packed_bf16, float, "f", 16, "m64n256k16.f32.bf16.bf16", "1, %130, 1, 0, 0",
      "1, %133, 1, 0")
WGMMA(group_fp8, packed_fp8, float, "f", 32, "m64n256k32.f32.e4m3.e4m3", "1, %130, 1", "1, %133, 1")
WGMMA(group_int8, packed_int8, uint32_t, "r", 32, "m64n256k32.s32.s8.s8", "1", "1")

/* A in shared memory, or in registers; at() returns the part of A that a step multiplies. */
template <enum tiling tiling> struct a_in_shared {
    static const enum tiling b_tiling = tiling;
    uint64_t first;
    template <typename operand> __device__ void fill(const void *own, uint64_t)
    {
        first = wgmma_descriptor(own, tiling);
    }
    __device__ uint64_t at(int step) const
    {
        return first + step * wgmma_advance(rows, tiling);
    }
};
struct a_in_registers {
    static const enum tiling b_tiling = SWIZZLED;
    uint32_t fragments[steps][4];
    template <typename operand> __device__ void fill(const void *, uint64_t index)
    {
#pragma unroll
        for (int i = 0; i < steps * 4; ++i)
            fragments[i / 4][i % 4] = operand::make(index + i);
    }
    __device__ const uint32_t *at(int step) const
    {
        return fragments[step];
    }
};

template <typename instruction, typename source, int sign>
static __device__ void sweep(typename instruction::sum *c, const source &a, uint64_t b)
{
#pragma unroll
    for (int step = 0; step < steps; ++step)
        instruction::template step<sign>(c, a.at(step),
                                         b + step * wgmma_advance(columns, source::b_tiling));
}

template <typename instruction, typename source>
__global__ void __launch_bounds__(threads, 1) wgmma_chains(float *out, int iterations)
{
    const int words = (2 * a_bytes + b_bytes) / 4;
    __shared__ __align__(1024) uint32_t tiles[words]; /* A of both warpgroups, B */
    int64_t thread = (int64_t)blockIdx.x * threads + threadIdx.x;
    uint64_t index = (uint64_t)thread * (words / threads + 16 + sums);
    for (int i = threadIdx.x; i < words; i += threads)
        tiles[i] = instruction::operand::make(index++);
    wgmma_publish();
    /* The shuffle tells the compiler that all lanes have the same value. */
    int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    uint64_t b = wgmma_descriptor(tiles + 2 * a_bytes / 4, source::b_tiling);
    source a;
    a.template fill<typename instruction::operand>(tiles + group * (a_bytes / 4), index);
    typename instruction::sum c[sums];
#pragma unroll
    for (int i = 0; i < sums; ++i)
        c[i] = operand_sum<typename instruction::sum>(index + 16 + i);
#pragma unroll 1
    for (int n = 0; n < iterations; ++n) {
        wgmma_fence();
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            sweep<instruction, source, 1>(c, a, b);
            sweep<instruction, source, -1>(c, a, b);
        }
        wgmma_finish();
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < sums; ++i)
        total += (float)c[i];
    out[thread] = total;
}

template <typename instruction, typename source>
static cudaError_t launch(void *out, int64_t iterations, int blocks, cudaStream_t stream)
{
    if (iterations < 0 || iterations > INT_MAX)
        return cudaErrorInvalidValue;
    wgmma_chains<instruction, source>
        <<<blocks, threads, 0, stream>>>((float *)out, (int)iterations);
    return cudaGetLastError();
}

#define ROW(roof, what, instruction, source)                                                       \
    {                                                                                              \
        roof, what, 90, 90, 1, threads, launch<instruction, source>,                               \
            (double)instruction::flops * 2 * steps *unroll *threads / 128                          \
    }
#define ROWS(roof, shape, instruction)                                                             \
    ROW(roof, shape ", A and B in shared memory, not swizzled", instruction, a_in_shared<PLAIN>),  \
        ROW(roof, shape ", A and B in shared memory, swizzled", instruction,                       \
            a_in_shared<SWIZZLED>),                                                                \
        ROW(roof, shape ", A in registers, B in shared memory", instruction, a_in_registers)
const struct tensor_kernel tensor_wgmma_kernels[] = {
    ROWS(ROOF_TF32_TENSOR_WGMMA, "m64n256k8", group_tf32),
    ROWS(ROOF_FP16_TENSOR_WGMMA, "m64n256k16, fp32 sums", group_fp16),
    ROWS(ROOF_BF16_TENSOR_WGMMA, "m64n256k16, fp32 sums", group_bf16),
    ROWS(ROOF_FP8_TENSOR_WGMMA, "m64n256k32, e4m3, fp32 sums", group_fp8),
    ROWS(ROOF_INT8_TENSOR_WGMMA, "m64n256k32", group_int8),
    {ROOF_KINDS, NULL, 0, 0, 0, 0, NULL, 0.0},
};
