/* Roofs of a scripted GPU (scripted_vendor.h) with families of the test's own: tuning, proof,
 * samples. tests/gpu/roofs.sh measures the roofs of NVIDIA GPUs. */
#include "scripted_vendor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/roof.h"
#include "worker/gpu/energy.h"
#include "worker/gpu/roof_family.h"
#include "worker/gpu/roofs.h"

/* Memory roofs have many variants, compute roofs fewer, copies and launches one. */
enum { ROWS = 12, UNIT_ROWS = 3, CHOICES = 4, UNIT_METHODS = UNIT_ROWS * CHOICES };
#define CACHE 32e6 /* byte, working set of L2 */

/* Rate of the fastest variant: bytes, FLOPs or launches per second. */
static const struct offered {
    int kind;
    double rate;
    const struct roof_family *family;
} offers[] = {
    {ROOF_DRAM_READ, 4.61e12, &roofs_memory},
    {ROOF_DRAM_COPY, 4.23e12, &roofs_memory},
    {ROOF_L2_READ, 9.7e12, &roofs_memory},
    {ROOF_L1_READ, 30.1e12, &roofs_memory},
    {ROOF_SHARED_READ, 32.3e12, &roofs_memory},
    {ROOF_HOST_TO_DEVICE, 55e9, &roofs_transfer},
    {ROOF_DEVICE_TO_HOST, 56e9, &roofs_transfer},
    {ROOF_FP64_VECTOR, 32.5e12, &roofs_memory},
    {ROOF_FP16_TENSOR_MMA, 640e12, &roofs_memory},
    {ROOF_FP16_TENSOR_WGMMA, 980e12, &roofs_memory},
    {ROOF_FP8_TENSOR_WGMMA, 1970e12, &roofs_memory},
    {ROOF_LAUNCH_GAP, 1e6, &roofs_launch},
    {ROOF_L2_LATENCY, 7e6, &roofs_chase},
};
enum { OFFERS = sizeof offers / sizeof *offers };

static struct {
    int best;          /* number of the fastest variant of each kind */
    double begin_time; /* s, added to each run of the fastest variant */
    double less;       /* rate of other variants relative to the fastest */
    double slower;     /* factor of all times */
    int refused;       /* variants with lower numbers fail */
    bool loaded[ROOF_KINDS][ROWS], ran[ROOF_KINDS];
    int closed; /* calls of close */
    struct theory theory;
} test;

static struct roofs *roofs;
static struct resting_power resting;
static bool found[ROOF_KINDS]; /* result of the last tuning */
static struct profiler *const profiler =
    (struct profiler *)(void *)&test; /* the script has the counters */

static const struct offered *offer_of(int kind)
{
    for (int i = 0; i < OFFERS; ++i)
        if (offers[i].kind == kind)
            return &offers[i];
    return NULL;
}

/* ---- families ---- */

static const char rows[ROWS]; /* only their addresses matter */

static const void *row_of(const struct roof_family *family, int kind, int n)
{
    const struct offered *offer = offer_of(kind);
    const bool unit = roof_kinds[kind].measure == ROOF_COMPUTE;
    const int most = family->choices == 1 ? 1 : unit ? UNIT_ROWS : ROWS;
    return offer && offer->family == family && n < most ? &rows[n] : NULL;
}

static enum status prepare(struct roofs *all, int kind, const void *row, int choice,
                           struct variant *variant, struct error *error)
{
    const struct offered *offer = offer_of(kind);
    const bool copies = offer->family == &roofs_transfer, times = offer->family->time;
    assert_in_range(choice, 0, offer->family->choices - 1);
    *variant = (struct variant){.row = row,
                                .code = kind,
                                .blocks = choice,
                                .iterations = copies || times ? 1 : 8,
                                .elastic = !copies && !times,
                                .work = times ? 500 : offer->rate * (copies ? 2e-3 : 1e-6),
                                .access = offer->family == &roofs_chase ? 128 : 0};
    snprintf(variant->text, sizeof variant->text, "row %d, %d blocks",
             (int)((const char *)row - rows), choice);
    return roofs_reserve(all, &all->results, (size_t)(choice + 1) << 20, error);
}

