/* How many blocks of a kernel a multiprocessor holds at a time: the vendor's own formula
 * (cuda_occupancy.h of the CUDA toolkit) over what a kernel takes and what a multiprocessor has. */
#ifndef ROOFSWEEP_OCCUPANCY_H
#define ROOFSWEEP_OCCUPANCY_H

#include <stdint.h>
#include <cuda_runtime_api.h>

/* What one multiprocessor has, and what it grants one block. */
struct occupancy_limits {
    int major, minor; /* compute capability */
    int warp_threads, block_threads, multiprocessor_threads;
    int block_registers, multiprocessor_registers;
    size_t block_shared, block_shared_most, reserved_shared, multiprocessor_shared; /* byte */
};
struct occupancy_limits occupancy_limits(const struct cudaDeviceProp *properties);

/* What a kernel takes. */
struct occupancy_kernel {
    int64_t threads;                       /* of a block */
    int64_t registers;                     /* of a thread */
    int64_t static_shared, dynamic_shared; /* byte, of a block */
    int64_t shared_room; /* byte, of a multiprocessor, as the driver set it; 0: not known, all */
};

/* Blocks on one multiprocessor: the least by its threads, registers, shared memory and places for
 * blocks. FIELD_MISSING where the toolkit does not know the chip. */
int64_t occupancy_blocks(const struct occupancy_limits *limits,
                         const struct occupancy_kernel *kernel);

#endif
