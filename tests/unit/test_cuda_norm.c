/* Layer norms by cuDNN's graph, on a scripted GPU: the graph is computed element by element and compared with
 * the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/record.h"
#include "model/reference.h"
#include "model/workloads/norm.h"
#include "scripted_backend.h"
#include "scripted_bench.h"
#include "worker/cuda/workloads/workloads.h"
#include "worker/cuda/workloads/norm_graph.h"

enum { SEED = 1, ELEMENTS = 512 };

static struct config config;
static double results[NORM_TENSORS][ELEMENTS];

static struct config parse(const char *text)
{
    struct config parsed;
    struct error error;
    if (config_parse(text, &parsed, &error))
        fail_msg("%s", error.text);
    return parsed;
}

static double value(enum tensor tensor, int64_t at)
{
    return fill_value(config_fill(&config, SEED, tensor), (uint64_t)at);
}

/* Of a row of x. */
static double moment(int64_t uid, int64_t row)
{
    const struct norm s = norm_from(&config);
    double mean = 0.0, variance = 0.0, n = (double)s.columns;
    for (int64_t i = 0; i < s.columns; ++i)
        mean += value(TENSOR_INPUT, row * s.columns + i) / n;
    for (int64_t i = 0; i < s.columns; ++i)
        variance += pow(value(TENSOR_INPUT, row * s.columns + i) - mean, 2.0) / n;
    return uid == NORM_MEAN ? mean : 1.0 / sqrt(variance + NORM_EPSILON);
}

static double input(int64_t uid, int64_t at)
{
    static const enum tensor tensors[NORM_TENSORS] = {
        [NORM_X] = TENSOR_INPUT,
        [NORM_GAMMA] = TENSOR_WEIGHT,
        [NORM_BETA] = TENSOR_BIAS,
        [NORM_DY] = TENSOR_OUTPUT,
    };
    return uid == NORM_MEAN || uid == NORM_INVERSE ? moment(uid, at) : value(tensors[uid], at);
}

static void result(int64_t uid, int64_t at, double found)
{
    assert_true(at < ELEMENTS);
    results[uid][at] = found;
}

/* The uid of a result in this role. */
static int64_t uid_of(enum tensor tensor)
{
    static const int64_t uids[3][TENSOR_COUNT] = {
        [NORM_FORWARD] = {[TENSOR_OUTPUT] = NORM_Y},
        [NORM_TRAINING] =
            {[TENSOR_OUTPUT] = NORM_Y, [TENSOR_WEIGHT] = NORM_MEAN, [TENSOR_BIAS] = NORM_INVERSE},
        [NORM_BACKWARD] =
            {[TENSOR_INPUT] = NORM_DX, [TENSOR_WEIGHT] = NORM_DGAMMA, [TENSOR_BIAS] = NORM_DBETA},
    };
    return uids[norm_from(&config).pass][tensor];
}

static void check_results(const char *text)
{
    const struct reference_request request = {.config = &config,
                                              .seed = SEED,
                                              .products = INFINITY,
                                              .least = 1,
                                              .most = INT64_MAX,
                                              .loop = reference_in_turn};
    struct expectation expectation = {.count = 0};
    struct error error;
    assert_int_equal(config.workload->reference(&request, &expectation, &error), STATUS_OK);
    for (size_t i = 0; i < expectation.count; ++i) {
        const struct slice *slice = &expectation.slices[i];
        const double *found = results[uid_of(slice->tensor)];
        for (int64_t j = 0; j < slice->count; ++j)
            if (!(fabs(found[slice->offsets[j]] - slice->expected[j]) < 1e-6))
                fail_msg("%s: tensor %d, element %d is %g, not %g", text, (int)slice->tensor,
                         (int)j, found[slice->offsets[j]], slice->expected[j]);
    }
    expectation_clear(&expectation);
}

static void backend_script(int engines, int fail_at)
{
    static int handle;
    bench.gpu.cudnn = (struct cudnnContext *)&handle;
    scripted_backend = (struct scripted_backend){.engines = engines,
                                                 .fail_at = fail_at,
                                                 .workspace = 4096,
                                                 .value = fail_at ? NULL : input,
                                                 .result = result};
}

static void the_graph_is_a_layer_norm(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "norm rows=5 columns=8 precision=fp16",
        "norm rows=3 columns=17 precision=fp32 pass=training",
        "norm rows=9 columns=16 precision=bf16 pass=training",
        "norm rows=7 columns=24 precision=fp16 pass=backward",
        "norm rows=2 columns=33 precision=fp32 pass=backward launch=graph",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct work *work = NULL;
        struct record record;
        struct error error;
        backend_script(2, 0);
        config = parse(texts[i]);
        record_init(&record);
        if (norm_cudnn_prepare(&bench.gpu, &config, SEED, &work, &record, &error))
            fail_msg("%s", error.text);
        assert_int_equal(strncmp(record.algorithm, "engine-", 7), 0);
        assert_int_equal(record.unit, UNIT_VECTOR);
        assert_true(record.workspace == 4096.0);
        assert_int_equal(work->ops->stored(work, TENSOR_INPUT), config_precision(&config));
        assert_int_equal(work->ops->stored(work, TENSOR_OUTPUT), config_precision(&config));
        assert_int_equal(work->ops->stored(work, TENSOR_WEIGHT), PRECISION_FP32);
        assert_int_equal(work->ops->run(&bench.gpu, work, 0, &error), STATUS_OK);
        assert_int_equal(scripted_backend.operations, 1);
        check_results(texts[i]);
        work->ops->release(work);
        assert_int_equal(scripted_backend.alive, 0);
        record_clear(&record);
    }
}

static void what_no_engine_takes_is_said(void **state)
{
    (void)state;
    struct work *work = NULL;
    struct record record;
    struct error error;
    backend_script(0, 0);
    config = parse("norm rows=4 columns=8 precision=fp16");
    record_init(&record);
    assert_int_equal(norm_cudnn_prepare(&bench.gpu, &config, SEED, &work, &record, &error),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "know no engine"));
    record_clear(&record);
}

/* Wherever a call of the library fails. */
static void failures_leave_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "norm rows=4 columns=8 precision=fp16 pass=training",
        "norm rows=4 columns=8 precision=fp16 pass=backward",
    };
    for (int call = 1; call < 2 * 200; ++call) {
        struct work *work = NULL;
        struct record record;
        struct error error;
        config = parse(texts[call % 2]);
        backend_script(2, call / 2 + 1);
        record_init(&record);
        if (norm_cudnn_prepare(&bench.gpu, &config, SEED, &work, &record, &error) == STATUS_OK)
            work->ops->release(work);
        assert_int_equal(scripted_backend.alive, 0);
        record_clear(&record);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_graph_is_a_layer_norm),
        TEST(what_no_engine_takes_is_said),
        TEST(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
