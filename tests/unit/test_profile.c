/* Kernels and counts of rows on a scripted GPU (scripted_vendor.h), with a profiler of the test's
 * own. unit/profiler tests the real profiler. */
#include "scripted_vendor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/profile.h"

static struct gpu gpu;

/* ---- the profiler ---- */

struct profiler {
    struct profiler_host host;
    struct outcome tried;
    bool attached;
};
static struct profiler profiler;
static int processes; /* number of processes on the GPU, with this one */
static struct trace last_trace;
enum { ROWS = 4 };

struct profiler *profiler_open(const struct profiler_host *host)
{
    profiler = (struct profiler){.host = *host, .tried.code = OUTCOME_MISSING};
    return &profiler;
}

void profiler_detach_counters(struct profiler *p)
{
    p->attached = false;
}

const struct outcome *profiler_counters(const struct profiler *p)
{
    return &p->tried;
}

enum status profiler_try(struct profiler *p, int device, CUcontext context, struct outcome *outcome,
                         struct error *error)
{
    if (p->tried.code == OUTCOME_MISSING) {
        TRY(p->host.reserve(p->host.argument, error));
        TRY(p->host.run(p->host.argument, error));
        p->tried.code = COUNTED_YES;
    }
    *outcome = p->tried;
    return STATUS_OK;
}

static struct {
    int calls;
    size_t most; /* largest number of works in a call */
} by_launch;
static size_t works_most; /* calls with more works fail */

/* All launches of a work have equal counts. */
enum status profiler_count(struct profiler *p, unsigned tensors, const struct profiled_work *works,
                           size_t count, const size_t *launches, size_t room,
                           double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error)
{
    size_t all = 0;
    assert_int_equal(p->tried.code, COUNTED_YES);
    p->attached = true;
    if (!launches)
        return vendor_count(p, tensors, works, count, NULL, 0, values, outcome, error);
    for (size_t i = 0; i < count; ++i)
        all += launches[i];
    assert_true(count > 0 && all <= room);
    ++by_launch.calls;
    if (count > by_launch.most)
        by_launch.most = count;
    for (size_t i = 0; i < count; ++i) {
        assert_true(launches[i] > 0);
        TRY(vendor_count(p, tensors, &works[i], 1, NULL, 0, values, outcome, error));
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            values[0][j] /= (double)launches[i];
        for (size_t j = 1; j < launches[i]; ++j)
            memcpy(values[j], values[0], sizeof *values);
        values += launches[i];
    }
    if (count > works_most)
        outcome_set(outcome, COUNTED_INCOMPLETE, "another number of launches");
    return STATUS_OK;
}

enum status profiler_trace(struct profiler *p, const struct profiled_work *work,
                           struct outcome *outcome, struct error *error)
{
    outcome_set(outcome, TRACED_WELL, NULL);
    return STATUS_OK;
}

const struct trace *profiler_last_trace(const struct profiler *p)
{
    return &last_trace;
}

/* ---- CUDA ---- */

int nvml_processes(struct nvml *nvml)
{
    return processes;
}

cudaError_t kernel_empty(cudaStream_t stream)
{
    struct error error;
    return script_kernel("empty", script.empty_time, script.node_time, &error) ? cudaErrorUnknown
                                                                               : cudaSuccess;
}

cudaError_t kernel_delay(double seconds, cudaStream_t stream)
{
    return cudaErrorUnknown;
}

const struct fma_kernel fma_kernels[] = {{PRECISION_COUNT, NULL, 0}};

cudaError_t cudaFree(void *memory)
{
    vendor_free(memory);
    return cudaSuccess;
}

void *cuda_driver_function(const char *symbol, unsigned introduced)
{
    return NULL;
}

enum status cuda_check(cudaError_t code, const char *call, struct error *error)
{
    return code ? error_set(error, STATUS_FAILED, "%s", call) : STATUS_OK;
}

static int set_up(void **state)
{
    script_set_up(state);
    gpu = (struct gpu){.multiprocessors = 132};
    processes = 1;
    works_most = ROWS;
    memset(&by_launch, 0, sizeof by_launch);
    return profile_open(&gpu) == NULL;
}

/* Counters must not stay attached, because rows are timed next. */
static int tear_down(void **state)
{
    assert_false(profiler.attached);
    return script_tear_down(state);
}

/* ---- rows ---- */

#define FLOPS  1e6  /* count of a work with times = 1 */
#define ACTIVE 0.5  /* each activity of a work with times = 1 */
#define TIME   8.0  /* s, of each kernel */
#define PEAK   0.25 /* peak of each amount, per second */

struct counted_work {
    struct work base;
    enum quantity quantity;
    int times;
    bool fails;
};

