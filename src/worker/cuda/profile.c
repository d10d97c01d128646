/* Kernels and hardware counts of rows.
 *
 * A trace runs one iteration behind a blocking kernel and puts the kernels into the record.
 * Counting takes several traced rows at once. The first collection counts each row as a whole. With
 * `kernels` a second one counts each launch; with `causes` a third one counts the activities of
 * each launch. A row that replays a graph is counted kernel by kernel in the stream, provided that
 * the graph has the same kernels.
 *
 * A failed trace or count leaves values missing, and record->error or record->counters says why. If
 * launches of several rows cannot be counted together, each row is counted alone.
 *
 * Cost: a trace takes an iteration and the loops of timing_caller. A collection costs a fixed time
 * for attaching CUPTI, so rows are counted together. */
#include "worker/cuda/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/profiling/residency.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/timing.h"

/* ---- known kernels ----
 *
 * Known kernels take the same time unless something disturbs them. times[0]: median of a kernel of
 * about a millisecond. times[1]: median gap between two empty kernels in a full queue. */

enum { LAUNCHES = 300, SAMPLES = 15, FMA_BLOCK = 1024 };

static enum status gap_enqueue(struct gpu *gpu, void *out, struct error *error)
{
    (void)out;
    for (int i = 0; i < LAUNCHES; ++i)
        TRY(CUDA(kernel_empty(gpu->stream)));
    return STATUS_OK;
}

static enum status kernel_enqueue(struct gpu *gpu, void *out, struct error *error)
{
    const struct fma_kernel *kernel = fma_kernels;
    const int64_t iterations = 400;
    while (kernel->precision != PRECISION_FP32)
        ++kernel;
    return CUDA(kernel->launch(out, iterations, gpu->multiprocessors, FMA_BLOCK, gpu->stream));
}

static enum status known_medians(struct gpu *gpu, void *out, double times[PROFILER_TIMES],
                                 struct error *error)
{
    static const double limit = 0.1;     /* s, limit of the blocking kernel */
    static const double warming = 10e-3; /* s; a load of this time raises the clock */
    static const struct {
        gpu_enqueue *enqueue;
        int parts; /* times[] is the time of one of these equal parts */
    } known[PROFILER_TIMES] = {
        {kernel_enqueue, 1},
        {gap_enqueue, LAUNCHES}, /* must come last: the gap needs a warm device */
    };
    TRY(CUDA(kernel_delay(warming, gpu->stream)));
    for (int i = 0; i < PROFILER_TIMES; ++i) {
        double seconds[SAMPLES];
        struct stats stats;
        TRY(known[i].enqueue(gpu, out, error));
        for (int j = 0; j < SAMPLES; ++j)
            TRY(timing_blocked(gpu, limit, known[i].enqueue, out, &seconds[j], error));
        TRY(stats_compute(seconds, SAMPLES, &stats, error));
        times[i] = stats.median / known[i].parts;
    }
    return STATUS_OK;
}

static enum status known_times(void *argument, double times[PROFILER_TIMES], struct error *error)
{
    struct gpu *gpu = argument;
    void *out;
    TRY(vendor_reserve(gpu, 2, false, error));
    TRY(memory_allocate((double)gpu->multiprocessors * FMA_BLOCK * sizeof(double), "a known kernel",
                        &out, error));
    enum status status = known_medians(gpu, out, times, error);
    cudaFree(out);
    return status;
}

/* ---- trial of the counters ---- */

static enum status trial_reserve(void *argument, struct error *error)
{
    struct gpu *gpu = argument;
    return vendor_flush(gpu, error);
}

static enum status trial_run(void *argument, struct error *error)
{
    struct gpu *gpu = argument;
    TRY(CUDA(kernel_empty(gpu->stream)));
    return vendor_synchronize(gpu, error);
}

struct profiler *profile_open(struct gpu *gpu)
{
    const struct profiler_host host = {known_times, trial_reserve, trial_run, gpu};
    return profiler_open(&host);
}

static CUcontext context_current(void)
{
    CUresult (*get)(CUcontext * context);
    CUcontext context = NULL;
    void *function = cuda_driver_function("cuCtxGetCurrent", 4000);
    memcpy(&get, &function, sizeof get);
    return get && get(&context) == CUDA_SUCCESS ? context : NULL;
}

