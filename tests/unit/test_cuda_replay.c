/* The CUDA worker's rows: graphs, their times and their replay, on a scripted H200 (scripted_cuda.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "scripted_bench.h"
#include "timed_work.h"
#include "worker/gpu/graph.h"

/* Within a graph gaps are smaller; what is prepared between iterations, or cold, has no such time. */
static void a_graph_has_a_time_of_its_own(void **state)
{
    (void)state;
    static const struct work_ops reset_ops = {.iterate = empty_iterate, .reset = nothing_reset};
    struct work work = {.ops = &empty_ops, .pace = {.iteration_time = 15e-6}};
    struct work prepared = {.ops = &reset_ops};
    double seconds;
    struct error error;
    assert_int_equal(graph_time(&bench.gpu, &work, false, &seconds, &error), STATUS_OK);
    assert_near(seconds, script.node_time);
    assert_int_equal(graph_time(&bench.gpu, &work, true, &seconds, &error), STATUS_OK);
    assert_true(isnan(seconds));
    assert_int_equal(graph_time(&bench.gpu, &prepared, false, &seconds, &error), STATUS_OK);
    assert_true(isnan(seconds));
}

static void static_release(struct work *work)
{
    work->launch_count = 0; /* it is the test's own */
}

static enum status refused_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)gpu, (void)work;
    return error_set(error, STATUS_FAILED, "it waits for the device");
}

static struct work *replayed(struct work *stream)
{
    struct work *work = NULL;
    struct error error;
    if (replay_create(&bench.gpu, stream, &work, &error))
        fail_msg("%s", error.text);
    assert_ptr_equal(work->stream, stream);
    return work;
}

/* Whatever stands between iterations is launched in the stream, and is in no sample. */
static void a_replay_has_the_pace_of_its_graph(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    static const struct work_ops kinds[] = {
        {.iterate = empty_iterate, .release = static_release},
        {.iterate = empty_iterate, .reset = nothing_reset, .release = static_release},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct work stream = {.ops = &kinds[i], .precision = PRECISION_FP16};
        struct work *work = replayed(&stream);
        double seconds[SAMPLES];
        script.node_time = 7e-6;
        script.empty_time = 15e-6;
        assert_int_equal(work->precision, PRECISION_FP16);
        assert_int_equal(work->ops->reset != NULL, kinds[i].reset != NULL);
        assert_true(!work->ops->element && !work->ops->reject);
        struct record record = timed(work, SAMPLES, seconds);
        double timer = kinds[i].reset ? record.timer_overhead : 0.0;
        assert_all_near(seconds, SAMPLES, script.node_time + timer);
        record_clear(&record);
        work->ops->release(work);
    }
}

static void what_cannot_be_captured_is_said(void **state)
{
    (void)state;
    static const struct work_ops ops = {.iterate = refused_iterate, .release = static_release};
    struct work stream = {.ops = &ops}, *work = NULL;
    struct error error;
    assert_int_equal(replay_create(&bench.gpu, &stream, &work, &error), STATUS_UNSUPPORTED);
    assert_null(work);
    assert_string_equal(error.text, "it cannot be captured in a graph: it waits for the device");
}

/* Whichever call fails, nothing is left, and the work in the stream stays the caller's. */
static void a_replay_that_fails_leaves_nothing(void **state)
{
    (void)state;
    static const struct work_ops ops = {.iterate = empty_iterate, .release = static_release};
    enum status status = STATUS_FAILED;
    for (int call = 1; status; ++call) {
        struct work stream = {.ops = &ops}, *work = NULL;
        struct error error;
        script.fail_at = script.calls + call;
        status = replay_create(&bench.gpu, &stream, &work, &error);
        script.fail_at = 0;
        if (status)
            assert_null(work);
        else
            work->ops->release(work);
        assert_true(call < 20);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_graph_has_a_time_of_its_own),
        TEST(a_replay_has_the_pace_of_its_graph),
        TEST(what_cannot_be_captured_is_said),
        TEST(a_replay_that_fails_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
