/* Writes a journal of many simulated records, for tests/bench/rank0.sh: what rank 0 does with them
 * at the end is what is measured. Usage: simulated_journal FILE RECORDS. A record is of about 1
 * kB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/journal.h"

enum { DEVICES = 8, SAMPLES = 3 };

static void check(enum status status, const struct error *error)
{
    if (status == STATUS_OK)
        return;
    fprintf(stderr, "%s\n", error->text);
    exit(1);
}

static json_t *session_entry(void)
{
    struct session session = {.id = "simulated",
                              .title = "simulated records: nothing was measured",
                              .settings = "simulated",
                              .manifest_text = NULL,
                              .ranks = DEVICES};
    return session_encode(&session);
}

static json_t *device_entry(int number)
{
    struct device device;
    device_init(&device);
    snprintf(device.key, sizeof device.key, "simulated/%d", number);
    snprintf(device.kind, sizeof device.kind, "cuda");
    snprintf(device.hostname, sizeof device.hostname, "nowhere");
    snprintf(device.uuid, sizeof device.uuid, "GPU-simulated-%d", number);
    snprintf(device.model, sizeof device.model, "simulated device");
    device.index = number;
    return device_encode(&device);
}

static void set_configuration(struct record *record, long number)
{
    struct config config;
    struct error error;
    char text[WORKLOAD_TEXT];
    snprintf(text, sizeof text,
             "matmul cache=hot implementation=auto k=%ld m=%ld n=64 precision=fp32",
             16 + number % 1000, 16 + number / 1000);
    check(config_parse(text, &config, &error), &error);
    record_set_config(record, &config);
}

static json_t *record_entry(long number)
{
    struct record record;
    struct kernel kernel;
    struct error error;
    record_init(&record);
    fields_clear(kernel_fields, &kernel);
    set_configuration(&record, number);
    snprintf(record.label, sizeof record.label, "simulated");
    snprintf(record.device_key, sizeof record.device_key, "simulated/%ld", number % DEVICES);
    snprintf(record.implementation, sizeof record.implementation, "simulated");
    snprintf(record.algorithm, sizeof record.algorithm, "algorithm %ld", number % 7);
    record.status = RECORD_MEASURED;
    record.unit = UNIT_VECTOR;
    record.start_time = 1.7e9 + (double)number;
    record.wall_time = 0.05;
    record.samples = SAMPLES;
    record.launches = 1;
    record.busy_time = 1e-3;
    record.time_median = record.time_mean = record.time_min = record.time_max =
        1e-3 * (1 + (double)(number % 977) / 1000);
    snprintf(kernel.name, sizeof kernel.name, "simulated_kernel<float, %ld>", number % 11);
    kernel.count = 1;
    kernel.time = 1e-3;
    check(record_set_kernels(&record, &kernel, 1, &error), &error);
    record.sample = calloc(SAMPLES, sizeof *record.sample);
    if (!record.sample)
        exit(1);
    record.sample_count = SAMPLES;
    for (int i = 0; i < SAMPLES; ++i)
        record.sample[i] = record.time_median;
    json_t *entry = record_encode(&record);
    record_clear(&record);
    return entry;
}

int main(int argc, char **argv)
{
    struct journal *journal;
    struct error error;
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE RECORDS\n", argv[0]);
        return 2;
    }
    check(journal_open(argv[1], JOURNAL_CREATE, &journal, &error), &error);
    check(journal_append(journal, "session", session_entry(), &error), &error);
    for (int i = 0; i < DEVICES; ++i)
        check(journal_append(journal, "device", device_entry(i), &error), &error);
    for (long i = 0, count = atol(argv[2]); i < count; ++i)
        check(journal_append(journal, "record", record_entry(i), &error), &error);
    journal_close(journal);
    return 0;
}
