/* Rank 0's patience with silent ranks, and a sweep with a time limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ranks/earlier_rows.h"
#include "stage.h"

static const char four[] = "[conv2d grid]\nbatch = 1, 2, 4, 8\n";

enum { ROOFS_PATIENCE = 100, WORK_PATIENCE = 50, STOP_PATIENCE = 10 };

/* With a coordinator that does not wait for ever. */
static void stage_start_impatient(struct stage *stage, int ranks, const char *manifest)
{
    const struct coordinator_settings settings = {.roofs_patience = ROOFS_PATIENCE,
                                                  .work_patience = WORK_PATIENCE,
                                                  .stop_patience = STOP_PATIENCE};
    stage_start_with(stage, ranks, manifest, settings);
}

static void assert_rows(struct stage *stage, size_t count)
{
    struct results *rows = stage_rows(stage);
    assert_int_equal(rows->row_count, count);
    assert_int_equal(earlier_rows_missing(stage->plan, rows), stage->plan->count - count);
    results_destroy(rows);
}

/* Another one measures what it had. Its own record comes before that one, after it, or never. */
static void a_silent_rank_holds_up_nobody(void **state)
{
    (void)state;
    for (int late = 0; late < 3; ++late) {
        struct stage stage;
        struct config held, again;
        struct error error;
        char absent[200];
        stage_start_impatient(&stage, 2, "[conv2d grid]\nbatch = 1, 2\n");
        all_devices_arrive(&stage);
        assert_true(work_of(&stage, 0, &held));
        char *text = record_text(&held, 0, RECORD_MEASURED);
        coordinator_watch(stage.coordinator, 1000 + WORK_PATIENCE - 1);
        assert_true(rank_measures(&stage, 1, RECORD_MEASURED));
        assert_false(work_of(&stage, 1, &again)); /* it still has time */
        coordinator_watch(stage.coordinator, 1000 + WORK_PATIENCE + 1);
        if (late == 0)
            arrive(&stage, 0, LETTER_RECORD, text);
        assert_true(rank_measures(&stage, 1, RECORD_MEASURED));
        if (late == 1)
            arrive(&stage, 0, LETTER_RECORD, text);
        free(text);
        assert_rows(&stage, 2);
        arrive(&stage, 1, LETTER_BYE, "");
        assert_true(coordinator_absent(stage.coordinator, absent, sizeof absent));
        assert_string_equal(absent, "rank 0 on node1");
        assert_false(coordinator_finished(stage.coordinator));
        if (late < 2)
            arrive(&stage, 0, LETTER_BYE, "");
        else
            coordinator_watch(stage.coordinator, 1000 + WORK_PATIENCE + STOP_PATIENCE + 2);
        assert_true(coordinator_finished(stage.coordinator));
        assert_int_equal(coordinator_absent(stage.coordinator, absent, sizeof absent), late == 2);
        assert_int_equal(coordinator_status(stage.coordinator, &error), STATUS_OK);
        stage_clear(&stage);
    }
}

static void a_silent_rank_that_writes_again_gets_work(void **state)
{
    (void)state;
    struct stage stage;
    struct config held;
    stage_start_impatient(&stage, 2, four);
    all_devices_arrive(&stage);
    assert_true(work_of(&stage, 0, &held));
    coordinator_watch(stage.coordinator, 1010);
    assert_true(rank_measures(&stage, 1, RECORD_MEASURED));
    char *text = record_text(&held, 0, RECORD_MEASURED);
    coordinator_watch(stage.coordinator, 1001 + WORK_PATIENCE);
    arrive(&stage, 0, LETTER_RECORD, text);
    free(text);
    assert_true(work_of(&stage, 0, &held));
    stage_clear(&stage);
}

/* Silent over its roofs: the others begin without it, and it joins them when it is ready. */
static void a_rank_silent_over_its_roofs_joins_late(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    stage_start_impatient(&stage, 2, four);
    device_arrives(&stage, 1);
    coordinator_watch(stage.coordinator, 999 + ROOFS_PATIENCE);
    assert_false(work_of(&stage, 1, &config));
    coordinator_watch(stage.coordinator, 1001 + ROOFS_PATIENCE);
    assert_true(work_of(&stage, 1, &config));
    device_arrives(&stage, 0);
    assert_true(work_of(&stage, 0, &config));
    stage_clear(&stage);
}

static void all_silent_is_the_end(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start_impatient(&stage, 2, four);
    all_devices_arrive(&stage);
    coordinator_watch(stage.coordinator, 1001 + WORK_PATIENCE);
    assert_false(coordinator_finished(stage.coordinator));
    coordinator_watch(stage.coordinator, 1002 + WORK_PATIENCE + STOP_PATIENCE);
    assert_true(coordinator_finished(stage.coordinator));
    assert_int_equal(coordinator_status(stage.coordinator, &error), STATUS_DEVICE);
    stage_clear(&stage);
}

/* After a signal, whoever does not answer is waited for no longer than that. */
static void an_interrupt_does_not_wait_for_the_silent(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    char absent[200];
    stage_start_impatient(&stage, 3, four);
    all_devices_arrive(&stage);
    coordinator_watch(stage.coordinator, 1005);
    coordinator_interrupt(stage.coordinator);
    arrive(&stage, 1, LETTER_BYE, "");
    coordinator_watch(stage.coordinator, 1004 + STOP_PATIENCE);
    assert_false(coordinator_finished(stage.coordinator));
    coordinator_watch(stage.coordinator, 1006 + STOP_PATIENCE);
    assert_true(coordinator_finished(stage.coordinator));
    assert_true(coordinator_absent(stage.coordinator, absent, sizeof absent));
    assert_string_equal(absent, "rank 0 on node1, rank 2 on node1");
    assert_int_equal(coordinator_status(stage.coordinator, &error), STATUS_INTERRUPTED);
    stage_clear(&stage);
}

