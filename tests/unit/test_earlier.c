/* Roofs of an earlier result file, back from netCDF as they were written. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <netcdf.h>

#include "results/earlier.h"
#include "results/results_nc.h"
#include "sample.h"

static const char path[] = "earlier_test.nc", journal[] = "earlier_roofs_test.nc.journal";

static int write_sample(void **state)
{
    struct results *results = sample_results(journal);
    struct error error;
    assert_int_equal(results_nc_write(results, path, NULL, &error), STATUS_OK);
    results_destroy(results);
    return 0;
}

static int remove_sample(void **state)
{
    return unlink(path) | unlink(journal);
}

static void they_come_back_whole(void **state)
{
    struct device *devices, gpu = gpu_device();
    size_t count;
    struct error error = {""};
    assert_int_equal(earlier_roofs_read(path, &devices, &count, &error), STATUS_OK);
    const struct device *found = earlier_roofs_find(devices, count, &gpu);
    assert_non_null(found);
    assert_string_equal(found->roofs_reused, path);
    assert_int_equal(found->roof_count, gpu.roof_count);
    for (int64_t i = 0; i < gpu.roof_count; ++i) {
        gpu.roofs[i].samples = FIELD_MISSING; /* the journal alone has them */
        gpu.roofs[i].median = gpu.roofs[i].power = NAN;
        json_t *written = fields_encode(roof_fields, &gpu.roofs[i]);
        json_t *read = fields_encode(roof_fields, &found->roofs[i]);
        assert_true(json_equal(written, read));
        json_decref(written);
        json_decref(read);
    }
    struct device again = gpu;
    memcpy(again.roofs, found->roofs, sizeof again.roofs);
    device_set_peaks(&again);
    struct earlier_algorithm *algorithms;
    assert_int_equal(earlier_algorithms_read(path, &algorithms, &count, &error), STATUS_OK);
    assert_int_equal(count, 1); /* of four rows one searched */
    assert_string_equal(algorithms->algorithm.algorithm, "implicit-precomp-gemm");
    assert_string_equal(algorithms->owner.driver_version, gpu.driver_version);
    free(algorithms);
    assert_true(again.peak_bandwidth[LEVEL_DRAM] == gpu.peak_bandwidth[LEVEL_DRAM]);
    assert_true(again.peak_tensor[PRECISION_FP16] == gpu.peak_tensor[PRECISION_FP16]);
    free(devices);
}

/* A kind of another version goes through the file by its name. */
static void an_unknown_kind_keeps_its_name(void **state)
{
    static const char odd[] = "earlier_kind.nc";
    struct device *devices, gpu = gpu_device();
    size_t count;
    struct error error = {""};
    struct results *results = results_create();
    assert_non_null(results);
    word_set(&gpu.roofs[0].kind, roof_kind_name, "l9 read");
    assert_int_equal(results_add_device(results, &gpu, &error), STATUS_OK);
    assert_int_equal(results_nc_write(results, odd, NULL, &error), STATUS_OK);
    results_destroy(results);
    assert_int_equal(earlier_roofs_read(odd, &devices, &count, &error), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(devices[0].roof_count, gpu.roof_count);
    assert_string_equal(roof_name(&devices[0].roofs[0]), "l9 read");
    assert_true(devices[0].roofs[0].bandwidth == gpu.roofs[0].bandwidth);
    assert_false(roof_usable(&devices[0].roofs[0]));
    free(devices);
    assert_int_equal(unlink(odd), 0);
}

/* Another card, another driver or another power cap: other roofs. */
static void only_the_same_device_is_found(void **state)
{
    struct device *devices, cpu = cpu_device();
    size_t count;
    struct error error = {""};
    assert_int_equal(earlier_roofs_read(path, &devices, &count, &error), STATUS_OK);
    assert_non_null(earlier_roofs_find(devices, count, &cpu)); /* no power cap known, both times */
    struct device other = gpu_device();
    other.power_limit = 500;
    assert_null(earlier_roofs_find(devices, count, &other));
    other = gpu_device();
    strcpy(other.driver_version, "590.0");
    assert_null(earlier_roofs_find(devices, count, &other));
    other = gpu_device();
    other.uuid[0] = 'X';
    assert_null(earlier_roofs_find(devices, count, &other));
    free(devices);
}

/* A later session may have been interrupted before it had all roofs. */
static void most_roofs_then_the_latest_are_found(void **state)
{
    struct device gpu = gpu_device();
    struct device *sessions = malloc(3 * sizeof *sessions);
    assert_non_null(sessions);
    for (int i = 0; i < 3; ++i)
        sessions[i] = gpu;
    --sessions[2].roof_count;
    assert_ptr_equal(earlier_roofs_find(sessions, 3, &gpu), &sessions[1]);
    sessions[2] = gpu;
    assert_ptr_equal(earlier_roofs_find(sessions, 3, &gpu), &sessions[2]);
    free(sessions);
}

static void what_is_no_result_is_refused(void **state)
{
    static const char fifo[] = "earlier_fifo.nc", foreign[] = "earlier_roofs_foreign.nc";
    static const char *const files[][2] = {{TEST_DATA_DIR "/golden.cdl", "NetCDF"},
                                           {"no such file.nc", "No such file"},
                                           {fifo, "no regular file"}, /* which nobody writes to */
                                           {foreign, "roofsweep did not write it"}};
    int file;
    remove(fifo); /* of a run that failed */
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(nc_create(foreign, NC_NETCDF4 | NC_CLOBBER, &file), NC_NOERR);
    assert_int_equal(nc_close(file), NC_NOERR);
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        struct device *devices;
        size_t count;
        struct error error = {""};
        assert_int_equal(earlier_roofs_read(files[i][0], &devices, &count, &error), STATUS_USAGE);
        assert_non_null(strstr(error.text, files[i][0]));
        assert_non_null(strstr(error.text, files[i][1]));
    }
    assert_int_equal(unlink(fifo) | unlink(foreign), 0);
}

