#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "journal_bench.h"
#include "manifest/manifest.h"
#include "manifest/plan.h"
#include "ranks/resume.h"
#include "results/results_nc.h"

static int lock_code; /* error code of flock; 0: the call is carried out */

int flock(int fd, int operation)
{
    if (lock_code == 0)
        return (int)syscall(SYS_flock, fd, operation);
    errno = lock_code;
    return -1;
}

FOLDER_TEST(test_round_trip)
{
    const char *path = path_of(state);
    struct session session = {.id = "s1",
                              .title = "\"quotes\", \xc3\xa4 and\nlines",
                              .ranks = 3,
                              .start_time = 1735689600.25};
    char manifest[] = "[sweep]\ntitle = a\tb\n";
    session.manifest_text = manifest;
    struct record record;
    record_init(&record);
    strcpy(record.configuration, "lstm batch=1");
    config_text_hash(record.configuration, record.config_hash);
    strcpy(record.device_key, "s1-0");
    record.status = RECORD_FAILED;
    strcpy(record.error, "line 1\nline 2 \\ \"}\n");
    record.time_median = 0.1;
    double samples[] = {1.0 / 3, 2e-9};
    record.sample = samples;
    record.sample_count = 2;

    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    append(journal, "session", session_encode(&session));
    append(journal, "device", device_entry("s1-0", "GPU-1"));
    append(journal, "record", record_encode(&record));
    journal_close(journal);

    bool torn = true;
    struct results *results = read_journal(path, &torn);
    assert_false(torn);
    assert_int_equal(results->session_count, 1);
    assert_string_equal(results->sessions[0].title, session.title);
    assert_string_equal(results->sessions[0].manifest_text, manifest);
    assert_int_equal(results->sessions[0].ranks, 3);
    assert_true(results->sessions[0].start_time == session.start_time);
    assert_int_equal(results->device_count, 1);
    assert_string_equal(results->devices[0].uuid, "GPU-1");
    assert_true(results->devices[0].peak_bandwidth[LEVEL_L2] == 1.5e12);
    assert_true(isnan(results->devices[0].peak_bandwidth[LEVEL_DRAM]));
    assert_int_equal(results_device(results, "s1-0"), 0);
    assert_int_equal(results_device(results, "s1-1"), -1);
    assert_int_equal(results->row_count, 1);
    const struct record *copy = record_of(results, 0);
    assert_string_equal(copy->error, record.error);
    assert_true(copy->time_median == 0.1);
    assert_true(isnan(copy->time_mean) && copy->launches == FIELD_MISSING);
    assert_int_equal(copy->sample_count, 2);
    assert_true(copy->sample[0] == samples[0] && copy->sample[1] == samples[1]);
    results_destroy(results);
}

/* A later record of the same configuration and device replaces the earlier one, also under the key
 * of a later session; another device has its own record. */
FOLDER_TEST(test_replaces)
{
    const char *path = path_of(state);
    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    append(journal, "device", device_entry("s1-0", "GPU-1"));
    append(journal, "device", device_entry("s1-1", "GPU-2"));
    append(journal, "record", record_entry(7, "s1-0", 1));
    append(journal, "record", record_entry(7, "s1-1", 2));
    append(journal, "record", record_entry(8, "s1-0", 3));
    append(journal, "device", device_entry("s2-5", "GPU-1"));
    append(journal, "record", record_entry(7, "s2-5", 4));
    journal_close(journal);

    bool torn;
    struct results *results = read_journal(path, &torn);
    assert_int_equal(results->device_count, 3);
    assert_int_equal(results->row_count, 3);
    assert_true(record_of(results, 0)->time_median == 4);
    assert_string_equal(record_of(results, 0)->device_key, "s2-5");
    assert_true(record_of(results, 1)->time_median == 2);
    assert_true(record_of(results, 2)->time_median == 3);
    assert_int_equal(results->without_device, 0);
    results_sort(results, NULL, &(struct error){{0}}); /* only one entry of GPU-1 has rows */
    assert_int_equal(results->device_count, 3);
    results_destroy(results);
}

/* Rows of an undescribed device are left out and measured again, because the device has neither
 * identity nor roofs. `without_device` counts them until a later session has measured them. A row
 * that failed on several devices names no device. */
