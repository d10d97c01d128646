/* What searches chose: from a record and into one, kept for the run and in a file. */

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "results/algorithm_cache.h"
#include "results/journal.h"

/* A algorithm is copied from and to a record by the tables. */
static void members_are_those_of_a_record(void **state)
{
    for (const struct field *field = algorithm_fields; field->name; ++field) {
        const struct field *of_record = record_fields;
        while (of_record->name && strcmp(of_record->name, field->name) != 0)
            ++of_record;
        assert_non_null(of_record->name);
        assert_int_equal(of_record->size, field->size);
        assert_int_equal(of_record->type, field->type);
    }
}

static struct record searched(const char *algorithm)
{
    struct record record;
    record_init(&record);
    record.status = RECORD_MEASURED;
    strcpy(record.configuration, "conv2d batch=16");
    snprintf(record.algorithm, sizeof record.algorithm, "%s", algorithm);
    strcpy(record.algorithm_id, "0123456789abcdef");
    strcpy(record.algorithm_launches, "fedcba9876543210");
    strcpy(record.algorithm_origin, "search");
    strcpy(record.layout_chosen, "nhwc");
    strcpy(record.runner_up_algorithm, "engine-2");
    record.runner_up_time = 2e-5;
    record.search_candidates = 7;
    record.search_time = 1e-5;
    record.start_time = 1763.5e6;
    return record;
}

static struct device device_of(const char *model, const char *library)
{
    struct device device;
    device_init(&device);
    snprintf(device.model, sizeof device.model, "%s", model);
    snprintf(device.library_version, sizeof device.library_version, "%s", library);
    return device;
}

static struct algorithm_cache *open_at(const char *path, bool keep,
                                       struct algorithm_cache_file *file)
{
    struct algorithm_cache *cache = NULL;
    struct error error;
    if (algorithm_cache_open(path, keep, &cache, file, &error))
        fail_msg("%s", error.text);
    return cache;
}

static void learn(struct algorithm_cache *cache, const char *hash, const char *algorithm,
                  const struct device *device)
{
    struct record record = searched(algorithm);
    struct error error;
    assert_int_equal(algorithm_cache_learn(cache, &record, hash, device, &error), STATUS_OK);
    if (algorithm_cache_save(cache, &error))
        fail_msg("%s", error.text);
}

static void the_run_remembers(void **state)
{
    const struct device h200 = device_of("H200", "cuDNN 9.14.0");
    const struct device h100 = device_of("H100", "cuDNN 9.14.0");
    const struct device later = device_of("H200", "cuDNN 9.15.0");
    struct device other_driver = h200;
    strcpy(other_driver.driver_version, "580.0");
    struct algorithm_cache_file file;
    struct algorithm_cache *cache = open_at(NULL, true, &file);
    struct algorithm algorithm;
    char hash[CONFIG_HASH_TEXT];
    for (int i = 0; i < 1000; ++i) {
        snprintf(hash, sizeof hash, "%d", i);
        assert_false(algorithm_cache_find(cache, hash, &h200, &algorithm));
        assert_false(algorithm_is_known(&algorithm));
        learn(cache, hash, "engine-1", &h200);
    }
    for (int i = 0; i < 1000; ++i) {
        snprintf(hash, sizeof hash, "%d", i);
        assert_true(algorithm_cache_find(cache, hash, &h200, &algorithm));
        assert_false(algorithm_cache_find(cache, hash, &h100, &algorithm));
        assert_false(algorithm_cache_find(cache, hash, &later, &algorithm));
    }
    learn(cache, "8", "engine-8", &other_driver);
    assert_true(algorithm_cache_find(cache, "8", &h200, &algorithm));
    assert_string_equal(algorithm.algorithm, "engine-1");
    learn(cache, "7", "engine-9", &h200); /* the newest counts */
    assert_true(algorithm_cache_find(cache, "7", &h200, &algorithm));
    assert_string_equal(algorithm.algorithm, "engine-9");
    assert_string_equal(algorithm.algorithm_origin, "run");
    assert_string_equal(algorithm.runner_up_algorithm, "engine-2");
    assert_int_equal(algorithm.search_candidates, 7);
    assert_true(algorithm.search_time == 1e-5 && algorithm.runner_up_time == 2e-5);
    algorithm_cache_close(cache);
}

