/* The CUDA worker's roofs, on a scripted H200 (scripted_cuda.h): common starts, two devices, proofs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "scripted_bench.h"
#include "scripted_cuda.h"
#include "tuned.h"

/* ---- common start ---- */

static void samples_begin_at_the_common_start(void **state)
{
    (void)state;
    const double resolution = 20e-6; /* s, of what is enqueued first */
    tune_all(false);
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        struct roof roof;
        struct error error;
        if (!found[kind])
            continue;
        double start = clock_epoch() + 0.05;
        assert_int_equal(measure_at(kind, start, &roof, &error), STATUS_OK);
        assert_true(roof.start_time >= start && roof.start_time < start + resolution);
        /* the device as well: nothing of the warm-up was left to do */
        assert_true(script.begin_time >= start && script.begin_time < start + resolution);
    }
}

static void a_start_that_has_passed_is_too_late(void **state)
{
    (void)state;
    const struct roof_request request = {.memory[LEVEL_DRAM] = true};
    static const double ago[] = {1.0, 10e-3};
    struct roof roof;
    struct error error;
    const int kind = kind_of("dram copy");
    tune(&request, false);
    for (size_t i = 0; i < sizeof ago / sizeof *ago; ++i) {
        assert_int_equal(measure_at(kind, clock_epoch() - ago[i], &roof, &error), STATUS_FAILED);
        assert_true(starts_with(error.text, "too late"));
        assert_true(isnan(roof.bandwidth));
    }
    /* it is the warm-up that takes too long */
    script.rate[kind] /= 10.0;
    assert_int_equal(measure_at(kind, clock_epoch() + 1e-3, &roof, &error), STATUS_FAILED);
    assert_true(starts_with(error.text, "too late"));
    script.rate[kind] *= 10.0;
    assert_int_equal(measure_at(kind, clock_epoch() + 1e-3, &roof, &error), STATUS_OK);
}

/* ---- two devices ---- */

static void a_device_alone_copies_to_no_other(void **state)
{
    (void)state;
    const struct roof_request request = {.transfer = true};
    tune(&request, false);
    assert_false(found[kind_of("device to device")]);
    assert_true(found[kind_of("host to device")]);
}

static void copies_go_to_the_next_device(void **state)
{
    (void)state;
    static const char *const ways[][2] = {{"device 0 to 1, through the host", "0 to 1, direct"},
                                          {"device 1 to 0, through the host", "1 to 0, direct"}};
    const struct roof_request request = {.transfer = true};
    for (int own = 0; own < 2; ++own)
        for (int direct = 0; direct < 2; ++direct) {
            bench_close();
            script_reset();
            script.devices = 2;
            script.own = own;
            script.direct = direct;
            bench_open();
            tune(&request, true);
            struct roof roof = measure("device to device");
            assert_near(roof.bandwidth, script.rate[kind_of("device to device")]);
            assert_non_null(strstr(roof.setting, ways[own][direct]));
        }
}

static void another_device_may_refuse(void **state)
{
    (void)state;
    const struct roof_request request = {.transfer = true};
    cudaError_t *const places[] = {&script.remote_context, &script.remote_memory};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        bench_close();
        script_reset();
        script.devices = 2;
        *places[i] = cudaErrorDevicesUnavailable;
        bench_open();
        tune(&request, false);
        assert_string_equal(refusal("device to device", STATUS_UNSUPPORTED),
                            "device 1, the next one: some failure");
        struct roof roof = measure("host to device");
        assert_near(roof.bandwidth, script.rate[kind_of("host to device")]);
    }
}

/* ---- proofs ---- */

static bool is_counted(int kind)
{
    const struct roof_kind *info = &roof_kinds[kind];
    return found[kind] && info->measure != ROOF_TIME &&
           !strstr(info->name, "host") /* "to host", "from host": copy engines */;
}

/* All that are counted have this verdict, but those with `other` in their names. */
static void assert_verdicts(enum roof_verdict verdict, const char *exception,
                            enum roof_verdict other)
{
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        const char *name = roof_kinds[kind].name;
        if (!is_counted(kind))
            continue;
        struct roof roof = measure(name);
        enum roof_verdict expected = exception && strstr(name, exception) ? other : verdict;
        if (roof.verdict != (int64_t)expected)
            fail_msg("%s is %s", name, roof_verdict_name[roof.verdict]);
    }
}

