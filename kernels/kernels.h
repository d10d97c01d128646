/* Hand-written device code, one .cu file a noun. Every launcher is asynchronous on `stream`,
 * launches exactly one kernel and returns its launch error. Pointers are device memory, owned by
 * the caller. Sources of the numbers that they are used for: src/worker/gpu/roofs.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cuda_runtime_api.h>

#include "model/fill.h"
#include "model/roof_kind.h"
#include "model/quantity.h"
#include "model/workload.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/elementwise.h"
#include "model/workloads/linear.h"
#include "model/workloads/lstm.h"
#include "model/workloads/norm.h"
#include "model/workloads/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* elements.cu: data[i] = fill_value(fill, first + i) for i < count, stored in `precision`. */
cudaError_t kernel_fill(enum precision precision, void *data, int64_t count, struct fill fill,
                        int64_t first, cudaStream_t stream);
/* values[i] = (double)data[offsets[i]] */
cudaError_t kernel_gather(enum precision precision, const void *data, const int64_t *offsets,
                          int64_t count, double *values, cudaStream_t stream);

/* memory.cu: bandwidth, in 16-byte accesses. Rows of one pattern differ in how they walk; the
 * fastest is the roof. `bytes_moved` counts read plus written bytes of one pass over arrays of
 * `bytes` each. */
struct memory_kernel {
    enum memory_pattern pattern;
    const char *what; /* "4 in flight": of a lane's accesses; or what else this row does */
    int piece;        /* byte, that a warp takes at a time */
    int arrays;       /* how many arrays of `bytes` it needs */
    int bytes_moved;  /* read plus written, for each byte of one array; of an addition, its operand
                       */
    /* Makes `repeat` passes over the same data, at most 65535. Triad is a = b + s * c, copy a = b,
     * write a = s, atomic a += s. Read adds b up in a register of each thread, which is stored only
     * if it equals a value that does not occur. blocks = 0: as many as give each warp one piece in
     * one pass. Arrays must be aligned to 256 bytes, and bytes a multiple of the piece. */
    cudaError_t (*launch)(void *a, const void *b, const void *c, size_t bytes, int repeat,
                          int blocks, int threads, cudaStream_t stream);
};
extern const struct memory_kernel memory_kernels[]; /* ends with launch NULL */
/* Reads them once, through L2. bytes: a multiple of 2048; one fp32 addition for each 4 of them. */
cudaError_t kernel_read(void *data, size_t bytes, cudaStream_t stream);

/* fma.cu: independent chains of fused multiply-adds that stay in registers. */
struct fma_kernel {
    enum precision precision;
    /* Does blocks * threads * iterations * flops_per_iteration FLOPs. out: one element per
     * thread. */
    cudaError_t (*launch)(void *out, int64_t iterations, int blocks, int threads,
                          cudaStream_t stream);
    int64_t flops_per_iteration; /* and thread */
};
extern const struct fma_kernel fma_kernels[]; /* ends with flops_per_iteration 0 */

/* onchip.cu: reads that stay in the multiprocessor, 64 bytes of a thread in flight. Each block goes
 * round `bytes` of its own, `repeat` times: blocks * repeat * bytes are read. Rows of one roof
 * differ in the width of a load; the fastest is the roof. */
struct onchip_kernel {
    enum roof_id roof; /* ROOF_L1_READ or ROOF_SHARED_READ */
    const char *what;  /* "16 bytes a load" */
    /* data: blocks * bytes of it, aligned to 256 bytes; threads a multiple of 32, bytes of 64 *
     * threads, and bytes / threads * repeat below 2^37. 512 threads and more in a multiprocessor
     * cover the latency. ROOF_L1_READ: what all blocks of a multiprocessor go round together must
     * fit L1, with room to spare, and its first round comes from L2: many rounds. ROOF_SHARED_READ:
     * bytes are what a block has of shared memory, at most what the device allows one. */
    cudaError_t (*launch)(const void *data, size_t bytes, int repeat, int blocks, int threads,
                          cudaStream_t stream);
};
extern const struct onchip_kernel onchip_kernels[]; /* ends with launch NULL */

/* tensor.cu (of warps, operands in registers), tensor_wgmma.cu (of warpgroups, operands in shared
 * memory; instructions of 9.0a alone), tensor_tcgen05.cu (of blocks, sums in tensor memory;
 * instructions of 10.0a alone): matrix multiply-adds of random operands that stay on chip.
 * Rows of one roof differ in how they do it; the fastest is the roof. */
struct tensor_kernel {
    enum roof_id roof;   /* ROOF_FP16_TENSOR_MMA, ... */
    const char *what;    /* "m16n8k16, 8 chains a warp": what this row does */
    int least, most;     /* compute capabilities that it runs on */
    int blocks, threads; /* for each multiprocessor, and for each block */
    /* out: blocks * threads floats, each the total of the thread's sums: finite, since sums stay
     * near where they began. cudaErrorNoKernelImageForDevice: the build lacks this row for this
     * device; pass over it. */
    cudaError_t (*launch)(void *out, int64_t iterations, int blocks, cudaStream_t stream);
    double flops; /* of one block in one iteration; int8: operations */
};
extern const struct tensor_kernel tensor_kernels[];         /* ends with launch NULL */
extern const struct tensor_kernel tensor_wgmma_kernels[];   /* likewise; only in builds for 9.0 */
extern const struct tensor_kernel tensor_tcgen05_kernels[]; /* likewise; only in builds for 10.0 */