static enum status counted_iterate(struct gpu *unused, struct work *work, struct error *error)
{
    const struct counted_work *counted = (const struct counted_work *)work;
    if (counted->fails)
        return error_set(error, STATUS_FAILED, "it cannot run");
    script.done[counted->quantity] += FLOPS * counted->times;
    for (int i = 0; i < ACTIVITY_COUNT; ++i)
        script.done[QUANTITY_ACTIVITY + i] += ACTIVE * counted->times;
    for (int i = QUANTITY_PEAK_DRAM; i <= QUANTITY_PEAK_MULTIPROCESSORS; ++i)
        script.done[i] += PEAK * counted->times;
    script.cache = SCRIPT_WARM;
    return script_enqueue(1e-6, error);
}

static const struct work_ops ops = {.iterate = counted_iterate};

static struct counted_work work_of(int times)
{
    return (struct counted_work){.base = {.ops = &ops, .precision = PRECISION_FP32},
                                 .quantity = QUANTITY_VECTOR_FP32,
                                 .times = times};
}

static struct record count_one(struct counted_work *work, bool cold, enum unit unit)
{
    struct record record;
    const struct countable row = {&work->base, cold, false, false, &record};
    record_init(&record);
    record.unit = unit;
    assert_ok(profile_count(&profiler, &gpu, &row, 1, &failure));
    return record;
}

#define BENCH_TEST(name) TEST_WITH(name, set_up, tear_down)

/* Vector FLOPs of a graph would be 0. Its kernels are counted in the stream, unless they differ. */
BENCH_TEST(a_replay_is_counted_in_the_stream)
{
    for (int differs = 0; differs < 2; ++differs) {
        struct counted_work stream = work_of(2), work = work_of(1);
        work.base.stream = &stream.base;
        work.base.stream_differs = differs;
        struct record record = count_one(&work, false, UNIT_VECTOR);
        assert_int_equal(record.counters.code, differs ? COUNTED_REFUSED : COUNTED_YES);
        assert_true(differs ? isnan(record.flops_counted) : record.flops_counted == 2 * FLOPS);
        assert_int_equal(isnan(record.bytes_counted[LEVEL_DRAM]), differs);
        record_clear(&record);
    }
}

/* Counters would include another process's work. Once that process ends, rows are counted. */
BENCH_TEST(a_gpu_with_other_processes_is_not_counted)
{
    struct counted_work work = work_of(1);
    for (processes = 2; processes > 0; --processes) {
        struct record record = count_one(&work, false, UNIT_VECTOR);
        assert_int_equal(record.counters.code, processes > 1 ? COUNTED_REFUSED : COUNTED_YES);
        assert_int_equal(isnan(record.flops_counted), processes > 1);
        record_clear(&record);
    }
}

/* Rows of one collection; row i does order[i] times the work. */
struct rows {
    struct counted_work works[ROWS];
    struct record records[ROWS];
    struct countable rows[ROWS];
};

static void rows_make(struct rows *rows, const int order[ROWS])
{
    memset(rows, 0, sizeof *rows);
    for (int i = 0; i < ROWS; ++i) {
        rows->works[i] = work_of(order[i]);
        record_init(&rows->records[i]);
        rows->records[i].unit = UNIT_VECTOR;
        rows->rows[i] =
            (struct countable){&rows->works[i].base, i % 2, false, false, &rows->records[i]};
    }
}

static enum status rows_run(struct rows *rows)
{
    struct error error;
    return profile_count(&profiler, &gpu, rows->rows, ROWS, &error);
}

static void rows_clear(struct rows *rows)
{
    for (int i = 0; i < ROWS; ++i) {
        record_clear(&rows->records[i]);
        profile_release(&rows->works[i].base);
    }
}

BENCH_TEST(rows_are_counted_in_one_collection)
{
    static const int orders[][ROWS] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 4, 1, 3}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; ++i) {
        struct rows rows;
        rows_make(&rows, orders[i]);
        assert_int_equal(rows_run(&rows), STATUS_OK);
        for (int j = 0; j < ROWS; ++j) {
            assert_int_equal(rows.records[j].counters.code, COUNTED_YES);
            assert_true(rows.records[j].flops_counted == orders[i][j] * FLOPS);
            assert_true(rows.records[j].wall_time_part[PART_COUNTS] > 0);
        }
        rows_clear(&rows);
    }
    assert_int_equal(script.collections, 3);
}