FOLDER_TEST(test_without_device)
{
    const char *path = path_of(state);
    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    append(journal, "record", record_entry(7, "s1-0", 1));
    append(journal, "record", record_entry(8, "s1-1", 2));
    append(journal, "record", record_entry(9, "", 3));
    append(journal, "record", record_entry(10, "s1-1", 4));
    append(journal, "device", device_entry("s1-0", "GPU-1"));
    journal_close(journal);
    for (int again = 0; again < 2; ++again) {
        bool torn;
        struct results *results = read_journal(path, &torn);
        assert_int_equal(results->row_count, again ? 3 : 2);
        assert_int_equal(results->rows[0].place.line, 1);
        assert_int_equal(results->rows[1].place.line, 3);
        assert_int_equal(results->without_device, again ? 1 : 2);
        assert_string_equal(results->missing_key, "s1-1");
        results_destroy(results);
        journal = open_journal(path, JOURNAL_RESUME);
        append(journal, "device", device_entry("s2-1", "GPU-2"));
        append(journal, "record", record_entry(8, "s2-1", 5));
        journal_close(journal);
    }
}

FOLDER_TEST(test_modes)
{
    const char *path = path_of(state);
    struct journal *journal = NULL;
    assert_fails(journal_open(path, JOURNAL_RESUME, &journal, &failure), STATUS_USAGE, path);
    journal_close(open_journal(path, JOURNAL_CREATE));
    assert_fails(journal_open(path, JOURNAL_CREATE, &journal, &failure), STATUS_USAGE, path);
    assert_says(failure.text, "another job has begun this file");
    assert_fails(journal_open("/no/such/folder/j", JOURNAL_CREATE, &journal, &failure),
                 STATUS_SYSTEM, "/no/such/folder/j");
    assert_null(journal);
    int input = fcntl(STDIN_FILENO, F_GETFD);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(path, path), 0);
    assert_fails(journal_open(path, JOURNAL_RESUME, &journal, &failure), STATUS_SYSTEM, "circle");
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), input);
    assert_int_equal(unlink(path), 0);
    journal_close(open_journal(path, JOURNAL_CREATE));
    if (chown(path, 65534, (gid_t)-1) == 0) { /* only root can */
        assert_fails(journal_open(path, JOURNAL_RESUME, &journal, &failure), STATUS_USAGE,
                     "belongs to user nobody: --resume --any-owner");
        assert_fails(journal_open(path, JOURNAL_REPLACE, &journal, &failure), STATUS_USAGE,
                     "belongs to user nobody, who could change its rows");
        journal_close(open_journal(path, JOURNAL_ADOPT));
    }

    bool torn;
    struct results *results = read_journal(path, &torn); /* an empty journal is valid */
    assert_int_equal(results->row_count, 0);
    results_destroy(results);
}

FOLDER_TEST(test_locked)
{
    const char *path = path_of(state);
    struct journal *first = open_journal(path, JOURNAL_CREATE), *second = NULL;
    char holder[64];
    snprintf(holder, sizeof holder, "in use by process %d of user ", getpid());
    assert_fails(journal_open(path, JOURNAL_REPLACE, &second, &failure), STATUS_USAGE, holder);
    assert_says(failure.text, path);
    assert_null(second);
    append(first, "record", record_entry(1, "s1-0", 1)); /* the first journal goes on */
    journal_close(first);
    journal_close(open_journal(path, JOURNAL_RESUME));
}

/* File systems without locks: 524 is ENOTSUPP of DVS. */
FOLDER_TEST(test_without_locks)
{
    const int codes[] = {ENOLCK, ENOSYS, EOPNOTSUPP, 524};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
        lock_code = codes[i];
        journal_close(open_journal(path_of(state), JOURNAL_CREATE));
        lock_code = 0;
        assert_int_equal(unlink(path_of(state)), 0);
    }
}

