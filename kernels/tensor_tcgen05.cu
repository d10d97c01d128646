#include "kernels.h"

#include <limits.h>

#include "operand.cuh"
#include "tcgen05.cuh"

/* Each multiprocessor runs one block. The first thread of the block starts all products, each of
 * 128 rows by 256 columns. Before each iteration it waits for the products of the iteration before
 * last, so that the tensor cores always have work.
 *
 * A and B hold `steps` pieces of 32 bytes along k. The first product sets the sums. An iteration
 * adds all products to the sums and subtracts them again, so that the sums stay near their start.
 * Integers have no negative operands: their sums wrap around.
 *
 * A product does 128 * 256 * 32 / (bytes of an element) multiply-adds, in 128 cycles on a B200. It
 * reads (128 + 256) * 32 bytes from shared memory, which takes 96 cycles at 128 bytes a cycle. So
 * tensor cores, not shared memory, set the pace. */
static const int threads = 128, rows = 128, columns = 256;
static const int steps = 4, unroll = 8;
static const int a_bytes = rows * steps * 32, b_bytes = columns * steps * 32;
static const int alignment = 1024; /* byte, of swizzled operands; dynamic memory has less */

/* of_sums, of_operands: formats in the instruction's descriptor. columns_taken: number of allocated
 * columns of tensor memory, a power of 2. All threads call prepare once, with the address bits of
 * their warp's lanes in tensor memory. */
#define TCGEN05(name, operands, type, k, kind, of_sums, of_operands, negative)                     \
    struct name {                                                                                  \
        typedef operands operand;                                                                  \
        typedef type sum;                                                                          \
        static const int flops = 2 * rows * columns * k, columns_taken = columns;                  \
        static __device__ void prepare(uint32_t, uint32_t)                                         \
        {                                                                                          \
        }                                                                                          \
        static __device__ void step(uint32_t sums, uint64_t a, uint64_t b, bool subtract,          \
                                    uint32_t add)                                                  \
        {                                                                                          \
            uint32_t instruction =                                                                 \
                tcgen05_instruction(of_sums, of_operands, subtract && negative, rows, columns);    \
            asm volatile("{\n"                                                                     \
                         ".reg .pred add;\n"                                                       \
                         "setp.ne.b32 add, %4, 0;\n"                                               \
                         "tcgen05.mma.cta_group::1.kind::" kind " [%0], %1, %2, %3, add;\n"        \
                         "}" ::"r"(sums),                                                          \
                         "l"(a), "l"(b), "r"(instruction), "r"(add)                                \
                         : "memory");                                                              \
        }                                                                                          \
    };
TCGEN05(block_tf32, packed_tf32, float, 8, "tf32", 1, 2, true)
TCGEN05(block_fp16, packed_fp16, float, 16, "f16", 1, 0, true)
TCGEN05(block_bf16, packed_bf16, float, 16, "f16", 1, 1, true)
TCGEN05(block_fp8, packed_fp8, float, 32, "f8f6f4", 1, 0, true)
TCGEN05(block_int8, packed_int8, int32_t, 32, "i8", 2, 1, false)

/* Every 32 neighbouring elements along k have a scale of 8 bits, a power of 2. The scales of A are
 * in the 4 columns after the sums, those of B in 8 columns that begin 8 columns after the sums. All
 * scales are 1, so their order does not matter. */
struct block_fp4 {
    typedef packed_fp4 operand;
    typedef float sum;
    static const int flops = 2 * rows * columns * 64, columns_taken = 512;
    static const int of_a = columns, of_b = columns + 8; /* first columns of the scales */
    static __device__ void prepare(uint32_t sums, uint32_t lanes)
    {
        const uint32_t ones = 0x7f7f7f7f;
        tcgen05_write(sums + lanes + of_a, ones);
        tcgen05_before_barrier();
        __syncthreads();
        tcgen05_after_barrier();
    }
    static __device__ void step(uint32_t sums, uint64_t a, uint64_t b, bool subtract, uint32_t add)
    {
        uint32_t instruction = tcgen05_scaled_instruction(1, subtract, rows, columns);
        asm volatile("{\n"
                     ".reg .pred add;\n"
                     "setp.ne.b32 add, %6, 0;\n"
                     "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X "
                     "[%0], %1, %2, %3, [%4], [%5], add;\n"
                     "}" ::"r"(sums),
                     "l"(a), "l"(b), "r"(instruction), "r"(sums + of_a), "r"(sums + of_b), "r"(add)
                     : "memory");
    }
};

struct place {
    uint64_t turn[2], all; /* barriers of even and odd iterations, and of all products */
    uint32_t sums;         /* address of the sums in tensor memory */
};

