/* The CUDA worker's rows: how they are timed and counted, on a scripted H200 (scripted_cuda.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "scripted_bench.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/energy.h"
#include "worker/cuda/gpu/host_pace.h"
#include "worker/cuda/gpu/graph_time.h"
#include "worker/cuda/gpu/memory.h"
#include "worker/cuda/gpu/replay.h"
#include "worker/cuda/gpu/timing.h"
#include "worker/cuda/row_count.h"
#include "worker/cuda/row_trace.h"
#include "worker/cuda/workloads/matmul.h"
#include "worker/cuda/workloads/search.h"

static bool is_attached(void)
{
    return profiler_state(bench.profiler) == PROFILER_COUNTERS_STAY;
}

/* ---- timing ---- */

static enum status empty_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)work;
    return CUDA(kernel_empty(gpu->stream));
}

static const struct work_ops empty_ops = {.iterate = empty_iterate};

/* Times so many samples of the work, hot, as a row does. */
static struct record timed(struct work *work, int samples, double *seconds)
{
    struct record record;
    struct error error;
    record_init(&record);
    assert_int_equal(timing_run(&bench.gpu, work, false, 2, seconds, NULL, &error), STATUS_OK);
    assert_int_equal(timing_run(&bench.gpu, work, false, samples, seconds, &record, &error),
                     STATUS_OK);
    return record;
}

static void assert_all_near(const double *seconds, int count, double expected)
{
    for (int i = 0; i < count; ++i)
        assert_near(seconds[i], expected);
}

/* Once it is known how long the host takes to enqueue one, the device is kept waiting for all. */
static void iterations_run_at_the_device_s_pace(void **state)
{
    (void)state;
    enum { ITERATIONS = 300 };
    double seconds[ITERATIONS];
    struct record record;
    struct error error;
    record_init(&record);
    for (int cold = 0; cold < 2; ++cold) {
        struct work work = {.ops = &empty_ops};
        assert_int_equal(timing_run(&bench.gpu, &work, cold, 2, seconds, NULL, &error), STATUS_OK);
        assert_int_equal(timing_run(&bench.gpu, &work, cold, ITERATIONS, seconds, &record, &error),
                         STATUS_OK);
        assert_all_near(seconds, ITERATIONS, script.empty_time);
        assert_near(record.sm_clock_counted, script.sm_clock);
        assert_near(record.sm_clock_free, script.sm_clock);
        assert_int_equal(record.host_paced, 0);
        assert_int_equal(record.throttled, 0);
        assert_true(isnan(record.profiler_ratio) && isnan(record.energy));
    }
    record_clear(&record);
}

/* A pair of events adds its own time. So there is one around many iterations. */
static void hot_samples_hold_many_iterations(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    script.event_time = 3e-6;
    script.empty_time = 15e-6;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_near(record.timer_overhead, script.event_time);
    assert_in_range(record.sample_iterations, 40, 60);
    assert_all_near(seconds, SAMPLES, script.empty_time);
    record_clear(&record);
}

/* What stands between iterations must not be in a sample: then each is timed by itself, and the
 * timer's own time is in it, and told. */
static enum status nothing_reset(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)work;
    return CUDA(kernel_delay(100e-6, gpu->stream));
}

static void prepared_iterations_are_timed_one_by_one(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    static const struct work_ops ops = {.iterate = empty_iterate, .reset = nothing_reset};
    double seconds[SAMPLES];
    struct work work = {.ops = &ops};
    script.event_time = 3e-6;
    script.empty_time = 15e-6;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_int_equal(record.sample_iterations, 1);
    assert_near(record.timer_overhead, script.event_time);
    assert_all_near(seconds, SAMPLES, script.empty_time + script.event_time);
    record_clear(&record);
}

/* The second of the two candidates is the better one, and takes the host 40 times as long. */
enum { PARTS = 40 };
struct choice_work {
    struct work base;
    int candidate;
};

static enum status choice_bind(struct gpu *gpu, struct work *work, int candidate,
                               struct error *error)
{
    (void)gpu, (void)error;
    ((struct choice_work *)work)->candidate = candidate;
    return STATUS_OK;
}

static const char *choice_name(const struct work *work, int candidate)
{
    (void)work;
    return candidate == 0 ? "one" : "parts";
}

static enum status choice_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    if (((struct choice_work *)work)->candidate == 0)
        return CUDA(kernel_delay(2.0 * PARTS * script.empty_time, gpu->stream));
    for (int i = 0; i < PARTS; ++i)
        TRY(CUDA(kernel_empty(gpu->stream)));
    return STATUS_OK;
}

