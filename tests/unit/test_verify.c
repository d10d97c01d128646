/* Verification: right results pass, and computations that are worse on purpose do not. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "in_turn.h"
#include "parsed.h"
#include "model/reference.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/lstm.h"
#include "model/workloads/matmul.h"
#include "worker/measure.h"
#include "worker/verify.h"

static const uint64_t seed = 7; /* of all inputs */

/* Arithmetic of a computation: significands in bits; 53: no rounding. */
struct arithmetic {
    int inputs, sums, result;
    bool taps_dropped; /* taps of the kernel's last column */
    bool tile_skipped; /* every eighth tile of outputs stays 0 */
    int64_t wrong;     /* distance of elements that are off by `shift`; 0: none */
    double shift;
};

struct computed {
    struct config config; /* with the layout in memory */
    struct arithmetic how;
};

/* Rounds to the nearest value of `significand` bits, with an unlimited exponent. */
static double rounded(double value, int significand)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    return ldexp(rint(ldexp(mantissa, significand)), exponent - significand);
}

/* Does nothing; `read` computes. */
static enum status computed_run(struct device_state *state, struct work *work, int64_t samples,
                                struct error *error)
{
    return STATUS_OK;
}

static struct expected kept; /* for later rows */

enum verdict { ACCURATE, INACCURATE, WRONG };

/* `state` is the argument of `read`. The caller clears the record. */
static enum verdict verify(const struct device_ops *ops, void *state, const struct config *config,
                           struct record *record)
{
    struct error error;
    enum status status = verify_work(ops, state, NULL, config, seed, &kept, record, &error);
    return status ? WRONG : record->accuracy[0] ? INACCURATE : ACCURATE;
}

typedef enum status read_function(struct device_state *state, struct work *work, enum tensor tensor,
                                  const int64_t *offsets, int64_t count, double *values,
                                  struct error *error);

static void verdict_is(enum verdict expected, read_function *read, void *state,
                       const struct config *config, const char *what)
{
    const struct device_ops ops = {.run = computed_run, .read = read};
    char text[WORKLOAD_TEXT];
    struct record record;
    record_init(&record);
    record_set_config(&record, config);
    config_format(config, text);
    if (verify(&ops, state, config, &record) != expected)
        fail_msg("%s, %s: error %.3g of %.3g, of an element %.3g of %.3g", text, what,
                 record.verify_error, record.verify_tolerance, record.verify_element_error,
                 record.verify_element_tolerance);
    record_clear(&record);
}

/* Adds a product to a sum. */
static double add_product(const struct arithmetic *how, double sum, double a, double b)
{
    return rounded(sum + rounded(a, how->inputs) * rounded(b, how->inputs), how->sums);
}

/* ---- conv2d, forward ---- */

static double computed_output(const struct computed *computed, int64_t offset)
{
    struct conv2d s = conv2d_from(&computed->config);
    const struct arithmetic *how = &computed->how;
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
        for (int64_t q = 0; q < s.kernel_width - how->taps_dropped; ++q)
            for (int64_t c = 0; c < s.channels; ++c) {
                int64_t h = row + r, v = column + q;
                if (h < 0 || h >= s.height || v < 0 || v >= s.width)
                    continue;
                double a = fill_value(x, (uint64_t)conv2d_x_at(&s, image, h, v, c));
                double b = fill_value(w, (uint64_t)conv2d_w_at(&s, filter, r, q, c));
                sum = add_product(how, sum, a, b);
            }
    double shift = how->wrong && offset % how->wrong == 0 ? how->shift : 0.0;
    if (how->tile_skipped && offset / 8 % 8 == 7)
        return 0.0;
    return rounded(sum, how->result) + shift;
}

static enum status computed_read(struct device_state *state, struct work *work, enum tensor tensor,
                                 const int64_t *offsets, int64_t count, double *values,
                                 struct error *error)
{
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i)
        values[i] = computed_output((const struct computed *)state, offsets[i]);
    return STATUS_OK;
}

