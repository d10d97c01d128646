/* A roof from its samples, and what theory and counters say of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "model/device.h"
#include "model/record.h"

static struct roof roof_of(const char *name)
{
    struct roof roof;
    roof_init(&roof, roof_kind_find(name), ROOF_ALONE);
    return roof;
}

static void kinds_are_told_apart(void **state)
{
    (void)state;
    for (int i = 0; i < ROOF_KINDS; ++i) {
        assert_non_null(roof_kinds[i].name); /* fewer rows than ROOF_KINDS */
        assert_int_equal(roof_kind_find(roof_kinds[i].name), i);
        assert_true(strlen(roof_kinds[i].name) < sizeof((struct roof *)0)->name);
    }
    assert_int_equal(roof_kind_find("dram"), -1);
}

static void requests_choose(void **state)
{
    (void)state;
    const struct roof_request request = {.memory = {[LEVEL_L1] = true},
                                         .compute = {[PRECISION_FP8] = true}};
    static const char *const wanted[] = {"l1 read", "shared read", "fp8 tensor wgmma"};
    static const char *const others[] = {"dram read", "fp16 vector", "launch gap",
                                         "host to device"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i)
        assert_true(roof_requested(&request, roof_kind_find(wanted[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        assert_false(roof_requested(&request, roof_kind_find(others[i])));
}

static void the_best_sample_is_the_value(void **state)
{
    (void)state;
    struct roof roof = roof_of("dram copy");
    double seconds[] = {4.0, 2.0, 7.0, 3.0};
    roof_set_samples(&roof, 12e9, seconds, 4);
    assert_true(roof.bandwidth == 6e9 && roof_value(&roof) == 6e9);
    assert_true(isnan(roof.performance) && isnan(roof.time));
    assert_true(roof.median == 2.0 / 3.5);
    assert_true(roof.mean == 2.0 / 4.0);
    assert_true(roof.spread == 5.0 / 3.5);
    assert_int_equal(roof.samples, 4);
    assert_true(roof_usable(&roof));
}

/* What a launch costs, not its luckiest case. */
static void a_time_is_the_median(void **state)
{
    (void)state;
    struct roof roof = roof_of("launch gap");
    double seconds[] = {4e-3, 1e-3, 2e-3};
    roof_set_samples(&roof, 1000.0, seconds, 3);
    assert_true(fabs(roof.time - 2e-6) < 1e-18);
    assert_true(roof.median == 1.0);
    assert_true(fabs(roof.mean - 7.0 / 6.0) < 1e-12);
}

static void nothing_measured_is_missing(void **state)
{
    (void)state;
    struct roof roof = roof_of("fp32 vector");
    roof_set_samples(&roof, 1e9, NULL, 0);
    roof_judge(&roof);
    assert_true(isnan(roof_value(&roof)));
    assert_false(roof_usable(&roof));
}

/* 2 of 2.2 nominally, but at 80 % of the clock: more than the hardware can do. */
static void theory_is_at_the_measured_clock(void **state)
{
    (void)state;
    struct roof roof = roof_of("fp32 vector");
    double seconds[] = {1.0};
    roof_set_samples(&roof, 2.0, seconds, 1);
    roof_set_theory(&roof, 2.2, 1e9, 0.8e9);
    roof_judge(&roof);
    assert_true(fabs(roof.nominal_fraction - 2.0 / 2.2) < 1e-12);
    assert_true(fabs(roof.clock_fraction - 2.0 / 2.2 / 0.8) < 1e-12);
    assert_int_equal(roof.verdict, ROOF_ABOVE_THEORY);
    assert_false(roof_usable(&roof));
    roof_set_theory(&roof, 2.2, 1e9, NAN); /* no clock: the nominal one */
    roof_judge(&roof);
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);
    roof_set_theory(&roof, NAN, 1e9, 1e9);
    roof_judge(&roof);
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);

    /* The clock fell from 2 to 1 GHz: most samples were within theory at their own clock. */
    double falling[] = {0.5, 0.5, 1.0};
    roof = roof_of("fp32 vector");
    roof_set_samples(&roof, 2.0, falling, 3);
    roof_set_theory(&roof, 4.1, 2e9, 1.5e9);
    roof_judge(&roof);
    assert_true(fabs(roof.nominal_fraction - 4.0 / 4.1) < 1e-12);
    assert_true(fabs(roof.clock_fraction - 3.0 / 4.1 / 0.75) < 1e-12);
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);
}

static void counters_prove_or_contradict(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double dram, l2, l1, flops;
        enum roof_verdict verdict;
    } cases[] = {
        {"dram read", 1.005, NAN, NAN, NAN, ROOF_PROVEN},
        {"dram read", 0.9, 1.0, NAN, NAN, ROOF_CONTRADICTED}, /* a tenth came from the cache */
        {"l2 read", 0.01, 1.0, NAN, NAN, ROOF_PROVEN},
        {"l2 read", 0.5, 1.0, NAN, NAN, ROOF_CONTRADICTED}, /* does not fit */
        {"l2 read", 0.0, 0.4, NAN, NAN, ROOF_CONTRADICTED}, /* L1 answers */
        {"l1 read", 0.0, 0.02, 1.0, NAN, ROOF_PROVEN},
        {"l1 read", 0.0, 0.5, 1.0, NAN, ROOF_CONTRADICTED},
        {"shared read", 0.0, 0.0, 0.01, NAN, ROOF_PROVEN},
        {"shared read", 0.0, 0.0, 1.0, NAN, ROOF_CONTRADICTED}, /* global memory after all */
        {"host to device", NAN, NAN, NAN, NAN, ROOF_UNPROVEN},
        {"fp16 tensor mma", NAN, NAN, NAN, 1.0, ROOF_PROVEN},
        {"fp16 tensor mma", NAN, NAN, NAN, 0.5, ROOF_CONTRADICTED},
        {"fp16 tensor library", NAN, NAN, NAN, 1.016, ROOF_PROVEN}, /* tiles stand out */
        {"fp16 tensor library", NAN, NAN, NAN, 1.1, ROOF_CONTRADICTED},
        {"fp16 tensor mma", NAN, NAN, NAN, NAN, ROOF_UNPROVEN},
        {"launch gap", NAN, NAN, NAN, NAN, ROOF_UNPROVEN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct roof roof = roof_of(cases[i].name);
        roof.bytes_ratio[LEVEL_DRAM] = cases[i].dram;
        roof.bytes_ratio[LEVEL_L2] = cases[i].l2;
        roof.bytes_ratio[LEVEL_L1] = cases[i].l1;
        roof.flops_ratio = cases[i].flops;
        roof_judge(&roof);
        if (roof.verdict != (int64_t)cases[i].verdict)
            fail_msg("case %zu, %s: %s", i, cases[i].name, roof_verdict_name[roof.verdict]);
    }
}

static void add(struct device *device, const char *name, enum roof_condition condition, double time,
                double nominal_fraction)
{
    struct roof roof = roof_of(name);
    roof.condition = condition;
    roof_set_samples(&roof, 1.0, &time, 1);
    roof.nominal_fraction = nominal_fraction;
    roof_judge(&roof);
    device_add_roof(device, &roof);
}

static void peaks_are_the_best_usable_roofs(void **state)
{
    (void)state;
    struct device device;
    device_init(&device);
    add(&device, "dram read", ROOF_ALONE, 0.25, NAN);
    add(&device, "dram write", ROOF_TOGETHER, 0.2, NAN);
    add(&device, "dram copy", ROOF_ALONE, 0.1, 1.2);
    add(&device, "fp16 tensor mma", ROOF_ALONE, 0.5, 0.6);
    add(&device, "fp16 tensor library", ROOF_ALONE, 0.4, 0.7);
    add(&device, "fp16 vector", ROOF_ALONE, 2.0, 0.9);
    add(&device, "launch gap", ROOF_TOGETHER, 3.0, NAN);
    add(&device, "launch gap", ROOF_ALONE, 4.0, NAN);
    add(&device, "shared read", ROOF_ALONE, 0.001, NAN); /* none of the model's levels */
    device_set_peaks(&device);
    assert_true(device.peak_bandwidth[LEVEL_DRAM] == 5.0);
    assert_true(device.peak_tensor[PRECISION_FP16] == 2.5);
    assert_true(device.peak_vector[PRECISION_FP16] == 0.5);
    assert_true(device.launch_overhead == 4.0);
    assert_true(isnan(device.peak_bandwidth[LEVEL_L1]));
    add(&device, "dram write", ROOF_TOGETHER, 0.125, NAN); /* replaces the earlier */
    device_set_peaks(&device);
    assert_true(device.peak_bandwidth[LEVEL_DRAM] == 8.0);
    assert_int_equal(device.roof_count, 9);
}

/* Two ranks on one socket: each alone has all of its memory's bandwidth, together half of it. */
static void a_shared_memory_counts_as_shared(void **state)
{
    (void)state;
    struct device device;
    device_init(&device);
    strcpy(device.kind, "cpu");
    add(&device, "dram read", ROOF_ALONE, 0.25, NAN);
    add(&device, "fp32 vector", ROOF_ALONE, 0.25, NAN);
    device_set_peaks(&device);
    assert_true(device.peak_bandwidth[LEVEL_DRAM] == 4.0);
    add(&device, "dram read", ROOF_TOGETHER, 0.5, NAN);
    add(&device, "fp32 vector", ROOF_TOGETHER, 0.5, NAN);
    device_set_peaks(&device);
    assert_true(device.peak_bandwidth[LEVEL_DRAM] == 2.0);
    assert_true(device.peak_vector[PRECISION_FP32] == 4.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_told_apart),
        cmocka_unit_test(requests_choose),
        cmocka_unit_test(the_best_sample_is_the_value),
        cmocka_unit_test(a_time_is_the_median),
        cmocka_unit_test(nothing_measured_is_missing),
        cmocka_unit_test(theory_is_at_the_measured_clock),
        cmocka_unit_test(counters_prove_or_contradict),
        cmocka_unit_test(peaks_are_the_best_usable_roofs),
        cmocka_unit_test(a_shared_memory_counts_as_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
