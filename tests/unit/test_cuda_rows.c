/* The CUDA worker's rows: how they are counted, on a scripted H200 (scripted_vendor.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "kernels/kernels.h"
#include "scripted_bench.h"
#include "scripted_cuda.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/energy.h"
#include "worker/gpu/timing.h"
#include "worker/gpu/graph.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/profile.h"
#include "worker/gpu/search.h"

static enum status empty_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)work;
    return CUDA(kernel_empty(gpu->stream));
}

static const struct work_ops empty_ops = {.iterate = empty_iterate};

/* ---- counts ---- */

enum { FP32_ROW = 1, FP32_THREADS = 1024, FP32_ITERATIONS = 10 };

/* One iteration of it does the kernel's own iterations `times` times. */
struct fp32_work {
    struct work base;
    int times;
    bool fails;
};

static enum status fp32_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    void *out;
    (void)work;
    TRY(memory_allocate(gpu->multiprocessors * FP32_THREADS * sizeof(float), "it", &out, error));
    cudaError_t code = fma_kernels[FP32_ROW].launch(out, FP32_ITERATIONS, gpu->multiprocessors,
                                                    FP32_THREADS, gpu->stream);
    cudaFree(out);
    return CUDA(code);
}

static const struct work_ops fp32_ops = {.iterate = fp32_iterate};

static enum status times_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct fp32_work *fp32 = (const struct fp32_work *)work;
    if (fp32->fails)
        return error_set(error, STATUS_FAILED, "it cannot run");
    for (int i = 0; i < fp32->times; ++i)
        TRY(fp32_iterate(gpu, work, error));
    return STATUS_OK;
}

static const struct work_ops times_ops = {.iterate = times_iterate};

static double flops_of_one(void)
{
    return (double)fma_kernels[FP32_ROW].flops_per_iteration * FP32_ITERATIONS * FP32_THREADS *
           bench.gpu.multiprocessors;
}

/* A row by itself, whose record is the caller's to clear. */
static struct record count_one(struct work *work, bool cold, enum unit unit)
{
    struct record record;
    struct error error;
    const struct countable row = {work, cold, false, false, &record};
    record_init(&record);
    record.unit = unit;
    assert_int_equal(profile_count(bench.profiler, &bench.gpu, &row, 1, &error), STATUS_OK);
    return record;
}

/* With this outcome, which record.counters tells. */
static void row_is_counted(const char *outcome)
{
    struct work work = {.ops = &fp32_ops, .precision = PRECISION_FP32};
    char text[OUTCOME_TEXT];
    script.collection = outcome;
    struct record record = count_one(&work, false, UNIT_VECTOR);
    outcome_format(&record.counters, counted_word, text);
    assert_string_equal(text, outcome);
    if (record.counters.code == COUNTED_YES)
        assert_true(record.flops_counted == flops_of_one());
    record_clear(&record);
}

/* A graph's vector FLOPs would be 0: the same kernels in the stream are counted, or nothing is. */
static void a_replay_is_counted_in_the_stream(void **state)
{
    (void)state;
    for (int differs = 0; differs < 2; ++differs) {
        struct work stream = {.ops = &fp32_ops, .precision = PRECISION_FP32};
        struct work work = {.ops = &empty_ops,
                            .precision = PRECISION_FP32,
                            .stream = &stream,
                            .stream_differs = differs};
        struct record record = count_one(&work, false, UNIT_VECTOR);
        if (differs) {
            assert_int_equal(record.counters.code, COUNTED_REFUSED);
            assert_true(isnan(record.flops_counted) && isnan(record.bytes_counted[LEVEL_DRAM]));
        } else {
            assert_int_equal(record.counters.code, COUNTED_YES);
            assert_true(record.flops_counted == flops_of_one());
        }
        record_clear(&record);
    }
}

static void so_many_are_counted(int rows)
{
    for (int row = 0; row < rows; ++row)
        row_is_counted("counted");
}

enum { ROWS = 4 };

/* Rows that do 1, 2, ... of the same, in this order, as one collection. */
struct rows {
    struct fp32_work works[ROWS];
    struct record records[ROWS];
    struct countable rows[ROWS];
};

static void rows_make(struct rows *rows, const int order[ROWS])
{
    memset(rows, 0, sizeof *rows);
    for (int i = 0; i < ROWS; ++i) {
        rows->works[i] = (struct fp32_work){
            .base = {.ops = &times_ops, .precision = PRECISION_FP32}, .times = order[i]};
        record_init(&rows->records[i]);
        rows->records[i].unit = UNIT_VECTOR;
        rows->rows[i] =
            (struct countable){&rows->works[i].base, i % 2, false, false, &rows->records[i]};
    }
}

