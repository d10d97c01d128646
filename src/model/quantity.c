#include "model/quantity.h"

#include <math.h>

const char *const quantity_name[QUANTITY_ACTIVITY] = {
    [QUANTITY_VECTOR_FP64] = "vector fp64 FLOPs", [QUANTITY_VECTOR_FP32] = "vector fp32 FLOPs",
    [QUANTITY_VECTOR_FP16] = "vector fp16 FLOPs", [QUANTITY_TENSOR_FP64] = "tensor fp64 FLOPs",
    [QUANTITY_TENSOR_TF32] = "tensor tf32 FLOPs", [QUANTITY_TENSOR_FP16] = "tensor fp16 FLOPs",
    [QUANTITY_TENSOR_BF16] = "tensor bf16 FLOPs", [QUANTITY_TENSOR_FP8] = "tensor fp8 FLOPs",
    [QUANTITY_TENSOR_FP4] = "tensor fp4 FLOPs",   [QUANTITY_TENSOR_INT8] = "tensor int8 operations",
    [QUANTITY_DRAM_READ] = "DRAM bytes read",     [QUANTITY_DRAM_WRITE] = "DRAM bytes written",
    [QUANTITY_L2_READ] = "L2 bytes read",         [QUANTITY_L2_WRITE] = "L2 bytes written",
    [QUANTITY_L1_READ] = "L1 bytes read",         [QUANTITY_L1_WRITE] = "L1 bytes written",
};

static const struct {
    enum quantity vector, tensor;
} of_precision[PRECISION_COUNT] = {
    [PRECISION_FP64] = {QUANTITY_VECTOR_FP64, QUANTITY_TENSOR_FP64},
    [PRECISION_FP32] = {QUANTITY_VECTOR_FP32, QUANTITY_COUNT},
    [PRECISION_TF32] = {QUANTITY_COUNT, QUANTITY_TENSOR_TF32},
    [PRECISION_FP16] = {QUANTITY_VECTOR_FP16, QUANTITY_TENSOR_FP16},
    [PRECISION_BF16] = {QUANTITY_VECTOR_FP16, QUANTITY_TENSOR_BF16}, /* counted with fp16 */
    [PRECISION_FP8] = {QUANTITY_COUNT, QUANTITY_TENSOR_FP8},
    [PRECISION_FP4] = {QUANTITY_COUNT, QUANTITY_TENSOR_FP4},
    [PRECISION_INT8] = {QUANTITY_COUNT, QUANTITY_TENSOR_INT8},
};

enum quantity quantity_of(enum precision precision, bool tensor)
{
    return tensor ? of_precision[precision].tensor : of_precision[precision].vector;
}

bool quantity_of_level(enum memory_level level, enum quantity *read, enum quantity *write)
{
    static const struct {
        bool counted;
        enum quantity read, write;
    } levels[LEVEL_COUNT] = {
        [LEVEL_DRAM] = {true, QUANTITY_DRAM_READ, QUANTITY_DRAM_WRITE},
        [LEVEL_L2] = {true, QUANTITY_L2_READ, QUANTITY_L2_WRITE},
        [LEVEL_L1] = {true, QUANTITY_L1_READ, QUANTITY_L1_WRITE},
    };
    if (!levels[level].counted)
        return false;
    *read = levels[level].read;
    *write = levels[level].write;
    return true;
}

double quantity_flops(const double values[QUANTITY_COUNT])
{
    double sum = NAN;
    for (int i = QUANTITY_VECTOR_FP64; i < QUANTITY_TENSOR_INT8; ++i)
        if (!isnan(values[i]))
            sum = (isnan(sum) ? 0.0 : sum) + values[i];
    return sum;
}

void quantity_bytes(const double values[QUANTITY_COUNT], double bytes[LEVEL_COUNT])
{
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        enum quantity read, write;
        bool counted = quantity_of_level((enum memory_level)level, &read, &write);
        bytes[level] = counted ? values[read] + values[write] : NAN;
    }
}

void quantity_activities(const double sums[QUANTITY_COUNT], double launches, double time,
                         double activity[ACTIVITY_COUNT])
{
    static const struct {
        enum activity amount;
        enum quantity peak;
    } amounts[] = {{ACTIVITY_DRAM, QUANTITY_PEAK_DRAM},
                   {ACTIVITY_L2, QUANTITY_PEAK_L2},
                   {ACTIVITY_MULTIPROCESSORS, QUANTITY_PEAK_MULTIPROCESSORS}};
    double stalls = 0;
    for (int i = 0; i < ACTIVITY_COUNT; ++i) {
        activity[i] = sums[QUANTITY_ACTIVITY + i] / launches;
        if (i >= ACTIVITY_STALL_BARRIER && !isnan(activity[i])) /* NaN: no counter */
            stalls += activity[i];
    }
    for (int i = ACTIVITY_STALL_BARRIER; i < ACTIVITY_COUNT; ++i)
        activity[i] = stalls > 0 ? activity[i] / stalls : NAN;
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; ++i)
        activity[amounts[i].amount] *= launches * launches / (time * sums[amounts[i].peak]);
}
