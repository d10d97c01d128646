/* Result files as one: parts of a sweep give the file of the whole to the byte; devices, kernels and roofs are
 * numbered anew; what cannot be merged is refused with its reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <math.h>
#include <netcdf.h>

#include "results/merge.h"
#include "results/result_file.h"
#include "results/results_nc.h"
#include "sample.h"

/* Files a.nc, b.nc, whole.nc, merged.nc in a folder of each test's own. */
struct folder {
    char path[64];
    struct log log;
};

static int folder_create(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    assert_non_null(folder);
    strcpy(folder->path, "/tmp/roofsweep-merge-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    folder->log = log_create(stderr, LOG_WARNING, 0);
    assert_int_equal(chdir(folder->path), 0);
    *state = folder;
    return 0;
}

static int folder_remove(void **state)
{
    struct folder *folder = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder->path);
    int failed = chdir("/") || system(command);
    free(folder);
    return failed;
}

/* Of a sweep of two devices: which rows go into a file. */
typedef bool chosen(const struct row *row);
static bool on_gpu(const struct row *row)
{
    return strcmp(row->device_key, "s1-0") == 0;
}
static bool on_cpu(const struct row *row)
{
    return !on_gpu(row);
}
static bool any(const struct row *row)
{
    (void)row;
    return true;
}

/* What a journal of a job would hold. `change` may be NULL. */
typedef void changed(struct session *session, struct device *device, struct record *record);
static void write_part(const char *path, chosen *rows, bool gpu, bool cpu, changed *change)
{
    struct error error;
    struct results *sample = sample_results("sample.journal"), *part = results_create();
    struct session session = sample_session();
    const bool has[] = {gpu, cpu};
    assert_int_equal(unlink("sample.journal"), 0); /* it stays open */
    if (change)
        change(&session, NULL, NULL);
    assert_ok(results_add_session(part, &session, &error), &error);
    for (size_t i = 0; i < sample->device_count; ++i) {
        struct device device = sample->devices[i];
        if (change)
            change(NULL, &device, NULL);
        if (has[i])
            assert_ok(results_add_device(part, &device, &error), &error);
    }
    for (size_t i = 0; i < sample->row_count; ++i) {
        struct record record;
        record_init(&record);
        assert_ok(results_fetch(sample, &sample->rows[i], &record, &error), &error);
        if (change)
            change(NULL, NULL, &record);
        if (rows(&sample->rows[i]))
            assert_ok(results_add_record(part, &record, &error), &error);
        record_clear(&record);
    }
    results_order_devices(part);
    assert_ok(results_nc_write(part, path, &error), &error);
    results_destroy(part);
    results_destroy(sample);
}

static enum status merge(const struct folder *folder, const char *a, const char *b, bool newest,
                         struct error *error)
{
    const char *const paths[] = {a, b};
    struct journals merged;
    struct results *results;
    bool torn;
    enum status status = merge_files(paths, 2, newest, &folder->log, &merged, error);
    if (status)
        return status;
    status = journal_read(merged.path, &results, &torn, error);
    journals_close(&merged);
    assert_ok(status, error);
    results_order_devices(results);
    assert_ok(results_nc_write(results, "merged.nc", error), error);
    results_destroy(results);
    return STATUS_OK;
}

static void assert_merged_equals(const char *path)
{
    char command[256];
    snprintf(command, sizeof command,
             "ncdump -p 9,17 -n x %s > one.cdl && ncdump -p 9,17 -n x merged.nc | diff one.cdl -",
             path);
    assert_int_equal(system(command), 0);
}

static void one_file_of_each_device_gives_the_joint_file(void **state)
{
    struct error error;
    write_part("a.nc", on_gpu, true, false, NULL);
    write_part("b.nc", on_cpu, false, true, NULL);
    write_part("whole.nc", any, true, true, NULL);
    assert_ok(merge(*state, "a.nc", "b.nc", false, &error), &error);
    assert_merged_equals("whole.nc");
    assert_ok(merge(*state, "b.nc", "a.nc", false, &error), &error); /* in whatever order */
    assert_merged_equals("whole.nc");
}

/* A job that was ended and one that went on with the rest know both devices. */
static void parts_of_a_list_give_the_whole(void **state)
{
    struct error error;
    write_part("a.nc", on_gpu, true, true, NULL);
    write_part("b.nc", on_cpu, true, true, NULL);
    write_part("whole.nc", any, true, true, NULL);
    assert_ok(merge(*state, "a.nc", "b.nc", false, &error), &error);
    assert_merged_equals("whole.nc");
}

static size_t length_of(const char *dimension)
{
    int file, id;
    size_t length;
    assert_int_equal(nc_open("merged.nc", NC_NOWRITE, &file), NC_NOERR);
    assert_int_equal(nc_inq_dimid(file, dimension, &id), NC_NOERR);
    assert_int_equal(nc_inq_dimlen(file, id, &length), NC_NOERR);
    nc_close(file);
    return length;
}

