#include "worker/cuda/profile.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "kernels/kernels.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/timing.h"
#include "worker/gpu/vendor.h"

/* ---- known kernels ----
 *
 * Their times stay the same as long as nothing disturbs them. If these times change, so do the
 * times of whatever else is measured: times[0] of one kernel of about a millisecond, times[1] from
 * one of many queued empty kernels to the next; medians. */

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
    static const double limit = 0.1;     /* s, more than the host needs */
    static const double warming = 10e-3; /* s of load, after which the clock has risen */
    static const struct {
        gpu_enqueue *enqueue;
        int parts; /* of which one is wanted */
    } known[PROFILER_TIMES] = {
        {kernel_enqueue, 1}, {gap_enqueue, LAUNCHES}, /* the gap depends on the clock most: warm */
    };
    TRY(CUDA(kernel_delay(warming, gpu->stream)));
    for (int i = 0; i < PROFILER_TIMES; ++i) {
        double seconds[SAMPLES];
        struct stats stats;
        /* loads its code, for which the device must not be held */
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
    TRY(vendor.reserve(gpu, 2, false, error));
    TRY(memory_allocate((double)gpu->multiprocessors * FMA_BLOCK * sizeof(double), "a known kernel",
                        &out, error));
    enum status status = known_medians(gpu, out, times, error);
    cudaFree(out);
    return status;
}

/* ---- whether there are counters ---- */

/* The flush's buffer, while there is memory for it. */
static enum status trial_reserve(void *argument, struct error *error)
{
    struct gpu *gpu = argument;
    return vendor.flush(gpu, error);
}

static enum status trial_run(void *argument, struct error *error)
{
    struct gpu *gpu = argument;
    TRY(CUDA(kernel_empty(gpu->stream)));
    return vendor.synchronize(gpu, error);
}

struct profiler *profile_open(struct gpu *gpu)
{
    const struct profiler_host host = {known_times, trial_reserve, trial_run, gpu};
    return profiler_open(&host);
}

/* libcuda.so is met at run time only: a worker without driver must still be able to say so. */
static CUcontext context_current(void)
{
    typedef CUresult (*get_function)(CUcontext * context);
    enum { INTRODUCED = 4000 }; /* CUDA 4.0 */
    void *entry = NULL;
    enum cudaDriverEntryPointQueryResult found;
    CUcontext context = NULL;
    if (cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &entry, INTRODUCED, cudaEnableDefault,
                                         &found) != cudaSuccess ||
        !entry)
        return NULL;
    get_function get;
    memcpy(&get, &entry, sizeof get);
    return get(&context) == CUDA_SUCCESS ? context : NULL;
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

/* ---- one iteration of a row's work, as the profiler runs it ---- */

struct iteration {
    struct gpu *gpu;
    struct work *work;
    bool cold;
    double block_limit; /* s, that the device is held at most before it is traced */
    bool held;          /* it still was when all was enqueued */
};

static enum status iteration_reset(const struct iteration *i, struct error *error)
{
    return i->work->ops->reset ? i->work->ops->reset(i->gpu, i->work, error) : STATUS_OK;
}

/* The cache is as when it is timed: flushed, or with what an iteration leaves there. */
static enum status iteration_prepare(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(iteration_reset(i, error));
    TRY(vendor.flush(i->gpu, error));
    if (!i->cold) {
        TRY(i->work->ops->iterate(i->gpu, i->work, error));
        TRY(iteration_reset(i, error));
    }
    return vendor.synchronize(i->gpu, error);
}

static enum status iteration_run(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(i->work->ops->iterate(i->gpu, i->work, error));
    return vendor.synchronize(i->gpu, error);
}

/* The event is over as soon as the device is no longer held. */
static enum status iteration_block(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(vendor.block(i->gpu, i->block_limit, error));
    return vendor.record(i->gpu, 0, error);
}

