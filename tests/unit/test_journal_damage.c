/* Torn and damaged journals: whole lines count, damage is reported. */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "journal_bench.h"

static size_t newlines(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; ++i)
        count += text[i] == '\n';
    return count;
}

static void append_and_read(const char *path, size_t rows)
{
    bool torn;
    struct journal *journal = open_journal(path, JOURNAL_RESUME);
    append(journal, "record", record_entry(9, "", 9));
    journal_close(journal);
    struct results *results = read_journal(path, &torn);
    assert_false(torn);
    assert_int_equal(results->row_count, rows);
    assert_true(record_of(results, rows - 1)->time_median == 9);
    results_destroy(results);
}

/* A kill can leave any part of the file. All whole lines count. */
FOLDER_TEST(test_every_truncation)
{
    const char *path = path_of(state);
    size_t length;
    write_records(path, 3);
    char *text = file_load(path, &length);
    for (size_t cut = 0; cut <= length; ++cut) {
        bool torn;
        size_t complete = newlines(text, cut);
        file_store(path, text, cut);
        struct results *results = read_journal(path, &torn);
        assert_int_equal(results->row_count, complete);
        assert_int_equal(torn, cut > 0 && text[cut - 1] != '\n');
        results_destroy(results);
        append_and_read(path, complete + 1);
    }
    free(text);
}

/* A replaced journal keeps its lines until the first new line. Meanwhile no other job opens it. */
FOLDER_TEST(test_replace)
{
    const char *path = path_of(state);
    struct journal *second = NULL;
    bool torn;
    write_records(path, 5);
    struct journal *journal = open_journal(path, JOURNAL_REPLACE);
    assert_fails(journal_open(path, JOURNAL_REPLACE, &second, &failure), STATUS_USAGE, "in use");
    struct results *results = read_journal(path, &torn);
    assert_int_equal(results->row_count, 5);
    results_destroy(results);
    append(journal, "record", record_entry(9, "", 9));
    append(journal, "record", record_entry(8, "", 8));
    journal_close(journal);
    results = read_journal(path, &torn);
    assert_false(torn);
    assert_int_equal(results->row_count, 2);
    assert_true(record_of(results, 0)->time_median == 9);
    results_destroy(results);
}

static void assert_corrupt(const char *path, size_t line)
{
    struct results *results = NULL;
    bool torn;
    char place[128];
    snprintf(place, sizeof place, "%s:%zu: ", path, line);
    assert_int_equal(journal_read(path, &results, &torn, &failure), STATUS_SYSTEM);
    assert_null(results);
    if (strstr(failure.text, place) != failure.text)
        fail_msg("'%s' does not name %s", failure.text, place);
}

/* A changed byte in a whole line is reported with the line's number. */
FOLDER_TEST(test_every_flipped_byte)
{
    const char *path = path_of(state);
    size_t length;
    write_records(path, 3);
    char *text = file_load(path, &length);
    for (size_t i = 0; i < length - 1; ++i) {
        if (text[i] == '\n')
            continue; /* joins two lines: see test_joined_and_foreign_lines */
        text[i] ^= 1;
        file_store(path, text, length);
        assert_corrupt(path, newlines(text, i) + 1);
        text[i] ^= 1;
    }
    free(text);
}

FOLDER_TEST(test_joined_and_foreign_lines)
{
    const char *path = path_of(state);
    static const char *const foreign[] = {"\n", "{}\n", "hello\n", "{\"xxh3\":\"\n",
                                          "\xff\xfe\x01 binary\n"};
    struct results *results;
    bool torn;
    size_t length;
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; ++i) {
        file_store(path, foreign[i], strlen(foreign[i]));
        assert_corrupt(path, 1);
    }
    assert_fails(journal_read(path, &results, &torn, &failure), STATUS_SYSTEM,
                 "no line of a roofsweep journal");
    unlink(path);
    write_records(path, 3);
    char *text = file_load(path, &length);
    *strchr(text, '\n') = ' ';
    file_store(path, text, length);
    assert_corrupt(path, 1);
    free(text);
}

