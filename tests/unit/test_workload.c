/* One configuration's text, hash, shapes, validity and modelled cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/axis.h"
#include "manifest/exclusion.h"
#include "manifest/plan.h"
#include "model/products.h"
#include "model/record.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"
#include "ranks/schedule.h"
#include "results/derive.h"

static struct config parse(const char *text)
{
    struct config config;
    struct error error = {""};
    if (config_parse(text, &config, &error))
        fail_msg("%s", error.text);
    return config;
}

static const char default_conv2d[] =
    "conv2d algorithm=auto batch=16 cache=hot channels=64 dilation=1 filters=64 groups=1 height=112 "
    "implementation=auto kernel=3 layout=nhwc padding=same pass=forward precision=fp32 stride=2 "
    "width=112";
static const char default_lstm[] =
    "lstm algorithm=auto batch=16 cache=hot directions=1 features=32 hidden=16 implementation=auto "
    "layers=1 pass=forward precision=fp32 sequence=16";

static const char *const default_others[] = {
    "matmul cache=hot implementation=auto k=1024 m=1024 n=1024 precision=fp32",
    "compute-loop cache=hot elements=4194304 implementation=auto precision=fp32 steps=4096",
    "shared-loop cache=hot implementation=auto precision=fp32 steps=4096 tile=1024 tiles=4096",
    ("attention batch=8 cache=hot causal=no head_size=64 heads=16 implementation=auto keys=1024 "
     "precision=fp32 sequence=1024"),
    ("linear activation=none batch=512 bias=yes cache=hot fusion=auto implementation=auto inputs=1024 "
     "outputs=4096 pass=forward precision=fp32"),
};

/* The identity of every configuration ever measured hangs on this text. */
static void canonical_text_is_stable(void **state)
{
    (void)state;
    char text[WORKLOAD_TEXT], hash[CONFIG_HASH_TEXT];
    struct config conv2d = config_default(workload_find("conv2d"));
    config_format(&conv2d, text);
    assert_string_equal(text, default_conv2d);
    config_hash(&conv2d, hash);
    assert_string_equal(hash, "78e61c68d4b95369a84dd6aeb5a5ed00");
    struct config lstm = config_default(workload_find("lstm"));
    config_format(&lstm, text);
    assert_string_equal(text, default_lstm);
    config_hash(&lstm, hash);
    assert_string_equal(hash, "6145d76bcdbfb58f14c89c3a6d18ea3a");
    for (size_t i = 0; i < sizeof default_others / sizeof *default_others; ++i) {
        struct config config = parse(default_others[i]);
        struct config defaults = config_default(config.workload);
        config_format(&defaults, text);
        assert_string_equal(text, default_others[i]);
    }
}

/* As measured before there were later parameters. */
static void hashes_of_old_rows_stay(void **state)
{
    (void)state;
    const char *const rows[][2] = {
        {default_conv2d, "78e61c68d4b95369a84dd6aeb5a5ed00"},
        {default_lstm, "6145d76bcdbfb58f14c89c3a6d18ea3a"},
        {default_others[0], "80e0828f49d75e02f251a21586733175"},
        {default_others[1], "5efe32d76df81e8c298f8ac238ec5790"},
        {default_others[2], "4238a31e5b6874eac7ba4e8cd0b65da5"},
        {"conv2d algorithm=fft batch=1 cache=cold channels=3 dilation=2 filters=8 groups=1 height=9 "
         "implementation=cudnn kernel=3x5 layout=nchw padding=7 pass=backward-filter "
         "precision=bf16 stride=1 width=1",
         "5be7864fbb661bf0d5a4ac74327c479f"},
        {"lstm algorithm=auto batch=16 cache=cold directions=2 features=32 hidden=128 "
         "implementation=cudnn layers=2 pass=backward precision=fp16 sequence=64",
         "146a14ac6e5b137525fcd6a8e181016a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[WORKLOAD_TEXT], hash[CONFIG_HASH_TEXT];
        struct config config = parse(rows[i][0]);
        config_format(&config, text);
        assert_string_equal(text, rows[i][0]);
        config_hash(&config, hash);
        assert_string_equal(hash, rows[i][1]);
    }
}

static void text_round_trips(void **state)
{
    (void)state;
    static const char *const texts[] = {
        default_conv2d,
        default_lstm,
        "conv2d algorithm=fft batch=1 cache=cold channels=3 dilation=2 filters=8 groups=1 height=9 "
        "implementation=cudnn kernel=3x5 layout=nchw padding=7 pass=backward-filter precision=bf16 "
        "stride=1 width=1",
        "matmul cache=cold implementation=cublaslt k=3 m=1 n=2 precision=bf16",
        "shared-loop cache=cold implementation=plain precision=fp64 steps=1 tile=2048 tiles=7",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        char text[WORKLOAD_TEXT];
        struct config config = parse(texts[i]);
        config_format(&config, text);
        assert_string_equal(text, texts[i]);
    }
}

static void wrong_text_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "pool2d batch=1",      "conv2d batch",          "conv2d batch=0",
        "conv2d fliters=3",    "conv2d kernel=3x",      "conv2d kernel=x3",
        "conv2d kernel=0",     "conv2d padding=full",   "conv2d precision=fp31",
        "conv2d batch=1e3",    "lstm directions=3",     "",
        "conv2d kernel=3x5x7", "conv2d batch=16abc",    "lstm pass=backward-data",
        "matmul k=0",          "matmul batch=1",        "shared-loop tile=2049",
        "lstm precision=fp8",  "matmul precision=int8",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct config config;
        struct error error = {""};
        assert_int_equal(config_parse(texts[i], &config, &error), STATUS_USAGE);
        assert_true(error.text[0]);
    }
}