/* All of it is enqueued before the device begins. */
static enum status iteration_run_blocked(void *argument, struct error *error)
{
    struct iteration *i = argument;
    enum status status = i->work->ops->iterate(i->gpu, i->work, error);
    if (status == STATUS_OK)
        status = vendor.pending(i->gpu, 0, &i->held, error);
    vendor.unblock(i->gpu);
    return status ? status : vendor.synchronize(i->gpu, error);
}

/* ---- kernels ---- */

int64_t profile_blocks(const cudaOccDeviceProp *limits, const struct traced_kernel *traced,
                       int64_t *limit)
{
    const struct kernel *k = &traced->kernel;
    const cudaOccFuncAttributes attributes = {
        .maxThreadsPerBlock = INT_MAX,
        .numRegs = (int)k->registers,
        .sharedSizeBytes = (size_t)k->static_shared,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = limits->sharedMemPerBlockOptin,
        .numBlockBarriers = 1,
    };
    const cudaOccDeviceState state = {CACHE_PREFER_NONE, SHAREDMEM_CARVEOUT_DEFAULT};
    cudaOccResult result;
    *limit = FIELD_MISSING;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, limits, &attributes, &state,
                                                (int)(k->block_x * k->block_y * k->block_z),
                                                (size_t)k->dynamic_shared) != CUDA_OCC_SUCCESS)
        return FIELD_MISSING;
    int64_t blocks = result.activeBlocksPerMultiprocessor;
    int64_t each = (int64_t)result.allocatedSharedMemPerBlock;
    int64_t fit = each > 0 && traced->shared_room > 0 ? traced->shared_room / each : blocks;
    bool less = fit > 0 && fit < blocks;
    *limit = less ? OCC_LIMIT_SHARED_MEMORY : (int64_t)result.limitingFactors;
    return less ? fit : blocks;
}

/* On the device. Clusters are placed as a whole: of them CUPTI tells how many there can be. */
static int64_t resident_blocks(const struct traced_kernel *traced, const struct gpu *gpu,
                               int64_t *limit)
{
    const int64_t cluster = traced->kernel.cluster;
    int64_t blocks = profile_blocks(&gpu->limits, traced, limit);
    if (cluster > 1)
        return traced->clusters_most > 0 ? cluster * traced->clusters_most : FIELD_MISSING;
    return blocks > 0 ? blocks * gpu->multiprocessors : FIELD_MISSING;
}

/* What was counted of each, all launches together. */
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
        kernels[i].resident = resident_blocks(&trace->kernels[i], gpu, &kernels[i].resident_limit);
        for (int j = 0; j < ACTIVITY_COUNT; ++j)
            kernels[i].activity[j] = NAN;
    }
    enum status status = record_set_kernels(record, kernels, trace->kernel_count, error);
    if (status == STATUS_OK)
        kernels_set_counts(record, NAN);
    free(kernels);
    return status;
}

/* To count each of them by itself, perhaps after other works have been traced. */
static enum status launches_keep(const struct trace *trace, struct work *work, struct error *error)
{
    size_t *launches = malloc((trace->launch_count + 1) * sizeof *launches);
    if (!launches)
        return error_set(error, STATUS_FAILED, "no memory for %zu launches", trace->launch_count);
    for (size_t i = 0; i < trace->launch_count; ++i)
        launches[i] = trace->launches[i].kernel;
    work->launches = launches;
    work->launch_count = trace->launch_count;
    return STATUS_OK;
}

void profile_release(struct work *work)
{
    free(work->launches);
    work->launches = NULL;
    work->launch_count = 0;
}

/* With CUPTI attached a launch takes the host longer, and the first one longest: so the device is
 * held longer than the host should need. */
