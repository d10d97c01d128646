/* The collector of hardware counters, over a scripted CUPTI (scripted_cupti.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "collector_bench.h"
#include "scripted_cupti.h"
#include "worker/cuda/profiling/counters.h"

/* Opens the scripted device and gives the refusal, "" for none. */
static const char *refusal(void)
{
    struct outcome outcome = {.code = OUTCOME_MISSING};
    struct counters *counters = counters_open(0, NULL, &outcome);
    assert_int_equal(counters != NULL, outcome.code == OUTCOME_MISSING);
    counters_close(counters);
    assert_int_equal(cupti.finalized, 1);
    return text_of(&outcome);
}

static void causes_have_their_own_message(void **state)
{
    (void)state;
    static const struct {
        CUptiResult code;
        const char *what, *advice;
    } causes[] = {
        {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "may not read",
         "NVreg_RestrictProfilingToAdminUsers=0"},
        {CUPTI_ERROR_HARDWARE_BUSY, "holds this GPU's counters", "dcgmi profile --pause"},
        {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another profiler", "without ncu"},
        {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "confidential computing",
         "administrator"},
        {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "MIG", "whole GPU"},
        {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "virtual", "physical GPU"},
        {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, "hypervisor", "enable_profiling"},
        {CUPTI_ERROR_NOT_COMPATIBLE, "driver is too old", "newer driver"},
        {CUPTI_ERROR_API_NOT_IMPLEMENTED, "driver is too old", "newer driver"},
    };
    CUptiResult *const places[] = {&cupti.initialize, &cupti.supported, &cupti.availability};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; ++i)
        for (size_t j = 0; j < sizeof places / sizeof *places; ++j) {
            cupti_set_up(NULL);
            *places[j] = causes[i].code;
            const char *text = refusal();
            assert_memory_equal(text, "refused: ", 9);
            assert_non_null(strstr(text, causes[i].what));
            assert_non_null(strstr(strchr(text, ';'), causes[i].advice));
        }
}

static void support_levels_become_causes(void **state)
{
    (void)state;
    static const struct {
        size_t member;
        CUpti_Profiler_Support_Level level;
        const char *what;
    } levels[] = {
        {offsetof(CUpti_Profiler_DeviceSupported_Params, vGpu),
         CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, "the GPU is virtual"},
        {offsetof(CUpti_Profiler_DeviceSupported_Params, vGpu),
         CUPTI_PROFILER_CONFIGURATION_DISABLED, "hypervisor"},
        {offsetof(CUpti_Profiler_DeviceSupported_Params, confidentialCompute),
         CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, "confidential computing"},
        {offsetof(CUpti_Profiler_DeviceSupported_Params, cmp),
         CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, "mining"},
        {offsetof(CUpti_Profiler_DeviceSupported_Params, wsl),
         CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, "Windows"},
        {offsetof(CUpti_Profiler_DeviceSupported_Params, architecture),
         CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, "does not support this GPU"},
    };
    for (size_t i = 0; i < sizeof levels / sizeof *levels; ++i) {
        cupti_set_up(NULL);
        CUpti_Profiler_Support_Level fine = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
        cupti.support.vGpu = cupti.support.cmp = cupti.support.wsl = fine;
        cupti.support.confidentialCompute = cupti.support.architecture = fine;
        cupti.support.isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
        memcpy((char *)&cupti.support + levels[i].member, &levels[i].level, sizeof levels[i].level);
        assert_non_null(strstr(refusal(), levels[i].what));
    }
}

static void unknown_chips_are_refused(void **state)
{
    (void)state;
    cupti.chip = "XY999";
    assert_non_null(strstr(refusal(), "XY999"));
}

/* Counts and gives the outcome. */
static const char *counted(double values[QUANTITY_COUNT])
{
    struct counters *counters = counters_begin();
    const char *text = collect(counters, quantity_tensor(QUANTITY_TENSOR_FP16), &bench_work, 1,
                               (double(*)[QUANTITY_COUNT])values);
    counters_end(counters);
    return text;
}

/* The outcome where nothing may be counted. */
static const char *failure(void)
{
    double values[QUANTITY_COUNT];
    const char *text = counted(values);
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        assert_true(isnan(values[i]));
    return text;
}

