/* The CPU device through device_ops: every element of its results against the reference, for shapes
 * that reach every branch of the routines; and messages of its rows. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "in_turn.h"
#include "opened.h"
#include "parsed.h"
#include "worker/cpu/routine.h"
#include "worker/device_ops.h"
#include "model/reference.h"
#include "worker/verify.h"
#include "model/workloads/conv2d.h"

static const uint64_t seed = 3;
static struct expected kept; /* one reference for several rows */

static int flips; /* bits that bits_check flipped */

static uint64_t hash_of(struct device_state *state, struct work *work)
{
    uint64_t hash = 0;
    assert_ok(device_ops.hash(state, work, &hash, &failure));
    return hash;
}

/* The hash changes if any bit of a result does. */
static void bits_check(struct device_state *state, struct work *work, uint64_t hash)
{
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        const size_t bytes = (size_t)work->size[i] * work->element;
        for (size_t at = 0; work->writes[i] && at < bytes; at += (bytes + 2) / 3, ++flips) {
            const unsigned char bit = (unsigned char)(1 << flips % 8);
            ((unsigned char *)work->result[i])[at] ^= bit;
            assert_true(hash_of(state, work) != hash);
            ((unsigned char *)work->result[i])[at] ^= bit;
        }
    }
    assert_true(hash_of(state, work) == hash);
}

/* Prepares, runs and times the work. Its iterations agree in each bit, so that none adds to earlier
 * results. Returns NULL if the device does not support the configuration. */
static struct work *run_work(struct device_state *state, const char *text,
                             const struct config *config)
{
    struct work *work = NULL;
    struct record record;
    double seconds[2];
    record_init(&record);
    enum status status = device_ops.prepare(state, config, seed, &work, &record, &failure);
    if (status == STATUS_OK)
        status = device_ops.run(state, work, INT64_MAX, &failure);
    const uint64_t hash = status == STATUS_OK ? hash_of(state, work) : 0;
    if (status == STATUS_OK)
        status = device_ops.time(state, work, false, 2, seconds, &record, &failure);
    if (status && status != STATUS_UNSUPPORTED)
        fail_msg("%s: %s", text, failure.text);
    if (status)
        return NULL;
    assert_true(record.algorithm[0] != '\0' && strcmp(record.implementation, "auto") != 0);
    assert_true(seconds[0] > 0.0 && seconds[1] > 0.0);
    assert_true(isnan(record.threads_running) /* too short */ ||
                (record.threads_running > 0 && record.threads_waiting >= 0 &&
                 record.threads_running + record.threads_waiting <= 1 + 1e-9));
    assert_true(record.involuntary_switches >= 0 && record.host_load >= 0);
    record_clear(&record);
    bits_check(state, work, hash);
    return work;
}

struct prepared {
    struct device_state *state;
    struct work *work;
};

static enum status result_read(void *context, enum tensor tensor, const int64_t *offsets,
                               int64_t count, double *values, struct error *error)
{
    const struct prepared *from = context;
    return device_ops.read(from->state, from->work, tensor, offsets, count, values, error);
}

static void check_slice(struct prepared *from, const char *text, const struct config *config,
                        const struct slice *slice)
{
    double *values = malloc((size_t)slice->count * sizeof *values), squares = 0.0;
    struct slice_errors errors = {0};
    assert_non_null(values);
    if (result_read(from, slice->tensor, slice->offsets, slice->count, values, &failure))
        fail_msg("%s: %s", text, failure.text);
    for (int64_t i = 0; i < slice->count; ++i)
        squares += slice->expected[i] * slice->expected[i];
    slice_compare(slice, values, config_precision(config), &errors);
    if (!(errors.norm <= config_tolerance(config).accurate) || squares == 0.0)
        fail_msg("%s: relative error %g over %lld elements", text, errors.norm,
                 (long long)slice->count);
    free(values);
}

/* Compares every element of the results. False: the device does not support the configuration. */
static bool check_all(struct device_state *state, const char *text)
{
    struct config config = parse(text);
    struct prepared from = {state, run_work(state, text, &config)};
    const struct reference_request request = {&config,      seed,        INFINITY, 1,   INT64_MAX,
                                              loop_in_turn, result_read, &from,    NULL};
    struct expectation expectation = {.count = 0};
    if (!from.work)
        return false;
    if (config.workload->reference(&request, &expectation, &failure))
        fail_msg("%s: %s", text, failure.text);
    for (size_t i = 0; i < expectation.count; ++i)
        check_slice(&from, text, &config, &expectation.slices[i]);
    device_ops.release(state, from.work);
    expectation_clear(&expectation);
    return true;
}

