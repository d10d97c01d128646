#include "worker/cuda/row_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/host_pace.h"
#include "worker/cuda/gpu/known_kernels.h"
#include "worker/cuda/gpu/nvml.h"
#include "worker/cuda/gpu/timer.h"

/* ---- what the profiler runs by itself ---- */

_Static_assert((int)KNOWN_KERNELS == (int)PROFILER_TIMES, "all known kernels judge");

static enum status judge_measure(void *argument, double times[PROFILER_TIMES], struct error *error)
{
    return known_kernels_time(argument, times, error);
}

/* The flush's buffer, while there is memory for it. */
static enum status trial_reserve(void *argument, struct error *error)
{
    const struct gpu *gpu = argument;
    return timer_flush(gpu->timer, error);
}

static enum status trial_run(void *argument, struct error *error)
{
    const struct gpu *gpu = argument;
    TRY(CUDA(kernel_empty(gpu->stream)));
    return CUDA(cudaStreamSynchronize(gpu->stream));
}

struct profiler *row_profiler_open(struct gpu *gpu)
{
    const struct profiler_judge judge = {judge_measure, gpu};
    const struct profiler_trial trial = {trial_reserve, trial_run, gpu};
    return profiler_open(&judge, &trial);
}

/* ---- whether there are counters ---- */

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

