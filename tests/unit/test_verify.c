/* Verification: right results pass, and computations that are worse on purpose do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/reference.h"
#include "model/workloads/conv2d.h"
#include "worker/verify.h"

static const uint64_t seed = 7;

/* To the nearest value of `significand` bits; the exponent has no end. */
static double rounded(double value, int significand)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    return ldexp(rint(ldexp(mantissa, significand)), exponent - significand);
}

/* How something is computed: significands in bits, 53 for no rounding. */
struct way {
    int inputs, sums, result;
    bool taps_dropped; /* those in the kernel's last column */
    int64_t wrong;     /* every such element is off by `shift`; 0: none */
    double shift;
};

/* ---- a conv2d, forward, in a way ---- */

struct computed {
    struct config config; /* layout as it lies */
    struct way way;
};

static double conv2d_output(const struct computed *computed, int64_t offset)
{
    struct conv2d s = conv2d_from(&computed->config);
    const struct way *way = &computed->way;
    struct fill x = config_fill(&computed->config, seed, TENSOR_INPUT);
    struct fill w = config_fill(&computed->config, seed, TENSOR_WEIGHT);
    int64_t plane = s.out_height * s.out_width, image = offset / (plane * s.filters);
    int64_t rest = offset % (plane * s.filters);
    bool nhwc = s.layout == LAYOUT_NHWC;
    int64_t filter = nhwc ? rest % s.filters : rest / plane;
    int64_t pixel = nhwc ? rest / s.filters : rest % plane;
    int64_t row = pixel / s.out_width * s.stride - s.pad_height;
    int64_t column = pixel % s.out_width * s.stride - s.pad_width;
    double sum = 0.0;
    for (int64_t r = 0; r < s.kernel_height; ++r)
        for (int64_t q = 0; q < s.kernel_width - way->taps_dropped; ++q)
            for (int64_t c = 0; c < s.channels; ++c) {
                int64_t h = row + r, v = column + q;
                if (h < 0 || h >= s.height || v < 0 || v >= s.width)
                    continue;
                double a = fill_value(x, (uint64_t)conv2d_x_at(&s, image, h, v, c));
                double b = fill_value(w, (uint64_t)conv2d_w_at(&s, filter, r, q, c));
                sum = rounded(sum + rounded(a, way->inputs) * rounded(b, way->inputs), way->sums);
            }
    double shift = way->wrong && offset % way->wrong == 0 ? way->shift : 0.0;
    return rounded(sum, way->result) + shift;
}

static enum status computed_run(struct device_state *state, struct work *work, int64_t samples,
                                struct error *error)
{
    (void)state, (void)work, (void)samples, (void)error;
    return STATUS_OK;
}

static enum status computed_read(struct device_state *state, struct work *work, enum tensor tensor,
                                 const int64_t *offsets, int64_t count, double *values,
                                 struct error *error)
{
    (void)work, (void)error;
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i)
        values[i] = conv2d_output((const struct computed *)state, offsets[i]);
    return STATUS_OK;
}

static const struct device_ops computing = {.run = computed_run, .read = computed_read};

static struct config config_of(const char *text)
{
    struct config config;
    struct error error;
    if (config_parse(text, &config, &error))
        fail_msg("%s: %s", text, error.text);
    return config;
}

static enum status verified(const char *text, const struct way *way, struct record *record)
{
    struct config config = config_of(text);
    struct computed computed = {config, *way};
    struct error error;
    record_init(record);
    record_set_config(record, &config);
    return verify_work(&computing, (struct device_state *)&computed, NULL, &config, seed, record,
                       &error);
}

static void is(enum status expected, const char *text, const struct way *way)
{
    struct record record;
    enum status status = verified(text, way, &record);
    if (status != expected)
        fail_msg("%s, inputs of %d bits, sums of %d, result of %d: error %.3g of %.3g, of an "
                 "element %.3g of %.3g",
                 text, way->inputs, way->sums, way->result, record.verify_error,
                 record.verify_tolerance, record.verify_element_error,
                 record.verify_element_tolerance);
    record_clear(&record);
}

/* The shallowest sums are those of an image's three channels, the deepest here those of a 3x3 kernel
 * over 256. */
static const char *const shapes[] = {
    "conv2d batch=1 height=20 width=20 channels=3 filters=8 kernel=7 stride=2 precision=",
    "conv2d batch=1 height=10 width=10 channels=16 filters=8 kernel=3 stride=1 precision=",
    "conv2d batch=1 height=6 width=6 channels=256 filters=8 kernel=3 stride=1 precision=",
};

static void each_shape_is(enum status expected, const char *precision, struct way way)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "%s%s", shapes[i], precision);
        is(expected, text, &way);
    }
}

static void sums_of_fp32_pass(void **state)
{
    (void)state;
    each_shape_is(STATUS_OK, "fp64", (struct way){53, 53, 53, false, 0, 0.0});
    each_shape_is(STATUS_OK, "fp32", (struct way){24, 24, 24, false, 0, 0.0});
    each_shape_is(STATUS_OK, "tf32", (struct way){11, 24, 24, false, 0, 0.0});
    each_shape_is(STATUS_OK, "fp16", (struct way){11, 24, 11, false, 0, 0.0});
    each_shape_is(STATUS_OK, "bf16", (struct way){8, 24, 8, false, 0, 0.0});
}