/* With a limit of 100 s that began at STAGE_BEGIN; 10 s of it are for the file. */
static void stage_start_limited(struct stage *stage, int ranks, const char *manifest)
{
    static const struct time_limit limit = {STAGE_BEGIN + 100, 100, "--time-limit 100 s"};
    stage_start_with(stage, ranks, manifest, (struct coordinator_settings){.limit = &limit});
}

/* The rank is done with what it was given, which took until then. */
static bool rank_measures_until(struct stage *stage, int rank, double moment)
{
    struct config config;
    if (!work_of(stage, rank, &config))
        return false;
    char *text = record_text(&config, rank, RECORD_MEASURED);
    coordinator_watch(stage->coordinator, moment);
    arrive(stage, rank, LETTER_RECORD, text);
    free(text);
    return true;
}

/* 20 s each, and so 30 s are expected: with 45 s left one is begun, with 25 s none. */
static void nothing_is_begun_that_cannot_end(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start_limited(&stage, 1, "[conv2d]\nfilters = 64, 65, 66, 67, 68, 69\n");
    coordinator_watch(stage.coordinator, 1005);
    all_devices_arrive(&stage);
    for (int i = 1; i <= 3; ++i)
        assert_true(rank_measures_until(&stage, 0, 1005 + 20 * i));
    assert_int_equal(stage_end(&stage, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "3 of 6 configurations are left for lack of time "
                                       "(--time-limit 100 s): 25.0 s remain"));
    assert_non_null(strstr(error.text, "may take 30.0 s"));
    assert_rows(&stage, 3);
    stage_clear(&stage);
}

/* A short one still fits where a long one does not. */
static void the_longest_that_fits_is_next(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start_limited(&stage, 1, "[conv2d]\nbatch = 1, 2, 48, 49\n");
    all_devices_arrive(&stage);
    assert_true(rank_measures_until(&stage, 0, 1050)); /* 49; 48 would take as long */
    assert_true(rank_measures_until(&stage, 0, 1051));
    assert_true(rank_measures_until(&stage, 0, 1052));
    assert_int_equal(stage_end(&stage, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "1 of 4 configurations are left"));
    stage_clear(&stage);
}

/* What one rank finds out frees work for those that were kept waiting. */
static void what_was_learnt_is_used_at_once(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    stage_start_limited(&stage, 2, "[conv2d]\nbatch = 1, 32\n");
    coordinator_watch(stage.coordinator, 1080);
    all_devices_arrive(&stage); /* 10 s are left; the large one is assumed to take longer */
    assert_true(work_of(&stage, 0, &config));
    assert_false(work_of(&stage, 1, &config));
    char *text = record_text(&config, 0, RECORD_MEASURED);
    coordinator_watch(stage.coordinator, 1080.01);
    arrive(&stage, 0, LETTER_RECORD, text);
    free(text);
    assert_true(work_of(&stage, 0, &config) || work_of(&stage, 1, &config));
    assert_null(collected_take(&stage.sent, 0, LETTER_STOP));
    stage_clear(&stage);
}

/* What is being measured when the limit comes is not waited for. */
static void the_limit_ends_what_is_under_way(void **state)
{
    (void)state;
    struct stage stage;
    struct config config;
    struct error error;
    stage_start_limited(&stage, 2, four);
    all_devices_arrive(&stage);
    assert_true(work_of(&stage, 0, &config));
    coordinator_watch(stage.coordinator, 1089);
    assert_null(collected_take(&stage.sent, 0, LETTER_STOP));
    coordinator_watch(stage.coordinator, 1090.5);
    assert_int_equal(stage_end(&stage, &error), STATUS_INTERRUPTED);
    assert_non_null(strstr(error.text, "4 of 4 configurations are left for lack of time"));
    assert_non_null(strstr(error.text, "it has come"));
    stage_clear(&stage);

    stage_start_limited(&stage, 2, four); /* in the middle of roofs */
    device_arrives(&stage, 1);
    coordinator_watch(stage.coordinator, 1091);
    assert_int_equal(stage_end(&stage, &error), STATUS_INTERRUPTED);
    stage_clear(&stage);
}

/* Another run with this limit would leave the same: it is no use to go on. */
static void what_no_run_has_time_for_is_told_apart(void **state)
{
    (void)state;
    struct stage stage;
    struct error error;
    stage_start_limited(&stage, 1, "[sweep]\ntimeout = 500 s\n[conv2d]\nbatch = 1, 128\n");
    coordinator_watch(stage.coordinator, 1060); /* roofs took so long */
    all_devices_arrive(&stage);
    assert_true(rank_measures_until(&stage, 0, 1060.5)); /* the small one */
    assert_int_equal(stage_end(&stage, &error), STATUS_FAILED);
    assert_non_null(strstr(error.text,
                           "1 of them may take up to 96.0 s, more than any run with this "
                           "limit has for a row (30.0 s)"));
    stage_clear(&stage);
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
