/* The profiler as a script: these functions stand in for CUPTI's, so that every refusal and every
 * kind of incomplete counting is met without a GPU. The host's part of CUPTI stays the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "worker/cuda/profiling/counters.h"
#include "worker/cuda/profiling/metric_set.h"

static struct script {
    const char *chip;
    CUptiResult initialize, supported, availability, enable, start;
    CUpti_Profiler_DeviceSupported_Params support;
    size_t dropped, ranges;
    CUpti_ProfilerRange range; /* as configured */
    size_t room;
    int pushed;
    int passes;          /* after which the profiler has enough */
    const char *lacking; /* metrics with this in their names have no value */
    int attached, finalized, runs, enabled, disabled;
    char names[8][8];     /* of the ranges pushed last */
    bool nameless;        /* the image knows no names */
    bool config_once;     /* after each enabling only: later it is refused */
    int configured;       /* the enabling that was configured last; later it is without effect */
    bool passing, within; /* a pass has begun, and a range of it */
} script;

/* The host's part: a set that takes three passes, and finds 7 for every metric, 7 more in
 * each further range. */
enum { PASSES = 3, EACH = 7 };
struct metric_set {
    const char *const *metrics;
    size_t count;
};
static struct metric_set the_set, configured_set;

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed)
{
    (void)requested, (void)completed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *parameters)
{
    (void)parameters;
    ++script.attached;
    return script.initialize;
}

CUptiResult cuptiFinalize(void)
{
    ++script.finalized;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params *parameters)
{
    size_t size = parameters->structSize;
    *parameters = script.support;
    parameters->structSize = size;
    return script.supported;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *parameters)
{
    parameters->pChipName = script.chip;
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *parameters)
{
    parameters->counterAvailabilityImageSize = 1;
    return script.availability;
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *parameters)
{
    parameters->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)&script;
    script.enabled += script.enable == CUPTI_SUCCESS;
    return script.enable;
}

CUptiResult
cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *parameters)
{
    parameters->counterDataSize = 16;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *parameters)
{
    script.passing = false;
    parameters->isAllPassSubmitted = script.runs >= script.passes;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *parameters)
{
    parameters->numOfRangeDropped = script.dropped;
    return CUPTI_SUCCESS;
}

CUptiResult
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *parameters)
{
    parameters->numTotalRanges = script.ranges;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *parameters)
{
    (void)parameters;
    script.passing = true;
    return script.start;
}

CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params *parameters)
{
    (void)parameters;
    script.within = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *parameters)
{
    assert_ptr_equal(parameters->pRangeProfilerObject, &script);
    ++script.disabled;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *parameters)
{
    assert_int_equal(parameters->replayMode, CUPTI_UserReplay);
    script.range = parameters->range;
    script.room = parameters->maxRangesPerPass;
    if (script.config_once && script.configured == script.enabled)
        return CUPTI_ERROR_INVALID_OPERATION;
    if (script.configured != script.enabled)
        configured_set = the_set;
    script.configured = script.enabled;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params *parameters)
{
    char *name = script.names[(size_t)script.pushed++ % script.ranges];
    snprintf(name, sizeof script.names[0], "%s", parameters->pRangeName);
    script.within = true;
    return CUPTI_SUCCESS;
}

/* The last one comes first. */
CUptiResult cuptiRangeProfilerCounterDataGetRangeInfo(
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params *parameters)
{
    size_t pushed = script.ranges - 1 - parameters->rangeIndex;
    parameters->rangeName = script.nameless ? "" : script.names[pushed];
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params *parameters)
{
    (void)parameters;
    return CUPTI_SUCCESS;
}

CUptiResult metric_set_create(const char *chip, const uint8_t *availability,
                              const char *const *metrics, size_t count, struct metric_set **set)
{
    (void)chip, (void)availability;
    the_set = (struct metric_set){metrics, count};
    *set = &the_set;
    return CUPTI_SUCCESS;
}

void metric_set_destroy(struct metric_set *set)
{
    (void)set;
}

const char *const *metric_set_metrics(const struct metric_set *set, size_t *count)
{
    *count = set->count;
    return set->metrics;
}

