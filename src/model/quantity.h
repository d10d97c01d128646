/* Quantities that hardware counters measure: FLOPs by unit and precision, bytes by memory level,
 * activities of kernels. Pure functions, independent of the device. */
#pragma once

#include "model/kernel.h"
#include "model/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum quantity {
    /* FLOPs of the vector units. A 16-bit instruction has two lanes, which both count, even if one
     * is not used. fp16 and bf16 are one quantity, because no chip counts them separately. */
    QUANTITY_VECTOR_FP64,
    QUANTITY_VECTOR_FP32,
    QUANTITY_VECTOR_FP16,
    /* FLOPs of the tensor units, by the precision of the factors. int8: operations, which are no
     * FLOPs. */
    QUANTITY_TENSOR_FP64,
    QUANTITY_TENSOR_TF32,
    QUANTITY_TENSOR_FP16,
    QUANTITY_TENSOR_BF16,
    QUANTITY_TENSOR_FP8,
    QUANTITY_TENSOR_FP4, /* without instructions that take fp8 or fp4, which count as fp8 */
    QUANTITY_TENSOR_INT8,
    /* Bytes. L2: between SMs and L2, without traffic between the halves of L2. L1: global, local,
     * texture and surface accesses, without shared memory and bulk copies into shared memory. */
    QUANTITY_DRAM_READ,
    QUANTITY_DRAM_WRITE,
    QUANTITY_L2_READ,
    QUANTITY_L2_WRITE, /* stores, reductions and atomics */
    QUANTITY_L1_READ,  /* all but global stores */
    QUANTITY_L1_WRITE, /* global stores */
    /* One quantity for each enum activity. Stalls are in cycles of threads, dram in bytes, l2 in
     * sectors, multiprocessors in cycles. */
    QUANTITY_ACTIVITY,
    /* Peaks of dram, l2 and multiprocessors, per second at the clocks during counting. */
    QUANTITY_PEAK_DRAM = QUANTITY_ACTIVITY + ACTIVITY_COUNT,
    QUANTITY_PEAK_L2,
    QUANTITY_PEAK_MULTIPROCESSORS,
    QUANTITY_COUNT
};
extern const char *const quantity_name[QUANTITY_ACTIVITY];

/* Returns the quantity of the FLOPs of tensor or vector units; QUANTITY_COUNT: none. */
enum quantity quantity_of(enum precision precision, bool tensor);

/* False: the level is not counted. */
bool quantity_of_level(enum memory_level level, enum quantity *read, enum quantity *write);

/* Sums of reads and writes by level; NaN: not counted. */
void quantity_bytes(const double values[QUANTITY_COUNT], double bytes[LEVEL_COUNT]);
/* Computes activities of a kernel, as means over its launches. `sums` has the sums of all
 * quantities over the launches. Stalls become shares of the sum of all stalls, which is the time of
 * all threads. dram, l2 and multiprocessors become shares of their peak in `time`, the traced time
 * of all launches in s; the time of the profiler's range would be too long. */
void quantity_activities(const double sums[QUANTITY_COUNT], double launches, double time,
                         double activity[ACTIVITY_COUNT]);
/* Returns the FLOPs of all units and precisions, without int8 operations; NaN: none counted. */
double quantity_flops(const double values[QUANTITY_COUNT]);

/* Sets of tensor quantities, as bits. Each quantity costs about one pass of the counters, and most
 * kernels need one quantity. */
static inline unsigned quantity_tensor(enum quantity quantity) /* 0 for other quantities */
{
    return quantity >= QUANTITY_TENSOR_FP64 && quantity <= QUANTITY_TENSOR_INT8
               ? 1u << (quantity - QUANTITY_TENSOR_FP64)
               : 0;
}
enum { QUANTITY_TENSOR_SETS = 1 << (QUANTITY_TENSOR_INT8 - QUANTITY_TENSOR_FP64 + 1) };
#define QUANTITY_ALL_TENSORS ((unsigned)QUANTITY_TENSOR_SETS - 1)
/* Used instead of a set: count only activities, in separate passes. */
#define QUANTITY_ACTIVITIES ((unsigned)QUANTITY_TENSOR_SETS)
enum { QUANTITY_ACTIVITY_PASSES = 8 }; /* no chip needs more passes for activities */

#ifdef __cplusplus
}
#endif