enum status row_profiler_try(struct profiler *profiler, struct gpu *gpu, struct outcome *outcome,
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

/* ---- what is traced and counted: one iteration of the work ---- */

struct iteration {
    struct gpu *gpu;
    struct work *work;
    bool cold;
    double hold_time; /* s, that the device is kept waiting before it is traced */
    bool held;        /* it still waited when all was enqueued */
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
    TRY(timer_flush(i->gpu->timer, error));
    if (!i->cold) {
        TRY(i->work->ops->iterate(i->gpu, i->work, error));
        TRY(iteration_reset(i, error));
    }
    return CUDA(cudaStreamSynchronize(i->gpu->stream));
}

static enum status iteration_run(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(i->work->ops->iterate(i->gpu, i->work, error));
    return CUDA(cudaStreamSynchronize(i->gpu->stream));
}

static struct profiled_work iteration_counted(struct iteration *iteration)
{
    return (struct profiled_work){iteration_prepare, iteration_run, iteration, NULL};
}

/* The event is over as soon as the device no longer waits. */
static enum status iteration_hold(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(CUDA(kernel_delay(i->hold_time, i->gpu->stream)));
    return CUDA(cudaEventRecord(i->gpu->timer->events[0], i->gpu->stream));
}

static enum status iteration_run_held(void *argument, struct error *error)
{
    struct iteration *i = argument;
    TRY(i->work->ops->iterate(i->gpu, i->work, error));
    i->held = cudaEventQuery(i->gpu->timer->events[0]) == cudaErrorNotReady;
    (void)cudaGetLastError(); /* "not ready" is an answer */
    return CUDA(cudaStreamSynchronize(i->gpu->stream));
}

/* With CUPTI attached a launch takes the host longer, and the first one longest. */
static struct profiled_work iteration_traced(struct iteration *iteration, double host_time)
{
    const double margin = 4.0, least = 2e-3; /* s */
    iteration->hold_time = margin * host_time + least;
    return (struct profiled_work){iteration_prepare, iteration_run_held, iteration, iteration_hold};
}

/* ---- trace ---- */

/* Clusters are placed as a whole: of them CUPTI tells how many there can be. */
static int64_t resident_blocks(const struct traced_kernel *traced, const struct gpu *gpu)
{
    const struct occupancy_kernel kernel = {
        .threads = traced->block_x * traced->block_y * traced->block_z,
        .registers = traced->registers,
        .static_shared = traced->static_shared,
        .dynamic_shared = traced->dynamic_shared,
        .shared_room = traced->shared_room,
    };
    int64_t blocks = occupancy_blocks(&gpu->limits, &kernel);
    if (traced->cluster > 1)
        return traced->clusters_most > 0 ? traced->cluster * traced->clusters_most : FIELD_MISSING;
    return blocks > 0 ? blocks * gpu->multiprocessors : FIELD_MISSING;
}

static struct kernel kernel_of(const struct traced_kernel *traced, const struct gpu *gpu)
{
    struct kernel kernel;
    fields_clear(kernel_fields, &kernel);
    kernel.count = traced->count;
    kernel.time = traced->time;
    kernel.grid_x = traced->grid_x;
    kernel.grid_y = traced->grid_y;
    kernel.grid_z = traced->grid_z;
    kernel.block_x = traced->block_x;
    kernel.block_y = traced->block_y;
    kernel.block_z = traced->block_z;
    kernel.registers = traced->registers;
    kernel.static_shared = traced->static_shared;
    kernel.dynamic_shared = traced->dynamic_shared;
    kernel.cluster = traced->cluster;
    kernel.resident = resident_blocks(traced, gpu);
    snprintf(kernel.name, sizeof kernel.name, "%s", traced->name);
    return kernel;
}

static enum status record_trace(const struct trace *trace, const struct iteration *iteration,
                                struct record *record, struct error *error)
{
    struct kernel *kernels = malloc(trace->kernel_count * sizeof *kernels);
    if (!kernels)
        return error_set(error, STATUS_FAILED, "no memory for %zu kernels", trace->kernel_count);
    for (size_t i = 0; i < trace->kernel_count; ++i)
        kernels[i] = kernel_of(&trace->kernels[i], iteration->gpu);
    enum status status = record_set_kernels(record, kernels, trace->kernel_count, error);
    free(kernels);
    if (status)
        return status;
    record->launches = (int64_t)trace->launch_count;
    record->busy_time = trace->busy_time;
    record->trace_time = iteration->held ? trace->span : NAN;
    return STATUS_OK;
}

/* To count each of them by itself, perhaps after other works have been traced. */
static enum status launches_keep(const struct trace *trace, struct work *work, struct error *error)
{
    size_t *launches = realloc(work->launches, (trace->launch_count + 1) * sizeof *launches);
    if (!launches)
        return error_set(error, STATUS_FAILED, "no memory for %zu launches", trace->launch_count);
    for (size_t i = 0; i < trace->launch_count; ++i)
        launches[i] = trace->launches[i].kernel;
    work->launches = launches;
    work->launch_count = trace->launch_count;
    return STATUS_OK;
}

void row_release(struct work *work)
{
    free(work->launches);
    work->launches = NULL;
    work->launch_count = 0;
}

static enum status work_trace(struct profiler *profiler, struct gpu *gpu, struct work *work,
                              bool cold, struct record *record, struct error *error)
{
    struct iteration iteration = {.gpu = gpu, .work = work, .cold = cold};
    struct outcome outcome;
    TRY(host_pace(gpu, work, &record->host_time, error));
    TRY(timer_reserve(gpu->timer, 1, error));
    const struct profiled_work traced = iteration_traced(&iteration, record->host_time);
    TRY(profiler_trace(profiler, &traced, &outcome, error));
    const struct trace trace = profiler_last_trace(profiler);
    row_release(work);
    if (outcome.code == TRACED_WELL) {
        TRY(launches_keep(&trace, work, error));
        return record_trace(&trace, &iteration, record, error);
    }
    if (outcome.code != OUTCOME_MISSING)
        fprintf(stderr, "no kernel trace: CUPTI: %s%s\n", outcome.reason,
                outcome.code == TRACED_REFUSED ? "; there will be none from this worker" : "");
    return STATUS_OK;
}

/* ---- what is replayed from a graph ---- */

static bool same_kernel(const struct kernel *a, const struct kernel *b)
{
    return strcmp(a->name, b->name) == 0 && a->count == b->count && a->grid_x == b->grid_x &&
           a->grid_y == b->grid_y && a->grid_z == b->grid_z && a->block_x == b->block_x &&
           a->block_y == b->block_y && a->block_z == b->block_z &&
           a->dynamic_shared == b->dynamic_shared;
}

/* In the same order: counts of launches find their kernel by its place. */
static bool same_kernels(const struct record *a, const struct record *b)
{
    if (a->kernel_count == 0 || a->kernel_count != b->kernel_count || a->launches != b->launches)
        return false;
    for (size_t i = 0; i < a->kernel_count; ++i)
        if (!same_kernel(&a->kernels[i], &b->kernels[i]))
            return false;
    return true;
}

/* The same work in the stream is what will be counted, if it is the same kernels. */
static enum status stream_trace(struct profiler *profiler, struct gpu *gpu, struct work *work,
                                bool cold, const struct record *record, struct error *error)
{
    struct record streamed;
    record_init(&streamed);
    enum status status = work_trace(profiler, gpu, work->stream, cold, &streamed, error);
    work->stream_differs = status != STATUS_OK || !same_kernels(record, &streamed);
    record_clear(&streamed);
    return status;
}

enum status row_trace(struct profiler *profiler, struct gpu *gpu, struct work *work, bool cold,
                      struct record *record, struct error *error)
{
    TRY(work_trace(profiler, gpu, work, cold, record, error));
    return work->stream ? stream_trace(profiler, gpu, work, cold, record, error) : STATUS_OK;
}

/* ---- counts ---- */

static void add(double *sum, double value)
{
    if (!isnan(value))
        *sum = isnan(*sum) ? value : *sum + value;
}

static double value_of(const double values[QUANTITY_COUNT], enum quantity quantity)
{
    return quantity < QUANTITY_COUNT ? values[quantity] : NAN;
}

/* All FLOPs together; but none if those that the record is about cannot be counted here. */
static double flops_sum(const double values[QUANTITY_COUNT], enum precision precision,
                        const struct record *record)
{
    enum quantity own = quantity_of(precision, record->unit == UNIT_TENSOR);
    double sum = NAN;
    for (int i = 0; i < QUANTITY_TENSOR_INT8; ++i)
        add(&sum, values[i]);
    return isnan(value_of(values, own)) ? NAN : sum;
}

/* What was done of what the counters say: see struct work. */
static void flops_correct(double values[QUANTITY_COUNT], const struct work *work)
{
    for (int i = 0; work->sparse && i < QUANTITY_COUNT; ++i)
        if (quantity_tensor((enum quantity)i))
            values[i] /= 2.0;
}

static void record_flops(const double values[QUANTITY_COUNT], enum precision precision,
                         struct record *record)
{
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        enum precision one = (enum precision)i;
        record->flops_vector[i] =
            one == PRECISION_BF16 ? NAN : value_of(values, quantity_of(one, false));
        record->flops_tensor[i] = value_of(values, quantity_of(one, true));
    }
    record->flops_counted = flops_sum(values, precision, record);
}

