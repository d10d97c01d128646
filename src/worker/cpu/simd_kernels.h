/* Template: the loops of the roofs for one kind of vectors. simd.c defines, and this file
 * undefines, SIMD_NAME(x) (x with the kind's suffix), SIMD_TEXT (the kind's name), SIMD_TARGET (the
 * attribute that lets a function use the instructions), SIMD_BYTES (of a vector), SIMD_FMA_FLOAT
 * and SIMD_FMA_DOUBLE (a * b + c on vectors), SIMD_STREAM (a store that bypasses the caches;
 * undefined if there is none), SIMD_FENCE (waits for these stores), SIMD_CHAINS (accumulators of
 * the FMA loop, enough to cover latency times units, and few enough for the registers) and
 * SIMD_IN_PLACE (1 if a vector FMA overwrites its addend, as ARM's does: a copy would take time on
 * the same units). */

typedef double SIMD_NAME(doubles) __attribute__((vector_size(SIMD_BYTES), may_alias));
typedef float SIMD_NAME(floats) __attribute__((vector_size(SIMD_BYTES), may_alias));

/* Eight vectors for each iteration. The barrier prevents the compiler from calling memcpy, from
 * hoisting loads out of the repetitions, and from reordering addresses. */
#define SIMD_BARRIER() __asm__ volatile("" : : : "memory")
#define SIMD_SWEEP(name, statement)                                                                \
    SIMD_TARGET static void SIMD_NAME(name)(const struct simd_arrays *arrays, size_t bytes,        \
                                            int64_t repeat)                                        \
    {                                                                                              \
        typedef SIMD_NAME(doubles) vector;                                                         \
        vector *a = arrays->a;                                                                     \
        const vector *b = arrays->b, *c = arrays->c;                                               \
        vector s = arrays->scale - (vector){0};                                                    \
        (void)b, (void)c, (void)s;                                                                 \
        for (int64_t pass = 0; pass < repeat; ++pass)                                              \
            for (size_t i = 0; i < bytes / sizeof(vector); i += 8)                                 \
                _Pragma("GCC unroll 8") for (size_t j = i; j < i + 8; ++j)                         \
                {                                                                                  \
                    statement;                                                                     \
                    SIMD_BARRIER();                                                                \
                }                                                                                  \
        SIMD_FENCE();                                                                              \
    }
SIMD_SWEEP(write, a[j] = s)
SIMD_SWEEP(copy, a[j] = b[j])
SIMD_SWEEP(triad, a[j] = SIMD_FMA_DOUBLE(s, c[j], b[j]))
#ifdef SIMD_STREAM
SIMD_SWEEP(write_stream, SIMD_STREAM(a + j, s))
SIMD_SWEEP(copy_stream, SIMD_STREAM(a + j, b[j]))
SIMD_SWEEP(triad_stream, SIMD_STREAM(a + j, SIMD_FMA_DOUBLE(s, c[j], b[j])))
#define SIMD_STREAMED(name) SIMD_NAME(name)
#else
#define SIMD_STREAMED(name) NULL
#endif
#undef SIMD_SWEEP

/* Alternates between both halves of the array, which keeps more prefetchers busy. */
SIMD_TARGET static void SIMD_NAME(read)(const struct simd_arrays *arrays, size_t bytes,
                                        int64_t repeat)
{
    typedef SIMD_NAME(doubles) vector;
    const vector *a = arrays->a;
    const size_t half = bytes / sizeof(vector) / 2;
    vector low[4] = {{0}}, high[4] = {{0}}, total = {0};
    for (int64_t pass = 0; pass < repeat; ++pass)
        for (size_t i = 0; i < half; i += 4) {
#pragma GCC unroll 4
            for (size_t j = 0; j < 4; ++j)
                low[j] += a[i + j];
            SIMD_BARRIER();
#pragma GCC unroll 4
            for (size_t j = 0; j < 4; ++j)
                high[j] += a[half + i + j];
            SIMD_BARRIER();
        }
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j)
        total += low[j] + high[j];
    *arrays->result = total[0];
}

