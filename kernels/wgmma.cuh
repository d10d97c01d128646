/* Operands of a warpgroup's matrix instructions in shared memory, as PTX describes them ("Matrix
 * Descriptor", "Shared Memory Layout"), both with rows along k. One instruction takes 32 bytes of
 * every row, whatever the precision. */
#ifndef ROOFSWEEP_WGMMA_CUH
#define ROOFSWEEP_WGMMA_CUH

#include <stdint.h>

/* Eight rows of 16 bytes are a core matrix, 128 bytes in one piece.
 * Plain: the two of an instruction lie one behind the other, then those of the next eight rows.
 * Swizzled: eight rows of 128 bytes lie one behind the other, the 16-byte columns of each permuted
 * by the row's number, so that a core matrix falls on all banks; an operand must be aligned to 1024
 * bytes, and its next 32 bytes along k begin 32 bytes farther. */
enum tiling { PLAIN, SWIZZLED };

static __device__ inline uint64_t wgmma_descriptor(const void *operand, enum tiling tiling)
{
    const uint64_t unit = 16, leading = 128; /* byte, between columns; when swizzled not used */
    const uint64_t stride = tiling == PLAIN ? 256 : 1024; /* byte, from eight rows to the next */
    uint64_t address = __cvta_generic_to_shared(operand);
    return (address & 0x3ffff) / unit | leading / unit << 16 | stride / unit << 32 |
           (uint64_t)(tiling == PLAIN ? 0 : 1) << 62;
}

/* What to add to the descriptor of `rows` rows for the next 32 bytes of each. */
static __device__ inline uint64_t wgmma_advance(int rows, enum tiling tiling)
{
    return (uint64_t)(tiling == PLAIN ? rows * 32 : 32) / 16;
}

/* What threads wrote to shared memory is there for the matrix instructions of all of the block. */
static __device__ inline void wgmma_publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

static __device__ inline void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Ends a group of instructions, and waits for them. */
static __device__ inline void wgmma_finish()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;" ::
                     : "memory");
}

#endif
