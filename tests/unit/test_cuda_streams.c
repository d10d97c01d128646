/* Workloads that stream, on a scripted H200 (scripted_streams.h): which kernel or call of cuDNN each
 * becomes, and that all is given back whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cudnn.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/workloads/elementwise.h"
#include "model/workloads/norm.h"
#include "model/workloads/pool.h"
#include "parsed.h"
#include "scripted_bench.h"
#include "scripted_streams.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/workloads/workloads.h"

static int streams_set_up(void **state)
{
    static int handle;
    streamed = (struct script_stream){0};
    int failed = bench_set_up(state);
    bench.gpu.cudnn = (struct cudnnContext *)&handle;
    return failed;
}

static int streams_tear_down(void **state)
{
    assert_int_equal(streamed.descriptors, 0);
    return bench_tear_down(state);
}

/* One row: how it is prepared, and what must run. */
struct row {
    const char *text;
    work_preparation *prepare;
    const char *what, *algorithm; /* see script_stream, record */
    int choice;
    double factor; /* of cuDNN's calls */
    int launches;  /* of an iteration */
};

static void row_runs(const struct row *row)
{
    struct config config = parse(row->text);
    struct work *work = NULL;
    struct record record;
    struct error error;
    record_init(&record);
    if (row->prepare(&bench.gpu, &config, 1, &work, &record, &error))
        fail_msg("%s: %s", row->text, error.text);
    assert_string_equal(record.algorithm, row->algorithm);
    assert_int_equal(record.unit, UNIT_VECTOR);
    assert_int_equal(work->precision, config_precision(&config));
    int launches = streamed.launches;
    if (work->ops->run(&bench.gpu, work, 0, &error) || work->ops->iterate(&bench.gpu, work, &error))
        fail_msg("%s: %s", row->text, error.text);
    assert_int_equal(streamed.launches, launches + 2 * row->launches);
    assert_string_equal(streamed.what, row->what);
    assert_int_equal(streamed.choice, row->choice);
    assert_int_equal(streamed.precision, config_precision(&config));
    if (row->factor != 0.0)
        assert_true(streamed.factor == row->factor);
    work->ops->release(work);
    record_clear(&record);
}

/* Whichever call fails, the row fails, and nothing is left behind. */
static void row_fails_at_each_call(const struct row *row)
{
    struct config config = parse(row->text);
    struct error error;
    for (int call = 1;; ++call) {
        struct work *work = NULL;
        struct record record;
        record_init(&record);
        arena_trim(bench.gpu.arena);
        script.fail_at = script.calls + call;
        enum status status = row->prepare(&bench.gpu, &config, 1, &work, &record, &error);
        script.fail_at = 0;
        record_clear(&record);
        if (status == STATUS_OK) {
            work->ops->release(work);
            assert_true(call > 3);
            return;
        }
        assert_null(work);
        assert_true(error.text[0]);
        assert_int_equal(streamed.descriptors, 0);
    }
}

static void rows_run(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        row_runs(&rows[i]);
        row_fails_at_each_call(&rows[i]);
    }
}
#define ROWS_RUN(rows) rows_run(rows, sizeof(rows) / sizeof *(rows))

#define OWN     elementwise_plain_prepare, "kernel elementwise", "grid-stride"
#define LIBRARY elementwise_cudnn_prepare
static const struct row elementwise_rows[] = {
    {"elementwise elements=1000 operation=relu precision=fp16", OWN, ELEMENTWISE_RELU, 0.0, 1},
    {"elementwise elements=1001 operation=sigmoid precision=bf16", OWN, ELEMENTWISE_SIGMOID, 0.0,
     1},
    {"elementwise elements=1 operation=tanh precision=fp32", OWN, ELEMENTWISE_TANH, 0.0, 1},
    {"elementwise elements=7 operation=add precision=fp64", OWN, ELEMENTWISE_ADD, 0.0, 1},
    {"elementwise elements=4194304 operation=scale", OWN, ELEMENTWISE_SCALE, 0.0, 1},
    {"elementwise operation=relu precision=fp16", LIBRARY, "activation", "activation",
     CUDNN_ACTIVATION_RELU, 1.0, 1},
    {"elementwise operation=sigmoid precision=bf16", LIBRARY, "activation", "activation",
     CUDNN_ACTIVATION_SIGMOID, 1.0, 1},
    {"elementwise operation=tanh precision=fp64", LIBRARY, "activation", "activation",
     CUDNN_ACTIVATION_TANH, 1.0, 1},
    {"elementwise operation=add precision=fp16", LIBRARY, "op-tensor", "op-tensor",
     CUDNN_OP_TENSOR_ADD, 1.0, 1},
    {"elementwise operation=add precision=fp64", LIBRARY, "op-tensor", "op-tensor",
     CUDNN_OP_TENSOR_ADD, 1.0, 1},
    {"elementwise operation=scale precision=fp64", LIBRARY, "transform-tensor", "transform-tensor",
     0, ELEMENTWISE_FACTOR, 1},
    {"elementwise operation=scale precision=fp16", LIBRARY, "transform-tensor", "transform-tensor",
     0, ELEMENTWISE_FACTOR, 1},
};
#undef OWN
#undef LIBRARY

