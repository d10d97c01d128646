/* Operands of a warpgroup's matrix instructions in shared memory (PTX ISA, "Matrix Descriptor",
 * "Shared Memory Layout"). Rows of both operands lie along k. One instruction takes 32 bytes of
 * each row in every precision. */
#pragma once

#include <stdint.h>

/* A core matrix is eight rows of 16 bytes, in 128 contiguous bytes.
 * PLAIN: the two core matrices of an instruction are contiguous; the next eight rows follow.
 * SWIZZLED: eight rows of 128 bytes are contiguous. The 16-byte columns of a row are permuted by
 * the row's number, so that a core matrix falls on all banks. An operand is aligned to 1024 bytes;
 * a step of 32 bytes along k is a step of 32 bytes in memory. */
enum tiling { PLAIN, SWIZZLED };

static __device__ inline uint64_t wgmma_descriptor(const void *operand, enum tiling tiling)
{
    const uint64_t unit = 16, leading = 128; /* byte; leading: to the next core matrix along k */
    const uint64_t stride =
        tiling == PLAIN ? 256 : 1024; /* bytes from eight rows to the next eight */
    uint64_t address = __cvta_generic_to_shared(operand);
    return (address & 0x3ffff) / unit | leading / unit << 16 | stride / unit << 32 |
           (uint64_t)(tiling == PLAIN ? 0 : 1) << 62;
}

/* Returns the difference of two descriptors of `rows` rows whose operands are 32 bytes apart along
 * k. */
static __device__ inline uint64_t wgmma_advance(int rows, enum tiling tiling)
{
    return (uint64_t)(tiling == PLAIN ? rows * 32 : 32) / 16;
}

/* Makes all writes of the block to shared memory visible to its matrix instructions. */
static __device__ inline void wgmma_publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

/* The operands "+x"(c[0]), "+x"(c[1]), ... of an asm statement, and their names. */
#define WGMMA_EACH_8(x, i)                                                                         \
    "+" x(c[i]), "+" x(c[i + 1]), "+" x(c[i + 2]), "+" x(c[i + 3]), "+" x(c[i + 4]),               \
        "+" x(c[i + 5]), "+" x(c[i + 6]), "+" x(c[i + 7])
#define WGMMA_EACH_FROM(x, i)                                                                      \
    WGMMA_EACH_8(x, i), WGMMA_EACH_8(x, i + 8), WGMMA_EACH_8(x, i + 16), WGMMA_EACH_8(x, i + 24)
#define WGMMA_EACH_128(x)                                                                          \
    WGMMA_EACH_FROM(x, 0), WGMMA_EACH_FROM(x, 32), WGMMA_EACH_FROM(x, 64), WGMMA_EACH_FROM(x, 96)
#define WGMMA_NAMES_10(tens)                                                                       \
    "%" tens "0, %" tens "1, %" tens "2, %" tens "3, %" tens "4, %" tens "5, %" tens "6, %" tens   \
    "7, %" tens "8, %" tens "9, "
#define WGMMA_NAMES_128                                                                            \
    " {" WGMMA_NAMES_10("") WGMMA_NAMES_10("1") WGMMA_NAMES_10("2") WGMMA_NAMES_10("3")            \
        WGMMA_NAMES_10("4") WGMMA_NAMES_10("5") WGMMA_NAMES_10("6") WGMMA_NAMES_10("7")            \
            WGMMA_NAMES_10("8") WGMMA_NAMES_10("9") WGMMA_NAMES_10("10")                           \
                WGMMA_NAMES_10("11") "%120, %121, %122, %123, %124, %125, %126, %127}, "

static __device__ inline void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Ends a group of instructions and waits for all groups. */
static __device__ inline void wgmma_finish()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