static const struct device_ops computing = {.run = computed_run, .read = computed_read};

/* Sums in fp32 are right (in fp64 for fp64). Sums in the inputs' format, inputs in a narrower
 * format, dropped taps, skipped tiles and NaN are wrong. Everything in between is inaccurate. Sums
 * are shallow for an image's three channels, and deep for a 3x3 kernel over 256. */
static void wrong_convolutions_are_found(void **state)
{
    static const char *const shapes[] = {
        "height=20 width=20 channels=3 filters=8 kernel=7 stride=2",
        "height=10 width=10 channels=16 filters=8 kernel=3 stride=1",
        "height=6 width=6 channels=256 filters=8 kernel=3 stride=1",
    };
    static const struct {
        enum verdict expected;
        const char *precision;
        struct arithmetic how;
    } rows[] = {
        {ACCURATE, "fp64", {53, 53, 53, false, false, 0, 0.0}},
        {ACCURATE, "fp32", {24, 24, 24, false, false, 0, 0.0}},
        {ACCURATE, "tf32", {11, 24, 24, false, false, 0, 0.0}},
        {ACCURATE, "fp16", {11, 24, 11, false, false, 0, 0.0}},
        {ACCURATE, "bf16", {8, 24, 8, false, false, 0, 0.0}},
        {WRONG, "fp64", {53, 24, 53, false, false, 0, 0.0}},
        {WRONG, "fp32", {24, 11, 24, false, false, 0, 0.0}},
        {WRONG, "tf32", {11, 11, 24, false, false, 0, 0.0}},
        {WRONG, "fp16", {11, 11, 11, false, false, 0, 0.0}},
        {WRONG, "bf16", {8, 8, 8, false, false, 0, 0.0}},
        {WRONG, "fp64", {24, 53, 53, false, false, 0, 0.0}},
        {WRONG, "fp32", {11, 24, 24, false, false, 0, 0.0}},
        {WRONG, "tf32", {8, 24, 24, false, false, 0, 0.0}},
        {WRONG, "fp16", {8, 24, 11, false, false, 0, 0.0}},
        {WRONG, "bf16", {4, 24, 8, false, false, 0, 0.0}},
        {WRONG, "fp64", {53, 53, 53, true, false, 0, 0.0}},
        {WRONG, "fp32", {24, 24, 24, true, false, 0, 0.0}},
        {WRONG, "fp16", {11, 24, 11, true, false, 0, 0.0}},
        {WRONG, "bf16", {8, 24, 8, true, false, 0, 0.0}},
        {WRONG, "fp64", {53, 53, 53, false, true, 0, 0.0}},
        {WRONG, "fp32", {24, 24, 24, false, true, 0, 0.0}},
        {WRONG, "fp16", {11, 24, 11, false, true, 0, 0.0}},
        {WRONG, "bf16", {8, 24, 8, false, true, 0, 0.0}},
        {INACCURATE, "fp64", {53, 40, 53, false, false, 0, 0.0}},
        {INACCURATE, "fp32", {12, 24, 24, false, false, 0, 0.0}},
        {INACCURATE, "tf32", {11, 14, 24, false, false, 0, 0.0}},
        {INACCURATE, "fp16", {11, 24, 9, false, false, 0, 0.0}},
        {INACCURATE, "bf16", {6, 24, 8, false, false, 0, 0.0}},
        {WRONG, "fp32", {24, 24, 24, false, false, 50, NAN}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; ++j) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "conv2d batch=1 %s precision=%s", shapes[j],
                     rows[i].precision);
            struct computed computed = {parse(text), rows[i].how};
            snprintf(text, sizeof text, "row %zu", i);
            verdict_is(rows[i].expected, computed_read, &computed, &computed.config, text);
        }
}

