/* Silent ranks, and a sweep with a time limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ranks/resume.h"
#include "dispatcher_bench.h"

static const char four[] = "[conv2d grid]\nbatch = 1, 2, 4, 8\n";

enum { ROOFS_TIMEOUT = 100, WORK_TIMEOUT = 50, STOP_TIMEOUT = 10 };

/* With a dispatcher that does not wait for ever. */
static void bench_start_with_timeouts(struct bench *bench, int ranks, const char *manifest)
{
    const struct dispatcher_settings settings = {
        .roofs_timeout = ROOFS_TIMEOUT, .work_timeout = WORK_TIMEOUT, .stop_timeout = STOP_TIMEOUT};
    bench_start_with(bench, ranks, manifest, settings);
}

static void assert_rows(struct bench *bench, size_t count)
{
    struct results *rows = bench_rows(bench);
    assert_int_equal(rows->row_count, count);
    assert_int_equal(resume_missing(bench->plan, rows), bench->plan->count - count);
    results_destroy(rows);
}

/* Another one measures what it had. Its own record comes before that one, after it, or never. */
static void a_silent_rank_holds_up_nobody(void **state)
{
    (void)state;
    for (int late = 0; late < 3; ++late) {
        struct bench bench;
        struct config held, again;
        struct error error;
        char absent[200];
        bench_start_with_timeouts(&bench, 2, "[conv2d grid]\nbatch = 1, 2\n");
        all_devices_arrive(&bench);
        assert_true(work_of(&bench, 0, &held));
        char *text = record_text(&held, 0, RECORD_MEASURED);
        bench_time(&bench, 1000 + WORK_TIMEOUT - 1);
        assert_true(rank_measures(&bench, 1, RECORD_MEASURED));
        assert_false(work_of(&bench, 1, &again)); /* it still has time */
        bench_time(&bench, 1000 + WORK_TIMEOUT + 1);
        if (late == 0)
            arrive(&bench, 0, MESSAGE_RECORD, text);
        assert_true(rank_measures(&bench, 1, RECORD_MEASURED));
        if (late == 1)
            arrive(&bench, 0, MESSAGE_RECORD, text);
        free(text);
        assert_rows(&bench, 2);
        arrive(&bench, 1, MESSAGE_FINISHED, "");
        assert_true(dispatcher_missing(bench.dispatcher, absent, sizeof absent));
        assert_string_equal(absent, "rank 0 on node1");
        assert_false(dispatcher_finished(bench.dispatcher));
        if (late < 2)
            arrive(&bench, 0, MESSAGE_FINISHED, "");
        else
            bench_time(&bench, 1000 + WORK_TIMEOUT + STOP_TIMEOUT + 2);
        assert_true(dispatcher_finished(bench.dispatcher));
        assert_int_equal(dispatcher_missing(bench.dispatcher, absent, sizeof absent), late == 2);
        assert_int_equal(dispatcher_status(bench.dispatcher, &error), STATUS_OK);
        bench_clear(&bench);
    }
}

static void a_silent_rank_that_writes_again_gets_work(void **state)
{
    (void)state;
    struct bench bench;
    struct config held;
    bench_start_with_timeouts(&bench, 2, four);
    all_devices_arrive(&bench);
    assert_true(work_of(&bench, 0, &held));
    bench_time(&bench, 1010);
    assert_true(rank_measures(&bench, 1, RECORD_MEASURED));
    char *text = record_text(&held, 0, RECORD_MEASURED);
    bench_time(&bench, 1001 + WORK_TIMEOUT);
    arrive(&bench, 0, MESSAGE_RECORD, text);
    free(text);
    assert_true(work_of(&bench, 0, &held));
    bench_clear(&bench);
}

/* Silent over its roofs: the others begin without it, and it joins them when it is ready. */
static void a_rank_silent_over_its_roofs_joins_late(void **state)
{
    (void)state;
    struct bench bench;
    struct config config;
    bench_start_with_timeouts(&bench, 2, four);
    device_arrives(&bench, 1);
    bench_time(&bench, 999 + ROOFS_TIMEOUT);
    assert_false(work_of(&bench, 1, &config));
    bench_time(&bench, 1001 + ROOFS_TIMEOUT);
    assert_true(work_of(&bench, 1, &config));
    device_arrives(&bench, 0);
    assert_true(work_of(&bench, 0, &config));
    bench_clear(&bench);
}

static void all_silent_is_the_end(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start_with_timeouts(&bench, 2, four);
    all_devices_arrive(&bench);
    bench_time(&bench, 1001 + WORK_TIMEOUT);
    assert_false(dispatcher_finished(bench.dispatcher));
    bench_time(&bench, 1002 + WORK_TIMEOUT + STOP_TIMEOUT);
    assert_true(dispatcher_finished(bench.dispatcher));
    assert_int_equal(dispatcher_status(bench.dispatcher, &error), STATUS_DEVICE);
    bench_clear(&bench);
}

/* After a signal, whoever does not answer is waited for no longer than that. */
static void an_interrupt_does_not_wait_for_the_silent(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    char absent[200];
    bench_start_with_timeouts(&bench, 3, four);
    all_devices_arrive(&bench);
    bench_time(&bench, 1005);
    bench_interrupt(&bench);
    arrive(&bench, 1, MESSAGE_FINISHED, "");
    bench_time(&bench, 1004 + STOP_TIMEOUT);
    assert_false(dispatcher_finished(bench.dispatcher));
    bench_time(&bench, 1006 + STOP_TIMEOUT);
    assert_true(dispatcher_finished(bench.dispatcher));
    assert_true(dispatcher_missing(bench.dispatcher, absent, sizeof absent));
    assert_string_equal(absent, "rank 0 on node1, rank 2 on node1");
    assert_int_equal(dispatcher_status(bench.dispatcher, &error), STATUS_INTERRUPTED);
    bench_clear(&bench);
}

