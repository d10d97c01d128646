/* Tests kernels of roofs and of timing. Copies and triads are right to the last byte, and write
 * nothing beyond. Sums of matrix products stay near their first values, so that they never
 * overflow. The blocking kernel ends when it is released, or at its time limit. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/kernels.h"

enum { GUARD = 4096, BYTES_MAX = 4096 * 1031, SKIPPED = 77 };

static int failures;

static void fail(const char *name, const char *what, const char *problem)
{
    fprintf(stderr, "FAIL: %s, %s: %s\n", name, what, problem);
    ++failures;
}

static bool ran(const char *name, const char *what, cudaError_t code)
{
    if (code == cudaSuccess)
        code = cudaDeviceSynchronize();
    if (code != cudaSuccess)
        fail(name, what, cudaGetErrorString(code));
    return code == cudaSuccess;
}

static float b_at(size_t i)
{
    return (float)(i % 8191) / 8192.0f - 0.5f;
}

static float c_at(size_t i)
{
    return 0.25f - (float)(i % 4099) / 8192.0f;
}

/* Returns the expected a[i] after `repeat` passes of the kernel. */
static float expected(enum memory_pattern pattern, size_t i, int repeat)
{
    const float s = 0.40625f;
    if (pattern == PATTERN_ATOMIC)
        return (float)repeat * s;
    if (pattern == PATTERN_COPY)
        return b_at(i);
    return pattern == PATTERN_TRIAD ? fmaf(s, c_at(i), b_at(i)) : s;
}

static void check_memory(const struct memory_kernel *row, float *const device[3], float *host,
                         size_t bytes, int repeat, int blocks, int threads)
{
    char what[160];
    size_t count = bytes / sizeof(float);
    snprintf(what, sizeof what, "%s, %zu bytes, %d times, %d blocks of %d threads", row->what,
             bytes, repeat, blocks, threads);
    cudaMemset(device[0], 0xff, BYTES_MAX + GUARD); /* NaN */
    if (row->pattern == PATTERN_ATOMIC)
        cudaMemset(device[0], 0, bytes);
    cudaError_t code =
        row->launch(device[0], device[1], device[2], bytes, repeat, blocks, threads, NULL);
    if (code == cudaErrorNoKernelImageForDevice ||
        !ran(memory_pattern_name[row->pattern], what, code))
        return;
    cudaMemcpy(host, device[0], bytes + GUARD, cudaMemcpyDeviceToHost);
    bool writes = row->pattern != PATTERN_READ;
    for (size_t i = 0; writes && i < count; ++i)
        if (!(fabsf(host[i] - expected(row->pattern, i, repeat)) <= 1e-6f)) {
            fail(memory_pattern_name[row->pattern], what, "a wrong value");
            return;
        }
    for (size_t i = writes ? count : 0; i < count + GUARD / sizeof(float); ++i)
        if (!isnan(host[i])) {
            fail(memory_pattern_name[row->pattern], what, "it writes where it must not");
            return;
        }
}

static void check_memories(void)
{
    static const size_t sizes[] = {4096, (size_t)4096 * 37, BYTES_MAX};
    float *device[3], *host = malloc(BYTES_MAX + GUARD);
    for (int i = 0; i < 3; ++i)
        cudaMalloc((void **)&device[i], BYTES_MAX + GUARD);
    for (int array = 1; array < 3; ++array) {
        for (size_t i = 0; i < BYTES_MAX / sizeof(float); ++i)
            host[i] = array == 1 ? b_at(i) : c_at(i);
        cudaMemcpy(device[array], host, BYTES_MAX, cudaMemcpyHostToDevice);
    }
    for (const struct memory_kernel *row = memory_kernels; row->launch; ++row)
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 8; ++j)
                check_memory(row, device, host, sizes[i], j % 2 ? 3 : 1, j / 2 % 2 ? 5 : 0,
                             j / 4 ? 1024 : 128);
    for (int i = 0; i < 3; ++i)
        cudaFree(device[i]);
    free(host);
}

/* Signs alternate, so that totals stay below some hundreds; otherwise they would exceed 1e5 in the
 * longest run. Integers wrap around. */
static void check_sums(const char *name, const char *what, const float *device, size_t count)
{
    const float most = strncmp(name, "int8", 4) == 0 ? INFINITY : 1e4f;
    float *host = malloc(count * sizeof *host);
    size_t same = 0;
    cudaMemcpy(host, device, count * sizeof *host, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < count; ++i) {
        same += host[i] == host[0];
        if (!(fabsf(host[i]) < most)) {
            fail(name, what, "a sum is far from where it began");
            break;
        }
    }
    if (same == count)
        fail(name, what, "all sums are the same");
    free(host);
}

