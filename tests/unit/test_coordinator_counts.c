/* Rows whose counters are read together, as rank 0 hands them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/protocol.h"
#include "ranks/earlier_rows.h"
#include "stage.h"

static const char four[] = "[conv2d grid]\nbatch = 1, 2, 4, 8\n";

enum { TOGETHER = 3 };

static void stage_start_together(struct stage *stage, int ranks, const char *manifest)
{
    *stage = stage_make(ranks, manifest);
    stage_begin_counting(stage, TOGETHER);
}

/* One after the other is handed out; as many as the device says are counted, and what is left at the end. */
static void rows_are_counted_together(void **state)
{
    (void)state;
    struct stage stage;
    char texts[4][WORKLOAD_TEXT];
    stage_start_together(&stage, 1, four);
    for (int i = 0; i < TOGETHER; ++i) {
        assert_false(is_told_to_count(&stage, 0));
        rank_times(&stage, 0, texts[i]);
    }
    assert_true(is_told_to_count(&stage, 0));
    for (int i = 0; i < TOGETHER; ++i) {
        assert_false(work_that_waits(&stage, 0, true, texts[3]));
        record_arrives(&stage, 0, texts[i]);
    }
    rank_times(&stage, 0, texts[3]);
    assert_true(is_told_to_count(&stage, 0));
    record_arrives(&stage, 0, texts[3]);
    assert_each_once(&stage, 4);
}

/* Each gets its next one when it is free: none has a batch of them beforehand. */
static void what_is_left_goes_to_whoever_is_free(void **state)
{
    (void)state;
    struct stage stage;
    char slow[WORKLOAD_TEXT], texts[3][WORKLOAD_TEXT];
    stage_start_together(&stage, 2, four);
    assert_true(work_that_waits(&stage, 0, true, slow));
    for (int i = 0; i < 3; ++i)
        rank_times(&stage, 1, texts[i]);
    assert_true(is_told_to_count(&stage, 1));
    for (int i = 0; i < 3; ++i)
        record_arrives(&stage, 1, texts[i]);
    arrive(&stage, 0, LETTER_TIMED, slow);
    assert_true(is_told_to_count(&stage, 0));
    record_arrives(&stage, 0, slow);
    assert_each_once(&stage, 4);
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
        struct stage stage;
        char text[WORKLOAD_TEXT];
        stage_start_together(&stage, 1, rows[i].manifest);
        if (rows[i].together > 1) {
            rank_times(&stage, 0, text);
            rank_times(&stage, 0, text);
            assert_true(is_told_to_count(&stage, 0));
        } else {
            assert_true(work_that_waits(&stage, 0, false, text));
        }
        stage_clear(&stage);
    }
}

/* No more than about ten seconds of timings are at stake. */
static void long_rows_are_counted_earlier(void **state)
{
    (void)state;
    struct stage stage;
    char text[WORKLOAD_TEXT];
    stage_start_together(&stage, 1, four);
    assert_true(work_that_waits(&stage, 0, true, text));
    coordinator_watch(stage.coordinator, 1006);
    arrive(&stage, 0, LETTER_TIMED, text);
    assert_false(is_told_to_count(&stage, 0));
    assert_true(work_that_waits(&stage, 0, true, text));
    coordinator_watch(stage.coordinator, 1011);
    arrive(&stage, 0, LETTER_TIMED, text);
    assert_true(is_told_to_count(&stage, 0));
    stage_clear(&stage);
}

/* What has nothing to count is done at once, and what waits goes on waiting. */
static void a_finished_row_may_come_in_between(void **state)
{
    (void)state;
    struct stage stage;
    char first[WORKLOAD_TEXT], text[WORKLOAD_TEXT], third[WORKLOAD_TEXT];
    stage_start_together(&stage, 1, "[conv2d grid]\nbatch = 1, 2, 4\n");
    rank_times(&stage, 0, first);
    assert_true(work_that_waits(&stage, 0, true, text));
    record_arrives(&stage, 0, text);
    rank_times(&stage, 0, third);
    assert_true(is_told_to_count(&stage, 0));
    record_arrives(&stage, 0, first);
    record_arrives(&stage, 0, third);
    assert_each_once(&stage, 3);
}

