/* Programs: what runs, what it hands back, what it leaves. The reaper is the real one. */
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

#include "program/workload.h"
#include "program/run/handback.h"
#include "program/run/injected.h"
#include "program/run/process.h"
#include "program/run/environment.h"
#include "worker/row_kind.h"

/* Runs a script of sh. */
static enum status run(const char *script, double timeout, struct process_end *end,
                       struct error *error)
{
    char *const words[] = {"sh", "-c", (char *)script, NULL};
    char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "A=b", NULL};
    struct countdown time = countdown_start(timeout);
    const struct process process = {
        .words = words, .environment = environment, .folder = "/", .time = &time};
    return process_run(&process, end, error);
}

static void the_end_of_a_program_is_told(void **state)
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
        struct error error = {""};
        enum status status = run(rows[i].script, 60, &end, &error);
        if (status != (rows[i].text ? STATUS_FAILED : STATUS_OK) ||
            (rows[i].text && !strstr(error.text, rows[i].text)))
            fail_msg("%s: %d, %s", rows[i].script, (int)status, error.text);
    }
}

static void a_program_that_takes_too_long_is_ended(void **state)
{
    struct process_end end;
    struct error error;
    assert_int_equal(run("echo here; trap '' TERM; sleep 300", 0.3, &end, &error), STATUS_FAILED);
    assert_true(end.timed_out);
    assert_non_null(strstr(error.text, "it last printed: here"));
    /* The reaper is stopped by its program. */
    assert_int_equal(run("kill -STOP $PPID; echo here; exit 0", 0.3, &end, &error), STATUS_FAILED);
    assert_true(end.timed_out);
}

/* A rank hands down descriptors of MPI. */
static void a_program_has_three_descriptors(void **state)
{
    int pipes[2], high;
    struct process_end end;
    struct error error;
    assert_int_equal(pipe(pipes), 0);
    high = fcntl(pipes[0], F_DUPFD, 700);
    assert_int_equal(run("ls /proc/$$/fd; true", 60, &end, &error), STATUS_OK);
    assert_string_equal(end.tail.text, "0|1|2");
    close(pipes[0]);
    close(pipes[1]);
    close(high);
}

static void output_without_end_does_no_harm(void **state)
{
    struct process_end end;
    struct error error;
    assert_int_equal(run("yes | head -c 3000000; echo last; exit 1", 60, &end, &error),
                     STATUS_FAILED);
    assert_int_equal(end.tail.length, TAIL_MAX - 1); /* without the last line's end */
    assert_string_equal(end.tail.text + end.tail.length - 6, "y|last");
}

/* The number that the script has written; 0: none. */
static pid_t number_in(const char *path)
{
    FILE *file = fopen(path, "r");
    int number = 0;
    if (file && fscanf(file, "%d", &number) != 1)
        number = 0;
    if (file)
        fclose(file);
    return number;
}

static void nothing_is_left_running(void **state)
{
    static const char *const scripts[] = {
        "sleep 300 & echo $! >%s; exit 0",
        "setsid sh -c 'echo $$ >%s; sleep 300' & sleep 0.3; exit 0",
        "setsid sh -c 'trap \"\" HUP TERM; echo $$ >%s; while :; do sleep 1; done' & sleep 300",
        "sh -c 'echo $$ >%s; sleep 300' & sleep 0.3; kill -9 $PPID; sleep 300",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; ++i) {
        char path[] = "/tmp/roofsweep-pid-XXXXXX", script[256];
        struct process_end end;
        struct error error;
        close(mkstemp(path));
        snprintf(script, sizeof script, scripts[i], path);
        run(script, 2, &end, &error);
        pid_t left = number_in(path);
        unlink(path);
        assert_true(left > 1);
        if (kill(left, 0) == 0 || errno != ESRCH)
            fail_msg("%s: %d still runs", scripts[i], (int)left);
    }
}

/* ---- what is handed back ---- */

