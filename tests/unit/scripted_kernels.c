/* What stands in for the kernels. */
#include "scripted_cuda.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"

/* ---- kernels that belong to no roof ---- */

cudaError_t kernel_empty(cudaStream_t stream)
{
    return script_cuda_kernel("empty", script.empty_time, script.node_time, stream);
}

cudaError_t kernel_link(int number, float *x, float *y, int count, cudaStream_t stream)
{
    assert_true(number >= 0 && y == x + count);
    script_assert_filled(x, 2 * (size_t)count * sizeof *x, PRECISION_FP32, script.own);
    return script_cuda_kernel("link", script.link_time, script.link_node_time, stream);
}

cudaError_t kernel_delay(double seconds, cudaStream_t stream)
{
    return script_cuda_enqueue(seconds, stream);
}

cudaError_t kernel_fill(enum precision precision, void *data, int64_t elements, struct fill fill,
                        int64_t first, cudaStream_t stream)
{
    size_t bytes = (size_t)elements * precision_info[precision].bytes;
    (void)fill, (void)first;
    if (elements == 0)
        return script_cuda_enqueue(0.0, stream);
    struct allocation *allocation = script_within(data, bytes, script.own);
    if (allocation->address != (uintptr_t)data) /* a piece of a tensor */
        return script_cuda_enqueue((double)bytes / 3e12, stream);
    cudaError_t code = script_cuda_enqueue((double)bytes / 3e12, stream);
    if (code == cudaSuccess) {
        allocation->filled = bytes;
        allocation->precision = precision;
    }
    return code;
}

/* ---- kernels of memory ---- */

static void count(enum quantity quantity, double amount)
{
    machine.counts[quantity] += amount;
}

static void memory_count(const struct memory_kernel *row, double bytes, bool dram)
{
    double written = row->pattern == PATTERN_READ ? 0.0 : bytes;
    double read = bytes * row->bytes_moved - written;
    count(QUANTITY_L1_READ, read);
    count(QUANTITY_L1_WRITE, written);
    count(QUANTITY_L2_READ, read);
    count(QUANTITY_L2_WRITE, written);
    count(QUANTITY_DRAM_READ, dram ? read : 0.0);
    count(QUANTITY_DRAM_WRITE, dram ? written : 0.0);
}

static cudaError_t memory_run(const struct memory_kernel *row, void *a, const void *b,
                              const void *c, size_t bytes, int repeat, int blocks, int threads,
                              cudaStream_t stream)
{
    const void *const arrays[] = {a, b, c};
    const double footprint = (double)bytes * row->arrays;
    bool dram = footprint > SCRIPT_REACH * L2_BYTES;
    char kind[32];
    assert_true(bytes > 0 && bytes % (size_t)row->piece == 0 && repeat >= 1 && blocks >= 0);
    assert_true(threads % 32 == 0 && threads > 0 && threads <= 1024);
    size_t warps = (size_t)blocks * (size_t)threads / 32; /* all of them have the same to do */
    assert_true(warps == 0 || bytes % (warps * (size_t)row->piece) == 0);
    for (int i = 0; i < row->arrays; ++i) {
        script_assert_filled(arrays[i], bytes, PRECISION_FP32, script.own);
        assert_ptr_not_equal(arrays[i], arrays[(i + 1) % 3]);
    }
    bool reads = row->pattern == PATTERN_READ;
    assert_true(dram || reads ||
                footprint <= 0.25 * L2_BYTES); /* else some goes to device memory */
    snprintf(kind, sizeof kind, "%s %s", dram ? "dram" : "l2", memory_pattern_name[row->pattern]);
    memory_count(row, (double)bytes * repeat, dram);
    return script_run(&(struct work_done){.kind = kind,
                                          .what = row->what,
                                          .row = row,
                                          .amount = (double)bytes * repeat * row->bytes_moved,
                                          .blocks = blocks,
                                          .threads = threads},
                      stream);
}

#define MEMORY(n)                                                                                  \
    static cudaError_t memory_##n(void *a, const void *b, const void *c, size_t bytes, int repeat, \
                                  int blocks, int threads, cudaStream_t stream)                    \
    {                                                                                              \
        return memory_run(&memory_kernels[n], a, b, c, bytes, repeat, blocks, threads, stream);    \
    }
