/* Rows whose counters are read together, as rank 0 hands them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/protocol.h"
#include "ranks/resume.h"
#include "dispatcher_bench.h"

static const char four[] = "[conv2d grid]\nbatch = 1, 2, 4, 8\n";

enum { TOGETHER = 3 };

static void bench_start_together(struct bench *bench, int ranks, const char *manifest)
{
    *bench = bench_make(ranks, manifest);
    bench_begin_counting(bench, TOGETHER);
}

/* One after the other is handed out; as many as the device says are counted, and what is left at the end. */
static void rows_are_counted_together(void **state)
{
    (void)state;
    struct bench bench;
    char texts[4][WORKLOAD_TEXT];
    bench_start_together(&bench, 1, four);
    for (int i = 0; i < TOGETHER; ++i) {
        assert_false(is_told_to_count(&bench, 0));
        rank_times(&bench, 0, texts[i]);
    }
    assert_true(is_told_to_count(&bench, 0));
    for (int i = 0; i < TOGETHER; ++i) {
        assert_false(work_that_waits(&bench, 0, true, texts[3]));
        record_arrives(&bench, 0, texts[i]);
    }
    rank_times(&bench, 0, texts[3]);
    assert_true(is_told_to_count(&bench, 0));
    record_arrives(&bench, 0, texts[3]);
    assert_each_once(&bench, 4);
}

/* Each gets its next one when it is free: none has a batch of them beforehand. */
static void what_is_left_goes_to_whoever_is_free(void **state)
{
    (void)state;
    struct bench bench;
    char slow[WORKLOAD_TEXT], texts[3][WORKLOAD_TEXT];
    bench_start_together(&bench, 2, four);
    assert_true(work_that_waits(&bench, 0, true, slow));
    for (int i = 0; i < 3; ++i)
        rank_times(&bench, 1, texts[i]);
    assert_true(is_told_to_count(&bench, 1));
    for (int i = 0; i < 3; ++i)
        record_arrives(&bench, 1, texts[i]);
    arrive(&bench, 0, MESSAGE_TIMED, slow);
    assert_true(is_told_to_count(&bench, 0));
    record_arrives(&bench, 0, slow);
    assert_each_once(&bench, 4);
}