static enum status work_trace(struct profiler *profiler, struct gpu *gpu, struct work *work,
                              bool cold, struct record *record, struct error *error)
{
    struct iteration iteration = {.gpu = gpu, .work = work, .cold = cold};
    const struct profiled_work traced = {iteration_prepare, iteration_run_blocked, &iteration,
                                         iteration_block};
    struct outcome outcome;
    TRY(timing_caller(gpu, work, cold, record, error));
    TRY(vendor.reserve(gpu, 1, false, error));
    iteration.block_limit = timing_block_limit(record->host_time);
    TRY(profiler_trace(profiler, &traced, &outcome, error));
    profile_release(work);
    if (outcome.code != TRACED_WELL) {
        if (!record->error[0])
            snprintf(record->error, sizeof record->error, "no kernels: CUPTI: %s", outcome.reason);
        return STATUS_OK;
    }
    const struct trace *trace = profiler_last_trace(profiler);
    TRY(launches_keep(trace, work, error));
    TRY(record_kernels(trace, gpu, record, error));
    record->launches = (int64_t)trace->launch_count;
    record->busy_time = trace->busy_time;
    record->trace_time = iteration.held ? trace->span : NAN;
    return STATUS_OK;
}

/* In the same order: counts of launches find their kernel by its place. */
static bool same_kernels(const struct record *a, const struct record *b)
{
    bool same =
        a->kernel_count > 0 && a->kernel_count == b->kernel_count && a->launches == b->launches;
    for (size_t i = 0; i < a->kernel_count && same; ++i)
        same = kernel_same(&a->kernels[i], &b->kernels[i]) &&
               a->kernels[i].count == b->kernels[i].count;
    return same;
}

enum status profile_trace(struct profiler *profiler, struct gpu *gpu, struct work *work, bool cold,
                          struct record *record, struct error *error)
{
    struct record streamed;
    TRY(work_trace(profiler, gpu, work, cold, record, error));
    if (!work->stream)
        return STATUS_OK;
    /* What is replayed from a graph is counted as the same work in the stream, if it is the same
     * kernels. */
    record_init(&streamed);
    enum status status = work_trace(profiler, gpu, work->stream, cold, &streamed, error);
    work->stream_differs = status != STATUS_OK || !same_kernels(record, &streamed);
    record_clear(&streamed);
    return status;
}

/* ---- counts ---- */

/* Rows that are counted together. Owned: one of each for each row. */
struct collection {
    struct countable *rows; /* with the work that is counted */
    struct iteration *iterations;
    struct profiled_work *works;
    size_t *launches; /* of the row's kernels */
    double (*values)[QUANTITY_COUNT];
    size_t count;
};

/* Of the tensor units what the row can use. */
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
    for (int i = 0; i < QUANTITY_COUNT; ++i) {
        if (quantity_tensor((enum quantity)i) & ~tensors)
            values[i] = NAN;
    }
}

/* FLOPs of all units. NaN if those of the row's own unit and precision were not counted. */
static double flops_sum(const double values[QUANTITY_COUNT], const struct countable *row)
{
    enum quantity own = quantity_of(row->work->precision, row->record->unit == UNIT_TENSOR);
    return own == QUANTITY_COUNT || isnan(values[own]) ? NAN : quantity_flops(values);
}

static void row_record(double values[QUANTITY_COUNT], const struct countable *row)
{
    values_correct(values, row);
    record_set_quantities(row->record, values);
    row->record->flops_counted = flops_sum(values, row);
}

/* A launch without a value leaves its kernel without one. False: the kernels' FLOPs are not those
 * of the whole, though they are the same in every repetition. */
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

/* Of each kernel the mean of its launches; of the stalls their shares of all, which are the time of
 * the warps. */