static enum status rows_run(struct rows *rows)
{
    struct error error;
    return profile_count(bench.profiler, &bench.gpu, rows->rows, ROWS, &error);
}

static void rows_clear(struct rows *rows)
{
    for (int i = 0; i < ROWS; ++i) {
        record_clear(&rows->records[i]);
        profile_release(&rows->works[i].base);
    }
}

/* In whatever order: as if each were alone. */
static void rows_are_counted_in_one_collection(void **state)
{
    (void)state;
    static const int orders[][ROWS] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 4, 1, 3}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; ++i) {
        struct rows rows;
        rows_make(&rows, orders[i]);
        assert_int_equal(rows_run(&rows), STATUS_OK);
        for (int j = 0; j < ROWS; ++j) {
            assert_int_equal(rows.records[j].counters.code, COUNTED_YES);
            assert_true(rows.records[j].flops_counted == orders[i][j] * flops_of_one());
        }
        rows_clear(&rows);
    }
    assert_int_equal(script.collections, 3);
}

/* A row says nothing of tensor units that it cannot use, though others of the collection ask for
 * them. */
static void what_others_ask_for_is_not_told(void **state)
{
    (void)state;
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

/* Nobody knows which row it was: all say so, and can be counted again, one by one. */
static void a_batch_that_fails_can_be_counted_again(void **state)
{
    (void)state;
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
            assert_int_equal(profile_count(bench.profiler, &bench.gpu, &rows.rows[i], 1, &error),
                             fails ? STATUS_FAILED : STATUS_OK);
            if (!fails)
                assert_true(rows.records[i].flops_counted == order[i] * flops_of_one());
        }
        rows_clear(&rows);
        bench_close();
        bench_open();
    }
}