static void the_delay_is_of_what_is_bound(void **state)
{
    (void)state;
    enum { SAMPLES = 100 };
    static const struct work_ops ops = {.iterate = choice_iterate};
    double seconds[SAMPLES];
    struct choice_work work = {.base.ops = &ops};
    const struct search search = {.gpu = &bench.gpu,
                                  .work = &work.base,
                                  .count = 2,
                                  .bind = choice_bind,
                                  .name = choice_name};
    struct record record;
    struct error error;
    int fastest;
    record_init(&record);
    assert_int_equal(search_run(&search, &fastest, &record, &error), STATUS_OK);
    assert_int_equal(fastest, 1);
    record = timed(&work.base, SAMPLES, seconds);
    assert_all_near(seconds, SAMPLES, PARTS * script.empty_time);
    assert_int_equal(record.host_paced, 0);
    record_clear(&record);
}

/* The host is taken off its processor now and then: such a chunk is taken once more. */
static void a_chunk_that_the_host_lost_is_repeated(void **state)
{
    (void)state;
    enum { SAMPLES = 500 };
    static double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    script.pause_every = 997;
    script.pause_time = 5e-3;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_all_near(seconds, SAMPLES, script.empty_time);
    assert_int_equal(record.host_paced, 0);
    record_clear(&record);
}

static void what_cannot_be_had_is_flagged(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    struct error error;
    script.event_time = 3e-6;
    assert_int_equal(timer_calibrate(bench.gpu.timer, &error), STATUS_OK);
    script.pause_every = 50;
    script.pause_time = 50e-3;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_int_equal(record.host_paced, 1);
    record_clear(&record);
}

/* More launches than the queue holds: a device that is slower than the host never waits for it. */
static enum status many_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    enum { LAUNCHES = 5000 };
    (void)work;
    for (int i = 0; i < LAUNCHES; ++i)
        TRY(CUDA(kernel_empty(gpu->stream)));
    return STATUS_OK;
}

static void more_launches_than_the_queue_holds(void **state)
{
    (void)state;
    enum { SAMPLES = 5 };
    static const struct work_ops ops = {.iterate = many_iterate};
    for (int slow = 0; slow < 2; ++slow) {
        double seconds[SAMPLES];
        struct work work = {.ops = &ops};
        script.empty_time = (slow ? 10.0 : 0.1) * script.call_time;
        struct record record = timed(&work, SAMPLES, seconds);
        assert_int_equal(record.host_paced, !slow);
        record_clear(&record);
    }
}

static void a_clock_that_is_held_down_is_told(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    script.empty_time = 100e-6;
    struct record record = timed(&work, SAMPLES, seconds);
    assert_int_equal(record.throttled, 0);
    record_clear(&record);
    script.sm_clock *= 0.9;
    struct work slower = {.ops = &empty_ops};
    record = timed(&slower, SAMPLES, seconds);
    assert_int_equal(record.throttled, 1);
    assert_near(record.sm_clock_counted / record.sm_clock_free, 0.9);
    record_clear(&record);
}

/* ---- energy ---- */

static void energy_is_of_the_work_alone(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    double seconds[SAMPLES];
    struct work work = {.ops = &empty_ops};
    struct error error;
    script.idle_power = 100.0;
    script.busy_power = 600.0;
    script.empty_time = script.node_time = 20e-6;
    struct record record = timed(&work, SAMPLES, seconds);
    record.time_median = seconds[0];
    assert_int_equal(energy_run(&bench.gpu, &work, false, &record, &error), STATUS_OK);
    assert_near(record.idle_power, 100.0);
    assert_near(record.power, 600.0);
    assert_near(record.energy_time, 20e-6);
    assert_near(record.energy, 600.0 * 20e-6);
    assert_near(record.energy_clock, script.sm_clock);
    record_clear(&record);
}

static void without_a_counter_there_is_no_energy(void **state)
{
    (void)state;
    static const struct work_ops prepared = {.iterate = empty_iterate, .reset = nothing_reset};
    struct work work = {.ops = &empty_ops}, other = {.ops = &prepared};
    struct record record;
    struct error error;
    record_init(&record);
    assert_int_equal(energy_run(&bench.gpu, &work, false, &record, &error), STATUS_OK);
    script.idle_power = script.busy_power = 100.0;
    assert_int_equal(energy_run(&bench.gpu, &work, true, &record, &error), STATUS_OK);
    assert_int_equal(energy_run(&bench.gpu, &other, false, &record, &error), STATUS_OK);
    assert_true(isnan(record.energy) && isnan(record.power) && isnan(record.idle_power));
    record_clear(&record);
}