MEMORY(0)
MEMORY(1)
MEMORY(2)
MEMORY(3)
MEMORY(4)
MEMORY(5)
MEMORY(6)
const struct memory_kernel memory_kernels[] = {
    {PATTERN_READ, "4 in flight", 2048, 1, 1, memory_0},
    {PATTERN_READ, "1 in flight", 512, 1, 1, memory_1},
    {PATTERN_WRITE, "4 in flight", 2048, 1, 1, memory_2},
    {PATTERN_COPY, "4 in flight", 2048, 2, 2, memory_3},
    {PATTERN_COPY, "1 in flight", 512, 2, 2, memory_4},
    {PATTERN_TRIAD, "1 in flight", 512, 3, 3, memory_5},
    {PATTERN_ATOMIC, "4 bytes each", 2048, 1, 1, memory_6},
    {0},
};

static cudaError_t onchip_run(const struct onchip_kernel *row, const void *data, size_t bytes,
                              int repeat, int blocks, int threads, cudaStream_t stream)
{
    double amount = (double)bytes * blocks * repeat;
    bool l1 = row->roof == ROOF_L1_READ;
    assert_true(threads % 32 == 0 && bytes > 0 && bytes % (64 * (size_t)threads) == 0);
    assert_true((double)bytes / threads * repeat < 0x1p37);
    assert_true(bytes * (size_t)blocks <= (size_t)SHARED_BYTES * MULTIPROCESSORS);
    script_assert_filled(data, bytes * (size_t)blocks, PRECISION_FP32, script.own);
    count(QUANTITY_L1_READ, l1 ? amount : 0.0);
    return script_run(&(struct work_done){.kind = roof_kinds[row->roof].name,
                                          .what = "",
                                          .row = row,
                                          .amount = amount,
                                          .blocks = blocks,
                                          .threads = threads},
                      stream);
}

static cudaError_t l1_run(const void *data, size_t bytes, int repeat, int blocks, int threads,
                          cudaStream_t stream)
{
    return onchip_run(&onchip_kernels[0], data, bytes, repeat, blocks, threads, stream);
}

static cudaError_t shared_run(const void *data, size_t bytes, int repeat, int blocks, int threads,
                              cudaStream_t stream)
{
    return onchip_run(&onchip_kernels[1], data, bytes, repeat, blocks, threads, stream);
}

const struct onchip_kernel onchip_kernels[] = {
    {ROOF_L1_READ, "16 bytes", l1_run}, {ROOF_SHARED_READ, "16 bytes", shared_run}, {0}};

/* ---- kernels of the vector and tensor units ---- */

static const enum quantity vector_quantities[PRECISION_COUNT] = {
    [PRECISION_FP64] = QUANTITY_VECTOR_FP64,
    [PRECISION_FP32] = QUANTITY_VECTOR_FP32,
    [PRECISION_FP16] = QUANTITY_VECTOR_FP16,
    [PRECISION_BF16] = QUANTITY_VECTOR_FP16,
};
const enum quantity script_tensor_quantities[PRECISION_COUNT] = {
    [PRECISION_FP64] = QUANTITY_TENSOR_FP64, [PRECISION_TF32] = QUANTITY_TENSOR_TF32,
    [PRECISION_FP16] = QUANTITY_TENSOR_FP16, [PRECISION_BF16] = QUANTITY_TENSOR_BF16,
    [PRECISION_FP8] = QUANTITY_TENSOR_FP8,   [PRECISION_FP4] = QUANTITY_TENSOR_FP4,
    [PRECISION_INT8] = QUANTITY_TENSOR_INT8,
};

static cudaError_t fma_run(const struct fma_kernel *row, void *out, int64_t iterations, int blocks,
                           int threads, cudaStream_t stream)
{
    size_t all = (size_t)blocks * (size_t)threads;
    double flops = (double)row->flops_per_iteration * (double)iterations * (double)all;
    char kind[32];
    assert_true(iterations >= 1 && threads <= 1024);
    script_within(out, all * precision_info[row->precision].bytes, script.own);
    snprintf(kind, sizeof kind, "%s vector", precision_info[row->precision].name);
    count(vector_quantities[row->precision], flops);
    if (machine.cache == SCRIPT_FLUSHED)
        machine.cache = SCRIPT_WARM;
    return script_run(&(struct work_done){.kind = kind,
                                          .what = "",
                                          .row = row,
                                          .amount = flops,
                                          .blocks = blocks,
                                          .threads = threads},
                      stream);
}

#define FMA(n)                                                                                     \
    static cudaError_t fma_##n(void *out, int64_t iterations, int blocks, int threads,             \
                               cudaStream_t stream)                                                \
    {                                                                                              \
        return fma_run(&fma_kernels[n], out, iterations, blocks, threads, stream);                 \
    }
