#include "worker/program/counts.h"

#include <math.h>
#include <stdlib.h>

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

enum status counts_trace(struct injected *traced, int64_t iterations, struct record *record,
                         struct error *error)
{
    for (size_t i = 0; i < traced->kernel_count; ++i) {
        traced->kernels[i].count = each(traced->kernels[i].count, iterations);
        traced->kernels[i].time /= (double)iterations;
    }
    record->launches = each((int64_t)traced->launch_count, iterations);
    record->busy_time = injected_busy(traced) / (double)iterations;
    return record_set_kernels(record, traced->kernels, traced->kernel_count, error);
}

static void flops_record(const double values[QUANTITY_COUNT], double iterations, bool graphs,
                         struct record *record)
{
    double vector = 0.0, tensor = 0.0;
    for (int precision = 0; precision < PRECISION_COUNT; ++precision) {
        enum quantity v = quantity_of((enum precision)precision, false);
        enum quantity t = quantity_of((enum precision)precision, true);
        /* bf16 is counted with fp16, once */
        if (v < QUANTITY_COUNT && precision != PRECISION_BF16 && !graphs && !isnan(values[v])) {
            record->flops_vector[precision] = values[v] / iterations;
            vector += record->flops_vector[precision];
        }
        if (t < QUANTITY_TENSOR_INT8 && !isnan(values[t])) {
            record->flops_tensor[precision] = values[t] / iterations;
            tensor += record->flops_tensor[precision];
        }
    }
    if (!graphs)
        record->flops_counted = vector + tensor;
    if (!graphs || tensor > 0.0)
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

void counts_record(const struct injected *counted, const struct injected *traced,
                   int64_t iterations, struct record *record)
{
    bool graphs = traced->in_graphs > 0;
    flops_record(counted->values, (double)iterations, graphs, record);
    bytes_record(counted->values, (double)iterations, record);
    if (graphs)
        outcome_set(&record->counters, COUNTED_INCOMPLETE,
                    "%zu of %zu kernels are launched by CUDA graphs, where vector FLOPs cannot be "
                    "counted",
                    traced->in_graphs, traced->launch_count);
    else
        outcome_set(&record->counters, COUNTED_YES, NULL);
}