/* Each iteration finds an idle device: it is never the queue that the host waits for. */
static void a_caller_s_pace(void **state)
{
    (void)state;
    static const struct work_ops ops = {.iterate = empty_iterate};
    struct work work = {.ops = &ops};
    double seconds;
    struct error error;
    script.empty_time = 1000.0 * script.call_time;
    assert_int_equal(host_pace(&bench.gpu, &work, &seconds, &error), STATUS_OK);
    assert_in_range(1e9 * seconds, 1e9 * script.call_time, 1.3e9 * script.call_time);
}

/* Within a graph gaps are smaller; what is prepared between iterations, or cold, has no such time. */
static void a_graph_has_a_time_of_its_own(void **state)
{
    (void)state;
    static const struct work_ops reset_ops = {.iterate = empty_iterate, .reset = nothing_reset};
    struct work work = {.ops = &empty_ops, .pace = {.iteration_time = 15e-6}};
    struct work prepared = {.ops = &reset_ops};
    double seconds;
    struct error error;
    assert_int_equal(graph_time_measure(&bench.gpu, &work, false, &seconds, &error), STATUS_OK);
    assert_near(seconds, script.node_time);
    assert_int_equal(graph_time_measure(&bench.gpu, &work, true, &seconds, &error), STATUS_OK);
    assert_true(isnan(seconds));
    assert_int_equal(graph_time_measure(&bench.gpu, &prepared, false, &seconds, &error), STATUS_OK);
    assert_true(isnan(seconds));
}

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

/* With this outcome, which record.counters tells. */
static void row_is_counted(enum precision precision, enum unit unit, const char *outcome)
{
    const double flops = (double)fma_kernels[FP32_ROW].flops_per_iteration * FP32_ITERATIONS *
                         FP32_THREADS * bench.gpu.multiprocessors;
    struct work work = {.ops = &fp32_ops, .precision = precision};
    struct record record;
    struct error error;
    record_init(&record);
    record.unit = unit;
    script.collection = outcome;
    const struct countable row = {&work, false, false, &record};
    assert_int_equal(rows_count(bench.profiler, &bench.gpu, &row, 1, &error), STATUS_OK);
    char text[OUTCOME_TEXT];
    outcome_format(&record.counters, counted_word, text);
    assert_string_equal(text, outcome);
    if (record.counters.code == COUNTED_YES)
        assert_true(record.flops_counted == flops);
    record_clear(&record);
}

/* ---- work that is replayed from a graph ---- */

static void static_release(struct work *work)
{
    work->launch_count = 0; /* it is the test's own */
}

static enum status refused_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    (void)gpu, (void)work;
    return error_set(error, STATUS_FAILED, "it waits for the device");
}

static struct work *replayed(struct work *stream)
{
    struct work *work = NULL;
    struct error error;
    if (replay_create(&bench.gpu, stream, &work, &error))
        fail_msg("%s", error.text);
    assert_ptr_equal(work->stream, stream);
    return work;
}

/* Whatever stands between iterations is launched in the stream, and is in no sample. */
static void a_replay_has_the_pace_of_its_graph(void **state)
{
    (void)state;
    enum { SAMPLES = 20 };
    static const struct work_ops kinds[] = {
        {.iterate = empty_iterate, .release = static_release},
        {.iterate = empty_iterate, .reset = nothing_reset, .release = static_release},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        struct work stream = {.ops = &kinds[i], .precision = PRECISION_FP16};
        struct work *work = replayed(&stream);
        double seconds[SAMPLES];
        script.node_time = 7e-6;
        script.empty_time = 15e-6;
        assert_int_equal(work->precision, PRECISION_FP16);
        assert_int_equal(work->ops->reset != NULL, kinds[i].reset != NULL);
        assert_true(!work->ops->element && !work->ops->reject);
        struct record record = timed(work, SAMPLES, seconds);
        double timer = kinds[i].reset ? record.timer_overhead : 0.0;
        assert_all_near(seconds, SAMPLES, script.node_time + timer);
        record_clear(&record);
        work->ops->release(work);
    }
}

static void what_cannot_be_captured_is_said(void **state)
{
    (void)state;
    static const struct work_ops ops = {.iterate = refused_iterate, .release = static_release};
    struct work stream = {.ops = &ops}, *work = NULL;
    struct error error;
    assert_int_equal(replay_create(&bench.gpu, &stream, &work, &error), STATUS_UNSUPPORTED);
    assert_null(work);
    assert_string_equal(error.text, "it cannot be captured in a graph: it waits for the device");
}