static void all_passes_count(void **state)
{
    (void)state;
    double values[QUANTITY_COUNT];
    assert_string_equal(counted(values), "counted");
    assert_int_equal(cupti.runs, CUPTI_PASSES);
    assert_int_equal(cupti.range, CUPTI_UserRange);
    assert_int_equal(cupti.pushed, CUPTI_PASSES);
    assert_true(values[QUANTITY_DRAM_READ] == CUPTI_EACH);
    assert_true(isnan(values[QUANTITY_TENSOR_BF16])); /* not asked for */
}

/* As on a shared MIG slice. */
static void a_metric_without_value_is_missing(void **state)
{
    (void)state;
    double values[QUANTITY_COUNT];
    cupti.lacking = "dram__";
    assert_string_equal(counted(values), "counted");
    assert_true(isnan(values[QUANTITY_DRAM_READ]));
    assert_true(values[QUANTITY_VECTOR_FP32] > 0.0);
}

/* A rank that loses its counters in mid-sweep: the next attachment is refused. */
static void counters_can_be_lost(void **state)
{
    (void)state;
    cupti.enable = CUPTI_ERROR_HARDWARE_BUSY;
    assert_non_null(strstr(failure(), "another process holds"));
    assert_int_equal(cupti.runs, 0);
    cupti_set_up(NULL);
    cupti.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_non_null(strstr(failure(), "may not read"));
}

static void missing_passes_show(void **state)
{
    (void)state;
    cupti.passes = CUPTI_PASSES + 1;
    assert_memory_equal(failure(), "incomplete: ", 12);
    assert_int_equal(cupti.runs, CUPTI_PASSES);
}

static void dropped_ranges_show(void **state)
{
    (void)state;
    cupti.dropped = 2;
    assert_string_equal(failure(), "incomplete: 2 ranges dropped, 1 kept for 1");
}

enum { WORKS = 3 };

static const char *collect_works(struct counters *counters, size_t count,
                                 double (*values)[QUANTITY_COUNT])
{
    const struct profiled_work works[WORKS] = {bench_work, bench_work, bench_work};
    cupti.passes = CUPTI_PASSES * (int)count;
    return collect(counters, 0, works, count, values);
}

/* All within one attachment. */
static const char *each_outcome(double (*values)[QUANTITY_COUNT])
{
    struct counters *counters = counters_begin();
    cupti.ranges = WORKS;
    const char *text = collect_works(counters, WORKS, values);
    assert_int_equal(cupti.attached, 1);
    assert_int_equal(cupti.enabled, 1);
    counters_end(counters);
    return text;
}

static void each_work_has_its_counts(void **state)
{
    (void)state;
    double values[WORKS][QUANTITY_COUNT];
    assert_string_equal(each_outcome(values), "counted");
    assert_int_equal(cupti.range, CUPTI_UserRange);
    assert_int_equal(cupti.pushed, CUPTI_PASSES * WORKS);
    for (int i = 0; i < WORKS; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == CUPTI_EACH * (WORKS - i));
}

static void an_unknown_range_shows(void **state)
{
    (void)state;
    double values[WORKS][QUANTITY_COUNT];
    cupti.nameless = true;
    assert_memory_equal(each_outcome(values), "incomplete: ", 12);
    assert_true(isnan(values[0][QUANTITY_DRAM_READ]));
}

enum { BEFORE = 2, LAUNCHES = 3, ROOM = 152 };

/* So that CUPTI is attached once for launches of several works, whose largest is not the first. */
static void room_is_made_for_the_largest(void **state)
{
    (void)state;
    static const size_t launches[] = {1, 3, 2};
    struct counters *counters = counters_begin();
    for (size_t i = 0; i < sizeof launches / sizeof *launches; ++i) {
        double values[LAUNCHES][QUANTITY_COUNT];
        cupti.ranges = launches[i];
        assert_string_equal(collect_launches(counters, launches[i], LAUNCHES, values), "counted");
        assert_int_equal(cupti.enabled, 1);
        assert_int_equal(cupti.room, ROOM);
    }
    counters_end(counters);
}

