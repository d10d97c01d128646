/* The injection library in a program, over a scripted CUPTI. Each program is a process of its own, as the library
 * begins once in each; what it does are the calls that CUPTI would report. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "scripted_cupti.h"
#include "worker/program/counts.h"
#include "worker/program/handback.h"
#include "worker/program/injected.h"

int InitializeInjection(void);

/* ---- CUDA and the rest of CUPTI ---- */

static struct {
    CUpti_CallbackFunc callback;
    bool enabled[1000];
    int subscribed, synchronized;
    CUptiResult subscribe;
    CUcontext context;
    uint64_t now;
} program;

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                           void *user)
{
    (void)subscriber, (void)user;
    program.callback = callback;
    ++program.subscribed;
    return program.subscribe;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    (void)subscriber, (void)domain;
    program.enabled[id] = enable;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = program.now;
    return CUPTI_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    ++program.synchronized;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = program.context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

/* ---- what a program does ---- */

#define CALL(name) call(CUPTI_DRIVER_TRACE_CBID_##name, NULL)

static void call(CUpti_CallbackId id, const char *symbol)
{
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER, .symbolName = symbol};
    if (!program.callback || !program.enabled[id])
        return;
    program.callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    data.callbackSite = CUPTI_API_EXIT;
    program.callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

static void launch(const char *kernel)
{
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, kernel);
}

static void kernel_ran(uint64_t start, uint64_t node)
{
    cupti.records[cupti.record_count++] = (scripted_kernel){
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        .name = "_Z3addi",
        .start = start,
        .end = start + 100,
        .correlationId = (uint32_t)cupti.record_count,
        .graphNodeId = node,
        .gridX = 2,
        .gridY = 1,
        .gridZ = 1,
        .blockX = 64,
        .blockY = 1,
        .blockZ = 1,
        .registersPerThread = 10,
    };
}

/* Allocates, warms up, and has two regions of two launches. */
static void usual(void)
{
    CALL(cuMemAlloc_v2);
    launch("warm");
    for (int i = 0; i < 2; ++i) {
        CALL(cuProfilerStart);
        launch("a");
        launch("b");
        CALL(cuProfilerStop);
    }
}

/* The folder of what is handed back, and what the library found in this program. */
struct run {
    char folder[4096];
    struct injected found;
};

static void run_program(void (*behaviour)(void), const char *task, const char *region,
                        struct run *run)
{
    struct error error;
    char image[4200];
    int status;
    assert_int_equal(handback_folder(run->folder, &error), STATUS_OK);
    snprintf(image, sizeof image, "/tmp/roofsweep-image-%d", (int)getpid());
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("ROOFSWEEP_INJECT", task, 1);
        setenv("ROOFSWEEP_REGION", region, 1);
        setenv("ROOFSWEEP_REPORT", run->folder, 1);
        setenv("ROOFSWEEP_IMAGE", image, 1);
        setenv("ROOFSWEEP_TENSORS", "4", 1);
        InitializeInjection();
        behaviour();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(injected_read(run->folder, &run->found, &error), STATUS_OK);
    handback_remove(run->folder);
}

static int set_up(void **state)
{
    memset(&program, 0, sizeof program);
    program.context = (CUcontext)&program;
    program.now = 1000;
    return cupti_set_up(state);
}

static void without_a_task_nothing_happens(void **state)
{
    (void)state;
    struct run run;
    run_program(usual, "nothing", "profiler", &run);
    assert_int_equal(run.found.processes, 0);
    injected_clear(&run.found);
}

static void only_two_calls(void)
{
    int enabled = 0;
    for (size_t i = 0; i < sizeof program.enabled / sizeof *program.enabled; ++i)
        enabled += program.enabled[i];
    usual();
    if (enabled != 2 || cupti.attached || cupti.activity_enabled)
        _exit(1);
}

static void a_timed_program_has_a_time_for_each_region(void **state)
{
    (void)state;
    struct run run;
    run_program(only_two_calls, "time", "profiler", &run);
    assert_int_equal(run.found.processes, 1);
    assert_int_equal(run.found.region_count, 2);
    injected_clear(&run.found);
}

static void traced(void)
{
    kernel_ran(500, 0); /* before the region */
    kernel_ran(1500, 0);
    kernel_ran(1550, 7);
    usual();
}

static void a_traced_program_tells_the_kernels_of_its_first_region(void **state)
{
    (void)state;
    struct run run;
    struct record record;
    struct error error;
    run_program(traced, "trace", "profiler", &run);
    assert_int_equal(run.found.region_count, 1);
    assert_int_equal(run.found.launch_count, 2);
    assert_int_equal(run.found.in_graphs, 1);
    assert_int_equal(run.found.kernel_count, 1);
    assert_string_equal(run.found.kernels[0].name, "add(int)");
    assert_int_equal(run.found.kernels[0].count, 2);
    assert_string_equal(run.found.untraced, "");
    assert_non_null(strstr(run.found.sequence, " 2"));
    record_init(&record);
    assert_int_equal(counts_trace(&run.found, 2, &record, &error), STATUS_OK);
    assert_int_equal(record.launches, 1);
    assert_true(record.busy_time > 74e-9 && record.busy_time < 76e-9); /* they overlap */
    record_clear(&record);
    injected_clear(&run.found);
}

/* What a run counts, and how many runs of it there were. */
static void counted_once(void)
{
    cupti.runs = 1;
    usual();
}

static void counted_last(void)
{
    cupti.runs = CUPTI_PASSES;
    usual();
}