static void record_bytes(const double values[QUANTITY_COUNT], struct record *record)
{
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        enum quantity read, write;
        bool counted = quantity_of_level((enum memory_level)level, &read, &write);
        record->bytes_read[level] = counted ? values[read] : NAN;
        record->bytes_written[level] = counted ? values[write] : NAN;
    }
    quantity_bytes(values, record->bytes_counted);
}

/* ---- each kernel by itself ---- */

/* A launch without a value leaves its kernel without one. */
static void launch_add(const double values[QUANTITY_COUNT], enum precision precision,
                       const struct record *record, struct kernel *kernel)
{
    double bytes[LEVEL_COUNT];
    quantity_bytes(values, bytes);
    kernel->flops_counted += flops_sum(values, precision, record);
    for (int level = 0; level < LEVEL_COUNT; ++level)
        kernel->bytes_counted[level] += bytes[level];
}

static void kernels_forget(struct record *record)
{
    for (size_t i = 0; i < record->kernel_count; ++i) {
        record->kernels[i].flops_counted = NAN;
        for (int level = 0; level < LEVEL_COUNT; ++level)
            record->kernels[i].bytes_counted[level] = NAN;
    }
}

/* FLOPs are the same in every repetition: what the kernels do is what the whole does. */
static bool kernels_agree(const struct record *record)
{
    const double tolerance = 1e-3;
    double sum = 0.0;
    for (size_t i = 0; i < record->kernel_count; ++i)
        sum += record->kernels[i].flops_counted;
    return isnan(record->flops_counted) ||
           fabs(sum - record->flops_counted) <= tolerance * record->flops_counted;
}

