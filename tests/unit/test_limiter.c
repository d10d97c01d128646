/* What limits a row, from shares of its time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/limiter.h"

static void the_largest_part_limits(void **state)
{
    (void)state;
    static const struct {
        struct limiter_shares shares; /* compute, bandwidth, gap, host, few_blocks */
        enum limiter limiter;
    } rows[] = {
        {{0.69, 0.30, 0.03, 0.2, 1}, LIMITER_COMPUTE},
        {{0.30, 0.69, 0.03, 0.2, 1}, LIMITER_BANDWIDTH},
        {{0.10, 0.05, 0.55, 0.9, 1}, LIMITER_OVERHEAD},
        {{0.10, 0.05, 0.55, 1.1, 1}, LIMITER_HOST},
        {{0.69, 0.30, 0.03, 1.1, 1}, LIMITER_HOST},
        {{0.10, 0.05, 0.20, 0.9, 1}, LIMITER_LATENCY},
        {{0.10, 0.05, 0.35, 0.9, 0.9}, LIMITER_LATENCY},  /* the rest is 0.55 */
        {{0.20, 0.05, 0.42, 0.9, 0.9}, LIMITER_OVERHEAD}, /* the rest is 0.38 */
        {{0.20, 0.05, 0.42, 0.9, 0.1}, LIMITER_OVERHEAD},
        {{0.05, 0.10, 0.20, 0.9, 0.4}, LIMITER_KERNEL}, /* they had enough to do */
        {{0.49, 0.10, 0.10, 0.9, 0.4}, LIMITER_COMPUTE},
        {{0, 0.9, 0.05, 0.1, 0}, LIMITER_BANDWIDTH},
        {{0.6, 0.2, 0.1, NAN, NAN}, LIMITER_COMPUTE}, /* as on a CPU */
        {{0.3, 0.2, 0.1, NAN, NAN}, LIMITER_UNKNOWN},
        {{NAN, 0.6, 0.1, 0.2, 0}, LIMITER_UNKNOWN}, /* FLOPs may take longer still */
        {{NAN, 0.4, 0.1, 0.2, 0}, LIMITER_UNKNOWN},
        {{0.6, NAN, NAN, NAN, NAN}, LIMITER_UNKNOWN},
        {{0.6, 0.3, NAN, NAN, NAN}, LIMITER_COMPUTE},
        {{0.3, 0.4, NAN, NAN, 0}, LIMITER_UNKNOWN},
        {{0.3, NAN, 0.55, NAN, NAN}, LIMITER_OVERHEAD},
        {{NAN, NAN, 0.6, NAN, NAN}, LIMITER_OVERHEAD},
        {{NAN, NAN, NAN, 1.5, NAN}, LIMITER_HOST},
        {{NAN, NAN, NAN, NAN, NAN}, LIMITER_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (limiter_of(&rows[i].shares) != rows[i].limiter)
            fail_msg("row %zu: %s", i, limiter_name[limiter_of(&rows[i].shares)]);
}

static void the_evidence_names_every_share(void **state)
{
    (void)state;
    const struct limiter_shares shares = {0.587, NAN, 0.031, 1.813, 1};
    char text[LIMITER_TEXT];
    limiter_evidence(&shares, "dram", text);
    assert_string_equal(text, "of the time: FLOPs at their roofs 58.7 %, bytes at the roof of dram "
                              "unknown, idle between kernels 3.1 %, host 181.3 %; of the kernels' "
                              "time without enough parallelism: 100.0 %");
    limiter_evidence(&shares, "", text);
    assert_non_null(strstr(text, "of no level unknown"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_part_limits),
        cmocka_unit_test(the_evidence_names_every_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
