/* The file format is a contract: the CDL of a small sweep's file equals tests/data/golden.cdl to
 * the byte. To change the format, read the printed difference, then apply it. */
#include "unit.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <netcdf.h>

#include "journal_bench.h"
#include "results/results_nc.h"
#include "sample.h"

#define GOLDEN TEST_DATA_DIR "/golden.cdl"

static int run(const char *format, ...)
{
    char command[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    return system(command);
}

static void write_sample(const struct folder *folder)
{
    struct results *results = sample_results(folder->journal);
    assert_ok(results_nc_write(results, folder->file, NULL, &failure));
    results_destroy(results);
}

FOLDER_TEST(test_golden)
{
    const struct folder *folder = *state;
    write_sample(folder);
    assert_int_equal(run("ncdump -n golden %s > %s", folder->file, folder->cdl), 0);
    if (run("diff -u " GOLDEN " %s", folder->cdl) != 0)
        fail_msg("the file is not as in " GOLDEN "; the lines with + are what was written");
    int file, count, sums;
    assert_int_equal(nc_open(folder->file, NC_NOWRITE, &file), NC_NOERR);
    assert_int_equal(nc_inq_nvars(file, &count), NC_NOERR);
    for (int variable = 0; variable < count; ++variable) { /* checksums find flipped bits */
        nc_type type;
        assert_int_equal(nc_inq_vartype(file, variable, &type), NC_NOERR);
        assert_int_equal(nc_inq_var_fletcher32(file, variable, &sums), NC_NOERR);
        assert_true(type == NC_STRING || sums == NC_FLETCHER32);
    }
    nc_close(file);
}

/* Odd values do not prevent the file: the most kernels, an invalid date, invalid UTF-8, a manifest
 * of a megabyte. */
FOLDER_TEST(test_odd_rows)
{
    enum { KERNELS = RECORD_KERNELS_MAX, MANIFEST = 1 << 20 };
    const struct folder *folder = *state;
    struct record record = lstm_record();
    struct kernel *kernels = calloc(KERNELS, sizeof *kernels);
    assert_non_null(kernels);
    for (int i = 0; i < KERNELS; ++i)
        fields_clear(kernel_fields, &kernels[i]);
    memset(kernels[0].name, 'x', KERNEL_NAME_MAX - 1);
    assert_ok(record_set_kernels(&record, kernels, KERNELS, &failure));
    free(kernels);
    strcpy(record.algorithm, "\x1b[31m\n\"caf\xe9");
    sample_journal(folder->journal);
    sample_add(folder->journal, &record, 1); /* replaces the sample's row */
    struct results *results = sample_read(folder->journal);
    struct session *session = &results->sessions[results->session_count - 1];
    session->start_time = 1e300;
    free(session->manifest_text);
    session->manifest_text = malloc(MANIFEST + 1);
    assert_non_null(session->manifest_text);
    memset(session->manifest_text, ';', MANIFEST);
    session->manifest_text[MANIFEST] = '\0';
    assert_ok(results_nc_write(results, folder->file, NULL, &failure));
    results_destroy(results);

    int file, dimension;
    char time[32] = "";
    size_t length;
    assert_int_equal(nc_open(folder->file, NC_NOWRITE, &file), NC_NOERR);
    assert_int_equal(nc_inq_dimid(file, "kernel", &dimension), NC_NOERR);
    assert_int_equal(nc_inq_dimlen(file, dimension, &length), NC_NOERR);
    assert_in_range(length, KERNELS, KERNELS + 100);
    assert_int_equal(nc_inq_attlen(file, NC_GLOBAL, "manifest", &length), NC_NOERR);
    assert_int_equal(length, MANIFEST);
    assert_int_equal(nc_get_att_text(file, NC_GLOBAL, "time_coverage_end", time), NC_NOERR);
    assert_string_equal(time, "1970-01-01T00:00:00Z");
    assert_int_equal(nc_close(file), NC_NOERR);
}

/* The golden text is complete: ncgen makes a file from it whose CDL is the same text. */
FOLDER_TEST(test_golden_regenerates)
{
    const struct folder *folder = *state;
    assert_int_equal(run("ncgen -4 -o %s " GOLDEN, folder->file), 0);
    assert_int_equal(run("ncdump -n golden %s > %s", folder->file, folder->cdl), 0);
    assert_int_equal(run("diff -u " GOLDEN " %s", folder->cdl), 0);
}

static double get_double(int file, const char *name, size_t row, size_t column)
{
    int variable;
    double value = NAN;
    const size_t index[] = {row, column};
    assert_int_equal(nc_inq_varid(file, name, &variable), NC_NOERR);
    assert_int_equal(nc_get_var1_double(file, variable, index, &value), NC_NOERR);
    return value;
}

/* In a file without rows, all dimensions exist, and only config has length 0. */
FOLDER_TEST(test_empty)
{
    const struct folder *folder = *state;
    struct results *results = results_create();
    int file, dimension;
    size_t length;
    assert_ok(results_nc_write(results, folder->file, NULL, &failure));
    assert_int_equal(nc_open(folder->file, NC_NOWRITE, &file), NC_NOERR);
    int count, unlimited[NC_MAX_DIMS];
    assert_int_equal(nc_inq_unlimdims(file, &count, unlimited), NC_NOERR);
    assert_int_equal(count, 1);
    assert_int_equal(nc_inq_dimid(file, "config", &dimension), NC_NOERR);
    assert_int_equal(unlimited[0], dimension);
    assert_int_equal(nc_inq_dimlen(file, dimension, &length), NC_NOERR);
    assert_int_equal(length, 0);
    nc_close(file);
    /* The latest roof ends the time coverage of a file of roofs. */
    struct device device = gpu_device();
    device.roofs[1].start_time = SAMPLE_START + 60;
    assert_ok(results_add_device(results, &device, &(struct link_list){NULL, 0}, &failure));
    assert_ok(results_nc_write(results, folder->file, NULL, &failure));
    assert_int_equal(nc_open(folder->file, NC_NOWRITE, &file), NC_NOERR);
    char time[32] = "";
    assert_int_equal(nc_get_att_text(file, NC_GLOBAL, "time_coverage_end", time), NC_NOERR);
    assert_string_equal(time, "2025-01-01T00:01:00Z");
    nc_close(file);
    results_destroy(results);
}

FOLDER_TEST(test_unwritable)
{
    const struct folder *folder = *state;
    struct results *results = results_create();
    assert_fails(results_nc_write(results, "/tmp/no/such/folder/x.nc", NULL, &failure),
                 STATUS_SYSTEM, "/tmp/no/such/folder/x.nc");
    assert_says(failure.text, "No such file or directory");
    /* A folder has the file's name: the draft is removed (see folder_remove). */
    assert_int_equal(mkdir(folder->file, 0700), 0);
    assert_int_equal(results_nc_write(results, folder->file, NULL, &failure), STATUS_SYSTEM);
    assert_int_equal(rmdir(folder->file), 0);
    results_destroy(results);
}

static void tick(int number)
{
}

/* Signals during the write, such as SIGTERM, neither end nor damage it. */
FOLDER_TEST(test_signals)
{
    const struct folder *folder = *state;
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct results *results = results_create();
    sigaction(SIGALRM, &(const struct sigaction){.sa_handler = tick}, NULL); /* no SA_RESTART */
    setitimer(ITIMER_REAL, &often, NULL);
    enum status status = results_nc_write(results, folder->file, NULL, &failure);
    setitimer(ITIMER_REAL, &never, NULL);
    assert_ok(status);
    results_destroy(results);
}

/* A limit on file sizes acts as a full disk: an error, no crash of HDF5, and the existing file
 * stays whole. mpi/failing-calls lets each call fail. */
FOLDER_TEST(test_full_disk)
{
    const struct folder *folder = *state;
    struct results *results = results_create();
    struct rlimit before;
    assert_ok(results_nc_write(results, folder->file, NULL, &failure));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit limit = {50000, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum status status = results_nc_write(results, folder->file, NULL, &failure);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, STATUS_SYSTEM);
    const char *const parts[] = {folder->file, folder->path, strerror(EFBIG)};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        assert_says(failure.text, parts[i]);
    int id;
    assert_int_equal(nc_open(folder->file, NC_NOWRITE, &id), NC_NOERR);
    nc_close(id);
    assert_ok(results_nc_write(results, folder->file, NULL, &failure)); /* there is room again */
    results_destroy(results);
}

/* One row of a CPU, in a session with defaults. */
static struct results *cpu_results(const char *path, struct record *record)
{
    struct device cpu = cpu_device();
    struct session session = sample_session();
    strcpy(session.settings, "warmup=5 iterations=20 counters=auto kernels=no verify=yes seed=1");
    session.job_id[0] = '\0';
    record->job_id[0] = '\0';
    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    append(journal, "session", session_encode(&session));
    append(journal, "device", device_encode(&cpu));
    journal_close(journal);
    session_clear(&session);
    sample_add(path, record, 1);
    return sample_read(path);
}

static bool has_variable(const char *path, const char *name)
{
    int file, variable;
    assert_int_equal(nc_open(path, NC_NOWRITE, &file), NC_NOERR);
    bool found = nc_inq_varid(file, name, &variable) == NC_NOERR;
    nc_close(file);
    return found;
}

/* A value that no row has is no variable, unless every reader needs it. */
FOLDER_TEST(test_absent_variables)
{
    static const char *const present[] = {"time_median",  "time_sample", "error",       "hidden",
                                          "batch",        "limiter",     "kernel_name", "precision",
                                          "memory_level", "device_uuid"};
    static const char *const absent[] = {"filters",
                                         "layers", /* at its default */
                                         "filter_height",
                                         "activation",
                                         "requested_algorithm",
                                         "verify_error",
                                         "k",
                                         "layout",
                                         "layout_chosen",
                                         "flops_counted",
                                         "caller_time",
                                         "energy",
                                         "throttle_reasons",
                                         "kernel_grid_x",
                                         "device_mig",
                                         "device_health_start",
                                         "health",
                                         "converged",
                                         "placements",
                                         "other_processes",
                                         "job_id",
                                         "search_time",
                                         "axes",
                                         "device_roof_temperature",
                                         "sm_clock"};
    const struct folder *folder = *state;
    struct record record = sample_record("lstm batch=3 hidden=7", "cpu", "s1-1", 11);
    record.status = RECORD_FAILED;
    strcpy(record.error, "not now");
    struct results *results = cpu_results(folder->journal, &record);
    assert_ok(results_nc_write(results, folder->file, NULL, &failure));
    results_destroy(results);
    for (size_t i = 0; i < sizeof present / sizeof *present; ++i)
        if (!has_variable(folder->file, present[i]))
            fail_msg("no %s", present[i]);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; ++i)
        if (has_variable(folder->file, absent[i]))
            fail_msg("a file of a CPU has %s", absent[i]);
}