enum status profile_try(struct profiler *profiler, struct gpu *gpu, struct outcome *outcome,
                        struct error *error)
{
    bool tried = profiler_counters(profiler)->code != OUTCOME_MISSING;
    if (!tried && nvml_processes(gpu->nvml) > 1) {
        outcome_set(outcome, COUNTED_REFUSED,
                    "another process computes on this GPU and would be counted; end it (nvidia-smi "
                    "names it), or ask for a GPU of your own");
        return STATUS_OK;
    }
    return profiler_try(profiler, gpu->index, context_current(), outcome, error);
}

/* ---- one iteration, as the profiler runs it ---- */

struct iteration {
    struct gpu *gpu;
    struct work *work;
    bool cold;
    double block_limit;    /* s, limit of a trace's blocking kernel */
    double begin, seconds; /* s; begin of the last preparation; sum over all passes */
    bool ahead;            /* the host enqueued everything before the device began */
};

static enum status iteration_reset(const struct iteration *i, struct error *error)
{
    return i->work->ops->reset ? i->work->ops->reset(i->gpu, i->work, error) : STATUS_OK;
}

/* Prepares the cache as for timing: flushed, or as an iteration leaves it. */
static enum status iteration_prepare(void *argument, struct error *error)
{
    struct iteration *i = argument;
    i->begin = clock_monotonic();
    TRY(iteration_reset(i, error));
    TRY(vendor_flush(i->gpu, error));
    if (!i->cold) {
        TRY(i->work->ops->iterate(i->gpu, i->work, error));
        TRY(iteration_reset(i, error));
    }
    return vendor_synchronize(i->gpu, error);
}

static enum status iteration_run(void *argument, struct error *error)
{
    struct iteration *i = argument;
    enum status status = i->work->ops->iterate(i->gpu, i->work, error);
    if (status == STATUS_OK)
        status = vendor_synchronize(i->gpu, error);
    i->seconds += clock_monotonic() - i->begin;
    return status;
}

/* Event 0 is pending while the device is blocked. */
static enum status iteration_block(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(vendor_block(i->gpu, i->block_limit, error));
    return vendor_record(i->gpu, 0, error);
}

static enum status iteration_run_blocked(void *argument, struct error *error)
{
    struct iteration *i = argument;
    enum status status = i->work->ops->iterate(i->gpu, i->work, error);
    if (status == STATUS_OK)
        status = vendor_pending(i->gpu, 0, &i->ahead, error);
    vendor_unblock(i->gpu);
    return status ? status : vendor_synchronize(i->gpu, error);
}

/* ---- kernels ---- */

static void kernels_set_counts(struct record *record, double value)
{
    for (size_t i = 0; i < record->kernel_count; ++i) {
        record->kernels[i].flops_counted = value;
        for (int level = 0; level < LEVEL_COUNT; ++level)
            record->kernels[i].bytes_counted[level] = value;
    }
}

static enum status record_kernels(const struct trace *trace, const struct gpu *gpu,
                                  struct record *record, struct error *error)
{
    struct kernel *kernels = malloc(trace->kernel_count * sizeof *kernels);
    if (!kernels)
        return error_set(error, STATUS_FAILED, "no memory for %zu kernels", trace->kernel_count);
    for (size_t i = 0; i < trace->kernel_count; ++i) {
        kernels[i] = trace->kernels[i].kernel;
        kernels[i].resident =
            residency_blocks(&trace->kernels[i], &gpu->limits, &kernels[i].resident_limit);
        for (int j = 0; j < ACTIVITY_COUNT; ++j)
            kernels[i].activity[j] = NAN;
    }
    enum status status = record_set_kernels(record, kernels, trace->kernel_count, error);
    if (status == STATUS_OK)
        kernels_set_counts(record, NAN);
    free(kernels);
    return status;
}

void profile_release(struct work *work)
{
    free(work->launches);
    work->launches = NULL;
    work->launch_count = 0;
}