/* Returns the time of a run, s. The first run of a variant loads code while the host waits. */
static enum status variant_time(const struct variant *variant, double *seconds, struct error *error)
{
    const double loading = 4e-3;
    const int row = (int)((const char *)variant->row - rows), kind = variant->code;
    const int number = row * offer_of(kind)->family->choices + variant->blocks;
    const bool best = number == test.best || offer_of(kind)->family->choices == 1;
    if (number < test.refused)
        return error_set(error, STATUS_FAILED, "no kernel image");
    if (!test.loaded[kind][row])
        clock_sleep(loading);
    test.loaded[kind][row] = test.ran[kind] = true;
    *seconds = run_work(variant) / (offer_of(kind)->rate * (best ? 1.0 : test.less));
    *seconds = *seconds * test.slower * script_next_jitter() + (best ? test.begin_time : 0.0);
    return STATUS_OK;
}

static enum status run(struct roofs *all, const struct variant *variant, struct error *error)
{
    const struct roof_kind *info = &roof_kinds[variant->code];
    double seconds, work = run_work(variant) * (variant->access > 0 ? variant->access : 1);
    assert_true(all->results.bytes >= (size_t)(variant->blocks + 1) << 20);
    TRY(variant_time(variant, &seconds, error));
    if (info->measure == ROOF_COMPUTE)
        script.done[quantity_of(info->precision, info->unit == UNIT_TENSOR)] += work;
    else
        for (int level = info->level; level < LEVEL_COUNT; ++level) {
            enum quantity read, write;
            if (quantity_of_level((enum memory_level)level, &read, &write))
                script.done[read] += work;
        }
    return script_enqueue(seconds, error);
}

static enum status reach(struct roofs *all, int kind, double *bytes, struct error *error)
{
    if (kind == ROOF_L2_READ)
        *bytes = CACHE;
    return STATUS_OK;
}

static enum status gap_time(struct roofs *all, const struct variant *variant, double *seconds,
                            struct error *error)
{
    TRY(variant_time(variant, seconds, error));
    TRY(script_enqueue(*seconds, error));
    return vendor_synchronize(all->gpu, error);
}

static void close_one(struct roofs *all)
{
    ++test.closed;
}

static const void *memory_row(struct roofs *all, int kind, int n)
{
    return row_of(&roofs_memory, kind, n);
}

static const void *transfer_row(struct roofs *all, int kind, int n)
{
    return row_of(&roofs_transfer, kind, n);
}

static const void *launch_row(struct roofs *all, int kind, int n)
{
    return row_of(&roofs_launch, kind, n);
}

static const void *chase_row(struct roofs *all, int kind, int n)
{
    return row_of(&roofs_chase, kind, n);
}

static const void *no_row(struct roofs *all, int kind, int n)
{
    return NULL;
}

const struct roof_family roofs_memory = {.row = memory_row,
                                         .choices = CHOICES,
                                         .prepare = prepare,
                                         .run = run,
                                         .reach = reach,
                                         .close = close_one,
                                         .counted = true};
const struct roof_family roofs_transfer = {
    .row = transfer_row, .choices = 1, .prepare = prepare, .run = run};
const struct roof_family roofs_launch = {
    .row = launch_row, .choices = 1, .prepare = prepare, .time = gap_time};
const struct roof_family roofs_chase = {
    .row = chase_row, .choices = 1, .prepare = prepare, .run = run, .counted = true};
const struct roof_family roofs_onchip = {.row = no_row}, roofs_vector = {.row = no_row},
                         roofs_tensor = {.row = no_row}, roofs_library = {.row = no_row};

/* ---- steps ---- */

static int restart(void **state)
{
    roofs_close(roofs);
    roofs = NULL;
    script_assert_clean();
    script_reset();
    memset(&test, 0, sizeof test);
    test.slower = 1.0;
    test.less = 0.9;
    test.theory =
        chip_theory(chip_find(90, "NVIDIA H200"), 132, script.sm_clock, script.memory_clock, 6016);
    script.theory = &test.theory;
    return 0;
}

static struct roof_request everything(void)
{
    struct roof_request request;
    memset(&request, 1, sizeof request);
    return request;
}