static const struct row pool_rows[] = {
    {"pool precision=fp16", pool_plain_prepare, "kernel pool", "tiles", POOL_MAX, 0.0, 1},
    {"pool precision=fp64 operation=average layout=nchw", pool_plain_prepare, "kernel pool",
     "tiles", POOL_AVERAGE, 0.0, 1},
    {"pool precision=bf16 window=3x5 stride=1", pool_cudnn_prepare, "pooling", "pooling",
     CUDNN_POOLING_MAX, 1.0, 1},
    {"pool precision=fp64 operation=average layout=nchw padding=valid", pool_cudnn_prepare,
     "pooling", "pooling", CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 1.0, 1},
    {"pool precision=bf16 pass=backward", pool_plain_prepare, "kernel pool gradient", "tiles",
     POOL_MAX, 0.0, 1},
    {"pool precision=fp64 operation=average layout=nchw pass=backward", pool_plain_prepare,
     "kernel pool gradient", "tiles", POOL_AVERAGE, 0.0, 1},
    {"pool precision=fp16 pass=backward", pool_cudnn_prepare, "pooling gradient", "pooling",
     CUDNN_POOLING_MAX, 1.0, 1},
    {"pool precision=fp32 operation=average layout=nchw pass=backward", pool_cudnn_prepare,
     "pooling gradient", "pooling", CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 1.0, 1},
};

static const struct row softmax_rows[] = {
    {"softmax precision=fp16", softmax_plain_prepare, "kernel softmax", "rows", 0, 0.0, 1},
    {"softmax rows=3 columns=7 pass=backward", softmax_plain_prepare, "kernel softmax gradient",
     "rows", 1, 0.0, 1},
    {"softmax precision=fp64", softmax_cudnn_prepare, "softmax", "softmax-accurate", 0, 1.0, 1},
    {"softmax rows=3 columns=7 pass=backward precision=bf16", softmax_cudnn_prepare,
     "softmax gradient", "softmax-accurate", 1, 1.0, 1},
};

#define ROWS    norm_plain_prepare, "kernel layer norm", "rows"
#define COLUMNS norm_plain_prepare, "kernel norm step", "columns"
static const struct row norm_rows[] = {
    {"norm precision=fp16", ROWS, 0, 0.0, 1},
    {"norm precision=fp64 pass=training rows=7 columns=5", ROWS, 1, 0.0, 1},
    {"norm precision=bf16 pass=backward", norm_plain_prepare, "kernel norm step", "rows",
     NORM_STEP_LAYER_GRADIENTS, 0.0, 2},
    {"norm precision=fp32 pass=backward rows=3 columns=20000", norm_plain_prepare,
     "kernel norm step", "rows", NORM_STEP_LAYER_GRADIENTS, 0.0, 3},
    {"norm precision=fp16 operation=batch", COLUMNS, NORM_STEP_APPLY, 0.0, 1},
    {"norm precision=fp64 operation=batch pass=training", COLUMNS, NORM_STEP_APPLY, 0.0, 3},
    {"norm precision=fp32 operation=batch pass=backward rows=100 columns=3", COLUMNS,
     NORM_STEP_APPLY, 0.0, 3},
    {"norm precision=fp16 operation=batch", norm_cudnn_prepare, "batch norm", "spatial-persistent",
     0, 1.0, 1},
    {"norm precision=fp64 operation=batch pass=training", norm_cudnn_prepare, "batch norm training",
     "spatial", 1, 1.0, 1},
    {"norm precision=bf16 operation=batch pass=backward", norm_cudnn_prepare, "batch norm gradient",
     "spatial-persistent", 2, 1.0, 1},
};
#undef ROWS
#undef COLUMNS

static void norms_run(void **state)
{
    (void)state;
    ROWS_RUN(norm_rows);
}

static void pools_run(void **state)
{
    (void)state;
    ROWS_RUN(pool_rows);
}

/* Of `auto`. */
static void pools_taken(void **state)
{
    (void)state;
    struct config nhwc = parse("pool layout=nhwc"), nchw = parse("pool layout=nchw");
    assert_true(pool_plain_takes(&nhwc));
    assert_false(pool_plain_takes(&nchw));
}

static void softmax_runs(void **state)
{
    (void)state;
    ROWS_RUN(softmax_rows);
}

static void elementwise_runs(void **state)
{
    (void)state;
    ROWS_RUN(elementwise_rows);
}

static void refused(const char *text, work_preparation *prepare, const char *reason)
{
    struct config config = parse(text);
    struct work *work = NULL;
    struct record record;
    struct error error;
    record_init(&record);
    assert_int_equal(prepare(&bench.gpu, &config, 1, &work, &record, &error), STATUS_UNSUPPORTED);
    if (!strstr(error.text, reason))
        fail_msg("%s: '%s' does not tell '%s'", text, error.text, reason);
    record_clear(&record);
}

/* cuDNN's calls count elements in an int. */
static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    refused("elementwise elements=2147483648 precision=fp16", elementwise_cudnn_prepare,
            "implementation = plain");
    refused("elementwise elements=68719476736 precision=fp64", elementwise_plain_prepare,
            "are free");
    refused("pool batch=65536 precision=fp16", pool_cudnn_prepare, "implementation = plain");
    refused("norm rows=4194304 operation=batch precision=fp16", norm_cudnn_prepare,
            "implementation = plain");
    refused("softmax rows=524288 columns=4096 precision=fp16", softmax_cudnn_prepare,
            "implementation = plain");
}

/* What the library does not have is skipped with its reason, and nothing is left behind. */
static void what_the_library_lacks_is_refused(void **state)
{
    (void)state;
    streamed.refused = "set-pooling";
    refused("pool", pool_cudnn_prepare, "cudnnSetPooling2dDescriptor");
    streamed.refused = "set-activation";
    refused("elementwise", elementwise_cudnn_prepare, "cudnnSetActivationDescriptor");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, streams_set_up, streams_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(elementwise_runs),
        TEST(pools_run),
        TEST(pools_taken),
        TEST(softmax_runs),
        TEST(norms_run),
        TEST(what_the_library_lacks_is_refused),
        TEST(what_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
