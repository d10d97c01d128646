/* The CUDA worker's roofs, on a scripted H200 (scripted_cuda.h): what is sustained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/clock.h"
#include "scripted_bench.h"
#include "scripted_cuda.h"
#include "tuned.h"

static struct roof measure_sustained(const char *name, double start)
{
    const struct roof_order order = {.start = start, .sustained = true};
    struct roof roof;
    struct error error;
    roof_init(&roof, kind_of(name), ROOF_ALONE);
    assert_int_equal(roofs_measure(bench.roofs, kind_of(name), &order, &roof, &error), STATUS_OK);
    return roof;
}

/* A window at the burst's clock is enough: nothing limits it. */
static void a_settled_clock_is_sustained_soon(void **state)
{
    (void)state;
    tune_all(false);
    struct roof roof = measure_sustained("fp16 tensor wgmma", 0.0);
    assert_near(roof.sustained, script.rate[kind_of("fp16 tensor wgmma")]);
    assert_near(roof.sustained_clock, script.sm_clock);
    assert_near(roof.sustained_power, 700.0);
    assert_int_equal(roof.settled, 1);
    assert_true(roof.settling_time > 0.1 && roof.settling_time < 0.15);
    assert_true(isnan(measure("fp16 tensor wgmma").sustained)); /* nobody asked for it */
    assert_true(isnan(measure_sustained("l2 read", 0.0).sustained));
    assert_true(isnan(measure_sustained("launch gap", 0.0).sustained));
}

/* After the bursts of all: its own is not measured again. */
static void what_is_sustained_comes_by_itself(void **state)
{
    (void)state;
    const struct roof_order order = {.sustained = true, .only_sustained = true};
    const int compute = kind_of("fp16 tensor wgmma"), memory = kind_of("dram read");
    struct roof roof;
    struct error error;
    tune_all(false);
    roof_init(&roof, compute, ROOF_TOGETHER);
    assert_int_equal(roofs_measure(bench.roofs, compute, &order, &roof, &error), STATUS_OK);
    assert_near(roof.sustained, script.rate[compute]);
    assert_int_equal(roof.settled, 1);
    assert_true(isnan(roof_value(&roof)) && isnan(roof.sm_clock));
    assert_int_equal(roof.samples, FIELD_MISSING);
    roof_init(&roof, memory, ROOF_TOGETHER); /* of other kinds it says nothing */
    assert_int_equal(roofs_measure(bench.roofs, memory, &order, &roof, &error), STATUS_OK);
    assert_near(roof_value(&roof), script.rate[memory]);
}

/* A clock that holds with more than the power limit will fall. */
static void beyond_the_power_limit_nothing_settles(void **state)
{
    (void)state;
    tune_all(false);
    bench.gpu.power_limit = 650.0; /* the script's sensor says 700 */
    struct roof roof = measure_sustained("fp16 tensor wgmma", 0.0);
    assert_int_equal(roof.settled, 0);
    assert_near(roof.sustained_power, 700.0);
    assert_true(roof.settling_time > 1.9);
    bench.gpu.power_limit = NAN;
    assert_int_equal(measure_sustained("fp16 tensor wgmma", 0.0).settled, 1);
}

/* In steps of 1/32 of L2. */
static void a_cache_holds_less_than_it_has(void **state)
{
    (void)state;
    const double l2 = (double)bench.gpu.l2_bytes;
    tune_all(false);
    double set = measure_sustained("l2 read", 0.0).working_set;
    assert_true(set <= SCRIPT_REACH * l2 && set > (SCRIPT_REACH - 1.0 / 32.0) * l2);
    assert_true(isnan(measure("l2 read").working_set)); /* nobody asked for it */
    assert_true(isnan(measure_sustained("l2 write", 0.0).working_set));
    assert_true(isnan(measure_sustained("dram read", 0.0).working_set));
    assert_true(isnan(measure_sustained("l1 read", 0.0).working_set));
}