/* Whichever call fails, nothing is left, and the work in the stream stays the caller's. */
static void a_replay_that_fails_leaves_nothing(void **state)
{
    (void)state;
    static const struct work_ops ops = {.iterate = empty_iterate, .release = static_release};
    enum status status = STATUS_FAILED;
    for (int call = 1; status; ++call) {
        struct work stream = {.ops = &ops}, *work = NULL;
        struct error error;
        script.fail_at = script.calls + call;
        status = replay_create(&bench.gpu, &stream, &work, &error);
        script.fail_at = 0;
        if (status)
            assert_null(work);
        else
            work->ops->release(work);
        assert_true(call < 20);
    }
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
        struct record record;
        struct error error;
        record_init(&record);
        record.unit = UNIT_VECTOR;
        const struct countable row = {&work, false, false, &record};
        assert_int_equal(rows_count(bench.profiler, &bench.gpu, &row, 1, &error), STATUS_OK);
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
        row_is_counted(PRECISION_FP32, UNIT_VECTOR, "counted");
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
        rows->rows[i] = (struct countable){&rows->works[i].base, i % 2, false, &rows->records[i]};
    }
}

static enum status rows_run(struct rows *rows)
{
    struct error error;
    return rows_count(bench.profiler, &bench.gpu, rows->rows, ROWS, &error);
}

static void rows_clear(struct rows *rows)
{
    for (int i = 0; i < ROWS; ++i) {
        record_clear(&rows->records[i]);
        row_release(&rows->works[i].base);
    }
}

/* In whatever order: as if each were alone. */
static void rows_are_counted_in_one_collection(void **state)
{
    (void)state;
    static const int orders[][ROWS] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 4, 1, 3}};
    so_many_are_counted(1); /* decides that the profiler stays */
    int collections = script.collections;
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
    assert_int_equal(script.collections, collections + 3);
    assert_int_equal(script.afresh, 1);
}

/* The first collection of a process may be of several rows. */
static void a_batch_decides_that_the_profiler_stays(void **state)
{
    (void)state;
    static const int order[ROWS] = {1, 2, 3, 4};
    struct rows rows;
    rows_make(&rows, order);
    assert_int_equal(rows_run(&rows), STATUS_OK);
    assert_true(is_attached());
    for (int i = 0; i < ROWS; ++i)
        assert_true(rows.records[i].flops_counted == order[i] * flops_of_one());
    rows_clear(&rows);
}

/* A row says nothing of tensor units that it cannot use, though others of the collection ask for them. */
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
            assert_int_equal(rows_count(bench.profiler, &bench.gpu, &rows.rows[i], 1, &error),
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
    }
    so_many_are_counted(1);
    assert_int_equal(rows_run(&rows), STATUS_OK);
    for (int i = 0; i < ROWS; ++i) {
        assert_int_equal(rows.records[i].counters.code, COUNTED_YES);
        if (i == 1)
            assert_true(isnan(rows.records[i].kernels[0].flops_counted));
        else
            assert_true(rows.records[i].kernels[0].flops_counted == order[i] * flops_of_one());
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
        struct record record;
        struct error error;
        record_init(&record);
        const struct countable row = {&work, cold, false, &record};
        assert_int_equal(rows_count(bench.profiler, &bench.gpu, &row, 1, &error), STATUS_OK);
        assert_int_equal(record.counters.code, COUNTED_YES);
        assert_int_equal(script.counted_cache, expected[cold]);
        record_clear(&record);
    }
}

/* It stays after the first row, where it then counts the row's work as it did before. */
static void a_profiler_stays_between_rows(void **state)
{
    (void)state;
    so_many_are_counted(3);
    assert_true(is_attached());
    assert_int_equal(script.afresh, 1);
    assert_near(profiler_ratio(bench.profiler), 1.0);
}

/* The same work twice would tell the same. */
static void a_profiler_that_tells_what_was_does_not_stay(void **state)
{
    (void)state;
    script.stale = true;
    so_many_are_counted(3);
    assert_false(is_attached());
    assert_true(isnan(profiler_ratio(bench.profiler)));
    assert_int_equal(script.afresh, 3);
}

/* It is not there while the next row is timed, and then is another one than was judged. */
static void a_profiler_that_was_lost_is_judged_when_it_is_back(void **state)
{
    (void)state;
    so_many_are_counted(2);
    row_is_counted(PRECISION_FP32, UNIT_VECTOR, "refused: taken by another");
    assert_false(is_attached());
    assert_true(isnan(profiler_ratio(bench.profiler)));
    so_many_are_counted(1);
    assert_true(is_attached());
    assert_near(profiler_ratio(bench.profiler), 1.0);
}