/* x = x * m + a with m slightly above -1: x alternates between two values for much longer than a
 * sample, so bits change. In place, x = x * m + x with m slightly above -2 alternates around 0. */
#define SIMD_FMA(name, type, fma)                                                                  \
    SIMD_TARGET static void SIMD_NAME(name)(double seed, int64_t iterations, double *result)       \
    {                                                                                              \
        typedef SIMD_NAME(type) vector;                                                            \
        vector x[SIMD_CHAINS], total = {0}, m, a;                                                  \
        enum { LANES = sizeof(vector) / sizeof m[0] };                                             \
        m = (__typeof__(m[0]))(seed - 1.0 - SIMD_IN_PLACE) - total;                                \
        a = (__typeof__(a[0]))(1.0 + seed) - total;                                                \
        for (int j = 0; j < SIMD_CHAINS; ++j)                                                      \
            for (int lane = 0; lane < LANES; ++lane)                                               \
                x[j][lane] = (__typeof__(m[0]))(2.0 + (j * LANES + lane) * 0.7e-3);                \
        for (int64_t i = 0; i < iterations; ++i)                                                   \
            _Pragma("GCC unroll 32") for (int j = 0; j < SIMD_CHAINS; ++j) x[j] =                  \
                fma(x[j], m, SIMD_IN_PLACE ? x[j] : a);                                            \
        _Pragma("GCC unroll 32") for (int j = 0; j < SIMD_CHAINS; ++j) total += x[j];              \
        *result = (double)total[0];                                                                \
    }
SIMD_FMA(fma_fp64, doubles, SIMD_FMA_DOUBLE)
SIMD_FMA(fma_fp32, floats, SIMD_FMA_FLOAT)
#undef SIMD_FMA

static const struct simd SIMD_NAME(simd) = {
    .name = SIMD_TEXT,
    .patterns =
        {
            [PATTERN_READ] = {1, 1, SIMD_NAME(read), NULL},
            [PATTERN_WRITE] = {1, 1, SIMD_NAME(write), SIMD_STREAMED(write_stream)},
            [PATTERN_COPY] = {2, 2, SIMD_NAME(copy), SIMD_STREAMED(copy_stream)},
            [PATTERN_TRIAD] = {3, 3, SIMD_NAME(triad), SIMD_STREAMED(triad_stream)},
        },
    /* Programs convert to fp32 if the CPU has no 16-bit instructions. */
    .fma = {[PRECISION_FP64] = SIMD_NAME(fma_fp64),
            [PRECISION_FP32] = SIMD_NAME(fma_fp32),
            [PRECISION_FP16] = SIMD_NAME(fma_fp32),
            [PRECISION_BF16] = SIMD_NAME(fma_fp32)},
    .chains = SIMD_CHAINS,
    .flops = {[PRECISION_FP64] = 2.0 * SIMD_CHAINS * (SIMD_BYTES / sizeof(double)),
              [PRECISION_FP32] = 2.0 * SIMD_CHAINS * (SIMD_BYTES / sizeof(float)),
              [PRECISION_FP16] = 2.0 * SIMD_CHAINS * (SIMD_BYTES / sizeof(float)),
              [PRECISION_BF16] = 2.0 * SIMD_CHAINS * (SIMD_BYTES / sizeof(float))},
};

#undef SIMD_NAME
#undef SIMD_TEXT
#undef SIMD_TARGET
#undef SIMD_BYTES
#undef SIMD_CHAINS
#undef SIMD_FMA_FLOAT
#undef SIMD_FMA_DOUBLE
#undef SIMD_IN_PLACE
#undef SIMD_BARRIER
#undef SIMD_STREAM
#undef SIMD_STREAMED
#undef SIMD_FENCE
