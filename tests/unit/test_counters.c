/* Hardware counters of pieces of work, over a scripted CUPTI (scripted_cupti.h). */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "scripted_cupti.h"
#include "worker/cuda/profiling/counters.h"

enum { MANY = 20, MORE = 200, LAUNCHES = 3, BEFORE = 2, ROOM = 32 };

static struct counters *counters;
static double values[MORE][QUANTITY_COUNT]; /* values of the last collection */

/* Work that checks when it is called. */
static struct piece {
    int prepared, ran;
    int fails_at;    /* number of the run that fails; 0: none */
    bool unloads;    /* `run` unloads a module */
    size_t launches; /* launches by `run` */
} pieces[MORE];

/* Prepares the caches. It runs after the start of the pass, so that the data of the pass do not
 * replace the work's data in L2. */
static enum status piece_prepare(void *argument, struct error *error)
{
    struct piece *piece = argument;
    assert_true(cupti.passing && !cupti.within);
    ++piece->prepared;
    for (int i = 0; i < BEFORE; ++i)
        cupti_launch();
    return STATUS_OK;
}

static enum status piece_run(void *argument, struct error *error)
{
    struct piece *piece = argument;
    assert_true(cupti.within == (piece->launches == 0));
    assert_int_equal(piece->prepared, piece->ran + 1); /* prepared right before each run */
    ++cupti.runs;
    for (size_t i = 0; i < piece->launches; ++i)
        cupti_launch();
    if (piece->unloads)
        cupti_unload();
    return ++piece->ran == piece->fails_at ? error_set(error, STATUS_FAILED, "it cannot run")
                                           : STATUS_OK;
}

/* ---- steps ---- */

static size_t wrong; /* traced launches that do not run */

/* Returns the printed outcome; valid until the next call. */
static const char *text_of(const struct outcome *outcome)
{
    static char text[OUTCOME_TEXT];
    outcome_format(outcome, counted_word, text);
    return text;
}

/* Returns the printed outcome. Without COUNTED_YES there must be no value. */
static const char *text_checked(const struct outcome *outcome, size_t count)
{
    for (size_t i = 0; i < count * QUANTITY_COUNT && outcome->code != COUNTED_YES; ++i)
        assert_true(isnan(values[i / QUANTITY_COUNT][i % QUANTITY_COUNT]));
    return text_of(outcome);
}

static enum status collect_status(unsigned tensors, size_t count, struct outcome *outcome)
{
    struct profiled_work works[MORE];
    for (size_t i = 0; i < count; ++i) {
        pieces[i].prepared = pieces[i].ran = 0;
        pieces[i].launches = 0;
        works[i] = (struct profiled_work){piece_prepare, piece_run, &pieces[i], NULL};
    }
    cupti.runs = 0;
    cupti.passes = CUPTI_PASSES * (int)count;
    return counters_collect(counters, tensors, works, count, NULL, 0, values, outcome, &failure);
}

static const char *collect(unsigned tensors, size_t count)
{
    struct outcome outcome;
    assert_int_equal(collect_status(tensors, count, &outcome), STATUS_OK);
    return text_checked(&outcome, count);
}

/* Collects `count` works: the first has `launches` launches, each further one has one more. */
static const char *collect_launches(unsigned tensors, size_t launches, size_t count)
{
    struct outcome outcome;
    struct profiled_work works[LAUNCHES];
    size_t each[LAUNCHES], all = 0;
    for (size_t i = 0; i < count; ++i) {
        works[i] = (struct profiled_work){piece_prepare, piece_run, &pieces[i], NULL};
        pieces[i].prepared = pieces[i].ran = 0;
        pieces[i].launches = each[i] = launches + i;
        all += each[i];
    }
    each[0] += wrong;
    cupti.runs = 0;
    cupti.passes = CUPTI_PASSES * (int)count;
    assert_ok(
        counters_collect(counters, tensors, works, count, each, ROOM, values, &outcome, &failure));
    return text_checked(&outcome, all);
}

static int set_up(void **state)
{
    struct outcome refused;
    cupti_set_up(state);
    memset(pieces, 0, sizeof pieces);
    counters = counters_open(0, NULL, &refused);
    assert_non_null(counters);
    return 0;
}

static int tear_down(void **state)
{
    counters_close(counters);
    assert_int_equal(cupti.enabled, cupti.disabled);
    assert_int_equal(cupti.finalized, cupti.attached);
    return 0;
}

