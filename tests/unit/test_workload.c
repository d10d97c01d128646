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
#include "model/record.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"
#include "model/workloads/pool.h"
#include "ranks/queue.h"

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

static bool has_no_reference(const struct workload *workload)
{
    return !workload->reference;
}

/* However many workloads there are, the list has room for all of them. */
static void names_are_all_listed(void **state)
{
    (void)state;
    static const char *const others[] = {"sweep", "measure", NULL};
    const char **all = workload_names(others, NULL);
    const char **some = workload_names(NULL, has_no_reference);
    assert_string_equal(all[0], "sweep");
    for (size_t i = 0; i == 0 || workloads[i - 1]; ++i)
        assert_true(workloads[i] ? strcmp(all[2 + i], workloads[i]->name) == 0 : !all[2 + i]);
    assert_string_equal(some[0], "program");
    assert_null(some[1]);
    free(all);
    free(some);
}

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

/* A maximum also needs them on the way back, an average none; the gradient is written whole. */
static void pools_read_what_windows_lie_on(void **state)
{
    (void)state;
    char text[160];
    for (int64_t window = 1; window <= 4; ++window)
        for (int64_t stride = 1; stride <= 6; ++stride)
            for (int64_t height = window; height <= 19; ++height)
                for (int pad = 0; pad < window && pad < 2; ++pad) {
                    snprintf(text, sizeof text,
                             "pool batch=2 channels=3 width=7 precision=fp32 padding=%d window=%d "
                             "stride=%d height=%d",
                             pad, (int)window, (int)stride, (int)height);
                    struct config config = parse(text);
                    struct pool s = pool_from(&config);
                    double met = (double)(pixels_met(height, s.out_height, window, pad, stride, 1) *
                                          pixels_met(7, s.out_width, window, pad, stride, 1));
                    double x = 6.0 * (double)height * 7, y = (double)pool_y_size(&s);
                    assert_true(config_cost(&config).bytes == 4.0 * (6.0 * met + y));
                    assert_true(config_cost(&config).memory == 4.0 * (x + y));
                    strcat(text, " pass=backward");
                    config = parse(text);
                    assert_true(config_cost(&config).bytes == 4.0 * (6.0 * met + x + y));
                    assert_true(config_cost(&config).memory == 4.0 * (x + x + y));
                    strcat(text, " operation=average");
                    config = parse(text);
                    assert_true(config_cost(&config).bytes == 4.0 * (x + y));
                    assert_true(config_cost(&config).memory == 4.0 * (x + y));
                }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_all_listed),
        cmocka_unit_test(canonical_text_is_stable),
        cmocka_unit_test(hashes_of_old_rows_stay),
        cmocka_unit_test(text_round_trips),
        cmocka_unit_test(wrong_text_is_refused),
        cmocka_unit_test(shapes),
        cmocka_unit_test(impossible_configurations),
        cmocka_unit_test(costs),
        cmocka_unit_test(costs_of_cells),
        cmocka_unit_test(what_is_not_touched_does_not_count),
        cmocka_unit_test(pools_read_what_windows_lie_on),
        cmocka_unit_test(costs_of_steps),
        cmocka_unit_test(passes_without_layer_are_refused),
        cmocka_unit_test(costs_of_products_and_loops),
        cmocka_unit_test(intensities_of_the_guide),
        cmocka_unit_test(loop_factors_are_rounded),
        cmocka_unit_test(lstm_parts_tile_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
