/* The CBLAS that is there, whichever it is: right, wherever a part of a product lies, and with a name. */
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "worker/cpu/blas.h"

enum { M = 5, N = 7, K = 3, LEADING = 9 };

static double number(const void *data, bool wide, int64_t index)
{
    return wide ? ((const double *)data)[index] : (double)((const float *)data)[index];
}

static void number_set(void *data, bool wide, int64_t index, double value)
{
    if (wide)
        ((double *)data)[index] = value;
    else
        ((float *)data)[index] = (float)value;
}

/* Small integers: exact in both precisions. */
static void products_are_right(void **state)
{
    (void)state;
    static double a[LEADING * LEADING], b[LEADING * LEADING], c[LEADING * LEADING];
    blas_single_thread();
    for (int variant = 0; variant < 32; ++variant) {
        const bool wide = variant & 1, shared = variant & 16;
        const struct product product = {wide, variant & 2, variant & 4, variant & 8, M, N, K, a, b,
                                        c,    LEADING,     LEADING,     LEADING};
        for (int i = 0; i < LEADING * LEADING; ++i) {
            number_set(a, wide, i, i % 11);
            number_set(b, wide, i, i % 13);
            number_set(c, wide, i, 1.0);
        }
        if (shared)
#pragma omp parallel num_threads(3)
            blas_multiply_shared(&product);
        else
            for (int64_t column = 0; column < N; ++column)
                blas_multiply(&product, 1, M - 1, column, 1);
        for (int i = shared ? 0 : 1; i < M; ++i)
            for (int j = 0; j < N; ++j) {
                double sum = product.adds ? 1.0 : 0.0;
                for (int k = 0; k < K; ++k)
                    sum += (product.a_transposed ? k * LEADING + i : i * LEADING + k) % 11 *
                           ((product.b_transposed ? j * LEADING + k : k * LEADING + j) % 13);
                if (number(c, wide, i * LEADING + j) != sum)
                    fail_msg("variant %d: c[%d][%d]", variant, i, j);
            }
    }
}

static void it_has_a_name_that_ends_in_any_room(void **state)
{
    (void)state;
    char text[64], part[8];
    blas_describe(text, sizeof text);
    assert_true(strlen(text) > 3);
    memset(part, 'x', sizeof part);
    blas_describe(part, 4);
    assert_int_equal(strlen(part), 3);
    assert_memory_equal(part, text, 3);
    assert_int_equal(part[4], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(it_has_a_name_that_ends_in_any_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
