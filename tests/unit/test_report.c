/* The table of the sample sweep must be tests/data/golden_report.txt to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "results/report.h"
#include "sample.h"

#define GOLDEN TEST_DATA_DIR "/golden_report.txt"

static char *report_text(const struct results *results)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    report_print(results, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void test_golden(void **state)
{
    (void)state;
    char folder[] = "/tmp/roofsweep-report-XXXXXX", journal[64], golden[8192] = "";
    assert_non_null(mkdtemp(folder));
    snprintf(journal, sizeof journal, "%s/journal", folder);
    struct results *results = sample_results(journal);
    assert_int_equal(unlink(journal) + rmdir(folder), 0);
    FILE *stream = fopen(GOLDEN, "r");
    assert_non_null(stream);
    assert_true(fread(golden, 1, sizeof golden - 1, stream) > 0);
    fclose(stream);
    char *text = report_text(results);
    assert_string_equal(text, golden);
    free(text);
    results_destroy(results);
}

/* A sweep of many rows ends in a table that says what it leaves out; one without rows is no error.
 */
static void test_sizes(void **state)
{
    (void)state;
    struct results *results = results_create();
    struct error error;
    char *text = report_text(results);
    assert_null(strstr(text, "configurations")); /* roofs alone */
    free(text);
    for (int i = 0; i < 1000; ++i) {
        struct record record;
        char line[64];
        snprintf(line, sizeof line, "lstm batch=%d", i + 1);
        record = sample_record(line, "lstm", "none", 0);
        record.status = RECORD_FAILED;
        snprintf(record.error, sizeof record.error, "reason %d", i % 30);
        assert_ok(results_add_record(results, &record, &error), &error);
    }
    text = report_text(results);
    assert_non_null(strstr(text, "... and 800 more rows"));
    assert_non_null(strstr(text, "1000 configurations: 0 measured, 0 skipped, 1000 failed"));
    assert_non_null(strstr(text, "failed: lstm batch=1 and 33 more: reason 0\n"));
    assert_non_null(strstr(text, "... and more reasons"));
    free(text);
    results_destroy(results);
}

/* Names as long as those of a zipped conv2d still leave the columns in line. */
static void test_long_names(void **state)
{
    (void)state;
    struct results *results = results_create();
    struct error error;
    for (int i = 1; i <= 2; ++i) {
        char line[128];
        snprintf(line, sizeof line,
                 "conv2d batch=%d channels=%d filters=%d height=%d kernel=%d width=%d cache=%s",
                 100 * i, 256 * i, 256 * i, 112 * i, i, 112 * i, i == 1 ? "hot" : "cold");
        struct record record = sample_record(line, "resnet", "none", 0);
        record.status = RECORD_SKIPPED;
        assert_ok(results_add_record(results, &record, &error), &error);
    }
    char *text = report_text(results);
    size_t head = strcspn(text, "\n");
    for (const char *line = text; *line != '\n'; line += head + 1)
        assert_int_equal(strcspn(line, "\n"), head);
    free(text);
    results_destroy(results);
}

/* Texts of workers and journals reach the table without what a terminal would obey. */
static void test_hostile_texts(void **state)
{
    (void)state;
    static const char hostile[] = "\x1b[2J\xe2\x80\xae\x9b\nfailed: nothing\xe2\x82";
    struct results *results = results_create();
    struct error error;
    struct device device;
    struct record record = sample_record("lstm batch=1", hostile, "0:0", 0);
    record.status = RECORD_FAILED;
    strcpy(record.error, hostile);
    device_init(&device);
    strcpy(device.key, "0:0");
    strcpy(device.model, hostile);
    strcpy(device.hostname, hostile);
    assert_ok(results_add_device(results, &device, &error), &error);
    assert_ok(results_add_record(results, &record, &error), &error);
    char *text = report_text(results);
    for (const char *c = text; *c; ++c)
        assert_true(*c == '\n' || (*c >= ' ' && *c < 0x7f));
    assert_null(strstr(text, "\nfailed: nothing"));
    assert_non_null(strstr(text, ": ?[2J???failed: nothing??\n"));
    free(text);
    results_destroy(results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_hostile_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
