/* Template: the two loops for one kind of vectors in one precision. loops.c defines LOOP_REAL
 * (float or double), LOOP_NAME(x) (x with the suffixes of kind and precision), LOOP_TARGET (the
 * attribute that lets a function use the instructions), LOOP_BYTES (of a vector) and LOOP_CHAINS
 * (vectors in flight, enough to cover latency times units). This file undefines LOOP_REAL. */

typedef LOOP_REAL LOOP_NAME(vector) __attribute__((vector_size(LOOP_BYTES)));

/* Keeps one block of values in registers. An iteration is two steps: the factors alternate. */
LOOP_TARGET static void LOOP_NAME(compute_block)(const struct part *part,
                                                 LOOP_NAME(vector) * values)
{
    LOOP_NAME(vector) v[LOOP_CHAINS], x[LOOP_CHAINS];
    const LOOP_REAL even = (LOOP_REAL)part->even, odd = (LOOP_REAL)part->odd;
#pragma GCC unroll 16
    for (int i = 0; i < LOOP_CHAINS; ++i)
        v[i] = x[i] = values[i];
    for (int64_t step = 0; step < part->steps / 2; ++step) {
#pragma GCC unroll 16
        for (int i = 0; i < LOOP_CHAINS; ++i)
            v[i] = even * v[i] + x[i];
#pragma GCC unroll 16
        for (int i = 0; i < LOOP_CHAINS; ++i)
            v[i] = odd * v[i] + x[i];
    }
    if (part->steps % 2 != 0)
#pragma GCC unroll 16
        for (int i = 0; i < LOOP_CHAINS; ++i)
            v[i] = even * v[i] + x[i];
#pragma GCC unroll 16
    for (int i = 0; i < LOOP_CHAINS; ++i)
        values[i] = v[i];
}

LOOP_TARGET static void LOOP_NAME(compute)(const struct part *part)
{
    LOOP_NAME(vector) block[LOOP_CHAINS] = {{0}};
    const int64_t most = LOOP_CHAINS * LOOP_BYTES / (int64_t)sizeof(LOOP_REAL);
    const LOOP_REAL *x = part->x;
    LOOP_REAL *y = part->y;
    for (int64_t first = 0; first < part->count; first += most) {
        int64_t count = part->count - first < most ? part->count - first : most;
        memcpy(block, x + first, (size_t)count * sizeof *x);
        LOOP_NAME(compute_block)(part, block);
        memcpy(y + first, block, (size_t)count * sizeof *y);
    }
}

/* Copies the first value behind the last, so that each value has a neighbour. */
LOOP_TARGET static void LOOP_NAME(shared_step)(int64_t tile, LOOP_REAL factor,
                                               const LOOP_REAL *restrict x,
                                               const LOOP_REAL *restrict from,
                                               LOOP_REAL *restrict to)
{
#pragma omp simd
    for (int64_t i = 0; i < tile; ++i)
        to[i] = factor * from[i + 1] + x[i];
    to[tile] = to[0];
}

LOOP_TARGET static void LOOP_NAME(shared)(const struct part *part)
{
    LOOP_REAL values[2][LOOP_TILE_MAX + 64 / sizeof(LOOP_REAL)] __attribute__((aligned(64)));
    const LOOP_REAL factors[2] = {(LOOP_REAL)part->even, (LOOP_REAL)part->odd};
    size_t bytes = (size_t)part->tile * sizeof(LOOP_REAL);
    for (int64_t i = 0; i < part->count; ++i) {
        const LOOP_REAL *x = (const LOOP_REAL *)part->x + i * part->tile;
        memcpy(values[0], x, bytes);
        values[0][part->tile] = x[0];
        for (int64_t step = 0; step < part->steps; ++step)
            LOOP_NAME(shared_step)
        (part->tile, factors[step % 2], x, values[step % 2], values[(step + 1) % 2]);
        memcpy((LOOP_REAL *)part->y + i * part->tile, values[part->steps % 2], bytes);
    }
}

#undef LOOP_REAL