/* The 2-norm over hundreds of elements hides a single element that is off by a seventh. */
static void one_wrong_element_fails(void **state)
{
    struct computed computed = {
        parse("conv2d batch=1 height=20 width=20 channels=3 filters=8 kernel=7 stride=2 "
              "precision=bf16"),
        {8, 24, 8, false, false, 100000, 0.5}};
    struct record record;
    record_init(&record);
    assert_int_equal(verify(&computing, &computed, &computed.config, &record), WRONG);
    assert_true(record.verify_error <= record.verify_tolerance);
    assert_true(record.verify_element_error > record.verify_element_tolerance);
    record_clear(&record);
}

/* ---- products in fp8 ---- */

static enum status product_read(struct device_state *state, struct work *work, enum tensor tensor,
                                const int64_t *offsets, int64_t count, double *values,
                                struct error *error)
{
    const struct computed *computed = (const struct computed *)state;
    const struct arithmetic *how = &computed->how;
    struct matmul s = matmul_from(&computed->config);
    struct fill x = config_fill(&computed->config, seed, TENSOR_INPUT);
    struct fill w = config_fill(&computed->config, seed, TENSOR_WEIGHT);
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i) {
        double sum = 0.0;
        for (int64_t k = 0; k < s.k - (how->taps_dropped ? 32 : 0); ++k) {
            double a = fill_value(x, (uint64_t)(offsets[i] / s.n * s.k + k));
            double b = fill_value(w, (uint64_t)(offsets[i] % s.n * s.k + k));
            sum = add_product(how, sum, a, b);
        }
        values[i] = rounded(sum, how->result);
    }
    return STATUS_OK;
}

static void product_is(enum verdict expected, int k, struct arithmetic how)
{
    char text[WORKLOAD_TEXT], what[64];
    snprintf(text, sizeof text, "matmul m=16 n=16 k=%d precision=fp8", k);
    snprintf(what, sizeof what, "inputs of %d bits, sums of %d", how.inputs, how.sums);
    struct computed computed = {parse(text), how};
    verdict_is(expected, product_read, &computed, &computed.config, what);
}

/* Tensor units sum with 14 bits, which is right for short sums only. */
static void wrong_products_in_fp8_are_found(void **state)
{
    static const int depths[] = {16, 128, 1024, 4096};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; ++i) {
        product_is(ACCURATE, depths[i], (struct arithmetic){4, 24, 11, false, false, 0, 0.0});
        product_is(WRONG, depths[i], (struct arithmetic){2, 24, 11, false, false, 0, 0.0});
    }
    product_is(WRONG, 1024, (struct arithmetic){4, 24, 8, false, false, 0, 0.0});
    product_is(WRONG, 1024, (struct arithmetic){4, 24, 11, true, false, 0, 0.0});
    product_is(WRONG, 4096, (struct arithmetic){4, 11, 11, false, false, 0, 0.0});
    product_is(ACCURATE, 1024, (struct arithmetic){4, 14, 11, false, false, 0, 0.0});
    product_is(WRONG, 65536, (struct arithmetic){4, 14, 11, false, false, 0, 0.0});
}

/* ---- LSTM ---- */

enum { LSTM_OUTPUTS_MAX = 4096, LSTM_HIDDEN_MAX = 64, GATES = 4 };

struct computed_lstm {
    struct config config;
    struct arithmetic how;
    double y[LSTM_OUTPUTS_MAX];
};

static double sigmoid(double value)
{
    return 1.0 / (1.0 + exp(-value));
}

