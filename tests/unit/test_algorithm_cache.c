/* The cache of algorithms that searches found, in memory and in a file. */

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "results/algorithm_cache.h"
#include "journal_bench.h"

/* Algorithms are copied from and to records by the names of members. */
TEST(members_are_those_of_a_record)
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

static struct record searched(int batch, const char *algorithm)
{
    struct record record;
    record_init(&record);
    record.status = RECORD_MEASURED;
    snprintf(record.configuration, sizeof record.configuration, "conv2d batch=%d", batch);
    config_text_hash(record.configuration, record.config_hash);
    snprintf(record.algorithm, sizeof record.algorithm, "%s", algorithm);
    strcpy(record.algorithm_id, "0123456789abcdef");
    strcpy(record.algorithm_launches, "fedcba9876543210");
    strcpy(record.algorithm_origin, "search");
    strcpy(record.layout_chosen, "nhwc");
    strcpy(record.runner_up_algorithm, "engine-2");
    record.runner_up_time = 2e-5;
    record.search_candidates = 7;
    record.search_time = record.time_median = 1e-5;
    record.start_time = 1763.5e6; /* 2025-11-18 */
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

static struct algorithm_cache *open_at(const char *path, bool keep, size_t damaged)
{
    struct algorithm_cache *cache = NULL;
    struct error error;
    size_t found;
    assert_ok(algorithm_cache_open(path, keep, &cache, &found, &error), &error);
    assert_int_equal(found, damaged);
    return cache;
}

static void learn(struct algorithm_cache *cache, int batch, const char *algorithm,
                  const struct device *device)
{
    const struct record record = searched(batch, algorithm);
    struct error error;
    assert_ok(algorithm_cache_learn(cache, &record, record.config_hash, device, &error), &error);
    assert_ok(algorithm_cache_save(cache, 0, &error), &error);
}

/* "": the cache has no algorithm of this configuration. */
static void assert_found(const struct algorithm_cache *cache, int batch,
                         const struct device *device, const char *name, const char *origin)
{
    const struct record record = searched(batch, "");
    struct algorithm algorithm;
    assert_int_equal(algorithm_cache_find(cache, record.config_hash, device, &algorithm),
                     *name != '\0');
    assert_string_equal(algorithm.algorithm, name);
    assert_string_equal(algorithm.algorithm_origin, origin);
}

TEST(the_run_remembers)
{
    const struct device h200 = device_of("H200", "cuDNN 9.14.0");
    const struct device h100 = device_of("H100", "cuDNN 9.14.0");
    const struct device later = device_of("H200", "cuDNN 9.15.0");
    struct device other_driver = h200;
    strcpy(other_driver.driver_version, "580.0");
    struct algorithm_cache *cache = open_at(NULL, true, 0);
    struct algorithm algorithm;
    for (int batch = 1; batch <= 1000; ++batch) {
        assert_found(cache, batch, &h200, "", "");
        learn(cache, batch, "engine-1", &h200);
    }
    for (int batch = 1; batch <= 1000; ++batch) {
        assert_found(cache, batch, &h200, "engine-1", "run");
        assert_found(cache, batch, &h100, "", "");
        assert_found(cache, batch, &later, "", "");
    }
    learn(cache, 8, "engine-8", &other_driver);
    assert_found(cache, 8, &h200, "engine-1", "run");
    learn(cache, 7, "engine-9", &h200);
    assert_found(cache, 7, &h200, "engine-9", "run");
    assert_true(algorithm_cache_find(cache, searched(7, "").config_hash, &h200, &algorithm));
    assert_string_equal(algorithm.runner_up_algorithm, "engine-2");
    assert_string_equal(algorithm.layout_chosen, "nhwc");
    assert_int_equal(algorithm.search_candidates, 7);
    assert_true(algorithm.search_time == 1e-5 && algorithm.runner_up_time == 2e-5);
    algorithm_cache_close(cache);
}

TEST(only_searches_of_measured_rows_count)
{
    const struct device device = device_of("H200", "cuDNN 9.14.0");
    struct algorithm_cache *cache = open_at(NULL, true, 0);
    struct record rows[4] = {searched(1, "a"), searched(1, "b"), searched(1, "c"),
                             searched(1, "d")};
    struct error error;
    rows[0].status = RECORD_FAILED;
    strcpy(rows[1].algorithm_origin, "run");
    rows[2].algorithm_origin[0] = '\0';
    rows[3].algorithm_id[0] = '\0';
    for (int i = 0; i < 4; ++i)
        assert_int_equal(
            algorithm_cache_learn(cache, &rows[i], rows[i].config_hash, &device, &error),
            STATUS_OK);
    assert_found(cache, 1, &device, "", "");
    algorithm_cache_close(cache);
}

static void file_add(const char *path, const char *text)
{
    FILE *stream = fopen(path, "a");
    fputs(text, stream);
    fclose(stream);
}

FOLDER_TEST(a_file_outlives_the_run)
{
    static const char origin[] = "file of 2025-11-18";
    const struct device h200 = device_of("H200", "cuDNN 9.14.0");
    const struct device later = device_of("H200", "cuDNN 9.15.0");
    const char *path = path_of(state);
    struct algorithm_cache *first = open_at(path, false, 0), *second = open_at(path, true, 0);
    assert_int_not_equal(access(path, F_OK), 0); /* the cache is empty */
    learn(first, 1, "engine-1", &h200);
    assert_found(first, 1, &h200, "", ""); /* this run does not keep the algorithm */
    learn(second, 2, "engine-2", &h200);   /* two runs write */
    learn(second, 2, "engine-4", &later);
    algorithm_cache_close(first);
    algorithm_cache_close(second);
    file_add(path, "{\"xxh3\":\"00000000"); /* a kill cut this line off */
    first = open_at(path, false, 0);
    assert_found(first, 1, &h200, "engine-1", origin);
    assert_found(first, 2, &h200, "engine-2", origin);
    assert_found(first, 2, &later, "engine-4", origin);
    learn(first, 1, "engine-3", &h200); /* removes the torn line */
    algorithm_cache_close(first);
    file_add(path, "{\"xxh3\":\"0000000000000000\",\"kind\":\"record\",\"entry\":{}}\n");
    second = open_at(path, false, 1);
    assert_found(second, 1, &h200, "engine-3", origin);
    algorithm_cache_close(second);
}

/* Lines with right checksums that no run wrote. A worker would refuse such an algorithm, and its
 * device would count as lost. */
FOLDER_TEST(absurd_entries_are_left_out)
{
    struct device device = device_of("H200", "cuDNN 9.14.0");
    const char *path = path_of(state);
    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    strcpy(device.key, "d");
    strcpy(device.uuid, "d");
    append(journal, "device", device_encode(&device));
    for (int batch = 1; batch <= 4; ++batch) {
        struct record record = searched(batch, "engine-1");
        strcpy(record.device_key, "d");
        record.search_time *= batch == 2 ? -1 : 1;
        record.start_time = batch == 3 ? 1e300 : record.start_time;
        json_t *entry = record_encode(&record);
        if (batch == 4)
            json_object_set_new(entry, "config_hash", json_string("0"));
        append(journal, "record", entry);
    }
    journal_close(journal);
    struct algorithm_cache *cache = open_at(path, false, 3);
    assert_found(cache, 1, &device, "engine-1", "file of 2025-11-18");
    for (int batch = 2; batch <= 4; ++batch)
        assert_found(cache, batch, &device, "", "");
    algorithm_cache_close(cache);
}

/* NAME.nc stands for NAME.nc.journal, which is not changed. A row keeps the origin of an algorithm
 * from a file. */
FOLDER_TEST(a_result_serves)
{
    struct device device = device_of("H200", "cuDNN 9.14.0");
    struct stat before, after;
    const char *path = ((struct folder *)*state)->file, *journal_path = path_of(state);
    struct journal *journal = open_journal(journal_path, JOURNAL_CREATE);
    strcpy(device.key, "d");
    strcpy(device.uuid, "d");
    append(journal, "session", json_object());
    append(journal, "device", device_encode(&device));
    for (int batch = 1; batch <= 3; ++batch) {
        struct record record = searched(batch, "engine-1");
        strcpy(record.device_key, "d");
        strcpy(record.algorithm_origin, batch == 1   ? "search"
                                        : batch == 2 ? "file of 2020-01-01"
                                                     : "");
        append(journal, "record", record_encode(&record));
    }
    journal_close(journal);
    stat(journal_path, &before);
    for (int i = 0; i < 2; ++i) {
        struct algorithm_cache *cache = open_at(i == 0 ? path : journal_path, false, 0);
        assert_found(cache, 1, &device, "engine-1", "file of 2025-11-18");
        assert_found(cache, 2, &device, "engine-1", "file of 2020-01-01");
        assert_found(cache, 3, &device, "", "");
        learn(cache, 4, "engine-0", &device);
        algorithm_cache_close(cache);
    }
    stat(journal_path, &after);
    assert_int_equal(after.st_size, before.st_size);
}

static void assert_refused(const char *path, const char *says)
{
    struct algorithm_cache *cache = NULL;
    struct error error;
    size_t damaged;
    assert_int_equal(algorithm_cache_open(path, false, &cache, &damaged, &error), STATUS_USAGE);
    assert_says(error.text, says);
}

/* Nothing is added to a file that is no algorithm cache. */
FOLDER_TEST(another_file_is_refused)
{
    const char *path = path_of(state);
    static const char foreign[] = "no line of a roofsweep journal";
    assert_refused("no such.nc", "no such.nc.journal: cannot open: No such");
    file_add(path, "[conv2d]"); /* an append would cut this torn line off */
    assert_refused(path, foreign);
    file_add(path, "\nbatch = 1\n");
    assert_refused(path, foreign);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* without a writer */
    assert_refused(path, "no regular file");
    unlink(path);
    assert_refused("/tmp", "no regular file");
}

/* While another run writes to the file, nobody waits, and nothing is lost. */
FOLDER_TEST(a_file_in_use_delays_nobody)
{
    const char *path = path_of(state);
    struct journal *other;
    struct error error;
    const struct device device = device_of("H200", "9.10");
    const struct record record = searched(1, "engine-1");
    file_store(path, "", 0);
    struct algorithm_cache *cache = open_at(path, true, 0);
    assert_int_equal(algorithm_cache_learn(cache, &record, record.config_hash, &device, &error),
                     STATUS_OK);
    assert_int_equal(journal_open(path, JOURNAL_RESUME, &other, &error), STATUS_OK);
    assert_int_equal(algorithm_cache_save(cache, 0, &error), STATUS_USAGE);
    journal_close(other);
    assert_int_equal(algorithm_cache_save(cache, 0, &error), STATUS_OK);
    algorithm_cache_close(cache);
    cache = open_at(path, true, 0);
    assert_found(cache, 1, &device, "engine-1", "file of 2025-11-18");
    algorithm_cache_close(cache);
}