static void restart(void)
{
    tear_down(NULL);
    set_up(NULL);
}

/* ---- refusals ---- */

static const char *refusal(void)
{
    struct outcome outcome = {.code = OUTCOME_MISSING};
    struct counters *opened = counters_open(0, NULL, &outcome);
    assert_int_equal(opened != NULL, outcome.code == OUTCOME_MISSING);
    counters_close(opened);
    assert_int_equal(cupti.finalized, 1);
    return text_of(&outcome);
}

TEST(a_refusal_has_its_cause_and_the_way_out)
{
    CUptiResult *const places[] = {&cupti.initialize, &cupti.supported, &cupti.availability};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        cupti_set_up(state);
        *places[i] = CUPTI_ERROR_HARDWARE_BUSY;
        assert_string_equal(refusal(),
                            "refused: another process holds this GPU's counters (CUPTI_ERROR); end "
                            "other profilers on this GPU; where DCGM watches it, the administrator "
                            "pauses that with dcgmi profile --pause");
    }
    cupti_set_up(state);
    cupti.supported = CUPTI_ERROR_UNKNOWN;
    assert_string_equal(refusal(), "refused: cuptiProfilerDeviceSupported: CUPTI_ERROR");
    cupti_set_up(state);
    cupti.chip = "XY999";
    assert_says(refusal(), "XY999");
}

#define LEVEL(member, level, what)                                                                 \
    {                                                                                              \
        offsetof(CUpti_Profiler_DeviceSupported_Params, member),                                   \
            CUPTI_PROFILER_CONFIGURATION_##level, what                                             \
    }

TEST(support_levels_become_causes)
{
    static const struct {
        size_t member;
        CUpti_Profiler_Support_Level level;
        const char *what;
    } levels[] = {
        LEVEL(vGpu, UNSUPPORTED, "the GPU is virtual"),
        LEVEL(vGpu, DISABLED, "hypervisor"),
        LEVEL(confidentialCompute, UNSUPPORTED, "confidential computing"),
        LEVEL(cmp, UNSUPPORTED, "mining"),
        LEVEL(wsl, UNSUPPORTED, "Windows"),
        LEVEL(architecture, UNSUPPORTED, "does not support this GPU"),
    };
    for (size_t i = 0; i < sizeof levels / sizeof *levels; ++i) {
        cupti_set_up(state);
        CUpti_Profiler_Support_Level fine = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
        cupti.support.vGpu = cupti.support.cmp = cupti.support.wsl = fine;
        cupti.support.confidentialCompute = cupti.support.architecture = fine;
        cupti.support.isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
        memcpy((char *)&cupti.support + levels[i].member, &levels[i].level, sizeof levels[i].level);
        assert_says(refusal(), levels[i].what);
    }
}

/* ---- counts ---- */

#define BENCH_TEST(name) TEST_WITH(name, set_up, tear_down)

/* Each pass starts once and runs every work. The names of ranges assign values to works: the
 * script's image has the last range first. CUPTI gets room for exactly the ranges of a collection;
 * more ranges enable the profiler again. */
