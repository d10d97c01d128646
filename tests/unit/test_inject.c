/* The injected library in a program, over a scripted CUPTI (scripted_cupti.h). Each program is a
 * process of its own, because the library begins once in a process. The program makes the calls
 * that CUPTI would report. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scripted_cupti.h"
#include "program/run/report.h"

int InitializeInjection(void);
void roofsweep_point(void);

/* ---- CUDA ---- */

static CUcontext context; /* the current context */

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

/* A GPU of two multiprocessors; 65536 for limits that are no limit here. */
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR               ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR             ? 0
             : attribute == CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK     ? 1024
             : attribute == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR       ? 2048
             : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR ? 233472
             : attribute == CU_DEVICE_ATTRIBUTE_WARP_SIZE                            ? 32
             : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT                 ? 2
                                                                                     : 65536;
    return CUDA_SUCCESS;
}

/* ---- programs ---- */

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

/* Adds a kernel of 100 ns to the trace. node: of a graph; 0: the kernel is in no graph. */
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
        .dynamicSharedMemory = 4096,
        .sharedMemoryExecuted = 32768, /* only 6 blocks would fit, if each had all of it */
    };
}

/* Makes the calls of a text: ( and ) open and close a region, ! allocates, U unloads a module, C
 * changes the context, X exits at once, and a small letter launches the kernel of this name. */
static void calls(const char *text)
{
    for (; *text; ++text) {
        const char kernel[2] = {*text, '\0'};
        switch (*text) {
        case '(':
            CALL(cuProfilerStart);
            break;
        case ')':
            CALL(cuProfilerStop);
            break;
        case '!':
            CALL(cuMemAlloc_v2);
            break;
        case 'U':
            cupti_unload();
            break;
        case 'C':
            context = (CUcontext)&cupti;
            break;
        case 'X':
            _exit(0);
        default:
            call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, kernel);
        }
    }
}

#define AB    "(ab)"
#define USUAL "!w" AB AB
#define FIVE  "!w" AB AB AB AB AB
#define SEVEN FIVE AB AB

enum { UNCHECKED, NONE = -1 };
struct program {
    const char *calls;
    int kernels;         /* number in the trace; 0, unless the run traces and counts */
    int ranges;          /* that CUPTI reports; 0: those that were pushed */
    int pushed;          /* passes in this run: number, NONE or UNCHECKED */
    int runs;            /* passes of earlier runs */
    CUptiResult refusal; /* result of the counters' start */
    bool activities;     /* counts the activities, instead of FLOPs and bytes */
    void (*before)(void);
    bool (*after)(void);
};

static bool two_calls_are_watched(void)
{
    int enabled = 0;
    for (size_t i = 0; i < sizeof cupti.calls; ++i)
        enabled += cupti.calls[i];
    return enabled == 2 && !cupti.attached && !cupti.activity_enabled;
}

static void opens_in_its_children_too(void)
{
    calls("(");
    if (fork() == 0) { /* a forked child cannot use CUDA */
        calls(")");
        exit(0);
    }
    wait(NULL);
    calls("a)");
}

static char image[64], next_image[80]; /* files of counter data */

static int set_up(void **state)
{
    cupti_set_up(state);
    context = (CUcontext)&context;
    cupti.present = true; /* CUPTI has a subscriber from the start */
    cupti.now = 1000;
    snprintf(image, sizeof image, "/tmp/roofsweep-image-%d", (int)getpid());
    snprintf(next_image, sizeof next_image, "%s.next", image);
    return 0;
}

/* Runs a program, which must end well. The caller clears the result. */
static struct injected run(const struct program *program, const char *task, const char *region,
                           const char *region_count, const char *ranges)
{
    struct scratch folder;
    struct injected found;
    int status;
    assert_ok(scratch_create(&folder, &failure));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("ROOFSWEEP_INJECT", task, 1);
        setenv("ROOFSWEEP_REGION", region, 1);
        setenv("ROOFSWEEP_REPORT", folder.path, 1);
        setenv("ROOFSWEEP_IMAGE", image, 1);
        setenv("ROOFSWEEP_TENSORS", program->activities ? "128" : "4", 1);
        setenv("ROOFSWEEP_REGIONS", region_count, 1);
        setenv("ROOFSWEEP_RANGES", ranges, 1);
        setenv("ROOFSWEEP_LAUNCHES", "2", 1);
        cupti.replayed = strcmp(ranges, "replay") == 0;
        cupti.in_process = program->kernels > 0;
        cupti.runs = program->runs;
        cupti.trouble.ranges = program->ranges;
        cupti.trouble.start = program->refusal;
        for (int i = 0; i < program->kernels; ++i)
            kernel_ran(1500 + 200 * (uint64_t)i, 0);
        InitializeInjection();
        if (program->before)
            program->before();
        calls(program->calls);
        bool good = !program->after || program->after();
        if (program->pushed != UNCHECKED)
            good &= cupti.pushed == (program->pushed == NONE ? 0 : program->pushed);
        if (program->pushed == CUPTI_PASSES)
            good &= cupti.enabled == 1;
        if (program->pushed == NONE)
            good &= cupti.range == CUPTI_AutoRange;
        exit(!good);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_ok(injected_read(&folder, &found, &failure));
    scratch_remove(&folder);
    return found;
}

