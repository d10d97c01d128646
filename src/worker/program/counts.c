#include "worker/program/counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

unsigned counts_tensors(enum precision precision)
{
    if (precision == PRECISION_COUNT)
        return QUANTITY_ALL_TENSORS & ~quantity_tensor(QUANTITY_TENSOR_INT8);
    if (precision == PRECISION_FP32) /* libraries may take TF32 for it */
        precision = PRECISION_TF32;
    return quantity_tensor(quantity_of(precision, true));
}

/* A kernel that the region launches once, not once an iteration, is one launch all the same. */
static int64_t each(int64_t count, int64_t iterations)
{
    int64_t rounded = (count + iterations / 2) / iterations;
    return count > 0 && rounded == 0 ? 1 : rounded;
}

/* Of one iteration; `moves` may be none. */
static void moves_record(const struct injected_moves *moves, int64_t iterations, int64_t *count,
                         double *bytes, double *time)
{
    *count = each(moves->count, iterations);
    *bytes = moves->bytes / (double)iterations;
    *time = moves->time / (double)iterations;
}

enum status counts_trace(struct injected *traced, int64_t iterations, struct record *record,
                         struct error *error)
{
    enum status status = record_set_kernels(record, traced->kernels, traced->kernel_count, error);
    for (size_t i = 0; i < record->kernel_count; ++i) {
        record->kernels[i].count = each(record->kernels[i].count, iterations);
        record->kernels[i].time /= (double)iterations;
    }
    record->launches = each((int64_t)traced->launch_count, iterations);
    record->busy_time = injected_busy(traced) / (double)iterations;
    moves_record(&traced->copies, iterations, &record->memcpy_count, &record->memcpy_bytes,
                 &record->memcpy_time);
    moves_record(&traced->fills, iterations, &record->memset_count, &record->memset_bytes,
                 &record->memset_time);
    return status;
}

static void flops_record(const double values[QUANTITY_COUNT], double iterations, bool vectorless,
                         struct record *record)
{
    double vector = 0.0, tensor = 0.0;
    for (int precision = 0; precision < PRECISION_COUNT; ++precision) {
        enum quantity v = quantity_of((enum precision)precision, false);
        enum quantity t = quantity_of((enum precision)precision, true);
        /* bf16 is counted with fp16, once */
        if (v < QUANTITY_COUNT && precision != PRECISION_BF16 && !vectorless && !isnan(values[v])) {
            record->flops_vector[precision] = values[v] / iterations;
            vector += record->flops_vector[precision];
        }
        if (t < QUANTITY_TENSOR_INT8 && !isnan(values[t])) {
            record->flops_tensor[precision] = values[t] / iterations;
            tensor += record->flops_tensor[precision];
        }
    }
    if (!vectorless)
        record->flops_counted = vector + tensor;
    if (!vectorless || tensor > 0.0)
        record->unit = tensor > vector ? UNIT_TENSOR : UNIT_VECTOR;
}

static void bytes_record(const double values[QUANTITY_COUNT], double iterations,
                         struct record *record)
{
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        enum quantity read, write;
        if (!quantity_of_level((enum memory_level)level, &read, &write))
            continue;
        record->bytes_read[level] = values[read] / iterations;
        record->bytes_written[level] = values[write] / iterations;
        record->bytes_counted[level] = record->bytes_read[level] + record->bytes_written[level];
    }
}

/* ---- by kernel ---- */

/* FLOPs of any unit; NaN if nothing was counted. bf16 vector FLOPs are counted with fp16, int8 is none. */
static double flops_all(const double values[QUANTITY_COUNT])
{
    double sum = NAN;
    for (int i = QUANTITY_VECTOR_FP64; i < QUANTITY_TENSOR_INT8; ++i)
        if (!isnan(values[i]))
            sum = (isnan(sum) ? 0.0 : sum) + values[i];
    return sum;
}

