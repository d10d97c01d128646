#include "worker/cpu/simd.h"

#define SIMD_PASTE(name, suffix) name##_##suffix

#if defined __x86_64__
#include <immintrin.h>

#define SIMD_NAME(name)         SIMD_PASTE(name, avx512)
#define SIMD_TEXT               "avx512"
#define SIMD_TARGET             __attribute__((target("avx512f")))
#define SIMD_BYTES              64
#define SIMD_CHAINS             24
#define SIMD_FMA_FLOAT          _mm512_fmadd_ps
#define SIMD_FMA_DOUBLE         _mm512_fmadd_pd
#define SIMD_IN_PLACE           0
#define SIMD_STREAM(pointer, v) _mm512_stream_pd((double *)(pointer), v)
#define SIMD_FENCE()            _mm_sfence()
#include "worker/cpu/simd_kernels.h"

#define SIMD_NAME(name)         SIMD_PASTE(name, avx2)
#define SIMD_TEXT               "avx2"
#define SIMD_TARGET             __attribute__((target("avx2,fma")))
#define SIMD_BYTES              32
#define SIMD_CHAINS             12
#define SIMD_FMA_FLOAT          _mm256_fmadd_ps
#define SIMD_FMA_DOUBLE         _mm256_fmadd_pd
#define SIMD_IN_PLACE           0
#define SIMD_STREAM(pointer, v) _mm256_stream_pd((double *)(pointer), v)
#define SIMD_FENCE()            _mm_sfence()
#include "worker/cpu/simd_kernels.h"

#define SIMD_NAME(name) SIMD_PASTE(name, sse2)
#define SIMD_TEXT       "sse2"
#define SIMD_TARGET
#define SIMD_BYTES               16
#define SIMD_CHAINS              12
#define SIMD_FMA_FLOAT(a, b, c)  ((a) * (b) + (c))
#define SIMD_FMA_DOUBLE(a, b, c) ((a) * (b) + (c))
#define SIMD_IN_PLACE            0
#define SIMD_STREAM(pointer, v)  _mm_stream_pd((double *)(pointer), v)
#define SIMD_FENCE()             _mm_sfence()
#include "worker/cpu/simd_kernels.h"

/* The bf16 instruction adds two products to an fp32 sum. Each sum alternates between two values,
 * because the sign of the products alternates. */
__attribute__((target("avx512f,avx512bf16"))) static void fma_bf16(double seed, int64_t iterations,
                                                                   double *result)
{
    enum { CHAINS = 24, LANES = 16 };
    typedef float floats __attribute__((vector_size(64), may_alias));
    const __m512i signs = _mm512_set1_epi16((short)0x8000);
    floats x[CHAINS], a = {0}, total = {0};
    for (int lane = 0; lane < LANES; ++lane)
        a[lane] = (float)(1.0 + seed + lane * 0.03);
    __m512bh factor = _mm512_cvtne2ps_pbh((__m512)a, (__m512)(a * 0.7F)), other = factor;
    for (int j = 0; j < CHAINS; ++j)
        for (int lane = 0; lane < LANES; ++lane)
            x[j][lane] = (float)(2.0 + (j * LANES + lane) * 0.7e-3);
    for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 32
        for (int j = 0; j < CHAINS; ++j)
            x[j] = (floats)_mm512_dpbf16_ps((__m512)x[j], factor, other);
        other = (__m512bh)_mm512_xor_si512((__m512i)other, signs);
    }
#pragma GCC unroll 32
    for (int j = 0; j < CHAINS; ++j)
        total += x[j];
    *result = (double)total[0];
}

static const struct simd simd_avx512_bf16 = {
    .name = "avx512_bf16",
    .fma = {[PRECISION_BF16] = fma_bf16},
    .chains = 24,
    .flops = {[PRECISION_BF16] = 24 * 16 * 4.0},
};

int simd_products(enum precision precision, const struct simd *list[SIMD_KINDS])
{
    if (precision == PRECISION_FP16 && __builtin_cpu_supports("avx512fp16"))
        return 0; /* this file has no chains with these instructions */
    if (precision != PRECISION_BF16 || !__builtin_cpu_supports("avx512bf16"))
        return simd_list(list);
    list[0] = &simd_avx512_bf16;
    return 1;
}

int simd_list(const struct simd *list[SIMD_KINDS])
{
    int count = 0;
    if (__builtin_cpu_supports("avx512f"))
        list[count++] = &simd_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        list[count++] = &simd_avx2;
    if (count == 0)
        list[count++] = &simd_sse2;
    return count;
}

#else

/* All other 64-bit processors have 16-byte vectors; CMakeLists.txt lets the compiler fuse
 * multiply-adds. No store bypasses the caches: ARM's cores detect writes of whole lines, and STNP
 * is only a hint. */
#if defined __aarch64__
#define SIMD_TEXT "neon"
#else
#define SIMD_TEXT "generic"
#endif
#define SIMD_NAME(name) SIMD_PASTE(name, base)
#define SIMD_TARGET
#define SIMD_BYTES               16
#define SIMD_CHAINS              24
#define SIMD_FMA_FLOAT(a, b, c)  ((a) * (b) + (c))
#define SIMD_FMA_DOUBLE(a, b, c) ((a) * (b) + (c))
#define SIMD_IN_PLACE            1
#define SIMD_FENCE()             ((void)0)
#include "worker/cpu/simd_kernels.h"

int simd_products(enum precision precision, const struct simd *list[SIMD_KINDS])
{
    const bool narrow = precision == PRECISION_BF16 || precision == PRECISION_FP16;
    return narrow ? 0 : simd_list(list); /* this file has no chains with ARM's own instructions */
}

int simd_list(const struct simd *list[SIMD_KINDS])
{
    list[0] = &simd_base;
    return 1;
}

#endif

const char *simd_name(void)
{
    const struct simd *list[SIMD_KINDS];
    simd_list(list);
    return list[0]->name;
}