/* A row has no counts of tensor units that it cannot use, even if other rows can. */
BENCH_TEST(tensor_counts_of_other_rows_are_dropped)
{
    static const int order[ROWS] = {1, 2, 3, 4};
    struct rows rows;
    rows_make(&rows, order);
    rows.works[1].base.precision = PRECISION_TF32;
    rows.records[1].unit = UNIT_TENSOR;
    rows.works[2].base.precision = PRECISION_FP16;
    rows.records[2].unit = UNIT_TENSOR;
    assert_int_equal(rows_run(&rows), STATUS_OK);
    for (int i = 0; i < ROWS; ++i) {
        assert_int_equal(isnan(rows.records[i].flops_tensor[PRECISION_TF32]), i != 1);
        assert_int_equal(isnan(rows.records[i].flops_tensor[PRECISION_FP16]), i != 2);
    }
    rows_clear(&rows);
}

/* All rows get the failure of the collection, and can be counted again one by one. */
BENCH_TEST(a_batch_that_fails_can_be_counted_again)
{
    static const int order[ROWS] = {1, 2, 3, 4};
    for (int work_fails = 0; work_fails < 2; ++work_fails) {
        struct rows rows;
        struct error error;
        rows_make(&rows, order);
        script.collection = work_fails ? "counted" : "incomplete: 1 ranges dropped";
        rows.works[2].fails = work_fails;
        assert_int_equal(rows_run(&rows), work_fails ? STATUS_FAILED : STATUS_OK);
        for (int i = 0; i < ROWS && !work_fails; ++i) {
            assert_int_equal(rows.records[i].counters.code, COUNTED_INCOMPLETE);
            assert_true(isnan(rows.records[i].flops_counted));
        }
        script.collection = "counted";
        for (int i = 0; i < ROWS; ++i) {
            bool fails = rows.works[i].fails;
            assert_int_equal(profile_count(&profiler, &gpu, &rows.rows[i], 1, &error),
                             fails ? STATUS_FAILED : STATUS_OK);
            if (!fails)
                assert_true(rows.records[i].flops_counted == order[i] * FLOPS);
        }
        rows_clear(&rows);
    }
}

static void rows_trace(struct rows *rows, const int order[ROWS])
{
    rows_make(rows, order);
    for (int i = 0; i < ROWS; ++i) {
        struct kernel kernel;
        fields_clear(kernel_fields, &kernel);
        strcpy(kernel.name, "fma");
        kernel.count = order[i];
        kernel.time = TIME * order[i];
        assert_ok(record_set_kernels(&rows->records[i], &kernel, 1, &failure));
        rows->works[i].base.launches = calloc((size_t)order[i], sizeof(size_t));
        rows->works[i].base.launch_count = (size_t)order[i];
        rows->rows[i].kernels = true;
    }
}

