/* One configuration's text, hash, shapes, validity and modelled cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"

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

static void parameters_are_sorted(void **state)
{
    (void)state;
    for (size_t w = 0; workloads[w]; ++w)
        for (size_t i = 1; i < workloads[w]->count; ++i)
            assert_true(
                strcmp(workloads[w]->parameters[i - 1].name, workloads[w]->parameters[i].name) < 0);
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
        "pool2d batch=1",      "conv2d batch",        "conv2d batch=0",
        "conv2d fliters=3",    "conv2d kernel=3x",    "conv2d kernel=x3",
        "conv2d kernel=0",     "conv2d padding=full", "conv2d precision=fp31",
        "conv2d batch=1e3",    "lstm directions=3",   "",
        "conv2d kernel=3x5x7", "conv2d batch=16abc",  "lstm pass=backward-data",
        "matmul k=0",          "matmul batch=1",      "shared-loop tile=2049",
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

static void costs_of_products_and_loops(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double flops, bytes;
    } rows[] = {
        {"matmul m=2 n=3 k=5", 2 * 2 * 3 * 5, 4 * (2 * 5 + 5 * 3 + 2 * 3)},
        {"matmul m=4 n=1 k=1 precision=fp64 implementation=plain", 8, 8 * (4 + 1 + 4)},
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
        cmocka_unit_test(canonical_text_is_stable),
        cmocka_unit_test(parameters_are_sorted),
        cmocka_unit_test(text_round_trips),
        cmocka_unit_test(wrong_text_is_refused),
        cmocka_unit_test(shapes),
        cmocka_unit_test(impossible_configurations),
        cmocka_unit_test(costs),
        cmocka_unit_test(costs_of_products_and_loops),
        cmocka_unit_test(loop_factors_are_rounded),
        cmocka_unit_test(lstm_parts_tile_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
