#include "worker/cuda/row_count.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cuda/gpu/check.h"
#include "worker/cuda/iteration.h"
#include "worker/cuda/row_profiler.h"

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
    if (status != STATUS_DEVICE)
        profiler_leave(profiler);
    return status;
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
