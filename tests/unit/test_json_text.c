/* JSON read in place: values equal those of a parser, and nothing beyond the text is read. */

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "model/json_text.h"

TEST(members_are_found)
{
    static const char text[] = " { \"a\" : -1.5e3 , \"list\":[1,[2,\"]\"],{\"b\":3}],"
                               "\"b\":\"quote \\\" brace } \\u00e4\",\"empty\":[ ],\"c\":null,"
                               "\"i\":-12,\"i\":9223372036854775807}";
    const struct json_text object = json_text_of(text);
    char copy[64];
    double number = 0;
    int64_t integer = 0;
    assert_true(json_text_number(json_member(object, "a"), &number) && number == -1500);
    assert_false(json_text_integer(json_member(object, "a"), &integer));
    assert_true(json_text_integer(json_member(object, "i"), &integer));
    assert_true(integer == INT64_MAX); /* the last of two */
    assert_true(json_text_string(json_member(object, "b"), copy, sizeof copy));
    assert_string_equal(copy, "quote \" brace } \xc3\xa4");
    assert_true(
        json_text_string(json_member(object, "b"), copy, 18)); /* half a character is invalid */
    assert_string_equal(copy, "quote \" brace } ");
    assert_false(json_text_string(json_member(object, "a"), copy, sizeof copy));
    assert_false(json_text_number(json_member(object, "b"), &number));
    assert_false(json_text_number(json_member(object, "c"), &number));
    assert_null(json_member(object, "absent").at);
    assert_false(json_text_number(json_member(object, "absent"), &number));
}

TEST(elements_are_read_in_turn)
{
    static const char *const arrays[] = {"[]", "[ 1 ]", "[1,[2,\"]\"],{\"b\":3}]"};
    static const size_t counts[] = {0, 1, 3};
    for (size_t i = 0; i < 3; ++i) {
        struct json_reader reader = json_reader_array(json_text_of(arrays[i]));
        struct json_text element;
        size_t count = 0;
        while (json_reader_next(&reader, NULL, &element))
            ++count;
        assert_false(reader.broken);
        assert_int_equal(count, counts[i]);
    }
}

TEST(numbers_that_json_lacks_are_refused)
{
    static const char *const texts[] = {"[NaN]", "[nan]", "[0x10]", "[-]",  "[inf]",
                                        "[+1]",  "[.5]",  "[1e]",   "[1a]", "[-0x1]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        struct json_reader reader = json_reader_array(json_text_of(texts[i]));
        struct json_text element;
        double number;
        assert_true(json_reader_next(&reader, NULL, &element));
        if (json_text_number(element, &number))
            fail_msg("%s is taken for a number", texts[i]);
    }
}

TEST(texts_without_an_object_are_refused)
{
    static const char *const texts[] = {"",         "[]",
                                        "{",        "{\"a\"}",
                                        "{\"a\":}", "{\"a\":1,}",
                                        "{a:1}",    "{\"a\":1}x",
                                        "{}x",      "{\"a\":\"b}",
                                        "{\"a\"",   "{\"a\":\"b\\\"}",
                                        "{\"a\":[", "{\"a\":1 \"b\":2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        /* no NUL, so that a sanitizer notices reads beyond the text */
        size_t length = strlen(texts[i]);
        char *text = malloc(length + 1);
        assert_non_null(text);
        memcpy(text, texts[i], length);
        if (json_member((struct json_text){text, length}, "a").at)
            fail_msg("'%s' is taken for an object", texts[i]);
        struct json_reader reader = json_reader_object((struct json_text){text, length});
        struct json_text name, value;
        while (json_reader_next(&reader, &name, &value))
            ;
        assert_true(reader.broken);
        free(text);
    }
}
