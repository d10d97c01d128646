/* Rank 0's half of a sweep: what is handed out, what comes back, who is lost, and how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "model/protocol.h"
#include "ranks/resume.h"
#include "dispatcher_bench.h"

static const char four[] = "[conv2d grid]\nbatch = 1, 2, 4, 8\n";

static void nothing_is_handed_out_before_all_roofs(void **state)
{
    (void)state;
    struct bench bench;
    struct config config;
    bench_start(&bench, 2, four);
    device_arrives(&bench, 0);
    assert_false(work_of(&bench, 0, &config));
    device_arrives(&bench, 1);
    assert_true(work_of(&bench, 0, &config));
    assert_true(work_of(&bench, 1, &config));
    bench_clear(&bench);
}

static void each_configuration_is_measured_once(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start(&bench, 3, four);
    all_devices_arrive(&bench);
    assert_int_equal(measure_all(&bench, 0), 4);
    assert_int_equal(bench_end(&bench, &error), STATUS_OK);
    struct results *rows = bench_rows(&bench);
    assert_int_equal(rows->device_count, 3);
    assert_int_equal(rows->row_count, 4);
    assert_int_equal(resume_missing(bench.plan, rows), 0);
    results_destroy(rows);
    bench_clear(&bench);
}

/* Records of several ranks that arrive at the same moment are on disk before any of them gets more work. */
static void work_comes_after_the_sync(void **state)
{
    (void)state;
    struct bench bench;
    struct config config;
    bench_start(&bench, 3, "[conv2d grid]\nbatch = 1, 2, 4, 8, 16, 32\n");
    all_devices_arrive(&bench);
    for (int rank = 0; rank < 3; ++rank) {
        assert_true(work_of(&bench, rank, &config));
        char *text = record_text(&config, rank, RECORD_MEASURED);
        const struct message message = {MESSAGE_RECORD, rank, text};
        dispatcher_message(bench.dispatcher, &message);
        bench_carry_out(&bench);
        free(text);
    }
    for (int rank = 0; rank < 3; ++rank)
        assert_false(work_of(&bench, rank, &config));
    dispatcher_settle(bench.dispatcher);
    bench_carry_out(&bench);
    struct results *rows = bench_rows(&bench);
    assert_int_equal(rows->row_count, 3);
    results_destroy(rows);
    for (int rank = 0; rank < 3; ++rank)
        assert_true(work_of(&bench, rank, &config));
    dispatcher_settle(bench.dispatcher); /* nothing new: nothing twice */
    bench_carry_out(&bench);
    for (int rank = 0; rank < 3; ++rank)
        assert_false(work_of(&bench, rank, &config));
    bench_clear(&bench);
}

/* The journal has the record as it came, but is known by the plan's hash and label. */
static void a_record_is_journaled_as_it_came(void **state)
{
    (void)state;
    struct bench bench;
    char line[16384];
    bool found = false;
    bench_start(&bench, 1, four);
    all_devices_arrive(&bench);
    assert_true(rank_measures(&bench, 0, RECORD_MEASURED));
    FILE *file = fopen(bench.path, "r");
    while (fgets(line, sizeof line, file))
        if (strstr(line, "\"kind\":\"record\"")) {
            found = true;
            assert_non_null(strstr(line, "\"mood\":7"));
            assert_non_null(strstr(line, "\"label\":\"grid\""));
            assert_null(strstr(line, "what a worker says"));
        }
    fclose(file);
    assert_true(found);
    bench_clear(&bench);
}

static void nonsense_ends_the_sweep(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "[]", "{\"time_median\":1}", "{\"status\":\"merry\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct bench bench;
        struct error error;
        bench_start(&bench, 2, four);
        all_devices_arrive(&bench);
        arrive(&bench, 1, MESSAGE_RECORD, texts[i]);
        assert_int_equal(bench_end(&bench, &error), STATUS_SYSTEM);
        assert_non_null(strstr(error.text, "no record"));
        struct results *rows = bench_rows(&bench);
        assert_int_equal(rows->row_count, 0);
        results_destroy(rows);
        bench_clear(&bench);
    }
}

static void a_record_out_of_turn_is_no_row(void **state)
{
    (void)state;
    struct bench bench;
    struct config config;
    struct error error;
    bench_start(&bench, 2, "[conv2d]\nbatch = 1\n");
    all_devices_arrive(&bench);
    assert_true(work_of(&bench, 0, &config)); /* the only one: rank 1 idles */
    char *text = record_text(&config, 1, RECORD_MEASURED);
    arrive(&bench, 1, MESSAGE_RECORD, text);
    free(text);
    assert_int_equal(bench_end(&bench, &error), STATUS_SYSTEM);
    struct results *rows = bench_rows(&bench);
    assert_int_equal(rows->row_count, 0);
    results_destroy(rows);
    bench_clear(&bench);
}

