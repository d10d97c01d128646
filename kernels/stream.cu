#include "kernels.h"

/* ---- time ---- */

/* Returns the device's time in ns. The timer advances in steps of up to a microsecond. */
__device__ static uint64_t global_time(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Stores the cycles and the time of a multiprocessor in one access, so that both come from the same
 * block if several blocks run on the multiprocessor. */
static __global__ void stamp(ulonglong2 *stamps)
{
    unsigned multiprocessor;
    ulonglong2 now;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    now.x = (unsigned long long)clock64();
    now.y = global_time();
    if (multiprocessor < CLOCK_STAMPS)
        stamps[multiprocessor] = now;
}

cudaError_t kernel_clock(struct clock_stamp *stamps, int blocks, cudaStream_t stream)
{
    stamp<<<blocks, 1, 0, stream>>>((ulonglong2 *)stamps);
    return cudaGetLastError();
}

/* ---- waiting ---- */

__global__ static void wait_until_over(uint64_t nanoseconds)
{
    uint64_t begin = global_time();
    while (global_time() - begin < nanoseconds)
        ;
}

/* Each poll reads host memory. The thread sleeps in between, so that polls do not fill the bus. */
__global__ static void wait_until_released(const volatile uint64_t *released, uint64_t ticket,
                                           uint64_t nanoseconds)
{
    const unsigned nap = 500; /* ns */
    uint64_t begin = global_time();
    while (*released < ticket && global_time() - begin < nanoseconds)
        __nanosleep(nap);
}

cudaError_t kernel_delay(double seconds, cudaStream_t stream)
{
    wait_until_over<<<1, 1, 0, stream>>>((uint64_t)(1e9 * seconds));
    return cudaGetLastError();
}

cudaError_t kernel_block(const volatile uint64_t *released, uint64_t ticket, double limit,
                         cudaStream_t stream)
{
    wait_until_released<<<1, 1, 0, stream>>>(released, ticket, (uint64_t)(1e9 * limit));
    return cudaGetLastError();
}

/* ---- launches ---- */

__global__ void empty(void)
{
}

cudaError_t kernel_empty(cudaStream_t stream)
{
    empty<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

/* Two kernels alternate, as in the steps of a network. A single kernel might start faster, because
 * its code and arguments would still be in the caches from the last launch. */
__global__ static void link_there(float *y, const float *x, float scale, float shift, int count)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        y[i] = scale * x[i] + shift;
}

__global__ static void link_back(float *x, const float *y, float shift, float scale, int count)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        x[i] = (y[i] - shift) * scale;
}

/* Factors are powers of two, so that two kernels together restore x exactly. */
cudaError_t kernel_link(int number, float *x, float *y, int count, cudaStream_t stream)
{
    const int threads = 128, blocks = (count + threads - 1) / threads;
    if (number % 2 == 0)
        link_there<<<blocks, threads, 0, stream>>>(y, x, 0.5f, 0.25f, count);
    else
        link_back<<<blocks, threads, 0, stream>>>(x, y, 0.25f, 2.0f, count);
    return cudaGetLastError();
}