static const char *launches_outcome(double (*values)[QUANTITY_COUNT])
{
    struct counters *counters = counters_begin();
    const char *text = collect_launches(counters, LAUNCHES, 0, values);
    counters_end(counters);
    return text;
}

static void each_launch_has_its_counts(void **state)
{
    (void)state;
    double values[LAUNCHES][QUANTITY_COUNT];
    cupti.ranges = BEFORE + LAUNCHES;
    assert_string_equal(launches_outcome(values), "counted");
    assert_int_equal(cupti.range, CUPTI_AutoRange);
    assert_int_equal(cupti.pushed, 0);
    assert_int_equal(cupti.room, ROOM);
    assert_int_equal(cupti.runs, CUPTI_PASSES);
    for (int i = 0; i < LAUNCHES; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == CUPTI_EACH * (BEFORE + i + 1));
}

static void another_number_of_launches_shows(void **state)
{
    (void)state;
    static const struct {
        size_t ranges, dropped;
        const char *text;
    } cases[] = {{LAUNCHES - 1, 0, "incomplete: 0 ranges dropped, 2 kept for 3"},
                 {ROOM, 0, "incomplete: 0 ranges dropped, 152 kept for 3"}, /* and maybe more */
                 {BEFORE + LAUNCHES, 1, "incomplete: 1 ranges dropped, 5 kept for 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        double values[LAUNCHES][QUANTITY_COUNT];
        cupti_set_up(NULL);
        cupti.ranges = cases[i].ranges;
        cupti.dropped = cases[i].dropped;
        assert_string_equal(launches_outcome(values), cases[i].text);
        for (int j = 0; j < LAUNCHES * QUANTITY_COUNT; ++j)
            assert_true(isnan(values[j / QUANTITY_COUNT][j % QUANTITY_COUNT]));
    }
}

/* Attached once for many collections, anew for another kind of range or after a failure, until it is
 * detached, and gone at the end. */
static void it_stays_attached(void **state)
{
    (void)state;
    struct counters *counters = counters_begin();
    for (int i = 0; i < 3; ++i) {
        assert_string_equal(collect_again(counters), "counted");
        assert_true(counters_are_attached(counters));
    }
    assert_int_equal(cupti.enabled, 1);
    assert_int_equal(cupti.finalized, 0);

    assert_string_equal(collect_launch_again(counters), "counted"); /* another kind of range */
    assert_int_equal(cupti.enabled, 2);
    assert_int_equal(cupti.disabled, 1);
    assert_int_equal(cupti.finalized, 1);

    cupti.start = CUPTI_ERROR_HARDWARE_BUSY;
    assert_memory_equal(collect_launch_again(counters), "refused: ", 9);
    assert_false(counters_are_attached(counters));
    assert_int_equal(cupti.enabled, cupti.disabled);
    cupti.start = CUPTI_SUCCESS;
    assert_string_equal(collect_launch_again(counters), "counted");
    assert_true(counters_are_attached(counters));

    for (int i = 0; i < 2; ++i) {
        counters_detach(counters);
        assert_false(counters_are_attached(counters));
        assert_int_equal(cupti.finalized, cupti.attached);
    }
    assert_string_equal(collect_again(counters), "counted");
    counters_end(counters);
    assert_false(counters_are_attached(NULL));
}

/* A profiler that cannot be told anew what to do must not cost every second collection. */
static void staying_attached_may_be_in_the_way(void **state)
{
    (void)state;
    struct counters *counters = counters_begin();
    cupti.config_once = true;
    for (int i = 0; i < 4; ++i) {
        int enabled = cupti.enabled;
        assert_string_equal(collect_again(counters), "counted");
        assert_int_equal(cupti.enabled, enabled + 1); /* never twice for one */
    }
    counters_end(counters);
}

static void collect_tensors(struct counters *counters, unsigned tensors,
                            double values[QUANTITY_COUNT])
{
    assert_string_equal(
        collect(counters, tensors, &bench_work, 1, (double(*)[QUANTITY_COUNT])values), "counted");
    assert_true(values[QUANTITY_VECTOR_FP32] > 0.0);
}

/* Told anew it would be of no effect: it is attached anew, to count what was asked for before, too,
 * and so not again for that. Nobody gets what others have asked for. */
static void what_it_counts_grows(void **state)
{
    (void)state;
    double values[QUANTITY_COUNT];
    const unsigned fp16 = quantity_tensor(QUANTITY_TENSOR_FP16);
    const unsigned bf16 = quantity_tensor(QUANTITY_TENSOR_BF16);
    const struct {
        unsigned tensors;
        int enabled;
    } rows[] = {{0, 1}, {0, 1}, {fp16, 2}, {0, 2}, {bf16, 3}, {fp16, 3}, {0, 3}, {bf16, 3}};
    struct counters *counters = counters_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        collect_tensors(counters, rows[i].tensors, values);
        assert_int_equal(cupti.enabled, rows[i].enabled);
        assert_int_equal(values[QUANTITY_TENSOR_FP16] == CUPTI_EACH, rows[i].tensors == fp16);
        assert_int_equal(isnan(values[QUANTITY_TENSOR_BF16]), rows[i].tensors != bf16);
        assert_true(counters_are_attached(counters));
    }
    counters_detach(counters); /* forgets what was asked for */
    collect_tensors(counters, fp16, values);
    assert_int_equal(cupti.enabled, 4);
    collect_tensors(counters, bf16, values);
    assert_int_equal(cupti.enabled, 5);
    counters_end(counters);
}

