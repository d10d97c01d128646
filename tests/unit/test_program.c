/* Rows of programs: processes, reports, folders, records. The tests use the real reaper. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parsed.h"
#include "program/run/environment.h"
#include "program/run/report.h"
#include "program/run/process.h"
#include "worker/row_kind.h"

/* Each test has a folder of its own, and an empty record. */
static struct scratch folder;
static struct record record;
static struct injected injected;

static int set_up(void **state)
{
    record_init(&record);
    injected_init(&injected);
    failure.text[0] = '\0';
    return scratch_create(&folder, &failure);
}

static int tear_down(void **state)
{
    record_clear(&record);
    injected_clear(&injected);
    scratch_remove(&folder);
    return access(folder.path, F_OK) == 0;
}

/* ---- processes ---- */

/* Runs a script of sh, which reports in `in`. The caller releases the process. */
static enum status run_in(const struct scratch *in, const char *script, double timeout,
                          struct process_end *end)
{
    char report[4200];
    char *const words[] = {"sh", "-c", (char *)script, NULL};
    char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "A=b", report, NULL};
    struct countdown time = countdown_start(timeout);
    const struct process process = {
        .words = words, .environment = environment, .folder = "/", .time = &time};
    snprintf(report, sizeof report, "%s=%s", REPORT_VARIABLE, in->path);
    return process_run(&process, end, &failure);
}

static enum status run(const char *script, double timeout, struct process_end *end)
{
    enum status status = run_in(&folder, script, timeout, end);
    process_release(end);
    return status;
}

#define BENCH_TEST(name) TEST_WITH(name, set_up, tear_down)

BENCH_TEST(the_end_of_a_program_is_reported)
{
    static const struct {
        const char *script, *text; /* NULL: it ends well */
    } rows[] = {
        {"exit 0", NULL},
        {"[ $A = b ] && [ $(pwd) = / ] && [ -z \"$HOME\" ]", NULL},
        {"echo out; echo err >&2; exit 3",
         "the program ended with status 3; it last printed: out|err"},
        {"kill -9 $$", "the program was ended by signal 9 (Killed) and printed nothing"},
        {"nothere", "not found"},
        {"read line", "the program ended with status 1 and printed nothing"},
        {"trap 'kill 0' EXIT; true", "signal 15"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct process_end end;
        enum status status = run(rows[i].script, 60, &end);
        if (status != (rows[i].text ? STATUS_FAILED : STATUS_OK) ||
            (rows[i].text && !strstr(failure.text, rows[i].text)))
            fail_msg("%s: %d, %s", rows[i].script, (int)status, failure.text);
    }
}

BENCH_TEST(a_timeout_ends_the_program)
{
    struct process_end end;
    assert_int_equal(run("echo here; trap '' TERM; sleep 300", 2, &end), STATUS_FAILED);
    assert_true(end.timed_out);
    assert_says(failure.text, "it last printed: here");
    /* The program stops its reaper. */
    assert_int_equal(run("kill -STOP $PPID; echo here; exit 0", 0.3, &end), STATUS_FAILED);
    assert_true(end.timed_out);
}

/* A rank hands down descriptors of MPI. */
BENCH_TEST(a_program_has_three_descriptors)
{
    struct process_end end;
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    int high = fcntl(pipes[0], F_DUPFD, 700);
    assert_int_equal(run("ls /proc/$$/fd; true", 60, &end), STATUS_OK);
    assert_string_equal(end.tail.text, "0|1|2");
    close(pipes[0]);
    close(pipes[1]);
    close(high);
}

BENCH_TEST(endless_output_is_cut)
{
    struct process_end end;
    assert_int_equal(run("yes | head -c 3000000; echo last; exit 1", 60, &end), STATUS_FAILED);
    assert_int_equal(end.tail.length, TAIL_MAX - 1); /* the last line has no newline */
    assert_string_equal(end.tail.text + end.tail.length - 6, "y|last");
}

BENCH_TEST(nothing_is_left_running)
{
    static const char *const scripts[] = {
        "sleep 300 & echo $! >%s/pid; exit 0",
        "setsid sh -c 'echo $$ >%s/pid; sleep 300' & until [ -s %s/pid ]; do sleep 0.1; done",
        "setsid sh -c 'trap \"\" HUP TERM; echo $$ >%s/pid; while :; do sleep 1; done' & sleep 300",
        "sh -c 'echo $$ >%s/pid; sleep 99' & until [ -s %s/pid ]; do :; done; kill -9 $PPID; wait",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; ++i) {
        char path[4200], script[8500];
        struct process_end end;
        int left = 0;
        snprintf(path, sizeof path, "%s/pid", folder.path);
        snprintf(script, sizeof script, scripts[i], folder.path, folder.path);
        run(script, 2, &end);
        FILE *file = fopen(path, "r");
        assert_true(file && fscanf(file, "%d", &left) == 1 && left > 1);
        fclose(file);
        unlink(path);
        if (kill(left, 0) == 0 || errno != ESRCH)
            fail_msg("%s: %d still runs", scripts[i], left);
    }
}

/* A chain of sessions, each the child of the one before. */
BENCH_TEST(nested_descendants_end_at_once)
{
    static const char text[] = "echo $$ >>%s/pids; [ $1 = 0 ] && exec sleep 300\n"
                               "setsid sh %s/chain $(($1 - 1)) &\nwait\n";
    char path[4200], script[8500];
    struct process_end end;
    int pid, count = 0, left = 0;
    snprintf(path, sizeof path, "%s/chain", folder.path);
    snprintf(script, sizeof script, text, folder.path, folder.path);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(script, file) >= 0 && fclose(file) == 0);
    snprintf(script, sizeof script, "exec sh %s 400", path);
    assert_int_equal(run_in(&folder, script, 3, &end), STATUS_FAILED);
    assert_true(end.timed_out);
    assert_true(end.life >= 0); /* the reaper has removed the folder */
    snprintf(path, sizeof path, "%s/pids", folder.path);
    assert_non_null(file = fopen(path, "r"));
    for (; fscanf(file, "%d", &pid) == 1; ++count)
        left += kill(pid, 0) == 0 || errno != ESRCH;
    fclose(file);
    process_release(&end);
    if (left > 0 || count < 20)
        fail_msg("%d of %d still run", left, count);
}

