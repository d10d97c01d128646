/* The CBLAS that is there, whichever it is: right, in one thread, and with a name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "worker/cpu/blas.h"

enum { N = 600 };

static double seconds(int who)
{
    struct rusage usage;
    assert_int_equal(getrusage(who, &usage), 0);
    return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
}

/* c = a * b of N x N; all of `a` are 1, and all of a column of `b` are its index. */
static void multiply(double *c)
{
    static double a[N * N], b[N * N];
    for (size_t i = 0; i < N * N; ++i) {
        a[i] = 1;
        b[i] = (double)(i % N);
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
}

static void a_product_is_made_by_the_thread_that_asks(void **state)
{
    (void)state;
    static double c[N * N];
    blas_single_thread();
    multiply(c); /* whatever a library does when it is first called */
    double all = seconds(RUSAGE_SELF), own = seconds(RUSAGE_THREAD);
    for (int i = 0; i < 8; ++i)
        multiply(c);
    all = seconds(RUSAGE_SELF) - all;
    own = seconds(RUSAGE_THREAD) - own;
    assert_true(all <= 1.3 * own + 0.02);
    for (size_t i = 0; i < N * N; ++i)
        assert_true(c[i] == (double)(N * (i % N)));
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
        cmocka_unit_test(a_product_is_made_by_the_thread_that_asks),
        cmocka_unit_test(it_has_a_name_that_ends_in_any_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