struct shape {
    const char *text;
    int64_t pad_height, pad_width, out_height, out_width;
};

static void shapes(void **state)
{
    (void)state;
    static const struct shape rows[] = {
        {"conv2d", 1, 1, 56, 56},
        {"conv2d padding=valid", 0, 0, 55, 55},
        {"conv2d kernel=3x5 stride=1", 1, 2, 112, 112},
        {"conv2d kernel=4 stride=1", 2, 2, 113, 113},
        {"conv2d dilation=2 stride=1", 2, 2, 112, 112},
        {"conv2d kernel=9 height=5 width=20 padding=valid stride=1", 0, 0, 0, 12},
        {"conv2d kernel=1 padding=3 height=1 width=1 stride=5", 3, 3, 2, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse(rows[i].text);
        struct conv2d s = conv2d_from(&config);
        assert_int_equal(s.pad_height, rows[i].pad_height);
        assert_int_equal(s.pad_width, rows[i].pad_width);
        assert_int_equal(s.out_height, rows[i].out_height);
        assert_int_equal(s.out_width, rows[i].out_width);
    }
}

static void impossible_configurations(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "conv2d kernel=9 height=5 padding=valid",
        "conv2d groups=3",
        "conv2d filters=6 groups=4",
        "conv2d batch=1048576 height=65536 width=65536 channels=1048576",
        "lstm cell=gru projection=8",
        "lstm projection=16",
        "lstm projection=17",
        "lstm cell=relu layers=2 pass=backward",
        "linear activation=relu pass=backward-data",
        "linear bias=no fusion=fused",
        "linear fusion=separate pass=backward-data",
        "linear precision=fp8 bias=no pass=backward-data",
        "linear precision=fp8 bias=no pass=backward-weights",
        "linear precision=fp8 inputs=24",
        "linear precision=fp8 outputs=8",
        "matmul precision=fp8 n=8",
        "matmul precision=fp8 k=40",
        "matmul sparsity=2:4",
        "matmul accumulation=fast",
        "linear accumulation=fast precision=fp16",
        "matmul sparsity=2:4 precision=fp16 k=96",
        "matmul sparsity=2:4 precision=bf16 m=8",
        "conv2d precision=fp8 pass=backward-data",
        "conv2d precision=fp8 bias=yes",
        "conv2d precision=fp8 layout=nchw",
        "conv2d precision=fp8 channels=24",
        "conv2d precision=fp8 filters=8",
        "conv2d precision=fp8 groups=2",
        "compute-loop precision=tf32",
        "shared-loop precision=tf32",
        "shared-loop precision=fp16",
        "shared-loop precision=bf16",
    };
    struct error error;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct config config = parse(texts[i]);
        assert_int_equal(config_check(&config, &error), STATUS_UNSUPPORTED);
    }
    struct config fine = parse("conv2d groups=64");
    assert_int_equal(config_check(&fine, &error), STATUS_OK);
}

/* By hand, from the definitions. */
static void costs(void **state)
{
    (void)state;
    struct config conv2d = parse(default_conv2d);
    struct cost cost = config_cost(&conv2d);
    assert_true(cost.flops == 2.0 * 16 * 56 * 56 * 64 * 3 * 3 * 64);
    assert_true(cost.bytes ==
                4.0 * (16.0 * 112 * 112 * 64 + 64 * 3 * 3 * 64 + 16.0 * 56 * 56 * 64));
    struct config grouped = parse("conv2d groups=4 precision=fp16 pass=backward-data");
    assert_true(config_cost(&grouped).flops == cost.flops / 4);
    assert_true(config_cost(&grouped).bytes ==
                2.0 * (16.0 * 112 * 112 * 64 + 64 * 3 * 3 * 16 + 16.0 * 56 * 56 * 64));

    struct config lstm = parse(default_lstm);
    cost = config_cost(&lstm);
    assert_true(cost.flops == 16.0 * 16 * 16 * (8 * (32 + 16) + 4));
    assert_true(cost.bytes == 4.0 * (16 * 16 * 32 + 4 * 16 * (32 + 16 + 1) + 16 * 16 * 16));
    struct config deep = parse("lstm layers=2 directions=2 pass=backward");
    cost = config_cost(&deep);
    assert_true(cost.flops == 16.0 * 16 * 2 * 16 * (16 * (32 + 16) + 27 + 16 * (32 + 16) + 27));
}