static int calls_compare(const void *a, const void *b)
{
    const struct injected_launch *x = a, *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static void kernel_add(double *sum, double value)
{
    *sum = (isnan(*sum) ? 0.0 : *sum) + value;
}

/* The launches of the trace are those that were counted: one sequence, in the order of their calls. */
static void kernels_record(const struct injected *counted, struct injected *traced,
                           double iterations, bool graphs, struct record *record)
{
    if (counted->each_count == 0 || counted->each_count != traced->launch_count)
        return;
    qsort(traced->launches, traced->launch_count, sizeof *traced->launches, calls_compare);
    for (size_t i = 0; i < traced->launch_count; ++i) {
        struct kernel *kernel = &record->kernels[traced->launches[i].kernel];
        double bytes[LEVEL_COUNT];
        quantity_bytes(counted->each[i], bytes);
        if (!traced->unloaded)
            kernel_add(&kernel->flops_counted, flops_all(counted->each[i]));
        for (int level = 0; level < LEVEL_COUNT && !graphs; ++level)
            if (!isnan(bytes[level]))
                kernel_add(&kernel->bytes_counted[level], bytes[level]);
    }
    for (size_t i = 0; i < record->kernel_count; ++i) { /* last, so that whole numbers stay whole */
        record->kernels[i].flops_counted /= iterations;
        for (int level = 0; level < LEVEL_COUNT; ++level)
            record->kernels[i].bytes_counted[level] /= iterations;
    }
}

/* ---- the same without graphs ---- */

static bool kernel_equal(const struct kernel *a, const struct kernel *b)
{
    return a->count == b->count && a->grid_x == b->grid_x && a->grid_y == b->grid_y &&
           a->grid_z == b->grid_z && a->block_x == b->block_x && a->block_y == b->block_y &&
           a->block_z == b->block_z && a->registers == b->registers &&
           a->static_shared == b->static_shared && a->dynamic_shared == b->dynamic_shared &&
           strcmp(a->name, b->name) == 0;
}

/* The index of this kernel; kernel_count: there is none. */
static size_t kernel_find(const struct injected *in, const struct kernel *kernel)
{
    size_t i = 0;
    while (i < in->kernel_count && !kernel_equal(&in->kernels[i], kernel))
        ++i;
    return i;
}

bool counts_same_kernels(const struct injected *a, const struct injected *b)
{
    bool same = a->kernel_count == b->kernel_count;
    for (size_t i = 0; i < a->kernel_count && same; ++i)
        same = kernel_find(b, &a->kernels[i]) < b->kernel_count;
    return same;
}

/* Launches of the run without graphs, as launches of the other's kernels. */
static void launches_move(struct injected *traced, struct injected *plain)
{
    for (size_t i = 0; i < plain->launch_count; ++i)
        plain->launches[i].kernel = kernel_find(traced, &plain->kernels[plain->launches[i].kernel]);
    free(traced->launches);
    traced->launches = plain->launches;
    plain->launches = NULL;
    plain->launch_count = 0;
}

void counts_ungraph(struct injected *traced, struct injected *counted,
                    struct injected *plain_traced, struct injected *plain_counted)
{
    for (int i = QUANTITY_VECTOR_FP64; i <= QUANTITY_VECTOR_FP16; ++i)
        counted->values[i] = plain_counted->values[i];
    launches_move(traced, plain_traced);
    free(counted->each);
    counted->each = plain_counted->each;
    counted->each_count = plain_counted->each_count;
    plain_counted->each = NULL;
    plain_counted->each_count = 0;
    traced->ungraphed = true;
    traced->unloaded = plain_traced->unloaded;
}

void counts_record(const struct injected *counted, struct injected *traced, int64_t iterations,
                   struct record *record)
{
    bool graphs = traced->in_graphs > 0, in_graphs = graphs && !traced->ungraphed;
    flops_record(counted->values, (double)iterations, in_graphs || traced->unloaded, record);
    bytes_record(counted->values, (double)iterations, record);
    kernels_record(counted, traced, (double)iterations, graphs, record);
    if (in_graphs)
        outcome_set(&record->counters, COUNTED_INCOMPLETE,
                    "%zu of %zu kernels are launched by CUDA graphs, where vector FLOPs cannot be "
                    "counted",
                    traced->in_graphs, traced->launch_count);
    else if (traced->unloaded)
        outcome_set(&record->counters, COUNTED_INCOMPLETE,
                    "the program unloads code while it is counted, so that its vector FLOPs may be "
                    "wrong");
    else
        outcome_set(&record->counters, COUNTED_YES, NULL);
}