/* Another job, whose rows are other ones. */
static void another_job(struct session *session, struct device *device, struct record *record)
{
    struct error error;
    if (session) {
        strcpy(session->id, "s2");
        session->start_time += 3600;
    }
    if (device)
        device->key[1] = '2';
    if (record) {
        record->device_key[1] = '2';
        record->start_time += 3600;
        if (strncmp(record->configuration, "conv2d", 6) == 0) {
            assert_ok(config_parse("conv2d batch=64", &record->config, &error), &error);
            record_set_config(record, &record->config);
        }
    }
}

static void another_jobs_roofs(struct session *session, struct device *device,
                               struct record *record)
{
    another_job(session, device, record);
    if (device)
        device->roofs[0].bandwidth *= 1.01;
}

static void a_device_is_one_unless_its_roofs_differ(void **state)
{
    struct error error;
    write_part("a.nc", on_gpu, true, false, NULL);
    write_part("b.nc", on_gpu, true, false, another_job);
    assert_ok(merge(*state, "a.nc", "b.nc", false, &error), &error);
    assert_int_equal(length_of("device"), 1);
    write_part("b.nc", on_gpu, true, false, another_jobs_roofs);
    assert_ok(merge(*state, "a.nc", "b.nc", false, &error), &error);
    assert_int_equal(length_of("device"), 2);
}

static void later(struct session *session, struct device *device, struct record *record)
{
    (void)session;
    (void)device;
    if (record && record->status == RECORD_MEASURED) {
        record->start_time += 60;
        record->time_median *= 2;
    }
}