/* Returns one gate's sum over the input and the last state. */
static double gate_sum(const struct computed_lstm *l, const struct lstm *s, int64_t gate,
                       int64_t unit, int64_t row, const double *state)
{
    const struct arithmetic *how = &l->how;
    struct fill x = config_fill(&l->config, seed, TENSOR_INPUT);
    struct fill w = config_fill(&l->config, seed, TENSOR_WEIGHT);
    int64_t line = gate * s->hidden + unit;
    int64_t input = lstm_w_at(s, 0, 0, LSTM_INPUT_MATRIX) + line * s->features;
    int64_t recurrent = lstm_w_at(s, 0, 0, LSTM_RECURRENT_MATRIX) + line * s->hidden;
    double sum = fill_value(w, (uint64_t)(lstm_w_at(s, 0, 0, LSTM_BIAS) + line));
    for (int64_t i = 0; i < s->features; ++i)
        sum = add_product(how, sum, fill_value(x, (uint64_t)(row * s->features + i)),
                          fill_value(w, (uint64_t)(input + i)));
    for (int64_t i = 0; i < s->hidden; ++i)
        sum = add_product(how, sum, state[i], fill_value(w, (uint64_t)(recurrent + i)));
    return sum;
}

static void lstm_compute(struct computed_lstm *l)
{
    const struct lstm s = lstm_from(&l->config);
    const int bits = l->how.result;
    for (int64_t n = 0; n < s.batch; ++n) {
        double cell[LSTM_HIDDEN_MAX] = {0}, state[LSTM_HIDDEN_MAX] = {0};
        for (int64_t t = 0; t < s.sequence; ++t) {
            int64_t row = t * s.batch + n;
            double next[LSTM_HIDDEN_MAX] = {0};
            for (int64_t i = 0; i < s.hidden; ++i) {
                double gates[GATES];
                for (int64_t gate = 0; gate < GATES; ++gate)
                    gates[gate] = gate_sum(l, &s, gate, i, row, state);
                cell[i] =
                    rounded(sigmoid(gates[1]) * cell[i] + sigmoid(gates[0]) * tanh(gates[2]), bits);
                next[i] = rounded(sigmoid(gates[3]) * tanh(cell[i]), bits);
            }
            memcpy(state, next, sizeof next);
            for (int64_t i = 0; i < s.hidden; ++i)
                l->y[row * s.hidden + i] = state[i];
        }
    }
}

static enum status lstm_read(struct device_state *state, struct work *work, enum tensor tensor,
                             const int64_t *offsets, int64_t count, double *values,
                             struct error *error)
{
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i)
        values[i] = ((const struct computed_lstm *)state)->y[offsets[i]];
    return STATUS_OK;
}

static void lstm_is(enum verdict expected, const char *precision, struct arithmetic how)
{
    static struct computed_lstm l;
    char text[WORKLOAD_TEXT], what[64];
    snprintf(text, sizeof text, "lstm batch=4 sequence=16 features=32 hidden=16 precision=%s",
             precision);
    snprintf(what, sizeof what, "inputs of %d bits, sums of %d", how.inputs, how.sums);
    l = (struct computed_lstm){.config = parse(text), .how = how};
    lstm_compute(&l);
    verdict_is(expected, lstm_read, &l, &l.config, what);
}

static void wrong_lstms_are_found(void **state)
{
    lstm_is(ACCURATE, "fp32", (struct arithmetic){24, 24, 24, false, false, 0, 0.0});
    lstm_is(WRONG, "fp32", (struct arithmetic){11, 24, 24, false, false, 0, 0.0});
    lstm_is(WRONG, "fp32", (struct arithmetic){24, 11, 24, false, false, 0, 0.0});
    lstm_is(ACCURATE, "fp16", (struct arithmetic){11, 24, 11, false, false, 0, 0.0});
    lstm_is(INACCURATE, "fp16", (struct arithmetic){11, 11, 11, false, false, 0, 0.0});
    lstm_is(WRONG, "fp16", (struct arithmetic){8, 24, 11, false, false, 0, 0.0});
}

/* A backward pass with errors in some elements of one gate's gradient. */
struct gradient {
    struct config config;
    int64_t layer;
    enum lstm_part part;
    int64_t gate, every; /* distance of the gate's wrong elements */
    double off;          /* error over the gate's root mean square */
};