static void a_device_that_is_no_json_ends_the_sweep(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start(&bench, 2, four);
    arrive(&bench, 1, MESSAGE_DEVICE, "");
    assert_int_equal(bench_end(&bench, &error), STATUS_SYSTEM);
    bench_clear(&bench);
}

static void what_a_lost_rank_measured_goes_to_another(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start(&bench, 2, four);
    all_devices_arrive(&bench);
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "uuid-0 on node1: fell off the bus");
    assert_int_equal(measure_all(&bench, 1), 4);
    assert_int_equal(bench_end(&bench, &error), STATUS_OK);
    bench_clear(&bench);
}

static void a_rank_lost_over_its_roofs_does_not_hold_up_others(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start(&bench, 2, four);
    device_arrives(&bench, 1);
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "gone");
    assert_int_equal(measure_all(&bench, 1), 4);
    assert_int_equal(bench_end(&bench, &error), STATUS_OK);
    bench_clear(&bench);
}

static void a_second_loss_is_a_failed_row(void **state)
{
    (void)state;
    struct bench bench;
    struct config deadly, second;
    struct error error;
    char text[WORKLOAD_TEXT];
    bench_start(&bench, 3, "[conv2d]\nbatch = 1\n");
    all_devices_arrive(&bench);
    assert_true(work_of(&bench, 0, &deadly));
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "first");
    bool one = work_of(&bench, 1, &second);
    assert_true(one || work_of(&bench, 2, &second));
    arrive(&bench, one ? 1 : 2, MESSAGE_DEVICE_LOST, "second");
    assert_false(work_of(&bench, one ? 2 : 1, &second));
    assert_int_equal(bench_end(&bench, &error), STATUS_OK); /* all rows are there, one has failed */
    struct results *rows = bench_rows(&bench);
    assert_int_equal(rows->row_count, 1);
    assert_int_equal(rows->rows[0].status, RECORD_FAILED);
    assert_string_equal(rows->rows[0].error,
                        "2 devices were lost while measuring it, the last: second");
    config_format(&deadly, text);
    assert_string_equal(rows->rows[0].configuration, text);
    results_destroy(rows);
    bench_clear(&bench);
}

static void no_rank_left_is_the_end(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start(&bench, 2, four);
    all_devices_arrive(&bench);
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "first");
    arrive(&bench, 1, MESSAGE_DEVICE_LOST, "second");
    assert_int_equal(bench_end(&bench, &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "no rank is left"));
    bench_clear(&bench);
}

static const char replicated[] = "[sweep]\ndistribute = replicate\n[conv2d]\nbatch = 1, 2, 4, 8\n";

static void replicate_measures_everything_everywhere(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start(&bench, 2, replicated);
    all_devices_arrive(&bench);
    assert_int_equal(measure_all(&bench, 0), 8);
    assert_int_equal(bench_end(&bench, &error), STATUS_OK);
    bench_clear(&bench);
}

static void replicate_misses_what_a_lost_device_had(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start(&bench, 2, replicated);
    all_devices_arrive(&bench);
    assert_true(rank_measures(&bench, 0, RECORD_MEASURED));
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "gone");
    assert_int_equal(measure_all(&bench, 1), 4);
    assert_int_equal(bench_end(&bench, &error), STATUS_DEVICE);
    assert_non_null(strstr(error.text, "--resume"));

    /* With what was measured, a second job hands out no more than the rest. */
    struct bench again = bench_make(2, replicated);
    strcpy(again.path, bench.path);
    again.earlier = bench_rows(&bench);
    journal_close(bench.journal);
    bench.journal = NULL;
    bench_begin(&again, JOURNAL_RESUME);
    all_devices_arrive(&again);
    assert_false(rank_measures(&again, 1, RECORD_MEASURED));
    assert_int_equal(measure_all(&again, 0), 3);
    assert_int_equal(bench_end(&again, &error), STATUS_OK);
    bench_clear(&again);
    bench_clear(&bench);
}

