/* Verification: right results pass, and computations that are worse on purpose do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "computed.h"
#include "parsed.h"
#include "model/reference.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/matmul.h"
#include "worker/measure.h"
#include "worker/verify.h"

/* ---- a conv2d, forward, in a way ---- */

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

static enum status verified(const char *text, const struct way *way, struct record *record)
{
    struct config config = parse(text);
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

/* The shallowest sums are those of an image's three channels, the deepest here those of a 3x3
 * kernel over 256. */
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

/* ---- a product of fp8, in a way ---- */

static enum status product_read(struct device_state *state, struct work *work, enum tensor tensor,
                                const int64_t *offsets, int64_t count, double *values,
                                struct error *error)
{
    const struct computed *computed = (const struct computed *)state;
    const struct way *way = &computed->way;
    struct matmul s = matmul_from(&computed->config);
    struct fill x = config_fill(&computed->config, seed, TENSOR_INPUT);
    struct fill w = config_fill(&computed->config, seed, TENSOR_WEIGHT);
    (void)work, (void)error;
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i) {
        double sum = 0.0;
        for (int64_t k = 0; k < s.k - (way->taps_dropped ? 32 : 0); ++k) {
            double a = fill_value(x, (uint64_t)(offsets[i] / s.n * s.k + k));
            double b = fill_value(w, (uint64_t)(offsets[i] % s.n * s.k + k));
            sum = rounded(sum + rounded(a, way->inputs) * rounded(b, way->inputs), way->sums);
        }
        values[i] = rounded(sum, way->result);
    }
    return STATUS_OK;
}

static void product_is(enum status expected, int k, struct way way)
{
    static const struct device_ops ops = {.run = computed_run, .read = product_read};
    char text[WORKLOAD_TEXT];
    struct record record;
    struct error error;
    snprintf(text, sizeof text, "matmul m=16 n=16 k=%d precision=fp8", k);
    struct computed computed = {parse(text), way};
    record_init(&record);
    if (verify_work(&ops, (struct device_state *)&computed, NULL, &computed.config, seed, &record,
                    &error) != expected)
        fail_msg("%s, inputs of %d bits, sums of %d: error %.3g of %.3g", text, way.inputs,
                 way.sums, record.verify_error, record.verify_tolerance);
    record_clear(&record);
}

/* Sums of 14 bits are those of the tensor units; only of short sums are they right. */
static void products_of_fp8_are_told_apart(void **state)
{
    (void)state;
    static const int depths[] = {16, 128, 1024, 4096};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; ++i) {
        product_is(STATUS_OK, depths[i], (struct way){4, 24, 11, false, 0, 0.0});
        product_is(STATUS_FAILED, depths[i], (struct way){2, 24, 11, false, 0, 0.0});
    }
    product_is(STATUS_FAILED, 1024, (struct way){4, 24, 8, false, 0, 0.0});
    product_is(STATUS_FAILED, 1024, (struct way){4, 24, 11, true, 0, 0.0});
    product_is(STATUS_FAILED, 4096, (struct way){4, 11, 11, false, 0, 0.0});
    product_is(STATUS_OK, 1024, (struct way){4, 14, 11, false, 0, 0.0});
    product_is(STATUS_FAILED, 65536, (struct way){4, 14, 11, false, 0, 0.0});
}

/* ---- where the result lies ---- */

