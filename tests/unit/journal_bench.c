#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal_bench.h"
#include "results/results_nc.h"

int folder_create(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    assert_non_null(folder);
    results_nc_prepare();
    strcpy(folder->path, "/tmp/roofsweep-journal-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->journal, sizeof folder->journal, "%s/x.nc.journal", folder->path);
    snprintf(folder->file, sizeof folder->file, "%s/x.nc", folder->path);
    snprintf(folder->cdl, sizeof folder->cdl, "%s/x.cdl", folder->path);
    *state = folder;
    return 0;
}

int folder_remove(void **state)
{
    struct folder *folder = *state;
    unlink(folder->journal);
    unlink(folder->file);
    unlink(folder->cdl);
    int failed = rmdir(folder->path); /* fails if a test leaves another file, such as a draft */
    free(folder);
    return failed;
}

const char *path_of(void **state)
{
    return ((struct folder *)*state)->journal;
}

struct journal *open_journal(const char *path, enum journal_mode mode)
{
    struct journal *journal;
    assert_ok(journal_open(path, mode, &journal, &failure));
    return journal;
}

void append(struct journal *journal, const char *kind, json_t *entry)
{
    assert_ok(journal_append(journal, kind, entry, &failure));
}

struct results *read_journal(const char *path, bool *torn)
{
    struct results *results;
    assert_ok(journal_read(path, &results, torn, &failure));
    return results;
}

const struct record *record_of(const struct results *results, size_t row)
{
    static struct record record;
    assert_ok(results_fetch(results, &results->rows[row], &record, &failure));
    return &record;
}

json_t *record_entry(int number, const char *device_key, double time)
{
    struct record record;
    record_init(&record);
    snprintf(record.configuration, sizeof record.configuration, "lstm batch=%d", number);
    config_text_hash(record.configuration, record.config_hash);
    snprintf(record.device_key, sizeof record.device_key, "%s", device_key);
    record.status = *device_key ? RECORD_MEASURED : RECORD_FAILED;
    record.time_median = time;
    return record_encode(&record);
}

json_t *device_entry(const char *key, const char *uuid)
{
    struct device device;
    device_init(&device);
    snprintf(device.key, sizeof device.key, "%s", key);
    snprintf(device.uuid, sizeof device.uuid, "%s", uuid);
    snprintf(device.hostname, sizeof device.hostname, "node1");
    device.peak_bandwidth[LEVEL_L2] = 1.5e12;
    return device_encode(&device);
}

char *file_load(const char *path, size_t *length)
{
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    *length = fread(text, 1, (1 << 20) - 1, stream);
    fclose(stream);
    return text;
}

void file_store(const char *path, const char *text, size_t length)
{
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(text, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
}

void write_records(const char *path, int count)
{
    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    for (int i = 1; i <= count; ++i)
        append(journal, "record", record_entry(i, "", i));
    journal_close(journal);
}
