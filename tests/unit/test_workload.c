/* Texts, hashes, shapes, validity and modelled cost of configurations. */

#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"
#include "model/workloads/pool.h"
#include "model/naming.h"
#include "parsed.h"

static bool has_no_reference(const struct workload *workload)
{
    return !workload->reference;
}

TEST(a_hint_lists_all_names)
{
    static const char *const others[] = {"sweep", "measure", NULL};
    char hint[WORDS_HINT], expected[WORDS_HINT] = "; allowed: sweep, measure";
    for (size_t i = 0; workloads[i]; ++i)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), ", %s",
                 workloads[i]->name);
    workload_hint(others, NULL, "xyzzy", hint);
    assert_string_equal(hint, expected);
    workload_hint(NULL, has_no_reference, "xyzzy", hint);
    assert_string_equal(hint, "; allowed: program");
}

/* The text identifies a configuration, so it must never change. The hashes are of rows that were
 * measured before later parameters existed. */
TEST(texts_and_hashes_stay)
{
    static const struct {
        bool all_default;
        const char *text, *hash; /* hash NULL: no such old row */
    } rows[] = {
        {true,
         "conv2d algorithm=auto batch=16 cache=hot channels=64 dilation=1 filters=64 groups=1 "
         "height=112 implementation=auto kernel=3 layout=nhwc padding=same pass=forward "
         "precision=fp32 stride=2 width=112",
         "78e61c68d4b95369a84dd6aeb5a5ed00"},
        {true,
         "lstm algorithm=auto batch=16 cache=hot directions=1 features=32 hidden=16 "
         "implementation=auto layers=1 pass=forward precision=fp32 sequence=16",
         "6145d76bcdbfb58f14c89c3a6d18ea3a"},
        {true, "matmul cache=hot implementation=auto k=1024 m=1024 n=1024 precision=fp32",
         "80e0828f49d75e02f251a21586733175"},
        {true,
         "compute-loop cache=hot elements=4194304 implementation=auto precision=fp32 steps=4096",
         "5efe32d76df81e8c298f8ac238ec5790"},
        {true,
         "shared-loop cache=hot implementation=auto precision=fp32 steps=4096 tile=1024 tiles=4096",
         "4238a31e5b6874eac7ba4e8cd0b65da5"},
        {true,
         "attention batch=8 cache=hot causal=no head_size=64 heads=16 implementation=auto "
         "keys=1024 precision=fp32 sequence=1024",
         NULL},
        {true,
         "linear activation=none batch=512 bias=yes cache=hot fusion=auto implementation=auto "
         "inputs=1024 outputs=4096 pass=forward precision=fp32",
         NULL},
        {true,
         "elementwise cache=hot elements=16777216 implementation=auto operation=relu "
         "precision=fp32",
         NULL},
        {true,
         "pool batch=16 cache=hot channels=64 height=112 implementation=auto layout=nhwc "
         "operation=max padding=same precision=fp32 stride=2 width=112 window=3",
         NULL},
        {true,
         "norm cache=hot columns=1024 implementation=auto operation=layer pass=forward "
         "precision=fp32 rows=16384",
         NULL},
        {true,
         "softmax cache=hot columns=4096 implementation=auto pass=forward precision=fp32 rows=4096",
         NULL},
        {false,
         "conv2d algorithm=fft batch=1 cache=cold channels=3 dilation=2 filters=8 groups=1 "
         "height=9 "
         "implementation=cudnn kernel=3x5 layout=nchw padding=7 pass=backward-filter "
         "precision=bf16 stride=1 width=1",
         "5be7864fbb661bf0d5a4ac74327c479f"},
        {false,
         "conv2d algorithm=auto batch=1 cache=hot channels=64 dilation=1x2 filters=64 groups=1 "
         "height=9 implementation=auto kernel=3 layout=nhwc padding=1:2x0 pass=forward "
         "precision=fp32 stride=3x1 width=70000",
         NULL},
        {false,
         "lstm algorithm=auto batch=16 cache=cold directions=2 features=32 hidden=128 "
         "implementation=cudnn layers=2 pass=backward precision=fp16 sequence=64",
         "146a14ac6e5b137525fcd6a8e181016a"},
        {false, "matmul cache=cold implementation=cublaslt k=3 m=1 n=2 precision=bf16", NULL},
        {false,
         "shared-loop cache=cold implementation=plain precision=fp64 steps=1 tile=2048 tiles=7",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[WORKLOAD_TEXT], hash[CONFIG_HASH_TEXT];
        struct config config = parse_any(rows[i].text);
        if (rows[i].all_default)
            config = config_default(config.workload);
        config_format(&config, text);
        assert_string_equal(text, rows[i].text);
        config_hash(&config, hash);
        if (rows[i].hash)
            assert_string_equal(hash, rows[i].hash);
    }
}

TEST(wrong_text_is_refused)
{
    static const char *const texts[] = {
        "pool2d batch=1",          "conv2d batch",
        "conv2d batch=0",          "conv2d fliters=3",
        "conv2d kernel=3x",        "conv2d kernel=x3",
        "conv2d kernel=0",         "conv2d padding=full",
        "conv2d precision=fp31",   "conv2d batch=1e3",
        "lstm directions=3",       "",
        "conv2d kernel=3x5x7",     "conv2d batch=16abc",
        "lstm pass=backward-data", "matmul k=0",
        "matmul batch=1",          "shared-loop tile=2049",
        "lstm precision=fp8",      "matmul precision=int8",
        "conv2d padding=1:2:3",    "conv2d padding=1xsame",
        "conv2d stride=2x0",       "conv2d dilation=1:2",
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

TEST(shapes)
{
    static const struct shape rows[] = {
        {"conv2d", 1, 1, 56, 56},
        {"conv2d padding=valid", 0, 0, 55, 55},
        {"conv2d kernel=3x5 stride=1", 1, 2, 112, 112},
        {"conv2d kernel=4 stride=1", 2, 2, 113, 113},
        {"conv2d dilation=2 stride=1", 2, 2, 112, 112},
        {"conv2d kernel=9 height=5 width=20 padding=valid stride=1", 0, 0, 0, 12},
        {"conv2d kernel=1 padding=3 height=1 width=1 stride=5", 3, 3, 2, 2},
        {"conv2d kernel=4 stride=1x2 padding=1:2x0:1 dilation=1x3", 1, 0, 112, 52},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse_any(rows[i].text);
        struct conv2d s = conv2d_from(&config);
        assert_int_equal(s.pad_height, rows[i].pad_height);
        assert_int_equal(s.pad_width, rows[i].pad_width);
        assert_int_equal(s.out_height, rows[i].out_height);
        assert_int_equal(s.out_width, rows[i].out_width);
    }
}

TEST(impossible_configurations_are_refused)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"conv2d kernel=9 height=5 padding=valid", "no pixels"},
        {"conv2d groups=3", "3 groups do not divide"},
        {"conv2d filters=6 groups=4", "4 groups do not divide"},
        {"conv2d batch=1048576 height=65536 width=65536 channels=1048576", "no device has that"},
        {"conv2d pass=backward-data bias=yes", "is one convolution"},
        {"conv2d pass=backward-filter activation=relu", "is one convolution"},
        {"conv2d fusion=fused", "nothing to fuse"},
        {"conv2d pass=training fusion=separate", "nothing to fuse"},
        {"conv2d pass=backward bias=yes fusion=fused", "no forward part"},
        {"conv2d precision=fp8 pass=backward-data", "fp8 needs pass=forward"},
        {"conv2d precision=fp8 bias=yes", "fp8 needs pass=forward"},
        {"conv2d precision=fp8 layout=nchw", "layout=nhwc"},
        {"conv2d precision=fp8 groups=2", "groups=1"},
        {"conv2d precision=fp8 channels=24", "multiples of 16"},
        {"conv2d precision=fp8 filters=8", "multiples of 16"},
        {"lstm cell=gru projection=8", "has no projection"},
        {"lstm projection=16", "less than hidden"},
        {"lstm projection=17", "less than hidden"},
        {"lstm cell=relu layers=2 pass=backward", "cannot be verified"},
        {"linear activation=relu pass=backward-data", "activation=none"},
        {"linear bias=no fusion=fused", "nothing to fuse"},
        {"linear fusion=separate pass=backward-data", "nothing to fuse"},
        {"linear precision=fp8 bias=no pass=backward-data", "fp8 needs pass=forward"},
        {"linear precision=fp8 bias=no pass=backward-weights", "fp8 needs pass=forward"},
        {"linear precision=fp8 inputs=24", "multiples of 16"},
        {"linear precision=fp8 outputs=8", "multiples of 16"},
        {"linear accumulation=fast precision=fp16", "needs precision=fp8"},
        {"matmul precision=fp8 n=8", "multiples of 16"},
        {"matmul precision=fp8 k=40", "multiples of 16"},
        {"matmul accumulation=fast", "needs precision=fp8"},
        {"compute-loop precision=tf32", "tf32"},
        {"shared-loop precision=tf32", "tf32"},
        {"shared-loop precision=fp16", "not fp16"},
        {"shared-loop precision=bf16", "not bf16"},
        {"elementwise precision=tf32", "tf32"},
        {"pool precision=tf32", "tf32"},
        {"pool padding=3", "without a pixel"},
        {"pool window=3x4 padding=3", "without a pixel"},
        {"pool window=5 height=4 padding=valid", "no pixels"},
        {"pool window=1 padding=1", "without a pixel"},
        {"pool batch=1048576 channels=1048576 height=65536 width=65536", "no device has that"},
        {"softmax precision=tf32", "tf32"},
        {"softmax rows=1073741824 columns=16777216 precision=fp64", "no device has that"},
        {"norm precision=tf32", "tf32"},
        {"norm columns=1", "the value itself"},
        {"norm rows=1 operation=batch", "the value itself"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse_any(rows[i].text);
        assert_fails(config_check(&config, &failure), STATUS_UNSUPPORTED, rows[i].reason);
    }
    struct config fine = parse("conv2d groups=64");
    assert_ok(config_check(&fine, &failure));
}

TEST(costs)
{
    /* the default conv2d and a small one with stride 1: elements of tensors, and products */
    const double x = 16.0 * 112 * 112 * 64, w = 64.0 * 9 * 64, y = 16.0 * 56 * 56 * 64;
    const double sx = 2 * 8 * 8 * 3, sw = 5 * 9 * 3, sy = 2 * 8 * 8 * 5, products = 2 * sy * 27;
    const double cells = 16.0 * 16 * 16, lx = 16 * 16 * 32, ly = cells; /* lstm by default */
#define SMALL "conv2d batch=2 height=8 width=8 channels=3 filters=5 stride=1 precision=fp64 "
    const double SAME = -1.0;
    const struct {
        const char *text;
        double flops, bytes, memory; /* memory 0: not compared; SAME: equal to bytes */
    } rows[] = {
        {"conv2d", 2 * y * 9 * 64, 4 * (x + w + y), 4 * (x + w + y)},
        {"conv2d batch=32 channels=256 filters=16 height=1 width=1 padding=1 precision=fp16",
         2 * 32 * 16 * 9 * 256, 25600, 91136},
        {"conv2d kernel=1 padding=0", 2 * y * 64, 4 * (x / 4 + w / 9 + y), 4 * (x + w / 9 + y)},
        {"conv2d groups=4 precision=fp16 pass=backward-data", 2 * y * 9 * 16, 2 * (x + w / 4 + y),
         0},
        /* Backward reads x, w and dy, and writes dx and dw. Training also writes y and w'. */
        {SMALL "pass=backward", 2 * products, 8 * (2 * sx + 2 * sw + sy),
         8 * (2 * sx + 2 * sw + sy)},
        {SMALL "pass=backward bias=yes", 2 * products + sy, 8 * (2 * sx + 2 * sw + sy + 5),
         8 * (2 * sx + 2 * sw + sy + 5)},
        {SMALL "pass=backward activation=relu", 2 * products + sy, 8 * (2 * sx + 2 * sw + 2 * sy),
         8 * (2 * sx + 2 * sw + 3 * sy)},
        {SMALL "pass=backward bias=yes activation=relu", 2 * products + 2 * sy,
         8 * (2 * sx + 2 * sw + 2 * sy + 5), 8 * (2 * sx + 2 * sw + 3 * sy + 2 * 5)},
        {SMALL "pass=forward bias=yes activation=tanh", products + 2 * sy, 8 * (sx + sw + sy + 5),
         8 * (sx + sw + sy + 5)},
        {SMALL "pass=training", 3 * products + 2 * sw, 8 * (2 * sx + 3 * sw + 2 * sy),
         8 * (2 * sx + 3 * sw + 2 * sy)},
        {SMALL "pass=training bias=yes activation=relu", 3 * products + 4 * sy + 2 * (sw + 5),
         8 * (2 * sx + 3 * sw + 2 * sy + 15), 8 * (2 * sx + 3 * sw + 3 * sy + 15)},
        {"lstm", cells * (8 * (32 + 16) + 4), 4 * (lx + 4 * 16 * (32 + 16 + 1) + ly), 0},
        {"lstm layers=2 directions=2 pass=backward", 2 * cells * 2 * (16 * (32 + 16) + 27), 0, 0},
        {"lstm cell=gru", cells * (6 * (32 + 16) + 6), 4 * (lx + 16 * (3 * (32 + 16) + 4) + ly), 0},
        {"lstm cell=tanh", cells * 2 * (32 + 16), 4 * (lx + 16 * (32 + 16 + 1) + ly), 0},
        {"lstm cell=relu", cells * 2 * (32 + 16), 4 * (lx + 16 * (32 + 16 + 1) + ly), 0},
        {"lstm projection=4", cells * (8 * (32 + 4) + 2 * 4 + 4),
         4 * (lx + 16 * (4 * (32 + 4 + 1) + 4) + ly / 4), 0},
        /* read: x, w, dy and the kept values; written: dx, dw */
        {"lstm cell=gru pass=backward", cells * (12 * (32 + 16) + 22),
         4 * (2 * lx + 2 * 16 * (3 * (32 + 16) + 4) + ly + 5 * cells), 0},
        {"lstm cell=tanh pass=backward", cells * (4 * (32 + 16) + 5),
         4 * (2 * lx + 2 * 16 * (32 + 16 + 1) + ly + cells), 0},
        {"lstm cell=relu pass=backward", cells * (4 * (32 + 16) + 2),
         4 * (2 * lx + 2 * 16 * (32 + 16 + 1) + ly + cells), 0},
        {"lstm projection=4 pass=backward", cells * (16 * (32 + 4) + 4 * 4 + 26 + 0.25),
         4 * (2 * lx + 2 * 16 * (4 * (32 + 4 + 1) + 4) + ly / 4 + 6 * cells + ly / 4), 0},
        {"matmul m=2 n=3 k=5", 2 * 2 * 3 * 5, 4 * (2 * 5 + 5 * 3 + 2 * 3), SAME},
        {"matmul m=4 n=1 k=1 precision=fp64 implementation=plain", 8, 8 * (4 + 1 + 4), SAME},
        {"matmul m=2 n=16 k=32 precision=fp8", 2 * 2 * 16 * 32, 2 * 32 + 32 * 16 + 2 * (2 * 16),
         SAME},
        {"linear batch=2 inputs=32 outputs=16 precision=fp8", 2 * 2 * 16 * 32 + 2 * 16,
         2 * 32 + 32 * 16 + 2 * (2 * 16 + 16), SAME},
        {"linear batch=2 inputs=3 outputs=5 bias=no", 2 * 30, 4 * (6 + 15 + 10), SAME},
        {"linear batch=2 inputs=3 outputs=5 activation=relu", 2 * 30 + 2 * 10,
         4 * (6 + 15 + 10 + 5), SAME},
        {"linear batch=2 inputs=3 outputs=5 pass=backward-data", 2 * 30, 4 * (6 + 15 + 10), SAME},
        {"linear batch=2 inputs=3 outputs=5 pass=backward-weights precision=fp16", 2 * 30 + 10,
         2 * (6 + 15 + 10 + 5), SAME},
        {"attention batch=2 heads=3 sequence=5 keys=7 head_size=11", 4.0 * 2 * 3 * 5 * 7 * 11,
         4 * 2.0 * 2 * 3 * (5 + 7) * 11, SAME},
        {"attention batch=1 heads=1 sequence=4 keys=4 head_size=8 causal=yes precision=fp16",
         4.0 * (1 + 2 + 3 + 4) * 8, 2 * 2.0 * (4 + 4) * 8, SAME},
        {"attention batch=1 heads=1 sequence=5 keys=2 head_size=8 causal=yes",
         4.0 * (1 + 2 + 2 + 2 + 2) * 8, 4 * 2.0 * (5 + 2) * 8, SAME},
        {"compute-loop elements=10 steps=7", 2 * 10 * 7, 4 * 2 * 10, SAME},
        {"compute-loop elements=10 steps=7 precision=bf16", 2 * 10 * 7, 2 * 2 * 10, SAME},
        {"shared-loop tiles=3 tile=5 steps=7 precision=fp64", 2 * 15 * 7, 8 * 2 * 15, SAME},
        {"elementwise elements=10", 10, 4 * 20, 0},
        {"elementwise elements=10 operation=add precision=fp16", 10, 2 * 30, 0},
        {"pool batch=2 channels=3 height=8 width=8 window=3 stride=1", 2 * 3 * 64 * 9, 4 * 768, 0},
        /* windows at columns -1 to 0, 2 to 3 and 5 to 6 read 4 columns of each of 4 rows */
        {"pool batch=1 channels=1 height=6 width=6 window=2 stride=3 padding=1", 9 * 4,
         4 * (16 + 9), 0},
        {"pool batch=1 channels=1 height=6 width=6 window=2 stride=2 padding=0 pass=backward "
         "operation=average precision=fp16",
         9 * 4, 2 * (36 + 9), 0},
        {"softmax rows=3 columns=5", 5 * 15, 4 * 30, 0},
        {"norm rows=3 columns=5", 7 * 15, 4 * 30 + 4 * 10, 0},
        {"norm rows=3 columns=5 pass=training precision=fp16", 7 * 15, 2 * 30 + 4 * (10 + 6), 0},
        {"norm rows=3 columns=5 pass=backward precision=fp64", 13 * 15, 8 * (45 + 15 + 6), 0},
        {"norm rows=3 columns=5 operation=batch", 2 * 15, 4 * (30 + 10 + 10), 0},
        {"norm rows=3 columns=5 operation=batch pass=training", 6 * 15, 4 * (30 + 10 + 10), 0},
        {"norm rows=3 columns=5 operation=batch pass=backward precision=bf16", 8 * 15,
         2 * 45 + 4 * (15 + 10), 0},
        {"softmax rows=3 columns=5 pass=backward precision=fp16", 4 * 15, 2 * 45, 0},
    };
#undef SMALL
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse_any(rows[i].text);
        struct cost cost = config_cost(&config);
        double memory = rows[i].memory == SAME ? rows[i].bytes : rows[i].memory;
        if (cost.flops != rows[i].flops || (rows[i].bytes > 0 && cost.bytes != rows[i].bytes) ||
            (memory > 0 && cost.memory != memory) || cost.memory < cost.bytes)
            fail_msg("%s: %g FLOPs, %g bytes, %g bytes of memory", rows[i].text, cost.flops,
                     cost.bytes, cost.memory);
    }
}

