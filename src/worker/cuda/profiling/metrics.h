/* What is counted on which chip: for each family of chips and each quantity a formula over hardware
 * metrics, as const data. Pure functions; knows neither CUDA nor CUPTI. README.md beside this file
 * has the evidence for the formulas.
 *
 * The names differ by chip, so that every family has its own table, and a quantity that a family
 * has no counter for is declared absent. */
#ifndef ROOFSWEEP_METRICS_H
#define ROOFSWEEP_METRICS_H

#include <stdbool.h>
#include <stddef.h>

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
    QUANTITY_COUNT
};
extern const char *const quantity_name[QUANTITY_COUNT];

/* value = min(sum of factor * metric, sum of limit * metric), and at least 0. */
struct metric_term {
    const char *metric; /* ends a formula with NULL */
    double factor, limit;
};

struct metric_family {
    const char *name;
    const char *chips[6]; /* as CUPTI names them, NULL-terminated */
    /* Never NULL; without any term the quantity is absent. */
    const struct metric_term *formula[QUANTITY_COUNT];
};
extern const struct metric_family metric_families[]; /* ends with name NULL */

const struct metric_family *metric_family_find(const char *chip); /* NULL if it is in no table */
bool metric_family_has(const struct metric_family *family, enum quantity quantity);

/* The metrics that the wanted quantities need, each once. Returns how many there are. */
enum { METRICS_MAX = 48 };
size_t metrics_list(const struct metric_family *family, const bool wanted[QUANTITY_COUNT],
                    const char *metrics[METRICS_MAX]);

/* The quantity, from the values of the listed metrics; NaN if it is absent or one is not listed or
 * is NaN. */
double metrics_evaluate(const struct metric_family *family, enum quantity quantity,
                        const char *const *metrics, const double *values, size_t count);

#ifdef __cplusplus
}
#endif
#endif
