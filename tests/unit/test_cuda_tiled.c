/* implementation = tiled on a scripted H200 (scripted_cuda.h): which shapes it takes, that they get
 * the fastest tile, which kernels run on which tensors, and that all is given back whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "parsed.h"
#include "scripted_bench.h"
#include "scripted_machine.h"
#include "worker/cuda/workloads/workloads.h"

/* ---- what stands in for the kernels ---- */

static char ran[64];
static struct conv2d_arrays seen;

static void within(const void *memory, int64_t elements, enum precision precision)
{
    script_within(memory, (size_t)elements * precision_info[precision].bytes, script.own);
}

static cudaError_t launch(const struct conv2d *s, const struct conv2d_arrays *a, double seconds,
                          cudaStream_t stream)
{
    within(a->x, conv2d_x_size(s), s->precision);
    within(a->w, conv2d_w_size(s), s->precision);
    within(a->y, conv2d_y_size(s), s->precision);
    assert_int_equal(a->b != NULL, s->bias);
    seen = *a;
    snprintf(ran, sizeof ran, "%s", a->finish ? "y+f" : "y");
    return script_enqueue(seconds, stream);
}

static cudaError_t wide_launch(const struct conv2d *s, const struct conv2d_arrays *a,
                               cudaStream_t stream)
{
    return launch(s, a, s->filters > 64 ? 1e-5 : 3e-5, stream);
}

static cudaError_t narrow_launch(const struct conv2d *s, const struct conv2d_arrays *a,
                                 cudaStream_t stream)
{
    return launch(s, a, 2e-5, stream);
}

/* As where the build has no code for the device. */
static cudaError_t absent_launch(const struct conv2d *s, const struct conv2d_arrays *a,
                                 cudaStream_t stream)
{
    (void)s, (void)a, (void)stream;
    return cudaErrorNoKernelImageForDevice;
}

cudaError_t kernel_conv2d_finish(const struct conv2d *s, void *y, const void *b,
                                 cudaStream_t stream)
{
    assert_ptr_equal(y, seen.y);
    assert_ptr_equal(b, seen.b);
    assert_int_equal(s->fusion, FUSION_SEPARATE);
    strcat(ran, " f");
    return script_enqueue(1e-5, stream);
}

const struct conv2d_tile conv2d_tiles[] = {
    {"warp", 80, 999, narrow_launch},
    {NULL, 0, 0, NULL},
};
const struct conv2d_tile conv2d_wgmma_tiles[] = {
    {"group absent", 90, 90, absent_launch},
    {"group wide", 90, 90, wide_launch},
    {"group narrow", 90, 90, narrow_launch},
    {NULL, 0, 0, NULL},
};

/* ---- tests ---- */

static void shapes_that_it_does_not_take_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } refused[] = {
        {"precision=fp32", "fp16 and bf16"},
        {"precision=tf32", "fp16 and bf16"},
        {"precision=fp16 layout=nchw", "layout nhwc"},
        {"precision=fp16 layout=auto", "layout nhwc"},
        {"precision=fp16 channels=12", "12 in a group"},
        {"precision=fp16 channels=16 groups=4", "4 in a group"},
        {"precision=fp16 channels=3", "3 in a group"},
        {"precision=fp16 pass=backward-data", "forward pass"},
        {"precision=fp16 pass=training", "forward pass"},
        {"precision=fp16 algorithm=gemm", "is cuDNN's"},
        {"precision=fp16 batch=1048576 height=32 width=32", "30 bits"},
        {"precision=bf16 batch=1048576 height=16 width=16 stride=1 filters=1048576 channels=8",
         "more than one launch"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "conv2d implementation=tiled %s", refused[i].text);
        struct config config = parse(text);
        struct work *work = NULL;
        struct record record;
        struct error error;
        record_init(&record);
        assert_int_equal(conv2d_tiled_prepare(&bench.gpu, &config, 1, &work, &record, &error),
                         STATUS_UNSUPPORTED);
        if (!strstr(error.text, refused[i].reason))
            fail_msg("%s: %s", text, error.text);
        record_clear(&record);
    }
}

static void the_fastest_tile_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int capability;
        const char *tile;
    } cases[] = {
        {"filters=128", 90, "group wide"}, {"filters=64", 90, "group narrow"},
        {"filters=64", 80, "warp"},        {"filters=64", 100, "warp"},
        {"filters=64", 75, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "conv2d precision=fp16 %s", cases[i].text);
        struct config config = parse(text);
        struct work *work = NULL;
        struct record record;
        struct error error;
        record_init(&record);
        bench.gpu.capability = cases[i].capability;
        enum status status = conv2d_tiled_prepare(&bench.gpu, &config, 1, &work, &record, &error);
        bench.gpu.capability = CAPABILITY;
        if (cases[i].tile) {
            assert_int_equal(status, STATUS_OK);
            assert_string_equal(record.algorithm, cases[i].tile);
            work->ops->release(work);
        } else {
            assert_int_equal(status, STATUS_UNSUPPORTED);
            assert_non_null(strstr(error.text, "8.0"));
        }
        record_clear(&record);
    }
}

static void bias_and_activation_are_fused_unless_told_otherwise(void **state)
{
    (void)state;
    static const struct {
        const char *text, *runs;
    } cases[] = {
        {"bias=no", "y"},
        {"bias=yes activation=relu", "y+f"},
        {"bias=yes activation=relu fusion=fused", "y+f"},
        {"bias=yes activation=relu fusion=separate", "y f"},
        {"activation=tanh fusion=separate", "y f"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "conv2d precision=bf16 %s", cases[i].text);
        struct config config = parse(text);
        struct work *work = NULL;
        struct record record;
        struct error error;
        record_init(&record);
        if (conv2d_tiled_prepare(&bench.gpu, &config, 1, &work, &record, &error))
            fail_msg("%s: %s", text, error.text);
        assert_string_equal(record.algorithm, "group narrow");
        assert_int_equal(record.unit, UNIT_TENSOR);
        assert_int_equal(work->ops->iterate(&bench.gpu, work, &error), STATUS_OK);
        assert_string_equal(ran, cases[i].runs);
        assert_ptr_equal(work->ops->result(work, TENSOR_OUTPUT), seen.y);
        work->ops->release(work);
        record_clear(&record);
    }
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    struct config config = parse("conv2d precision=fp16 bias=yes");
    enum status status = STATUS_FAILED;
    for (int call = 1; status; ++call) {
        struct work *work = NULL;
        struct record record;
        struct error error;
        record_init(&record);
        script.fail_at = script.calls + call;
        status = conv2d_tiled_prepare(&bench.gpu, &config, 1, &work, &record, &error);
        script.fail_at = 0;
        record_clear(&record);
        if (status == STATUS_OK) {
            work->ops->release(work);
            assert_true(call > 3);
        } else {
            assert_null(work);
        }
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(shapes_that_it_does_not_take_are_named),
        TEST(the_fastest_tile_is_taken),
        TEST(bias_and_activation_are_fused_unless_told_otherwise),
        TEST(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
