/* References of matmul, linear, attention and the loops, against values by hand. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expected.h"
#include "model/workloads/loop.h"
#include "model/workloads/matmul.h"
#include "parsed.h"

TEST(matmul_by_hand)
{
    struct config config = parse("matmul m=2 n=3 k=4 precision=fp64");
    double *x = filled(&config, TENSOR_INPUT, 2 * 4), *w = filled(&config, TENSOR_WEIGHT, 4 * 3);
    double *y = expect_all(&config, TENSOR_OUTPUT, 2 * 3);
    for (int64_t i = 0; i < 2 * 3; ++i) {
        const double *row = x + i / 3 * 4, *column = w + i % 3;
        double sum =
            row[0] * column[0] + row[1] * column[3] + row[2] * column[6] + row[3] * column[9];
        assert_true(fabs(y[i] - sum) < 1e-15);
    }
    free(y);
    free(x);
    free(w);
}

/* In fp8 the second matrix is stored by columns. All inputs are exact in e4m3. */
TEST(matmul_of_fp8_by_hand)
{
    struct config config = parse("matmul m=2 n=16 k=16 precision=fp8");
    double *x = filled(&config, TENSOR_INPUT, 2 * 16), *w = filled(&config, TENSOR_WEIGHT, 16 * 16);
    double *y = expect_all(&config, TENSOR_OUTPUT, 2 * 16);
    for (int64_t i = 0; i < 2 * 16; ++i) {
        double sum = 0.0;
        for (int64_t k = 0; k < 16; ++k)
            sum += x[i / 16 * 16 + k] * w[i % 16 * 16 + k];
        assert_true(fabs(y[i] - sum) < 1e-15);
        assert_true(x[i] * 8.0 == round(x[i] * 8.0) && fabs(x[i]) <= 1.0);
    }
    free(y);
    free(x);
    free(w);
}

TEST(weights_of_fp8_are_exact)
{
    for (int64_t inputs = 16; inputs <= 1048576; inputs *= 4) {
        char text[80];
        snprintf(text, sizeof text, "linear precision=fp8 inputs=%lld", (long long)inputs);
        struct config config = parse(text);
        struct fill fill = config_fill(&config, 1, TENSOR_WEIGHT);
        assert_true(fill.unit >= ldexp(1.0, -9));
    }
}

static void check_linear(const char *text, enum tensor tensor, int64_t count,
                         const double *expected)
{
    struct config config = parse(text);
    double *values = expect_all(&config, tensor, count);
    for (int64_t i = 0; i < count; ++i)
        assert_true(fabs(values[i] - expected[i]) < 1e-14);
    free(values);
}

TEST(linear_by_hand)
{
#define LAYER "linear batch=2 inputs=2 outputs=1 precision=fp64"
    struct config config = parse(LAYER);
    double *x = filled(&config, TENSOR_INPUT, 4), *w = filled(&config, TENSOR_WEIGHT, 2);
    double *b = filled(&config, TENSOR_BIAS, 1), *dy = filled(&config, TENSOR_OUTPUT, 2);
    double y[2], relu[2], gelu[2], dx[4], dw[2], db = dy[0] + dy[1];
    for (int i = 0; i < 2; ++i) {
        y[i] = x[2 * i] * w[0] + x[2 * i + 1] * w[1] + b[0];
        relu[i] = fmax(y[i], 0);
        gelu[i] = y[i] / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (y[i] + 0.044715 * pow(y[i], 3))));
        dx[2 * i] = dy[i] * w[0];
        dx[2 * i + 1] = dy[i] * w[1];
        dw[i] = dy[0] * x[i] + dy[1] * x[2 + i];
    }
    check_linear(LAYER, TENSOR_OUTPUT, 2, y);
    check_linear(LAYER " activation=relu", TENSOR_OUTPUT, 2, relu);
    check_linear(LAYER " activation=gelu", TENSOR_OUTPUT, 2, gelu);
    check_linear(LAYER " pass=backward-data", TENSOR_INPUT, 4, dx);
    check_linear(LAYER " pass=backward-weights", TENSOR_WEIGHT, 2, dw);
    check_linear(LAYER " pass=backward-weights", TENSOR_BIAS, 1, &db);