/* Of cells other than the first, 16 x 16 steps of 16 units, by hand. */
static void costs_of_cells(void **state)
{
    (void)state;
    const double cells = 16.0 * 16 * 16, x = 16 * 16 * 32, y = cells;
    const struct {
        const char *text;
        double flops, elements; /* elements: of the compulsory traffic */
    } rows[] = {
        {"cell=gru", cells * (6 * (32 + 16) + 6), x + 16 * (3 * (32 + 16) + 4) + y},
        {"cell=tanh", cells * 2 * (32 + 16), x + 16 * (32 + 16 + 1) + y},
        {"cell=relu", cells * 2 * (32 + 16), x + 16 * (32 + 16 + 1) + y},
        {"projection=4", cells * (8 * (32 + 4) + 2 * 4 + 4),
         x + 16 * (4 * (32 + 4 + 1) + 4) + y / 4},
        /* read: x, w, dy and what is kept; written: dx, dw */
        {"cell=gru pass=backward", cells * (12 * (32 + 16) + 22),
         2 * x + 2 * 16 * (3 * (32 + 16) + 4) + y + 5 * cells},
        {"cell=tanh pass=backward", cells * (4 * (32 + 16) + 5),
         2 * x + 2 * 16 * (32 + 16 + 1) + y + cells},
        {"cell=relu pass=backward", cells * (4 * (32 + 16) + 2),
         2 * x + 2 * 16 * (32 + 16 + 1) + y + cells},
        {"projection=4 pass=backward", cells * (16 * (32 + 4) + 4 * 4 + 26 + 0.25),
         2 * x + 2 * 16 * (4 * (32 + 4 + 1) + 4) + y / 4 + 6 * cells + y / 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "lstm %s", rows[i].text);
        struct config config = parse(text);
        struct cost cost = config_cost(&config);
        assert_true(cost.flops == rows[i].flops);
        assert_true(cost.bytes == 4.0 * rows[i].elements);
    }
}

/* Pixels of a line that some tap of some output meets, one by one. */
static int64_t pixels_met(int64_t size, int64_t out, int64_t kernel, int64_t pad, int64_t stride,
                          int64_t dilation)
{
    int64_t count = 0;
    for (int64_t pixel = 0; pixel < size; ++pixel) {
        bool met = false;
        for (int64_t at = 0; at < out; ++at)
            for (int64_t tap = 0; tap < kernel; ++tap)
                met |= at * stride + tap * dilation - pad == pixel;
        count += met;
    }
    return count;
}

/* A 1x1 kernel with stride 2 reads a quarter of its input; a gradient of the input is written whole. */
static void what_is_not_touched_does_not_count(void **state)
{
    (void)state;
    char text[128];
    for (int64_t stride = 1; stride <= 5; ++stride)
        for (int64_t dilation = 1; dilation <= 5; ++dilation)
            for (int64_t kernel = 1; kernel <= 6; ++kernel)
                for (int64_t height = 1; height <= 29; height += 4) {
                    snprintf(text, sizeof text,
                             "conv2d batch=1 channels=1 filters=1 width=17 kernel=%d stride=%d "
                             "dilation=%d height=%d padding=%d",
                             (int)kernel, (int)stride, (int)dilation, (int)height,
                             (int)(kernel / 3));
                    struct config config = parse(text);
                    struct conv2d s = conv2d_from(&config);
                    if (s.out_height < 1 || s.out_width < 1)
                        continue;
                    double met = (double)(pixels_met(s.height, s.out_height, kernel, s.pad_height,
                                                     stride, dilation) *
                                          pixels_met(s.width, s.out_width, kernel, s.pad_width,
                                                     stride, dilation));
                    if (conv2d_x_touched(&s) != met)
                        fail_msg("%s: %g, not %g", text, conv2d_x_touched(&s), met);
                }
    struct config one = parse("conv2d kernel=1 stride=2 padding=0 precision=fp32");
    double x = 16.0 * 112 * 112 * 64, w = 64.0 * 64, y = 16.0 * 56 * 56 * 64;
    assert_true(config_cost(&one).bytes == 4.0 * (x / 4 + w + y));
    assert_true(config_cost(&one).memory == 4.0 * (x + w + y));
    one = parse("conv2d kernel=1 stride=2 padding=0 precision=fp32 pass=backward-data");
    assert_true(config_cost(&one).bytes == 4.0 * (x + w + y));
}

