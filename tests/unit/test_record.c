/* Limits and checks of records. unit/results_nc shows that JSON preserves all members. */

#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/record.h"

static enum status decode(json_t *object, struct record *record, struct error *error)
{
    char *text = json_dumps(object, JSON_COMPACT);
    enum status status = record_decode(json_text_of(text), record, error);
    free(text);
    return status;
}

TEST(cleared_record_encodes_to_nothing)
{
    struct record record;
    record_init(&record);
    json_t *object = record_encode(&record);
    /* only the two arrays, empty: a missing value is never 0 */
    assert_int_equal(json_object_size(object), 2);
    json_decref(object);
}

TEST(wrong_types_are_refused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"status\":\"well\"}", "'status'"},
        {"{\"time_median\":1}", "without a status"},
        {"{\"status\":\"failed\",\"time_median\":\"1\"}", "'time_median'"},
        {"{\"status\":\"failed\",\"launches\":1.5}", "'launches'"},
        {"{\"status\":\"failed\",\"attempts\":-9223372036854775808}", "'attempts'"},
        {"{\"status\":\"failed\",\"error\":5}", "'error'"},
        {"{\"status\":\"failed\",\"bytes_counted\":{\"l2\":\"x\"}}", "'bytes_counted'"},
        {"{\"status\":\"failed\",\"kernels\":[{\"count\":\"1\"}]}", "'count'"},
        {"{\"status\":\"failed\",\"sample\":[0.5, null]}", "no number"},
        {"[]", "object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        record_init(&record);
        assert_fails(record_decode(json_text_of(cases[i].text), &record, &failure), STATUS_SYSTEM,
                     cases[i].says);
    }
}

TEST(more_samples_than_a_row_has_are_refused)
{
    struct record record;
    record_init(&record);
    json_t *object = json_pack("{s:s, s:[]}", "status", "measured", "sample");
    json_t *samples = json_object_get(object, "sample");
    for (int i = 0; i < RECORD_SAMPLES_MAX; ++i)
        json_array_append_new(samples, json_real(i));
    assert_ok(decode(object, &record, &failure));
    assert_int_equal(record.sample_count, RECORD_SAMPLES_MAX);
    json_array_append_new(samples, json_real(1));
    assert_int_equal(decode(object, &record, &failure), STATUS_SYSTEM);
    json_decref(object);
    record_clear(&record);
}

TEST(more_kernels_than_a_row_has_are_refused)
{
    struct record record;
    record_init(&record);
    json_t *object = json_pack("{s:s, s:[]}", "status", "measured", "kernels");
    json_t *kernels = json_object_get(object, "kernels");
    for (int i = 0; i < RECORD_KERNELS_MAX; ++i)
        json_array_append_new(kernels, json_object());
    assert_ok(decode(object, &record, &failure));
    assert_int_equal(record.kernel_count, RECORD_KERNELS_MAX);
    json_array_append_new(kernels, json_object());
    assert_fails_with(decode(object, &record, &failure), STATUS_SYSTEM,
                      "4097 kernels; a record has 4096 at most");
    json_decref(object);
    record_clear(&record);
}