static void counts_prove(void **state)
{
    (void)state;
    tune_all(true);
    assert_int_equal(script.collections, 1);
    assert_verdicts(ROOF_PROVEN, NULL, ROOF_PROVEN);
    struct roof roof = measure("dram triad");
    assert_near(roof.bytes_ratio[LEVEL_DRAM], 1.0);
    assert_near(roof.bytes_ratio[LEVEL_L2], 1.0);
    assert_true(isnan(roof.flops_ratio));
    roof = measure("shared read");
    assert_true(roof.bytes_ratio[LEVEL_L1] == 0.0);
    roof = measure("fp8 tensor library");
    assert_near(roof.flops_ratio, 1.0);
    assert_true(isnan(roof.bytes_ratio[LEVEL_DRAM]));
    roof = measure("launch gap");
    assert_int_equal(roof.verdict, ROOF_UNPROVEN);
}

static void wrong_counts_contradict(void **state)
{
    (void)state;
    static const struct {
        enum quantity first, last;
        double counted;
        const char *kinds;
    } wrong[] = {
        {QUANTITY_DRAM_READ, QUANTITY_DRAM_WRITE, 1.1, "dram"},
        {QUANTITY_L2_READ, QUANTITY_L2_WRITE, 0.9, "l2"},
        {QUANTITY_L1_READ, QUANTITY_L1_READ, 0.9, "l1"},
        {QUANTITY_VECTOR_FP64, QUANTITY_VECTOR_FP64, 2.0, "fp64 vector"},
        {QUANTITY_TENSOR_BF16, QUANTITY_TENSOR_BF16, 0.95, "bf16 tensor"},
        {QUANTITY_TENSOR_INT8, QUANTITY_TENSOR_INT8, 0.0, "int8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        bench_close();
        bench_set_up(NULL);
        for (enum quantity quantity = wrong[i].first; quantity <= wrong[i].last; ++quantity)
            script.counted[quantity] = wrong[i].counted;
        tune_all(true);
        assert_verdicts(ROOF_PROVEN, wrong[i].kinds, ROOF_CONTRADICTED);
    }
}

/* A neighbour's copies end some time; counting then begins. */
static void another_process_forbids_proofs_while_it_is_there(void **state)
{
    (void)state;
    script.processes = 2;
    tune_all(true);
    assert_true(starts_with(bench.counters, "refused: another process"));
    assert_int_equal(script.collections, 0);
    assert_verdicts(ROOF_UNPROVEN, NULL, ROOF_UNPROVEN);
    script.processes = 1;
    tune_all(true);
    assert_string_equal(bench.counters, "counted");
    assert_verdicts(ROOF_PROVEN, NULL, ROOF_PROVEN);
}

static void without_counters_nothing_is_proven(void **state)
{
    (void)state;
    script.preflight = "refused: not allowed; ask";
    tune_all(true);
    assert_int_equal(script.collections, 0);
    assert_verdicts(ROOF_UNPROVEN, NULL, ROOF_UNPROVEN);
    bench_close();
    bench_set_up(NULL);
    script.collection = "refused: taken by another; wait"; /* from then on */
    tune_all(true);
    assert_int_equal(script.collections, 1);
    assert_verdicts(ROOF_UNPROVEN, NULL, ROOF_UNPROVEN);
    bench_close();
    bench_set_up(NULL);
    script.no_tensors = "refused: metric set"; /* the rest can be counted */
    tune_all(true);
    assert_string_equal(bench.counters, "counted");
    bench_close();
    bench_set_up(NULL);
    tune_all(false);
    assert_int_equal(script.collections, 0);
    assert_string_equal(bench.counters, "");
}

static void what_the_chip_cannot_count_is_unproven(void **state)
{
    (void)state;
    script.absent = QUANTITY_TENSOR_FP8;
    tune_all(true);
    assert_verdicts(ROOF_PROVEN, "fp8", ROOF_UNPROVEN);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(samples_begin_at_the_common_start),
        TEST(a_start_that_has_passed_is_too_late),
        TEST(a_device_alone_copies_to_no_other),
        TEST(copies_go_to_the_next_device),
        TEST(another_device_may_refuse),
        TEST(counts_prove),
        TEST(wrong_counts_contradict),
        TEST(another_process_forbids_proofs_while_it_is_there),
        TEST(without_counters_nothing_is_proven),
        TEST(what_the_chip_cannot_count_is_unproven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
