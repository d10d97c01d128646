/* The injection library in a program, over a scripted CUPTI. Each program is a process of its own, as the library
 * begins once in each; what it does are the calls that CUPTI would report. */
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
    bool modules; /* unloading them is told */
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
    (void)subscriber;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        program.modules = id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING;
    else
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

static void unload(void)
{
    if (program.modules)
        program.callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
                         NULL);
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
    const char *regions, *ranges; /* NULL: one, the region */
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
        setenv("ROOFSWEEP_REGIONS", run->regions ? run->regions : "1", 1);
        setenv("ROOFSWEEP_RANGES", run->ranges ? run->ranges : "region", 1);
        setenv("ROOFSWEEP_LAUNCHES", "2", 1);
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
    struct run run = {0};
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
    struct run run = {0};
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
    struct run run = {0};
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
    struct run run = {0};
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

/* ---- traced and counted in one run ---- */

/* It has been left. */
static void unlink_image(void)
{
    char next[80];
    snprintf(next, sizeof next, "/tmp/roofsweep-image-%d.next", (int)getpid());
    assert_int_equal(unlink(next), 0);
}

/* So many regions of two launches; the last one of `odd` has three. */
static void regions(int count, bool odd)
{
    CALL(cuMemAlloc_v2);
    launch("warm");
    for (int i = 0; i < count; ++i) {
        CALL(cuProfilerStart);
        launch("a");
        launch("b");
        if (odd && i + 1 == count)
            launch("c");
        CALL(cuProfilerStop);
    }
}

static void seven_regions(void)
{
    cupti.in_process = true;
    cupti.ranges = 0;
    kernel_ran(1500, 0);
    regions(7, false);
    if (cupti.enabled != 1 || cupti.pushed != CUPTI_PASSES)
        _exit(1);
}

static void five_regions(void)
{
    cupti.in_process = true;
    kernel_ran(1500, 0);
    regions(5, false);
    if (cupti.pushed != 2)
        _exit(1);
}

static void an_odd_region(void)
{
    cupti.in_process = true;
    kernel_ran(1500, 0);
    regions(3, true);
}

static void one_run_traces_and_counts(void **state)
{
    (void)state;
    struct run run = {.regions = "7"};
    run_program(seven_regions, "profile", "profiler", &run);
    assert_int_equal(run.found.region_count, 1);
    assert_int_equal(run.found.launch_count, 1); /* of the first region's records */
    assert_non_null(strstr(run.found.sequence, " 2"));
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_true(run.found.last && run.found.values[QUANTITY_DRAM_READ] == CUPTI_EACH);
    assert_int_equal(run.found.each_count, 0);
    injected_clear(&run.found);
}

static void what_is_left_is_for_the_next_run(void **state)
{
    (void)state;
    struct run run = {.regions = "5"};
    run_program(five_regions, "profile", "profiler", &run);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_false(run.found.last);
    assert_int_equal(run.found.passes, CUPTI_PASSES);
    unlink_image();
    injected_clear(&run.found);
}

static void regions_that_differ_are_not_added_up(void **state)
{
    (void)state;
    struct run run = {.regions = "3"};
    run_program(an_odd_region, "profile", "profiler", &run);
    assert_int_equal(run.found.refusal.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(run.found.refusal.reason, "something else than the first"));
    assert_false(run.found.last);
    injected_clear(&run.found);
}

/* Four launches since the pass began, of which the last two are the region's. */
static void launch_by_launch(void)
{
    cupti.in_process = true;
    cupti.ranges = 4;
    kernel_ran(1500, 0);
    kernel_ran(1700, 0);
    regions(7, false);
    if (cupti.pushed != 0 || cupti.range != CUPTI_AutoRange)
        _exit(1);
}

static void a_range_too_many(void)
{
    cupti.in_process = true;
    cupti.ranges = 5;
    kernel_ran(1500, 0);
    regions(7, false);
}

static void each_launch_by_itself(void **state)
{
    (void)state;
    struct run run = {.regions = "7", .ranges = "launches"};
    struct record record;
    struct error error;
    run_program(launch_by_launch, "profile", "profiler", &run);
    assert_int_equal(run.found.each_count, 2);
    assert_true(run.found.each[0][QUANTITY_DRAM_READ] == 3 * CUPTI_EACH);
    assert_true(run.found.each[1][QUANTITY_DRAM_READ] == 4 * CUPTI_EACH);
    assert_true(run.found.values[QUANTITY_DRAM_READ] == 7 * CUPTI_EACH);
    record_init(&record);
    assert_int_equal(counts_trace(&run.found, 1, &record, &error), STATUS_OK);
    counts_record(&run.found, &run.found, 1, &record);
    assert_int_equal(record.kernel_count, 1);
    assert_true(record.kernels[0].flops_counted == record.flops_counted);
    assert_true(record.kernels[0].bytes_counted[LEVEL_DRAM] == record.bytes_counted[LEVEL_DRAM]);
    record_clear(&record);
    injected_clear(&run.found);
    run_program(a_range_too_many, "profile", "profiler", &run);
    assert_int_equal(run.found.refusal.code, COUNTED_INCOMPLETE);
    assert_int_equal(run.found.each_count, 0);
    injected_clear(&run.found);
    run.regions = "5"; /* too few for all passes: the region is the range */
    run_program(five_regions, "profile", "profiler", &run);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    unlink_image();
    injected_clear(&run.found);
}

static void replayed_by_kernel(void)
{
    cupti.replayed = true;
    cupti.ranges = 2;
    regions(1, false);
}

static void kernels_are_replayed_in_one_run(void **state)
{
    (void)state;
    struct run run = {.ranges = "replay"};
    run_program(replayed_by_kernel, "count", "profiler", &run);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_true(run.found.last && run.found.each_count == 2);
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
    struct run run = {0};
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

static void unloads_before(void)
{
    CALL(cuMemAlloc_v2);
    unload(); /* of what was never counted */
    usual();
}

static void unloads_within(void)
{
    CALL(cuMemAlloc_v2);
    CALL(cuProfilerStart);
    launch("a");
    unload();
    launch("b");
    CALL(cuProfilerStop);
}

static void what_unloads_counted_code_is_told(void **state)
{
    (void)state;
    struct run run = {0};
    run_program(unloads_before, "count", "profiler", &run);
    assert_false(run.found.unloaded);
    unlink_image();
    injected_clear(&run.found);
    run_program(unloads_within, "count", "profiler", &run);
    assert_int_equal(run.found.region_count, 1);
    assert_int_equal(run.found.refusal.code, OUTCOME_MISSING);
    assert_true(run.found.unloaded && run.found.passes > 0);
    unlink_image();
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
        struct run run = {0};
        run_program(rows[i].behaviour, "trace", rows[i].region, &run);
        assert_int_equal(run.found.processes, rows[i].processes);
        assert_int_equal(run.found.region_count, rows[i].regions);
        injected_clear(&run.found);
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
        TEST(one_run_traces_and_counts),
        TEST(what_is_left_is_for_the_next_run),
        TEST(regions_that_differ_are_not_added_up),
        TEST(each_launch_by_itself),
        TEST(kernels_are_replayed_in_one_run),
        TEST(counters_that_are_refused_say_why),
        TEST(what_unloads_counted_code_is_told),
        TEST(regions_of_odd_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