/* Calls `check` with each combination of words of all lists, except impossible configurations. */
enum { LISTS_MAX = 6, WORDS_MAX = 24 };
typedef const char *const words[LISTS_MAX][WORDS_MAX];
static void check_each(struct device_state *state, words lists, int depth, const char *text,
                       bool (*check)(struct device_state *, const char *), int *checked)
{
    char longer[WORKLOAD_TEXT];
    struct config config;
    if (depth < LISTS_MAX && lists[depth][0]) {
        for (int i = 0; i < WORDS_MAX && lists[depth][i]; ++i) {
            int length =
                snprintf(longer, sizeof longer, "%s%s%s", text, depth ? " " : "", lists[depth][i]);
            assert_in_range(length, 1, sizeof longer - 1);
            check_each(state, lists, depth + 1, longer, check, checked);
        }
        return;
    }
    if (config_parse(text, &config, &failure))
        fail_msg("%s: %s", text, failure.text);
    if (config_check(&config, &failure) == STATUS_OK)
        *checked += check(state, text);
}

static bool check_offered(struct device_state *state, const char *text)
{
    if (!check_all(state, text))
        fail_msg("%s: not offered", text);
    return true;
}

#define BOTH                                                                                       \
    {                                                                                              \
        "precision=fp32", "precision=fp64"                                                         \
    }