static enum status try_tune(const struct roof_request *request, bool prove, struct error *error)
{
    roofs_close(roofs);
    bool tuned[ROOF_KINDS];
    memcpy(tuned, found, sizeof tuned);
    TRY(roofs_tune(&roofs, NULL, request, tuned, error));
    enum status status = prove ? roofs_prove(roofs, profiler, error) : STATUS_OK;
    if (status) {
        roofs_close(roofs);
        roofs = NULL;
        return status;
    }
    memcpy(found, tuned, sizeof tuned);
    return STATUS_OK;
}

static void tune(const struct roof_request *request, bool prove)
{
    assert_ok(try_tune(request, prove, &failure));
}

static void tune_all(bool prove)
{
    const struct roof_request request = everything();
    tune(&request, prove);
}

static const struct roof_order at_once,
    sustained = {.sustained = true}, only_sustained = {.sustained = true, .only_sustained = true},
    energy = {.energy = true};

static enum status measure_status(int kind, struct roof_order order, struct roof *roof,
                                  struct error *error)
{
    roof_init(roof, kind, ROOF_ALONE);
    return roofs_measure(roofs, kind, &order, &resting, roof, error);
}

static struct roof measure(int kind, struct roof_order order)
{
    struct roof roof;
    assert_ok(measure_status(kind, order, &roof, &failure));
    return roof;
}

static void assert_starts(const char *text, const char *start)
{
    if (strncmp(text, start, strlen(start)) != 0)
        fail_msg("\"%s\", not \"%s\"", text, start);
}

/* ---- values ---- */

#define FRESH_TEST(name) TEST_WITH(name, restart, restart)

/* Devices of a node measure in turn, so all kinds together must be quick, except for the rests
 * before bursts of the tensor units. */
FRESH_TEST(all_kinds_have_their_values)
{
    const double rest = 0.06; /* s */
    double rests = 0.0, cool = 0.0;
    tune_all(false);
    const double begin = clock_monotonic();
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        const struct roof_kind *info = &roof_kinds[kind];
        assert_int_equal(found[kind], offer_of(kind) != NULL);
        if (!found[kind])
            continue;
        struct roof roof = measure(kind, at_once);
        assert_in_range(roof.samples, 5, info->measure == ROOF_TIME ? 64 : 8);
        assert_string_equal(roof.setting, "row 0, 0 blocks");
        assert_int_equal(roof.verdict, ROOF_UNPROVEN);
        assert_near(roof.sm_clock, script.sm_clock);
        assert_true(roof.spread < 0.01 && roof.median > 0.99);
        if (info->measure == ROOF_COMPUTE && info->unit == UNIT_TENSOR) {
            assert_true(roof.start_time > cool);
            cool = clock_epoch() + rest;
            rests += rest;
        }
        if (info->measure == ROOF_TIME) {
            assert_near(roof.time, 1.0 / offer_of(kind)->rate);
            continue;
        }
        assert_near(roof_value(&roof), offer_of(kind)->rate);
        assert_int_equal(roof.throttled, 0); /* the device was still busy */
    }
    assert_true(clock_monotonic() - begin - rests < 0.4);
}

/* The clock is that of the device's counters, not of the driver. */
FRESH_TEST(theory_goes_by_the_clock_that_was_counted)
{
    tune_all(false);
    const struct theory *theory = script.theory;
    script.sm_clock *= 0.9;
    script.memory_clock *= 0.95;
    const struct {
        enum roof_id kind;
        double theory, clock; /* clock / nominal clock */
    } cases[] = {
        {ROOF_FP64_VECTOR, theory->vector[PRECISION_FP64], 0.9},
        {ROOF_FP16_TENSOR_WGMMA, theory->tensor[PRECISION_FP16], 0.9},
        {ROOF_L1_READ, theory->bandwidth[LEVEL_L1], 0.9},
        {ROOF_SHARED_READ, theory->shared_read, 0.9},
        {ROOF_DRAM_READ, theory->bandwidth[LEVEL_DRAM], 0.95},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct roof roof = measure(cases[i].kind, at_once);
        double fraction = offer_of(cases[i].kind)->rate / cases[i].theory;
        assert_near(roof.sm_clock, script.sm_clock);
        assert_near(roof.nominal_fraction, fraction);
        assert_near(roof.clock_fraction, fraction / cases[i].clock);
        assert_int_equal(roof.verdict,
                         fraction / cases[i].clock > 1.01 ? ROOF_ABOVE_THEORY : ROOF_UNPROVEN);
    }
    struct roof roof = measure(ROOF_L2_READ, at_once); /* NVIDIA states no value for this chip */
    assert_true(isnan(roof.nominal_fraction) && isnan(roof.clock_fraction));
}

