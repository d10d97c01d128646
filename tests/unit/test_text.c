/* UTF-8 that is safe on a terminal, log lines, tails of output, and words of commands. */

#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/command_line.h"

static const struct {
    const char *text, *seen;
} hostile[] = {
    {"plain text", "plain text"},
    {"", ""},
    {"a\tb", "a\tb"},
    {"Gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80",
     "Gr\xc3\xb6\xc3\x9f"
     "e \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\x1b[2J\x1b]0;title\x07", "?[2J?]0;title?"},
    {"a\rb\bc\x7f", "a?b?c?"},
    {"two\nlines", "two?lines"},
    {"\x9b"
     "31m",
     "?31m"}, /* CSI as one byte */
    {"\xc2\x9b"
     "31m",
     "?31m"}, /* CSI as UTF-8 */
    {"\xc2\x80\xc2\x9f\xc2\xa0", "??\xc2\xa0"},
    {"a\xe2\x80\xae"
     "b",
     "a?b"},                          /* U+202E */
    {"\xe2\x80\xa6", "\xe2\x80\xa6"}, /* an ellipsis is no control character */
    {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "???"},
    {"\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "??\xe2\x81\xaa"},
    {"\xe2\x80\xa8\xe2\x80\xa9", "??"}, /* ends of lines */
    {"\xc0\xaf\xc1\x9b", "????"},       /* overlong */
    {"\xe0\x80\x9b\xf0\x80\x80\x9b", "???????"},
    {"\xed\xa0\x80", "???"}, /* a surrogate by itself */
    {"\xf4\x90\x80\x80\xf8\x88", "??????"},
    {"caf\xe9", "caf?"},
    {"cut \xe2\x82", "cut ??"},
    {"cut \xf0\x9f\x98", "cut ???"},
    {"\x80\xbf", "??"},
};

/* The text ends at the end of its memory, so that a sanitizer detects reads beyond. */
TEST(hostile_texts_are_cleaned)
{
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; ++i) {
        size_t length = strlen(hostile[i].text), expected = strlen(hostile[i].seen);
        char *text = malloc(length + (length == 0));
        assert_non_null(text);
        memcpy(text, hostile[i].text, length);
        assert_int_equal(utf8_clean(text, length), expected);
        assert_memory_equal(text, hostile[i].seen, expected);
        assert_int_equal(utf8_clean(text, expected), expected);
        assert_memory_equal(text, hostile[i].seen, expected);
        free(text);
    }
}

TEST(clean_lines_keep_newlines)
{
    char text[] = "a\n\x1b\xe2\x80\xae"
                  "b\n\0"
                  "c";
    assert_int_equal(utf8_clean_lines(text, sizeof text - 1), 8);
    assert_memory_equal(text, "a\n??b\n?c", 8);
}

TEST(every_pair_of_bytes_becomes_text)
{
    for (int pair = 0; pair < 1 << 16; ++pair) {
        char text[] = {'x', (char)(pair >> 8), (char)pair, 'y'};
        size_t length = utf8_clean(text, sizeof text);
        assert_in_range(length, 3, sizeof text);
        for (size_t i = 0, bytes; i < length; i += bytes) {
            bytes = utf8_character(text + i, length - i);
            assert_true(bytes > 0);
            assert_false(bytes == 2 && memcmp(text + i, "\xc2\xa0", 2) < 0);
        }
    }
}

TEST(print_keeps_newlines_of_its_format)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    utf8_print(stream, "\n%s: %d\n", "\nfalse\x1b[1m\n", 5);
    utf8_print(stream, "\n");
    utf8_print(stream, "%s", "\n");
    fclose(stream);
    assert_string_equal(text, "\n?false?[1m?: 5\n\n?");
    free(text);
}

/* A late reader learns how many messages are missing. */
TEST(log_does_not_wait_for_its_reader)
{
    enum { ROOM = 4096 };
    char text[ROOM] = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, ROOM), ROOM);
    assert_int_equal(write(ends[1], text, ROOM), ROOM);
    FILE *stream = fdopen(ends[1], "w");
    struct log log = log_create(stream, LOG_INFO, 0);
    log_print(&log, LOG_INFO, "unread");
    log_print(&log, LOG_INFO, "unread");
    assert_int_equal(read(ends[0], text, ROOM), ROOM);
    log_print(&log, LOG_INFO, "read");
    fclose(log.stream);
    fclose(stream);
    text[read(ends[0], text, ROOM - 1)] = '\0';
    assert_says(text, "2 messages are missing here");
    assert_null(strstr(text, "unread"));
    close(ends[0]);
}

