/* The injection library in a program, over a scripted CUPTI (scripted_cupti.h). Each program is a
 * process of its own, as the library begins once in each. What it does are the calls that CUPTI
 * would report. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scripted_cupti.h"
#include "program/run/handback.h"
#include "program/run/injected.h"

int InitializeInjection(void);
void roofsweep_point(void);

/* ---- CUDA ---- */

static CUcontext context; /* the current one */

CUresult cuCtxSynchronize(void)
{
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *current)
{
    *current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

/* ---- what programs do ---- */

#define CALL(name) call(CUPTI_DRIVER_TRACE_CBID_##name, NULL)
static void call(CUpti_CallbackId id, const char *symbol)
{
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER, .symbolName = symbol};
    if (!cupti.called || !cupti.calls[id])
        return;
    cupti.called(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    data.callbackSite = CUPTI_API_EXIT;
    cupti.called(NULL, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

static void launch(const char *kernel)
{
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, kernel);
}

/* A record of the trace, of 100 ns; node: of a graph, 0: none. */
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

/* Allocates, warms up, and has so many regions of two launches; in the last one, perhaps one more.
 */
static void regions(int count, bool one_more)
{
    CALL(cuMemAlloc_v2);
    launch("warm");
    for (int i = 0; i < count; ++i) {
        CALL(cuProfilerStart);
        launch("a");
        launch("b");
        if (one_more && i + 1 == count)
            launch("c");
        CALL(cuProfilerStop);
    }
}

static void usual(void)
{
    regions(2, false);
}

static void watched_by_two_calls(void)
{
    int enabled = 0;
    for (size_t i = 0; i < sizeof cupti.calls; ++i)
        enabled += cupti.calls[i];
    usual();
    if (enabled != 2 || cupti.attached || cupti.activity_enabled)
        _exit(1);
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

/* ---- what programs do that are counted in the run that traces ---- */

static void traced_regions(int count, bool one_more, int pushed)
{
    cupti.in_process = true;
    kernel_ran(1500, 0);
    regions(count, one_more);
    if (cupti.pushed != pushed)
        _exit(1);
}

static void seven_regions(void)
{
    traced_regions(7, false, CUPTI_PASSES);
    if (cupti.enabled != 1)
        _exit(1);
}

static void five_regions(void)
{
    traced_regions(5, false, 2);
}

static void a_region_that_differs(void)
{
    traced_regions(3, true, 1);
}

/* Four launches since the pass began, of which the last two are the region's. */
static void launch_by_launch(void)
{
    cupti.trouble.ranges = 4;
    kernel_ran(1700, 0);
    traced_regions(7, false, 0);
    if (cupti.range != CUPTI_AutoRange)
        _exit(1);
}

static void a_range_too_many(void)
{
    cupti.trouble.ranges = 5;
    traced_regions(7, false, 0);
}

static void replayed_by_kernel(void)
{
    cupti.replayed = true;
    cupti.trouble.ranges = 2;
    regions(1, false);
}

static void refused(void)
{
    cupti.trouble.start = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    usual();
}

static void in_another_context(void)
{
    CALL(cuMemAlloc_v2);
    context = (CUcontext)&cupti;
    usual();
}

static void unloads_before(void)
{
    CALL(cuMemAlloc_v2);
    cupti_unload(); /* what was never counted */
    usual();
}

static void unloads_within(void)
{
    CALL(cuMemAlloc_v2);
    CALL(cuProfilerStart);
    launch("a");
    cupti_unload();
    launch("b");
    CALL(cuProfilerStop);
}

/* ---- a program ---- */

static char image[64], next_image[80]; /* files of counter data */

static int set_up(void **state)
{
    cupti_set_up(state);
    context = (CUcontext)&context;
    cupti.present = true; /* its subscriber is here from the start */
    cupti.now = 1000;
    snprintf(image, sizeof image, "/tmp/roofsweep-image-%d", (int)getpid());
    snprintf(next_image, sizeof next_image, "%s.next", image);
    return 0;
}

/* It must end well. What the library found is the caller's to clear. */
static struct injected run(void (*behaviour)(void), const char *task, const char *region,
                           const char *regions_told, const char *ranges)
{
    struct scratch folder;
    struct injected found;
    struct error error;
    int status;
    assert_int_equal(scratch_create(&folder, &error), STATUS_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("ROOFSWEEP_INJECT", task, 1);
        setenv("ROOFSWEEP_REGION", region, 1);
        setenv("ROOFSWEEP_REPORT", folder.path, 1);
        setenv("ROOFSWEEP_IMAGE", image, 1);
        setenv("ROOFSWEEP_TENSORS", "4", 1);
        setenv("ROOFSWEEP_REGIONS", regions_told, 1);
        setenv("ROOFSWEEP_RANGES", ranges, 1);
        setenv("ROOFSWEEP_LAUNCHES", "2", 1);
        InitializeInjection();
        behaviour();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(injected_read(&folder, &found, &error), STATUS_OK);
    scratch_remove(&folder);
    return found;
}

/* ---- tests ---- */

static void regions_are_those_of_the_program(void **state)
{
    static const struct {
        void (*behaviour)(void);
        const char *task, *region;
        size_t processes, regions;
    } rows[] = {
        {usual, "nothing", "profiler", 0, 0}, /* there is no such task */
        {watched_by_two_calls, "time", "profiler", 1, 2},
        {usual, "trace", "profiler", 1, 1}, /* the first */
        {never_opens, "trace", "profiler", 0, 0},
        {never_closes, "trace", "profiler", 1, 0},
        {never_opens, "trace", "all", 1, 1},
        {leaves_at_once, "trace", "all", 1, 0},
        {opens_in_its_children_too, "trace", "profiler", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct injected found = run(rows[i].behaviour, rows[i].task, rows[i].region, "1", "region");
        assert_int_equal(found.processes, rows[i].processes);
        assert_int_equal(found.region_count, rows[i].regions);
        injected_clear(&found);
    }
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
    struct record record;
    struct error error;
    struct injected found = run(traced, "trace", "profiler", "1", "region");
    assert_int_equal(found.launch_count, 2);
    assert_int_equal(found.in_graphs, 1);
    assert_int_equal(found.kernel_count, 1);
    assert_string_equal(found.kernels[0].name, "add(int)");
    assert_int_equal(found.kernels[0].count, 2);
    assert_string_equal(found.untraced, "");
    assert_non_null(strstr(found.sequence, " 2"));
    record_init(&record);
    assert_int_equal(injected_record_trace(&found, 2, &record, &error), STATUS_OK);
    assert_int_equal(record.launches, 1);
    assert_true(record.busy_time > 74e-9 && record.busy_time < 76e-9); /* they overlap */
    record_clear(&record);
    injected_clear(&found);
}

/* A pass is left for the next run where it is not the last. */
static void passes_are_counted_or_left_or_refused(void **state)
{
    enum { LAST = 1, LEFT = 2, UNLOADED = 4 };
    static const struct {
        void (*behaviour)(void);
        const char *task, *regions, *ranges;
        unsigned found;
        size_t each;         /* launches that have their own values */
        double dram_read;    /* of the last pass */
        const char *refused; /* NULL: it is not */
    } rows[] = {
        {seven_regions, "profile", "7", "region", LAST, 0, CUPTI_EACH, NULL},
        {five_regions, "profile", "5", "region", LEFT, 0, 0, NULL},
        {a_region_that_differs, "profile", "3", "region", 0, 0, 0,
         "a region launches something else than the first one"},
        {launch_by_launch, "profile", "7", "launches", LAST, 2, 7 * CUPTI_EACH, NULL},
        {a_range_too_many, "profile", "7", "launches", 0, 0, 0, "5 ranges of 4 launches"},
        /* too few for all passes: the region is the range */
        {five_regions, "profile", "5", "launches", LEFT, 0, 0, NULL},
        {replayed_by_kernel, "count", "1", "replay", LAST, 2, 3 * CUPTI_EACH, NULL},
        {refused, "count", "1", "region", 0, 0, 0, "this user may not read hardware counters"},
        {in_another_context, "count", "1", "region", 0, 0, 0, "the region is in another context"},
        {unloads_before, "count", "1", "region", LEFT, 0, 0, NULL},
        {unloads_within, "count", "1", "region", LEFT | UNLOADED, 0, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const char *reason = rows[i].refused;
        struct injected found =
            run(rows[i].behaviour, rows[i].task, "profiler", rows[i].regions, rows[i].ranges);
        assert_int_equal(found.region_count, 1);
        assert_int_equal(found.last, (rows[i].found & LAST) != 0);
        assert_int_equal(found.unloaded, (rows[i].found & UNLOADED) != 0);
        assert_int_equal(found.each_count, rows[i].each);
        assert_int_equal(found.refusal.code == OUTCOME_MISSING, reason == NULL);
        if (reason)
            assert_memory_equal(found.refusal.reason, reason, strlen(reason));
        else
            assert_int_equal(found.passes, CUPTI_PASSES);
        if (found.last)
            assert_true(found.values[QUANTITY_DRAM_READ] == rows[i].dram_read);
        assert_int_equal(unlink(next_image) == 0, (rows[i].found & LEFT) != 0);
        injected_clear(&found);
    }
}

static void each_launch_is_its_kernels(void **state)
{
    struct record record;
    struct error error;
    struct injected found = run(launch_by_launch, "profile", "profiler", "7", "launches");
    assert_true(found.each[0][QUANTITY_DRAM_READ] == 3 * CUPTI_EACH);
    assert_true(found.each[1][QUANTITY_DRAM_READ] == 4 * CUPTI_EACH);
    record_init(&record);
    assert_int_equal(injected_record_trace(&found, 1, &record, &error), STATUS_OK);
    injected_record_counts(&found, &found, 1, &record);
    assert_int_equal(record.kernel_count, 1);
    assert_true(record.kernels[0].flops_counted == record.flops_counted);
    assert_true(record.kernels[0].bytes_counted[LEVEL_DRAM] == record.bytes_counted[LEVEL_DRAM]);
    record_clear(&record);
    injected_clear(&found);
}

static void counted_last(void)
{
    cupti.runs = CUPTI_PASSES;
    usual();
}

static void counts_go_from_run_to_run(void **state)
{
    struct injected found = run(usual, "count", "profiler", "1", "region");
    assert_false(found.last);
    assert_int_not_equal(access(image, R_OK), 0);
    assert_int_equal(rename(next_image, image), 0);
    injected_clear(&found);
    found = run(counted_last, "count", "profiler", "1", "region");
    unlink(image);
    assert_true(found.last);
    assert_true(found.values[QUANTITY_DRAM_READ] > 0);
    injected_clear(&found);
}

static struct scratch second;

/* The second point launches something else, and opens fewer regions. */
static void two_points(void)
{
    setenv("ROOFSWEEP_POINT", "batch=1", 1);
    traced_regions(7, false, CUPTI_PASSES);
    if (cupti.enabled != 1 || cupti.disabled != 1 || cupti.finalized != 0)
        _exit(1);
    setenv("ROOFSWEEP_REPORT", second.path, 1);
    setenv("ROOFSWEEP_REGIONS", "9", 1);
    setenv("ROOFSWEEP_POINT", "batch=2", 1);
    cupti.runs = 0;
    roofsweep_point();
    for (int i = 0; i < 9; ++i) {
        CALL(cuProfilerStart);
        launch("c");
        CALL(cuProfilerStop);
    }
    if (cupti.enabled != 2 || cupti.disabled != 2 || cupti.pushed != 2 * CUPTI_PASSES)
        _exit(1);
}

static void points_of_one_process_are_apart(void **state)
{
    struct error error;
    struct injected first, other;
    assert_int_equal(scratch_create(&second, &error), STATUS_OK);
    first = run(two_points, "profile", "profiler", "7", "region");
    assert_int_equal(injected_read(&second, &other, &error), STATUS_OK);
    assert_true(first.last && other.last);
    assert_non_null(strstr(first.sequence, " 2"));
    assert_non_null(strstr(other.sequence, " 1"));
    assert_true(first.region_count == 1 && other.region_count == 1);
    assert_true(first.launch_count == 1 && other.launch_count == 1);
    assert_true(other.values[QUANTITY_DRAM_READ] == CUPTI_EACH);
    injected_clear(&first);
    injected_clear(&other);
    scratch_remove(&second);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(regions_are_those_of_the_program),
        TEST(a_traced_program_tells_the_kernels_of_its_first_region),
        TEST(passes_are_counted_or_left_or_refused),
        TEST(each_launch_is_its_kernels),
        TEST(counts_go_from_run_to_run),
        TEST(points_of_one_process_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