const uint8_t *metric_set_config(const struct metric_set *set, size_t *size)
{
    (void)set;
    *size = 0;
    return NULL;
}

size_t metric_set_passes(const struct metric_set *set)
{
    (void)set;
    return PASSES;
}

static bool metric_is_counted(const char *metric)
{
    bool configured = false;
    for (size_t i = 0; i < configured_set.count; ++i)
        configured |= strcmp(configured_set.metrics[i], metric) == 0;
    return configured && !(script.lacking && strstr(metric, script.lacking));
}

CUptiResult metric_set_evaluate(struct metric_set *set, const uint8_t *image, size_t size,
                                size_t range, double *values)
{
    (void)image, (void)size;
    for (size_t i = 0; i < set->count; ++i)
        values[i] = metric_is_counted(set->metrics[i]) ? EACH * (double)(range + 1) : NAN;
    return CUPTI_SUCCESS;
}

static int set_up(void **state)
{
    (void)state;
    script = (struct script){.chip = "GH100", .passes = PASSES, .ranges = 1};
    script.support.isSupported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    return 0;
}

/* Opens the scripted device and gives the refusal, "" for none. */
static const char *refusal(void)
{
    static char text[COUNTERS_TEXT];
    text[0] = '\0';
    struct counters *counters = counters_open(0, NULL, text);
    assert_int_equal(counters != NULL, text[0] == '\0');
    counters_close(counters);
    assert_int_equal(script.finalized, 1);
    return text;
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
    CUptiResult *const places[] = {&script.initialize, &script.supported, &script.availability};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; ++i)
        for (size_t j = 0; j < sizeof places / sizeof *places; ++j) {
            set_up(NULL);
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
        set_up(NULL);
        CUpti_Profiler_Support_Level fine = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
        script.support.vGpu = script.support.cmp = script.support.wsl = fine;
        script.support.confidentialCompute = script.support.architecture = fine;
        script.support.isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
        memcpy((char *)&script.support + levels[i].member, &levels[i].level,
               sizeof levels[i].level);
        assert_non_null(strstr(refusal(), levels[i].what));
    }
}

static void unknown_chips_are_refused(void **state)
{
    (void)state;
    script.chip = "XY999";
    assert_non_null(strstr(refusal(), "XY999"));
}

static enum status run(void *argument, struct error *error)
{
    (void)argument, (void)error;
    assert_true(script.within == (script.range == CUPTI_UserRange));
    ++script.runs;
    return STATUS_OK;
}

/* What CUPTI does to begin a pass must not come between this and the work. */
static enum status prepare(void *argument, struct error *error)
{
    (void)argument, (void)error;
    assert_true(script.passing && !script.within);
    return STATUS_OK;
}

/* Counts and gives the outcome. */
static const char *outcome(double values[QUANTITY_COUNT])
{
    static char text[COUNTERS_TEXT];
    struct error error;
    const struct counters_work work = {prepare, run, NULL};
    struct counters *counters = counters_open(0, NULL, text);
    assert_non_null(counters);
    assert_int_equal(counters_collect(counters, quantity_tensor(QUANTITY_TENSOR_FP16), &work,
                                      values, text, &error),
                     STATUS_OK);
    assert_int_equal(script.runs, counters_passes(counters));
    counters_close(counters);
    assert_int_equal(script.finalized, script.attached);
    return text;
}

/* The outcome where nothing may be counted. */
static const char *failure(void)
{
    double values[QUANTITY_COUNT];
    const char *text = outcome(values);
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        assert_true(isnan(values[i]));
    return text;
}

static void all_passes_count(void **state)
{
    (void)state;
    double values[QUANTITY_COUNT];
    assert_string_equal(outcome(values), "counted");
    assert_int_equal(script.runs, PASSES);
    assert_int_equal(script.range, CUPTI_UserRange);
    assert_int_equal(script.pushed, PASSES);
    assert_true(values[QUANTITY_DRAM_READ] == EACH);
    assert_true(isnan(values[QUANTITY_TENSOR_BF16])); /* not asked for */
}

/* As on a shared MIG slice. */
static void a_metric_without_value_is_missing(void **state)
{
    (void)state;
    double values[QUANTITY_COUNT];
    script.lacking = "dram__";
    assert_string_equal(outcome(values), "counted");
    assert_true(isnan(values[QUANTITY_DRAM_READ]));
    assert_true(values[QUANTITY_VECTOR_FP32] > 0.0);
}

