/* Tensor instructions of Blackwell (compute capability 10.x; PTX ISA, "TensorCore 5th Generation
 * Family Instructions"). One thread starts a product for the whole block. Operands lie in shared
 * memory. Sums lie in tensor memory, which has 128 lanes with columns of 32 bits. */
#pragma once

#include "wgmma.cuh"

/* Operands have the layout of wgmma.cuh. The descriptor differs: tilings have other numbers, and
 * there is a version. */
static __device__ inline uint64_t tcgen05_descriptor(const void *operand, enum tiling tiling)
{
    const uint64_t version = 1, swizzle = tiling == PLAIN ? 0 : 2;
    return (wgmma_descriptor(operand, tiling) & ~((uint64_t)7 << 61)) | version << 46 |
           swizzle << 61;
}

/* Returns the instruction descriptor of a product of `rows` by `columns`. sum, operand: formats of
 * sums and operands. negate: changes the sign of A; not for integers. */
static __host__ __device__ constexpr uint32_t tcgen05_instruction(int sum, int operand, bool negate,
                                                                  int rows, int columns)
{
    return (uint32_t)sum << 4 | (uint32_t)operand << 7 | (uint32_t)operand << 10 |
           (uint32_t)negate << 13 | (uint32_t)(columns / 8) << 17 | (uint32_t)(rows / 16) << 24;
}

/* Returns the descriptor of a product with scales, which are powers of 2. Sums are fp32. The bits
 * for the format of sums hold the index of the scale's byte instead, here 0. */
static __host__ __device__ constexpr uint32_t tcgen05_scaled_instruction(int operand, bool negate,
                                                                         int rows, int columns)
{
    return tcgen05_instruction(0, operand, negate, rows, columns) | 1u << 23;
}

static __device__ inline uint32_t shared_address(const void *place)
{
    return (uint32_t)__cvta_generic_to_shared(place);
}

/* Allocates columns of tensor memory, 32 or a larger power of 2, and stores their address in *place
 * in shared memory. One warp allocates, and the same warp frees with tcgen05_give. */
static __device__ inline void tcgen05_take(uint32_t *place, uint32_t columns)
{
    asm volatile(
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n"
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(shared_address(place)),
        "r"(columns)
        : "memory");
}
static __device__ inline void tcgen05_give(uint32_t address, uint32_t columns)
{
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address),
                 "r"(columns));
}

/* Fences before and after a barrier of the block: they order one thread's work before the barrier
 * with another thread's work after it. */
static __device__ inline void tcgen05_before_barrier()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
static __device__ inline void tcgen05_after_barrier()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/* A barrier in shared memory, for the products of one thread. It changes its phase, 0 or 1, when
 * all products that the thread has started are done. */
static __device__ inline void tcgen05_barrier(uint64_t *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier))
                 : "memory");
}
static __device__ inline void tcgen05_commit(uint64_t *barrier)
{
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
            shared_address(barrier))
        : "memory");
}
static __device__ inline void tcgen05_wait(uint64_t *barrier, uint32_t phase)
{
    uint32_t done;
    do
        asm volatile("{\n"
                     ".reg .pred turned;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 turned, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, turned;\n"
                     "}"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(phase)
                     : "memory");
    while (!done);
}

/* Stores one word in 16 columns of a warp's 32 lanes. */
static __device__ inline void tcgen05_write(uint32_t address, uint32_t word)
{
    asm volatile("tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], "
                 "{%1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1, %1};\n"
                 "tcgen05.wait::st.sync.aligned;" ::"r"(address),
                 "r"(word)
                 : "memory");
}

/* Loads eight columns of a warp's 32 lanes; each thread gets the columns of its own lane. */
static __device__ inline void tcgen05_read(uint32_t address, uint32_t sums[8])
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
                 "tcgen05.wait::ld.sync.aligned;"
                 : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3]), "=r"(sums[4]),
                   "=r"(sums[5]), "=r"(sums[6]), "=r"(sums[7])
                 : "r"(address)
                 : "memory");
}