/* The clock of the burst, high, and then one that is `low` of it, and rises with a time constant, s. */
static struct roof sustain_low(double low, double rises_in)
{
    const int kind = kind_of("fp16 tensor wgmma");
    const struct roof_order order = {.sustained = true, .only_sustained = true};
    struct roof roof;
    struct error error;
    script.falls_by = 0.0;
    measure("fp16 tensor wgmma");
    script.falls_by = low - 1.0;
    script.falls_from = script_device_time();
    script.falls_in = rises_in;
    roof_init(&roof, kind, ROOF_ALONE);
    assert_int_equal(roofs_measure(bench.roofs, kind, &order, &roof, &error), STATUS_OK);
    return roof;
}

/* The power goes by the clock: 700 W at all of it. */
static void a_clock_that_is_held_down_settles_late(void **state)
{
    (void)state;
    const double forever = 1e6;
    tune_all(false);
    bench.gpu.power_limit = 0.9 * 700.0; /* the clock is what that allows */
    struct roof roof = sustain_low(0.9, forever);
    assert_int_equal(roof.settled, 1);
    assert_true(roof.settling_time > 0.25 && roof.settling_time < 0.35);
    assert_near(roof.sustained_clock, 0.9 * script.sm_clock);
    bench.gpu.power_limit = 800.0; /* it holds still for a second: something else limits it */
    roof = sustain_low(0.9, forever);
    assert_int_equal(roof.settled, 1);
    assert_true(roof.settling_time > 0.95 && roof.settling_time < 1.3);
    roof = sustain_low(0.5, 2.0); /* it has fallen, and rises all the time */
    assert_int_equal(roof.settled, 0);
    assert_true(roof.settling_time > 1.9 && roof.settling_time < 2.2);
}

/* The limit is kept on the average: a load draws more for a while, and then less. */
static void what_swings_about_the_limit_is_averaged(void **state)
{
    (void)state;
    tune_all(false);
    script.swings_by = 0.08;
    script.swings_in = 1.0;
    struct roof roof = measure_sustained("fp16 tensor wgmma", 0.0);
    assert_int_equal(roof.settled, 1);
    assert_true(roof.settling_time > 0.25 && roof.settling_time < 1.2);
    assert_true(fabs(roof.sustained_clock / script.sm_clock - 1.0) < 0.025);
    assert_true(fabs(roof.sustained_power / 700.0 - 1.0) < 0.025);
}

/* The clock falls by a fifth: the burst has the high one, sustained is taken once it has fallen. For
 * each cycle both are then another figure here, since the script's rate does not go by the clock. */
static void sustained_comes_after_the_fall(void **state)
{
    (void)state;
    const double high = 1.25, slow = 30.0, quick = 0.3;
    tune_all(false);
    script.falls_by = high - 1.0;
    script.falls_from = script_device_time();
    script.falls_in = quick;
    struct roof roof = measure_sustained("fp16 tensor wgmma", clock_epoch() + 0.015);
    assert_true(roof.sm_clock > 1.2 * script.sm_clock);
    assert_true(fabs(roof.sustained_clock / script.sm_clock - 1.0) < 0.02);
    assert_int_equal(roof.settled, 1);
    assert_true(roof.settling_time > 0.5 && roof.settling_time < 1.8);

    script.falls_by = 10.0; /* still falling by 1 % in a window when the time runs out */
    script.falls_from = script_device_time();
    script.falls_in = slow / 10.0;
    roof = measure_sustained("fp16 tensor wgmma", 0.0);
    assert_int_equal(roof.settled, 0);
    assert_true(roof.settling_time >= 1.9 && roof.settling_time < 2.2);
}

/* Of compute: a longer load before it would bring the clock down. */
static void a_burst_begins_cool(void **state)
{
    (void)state;
    tune_all(false);
    double busy = script.busy;
    measure_sustained("fp16 tensor wgmma", clock_epoch() + 0.5);
    busy = script.busy - busy;
    assert_true(busy > 0.1 && busy < 0.2); /* the window, not the half second before */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_settled_clock_is_sustained_soon),      TEST(what_is_sustained_comes_by_itself),
        TEST(beyond_the_power_limit_nothing_settles), TEST(a_cache_holds_less_than_it_has),
        TEST(a_clock_that_is_held_down_settles_late), TEST(what_swings_about_the_limit_is_averaged),
        TEST(sustained_comes_after_the_fall),         TEST(a_burst_begins_cool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