/* Reads all lines except one, two or many damaged lines in the middle. */
FOLDER_TEST(test_salvage)
{
    const char *path = path_of(state);
    size_t length;
    write_records(path, 20);
    char *text = file_load(path, &length), *line = text, numbers[JOURNAL_DAMAGE_TEXT];
    for (size_t damaged = 1; damaged <= 10; ++damaged) {
        struct journal_damage damage;
        struct results *results;
        bool torn;
        line = strchr(line, '\n') + 1; /* the first line stays */
        line[40] ^= 1;
        file_store(path, text, length - 5);
        assert_ok(journal_salvage(path, &results, &damage, &failure));
        assert_true(damage.torn);
        assert_int_equal(damage.count, damaged);
        assert_int_equal(results->row_count, 19 - damaged);
        assert_int_equal(damage.first[0], 2);
        results_destroy(results);
        journal_damage_format(&damage, numbers);
        assert_fails(journal_read(path, &results, &torn, &failure), STATUS_SYSTEM, numbers);
        assert_says(failure.text, "--skip-damaged");
        assert_string_equal(numbers, damaged == 1    ? "line 2"
                                     : damaged == 2  ? "lines 2, 3"
                                     : damaged == 10 ? "lines 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
                                                     : numbers);
    }
    free(text);
}

/* Messages distinguish foreign files, newer journals and damaged lines, also in salvage. */
FOLDER_TEST(test_three_causes)
{
    const char *path = path_of(state);
    struct journal_damage damage;
    struct results *results = NULL;
    size_t length;
    static const char foreign[] = "[conv2d]\nbatch = 1\n";
    file_store(path, foreign, strlen(foreign));
    assert_false(journal_recognised(path));
    assert_fails(journal_salvage(path, &results, &damage, &failure), STATUS_SYSTEM,
                 "no line of a roofsweep journal");

    unlink(path);
    write_records(path, 2);
    assert_true(journal_recognised(path));
    char *text = file_load(path, &length), *start = text;
    text[3] ^= 1; /* damages the frame of the first line; the second line identifies the journal */
    file_store(path, text, length);
    assert_corrupt(path, 1);
    assert_ok(journal_salvage(path, &results, &damage, &failure));
    assert_int_equal(results->row_count, 1);
    results_destroy(results);
    free(start);

    unlink(path);
    write_records(path, 1);
    struct journal *journal = open_journal(path, JOURNAL_RESUME);
    append(journal, "counters", json_pack("{s:i}", "a", 1));
    journal_close(journal);
    assert_corrupt(path, 2);
    assert_fails(journal_salvage(path, &results, &damage, &failure), STATUS_SYSTEM,
                 "a newer version");
}

/* Recomputes the checksum of a changed line. */
static void line_seal(char *line)
{
    enum { CHECKSUM_AT = 9, CHECKED_AT = 9 + 16 + 9 };
    char checksum[17], *end = strchr(line, '\n');
    snprintf(checksum, sizeof checksum, "%016" PRIx64,
             XXH3_64bits(line + CHECKED_AT, (size_t)(end - line) - CHECKED_AT - 1));
    memcpy(line + CHECKSUM_AT, checksum, 16);
}

/* The first line has the format; a later format is refused. */
FOLDER_TEST(test_format)
{
    const char *path = path_of(state);
    struct results *results;
    bool torn;
    size_t length;
    write_records(path, 2);
    char *text = file_load(path, &length), *format = strstr(text, "\"format\":1,");
    assert_non_null(format);
    assert_true(format < strchr(text, '\n'));
    assert_null(strstr(format + 1, "\"format\""));
    format[strlen("\"format\":")] = '2';
    line_seal(text);
    file_store(path, text, length);
    assert_fails(journal_read(path, &results, &torn, &failure), STATUS_SYSTEM, "a newer version");

    format[strlen("\"format\":")] = '0';
    line_seal(text);
    file_store(path, text, length);
    assert_fails(journal_read(path, &results, &torn, &failure), STATUS_SYSTEM,
                 "a journal of format 0");

    /* Journals without a format are format 1. */
    size_t width = strlen("\"format\":1,");
    memmove(format, format + width, strlen(format + width) + 1);
    line_seal(text);
    file_store(path, text, length - width);
    results = read_journal(path, &torn);
    assert_int_equal(results->row_count, 2);
    results_destroy(results);
    free(text);
}