/* x is read once for forward and backward-filter, and dx written; y and dy; w read, dw and w' written. */
static void costs_of_steps(void **state)
{
    (void)state;
    const double x = 2 * 8 * 8 * 3, w = 5 * 9 * 3, y = 2 * 8 * 8 * 5, products = 2 * y * 27;
    static const char shape[] =
        "conv2d batch=2 height=8 width=8 channels=3 filters=5 stride=1 precision=fp64";
    const struct {
        const char *text;
        double flops, elements, memory;
    } rows[] = {
        {"pass=backward", 2 * products, 2 * x + 2 * w + y, 2 * x + 2 * w + y},
        {"pass=backward bias=yes", 2 * products + y, 2 * x + 2 * w + y + 5, 2 * x + 2 * w + y + 5},
        {"pass=backward activation=relu", 2 * products + y, 2 * x + 2 * w + 2 * y,
         2 * x + 2 * w + 3 * y},
        {"pass=forward bias=yes activation=tanh", products + 2 * y, x + w + y + 5, x + w + y + 5},
        {"pass=training", 3 * products + 2 * w, 2 * x + 3 * w + 2 * y, 2 * x + 3 * w + 2 * y},
        {"pass=training bias=yes activation=relu", 3 * products + 4 * y + 2 * (w + 5),
         2 * x + 3 * w + 2 * y + 15, 2 * x + 3 * w + 3 * y + 15},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "%s %s", shape, rows[i].text);
        struct config config = parse(text);
        struct cost cost = config_cost(&config);
        assert_true(cost.flops == rows[i].flops);
        assert_true(cost.bytes == 8.0 * rows[i].elements);
        assert_true(cost.memory == 8.0 * rows[i].memory);
    }
}

static void passes_without_layer_are_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"conv2d pass=backward-data bias=yes", "is one convolution"},
        {"conv2d pass=backward-filter activation=relu", "is one convolution"},
        {"conv2d fusion=fused", "nothing to fuse"},
        {"conv2d pass=training fusion=separate", "nothing to fuse"},
        {"conv2d pass=backward bias=yes fusion=fused", "this pass has none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse(rows[i][0]);
        struct error error = {""};
        assert_int_equal(config_check(&config, &error), STATUS_UNSUPPORTED);
        assert_non_null(strstr(error.text, rows[i][1]));
    }
}

static void costs_of_products_and_loops(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double flops, bytes;
    } rows[] = {
        {"matmul m=2 n=3 k=5", 2 * 2 * 3 * 5, 4 * (2 * 5 + 5 * 3 + 2 * 3)},
        {"matmul m=4 n=1 k=1 precision=fp64 implementation=plain", 8, 8 * (4 + 1 + 4)},
        {"matmul m=2 n=16 k=32 precision=fp8", 2 * 2 * 16 * 32, 2 * 32 + 32 * 16 + 2 * (2 * 16)},
        {"matmul m=16 n=32 k=64 precision=fp16 sparsity=2:4", 2 * 16 * 32 * 32,
         2 * (16 * 32 + 64 * 32 + 16 * 32) + 16 * 32 / 4},
        {"linear batch=2 inputs=32 outputs=16 precision=fp8", 2 * 2 * 16 * 32 + 2 * 16,
         2 * 32 + 32 * 16 + 2 * (2 * 16 + 16)},
        {"linear batch=2 inputs=3 outputs=5 bias=no", 2 * 30, 4 * (6 + 15 + 10)},
        {"linear batch=2 inputs=3 outputs=5 activation=relu", 2 * 30 + 2 * 10,
         4 * (6 + 15 + 10 + 5)},
        {"linear batch=2 inputs=3 outputs=5 pass=backward-data", 2 * 30, 4 * (6 + 15 + 10)},
        {"linear batch=2 inputs=3 outputs=5 pass=backward-weights precision=fp16", 2 * 30 + 10,
         2 * (6 + 15 + 10 + 5)},
        {"attention batch=2 heads=3 sequence=5 keys=7 head_size=11", 4.0 * 2 * 3 * 5 * 7 * 11,
         4 * 2.0 * 2 * 3 * (5 + 7) * 11},
        {"attention batch=1 heads=1 sequence=4 keys=4 head_size=8 causal=yes precision=fp16",
         4.0 * (1 + 2 + 3 + 4) * 8, 2 * 2.0 * (4 + 4) * 8},
        {"attention batch=1 heads=1 sequence=5 keys=2 head_size=8 causal=yes",
         4.0 * (1 + 2 + 2 + 2 + 2) * 8, 4 * 2.0 * (5 + 2) * 8},
        {"compute-loop elements=10 steps=7", 2 * 10 * 7, 4 * 2 * 10},
        {"compute-loop elements=10 steps=7 precision=bf16", 2 * 10 * 7, 2 * 2 * 10},
        {"shared-loop tiles=3 tile=5 steps=7 precision=fp64", 2 * 15 * 7, 8 * 2 * 15},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse(rows[i].text);
        struct cost cost = config_cost(&config);
        assert_true(cost.flops == rows[i].flops);
        assert_true(cost.bytes == rows[i].bytes && cost.memory == rows[i].bytes);
    }
}

