#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "results/nodes.h"
#include "sample.h"

TEST(test_order)
{
    static const struct {
        const char *text, *label;
    } sorted[] = {{"lstm batch=1", "a"},
                  {"lstm batch=2", "a"},
                  {"lstm batch=16", "a"},
                  {"conv2d batch=8", "b"},
                  {"lstm batch=1", "b"}};
    static const size_t added[] = {4, 2, 0, 3, 1};
    struct record records[5];
    for (size_t i = 0; i < 5; ++i) {
        char device[8]; /* one device per row, as two rows have the same text */
        snprintf(device, sizeof device, "s1-%zu", i);
        records[i] = sample_record(sorted[added[i]].text, sorted[added[i]].label, device, 0);
        records[i].status = RECORD_SKIPPED;
    }
    struct results *results = results_of(records, 5);
    assert_int_equal(results->row_count, 5);
    results_sort(results, NULL, &(struct error){{0}});
    for (size_t i = 0; i < 5; ++i) {
        struct record expected = sample_record(sorted[i].text, sorted[i].label, "", 0);
        assert_string_equal(results->rows[i].configuration, expected.configuration);
        assert_string_equal(results->rows[i].label, expected.label);
    }
    results_destroy(results);
}

/* Rows are in the order of the plan. Rows that the plan lacks follow, if they were measured. */
TEST(test_order_of_the_plan)
{
    static const char ini[] = "[lstm b]\nbatch = 16, 2\n[lstm a]\nbatch = 1\n";
    static const struct {
        const char *text, *label, *name;
        enum record_status status;
    } rows[] = {{"lstm batch=16", "b", "b batch=16", RECORD_FAILED},
                {"lstm batch=2", "b", "b batch=2", RECORD_SKIPPED},
                {"lstm batch=1", "a", "a batch=1", RECORD_MEASURED},
                {"lstm batch=3", "a", "a batch=3", RECORD_MEASURED},
                {"lstm batch=5", "a", "a batch=5", RECORD_FAILED}};
    struct record records[5];
    struct manifest *manifest;
    struct plan *plan;
    for (int i = 0; i < 5; ++i) {
        records[i] = sample_record(rows[4 - i].text, rows[4 - i].label, "s1-0", 0);
        records[i].status = rows[4 - i].status;
        records[i].time_median = records[i].status == RECORD_MEASURED ? 1 : NAN;
    }
    assert_ok(manifest_parse("ini", ini, sizeof ini - 1, &manifest, &failure));
    assert_ok(plan_create(manifest, &plan, &failure));
    struct results *results = results_of(records, 5);
    assert_ok(results_sort(results, plan, &failure));
    assert_int_equal(results->row_count, 4);
    assert_int_equal(results->unplanned, 1);
    for (int i = 0; i < 5; ++i)
        assert_string_equal(results->rows[i].name, rows[i].name);
    assert_string_equal(plan->items[0].name, "b batch=16");
    results_destroy(results);
    plan_destroy(plan);
    manifest_destroy(manifest);
}

/* Devices are in the order of ranks, not of arrival; a later session follows. */
TEST(test_order_of_devices)
{
    static const char *const arrived[] = {"2026.1Z-7/10", "2026.1Z-7/2", "2026.2Z-7/0",
                                          "2026.1Z-7/0"};
    static const char *const ordered[] = {"2026.1Z-7/0", "2026.1Z-7/2", "2026.1Z-7/10",
                                          "2026.2Z-7/0"};
    struct results *results = results_create();
    for (size_t i = 0; i < 4; ++i) {
        struct device device;
        device_init(&device);
        snprintf(device.key, sizeof device.key, "%s", arrived[i]);
        assert_ok(results_add_device(results, &device, &(struct link_list){NULL, 0}, &failure));
    }
    results_sort(results, NULL, &(struct error){{0}});
    for (size_t i = 0; i < 4; ++i) {
        assert_string_equal(results->devices[i].key, ordered[i]);
        assert_int_equal(results_device(results, ordered[i]), i);
    }
    results_destroy(results);
}