static void counts_go_from_run_to_run(void **state)
{
    (void)state;
    struct run run;
    char image[64], next[80];
    snprintf(image, sizeof image, "/tmp/roofsweep-image-%d", (int)getpid());
    snprintf(next, sizeof next, "%s.next", image);
    run_program(counted_once, "count", "profiler", &run);
    assert_int_equal(run.found.passes, CUPTI_PASSES);
    assert_false(run.found.last);
    assert_int_not_equal(access(image, R_OK), 0);
    assert_int_equal(rename(next, image), 0);
    injected_clear(&run.found);
    run_program(counted_last, "count", "profiler", &run);
    unlink(image);
    assert_true(run.found.last);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_true(run.found.values[QUANTITY_DRAM_READ] > 0);
    injected_clear(&run.found);
}

static void refused(void)
{
    cupti.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    usual();
}

static void in_another_context(void)
{
    CALL(cuMemAlloc_v2);
    program.context = (CUcontext)&cupti;
    usual();
}

static void counters_that_are_refused_say_why(void **state)
{
    (void)state;
    struct run run;
    run_program(refused, "count", "profiler", &run);
    assert_int_equal(run.found.region_count, 1);
    assert_int_equal(run.found.refusal.code, COUNTED_REFUSED);
    assert_non_null(strstr(run.found.refusal.reason, "may not read hardware counters"));
    injected_clear(&run.found);
    run_program(in_another_context, "count", "profiler", &run);
    assert_int_equal(run.found.refusal.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(run.found.refusal.reason, "another context"));
    injected_clear(&run.found);
}

static void never_opens(void)
{
    CALL(cuMemAlloc_v2);
    launch("a");
}

static void never_closes(void)
{
    CALL(cuProfilerStart);
    launch("a");
}

static void leaves_at_once(void)
{
    launch("a");
    _exit(0);
}

static void opens_in_its_children_too(void)
{
    CALL(cuProfilerStart);
    if (fork() == 0) { /* CUDA cannot be used there */
        CALL(cuProfilerStop);
        exit(0);
    }
    wait(NULL);
    launch("a");
    CALL(cuProfilerStop);
}

static void regions_of_odd_programs(void **state)
{
    (void)state;
    static const struct {
        void (*behaviour)(void);
        const char *region;
        size_t processes, regions;
    } rows[] = {
        {never_opens, "profiler", 0, 0},
        {never_closes, "profiler", 1, 0},
        {never_opens, "all", 1, 1},
        {leaves_at_once, "all", 1, 0},
        {opens_in_its_children_too, "profiler", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct run run;
        run_program(rows[i].behaviour, "trace", rows[i].region, &run);
        assert_int_equal(run.found.processes, rows[i].processes);
        assert_int_equal(run.found.region_count, rows[i].regions);
        injected_clear(&run.found);
    }
}

/* ---- what becomes of it in a record ---- */

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
    (void)state;
    struct record record;
    struct injected whole = injected_of(100, 1000, 0), graph = injected_of(0, 1000, 4);
    record_init(&record);
    counts_record(&whole, &whole, 20, &record);
    assert_true(record.flops_counted == 55 && record.flops_vector[PRECISION_FP32] == 5);
    assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
    assert_true(record.bytes_counted[LEVEL_DRAM] == 4 && isnan(record.bytes_counted[LEVEL_L3]));
    assert_int_equal(record.counters.code, COUNTED_YES);
    record_clear(&record);
    counts_record(&graph, &graph, 20, &record);
    assert_true(isnan(record.flops_counted) && isnan(record.flops_vector[PRECISION_FP32]));
    assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
    assert_true(record.bytes_counted[LEVEL_DRAM] == 4);
    assert_int_equal(record.counters.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(record.counters.reason, "4 of 4 kernels are launched by CUDA graphs"));
    record_clear(&record);
}

static void tensors_follow_from_the_precision(void **state)
{
    (void)state;
    assert_int_equal(counts_tensors(PRECISION_FP16), quantity_tensor(QUANTITY_TENSOR_FP16));
    assert_int_equal(counts_tensors(PRECISION_FP32), quantity_tensor(QUANTITY_TENSOR_TF32));
    assert_int_equal(counts_tensors(PRECISION_COUNT),
                     QUANTITY_ALL_TENSORS & ~quantity_tensor(QUANTITY_TENSOR_INT8));
}

static void lines_of_several_processes(void **state)
{
    (void)state;
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
        char folder[4096], path[4200];
        struct error error;
        struct injected injected;
        assert_int_equal(handback_folder(folder, &error), STATUS_OK);
        for (int file = 0; file < 2; ++file) {
            snprintf(path, sizeof path, "%s/%d.injected", folder, file);
            FILE *stream = fopen(path, "w");
            fputs(file ? rows[i].second : rows[i].first, stream);
            fclose(stream);
        }
        enum status status = injected_read(folder, &injected, &error);
        assert_int_equal(status, rows[i].good ? STATUS_OK : STATUS_FAILED);
        if (rows[i].good) {
            assert_int_equal(injected.region_count, 1);
            assert_int_equal(injected.refusal.code, OUTCOME_MISSING);
            injected_clear(&injected);
        }
        handback_remove(folder);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_task_nothing_happens),
        TEST(a_timed_program_has_a_time_for_each_region),
        TEST(a_traced_program_tells_the_kernels_of_its_first_region),
        TEST(counts_go_from_run_to_run),
        TEST(counters_that_are_refused_say_why),
        TEST(regions_of_odd_programs),
        TEST(flops_in_graphs_are_missing_and_never_0),
        TEST(tensors_follow_from_the_precision),
        TEST(lines_of_several_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