/* Table 1 of NVIDIA's "GPU Performance Background User's Guide", as it rounds. */
static void intensities_of_the_guide(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double rounded;
    } rows[] = {
        {"linear inputs=1024 outputs=4096 batch=512 precision=fp16", 315},
        {"linear inputs=1024 outputs=4096 batch=1 precision=fp16", 1},
        {"linear inputs=1024 outputs=4096 batch=512 precision=fp16 bias=no", 315},
        {"linear inputs=1024 outputs=4096 batch=1 precision=fp16 bias=no", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse(rows[i].text);
        struct cost cost = config_cost(&config);
        assert_true(round(cost.flops / cost.bytes) == rows[i].rounded);
    }
}

/* What a device's conversion of the constant gives. */
static void loop_factors_are_rounded(void **state)
{
    (void)state;
    for (int64_t step = 0; step < 2; ++step) {
        double exact = LOOP_FACTOR(step);
        assert_true(loop_factor(PRECISION_FP64, step) == exact);
        assert_true(loop_factor(PRECISION_FP32, step) == (double)(float)exact);
        assert_true(loop_factor(PRECISION_FP32, step) == loop_factor(PRECISION_FP32, step + 2));
        for (int p = 0; p < PRECISION_COUNT; ++p)
            assert_true(fabs(loop_factor((enum precision)p, step) - exact) <=
                        ldexp(0.5, -precision_info[p].significand));
    }
    assert_true(loop_factor(PRECISION_BF16, 0) == -146.0 / 256);
    assert_true(loop_factor(PRECISION_BF16, 1) == 234.0 / 256);
}

/* Each element of w belongs to one part, and the parts fill w. */
static void lstm_parts_tile_the_weights(void **state)
{
    (void)state;
    struct config config = parse("lstm layers=3 directions=2 features=5 hidden=7");
    struct lstm s = lstm_from(&config);
    int64_t expected = 0;
    for (int64_t layer = 0; layer < 3; ++layer)
        for (int64_t direction = 0; direction < 2; ++direction) {
            assert_int_equal(lstm_w_at(&s, layer, direction, LSTM_INPUT_MATRIX), expected);
            expected += 4 * 7 * (layer ? 14 : 5);
            assert_int_equal(lstm_w_at(&s, layer, direction, LSTM_RECURRENT_MATRIX), expected);
            expected += 4 * 7 * 7;
            assert_int_equal(lstm_w_at(&s, layer, direction, LSTM_BIAS), expected);
            expected += 4 * 7;
        }
    assert_int_equal(lstm_w_size(&s), expected);
}

/* ---- a workload that is in no table: free texts, no model, no reference ---- */

static const struct parameter made_up_parameters[] = {
    WORKLOAD_FREE_TEXT("command", 255, "true", "a text"),
    WORKLOAD_FREE_TEXT("mode", 20, "", "another"),
    WORKLOAD_INTEGER("size", 100, "1", "a number"),
};
static const char *const made_up_implementations[] = {NULL};
static const struct workload made_up = {
    .name = "made-up",
    WORKLOAD_TABLE(made_up_parameters),
    .implementations = made_up_implementations,
};
enum { COMMAND, MODE, SIZE };

static struct config made_up_config(const char *command, const char *mode, int64_t size)
{
    struct config config = config_default(&made_up);
    struct value number = {.first = size}, value = {0};
    config_set(&config, SIZE, &number);
    snprintf(value.text, sizeof value.text, "%s", command);
    config_set(&config, COMMAND, &value);
    snprintf(value.text, sizeof value.text, "%s", mode);
    config_set(&config, MODE, &value);
    return config;
}

/* The same workload when it has been given a number and a word that older rows do not have. */
static const char *const later_words[] = {"as-before", "otherwise", NULL};
static const struct parameter grown_parameters[] = {
    WORKLOAD_FREE_TEXT("command", 255, "true", "a text"),
    WORKLOAD_LATER_INTEGER("depth", 0, 9, "0", "a number that came later"),
    WORKLOAD_LATER_SERIES("manner", later_words, "as-before", "a word that came later"),
    WORKLOAD_FREE_TEXT("mode", 20, "", "another"),
    WORKLOAD_INTEGER("size", 100, "1", "a number"),
};
static const struct workload grown = {
    .name = "made-up",
    WORKLOAD_TABLE(grown_parameters),
    .implementations = made_up_implementations,
};

