/* The list of chips, in each format, against the table that the theory of roofs comes from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip_list.h"
#include "model/chip.h"

static char *printed(enum table_format format)
{
    char *text;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    chip_list_print(format, stream);
    fclose(stream);
    return text;
}

static size_t chips_count(void)
{
    size_t count = 0;
    for (const struct chip *chip = chip_next(NULL); chip; chip = chip_next(chip))
        ++count;
    return count;
}

static void check_rate(const json_t *row, const char *key, double rate)
{
    const json_t *value = json_object_get(row, key);
    assert_non_null(value);
    if (isnan(rate))
        assert_true(json_is_null(value));
    else
        assert_true(json_number_value(value) == rate);
}

static void json_has_every_rate(void **state)
{
    (void)state;
    char *text = printed(TABLE_JSON);
    json_t *list = json_loads(text, 0, NULL);
    size_t i = 0;
    assert_int_equal(json_array_size(list), chips_count());
    for (const struct chip *chip = chip_next(NULL); chip; chip = chip_next(chip), ++i) {
        const json_t *row = json_array_get(list, i);
        const char *model = json_string_value(json_object_get(row, "model"));
        assert_true((model == NULL) == (chip->model == NULL));
        check_rate(row, "fp32_vector", chip->vector[PRECISION_FP32]);
        check_rate(row, "fp16_tensor", chip->tensor[PRECISION_FP16]);
        check_rate(row, "fp8_tensor", chip->tensor[PRECISION_FP8]);
        check_rate(row, "fp4_tensor", chip->tensor[PRECISION_FP4]);
        check_rate(row, "int8_tensor", chip->tensor[PRECISION_INT8]);
        assert_null(json_object_get(row, "tf32_vector")); /* no chip has such units */
    }
    json_decref(list);
    free(text);
}

static void lines_of_the_other_formats(void **state)
{
    static const struct {
        enum table_format format;
        const char *line;
    } rows[] = {
        {TABLE_CSV, "\"Volta\",\"7.0\",,32,64,128,0,0,0,512,0,0,0,0\n"},
        {TABLE_CSV, "\"Ada Lovelace\",\"8.9\",\"L40S\",2,128,128,128,,256,512,512,1024,0,1024\n"},
        {TABLE_MARKDOWN,
         "| Ampere | 8.0 | all | 32 | 64 | 256 | 128 | 64 | 512 | 1024 | 1024 | - | - | 2048 |\n"},
        {TABLE_MARKDOWN, " 64 | 2048 | 4096 | 4096 | 8192 | 16384 | 8192 |\n"},
        {TABLE_TEXT, "Ampere               8.6 A10                     "},
        {TABLE_TEXT, "      ?    256    512    512      -      -   1024\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char *text = printed(rows[i].format);
        if (!strstr(text, rows[i].line))
            fail_msg("no line '%s' in:\n%s", rows[i].line, text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_every_rate),
        cmocka_unit_test(lines_of_the_other_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