/* product.cu: a product, and the parts of a fully connected layer, src/model/workloads/linear.h.
 * Sums are in fp32, of fp64 in fp64. */

/* Of a factor, where a line of it (a row of the first, a column of the second) begins, and its next
 * element: in elements. */
struct kernel_factor {
    const void *data;
    int64_t line, step;
};
/* c [m][n], row-major, each element the sum of k products, one thread each. Not tf32. */
cudaError_t kernel_product(enum precision precision, void *c, struct kernel_factor a,
                           struct kernel_factor b, int64_t m, int64_t n, int64_t k,
                           cudaStream_t stream);
/* y [rows][columns] = f(y + bias), in place; bias NULL: none. */
cudaError_t kernel_linear_finish(enum precision precision, void *y, const void *bias,
                                 enum linear_activation activation, int64_t rows, int64_t columns,
                                 cudaStream_t stream);
/* sums[j] = the sum over i of data[i][j]. */
cudaError_t kernel_column_sums(enum precision precision, void *sums, const void *data, int64_t rows,
                               int64_t columns, cudaStream_t stream);

/* matmul_tiled.cu: y [m][n] = x [m][k] w [k][n], row-major, of fp16 and bf16, by tensor
 * instructions of warps, from compute capability 8.0: m and n in multiples of MATMUL_TILED_LINES, k
 * of MATMUL_TILED_DEPTH; sums in fp32. All arrays are aligned to 16 bytes. */
cudaError_t kernel_matmul_tiled(enum precision precision, void *y, const void *x, const void *w,
                                int64_t m, int64_t n, int64_t k, cudaStream_t stream);

/* conv2d.cu: a conv2d as one would first write it, as src/model/workloads/conv2d.h defines it, in a
 * layout that is named. One thread for each element of a result; sums in fp32, of fp64 in fp64. */

/* The convolution that shape->pass names, one of the first three: y, x or w from the two others.
 * Not tf32. */
struct conv2d_arrays {
    void *x, *w, *y;
    const void *b; /* NULL: no bias */
    bool finish;   /* forward adds b and applies the activation as well */
};
cudaError_t kernel_conv2d(const struct conv2d *shape, const struct conv2d_arrays *arrays,
                          cudaStream_t stream);
/* The same as a step of its own: y = f(y + b). b is NULL without a bias. */
cudaError_t kernel_conv2d_finish(const struct conv2d *shape, void *y, const void *b,
                                 cudaStream_t stream);
cudaError_t kernel_conv2d_slope(const struct conv2d *shape, void *dz, const void *dy, const void *y,
                                cudaStream_t stream);
/* db of a filter is the sum of its dz. */
cudaError_t kernel_conv2d_bias_gradient(const struct conv2d *shape, void *db, const void *dz,
                                        cudaStream_t stream);
/* updated[i] = w[i] - rate dw[i] */
cudaError_t kernel_update(enum precision precision, void *updated, const void *w, const void *dw,
                          double rate, int64_t count, cudaStream_t stream);

/* conv2d_tiled.cu: a forward conv2d in NHWC, fp16 or bf16, sums in fp32, as a matrix product in
 * tiles, by tensor instructions of warps, from compute capability 8.0. A group's channels are a
 * multiple of 8; pixels of x and of y, and the weights of a filter, are fewer than 2^30. The arrays
 * are aligned to 16 bytes. Each row takes all such shapes. The fastest tile depends on the shape.
 */
struct conv2d_tile {
    const char *what; /* "mma 128x64x64": pixels, filters and depth of one step */
    /* arrays->finish: adds b and applies the activation. cudaErrorNoKernelImageForDevice: the build
     * lacks this row for this device. */
    cudaError_t (*launch)(const struct conv2d *shape, const struct conv2d_arrays *arrays,
                          cudaStream_t stream);
};
enum { CONV2D_TILES = 3 };
extern const struct conv2d_tile conv2d_tiles[CONV2D_TILES];

/* lstm.cu: y of one layer of shape, whose input x is `width` wide; w is the layer's. fp16 and bf16,
 * on tensor units, sums and cells in fp32. width and hidden are multiples of 4; hidden is at most
 * KERNEL_LSTM_BLOCK, or from compute capability 9.0 on KERNEL_LSTM_CLUSTER. The arrays are aligned
 * to 16 bytes. */
enum { KERNEL_LSTM_MULTIPLE = 4, KERNEL_LSTM_BLOCK = 64, KERNEL_LSTM_CLUSTER = 256 };
cudaError_t kernel_lstm(const struct lstm *shape, int64_t width, void *y, const void *x,
                        const void *w, cudaStream_t stream);

