/* What is counted on which chip: for each family of chips and each quantity a formula over hardware
 * metrics, as const data. Pure functions; knows neither CUDA nor CUPTI. README.md beside this file
 * has the evidence for the formulas.
 *
 * The names differ by chip, so that every family has its own table, and a quantity that a family
 * has no counter for is declared absent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/quantity.h"

#ifdef __cplusplus
extern "C" {
#endif

/* value = min(sum of factor * metric, sum of limit * metric), and at least 0. */
struct formula_term {
    const char *metric; /* ends a formula with NULL */
    double factor, limit;
};

struct chip_family {
    const char *name;
    const char *chips[6]; /* as CUPTI names them, NULL-terminated */
    /* Never NULL; without any term the quantity is absent. */
    const struct formula_term *formula[QUANTITY_COUNT];
};
extern const struct chip_family chip_families[]; /* ends with name NULL */

const struct chip_family *chip_family_find(const char *chip); /* NULL if it is in no table */
bool chip_family_has(const struct chip_family *family, enum quantity quantity);

/* The metrics that the wanted quantities need, each once. Returns how many there are. */
enum { FORMULAS_METRICS_MAX = 48 };
size_t formulas_metrics(const struct chip_family *family, const bool wanted[QUANTITY_COUNT],
                        const char *metrics[FORMULAS_METRICS_MAX]);

/* The quantity, from the values of the listed metrics; NaN if it is absent or one is not listed or
 * is NaN. */
double formulas_evaluate(const struct chip_family *family, enum quantity quantity,
                         const char *const *metrics, const double *values, size_t count);

#ifdef __cplusplus
}
#endif