/* Workers die while a program runs, or after its end and before they remove its folder. */
BENCH_TEST(a_dead_worker_leaves_no_process_and_no_folder)
{
    static const char *const scripts[] = {
        "echo $$ >%s/pid; exit 0 # %d",
        "setsid sh -c 'echo $$ >%s/pid; kill -9 %d; exec sleep 300' & sleep 300",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; ++i) {
        struct scratch lost;
        char path[4200], script[4400];
        int pipes[2], left = 0;
        assert_int_equal(pipe(pipes), 0);
        pid_t worker = fork();
        if (worker == 0) {
            struct process_end end;
            snprintf(script, sizeof script, scripts[i], folder.path, (int)getpid());
            enum status status = scratch_create(&lost, &failure);
            if (status == STATUS_OK && write(pipes[1], lost.path, sizeof lost.path) > 0)
                status = run_in(&lost, script, 60, &end);
            _exit(status == STATUS_OK ? raise(SIGKILL) : 1);
        }
        assert_int_equal(read(pipes[0], lost.path, sizeof lost.path), sizeof lost.path);
        assert_int_equal(waitpid(worker, &left, 0), worker);
        assert_true(WIFSIGNALED(left));
        for (int tries = 0; access(lost.path, F_OK) == 0 && tries < 2000; ++tries)
            clock_sleep(0.01);
        if (access(lost.path, F_OK) == 0)
            fail_msg("%s: the folder stays", scripts[i]);
        snprintf(path, sizeof path, "%s/pid", folder.path);
        FILE *file = fopen(path, "r");
        assert_true(file && fscanf(file, "%d", &left) == 1 && fclose(file) == 0);
        if (kill(left, 0) == 0 || errno != ESRCH)
            fail_msg("%s: %d still runs", scripts[i], left);
        close(pipes[0]);
        close(pipes[1]);
    }
}