/* loops.cu: the loops as src/model/workloads/loop.h defines them. */

/* x and y have room for an even number of elements: fp16 and bf16 come in pairs. */
cudaError_t kernel_compute_loop(enum precision precision, void *y, const void *x, int64_t elements,
                                int steps, cudaStream_t stream);
/* fp64 and fp32; tile is at most LOOP_TILE_MAX. */
cudaError_t kernel_shared_loop(enum precision precision, void *y, const void *x, int64_t tiles,
                               int tile, int steps, cudaStream_t stream);

/* elementwise.cu, pool.cu, softmax.cu, norm.cu: what src/model/workloads/ defines, as one would
 * first write it. Computed in fp32, of fp64 in fp64. */

/* w is NULL where the operation has one input. */
cudaError_t kernel_elementwise(enum precision precision, enum elementwise_operation operation,
                               void *y, const void *x, const void *w, int64_t count,
                               cudaStream_t stream);

cudaError_t kernel_pool(const struct pool *shape, void *y, const void *x, cudaStream_t stream);
/* dx; x is not read of an average. */
cudaError_t kernel_pool_gradient(const struct pool *shape, void *dx, const void *x, const void *dy,
                                 cudaStream_t stream);

/* y may be x. sequence > 0: the causal mask of attention, row i is of query i % sequence, which
 * sees the columns up to its own number; the others become 0. */
cudaError_t kernel_softmax(enum precision precision, void *y, const void *x, int64_t rows,
                           int64_t columns, int64_t sequence, cudaStream_t stream);
cudaError_t kernel_softmax_gradient(enum precision precision, void *dx, const void *y,
                                    const void *dy, int64_t rows, int64_t columns,
                                    cudaStream_t stream);

/* x, dy, y and dx are in the precision; all others are fp32, of fp64 fp64. */
struct norm_arrays {
    const void *x, *dy, *gamma, *beta;
    const void *mean_given, *inverse_given; /* m and r, of columns or of rows */
    void *y, *dx, *mean, *variance, *inverse, *dgamma, *dbeta;
};
enum norm_kernel {
    /* y of x, gamma, beta, and m and r, which are found where they are not given; then mean and
     * inverse, or variance, are left if they are not NULL. y NULL: that is all. */
    NORM_KERNEL_Y,
    NORM_KERNEL_DX,        /* dx of x, dy, gamma, mean_given, inverse_given */
    NORM_KERNEL_PARAMETERS /* dgamma and dbeta of x, dy, mean_given, inverse_given */
};
cudaError_t kernel_norm(enum norm_kernel kernel, const struct norm *shape,
                        const struct norm_arrays *arrays, cudaStream_t stream);

/* stream.cu: one block that does nothing: what is left is the launch. */
cudaError_t kernel_empty(cudaStream_t stream);

/* A link of a chain of small kernels, in blocks of 128 threads. An even one makes y of x, an odd
 * one x of y, one fp32 number a thread: each needs what the one before has written. */
cudaError_t kernel_link(int number, float *x, float *y, int count, cudaStream_t stream);

/* One thread that keeps the stream waiting, so that what is enqueued after it is all
 * there when it begins. */
cudaError_t kernel_delay(double seconds, cudaStream_t stream);
/* One thread that holds the stream until *released is at least `ticket`, or until `limit` s are
 * over, so that a host that blocks or dies leaves no device waiting. released: pinned memory of the
 * host's, which the host writes while the thread looks. */
cudaError_t kernel_block(const volatile uint64_t *released, uint64_t ticket, double limit,
                         cudaStream_t stream);

/* Every multiprocessor's cycles, and the device's time. Where no block came to a
 * multiprocessor, its entry stays as it was. */
enum { CLOCK_STAMPS = 512 };
struct clock_stamp {
    uint64_t cycles, nanoseconds;
};
cudaError_t kernel_clock(struct clock_stamp *stamps, int blocks, cudaStream_t stream);

/* known_work.cu, known_wgmma.cu: work whose FLOPs and bytes are known exactly, to check counters
 * by. */
struct known_kernel {
    const char *name;
    enum quantity quantity; /* all its FLOPs (int8: operations) are of this kind */
    int least, most;        /* compute capabilities that it runs on */
    cudaError_t (*launch)(int iterations, int blocks, cudaStream_t stream);
    double flops; /* of one block in one iteration */
};
extern const struct known_kernel known_kernels[];       /* ends with name NULL */
extern const struct known_kernel known_wgmma_kernels[]; /* likewise; only in builds for 9.0 */

/* Reads `blocks` chunks of KNOWN_L1_CHUNK bytes, each `repeat` times by one block, through L1. */
enum { KNOWN_L1_CHUNK = 16384 };
cudaError_t known_read_l1(const void *data, int repeat, int blocks, cudaStream_t stream);
/* out[i] = in[i], from fp16 to fp32: a conversion is no FLOP. */
cudaError_t known_widen(void *out, const void *in, size_t count, int blocks, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