static enum status gradient_read(struct device_state *state, struct work *work, enum tensor tensor,
                                 const int64_t *offsets, int64_t count, double *values,
                                 struct error *error)
{
    const struct gradient *g = (const struct gradient *)state;
    const struct lstm s = lstm_from(&g->config);
    const int64_t size = lstm_part_size(&s, g->layer, g->part) / s.cell->gates;
    const int64_t begin = lstm_w_at(&s, g->layer, 0, g->part) + g->gate * size;
    double *dx = test_calloc((size_t)lstm_x_size(&s), sizeof *dx), squares = 0.0;
    double *dw = test_calloc((size_t)lstm_w_size(&s), sizeof *dw);
    const struct reference_request request = {
        .config = &g->config, .seed = seed, .loop = loop_in_turn};
    assert_int_equal(lstm_network_compute(&request, s.batch, NULL, NULL, dx, dw, error), STATUS_OK);
    for (int64_t i = begin; i < begin + size; ++i)
        squares += dw[i] * dw[i];
    for (int64_t i = begin; i < begin + size; i += g->every)
        dw[i] += g->off * sqrt(squares / (double)size);
    for (int64_t i = 0; i < count; ++i)
        values[i] = tensor == TENSOR_WEIGHT ? dw[offsets[i]] : dx[offsets[i]];
    test_free(dx);
    test_free(dw);
    return STATUS_OK;
}

static void gradient_is(enum verdict expected, const char *text, struct gradient g)
{
    char what[64];
    g.config = parse(text);
    snprintf(what, sizeof what, "part %d, gate %d", (int)g.part, (int)g.gate);
    verdict_is(expected, gradient_read, &g, &g.config, what);
}

/* The gradients of gates, matrices and bias differ by a factor of up to two hundred. */
static void each_gate_has_its_own_size(void **state)
{
    static const char text[] = "lstm batch=4 pass=backward precision=fp16";
    static const enum lstm_part parts[] = {LSTM_INPUT_MATRIX, LSTM_RECURRENT_MATRIX, LSTM_BIAS};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        for (int64_t gate = 0; gate < GATES; ++gate) {
            struct gradient g = {.part = parts[i], .gate = gate, .every = 1, .off = 5e-4};
            gradient_is(ACCURATE, text, g);
            g.off = 1.5e-3;
            gradient_is(INACCURATE, text, g);
            g.off = 3e-3;
            gradient_is(WRONG, text, g);
            g.off = 0.2;
            g.every = LSTM_OUTPUTS_MAX; /* the first element alone */
            gradient_is(WRONG, text, g);
        }
    for (int64_t gate = 0; gate < GATES; ++gate)
        gradient_is(ACCURATE, text, (struct gradient){.gate = gate, .every = 100, .off = 8e-3});
}

/* Gradients of the first of six layers are 1e-7, less than fp16 can represent. */
static void gradients_may_vanish_in_fp16(void **state)
{
    const struct gradient lost = {.part = LSTM_RECURRENT_MATRIX, .every = 1, .off = 1.0};
    struct gradient last = lost;
    last.layer = 5;
    gradient_is(ACCURATE, "lstm layers=6 batch=4 pass=backward precision=fp16", lost);
    gradient_is(WRONG, "lstm layers=6 batch=4 pass=backward precision=fp16", last);
    gradient_is(WRONG, "lstm layers=6 batch=4 pass=backward precision=bf16", lost);
    gradient_is(WRONG, "lstm layers=6 batch=4 pass=backward precision=fp32", lost);
}

/* ---- layout of the result ---- */