/* An older journal has one UUID for all ranks on the same cores: its rows are the first rank's. */
static void a_shared_uuid_is_the_first_ranks(void **state)
{
    (void)state;
    struct bench bench, again = bench_make(2, replicated);
    struct error error;
    bench = bench_make(2, replicated);
    strcpy(bench.devices[1].uuid, bench.devices[0].uuid);
    bench_begin(&bench, JOURNAL_CREATE);
    all_devices_arrive(&bench);
    assert_int_equal(measure_all(&bench, 1), 4); /* rank 0 was killed before its first row */
    strcpy(again.path, bench.path);
    strcpy(again.devices[1].uuid, "uuid-0#2");
    again.earlier = bench_rows(&bench);
    journal_close(bench.journal);
    bench.journal = NULL;
    bench_begin(&again, JOURNAL_RESUME);
    all_devices_arrive(&again);
    assert_int_equal(measure_all(&again, 0), 4);
    assert_int_equal(bench_end(&again, &error), STATUS_OK);
    bench_clear(&again);
    bench_clear(&bench);
}

static void what_was_measured_is_not_handed_out_again(void **state)
{
    (void)state;
    struct bench bench, again = bench_make(2, four);
    struct error error;
    bench_start(&bench, 2, four);
    all_devices_arrive(&bench);
    assert_true(rank_measures(&bench, 1, RECORD_MEASURED));
    again.earlier = bench_rows(&bench);
    assert_int_equal(resume_missing(bench.plan, again.earlier), 3);
    bench_begin(&again, JOURNAL_CREATE);
    all_devices_arrive(&again);
    assert_int_equal(measure_all(&again, 0), 3);
    assert_int_equal(bench_end(&again, &error), STATUS_OK);
    bench_clear(&again);
    bench_clear(&bench);
}

static void max_failures_ends_the_sweep(void **state)
{
    (void)state;
    struct bench bench;
    struct config config;
    struct error error;
    bench_start(&bench, 1, "[sweep]\nmax_failures = 2\n[conv2d]\nbatch = 1, 2, 4, 8\n");
    all_devices_arrive(&bench);
    assert_true(rank_measures(&bench, 0, RECORD_FAILED));
    assert_true(rank_measures(&bench, 0, RECORD_MEASURED));
    assert_true(rank_measures(&bench, 0, RECORD_FAILED));
    assert_false(work_of(&bench, 0, &config));
    assert_int_equal(bench_end(&bench, &error), STATUS_FAILED);
    bench_clear(&bench);
}

/* What was measured meanwhile is kept; nothing more is handed out. */
static void an_interrupt_stops_everyone(void **state)
{
    (void)state;
    for (int by_message = 0; by_message < 2; ++by_message) {
        struct bench bench;
        struct config config;
        struct error error;
        bench_start(&bench, 2, four);
        all_devices_arrive(&bench);
        if (by_message)
            arrive(&bench, 1, MESSAGE_SIGNAL, "");
        else
            bench_interrupt(&bench);
        assert_true(rank_measures(&bench, 1, RECORD_MEASURED));
        assert_false(work_of(&bench, 1, &config));
        assert_int_equal(bench_end(&bench, &error), STATUS_INTERRUPTED);
        struct results *rows = bench_rows(&bench);
        assert_int_equal(rows->row_count, 1);
        results_destroy(rows);
        bench_clear(&bench);
    }
}

static void roofs_alone_end_with_the_last_device(void **state)
{
    (void)state;
    struct bench bench;
    struct error error;
    bench_start(&bench, 2, "[peaks]\nmemory = dram\n");
    device_arrives(&bench, 1);
    assert_null(collected_take(&bench.sent, 0, MESSAGE_STOP));
    device_arrives(&bench, 0);
    assert_int_equal(bench_end(&bench, &error), STATUS_OK);
    bench_clear(&bench);

    bench_start(&bench, 2, "[peaks]\nmemory = dram\n"); /* of roofs alone, a lost one is missed */
    device_arrives(&bench, 1);
    arrive(&bench, 0, MESSAGE_DEVICE_LOST, "gone");
    assert_int_equal(bench_end(&bench, &error), STATUS_DEVICE);
    bench_clear(&bench);
}