static void a_clash_is_named_and_the_newest_may_hold(void **state)
{
    struct error error;
    write_part("a.nc", any, true, true, later);
    write_part("b.nc", any, true, true, NULL);
    assert_int_equal(merge(*state, "a.nc", "b.nc", false, &error), STATUS_USAGE);
    const char *const parts[] = {"4 rows", "conv2d", "GPU-00000000", "node1",
                                 "a.nc",   "b.nc",   "--newest"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        if (!strstr(error.text, parts[i]))
            fail_msg("'%s' does not say '%s'", error.text, parts[i]);
    const struct folder *folder = *state;
    struct folder quiet = *folder;
    quiet.log.stream = fopen("/dev/null", "w");
    assert_non_null(quiet.log.stream);
    assert_ok(merge(&quiet, "a.nc", "b.nc", true, &error), &error);
    assert_merged_equals("a.nc");
    assert_ok(merge(&quiet, "b.nc", "a.nc", true, &error), &error);
    assert_merged_equals("a.nc");
    fclose(quiet.log.stream);
}

static void other_settings(struct session *session, struct device *device, struct record *record)
{
    (void)device;
    (void)record;
    if (session)
        strcpy(session->settings, "warmup=1 iterations=3");
}

static void attribute_set(const char *path, const char *name, int value)
{
    int file;
    assert_int_equal(nc_open(path, NC_WRITE, &file), NC_NOERR);
    if (value < 0)
        assert_int_equal(nc_del_att(file, NC_GLOBAL, name), NC_NOERR);
    else
        assert_int_equal(nc_put_att_int(file, NC_GLOBAL, name, NC_INT, 1, &value), NC_NOERR);
    nc_close(file);
}

/* As ncrcat would leave it: the row is of a device that the file does not have. */
static void row_of_elsewhere(const char *path)
{
    int file, variable;
    const size_t first = 0;
    const char *uuid = "GPU-of-another-file";
    assert_int_equal(nc_open(path, NC_WRITE, &file), NC_NOERR);
    assert_int_equal(nc_inq_varid(file, "uuid", &variable), NC_NOERR);
    assert_int_equal(nc_put_var1_string(file, variable, &first, &uuid), NC_NOERR);
    nc_close(file);
}

static void assert_refused(const struct folder *folder, const char *path, const char *reason)
{
    struct error error = {""};
    assert_int_equal(merge(folder, "a.nc", path, false, &error), STATUS_USAGE);
    if (!strstr(error.text, path) || !strstr(error.text, reason))
        fail_msg("'%s' does not say '%s' of %s", error.text, reason, path);
}

static void what_cannot_be_merged_is_refused(void **state)
{
    int file;
    write_part("a.nc", on_gpu, true, false, NULL);
    assert_refused(*state, "missing.nc", "No such file");
    assert_refused(*state, "./a.nc", "the same file");
    assert_int_equal(system("head -c 50000 a.nc > cut.nc && echo text > text.nc"), 0);
    assert_refused(*state, "cut.nc", "not whole");
    assert_refused(*state, "text.nc", "no netCDF file");
    assert_int_equal(nc_create("other.nc", NC_NETCDF4, &file), NC_NOERR);
    nc_close(file);
    assert_refused(*state, "other.nc", "no result file of roofsweep");
    write_part("b.nc", on_cpu, false, true, NULL);
    attribute_set("b.nc", "format_version", 99);
    assert_refused(*state, "b.nc", "format version 99");
    attribute_set("b.nc", "format_version", -1);
    assert_refused(*state, "b.nc", "--gather");
    write_part("b.nc", on_cpu, false, true, NULL);
    attribute_set("b.nc", "history", -1);
    assert_refused(*state, "b.nc", "no session");
    write_part("b.nc", on_cpu, false, true, NULL);
    row_of_elsewhere("b.nc");
    assert_refused(*state, "b.nc", "ncrcat");
    write_part("b.nc", on_cpu, false, true, other_settings);
    assert_refused(*state, "b.nc", "cannot be compared");
}

/* More rows than are in memory at a time, with samples, and two kernels for one of three. */
static void write_many(const char *path, size_t first, size_t count)
{
    struct error error;
    struct results *results = results_create();
    struct session session = sample_session();
    struct device device = gpu_device();
    assert_ok(results_add_session(results, &session, &error), &error);
    assert_ok(results_add_device(results, &device, &error), &error);
    for (size_t i = first; i < first + count; ++i) {
        char text[64];
        struct kernel kernels[2];
        double sample[] = {1e-6 * (double)i, 2e-6};
        snprintf(text, sizeof text, "matmul m=%zu", i + 1);
        struct record record = sample_record(text, "many", "s1-0", (double)i);
        record.status = RECORD_MEASURED;
        record.time_median = 1e-6 * (double)i;
        record.sample = calloc(2, sizeof sample[0]);
        record.sample_count = 1 + i % 2;
        memcpy(record.sample, sample, record.sample_count * sizeof *sample);
        for (size_t j = 0; j < 2; ++j) {
            fields_clear(kernel_fields, &kernels[j]);
            snprintf(kernels[j].name, sizeof kernels[j].name, "kernel %zu of %zu", j, i);
        }
        if (i % 3 == 0)
            assert_ok(record_set_kernels(&record, kernels, 2, &error), &error);
        assert_ok(results_add_record(results, &record, &error), &error);
        record_clear(&record);
    }
    assert_ok(results_nc_write(results, path, &error), &error);
    results_destroy(results);
}

static void many_rows_go_through_in_slabs(void **state)
{
    struct error error;
    write_many("a.nc", 0, 1500);
    write_many("b.nc", 1500, 1300);
    write_many("whole.nc", 0, 2800);
    assert_ok(merge(*state, "a.nc", "b.nc", false, &error), &error);
    assert_merged_equals("whole.nc");
}

/* Roofs alone: no rows, no kernels. */
static bool none(const struct row *row)
{
    (void)row;
    return false;
}
static void roofs_alone_are_merged(void **state)
{
    struct error error;
    write_part("a.nc", none, true, false, NULL);
    write_part("b.nc", none, false, true, NULL);
    write_part("whole.nc", none, true, true, NULL);
    assert_ok(merge(*state, "a.nc", "b.nc", false, &error), &error);
    assert_merged_equals("whole.nc");
}

/* A file of a version that had fewer precisions: each value still belongs to the name that the file gives it. */
static void precisions_go_by_their_names(void **state)
{
    (void)state;
    static const char old[] = TEST_DATA_DIR "/conv2d_batch_h100.nc";
    struct result_file file;
    struct error error;
    double raw[PRECISION_COUNT];
    char *names[PRECISION_COUNT];
    size_t count, known = 0;
    int id, dimension, peaks, precisions;
    assert_int_equal(nc_open(old, NC_NOWRITE, &id), NC_NOERR);
    assert_int_equal(nc_inq_dimid(id, "precision", &dimension), NC_NOERR);
    assert_int_equal(nc_inq_dimlen(id, dimension, &count), NC_NOERR);
    assert_true(count < PRECISION_COUNT);
    assert_int_equal(nc_inq_varid(id, "device_peak_tensor", &peaks), NC_NOERR);
    assert_int_equal(nc_get_vara_double(id, peaks, (size_t[]){0, 0}, (size_t[]){1, count}, raw),
                     NC_NOERR);
    assert_int_equal(nc_inq_varid(id, "precision_name", &precisions), NC_NOERR);
    assert_int_equal(nc_get_var_string(id, precisions, names), NC_NOERR);
    assert_ok(result_file_open(old, &file, &error), &error);
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        size_t at = 0;
        while (at < count && strcmp(names[at], precision_info[i].name) != 0)
            ++at;
        double value = at < count && raw[at] != NC_FILL_DOUBLE ? raw[at] : NAN;
        double read = file.devices[0].peak_tensor[i];
        assert_true(read == value || (isnan(read) && isnan(value)));
        known += !isnan(value);
    }
    assert_true(known > 4 && isnan(file.devices[0].peak_tensor[PRECISION_FP4]));
    result_file_close(&file);
    nc_free_string(count, names);
    nc_close(id);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_create, folder_remove)

int main(void)
{
    results_nc_prepare();
    const struct CMUnitTest tests[] = {
        TEST(one_file_of_each_device_gives_the_joint_file),
        TEST(parts_of_a_list_give_the_whole),
        TEST(a_device_is_one_unless_its_roofs_differ),
        TEST(a_clash_is_named_and_the_newest_may_hold),
        TEST(what_cannot_be_merged_is_refused),
        TEST(many_rows_go_through_in_slabs),
        TEST(roofs_alone_are_merged),
        cmocka_unit_test(precisions_go_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