/* The factor equals the device's conversion of the constant. */
TEST(loop_factors_are_rounded)
{
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

/* The parts fill w without overlap. */
TEST(lstm_parts_tile_the_weights)
{
    struct config config = parse_any("lstm layers=3 directions=2 features=5 hidden=7");
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

/* ---- short names ---- */

/* A name has the label and the parameters that differ among all configurations. */
TEST(names_show_differences)
{
    static const struct {
        const char *label, *configuration, *name;
    } rows[] = {
        {"sizes", "conv2d batch=8 precision=fp32", "sizes batch=8 precision=fp32"},
        {"sizes", "conv2d batch=16 precision=fp16", "sizes batch=16 precision=fp16"},
        {"sizes", "conv2d batch=16 precision=fp16 kernel=3", "sizes batch=16 precision=fp16"},
        {"sizes", "lstm batch=8", "sizes"}, /* another workload is another group */
        {"one sizes three", "conv2d batch=8 layout=nchw", "one"},
        {"conv2d sizes", "conv2d batch=32 precision=fp32", "sizes batch=32 precision=fp32"},
        {"conv2d", "conv2d batch=64", "conv2d"},
        {"run", "program axes=\"mode=eager\" command=\"./a eager\"", "run mode=eager"},
        {"run", "program axes=\"mode=graph\" command=\"./a graph\"", "run mode=graph"},
        {"a net", "conv2d batch=1", "a b c batch=1"},
        {"a", "conv2d batch=2", "a b c batch=2"},
        {"a", "conv2d batch=3", "a e"},
        {"a", "conv2d batch=4", "a"},
    };
    enum { COUNT = sizeof rows / sizeof *rows };
    static const char *const listed[COUNT] = {
        [COUNT - 4] = "net:1 x x2; a:2 b c x1; a:3 d x1",
        [COUNT - 3] = "a:4 b c x1",
        [COUNT - 2] = "a:5 e x1",
        [COUNT - 1] = "a:6 x1",
    };
    struct naming *naming = naming_create();
    assert_non_null(naming);
    for (int i = 0; i < COUNT; ++i) {
        struct config config = parse_any(rows[i].configuration);
        assert_true(naming_add(naming, rows[i].label, listed[i], &config));
    }
    for (int i = 0; i < COUNT; ++i) {
        struct config config = parse_any(rows[i].configuration);
        char name[WORKLOAD_TEXT];
        assert_true(naming_format(naming, rows[i].label, listed[i], &config, name));
        assert_string_equal(name, rows[i].name);
    }
    naming_destroy(naming);
}

/* A text that this version cannot parse has no configuration, and so no short name. */
TEST(unknown_configurations_have_no_name)
{
    struct naming *naming = naming_create();
    struct config known = parse("conv2d batch=8"), unknown = {.workload = NULL};
    char name[WORKLOAD_TEXT] = "as it was";
    assert_true(naming_add(naming, "a", NULL, &unknown));
    assert_false(naming_format(naming, "a", NULL, &unknown, name));
    assert_false(naming_format(naming, "a", NULL, &known, name));
    assert_string_equal(name, "as it was");
    naming_destroy(naming);
    naming_destroy(NULL);
}