/* Processes of a killed job may hold the journal for a moment. */
FOLDER_TEST(test_lock_is_waited_for)
{
    const char *path = path_of(state);
    int ready[2];
    char byte;
    journal_close(open_journal(path, JOURNAL_CREATE));
    assert_int_equal(pipe(ready), 0);
    pid_t holder = fork();
    if (holder == 0) {
        struct journal *journal;
        if (journal_open(path, JOURNAL_RESUME, &journal, &failure) || write(ready[1], "", 1) != 1)
            _exit(1);
        usleep(700000);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    journal_close(open_journal(path, JOURNAL_RESUME));
    waitpid(holder, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

static void others_remove(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void others_remove_its_folder(const char *path)
{
    unlink(path);
    assert_int_equal(rmdir("sub"), 0);
}

static void others_replace(const char *path)
{
    file_store("other", "diary\n", 6);
    assert_int_equal(rename("other", path), 0);
}

static void others_cut(const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void others_edit(const char *path)
{
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "#", 1, 100), 1);
    close(fd);
}

/* Checks that the file that publishing reads has all rows; other processes cannot change this file.
 */
static void assert_source_rows(const struct journal *journal, size_t count)
{
    char source[JOURNAL_SOURCE];
    bool torn;
    journal_source(journal, source);
    struct results *results = read_journal(source, &torn);
    assert_int_equal(results->row_count, count);
    results_destroy(results);
}

static void others_overwrite(const char *path)
{
    char other[3000];
    memset(other, '\n', sizeof other);
    file_store(path, other, sizeof other);
}

/* Changes by other processes lose nothing: the journal continues under another name. */
FOLDER_TEST(test_goes_on_elsewhere)
{
    static const struct {
        void (*harm)(const char *path);
        const char *says, *moved;
    } rows[] = {{others_remove, "was removed", "sub/x.nc.spare-1.journal"},
                {others_remove_its_folder, "was removed", "./x.nc.spare-1.journal"},
                {others_replace, "was replaced", "sub/x.nc.spare-1.journal"},
                {others_cut, "was changed by others", "sub/x.nc.spare-1.journal"},
                {others_overwrite, "was changed by others", "sub/x.nc.spare-1.journal"},
                {others_edit, "was changed by others", "sub/x.nc.spare-1.journal"}};
    static const char path[] = "sub/x.nc.journal";
    char *folder = strdup(path_of(state)), *back = getcwd(NULL, 0);
    assert_int_equal(chdir(dirname(folder)), 0);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; ++i) {
        const size_t row = i / 2;
        bool torn;
        assert_int_equal(mkdir("sub", 0700), 0);
        struct journal *journal = open_journal(path, JOURNAL_CREATE);
        append(journal, "device", device_entry("s1-0", "GPU-1"));
        append(journal, "record", record_entry(1, "s1-0", 1));
        if (i % 2 == 1) { /* a file of an earlier run */
            journal_close(journal);
            journal = open_journal(path, JOURNAL_RESUME);
        }
        append(journal, "record", record_entry(2, "s1-0", 2));
        assert_ok(journal_check_path(journal, &failure));
        rows[row].harm(path);
        assert_source_rows(journal, 2);
        append(journal, "record", record_entry(3, "s1-0", 3));
        assert_ok(journal_sync(journal, &failure));
        assert_fails(journal_check_path(journal, &failure), STATUS_SYSTEM, rows[row].says);
        assert_string_equal(journal_path(journal), rows[row].moved);
        assert_says(failure.text, journal_path(journal));
        struct results *results = read_journal(journal_path(journal), &torn);
        assert_int_equal(results->row_count, 3);
        results_destroy(results);
        unlink(journal_path(journal));
        journal_close(journal);
        unlink(path);
        rmdir("sub");
    }
    assert_int_equal(chdir(back), 0);
    free(folder);
    free(back);
}

/* The journal of a real sweep by roofsweep 0.1.0+bd9fec0b12 (journal format 1, result format 3) has
 * all rows of its manifest, can be gathered, and takes another record. */
FOLDER_TEST(test_earlier_version)
{
    const char *path = path_of(state);
    char netcdf[128];
    struct manifest *manifest;
    struct plan *plan;
    size_t length;
    bool torn;
    char *text = file_load(TEST_DATA_DIR "/journals/cpu.nc.journal", &length);
    file_store(path, text, length);
    free(text);
    struct results *results = read_journal(path, &torn);
    assert_false(torn);
    assert_int_equal(results->row_count, 4);
    assert_int_equal(results->device_count, 1);
    const char *ini = results->sessions[0].manifest_text;
    assert_ok(manifest_parse("sweep.ini", ini, strlen(ini), &manifest, &failure));
    assert_ok(plan_create(manifest, &plan, &failure));
    assert_int_equal(plan->count, 4);
    assert_int_equal(resume_missing(plan, results, results->devices, 1, 1), 0);
    const struct record *record = record_of(results, 0);
    assert_string_equal(record->label, "layers");
    assert_string_equal(record->device_key, results->devices[0].key);
    assert_int_equal(record->attempts, 1);
    assert_int_equal(record->sample_count, 3);
    assert_true(record->flops_model == 9216 && record->time_median == 1.071999577106908e-6);
    results_sort(results, NULL, &(struct error){{0}});
    assert_string_equal(results->rows[2].error,
                        "onednn: oneDNN 2.6.3 has no native instructions for fp8 on this CPU; "
                        "cblas: its precisions are fp32 and fp64, not fp8");
    snprintf(netcdf, sizeof netcdf, "%.*s", (int)(strlen(path) - strlen(".journal")), path);
    assert_ok(results_nc_write(results, netcdf, NULL, &failure));
    assert_int_equal(unlink(netcdf), 0);
    struct journal *journal = open_journal(path, JOURNAL_RESUME);
    append(journal, "record", record_entry(1, results->devices[0].key, 1e-3));
    journal_close(journal);
    plan_destroy(plan);
    manifest_destroy(manifest);
    results_destroy(results);
    results = read_journal(path, &torn);
    assert_int_equal(results->row_count, 5);
    results_destroy(results);
}