static void activities_mean(double (*values)[QUANTITY_COUNT], const struct countable *row)
{
    struct record *record = row->record;
    for (size_t i = 0; i < record->kernel_count; ++i) {
        struct kernel *kernel = &record->kernels[i];
        double stalls = 0;
        for (int j = 0; j < ACTIVITY_COUNT; ++j) {
            double sum = 0;
            for (size_t k = 0; k < row->work->launch_count; ++k)
                sum += row->work->launches[k] == i ? values[k][QUANTITY_ACTIVITY + j] : 0;
            kernel->activity[j] = sum / (double)kernel->count;
            if (j >= ACTIVITY_STALL_BARRIER && !isnan(sum)) /* a chip has no counter of some */
                stalls += kernel->activity[j];
        }
        for (int j = ACTIVITY_STALL_BARRIER; j < ACTIVITY_COUNT; ++j)
            kernel->activity[j] = stalls > 0 ? kernel->activity[j] / stalls : NAN;
    }
}

/* What its launches counted: the i-th value is of the i-th launch of the trace, as both are of the
 * same iteration of the same plan. `failure` says what was counted: COUNTED_NOT_BY_KERNEL FLOPs and
 * bytes, COUNTED_WITHOUT_CAUSES activities. */
static void kernels_record(double (*values)[QUANTITY_COUNT], const struct countable *row,
                           enum counted failure, const struct outcome *outcome)
{
    char problem[OUTCOME_TEXT] = "their FLOPs are not those of the whole";
    bool well = outcome->code == COUNTED_YES;
    if (!well)
        outcome_format(outcome, counted_word, problem);
    else if (failure == COUNTED_WITHOUT_CAUSES)
        activities_mean(values, row);
    else
        well = kernels_sum(values, row);
    if (well)
        return;
    if (failure == COUNTED_NOT_BY_KERNEL)
        kernels_set_counts(row->record, NAN);
    outcome_set(&row->record->counters, failure, "%.*s", (int)strcspn(problem, ";"), problem);
}

/* Kernels of `count` rows, from `first` on; one by one if that fails, because it may be for one of
 * them. */
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
    enum status status = profiler_count_launches(
        profiler, failure == COUNTED_WITHOUT_CAUSES ? QUANTITY_ACTIVITIES : tensors,
        collection->works + first, collection->launches + first, count, room, values, &outcome,
        error);
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

/* As many rows at once as there is room for: each collection costs a fixed time, and so does room
 * ("Cost of attaching CUPTI"). A row of more launches is alone. */
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

/* All rows as a whole; then, with one new setting of CUPTI, the kernels of each; then, with one
 * more, their activities. */
static enum status collection_count(struct profiler *profiler, struct collection *collection,
                                    struct error *error)
{
    struct outcome outcome;
    unsigned tensors = 0;
    for (size_t i = 0; i < collection->count; ++i)
        tensors |= row_tensors(&collection->rows[i]);
    TRY(profiler_count(profiler, tensors, collection->works, collection->count, collection->values,
                       &outcome, error));
    for (size_t i = 0; i < collection->count; ++i) {
        outcome_set_brief(&collection->rows[i].record->counters, &outcome);
        row_record(collection->values[i], &collection->rows[i]);
    }
    if (outcome.code != COUNTED_YES)
        return STATUS_OK;
    TRY(all_kernels_count(profiler, collection, COUNTED_NOT_BY_KERNEL, error));
    return all_kernels_count(profiler, collection, COUNTED_WITHOUT_CAUSES, error);
}

/* What cannot be counted in its graph, nor by the same kernels in the stream, is missing, never 0.
 */
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
    struct collection collection = {
        .rows = calloc(count, sizeof *collection.rows),
        .iterations = calloc(count, sizeof *collection.iterations),
        .works = calloc(count, sizeof *collection.works),
        .launches = calloc(count, sizeof *collection.launches),
        .values = calloc(count, sizeof *collection.values),
    };
    enum status status;
    if (collection.rows && collection.iterations && collection.works && collection.launches &&
        collection.values) {
        collection_fill(gpu, rows, count, &collection);
        status = rows_count(profiler, gpu, &collection, error);
    } else {
        status = error_set(error, STATUS_FAILED, "no memory for the counts of %zu rows", count);
    }
    free(collection.rows);
    free(collection.iterations);
    free(collection.works);
    free(collection.launches);
    free(collection.values);
    return status;
}
