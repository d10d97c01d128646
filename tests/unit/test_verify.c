/* Verification: right results pass, and computations that are worse on purpose do not. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expected.h"
#include "in_turn.h"
#include "parsed.h"
#include "model/reference.h"
#include "model/workloads/conv2d.h"
#include "model/workloads/lstm.h"
#include "model/workloads/matmul.h"
#include "worker/measure.h"
#include "worker/verify.h"

static const uint64_t seed = SEED; /* seed of all inputs */

struct computed {
    struct config config; /* its layout is the layout of the results */
    struct arithmetic how;
    bool taps_dropped; /* taps of the kernel's last column, or the last 32 products of a matmul */
    bool tile_skipped; /* every eighth tile of outputs stays 0 */
    int64_t wrong;     /* distance of elements that are off by `shift`; 0: none */
    double shift;
};

static enum status computed_run(struct device_state *state, struct work *work, int64_t samples,
                                struct error *error)
{
    return STATUS_OK;
}

static struct expected kept; /* expectations, which later rows reuse */

enum verdict { ACCURATE, INACCURATE, WRONG };

/* Verifies a row on a device that passes `state` to `read`. The caller clears the record. */
static enum verdict verify(const struct device_ops *ops, void *state, const struct config *config,
                           struct record *record)
{
    enum status status = verify_work(ops, state, NULL, config, seed, &kept, record, &failure);
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

/* ---- forward passes ---- */

static double *conv2d_results(const struct computed *computed, const double *x, double *w)
{
    const struct conv2d s = conv2d_from(&computed->config);
    double *y = zeros(conv2d_y_size(&s));
    for (int64_t i = 0; computed->taps_dropped && i < conv2d_w_size(&s) / s.kernel_width; ++i)
        w[conv2d_w_at(&s, i / s.channels / s.kernel_height, i / s.channels % s.kernel_height,
                      s.kernel_width - 1, i % s.channels)] = 0.0;
    conv2d_plain(&s, &computed->how, x, w, y);
    return y;
}

static double *matmul_results(const struct computed *computed, const double *x, const double *w)
{
    const struct matmul s = matmul_from(&computed->config);
    double *y = zeros(s.m * s.n);
    for (int64_t i = 0; i < s.m * s.n; ++i)
        for (int64_t k = 0; k < s.k - (computed->taps_dropped ? 32 : 0); ++k)
            y[i] = add_product(&computed->how, y[i], x[i / s.n * s.k + k], w[i % s.n * s.k + k]);
    return y;
}

static double *lstm_results(const struct computed *computed, const double *x, const double *w)
{
    const struct lstm s = lstm_from(&computed->config);
    double *y = zeros(lstm_y_size(&s));
    lstm_plain(&s, &computed->how, 0, 0, w, x, y);
    return y;
}

static enum status computed_read(struct device_state *state, struct work *work, enum tensor tensor,
                                 const int64_t *offsets, int64_t count, double *values,
                                 struct error *error)
{
    const struct computed *computed = (const struct computed *)state;
    const struct workload *workload = computed->config.workload;
    const int64_t most = 65536 * (workload == &matmul_workload ? 16 : 1); /* enough for all rows */
    double *x = filled(&computed->config, TENSOR_INPUT, most);
    double *w = filled(&computed->config, TENSOR_WEIGHT, most);
    /* The last branch is for conv2d_workload and its copies. */
    double *y = workload == &lstm_workload     ? lstm_results(computed, x, w)
                : workload == &matmul_workload ? matmul_results(computed, x, w)
                                               : conv2d_results(computed, x, w);
    assert_int_equal(tensor, TENSOR_OUTPUT);
    for (int64_t i = 0; i < count; ++i) {
        bool skipped = computed->tile_skipped && offsets[i] / 8 % 8 == 7;
        bool wrong = computed->wrong && offsets[i] % computed->wrong == 0;
        values[i] = skipped ? 0.0 : rounded(y[offsets[i]], computed->how.result);
        values[i] += wrong ? computed->shift : 0.0;
    }
    free(x);
    free(w);
    free(y);
    return STATUS_OK;
}

static const struct device_ops computing = {.run = computed_run, .read = computed_read};

/* Sums in fp32 (for fp64: in fp64) give right results. Sums in the inputs' format, inputs in a
 * narrower format, dropped taps, skipped tiles and NaN are wrong. Everything in between is
 * inaccurate. An image's three channels give short sums, a 3x3 kernel over 256 channels gives long
 * sums. */
TEST(wrong_results_are_found)
{
#define MATMUL "matmul m=16 n=16 k="
#define LSTM   "lstm batch=4 sequence=16 features=32 hidden=16"
    static const char *const convolutions[] = {
        "conv2d batch=1 height=20 width=20 channels=3 filters=8 kernel=7 stride=2",
        "conv2d batch=1 height=10 width=10 channels=16 filters=8 kernel=3 stride=1",
        "conv2d batch=1 height=6 width=6 channels=256 filters=8 kernel=3 stride=1",
    };
    static const struct {
        enum verdict expected;
        const char *shape; /* NULL: each convolution */
        const char *precision;
        struct computed computed;
    } rows[] = {
        {ACCURATE, NULL, "fp64", {.how = {53, 53, 53}}},
        {ACCURATE, NULL, "fp32", {.how = {24, 24, 24}}},
        {ACCURATE, NULL, "tf32", {.how = {11, 24, 24}}},
        {ACCURATE, NULL, "fp16", {.how = {11, 24, 11}}},
        {ACCURATE, NULL, "bf16", {.how = {8, 24, 8}}},
        {WRONG, NULL, "fp64", {.how = {53, 24, 53}}},
        {WRONG, NULL, "fp32", {.how = {24, 11, 24}}},
        {WRONG, NULL, "tf32", {.how = {11, 11, 24}}},
        {WRONG, NULL, "fp16", {.how = {11, 11, 11}}},
        {WRONG, NULL, "bf16", {.how = {8, 8, 8}}},
        {WRONG, NULL, "fp64", {.how = {24, 53, 53}}},
        {WRONG, NULL, "fp32", {.how = {11, 24, 24}}},
        {WRONG, NULL, "tf32", {.how = {8, 24, 24}}},
        {WRONG, NULL, "fp16", {.how = {8, 24, 11}}},
        {WRONG, NULL, "bf16", {.how = {4, 24, 8}}},
        {WRONG, NULL, "fp64", {.how = {53, 53, 53}, .taps_dropped = true}},
        {WRONG, NULL, "fp32", {.how = {24, 24, 24}, .taps_dropped = true}},
        {WRONG, NULL, "fp16", {.how = {11, 24, 11}, .taps_dropped = true}},
        {WRONG, NULL, "bf16", {.how = {8, 24, 8}, .taps_dropped = true}},
        {WRONG, NULL, "fp64", {.how = {53, 53, 53}, .tile_skipped = true}},
        {WRONG, NULL, "fp32", {.how = {24, 24, 24}, .tile_skipped = true}},
        {WRONG, NULL, "fp16", {.how = {11, 24, 11}, .tile_skipped = true}},
        {WRONG, NULL, "bf16", {.how = {8, 24, 8}, .tile_skipped = true}},
        {INACCURATE, NULL, "fp64", {.how = {53, 40, 53}}},
        {INACCURATE, NULL, "fp32", {.how = {12, 24, 24}}},
        {INACCURATE, NULL, "tf32", {.how = {11, 14, 24}}},
        {INACCURATE, NULL, "fp16", {.how = {11, 24, 9}}},
        {INACCURATE, NULL, "bf16", {.how = {6, 24, 8}}},
        {WRONG, NULL, "fp32", {.how = {24, 24, 24}, .wrong = 50, .shift = NAN}},
        {ACCURATE, MATMUL "16", "fp8", {.how = {4, 24, 11}}},
        {WRONG, MATMUL "16", "fp8", {.how = {2, 24, 11}}},
        {ACCURATE, MATMUL "128", "fp8", {.how = {4, 24, 11}}},
        {WRONG, MATMUL "128", "fp8", {.how = {2, 24, 11}}},
        {ACCURATE, MATMUL "1024", "fp8", {.how = {4, 24, 11}}},
        {WRONG, MATMUL "1024", "fp8", {.how = {2, 24, 11}}},
        {ACCURATE, MATMUL "4096", "fp8", {.how = {4, 24, 11}}},
        {WRONG, MATMUL "4096", "fp8", {.how = {2, 24, 11}}},
        {WRONG, MATMUL "1024", "fp8", {.how = {4, 24, 8}}},
        {WRONG, MATMUL "1024", "fp8", {.how = {4, 24, 11}, .taps_dropped = true}},
        /* Tensor units sum with 14 bits, which is right for short sums only. */
        {WRONG, MATMUL "4096", "fp8", {.how = {4, 11, 11}}},
        {ACCURATE, MATMUL "1024", "fp8", {.how = {4, 14, 11}}},
        {WRONG, MATMUL "65536", "fp8", {.how = {4, 14, 11}}},
        {ACCURATE, LSTM, "fp32", {.how = {24, 24, 24}}},
        {WRONG, LSTM, "fp32", {.how = {11, 24, 24}}},
        {WRONG, LSTM, "fp32", {.how = {24, 11, 24}}},
        {ACCURATE, LSTM, "fp16", {.how = {11, 24, 11}}},
        {INACCURATE, LSTM, "fp16", {.how = {11, 11, 11}}},
        {WRONG, LSTM, "fp16", {.how = {8, 24, 11}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        for (size_t j = 0; j < (rows[i].shape ? 1 : sizeof convolutions / sizeof *convolutions);
             ++j) {
            char text[WORKLOAD_TEXT];
            struct computed computed = rows[i].computed;
            snprintf(text, sizeof text, "%s precision=%s",
                     rows[i].shape ? rows[i].shape : convolutions[j], rows[i].precision);
            computed.config = parse(text);
            snprintf(text, sizeof text, "row %zu", i);
            verdict_is(rows[i].expected, computed_read, &computed, &computed.config, text);
        }
}

/* The 2-norm over hundreds of elements hides a single element that is off by a seventh. */
TEST(one_wrong_element_fails)
{
    struct computed computed = {
        .config = parse("conv2d batch=1 height=20 width=20 channels=3 filters=8 kernel=7 stride=2 "
                        "precision=bf16"),
        .how = {8, 24, 8},
        .wrong = 100000,
        .shift = 0.5};
    struct record record;
    record_init(&record);
    assert_int_equal(verify(&computing, &computed, &computed.config, &record), WRONG);
    assert_true(record.verify_error <= record.verify_tolerance);
    assert_true(record.verify_element_error > record.verify_element_tolerance);
    record_clear(&record);
}

/* ---- gradients ---- */

/* A backward pass with errors in some elements of one gate's gradient. */
struct gradient {
    struct config config;
    int64_t layer;
    enum lstm_part part;
    int64_t gate, every; /* distance of the gate's wrong elements */
    double off;          /* error relative to the gate's root mean square */
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
    const struct reference_request request = {.loop = loop_in_turn};
    const struct lstm_results results = {&g->config, seed, s.batch,         NULL, NULL,
                                         dx,         dw,   lstm_w_size(&s), NULL};
    assert_int_equal(lstm_network_compute(&request, &results, error), STATUS_OK);
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
TEST(each_gate_has_its_own_size)
{
    static const char text[] = "lstm batch=4 pass=backward precision=fp16";
    static const enum lstm_part parts[] = {LSTM_INPUT_MATRIX, LSTM_RECURRENT_MATRIX, LSTM_BIAS};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        for (int64_t gate = 0; gate < 4; ++gate) {
            struct gradient g = {.part = parts[i], .gate = gate, .every = 1, .off = 5e-4};
            gradient_is(ACCURATE, text, g);
            g.off = 1.5e-3;
            gradient_is(INACCURATE, text, g);
            g.off = 3e-3;
            gradient_is(WRONG, text, g);
            g.off = 0.2;
            g.every = INT64_MAX / 2; /* the first element alone */
            gradient_is(WRONG, text, g);
        }
    for (int64_t gate = 0; gate < 4; ++gate)
        gradient_is(ACCURATE, text, (struct gradient){.gate = gate, .every = 100, .off = 8e-3});
}

/* Gradients of the first of six layers are 1e-7, near the smallest number of fp16. */
TEST(gradients_may_vanish_in_fp16)
{
    const struct gradient lost = {.part = LSTM_RECURRENT_MATRIX, .every = 1, .off = 1.0};
    struct gradient last = lost;
    last.layer = 5;
    gradient_is(ACCURATE, "lstm layers=6 batch=4 pass=backward precision=fp16", lost);
    gradient_is(WRONG, "lstm layers=6 batch=4 pass=backward precision=fp16", last);
    gradient_is(WRONG, "lstm layers=6 batch=4 pass=backward precision=bf16", lost);
    gradient_is(WRONG, "lstm layers=6 batch=4 pass=backward precision=fp32", lost);
}

/* ---- devices with wrong or inaccurate algorithms ---- */

struct choosing {
    struct computed computed; /* first member, for computed_read */
    /* One letter for each algorithm, by speed: r(ight), i(naccurate), w(rong). A work is an index
     * into this text. */
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

/* A row measures the fastest algorithm that is not wrong. If the fastest algorithm is inaccurate,
 * the row also names the fastest accurate algorithm. */
TEST(the_fastest_that_is_not_wrong_is_measured)
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
        int measured; /* -1: the row must fail */
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
        request.config = parse("conv2d batch=1 height=10 width=10 channels=16 filters=8 "
                               "precision=fp32");
        request.seed = seed;
        request.measure.counters = COUNTERS_OFF;
        assert_ok(
            measure_begin(&ops, (struct device_state *)&choosing, &request, &kept, &row, &failure));
        const struct record *record = &row.record;
        if (rows[i].measured < 0) {
            assert_int_equal(record->status, RECORD_FAILED);
            assert_says(record->error, "wrong result: relative error");
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
TEST(one_reference_serves_hot_and_cold)
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
        struct computed computed = {.how = {53, 53, 53}};
        snprintf(text, sizeof text, "conv2d height=8 width=8 precision=fp32 %s",
                 rows[i].parameters);
        assert_ok(config_parse_as(&counted, text, &computed.config, &failure));
        record_init(&record);
        verify(&computing, &computed, &computed.config, &record);
        assert_int_equal(references, rows[i].references);
        assert_true(record.verify_elements > 0);
    }
}
