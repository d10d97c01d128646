#include "kernels.h"

/* It advances in steps of up to a microsecond. That is fine enough for a delay. */
__device__ static uint64_t global_time(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ static void wait_until_over(uint64_t nanoseconds)
{
    uint64_t begin = global_time();
    while (global_time() - begin < nanoseconds)
        ;
}

/* Each look goes to the host's memory. The thread sleeps in between, so that the bus is not full of them. */
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

cudaError_t kernel_hold(const volatile uint64_t *released, uint64_t ticket, double limit,
                        cudaStream_t stream)
{
    wait_until_released<<<1, 1, 0, stream>>>(released, ticket, (uint64_t)(1e9 * limit));
    return cudaGetLastError();
}