/* With layout = auto the record names the layout of the result. */
static void the_chosen_layout_is_compared(void **state)
{
#define CONV2D "conv2d batch=2 height=7 width=5 channels=3 filters=4 precision=fp32 layout="
    const char *const words[] = {"nhwc", "nchw"};
    const char *const texts[] = {CONV2D "nhwc", CONV2D "nchw"};
    struct config config = parse(CONV2D "auto");
    for (int lies = 0; lies < 2; ++lies)
        for (int named = 0; named < 2; ++named) {
            struct computed computed = {parse(texts[lies]), {24, 24, 24, false, false, 0, 0.0}};
            struct record record;
            record_init(&record);
            record_set_config(&record, &config);
            assert_string_equal(record.layout_chosen, "");
            strcpy(record.layout_chosen, words[named]);
            assert_int_equal(verify(&computing, &computed, &config, &record),
                             lies == named ? ACCURATE : WRONG);
            record_clear(&record);
        }
}

static void a_named_layout_is_the_row_s_own(void **state)
{
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

/* ---- devices with wrong or inaccurate algorithms ---- */

struct choosing {
    struct computed computed; /* first member, for computed_read */
    /* One letter for each algorithm, the fastest first: right, inaccurate, wrong. A work is an
     * index. */
    const char *algorithms;
    int timed;
    bool has_room;
};

static void algorithm_describe(int algorithm, struct record *record)
{
    snprintf(record->algorithm, sizeof record->algorithm, "%d", algorithm);
    strcpy(record->algorithm_id, record->algorithm);
    strcpy(record->algorithm_launches, record->algorithm);
    strcpy(record->algorithm_origin, algorithm_searched);
    record->search_time = 1e-5 * (1 + algorithm);
}

static enum status choosing_prepare(struct device_state *state, const struct config *config,
                                    uint64_t input_seed, struct work **work, struct record *record,
                                    struct error *error)
{
    struct choosing *choosing = (struct choosing *)state;
    int *algorithm = test_malloc(sizeof *algorithm);
    assert_int_equal(input_seed, seed);
    choosing->computed.config = *config;
    *algorithm = record->offer ? atoi(record->offer->algorithm) : 0;
    algorithm_describe(*algorithm, record);
    *work = (struct work *)algorithm;
    return STATUS_OK;
}

static enum status choosing_read(struct device_state *state, struct work *work, enum tensor tensor,
                                 const int64_t *offsets, int64_t count, double *values,
                                 struct error *error)
{
    struct choosing *choosing = (struct choosing *)state;
    const char quality = choosing->algorithms[*(int *)work];
    choosing->computed.how = (struct arithmetic){
        .inputs = quality == 'i' ? 12 : 24, .sums = quality == 'w' ? 11 : 24, .result = 24};
    return computed_read(state, work, tensor, offsets, count, values, error);
}

static bool choosing_has_room(struct device_state *state, const struct config *config)
{
    return ((struct choosing *)state)->has_room;
}

static enum status choosing_reject(struct device_state *state, struct work *work,
                                   struct record *record, struct error *error)
{
    if (!((struct choosing *)state)->algorithms[*(int *)work + 1])
        return error_set(error, STATUS_UNSUPPORTED, "there is no other");
    algorithm_describe(++*(int *)work, record);
    return STATUS_OK;
}

static enum status choosing_time(struct device_state *state, struct work *work, bool cold,
                                 int samples, double *seconds, struct record *record,
                                 struct error *error)
{
    ((struct choosing *)state)->timed = *(int *)work;
    for (int i = 0; i < samples; ++i)
        seconds[i] = 1e-5;
    return STATUS_OK;
}

static enum status choosing_trace(struct device_state *state, struct work *work, bool cold,
                                  struct record *record, struct error *error)
{
    return STATUS_OK;
}

static void choosing_release(struct device_state *state, struct work *work)
{
    if (work)
        test_free(work);
}

/* A row measures the fastest algorithm that is not wrong. If that one is inaccurate, the row also
 * names the fastest accurate one. */
static void the_fastest_that_is_not_wrong_is_measured(void **state)
{
    static const struct device_ops ops = {
        .prepare = choosing_prepare,
        .has_room = choosing_has_room,
        .run = computed_run,
        .read = choosing_read,
        .time = choosing_time,
        .trace = choosing_trace,
        .reject = choosing_reject,
        .release = choosing_release,
    };
    static const struct {
        const char *algorithms;
        int measured; /* -1: the row fails */
        const char *accuracy;
        bool no_room;
    } rows[] = {
        {"rw", 0, NULL, false},
        {"wwr", 2, NULL, false},
        {"ww", -1, NULL, false},
        {"iwir", 0, "; the fastest accurate algorithm is 3, at 4 times the time", false},
        {"wir", 1, "; the fastest accurate algorithm is 2, at 1.5 times the time", false},
        {"iw", 0, "; no accurate algorithm was found", false},
        {"ir", 0, "; no accurate algorithm was found: no room", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct choosing choosing = {.algorithms = rows[i].algorithms, .has_room = !rows[i].no_room};
        struct request request = request_default(REQUEST_MEASURE);
        struct measured row;
        struct error error;
        request.config = parse("conv2d batch=1 height=10 width=10 channels=16 filters=8 "
                               "precision=fp32");
        request.seed = seed;
        request.measure.counters = COUNTERS_OFF;
        assert_int_equal(
            measure_begin(&ops, (struct device_state *)&choosing, &request, &kept, &row, &error),
            STATUS_OK);
        const struct record *record = &row.record;
        if (rows[i].measured < 0) {
            assert_int_equal(record->status, RECORD_FAILED);
            assert_non_null(strstr(record->error, "wrong result: relative error"));
            assert_true(record->verify_error > record->verify_tolerance);
            assert_true(isnan(record->time_median));
        } else {
            assert_int_equal(record->status, RECORD_MEASURED);
            assert_true(record->verify_error <= record->verify_tolerance);
            assert_int_equal(atoi(record->algorithm), rows[i].measured);
            assert_int_equal(choosing.timed, rows[i].measured);
        }
        if (!rows[i].accuracy)
            assert_string_equal(record->accuracy, "");
        else if (!strstr(record->accuracy, rows[i].accuracy) ||
                 !strstr(record->accuracy, "one rounding to fp32 makes 2.6e-08"))
            fail_msg("row %zu: %s", i, record->accuracy);
        record_clear(&row.record);
    }
}

static int references; /* number of computed references */

static enum status counted_reference(const struct reference_request *request,
                                     struct expectation *expectation, struct error *error)
{
    ++references;
    return conv2d_workload.reference(request, expectation, error);
}

/* References depend on shape and seed, not on the cache. */
static void one_reference_serves_hot_and_cold(void **state)
{
    static const struct {
        const char *parameters;
        int references;
    } rows[] = {{"batch=1", 1}, {"batch=1", 1}, {"batch=1 cache=cold", 1}, {"batch=2", 2}};
    struct workload counted = conv2d_workload;
    char text[128];
    counted.reference = counted_reference;
    expected_clear(&kept);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct record record;
        struct error error;
        struct computed computed = {.how = {0}};
        snprintf(text, sizeof text, "conv2d height=8 width=8 precision=fp32 %s",
                 rows[i].parameters);
        assert_int_equal(config_parse_as(&counted, text, &computed.config, &error), STATUS_OK);
        record_init(&record);
        verify(&computing, &computed, &computed.config, &record);
        assert_int_equal(references, rows[i].references);
        assert_true(record.verify_elements > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_that_is_not_wrong_is_measured),
        cmocka_unit_test(one_reference_serves_hot_and_cold),
        cmocka_unit_test(wrong_convolutions_are_found),
        cmocka_unit_test(one_wrong_element_fails),
        cmocka_unit_test(wrong_products_in_fp8_are_found),
        cmocka_unit_test(wrong_lstms_are_found),
        cmocka_unit_test(each_gate_has_its_own_size),
        cmocka_unit_test(gradients_may_vanish_in_fp16),
        cmocka_unit_test(the_chosen_layout_is_compared),
        cmocka_unit_test(a_named_layout_is_the_row_s_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