static void file_write(const struct scratch *folder, const char *name, const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void lines_are_taken_from_all_processes(void **state)
{
    struct scratch folder;
    struct error error;
    struct handback handback;
    assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
    assert_int_equal(handback_read(&folder, &handback, &error), STATUS_OK);
    assert_int_equal(handback.region_count, 0);
    assert_true(isnan(handback.verify_error));
    file_write(&folder, "12", "region 0.5\nregion 1.5e-3\nverify 1e-9 1e-6\nverify 3e-6 1e-6\n");
    file_write(&folder, "13", "region 2");
    assert_int_equal(handback_read(&folder, &handback, &error), STATUS_OK);
    assert_int_equal(handback.region_count, 3);
    assert_true(handback.verify_error == 3e-6 && handback.verify_tolerance == 1e-6);
    handback_clear(&handback);
    scratch_remove(&folder);
    assert_int_not_equal(access(folder.path, F_OK), 0);
}

static void lines_that_mean_nothing_are_refused(void **state)
{
    static const char *const texts[] = {
        "region\n",   "region x\n", "region -1\n", "region nan\n", "region inf\n", "region 1e30\n",
        "verify 1\n", "hello\n",    "\n",          "region 1x\n",  "region 0\n"};
    struct scratch folder;
    struct error error;
    struct handback handback;
    assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        file_write(&folder, "1", texts[i]);
        if (handback_read(&folder, &handback, &error) != STATUS_FAILED)
            fail_msg("accepted: %s", texts[i]);
    }
    scratch_remove(&folder);
}