/* CUPTI slows launches, so the blocking kernel's limit is far longer than they should need. */
static enum status work_trace(struct profiler *profiler, struct gpu *gpu, struct work *work,
                              bool cold, struct record *record, struct error *error)
{
    struct iteration iteration = {.gpu = gpu, .work = work, .cold = cold};
    const struct profiled_work traced = {iteration_prepare, iteration_run_blocked, &iteration,
                                         iteration_block};
    struct outcome outcome;
    TRY(timing_caller(gpu, work, cold, record, error));
    TRY(vendor_reserve(gpu, 1, false, error));
    iteration.block_limit = timing_block_limit(&work->pace, record->host_time);
    TRY(profiler_trace(profiler, &traced, &outcome, error));
    profile_release(work);
    if (outcome.code != TRACED_WELL) {
        if (!record->error[0])
            snprintf(record->error, sizeof record->error, "no kernels: CUPTI: %s", outcome.reason);
        return STATUS_OK;
    }
    const struct trace *trace = profiler_last_trace(profiler);
    work->launches = malloc((trace->launch_count + 1) * sizeof *work->launches);
    if (!work->launches)
        return error_set(error, STATUS_FAILED, "no memory for %zu launches", trace->launch_count);
    work->launch_count = trace->launch_count;
    for (size_t i = 0; i < trace->launch_count; ++i)
        work->launches[i] = trace->launches[i].kernel;
    TRY(record_kernels(trace, gpu, record, error));
    record->launches = (int64_t)trace->launch_count;
    record->busy_time = trace->busy_time;
    record->trace_time = iteration.ahead ? trace->span : NAN;
    return STATUS_OK;
}

enum status profile_trace(struct profiler *profiler, struct gpu *gpu, struct work *work, bool cold,
                          struct record *record, struct error *error)
{
    struct record streamed;
    TRY(work_trace(profiler, gpu, work, cold, record, error));
    if (!work->stream)
        return STATUS_OK;
    record_init(&streamed);
    enum status status = work_trace(profiler, gpu, work->stream, cold, &streamed, error);
    /* keep the order, because counts of launches refer to kernels by index */
    bool same = status == STATUS_OK && record->kernel_count > 0 &&
                record->kernel_count == streamed.kernel_count &&
                record->launches == streamed.launches;
    for (size_t i = 0; same && i < record->kernel_count; ++i)
        same = kernel_same(&record->kernels[i], &streamed.kernels[i]) &&
               record->kernels[i].count == streamed.kernels[i].count;
    work->stream_differs = !same;
    record_clear(&streamed);
    return status;
}

/* ---- counts ---- */

/* Rows that are counted together. The arrays, of one element for each row, are one allocation. */
struct collection {
    struct countable *rows; /* `work` of a replayed graph is its stream */
    struct iteration *iterations;
    struct profiled_work *works;
    size_t *launches;
    double (*values)[QUANTITY_COUNT];
    size_t count;
};

/* Returns the set of tensor quantities that the row can use. */
static unsigned row_tensors(const struct countable *row)
{
    return row->record->unit == UNIT_TENSOR
               ? quantity_tensor(quantity_of(row->work->precision, true))
               : 0;
}

/* Drops tensor counts that only other rows of the collection use. */
static void values_correct(double values[QUANTITY_COUNT], const struct countable *row)
{
    unsigned tensors = row_tensors(row);
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        if (quantity_tensor((enum quantity)i) & ~tensors)
            values[i] = NAN;
}

/* Returns the FLOPs of all units; NaN if the row's own unit and precision were not counted. */
static double flops_sum(const double values[QUANTITY_COUNT], const struct countable *row)
{
    enum quantity own = quantity_of(row->work->precision, row->record->unit == UNIT_TENSOR);
    return own == QUANTITY_COUNT || isnan(values[own]) ? NAN : quantity_flops(values);
}

/* Sums the launches of each kernel. A launch without a value makes its kernel's sum NaN. Returns
 * false if the kernels' FLOPs differ from those of the whole row. */
static bool kernels_sum(double (*values)[QUANTITY_COUNT], const struct countable *row)
{
    const double tolerance = 1e-3;
    struct record *record = row->record;
    double sum = 0.0;
    kernels_set_counts(record, 0.0);
    for (size_t i = 0; i < row->work->launch_count; ++i) {
        struct kernel *kernel = &record->kernels[row->work->launches[i]];
        double bytes[LEVEL_COUNT];
        values_correct(values[i], row);
        quantity_bytes(values[i], bytes);
        kernel->flops_counted += flops_sum(values[i], row);
        for (int level = 0; level < LEVEL_COUNT; ++level)
            kernel->bytes_counted[level] += bytes[level];
    }
    for (size_t i = 0; i < record->kernel_count; ++i)
        sum += record->kernels[i].flops_counted;
    return isnan(record->flops_counted) ||
           fabs(sum - record->flops_counted) <= tolerance * record->flops_counted;
}

