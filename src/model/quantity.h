/* What hardware counters can tell of a piece of work: FLOPs by unit and precision, bytes by level
 * of memory, what a kernel keeps busy. Pure functions; knows nothing of a device. */
#pragma once

#include "model/kernel.h"
#include "model/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum quantity {
    /* FLOPs of the vector units. One 16-bit instruction works on two lanes, used or not, and counts
     * both; fp16 and bf16 count together, because no chip tells them apart. */
    QUANTITY_VECTOR_FP64,
    QUANTITY_VECTOR_FP32,
    QUANTITY_VECTOR_FP16,
    /* FLOPs of the tensor units, by the type of what is multiplied; int8: operations, never FLOPs.
     */
    QUANTITY_TENSOR_FP64,
    QUANTITY_TENSOR_TF32,
    QUANTITY_TENSOR_FP16,
    QUANTITY_TENSOR_BF16,
    QUANTITY_TENSOR_FP8,
    QUANTITY_TENSOR_FP4, /* by instructions for it alone; where others take it, too, it is fp8's */
    QUANTITY_TENSOR_INT8,
    /* Bytes. L2: between the SMs and L2, without what the two halves of an L2 tell each other. L1:
     * global, local, texture and surface accesses; neither shared memory nor bulk copies into it.
     */
    QUANTITY_DRAM_READ,
    QUANTITY_DRAM_WRITE,
    QUANTITY_L2_READ,
    QUANTITY_L2_WRITE, /* stores, reductions and atomics */
    QUANTITY_L1_READ,  /* all but global stores */
    QUANTITY_L1_WRITE, /* global stores */
    /* By enum activity. Amounts: stalls in cycles of threads, dram in bytes, l2 in sectors,
     * multiprocessors in cycles. */
    QUANTITY_ACTIVITY,
    /* Peaks of these amounts per second, at the clocks of the count. */
    QUANTITY_PEAK_DRAM = QUANTITY_ACTIVITY + ACTIVITY_COUNT,
    QUANTITY_PEAK_L2,
    QUANTITY_PEAK_MULTIPROCESSORS,
    QUANTITY_COUNT
};
extern const char *const quantity_name[QUANTITY_ACTIVITY];

/* What counts the FLOPs (int8: operations) of the tensor or of the vector units in this precision.
 * QUANTITY_COUNT: nothing. */
enum quantity quantity_of(enum precision precision, bool tensor);

/* What is read from a level of memory, and what is written to it. false: nothing counts that. */
bool quantity_of_level(enum memory_level level, enum quantity *read, enum quantity *write);

/* Bytes read and written together, by level. NaN where nothing counts them. */
void quantity_bytes(const double values[QUANTITY_COUNT], double bytes[LEVEL_COUNT]);
/* FLOPs of all units and precisions, without int8 operations. NaN if none of them was counted. */
double quantity_flops(const double values[QUANTITY_COUNT]);

/* Quantities of the tensor units as a set: each costs a pass or so, of which a work needs one. */
static inline unsigned quantity_tensor(enum quantity quantity) /* none for any other */
{
    return quantity >= QUANTITY_TENSOR_FP64 && quantity <= QUANTITY_TENSOR_INT8
               ? 1u << (quantity - QUANTITY_TENSOR_FP64)
               : 0;
}
enum { QUANTITY_TENSOR_SETS = 1 << (QUANTITY_TENSOR_INT8 - QUANTITY_TENSOR_FP64 + 1) };
#define QUANTITY_ALL_TENSORS ((unsigned)QUANTITY_TENSOR_SETS - 1)
/* In place of such a set: activities, and nothing else. They take passes of their own. */
#define QUANTITY_ACTIVITIES ((unsigned)QUANTITY_TENSOR_SETS)

#ifdef __cplusplus
}
#endif