/* A collection has at most 256 launches. After a failure each row is counted alone. */
BENCH_TEST(kernels_are_counted_together)
{
    static const struct {
        int launches[ROWS];
        size_t works_most, most;
        int calls;
    } rows[] = {{{1, 2, 3, 4}, ROWS, ROWS, 1},
                {{100, 150, 50, 206}, ROWS, 2, 2},
                {{250, 300, 7, 300}, ROWS, 1, 4},
                {{1, 2, 3, 4}, 1, ROWS, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct rows batch;
        memset(&by_launch, 0, sizeof by_launch);
        works_most = rows[i].works_most;
        rows_trace(&batch, rows[i].launches);
        assert_int_equal(rows_run(&batch), STATUS_OK);
        assert_int_equal(by_launch.calls, rows[i].calls);
        assert_int_equal(by_launch.most, rows[i].most);
        for (int j = 0; j < ROWS; ++j) {
            assert_int_equal(batch.records[j].counters.code, COUNTED_YES);
            double flops = batch.records[j].kernels[0].flops_counted;
            assert_true(fabs(flops / (rows[i].launches[j] * FLOPS) - 1) < 1e-9);
        }
        rows_clear(&batch);
    }
}

/* Each row keeps its own launches, though other rows were traced later. */
BENCH_TEST(kernels_of_a_batch_have_their_counts)
{
    enum { STALLS = ACTIVITY_COUNT - ACTIVITY_STALL_BARRIER };
    static const int order[ROWS] = {1, 2, 3, 4};
    struct rows rows;
    rows_trace(&rows, order);
    for (int i = 0; i < ROWS; ++i) {
        rows.rows[i].kernels = i != 1;
        rows.rows[i].causes = i != 2;
    }
    assert_int_equal(rows_run(&rows), STATUS_OK);
    for (int i = 0; i < ROWS; ++i) {
        assert_int_equal(rows.records[i].counters.code, COUNTED_YES);
        if (i == 1)
            assert_true(isnan(rows.records[i].kernels[0].flops_counted));
        else
            assert_true(rows.records[i].kernels[0].flops_counted == order[i] * FLOPS);
        const double *activity = rows.records[i].kernels[0].activity;
        assert_int_equal(activity[ACTIVITY_ISSUE] == ACTIVE, i != 2);
        for (int j = 0; j < 3; ++j) { /* shares of the peak in the traced time */
            static const int amounts[] = {ACTIVITY_DRAM, ACTIVITY_L2, ACTIVITY_MULTIPROCESSORS};
            assert_int_equal(activity[amounts[j]] == ACTIVE / (PEAK * TIME), i != 2);
        }
        assert_int_equal(fabs(activity[ACTIVITY_STALL_WAIT] * STALLS - 1) < 1e-9, i != 2);
    }
    script.activities = "refused: taken by another; wait for it";
    assert_int_equal(rows_run(&rows), STATUS_OK);
    for (int i = 0; i < ROWS; ++i) {
        const struct outcome *counters = &rows.records[i].counters;
        assert_int_equal(counters->code, i == 2 ? COUNTED_YES : COUNTED_WITHOUT_CAUSES);
        assert_string_equal(counters->reason, i == 2 ? "" : "refused: taken by another");
        assert_false(isnan(rows.records[i].flops_counted));
    }
    rows_clear(&rows);
}

/* Data that the profiler leaves in L2 would be written to memory at the row's cost. */
BENCH_TEST(rows_are_counted_with_the_cache_as_timed)
{
    static const enum script_cache expected[] = {SCRIPT_WARM, SCRIPT_FLUSHED};
    struct counted_work work = work_of(1);
    for (int cold = 0; cold < 2; ++cold) {
        struct record record = count_one(&work, cold, UNIT_VECTOR);
        assert_int_equal(script.counted_cache, expected[cold]);
        record_clear(&record);
    }
}

/* ---- blocks on a multiprocessor ---- */

/* Blocks by registers, shared memory, threads and block slots, worked out by hand for a
 * multiprocessor of compute capability 9.0. */
BENCH_TEST(each_resource_limits)
{
    static const struct {
        int64_t threads, registers, static_shared, dynamic_shared;
        int64_t blocks;
        const char *limit;
    } rows[] = {
        {256, 16, 0, 0, 8, "threads"},              /* 2048 */
        {32, 16, 0, 0, 32, "blocks"},               /* block slots */
        {256, 168, 0, 0, 1, "registers"},           /* 12 warps of 5376 registers */
        {384, 168, 0, 0, 1, "registers"},           /* exactly 12 */
        {128, 168, 0, 0, 3, "registers"},           /* 12 warps are 3 blocks */
        {128, 32, 0, 65536, 3, "shared_memory"},    /* 66560 byte each, of 233472 */
        {128, 32, 1024, 64512, 3, "shared_memory"}, /* another split with the same sum */
        {128, 32, 0, 231424, 1, "shared_memory"},
    };
    enum { KERNELS = sizeof rows / sizeof *rows };
    struct traced_kernel kernels[KERNELS];
    struct launch launches[KERNELS];
    memset(kernels, 0, sizeof kernels);
    memset(launches, 0, sizeof launches);
    for (size_t i = 0; i < KERNELS; ++i) {
        launches[i].kernel = i;
        kernels[i].kernel = (struct kernel){.block_x = rows[i].threads,
                                            .block_y = 1,
                                            .block_z = 1,
                                            .cluster = 1,
                                            .count = 1,
                                            .registers = rows[i].registers,
                                            .static_shared = rows[i].static_shared,
                                            .dynamic_shared = rows[i].dynamic_shared};
    }
    last_trace = (struct trace){
        .kernels = kernels, .kernel_count = KERNELS, .launches = launches, .launch_count = KERNELS};
    for (int known = 1; known >= 0; --known) {
        struct counted_work work = work_of(1);
        struct record record;
        gpu.limits = (cudaOccDeviceProp){
            .computeMajor = known ? 9 : 99, /* the toolkit does not know 99 */
            .warpSize = 32,
            .maxThreadsPerBlock = 1024,
            .maxThreadsPerMultiprocessor = 2048,
            .regsPerBlock = 65536,
            .regsPerMultiprocessor = 65536,
            .sharedMemPerBlock = 49152,
            .sharedMemPerBlockOptin = 232448,
            .reservedSharedMemPerBlock = 1024,
            .sharedMemPerMultiprocessor = 233472,
            .numSms = gpu.multiprocessors,
        };
        record_init(&record);
        assert_ok(profile_trace(&profiler, &gpu, &work.base, false, &record, &failure));
        assert_int_equal(record.kernel_count, KERNELS);
        for (size_t i = 0; i < KERNELS; ++i) {
            assert_int_equal(record.kernels[i].resident,
                             known ? rows[i].blocks * gpu.multiprocessors : FIELD_MISSING);
            if (known)
                assert_int_equal(record.kernels[i].resident_limit,
                                 1 << words_find(kernel_limit_name, rows[i].limit));
        }
        record_clear(&record);
        profile_release(&work.base);
    }
}