static void a_failed_action_ends_the_sweep(void **state)
{
    (void)state;
    struct bench bench;
    struct config config;
    struct dispatcher_action action;
    struct error error;
    bench_start(&bench, 2, four);
    all_devices_arrive(&bench);
    assert_true(work_of(&bench, 0, &config));
    assert_true(work_of(&bench, 1, &config));
    const struct message message = {MESSAGE_RECORD, 1, record_text(&config, 1, RECORD_MEASURED)};
    dispatcher_message(bench.dispatcher, &message);
    assert_true(dispatcher_next(bench.dispatcher, &action));
    assert_int_equal(action.kind, ACTION_STORE_RECORD);
    dispatcher_interrupt(bench.dispatcher);
    error_set(&error, STATUS_SYSTEM, "no space left");
    dispatcher_failed(bench.dispatcher, &error); /* the end was told before, and is told still */
    free(message.text);
    dispatcher_settle(bench.dispatcher);
    bench_carry_out(&bench);
    assert_int_equal(bench_end(&bench, &error), STATUS_INTERRUPTED);
    bench_clear(&bench);

    bench_start(&bench, 1, four);
    dispatcher_failed(bench.dispatcher, &error);
    bench_carry_out(&bench);
    assert_int_equal(bench_end(&bench, &error), STATUS_SYSTEM);
    bench_clear(&bench);
}

static void searched_arrives(struct bench *bench, int from, const struct config *config)
{
    char *text = record_text(config, from, RECORD_MEASURED);
    json_t *object = json_loads(text, 0, NULL);
    free(text);
    record_patch(object, "algorithm", json_string("engine-1"));
    record_patch(object, "algorithm_id", json_string("0123456789abcdef"));
    record_patch(object, "algorithm_launches", json_string("0123456789abcdef"));
    record_patch(object, "algorithm_origin", json_string("search"));
    text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    arrive(bench, from, MESSAGE_RECORD, text);
    free(text);
}

static struct request request_of(struct bench *bench, int rank)
{
    struct request request;
    struct error error;
    char *line = collected_take(&bench->sent, rank, MESSAGE_MEASURE);
    assert_non_null(line);
    assert_ok(request_decode(line, &request, &error), &error);
    free(line);
    return request;
}

/* What one device's search chose, the next one of its model is offered. */
static void a_choice_travels_to_an_equal_device(void **state)
{
    (void)state;
    struct bench bench;
    bench = bench_make(3, "[sweep]\ndistribute = replicate\n[conv2d one]\nbatch = 16, 17\n");
    for (int rank = 0; rank < 3; ++rank)
        strcpy(bench.devices[rank].model, rank == 2 ? "H100" : "H200");
    bench_begin(&bench, JOURNAL_CREATE);
    all_devices_arrive(&bench);
    for (int i = 0; i < 2; ++i) { /* rank 0 is ahead of the others */
        struct request request = request_of(&bench, 0);
        assert_false(choice_is_made(&request.choice));
        searched_arrives(&bench, 0, &request.config);
    }
    for (int rank = 1; rank < 3; ++rank) {
        struct request first = request_of(&bench, rank);
        assert_false(choice_is_made(&first.choice)); /* handed out before */
        char *text = record_text(&first.config, rank, RECORD_MEASURED);
        arrive(&bench, rank, MESSAGE_RECORD, text);
        free(text);
        struct request second = request_of(&bench, rank);
        assert_int_equal(choice_is_made(&second.choice), rank == 1);
        assert_string_equal(second.choice.algorithm, rank == 1 ? "engine-1" : "");
        assert_string_equal(second.choice.algorithm_origin, rank == 1 ? "run" : "");
    }
    bench_clear(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_travels_to_an_equal_device),
        cmocka_unit_test(a_failed_action_ends_the_sweep),
        cmocka_unit_test(nothing_is_handed_out_before_all_roofs),
        cmocka_unit_test(each_configuration_is_measured_once),
        cmocka_unit_test(work_comes_after_the_sync),
        cmocka_unit_test(a_record_is_journaled_as_it_came),
        cmocka_unit_test(nonsense_ends_the_sweep),
        cmocka_unit_test(a_record_out_of_turn_is_no_row),
        cmocka_unit_test(a_device_that_is_no_json_ends_the_sweep),
        cmocka_unit_test(what_a_lost_rank_measured_goes_to_another),
        cmocka_unit_test(a_rank_lost_over_its_roofs_does_not_hold_up_others),
        cmocka_unit_test(a_second_loss_is_a_failed_row),
        cmocka_unit_test(no_rank_left_is_the_end),
        cmocka_unit_test(replicate_measures_everything_everywhere),
        cmocka_unit_test(replicate_misses_what_a_lost_device_had),
        cmocka_unit_test(a_shared_uuid_is_the_first_ranks),
        cmocka_unit_test(what_was_measured_is_not_handed_out_again),
        cmocka_unit_test(max_failures_ends_the_sweep),
        cmocka_unit_test(an_interrupt_stops_everyone),
        cmocka_unit_test(roofs_alone_end_with_the_last_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