/* A rank that loses its counters in mid-sweep: the next attachment is refused. */
static void counters_can_be_lost(void **state)
{
    (void)state;
    script.enable = CUPTI_ERROR_HARDWARE_BUSY;
    assert_non_null(strstr(failure(), "another process holds"));
    assert_int_equal(script.runs, 0);
    set_up(NULL);
    script.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_non_null(strstr(failure(), "may not read"));
}

static void missing_passes_show(void **state)
{
    (void)state;
    script.passes = PASSES + 1;
    assert_memory_equal(failure(), "incomplete: ", 12);
    assert_int_equal(script.runs, PASSES);
}

static void dropped_ranges_show(void **state)
{
    (void)state;
    script.dropped = 2;
    assert_string_equal(failure(), "incomplete: 2 ranges dropped, 1 kept for 1");
}

enum { WORKS = 3 };

static const char *collect_works(struct counters *counters, size_t count,
                                 double (*values)[QUANTITY_COUNT])
{
    static char text[COUNTERS_TEXT];
    struct error error;
    const struct counters_work works[WORKS] = {
        {prepare, run, NULL}, {prepare, run, NULL}, {prepare, run, NULL}};
    script.runs = 0;
    script.passes = PASSES * (int)count;
    assert_int_equal(counters_collect_each(counters, 0, works, count, values, text, &error),
                     STATUS_OK);
    return text;
}

/* All within one attachment. */
static const char *each_outcome(double (*values)[QUANTITY_COUNT])
{
    char refusal_text[COUNTERS_TEXT];
    struct counters *counters = counters_open(0, NULL, refusal_text);
    assert_non_null(counters);
    script.ranges = WORKS;
    const char *text = collect_works(counters, WORKS, values);
    assert_int_equal(script.attached, 1);
    assert_int_equal(script.enabled, 1);
    assert_int_equal(counters_passes(counters), PASSES);
    counters_close(counters);
    assert_int_equal(script.finalized, script.attached);
    return text;
}

static void each_work_has_its_counts(void **state)
{
    (void)state;
    double values[WORKS][QUANTITY_COUNT];
    assert_string_equal(each_outcome(values), "counted");
    assert_int_equal(script.range, CUPTI_UserRange);
    assert_int_equal(script.pushed, PASSES * WORKS);
    for (int i = 0; i < WORKS; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == EACH * (WORKS - i));
}

static void an_unknown_range_shows(void **state)
{
    (void)state;
    double values[WORKS][QUANTITY_COUNT];
    script.nameless = true;
    assert_memory_equal(each_outcome(values), "incomplete: ", 12);
    assert_true(isnan(values[0][QUANTITY_DRAM_READ]));
}

enum { BEFORE = 2, LAUNCHES = 3, ROOM = 88 };

static const char *launches_outcome(double (*values)[QUANTITY_COUNT])
{
    static char text[COUNTERS_TEXT];
    struct error error;
    const struct counters_work work = {prepare, run, NULL};
    struct counters *counters = counters_open(0, NULL, text);
    assert_non_null(counters);
    assert_int_equal(counters_collect_launches(counters, 0, &work, LAUNCHES, values, text, &error),
                     STATUS_OK);
    counters_close(counters);
    assert_int_equal(script.finalized, script.attached);
    return text;
}

static void each_launch_has_its_counts(void **state)
{
    (void)state;
    double values[LAUNCHES][QUANTITY_COUNT];
    script.ranges = BEFORE + LAUNCHES;
    assert_string_equal(launches_outcome(values), "counted");
    assert_int_equal(script.range, CUPTI_AutoRange);
    assert_int_equal(script.pushed, 0);
    assert_int_equal(script.room, ROOM);
    assert_int_equal(script.runs, PASSES);
    for (int i = 0; i < LAUNCHES; ++i)
        assert_true(values[i][QUANTITY_DRAM_READ] == EACH * (BEFORE + i + 1));
}

