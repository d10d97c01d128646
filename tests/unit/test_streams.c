/* Workloads that stream: their texts, costs and references, against numbers worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/reference.h"
#include "model/workloads/elementwise.h"

static const uint64_t seed = 7;

static struct config parse(const char *text)
{
    struct config config;
    struct error error;
    if (config_parse(text, &config, &error) || config_check(&config, &error))
        fail_msg("%s: %s", text, error.text);
    return config;
}

static double *filled(const struct config *config, enum tensor tensor, int64_t count)
{
    struct fill fill = config_fill(config, seed, tensor);
    double *data = malloc((size_t)count * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < count; ++i)
        data[i] = fill_value(fill, (uint64_t)i);
    return data;
}

/* All elements of all results; to be cleared. */
static struct expectation expect(const struct config *config)
{
    const struct reference_request request = {
        config, seed, INFINITY, 1, INT64_MAX, reference_in_turn, NULL, NULL};
    struct expectation expectation = {.count = 0};
    struct error error;
    if (config->workload->reference(&request, &expectation, &error))
        fail_msg("%s", error.text);
    return expectation;
}

/* The slice of a tensor has all its elements, in turn, and these values. */
static void check_slice(const struct slice *slice, enum tensor tensor, const double *expected,
                        int64_t count)
{
    assert_int_equal(slice->tensor, tensor);
    assert_int_equal(slice->count, count);
    for (int64_t i = 0; i < count; ++i) {
        assert_int_equal(slice->offsets[i], i);
        if (!(fabs(slice->expected[i] - expected[i]) <= 1e-12 * fmax(1.0, fabs(expected[i]))))
            fail_msg("element %lld of tensor %d: %.17g, not %.17g", (long long)i, (int)tensor,
                     slice->expected[i], expected[i]);
    }
}

static void texts_are_stable(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "elementwise cache=hot elements=16777216 implementation=auto operation=relu precision=fp32",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        char text[WORKLOAD_TEXT];
        struct config config = parse(texts[i]);
        struct config defaults = config_default(config.workload);
        config_format(&defaults, text);
        assert_string_equal(text, texts[i]);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"elementwise precision=tf32", "tf32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config;
        struct error error;
        assert_int_equal(config_parse(rows[i].text, &config, &error), STATUS_OK);
        assert_int_equal(config_check(&config, &error), STATUS_UNSUPPORTED);
        if (!strstr(error.text, rows[i].reason))
            fail_msg("%s: '%s' does not tell '%s'", rows[i].text, error.text, rows[i].reason);
    }
}

static void costs(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double flops, bytes;
    } rows[] = {
        {"elementwise elements=10", 10, 4 * 20},
        {"elementwise elements=10 operation=add precision=fp16", 10, 2 * 30},
        {"elementwise elements=10 operation=scale precision=fp64", 10, 8 * 20},
        {"elementwise elements=10 operation=tanh precision=bf16", 10, 2 * 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse(rows[i].text);
        struct cost cost = config_cost(&config);
        if (cost.flops != rows[i].flops || cost.bytes != rows[i].bytes)
            fail_msg("%s: %g FLOPs, %g bytes", rows[i].text, cost.flops, cost.bytes);
        assert_true(cost.memory >= cost.bytes);
    }
}

/* FLOP/byte in fp16 of Table 1 in NVIDIA's "GPU Performance Background User's Guide". */
static void the_guide_s_table(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double least, most;
    } rows[] = {
        {"elementwise operation=relu precision=fp16", 0.25, 0.25},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct config config = parse(rows[i].text);
        struct cost cost = config_cost(&config);
        double intensity = cost.flops / cost.bytes;
        if (!(intensity >= rows[i].least && intensity <= rows[i].most))
            fail_msg("%s: %g FLOP/byte", rows[i].text, intensity);
    }
}

static void elementwise_by_hand(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    static const char *const words[ELEMENTWISE_OPERATIONS] = {"relu", "sigmoid", "tanh", "add",
                                                              "scale"};
    for (int operation = 0; operation < ELEMENTWISE_OPERATIONS; ++operation) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "elementwise elements=%d operation=%s", COUNT,
                 words[operation]);
        struct config config = parse(text);
        double *x = filled(&config, TENSOR_INPUT, COUNT),
               *w = filled(&config, TENSOR_WEIGHT, COUNT);
        double y[COUNT];
        for (int i = 0; i < COUNT; ++i) {
            double e = exp(x[i]);
            const double values[ELEMENTWISE_OPERATIONS] = {x[i] > 0.0 ? x[i] : 0.0, e / (1.0 + e),
                                                           (e * e - 1.0) / (e * e + 1.0),
                                                           x[i] + w[i], -3.0 / 4.0 * x[i]};
            y[i] = values[operation];
        }
        struct expectation expectation = expect(&config);
        assert_int_equal(expectation.count, 1);
        check_slice(&expectation.slices[0], TENSOR_OUTPUT, y, COUNT);
        expectation_clear(&expectation);
        free(x);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_stable),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(costs),
        cmocka_unit_test(the_guide_s_table),
        cmocka_unit_test(elementwise_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