/* The worker is lost with what waits: each is handed out again, and counted by itself. */
static void what_is_given_back_goes_by_itself(void **state)
{
    (void)state;
    for (int counting = 0; counting < 2; ++counting) {
        struct stage stage;
        char texts[3][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
        stage_start_together(&stage, 1, "[conv2d grid]\nbatch = 1, 2, 4\n");
        rank_times(&stage, 0, texts[0]);
        rank_times(&stage, 0, texts[1]);
        assert_true(work_that_waits(&stage, 0, true, texts[2]));
        if (counting) {
            arrive(&stage, 0, LETTER_TIMED, texts[2]);
            assert_true(is_told_to_count(&stage, 0));
            record_arrives(&stage, 0, texts[0]);
        } else {
            arrive(&stage, 0, LETTER_BACK, texts[0]);
        }
        arrive(&stage, 0, LETTER_BACK, texts[1]);
        if (counting)
            arrive(&stage, 0, LETTER_BACK, texts[2]);
        else /* with a new worker */
            record_arrives(&stage, 0, texts[2]);
        for (int i = 0; i < 2; ++i) {
            assert_true(work_that_waits(&stage, 0, false, again));
            record_arrives(&stage, 0, again);
        }
        assert_each_once(&stage, 3);
    }
}

/* It waits until nothing else does. */
static void what_goes_by_itself_joins_no_others(void **state)
{
    (void)state;
    struct stage stage;
    char texts[3][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    stage_start_together(&stage, 2, "[conv2d grid]\nbatch = 1, 2, 4\n");
    rank_times(&stage, 0, texts[0]);
    assert_true(work_that_waits(&stage, 1, true, texts[1]));
    assert_true(work_that_waits(&stage, 0, true, texts[2]));
    arrive(&stage, 0, LETTER_BACK, texts[0]);
    arrive(&stage, 1, LETTER_TIMED, texts[1]);
    assert_true(is_told_to_count(&stage, 1));
    record_arrives(&stage, 1, texts[1]);
    assert_true(work_that_waits(&stage, 1, false, again));
    assert_string_equal(again, texts[0]);
    record_arrives(&stage, 1, again);
    arrive(&stage, 0, LETTER_TIMED, texts[2]);
    assert_true(is_told_to_count(&stage, 0));
    record_arrives(&stage, 0, texts[2]);
    assert_each_once(&stage, 3);
}

/* Of a rank that loses its device while it counts, any may be the cause: the next one is by itself. */
static void a_device_lost_over_counts_is_nobodys_fault(void **state)
{
    (void)state;
    struct stage stage;
    char texts[2][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    stage_start_together(&stage, 3, "[conv2d grid]\nbatch = 1, 2\n");
    rank_times(&stage, 0, texts[0]);
    assert_true(is_told_to_count(&stage, 0));
    arrive(&stage, 0, LETTER_LOST, "first");
    assert_true(work_that_waits(&stage, 1, true, texts[1]));
    assert_true(work_that_waits(&stage, 2, false, again));
    assert_string_equal(again, texts[0]);
    arrive(&stage, 2, LETTER_LOST, "second");
    arrive(&stage, 1, LETTER_TIMED, texts[1]);
    assert_true(is_told_to_count(&stage, 1));
    record_arrives(&stage, 1, texts[1]);
    struct error error;
    assert_int_equal(stage_end(&stage, &error), STATUS_OK);
    struct results *rows = stage_rows(&stage);
    assert_int_equal(rows->row_count, 2);
    assert_string_equal(rows->rows[0].error,
                        "2 devices were lost while measuring it, the last: second");
    assert_int_equal(rows->rows[1].status, RECORD_MEASURED);
    results_destroy(rows);
    stage_clear(&stage);
}

/* Each row that waits may take as long. A rank that writes again counts what it has, before it gets more. */
static void a_rank_may_be_silent_over_its_counts(void **state)
{
    (void)state;
    struct stage stage;
    char texts[2][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    stage_start_together(&stage, 1, "[conv2d grid]\nbatch = 1, 2\n");
    rank_times(&stage, 0, texts[0]);
    rank_times(&stage, 0, texts[1]);
    assert_true(is_told_to_count(&stage, 0));
    coordinator_watch(stage.coordinator, 999 + 2 * STAGE_COUNT_PATIENCE);
    record_arrives(&stage, 0, texts[0]);
    coordinator_watch(stage.coordinator, 998 + 3 * STAGE_COUNT_PATIENCE);
    assert_null(collected_take(&stage.sent, 0, LETTER_STOP));
    coordinator_watch(stage.coordinator, 1000 + 3 * STAGE_COUNT_PATIENCE);
    assert_false(work_that_waits(&stage, 0, true, again)); /* overdue, and so all ranks are */
    record_arrives(&stage, 0, texts[1]);
    struct error error;
    assert_int_equal(stage_end(&stage, &error), STATUS_DEVICE);
    struct results *rows = stage_rows(&stage);
    assert_int_equal(rows->row_count, 2);
    results_destroy(rows);
    stage_clear(&stage);
}

static void a_late_rank_counts_before_it_gets_more(void **state)
{
    (void)state;
    struct stage stage;
    char texts[4][WORKLOAD_TEXT], again[WORKLOAD_TEXT];
    stage_start_together(&stage, 2, four);
    rank_times(&stage, 0, texts[0]);
    assert_true(work_that_waits(&stage, 0, true, texts[1]));
    coordinator_watch(stage.coordinator, 1005);
    rank_times(&stage, 1, texts[2]);
    coordinator_watch(stage.coordinator, 1072); /* 50 s and 20 s for the one that waits */
    arrive(&stage, 0, LETTER_TIMED, texts[1]);
    assert_true(is_told_to_count(&stage, 0));
    assert_false(work_that_waits(&stage, 0, true, again));
    record_arrives(&stage, 0, texts[0]);
    record_arrives(&stage, 0, texts[1]);
    for (bool worked = true; worked;) {
        worked = false;
        for (int rank = 0; rank < 2; ++rank) {
            char *line = collected_take(&stage.sent, rank, LETTER_WORK);
            struct request request;
            struct error error;
            if (line) {
                assert_ok(request_decode(line, &request, &error), &error);
                config_format(&request.config, again);
                record_arrives(&stage, rank, again);
                worked = true;
            }
            free(line);
            if (is_told_to_count(&stage, rank)) {
                record_arrives(&stage, 1, texts[2]);
                worked = true;
            }
        }
    }
    assert_each_once(&stage, 4);
}

static void a_row_out_of_the_blue_ends_the_sweep(void **state)
{
    (void)state;
    static const enum letter_kind kinds[] = {LETTER_TIMED, LETTER_BACK};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct stage stage;
        struct error error;
        stage_start_together(&stage, 1, four);
        arrive(&stage, 0, kinds[i], "conv2d batch=77");
        assert_int_equal(stage_end(&stage, &error), STATUS_SYSTEM);
        stage_clear(&stage);
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
