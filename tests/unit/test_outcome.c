/* Outcomes as text and back; quantities of units and levels. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "model/field.h"
#include "model/outcome.h"
#include "model/quantity.h"

static const char *text_of(const struct outcome *outcome)
{
    static char text[OUTCOME_TEXT];
    outcome_format(outcome, counted_word, text);
    return text;
}

TEST(words_and_reasons_round_trip)
{
    static const struct {
        const char *text, *reason;
        enum counted code;
    } rows[] = {
        {"counted", "", COUNTED_YES},
        {"off", "", COUNTED_OFF},
        {"refused: no: never; ask", "no: never; ask", COUNTED_REFUSED},
        {"incomplete: 2 ranges dropped", "2 ranges dropped", COUNTED_INCOMPLETE},
        {"counted, but not by kernel: no trace", "no trace", COUNTED_NOT_BY_KERNEL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct outcome outcome;
        assert_true(outcome_parse(rows[i].text, counted_word, &outcome));
        assert_int_equal(outcome.code, rows[i].code);
        assert_string_equal(outcome.reason, rows[i].reason);
        assert_string_equal(text_of(&outcome), rows[i].text);
    }
}

TEST(unknown_words_are_refused)
{
    static const char *const texts[] = {
        "", "count", "counted:", "countedly", "offer", "Refused: x"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct outcome outcome = {.code = COUNTED_OFF, .reason = "as it was"};
        assert_false(outcome_parse(texts[i], counted_word, &outcome));
        assert_int_equal(outcome.code, COUNTED_OFF);
        assert_string_equal(outcome.reason, "as it was");
    }
}

TEST(a_missing_outcome_has_no_text)
{
    struct outcome outcome;
    outcome_set(&outcome, OUTCOME_MISSING, NULL);
    assert_string_equal(text_of(&outcome), "");
    outcome_set(&outcome, COUNTED_REFUSED, "%s", "why; what to do");
    struct outcome brief;
    outcome_set_brief(&brief, &outcome);
    assert_string_equal(text_of(&brief), "refused: why");
    assert_false(outcome_same(&brief, &outcome));
    assert_true(outcome_same(&outcome, &outcome));
}

/* The room ends within a character of two bytes. */
TEST(a_long_reason_is_cut_between_characters)
{
    char text[OUTCOME_REASON + 32] = "refused: ";
    struct outcome outcome;
    memset(text + 9, 'x', OUTCOME_REASON - 2);
    strcpy(text + 9 + OUTCOME_REASON - 2, "\xc3\xa9 and more");
    assert_true(outcome_parse(text, counted_word, &outcome));
    assert_int_equal(strlen(outcome.reason), OUTCOME_REASON - 2);
    assert_int_equal(outcome.reason[OUTCOME_REASON - 3], 'x');
}

struct holder {
    struct outcome counters;
};
static const struct field table[] = {
    FIELD_OF_OUTCOME(struct holder, counters, counted_word, "what became of it"),
    {0},
};

static enum status decode(json_t *object, struct holder *holder, struct error *error)
{
    char *text = json_dumps(object, JSON_COMPACT);
    enum status status = fields_decode(table, json_text_of(text), holder, error);
    free(text);
    return status;
}

TEST(as_a_field_it_is_its_text)
{
    struct holder holder, copy;
    fields_clear(table, &holder);
    json_t *object = fields_encode(table, &holder);
    assert_null(json_object_get(object, "counters"));
    assert_ok(decode(object, &copy, &failure));
    assert_true(copy.counters.code == FIELD_MISSING);
    json_decref(object);

    outcome_set(&holder.counters, COUNTED_REFUSED, "%s", "no; ask");
    object = fields_encode(table, &holder);
    assert_string_equal(json_string_value(json_object_get(object, "counters")), "refused: no; ask");
    assert_ok(decode(object, &copy, &failure));
    assert_true(outcome_same(&holder.counters, &copy.counters));
    json_object_set_new(object, "counters", json_string("perhaps"));
    assert_int_equal(decode(object, &copy, &failure), STATUS_SYSTEM);
    json_object_set_new(object, "counters", json_integer(1));
    assert_int_equal(decode(object, &copy, &failure), STATUS_SYSTEM);
    json_decref(object);
}

TEST(units_have_their_quantities)
{
    assert_int_equal(quantity_of(PRECISION_FP16, true), QUANTITY_TENSOR_FP16);
    assert_int_equal(quantity_of(PRECISION_FP16, false), QUANTITY_VECTOR_FP16);
    assert_int_equal(quantity_of(PRECISION_BF16, false), QUANTITY_VECTOR_FP16);
    assert_int_equal(quantity_of(PRECISION_TF32, false), QUANTITY_COUNT);
    assert_int_equal(quantity_of(PRECISION_FP32, true), QUANTITY_COUNT);
}

TEST(bytes_are_read_and_written)
{
    double values[QUANTITY_COUNT], bytes[LEVEL_COUNT];
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        values[i] = i;
    quantity_bytes(values, bytes);
    assert_true(bytes[LEVEL_DRAM] == QUANTITY_DRAM_READ + QUANTITY_DRAM_WRITE);
    assert_true(bytes[LEVEL_L1] == QUANTITY_L1_READ + QUANTITY_L1_WRITE);
    assert_true(isnan(bytes[LEVEL_L3]));
    values[QUANTITY_L2_READ] = NAN;
    quantity_bytes(values, bytes);
    assert_true(isnan(bytes[LEVEL_L2]));
}