/* One value in one row makes a variable, even after the first batch of rows. */
FOLDER_TEST(test_rare_values)
{
    enum { ROWS = 1100 };
    const struct folder *folder = *state;
    int file;
    struct record *records = calloc(ROWS, sizeof *records);
    assert_non_null(records);
    for (int i = 0; i < ROWS; ++i) {
        char text[64];
        snprintf(text, sizeof text, "lstm batch=%d", i + 1);
        records[i] = sample_record(text, "l", "s1-1", i);
        records[i].job_id[0] = '\0';
        records[i].status = RECORD_MEASURED;
        records[i].time_median = 1e-3;
    }
    records[ROWS - 1].energy = 0.5;
    results_destroy(cpu_results(folder->journal, &records[0]));
    sample_add(folder->journal, records + 1, ROWS - 1);
    struct results *results = sample_read(folder->journal);
    assert_ok(results_nc_write(results, folder->file, NULL, &failure));
    results_destroy(results);
    free(records);
    assert_int_equal(nc_open(folder->file, NC_NOWRITE, &file), NC_NOERR);
    assert_near(get_double(file, "energy", ROWS - 1, 0), 0.5);
    nc_close(file);
    assert_false(has_variable(folder->file, "energy_time"));
}

/* A parameter is one variable for all workloads, so it has one kind. */
TEST(test_parameters_agree)
{
    for (size_t i = 0; workloads[i] != NULL; ++i)
        for (size_t j = 0; j < workloads[i]->count; ++j)
            for (size_t k = 0; workloads[k] != NULL; ++k) {
                const struct parameter *p = &workloads[i]->parameters[j];
                int other = workload_parameter(workloads[k], p->name);
                if (other >= 0)
                    assert_int_equal(workloads[k]->parameters[other].kind, p->kind);
            }
}
