/* Instructions of tensor units on fp16 and bf16, for the tiled kernels. */
#pragma once

#include "element.cuh"
#include "image.cuh"

/* Loads four matrices of 8 x 8; each lane has the address of one row. From each matrix a lane gets
 * two neighbouring elements of row lane / 4, or, transposed, of column lane / 4. */
#define MATRICES_LOAD(name, order)                                                                 \
    static inline __device__ void name(uint32_t *to, uint32_t from)                                \
    {                                                                                              \
        FROM_800(asm volatile("ldmatrix.sync.aligned.m8n8.x4" order                                \
                              ".shared.b16 {%0, %1, %2, %3}, [%4];"                                \
                              : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])                 \
                              : "r"(from)                                                          \
                              : "memory");)                                                        \
    }
MATRICES_LOAD(matrices_load, "")
MATRICES_LOAD(matrices_load_transposed, ".trans")

/* c [16][8] += a [16][16] b [16][8] */
#define MULTIPLY(T, type)                                                                          \
    static inline __device__ void multiply(T, float *c, const uint32_t *a, const uint32_t *b)      \
    {                                                                                              \
        FROM_800(                                                                                  \
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "            \
                         "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"         \
                         : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                          \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));)     \
    }
MULTIPLY(__half, "f16")
MULTIPLY(__nv_bfloat16, "bf16")