/* In format 2 the names of memory levels are not those of a coordinate. */
static void an_older_format_is_read(void **state)
{
    struct device *devices;
    size_t count;
    struct error error = {""};
    assert_int_equal(
        earlier_roofs_read(TEST_DATA_DIR "/earlier/node_4xh200.nc", &devices, &count, &error),
        STATUS_OK);
    assert_int_equal(count, 4);
    device_set_peaks(&devices[0]);
    assert_true(devices[0].working_set[LEVEL_L2] > 1e6 &&
                devices[0].peak_bandwidth[LEVEL_L2] > 1e12);
    assert_true(isnan(devices[0].working_set[LEVEL_L3]));
    free(devices);
}

/* Roofs of another version may have been measured in another way; no device has one below zero. */
static void what_was_not_measured_so_is_refused(void **state)
{
    static const char odd[] = "earlier_version.nc";
    static const int versions[][1000] = {{1}, {99}, {RESULTS_NC_VERSION}, {RESULTS_NC_VERSION}};
    static const size_t counts[] = {1, 1, 1000, 1}, first = 0;
    static const double below = -1;
    static const char *const says[] = {"measure anew", "use a newer one", "an older version",
                                       "roof 1 of 9: 'bandwidth' is -1, which nobody"};
    for (size_t i = 0; i < 4; ++i) {
        struct device *devices, gpu = gpu_device();
        size_t count;
        int file, variable;
        struct error error = {""};
        struct results *results = results_create();
        assert_non_null(results);
        assert_int_equal(results_add_device(results, &gpu, &error), STATUS_OK);
        assert_int_equal(results_nc_write(results, odd, NULL, &error), STATUS_OK);
        results_destroy(results);
        assert_int_equal(nc_open(odd, NC_WRITE, &file), NC_NOERR);
        assert_int_equal(
            nc_put_att_int(file, NC_GLOBAL, "format_version", NC_INT, counts[i], versions[i]),
            NC_NOERR);
        assert_int_equal(nc_inq_varid(file, "device_roof_bandwidth", &variable), NC_NOERR);
        if (i == 3)
            assert_int_equal(nc_put_var1_double(file, variable, &first, &below), NC_NOERR);
        assert_int_equal(nc_close(file), NC_NOERR);
        assert_int_equal(earlier_roofs_read(odd, &devices, &count, &error), STATUS_USAGE);
        assert_non_null(strstr(error.text, says[i]));
        assert_int_equal(unlink(odd), 0);
    }
}

/* netCDF reads as many indices as the variable has dimensions, given or not. */
static void other_dimensions_are_refused(void **state)
{
    static const char odd[] = "earlier_odd.nc";
    int file, dimensions[2], variable;
    assert_int_equal(nc_create(odd, NC_NETCDF4 | NC_CLOBBER, &file), NC_NOERR);
    int version = RESULTS_NC_VERSION;
    assert_int_equal(nc_put_att_int(file, NC_GLOBAL, "format_version", NC_INT, 1, &version),
                     NC_NOERR);
    assert_int_equal(nc_def_dim(file, "device", 1, &dimensions[0]), NC_NOERR);
    assert_int_equal(nc_def_dim(file, "config", 1, &dimensions[1]), NC_NOERR);
    assert_int_equal(nc_def_var(file, "device_uuid", NC_STRING, 2, dimensions, &variable),
                     NC_NOERR);
    assert_int_equal(nc_close(file), NC_NOERR);
    struct device *devices;
    size_t count;
    struct error error = {""};
    assert_int_equal(earlier_roofs_read(odd, &devices, &count, &error), STATUS_USAGE);
    assert_non_null(strstr(error.text, "device_uuid: "));
    assert_non_null(strstr(error.text, nc_strerror(NC_EBADDIM)));
    assert_int_equal(unlink(odd), 0);
}

int main(void)
{
    results_nc_prepare();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_come_back_whole),
        cmocka_unit_test(an_unknown_kind_keeps_its_name),
        cmocka_unit_test(only_the_same_device_is_found),
        cmocka_unit_test(most_roofs_then_the_latest_are_found),
        cmocka_unit_test(what_is_no_result_is_refused),
        cmocka_unit_test(other_dimensions_are_refused),
        cmocka_unit_test(what_was_not_measured_so_is_refused),
        cmocka_unit_test(an_older_format_is_read),
    };
    return cmocka_run_group_tests(tests, write_sample, remove_sample);
}