/* Of ranges, too, it has room for as many as it was told first. Room for more would cost time. */
static void there_is_room_for_as_many_ranges_as_there_are(void **state)
{
    (void)state;
    double values[WORKS][QUANTITY_COUNT];
    static const struct {
        size_t works, room;
        int enabled;
    } rows[] = {{1, 1, 1}, {3, 3, 2}, {2, 3, 2}, {3, 3, 2}};
    struct counters *counters = counters_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cupti.ranges = rows[i].works;
        assert_string_equal(collect_works(counters, rows[i].works, values), "counted");
        assert_int_equal(cupti.room, rows[i].room);
        assert_int_equal(cupti.enabled, rows[i].enabled);
    }
    counters_end(counters);
}

/* Where it cannot even be enabled, nothing stays behind. */
static void what_cannot_begin_leaves_nothing(void **state)
{
    (void)state;
    struct counters *counters = counters_begin();
    cupti.enable = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_memory_equal(collect_again(counters), "refused: ", 9);
    assert_false(counters_are_attached(counters));
    assert_int_equal(cupti.finalized, cupti.attached);
    assert_int_equal(cupti.disabled, 0);
    counters_end(counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(causes_have_their_own_message, cupti_set_up),
        cmocka_unit_test_setup(support_levels_become_causes, cupti_set_up),
        cmocka_unit_test_setup(unknown_chips_are_refused, cupti_set_up),
        cmocka_unit_test_setup(all_passes_count, cupti_set_up),
        cmocka_unit_test_setup(a_metric_without_value_is_missing, cupti_set_up),
        cmocka_unit_test_setup(counters_can_be_lost, cupti_set_up),
        cmocka_unit_test_setup(missing_passes_show, cupti_set_up),
        cmocka_unit_test_setup(dropped_ranges_show, cupti_set_up),
        cmocka_unit_test_setup(each_work_has_its_counts, cupti_set_up),
        cmocka_unit_test_setup(an_unknown_range_shows, cupti_set_up),
        cmocka_unit_test_setup(room_is_made_for_the_largest, cupti_set_up),
        cmocka_unit_test_setup(each_launch_has_its_counts, cupti_set_up),
        cmocka_unit_test_setup(another_number_of_launches_shows, cupti_set_up),
        cmocka_unit_test_setup(it_stays_attached, cupti_set_up),
        cmocka_unit_test_setup(staying_attached_may_be_in_the_way, cupti_set_up),
        cmocka_unit_test_setup(what_it_counts_grows, cupti_set_up),
        cmocka_unit_test_setup(there_is_room_for_as_many_ranges_as_there_are, cupti_set_up),
        cmocka_unit_test_setup(what_cannot_begin_leaves_nothing, cupti_set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
