/* The time that a memory level needs for a mix of loads and stores. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "results/level_time.h"

/* An L2 as of an H200: loads 9.5, stores 4.9, a triad 12.1. */
static struct device device_of(double read, double write, double best)
{
    struct device device;
    device_init(&device);
    device.read_bandwidth[LEVEL_L2] = read;
    device.write_bandwidth[LEVEL_L2] = write;
    device.peak_bandwidth[LEVEL_L2] = best;
    return device;
}

static void the_longest_counts(void **state)
{
    (void)state;
    static const struct {
        double read_roof, write_roof, best_roof, read, written, all, time, bandwidth;
    } cases[] = {
        {9.5, 4.9, 12.1, 95, 0, 95, 10, 9.5},         {9.5, 4.9, 12.1, 0, 49, 49, 10, 4.9},
        {9.5, 4.9, 12.1, 80.6, 40.4, 121, 10, 12.1},  /* a triad's mix */
        {9.5, 4.9, 12.1, NAN, NAN, 121, 10, 12.1},    /* directions not known */
        {NAN, NAN, 12.1, 95, 0, 95, 95 / 12.1, 12.1}, /* nor measured */
        {9.5, NAN, 9.5, 0, 49, 49, 49 / 9.5, 9.5},    /* stores not */
        {NAN, NAN, NAN, 95, 0, 95, NAN, NAN},         /* no roof: no time */
        {9.5, 4.9, 12.1, NAN, NAN, NAN, NAN, 12.1},   /* no bytes known */
        {9.5, 4.9, 12.1, 0, 0, 0, 0, 12.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct device device =
            device_of(cases[i].read_roof, cases[i].write_roof, cases[i].best_roof);
        const struct level_traffic traffic = {cases[i].read, cases[i].written, cases[i].all};
        double time = level_time(&device, LEVEL_L2, &traffic);
        double bandwidth = level_bandwidth(&device, LEVEL_L2, &traffic);
        bool right = (isnan(time) && isnan(cases[i].time)) || fabs(time - cases[i].time) < 1e-9;
        right &= (isnan(bandwidth) && isnan(cases[i].bandwidth)) ||
                 fabs(bandwidth - cases[i].bandwidth) < 1e-9;
        if (!right)
            fail_msg("case %zu: %g s, %g byte s-1", i, time, bandwidth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_longest_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
