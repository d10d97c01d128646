/* Advice: the rules that the build writes into the program say of made-up rows what tests/data/advice_examples.json has;
 * tests/postproc/rows.sh asks the same of Python. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "results/row_values.h"
#include "sample.h"

#define EXAMPLES TEST_DATA_DIR "/advice_examples.json"

/* An advice_lookup of a JSON object. */
static bool json_value(const void *row, const char *name, const char *level,
                       struct advice_value *value)
{
    const json_t *found = json_object_get(row, name);
    if (*level)
        found = json_object_get(found, level);
    *value = (struct advice_value){"", NAN};
    if (json_is_string(found))
        snprintf(value->word, sizeof value->word, "%s", json_string_value(found));
    else if (json_is_number(found))
        value->number = json_number_value(found);
    return found != NULL;
}

static struct advice *rules_of(void)
{
    struct advice *advice = NULL;
    struct error error;
    assert_ok(advice_create(&advice, &error), &error);
    return advice;
}

static void says(const struct advice *advice, const char *limiter, const json_t *row,
                 char text[ADVICE_TEXT])
{
    advice_sentence(advice, limiter, json_value, row, text);
}

/* With `without` the row's rule no longer holds, so that the sentence is another. */
static void examples_are_said(void **state)
{
    (void)state;
    struct advice *advice = rules_of();
    json_t *examples = json_load_file(EXAMPLES, 0, NULL), *example;
    size_t i;
    assert_true(json_array_size(examples) > 20);
    json_array_foreach(examples, i, example)
    {
        const char *limiter = json_string_value(json_object_get(example, "limiter"));
        const char *expected = json_string_value(json_object_get(example, "sentence"));
        json_t *row = json_object_get(example, "row"),
               *without = json_object_get(example, "without");
        char text[ADVICE_TEXT];
        says(advice, limiter, row, text);
        assert_string_equal(text, expected);
        if (json_object_size(without) == 0)
            continue;
        json_object_update(row, without);
        says(advice, limiter, row, text);
        assert_string_not_equal(text, expected);
    }
    json_decref(examples);
    advice_destroy(advice);
}

static double number_of(const struct row_values *values, const char *name, const char *level)
{
    struct advice_value value;
    assert_true(row_value(values, name, level, &value));
    assert_string_equal(value.word, "");
    return value.number;
}

static const char *word_of_row(const struct row_values *values, const char *name,
                               struct advice_value *value)
{
    assert_true(row_value(values, name, "", value));
    assert_true(isnan(value->number));
    return value->word;
}

/* The names are those of the file: parameters, measured and derived values. */
static void rows_know_the_file_s_names(void **state)
{
    (void)state;
    struct record record = sample_record("conv2d batch=8 kernel=3 precision=fp16", "a", "none", 0);
    struct device device;
    struct advice_value value;
    device_init(&device);
    snprintf(device.kind, sizeof device.kind, "cuda");
    record.launches = 3;
    record.unit = UNIT_TENSOR;
    record.bytes_counted[LEVEL_L2] = 7;
    record.workspace = NAN;
    outcome_set(&record.counters, COUNTED_REFUSED, "no");
    const struct row_values values = row_values_of(&record, &device);
    assert_true(number_of(&values, "batch", "") == 8);
    assert_true(number_of(&values, "launches", "") == 3);
    assert_true(number_of(&values, "bytes_counted", "l2") == 7);
    assert_true(isnan(number_of(&values, "workspace", "")));
    assert_string_equal(word_of_row(&values, "config_precision", &value), "fp16");
    assert_string_equal(word_of_row(&values, "config_algorithm", &value), "auto");
    assert_string_equal(word_of_row(&values, "unit", &value), "tensor");
    assert_string_equal(word_of_row(&values, "counters", &value), "refused: no");
    assert_string_equal(word_of_row(&values, "device_kind", &value), "cuda");
    assert_true(row_value(&values, "unit_note", "", &value));
    assert_false(row_value(&values, "no_such_variable", "", &value));
    assert_false(row_value(&values, "bytes_counted", "l9", &value));
    assert_false(row_value(&values, "launches", "l2", &value));
    record_clear(&record);
}

/* A program's axes count as the parameters whose names they have. */
static void programs_have_axes(void **state)
{
    (void)state;
    struct record record =
        sample_record("program axes=\"batch=4 layout=nhwc\" command=\"./a\"", "a", "none", 0);
    struct device device;
    struct advice_value value;
    device_init(&device);
    const struct row_values values = row_values_of(&record, &device);
    assert_true(number_of(&values, "batch", "") == 4);
    assert_string_equal(word_of_row(&values, "layout", &value), "nhwc");
    assert_false(row_value(&values, "filters", "", &value));
    record_clear(&record);
}

static void other_texts_are_no_rules(void **state)
{
    (void)state;
    static const char *const texts[] = {"[rule x]\ntext = a\n", "[cause]\ntext = a\n", "text = a\n",
                                        "no rule\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct advice *advice = NULL;
        struct error error;
        assert_int_equal(advice_parse(texts[i], strlen(texts[i]), &advice, &error), STATUS_USAGE);
        assert_null(advice);
    }
}

/* Whatever a rule says, the sentence is text within its room. */
static void odd_rules_do_no_harm(void **state)
{
    (void)state;
    static const char rules[] =
        "[constant round]\nof = round\n[cause unknown]\nwhen = round & a % 0\ntext = never\n"
        "[cause unknown open]\ntext = {a {a} } {} {a: } {word: %} {round} {a / word\n"
        "[try one]\nagainst = unknown\nwhen = & = & a > b\ntext = never\n";
    struct advice *advice = NULL;
    struct error error;
    char text[ADVICE_TEXT];
    json_t *row = json_pack("{s:i, s:s}", "a", 1, "word", "w");
    assert_ok(advice_parse(rules, sizeof rules - 1, &advice, &error), &error);
    says(advice, "compute", row, text);
    assert_null(strstr(text, "never"));
    assert_true(text[strlen(text) - 1] == '.');
    json_decref(row);
    advice_destroy(advice);
    advice_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_are_said),    cmocka_unit_test(rows_know_the_file_s_names),
        cmocka_unit_test(programs_have_axes),   cmocka_unit_test(other_texts_are_no_rules),
        cmocka_unit_test(odd_rules_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