static void sums_of_the_inputs_format_fail(void **state)
{
    (void)state;
    each_shape_is(STATUS_FAILED, "fp64", (struct way){53, 24, 53, false, 0, 0.0});
    each_shape_is(STATUS_FAILED, "fp32", (struct way){24, 11, 24, false, 0, 0.0});
    each_shape_is(STATUS_FAILED, "tf32", (struct way){11, 11, 24, false, 0, 0.0});
    each_shape_is(STATUS_FAILED, "fp16", (struct way){11, 11, 11, false, 0, 0.0});
    each_shape_is(STATUS_FAILED, "bf16", (struct way){8, 8, 8, false, 0, 0.0});
}

static void narrower_inputs_fail(void **state)
{
    (void)state;
    each_shape_is(STATUS_FAILED, "fp64", (struct way){24, 53, 53, false, 0, 0.0});
    each_shape_is(STATUS_FAILED, "fp32", (struct way){11, 24, 24, false, 0, 0.0});
    each_shape_is(STATUS_FAILED, "tf32", (struct way){8, 24, 24, false, 0, 0.0});
    each_shape_is(STATUS_FAILED, "fp16", (struct way){8, 24, 11, false, 0, 0.0});
    each_shape_is(STATUS_FAILED, "bf16", (struct way){6, 24, 8, false, 0, 0.0});
}

static void dropped_taps_fail(void **state)
{
    (void)state;
    each_shape_is(STATUS_FAILED, "fp64", (struct way){53, 53, 53, true, 0, 0.0});
    each_shape_is(STATUS_FAILED, "fp32", (struct way){24, 24, 24, true, 0, 0.0});
    each_shape_is(STATUS_FAILED, "fp16", (struct way){11, 24, 11, true, 0, 0.0});
    each_shape_is(STATUS_FAILED, "bf16", (struct way){8, 24, 8, true, 0, 0.0});
}

/* Among hundreds of elements one that is off by a tenth does not show in the 2-norm's tolerance of
 * bf16. */
static void one_wrong_element_fails(void **state)
{
    (void)state;
    const char *text = "conv2d batch=1 height=20 width=20 channels=3 filters=8 kernel=7 stride=2 "
                       "precision=bf16";
    struct way way = {8, 24, 8, false, 100000, 0.2};
    struct record record;
    assert_int_equal(verified(text, &way, &record), STATUS_FAILED);
    assert_true(record.verify_error <= record.verify_tolerance);
    assert_true(record.verify_element_error > record.verify_element_tolerance);
    record_clear(&record);
}

static void nothing_passes_for_a_number(void **state)
{
    (void)state;
    each_shape_is(STATUS_FAILED, "fp32", (struct way){24, 24, 24, false, 50, NAN});
}

/* ---- where the result lies ---- */

/* layout = auto: the result lies in the layout that the record names. */
static void the_chosen_layout_is_compared(void **state)
{
    (void)state;
    const enum layout layouts[] = {LAYOUT_NHWC, LAYOUT_NCHW};
    const char *const words[] = {"nhwc", "nchw"};
    struct config config = config_of("conv2d batch=2 height=7 width=5 channels=3 filters=4 "
                                     "layout=auto precision=fp32");
    for (int lies = 0; lies < 2; ++lies)
        for (int told = 0; told < 2; ++told) {
            struct computed computed = {conv2d_with_layout(&config, layouts[lies]),
                                        {24, 24, 24, false, 0, 0.0}};
            struct record record;
            struct error error;
            record_init(&record);
            record_set_config(&record, &config);
            assert_string_equal(record.layout_chosen, "");
            strcpy(record.layout_chosen, words[told]);
            assert_int_equal(verify_work(&computing, (struct device_state *)&computed, NULL,
                                         &config, seed, &record, &error),
                             lies == told ? STATUS_OK : STATUS_FAILED);
            record_clear(&record);
        }
}

static void a_named_layout_is_the_row_s_own(void **state)
{
    (void)state;
    struct config config = config_of("conv2d layout=nchw");
    struct record record;
    record_init(&record);
    record_set_config(&record, &config);
    assert_string_equal(record.layout_chosen, "nchw");
    config = config_of("lstm");
    record_set_config(&record, &config);
    assert_string_equal(record.layout_chosen, "");
    record_clear(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_fp32_pass),
        cmocka_unit_test(sums_of_the_inputs_format_fail),
        cmocka_unit_test(narrower_inputs_fail),
        cmocka_unit_test(dropped_taps_fail),
        cmocka_unit_test(one_wrong_element_fails),
        cmocka_unit_test(nothing_passes_for_a_number),
        cmocka_unit_test(the_chosen_layout_is_compared),
        cmocka_unit_test(a_named_layout_is_the_row_s_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
