/* Thread block clusters, of 9.0 and later, in the words of PTX. Before 9.0 every block is a cluster
 * of its own. */
#pragma once

#include <stdint.h>

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

__device__ static inline int cluster_blocks()
{
    int count;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(count));
    return count;
}

/* This block's number in its cluster. */
__device__ static inline int cluster_rank()
{
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Stores into the shared memory of a block of the cluster, where this one has `here`. */
__device__ static inline void cluster_store(uint32_t *here, int rank, uint32_t value)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"((uint32_t)__cvta_generic_to_shared(here)), "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(value) : "memory");
}

/* A barrier of all threads of the cluster in two parts: what was stored before `arrive` is seen
 * after `wait`. */
__device__ static inline void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ static inline void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

#else

__device__ static inline int cluster_blocks()
{
    return 1;
}
__device__ static inline int cluster_rank()
{
    return 0;
}
__device__ static inline void cluster_store(uint32_t *here, int, uint32_t value)
{
    *here = value;
}
__device__ static inline void cluster_arrive()
{
}
__device__ static inline void cluster_wait()
{
    __syncthreads();
}

#endif
