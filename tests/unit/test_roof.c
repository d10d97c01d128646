/* Roofs from samples, theory and counters; peaks of devices; the time-based Roofline. */

#include "unit.h"

#include <math.h>
#include <string.h>

#include "model/device.h"
#include "model/roofline.h"

static struct roof roof_of(enum roof_id id)
{
    struct roof roof;
    roof_init(&roof, id, ROOF_ALONE);
    return roof;
}

TEST(kinds_have_distinct_names)
{
    for (int i = 0; i < ROOF_KINDS; ++i) {
        assert_non_null(roof_kinds[i].name); /* an id without a row in the table */
        assert_int_equal(roof_kind_find(roof_kinds[i].name), i);
        assert_string_equal(roof_kind_name(i), roof_kinds[i].name);
        assert_true(strlen(roof_kinds[i].name) < sizeof((struct word *)0)->other);
    }
    assert_int_equal(roof_kind_find("dram"), -1);
    assert_null(roof_kind_name(ROOF_KINDS));
    assert_null(roof_kind_name(-1));
}

TEST(requests_select_roofs)
{
    const struct roof_request request = {.memory = {[LEVEL_L1] = true},
                                         .compute = {[PRECISION_FP8] = true}};
    static const enum roof_id wanted[] = {ROOF_L1_READ, ROOF_SHARED_READ, ROOF_FP8_TENSOR_WGMMA};
    static const enum roof_id others[] = {ROOF_DRAM_READ, ROOF_FP16_VECTOR, ROOF_LAUNCH_GAP,
                                          ROOF_HOST_TO_DEVICE};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i)
        assert_true(roof_requested(&request, wanted[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        assert_false(roof_requested(&request, others[i]));
}

TEST(the_best_sample_is_the_value)
{
    struct roof roof = roof_of(ROOF_DRAM_COPY);
    double seconds[] = {4.0, 2.0, 7.0, 3.0};
    roof_set_samples(&roof, 12e9, seconds, 4);
    assert_true(roof.bandwidth == 6e9 && roof_value(&roof) == 6e9);
    assert_true(isnan(roof.performance) && isnan(roof.time));
    assert_true(roof.median == 2.0 / 3.5);
    assert_true(roof.mean == 2.0 / 4.0);
    assert_true(roof.spread == 5.0 / 3.5);
    assert_true(roof_disturbance(&roof) == 1); /* a mean of 4 s */
    assert_int_equal(roof.samples, 4);
    assert_true(roof_usable(&roof));
}

/* The median counts, because the fastest launch is luck. */
TEST(a_time_is_the_median)
{
    struct roof roof = roof_of(ROOF_LAUNCH_GAP);
    double seconds[] = {4e-3, 1e-3, 2e-3};
    roof_set_samples(&roof, 1000.0, seconds, 3);
    assert_true(fabs(roof.time - 2e-6) < 1e-18);
    assert_true(roof.median == 1.0);
    assert_true(fabs(roof.mean - 7.0 / 6.0) < 1e-12);
}

TEST(nothing_measured_is_missing)
{
    struct roof roof = roof_of(ROOF_FP32_VECTOR);
    roof_set_samples(&roof, 1e9, NULL, 0);
    roof_judge(&roof);
    assert_true(isnan(roof_value(&roof)));
    assert_false(roof_usable(&roof));
}

/* A value of 2 is within its theory of 2.2 at the nominal clock, but above its theory at 80 % of
 * that clock. */
TEST(theory_is_at_the_measured_clock)
{
    struct roof roof = roof_of(ROOF_FP32_VECTOR);
    double seconds[] = {1.0};
    roof_set_samples(&roof, 2.0, seconds, 1);
    roof_set_theory(&roof, 2.2, 1e9, 0.8e9);
    roof_judge(&roof);
    assert_true(fabs(roof.nominal_fraction - 2.0 / 2.2) < 1e-12);
    assert_true(fabs(roof.clock_fraction - 2.0 / 2.2 / 0.8) < 1e-12);
    assert_int_equal(roof.verdict, ROOF_ABOVE_THEORY);
    assert_false(roof_usable(&roof));
    roof_set_theory(&roof, 2.2, 1e9, NAN); /* no clock: nominal */
    roof_judge(&roof);
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);
    roof_set_theory(&roof, NAN, 1e9, 1e9);
    roof_judge(&roof);
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);

    /* The clock fell from 2 to 1 GHz: most samples were within theory at their own clock. */
    double falling[] = {0.5, 0.5, 1.0};
    roof = roof_of(ROOF_FP32_VECTOR);
    roof_set_samples(&roof, 2.0, falling, 3);
    roof_set_theory(&roof, 4.1, 2e9, 1.5e9);
    roof_judge(&roof);
    assert_true(fabs(roof.nominal_fraction - 4.0 / 4.1) < 1e-12);
    assert_true(fabs(roof.clock_fraction - 3.0 / 4.1 / 0.75) < 1e-12);
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);
}