static void only_searches_of_measured_rows_count(void **state)
{
    const struct device device = device_of("H200", "cuDNN 9.14.0");
    struct algorithm_cache_file file;
    struct algorithm_cache *cache = open_at(NULL, true, &file);
    struct record rows[4] = {searched("a"), searched("b"), searched("c"), searched("d")};
    struct algorithm algorithm;
    struct error error;
    rows[0].status = RECORD_FAILED;
    strcpy(rows[1].algorithm_origin, "run");
    rows[2].algorithm_origin[0] = '\0';
    rows[3].algorithm_id[0] = '\0';
    for (int i = 0; i < 4; ++i)
        assert_int_equal(algorithm_cache_learn(cache, &rows[i], "1", &device, &error), STATUS_OK);
    assert_false(algorithm_cache_find(cache, "1", &device, &algorithm));
    algorithm_cache_close(cache);
}

/* A path where nothing is. */
static void path_make(char path[64])
{
    strcpy(path, "/tmp/roofsweep-cache-XXXXXX");
    close(mkstemp(path));
    unlink(path);
}

static void append(const char *path, const char *text)
{
    FILE *stream = fopen(path, "a");
    fputs(text, stream);
    fclose(stream);
}

static void a_file_outlives_the_run(void **state)
{
    const struct device device = device_of("H200", "cuDNN 9.14.0");
    char path[64];
    struct algorithm_cache_file file;
    struct algorithm algorithm;
    path_make(path);
    struct algorithm_cache *first = open_at(path, false, &file),
                           *second = open_at(path, true, &file);
    assert_int_equal(file.entries, 0);
    assert_int_not_equal(access(path, F_OK), 0); /* nothing was found yet */
    learn(first, "1", "engine-1", &device);
    assert_false(
        algorithm_cache_find(first, "1", &device, &algorithm)); /* it does not come again */
    learn(second, "2", "engine-2", &device);                    /* both write */
    algorithm_cache_close(first);
    algorithm_cache_close(second);
    append(path, "{\"xxh3\":\"00000000"); /* killed over a line */
    first = open_at(path, false, &file);
    assert_int_equal(file.entries, 2);
    assert_int_equal(file.damaged, 0);
    assert_true(algorithm_cache_find(first, "1", &device, &algorithm));
    assert_string_equal(algorithm.algorithm, "engine-1");
    assert_int_equal(strncmp(algorithm.algorithm_origin, "file of 20", 10), 0);
    learn(first, "1", "engine-3", &device); /* what was torn is cut off */
    algorithm_cache_close(first);
    append(path, "{\"xxh3\":\"0000000000000000\",\"kind\":\"algorithm\",\"entry\":{}}\n");
    second = open_at(path, false, &file);
    assert_int_equal(file.entries, 3);
    assert_int_equal(file.damaged, 1);
    assert_true(algorithm_cache_find(second, "1", &device, &algorithm));
    assert_string_equal(algorithm.algorithm, "engine-3");
    algorithm_cache_close(second);
    unlink(path);
}

static void assert_refused(const char *path, const char *says)
{
    struct algorithm_cache *cache = NULL;
    struct algorithm_cache_file file;
    struct error error;
    assert_int_equal(algorithm_cache_open(path, false, &cache, &file, &error), STATUS_USAGE);
    if (!strstr(error.text, says))
        fail_msg("%s", error.text);
}

/* Lines with right checksums that no run wrote: a hash of 100,000 bytes, a time below zero, a date
 * that is none. The worker would refuse such a algorithm, and the device count as lost. */
static void absurd_entries_are_left_out(void **state)
{
    const struct device device = device_of("H200", "cuDNN 9.14.0");
    char path[64], *hash = malloc(100001);
    struct journal *journal;
    struct algorithm_cache_file file;
    struct algorithm algorithm;
    struct error error;
    const struct {
        double search_time, time;
    } entries[] = {{1e-5, 1763.5e6}, {-1e-5, 1763.5e6}, {1e-5, 1e300}, {1e-5, 1763.5e6}};
    memset(hash, '0', 100000);
    hash[100000] = '\0';
    path_make(path);
    assert_int_equal(journal_open(path, JOURNAL_CREATE, &journal, &error), STATUS_OK);
    for (int i = 0; i < 4; ++i) {
        char number[] = {(char)('0' + i), '\0'};
        json_t *entry =
            json_pack("{s:s,s:s,s:s,s:f,s:{s:s,s:f}}", "config_hash", i < 3 ? number : hash,
                      "model", "H200", "library", "cuDNN 9.14.0", "time", entries[i].time,
                      "algorithm", "algorithm", "engine-1", "search_time", entries[i].search_time);
        assert_int_equal(journal_append(journal, "algorithm", entry, &error), STATUS_OK);
    }
    journal_close(journal);
    struct algorithm_cache *cache = open_at(path, false, &file);
    assert_int_equal(file.entries, 1);
    assert_int_equal(file.damaged, 3);
    assert_true(algorithm_cache_find(cache, "0", &device, &algorithm));
    assert_false(algorithm_cache_find(cache, "1", &device, &algorithm));
    algorithm_cache_close(cache);
    free(hash);
    unlink(path);
}

