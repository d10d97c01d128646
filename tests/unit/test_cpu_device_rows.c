/* The CPU device through its table of functions: what it says of its rows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "opened.h"
#include "parsed.h"
#include "worker/device_ops.h"
#include "worker/verify.h"

static const uint64_t seed = 3;

/* A workload without a reference is measured, and its row says why nothing is compared. */
static void missing_reference_is_said(void **state)
{
    struct workload added = *workload_find("matmul");
    struct config config = parse("matmul");
    struct record record;
    struct error error;
    added.name = "added";
    added.reference = NULL;
    config.workload = &added;
    record_init(&record);
    assert_int_equal(verify_work(&device_ops, *state, NULL, &config, seed, &record, &error),
                     STATUS_OK);
    assert_string_equal(record.error, "not verified: added has no reference");
    assert_int_equal(record.verify_elements, FIELD_MISSING);
    assert_true(isnan(record.verify_error));
}

static void unsupported_is_said(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"conv2d precision=fp16 implementation=im2col", "fp16"},
        {"conv2d precision=tf32", "im2col: its precisions are fp32 and fp64, not tf32"},
        {"lstm precision=bf16 implementation=cblas", "bf16"},
        {"matmul precision=fp64 implementation=onednn", "oneDNN"},
        {"conv2d implementation=cudnn", "cudnn"},
        {"lstm implementation=cudnn", "cudnn"},
        {"matmul implementation=cublaslt", "cblas, plain"},
        {"matmul precision=tf32", "tf32"},
        {"matmul precision=fp8", "not fp8"},
        {"matmul implementation=plain sparsity=2:4 precision=bf16", "bf16"},
        {"linear precision=fp8", "not fp8"},
        {"linear fusion=fused implementation=cblas", "fusion=fused needs"},
        {"matmul launch=graph", "CUDA graphs"},
        {"attention implementation=plain", "cblas"},
        {"compute-loop precision=fp16", "fp16"},
        {"pool precision=bf16 implementation=plain", "bf16"},
        {"softmax implementation=cudnn", "cudnn"},
        {"elementwise precision=fp16", "fp16"},
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
        struct error error;
        record_init(&record);
        assert_int_equal(device_ops.prepare(*state, &config, seed, &work, &record, &error),
                         STATUS_UNSUPPORTED);
        assert_null(work);
        assert_non_null(strstr(error.text, cases[i].reason));
        record_clear(&record);
    }
}

static void trace_counts_regions(void **state)
{
    static const struct {
        const char *text;
        int64_t launches;
    } cases[] = {
        {"conv2d batch=1 height=16 width=16 channels=4 filters=4 implementation=im2col", 1},
        {"lstm sequence=5 layers=2 implementation=cblas", 2 * (1 + 5)},
        {"matmul m=16 n=16 k=16 implementation=cblas", 1},
        {"compute-loop elements=100 steps=10", 1},
        {"shared-loop tiles=2 steps=10", 1},
        {"lstm sequence=5 layers=2 pass=backward implementation=cblas", 2 * (1 + 5)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct config config = parse(cases[i].text);
        struct work *work = NULL;
        struct record record;
        struct error error;
        double seconds[3] = {0}, busy = 0.0;
        int64_t launches = 0;
        record_init(&record);
        assert_int_equal(device_ops.prepare(*state, &config, seed, &work, &record, &error), 0);
        assert_int_equal(device_ops.time(*state, work, true, 3, seconds, &record, &error), 0);
        assert_int_equal(device_ops.trace(*state, work, false, &record, &error), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(missing_reference_is_said, open_device, close_device),
        cmocka_unit_test_setup_teardown(unsupported_is_said, open_device, close_device),
        cmocka_unit_test_setup_teardown(trace_counts_regions, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