TEST(log_lines_are_clean)
{
    char *text;
    size_t size;
    struct error error = {"sw\xe2\x80\xae\x9b.ini: no\n such file"};
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    struct log log = {.stream = stream, .level = LOG_INFO};
    log_print(&log, LOG_WARNING, "%s", "\x1b[31mworker\nroofsweep: all is well");
    log_error(&log, &error);
    fclose(stream);
    /* time and host */
    assert_int_equal(strncmp(text, "roofsweep: 20", 13), 0);
    const char *said = strstr(text, ": warning: ");
    assert_non_null(said);
    assert_string_equal(said, ": warning: ?[31mworker?roofsweep: all is well\n"
                              "roofsweep: sw??.ini: no? such file\n");
    free(text);
}

/* ---- the last output of a process ---- */

TEST(tail_has_the_output)
{
    struct tail tail = {.length = 0};
    tail_join(&tail);
    assert_string_equal(tail.text, "");
    tail_append(&tail, "out of ", 7);
    tail_append(&tail, "memory", 6);
    assert_string_equal(tail.text, "out of memory");
    assert_int_equal(tail.length, 13);
}

TEST(tail_joins_lines)
{
    struct tail tail = {.length = 0};
    tail_append(&tail, "a\tb\nc\0d\n\0\n", 11);
    tail_join(&tail);
    assert_string_equal(tail.text, "a b|c d");
    assert_int_equal(tail.length, 7);
}

/* Small pieces, a piece that is too long, and a piece that just fits. */
TEST(tail_keeps_the_last_bytes)
{
    static char text[3 * TAIL_MAX];
    struct tail tail = {.length = 0};
    for (int i = 0; i < 3 * TAIL_MAX; ++i)
        text[i] = (char)('a' + i % 26);
    for (int i = 0; i < 3 * TAIL_MAX; i += 7)
        tail_append(&tail, text + i, i + 7 < 3 * TAIL_MAX ? 7 : (size_t)(3 * TAIL_MAX - i));
    assert_int_equal(tail.length, TAIL_MAX);
    assert_memory_equal(tail.text, text + 2 * TAIL_MAX, TAIL_MAX);
    tail_append(&tail, text, sizeof text - 1);
    assert_memory_equal(tail.text, text + 2 * TAIL_MAX - 1, TAIL_MAX);
    tail_append(&tail, text, TAIL_MAX);
    assert_memory_equal(tail.text, text, TAIL_MAX);
    assert_int_equal(tail.text[TAIL_MAX], '\0');
}

/* ---- the words of a command ---- */

static void words_join(const struct command_line *line, char text[256])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < line->count; ++i)
        used += (size_t)snprintf(text + used, 256 - used, "%s|", line->words[i]);
    assert_null(line->words[line->count]);
}

TEST(words_are_split_as_a_shell_would)
{
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
        char words[256];
        enum status status = command_line_split(rows[i].text, &line, &failure);
        assert_int_equal(status, rows[i].words ? STATUS_OK : STATUS_USAGE);
        if (status)
            continue;
        words_join(&line, words);
        assert_string_equal(words, rows[i].words);
        command_line_clear(&line);
    }
}

TEST(appended_words_split_again)
{
    static const char *const words[] = {"plain", "",   "a b", "it's",   "\"",      "\\",
                                        "A=x y", "A=", "=",   "$(x)=1", "\xc3\xa4"};
    char text[256] = "";
    struct command_line line;
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        assert_true(command_line_append(text, sizeof text, words[i]));
    assert_ok(command_line_split(text, &line, &failure));
    assert_int_equal(line.count, sizeof words / sizeof *words);
    for (size_t i = 0; i < line.count; ++i)
        assert_string_equal(line.words[i], words[i]);
    command_line_clear(&line);
    assert_says(text, "A='x y'");
}

TEST(missing_room_changes_nothing)
{
    char text[8] = "abc";
    assert_false(command_line_append(text, sizeof text, "defgh"));
    assert_string_equal(text, "abc");
    assert_false(command_line_append(text, sizeof text, "a b"));
    assert_string_equal(text, "abc");
    assert_true(command_line_append(text, sizeof text, "def"));
    assert_string_equal(text, "abc def");
}