static void check_tensor(const struct tensor_kernel *row, int multiprocessors)
{
    static const int64_t iterations[] = {0, 1, 20000};
    int blocks = row->blocks * multiprocessors;
    size_t count = (size_t)blocks * (size_t)row->threads;
    float *out;
    cudaMalloc((void **)&out, count * sizeof *out);
    for (int i = 0; i < 3; ++i) {
        cudaMemset(out, 0xff, count * sizeof *out);
        cudaError_t code = row->launch(out, iterations[i], blocks, NULL);
        if (code != cudaErrorNoKernelImageForDevice &&
            ran(roof_kinds[row->roof].name, row->what, code))
            check_sums(roof_kinds[row->roof].name, row->what, out, count);
    }
    cudaFree(out);
}

static void check_tensors(const struct tensor_kernel *rows, int capability, int multiprocessors)
{
    for (; rows->launch; ++rows)
        if (capability >= rows->least && capability <= rows->most)
            check_tensor(rows, multiprocessors);
}

static void check_onchip(int multiprocessors)
{
    const size_t bytes = 32768;
    const int blocks = 2 * multiprocessors;
    void *data;
    cudaMalloc(&data, bytes * (size_t)blocks);
    cudaMemset(data, 0x5a, bytes * (size_t)blocks);
    for (const struct onchip_kernel *row = onchip_kernels; row->launch; ++row)
        ran(roof_kinds[row->roof].name, "32 KiB", row->launch(data, bytes, 100, blocks, 512, NULL));
    cudaFree(data);
}

/* Launches the blocking kernel, and returns the time from launch to end in s. An event after the
 * kernel must be pending until the kernel is released, or until the limit. */
static double block_time(const char *what, volatile uint64_t *word, uint64_t ticket, double limit,
                         bool release)
{
    const double later = 5e-3; /* s */
    cudaEvent_t after;
    cudaEventCreate(&after);
    double begin = clock_monotonic();
    cudaError_t code = kernel_block(word, ticket, limit, NULL);
    cudaEventRecord(after, NULL);
    clock_sleep(later);
    if (*word < ticket && cudaEventQuery(after) != cudaErrorNotReady)
        fail("block", what, "it does not block");
    (void)cudaGetLastError(); /* clears "not ready" */
    if (release)
        *word = ticket;
    ran("block", what, code);
    double time = clock_monotonic() - begin;
    cudaEventDestroy(after);
    return time;
}

/* All launches of the blocking kernel use the same word in memory, whose value only grows. */
static void check_block(void)
{
    const double limit = 0.2, patience = 10.0; /* s */
    void *memory;
    if (!ran("block", "its memory", cudaHostAlloc(&memory, sizeof(uint64_t), cudaHostAllocMapped)))
        return;
    volatile uint64_t *word = memory;
    *word = 0;
    block_time("a first launch loads it", word, 0, patience, false);
    for (uint64_t ticket = 1; ticket <= 3; ++ticket) {
        if (block_time("released", word, ticket, patience, true) >= patience / 2)
            fail("block", "released", "it goes on to its limit");
        double time = block_time("never released", word, ticket + 1, limit, false);
        if (!(time >= 0.99 * limit && time < patience / 2))
            fail("block", "never released", "it does not end at its limit");
    }
    if (block_time("released before", word, 2, patience, false) >= patience / 2)
        fail("block", "released before", "it blocks all the same");
    cudaFreeHost(memory);
}

/* The chain visits all lines: its period divides their number, a power of two, and does not divide
 * half of it. */
static void check_chase(void)
{
    enum { LINES = 1024, LINE = CHASE_LANES * sizeof(uint64_t) };
    const int64_t loads[] = {0, LINES / 2, LINES / 2};
    uint64_t *words, places[3] = {0};
    cudaMalloc((void **)&words, (LINES + 1) * LINE);
    uint64_t *place = words + LINES * CHASE_LANES;
    ran("chase", "chain", kernel_chain(words, LINES, NULL));
    for (int i = 0; i < 3; ++i)
        if (ran("chase", "global memory", kernel_chase(false, place, loads[i], NULL)))
            cudaMemcpy(&places[i], place + 3, sizeof places[i], cudaMemcpyDeviceToHost);
    if (places[0] != places[2] || places[0] == places[1])
        fail("chase", "global memory", "it does not visit each line once");
    ran("chase", "shared memory", kernel_chase(true, place, LINES, NULL));
    cudaFree(words);
}

int main(void)
{
    struct cudaDeviceProp device;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        puts("no GPU");
        return SKIPPED;
    }
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess)
        return 1;
    int capability = 10 * device.major + device.minor;
    check_block();
    check_memories();
    check_tensors(tensor_kernels, capability, device.multiProcessorCount);
#ifdef ROOFSWEEP_WGMMA
    check_tensors(tensor_wgmma_kernels, capability, device.multiProcessorCount);
#endif
#ifdef ROOFSWEEP_TCGEN05
    check_tensors(tensor_tcgen05_kernels, capability, device.multiProcessorCount);
#endif
    check_onchip(device.multiProcessorCount);
    check_chase();
    printf("%d failures\n", failures);
    return failures > 0;
}