static void another_number_of_launches_shows(void **state)
{
    (void)state;
    static const struct {
        size_t ranges, dropped;
        const char *text;
    } cases[] = {{LAUNCHES - 1, 0, "incomplete: 0 ranges dropped, 2 kept for 3"},
                 {ROOM, 0, "incomplete: 0 ranges dropped, 88 kept for 3"}, /* and maybe more */
                 {BEFORE + LAUNCHES, 1, "incomplete: 1 ranges dropped, 5 kept for 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        double values[LAUNCHES][QUANTITY_COUNT];
        set_up(NULL);
        script.ranges = cases[i].ranges;
        script.dropped = cases[i].dropped;
        assert_string_equal(launches_outcome(values), cases[i].text);
        for (int j = 0; j < LAUNCHES * QUANTITY_COUNT; ++j)
            assert_true(isnan(values[j / QUANTITY_COUNT][j % QUANTITY_COUNT]));
    }
}

static const char *collect_again(struct counters *counters, bool by_launch)
{
    static char text[COUNTERS_TEXT];
    double values[1][QUANTITY_COUNT];
    struct error error;
    const struct counters_work work = {prepare, run, NULL};
    script.runs = 0;
    assert_int_equal(by_launch
                         ? counters_collect_launches(counters, 0, &work, 1, values, text, &error)
                         : counters_collect(counters, 0, &work, values[0], text, &error),
                     STATUS_OK);
    return text;
}

/* Attached once for many collections, anew for another kind of range or after a failure, and gone
 * at the end. */
static void it_stands_by_if_told(void **state)
{
    (void)state;
    char text[COUNTERS_TEXT];
    struct counters *counters = counters_open(0, NULL, text);
    assert_non_null(counters);
    assert_true(counters_attached(counters));
    counters_stand_by(counters, false);
    assert_false(counters_attached(counters));
    assert_int_equal(script.finalized, 1);
    assert_string_equal(collect_again(counters, false), "counted");
    assert_false(counters_attached(counters));
    assert_int_equal(script.finalized, 2);

    counters_stand_by(counters, true);
    for (int i = 0; i < 3; ++i) {
        assert_string_equal(collect_again(counters, false), "counted");
        assert_true(counters_attached(counters));
    }
    assert_int_equal(script.enabled, 2);
    assert_int_equal(script.finalized, 2);

    assert_string_equal(collect_again(counters, true), "counted"); /* another kind of range */
    assert_int_equal(script.enabled, 3);
    assert_int_equal(script.disabled, 2);
    assert_int_equal(script.finalized, 3);

    script.start = CUPTI_ERROR_HARDWARE_BUSY;
    assert_memory_equal(collect_again(counters, true), "refused: ", 9);
    assert_false(counters_attached(counters));
    assert_int_equal(script.enabled, script.disabled);
    script.start = CUPTI_SUCCESS;
    assert_string_equal(collect_again(counters, true), "counted");
    assert_true(counters_attached(counters));

    counters_stand_by(counters, false);
    assert_false(counters_attached(counters));
    counters_stand_by(counters, true);
    assert_string_equal(collect_again(counters, false), "counted");
    counters_close(counters);
    assert_int_equal(script.enabled, script.disabled);
    assert_int_equal(script.finalized, script.attached);
    assert_false(counters_attached(NULL));
}

/* A profiler that cannot be told anew what to do must not cost every second collection. */
static void standing_by_may_be_in_the_way(void **state)
{
    (void)state;
    char text[COUNTERS_TEXT];
    struct counters *counters = counters_open(0, NULL, text);
    counters_stand_by(counters, true);
    script.config_once = true;
    for (int i = 0; i < 4; ++i) {
        assert_string_equal(collect_again(counters, false), "counted");
        assert_int_equal(counters_attached(counters), i == 0);
    }
    assert_int_equal(script.enabled, script.disabled);
    counters_close(counters);
    assert_int_equal(script.finalized, script.attached);
}

static void collect_tensors(struct counters *counters, unsigned tensors,
                            double values[QUANTITY_COUNT])
{
    char text[COUNTERS_TEXT];
    struct error error;
    const struct counters_work work = {prepare, run, NULL};
    script.runs = 0;
    assert_int_equal(counters_collect(counters, tensors, &work, values, text, &error), STATUS_OK);
    assert_string_equal(text, "counted");
    assert_true(values[QUANTITY_VECTOR_FP32] > 0.0);
}

/* Told anew it would be of no effect: it is attached anew, to count what was asked for before, too,
 * and so not again for that. Nobody gets what others have asked for. */
static void what_it_counts_grows(void **state)
{
    (void)state;
    char text[COUNTERS_TEXT];
    double values[QUANTITY_COUNT];
    const unsigned fp16 = quantity_tensor(QUANTITY_TENSOR_FP16);
    const unsigned bf16 = quantity_tensor(QUANTITY_TENSOR_BF16);
    const struct {
        unsigned tensors;
        int enabled;
    } rows[] = {{0, 1}, {0, 1}, {fp16, 2}, {0, 2}, {bf16, 3}, {fp16, 3}, {0, 3}, {bf16, 3}};
    struct counters *counters = counters_open(0, NULL, text);
    counters_stand_by(counters, true);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        collect_tensors(counters, rows[i].tensors, values);
        assert_int_equal(script.enabled, rows[i].enabled);
        assert_int_equal(values[QUANTITY_TENSOR_FP16] == EACH, rows[i].tensors == fp16);
        assert_int_equal(isnan(values[QUANTITY_TENSOR_BF16]), rows[i].tensors != bf16);
        assert_true(counters_attached(counters));
    }
    assert_int_equal(counters_asked(counters), fp16 | bf16);
    counters_stand_by(counters, false);
    counters_stand_by(counters, true);
    collect_tensors(counters, fp16, values);
    assert_true(isnan(values[QUANTITY_TENSOR_BF16]));
    counters_close(counters);
    assert_int_equal(script.enabled, script.disabled);
    assert_int_equal(script.finalized, script.attached);
}

