/* Recurrent layers on a scripted H200 (scripted_recurrent.h): where each weight lies, which algorithm
 * runs, from a graph too, and that all is given back whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/workloads/lstm.h"
#include "parsed.h"
#include "scripted_bench.h"
#include "scripted_recurrent.h"
#include "worker/gpu/graph.h"
#include "worker/cuda/workloads/workloads.h"

static int recurrent_set_up(void **state)
{
    static int handle;
    recurrent = (struct script_recurrent){0};
    int failed = bench_set_up(state);
    bench.gpu.cudnn = (struct cudnnContext *)&handle;
    return failed;
}

static int recurrent_tear_down(void **state)
{
    assert_int_equal(recurrent.descriptors, 0);
    return bench_tear_down(state);
}

static struct work *prepare(const char *text, struct record *record)
{
    struct config config = parse(text);
    struct work *work = NULL;
    struct error error;
    record_init(record);
    if (lstm_cudnn_prepare(&bench.gpu, &config, 1, &work, record, &error))
        fail_msg("%s: %s", text, error.text);
    return work;
}

static void finish(struct work *work, struct record *record)
{
    work->ops->release(work);
    record_clear(record);
}

/* cuDNN's pages number an LSTM's gates input, forget, new, output, a GRU's reset, update, new; the recurrent
 * ones follow. A bias is that of the input's number; but a GRU's last one is that of new's recurrent. */
static void weights_are_where_cudnn_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int input[4], recurrent[4], bias[4];
    } rows[] = {
        {"cell=lstm", {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}},
        {"cell=lstm projection=2", {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}},
        {"cell=gru", {1, 0, 2}, {4, 3, 5}, {1, 0, 2, 5}},
        {"cell=relu", {0}, {1}, {0}},
        {"cell=tanh", {0}, {1}, {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[WORKLOAD_TEXT];
        struct record record;
        snprintf(text, sizeof text,
                 "lstm batch=2 sequence=3 features=4 hidden=5 layers=3 directions=2 %s "
                 "algorithm=standard",
                 rows[i].text);
        struct config config = parse(text);
        struct lstm s = lstm_from(&config);
        struct work *work = prepare(text, &record);
        int64_t seen = 0;
        for (int64_t cell = 0; cell < s.layers * s.directions; ++cell)
            for (int part = 0; part < LSTM_PARTS; ++part) {
                int64_t layer = cell / s.directions, size = lstm_part_size(&s, layer, part);
                int64_t begin = lstm_w_at(&s, layer, cell % s.directions, part);
                int64_t pieces = part == LSTM_PROJECTION ? 1
                                 : part == LSTM_BIAS     ? s.cell->sums
                                                         : s.cell->gates;
                for (int64_t j = 0; j < size; ++j, ++seen) {
                    int piece = (int)(j / (size / pieces));
                    int number = part == LSTM_INPUT_MATRIX       ? rows[i].input[piece]
                                 : part == LSTM_RECURRENT_MATRIX ? rows[i].recurrent[piece]
                                 : part == LSTM_BIAS             ? rows[i].bias[piece]
                                                                 : 8;
                    assert_int_equal(work->ops->element(work, TENSOR_WEIGHT, begin + j),
                                     script_weights_at((int)cell, number, part == LSTM_BIAS) +
                                         j % (size / pieces));
                }
            }
        assert_int_equal(seen, lstm_w_size(&s));
        assert_int_equal(work->ops->element(work, TENSOR_OUTPUT, 7), 7);
        finish(work, &record);
    }
}

static const struct row {
    const char *text;
    cudnnRNNMode_t mode;
    cudnnRNNAlgo_t algorithm;
} rows[] = {
    {"lstm", CUDNN_LSTM, CUDNN_RNN_ALGO_PERSIST_STATIC},
    {"lstm precision=fp16 pass=backward", CUDNN_LSTM, CUDNN_RNN_ALGO_PERSIST_STATIC},
    {"lstm cell=gru", CUDNN_GRU, CUDNN_RNN_ALGO_PERSIST_STATIC},
    {"lstm cell=gru algorithm=standard pass=backward directions=2 layers=2", CUDNN_GRU,
     CUDNN_RNN_ALGO_STANDARD},
    {"lstm cell=relu algorithm=persist-dynamic", CUDNN_RNN_RELU, CUDNN_RNN_ALGO_PERSIST_DYNAMIC},
    {"lstm cell=tanh algorithm=persist-static-small-h pass=backward precision=fp16", CUDNN_RNN_TANH,
     CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H},
    {"lstm precision=fp64", CUDNN_LSTM, CUDNN_RNN_ALGO_PERSIST_STATIC},
    {"lstm projection=8", CUDNN_LSTM, CUDNN_RNN_ALGO_STANDARD},
    {"lstm projection=8 pass=backward layers=2 directions=2", CUDNN_LSTM, CUDNN_RNN_ALGO_STANDARD},
};

static void work_runs(const struct row *row, struct work *work)
{
    struct config config = parse(row->text);
    struct error error;
    int64_t samples = lstm_from(&config).batch - 1;
    assert_int_equal(work->ops->run(&bench.gpu, work, samples, &error), STATUS_OK);
    assert_int_equal(recurrent.mode, row->mode);
    assert_int_equal(recurrent.algorithm, row->algorithm);
    if (work->ops->reset)
        assert_int_equal(work->ops->reset(&bench.gpu, work, &error), STATUS_OK);
    assert_int_equal(work->ops->iterate(&bench.gpu, work, &error), STATUS_OK);
}

static void every_cell_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct record record;
        struct work *work = prepare(rows[i].text, &record);
        bool backward = strstr(rows[i].text, "backward") != NULL;
        work_runs(&rows[i], work);
        assert_true(recurrent.trained == backward && (recurrent.backward > 0) == backward);
        assert_true(record.search_candidates >= 1);
        recurrent = (struct script_recurrent){.descriptors = recurrent.descriptors};
        finish(work, &record);
    }
}