/* A valid checksum does not admit impossible numbers. */
FOLDER_TEST(test_absurd_entries)
{
    static const struct {
        const char *kind, *entry;
    } cases[] = {
        {"record", "{\"status\":\"measured\",\"device_key\":\"0\",\"time_median\":-1e-6}"},
        {"record", "{\"status\":\"measured\",\"device_key\":\"0\",\"time_median\":0}"},
        {"record", "{\"status\":\"failed\",\"attempts\":-9223372036854775808}"},
        {"record", "{\"status\":\"failed\"}"},
        {"session", "{\"start_time\":-1e300}"},
        {"device", "{\"key\":\"0\",\"uuid\":\"GPU-1\",\"peak_vector\":{\"fp32\":0}}"},
        {"device", "{\"key\":\"0\",\"uuid\":\"GPU-1\",\"roofs\":[{\"name\":\"dram read\","
                   "\"condition\":\"alone\",\"bandwidth\":1e12,\"verdict\":77}]}"},
        {"record", "{\"status\":\"failed\",\"configuration\":\"?\",\"config_hash\":\"00\"}"},
        {"device", "{}"},
        {"device", "{\"uuid\":\"GPU-1\"}"},
        {"device", "{\"key\":\"0\",\"uuid\":\"GPU-1\",\"roofs\":[{}]}"},
    };
    const char *path = path_of(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        unlink(path);
        write_records(path, 1);
        struct journal *journal = open_journal(path, JOURNAL_RESUME);
        append(journal, cases[i].kind, json_loads(cases[i].entry, 0, NULL));
        journal_close(journal);
        assert_corrupt(path, 2);
    }
}

/* A limit of the file size simulates a full disk: the partial line is removed. */
FOLDER_TEST(test_failed_write)
{
    const char *path = path_of(state);
    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    struct error error;
    struct stat info;
    struct rlimit before;
    append(journal, "record", record_entry(1, "", 1));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit limit = {(rlim_t)info.st_size + 50, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum status status = journal_append(journal, "record", record_entry(2, "", 2), &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, STATUS_SYSTEM);
    assert_says(error.text, path);
    assert_says(error.text, strerror(EFBIG));

    append(journal, "record", record_entry(3, "", 3)); /* the limit is gone */
    journal_close(journal);
    bool torn;
    struct results *results = read_journal(path, &torn);
    assert_false(torn);
    assert_int_equal(results->row_count, 2);
    assert_true(record_of(results, 1)->time_median == 3);
    results_destroy(results);
}

/* A hole has no newline and takes no disk space. */
FOLDER_TEST(test_line_without_end)
{
    const char *path = path_of(state);
    struct results *results = NULL;
    char expected[256];
    bool torn;
    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    append(journal, "record", record_entry(1, "", 1e-3));
    journal_close(journal);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size + JOURNAL_LINE_BYTES + 1), 0);
    assert_int_equal(journal_read(path, &results, &torn, &failure), STATUS_SYSTEM);
    snprintf(expected, sizeof expected,
             "%s:2: a line of more than 67108864 bytes, which no journal of roofsweep has; delete "
             "the line, ",
             path);
    assert_memory_equal(failure.text, expected, strlen(expected));
    assert_null(results);
    assert_fails_with(journal_read("/dev/zero", &results, &torn, &failure), STATUS_USAGE,
                      "/dev/zero: it is no regular file");
    /* The longest line, without a newline: torn. */
    assert_int_equal(truncate(path, info.st_size + JOURNAL_LINE_BYTES), 0);
    results = read_journal(path, &torn);
    assert_true(torn);
    assert_int_equal(results->row_count, 1);
    results_destroy(results);
    append_and_read(path, 2);
}