TEST(test_row_of_a_record)
{
    for (int status = RECORD_MEASURED; status <= RECORD_FAILED; ++status) {
        struct results *results = results_create();
        struct record record;
        record_init(&record);
        strcpy(record.configuration, "matmul k=16 m=\"quoted\"");
        strcpy(record.label, "gr\xc3\xbcn");
        strcpy(record.device_key, "s1/0");
        strcpy(record.config_hash, "0123456789abcdef0123456789abcdef");
        strcpy(record.error, "line 1\nline 2 \\");
        record.status = status;
        record.attempts = 2;
        record.start_time = 1.7e9;
        record.wall_time = 0.25;
        record.time_median = 1e-6;
        record.sample_iterations = 1;
        record.timer_overhead = 1e-6;
        record.bimodal = 1;
        record.caller_time = 2e-6;
        record.caller_uncertainty = 0.125;
        strcpy(record.accuracy, "inaccurate: ...");
        assert_ok(results_add_record(results, &record, (struct place){.line = 1}, &failure));
        const struct row *row = &results->rows[0];
        assert_string_equal(row->configuration, record.configuration);
        assert_string_equal(row->label, record.label);
        assert_string_equal(row->device_key, record.device_key);
        assert_string_equal(row->error, status == RECORD_MEASURED ? "" : record.error);
        assert_string_equal(row->config_hash, record.config_hash);
        assert_string_equal(row->marks, "btic");
        assert_int_equal(row->status, status);
        assert_int_equal(row->attempts, 2);
        assert_true(row->end_time == 1.7e9 + 0.25 && row->wall_time == 0.25);
        results_destroy(results);
    }
}

/* The free clock is the session's highest clock of a roof or row, even if the row comes last. */
TEST(test_free_clock)
{
    static const char *const kinds[] = {"cuda", "cuda", "cpu"};
    struct results *results = results_create();
    for (int i = 0; i < 3; ++i) {
        struct device device;
        struct record record;
        device_init(&device);
        snprintf(device.key, sizeof device.key, "s1/%d", i);
        strcpy(device.kind, kinds[i]);
        device.clock_max = 1.98e9;
        roof_init(&device.roofs[device.roof_count++], ROOF_DRAM_READ, ROOF_ALONE);
        device.roofs[0].sm_clock = 1.965e9;
        assert_ok(results_add_device(results, &device, &(struct link_list){NULL, 0}, &failure));
        record_init(&record);
        record.status = RECORD_MEASURED;
        snprintf(record.config_hash, sizeof record.config_hash, "%d", i);
        strcpy(record.device_key, "s1/0");
        record.sm_clock_free = i < 1 ? 1.995e9 : 2.04e9; /* 3 % above clock_max */
        record.sm_clock_counted = 2.05e9;
        assert_ok(results_add_record(results, &record, (struct place){0}, &failure));
    }
    results_finish(results);
    assert_true(results->devices[0].sm_clock_free == 1.995e9);
    assert_true(results->devices[1].sm_clock_free == 1.965e9);
    assert_true(isnan(results->devices[2].sm_clock_free));
    results_destroy(results);
}

/* Entries of a device without rows are left out; if no entry has rows, one stays. */
TEST(test_device_is_one_entry)
{
    static const struct {
        const char *key, *uuid;
        bool has_row, stays;
    } entries[] = {
        {"s1/0", "GPU-0", true, true},   {"s1/1", "GPU-1", false, false}, {"s1/2", "", false, true},
        {"s2/0", "GPU-0", false, false}, {"s2/1", "GPU-1", false, true},  {"s2/2", "", false, true},
        {"s3/0", "GPU-0", true, true},
    };
    const size_t count = sizeof entries / sizeof *entries;
    struct results *results = results_create();
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
        struct device device;
        struct record record;
        device_init(&device);
        strcpy(device.key, entries[i].key);
        strcpy(device.uuid, entries[i].uuid);
        assert_ok(results_add_device(results, &device, &(struct link_list){NULL, 0}, &failure));
        record_init(&record);
        record.status = RECORD_FAILED;
        snprintf(record.config_hash, sizeof record.config_hash, "%zu", i);
        strcpy(record.device_key, entries[i].key);
        if (entries[i].has_row)
            assert_ok(results_add_record(results, &record, (struct place){0}, &failure));
    }
    results_sort(results, NULL, &(struct error){{0}});
    for (size_t i = 0; i < count; ++i) {
        assert_int_equal(results_device(results, entries[i].key),
                         entries[i].stays ? (int64_t)kept : -1);
        kept += entries[i].stays;
    }
    assert_int_equal(results->device_count, kept);
    results_destroy(results);
}