/* The first thread calls this to start all products. */
template <typename instruction, enum tiling tiling>
static __device__ void produce(struct place *place, uint64_t a, uint64_t b, int iterations)
{
    instruction::step(place->sums, a, b, false, 0);
#pragma unroll 1
    for (int n = 0; n < iterations; ++n) {
        if (n >= 2)
            tcgen05_wait(&place->turn[n % 2], (uint32_t)(n / 2 - 1) % 2);
#pragma unroll
        for (int i = 0; i < unroll * 2 * steps; ++i)
            instruction::step(place->sums, a + i % steps * wgmma_advance(rows, tiling),
                              b + i % steps * wgmma_advance(columns, tiling), i / steps % 2, 1);
        tcgen05_commit(&place->turn[n % 2]);
    }
    tcgen05_commit(&place->all);
}

template <typename instruction, enum tiling tiling>
__global__ void __launch_bounds__(threads, 1) tcgen05_chains(float *out, int iterations)
{
    extern __shared__ uint32_t dynamic[];
    __shared__ struct place place;
    uint32_t *a = dynamic + (0 - shared_address(dynamic)) % alignment / 4, *b = a + a_bytes / 4;
    const int words = (a_bytes + b_bytes) / 4;
    int64_t thread = (int64_t)blockIdx.x * threads + threadIdx.x;
    uint64_t index = (uint64_t)thread * (words / threads);
    for (int i = threadIdx.x; i < words; i += threads)
        a[i] = instruction::operand::make(index++);
    if (threadIdx.x < 32)
        tcgen05_take(&place.sums, instruction::columns_taken);
    if (threadIdx.x == 0) {
        tcgen05_barrier(&place.turn[0]);
        tcgen05_barrier(&place.turn[1]);
        tcgen05_barrier(&place.all);
    }
    tcgen05_before_barrier();
    wgmma_publish();
    tcgen05_after_barrier();
    uint32_t lanes = threadIdx.x / 32 * 32 << 16; /* address bits of the warp's first lane */
    instruction::prepare(place.sums, lanes);
    if (threadIdx.x == 0)
        produce<instruction, tiling>(&place, tcgen05_descriptor(a, tiling),
                                     tcgen05_descriptor(b, tiling), iterations);
    __syncwarp();
    tcgen05_wait(&place.all, 0);
    tcgen05_after_barrier();
    float total = 0.0f;
    for (int column = 0; column < columns; column += 8) {
        uint32_t sums[8];
        tcgen05_read(place.sums + lanes + column, sums);
        for (int i = 0; i < 8; ++i)
            total += (float)reinterpret_cast<typename instruction::sum &>(sums[i]);
    }
    out[thread] = total;
    tcgen05_before_barrier();
    __syncthreads();
    if (threadIdx.x < 32)
        tcgen05_give(place.sums, instruction::columns_taken);
}

template <typename instruction, enum tiling tiling>
static cudaError_t launch(void *out, int64_t iterations, int blocks, cudaStream_t stream)
{
    const int bytes = a_bytes + b_bytes + alignment;
    if (iterations < 0 || iterations > INT_MAX)
        return cudaErrorInvalidValue;
    cudaError_t code = cudaFuncSetAttribute(tcgen05_chains<instruction, tiling>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (code != cudaSuccess)
        return code;
    tcgen05_chains<instruction, tiling>
        <<<blocks, threads, bytes, stream>>>((float *)out, (int)iterations);
    return cudaGetLastError();
}

#define ROW(roof, what, instruction, tiling)                                                       \
    {                                                                                              \
        roof, what, 100, 100, 1, threads, launch<instruction, tiling>,                             \
            (double)instruction::flops * 2 * steps *unroll                                         \
    }
#define ROWS(roof, shape, instruction)                                                             \
    ROW(roof, shape ", operands not swizzled", instruction, PLAIN),                                \
        ROW(roof, shape ", operands swizzled", instruction, SWIZZLED)
const struct tensor_kernel tensor_tcgen05_kernels[] = {
    ROWS(ROOF_TF32_TENSOR_TCGEN05, "m128n256k8", block_tf32),
    ROWS(ROOF_FP16_TENSOR_TCGEN05, "m128n256k16, fp32 sums", block_fp16),
    ROWS(ROOF_BF16_TENSOR_TCGEN05, "m128n256k16, fp32 sums", block_bf16),
    ROWS(ROOF_FP8_TENSOR_TCGEN05, "m128n256k32, e4m3, fp32 sums", block_fp8),
    ROWS(ROOF_FP4_TENSOR_TCGEN05, "m128n256k64, e2m1, scales of 32, fp32 sums", block_fp4),
    ROWS(ROOF_INT8_TENSOR_TCGEN05, "m128n256k32", block_int8),
    {ROOF_KINDS, NULL, 0, 0, 0, 0, NULL, 0.0},
};
