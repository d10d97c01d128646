#include "worker/cuda/gpu/cuda_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/profiling/attachment.h"
#include "worker/cuda/profiling/counters.h"

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

/* ---- what is counted: one iteration of the work ---- */

struct iteration {
    struct device_state *state;
    struct work *work;
    bool cold;
};

static enum status iteration_reset(const struct iteration *i, struct error *error)
{
    return i->work->ops->reset ? i->work->ops->reset(i->state, i->work, error) : STATUS_OK;
}

/* The cache is as when it is timed: flushed, or with what an iteration leaves there. */
static enum status iteration_prepare(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(iteration_reset(i, error));
    TRY(timing_flush(i->state, error));
    if (!i->cold) {
        TRY(i->work->ops->iterate(i->state, i->work, error));
        TRY(iteration_reset(i, error));
    }
    return CUDA(cudaStreamSynchronize(i->state->stream));
}

static enum status iteration_run(void *argument, struct error *error)
{
    const struct iteration *i = argument;
    TRY(i->work->ops->iterate(i->state, i->work, error));
    return CUDA(cudaStreamSynchronize(i->state->stream));
}

static struct counters_work iteration_work(struct iteration *iteration)
{
    return (struct counters_work){iteration_prepare, iteration_run, iteration};
}

/* ---- preflight: once per worker ---- */

static enum status nothing(void *argument, struct error *error)
{
    (void)argument, (void)error;
    return STATUS_OK;
}

static enum status empty_run(void *argument, struct error *error)
{
    const struct device_state *state = argument;
    TRY(CUDA(kernel_empty(state->stream)));
    return CUDA(cudaStreamSynchronize(state->stream));
}

static enum status try_counting(struct device_state *state, unsigned tensors,
                                char problem[COUNTERS_TEXT], struct error *error)
{
    const struct counters_work work = {nothing, empty_run, state};
    double values[QUANTITY_COUNT];
    return counters_collect(state->counters, tensors, &work, values, problem, error);
}

/* Some refusals show only when counting begins. With all tensors, as the proofs of the roofs will ask
 * for; a device that lacks a counter of theirs still has the others. */
static enum status preflight(struct device_state *state, char outcome[COUNTERS_TEXT],
                             struct error *error)
{
    TRY(try_counting(state, QUANTITY_ALL_TENSORS, outcome, error));
    if (strcmp(outcome, "counted") == 0)
        return STATUS_OK;
    counters_stand_by(state->counters, true); /* forgets what was asked for */
    return try_counting(state, 0, outcome, error);
}

/* The memory's counters know no processes. This alone is not for ever: a neighbour that has measured
 * its copies to this device leaves it again. */
static const char not_alone[] =
    "refused: another process computes on this GPU and would be counted; "
    "end it (nvidia-smi names it), or ask for a GPU of your own";

enum status count_open(struct device_state *state, struct error *error)
{
    char *outcome = state->counters_outcome;
    int device;
    if (outcome[0] && strcmp(outcome, not_alone) != 0)
        return STATUS_OK;
    TRY(CUDA(cudaGetDevice(&device)));
    if (nvml_processes(state->nvml) > 1) {
        snprintf(outcome, sizeof state->counters_outcome, "%s", not_alone);
        return STATUS_OK;
    }
    attachment_drop(&state->trace_stands_by);
    state->counters = counters_open(device, context_current(), outcome);
    if (!state->counters)
        return STATUS_OK;
    enum status status = timing_flush(state, error); /* its buffer, while there is memory for it */
    if (status == STATUS_OK)
        return preflight(state, outcome, error);
    if (status == STATUS_DEVICE)
        return status;
    counters_close(state->counters);
    state->counters = NULL;
    snprintf(outcome, sizeof state->counters_outcome, "refused: %.400s", error->text);
    return STATUS_OK;
}

enum status count_try(struct device_state *state, struct device *device, struct error *error)
{
    TRY(count_open(state, error));
    outcome_parse(state->counters_outcome, counted_word, &device->counters);
    return STATUS_OK;
}

void count_withdraw(struct device_state *state)
{
    if (state->counters && !state->stand_by_decided)
        counters_stand_by(state->counters, false);
}

void count_close(struct device_state *state)
{
    counters_close(state->counters);
}

/* ---- records ---- */

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