static void kernels_sum(const struct work *work, double (*values)[QUANTITY_COUNT],
                        struct record *record)
{
    for (size_t i = 0; i < record->kernel_count; ++i) {
        record->kernels[i].flops_counted = 0.0;
        for (int level = 0; level < LEVEL_COUNT; ++level)
            record->kernels[i].bytes_counted[level] = 0.0;
    }
    for (size_t i = 0; i < work->launch_count; ++i) {
        flops_correct(values[i], work);
        launch_add(values[i], work->precision, record, &record->kernels[work->launches[i]]);
    }
}

/* The i-th value is of the i-th launch of the trace: both are of the same iteration of the same plan. `most`:
 * the most launches of a row that is counted with this one. */
static enum status launches_count(struct profiler *profiler, struct iteration *iteration,
                                  unsigned tensors, size_t most, double (*values)[QUANTITY_COUNT],
                                  struct record *record, struct error *error)
{
    struct outcome outcome = {.code = OUTCOME_MISSING};
    char problem[OUTCOME_TEXT] = "no trace";
    const struct work *work = iteration->work;
    const struct profiled_work counted = iteration_counted(iteration);
    if (work->launch_count > 0) {
        TRY(profiler_count_launches(profiler, tensors, &counted, work->launch_count, most, values,
                                    &outcome, error));
        outcome_format(&outcome, counted_word, problem);
    }
    if (outcome.code == COUNTED_YES) {
        kernels_sum(work, values, record);
        if (kernels_agree(record))
            return STATUS_OK;
        snprintf(problem, sizeof problem, "their FLOPs are not those of the whole");
    }
    kernels_forget(record);
    outcome_set(&record->counters, COUNTED_NOT_BY_KERNEL, "%.*s", (int)strcspn(problem, ";"),
                problem);
    return STATUS_OK;
}

static enum status count_kernels(struct profiler *profiler, struct iteration *iteration,
                                 unsigned tensors, size_t most, struct record *record,
                                 struct error *error)
{
    size_t launches = iteration->work->launch_count;
    double(*values)[QUANTITY_COUNT] = malloc((launches ? launches : 1) * sizeof *values);
    if (!values)
        return error_set(error, STATUS_FAILED, "no memory for the counts of %zu kernels", launches);
    enum status status = launches_count(profiler, iteration, tensors, most, values, record, error);
    free(values);
    return status;
}

/* ---- several rows in one collection ---- */

/* Owned: one of each for each row. */
struct collection {
    size_t count;
    struct iteration *iterations;
    struct profiled_work *works;
    double (*values)[QUANTITY_COUNT];
};

static void collection_free(struct collection *collection)
{
    free(collection->iterations);
    free(collection->works);
    free(collection->values);
}

static enum status collection_make(struct gpu *gpu, const struct countable *rows, size_t count,
                                   struct collection *collection, struct error *error)
{
    *collection = (struct collection){
        .count = count,
        .iterations = calloc(count, sizeof *collection->iterations),
        .works = calloc(count, sizeof *collection->works),
        .values = calloc(count, sizeof *collection->values),
    };
    if (!collection->iterations || !collection->works || !collection->values)
        return error_set(error, STATUS_FAILED, "no memory for the counts of %zu rows", count);
    for (size_t i = 0; i < count; ++i) {
        collection->iterations[i] =
            (struct iteration){.gpu = gpu, .work = rows[i].work, .cold = rows[i].cold};
        collection->works[i] = iteration_counted(&collection->iterations[i]);
    }
    return STATUS_OK;
}