/* The last row of an earlier run on four GPUs, with more rows than are read at once. */
static void a_result_file_serves(void **state)
{
    static const char hash[] = "0990291f1453e363ddd03fda1c6ae623";
    static const char *const drivers[] = {"580.159.04", "580.159.05"};
    char path[64];
    struct device device = device_of("NVIDIA H200", "cuDNN 9.14.0, cuBLASLt 13.1.0");
    struct algorithm_cache_file file;
    struct algorithm algorithm;
    struct algorithm_cache *cache = open_at(TEST_DATA_DIR "/earlier/node_4xh200.nc", false, &file);
    assert_int_equal(file.entries, 160);
    assert_int_equal(file.damaged, 0);
    for (int i = 0; i < 2; ++i) {
        strcpy(device.driver_version, drivers[i]);
        assert_int_equal(algorithm_cache_find(cache, hash, &device, &algorithm), i == 0);
        assert_string_equal(algorithm.algorithm, i == 0 ? "algo-43" : "");
        assert_string_equal(algorithm.algorithm_id, i == 0 ? "c83191ec4f6a46b5" : "");
        assert_string_equal(algorithm.algorithm_origin, i == 0 ? "file of 2026-11-22" : "");
    }
    learn(cache, hash, "engine-0", &device); /* of no use to the file, and no failure */
    algorithm_cache_close(cache);
    path_make(path);
    strcat(path, ".nc");
    assert_refused(path, "No such file");
    append(path, "\x89HDF\r\n");
    assert_refused(path, path);
    unlink(path);
}

/* Nothing is added to a file of somebody else. */
static void another_file_is_refused(void **state)
{
    char path[64];
    static const char foreign[] = "neither a file of algorithms";
    struct journal *journal;
    struct error error;
    path_make(path);
    append(path, "[conv2d]"); /* torn lines alone would be cut off */
    assert_refused(path, foreign);
    append(path, "\nbatch = 1\n");
    assert_refused(path, foreign);
    unlink(path);
    assert_int_equal(journal_open(path, JOURNAL_CREATE, &journal, &error), STATUS_OK);
    assert_int_equal(journal_append(journal, "session", json_object(), &error), STATUS_OK);
    journal_close(journal);
    assert_refused(path, foreign);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits for who writes to it */
    assert_refused(path, "no regular file");
    unlink(path);
    assert_refused("/tmp", "no regular file");
}

/* Another run writes to the file: nobody waits, and nothing is lost. */
static void a_file_in_use_delays_nobody(void **state)
{
    char path[] = "/tmp/roofsweep-cache-XXXXXX";
    struct algorithm_cache_file file;
    struct journal *other;
    struct error error;
    const struct device device = device_of("H200", "9.10");
    const struct record record = searched("engine-1");
    close(mkstemp(path));
    struct algorithm_cache *cache = open_at(path, true, &file);
    assert_int_equal(algorithm_cache_learn(cache, &record, "hash", &device, &error), STATUS_OK);
    assert_int_equal(journal_open(path, JOURNAL_RESUME, &other, &error), STATUS_OK);
    assert_int_equal(algorithm_cache_save(cache, &error), STATUS_USAGE);
    journal_close(other);
    assert_int_equal(algorithm_cache_save(cache, &error), STATUS_OK);
    algorithm_cache_close(cache);
    algorithm_cache_close(open_at(path, true, &file));
    assert_int_equal(file.entries, 1);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_in_use_delays_nobody),
        cmocka_unit_test(members_are_those_of_a_record),
        cmocka_unit_test(the_run_remembers),
        cmocka_unit_test(only_searches_of_measured_rows_count),
        cmocka_unit_test(a_file_outlives_the_run),
        cmocka_unit_test(absurd_entries_are_left_out),
        cmocka_unit_test(a_result_file_serves),
        cmocka_unit_test(another_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