FMA(0)
FMA(1)
FMA(2)
FMA(3)
const struct fma_kernel fma_kernels[] = {
    {PRECISION_FP64, fma_0, 1024}, {PRECISION_FP32, fma_1, 512}, {PRECISION_FP16, fma_2, 2048},
    {PRECISION_BF16, fma_3, 2048}, {PRECISION_COUNT, NULL, 0},
};

static cudaError_t tensor_run(const struct tensor_kernel *row, void *out, int64_t iterations,
                              int blocks, cudaStream_t stream)
{
    double flops = row->flops * (double)iterations * blocks;
    assert_true(iterations >= 1 && row->least <= script.capability);
    assert_true(script.capability <= row->most);
    assert_int_equal(blocks, row->blocks * MULTIPROCESSORS);
    script_within(out, (size_t)blocks * (size_t)row->threads * sizeof(float), script.own);
    count(script_tensor_quantities[roof_kinds[row->roof].precision], flops);
    return script_run(&(struct work_done){.kind = roof_kinds[row->roof].name,
                                          .what = row->what,
                                          .row = row,
                                          .amount = flops,
                                          .blocks = blocks,
                                          .threads = row->threads},
                      stream);
}

#define TENSOR(table, n)                                                                           \
    static cudaError_t table##_##n(void *out, int64_t iterations, int blocks, cudaStream_t stream) \
    {                                                                                              \
        return tensor_run(&tensor_##table##kernels[n], out, iterations, blocks, stream);           \
    }
TENSOR(, 0)
TENSOR(, 1)
TENSOR(, 2)
TENSOR(, 3)
TENSOR(, 4)
TENSOR(, 5)
TENSOR(, 6)
TENSOR(, 7)
TENSOR(, 8)
const struct tensor_kernel tensor_kernels[] = {
    {ROOF_FP64_TENSOR_MMA, "m8n8k4", 80, 999, 2, 256, _0, 65536},
    {ROOF_FP64_TENSOR_MMA, "m16n8k16", 90, 999, 1, 512, _1, 65536},
    {ROOF_TF32_TENSOR_MMA, "m16n8k8", 80, 999, 2, 256, _2, 65536},
    {ROOF_FP16_TENSOR_MMA, "m16n8k8", 80, 999, 2, 256, _3, 65536},
    {ROOF_FP16_TENSOR_MMA, "m16n8k16", 80, 999, 1, 256, _4, 131072},
    {ROOF_FP16_TENSOR_MMA, "of an older chip", 70, 75, 1, 256, _5, 131072},
    {ROOF_BF16_TENSOR_MMA, "m16n8k16", 80, 999, 1, 256, _6, 131072},
    {ROOF_FP8_TENSOR_MMA, "m16n8k32", 89, 999, 1, 256, _7, 262144},
    {ROOF_INT8_TENSOR_MMA, "m16n8k32", 80, 999, 1, 256, _8, 262144},
    {0},
};
TENSOR(wgmma_, 0)
TENSOR(wgmma_, 1)
TENSOR(wgmma_, 2)
TENSOR(wgmma_, 3)
TENSOR(wgmma_, 4)
const struct tensor_kernel tensor_wgmma_kernels[] = {
    {ROOF_TF32_TENSOR_WGMMA, "m64n256k8", 90, 90, 1, 256, wgmma__0, 524288},
    {ROOF_FP16_TENSOR_WGMMA, "m64n256k16", 90, 90, 1, 256, wgmma__1, 1048576},
    {ROOF_BF16_TENSOR_WGMMA, "m64n256k16", 90, 90, 1, 256, wgmma__2, 1048576},
    {ROOF_FP8_TENSOR_WGMMA, "m64n256k32", 90, 90, 1, 256, wgmma__3, 2097152},
    {ROOF_INT8_TENSOR_WGMMA, "m64n256k32", 90, 90, 1, 256, wgmma__4, 2097152},
    {0},
};
TENSOR(tcgen05_, 0)
TENSOR(tcgen05_, 1)
TENSOR(tcgen05_, 2)
const struct tensor_kernel tensor_tcgen05_kernels[] = {
    {ROOF_FP16_TENSOR_TCGEN05, "m128n256k16, not swizzled", 100, 100, 1, 128, tcgen05__0, 1048576},
    {ROOF_FP16_TENSOR_TCGEN05, "m128n256k16, swizzled", 100, 100, 1, 128, tcgen05__1, 1048576},
    {ROOF_FP4_TENSOR_TCGEN05, "m128n256k64", 100, 100, 1, 128, tcgen05__2, 4194304},
    {0},
};
