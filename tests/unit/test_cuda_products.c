/* Matrix products and layers on a scripted GPU: what the library is asked for, and what runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "model/record.h"
#include "model/workload.h"
#include "scripted_bench.h"
#include "worker/cuda/workloads/workloads.h"

static struct config parse(const char *text)
{
    struct config config;
    struct error error;
    if (config_parse(text, &config, &error))
        fail_msg("%s", error.text);
    return config;
}

/* Prepares it, and runs one iteration; what it did is in *record and in the script. */
static void run_once(work_preparation *prepare, const char *text, struct record *record)
{
    struct config config = parse(text);
    struct work *work = NULL;
    struct error error;
    record_init(record);
    assert_int_equal(config_check(&config, &error), STATUS_OK);
    if (prepare(&bench.gpu, &config, 1, &work, record, &error))
        fail_msg("%s: %s", text, error.text);
    script.products = script.finishes = script.sums = 0;
    assert_int_equal(work->ops->run(&bench.gpu, work, 0, &error), STATUS_OK);
    assert_int_equal(script.products, 1);
    work->ops->release(work);
}

static enum status refused(work_preparation *prepare, const char *text, struct error *error)
{
    struct config config = parse(text);
    struct work *work = NULL;
    struct record record;
    record_init(&record);
    enum status status = prepare(&bench.gpu, &config, 1, &work, &record, error);
    assert_null(work);
    record_clear(&record);
    return status;
}

#define LAYER "linear batch=64 inputs=128 outputs=256 precision=fp16"

static void epilogues_are_fused_where_they_can_be(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool refused; /* the library has no epilogues */
        unsigned epilogue;
        int finishes, sums;
        const char *name;
    } cases[] = {
        {LAYER " bias=no", false, 0, 0, 0, ""},
        {LAYER, false, CUBLASLT_EPILOGUE_BIAS, 0, 0, "-fused"},
        {LAYER " activation=relu", false, CUBLASLT_EPILOGUE_RELU_BIAS, 0, 0, "-fused"},
        {LAYER " activation=gelu bias=no", false, CUBLASLT_EPILOGUE_GELU, 0, 0, "-fused"},
        {LAYER " activation=gelu fusion=separate", false, 0, 1, 0, "-separate"},
        {LAYER " activation=gelu", true, 0, 1, 0, "-separate"},
        {LAYER " pass=backward-data", false, 0, 0, 0, ""},
        {LAYER " pass=backward-weights bias=no", false, 0, 0, 0, ""},
        {LAYER " pass=backward-weights", false, CUBLASLT_EPILOGUE_BGRADB, 0, 0, "-fused"},
        {LAYER " pass=backward-weights", true, 0, 0, 1, "-separate"},
        {LAYER " pass=backward-weights fusion=separate", false, 0, 0, 1, "-separate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        char name[64];
        script.no_epilogues = cases[i].refused;
        run_once(linear_cublaslt_prepare, cases[i].text, &record);
        assert_int_equal(script.epilogue, cases[i].epilogue);
        assert_int_equal(script.finishes, cases[i].finishes);
        assert_int_equal(script.sums, cases[i].sums);
        snprintf(name, sizeof name, "algo-0%s", cases[i].name);
        assert_string_equal(record.algorithm, name);
        assert_int_equal(record.unit, UNIT_TENSOR);
        record_clear(&record);
    }
}

static void what_cannot_be_fused_is_said(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(refused(linear_cublaslt_prepare,
                             "linear precision=fp64 activation=gelu fusion=fused", &error),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "not as exact as fp64"));
    script.no_epilogues = true;
    assert_int_equal(refused(linear_cublaslt_prepare, LAYER " fusion=fused", &error),
                     STATUS_UNSUPPORTED);
    assert_int_equal(refused(linear_plain_prepare, LAYER " fusion=fused", &error),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "kernel of their own"));
    assert_int_equal(
        refused(linear_plain_prepare, "linear precision=tf32 batch=1 implementation=plain", &error),
        STATUS_UNSUPPORTED);
}

static void plain_layers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int finishes, sums;
    } cases[] = {
        {"linear batch=3 inputs=5 outputs=7", 1, 0},
        {"linear batch=3 inputs=5 outputs=7 bias=no", 0, 0},
        {"linear batch=3 inputs=5 outputs=7 bias=no activation=relu", 1, 0},
        {"linear batch=3 inputs=5 outputs=7 pass=backward-data", 0, 0},
        {"linear batch=3 inputs=5 outputs=7 pass=backward-weights precision=fp64", 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        run_once(linear_plain_prepare, cases[i].text, &record);
        assert_int_equal(script.finishes, cases[i].finishes);
        assert_int_equal(script.sums, cases[i].sums);
        assert_int_equal(record.unit, UNIT_VECTOR);
        record_clear(&record);
    }
}