/* What a program may leave where files are read: `text` in the error; NULL: it is not read. */
static void files_alone_are_read(void **state)
{
    static const struct {
        const char *command, *text;
    } rows[] = {
        {"mkfifo one", "one must be a regular file"},
        {"ln -s /dev/null one", "one must be a regular file"},
        {"ln -s . one", "one must be a regular file"},
        {"mkdir -p one/two; echo x >one/three; echo x >.hidden; chmod 500 one; chmod 0 one/two",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char command[4300];
        struct scratch folder;
        struct handback handback;
        struct injected injected;
        struct error error = {""};
        assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
        snprintf(command, sizeof command, "cd %s; %s", folder.path, rows[i].command);
        assert_int_equal(system(command), 0);
        enum status status = rows[i].text ? STATUS_FAILED : STATUS_OK;
        assert_int_equal(handback_read(&folder, &handback, &error), status);
        assert_int_equal(injected_read(&folder, &injected, &error), status);
        if (rows[i].text)
            assert_non_null(strstr(error.text, rows[i].text));
        scratch_remove(&folder);
        assert_int_not_equal(access(folder.path, F_OK), 0);
    }
}

/* The program reports, and then puts a link to a folder of the user's at the folder's place. */
static void a_link_is_not_followed(void **state)
{
    char command[16400];
    struct scratch folder, users;
    struct handback handback;
    struct error error;
    assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
    assert_int_equal(scratch_create(&users, &error), STATUS_OK);
    file_write(&folder, "1", "region 1\n");
    file_write(&users, "mine", "region 1\nregion 1\n");
    snprintf(command, sizeof command, "mv %s %s/moved; ln -s %s %s", folder.path, users.path,
             users.path, folder.path);
    assert_int_equal(system(command), 0);
    assert_int_equal(handback_read(&folder, &handback, &error), STATUS_OK);
    assert_int_equal(handback.region_count, 1);
    handback_clear(&handback);
    scratch_remove(&folder);
    assert_int_equal(readlink(folder.path, command, sizeof command), -1);
    assert_int_equal(handback_read(&users, &handback, &error), STATUS_OK);
    assert_int_equal(handback.region_count, 2);
    handback_clear(&handback);
    scratch_remove(&users);
}

/* A worker that is killed leaves its folder: the next one removes it, and none of a living one. */
static void a_dead_workers_folder_is_swept(void **state)
{
    int report[2];
    struct scratch living, dead, next;
    struct error error;
    assert_int_equal(pipe(report), 0);
    assert_int_equal(scratch_create(&living, &error), STATUS_OK);
    pid_t worker = fork();
    if (worker == 0) {
        close(living.descriptor);
        enum status status = scratch_create(&dead, &error);
        file_write(&dead, "1", "region 1\n");
        _exit(status || write(report[1], &dead, sizeof dead) != sizeof dead);
    }
    assert_int_equal(read(report[0], &dead, sizeof dead), sizeof dead);
    waitpid(worker, NULL, 0);
    close(report[0]);
    close(report[1]);
    assert_int_equal(access(dead.path, F_OK), 0);
    assert_int_equal(scratch_create(&next, &error), STATUS_OK);
    assert_int_not_equal(access(dead.path, F_OK), 0);
    assert_int_equal(access(living.path, F_OK), 0);
    scratch_remove(&next);
    scratch_remove(&living);
}

/* ---- what the injection library's lines say ---- */

static struct kernel kernel_of(const char *name, int64_t count)
{
    struct kernel kernel;
    fields_clear(kernel_fields, &kernel);
    snprintf(kernel.name, sizeof kernel.name, "%s", name);
    kernel.count = count;
    return kernel;
}

/* Of two launches of one kernel. */
static struct injected region_of(const char *name, bool graph)
{
    struct injected injected;
    injected_init(&injected);
    injected.kernels = malloc(sizeof *injected.kernels);
    injected.kernels[0] = kernel_of(name, 2);
    injected.kernel_count = 1;
    injected.launches = calloc(2, sizeof *injected.launches);
    injected.launches[1] = (struct launch){.start = 5, .end = 9, .correlation = 1};
    injected.launch_count = 2;
    injected.in_graphs = graph ? 2 : 0;
    return injected;
}

static void graphs_take_flops_from_the_same_kernels_without(void **state)
{
    struct injected graph = region_of("a", true), plain = region_of("a", false);
    struct injected other = region_of("b", false), counted, one_by_one;
    struct record record;
    struct error error;
    injected_init(&counted);
    injected_init(&one_by_one);
    assert_true(injected_same_kernels(&graph, &plain) && !injected_same_kernels(&graph, &other));
    other.kernels[0] = kernel_of("a", 3);
    assert_false(injected_same_kernels(&graph, &other));
    counted.values[QUANTITY_VECTOR_FP32] = 0;
    counted.values[QUANTITY_TENSOR_FP16] = 100;
    one_by_one.values[QUANTITY_VECTOR_FP32] = 30;
    one_by_one.each = malloc(2 * sizeof *one_by_one.each);
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            one_by_one.each[i][j] = j == QUANTITY_VECTOR_FP32 ? 15 : NAN;
    one_by_one.each_count = 2;
    record_init(&record);
    assert_int_equal(injected_record_trace(&graph, 2, &record, &error), STATUS_OK);
    injected_ungraph(&graph, &counted, &plain, &one_by_one);
    injected_record_counts(&counted, &graph, 2, &record);
    assert_int_equal(record.counters.code, COUNTED_YES);
    assert_true(record.flops_vector[PRECISION_FP32] == 15 && record.flops_counted == 65);
    assert_true(record.kernels[0].flops_counted == 15);
    assert_true(isnan(record.kernels[0].bytes_counted[LEVEL_DRAM]));
    record_clear(&record);
    injected_clear(&graph);
    injected_clear(&plain);
    injected_clear(&other);
    injected_clear(&counted);
    injected_clear(&one_by_one);
}

static void copies_and_fills_are_told(void **state)
{
    struct scratch folder;
    struct injected injected;
    struct record record;
    struct error error;
    assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
    file_write(&folder, "1.injected",
               "opened\ncopy 10 30 4000\ncopy 40 60 4000\nfill 5 10 256\nclosed 1\n");
    assert_int_equal(injected_read(&folder, &injected, &error), STATUS_OK);
    scratch_remove(&folder);
    record_init(&record);
    assert_int_equal(injected_record_trace(&injected, 2, &record, &error), STATUS_OK);
    assert_true(record.memcpy_count == 1 && record.memcpy_bytes == 4000);
    assert_true(fabs(record.memcpy_time - 20e-9) < 1e-15);
    assert_true(record.memset_count == 1 && record.memset_bytes == 128);
    record_clear(&record);
    injected_clear(&injected);
}

/* More different kernels than a record has. */
static void a_row_of_too_many_kernels_keeps_the_rest(void **state)
{
    enum { KERNELS = RECORD_KERNELS_MAX + 1 };
    char path[4200];
    struct scratch folder;
    struct injected injected;
    struct record record;
    struct error error;
    assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
    snprintf(path, sizeof path, "%s/1.injected", folder.path);
    FILE *file = fopen(path, "w");
    fputs("opened\n", file);
    for (int i = 0; i < KERNELS; ++i)
        fprintf(file, "kernel %d %d %d 0 %d 1 1 32 1 1 8 0 0 k\neach %d %d 3\n", 10 * i, 10 * i + 5,
                i, i + 1, i, (int)QUANTITY_VECTOR_FP32);
    fprintf(file, "value %d %d\nclosed 1\n", (int)QUANTITY_VECTOR_FP32, 3 * KERNELS);
    fclose(file);
    assert_int_equal(injected_read(&folder, &injected, &error), STATUS_OK);
    scratch_remove(&folder);
    record_init(&record);
    strcpy(record.error, "not verified");
    assert_int_equal(injected_record_trace(&injected, 1, &record, &error), STATUS_OK);
    injected_record_counts(&injected, &injected, 1, &record);
    assert_string_equal(record.error, "not verified; no kernels: the region runs 4097 different "
                                      "ones, and a row has 4096 at most");
    assert_true(record.kernel_count == 0 && record.launches == KERNELS);
    assert_true(record.flops_counted == 3 * KERNELS);
    record_clear(&record);
    injected_clear(&injected);
}

static struct injected injected_of(double vector, double tensor, size_t in_graphs)
{
    struct injected injected = {.launch_count = 4, .in_graphs = in_graphs};
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        injected.values[i] = 40;
    injected.values[QUANTITY_VECTOR_FP64] = injected.values[QUANTITY_VECTOR_FP16] = 0;
    injected.values[QUANTITY_VECTOR_FP32] = vector;
    injected.values[QUANTITY_TENSOR_FP16] = tensor;
    for (int i = QUANTITY_TENSOR_FP64; i <= QUANTITY_TENSOR_INT8; ++i)
        if (i != QUANTITY_TENSOR_FP16)
            injected.values[i] = NAN;
    return injected;
}

static void flops_in_graphs_are_missing_and_never_0(void **state)
{
    struct record record;
    struct injected whole = injected_of(100, 1000, 0), graph = injected_of(0, 1000, 4);
    record_init(&record);
    injected_record_counts(&whole, &whole, 20, &record);
    assert_true(record.flops_counted == 55 && record.flops_vector[PRECISION_FP32] == 5);
    assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
    assert_true(record.bytes_counted[LEVEL_DRAM] == 4 && isnan(record.bytes_counted[LEVEL_L3]));
    assert_int_equal(record.counters.code, COUNTED_YES);
    record_clear(&record);
    injected_record_counts(&graph, &graph, 20, &record);
    assert_true(isnan(record.flops_counted) && isnan(record.flops_vector[PRECISION_FP32]));
    assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
    assert_true(record.bytes_counted[LEVEL_DRAM] == 4);
    assert_int_equal(record.counters.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(record.counters.reason, "4 of 4 kernels are launched by CUDA graphs"));
    record_clear(&record);
}

/* Of code that was unloaded vector FLOPs may be those of something else. */
static void flops_of_unloaded_code_are_missing(void **state)
{
    struct record record;
    struct injected injected = injected_of(100, 1000, 0);
    injected.unloaded = true;
    record_init(&record);
    injected_record_counts(&injected, &injected, 20, &record);
    assert_true(isnan(record.flops_counted) && isnan(record.flops_vector[PRECISION_FP32]));
    assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
    assert_true(record.bytes_counted[LEVEL_DRAM] == 4);
    assert_int_equal(record.counters.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(record.counters.reason, "unloads code"));
    record_clear(&record);
}

static void tensors_follow_from_the_precision(void **state)
{
    assert_int_equal(injected_tensors(PRECISION_FP16), quantity_tensor(QUANTITY_TENSOR_FP16));
    assert_int_equal(injected_tensors(PRECISION_FP32), quantity_tensor(QUANTITY_TENSOR_TF32));
    assert_int_equal(injected_tensors(PRECISION_COUNT),
                     QUANTITY_ALL_TENSORS & ~quantity_tensor(QUANTITY_TENSOR_INT8));
}

static void lines_of_several_processes(void **state)
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
        struct scratch folder;
        struct error error;
        struct injected injected;
        assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
        file_write(&folder, "0.injected", rows[i].first);
        file_write(&folder, "1.injected", rows[i].second);
        enum status status = injected_read(&folder, &injected, &error);
        assert_int_equal(status, rows[i].good ? STATUS_OK : STATUS_FAILED);
        if (rows[i].good) {
            assert_int_equal(injected.region_count, 1);
            assert_int_equal(injected.refusal.code, OUTCOME_MISSING);
            injected_clear(&injected);
        }
        scratch_remove(&folder);
    }
}