/* ---- tests ---- */

#define BENCH_TEST(name) TEST_WITH(name, set_up, NULL)

BENCH_TEST(regions_are_those_of_the_program)
{
    static const struct {
        struct program program;
        const char *task, *region;
        size_t processes, regions;
    } rows[] = {
        {{.calls = USUAL}, "nothing", "profiler", 0, 0}, /* an unknown task */
        {{USUAL, .after = two_calls_are_watched}, "time", "profiler", 1, 2},
        {{.calls = USUAL}, "trace", "profiler", 1, 1}, /* the first region */
        {{.calls = "!a"}, "trace", "profiler", 0, 0},  /* never opens */
        {{.calls = "(a"}, "trace", "profiler", 1, 0},  /* never closes */
        {{.calls = "!a"}, "trace", "all", 1, 1},
        {{.calls = "aX"}, "trace", "all", 1, 0},
        {{"", .before = opens_in_its_children_too}, "trace", "profiler", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct injected found = run(&rows[i].program, rows[i].task, rows[i].region, "1", "region");
        assert_int_equal(found.processes, rows[i].processes);
        assert_int_equal(found.region_count, rows[i].regions);
        injected_clear(&found);
    }
}

static void runs_kernels(void)
{
    kernel_ran(500, 0); /* before the region */
    kernel_ran(1500, 0);
    kernel_ran(1550, 7);
}

BENCH_TEST(kernels_of_the_first_region_are_traced)
{
    struct record record;
    struct injected found =
        run(&(struct program){USUAL, .before = runs_kernels}, "trace", "profiler", "1", "region");
    assert_int_equal(found.launch_count, 2);
    assert_int_equal(found.in_graphs, 1);
    assert_int_equal(found.kernel_count, 1);
    assert_string_equal(found.kernels[0].name, "add(int)");
    assert_int_equal(found.kernels[0].count, 2);
    assert_int_equal(found.kernels[0].resident, 2 * 32); /* in 2048 threads */
    assert_int_equal(found.call_count, 2);
    assert_string_equal(found.untraced, "");
    assert_says(found.sequence, " 2");
    record_init(&record);
    assert_ok(injected_record_trace(&found, 2, &record, &failure));
    assert_int_equal(record.launches, 1);
    assert_true(record.busy_time > 74e-9 && record.busy_time < 76e-9); /* they overlap */
    record_clear(&record);
    injected_clear(&found);
}

/* Passes that a run does not count are left for the next run. */
BENCH_TEST(passes_are_counted_or_left_or_refused)
{
    enum { LAST = 1, LEFT = 2, UNLOADED = 4 };
    static const struct {
        struct program program;
        const char *task, *regions, *ranges;
        unsigned found;
        size_t each;         /* number of launches with counts of their own */
        double dram_read;    /* count of the last pass */
        const char *refused; /* reason of a refusal; NULL: not refused */
    } rows[] = {
        {{SEVEN, 1, .pushed = CUPTI_PASSES}, "profile", "7", "region", LAST, 0, CUPTI_EACH, NULL},
        {{FIVE, 1, .pushed = 2}, "profile", "5", "region", LEFT, 0, 0, NULL},
        {{"!w" AB AB "(abc)", 1, .pushed = 1},
         "profile",
         "3",
         "region",
         0,
         0,
         0,
         "a region launches something else than the first one"},
        {{SEVEN, 2, .ranges = 4, .pushed = NONE},
         "profile",
         "7",
         "launches",
         LAST,
         2,
         7 * CUPTI_EACH,
         NULL},
        {{SEVEN, 1, .ranges = 5, .pushed = NONE},
         "profile",
         "7",
         "launches",
         0,
         0,
         0,
         "5 ranges of 4 launches"},
        /* too few regions for all passes: the region is the range */
        {{FIVE, 1, .pushed = 2}, "profile", "5", "launches", LEFT, 0, 0, NULL},
        {{"!w" AB, .ranges = 2}, "count", "1", "replay", LAST, 2, 3 * CUPTI_EACH, NULL},
        {{USUAL, .refusal = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES},
         "count",
         "1",
         "region",
         0,
         0,
         0,
         "this user may not read hardware counters"},
        {{.calls = "!C" USUAL},
         "count",
         "1",
         "region",
         0,
         0,
         0,
         "the region is in another context"},
        {{.calls = "!U" USUAL}, "count", "1", "region", LEFT, 0, 0, NULL}, /* unloads uncounted code
                                                                            */
        {{.calls = "!(aUb)"}, "count", "1", "region", LEFT | UNLOADED, 0, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const char *reason = rows[i].refused;
        struct injected found =
            run(&rows[i].program, rows[i].task, "profiler", rows[i].regions, rows[i].ranges);
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

BENCH_TEST(each_launch_is_its_kernels)
{
    enum { STALLS = ACTIVITY_COUNT - ACTIVITY_STALL_BARRIER };
    struct record record;
    struct injected found =
        run(&(struct program){SEVEN, 2, .ranges = 4}, "profile", "profiler", "7", "launches");
    assert_true(found.each[0][QUANTITY_DRAM_READ] == 3 * CUPTI_EACH);
    assert_true(found.each[1][QUANTITY_DRAM_READ] == 4 * CUPTI_EACH);
    record_init(&record);
    assert_ok(injected_record_trace(&found, 1, &record, &failure));
    injected_record_counts(&found, &found, 1, &record);
    assert_int_equal(record.kernel_count, 1);
    assert_true(record.kernels[0].flops_counted == record.flops_counted);
    assert_true(record.kernels[0].bytes_counted[LEVEL_DRAM] == record.bytes_counted[LEVEL_DRAM]);
    /* another run counts the activities */
    struct injected causes = run(&(struct program){SEVEN, 2, .ranges = 4, .activities = true},
                                 "profile", "profiler", "7", "launches");
    injected_record_causes(&causes, &found, &record);
    const double *activity = record.kernels[0].activity;
    assert_int_equal(record.counters.code, COUNTED_YES);
    assert_true(fabs(activity[ACTIVITY_STALL_WAIT] * STALLS - 1) < 1e-9);
    assert_true(fabs(activity[ACTIVITY_ISSUE] - 0.035 * CUPTI_EACH) < 1e-9);
    /* each of two launches of 100 ns counts as much as the peak per second */
    assert_true(fabs(activity[ACTIVITY_MULTIPROCESSORS] * 100e-9 - 1) < 1e-9);
    causes.each_count = 1;
    injected_record_causes(&causes, &found, &record);
    assert_int_equal(record.counters.code, COUNTED_WITHOUT_CAUSES);
    injected_clear(&causes);
    record_clear(&record);
    injected_clear(&found);
}

BENCH_TEST(counts_go_from_run_to_run)
{
    struct injected found =
        run(&(struct program){.calls = USUAL}, "count", "profiler", "1", "region");
    assert_false(found.last);
    assert_int_not_equal(access(image, R_OK), 0);
    assert_int_equal(rename(next_image, image), 0);
    injected_clear(&found);
    found = run(&(struct program){USUAL, .runs = CUPTI_PASSES}, "count", "profiler", "1", "region");
    unlink(image);
    assert_true(found.last);
    assert_true(found.values[QUANTITY_DRAM_READ] > 0);
    injected_clear(&found);
}

static struct scratch second;

/* The second point launches other kernels and opens more regions. */
static void two_points(void)
{
    setenv("ROOFSWEEP_POINT", "", 1); /* the command has all axes */
    calls(SEVEN);
    if (cupti.pushed != CUPTI_PASSES || cupti.enabled != 1 || cupti.disabled != 1 ||
        cupti.finalized != 0)
        _exit(1);
    setenv("ROOFSWEEP_REPORT", second.path, 1);
    setenv("ROOFSWEEP_REGIONS", "9", 1);
    setenv("ROOFSWEEP_POINT", "batch=2", 1);
    cupti.runs = 0;
    roofsweep_point();
    calls("(c)(c)(c)(c)(c)(c)(c)(c)(c)");
    if (cupti.enabled != 2 || cupti.disabled != 2 || cupti.pushed != 2 * CUPTI_PASSES)
        _exit(1);
}

BENCH_TEST(points_of_one_process_are_apart)
{
    struct injected first, other;
    assert_ok(scratch_create(&second, &failure));
    first =
        run(&(struct program){"", 1, .before = two_points}, "profile", "profiler", "7", "region");
    assert_ok(injected_read(&second, &other, &failure));
    assert_true(first.last && other.last);
    assert_says(first.sequence, " 2");
    assert_says(other.sequence, " 1");
    assert_true(first.region_count == 1 && other.region_count == 1);
    assert_true(first.launch_count == 1 && other.launch_count == 1);
    assert_true(other.values[QUANTITY_DRAM_READ] == CUPTI_EACH);
    injected_clear(&first);
    injected_clear(&other);
    scratch_remove(&second);
}