static void activities_record(double (*values)[QUANTITY_COUNT], const struct countable *row)
{
    for (size_t i = 0; i < row->record->kernel_count; ++i) {
        struct kernel *kernel = &row->record->kernels[i];
        double sums[QUANTITY_COUNT] = {0};
        for (size_t j = 0; j < row->work->launch_count; ++j)
            for (int k = QUANTITY_ACTIVITY; k < QUANTITY_COUNT && row->work->launches[j] == i; ++k)
                sums[k] += values[j][k];
        quantity_activities(sums, (double)kernel->count, kernel->time, kernel->activity);
    }
}

/* Puts the counts of a row's launches into the record: values[i] belongs to the i-th launch of the
 * trace. The record gets the code `failure` if the collection failed. `values` are activities if
 * `failure` is COUNTED_WITHOUT_CAUSES, FLOPs and bytes if it is COUNTED_NOT_BY_KERNEL. */
static void kernels_record(double (*values)[QUANTITY_COUNT], const struct countable *row,
                           enum counted failure, const struct outcome *outcome)
{
    char problem[OUTCOME_TEXT] = "the sum of the kernels' FLOPs is not that of the row";
    bool well = outcome->code == COUNTED_YES;
    if (!well)
        outcome_format(outcome, counted_word, problem);
    else if (failure == COUNTED_WITHOUT_CAUSES)
        activities_record(values, row);
    else
        well = kernels_sum(values, row);
    if (well)
        return;
    if (failure == COUNTED_NOT_BY_KERNEL)
        kernels_set_counts(row->record, NAN);
    outcome_set(&row->record->counters, failure, "%.*s", (int)strcspn(problem, ";"), problem);
}

/* After a failure, which one row may have caused, counts each row alone. */
static enum status kernels_count(struct profiler *profiler, const struct collection *collection,
                                 size_t first, size_t count, size_t room, enum counted failure,
                                 struct error *error)
{
    unsigned tensors = 0;
    size_t launches = 0;
    struct outcome outcome;
    for (size_t i = first; i < first + count; ++i) {
        launches += collection->launches[i];
        tensors |= row_tensors(&collection->rows[i]);
    }
    double(*values)[QUANTITY_COUNT] = malloc(launches * sizeof *values), (*own)[QUANTITY_COUNT];
    if (!values)
        return error_set(error, STATUS_FAILED, "no memory for the counts of %zu kernels", launches);
    enum status status =
        profiler_count(profiler, failure == COUNTED_WITHOUT_CAUSES ? QUANTITY_ACTIVITIES : tensors,
                       collection->works + first, count, collection->launches + first, room, values,
                       &outcome, error);
    own = values;
    for (size_t i = first; i < first + count && status == STATUS_OK; ++i) {
        if (count > 1 && outcome.code != COUNTED_YES)
            status = kernels_count(profiler, collection, i, 1, room, failure, error);
        else
            kernels_record(own, &collection->rows[i], failure, &outcome);
        own += collection->launches[i];
    }
    free(values);
    return status;
}

static bool has_kernels_counted(const struct countable *row, bool causes)
{
    return causes ? row->causes && row->record->counters.code == COUNTED_YES : row->kernels;
}

/* Counts the kernels of all rows, in collections of at most 256 launches: each collection costs a
 * fixed time, and a larger `room` costs more (docs/measurements.md, "Cost of attaching CUPTI"). A
 * row with more launches is counted alone. */
static enum status all_kernels_count(struct profiler *profiler, const struct collection *collection,
                                     enum counted failure, struct error *error)
{
    static const size_t launches_most = 256;
    const bool causes = failure == COUNTED_WITHOUT_CAUSES;
    size_t room = 0, total = 0, count;
    for (size_t i = 0; i < collection->count; ++i) {
        total += collection->launches[i];
        room = collection->launches[i] > room ? collection->launches[i] : room;
    }
    if (room < launches_most)
        room = total < launches_most ? total : launches_most;
    for (size_t first = 0; first < collection->count; first += count ? count : 1) {
        size_t launches = 0;
        for (count = 0; first + count < collection->count; ++count) {
            size_t own = collection->launches[first + count];
            launches += own;
            if (launches > room || own == 0 ||
                !has_kernels_counted(&collection->rows[first + count], causes))
                break;
        }
        if (count > 0)
            TRY(kernels_count(profiler, collection, first, count, room, failure, error));
        else if (has_kernels_counted(&collection->rows[first], causes))
            outcome_set(&collection->rows[first].record->counters, failure, "no trace");
    }
    return STATUS_OK;
}

