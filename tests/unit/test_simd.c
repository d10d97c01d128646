/* The loops behind the CPU's roofs do what their names say, for all vectors that this CPU has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "worker/cpu/simd.h"

enum { COUNT = 2 * SIMD_BLOCK / sizeof(double) };

static double a[COUNT] __attribute__((aligned(64)));
static double b[COUNT] __attribute__((aligned(64)));
static double c[COUNT] __attribute__((aligned(64)));

static double expected(enum memory_pattern pattern, size_t i, double scale)
{
    if (pattern == PATTERN_WRITE)
        return scale;
    if (pattern == PATTERN_COPY)
        return b[i];
    if (pattern == PATTERN_TRIAD)
        return b[i] + scale * c[i];
    return -1.0; /* read: as it was */
}

static void check_sweep(enum memory_pattern pattern, simd_sweep *sweep)
{
    double result = 0.0;
    const struct simd_arrays arrays = {a, b, c, 0.5, &result};
    for (size_t i = 0; i < COUNT; ++i) {
        a[i] = -1.0;
        b[i] = (double)i;
        c[i] = (double)(4 * i);
    }
    sweep(&arrays, sizeof a, 3);
    for (size_t i = 0; i < COUNT; ++i)
        if (a[i] != expected(pattern, i, 0.5))
            fail_msg("%s: element %zu is %g", memory_pattern_name[pattern], i, a[i]);
    if (pattern == PATTERN_READ)
        assert_true(result < 0.0 && -result * 2.0 <= 3.0 * COUNT); /* one lane's share */
}

static void sweeps_move_what_they_say(void **state)
{
    (void)state;
    const struct simd *kinds[SIMD_KINDS];
    int count = simd_list(kinds);
    assert_true(count >= 1);
    for (int kind = 0; kind < count; ++kind)
        for (int i = 0; i < PATTERN_COUNT; ++i) {
            const struct simd_pattern *pattern = &kinds[kind]->patterns[i];
            assert_int_equal(pattern->plain == NULL, i == PATTERN_ATOMIC); /* a GPU's alone */
            if (!pattern->plain)
                continue;
            check_sweep((enum memory_pattern)i, pattern->plain);
            if (pattern->stream)
                check_sweep((enum memory_pattern)i, pattern->stream);
        }
}

static double fma_result(simd_fma *fma, int64_t iterations)
{
    double result = NAN;
    fma(0x1p-20, iterations, &result);
    return result;
}

/* Every value has two places to be at, and is still swinging after thousands of steps. */
static void chains_swing(void **state)
{
    (void)state;
    const struct simd *kinds[SIMD_KINDS];
    for (int precision = 0; precision < PRECISION_COUNT; ++precision)
        for (int kind = simd_products((enum precision)precision, kinds) - 1; kind >= 0; --kind) {
            simd_fma *fma = kinds[kind]->fma[precision];
            if (!fma)
                continue;
            double even = fma_result(fma, 10000), odd = fma_result(fma, 10001);
            assert_true(isfinite(even) && fabs(even - odd) > kinds[kind]->chains);
            assert_true(fabs(even - fma_result(fma, 10002)) < 0.01 * fabs(even - odd));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sweeps_move_what_they_say),
        cmocka_unit_test(chains_swing),
    };
    return cmocka_run_group_tests_name("simd", tests, NULL, NULL);
}