/* ---- environment, text, model ---- */

static void the_environment_is_named(void **state)
{
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("TMPDIR", "/tmp", 1);
    struct environment s = environment_create();
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
    s = environment_create();
    for (size_t i = 0; i < s.count; ++i)
        assert_null(strstr(s.variables[i], "OMPI_"));
    environment_clear(&s);
}

static enum status nothing_given(struct device_state *state, struct program_device *given,
                                 struct error *error)
{
    (void)state, (void)given, (void)error;
    return STATUS_OK;
}

/* A measured row of a command that counts as a whole. */
static struct record row_of(const char *command, const char *folder)
{
    const struct device_ops device = {.program = nothing_given};
    struct request request = request_default(REQUEST_MEASURE);
    struct record record;
    struct error error;
    char text[WORKLOAD_STRING];
    void *kept = NULL;
    snprintf(text, sizeof text, "program command=\"%s\" region=all", command);
    assert_int_equal(config_parse(text, &request.config, &error), STATUS_OK);
    snprintf(request.folder, sizeof request.folder, "%s", folder);
    record_init(&record);
    assert_int_equal(program_row.measure(&device, NULL, &kept, &request, &record, &error),
                     STATUS_OK);
    assert_int_equal(record.status, RECORD_MEASURED);
    assert_true(record.samples == 1 && record.time_median > 0 && !kept);
    struct record copy = record;
    record_clear(&record);
    copy.kernels = NULL;
    return copy;
}