static void a_profiler_that_counts_more_is_judged_again(void **state)
{
    (void)state;
    so_many_are_counted(1);
    script.empty_time *= 2; /* so that it seems to be in the way */
    so_many_are_counted(1);
    assert_true(is_attached());
    row_is_counted(PRECISION_TF32, UNIT_TENSOR, "counted");
    assert_false(is_attached());
    assert_true(isnan(profiler_ratio(bench.profiler)));
}

/* ---- products ---- */

/* Partial sums of a product in pieces are never of the result's 16 bits. */
static void sums_of_products_stay_wide(void **state)
{
    (void)state;
    static const struct {
        const char *precision;
        unsigned reductions;
    } cases[] = {{"tf32", CUBLASLT_REDUCTION_SCHEME_MASK},
                 {"fp16", CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
                 {"bf16", CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
                 {"fp8", CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[80];
        struct config config;
        struct work *work = NULL;
        struct record record;
        struct error error;
        snprintf(text, sizeof text, "matmul m=64 n=128 k=4096 precision=%s", cases[i].precision);
        assert_int_equal(config_parse(text, &config, &error), STATUS_OK);
        record_init(&record);
        script.best.algorithm = (int)i % SCRIPT_ALGORITHMS;
        assert_int_equal(matmul_cublaslt_prepare(&bench.gpu, &config, 1, &work, &record, &error),
                         STATUS_OK);
        assert_int_equal(script.reductions, cases[i].reductions);
        assert_int_equal(record.algorithm[strlen("algo-")], '0' + script.best.algorithm);
        assert_int_equal(record.unit, UNIT_TENSOR);
        work->ops->release(work);
        record_clear(&record);
    }
}

/* Of instructions with sparse factors the counters count the dense ones. */
static void sparse_products_are_counted_as_done(void **state)
{
    (void)state;
    struct config config;
    struct work *work = NULL;
    struct record record;
    struct error error;
    assert_int_equal(config_parse("matmul m=64 n=128 k=256 precision=fp16", &config, &error),
                     STATUS_OK);
    record_init(&record);
    assert_int_equal(matmul_cublaslt_prepare(&bench.gpu, &config, 1, &work, &record, &error),
                     STATUS_OK);
    for (int sparse = 0; sparse < 2; ++sparse) {
        const struct countable row = {work, false, false, &record};
        work->sparse = sparse;
        assert_int_equal(rows_count(bench.profiler, &bench.gpu, &row, 1, &error), STATUS_OK);
        assert_true(record.flops_counted == 2.0 * 64 * 128 * 256 / (sparse ? 2.0 : 1.0));
        assert_true(record.flops_tensor[PRECISION_FP16] == record.flops_counted);
    }
    work->ops->release(work);
    record_clear(&record);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(iterations_run_at_the_device_s_pace),
        TEST(hot_samples_hold_many_iterations),
        TEST(prepared_iterations_are_timed_one_by_one),
        TEST(the_delay_is_of_what_is_bound),
        TEST(a_graph_has_a_time_of_its_own),
        TEST(a_chunk_that_the_host_lost_is_repeated),
        TEST(what_cannot_be_had_is_flagged),
        TEST(more_launches_than_the_queue_holds),
        TEST(a_clock_that_is_held_down_is_told),
        TEST(energy_is_of_the_work_alone),
        TEST(without_a_counter_there_is_no_energy),
        TEST(a_caller_s_pace),
        TEST(a_replay_has_the_pace_of_its_graph),
        TEST(what_cannot_be_captured_is_said),
        TEST(a_replay_that_fails_leaves_nothing),
        TEST(a_replay_is_counted_in_the_stream),
        TEST(rows_are_counted_with_the_cache_as_timed),
        TEST(rows_are_counted_in_one_collection),
        TEST(a_batch_decides_that_the_profiler_stays),
        TEST(what_others_ask_for_is_not_told),
        TEST(a_batch_that_fails_can_be_counted_again),
        TEST(kernels_of_a_batch_have_their_counts),
        TEST(a_profiler_stays_between_rows),
        TEST(a_profiler_that_tells_what_was_does_not_stay),
        TEST(a_profiler_that_was_lost_is_judged_when_it_is_back),
        TEST(a_profiler_that_counts_more_is_judged_again),
        TEST(sums_of_products_stay_wide),
        TEST(sparse_products_are_counted_as_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