/* Runs all configurations that every CPU supports, by `auto` and by each named routine. */
DEVICE_TEST(results_agree)
{
    static words families[] = {
        {{"conv2d batch=2 height=9 width=9 channels=3 filters=5",
          "conv2d batch=3 height=12 width=7 channels=8 filters=16 stride=1",
          "conv2d batch=1 height=17 width=5 channels=4 filters=4 kernel=5 stride=1",
          "conv2d batch=2 height=8 width=8 channels=6 filters=9 kernel=1 stride=1 padding=1",
          "conv2d batch=2 height=10 width=11 channels=3 filters=4 kernel=4x2 stride=2",
          "conv2d batch=2 height=11 width=13 channels=4 filters=6 kernel=3 stride=1 dilation=2",
          "conv2d batch=1 height=15 width=15 channels=4 filters=6 kernel=3x2 dilation=3 padding=4",
          "conv2d batch=2 height=9 width=8 channels=8 filters=12 kernel=3 stride=1 groups=4",
          "conv2d batch=1 height=7 width=7 channels=6 filters=6 kernel=3 stride=1 groups=6",
          "conv2d batch=5 height=4 width=4 channels=2 filters=130 stride=4 padding=valid",
          "conv2d batch=1 height=40 width=40 channels=64 filters=12 kernel=3 stride=1",
          "conv2d batch=3 height=2 width=2 channels=1 filters=1 kernel=3 stride=2 padding=5",
          "conv2d batch=1 height=64 width=1 channels=4 filters=2 kernel=7x1 stride=5",
          "conv2d batch=2 height=9 width=11 channels=4 filters=6 stride=2x1 padding=0:2x3:1",
          "conv2d batch=1 height=13 width=9 channels=4 filters=6 stride=1x3 dilation=3x1"},
         {"layout=nhwc", "layout=nchw"},
         {"implementation=auto precision=fp32", "implementation=plain precision=fp32",
          "implementation=auto precision=fp64"},
         {"pass=forward", "pass=backward-data", "pass=backward-filter"}},
        {{"lstm batch=16 sequence=16 features=32 hidden=16",
          "lstm batch=1 sequence=1 features=1 hidden=1",
          "lstm batch=3 sequence=5 features=7 hidden=9",
          "lstm batch=2 sequence=4 features=5 hidden=200", /* blocks of outputs */
          "lstm batch=5 sequence=6 features=4 hidden=20 layers=2",
          "lstm batch=4 sequence=3 features=6 hidden=5 layers=3 directions=2",
          "lstm batch=6 sequence=5 features=4 hidden=8 layers=2 directions=2"},
         {"cell=lstm", "cell=gru", "cell=tanh", "cell=relu", "projection=4"},
         {"precision=fp32 implementation=plain", "precision=fp64", "precision=fp32"},
         {"pass=forward", "pass=backward"}},
        {{"matmul m=1 n=1 k=1", "matmul m=5 n=3 k=7", "matmul m=3 n=50 k=4",
          "matmul m=64 n=64 k=64", "matmul m=129 n=7 k=1", "matmul m=1 n=200 k=9",
          "matmul m=33 n=65 k=130"},
         BOTH,
         {"implementation=auto", "implementation=plain"}},
        /* Fewer and more rows than threads. */
        {{"linear batch=2 inputs=1 outputs=3", "linear batch=5 inputs=3 outputs=7",
          "linear batch=3 inputs=50 outputs=4", "linear batch=129 inputs=7 outputs=1",
          "linear batch=1 inputs=9 outputs=200", "linear batch=33 inputs=130 outputs=65"},
         BOTH,
         {"implementation=auto", "implementation=plain"},
         {"bias=no activation=none pass=forward", "bias=yes activation=none pass=forward",
          "bias=yes activation=relu fusion=separate pass=forward",
          "bias=no activation=gelu pass=forward", "bias=yes activation=none pass=backward-data",
          "bias=yes activation=none pass=backward-weights",
          "bias=no activation=none pass=backward-weights"}},
        /* One and many queries; fewer and more keys than queries. */
        {{"attention batch=1 heads=1 sequence=1 keys=1 head_size=1",
          "attention batch=2 heads=3 sequence=5 keys=7 head_size=8",
          "attention batch=1 heads=2 sequence=130 keys=65 head_size=16",
          "attention batch=1 heads=1 sequence=64 keys=200 head_size=3",
          "attention batch=3 heads=1 sequence=65 keys=65 head_size=4"},
         {"implementation=plain precision=fp32", "precision=fp32", "precision=fp64"},
         {"causal=yes", "causal=no"}},
        /* Few and many steps, odd and even; sizes around the lengths of vectors and blocks. */
        {{"compute-loop elements=1", "compute-loop elements=51", "compute-loop elements=191",
          "compute-loop elements=385", "compute-loop elements=4096", "shared-loop tiles=1 tile=1",
          "shared-loop tiles=1 tile=3", "shared-loop tiles=2 tile=16",
          "shared-loop tiles=5 tile=64", "shared-loop tiles=1 tile=385",
          "shared-loop tiles=9 tile=100", "shared-loop tiles=2 tile=2047",
          "shared-loop tiles=2 tile=2048"},
         {"steps=1", "steps=2", "steps=3", "steps=8", "steps=33", "steps=1024"},
         BOTH},
        {{"elementwise elements=1", "elementwise elements=3", "elementwise elements=8",
          "elementwise elements=17", "elementwise elements=4099"},
         {"operation=relu", "operation=sigmoid", "operation=tanh", "operation=add",
          "operation=scale"},
         {"precision=fp32", "precision=fp64", "implementation=plain"}},
        {{"pool batch=2 height=9 width=9 channels=3",
          "pool batch=1 height=8 width=10 channels=17 window=2 padding=valid",
          "pool batch=2 height=7 width=9 channels=1 window=3x4 stride=1 padding=1",
          "pool batch=1 height=9 width=8 channels=2 window=2x3 stride=3x1 padding=0:1x2:0",
          "pool batch=1 height=2 width=2 channels=5 window=5 stride=4 padding=4",
          "pool batch=1 height=3 width=30 channels=1 window=1x7 stride=2",
          "pool batch=1 height=3 width=6 channels=2 window=3x9 stride=7 padding=2"},
         {"operation=max", "operation=average"},
         {"layout=nhwc", "layout=nchw"},
         {"pass=forward", "pass=backward"},
         BOTH},
        {{"norm rows=4 columns=5", "norm rows=6 columns=7", "norm rows=64 columns=8",
          "norm rows=130 columns=33", "norm rows=1000 columns=6", "norm rows=2 columns=7",
          "norm rows=50 columns=2"},
         {"operation=batch", "operation=layer"},
         {"pass=forward", "pass=training", "pass=backward"},
         BOTH},
        {{"softmax rows=1 columns=1", "softmax rows=3 columns=1", "softmax rows=1 columns=7",
          "softmax rows=130 columns=33", "softmax rows=2 columns=5000"},
         {"pass=forward", "pass=backward"},
         {"precision=fp32", "precision=fp64", "implementation=plain"}},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; ++i) {
        int checked = 0;
        check_each(*state, families[i], 0, "", check_offered, &checked);
        assert_true(checked > 0);
    }
    assert_true(flips > 1000);
}

/* oneDNN in each precision for which this CPU has instructions, also by oneDNN's slow reference
 * code. Precisions and shapes alternate, so that stale data of one configuration would change the
 * next result. */