/* With a limit of 100 s that began at BENCH_BEGIN; 10 s of it are for the file. */
static void bench_start_limited(struct bench *bench, int ranks, const char *manifest)
{
    static const struct time_limit limit = {BENCH_BEGIN + 100, 100, "--time-limit 100 s"};
    bench_start_with(bench, ranks, manifest, (struct dispatcher_settings){.limit = &limit});
}

/* The rank is done with what it was given, which took until then. */
static bool rank_measures_until(struct bench *bench, int rank, double moment)
{
    struct config config;
    if (!work_of(bench, rank, &config))
        return false;
    char *text = record_text(&config, rank, RECORD_MEASURED);
    bench_time(bench, moment);
    arrive(bench, rank, MESSAGE_RECORD, text);
    free(text);
    return true;
}

/* 20 s each, and so 30 s are expected: with 45 s left one is begun, with 25 s none. */
static void nothing_is_begun_that_cannot_end(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start_limited(&bench, 1, "[conv2d]\nfilters = 64, 65, 66, 67, 68, 69\n");
    bench_time(&bench, 1005);
    all_devices_arrive(&bench);
    for (int i = 1; i <= 3; ++i)
        assert_true(rank_measures_until(&bench, 0, 1005 + 20 * i));
    assert_int_equal(bench_end(&bench, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "3 of 6 configurations are left for lack of time "
                                       "(--time-limit 100 s): 25.0 s remain"));
    assert_non_null(strstr(error.text, "may take 30.0 s"));
    assert_rows(&bench, 3);
    bench_clear(&bench);
}

/* A short one still fits where a long one does not. */
static void the_longest_that_fits_is_next(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start_limited(&bench, 1, "[conv2d]\nbatch = 1, 2, 48, 49\n");
    all_devices_arrive(&bench);
    assert_true(rank_measures_until(&bench, 0, 1050)); /* 49; 48 would take as long */
    assert_true(rank_measures_until(&bench, 0, 1051));
    assert_true(rank_measures_until(&bench, 0, 1052));
    assert_int_equal(bench_end(&bench, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "1 of 4 configurations are left"));
    bench_clear(&bench);
}

/* What one rank finds out frees work for those that were kept waiting. */
static void what_was_learnt_is_used_at_once(void **state)
{
    (void)state;
    struct bench bench;
    struct config config;
    bench_start_limited(&bench, 2, "[conv2d]\nbatch = 1, 32\n");
    bench_time(&bench, 1080);
    all_devices_arrive(&bench); /* 10 s are left; the large one is assumed to take longer */
    assert_true(work_of(&bench, 0, &config));
    assert_false(work_of(&bench, 1, &config));
    char *text = record_text(&config, 0, RECORD_MEASURED);
    bench_time(&bench, 1080.01);
    arrive(&bench, 0, MESSAGE_RECORD, text);
    free(text);
    assert_true(work_of(&bench, 0, &config) || work_of(&bench, 1, &config));
    assert_null(collected_take(&bench.sent, 0, MESSAGE_STOP));
    bench_clear(&bench);
}

/* What is being measured when the limit comes is not waited for. */
static void the_limit_ends_what_is_under_way(void **state)
{
    (void)state;
    struct bench bench;
    struct config config;
    struct error error;
    bench_start_limited(&bench, 2, four);
    all_devices_arrive(&bench);
    assert_true(work_of(&bench, 0, &config));
    bench_time(&bench, 1089);
    assert_null(collected_take(&bench.sent, 0, MESSAGE_STOP));
    bench_time(&bench, 1090.5);
    assert_int_equal(bench_end(&bench, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "4 of 4 configurations are left for lack of time"));
    assert_non_null(strstr(error.text, "it has come"));
    bench_clear(&bench);

    bench_start_limited(&bench, 2, four); /* in the middle of roofs */
    device_arrives(&bench, 1);
    bench_time(&bench, 1091);
    assert_int_equal(bench_end(&bench, &error), STATUS_INTERRUPTED);
    bench_clear(&bench);
}

/* Another run with this limit would leave the same: it is no use to go on. */
static void what_no_run_has_time_for_is_told_apart(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start_limited(&bench, 1, "[sweep]\ntimeout = 500 s\n[conv2d]\nbatch = 1, 128\n");
    bench_time(&bench, 1060); /* roofs took so long */
    all_devices_arrive(&bench);
    assert_true(rank_measures_until(&bench, 0, 1060.5)); /* the small one */
    assert_int_equal(bench_end(&bench, &error), STATUS_FAILED);
    assert_non_null(strstr(error.text,
                           "1 of them may take up to 96.0 s, more than any run with this "
                           "limit has for a row (30.0 s)"));
    bench_clear(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_rank_holds_up_nobody),
        cmocka_unit_test(a_silent_rank_that_writes_again_gets_work),
        cmocka_unit_test(a_rank_silent_over_its_roofs_joins_late),
        cmocka_unit_test(all_silent_is_the_end),
        cmocka_unit_test(an_interrupt_does_not_wait_for_the_silent),
        cmocka_unit_test(nothing_is_begun_that_cannot_end),
        cmocka_unit_test(the_longest_that_fits_is_next),
        cmocka_unit_test(what_was_learnt_is_used_at_once),
        cmocka_unit_test(the_limit_ends_what_is_under_way),
        cmocka_unit_test(what_no_run_has_time_for_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
