/* The persistent LSTM on a scripted H200 (scripted_cuda.h): a launch for each layer, each on what the one
 * before has left, what is refused with which reason, and that all is given back whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "kernels/kernels.h"
#include "parsed.h"
#include "scripted_bench.h"
#include "scripted_machine.h"
#include "worker/cuda/workloads/workloads.h"

enum { LAYERS = 4 };

/* What stands in for the kernel: the launches since the last preparation. */
static struct launched {
    int64_t width;
    const void *x, *w;
    void *y;
} launched[LAYERS];
static int launches;

static void within(const void *memory, int64_t elements, enum precision precision)
{
    assert_int_equal((uintptr_t)memory % 8, 0);
    script_within(memory, (size_t)elements * precision_info[precision].bytes, script.own);
}

cudaError_t kernel_lstm(const struct lstm *s, int64_t width, void *y, const void *x, const void *w,
                        cudaStream_t stream)
{
    int64_t cell = 4 * s->hidden * (width + s->hidden + 1);
    assert_true(s->hidden <= KERNEL_LSTM_CLUSTER && launches < LAYERS && y != x);
    within(x, s->sequence * s->batch * width, s->precision);
    within(y, lstm_y_size(s), s->precision);
    within(w, s->directions * cell, s->precision);
    launched[launches++] = (struct launched){width, x, w, y};
    return script_enqueue(1e-5, stream);
}

static struct work *prepared(const char *text, struct record *record)
{
    struct config config = parse(text);
    struct work *work = NULL;
    struct error error;
    record_init(record);
    if (lstm_persistent_prepare(&bench.gpu, &config, 1, &work, record, &error))
        fail_msg("%s: %s", text, error.text);
    launches = 0;
    return work;
}

static void run(struct work *work)
{
    struct error error;
    launches = 0;
    if (work->ops->run(&bench.gpu, work, 0, &error))
        fail_msg("%s", error.text);
}

static void one_layer_is_one_launch(void **state)
{
    struct record record;
    struct work *work = prepared("lstm precision=fp16 sequence=128", &record);
    (void)state;
    run(work);
    assert_int_equal(launches, 1);
    assert_int_equal(launched[0].width, 32);
    assert_ptr_equal(launched[0].y, work->ops->result(work, TENSOR_OUTPUT));
    assert_string_equal(record.algorithm, "persistent");
    assert_string_equal(record.math, "tensor-op");
    assert_int_equal(record.unit, UNIT_TENSOR);
    assert_true(record.workspace == 0.0);
    work->ops->release(work);
    record_clear(&record);
}

static void a_layer_reads_what_the_one_below_wrote(void **state)
{
    struct record record;
    struct work *work = prepared("lstm precision=bf16 layers=4 directions=2 hidden=20", &record);
    (void)state;
    run(work);
    assert_int_equal(launches, LAYERS);
    for (int i = 1; i < LAYERS; ++i) {
        assert_int_equal(launched[i].width, 40);
        assert_ptr_equal(launched[i].x, launched[i - 1].y);
        assert_true((const char *)launched[i].w > (const char *)launched[i - 1].w);
    }
    assert_ptr_equal(launched[LAYERS - 1].y, work->ops->result(work, TENSOR_OUTPUT));
    assert_true(record.workspace == 2.0 * 16 * 16 * 40 * 2);
    work->ops->release(work);
    record_clear(&record);
}

static void nothing_stays_after_a_failure(void **state)
{
    struct config config = parse("lstm precision=fp16 layers=3");
    struct error error;
    (void)state;
    for (int call = 1;; ++call) {
        struct work *work = NULL;
        struct record record;
        record_init(&record);
        script.fail_at = script.calls + call;
        enum status status =
            lstm_persistent_prepare(&bench.gpu, &config, 1, &work, &record, &error);
        script.fail_at = 0;
        record_clear(&record);
        if (status == STATUS_OK) {
            work->ops->release(work);
            assert_true(call > 5);
            return;
        }
        assert_null(work);
        assert_true(error.text[0]);
    }
}

static void refused(const char *text, const char *reason)
{
    struct config config = parse(text);
    struct work *work = NULL;
    struct record record;
    struct error error;
    record_init(&record);
    assert_int_equal(lstm_persistent_prepare(&bench.gpu, &config, 1, &work, &record, &error),
                     STATUS_UNSUPPORTED);
    if (!strstr(error.text, reason))
        fail_msg("%s: '%s' does not tell '%s'", text, error.text, reason);
    assert_int_equal(script.allocations, 0);
    record_clear(&record);
}

static void what_it_cannot_do_is_refused(void **state)
{
    (void)state;
    refused("lstm precision=fp16 pass=backward", "forward pass only");
    refused("lstm precision=fp32", "not in fp32");
    refused("lstm precision=tf32", "not in tf32");
    refused("lstm precision=fp16 algorithm=standard", "standard is cuDNN's");
    refused("lstm precision=fp16 cell=gru", "the LSTM's cell");
    refused("lstm precision=fp16 projection=8", "without a projection");
    refused("lstm precision=fp16 hidden=260", "at most 256 hidden");
    refused("lstm precision=fp16 hidden=18", "multiples");
    refused("lstm precision=fp16 features=33", "multiples");
    bench.gpu.capability = 80;
    refused("lstm precision=fp16 hidden=68", "at most 64 hidden");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_layer_is_one_launch),
        TEST(a_layer_reads_what_the_one_below_wrote),
        TEST(nothing_stays_after_a_failure),
        TEST(what_it_cannot_do_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