static enum status collection_count(struct profiler *profiler, struct collection *collection,
                                    struct error *error)
{
    struct outcome outcome;
    unsigned tensors = 0;
    for (size_t i = 0; i < collection->count; ++i)
        tensors |= row_tensors(&collection->rows[i]);
    TRY(profiler_count(profiler, tensors, collection->works, collection->count, NULL, 0,
                       collection->values, &outcome, error));
    for (size_t i = 0; i < collection->count; ++i) {
        outcome_set_brief(&collection->rows[i].record->counters, &outcome);
        values_correct(collection->values[i], &collection->rows[i]);
        record_set_quantities(collection->rows[i].record, collection->values[i]);
        collection->rows[i].record->flops_counted =
            flops_sum(collection->values[i], &collection->rows[i]);
    }
    if (outcome.code != COUNTED_YES)
        return STATUS_OK;
    TRY(all_kernels_count(profiler, collection, COUNTED_NOT_BY_KERNEL, error));
    return all_kernels_count(profiler, collection, COUNTED_WITHOUT_CAUSES, error);
}

/* Leaves out rows whose graph may run other kernels than their `stream`. */
static void collection_fill(struct gpu *gpu, const struct countable *rows, size_t count,
                            struct collection *collection)
{
    for (size_t i = 0; i < count; ++i) {
        size_t at = collection->count;
        struct work *stream = rows[i].work->stream;
        if (stream && rows[i].work->stream_differs) {
            outcome_set(&rows[i].record->counters, COUNTED_REFUSED,
                        "FLOPs of vector units are not counted in a graph, and the kernels "
                        "launched one by one are not known to be the same");
            continue;
        }
        collection->rows[at] = rows[i];
        collection->rows[at].work = stream ? stream : rows[i].work;
        collection->iterations[at] =
            (struct iteration){.gpu = gpu, .work = collection->rows[at].work, .cold = rows[i].cold};
        collection->works[at] = (struct profiled_work){iteration_prepare, iteration_run,
                                                       &collection->iterations[at], NULL};
        collection->launches[at] = collection->rows[at].work->launch_count;
        ++collection->count;
    }
}

static enum status rows_count(struct profiler *profiler, struct gpu *gpu,
                              struct collection *collection, struct error *error)
{
    struct outcome outcome;
    if (collection->count == 0)
        return STATUS_OK;
    TRY(profile_try(profiler, gpu, &outcome, error));
    if (outcome.code != COUNTED_YES) {
        for (size_t i = 0; i < collection->count; ++i)
            outcome_set_brief(&collection->rows[i].record->counters, &outcome);
        return STATUS_OK;
    }
    enum status status = collection_count(profiler, collection, error);
    if (status != STATUS_DEVICE)
        profiler_detach_counters(profiler);
    return status;
}

enum status profile_count(struct profiler *profiler, struct gpu *gpu, const struct countable *rows,
                          size_t count, struct error *error)
{
    struct collection c = {.count = 0};
    c.values = calloc(count, sizeof *c.values + sizeof *c.rows + sizeof *c.iterations +
                                 sizeof *c.works + sizeof *c.launches);
    if (!c.values)
        return error_set(error, STATUS_FAILED, "no memory for the counts of %zu rows", count);
    c.rows = (void *)(c.values + count);
    c.iterations = (void *)(c.rows + count);
    c.works = (void *)(c.iterations + count);
    c.launches = (void *)(c.works + count);
    collection_fill(gpu, rows, count, &c);
    enum status status = rows_count(profiler, gpu, &c, error);
    for (size_t i = 0; i < c.count; ++i)
        record_add_part(c.rows[i].record, PART_COUNTS, c.iterations[i].seconds);
    free(c.values);
    return status;
}
