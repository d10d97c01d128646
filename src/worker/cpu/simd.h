/* Loops that move data or multiply and add as fast as this CPU's vectors can, in one thread. The
 * program holds them for all kinds of vectors and asks the CPU at run time, so it needs no special
 * build. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/roof_kind.h"

struct simd_arrays {
    void *a;           /* read: the source; else the destination */
    const void *b, *c; /* sources: copy reads b, triad b + scale * c */
    double scale;
    double *result; /* read writes part of its sum here, so that the compiler keeps the loads */
};

/* `repeat` passes over arrays of `bytes` each, a multiple of SIMD_BLOCK, aligned to 64. */
typedef void simd_sweep(const struct simd_arrays *arrays, size_t bytes, int64_t repeat);
enum { SIMD_BLOCK = 512 };

struct simd_pattern {
    int arrays;                 /* how many it uses */
    int moved;                  /* bytes that a pass reads and writes: moved * bytes */
    simd_sweep *plain, *stream; /* stream: stores past the caches; NULL: there is no such thing */
};

/* `iterations` of a multiply-add in each chain; 0 < seed << 1. *result: part of the
 * sum of all chains. */
typedef void simd_fma(double seed, int64_t iterations, double *result);

struct simd {
    const char *name; /* "avx512", ... */
    struct simd_pattern
        patterns[PATTERN_COUNT];    /* by enum memory_pattern; without PATTERN_ATOMIC */
    simd_fma *fma[PRECISION_COUNT]; /* NULL: none */
    int chains;
    double flops[PRECISION_COUNT]; /* of one iteration */
};

/* Those that this CPU has, the widest first. The widest is mostly, not always, the fastest: wide
 * vectors may lower the clock. Returns how many; at least one. */
enum { SIMD_KINDS = 2 };
int simd_list(const struct simd *list[SIMD_KINDS]);
/* Those of them that have chains in this precision: of fp32 and fp64 all, of bf16 a kind of its
 * own, which has no patterns. None where the CPU has no instructions for it. */
int simd_products(enum precision precision, const struct simd *list[SIMD_KINDS]);
const char *simd_name(void); /* of the widest */