/* Without the advice, which is the same for all records. */
static void record_outcome(const char *outcome, struct record *record)
{
    struct outcome whole = {.code = COUNTED_REFUSED};
    outcome_parse(outcome, counted_word, &whole);
    outcome_set_brief(&record->counters, &whole);
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

static void kernels_sum(const struct device_state *state, double (*values)[QUANTITY_COUNT],
                        enum precision precision, struct record *record)
{
    for (size_t i = 0; i < record->kernel_count; ++i) {
        record->kernels[i].flops_counted = 0.0;
        for (int level = 0; level < LEVEL_COUNT; ++level)
            record->kernels[i].bytes_counted[level] = 0.0;
    }
    for (size_t i = 0; i < state->launch_count; ++i)
        launch_add(values[i], precision, record, &record->kernels[state->launches[i].kernel]);
}

/* The i-th value is of the i-th launch of the trace: both are of the same iteration of the same plan.
 */
static enum status count_kernels(struct iteration *iteration, unsigned tensors,
                                 struct record *record, struct error *error)
{
    char outcome[COUNTERS_TEXT] = "no trace";
    enum status status = STATUS_OK;
    const struct device_state *state = iteration->state;
    const struct counters_work counted = iteration_work(iteration);
    size_t launches = state->launch_count;
    double(*values)[QUANTITY_COUNT] = malloc((launches ? launches : 1) * sizeof *values);
    if (!values)
        return error_set(error, STATUS_FAILED, "no memory for the counts of %zu kernels", launches);
    if (launches > 0)
        status = counters_collect_launches(state->counters, tensors, &counted, launches, values,
                                           outcome, error);
    if (status == STATUS_OK && strcmp(outcome, "counted") == 0) {
        kernels_sum(state, values, iteration->work->precision, record);
        if (!kernels_agree(record))
            snprintf(outcome, sizeof outcome, "their FLOPs are not those of the whole");
    }
    if (status == STATUS_OK && strcmp(outcome, "counted") != 0) {
        kernels_forget(record);
        outcome_set(&record->counters, COUNTED_NOT_BY_KERNEL, "%.*s", (int)strcspn(outcome, ";"),
                    outcome);
    }
    free(values);
    return status;
}

void count_never_stand_by(struct device_state *state)
{
    state->stand_by_decided = true;
    state->profiler_ratio = NAN;
    counters_stand_by(state->counters, false);
}

static enum status stand_by_judge(struct device_state *state, struct error *error)
{
    bool tolerable;
    state->stand_by_asked = counters_asked(state->counters);
    TRY(disturbance_judge(state, &tolerable, error));
    if (!tolerable)
        count_never_stand_by(state);
    return STATUS_OK;
}

/* Tracing switches more of CUPTI on, and off again. Once is enough. */
enum status count_check_stand_by(struct device_state *state, struct error *error)
{
    if (state->stand_by_traced || !counters_attached(state->counters))
        return STATUS_OK;
    state->stand_by_traced = true;
    return stand_by_judge(state, error);
}

/* Before the next row is timed: a profiler that counts more by now, or that is back after it was lost,
 * is another one than was judged. */
static enum status stand_by_review(struct device_state *state, struct error *error)
{
    bool judged =
        !isnan(state->profiler_ratio) && state->stand_by_asked == counters_asked(state->counters);
    return judged || !counters_attached(state->counters) ? STATUS_OK : stand_by_judge(state, error);
}

/* Of the same work, counted twice. What comes from device memory depends on what lay in the caches.
 */
static bool counts_agree(const double first[QUANTITY_COUNT], const double second[QUANTITY_COUNT])
{
    const double flops_tolerance = 1e-3, cache_tolerance = 0.5;
    for (int i = 0; i < QUANTITY_COUNT; ++i) {
        double tolerance = i <= QUANTITY_TENSOR_INT8 ? flops_tolerance : cache_tolerance;
        if (i == QUANTITY_DRAM_READ || i == QUANTITY_DRAM_WRITE || isnan(first[i]))
            continue;
        if (!(fabs(second[i] - first[i]) <= tolerance * first[i]))
            return false;
    }
    return true;
}

/* The profiler may stand by if it then counts the same, and leaves device times alone. Each worker
 * finds that out with its first collection: it is repeated, after one of something else, so that
 * nothing left of the first passes for the second; and known kernels are timed before it, with
 * nothing attached, and after it. */
static enum status collect_and_decide(struct device_state *state, unsigned tensors,
                                      const struct counters_work *counted,
                                      double values[QUANTITY_COUNT], char outcome[COUNTERS_TEXT],
                                      struct error *error)
{
    double again[QUANTITY_COUNT];
    char outcome_again[COUNTERS_TEXT];
    bool deciding = !state->stand_by_decided;
    if (deciding) {
        bool known;
        count_withdraw(state);
        TRY(disturbance_begin(state, &known, error));
        counters_stand_by(state->counters, known);
    }
    TRY(counters_collect(state->counters, tensors, counted, values, outcome, error));
    if (!deciding || !counters_attached(state->counters))
        return STATUS_OK;
    state->stand_by_decided = true;
    TRY(try_counting(state, 0, outcome_again, error));
    TRY(counters_collect(state->counters, tensors, counted, again, outcome_again, error));
    if (!counts_agree(values, again))
        count_never_stand_by(state);
    return counters_attached(state->counters) ? stand_by_judge(state, error) : STATUS_OK;
}

static enum status count_iteration(struct device_state *state, struct work *work, bool cold,
                                   bool kernels, struct record *record, struct error *error)
{
    struct iteration iteration = {state, work, cold};
    const struct counters_work counted = iteration_work(&iteration);
    char outcome[COUNTERS_TEXT];
    double values[QUANTITY_COUNT];
    unsigned tensors =
        record->unit == UNIT_TENSOR ? quantity_tensor(quantity_of(work->precision, true)) : 0;
    TRY(collect_and_decide(state, tensors, &counted, values, outcome, error));
    record_outcome(outcome, record);
    record_flops(values, work->precision, record);
    record_bytes(values, record);
    if (kernels && strcmp(outcome, "counted") == 0)
        return count_kernels(&iteration, tensors, record, error);
    return STATUS_OK;
}

enum status count_run(struct device_state *state, struct work *work, bool cold, bool kernels,
                      struct record *record, struct error *error)
{
    TRY(count_open(state, error));
    if (strcmp(state->counters_outcome, "counted") != 0) {
        record_outcome(state->counters_outcome, record);
        return STATUS_OK;
    }
    enum status status = count_iteration(state, work, cold, kernels, record, error);
    if (!counters_attached(state->counters))
        state->profiler_ratio = NAN;
    return status ? status : stand_by_review(state, error);
}