/* Where cuDNN has a persistent kernel that needs no compiling. */
static void nothing_is_compiled_that_would_lose(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int builds;
    } cases[] = {{"lstm", 0}, {"lstm algorithm=persist-dynamic", 1}, {"lstm projection=8", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        recurrent.builds = 0;
        struct work *work = prepare(cases[i].text, &record);
        assert_int_equal(recurrent.builds, cases[i].builds);
        finish(work, &record);
    }
}

static void every_cell_is_replayed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct record record;
        struct error error;
        struct work *stream = prepare(rows[i].text, &record), *work = NULL;
        if (replay_create(&bench.gpu, stream, &work, &error))
            fail_msg("%s: %s", rows[i].text, error.text);
        int runs = recurrent.forward + recurrent.backward;
        assert_int_equal(work->ops->iterate(&bench.gpu, work, &error), STATUS_OK);
        assert_int_equal(recurrent.forward + recurrent.backward, runs); /* captured before */
        finish(work, &record);
    }
}

/* What cuDNN refuses when it runs is not chosen; asked for by its name the row says so. */
static void what_is_refused_is_not_chosen(void **state)
{
    (void)state;
    struct config config = parse("lstm cell=gru algorithm=persist-static");
    struct record record;
    struct work *work = NULL;
    struct error error;
    recurrent.refused = 1u << CUDNN_RNN_ALGO_PERSIST_STATIC | 1u << CUDNN_RNN_ALGO_PERSIST_DYNAMIC |
                        1u << CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H;
    work = prepare("lstm cell=gru", &record);
    assert_true(strncmp(record.algorithm, "standard", 8) == 0);
    finish(work, &record);
    work = NULL;
    record_init(&record);
    assert_int_equal(lstm_cudnn_prepare(&bench.gpu, &config, 1, &work, &record, &error),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(error.text, "algorithm persist-static"));
    assert_null(work);
    record_clear(&record);
}

/* Kernels that are not known cannot be left out of another search. */
static void unknown_kernels_are_not_rejected(void **state)
{
    (void)state;
    struct record record;
    struct error error;
    struct work *work = prepare("lstm precision=bf16", &record);
    assert_int_equal(record.unit, UNIT_TENSOR);
    assert_int_equal(work->ops->reject(&bench.gpu, work, &record, &error), STATUS_UNSUPPORTED);
    assert_string_equal(record.refused_algorithms, "");
    finish(work, &record);
}

static void nothing_is_left_whichever_call_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        for (int call = 1;; ++call) {
            struct config config = parse(rows[i].text);
            struct work *work = NULL;
            struct record record;
            struct error error;
            record_init(&record);
            script.fail_at = script.calls + call;
            enum status status = lstm_cudnn_prepare(&bench.gpu, &config, 1, &work, &record, &error);
            bool reached = script.calls >= script.fail_at;
            script.fail_at = 0;
            record_clear(&record);
            if (status == STATUS_OK)
                work->ops->release(work);
            else
                assert_true(!work && error.text[0]);
            assert_int_equal(recurrent.descriptors, 0);
            if (!reached) {
                assert_int_equal(status, STATUS_OK);
                break;
            }
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, recurrent_set_up, recurrent_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(weights_are_where_cudnn_has_them),    TEST(every_cell_runs),
        TEST(nothing_is_compiled_that_would_lose), TEST(every_cell_is_replayed),
        TEST(what_is_refused_is_not_chosen),       TEST(nothing_is_left_whichever_call_fails),
        TEST(unknown_kernels_are_not_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