static void later_parameters_leave_old_texts(void **state)
{
    (void)state;
    static const struct {
        const char *given, *canonical;
        int64_t depth, manner;
    } rows[] = {
        {"made-up command=a mode=b size=3", "made-up command=a mode=b size=3", 0, 0},
        {"made-up command=a depth=0 manner=as-before mode=b size=3",
         "made-up command=a mode=b size=3", 0, 0},
        {"made-up command=a depth=2 mode=b size=3", "made-up command=a depth=2 mode=b size=3", 2,
         0},
        {"made-up command=a manner=otherwise mode=b size=3",
         "made-up command=a manner=otherwise mode=b size=3", 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[WORKLOAD_TEXT], before[WORKLOAD_TEXT];
        struct config config, old;
        struct error error;
        assert_int_equal(config_parse_as(&grown, rows[i].given, &config, &error), STATUS_OK);
        assert_int_equal(config.values[1].first, rows[i].depth);
        assert_int_equal(config.values[2].first, rows[i].manner);
        config_format(&config, text);
        assert_string_equal(text, rows[i].canonical);
        if (i > 0)
            continue;
        assert_int_equal(config_parse_as(&made_up, text, &old, &error), STATUS_OK);
        config_format(&old, before);
        assert_string_equal(text, before);
    }
}

static void hostile_texts_round_trip(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        " ",
        "  two  blanks  ",
        "a=b",
        "=",
        "size=2",
        " size=2 ",
        "\"",
        "\\",
        "\\\"",
        "\"\"",
        "\" size=3",
        "\\\\",
        "ends in \\",
        "'single' \"double\"",
        "a, b; c # d & e",
        "[section]",
        "{batch}",
        "$(rm)",
        "%s%n",
        "made-up command=x",
        ("gr\xc3\xbc\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80"),
        "python3 sweeps/programs/conv2d.py --batch 16 --name \"a b\"",
    };
    enum { COUNT = sizeof texts / sizeof *texts };
    char seen[COUNT][CONFIG_HASH_TEXT];
    for (size_t i = 0; i < COUNT; ++i) {
        char text[WORKLOAD_TEXT], again[WORKLOAD_TEXT];
        struct config config = made_up_config(texts[i], "m", 7), parsed;
        struct error error;
        config_format(&config, text);
        if (config_parse_as(&made_up, text, &parsed, &error))
            fail_msg("'%s': %s", text, error.text);
        assert_string_equal(config_get(&parsed, COMMAND).text, texts[i]);
        assert_string_equal(config_get(&parsed, MODE).text, "m");
        assert_int_equal(parsed.values[SIZE].first, 7);
        assert_memory_equal(&parsed, &config, sizeof config);
        config_format(&parsed, again);
        assert_string_equal(again, text);
        config_hash(&config, seen[i]);
        for (size_t j = 0; j < i; ++j)
            assert_string_not_equal(seen[i], seen[j]);
    }
}

/* Quotes only where they are needed. */
static void texts_are_formatted(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"eager", "made-up command=eager mode=\"\" size=1"},
        {"a/b-c_d.e:f+g@h%", "made-up command=a/b-c_d.e:f+g@h% mode=\"\" size=1"},
        {"a b", "made-up command=\"a b\" mode=\"\" size=1"},
        {"a\\b\"", "made-up command=\"a\\\\b\\\"\" mode=\"\" size=1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[WORKLOAD_TEXT];
        struct config config = made_up_config(rows[i][0], "", 1);
        config_format(&config, text);
        assert_string_equal(text, rows[i][1]);
    }
}

/* The longest texts, each byte of which needs an escape, and one byte more. */
static void texts_have_bounds(void **state)
{
    (void)state;
    char longest[256], mode[21], text[WORKLOAD_TEXT], value[WORKLOAD_VALUE_TEXT];
    struct config parsed;
    struct error error;
    memset(longest, '"', 255);
    memset(mode, '\\', 20);
    longest[255] = mode[20] = '\0';
    struct config config = made_up_config(longest, mode, 100);
    config_format(&config, text);
    assert_int_equal(config_parse_as(&made_up, text, &parsed, &error), STATUS_OK);
    assert_memory_equal(&parsed, &config, sizeof config);
    parameter_format(&made_up_parameters[COMMAND], config_get(&config, COMMAND), value);
    assert_int_equal(strlen(value), 2 * 255 + 2);

    struct value kept = {.first = 5}, unchanged = kept;
    static const size_t lengths[] = {256, 512, 513, 599};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        char more[600];
        memset(more, 'x', lengths[i]);
        more[lengths[i]] = '\0';
        assert_int_equal(parameter_parse(&made_up_parameters[COMMAND], more, &kept, &error),
                         STATUS_USAGE);
        assert_non_null(strstr(error.text, "allowed: 0 to 255"));
        assert_memory_equal(&kept, &unchanged, sizeof kept);
    }
}