static void add_session(struct results *results, int session, int roofs)
{
    struct device device = gpu_device();
    snprintf(device.key, sizeof device.key, "s%d/0", session);
    device.roof_count = roofs;
    assert_ok(results_add_device(results, &device, &(struct link_list){NULL, 0}, &failure));
}

/* A later session can have been interrupted before it had all roofs. */
TEST(test_most_roofs_then_the_latest)
{
    const struct device gpu = gpu_device();
    struct results *results = results_create();
    assert_null(results_roofs(results, &gpu));
    add_session(results, 0, 0);
    assert_null(results_roofs(results, &gpu));
    for (int session = 1; session < 5; ++session) {
        add_session(results, session, session == 3 ? 1 : 2);
        assert_string_equal(results_roofs(results, &gpu)->key, session == 1   ? "s1/0"
                                                               : session == 4 ? "s4/0"
                                                                              : "s2/0");
    }
    results_destroy(results);
}

/* Roofs are not taken from an entry with another card, driver or power cap. */
TEST(test_roofs_of_the_same_device_only)
{
    struct results *results = sample_results("roofs_test.journal");
    const struct device gpu = gpu_device(), cpu = cpu_device();
    struct device others[3] = {gpu, gpu, gpu};
    unlink("roofs_test.journal");
    others[0].power_limit = 500;
    strcpy(others[1].driver_version, "590.0");
    others[2].uuid[0] = 'X';
    assert_non_null(results_roofs(results, &gpu));
    assert_non_null(results_roofs(results, &cpu)); /* both power caps are unknown */
    for (int i = 0; i < 3; ++i)
        assert_null(results_roofs(results, &others[i]));
    results_destroy(results);
}

/* Ranks of a host may have any numbers. A later description replaces device and links. */
TEST(test_nodes_by_session_and_host)
{
    static const char *const devices[][2] = {
        {"s2/0", "b"}, {"s1/3", "b"}, {"s1/1", "a"}, {"s1/0", "b"}, {"s1/1", "a"}};
    const struct link link = {.operation = LINK_ALL_REDUCE, .nodes = 1, .bandwidth = 5};
    struct results *results = results_create();
    int64_t node_of[4];
    size_t count;
    for (size_t i = 0; i < 5; ++i) { /* device i has i links */
        struct device device = gpu_device();
        struct link_list links = {NULL, 0};
        strcpy(device.key, devices[i][0]);
        strcpy(device.hostname, devices[i][1]);
        device.uuid[0] = (char)('a' + i % 4);
        while (links.count < i)
            assert_ok(link_list_add(&links, &link, &failure));
        assert_ok(results_add_device(results, &device, &links, &failure));
    }
    assert_ok(results_sort(results, NULL, &failure));
    struct node_summary *nodes = nodes_find(results, node_of, &count);
    assert_int_equal(count, 3);
    assert_memory_equal(node_of, ((int64_t[]){0, 1, 0, 2}), sizeof node_of);
    assert_int_equal(nodes[0].devices, 2);
    for (size_t i = 0; i < 4; ++i)
        assert_int_equal(results_links(results, &results->devices[i])->count,
                         ((size_t[]){3, 4, 1, 0})[i]);
    assert_true(nodes[1].all_reduce_bandwidth == 5 && isnan(nodes[2].all_reduce_bandwidth));
    free(nodes);
    results_destroy(results);
}