static void the_manifest_may_say_how_many(void **state)
{
    (void)state;
    static const struct {
        const char *manifest;
        int together;
    } rows[] = {
        {"[measure]\ncount_together = 2\n[conv2d grid]\nbatch = 1, 2, 4, 8\n", 2},
        {"[measure]\ncount_together = 1\n[conv2d grid]\nbatch = 1, 2, 4, 8\n", 1},
        {"[measure]\ncounters = off\n[conv2d grid]\nbatch = 1, 2, 4, 8\n", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct bench bench;
        char text[WORKLOAD_TEXT];
        bench_start_together(&bench, 1, rows[i].manifest);
        if (rows[i].together > 1) {
            rank_times(&bench, 0, text);
            rank_times(&bench, 0, text);
            assert_true(is_told_to_count(&bench, 0));
        } else {
            assert_true(work_that_waits(&bench, 0, false, text));
        }
        bench_clear(&bench);
    }
}

/* No more than about ten seconds of timings are at stake. */
static void long_rows_are_counted_earlier(void **state)
{
    (void)state;
    struct bench bench;
    char text[WORKLOAD_TEXT];
    bench_start_together(&bench, 1, four);
    assert_true(work_that_waits(&bench, 0, true, text));
    bench_time(&bench, 1006);
    arrive(&bench, 0, MESSAGE_TIMED, text);
    assert_false(is_told_to_count(&bench, 0));
    assert_true(work_that_waits(&bench, 0, true, text));
    bench_time(&bench, 1011);
    arrive(&bench, 0, MESSAGE_TIMED, text);
    assert_true(is_told_to_count(&bench, 0));
    bench_clear(&bench);
}

/* What has nothing to count is done at once, and what waits goes on waiting. */
static void a_finished_row_may_come_in_between(void **state)
{
    (void)state;
    struct bench bench;
    char first[WORKLOAD_TEXT], text[WORKLOAD_TEXT], third[WORKLOAD_TEXT];
    bench_start_together(&bench, 1, "[conv2d grid]\nbatch = 1, 2, 4\n");
    rank_times(&bench, 0, first);
    assert_true(work_that_waits(&bench, 0, true, text));
    record_arrives(&bench, 0, text);
    rank_times(&bench, 0, third);
    assert_true(is_told_to_count(&bench, 0));
    record_arrives(&bench, 0, first);
    record_arrives(&bench, 0, third);
    assert_each_once(&bench, 3);
}

/* The worker is lost with what waits: each is handed out again, and counted by itself. */
static void what_is_given_back_goes_by_itself(void **state)
{
    (void)state;
    for (int counting = 0; counting < 2; ++counting) {
        struct bench bench;
        char texts[3][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
        bench_start_together(&bench, 1, "[conv2d grid]\nbatch = 1, 2, 4\n");
        rank_times(&bench, 0, texts[0]);
        rank_times(&bench, 0, texts[1]);
        assert_true(work_that_waits(&bench, 0, true, texts[2]));
        if (counting) {
            arrive(&bench, 0, MESSAGE_TIMED, texts[2]);
            assert_true(is_told_to_count(&bench, 0));
            record_arrives(&bench, 0, texts[0]);
        } else {
            arrive(&bench, 0, MESSAGE_RETURNED, texts[0]);
        }
        arrive(&bench, 0, MESSAGE_RETURNED, texts[1]);
        if (counting)
            arrive(&bench, 0, MESSAGE_RETURNED, texts[2]);
        else /* with a new worker */
            record_arrives(&bench, 0, texts[2]);
        for (int i = 0; i < 2; ++i) {
            assert_true(work_that_waits(&bench, 0, false, again));
            record_arrives(&bench, 0, again);
        }
        assert_each_once(&bench, 3);
    }
}

/* It waits until nothing else does. */
static void what_goes_by_itself_joins_no_others(void **state)
{
    (void)state;
    struct bench bench;
    char texts[3][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    bench_start_together(&bench, 2, "[conv2d grid]\nbatch = 1, 2, 4\n");
    rank_times(&bench, 0, texts[0]);
    assert_true(work_that_waits(&bench, 1, true, texts[1]));
    assert_true(work_that_waits(&bench, 0, true, texts[2]));
    arrive(&bench, 0, MESSAGE_RETURNED, texts[0]);
    arrive(&bench, 1, MESSAGE_TIMED, texts[1]);
    assert_true(is_told_to_count(&bench, 1));
    record_arrives(&bench, 1, texts[1]);
    assert_true(work_that_waits(&bench, 1, false, again));
    assert_string_equal(again, texts[0]);
    record_arrives(&bench, 1, again);
    arrive(&bench, 0, MESSAGE_TIMED, texts[2]);
    assert_true(is_told_to_count(&bench, 0));
    record_arrives(&bench, 0, texts[2]);
    assert_each_once(&bench, 3);
}

/* Of a rank that loses its device while it counts, any may be the cause: the next one is by itself. */
static void a_device_lost_over_counts_is_nobodys_fault(void **state)
{
    (void)state;
    struct bench bench;
    char texts[2][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    bench_start_together(&bench, 3, "[conv2d grid]\nbatch = 1, 2\n");
    rank_times(&bench, 0, texts[0]);
    assert_true(is_told_to_count(&bench, 0));
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "first");
    assert_true(work_that_waits(&bench, 1, true, texts[1]));
    assert_true(work_that_waits(&bench, 2, false, again));
    assert_string_equal(again, texts[0]);
    arrive(&bench, 2, MESSAGE_DEVICE_LOST, "second");
    arrive(&bench, 1, MESSAGE_TIMED, texts[1]);
    assert_true(is_told_to_count(&bench, 1));
    record_arrives(&bench, 1, texts[1]);
    struct error error;
    assert_int_equal(bench_end(&bench, &error), STATUS_OK);
    struct results *rows = bench_rows(&bench);
    assert_int_equal(rows->row_count, 2);
    assert_string_equal(rows->rows[0].error,
                        "2 devices were lost while measuring it, the last: second");
    assert_int_equal(rows->rows[1].status, RECORD_MEASURED);
    results_destroy(rows);
    bench_clear(&bench);
}

/* Each row that waits may take as long. A rank that writes again counts what it has, before it gets more. */
static void a_rank_may_be_silent_over_its_counts(void **state)
{
    (void)state;
    struct bench bench;
    char texts[2][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    bench_start_together(&bench, 1, "[conv2d grid]\nbatch = 1, 2\n");
    rank_times(&bench, 0, texts[0]);
    rank_times(&bench, 0, texts[1]);
    assert_true(is_told_to_count(&bench, 0));
    bench_time(&bench, 999 + 2 * BENCH_COUNT_TIMEOUT);
    record_arrives(&bench, 0, texts[0]);
    bench_time(&bench, 998 + 3 * BENCH_COUNT_TIMEOUT);
    assert_null(collected_take(&bench.sent, 0, MESSAGE_STOP));
    bench_time(&bench, 1000 + 3 * BENCH_COUNT_TIMEOUT);
    assert_false(work_that_waits(&bench, 0, true, again)); /* overdue, and so all ranks are */
    record_arrives(&bench, 0, texts[1]);
    struct error error;
    assert_int_equal(bench_end(&bench, &error), STATUS_DEVICE);
    struct results *rows = bench_rows(&bench);
    assert_int_equal(rows->row_count, 2);
    results_destroy(rows);
    bench_clear(&bench);
}

static void a_late_rank_counts_before_it_gets_more(void **state)
{
    (void)state;
    struct bench bench;
    char texts[4][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    bench_start_together(&bench, 2, four);
    rank_times(&bench, 0, texts[0]);
    assert_true(work_that_waits(&bench, 0, true, texts[1]));
    bench_time(&bench, 1005);
    rank_times(&bench, 1, texts[2]);
    bench_time(&bench, 1072); /* 50 s and 20 s for the one that waits */
    arrive(&bench, 0, MESSAGE_TIMED, texts[1]);
    assert_true(is_told_to_count(&bench, 0));
    assert_false(work_that_waits(&bench, 0, true, again));
    record_arrives(&bench, 0, texts[0]);
    record_arrives(&bench, 0, texts[1]);
    for (bool worked = true; worked;) {
        worked = false;
        for (int rank = 0; rank < 2; ++rank) {
            char *line = collected_take(&bench.sent, rank, MESSAGE_MEASURE);
            struct request request;
            struct error error;
            if (line) {
                assert_ok(request_decode(line, &request, &error), &error);
                config_format(&request.config, again);
                record_arrives(&bench, rank, again);
                worked = true;
            }
            free(line);
            if (is_told_to_count(&bench, rank)) {
                record_arrives(&bench, 1, texts[2]);
                worked = true;
            }
        }
    }
    assert_each_once(&bench, 4);
}

static void a_row_out_of_the_blue_ends_the_sweep(void **state)
{
    (void)state;
    static const enum message_kind kinds[] = {MESSAGE_TIMED, MESSAGE_RETURNED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct bench bench;
        struct error error;
        bench_start_together(&bench, 1, four);
        arrive(&bench, 0, kinds[i], "conv2d batch=77");
        assert_int_equal(bench_end(&bench, &error), STATUS_SYSTEM);
        bench_clear(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_counted_together),
        cmocka_unit_test(what_is_left_goes_to_whoever_is_free),
        cmocka_unit_test(the_manifest_may_say_how_many),
        cmocka_unit_test(long_rows_are_counted_earlier),
        cmocka_unit_test(a_finished_row_may_come_in_between),
        cmocka_unit_test(what_is_given_back_goes_by_itself),
        cmocka_unit_test(what_goes_by_itself_joins_no_others),
        cmocka_unit_test(a_device_lost_over_counts_is_nobodys_fault),
        cmocka_unit_test(a_rank_may_be_silent_over_its_counts),
        cmocka_unit_test(a_late_rank_counts_before_it_gets_more),
        cmocka_unit_test(a_row_out_of_the_blue_ends_the_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