DEVICE_TEST(onednn_agrees)
{
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    int done[3] = {0};
    for (int i = 0; i < 3; ++i) {
        char precision[64];
        snprintf(precision, sizeof precision, "implementation=onednn precision=%s", precisions[i]);
        const char *const families[][LISTS_MAX][WORDS_MAX] = {
            {{"conv2d batch=2 height=14 width=14 channels=32 filters=48 stride=1",
              "conv2d batch=1 height=28 width=28 channels=3 filters=64 kernel=7 stride=2",
              "conv2d batch=3 height=9 width=9 channels=64 filters=64 kernel=1 stride=1",
              "conv2d batch=2 height=9 width=8 channels=16 filters=16 stride=1 groups=16",
              "conv2d batch=2 height=9 width=8 channels=32 filters=64 stride=1 groups=2",
              "conv2d batch=1 height=11 width=13 channels=16 filters=8 stride=1 dilation=2",
              "conv2d batch=2 height=9 width=11 channels=16 filters=8 stride=2x1 padding=0:2x3:1",
              "conv2d batch=2 height=9 width=8 channels=16 filters=24 bias=yes activation=relu",
              "conv2d batch=2 height=9 width=8 channels=16 filters=24 bias=yes activation=tanh",
              "conv2d batch=2 height=9 width=8 channels=16 filters=24 activation=sigmoid"},
             {"layout=nhwc", "layout=nchw"},
             {"pass=forward", "pass=backward-data", "pass=backward-filter"},
             {precision}},
            {{"lstm batch=16 sequence=16 features=32 hidden=16",
              "lstm batch=4 sequence=3 features=6 hidden=5 layers=3 directions=2",
              "lstm batch=8 sequence=5 features=32 hidden=64 layers=2"},
             {"cell=lstm", "cell=gru", "cell=tanh", "cell=relu", "projection=3"},
             {"pass=forward", "pass=backward"},
             {precision}},
            {{"matmul m=33 n=65 k=130", "elementwise elements=10007 operation=relu",
              "elementwise elements=10007 operation=tanh",
              "elementwise elements=10007 operation=add",
              "linear batch=64 inputs=96 outputs=128 bias=yes activation=relu",
              "linear batch=64 inputs=96 outputs=128 bias=yes activation=gelu fusion=fused",
              "linear batch=20 inputs=96 outputs=128 activation=none pass=backward-data",
              "linear batch=20 inputs=96 outputs=64 activation=none bias=yes pass=backward-weights",
              "pool batch=2 height=14 width=13 channels=32 operation=max",
              "pool batch=2 height=14 width=13 channels=5 operation=average layout=nchw",
              "softmax rows=37 columns=101", "softmax rows=37 columns=101 pass=backward",
              "attention batch=2 heads=3 sequence=17 keys=33 head_size=16 causal=yes",
              "attention batch=3 heads=4 sequence=300 keys=700 head_size=4"},
             {precision}},
        };
        for (size_t j = 0; j < sizeof families / sizeof *families; ++j)
            check_each(*state, families[j], 0, "", check_all, &done[i]);
    }
#ifdef ROOFSWEEP_ONEDNN
    assert_true(done[0] > 60);
#else
    assert_int_equal(done[0] + done[1] + done[2], 0);
#endif
}

/* Passes of several parts, verified as in a sweep: every result, with gradients from the device's
 * y. */
static bool check_step(struct device_state *state, const char *text)
{
    struct config config = parse(text);
    struct work *work = run_work(state, text, &config);
    struct record record;
    assert_true(work || strstr(text, "onednn"));
    if (!work)
        return false;
    record_init(&record);
    if (verify_work(&device_ops, state, work, &config, seed, &kept, &record, &failure))
        fail_msg("%s: %s", text, failure.text);
    struct conv2d s = conv2d_from(&config);
    int parts = s.pass == CONV2D_FORWARD ? 0 : s.pass == CONV2D_BACKWARD ? 1 : 2;
    int64_t all = (parts != 1 || s.activation ? conv2d_y_size(&s) : 0) +
                  (parts > 0 ? conv2d_x_size(&s) + conv2d_w_size(&s) : 0) +
                  (parts > 1 ? conv2d_w_size(&s) : 0) + (s.bias ? parts * s.filters : 0);
    assert_int_equal(record.verify_elements, all);
    record_clear(&record);
    device_ops.release(state, work);
    return true;
}

DEVICE_TEST(conv2d_steps_agree)
{
    static words steps = {
        {"conv2d batch=2 height=9 width=8 channels=3 filters=5",
         "conv2d batch=3 height=6 width=7 channels=8 filters=4 stride=1 groups=2",
         "conv2d batch=2 height=8 width=8 channels=6 filters=9 kernel=1 stride=1",
         "conv2d batch=1 height=11 width=12 channels=4 filters=70 kernel=3x2 dilation=2"},
        {"pass=forward", "pass=backward", "pass=training"},
        {"bias=no", "bias=yes fusion=fused", "bias=yes fusion=separate",
         "activation=relu fusion=fused", "bias=yes activation=tanh fusion=separate",
         "bias=yes activation=sigmoid", "activation=relu"},
        {"layout=nhwc", "layout=nchw"},
        {"implementation=plain precision=fp32", "implementation=plain precision=fp64",
         "implementation=onednn precision=fp32"},
    };
    int checked = 0;
    check_each(*state, steps, 0, "", check_step, &checked);
    assert_in_range(checked, 240, 510);
}