static void the_text_of_a_program_is_hashed(void **state)
{
    struct scratch folder;
    struct error error;
    char first[33];
    assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
    struct record row = row_of("sh -c true a --batch 3", folder.path);
    assert_string_equal(row.program_hash, "");
    file_write(&folder, "a", "print(1)\n");
    row = row_of("sh -c true a --batch 3", folder.path);
    assert_int_equal(strlen(row.program_hash), 32);
    strcpy(first, row.program_hash);
    file_write(&folder, "a", "print(2)\n");
    row = row_of("sh -c true a --batch 3", folder.path);
    assert_string_not_equal(row.program_hash, first);
    scratch_remove(&folder);
}

static struct config config_of(const char *text)
{
    struct config config;
    struct error error;
    if (config_parse(text, &config, &error))
        fail_msg("%s", error.text);
    return config;
}

static void a_program_has_the_model_that_it_names(void **state)
{
    struct error error;
    struct config conv = config_of("conv2d batch=3 filters=7 precision=fp16");
    struct config program =
        config_of("program axes=\"batch=3 filters=7 mode=eager precision=fp16\" "
                  "command=x modelled_as=conv2d precision=fp16");
    assert_int_equal(config_check(&program, &error), STATUS_OK);
    assert_true(config_cost(&program).flops == config_cost(&conv).flops);
    assert_true(config_cost(&program).bytes == config_cost(&conv).bytes);
    assert_int_equal(config_precision(&program), PRECISION_FP16);
    program = config_of("program command=x model_flops=12");
    assert_true(config_cost(&program).flops == 12 && isnan(config_cost(&program).bytes));
    assert_int_equal(config_precision(&program), PRECISION_COUNT);
    program = config_of("program command=\"\"");
    assert_int_equal(config_check(&program, &error), STATUS_UNSUPPORTED);
    program = config_of("program axes=kernel=0 command=x modelled_as=conv2d");
    assert_int_equal(config_check(&program, &error), STATUS_UNSUPPORTED);
    program = config_of("program command=x modelled_as=program");
    assert_int_equal(config_check(&program, &error), STATUS_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_program_is_told),
        cmocka_unit_test(a_program_that_takes_too_long_is_ended),
        cmocka_unit_test(a_program_has_three_descriptors),
        cmocka_unit_test(output_without_end_does_no_harm),
        cmocka_unit_test(nothing_is_left_running),
        cmocka_unit_test(lines_are_taken_from_all_processes),
        cmocka_unit_test(lines_that_mean_nothing_are_refused),
        cmocka_unit_test(files_alone_are_read),
        cmocka_unit_test(a_link_is_not_followed),
        cmocka_unit_test(a_dead_workers_folder_is_swept),
        cmocka_unit_test(graphs_take_flops_from_the_same_kernels_without),
        cmocka_unit_test(copies_and_fills_are_told),
        cmocka_unit_test(a_row_of_too_many_kernels_keeps_the_rest),
        cmocka_unit_test(flops_in_graphs_are_missing_and_never_0),
        cmocka_unit_test(flops_of_unloaded_code_are_missing),
        cmocka_unit_test(tensors_follow_from_the_precision),
        cmocka_unit_test(lines_of_several_processes),
        cmocka_unit_test(the_environment_is_named),
        cmocka_unit_test(the_text_of_a_program_is_hashed),
        cmocka_unit_test(a_program_has_the_model_that_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
