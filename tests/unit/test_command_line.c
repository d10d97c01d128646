#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/command_line.h"

/* The words with a | behind each. */
static void words_join(const struct command_line *line, char text[256])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < line->count; ++i)
        used += (size_t)snprintf(text + used, 256 - used, "%s|", line->words[i]);
    assert_null(line->words[line->count]);
}

static void words_are_split_as_a_shell_would(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words; /* NULL: refused */
    } rows[] = {
        {"", ""},
        {" \t ", ""},
        {"a  b\tc ", "a|b|c|"},
        {"'a b' \"c d\"", "a b|c d|"},
        {"a'b c'd\"e f\"", "ab cde f|"},
        {"'' \"\"", "||"},
        {"'\\' \"\\a\\\\\\\"\" \\'", "\\|\\a\\\"|'|"},
        {"a\\ b", "a b|"},
        {"$HOME * > | ; &", "$HOME|*|>|||;|&|"},
        {"'a", NULL},
        {"\"a\\\"", NULL},
        {"a\\", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct command_line line;
        struct error error;
        char words[256];
        enum status status = command_line_split(rows[i].text, &line, &error);
        assert_int_equal(status, rows[i].words ? STATUS_OK : STATUS_USAGE);
        if (status)
            continue;
        words_join(&line, words);
        assert_string_equal(words, rows[i].words);
        command_line_clear(&line);
    }
}

static void what_is_appended_is_split_again(void **state)
{
    (void)state;
    static const char *const words[] = {"plain", "",   "a b", "it's",   "\"",      "\\",
                                        "A=x y", "A=", "=",   "$(x)=1", "\xc3\xa4"};
    char text[256] = "";
    struct command_line line;
    struct error error;
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        assert_true(command_line_append(text, sizeof text, words[i]));
    assert_int_equal(command_line_split(text, &line, &error), STATUS_OK);
    assert_int_equal(line.count, sizeof words / sizeof *words);
    for (size_t i = 0; i < line.count; ++i)
        assert_string_equal(line.words[i], words[i]);
    command_line_clear(&line);
    assert_non_null(strstr(text, "A='x y'"));
}

static void what_has_no_room_changes_nothing(void **state)
{
    (void)state;
    char text[8] = "abc";
    assert_false(command_line_append(text, sizeof text, "defgh"));
    assert_string_equal(text, "abc");
    assert_false(command_line_append(text, sizeof text, "a b"));
    assert_string_equal(text, "abc");
    assert_true(command_line_append(text, sizeof text, "def"));
    assert_string_equal(text, "abc def");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_split_as_a_shell_would),
        cmocka_unit_test(what_is_appended_is_split_again),
        cmocka_unit_test(what_has_no_room_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