/* Of the tensor units what the row can use. */
static unsigned row_tensors(const struct countable *row)
{
    return row->record->unit == UNIT_TENSOR
               ? quantity_tensor(quantity_of(row->work->precision, true))
               : 0;
}

/* What others of the collection asked for is none of this row's, which does not depend on them. */
static void record_counts(double values[QUANTITY_COUNT], const struct countable *row)
{
    unsigned tensors = row_tensors(row);
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        if (quantity_tensor((enum quantity)i) & ~tensors)
            values[i] = NAN;
    flops_correct(values, row->work);
    record_flops(values, row->work->precision, row->record);
    record_bytes(values, row->record);
}

/* All rows as a whole; then, with CUPTI told anew only once, the kernels of each. */
static enum status collection_count(struct profiler *profiler, struct collection *collection,
                                    const struct countable *rows, struct error *error)
{
    struct outcome outcome;
    unsigned tensors = 0;
    size_t most = 0;
    for (size_t i = 0; i < collection->count; ++i) {
        tensors |= row_tensors(&rows[i]);
        if (rows[i].kernels && rows[i].work->launch_count > most)
            most = rows[i].work->launch_count;
    }
    TRY(profiler_count(profiler, tensors, collection->works, collection->count, collection->values,
                       &outcome, error));
    for (size_t i = 0; i < collection->count; ++i) {
        outcome_set_brief(&rows[i].record->counters, &outcome);
        record_counts(collection->values[i], &rows[i]);
    }
    for (size_t i = 0; i < collection->count && outcome.code == COUNTED_YES; ++i)
        if (rows[i].kernels)
            TRY(count_kernels(profiler, &collection->iterations[i], row_tensors(&rows[i]), most,
                              rows[i].record, error));
    return STATUS_OK;
}

static enum status works_count(struct profiler *profiler, struct gpu *gpu,
                               const struct countable *rows, size_t count, struct error *error)
{
    struct outcome outcome;
    struct collection collection;
    TRY(row_profiler_try(profiler, gpu, &outcome, error));
    if (outcome.code != COUNTED_YES) {
        for (size_t i = 0; i < count; ++i)
            outcome_set_brief(&rows[i].record->counters, &outcome);
        return STATUS_OK;
    }
    enum status status = collection_make(gpu, rows, count, &collection, error);
    if (status == STATUS_OK)
        status = collection_count(profiler, &collection, rows, error);
    collection_free(&collection);
    return status ? status : profiler_review(profiler, error);
}

/* What cannot be counted in its graph, nor by the same kernels in the stream, is told, and never 0. */
static bool row_is_countable(const struct countable *row)
{
    if (!row->work->stream || !row->work->stream_differs)
        return true;
    outcome_set(
        &row->record->counters, COUNTED_REFUSED,
        "FLOPs of vector units are not counted in a graph, and the kernels launched one by one "
        "are not known to be the same");
    return false;
}

enum status rows_count(struct profiler *profiler, struct gpu *gpu, const struct countable *rows,
                       size_t count, struct error *error)
{
    struct countable *counted = malloc(count * sizeof *counted);
    size_t kept = 0;
    if (!counted)
        return error_set(error, STATUS_FAILED, "no memory for the counts of %zu rows", count);
    for (size_t i = 0; i < count; ++i) {
        if (!row_is_countable(&rows[i]))
            continue;
        counted[kept] = rows[i];
        if (rows[i].work->stream)
            counted[kept].work = rows[i].work->stream;
        ++kept;
    }
    enum status status = kept > 0 ? works_count(profiler, gpu, counted, kept, error) : STATUS_OK;
    free(counted);
    return status;
}
