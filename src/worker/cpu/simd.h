/* Loops of one thread that move data, or multiply and add, at the full speed of the vectors. The
 * program has loops for all kinds of vectors, and detects the CPU at run time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/roof_kind.h"

struct simd_arrays {
    void *a;           /* source of a read; destination of the other patterns */
    const void *b, *c; /* sources: a copy stores b, a triad b + scale * c */
    double scale;
    double *result; /* for part of a read's sum, so that the compiler keeps the loads */
};

/* Makes `repeat` passes over arrays of `bytes` each, a multiple of SIMD_BLOCK, aligned to 64. */
typedef void simd_sweep(const struct simd_arrays *arrays, size_t bytes, int64_t repeat);
enum { SIMD_BLOCK = 512 };

struct simd_pattern {
    int arrays;                 /* number of arrays that a pass uses */
    int moved;                  /* a pass reads and writes moved * bytes */
    simd_sweep *plain, *stream; /* stream: stores bypass the caches; NULL: none */
};

/* Makes `iterations` multiply-adds in each chain; 0 < seed << 1. *result: part of their sum. */
typedef void simd_fma(double seed, int64_t iterations, double *result);

struct simd {
    const char *name; /* "avx512", ... */
    struct simd_pattern
        patterns[PATTERN_COUNT];    /* by enum memory_pattern; without PATTERN_ATOMIC */
    simd_fma *fma[PRECISION_COUNT]; /* NULL: none */
    int chains;
    double flops[PRECISION_COUNT]; /* FLOPs of one iteration */
};

/* Lists the kinds of vectors of this CPU, the widest first, which is not always the fastest,
 * because wide vectors may lower the clock. Returns the count, at least one. */
enum { SIMD_KINDS = 2 };
int simd_list(const struct simd *list[SIMD_KINDS]);
/* Lists the kinds with chains in this precision: all kinds, if the CPU computes in fp64 or fp32, or
 * in fp32 for bf16 and fp16; with AVX512-BF16 a kind for bf16 alone. Returns the count; 0: this
 * program has no chains with the CPU's instructions for the precision. */
int simd_products(enum precision precision, const struct simd *list[SIMD_KINDS]);
const char *simd_name(void); /* the widest kind */