#undef LAYER
    free(x);
    free(w);
    free(b);
    free(dy);
}

/* Computes the softmax by its definition, for small scores. Each query sees two keys; with a mask
 * the first query sees one. */
TEST(attention_by_hand)
{
#define ATTENTION "attention batch=1 heads=1 sequence=2 keys=2 head_size=1 precision=fp64"
    struct config config = parse(ATTENTION), causal = parse(ATTENTION " causal=yes");
#undef ATTENTION
    double *q = filled(&config, TENSOR_INPUT, 2), *k = filled(&config, TENSOR_WEIGHT, 2);
    double *v = filled(&config, TENSOR_VALUE, 2);
    double *o = expect_all(&config, TENSOR_OUTPUT, 2);
    double *masked = expect_all(&causal, TENSOR_OUTPUT, 2);
    for (int i = 0; i < 2; ++i) {
        double first = exp(q[i] * k[0]), second = exp(q[i] * k[1]);
        assert_true(fabs(o[i] - (first * v[0] + second * v[1]) / (first + second)) < 1e-14);
    }
    assert_true(fabs(masked[0] - v[0]) < 1e-14 && fabs(masked[1] - o[1]) < 1e-14);
    free(q);
    free(k);
    free(v);
    free(o);
    free(masked);
}

/* Computes all values of a tile step by step, by the definition. */
static void check_loop(const char *text)
{
    struct config config = parse(text);
    struct loop s = loop_from(&config);
    int64_t size = s.tiles * s.tile;
    double *x = filled(&config, TENSOR_INPUT, size), *v = filled(&config, TENSOR_INPUT, size);
    double *next = zeros(size);
    for (int64_t step = 0; step < s.steps; ++step) {
        for (int64_t i = 0; i < size; ++i) {
            int64_t first = i / s.tile * s.tile, neighbour = first + (i - first + 1) % s.tile;
            next[i] = loop_factor(s.precision, step) * v[neighbour] + x[i];
        }
        memcpy(v, next, (size_t)size * sizeof *v);
    }
    double *y = expect_all(&config, TENSOR_OUTPUT, size);
    for (int64_t i = 0; i < size; ++i)
        assert_true(fabs(y[i] - v[i]) < 1e-14);
    free(x);
    free(y);
    free(v);
    free(next);
}

TEST(loops_as_defined)
{
    check_loop("compute-loop elements=3 steps=1 precision=fp64");
    check_loop("compute-loop elements=5 steps=100 precision=bf16");
    check_loop("shared-loop tiles=3 tile=1 steps=4");
    check_loop("shared-loop tiles=2 tile=5 steps=3 precision=fp64");
    check_loop("shared-loop tiles=3 tile=4 steps=4");
    check_loop("shared-loop tiles=2 tile=7 steps=50");
}

TEST(cost_counts_products)
{
    const char *shape =
        "batch=2 height=8 width=8 channels=6 filters=4 kernel=3x5 stride=1 groups=2";
    static const struct {
        const char *pass;
        double products;
    } cases[] = {{"forward", 15 * 3}, {"backward-data", 15 * 2}, {"backward-filter", 2 * 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "conv2d %s pass=%s", shape, cases[i].pass);
        struct config config = parse(text);
        struct expectation seven = expect(&config, 7.5 * cases[i].products);
        assert_int_equal(seven.slices[0].count, 7);
        expectation_clear(&seven);
    }
}

/* The compared elements include both ends, and are spread evenly. */
TEST(places_are_spread)
{
    struct config config = parse("matmul m=100 n=100 k=2");
    struct expectation expectation = expect(&config, 2.0 * 50);
    const struct slice *slice = &expectation.slices[0];
    assert_int_equal(slice->count, 50);
    assert_int_equal(slice->offsets[0], 0);
    assert_int_equal(slice->offsets[49], 100 * 100 - 1);
    for (int64_t i = 0; i < 50; ++i)
        assert_int_equal(slice->offsets[i] / 200, i);
    expectation_clear(&expectation);
}