/* Values above theory are errors to investigate; values far above theory, and zeros, are damage. */
TEST(far_from_theory_is_refused)
{
    static const struct {
        double bandwidth;
        int64_t verdict;
        const char *says; /* NULL: valid */
    } cases[] = {{1.5e12, ROOF_ABOVE_THEORY, NULL},
                 {1.5e13, ROOF_PROVEN, "'dram read' is 1.5e+13"},
                 {0, ROOF_PROVEN, "'bandwidth' is 0"},
                 {1e300, ROOF_PROVEN, "'bandwidth' is 1e+300"},
                 {1e12, FIELD_MISSING, "without 'verdict'"}};
    struct device device;
    device_init(&device);
    device.theory_bandwidth[LEVEL_DRAM] = 1e12;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct roof roof = roof_of(ROOF_DRAM_READ);
        roof.bandwidth = cases[i].bandwidth;
        roof.verdict = cases[i].verdict;
        if (cases[i].says)
            assert_fails(device_check_roof(&device, &roof, &failure), STATUS_SYSTEM, cases[i].says);
        else
            assert_ok(device_check_roof(&device, &roof, &failure));
    }
}

TEST(counters_prove_or_contradict)
{
    static const struct {
        enum roof_id id;
        double dram, l2, l1, flops;
        enum roof_verdict verdict;
    } cases[] = {
        {ROOF_DRAM_READ, 1.005, NAN, NAN, NAN, ROOF_PROVEN},
        {ROOF_DRAM_READ, 0.9, 1.0, NAN, NAN, ROOF_CONTRADICTED}, /* a tenth came from the cache */
        {ROOF_L2_READ, 0.01, 1.0, NAN, NAN, ROOF_PROVEN},
        {ROOF_L2_READ, 0.5, 1.0, NAN, NAN, ROOF_CONTRADICTED}, /* the working set exceeds L2 */
        {ROOF_L2_READ, 0.0, 0.4, NAN, NAN, ROOF_CONTRADICTED}, /* L1 answers */
        {ROOF_L1_READ, 0.0, 0.02, 1.0, NAN, ROOF_PROVEN},
        {ROOF_L1_READ, 0.0, 0.5, 1.0, NAN, ROOF_CONTRADICTED},
        {ROOF_SHARED_READ, 0.0, 0.0, 0.01, NAN, ROOF_PROVEN},
        {ROOF_SHARED_READ, 0.0, 0.0, 1.0, NAN, ROOF_CONTRADICTED}, /* global memory instead */
        {ROOF_DRAM_LATENCY, 1.033, 1.0, NAN, NAN, ROOF_PROVEN},    /* page tables are read, too */
        {ROOF_DRAM_LATENCY, 0.96, 1.0, NAN, NAN, ROOF_CONTRADICTED},
        {ROOF_L2_LATENCY, 0.01, 1.0, NAN, NAN, ROOF_PROVEN},
        {ROOF_L2_LATENCY, 1.0, 1.0, NAN, NAN, ROOF_CONTRADICTED}, /* the chain leaves L2 */
        {ROOF_SHARED_LATENCY, 0.0, 0.0, 0.0, NAN, ROOF_PROVEN},
        {ROOF_HOST_TO_DEVICE, NAN, NAN, NAN, NAN, ROOF_UNPROVEN},
        {ROOF_FP16_TENSOR_MMA, NAN, NAN, NAN, 1.0, ROOF_PROVEN},
        {ROOF_FP16_TENSOR_MMA, NAN, NAN, NAN, 0.5, ROOF_CONTRADICTED},
        {ROOF_FP16_TENSOR_LIBRARY, NAN, NAN, NAN, 1.016, ROOF_PROVEN}, /* tiles exceed the matrix */
        {ROOF_FP16_TENSOR_LIBRARY, NAN, NAN, NAN, 1.1, ROOF_CONTRADICTED},
        {ROOF_FP16_TENSOR_MMA, NAN, NAN, NAN, NAN, ROOF_UNPROVEN},
        {ROOF_LAUNCH_GAP, NAN, NAN, NAN, NAN, ROOF_UNPROVEN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct roof roof = roof_of(cases[i].id);
        roof.bytes_ratio[LEVEL_DRAM] = cases[i].dram;
        roof.bytes_ratio[LEVEL_L2] = cases[i].l2;
        roof.bytes_ratio[LEVEL_L1] = cases[i].l1;
        roof.flops_ratio = cases[i].flops;
        roof_judge(&roof);
        if (roof.verdict != (int64_t)cases[i].verdict)
            fail_msg("case %zu, %s: %s", i, roof_name(&roof), roof_verdict_name[roof.verdict]);
    }
}

static void add(struct device *device, enum roof_id id, enum roof_condition condition, double time,
                double nominal_fraction)
{
    struct roof roof = roof_of(id);
    roof.condition = condition;
    roof_set_samples(&roof, 1.0, &time, 1);
    roof.nominal_fraction = nominal_fraction;
    roof_judge(&roof);
    device_add_roof(device, &roof);
}

TEST(peaks_are_the_best_usable_roofs)
{
    struct device device;
    device_init(&device);
    add(&device, ROOF_DRAM_READ, ROOF_ALONE, 0.25, NAN);
    add(&device, ROOF_DRAM_WRITE, ROOF_TOGETHER, 0.2, NAN);
    add(&device, ROOF_DRAM_COPY, ROOF_ALONE, 0.1, 1.2);
    add(&device, ROOF_FP16_TENSOR_MMA, ROOF_ALONE, 0.5, 0.6);
    add(&device, ROOF_FP16_TENSOR_LIBRARY, ROOF_ALONE, 0.4, 0.7);
    add(&device, ROOF_FP16_VECTOR, ROOF_ALONE, 2.0, 0.9);
    add(&device, ROOF_LAUNCH_GAP, ROOF_TOGETHER, 3.0, NAN);
    add(&device, ROOF_LAUNCH_GAP, ROOF_ALONE, 4.0, NAN);
    add(&device, ROOF_SHARED_READ, ROOF_ALONE, 0.001, NAN); /* outside the model's levels */
    add(&device, ROOF_L1_LATENCY, ROOF_ALONE, 16e-9, NAN);
    add(&device, ROOF_L1_LATENCY, ROOF_TOGETHER, 17e-9, NAN);
    device_set_peaks(&device);
    assert_true(device.peak_bandwidth[LEVEL_DRAM] == 5.0);
    assert_true(device.peak_tensor[PRECISION_FP16] == 2.5);
    assert_true(device.peak_vector[PRECISION_FP16] == 0.5);
    assert_true(device.launch_overhead == 4.0);
    assert_true(isnan(device.peak_bandwidth[LEVEL_L1]) && device.latency[LEVEL_L1] == 16e-9);
    add(&device, ROOF_DRAM_WRITE, ROOF_TOGETHER, 0.125, NAN); /* replaces the earlier roof */
    device_set_peaks(&device);
    assert_true(device.peak_bandwidth[LEVEL_DRAM] == 8.0);
    assert_int_equal(device.roof_count, 11);
}

static struct roof compute_roof(enum roof_id id, double time, double clock, double sustained)
{
    struct roof roof = roof_of(id);
    double seconds[] = {time, 2.0 * time};
    roof_set_samples(&roof, 1.0, seconds, 2);
    roof.sm_clock = clock;
    roof.sustained = sustained;
    roof.sustained_clock = 4.0 * clock; /* fewer FLOPs per cycle than the burst */
    return roof;
}

/* A roof at a low clock may have the most FLOPs per cycle. The fastest pattern is a level's peak.
 */
TEST(peaks_by_cycle_and_pattern)
{
    struct device device;
    device_init(&device);
    const struct roof fast = compute_roof(ROOF_FP16_TENSOR_MMA, 0.25, 3.0, 2.0);
    const struct roof cool = compute_roof(ROOF_FP16_TENSOR_LIBRARY, 0.5, 1.0, 2.25);
    assert_true(fabs(roof_per_cycle(&fast) - 8.0 / 9.0) < 1e-12); /* 2 in 0.75 s at 3 Hz */
    assert_true(fabs(roof_per_cycle(&cool) - 4.0 / 3.0) < 1e-12);
    struct roof warm = fast;
    warm.sustained_clock = 1.5; /* more FLOPs per cycle */
    assert_true(fabs(roof_per_cycle(&warm) - 4.0 / 3.0) < 1e-12);
    device_add_roof(&device, &fast);
    device_add_roof(&device, &cool);
    add(&device, ROOF_L2_READ, ROOF_ALONE, 0.1, NAN);
    add(&device, ROOF_L2_WRITE, ROOF_ALONE, 0.2, NAN);
    add(&device, ROOF_L2_TRIAD, ROOF_ALONE, 0.08, NAN);
    device_set_peaks(&device);
    assert_true(device.peak_tensor[PRECISION_FP16] == 4.0);
    assert_true(device.cycle_tensor[PRECISION_FP16] == roof_per_cycle(&cool));
    assert_true(isnan(device.cycle_vector[PRECISION_FP16]));
    assert_true(device.peak_bandwidth[LEVEL_L2] == 12.5);
}

/* Sustained rates are measured after all bursts and added to their roofs. */
TEST(sustained_rates_are_added)
{
    struct device device;
    device_init(&device);
    struct roof burst = compute_roof(ROOF_FP16_TENSOR_MMA, 0.25, 3.0, NAN), later, other;
    roof_init(&later, ROOF_FP16_TENSOR_MMA, (enum roof_condition)burst.condition);
    later.sustained = 2.5;
    later.sustained_clock = 2.0;
    later.sustained_power = 700.0;
    later.settling_time = 0.5;
    later.settled = 1;
    later.energy = 6e-13;
    other = later;
    other.condition = burst.condition == ROOF_ALONE ? ROOF_TOGETHER : ROOF_ALONE;
    device_add_roof(&device, &burst);
    device_sustain_roof(&device, &other); /* no such roof */
    assert_int_equal(device.roof_count, 1);
    assert_true(isnan(device.roofs[0].sustained));
    device_sustain_roof(&device, &later);
    assert_int_equal(device.roof_count, 1);
    struct roof expected = burst;
    roof_sustain(&expected, &later);
    assert_memory_equal(&device.roofs[0], &expected, sizeof expected);
    assert_true(expected.sustained == 2.5 && expected.sustained_clock == 2.0);
    assert_true(expected.sustained_power == 700.0 && expected.settling_time == 0.5);
    assert_true(expected.energy == 6e-13);
    assert_true(expected.settled == 1 && expected.performance == burst.performance);
}

/* The order of display does not depend on the order of measurement. */
TEST(roofs_have_an_order)
{
    static const struct {
        enum roof_id id;
        enum roof_condition condition;
    } expected[] = {{ROOF_DRAM_READ, ROOF_ALONE},
                    {ROOF_FP64_VECTOR, ROOF_ALONE},
                    {ROOF_LAUNCH_GAP, ROOF_ALONE},
                    {ROOF_DRAM_READ, ROOF_TOGETHER},
                    {ROOF_LAUNCH_GAP, ROOF_TOGETHER}};
    static const int measured[] = {2, 3, 0, 4, 1};
    struct device device;
    device_init(&device);
    for (size_t i = 0; i < sizeof measured / sizeof *measured; ++i)
        add(&device, expected[measured[i]].id, expected[measured[i]].condition, 1.0, NAN);
    device_order_roofs(&device);
    for (int i = 0; i < device.roof_count; ++i) {
        assert_int_equal(device.roofs[i].kind.index, expected[i].id);
        assert_int_equal(device.roofs[i].condition, expected[i].condition);
    }
    assert_int_equal(device.roof_count, 5);
}

/* Two ranks on one socket: each alone has the memory's whole bandwidth; together each has half. */
TEST(shared_memory_counts_together)
{
    struct device device;
    device_init(&device);
    strcpy(device.kind, "cpu");
    add(&device, ROOF_DRAM_READ, ROOF_ALONE, 0.25, NAN);
    add(&device, ROOF_FP32_VECTOR, ROOF_ALONE, 0.25, NAN);
    device_set_peaks(&device);
    assert_true(device.peak_bandwidth[LEVEL_DRAM] == 4.0);
    add(&device, ROOF_DRAM_READ, ROOF_TOGETHER, 0.5, NAN);
    add(&device, ROOF_FP32_VECTOR, ROOF_TOGETHER, 0.5, NAN);
    device_set_peaks(&device);
    assert_true(device.peak_bandwidth[LEVEL_DRAM] == 2.0);
    assert_true(device.peak_vector[PRECISION_FP32] == 4.0);
}

TEST(a_cache_slower_than_memory_is_contradicted)
{
    struct device device;
    device_init(&device);
    add(&device, ROOF_DRAM_READ, ROOF_ALONE, 0.25, NAN);
    add(&device, ROOF_L3_READ, ROOF_ALONE, 0.5, NAN);
    add(&device, ROOF_L2_READ, ROOF_ALONE, 0.4, NAN);    /* slower than memory alone */
    add(&device, ROOF_L1_READ, ROOF_ALONE, 0.26, NAN);   /* within 5 % of memory */
    add(&device, ROOF_L3_WRITE, ROOF_ALONE, 0.5, NAN);   /* another pattern */
    add(&device, ROOF_L3_READ, ROOF_TOGETHER, 0.5, NAN); /* another condition */
    device_set_peaks(&device);
    static const enum roof_verdict expected[] = {ROOF_UNPROVEN,     ROOF_CONTRADICTED,
                                                 ROOF_CONTRADICTED, ROOF_UNPROVEN,
                                                 ROOF_UNPROVEN,     ROOF_UNPROVEN};
    for (int i = 0; i < device.roof_count; ++i)
        assert_int_equal(device.roofs[i].verdict, expected[i]);
    assert_true(isnan(device.peak_bandwidth[LEVEL_L2]));
}

/* An unknown kind of another version keeps its name and is not used. */
TEST(an_unknown_kind_is_kept)
{
    struct device device, again;
    device_init(&device);
    add(&device, ROOF_DRAM_READ, ROOF_ALONE, 0.25, NAN);
    add(&device, ROOF_DRAM_READ, ROOF_TOGETHER, 0.5, NAN);
    json_t *object = device_encode(&device);
    json_t *roofs = json_object_get(object, "roofs");
    json_object_set_new(json_array_get(roofs, 0), "name", json_string("l9 read"));
    char *text = json_dumps(object, JSON_COMPACT);
    assert_ok(device_decode(json_text_of(text), &again, &failure));
    free(text);
    const struct roof *unknown = &again.roofs[0];
    assert_int_equal(again.roof_count, 2);
    assert_string_equal(roof_name(unknown), "l9 read");
    assert_null(roof_kind_of(unknown));
    assert_true(isnan(roof_value(unknown)) && unknown->bandwidth == 4.0);
    assert_false(roof_usable(unknown));
    device_set_peaks(&again);
    assert_true(again.peak_bandwidth[LEVEL_DRAM] == 2.0);

    struct roof other = *unknown;
    device_add_roof(&again, &other); /* replaces `unknown` */
    assert_int_equal(again.roof_count, 2);
    word_set(&other.kind, roof_kind_name, "l8 read");
    device_add_roof(&again, &other); /* adds a roof */
    assert_int_equal(again.roof_count, 3);
    --again.roof_count;
    json_t *written = device_encode(&again);
    json_object_del(object, "peak_bandwidth"); /* set by device_set_peaks only */
    json_object_del(written, "peak_bandwidth");
    assert_true(json_equal(written, object));
    json_decref(written);
    json_decref(object);
}

/* ---- the time-based Roofline ---- */

#define assert_near(value, expected, relative)                                                     \
    assert_true(fabs((value) - (expected)) <= (relative)*fabs((double)(expected)))

/* The paper's V100: tensor peak, HBM bandwidth and launch overhead. */
static const struct roofline_roofs v100 = {107.479e12, 828.8e9, 4.2e-6};

/* NaN equals NaN only. */
static bool alike(double value, double expected)
{
    return isnan(expected) || expected == 0 || isinf(expected)
               ? value == expected || (isnan(value) && isnan(expected))
               : fabs(value / expected - 1) <= 1e-4;
}

/* A missing quantity makes only its dependents missing. */
TEST(each_work_has_its_bound)
{
    const double P = v100.peak, B = v100.bandwidth, L = v100.launch_overhead, M = P / B;
    const struct {
        struct roofline_work work; /* flops, bytes, time, launches */
        struct roofline_roofs roofs;
        double roof, fraction, compute_time, bandwidth_time;
        enum roofline_bound bound;
    } rows[] = {
        {{1e12, 1e9, 0.02, 10}, {P, B, L}, P, 50e12 / P, 0.02, 2e-5 * M, BOUND_COMPUTE},
        {{1e9, 1e9, 0.002, 1}, {P, B, L}, B, 0.5e12 / B, 0.002 / M, 0.002, BOUND_BANDWIDTH},
        /* The lowest of three ceilings; the paper's T is the kernels' own time. */
        {{1e6, 1e6, 50e-6, 10}, {P, B, L}, 1e6 / 42e-6, 0.84, 50e-6 / M, 50e-6, BOUND_OVERHEAD},
        {{1e6, 1e6, 30e-6, 10}, {P, B, L}, 1e6 / 42e-6, 1.4, 30e-6 / M, 30e-6, BOUND_OVERHEAD},
        {{8000, 1000, 200, 1}, {64, 8, 0.001}, 64, 0.625, 200, 200, BOUND_COMPUTE},
        /* A copy: a fraction of the bandwidth, without a peak. */
        {{0, 0.001 * B, 0.002, 1}, {P, B, L}, 0, 0.5, 0, 0.002, BOUND_BANDWIDTH},
        {{0, 0.001 * B, 0.002, 1}, {NAN, B, L}, NAN, 0.5, 0, 0.002, BOUND_BANDWIDTH},
        /* A kernel without bytes; an empty kernel, which takes less time than its launch. */
        {{1e12, 0, 0.02, 1}, {P, NAN, L}, P, 50e12 / P, 0.02, 0, BOUND_COMPUTE},
        {{0, 0, 1e-6, 1}, {P, B, L}, NAN, 0, NAN, NAN, BOUND_OVERHEAD},
        {{1e12, 1e9, 0.02, NAN}, {P, B, L}, P, 50e12 / P, 0.02, 2e-5 * M, BOUND_COMPUTE},
        {{1e12, 1e9, 0.02, 1}, {P, B, NAN}, P, 50e12 / P, 0.02, 2e-5 * M, BOUND_COMPUTE},
        /* A skipped configuration. */
        {{1e12, 1e9, NAN, 1}, {P, B, L}, P, NAN, NAN, NAN, BOUND_UNKNOWN},
        {{1e12, 1e9, 0.02, 1}, {NAN, B, L}, NAN, NAN, NAN, NAN, BOUND_UNKNOWN},
        /* T < n * L is known without a peak. */
        {{1e12, 1e9, 0.02, 1e6}, {NAN, B, L}, NAN, NAN, NAN, NAN, BOUND_OVERHEAD},
        {{1e12, NAN, 0.02, 1}, {P, B, L}, NAN, NAN, NAN, NAN, BOUND_UNKNOWN},
        {{NAN, 1e9, 0.02, 1}, {P, B, L}, NAN, NAN, NAN, NAN, BOUND_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const struct roofline_work *work = &rows[i].work;
        struct roofline r = roofline_evaluate(work, &rows[i].roofs);
        if (!alike(r.intensity, work->flops / work->bytes) ||
            !alike(r.performance, work->flops / work->time) || !alike(r.roof, rows[i].roof) ||
            !alike(r.fraction, rows[i].fraction) || !alike(r.compute_time, rows[i].compute_time) ||
            !alike(r.bandwidth_time, rows[i].bandwidth_time) ||
            !alike(r.overhead_time, work->launches * rows[i].roofs.launch_overhead) ||
            r.bound != rows[i].bound)
            fail_msg("row %zu: %g, %g, %g, %g, %g, %g, %g, %d", i, r.intensity, r.performance,
                     r.roof, r.fraction, r.compute_time, r.bandwidth_time, r.overhead_time,
                     (int)r.bound);
    }
    /* Corners of the overhead box: 41 and 43 us in both directions. */
    for (int side = 0; side < 4; ++side) {
        const double time = side % 2 ? 43e-6 : 41e-6;
        struct roofline_work work = {1e6, time * B, 50e-6, 10};
        if (side / 2)
            work = (struct roofline_work){time * P, 1e6, 50e-6, 10};
        assert_int_equal(roofline_evaluate(&work, &v100).bound, side % 2 == 0 ? BOUND_OVERHEAD
                                                                : side / 2    ? BOUND_COMPUTE
                                                                              : BOUND_BANDWIDTH);
    }
}