/* What takes tf32 runs on tensor units, even where it says FMA. */
static void algorithms_name_their_unit(void **state)
{
    (void)state;
    static const struct {
        unsigned long numerics;
        enum unit unit;
    } cases[] = {
        {CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32,
         UNIT_TENSOR},
        {CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, UNIT_TENSOR},
        {CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F, UNIT_VECTOR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        script.numerics = cases[i].numerics;
        run_once(matmul_cublaslt_prepare, "matmul m=64 n=128 k=256 precision=tf32", &record);
        assert_int_equal(record.unit, cases[i].unit);
        assert_string_equal(record.math, cases[i].unit == UNIT_TENSOR ? "tensor-op" : "fma");
        record_clear(&record);
    }
}

/* Bias and result are of fp16, and the sums are fast ones where that is asked for. */
static void products_of_fp8(void **state)
{
    (void)state;
    struct record record;
    script.fast_sums = false;
    run_once(matmul_cublaslt_prepare, "matmul m=64 n=128 k=256 precision=fp8", &record);
    assert_int_equal(record.unit, UNIT_TENSOR);
    record_clear(&record);
    run_once(linear_cublaslt_prepare, "linear batch=64 inputs=128 outputs=256 precision=fp8",
             &record);
    assert_int_equal(script.epilogue, CUBLASLT_EPILOGUE_BIAS);
    record_clear(&record);
    run_once(linear_cublaslt_prepare,
             "linear batch=64 inputs=128 outputs=256 precision=fp8 fusion=separate", &record);
    assert_int_equal(script.finishes, 1);
    assert_false(script.fast_sums);
    record_clear(&record);
    run_once(matmul_cublaslt_prepare, "matmul m=64 n=128 k=256 precision=fp8 accumulation=fast",
             &record);
    assert_true(script.fast_sums);
    record_clear(&record);
}

/* Nothing is allocated before. */
static void chips_without_fp8_are_told(void **state)
{
    (void)state;
    static const struct {
        work_preparation *prepare;
        const char *text, *says;
        int capability;
    } cases[] = {
        {matmul_cublaslt_prepare, "matmul precision=fp8",
         "fp8 needs compute capability 8.9; this GPU has 8.0", 80},
        {linear_cublaslt_prepare, "linear precision=fp8",
         "fp8 needs compute capability 8.9; this GPU has 7.5", 75},
        {matmul_plain_prepare, "matmul precision=fp8", "tensor units", 90},
        {linear_plain_prepare, "linear precision=fp8", "tensor units", 90},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        int capability = bench.gpu.capability, allocations = script.allocations;
        struct error error;
        bench.gpu.capability = cases[i].capability;
        assert_int_equal(refused(cases[i].prepare, cases[i].text, &error), STATUS_UNSUPPORTED);
        assert_non_null(strstr(error.text, cases[i].says));
        assert_int_equal(script.allocations, allocations);
        bench.gpu.capability = capability;
    }
}

static void products_by_tiles(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"matmul m=64 n=128 k=256 precision=fp16 implementation=tiled", "mma"},
        {"matmul m=64 n=128 k=256 precision=bf16 sparsity=2:4", "mma-sp"},
    };
    static const char *const refusals[][2] = {
        {"matmul precision=fp32", "of fp16 and bf16"},
        {"matmul precision=fp16 m=8", "multiples of 16"},
        {"matmul precision=fp16 k=32", "of 64"},
    };
    struct error error;
    for (int i = 0; i < 2; ++i) {
        struct record record;
        run_once(matmul_tiled_prepare, texts[i][0], &record);
        assert_string_equal(record.algorithm, texts[i][1]);
        assert_int_equal(record.unit, UNIT_TENSOR);
        record_clear(&record);
    }
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(refused(matmul_tiled_prepare, refusals[i][0], &error), STATUS_UNSUPPORTED);
        assert_non_null(strstr(error.text, refusals[i][1]));
    }
    bench.gpu.capability = 75;
    assert_int_equal(refused(matmul_tiled_prepare, texts[0][0], &error), STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "needs compute capability 8.0; this GPU has 7.5"));
    bench.gpu.capability = 90;
    assert_int_equal(refused(matmul_cublaslt_prepare, texts[1][0], &error), STATUS_UNSUPPORTED);
    assert_int_equal(refused(matmul_plain_prepare, texts[1][0], &error), STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "implementation=tiled"));
}

/* Nothing is left behind, wherever it fails. */
static void failures_leave_nothing(void **state)
{
    (void)state;
    static const struct {
        work_preparation *prepare;
        const char *text;
    } cases[] = {
        {linear_cublaslt_prepare, LAYER " activation=relu"},
        {linear_plain_prepare, LAYER},
        {matmul_cublaslt_prepare, "matmul m=64 n=128 k=256 precision=fp16"},
        {matmul_tiled_prepare, "matmul m=64 n=128 k=256 precision=fp16 sparsity=2:4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int call = 1; call <= 40; ++call) {
            struct config config = parse(cases[i].text);
            struct work *work = NULL;
            struct record record;
            struct error error;
            record_init(&record);
            script.fail_at = script.calls + call;
            if (cases[i].prepare(&bench.gpu, &config, 1, &work, &record, &error) == STATUS_OK)
                work->ops->release(work);
            script.fail_at = 0;
            record_clear(&record);
        }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(epilogues_are_fused_where_they_can_be),
        TEST(what_cannot_be_fused_is_said),
        TEST(plain_layers),
        TEST(algorithms_name_their_unit),
        TEST(products_of_fp8),
        TEST(chips_without_fp8_are_told),
        TEST(products_by_tiles),
        TEST(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