/* layout = auto: the result lies in the layout that the record names. */
static void the_chosen_layout_is_compared(void **state)
{
    (void)state;
    const enum layout layouts[] = {LAYOUT_NHWC, LAYOUT_NCHW};
    const char *const words[] = {"nhwc", "nchw"};
    struct config config = parse("conv2d batch=2 height=7 width=5 channels=3 filters=4 "
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
    struct config config = parse("conv2d layout=nchw");
    struct record record;
    record_init(&record);
    record_set_config(&record, &config);
    assert_string_equal(record.layout_chosen, "nchw");
    config = parse("lstm");
    record_set_config(&record, &config);
    assert_string_equal(record.layout_chosen, "");
    record_clear(&record);
}

/* ---- a device whose fastest algorithms are wrong ---- */

struct choosing {
    struct computed computed; /* first: what computed_read takes */
    int wrong, others;        /* algorithms that are still wrong, and that there are */
};

static void algorithm_set(struct choosing *choosing, struct record *record)
{
    const struct way right = {24, 24, 24, false, 0, 0.0}, wrong = {24, 11, 24, false, 0, 0.0};
    choosing->computed.way = choosing->wrong > 0 ? wrong : right;
    snprintf(record->algorithm, sizeof record->algorithm, "%d wrong", choosing->wrong);
}

static enum status choosing_prepare(struct device_state *state, const struct config *config,
                                    uint64_t input_seed, struct work **work, struct record *record,
                                    struct error *error)
{
    struct choosing *choosing = (struct choosing *)state;
    (void)error;
    assert_int_equal(input_seed, seed);
    choosing->computed.config = *config;
    algorithm_set(choosing, record);
    *work = NULL;
    return STATUS_OK;
}

static enum status choosing_reject(struct device_state *state, struct work *work,
                                   struct record *record, struct error *error)
{
    struct choosing *choosing = (struct choosing *)state;
    (void)work;
    if (choosing->others-- == 0)
        return error_set(error, STATUS_UNSUPPORTED, "there is no other");
    --choosing->wrong;
    algorithm_set(choosing, record);
    return STATUS_OK;
}

/* Only a right algorithm is timed. */
static enum status choosing_time(struct device_state *state, struct work *work, bool cold,
                                 int samples, double *seconds, struct record *record,
                                 struct error *error)
{
    (void)work, (void)cold, (void)record, (void)error;
    assert_true(((struct choosing *)state)->wrong <= 0);
    for (int i = 0; i < samples; ++i)
        seconds[i] = 1e-5;
    return STATUS_OK;
}

static enum status choosing_trace(struct device_state *state, struct work *work, bool cold,
                                  struct record *record, struct error *error)
{
    (void)state, (void)work, (void)cold, (void)record, (void)error;
    return STATUS_OK;
}

static void choosing_release(struct device_state *state, struct work *work)
{
    (void)state, (void)work;
}

static const struct device_ops choosing_ops = {
    .prepare = choosing_prepare,
    .run = computed_run,
    .read = computed_read,
    .time = choosing_time,
    .trace = choosing_trace,
    .reject = choosing_reject,
    .release = choosing_release,
};

static struct record measured(int wrong, int others)
{
    struct choosing choosing = {.wrong = wrong, .others = others};
    struct request request = request_default(REQUEST_MEASURE);
    struct measured row;
    struct error error;
    request.config = parse("conv2d batch=1 height=10 width=10 channels=16 filters=8 "
                           "precision=fp32");
    request.seed = seed;
    request.measure.counters = COUNTERS_OFF;
    assert_int_equal(
        measure_begin(&choosing_ops, (struct device_state *)&choosing, &request, &row, &error),
        STATUS_OK);
    return row.record;
}

static void another_algorithm_is_measured(void **state)
{
    (void)state;
    struct record record = measured(2, 5);
    assert_int_equal(record.status, RECORD_MEASURED);
    assert_string_equal(record.algorithm, "0 wrong");
    assert_true(record.verify_error <= record.verify_tolerance && record.time_median > 0.0);
    record_clear(&record);
}

static void without_another_the_row_fails(void **state)
{
    (void)state;
    struct record record = measured(2, 1);
    assert_int_equal(record.status, RECORD_FAILED);
    assert_non_null(strstr(record.error, "wrong result"));
    assert_true(record.verify_error > record.verify_tolerance && isnan(record.time_median));
    record_clear(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_algorithm_is_measured),
        cmocka_unit_test(without_another_the_row_fails),
        cmocka_unit_test(sums_of_fp32_pass),
        cmocka_unit_test(sums_of_the_inputs_format_fail),
        cmocka_unit_test(narrower_inputs_fail),
        cmocka_unit_test(dropped_taps_fail),
        cmocka_unit_test(one_wrong_element_fails),
        cmocka_unit_test(nothing_passes_for_a_number),
        cmocka_unit_test(products_of_fp8_are_told_apart),
        cmocka_unit_test(the_chosen_layout_is_compared),
        cmocka_unit_test(a_named_layout_is_the_row_s_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
