/* The report of the sample sweep equals tests/data/golden_report.txt to the byte. */
#include "unit.h"

#include <jansson.h>
#include <math.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "results/report.h"
#include "results/publication.h"
#include "sample.h"

#define GOLDEN TEST_DATA_DIR "/golden_report.txt"

static char *printed(const struct results *results, bool json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    report_print(results, json, -1, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

TEST(test_golden)
{
    char folder[] = "/tmp/roofsweep-report-XXXXXX", journal[64], golden[8192] = "";
    assert_non_null(mkdtemp(folder));
    snprintf(journal, sizeof journal, "%s/journal", folder);
    struct results *results = sample_results(journal);
    assert_int_equal(unlink(journal) + rmdir(folder), 0);
    FILE *stream = fopen(GOLDEN, "r");
    assert_non_null(stream);
    assert_true(fread(golden, 1, sizeof golden - 1, stream) > 0);
    fclose(stream);
    char *text = printed(results, false);
    assert_string_equal(text, golden);
    assert_null(strstr(text, "above 100 %"));
    assert_null(strstr(text, "no roof of"));
    free(text);
    /* a terminal of 80 characters */
    assert_int_equal(setenv("TERM", "xterm", 1) + unsetenv("NO_COLOR"), 0);
    int host, terminal;
    assert_int_equal(openpty(&host, &terminal, NULL, NULL, &(struct winsize){.ws_col = 80}), 0);
    stream = open_memstream(&text, &(size_t){0});
    report_print(results, false, terminal, stream);
    assert_int_equal(fclose(stream) + close(terminal) + close(host), 0);
    assert_says(text, "\033[31mbatch batch=2 kernel=3x5 precision=fp32\n     #0 ");
    const char *end = strstr(text, "configurations:");
    for (const char *line = text, *next; (next = strchr(line, '\n')) < end; line = next + 1)
        assert_true(next - line <= 80);
    free(text);
    results->devices[1].peak_vector[PRECISION_FP32] = 1e9;
    results->devices[1].cycle_vector[PRECISION_FP32] = NAN;
    results->devices[0].peak_bandwidth[LEVEL_DRAM] = NAN;
    text = printed(results, false);
    assert_says(text, "no roof of dram was measured: rows at that level have no share");
    assert_says(text, "of roof above 100 %: fewer FLOPs than modelled");
    free(text);
    results_destroy(results);
}

/* A long table ends with the number of omitted rows. A sweep without rows is no error. */
TEST(test_sizes)
{
    struct results *results = results_create();
    char *text = printed(results, false);
    assert_null(strstr(text, "configurations")); /* a sweep of roofs */
    free(text);
    results_destroy(results);
    struct record *records = calloc(1000, sizeof *records);
    assert_non_null(records);
    for (int i = 0; i < 1000; ++i) {
        char line[64];
        snprintf(line, sizeof line, "lstm batch=%d", i + 1);
        records[i] = sample_record(line, "lstm", "none", 0);
        records[i].status = RECORD_FAILED;
        snprintf(records[i].error, sizeof records[i].error, "reason %d", i % 30);
    }
    results = results_of(records, 1000);
    free(records);
    text = printed(results, false);
    assert_says(text, "... and 800 more rows");
    assert_says(text, "1000 configurations: 0 measured, 0 skipped, 1000 failed");
    assert_says(text, "failed: lstm batch=1 and 33 more: reason 0\n");
    assert_says(text, "... and more reasons");
    free(text);
    results_destroy(results);
}

/* Columns stay aligned beside names as long as those of a zipped conv2d. */
TEST(test_long_names)
{
    struct record records[2];
    for (int i = 1; i <= 2; ++i) {
        char line[128];
        snprintf(line, sizeof line,
                 "conv2d batch=%d channels=%d filters=%d height=%d kernel=%d width=%d cache=%s",
                 100 * i, 256 * i, 256 * i, 112 * i, i, 112 * i, i == 1 ? "hot" : "cold");
        records[i - 1] = sample_record(line, "resnet", "none", 0);
        records[i - 1].status = RECORD_SKIPPED;
    }
    struct results *results = results_of(records, 2);
    char *text = printed(results, false);
    size_t head = strcspn(text, "\n");
    for (const char *line = text; *line != '\n'; line += head + 1)
        assert_int_equal(strcspn(line, "\n"), head);
    free(text);
    results_destroy(results);
}

/* Control sequences of a terminal in texts of workers and journals do not reach the table. */
TEST(test_hostile_texts)
{
    static const char hostile[] = "\x1b[2J\xe2\x80\xae\x9b\nfailed: nothing\xe2\x82";
    struct device device;
    struct record record = sample_record("lstm batch=1", hostile, "0:0", 0);
    record.status = RECORD_FAILED;
    strcpy(record.error, hostile);
    struct results *results = results_of(&record, 1);
    device_init(&device);
    strcpy(device.key, "0:0");
    strcpy(device.model, hostile);
    strcpy(device.hostname, hostile);
    assert_ok(results_add_device(results, &device, &(struct link_list){NULL, 0}, &failure));
    char *text = printed(results, false);
    for (const char *c = text; *c; ++c)
        assert_true(*c == '\n' || (*c >= ' ' && *c < 0x7f));
    assert_null(strstr(text, "\nfailed: nothing"));
    assert_says(text, ": ?[2J?????failed: nothing??\n");
    free(text);
    results_destroy(results);
}

TEST(test_json)
{
    struct record *records = calloc(300, sizeof *records);
    assert_non_null(records);
    for (int i = 0; i < 300; ++i) {
        char line[64];
        snprintf(line, sizeof line, "lstm batch=%d", i + 1);
        records[i] = sample_record(line, "lstm", "none", 0);
        records[i].status = i ? RECORD_MEASURED : RECORD_FAILED;
        records[i].time_median = i ? 1.25e-5 : NAN;
        strcpy(records[i].error, i ? "" : "a \"quoted\", | and\nbroken");
    }
    struct results *results = results_of(records, 300);
    free(records);
    char *text = printed(results, true);
    json_t *rows = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(rows), 300);
    json_t *first = json_array_get(rows, 0), *second = json_array_get(rows, 1);
    assert_true(json_is_null(json_object_get(first, "time_median")));
    assert_string_equal(json_string_value(json_object_get(first, "error")),
                        "a \"quoted\", | and\nbroken");
    assert_string_equal(json_string_value(json_object_get(second, "name")), "lstm batch=2");
    assert_true(json_number_value(json_object_get(second, "time_median")) == 1.25e-5);
    assert_true(json_is_integer(json_object_get(second, "config_device")));
    assert_true(json_is_null(json_object_get(second, "error")));
    json_decref(rows);
    free(text);
    results_destroy(results);
}

TEST(test_summary)
{
    char text[SUMMARY_TEXT];
    struct summary summary = {.rows = {[RECORD_SKIPPED] = 1}, .left = SIZE_MAX, .file = "a b.nc"};
    summary_format(&summary, 0, 1.25, text);
    assert_string_equal(text, "summary status=0 rows=1 measured=0 skipped=1 failed=0 devices=0 "
                              "roofs=0 seconds=1.2 file=a b.nc");
    summary.left = 7;
    summary_format(&summary, 5, 1.25, text);
    assert_says(text, "status=5 rows=1 measured=0 skipped=1 failed=0 left=7 devices=0");
}
