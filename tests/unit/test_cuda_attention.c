/* Attention on a scripted GPU: cuDNN's graph is computed element by element and compared with the
 * reference; the three steps are those that they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/record.h"
#include "model/reference.h"
#include "model/workloads/attention.h"
#include "scripted_backend.h"
#include "scripted_bench.h"
#include "worker/cuda/workloads/workloads.h"
#include "worker/cuda/workloads/attention_graph.h"

enum { SEED = 1 };

static struct config config;

static struct config parse(const char *text)
{
    struct config parsed;
    struct error error;
    if (config_parse(text, &parsed, &error))
        fail_msg("%s", error.text);
    return parsed;
}

static double input(int64_t uid, int64_t at)
{
    const enum tensor tensor = uid == ATTENTION_Q   ? TENSOR_INPUT
                               : uid == ATTENTION_K ? TENSOR_WEIGHT
                                                    : TENSOR_VALUE;
    return fill_value(config_fill(&config, SEED, tensor), (uint64_t)at);
}

/* Of what ran last, every element. */
static void check_output(const char *text)
{
    const struct reference_request request = {.config = &config,
                                              .seed = SEED,
                                              .products = INFINITY,
                                              .least = 1,
                                              .most = INT64_MAX,
                                              .loop = reference_in_turn};
    struct expectation expectation = {.count = 0};
    struct error error;
    assert_int_equal(config.workload->reference(&request, &expectation, &error), STATUS_OK);
    const struct slice *o = &expectation.slices[0];
    for (int64_t i = 0; i < o->count; ++i)
        if (!(fabs(scripted_backend.output[o->offsets[i]] - o->expected[i]) < 1e-6))
            fail_msg("%s: element %d is %g, not %g", text, (int)i, scripted_backend.output[i],
                     o->expected[i]);
    expectation_clear(&expectation);
}

static void the_graph_is_attention(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int operations;
    } cases[] = {
        {"attention batch=2 heads=3 sequence=5 keys=7 head_size=8 precision=fp16", 10},
        {"attention batch=1 heads=2 sequence=6 keys=6 head_size=16 precision=bf16 causal=yes", 14},
        {"attention batch=1 heads=1 sequence=3 keys=9 head_size=8 precision=bf16 causal=yes", 14},
        {"attention batch=1 heads=1 sequence=9 keys=3 head_size=8 precision=bf16 causal=yes", 14},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct work *work = NULL;
        struct record record;
        struct error error;
        scripted_backend =
            (struct scripted_backend){.engines = 2, .workspace = 4096, .value = input};
        config = parse(cases[i].text);
        record_init(&record);
        if (attention_cudnn_prepare(&bench.gpu, &config, SEED, &work, &record, &error))
            fail_msg("%s", error.text);
        assert_int_equal(strncmp(record.algorithm, "engine-", 7), 0);
        assert_int_equal(record.unit, UNIT_TENSOR);
        assert_true(record.workspace == 4096.0);
        assert_int_equal(work->ops->run(&bench.gpu, work, 0, &error), STATUS_OK);
        assert_int_equal(scripted_backend.operations, cases[i].operations);
        check_output(cases[i].text);
        work->ops->release(work);
        assert_int_equal(scripted_backend.alive, 0);
        record_clear(&record);
    }
}

static void three_steps(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "attention batch=2 heads=4 sequence=64 keys=128 head_size=32 precision=fp16 causal=yes",
        "attention batch=1 heads=1 sequence=8 keys=16 head_size=32 precision=tf32",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct work *work = NULL;
        struct record record;
        struct error error;
        config = parse(texts[i]);
        record_init(&record);
        if (attention_plain_prepare(&bench.gpu, &config, SEED, &work, &record, &error))
            fail_msg("%s", error.text);
        assert_string_equal(record.algorithm, "three-steps algo-0 algo-0");
        script.products = script.softmaxes = 0;
        script.alpha = (double)(float)(1.0 / sqrt(32.0));
        assert_int_equal(work->ops->run(&bench.gpu, work, 0, &error), STATUS_OK);
        assert_int_equal(script.products, 2);
        assert_int_equal(script.softmaxes, 1);
        work->ops->release(work);
        record_clear(&record);
    }
}

static void what_cannot_be_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
        int capability, engines;
    } cases[] = {
        {"attention precision=fp32", "in fp32 use implementation=plain", 90, 1},
        {"attention precision=fp16", "needs compute capability 8.0; this GPU has 7.5", 75, 1},
        {"attention precision=fp16 head_size=12", "a multiple of 8", 90, 1},
        {"attention precision=fp16 sequence=8 keys=8", "know no engine", 90, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct work *work = NULL;
        struct record record;
        struct error error;
        int capability = bench.gpu.capability;
        scripted_backend = (struct scripted_backend){.engines = cases[i].engines};
        config = parse(cases[i].text);
        record_init(&record);
        bench.gpu.capability = cases[i].capability;
        assert_int_equal(attention_cudnn_prepare(&bench.gpu, &config, SEED, &work, &record, &error),
                         STATUS_UNSUPPORTED);
        bench.gpu.capability = capability;
        if (!strstr(error.text, cases[i].reason))
            fail_msg("'%s' does not say '%s'", error.text, cases[i].reason);
        assert_int_equal(scripted_backend.alive, 0);
        record_clear(&record);
    }
}

/* Wherever a call of the library fails. */
static void failures_leave_nothing(void **state)
{
    (void)state;
    config = parse("attention batch=1 heads=1 sequence=4 keys=4 head_size=8 precision=fp16");
    for (int call = 1; call < 300; ++call) {
        struct work *work = NULL;
        struct record record;
        struct error error;
        scripted_backend = (struct scripted_backend){.engines = 2, .fail_at = call};
        record_init(&record);
        if (attention_cudnn_prepare(&bench.gpu, &config, SEED, &work, &record, &error) == STATUS_OK)
            work->ops->release(work);
        assert_int_equal(scripted_backend.alive, 0);
        record_clear(&record);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_graph_is_attention),
        TEST(three_steps),
        TEST(what_cannot_be_is_said),
        TEST(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