/* Each row's own launches, though others were traced after it. */
static void kernels_of_a_batch_have_their_counts(void **state)
{
    (void)state;
    enum { STALLS = ACTIVITY_COUNT - ACTIVITY_STALL_BARRIER };
    static const int order[ROWS] = {1, 2, 3, 4};
    struct rows rows;
    struct error error;
    rows_make(&rows, order);
    for (int i = 0; i < ROWS; ++i) {
        struct kernel kernel;
        fields_clear(kernel_fields, &kernel);
        strcpy(kernel.name, "fma");
        kernel.count = order[i];
        assert_int_equal(record_set_kernels(&rows.records[i], &kernel, 1, &error), STATUS_OK);
        rows.works[i].base.launches = calloc((size_t)order[i], sizeof(size_t));
        rows.works[i].base.launch_count = (size_t)order[i];
        rows.rows[i].kernels = i != 1;
        rows.rows[i].causes = i != 2;
    }
    so_many_are_counted(1);
    assert_int_equal(rows_run(&rows), STATUS_OK);
    for (int i = 0; i < ROWS; ++i) {
        assert_int_equal(rows.records[i].counters.code, COUNTED_YES);
        if (i == 1)
            assert_true(isnan(rows.records[i].kernels[0].flops_counted));
        else
            assert_true(rows.records[i].kernels[0].flops_counted == order[i] * flops_of_one());
        /* the script says 0.5 of each activity of each launch */
        const double *activity = rows.records[i].kernels[0].activity;
        assert_int_equal(activity[ACTIVITY_DRAM] == 0.5, i != 2);
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

/* And nothing of the profiler is in it, to be written to memory at the row's cost. */
static void rows_are_counted_with_the_cache_as_timed(void **state)
{
    (void)state;
    static const enum script_cache expected[] = {SCRIPT_WARM, SCRIPT_FLUSHED};
    struct work work = {.ops = &fp32_ops, .precision = PRECISION_FP32};
    for (int cold = 0; cold < 2; ++cold) {
        struct record record = count_one(&work, cold, UNIT_VECTOR);
        assert_int_equal(record.counters.code, COUNTED_YES);
        assert_int_equal(script.counted_cache, expected[cold]);
        record_clear(&record);
    }
}

/* Rows are timed next: each collection attaches CUPTI, and nothing stays. */
static void nothing_is_attached_between_collections(void **state)
{
    (void)state;
    so_many_are_counted(3);
    assert_int_equal(profiler_attached(bench.profiler), PROFILER_NOTHING);
    assert_int_equal(script.afresh, 3);
    row_is_counted("refused: taken by another");
    assert_int_equal(profiler_attached(bench.profiler), PROFILER_NOTHING);
    so_many_are_counted(1);
}

/* Of instructions with sparse factors the counters count the dense ones. */
static enum status tensor_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct tensor_kernel *kernel = tensor_kernels;
    void *out;
    (void)work;
    while (kernel->roof != ROOF_FP16_TENSOR_MMA)
        ++kernel;
    int blocks = kernel->blocks * gpu->multiprocessors;
    TRY(memory_allocate((double)blocks * kernel->threads * sizeof(float), "it", &out, error));
    cudaError_t code = kernel->launch(out, FP32_ITERATIONS, blocks, gpu->stream);
    cudaFree(out);
    return CUDA(code);
}

static void sparse_products_are_counted_as_done(void **state)
{
    static const struct work_ops tensor_ops = {.iterate = tensor_iterate};
    double flops[2];
    (void)state;
    for (int sparse = 0; sparse < 2; ++sparse) {
        struct work work = {.ops = &tensor_ops, .precision = PRECISION_FP16, .sparse = sparse};
        struct record record = count_one(&work, false, UNIT_TENSOR);
        flops[sparse] = record.flops_counted;
        record_clear(&record);
    }
    assert_true(flops[1] > 0.0 && flops[0] == 2.0 * flops[1]);
}

/* ---- blocks on a multiprocessor ---- */

/* What registers, shared memory, threads and places for blocks allow, worked out by hand for a
 * multiprocessor of compute capability 9.0. */
static void each_resource_limits(void **state)
{
    (void)state;
    static const struct {
        int64_t threads, registers, static_shared, dynamic_shared, shared_room;
        int64_t blocks;
        const char *limit;
    } rows[] = {
        {256, 16, 0, 0, 0, 8, "threads"},                /* 2048 */
        {32, 16, 0, 0, 0, 32, "blocks"},                 /* places for blocks */
        {256, 168, 0, 0, 0, 1, "registers"},             /* 12 warps of 5376 registers */
        {384, 168, 0, 0, 0, 1, "registers"},             /* exactly 12 */
        {128, 168, 0, 0, 0, 3, "registers"},             /* 3 times 4 of 12 */
        {128, 32, 0, 65536, 0, 3, "shared_memory"},      /* 66560 byte each, of 233472 */
        {128, 32, 1024, 64512, 0, 3, "shared_memory"},   /* the same */
        {128, 32, 0, 65536, 135168, 2, "shared_memory"}, /* the driver gave less to it */
        {128, 32, 0, 231424, 0, 1, "shared_memory"},
    };
    int64_t limit;
    cudaOccDeviceProp limits = {
        .computeMajor = 9,
        .warpSize = 32,
        .maxThreadsPerBlock = 1024,
        .maxThreadsPerMultiprocessor = 2048,
        .regsPerBlock = 65536,
        .regsPerMultiprocessor = 65536,
        .sharedMemPerBlock = 49152,
        .sharedMemPerBlockOptin = 232448,
        .reservedSharedMemPerBlock = 1024,
        .sharedMemPerMultiprocessor = 233472,
        .numSms = 1,
    };
    struct traced_kernel traced = {.kernel = {.block_y = 1, .block_z = 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        traced.kernel.block_x = rows[i].threads;
        traced.kernel.registers = rows[i].registers;
        traced.kernel.static_shared = rows[i].static_shared;
        traced.kernel.dynamic_shared = rows[i].dynamic_shared;
        traced.shared_room = rows[i].shared_room;
        assert_int_equal(profile_blocks(&limits, &traced, &limit), rows[i].blocks);
        assert_int_equal(limit, 1 << words_find(kernel_limit_name, rows[i].limit));
    }
    limits.computeMajor = 99; /* a chip that the toolkit does not know */
    assert_int_equal(profile_blocks(&limits, &traced, &limit), FIELD_MISSING);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_replay_is_counted_in_the_stream),
        TEST(rows_are_counted_with_the_cache_as_timed),
        TEST(rows_are_counted_in_one_collection),
        TEST(what_others_ask_for_is_not_told),
        TEST(a_batch_that_fails_can_be_counted_again),
        TEST(kernels_of_a_batch_have_their_counts),
        TEST(nothing_is_attached_between_collections),
        TEST(sparse_products_are_counted_as_done),
        TEST(each_resource_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