/* `pkill -f roofsweep` ends ranks and workers. The reaper then ends what is left. */
BENCH_TEST(the_reaper_has_a_name_of_its_own)
{
    struct process_end end;
    const char *script = "cat /proc/$PPID/comm; tr -d '\\0' </proc/$PPID/cmdline # roofsweep";
    assert_int_equal(run(script, 60, &end), STATUS_OK);
    assert_string_equal(end.tail.text, "program-reaper|program-reaper");
}

/* ---- reports of programs, and their folders ---- */

static void file_write(const struct scratch *in, const char *name, const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", in->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_regions(const struct scratch *in, size_t regions, double error_of_result)
{
    struct report report;
    assert_ok(report_read(in, &report, &failure));
    assert_int_equal(report.region_count, regions);
    assert_true(isnan(error_of_result)
                    ? isnan(report.verify_error)
                    : report.verify_error == error_of_result && report.verify_tolerance == 1e-6);
    report_clear(&report);
}

BENCH_TEST(all_processes_report)
{
    assert_regions(&folder, 0, NAN);
    file_write(&folder, "12", "region 0.5\nregion 1.5e-3\nverify 1e-9 1e-6\nverify 3e-6 1e-6\n");
    file_write(&folder, "13", "verify 1e-9 1e-6");
    assert_regions(&folder, 2, 3e-6);
}

/* A child that was forked within a region also reports the region. */
BENCH_TEST(regions_of_two_processes_are_refused)
{
    struct report report;
    file_write(&folder, "12", "region 0.5\n");
    file_write(&folder, "13", "region 2\n");
    assert_fails(report_read(&folder, &report, &failure), STATUS_FAILED, "several processes");
}

BENCH_TEST(unknown_lines_are_refused)
{
    static const char *const texts[] = {
        "region\n",     "region x\n",    "region -1\n",    "region nan\n",
        "region inf\n", "region 1e30\n", "verify 1\n",     "hello\n",
        "\n",           "region 1x\n",   "region 0\n",     "threads 1\n",
        "region 1 s\n", "region 1 2\n",  "verify 1 2 x\n", "threads 1 2 3 4\n"};
    struct report report;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        file_write(&folder, "1", texts[i]);
        if (report_read(&folder, &report, &failure) != STATUS_FAILED)
            fail_msg("accepted: %s", texts[i]);
    }
}