/* Cases replace members of a valid record. */
TEST(impossible_numbers_are_refused)
{
    static const struct {
        const char *members, *says; /* error; NULL: valid */
    } cases[] = {
        {"\"launches\":0,\"sm_clock\":0,\"sample\":[1e-9]", NULL},
        {"\"time_median\":1e9,\"flops_model\":1e24,\"verify_error\":1e24", NULL},
        {"\"wall_time\":1,\"runner_up_time\":2,\"memcpy_time\":2,\"sample\":[1]", NULL},
        {"\"energy\":6,\"power\":3,\"energy_time\":2", NULL},
        {"\"energy\":7,\"power\":3,\"energy_time\":2",
         "'energy' is 7, but 'power x energy_time' is 6"},
        {"\"wall_time\":0.5", "'time_median' is 1, but 'wall_time' is 0.5"},
        {"\"wall_time\":1,\"sample\":[2]", "'sample' is 2, but 'wall_time' is 1"},
        {"\"wall_time\":1,\"wall_time_part\":{\"timing\":2}", "'wall_time_part' is 2"},
        {"\"time_median\":1e-300", "it is never below 1e-09"},
        {"\"flops_model\":1e300", "'flops_model' is 1e+300"},
        {"\"samples\":9223372036854775807", "'samples' is 9.22337e+18"},
        {"\"placements\":0", "'placements' is 0"},
        {"\"configuration\":null", "a record without 'configuration'"},
        {"\"time_min\":1,\"time_median_low\":1,\"time_mean\":1.0000000000000002,\"time_max\":1",
         NULL},
        {"\"verify_error\":1e-5,\"verify_tolerance\":1e-5", NULL},
        {"\"busy_time\":1.0005,\"trace_time\":1", NULL},
        {"\"status\":\"failed\",\"verify_error\":2,\"verify_tolerance\":1e-5", NULL},
        {"\"status\":\"skipped\",\"time_median\":null", NULL},
        {"\"start_time\":253402300799", NULL},
        {"\"configuration\":\"of a newer version\","
         "\"config_hash\":\"6192253ca251a4ad3cc14ed3a1d9bc12\"",
         NULL},
        {"\"configuration\":\"lstm batch=1\",\"config_hash\":\"6192253ca251a4ad3cc14ed3a1d9bc12\"",
         "'config_hash' is 6192253ca251a4ad3cc14ed3a1d9bc12, but that of 'lstm batch=1' is "},
        {"\"start_time\":3e17", "'start_time' is 3e+17, which nobody can have measured"},
        {"\"time_median\":null", "a measured record without 'time_median'"},
        {"\"time_median\":0", "'time_median' is 0, which nobody can have measured"},
        {"\"time_min\":0", "'time_min' is 0"},
        {"\"time_min\":1.5,\"time_max\":2", "'time_min' is 1.5, but 'time_median' is 1"},
        {"\"time_max\":0.5", "'time_median' is 1, but 'time_max' is 0.5"},
        {"\"time_mean\":3,\"time_max\":2", "'time_mean' is 3, but 'time_max' is 2"},
        {"\"time_median_high\":0.9", "'time_median' is 1, but 'time_median_high' is 0.9"},
        {"\"busy_time\":1.01,\"trace_time\":1", "'busy_time' is 1.01, but 'trace_time' is 1"},
        {"\"verify_error\":2e-5,\"verify_tolerance\":1e-5",
         "'verify_error' is 2e-05, but 'verify_tolerance' is 1e-05"},
        {"\"verify_element_error\":2,\"verify_element_tolerance\":1",
         "'verify_element_error' is 2"},
        {"\"status\":\"skipped\"", "a skipped record with 'time_median'"},
        {"\"time_median\":-1e308", "'time_median' is -1e+308, which nobody can have measured"},
        {"\"time_max\":1e308", "'time_max' is 1e+308"},
        {"\"wall_time\":-1e-9", "'wall_time' is -1e-09"},
        {"\"launches\":-1", "'launches' is -1"},
        {"\"samples\":-9223372036854775807", "'samples'"},
        {"\"energy\":-5", "'energy' is -5"},
        {"\"bytes_counted\":{\"l2\":-1}", "'bytes_counted' is -1"},
        {"\"flops_tensor\":{\"fp16\":-1}", "'flops_tensor' is -1"},
        {"\"sample\":[1,2,-3]", "'sample' is -3"},
        {"\"sample\":[1e10]", "'sample' is 1e+10"},
        {"\"kernels\":[{\"count\":1},{\"count\":-1}]", "kernel 2 of 2: 'count' is -1"},
        {"\"kernels\":[{\"time\":-1}]", "kernel 1 of 1: 'time' is -1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        char text[256];
        const char *name;
        json_t *value;
        record_init(&record);
        snprintf(text, sizeof text, "{%s}", cases[i].members);
        json_t *object = json_pack("{s:s,s:s,s:f}", "configuration", "?", "status", "measured",
                                   "time_median", 1.0);
        json_t *members = json_loads(text, 0, NULL);
        json_object_foreach(members, name, value) if (json_is_null(value))
            json_object_del(object, name);
        else json_object_set(object, name, value);
        json_decref(members);
        assert_ok(decode(object, &record, &failure));
        if (cases[i].says)
            assert_fails(record_check(&record, &failure), STATUS_SYSTEM, cases[i].says);
        else
            assert_ok(record_check(&record, &failure));
        json_decref(object);
        record_clear(&record);
    }
    struct record record;
    record_init(&record);
    strcpy(record.configuration, "?");
    record.time_min = INFINITY;
    assert_int_equal(record_check(&record, &failure), STATUS_SYSTEM);
}

/* Unknown members are ignored, long texts cut, bytes that are not UTF-8 replaced. */
TEST(unknown_members_and_long_texts_are_accepted)
{
    struct record record;
    record_init(&record);
    char long_text[5000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    json_t *object =
        json_pack("{s:s, s:s, s:i}", "status", "failed", "error", long_text, "not_yet_known", 1);
    assert_ok(decode(object, &record, &failure));
    assert_int_equal(strlen(record.error), sizeof record.error - 1);
    json_decref(object);
    memcpy(long_text + sizeof record.error - 2, "\xc3\xa4", 2); /* cut between characters */
    object = json_pack("{s:s, s:s}", "status", "failed", "error", long_text);
    assert_ok(decode(object, &record, &failure));
    assert_int_equal(strlen(record.error), sizeof record.error - 2);
    json_decref(object);

    strcpy(record.error, "caf\xe9");
    object = record_encode(&record);
    char *text = json_dumps(object, JSON_COMPACT);
    assert_says(text, "caf?");
    free(text);
    json_decref(object);
    record_clear(&record);
}

/* Members of the ranks replace the worker's; all other text stays as printed. */
TEST(a_record_is_completed)
{
    static const char text[] = "{\"status\":\"measured\", \"mood\" : 7,\"time_median\":1e-1,"
                               "\"label\":\"the worker's\",\"attempts\":9}";
    struct record record;
    record_init(&record);
    assert_ok(record_decode(json_text_of(text), &record, &failure));
    strcpy(record.label, "plan's");
    strcpy(record.device_key, "session/0");
    record.attempts = 2;
    char *complete = record_complete(text, &record, "net:1 a x2");
    assert_memory_equal(complete, text, strlen(text) - 1);
    assert_string_equal(complete + strlen(text) - 1,
                        ",\"device_key\":\"session/0\",\"job_id\":\"\",\"label\":\"plan's\","
                        "\"attempts\":2,\"listed\":\"net:1 a x2\"}");
    assert_ok(record_decode(json_text_of(complete), &record, &failure));
    assert_string_equal(record.label, "plan's");
    assert_int_equal(record.attempts, 2);
    json_t *object = json_loads(complete, 0, NULL); /* jansson uses the last members, too */
    assert_string_equal(json_string_value(json_object_get(object, "label")), "plan's");
    json_decref(object);
    free(complete);
    record_clear(&record);
}