static void wrong_texts_are_refused(void **state)
{
    (void)state;
    static const char *const values[] = {
        "\"open", "\"",   "\"open\\\"", "\"a\"b", "\"a\" ",       "\"\\n\"",  "a\tb",
        "a\nb",   "\x7f", "\xff",       "\xc3",   "\xed\xa0\x80", "\xc0\xaf",
    };
    static const char *const configs[] = {
        "made-up command=\"a b",
        "made-up command=\"a\"b",
        "made-up command=a b",
        "made-up command=\"a\"  size=1",
        "made-up mode=123456789012345678901",
        "matmul",
    };
    struct value value;
    struct config config;
    struct error error;
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
        error.text[0] = '\0';
        assert_int_equal(parameter_parse(&made_up_parameters[COMMAND], values[i], &value, &error),
                         STATUS_USAGE);
        assert_true(strncmp(error.text, "command: ", 9) == 0);
    }
    for (size_t i = 0; i < sizeof configs / sizeof *configs; ++i)
        assert_int_equal(config_parse_as(&made_up, configs[i], &config, &error), STATUS_USAGE);
}

static void texts_are_axes(void **state)
{
    (void)state;
    struct axis axis = {.line = 1};
    size_t room = MANIFEST_VALUES_MAX;
    struct error error;
    const struct parameter *command = &made_up_parameters[COMMAND];
    assert_int_equal(axis_parse(command, "eager, \"a, b\" ,run it:now, \"say \\\"hi\\\"\"", &room,
                                &axis, &error),
                     STATUS_OK);
    static const char *const expected[] = {"eager", "a, b", "run it:now", "say \"hi\""};
    assert_int_equal(axis.count, 4);
    for (size_t i = 0; i < 4; ++i)
        assert_string_equal(axis.values[i].text, expected[i]);
    assert_int_equal(axis_distinct(command, &axis, &error), STATUS_OK);
    axis_clear(&axis);
    assert_int_equal(axis_parse(command, "a b, c, \"a b\"", &room, &axis, &error), STATUS_OK);
    assert_int_equal(axis_distinct(command, &axis, &error), STATUS_USAGE);
    assert_string_equal(error.text, "command: \"a b\" comes twice");
    axis_clear(&axis);
    assert_int_equal(axis_parse(command, "a, \"b, c", &room, &axis, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, "no closing quote"));
}

static void texts_are_excluded(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *command;
        bool holds;
    } rows[] = {
        {"command = eager", "eager", true},
        {"command = eager", "eagerly", false},
        {"command != eager", "graph", true},
        {"command = \"a & b, c\" & size = 1", "a & b, c", true},
        {"command = \"x < y\" & size = 2", "x < y", false},
    };
    struct error error;
    size_t room = MANIFEST_VALUES_MAX;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct exclusion *exclusions;
        size_t count;
        struct config config = made_up_config(rows[i].command, "", 1);
        if (exclusions_parse(&made_up, rows[i].rule, &room, &exclusions, &count, &error))
            fail_msg("%s: %s", rows[i].rule, error.text);
        assert_int_equal(count, 1);
        assert_int_equal(exclusion_holds(exclusions, &config), rows[i].holds);
        exclusions_destroy(exclusions, count);
    }
    struct exclusion *exclusions;
    size_t count;
    assert_int_equal(exclusions_parse(&made_up, "command < b", &room, &exclusions, &count, &error),
                     STATUS_USAGE);
    assert_non_null(strstr(error.text, "use = or !="));
}

/* What is promised of every row; the made-up one too. */
static void check_row(const struct workload *workload)
{
    struct config config = config_default(workload);
    struct products products;
    int64_t strings = 0;
    char text[WORKLOAD_TEXT];
    assert_true(workload->count <= WORKLOAD_PARAMETERS_MAX);
    for (size_t i = 0; i < workload->count; ++i) {
        const struct parameter *p = &workload->parameters[i];
        struct value value = config_get(&config, i);
        assert_true(i == 0 || strcmp(p[-1].name, p->name) < 0);
        parameter_format(p, value, text);
        if (p->kind != PARAMETER_TEXT)
            assert_string_equal(text, p->initial);
        else
            strings += p->maximum + 1;
        assert_true(p->kind != PARAMETER_TEXT || p->maximum < WORKLOAD_STRING);
        for (size_t j = 0; j < i && p->role != ROLE_NONE; ++j)
            assert_true(p->role != workload->parameters[j].role);
    }
    assert_true(strings <= WORKLOAD_STRINGS);
    config_products(&config, &products);
    assert_true(products.count <= PRODUCTS_WAYS && products.inside > 0.0);
    assert_true(products.cells == 0.0 || (products.cell && products.part));
    /* Inputs of the reference are of one precision. */
    assert_true(!workload->reference || config_precision(&config) < PRECISION_COUNT);
}

