/* Hand-written device code. Every launcher launches exactly one kernel on `stream`, does not wait
 * for it, and returns its launch error. Pointers are device memory, owned by the caller. Sums are
 * in fp32, in fp64 for fp64. "Not tf32": the launcher returns cudaErrorInvalidValue for tf32. */
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

#ifdef __cplusplus
extern "C" {
#endif

/* elements.cu: data[i] = fill_value(fill, first + i) for i < count, stored in `precision`. */
cudaError_t kernel_fill(enum precision precision, void *data, int64_t count, struct fill fill,
                        int64_t first, cudaStream_t stream);
/* values[i] = (double)data[offsets[i]] */
cudaError_t kernel_gather(enum precision precision, const void *data, const int64_t *offsets,
                          int64_t count, double *values, cudaStream_t stream);
/* Adds a hash of a tensor's bytes to the 64-bit number *hash. A change of one aligned 8-byte
 * word always changes the hash. */
cudaError_t kernel_hash(const void *data, size_t bytes, enum tensor tensor, void *hash,
                        cudaStream_t stream);

/* memory.cu: kernels that measure bandwidth, with accesses of 16 bytes. The rows of one pattern
 * differ in the number of accesses in flight; the fastest row is the roof. */
struct memory_kernel {
    enum memory_pattern pattern;
    const char *what; /* "4 in flight": accesses of a lane; "4 bytes each": size of an addition */
    int piece;        /* number of bytes that a warp takes at a time */
    int arrays;       /* number of arrays that the pattern uses */
    int bytes_moved;  /* bytes read plus written for each byte of one array; additions in place
                         (atomic) count only their operand */
    /* Makes `repeat` passes, at most 65535, over the same data. Triad is a = b + s * c, copy a = b,
     * write a = s, atomic a += s. A read adds up b in a register of each thread, and would store
     * only a sum that cannot occur. blocks = 0: enough blocks that each warp takes one piece in a
     * pass. Each array has `bytes` bytes, a multiple of the piece, and is aligned to 256 bytes. */
    cudaError_t (*launch)(void *a, const void *b, const void *c, size_t bytes, int repeat,
                          int blocks, int threads, cudaStream_t stream);
};
extern const struct memory_kernel memory_kernels[]; /* ends with launch NULL */
/* Reads `bytes` bytes once, through L2, with one fp32 addition for each 4 bytes. `bytes` is a
 * multiple of 2048. */
cudaError_t kernel_read(void *data, size_t bytes, cudaStream_t stream);

/* chase.cu: a chain of `lines` lines (a power of two) of 128 bytes; each line holds the address of
 * the next one. A further line, `place`, keeps the address at which a chase ends. A chase in shared
 * memory needs only this line. */
enum { CHASE_LANES = 16 };
cudaError_t kernel_chain(uint64_t *words, int lines, cudaStream_t stream);
cudaError_t kernel_chase(bool is_shared, uint64_t *place, int64_t loads, cudaStream_t stream);

/* fma.cu: independent chains of fused multiply-adds that stay in registers. */
struct fma_kernel {
    enum precision precision;
    /* Does blocks * threads * iterations * flops_per_iteration FLOPs. `out` has one element for
     * each thread. */
    cudaError_t (*launch)(void *out, int64_t iterations, int blocks, int threads,
                          cudaStream_t stream);
    int64_t flops_per_iteration; /* FLOPs of one thread in one iteration */
};
extern const struct fma_kernel fma_kernels[]; /* ends with flops_per_iteration 0 */

/* onchip.cu: kernels that read within a multiprocessor, with 64 bytes of each thread in flight.
 * Each block reads its own `bytes` bytes `repeat` times, so all blocks read blocks * repeat *
 * bytes. The rows of one roof differ in the width of a load; the fastest row is the roof. */
struct onchip_kernel {
    enum roof_id roof; /* ROOF_L1_READ or ROOF_SHARED_READ */
    const char *what;  /* "16 bytes a load" */
    /* `data` has blocks * bytes bytes, aligned to 256 bytes. `threads` is a multiple of 32, `bytes`
     * a multiple of 64 * threads, and bytes / threads * repeat is below 2^37. 512 threads in a
     * multiprocessor cover the latency. ROOF_L1_READ: the data of all blocks of a multiprocessor
     * must be smaller than L1, and `repeat` large, since the first round comes from L2.
     * ROOF_SHARED_READ: `bytes` is the size of a block's shared memory. */
    cudaError_t (*launch)(const void *data, size_t bytes, int repeat, int blocks, int threads,
                          cudaStream_t stream);
};
extern const struct onchip_kernel onchip_kernels[]; /* ends with launch NULL */

/* Matrix multiply-adds of random operands that stay on chip. tensor.cu: instructions of warps, with
 * operands in registers. tensor_wgmma.cu: instructions of warpgroups, with operands in shared
 * memory, for 9.0a only. tensor_tcgen05.cu: instructions of blocks, with sums in tensor memory, for
 * 10.0a only. The rows of one roof differ in their instructions; the fastest row is the roof. */
struct tensor_kernel {
    enum roof_id roof;   /* ROOF_FP16_TENSOR_MMA, ... */
    const char *what;    /* "m16n8k16, 8 chains a warp": the instruction */
    int least, most;     /* range of compute capabilities */
    int blocks, threads; /* blocks of a multiprocessor, threads of a block */
    /* `out` has blocks * threads floats, each the total of a thread's sums. Totals are finite,
     * because sums stay near their start. cudaErrorNoKernelImageForDevice: the build lacks this row
     * for this device. */
    cudaError_t (*launch)(void *out, int64_t iterations, int blocks, cudaStream_t stream);
    double flops; /* FLOPs (int8: operations) of one block in one iteration */
};
extern const struct tensor_kernel tensor_kernels[]; /* ends with launch NULL */
extern const struct tensor_kernel
    tensor_wgmma_kernels[]; /* ends with launch NULL; only in builds for 9.0 */
extern const struct tensor_kernel
    tensor_tcgen05_kernels[]; /* ends with launch NULL; only in builds for 10.0 */

/* product.cu: a product, and the parts of a fully connected layer, src/model/workloads/linear.h. */

/* A factor of a product. A line is a row of the first factor, or a column of the second. */
struct kernel_factor {
    const void *data;
    int64_t line, step; /* elements between two lines, and between two elements of a line */
};
/* c [m][n], row-major: each element is the sum of k products, by one thread. Not tf32. */
cudaError_t kernel_product(enum precision precision, void *c, struct kernel_factor a,
                           struct kernel_factor b, int64_t m, int64_t n, int64_t k,
                           cudaStream_t stream);
/* y [rows][columns] = f(y + bias), in place; bias NULL: none. */
cudaError_t kernel_linear_finish(enum precision precision, void *y, const void *bias,
                                 enum linear_activation activation, int64_t rows, int64_t columns,
                                 cudaStream_t stream);
/* sums[j] = sum over i of data[i][j] */
cudaError_t kernel_column_sums(enum precision precision, void *sums, const void *data, int64_t rows,
                               int64_t columns, cudaStream_t stream);

/* conv2d.cu: a conv2d (src/model/workloads/conv2d.h) in a named layout, with one thread for each
 * element of a result. */

/* Arrays of one convolution: the pass computes x, w or y from the other two. Not tf32. */
struct conv2d_arrays {
    void *x, *w, *y;
    const void *b; /* NULL: no bias */
    bool finish;   /* a forward pass adds b and applies the activation */
};
cudaError_t kernel_conv2d(const struct conv2d *shape, const struct conv2d_arrays *arrays,
                          cudaStream_t stream);
/* y = f(y + b), in place; b NULL: no bias. */
cudaError_t kernel_conv2d_finish(const struct conv2d *shape, void *y, const void *b,
                                 cudaStream_t stream);
/* dz = dy f'(z), from y = f(z) */
cudaError_t kernel_conv2d_slope(const struct conv2d *shape, void *dz, const void *dy, const void *y,
                                cudaStream_t stream);
/* db[filter] = sum of dz over all pixels. */
cudaError_t kernel_conv2d_bias_gradient(const struct conv2d *shape, void *db, const void *dz,
                                        cudaStream_t stream);
/* updated[i] = w[i] - rate dw[i] */
cudaError_t kernel_update(enum precision precision, void *updated, const void *w, const void *dw,
                          double rate, int64_t count, cudaStream_t stream);

/* conv2d_tiled.cu: a forward conv2d in NHWC, in fp16 or bf16, as a matrix product in tiles, by
 * tensor instructions of warps, from compute capability 8.0. A group's channels are a multiple of
 * 8; pixels of x and of y, and weights of a filter, are fewer than 2^30. Arrays are aligned to 16
 * bytes. Every tile works for all these shapes; the fastest tile depends on the shape. */
struct conv2d_tile {
    const char *what; /* "mma 128x64x64": pixels, filters and depth of one step */
    /* cudaErrorNoKernelImageForDevice: the build lacks this row for this device. */
    cudaError_t (*launch)(const struct conv2d *shape, const struct conv2d_arrays *arrays,
                          cudaStream_t stream);
};
enum { CONV2D_TILES = 3 };
extern const struct conv2d_tile conv2d_tiles[CONV2D_TILES];

/* lstm.cu: computes y of one layer from the input x, with `width` elements in each step, and the
 * layer's weights w. Computes in fp16 or bf16 on tensor units; cells are in fp32. width and hidden
 * are multiples of KERNEL_LSTM_MULTIPLE; hidden is at most KERNEL_LSTM_BLOCK, or
 * KERNEL_LSTM_CLUSTER from compute capability 9.0 on. Arrays are aligned to 16 bytes. */
enum { KERNEL_LSTM_MULTIPLE = 4, KERNEL_LSTM_BLOCK = 64, KERNEL_LSTM_CLUSTER = 256 };
cudaError_t kernel_lstm(const struct lstm *shape, int64_t width, void *y, const void *x,
                        const void *w, cudaStream_t stream);

/* lstm_reference.cu: the reference of one direction of a layer, in fp64. Arrays are those of
 * src/model/workloads/lstm_network.h, and begin with this direction's part. */
enum { KERNEL_LSTM_UNIT = LSTM_SUMS + 1 }; /* doubles in struct unit_fp64 */
struct kernel_lstm_layer {
    enum lstm_kind kind;
    struct lstm_cell cell;
    int64_t samples, rows, width, hidden;
    int64_t line;    /* distance between two rows of y, dy and seen, in elements */
    int64_t ahead;   /* rows to the direction's next step; negative: the sequence runs backwards */
    int64_t w_begin; /* offset of this direction in the weights of all layers */
    const double *w[LSTM_PARTS], *x, *dy;
    const double *seen; /* outputs of the tested device, for cell relu; NULL: own outputs */
    double *y, *units, *dsums, *carried;
};
/* Computes y and units of the step whose first row is `row`. */
cudaError_t kernel_lstm_forward(const struct kernel_lstm_layer *layer, int64_t row,
                                cudaStream_t stream);
/* Computes dsums and carried of a step. */
cudaError_t kernel_lstm_backward(const struct kernel_lstm_layer *layer, int64_t row,
                                 cudaStream_t stream);
/* Computes the gradient of the inputs from the dsums of all rows. `added`: adds it to dx. */
cudaError_t kernel_lstm_input_gradient(const struct kernel_lstm_layer *layer, double *dx,
                                       bool added, cudaStream_t stream);
/* values[i] = gradient of the weight at places[i], for places in this direction's weights. */
cudaError_t kernel_lstm_weights_gradient(const struct kernel_lstm_layer *layer,
                                         const int64_t *places, int64_t count, double *values,
                                         cudaStream_t stream);

/* loops.cu: the loops of src/model/workloads/loop.h. */

/* x and y have room for an even number of elements, because fp16 and bf16 come in pairs. */
cudaError_t kernel_compute_loop(enum precision precision, void *y, const void *x, int64_t elements,
                                int steps, cudaStream_t stream);
/* In fp64 or fp32; tile is at most LOOP_TILE_MAX. */
cudaError_t kernel_shared_loop(enum precision precision, void *y, const void *x, int64_t tiles,
                               int tile, int steps, cudaStream_t stream);

/* elements.cu, softmax.cu, norm.cu: workloads of src/model/workloads/, by their definition. */

/* y may be x. w NULL: the operation has one input. */
cudaError_t kernel_elementwise(const struct elementwise *shape, void *y, const void *x,
                               const void *w, cudaStream_t stream);

/* y may be x. sequence > 0: the causal mask of attention. Row i belongs to query i % sequence,
 * which sees the columns up to its own number; all later columns become 0. */
cudaError_t kernel_softmax(enum precision precision, void *y, const void *x, int64_t rows,
                           int64_t columns, int64_t sequence, cudaStream_t stream);
cudaError_t kernel_softmax_gradient(enum precision precision, void *dx, const void *y,
                                    const void *dy, int64_t rows, int64_t columns,
                                    cudaStream_t stream);

/* x, dy, y and dx are in the shape's precision, all other arrays in fp32, or in fp64 for fp64. */
struct norm_arrays {
    const void *x, *dy, *gamma, *beta;
    const void *mean_given, *inverse_given; /* m and r; NULL: the kernel computes both */
    void *y, *dx, *mean, *variance, *inverse, *dgamma, *dbeta;
};
enum norm_kernel {
    /* y from x, gamma, beta, m and r. Without m and r, the kernel computes them, and stores
     * mean, inverse and variance where not NULL. y NULL: y is not stored. */
    NORM_KERNEL_Y,
    NORM_KERNEL_DX,        /* dx from x, dy, gamma, mean_given, inverse_given */
    NORM_KERNEL_PARAMETERS /* dgamma, dbeta from x, dy, mean_given, inverse_given */
};
cudaError_t kernel_norm(enum norm_kernel kernel, const struct norm *shape,
                        const struct norm_arrays *arrays, cudaStream_t stream);

/* stream.cu: one block that does nothing, to time the launch. */
cudaError_t kernel_empty(cudaStream_t stream);

/* Launches one of a chain of small kernels, in blocks of 128 threads, with one fp32 number for each
 * thread. Even numbers compute y from x, odd numbers x from y, so each kernel needs the previous
 * result. */
cudaError_t kernel_link(int number, float *x, float *y, int count, cudaStream_t stream);

/* Blocks the stream for `seconds`, with one thread, while the host enqueues later work. */
cudaError_t kernel_delay(double seconds, cudaStream_t stream);
/* Blocks the stream, with one thread, until *released is at least `ticket`, but at most for `limit`
 * s, so that the device goes on if the host hangs or dies. `released` is pinned host memory, which
 * the host writes while the thread polls. */
cudaError_t kernel_block(const volatile uint64_t *released, uint64_t ticket, double limit,
                         cudaStream_t stream);

/* Stores each multiprocessor's cycle counter with the device's time. The entry of a multiprocessor
 * without a block stays unchanged. */
enum { CLOCK_STAMPS = 512 };
struct clock_stamp {
    uint64_t cycles, nanoseconds;
};
cudaError_t kernel_clock(struct clock_stamp *stamps, int blocks, cudaStream_t stream);

/* known_work.cu, known_wgmma.cu: kernels with exactly known FLOPs or bytes, to check counters. */
struct known_kernel {
    const char *name;
    enum quantity quantity; /* the only kind of FLOPs (int8: operations) in the kernel */
    int least, most;        /* range of compute capabilities */
    cudaError_t (*launch)(int iterations, int blocks, cudaStream_t stream);
    double flops; /* FLOPs or operations of one block in one iteration */
};
extern const struct known_kernel known_kernels[]; /* ends with name NULL */
extern const struct known_kernel
    known_wgmma_kernels[]; /* ends with launch NULL; only in builds for 9.0 */

/* Each block reads a chunk of KNOWN_L1_CHUNK bytes `repeat` times, through L1. */
enum { KNOWN_L1_CHUNK = 16384 };
cudaError_t known_read_l1(const void *data, int repeat, int blocks, cudaStream_t stream);
/* out[i] = in[i], from fp16 to fp32: a conversion is no FLOP. */
cudaError_t known_widen(void *out, const void *in, size_t count, int blocks, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