/* Of ranges, too, it has room for as many as it was told first. */
static void there_is_room_for_several_ranges(void **state)
{
    (void)state;
    char text[COUNTERS_TEXT];
    double values[WORKS][QUANTITY_COUNT];
    struct counters *counters = counters_open(0, NULL, text);
    for (size_t works = 1; works <= WORKS; ++works) {
        script.ranges = works;
        assert_string_equal(collect_works(counters, works, values), "counted");
        assert_true(script.room >= works);
    }
    assert_int_equal(script.enabled, 1);
    assert_int_equal(script.attached, 1);
    counters_close(counters);
    assert_int_equal(script.finalized, 1);
}

/* Where it cannot even be enabled, nothing stays behind. */
static void what_cannot_begin_leaves_nothing(void **state)
{
    (void)state;
    char text[COUNTERS_TEXT];
    struct counters *counters = counters_open(0, NULL, text);
    counters_stand_by(counters, true);
    script.enable = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_memory_equal(collect_again(counters, false), "refused: ", 9);
    assert_false(counters_attached(counters));
    assert_int_equal(script.finalized, script.attached);
    assert_int_equal(script.disabled, 0);
    counters_close(counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(causes_have_their_own_message, set_up),
        cmocka_unit_test_setup(support_levels_become_causes, set_up),
        cmocka_unit_test_setup(unknown_chips_are_refused, set_up),
        cmocka_unit_test_setup(all_passes_count, set_up),
        cmocka_unit_test_setup(a_metric_without_value_is_missing, set_up),
        cmocka_unit_test_setup(counters_can_be_lost, set_up),
        cmocka_unit_test_setup(missing_passes_show, set_up),
        cmocka_unit_test_setup(dropped_ranges_show, set_up),
        cmocka_unit_test_setup(each_work_has_its_counts, set_up),
        cmocka_unit_test_setup(an_unknown_range_shows, set_up),
        cmocka_unit_test_setup(each_launch_has_its_counts, set_up),
        cmocka_unit_test_setup(another_number_of_launches_shows, set_up),
        cmocka_unit_test_setup(it_stands_by_if_told, set_up),
        cmocka_unit_test_setup(standing_by_may_be_in_the_way, set_up),
        cmocka_unit_test_setup(what_it_counts_grows, set_up),
        cmocka_unit_test_setup(there_is_room_for_several_ranges, set_up),
        cmocka_unit_test_setup(what_cannot_begin_leaves_nothing, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
