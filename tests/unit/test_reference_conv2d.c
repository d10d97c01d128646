/* Compares the reference of conv2d with sums of all products, and its gradients with central
 * differences. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "in_turn.h"
#include "expected.h"
#include "parsed.h"

static const struct arithmetic exact = {53, 53, 53};

/* x = 1 2 3 / 4 5 6 / 7 8 9, w = 1 2 / 3 4 (no flip): y = 1*1 + 2*2 + 4*3 + 5*4 = 37, ... With
 * padding 1 and stride 2 the kernel sees 0 0 / 0 1, then 0 0 / 2 3, 0 4 / 0 7 and 5 6 / 8 9. */
TEST(conv2d_by_hand)
{
    static const struct {
        const char *text;
        double y[4];
    } cases[] = {{"stride=1 padding=valid", {37, 47, 67, 77}},
                 {"stride=2 padding=1",
                  {4 * 1, 3 * 2 + 4 * 3, 2 * 4 + 4 * 7, 1 * 5 + 2 * 6 + 3 * 8 + 4 * 9}},
                 /* one row above, one column on the right */
                 {"stride=2 padding=1:0x0:1", {3 * 1 + 4 * 2, 3 * 3, 67, 1 * 6 + 3 * 9}}};
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[WORKLOAD_TEXT];
        double y[4];
        snprintf(text, sizeof text,
                 "conv2d batch=1 height=3 width=3 channels=1 filters=1 kernel=2 %s", cases[i].text);
        struct config config = parse(text);
        struct conv2d s = conv2d_from(&config);
        assert_int_equal(conv2d_y_size(&s), 4);
        conv2d_plain(&s, &exact, x, w, y);
        assert_memory_equal(y, cases[i].y, sizeof y);
    }
}

struct layer {
    struct conv2d shape;
    double *x, *w, *b, *dy, *z, *y;
};

/* Returns the sum of dy y. The tests compare its gradients. */
static double layer_loss(struct layer *l)
{
    const struct conv2d *s = &l->shape;
    double loss = 0.0;
    conv2d_plain(s, &exact, l->x, l->w, l->z);
    for (int64_t i = 0; i < conv2d_y_size(s); ++i) {
        int64_t pixels = s->out_height * s->out_width;
        int64_t k = s->layout == LAYOUT_NHWC ? i % s->filters : i / pixels % s->filters;
        double z = l->z[i] + (s->bias ? l->b[k] : 0.0);
        l->y[i] = s->activation == ACTIVATION_TANH      ? tanh(z)
                  : s->activation == ACTIVATION_SIGMOID ? sigmoid(z)
                  : s->activation == ACTIVATION_RELU    ? fmax(z, 0.0)
                                                        : z;
        loss += l->dy[i] * l->y[i];
    }
    return loss;
}

static enum status layer_read(void *context, enum tensor tensor, const int64_t *offsets,
                              int64_t count, double *values, struct error *error)
{
    const struct layer *l = context;
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i)
        values[i] = l->y[offsets[i]];
    return STATUS_OK;
}

/* Compares one result. Gradients, and updates of weights, must equal central differences. */
static void check_slice(struct layer *l, const struct slice *slice)
{
    bool bias = slice->tensor == TENSOR_BIAS || slice->tensor == TENSOR_BIAS_UPDATED;
    bool updated = slice->tensor == TENSOR_WEIGHT_UPDATED || slice->tensor == TENSOR_BIAS_UPDATED;
    double *tensor = bias ? l->b : slice->tensor == TENSOR_INPUT ? l->x : l->w;
    const double step = 1e-5;
    for (int64_t i = 0; i < slice->count; ++i) {
        if (slice->tensor == TENSOR_OUTPUT) {
            assert_true(fabs(slice->expected[i] - l->y[slice->offsets[i]]) < 1e-12);
            continue;
        }
        double *at = &tensor[slice->offsets[i]], kept = *at;
        *at = kept + step;
        double above = layer_loss(l);
        *at = kept - step;
        double gradient = (above - layer_loss(l)) / (2.0 * step);
        *at = kept;
        layer_loss(l);
        double expected = updated ? kept - gradient / 1024.0 : gradient;
        assert_true(fabs(slice->expected[i] - expected) < 1e-6);
    }
}

static void check_layer(const char *text, size_t slices)
{
    struct config config = parse(text);
    struct conv2d s = conv2d_from(&config);
    struct layer l = {
        .shape = s,
        .x = filled(&config, TENSOR_INPUT, conv2d_x_size(&s)),
        .w = filled(&config, TENSOR_WEIGHT, conv2d_w_size(&s)),
        .b = filled(&config, TENSOR_BIAS, s.filters),
        .dy = filled(&config, TENSOR_OUTPUT, conv2d_y_size(&s)),
        .z = zeros(conv2d_y_size(&s)),
        .y = zeros(conv2d_y_size(&s)),
    };
    layer_loss(&l);
    const struct reference_request request = {&config,      SEED,       INFINITY, 1,   INT64_MAX,
                                              loop_in_turn, layer_read, &l,       NULL};
    struct expectation expectation = {.count = 0};
    assert_ok(config.workload->reference(&request, &expectation, &failure));
    assert_int_equal(expectation.count, slices);
    for (size_t i = 0; i < expectation.count; ++i)
        check_slice(&l, &expectation.slices[i]);
    expectation_clear(&expectation);
    double *const all[] = {l.x, l.w, l.b, l.dy, l.z, l.y};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        free(all[i]);
}

TEST(conv2d_layers)
{
    static const char *const shapes[] = {
        "batch=2 height=5 width=4 channels=2 filters=3 kernel=3 stride=2 layout=nhwc",
        "batch=2 height=5 width=4 channels=2 filters=2 kernel=3 stride=2 layout=nchw",
        "batch=1 height=4 width=5 channels=4 filters=6 kernel=2x3 stride=1 groups=2 layout=nchw",
        "batch=1 height=6 width=7 channels=4 filters=6 kernel=2x3 stride=1 groups=2 dilation=2",
        "batch=1 height=6 width=7 channels=4 filters=6 kernel=3x2 padding=valid groups=2",
        "batch=1 height=3 width=3 channels=1 filters=1 kernel=1 stride=3 padding=2",
        "batch=1 height=5 width=7 channels=2 filters=2 kernel=2x3 stride=1x2 padding=0:2x3:1",
        "batch=1 height=7 width=6 channels=2 filters=2 stride=3x1 dilation=2x1 layout=nchw",
    };
    static const struct {
        const char *text;
        size_t slices;
    } steps[] = {
        {"pass=forward", 1},
        {"pass=backward-data", 1},
        {"pass=backward-filter", 1},
        {"pass=forward bias=yes activation=relu", 1},
        {"pass=backward", 2},
        {"pass=backward bias=yes", 3},
        {"pass=backward bias=yes activation=tanh", 4},
        {"pass=backward activation=relu", 3},
        {"pass=training", 4},
        {"pass=training bias=yes activation=sigmoid", 6},
        {"pass=training bias=yes activation=relu", 6},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (size_t j = 0; j < sizeof steps / sizeof *steps; ++j) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "conv2d precision=fp64 %s %s", shapes[i], steps[j].text);
            check_layer(text, steps[j].slices);
        }
}