BENCH_TEST(only_regular_files_are_read)
{
    static const struct {
        const char *command;
        bool refused;
    } rows[] = {
        {"mkfifo one", true},
        {"ln -s /dev/null one", true},
        {"ln -s . one", true},
        {"mkdir -p one/two; echo x >one/three; echo x >.hidden; chmod 500 one; chmod 0 one/two",
         false},
        {"mkdir -p $(printf '1/%.0s' $(seq 2000)) 2/2 3; echo x >2/2/3", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char command[4300];
        struct scratch other;
        struct report report;
        enum status status = rows[i].refused ? STATUS_FAILED : STATUS_OK;
        assert_ok(scratch_create(&other, &failure));
        snprintf(command, sizeof command, "cd %s; %s", other.path, rows[i].command);
        assert_int_equal(system(command), 0);
        assert_int_equal(report_read(&other, &report, &failure), status);
        assert_int_equal(injected_read(&other, &injected, &failure), status);
        assert_true(!rows[i].refused || strstr(failure.text, "one must be a regular file"));
        scratch_remove(&other);
        assert_int_not_equal(access(other.path, F_OK), 0);
    }
}

/* The program reports, and then replaces its folder by a link to a folder of the user. */
BENCH_TEST(links_are_not_followed)
{
    char command[16400];
    struct scratch moved;
    assert_ok(scratch_create(&moved, &failure));
    file_write(&moved, "1", "region 1\n");
    file_write(&folder, "mine", "region 1\nregion 1\n");
    snprintf(command, sizeof command, "mv %s %s/moved; ln -s %s %s", moved.path, folder.path,
             folder.path, moved.path);
    assert_int_equal(system(command), 0);
    assert_regions(&moved, 1, NAN);
    scratch_remove(&moved);
    assert_int_equal(readlink(moved.path, command, sizeof command), -1);
    assert_regions(&folder, 2, NAN);
}

/* Programs run in another folder than their worker. */
BENCH_TEST(a_relative_folder_of_temporary_files_is_found)
{
    struct scratch made;
    assert_int_equal(chdir(folder.path), 0);
    setenv("TMPDIR", ".", 1);
    assert_ok(scratch_create(&made, &failure));
    unsetenv("TMPDIR");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(access(made.path, F_OK), 0);
    scratch_remove(&made);
}

/* A killed worker leaves its folder. The next worker removes it, but no living worker's folder. */
BENCH_TEST(folders_of_dead_workers_are_swept)
{
    int report[2];
    struct scratch dead, next;
    assert_int_equal(pipe(report), 0);
    pid_t worker = fork();
    if (worker == 0) {
        close(folder.descriptor);
        enum status status = scratch_create(&dead, &failure);
        file_write(&dead, "1", "region 1\n");
        _exit(status || write(report[1], &dead, sizeof dead) != sizeof dead);
    }
    assert_int_equal(read(report[0], &dead, sizeof dead), sizeof dead);
    waitpid(worker, NULL, 0);
    close(report[0]);
    close(report[1]);
    assert_int_equal(access(dead.path, F_OK), 0);
    assert_ok(scratch_create(&next, &failure));
    assert_int_not_equal(access(dead.path, F_OK), 0);
    assert_int_equal(access(folder.path, F_OK), 0);
    scratch_remove(&next);
}

/* Each worker removes left folders, also while others have made a folder and not locked it yet. */
BENCH_TEST(folders_made_at_once_stay)
{
    enum { WORKERS = 4, FOLDERS = 300 };
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; ++i) {
        workers[i] = fork();
        if (workers[i] == 0) {
            struct scratch own;
            for (int j = 0; j < FOLDERS; ++j) {
                if (scratch_create(&own, &failure))
                    _exit(1);
                scratch_remove(&own);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < WORKERS; ++i) {
        int status = -1;
        assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
        assert_int_equal(status, 0);
    }
}

/* ---- reports of the injected library ---- */

BENCH_TEST(processes_without_a_region_lose)
{
    static const struct {
        const char *first, *second;
        bool good;
    } rows[] = {
        {"opened\nclosed 1\n", "refused 2 busy\n", true},
        {"refused 2 busy\n", "opened\nclosed 1\n", true},
        {"opened\nclosed 1\n", "opened\n", false},
        {"kernel 1 2\n", "", false},
        {"value 99 1\n", "", false},
        {"hello\n", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        file_write(&folder, "0.injected", rows[i].first);
        file_write(&folder, "1.injected", rows[i].second);
        injected_clear(&injected);
        assert_int_equal(injected_read(&folder, &injected, &failure),
                         rows[i].good ? STATUS_OK : STATUS_FAILED);
        assert_true(!rows[i].good ||
                    (injected.region_count == 1 && injected.refusal.code == OUTCOME_MISSING));
    }
}

BENCH_TEST(copies_and_fills_are_recorded)
{
    file_write(&folder, "1.injected",
               "opened\ncopy 10 30 4000\ncopy 40 60 4000\nfill 5 10 256\nclosed 1\n");
    assert_ok(injected_read(&folder, &injected, &failure));
    assert_ok(injected_record_trace(&injected, 2, &record, &failure));
    assert_true(record.memcpy_count == 1 && record.memcpy_bytes == 4000);
    assert_true(fabs(record.memcpy_time - 20e-9) < 1e-15);
    assert_true(record.memset_count == 1 && record.memset_bytes == 128);
}

/* Two kernels of 100 ns in a region of 1 us. One call of a graph can launch both. */
BENCH_TEST(late_launches_differ_from_queued_ones)
{
    static const struct {
        const char *calls;
        int correlation, start; /* values of the second kernel */
        int64_t paced;
    } rows[] = {
        {"call 20\ncall 900\n", 2, 910, 1},
        {"call 20\ncall 90\n", 2, 910, 0}, /* queued: the device is slow, not the host */
        {"call 20\n", 1, 910, 0},
        {"call 20\ncall 140\n", 2, 150, 0},            /* too short to count as a gap */
        {"call 20\ncall 90\n", 2, 120, FIELD_MISSING}, /* they overlap */
        {"call 20\n", 2, 910, FIELD_MISSING},
        {"call 20\ncall 30\n", 1, 910, FIELD_MISSING},
    };
    const char *kernel = "kernel %d %d %d 0 1 1 1 32 1 1 8 0 0 1 9 1 k\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[400], *end = text + sprintf(text, "opened\n%s", rows[i].calls);
        end += sprintf(end, kernel, 30, 130, 1);
        sprintf(end, kernel, rows[i].start, rows[i].start + 100, rows[i].correlation);
        file_write(&folder, "1.injected", text);
        injected_clear(&injected);
        record_clear(&record);
        record.time_median = rows[i].start == 150 ? 205e-9 : 1e-6;
        assert_ok(injected_read(&folder, &injected, &failure));
        assert_ok(injected_record_trace(&injected, 1, &record, &failure));
        assert_true(record.host_paced == rows[i].paced && record.kernels[0].resident == 9);
    }
}

/* If a region has more kernels than a record can list, the record has only sums. */
BENCH_TEST(too_many_kernels_leave_sums)
{
    enum { KERNELS = RECORD_KERNELS_MAX + 1 };
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    fputs("opened\n", stream);
    for (int i = 0; i < KERNELS; ++i)
        fprintf(stream, "kernel %d %d %d 0 %d 1 1 32 1 1 8 0 0 1 9 1 k\neach %d %d 3\n", 10 * i,
                10 * i + 5, i, i + 1, i, (int)QUANTITY_VECTOR_FP32);
    fprintf(stream, "value %d %d\nclosed 1\n", (int)QUANTITY_VECTOR_FP32, 3 * KERNELS);
    fclose(stream);
    file_write(&folder, "1.injected", text);
    free(text);
    assert_ok(injected_read(&folder, &injected, &failure));
    strcpy(record.error, "not verified");
    assert_ok(injected_record_trace(&injected, 1, &record, &failure));
    injected_record_counts(&injected, &injected, 1, &record);
    assert_string_equal(record.error, "not verified; no kernels: the region runs 4097 different "
                                      "ones, and a row has 4096 at most");
    assert_true(record.kernel_count == 0 && record.launches == KERNELS);
    assert_true(record.flops_counted == 3 * KERNELS);
}

/* ---- counts into a record ---- */

/* A region of two launches of one kernel. */
static struct injected region_of(const char *name, int64_t count, bool graph)
{
    struct injected region;
    injected_init(&region);
    region.kernels = malloc(sizeof *region.kernels);
    fields_clear(kernel_fields, region.kernels);
    snprintf(region.kernels->name, sizeof region.kernels->name, "%s", name);
    region.kernels->count = count;
    region.kernel_count = 1;
    region.launches = calloc(2, sizeof *region.launches);
    region.launches[1] = (struct launch){.start = 5, .end = 9, .correlation = 1};
    region.launch_count = 2;
    region.in_graphs = graph ? 2 : 0;
    return region;
}

BENCH_TEST(graphs_take_flops_of_the_run_without_graphs)
{
    struct injected graph = region_of("a", 2, true), plain = region_of("a", 2, false);
    struct injected name = region_of("b", 2, false), count = region_of("a", 3, false), one_by_one;
    injected_init(&one_by_one);
    assert_true(injected_same_kernels(&graph, &plain));
    assert_false(injected_same_kernels(&graph, &name) || injected_same_kernels(&graph, &count));
    injected.values[QUANTITY_VECTOR_FP32] = 0;
    injected.values[QUANTITY_TENSOR_FP16] = 100;
    one_by_one.values[QUANTITY_VECTOR_FP32] = 30;
    one_by_one.each = malloc(2 * sizeof *one_by_one.each);
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        one_by_one.each[0][i] = one_by_one.each[1][i] = i == QUANTITY_VECTOR_FP32 ? 15 : NAN;
    one_by_one.each_count = 2;
    assert_ok(injected_record_trace(&graph, 2, &record, &failure));
    injected_ungraph(&graph, &injected, &plain, &one_by_one);
    injected_record_counts(&injected, &graph, 2, &record);
    assert_int_equal(record.counters.code, COUNTED_YES);
    assert_true(record.flops_vector[PRECISION_FP32] == 15 && record.flops_counted == 65);
    assert_true(record.kernels[0].flops_counted == 15);
    assert_true(isnan(record.kernels[0].bytes_counted[LEVEL_DRAM]));
    injected_clear(&graph);
    injected_clear(&plain);
    injected_clear(&name);
    injected_clear(&count);
    injected_clear(&one_by_one);
}

/* Vector FLOPs are missing, and never 0, where graphs launched all kernels or code was unloaded. */
BENCH_TEST(doubtful_vector_flops_are_missing)
{
    static const struct {
        size_t in_graphs;
        bool unloaded;
        const char *reason; /* NULL: everything is counted */
    } rows[] = {
        {0, false, NULL},
        {4, false, "4 of 4 kernels are launched by CUDA graphs"},
        {0, true, "unloads code"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const bool whole = !rows[i].reason;
        struct injected counts = {.launch_count = 4};
        counts.in_graphs = rows[i].in_graphs;
        counts.unloaded = rows[i].unloaded;
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            counts.values[j] = quantity_tensor((enum quantity)j) ? NAN : 40;
        counts.values[QUANTITY_VECTOR_FP64] = counts.values[QUANTITY_VECTOR_FP16] = 0;
        counts.values[QUANTITY_VECTOR_FP32] = rows[i].in_graphs ? 0 : 100;
        counts.values[QUANTITY_TENSOR_FP16] = 1000;
        record_clear(&record);
        injected_record_counts(&counts, &counts, 20, &record);
        assert_true(whole ? record.flops_counted == 55 : isnan(record.flops_counted));
        assert_true(whole ? record.flops_vector[PRECISION_FP32] == 5
                          : isnan(record.flops_vector[PRECISION_FP32]));
        assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
        assert_true(record.bytes_counted[LEVEL_DRAM] == 4);
        assert_true(isnan(record.bytes_counted[LEVEL_L3]));
        assert_int_equal(record.counters.code, whole ? COUNTED_YES : COUNTED_INCOMPLETE);
        assert_true(whole || strstr(record.counters.reason, rows[i].reason));
    }
}

BENCH_TEST(tensors_follow_from_the_precision)
{
    assert_int_equal(injected_tensors(PRECISION_FP16), quantity_tensor(QUANTITY_TENSOR_FP16));
    assert_int_equal(injected_tensors(PRECISION_FP32), quantity_tensor(QUANTITY_TENSOR_TF32));
    assert_int_equal(injected_tensors(PRECISION_COUNT),
                     QUANTITY_ALL_TENSORS & ~quantity_tensor(QUANTITY_TENSOR_INT8));
}

/* ---- environment, hash, model ---- */

BENCH_TEST(only_named_variables_are_inherited)
{
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("TMPDIR", "/tmp", 1);
    struct environment s = environment_create();
    for (size_t i = 0; i < s.count; ++i)
        assert_null(strstr(s.variables[i], "OMPI_"));
    environment_set(&s, "TMPDIR=/other");
    environment_set(&s, "OMPI_COMM_WORLD_RANK");
    environment_set(&s, "NOBODY_HAS_SET_THIS");
    environment_put(&s, "NEW", "a=b");
    int found = 0;
    for (size_t i = 0; i < s.count; ++i) {
        found += strcmp(s.variables[i], "TMPDIR=/other") == 0;
        found += strcmp(s.variables[i], "OMPI_COMM_WORLD_RANK=3") == 0;
        found += strcmp(s.variables[i], "NEW=a=b") == 0;
        assert_null(strstr(s.variables[i], "NOBODY"));
    }
    assert_true(s.complete && s.variables[s.count] == NULL);
    assert_int_equal(found, 3);
    environment_clear(&s);
}

static enum status device_is_cpu(struct device_state *state, struct program_device *given,
                                 struct error *unused)
{
    static cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    *given = (struct program_device){.cpus = &cpus, .cpus_size = sizeof cpus, .cores = 2};
    return STATUS_OK;
}

static void row_measure(const char *text)
{
    const struct device_ops device = {.program = device_is_cpu};
    struct request request = request_default(REQUEST_MEASURE);
    void *kept = NULL;
    assert_ok(config_parse(text, &request.config, &failure));
    snprintf(request.folder, sizeof request.folder, "%s", folder.path);
    record_clear(&record);
    assert_ok(program_row.measure(&device, NULL, &kept, &request, &record, &failure));
    assert_int_equal(record.status, RECORD_MEASURED);
    assert_true(record.busy_time == record.time_median && record.time_median > 0 && !kept);
}

static const char *hash_of_row(const char *text)
{
    row_measure(text);
    return record.program_hash;
}

BENCH_TEST(files_of_the_command_are_hashed)
{
    static const char text[] = "program command=\"sh -c true a --batch 3\" region=all";
    char first[sizeof record.program_hash];
    assert_string_equal(hash_of_row(text), "");
    file_write(&folder, "a", "print(1)\n");
    strcpy(first, hash_of_row(text));
    assert_int_equal(strlen(first), 32);
    file_write(&folder, "a", "print(2)\n");
    assert_string_not_equal(hash_of_row(text), first);
}

BENCH_TEST(threads_of_cpu_regions_are_recorded)
{
    static const struct {
        const char *last; /* line of the second region */
        double running, waiting;
    } rows[] = {
        {"threads 0.003 4\n", 0.625, NAN}, {"threads 0.002 4 0.001\n", 0.5, 0.25}, {"", NAN, NAN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        file_write(&folder, "b", "region 0.002\nthreads 0.002 3 0.001\nregion 0.002\n");
        file_write(&folder, "c", rows[i].last);
        file_write(&folder, "a", "cat b c >$ROOFSWEEP_REPORT/1; [ $ROOFSWEEP_CORES = 2 ]");
        row_measure("program command=\"sh a\" iterations=2");
        assert_true(isnan(rows[i].running) ? isnan(record.threads_running)
                                           : fabs(record.threads_running - rows[i].running) < 1e-9);
        assert_true(isnan(rows[i].waiting) ? isnan(record.threads_waiting)
                                           : fabs(record.threads_waiting - rows[i].waiting) < 1e-9);
        assert_int_equal(record.involuntary_switches, *rows[i].last ? 7 : FIELD_MISSING);
    }
    file_write(&folder, "a", "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done");
    row_measure("program command=\"sh a\" region=all");
    assert_true(record.threads_running > 0 && record.threads_running < 0.75);
}

BENCH_TEST(folders_that_stay_are_named)
{
    char command[4300];
    snprintf(command, sizeof command, "cd %s; >b; chattr +i b 2>&- && chattr -i b", folder.path);
    if (system(command) != 0)
        skip(); /* needs root, and a file system with immutable files */
    file_write(&folder, "a", "cd $ROOFSWEEP_REPORT; mkdir 1; >1/2; chattr +i 1/2");
    hash_of_row("program command=\"sh a\" region=all");
    char *end = strstr(record.error, " cannot be removed");
    assert_non_null(end);
    *end = '\0';
    const char *path = strchr(record.error, '/');
    snprintf(command, sizeof command, "chattr -i %.500s/1/2", path);
    assert_int_equal(system(command), 0);
    scratch_sweep(path);
    assert_int_not_equal(access(path, F_OK), 0);
}

BENCH_TEST(a_program_has_the_model_that_it_names)
{
    static const char *const impossible[] = {
        "program command=\"\"",
        "program axes=kernel=0 command=x modelled_as=conv2d",
        "program command=x modelled_as=program",
    };
    struct config conv = parse_any("conv2d batch=3 filters=7 precision=fp16");
    struct config program =
        parse_any("program axes=\"batch=3 filters=7 mode=eager precision=fp16\" "
                  "command=x modelled_as=conv2d precision=fp16");
    assert_ok(config_check(&program, &failure));
    assert_true(config_cost(&program).flops == config_cost(&conv).flops);
    assert_true(config_cost(&program).bytes == config_cost(&conv).bytes);
    assert_int_equal(config_precision(&program), PRECISION_FP16);
    program = parse_any("program command=x model_flops=12");
    assert_true(config_cost(&program).flops == 12 && isnan(config_cost(&program).bytes));
    assert_int_equal(config_precision(&program), PRECISION_COUNT);
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; ++i) {
        program = parse_any(impossible[i]);
        assert_int_equal(config_check(&program, &failure), STATUS_UNSUPPORTED);
    }
}