/* ---- messages of rows ---- */

/* The row of a workload without a reference says that it was not verified. */
DEVICE_TEST(missing_references_are_reported)
{
    struct workload added = *workload_find("matmul");
    struct config config = parse("matmul");
    struct record record;
    added.name = "added";
    added.reference = NULL;
    config.workload = &added;
    record_init(&record);
    assert_ok(verify_work(&device_ops, *state, NULL, &config, seed, &kept, &record, &failure));
    assert_string_equal(record.error, "not verified: added has no reference");
    assert_int_equal(record.verify_elements, FIELD_MISSING);
    assert_true(isnan(record.verify_error));
}

DEVICE_TEST(unsupported_configurations_are_refused)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"conv2d precision=fp16 implementation=plain", "fp16"},
        {"conv2d precision=tf32", "plain: its precisions are fp32 and fp64, not tf32"},
        {"lstm precision=bf16 implementation=plain", "bf16"},
        {"matmul precision=fp64 implementation=onednn", "oneDNN"},
        {"conv2d implementation=cudnn", "cudnn"},
        {"lstm implementation=cudnn", "cudnn"},
        {"matmul implementation=cublaslt", "plain"},
        {"matmul precision=tf32", "tf32"},
        {"matmul precision=fp8", "not fp8"},
        {"linear precision=fp8", "not fp8"},
        {"linear fusion=fused implementation=plain", "fusion=fused needs"},
        {"matmul launch=graph", "CUDA graphs"},
        {"attention implementation=cudnn", "cudnn"},
        {"compute-loop precision=fp16", "fp16"},
        {"pool precision=bf16 implementation=plain", "bf16"},
        {"softmax implementation=cudnn", "cudnn"},
        {"elementwise precision=fp16 implementation=plain", "fp16"},
        {"elementwise implementation=cudnn", "cudnn"},
        {"shared-loop tiles=67108864 tile=2048 precision=fp64", "memory"},
        {"conv2d algorithm=winograd", "winograd"},
        {"lstm algorithm=persist-static", "persist-static"},
        {"conv2d batch=4096 height=8192 width=8192 precision=fp64", "memory"},
        {"lstm hidden=1048576 batch=1", "memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct config config = parse(cases[i].text);
        struct work *work = NULL;
        struct record record;
        record_init(&record);
        assert_fails(device_ops.prepare(*state, &config, seed, &work, &record, &failure),
                     STATUS_UNSUPPORTED, cases[i].reason);
        assert_null(work);
        record_clear(&record);
    }
}

DEVICE_TEST(trace_counts_regions)
{
    static const struct {
        const char *text;
        int64_t launches;
    } cases[] = {
        {"conv2d batch=1 height=16 width=16 channels=4 filters=4 implementation=plain", 1},
        {"lstm sequence=5 layers=2 implementation=plain", 2 * (1 + 5)},
        {"matmul m=16 n=16 k=16 implementation=plain", 1},
        {"compute-loop elements=100 steps=10", 1},
        {"shared-loop tiles=2 steps=10", 1},
        {"lstm sequence=5 layers=2 pass=backward implementation=plain", 2 * (2 * 5 + 2)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct config config = parse(cases[i].text);
        struct work *work = NULL;
        struct record record;
        double seconds[3] = {0}, busy = 0.0;
        int64_t launches = 0;
        record_init(&record);
        assert_ok(device_ops.prepare(*state, &config, seed, &work, &record, &failure));
        assert_ok(device_ops.time(*state, work, true, 3, seconds, &record, &failure));
        assert_ok(device_ops.trace(*state, work, false, &record, &failure));
        for (int j = 0; j < 3; ++j)
            assert_true(seconds[j] > 0.0);
        for (size_t j = 0; j < record.kernel_count; ++j) {
            assert_true(record.kernels[j].time > 0.0);
            assert_true(record.kernels[j].registers == FIELD_MISSING);
            launches += record.kernels[j].count;
            busy += record.kernels[j].time;
        }
        assert_int_equal(launches, cases[i].launches);
        assert_int_equal(record.launches, cases[i].launches);
        assert_true(fabs(busy - record.busy_time) < 1e-12);
        device_ops.release(*state, work);
        record_clear(&record);
    }
}