static bool a_few_times(void *argument)
{
    return --*(int *)argument >= 0;
}

/* Keeps the device busy until the neighbours have their samples. */
FRESH_TEST(a_roof_keeps_the_device_busy)
{
    tune_all(false);
    for (int i = 0; i < OFFERS; ++i) {
        int left = 7;
        double busy = script.busy;
        assert_ok(roofs_keep_busy(roofs, offers[i].kind, a_few_times, &left, &failure));
        assert_int_equal(left, -1);
        assert_true(script.busy > busy);
    }
    int left = 7;
    assert_fails_with(roofs_keep_busy(NULL, ROOF_DRAM_READ, a_few_times, &left, &failure),
                      STATUS_FAILED, "dram read was not tuned");
    assert_int_equal(left, 7);
}

/* ---- the search ---- */

/* In a short run begin_time would outweigh the better rate. */
FRESH_TEST(the_fastest_variant_wins)
{
    static const struct {
        int best;
        double begin_time, less;
        const char *setting;
    } cases[] = {{0, 0.0, 0.9, "row 0, 0 blocks"},
                 {CHOICES + 1, 0.0, 0.9, "row 1, 1 blocks"},
                 {UNIT_METHODS - 1, 20e-6, 0.99, "row 2, 3 blocks"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        test.best = cases[i].best;
        test.begin_time = cases[i].begin_time;
        test.less = cases[i].less;
        tune_all(false);
        struct roof roof = measure(ROOF_FP64_VECTOR, at_once);
        assert_string_equal(roof.setting, cases[i].setting);
        assert_near(roof_value(&roof), offer_of(ROOF_FP64_VECTOR)->rate);
    }
}

FRESH_TEST(only_requested_kinds_are_tuned)
{
    struct roof_request request;
    const size_t flags = offsetof(struct roof_request, condition);
    for (size_t i = 0; i <= flags; ++i) { /* the last request is empty */
        request = (struct roof_request){.launch = false};
        if (i < flags)
            ((bool *)&request)[i] = true;
        memset(test.ran, 0, sizeof test.ran);
        tune(&request, i == flags);
        for (int kind = 0; kind < ROOF_KINDS; ++kind) {
            bool wanted = offer_of(kind) && roof_requested(&request, kind);
            assert_int_equal(found[kind], wanted);
            assert_int_equal(test.ran[kind], wanted);
        }
    }
    assert_int_equal(script.collections, 0);
}

/* ---- what fails ---- */

FRESH_TEST(a_variant_that_cannot_run_is_passed_over)
{
    struct roof roof, untouched;
    test.refused = 2;
    tune_all(false);
    assert_starts(measure(ROOF_L2_READ, at_once).setting, "row 0, 2 blocks");
    roof_init(&untouched, ROOF_LAUNCH_GAP, ROOF_ALONE); /* this kind has a single variant */
    assert_true(found[ROOF_LAUNCH_GAP]);
    assert_fails_with(measure_status(ROOF_LAUNCH_GAP, at_once, &roof, &failure), STATUS_FAILED,
                      "no kernel image");
    assert_memory_equal(&roof, &untouched, sizeof roof);
}

/* Fails each of the first calls once, and later calls at growing distances. A lost device is
 * reported, and nothing stays allocated. Any other failure loses a variant, or at most a kind, and
 * leaks no memory. */
FRESH_TEST(any_call_may_fail)
{
    const struct roof_request request = everything();
    tune(&request, true);
    const int calls = script.calls;
    for (int at = 1; at < calls; at += 1 + at / 50) {
        const bool none[ROOF_KINDS] = {false};
        struct roof roof;
        int missing = 0;
        restart(NULL);
        memset(found, 0, sizeof found);
        script.lost_at = at;
        assert_int_equal(try_tune(&request, true, &failure), STATUS_DEVICE);
        assert_null(roofs);
        assert_int_equal(test.closed, 1);
        assert_memory_equal(found, none, sizeof found);
        restart(NULL);
        script.fail_at = at;
        enum status status = try_tune(&request, true, &failure);
        assert_true(status == STATUS_OK || status == STATUS_FAILED);
        for (int i = 0; status == STATUS_OK && i < OFFERS; ++i)
            missing += measure_status(offers[i].kind, at_once, &roof, &failure) != STATUS_OK;
        assert_in_range(missing, 0, 1);
    }
}

/* The message names the variant that lost the device, one of hundreds. */
FRESH_TEST(a_lost_device_is_reported)
{
    const struct roof_request request = everything();
    struct roof roof;
    script.lost_at = 90;
    assert_int_equal(try_tune(&request, false, &failure), STATUS_DEVICE);
    assert_starts(failure.text, "dram read, row 1, 1 blocks: ");
    restart(NULL);
    tune_all(false);
    script.lost_at = script.calls + 10;
    for (int i = 0; i < OFFERS; ++i)
        assert_int_equal(measure_status(offers[i].kind, at_once, &roof, &failure), STATUS_DEVICE);
    assert_int_equal(try_tune(&request, true, &failure), STATUS_DEVICE);
    assert_null(roofs);
}

/* With little memory each kind is measured, or names memory as the reason. */
FRESH_TEST(no_memory_is_a_reason)
{
    for (int i = 0; i <= CHOICES; ++i) {
        script.free_bytes = (i + 0.5) * (1 << 20);
        tune_all(false);
        for (int j = 0; j < OFFERS; ++j) {
            struct roof roof;
            if (i == 0)
                assert_fails(measure_status(offers[j].kind, at_once, &roof, &failure),
                             STATUS_UNSUPPORTED, "of device memory for the roofs");
            else
                assert_ok(measure_status(offers[j].kind, at_once, &roof, &failure));
        }
    }
}

/* ---- common start ---- */

FRESH_TEST(samples_begin_at_the_common_start)
{
    const double resolution = 20e-6; /* s for enqueueing the first sample */
    tune_all(false);
    for (int i = 0; i < OFFERS; ++i) {
        const double start = clock_epoch() + 0.05;
        struct roof roof = measure(offers[i].kind, (struct roof_order){.start = start});
        assert_true(roof.start_time >= start && roof.start_time < start + resolution);
        /* the device has finished the warm-up by then */
        assert_true(script.begin_time >= start && script.begin_time < start + resolution);
    }
}

FRESH_TEST(a_start_that_has_passed_is_too_late)
{
    static const struct {
        double start, slower; /* s from now; factor of times: by 10 the warm-up takes too long */
        enum status status;
    } cases[] = {{-1.0, 1.0, STATUS_FAILED},
                 {-10e-3, 1.0, STATUS_FAILED},
                 {1e-3, 10.0, STATUS_FAILED},
                 {1e-3, 1.0, STATUS_OK}};
    tune_all(false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const struct roof_order order = {.start = clock_epoch() + cases[i].start};
        struct roof roof;
        test.slower = cases[i].slower;
        assert_int_equal(measure_status(ROOF_DRAM_COPY, order, &roof, &failure), cases[i].status);
        assert_int_equal(isnan(roof.bandwidth), cases[i].status != STATUS_OK);
        if (cases[i].status)
            assert_starts(failure.text, "too late");
    }
}

/* ---- proofs ---- */

/* Each case changes the counts of one quantity. Counters do not see copy engines. */
FRESH_TEST(counts_decide_the_verdict)
{
    static const struct {
        const char *collection;
        enum quantity quantity;
        double counted;
        const char *kinds; /* part of the affected kinds' names; other kinds are proven */
        enum roof_verdict verdict;
    } cases[] = {
        {"counted", QUANTITY_DRAM_READ, 1.1, "dram", ROOF_CONTRADICTED},
        {"counted", QUANTITY_L2_READ, 0.9, "l2", ROOF_CONTRADICTED},
        {"counted", QUANTITY_L1_READ, 0.9, "l1", ROOF_CONTRADICTED},
        {"counted", QUANTITY_VECTOR_FP64, 2.0, "fp64 vector", ROOF_CONTRADICTED},
        {"counted", QUANTITY_TENSOR_FP16, 0.95, "fp16", ROOF_CONTRADICTED},
        {"counted", QUANTITY_TENSOR_FP8, 0.0, "fp8", ROOF_CONTRADICTED},
        {"counted", QUANTITY_TENSOR_FP8, NAN, "fp8", ROOF_UNPROVEN},
        {"refused: taken by another; wait", QUANTITY_DRAM_READ, 1.0, "", ROOF_UNPROVEN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        restart(NULL);
        script.collection = cases[i].collection;
        script.counted[cases[i].quantity] = cases[i].counted;
        tune_all(true);
        assert_int_equal(script.collections, 1);
        for (int j = 0; j < OFFERS; ++j) {
            const char *name = roof_kinds[offers[j].kind].name;
            enum roof_verdict expected = !offers[j].family->counted     ? ROOF_UNPROVEN
                                         : strstr(name, cases[i].kinds) ? cases[i].verdict
                                                                        : ROOF_PROVEN;
            if (measure(offers[j].kind, at_once).verdict != (int64_t)expected)
                fail_msg("%zu: %s is not %s", i, name, roof_verdict_name[expected]);
        }
    }
}

/* ---- sustained ---- */

static void assert_between(double value, double least, double most)
{
    if (!(value > least && value < most))
        fail_msg("%g is not between %g and %g", value, least, most);
}

/* One window at the burst's clock is enough, because nothing limits the clock. With only_sustained
 * the burst is not repeated. */
FRESH_TEST(a_settled_clock_is_sustained_soon)
{
    const double rate = offer_of(ROOF_FP16_TENSOR_WGMMA)->rate;
    tune_all(false);
    struct roof roof = measure(ROOF_FP16_TENSOR_WGMMA, sustained);
    assert_near(roof.sustained, rate);
    assert_near(roof.sustained_clock, script.sm_clock);
    assert_near(roof.sustained_power, 700.0);
    assert_int_equal(roof.settled, 1);
    assert_between(roof.settling_time, 0.1, 0.15);
    assert_true(isnan(measure(ROOF_FP16_TENSOR_WGMMA, at_once).sustained)); /* not requested */
    assert_true(isnan(measure(ROOF_L2_READ, sustained).sustained));
    assert_true(isnan(measure(ROOF_LAUNCH_GAP, sustained).sustained));
    assert_true(measure(ROOF_L2_READ, sustained).working_set == CACHE);
    assert_true(isnan(measure(ROOF_L2_READ, at_once).working_set)); /* not requested */

    roof = measure(ROOF_FP16_TENSOR_WGMMA, only_sustained);
    assert_near(roof.sustained, rate);
    assert_int_equal(roof.settled, 1);
    assert_true(isnan(roof_value(&roof)) && isnan(roof.sm_clock));
    assert_int_equal(roof.samples, FIELD_MISSING);
    roof = measure(ROOF_DRAM_READ, only_sustained); /* no effect on memory roofs */
    assert_near(roof_value(&roof), offer_of(ROOF_DRAM_READ)->rate);
}

/* After the burst the clock falls to `share` of the full clock, and returns with a time constant.
 * The script's power is proportional to the clock: 700 W at the full clock. The limit holds on the
 * average: a load draws more for a while, and then less. */
FRESH_TEST(a_load_goes_on_until_the_clock_settles)
{
    static const struct {
        double share, comes_back_in, swings_by, limit;
        bool settled;
        double earliest, latest; /* s */
        double clock;            /* clock / sm_clock; NaN: not checked */
    } cases[] = {
        {1.0, 1e6, 0, 650.0, false, 1.9, 2.2, NAN}, /* the clock must still fall */
        {1.0, 1e6, 0, NAN, true, 0.0, 0.35, 1.0},
        {0.9, 1e6, 0, 630.0, true, 0.15, 0.25, 0.9}, /* the limit determines the clock */
        {0.9, 1e6, 0, 800.0, true, 0.45, 0.8, 0.9},  /* below the limit: constant for 0.5 s */
        {0.5, 2.0, 0, 800.0, false, 1.9, 2.2, NAN},  /* rises all the time */
        {1.0, 1e6, 0.08, 700.0, true, 0.15, 1.2, 1.0},
    };
    tune_all(false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        script.falls_by = script.swings_by = 0.0;
        measure(ROOF_FP16_TENSOR_WGMMA, at_once);
        script.power_limit = cases[i].limit;
        script.falls_by = cases[i].share - 1.0;
        script.falls_from = script_device_time();
        script.falls_in = cases[i].comes_back_in;
        script.swings_by = cases[i].swings_by;
        script.swings_in = 1.0;
        struct roof roof = measure(ROOF_FP16_TENSOR_WGMMA, only_sustained);
        assert_int_equal(roof.settled, cases[i].settled);
        assert_between(roof.settling_time, cases[i].earliest, cases[i].latest);
        if (!isnan(cases[i].clock)) {
            assert_between(roof.sustained_clock / script.sm_clock / cases[i].clock, 0.97, 1.03);
            assert_between(roof.sustained_power / 700.0 / cases[i].clock, 0.97, 1.03);
        }
    }
}

/* The clock falls by a fifth: bursts run at the high clock, sustained loads at the low clock. */
FRESH_TEST(sustained_comes_after_the_fall)
{
    tune_all(false);
    script.falls_by = 0.25;
    script.falls_from = script_device_time();
    script.falls_in = 0.3;
    const struct roof_order soon = {.start = clock_epoch() + 0.015, .sustained = true};
    struct roof roof = measure(ROOF_FP16_TENSOR_WGMMA, soon);
    assert_true(roof.sm_clock > 1.2 * script.sm_clock);
    assert_between(roof.sustained_clock / script.sm_clock, 0.98, 1.02);
    assert_int_equal(roof.settled, 1);
    assert_between(roof.settling_time, 0.5, 1.8);

    script.falls_by = 10.0; /* falls by 1 % in a window even at the end */
    script.falls_from = script_device_time();
    script.falls_in = 3.0;
    roof = measure(ROOF_FP16_TENSOR_WGMMA, sustained);
    assert_int_equal(roof.settled, 0);
    assert_between(roof.settling_time, 1.9, 2.2);
}

/* ---- energy ---- */

/* The constant power is measured once and subtracted. Each power is known to 2 %, which takes
 * longer if the counter is read less often. */
FRESH_TEST(a_roof_has_its_energy)
{
    static const struct {
        int pause_every;
        double pause_time, earliest, latest; /* s */
    } paces[] = {{0, 0.0, 0.65, 1.1}, {8, 20e-3, 0.9, 1.6}, {8, 80e-3, 3.0, 4.5}};
    tune_all(false);
    resting = (struct resting_power){NAN, NAN};
    assert_true(isnan(measure(ROOF_DRAM_READ, energy).energy_power));
    script.idle_power = 100.0; /* a counter exists */
    script.blocked_power = 150.0;
    script.busy_power = 600.0;
    assert_true(isnan(measure(ROOF_DRAM_READ, at_once).energy)); /* not requested */
    for (int i = 0; i < OFFERS; ++i) {
        const struct roof roof = measure(offers[i].kind, energy);
        const bool has = offers[i].family == &roofs_memory;
        assert_int_equal(!isnan(roof.energy), has);
        if (has) {
            assert_near(roof.rest_power, script.idle_power);
            assert_between(roof.constant_power / script.blocked_power, 0.98, 1.02);
            assert_between(roof.energy_power / script.busy_power, 0.98, 1.02);
            assert_between(roof.energy * offers[i].rate / 450.0, 0.96, 1.04);
        }
    }
    for (size_t i = 0; i < sizeof paces / sizeof *paces; ++i) {
        script.pause_every = paces[i].pause_every;
        script.pause_time = paces[i].pause_time;
        const double begin = clock_monotonic();
        const struct roof roof = measure(ROOF_L2_READ, energy);
        assert_between(clock_monotonic() - begin, paces[i].earliest, paces[i].latest);
        assert_int_equal(!isnan(roof.energy_power), paces[i].latest < 4.0);
    }
}

/* A longer load before the burst would lower the clock. */
FRESH_TEST(a_burst_begins_cool)
{
    tune_all(false);
    double busy = script.busy;
    measure(ROOF_FP16_TENSOR_WGMMA,
            (struct roof_order){.start = clock_epoch() + 0.5, .sustained = true});
    assert_between(script.busy - busy, 0.1, 0.2); /* the window without the preceding half second */
}
