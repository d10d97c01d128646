/* Members of a JSON text: the same as a parser finds, and nothing read beyond the text. */

#include "unit.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/results.h"
#include "results/members.h"

static void members_of_an_object(void **state)
{
    static const char text[] = " { \"a\" : -1.5e3 , \"list\":[1,[2,\"]\"],{\"b\":3}],"
                               "\"b\":\"quote \\\" brace } \\u00e4\",\"empty\":[ ],\"c\":null}";
    struct member members[] = {
        {.name = "a"}, {.name = "b"}, {.name = "list"}, {.name = "empty"}, {.name = "absent"}};
    char copy[64];
    assert_true(members_find(text, strlen(text), members, 5));
    assert_true(member_number(&members[0]) == -1500);
    assert_true(member_text(&members[1], copy));
    assert_string_equal(copy, "quote \" brace } \xc3\xa4");
    assert_int_equal(member_elements(&members[2]), 3);
    assert_int_equal(member_elements(&members[3]), 0);
    assert_null(members[4].value);
    assert_true(isnan(member_number(&members[4])) && isnan(member_number(&members[1])));
    assert_false(member_text(&members[0], copy));
}

static void what_is_no_object(void **state)
{
    static const char *const texts[] = {"",
                                        "[]",
                                        "{",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{\"a\":1}x",
                                        "{a:1}",
                                        "{\"a\":\"b}",
                                        "{\"a\":\"b\\\"}",
                                        "{\"a\":1 \"b\":2}",
                                        "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct member member = {.name = "a"};
        /* without the zero after it, so that a sanitizer sees what is read beyond */
        size_t length = strlen(texts[i]);
        char *text = malloc(length + 1);
        assert_non_null(text);
        memcpy(text, texts[i], length);
        if (members_find(text, length, &member, 1))
            fail_msg("'%s' is taken for an object", texts[i]);
        free(text);
    }
}

static enum status add(struct results *results, const char *text, struct error *error)
{
    return results_add_record(results, text, strlen(text), (struct place){.line = 1}, error);
}

/* A row is found in a record's text. */
static void rows_are_those_of_the_records(void **state)
{
    for (int status = RECORD_MEASURED; status <= RECORD_FAILED; ++status) {
        struct results *results = results_create();
        struct record record;
        struct error error;
        record_init(&record);
        strcpy(record.configuration, "matmul k=16 m=\"quoted\"");
        strcpy(record.label, "gr\xc3\xbcn");
        strcpy(record.device_key, "s1/0");
        strcpy(record.config_hash, "0123456789abcdef0123456789abcdef");
        strcpy(record.error, "line 1\nline 2 \\");
        record.status = status;
        record.attempts = 2;
        record.start_time = 1.7e9;
        record.wall_time = 0.25;
        record.time_median = 1e-6;
        record.sample_iterations = 1;
        record.timer_overhead = 1e-6;
        record.bimodal = 1;
        record.caller_time = 2e-6;
        record.caller_uncertainty = 0.125;
        strcpy(record.accuracy, "inaccurate: ...");
        json_t *object = record_encode(&record);
        char *text = json_dumps(object, JSON_COMPACT);
        json_decref(object);
        assert_int_equal(add(results, text, &error), STATUS_OK);
        free(text);
        const struct row *row = &results->rows[0];
        assert_string_equal(row->configuration, record.configuration);
        assert_string_equal(row->label, record.label);
        assert_string_equal(row->device_key, record.device_key);
        assert_string_equal(row->error, status == RECORD_MEASURED ? "" : record.error);
        assert_string_equal(row->config_hash, record.config_hash);
        assert_string_equal(row->marks, "btic");
        assert_int_equal(row->status, status);
        assert_int_equal(row->attempts, 2);
        assert_true(row->end_time == 1.7e9 + 0.25 && row->wall_time == 0.25);
        results_destroy(results);
    }
}

static void what_is_no_record(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"status\":\"merry\"}",
        "{\"status\":7}",
        "{\"status\":\"failed\",\"error\":7}",
        "{\"status\":\"measured\",\"config_hash\":\"0123456789abcdef0123456789abcdef0\"}"};
    struct results *results = results_create();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct error error = {""};
        assert_int_equal(add(results, texts[i], &error), STATUS_SYSTEM);
        assert_string_not_equal(error.text, "");
    }
    results_destroy(results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_an_object),
        cmocka_unit_test(what_is_no_object),
        cmocka_unit_test(rows_are_those_of_the_records),
        cmocka_unit_test(what_is_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