static void rows_keep_their_promises(void **state)
{
    (void)state;
    for (size_t i = 0; workloads[i]; ++i)
        check_row(workloads[i]);
    check_row(&made_up);
}

/* A row of it says that nothing is modelled, by missing values; nothing is taken for 0. */
static void no_model_is_said(void **state)
{
    (void)state;
    struct config config = made_up_config("run", "", 1);
    struct error error;
    struct record record;
    struct device device;
    record_init(&record);
    device_init(&device);
    assert_int_equal(config_check(&config, &error), STATUS_OK);
    assert_int_equal(config_precision(&config), PRECISION_COUNT);
    assert_false(config_cold(&config));
    assert_null(config_word(&config, ROLE_IMPLEMENTATION));
    record_set_config(&record, &config);
    assert_string_equal(record.configuration, "made-up command=run mode=\"\" size=1");
    assert_true(isnan(record.flops_model) && isnan(record.bytes_model) && isnan(record.footprint));
    record.status = RECORD_MEASURED;
    record.time_median = 1.0;
    record.launches = 1;
    struct derived derived = derive(&record, &device);
    assert_int_equal(derived.flops_source, SOURCE_NONE);
    assert_int_equal(derived.bytes_source, SOURCE_NONE);
    assert_true(isnan(derived.roofline.intensity) && isnan(derived.roofline.performance));
    record_clear(&record);
}

/* A plan of two made-up sizes and a matmul: the dry run shows "-", and the two are handed out first,
 * in the manifest's order. */
static void no_model_is_first(void **state)
{
    (void)state;
    struct value sizes[] = {{.first = 9}, {.first = 3}};
    struct section sections[] = {
        {.workload = workload_find("matmul"), .label = "known", .line = 1},
        {.workload = &made_up, .label = "unknown", .line = 2},
    };
    struct manifest manifest = {.path = "test.ini",
                                .sections = sections,
                                .section_count = 2,
                                .sweep.max_configurations = 10};
    struct plan *plan = NULL;
    struct error error;
    char *text = NULL;
    size_t size = 0, item, order[3];
    sections[1].axes[SIZE] = (struct axis){sizes, 2, 3};
    if (plan_create(&manifest, &plan, &error))
        fail_msg("%s", error.text);
    assert_int_equal(plan->count, 3);
    FILE *stream = open_memstream(&text, &size);
    plan_print(plan, stream);
    fclose(stream);
    assert_non_null(strstr(text, "            -          -          -  unknown size="));
    assert_non_null(strstr(text, "without a modelled cost: 2; they are measured first"));
    struct schedule *schedule = schedule_create(plan, 1, false);
    for (size_t i = 0; i < 3; ++i) {
        assert_true(schedule_next(schedule, 0, NULL, NULL, &item));
        order[i] = item;
    }
    assert_true(order[0] == 1 && order[1] == 2 && order[2] == 0);
    schedule_destroy(schedule);
    plan_destroy(plan);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_text_is_stable),
        cmocka_unit_test(hashes_of_old_rows_stay),
        cmocka_unit_test(later_parameters_leave_old_texts),
        cmocka_unit_test(text_round_trips),
        cmocka_unit_test(wrong_text_is_refused),
        cmocka_unit_test(shapes),
        cmocka_unit_test(impossible_configurations),
        cmocka_unit_test(costs),
        cmocka_unit_test(costs_of_cells),
        cmocka_unit_test(what_is_not_touched_does_not_count),
        cmocka_unit_test(costs_of_steps),
        cmocka_unit_test(passes_without_layer_are_refused),
        cmocka_unit_test(costs_of_products_and_loops),
        cmocka_unit_test(intensities_of_the_guide),
        cmocka_unit_test(loop_factors_are_rounded),
        cmocka_unit_test(lstm_parts_tile_the_weights),
        cmocka_unit_test(hostile_texts_round_trip),
        cmocka_unit_test(texts_are_formatted),
        cmocka_unit_test(texts_have_bounds),
        cmocka_unit_test(wrong_texts_are_refused),
        cmocka_unit_test(texts_are_axes),
        cmocka_unit_test(texts_are_excluded),
        cmocka_unit_test(rows_keep_their_promises),
        cmocka_unit_test(no_model_is_said),
        cmocka_unit_test(no_model_is_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