BENCH_TEST(each_work_has_its_counts)
{
    static const struct {
        size_t works, room;
        int enabled;
    } rows[] = {{1, 1, 1}, {MANY, MANY, 2}, {3, MANY, 2}, {MORE, MORE, 3}, {MANY, MORE, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        assert_string_equal(collect(quantity_tensor(QUANTITY_TENSOR_FP16), rows[i].works),
                            "counted");
        assert_int_equal(cupti.range, CUPTI_UserRange);
        assert_int_equal(cupti.enabled, rows[i].enabled);
        assert_int_equal(cupti.room, rows[i].room);
        for (size_t j = 0; j < rows[i].works; ++j) {
            assert_int_equal(pieces[j].ran, CUPTI_PASSES);
            assert_true(values[j][QUANTITY_DRAM_READ] == CUPTI_EACH * (double)(rows[i].works - j));
            assert_true(isnan(values[j][QUANTITY_TENSOR_BF16])); /* not requested */
        }
    }
}

/* Launches of `prepare` and of other works do not count. The script's image has the last range
 * first. */
BENCH_TEST(each_launch_has_its_counts)
{
    for (size_t count = 1; count <= LAUNCHES; ++count) {
        size_t launches = 0;
        assert_string_equal(collect_launches(0, 2, count), "counted");
        for (size_t i = 0; i < count; ++i)
            launches += pieces[i].launches;
        assert_int_equal(cupti.in_pass, launches);
        assert_int_equal(cupti.runs, CUPTI_PASSES * (int)count);
        assert_int_equal(cupti.enabled, 1);
        assert_int_equal(cupti.room, ROOM);
        for (size_t i = 0; i < launches; ++i)
            assert_true(values[i][QUANTITY_DRAM_READ] == CUPTI_EACH * (double)(launches - i));
    }
    wrong = 1;
    assert_string_equal(collect_launches(0, 2, 1), "incomplete: 2 launches where 3 were traced");
    wrong = 0;
}

/* A shared MIG slice lacks values. */
BENCH_TEST(a_metric_without_value_is_missing)
{
    cupti.lacking = "dram__";
    assert_string_equal(collect(0, 1), "counted");
    assert_true(isnan(values[0][QUANTITY_DRAM_READ]));
    assert_true(values[0][QUANTITY_VECTOR_FP32] > 0.0);
}

/* Any failure detaches CUPTI, and the next collection succeeds. */
BENCH_TEST(failures_say_why)
{
    static const struct {
        struct cupti_trouble trouble;
        const char *text;
        int runs;
        size_t launches; /* counted launches; 0: MANY works */
    } rows[] = {
        {{.enable = CUPTI_ERROR_HARDWARE_BUSY}, "refused: another process holds", 0, 0},
        {{.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES}, "refused: this user may not read", 0, 0},
        /* in the second pass */
        {{.push = CUPTI_ERROR_INVALID_OPERATION, .push_from = MANY + 7},
         "refused: range profiler: ",
         MANY + 7,
         0},
        {{.passes = 1}, "incomplete: 3 passes were not enough", CUPTI_PASSES * MANY, 0},
        {{.dropped = 3}, "incomplete: 3 ranges dropped, 20 kept for 20", 60, 0},
        {{.ranges = MANY - 1}, "incomplete: 0 ranges dropped, 19 kept for 20", 60, 0},
        {{.ranges = MANY + 1}, "incomplete: 0 ranges dropped, 21 kept for 20", 60, 0},
        {{.nameless = true}, "incomplete: range 0 is unknown", 60, 0},
        {{.ranges = LAUNCHES - 1}, "incomplete: 0 ranges dropped, 2 kept for 3", 3, LAUNCHES},
        {{.push = CUPTI_ERROR_INVALID_OPERATION, .push_from = 4},
         "refused: range profiler: ",
         2,
         LAUNCHES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        restart();
        cupti.trouble = rows[i].trouble;
        const char *text =
            rows[i].launches ? collect_launches(0, rows[i].launches, 1) : collect(0, MANY);
        assert_memory_equal(text, rows[i].text, strlen(rows[i].text));
        assert_int_equal(cupti.runs, rows[i].runs);
        assert_false(counters_are_attached(counters));
        assert_int_equal(cupti.finalized, cupti.attached);
        cupti.trouble = (struct cupti_trouble){.push_from = 0};
        assert_string_equal(collect(0, 1), "counted");
    }
}

/* In any pass a failure detaches CUPTI and leaves no value; the next collection succeeds. */
BENCH_TEST(a_work_that_fails_ends_the_collection)
{
    for (int pass = 1; pass <= CUPTI_PASSES; ++pass) {
        struct outcome outcome;
        restart();
        pieces[MANY / 2].fails_at = pass;
        assert_int_equal(collect_status(0, MANY, &outcome), STATUS_FAILED);
        assert_true(isnan(values[0][QUANTITY_DRAM_READ]));
        assert_int_equal(pieces[MANY / 2 + 1].ran, pass - 1);
        assert_false(cupti.passing);
        assert_false(counters_are_attached(counters));
        pieces[MANY / 2].fails_at = 0;
        assert_string_equal(collect(0, MANY), "counted");
    }
}

/* ---- attachment ---- */

/* One attachment serves many collections; another kind of range needs a new one. */
BENCH_TEST(cupti_stays_attached)
{
    for (int i = 0; i < 3; ++i) {
        assert_string_equal(collect(0, 1), "counted");
        assert_true(counters_are_attached(counters));
    }
    assert_int_equal(cupti.enabled, 1);
    assert_int_equal(cupti.finalized, 0);
    assert_string_equal(collect_launches(0, 1, 1), "counted");
    assert_int_equal(cupti.enabled, 2);
    assert_int_equal(cupti.disabled, 1);
    assert_int_equal(cupti.finalized, 1);
    for (int i = 0; i < 2; ++i) {
        counters_detach(counters);
        assert_false(counters_are_attached(counters));
        assert_int_equal(cupti.finalized, cupti.attached);
    }
    assert_false(counters_are_attached(NULL));
}

/* If CUPTI refuses a second configuration, each collection attaches it once. */
BENCH_TEST(a_refused_configuration_attaches_each_time)
{
    cupti.config_once = true;
    for (int i = 1; i <= 4; ++i) {
        assert_string_equal(collect(0, 1), "counted");
        assert_int_equal(cupti.enabled, i); /* once for each collection */
    }
}

/* Activities need a configuration of their own, and exclude other quantities. */
BENCH_TEST(activities_are_counted_apart)
{
    static const unsigned requested[] = {0, QUANTITY_ACTIVITIES, QUANTITY_ACTIVITIES};
    static const int enabled[] = {1, 2, 2};
    for (size_t i = 0; i < sizeof requested / sizeof *requested; ++i) {
        assert_string_equal(collect_launches(requested[i], 1, 1), "counted");
        assert_int_equal(cupti.enabled, enabled[i]);
        assert_int_equal(isnan(values[0][QUANTITY_VECTOR_FP32]), requested[i] != 0);
        for (int j = 0; j < ACTIVITY_COUNT; ++j)
            assert_int_equal(isnan(values[0][QUANTITY_ACTIVITY + j]), requested[i] == 0);
    }
}

/* CUPTI keeps its first configuration, so new tensors attach it again, to count all tensors
 * requested so far. A later collection of any of them needs no attachment. Each collection gets
 * only the values that it requested. */
BENCH_TEST(requested_tensors_add_up)
{
    enum { FP16 = 1 << 2, BF16 = 1 << 3, DETACHED = 1 << 16 };
    static const struct {
        unsigned tensors;
        int enabled;
    } rows[] = {{0, 1},   {0, 1},    {FP16, 2},
                {0, 2},   {BF16, 3}, {FP16, 3},
                {0, 3},   {BF16, 3}, {DETACHED | FP16, 4},
                {BF16, 5}};
    assert_int_equal(quantity_tensor(QUANTITY_TENSOR_FP16), FP16);
    assert_int_equal(quantity_tensor(QUANTITY_TENSOR_BF16), BF16);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        unsigned tensors = rows[i].tensors & ~DETACHED;
        if (rows[i].tensors & DETACHED) /* forgets the requested tensors */
            counters_detach(counters);
        assert_string_equal(collect(tensors, 1), "counted");
        assert_int_equal(cupti.enabled, rows[i].enabled);
        assert_true(values[0][QUANTITY_VECTOR_FP32] > 0.0);
        assert_int_equal(values[0][QUANTITY_TENSOR_FP16] == CUPTI_EACH, tensors == FP16);
        assert_int_equal(isnan(values[0][QUANTITY_TENSOR_BF16]), tensors != BF16);
    }
}

/* CUPTI would take code loaded to the same address for the unloaded code. */
BENCH_TEST(unloaded_code_attaches_again)
{
    static const int enabled[] = {1, 1, 2, 2}; /* after each collection */
    cupti_unload();                            /* before anything was counted */
    for (size_t i = 0; i < sizeof enabled / sizeof *enabled; ++i) {
        if (i == 2)
            cupti_unload();
        assert_string_equal(collect(0, 1), "counted");
        assert_int_equal(cupti.enabled, enabled[i]);
    }
    pieces[0].unloads = true;
    assert_string_equal(collect(0, 1),
                        "incomplete: a module was unloaded while its kernels were counted");
}

/* While another tool is the subscriber, unloaded modules are not reported: each collection attaches
 * CUPTI. */
BENCH_TEST(without_a_subscriber_each_collection_attaches)
{
    cupti.subscribe = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    for (int i = 1; i <= 3; ++i) {
        assert_string_equal(collect(0, 1), "counted");
        assert_int_equal(cupti.enabled, i);
    }
    assert_int_equal(cupti.subscribed, 0);
}
