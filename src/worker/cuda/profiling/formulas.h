/* Formulas from hardware metrics to quantities, as const data for each family of chips. Pure
 * functions without CUDA and CUPTI. README.md in this folder has the evidence for the formulas.
 *
 * Metric names differ by chip, so each family has a table of its own. A quantity without a counter
 * is declared absent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/quantity.h"

#ifdef __cplusplus
extern "C" {
#endif

/* value = min(sum of factor * metric, sum of limit * metric), and at least 0. */
struct formula_term {
    const char *metric; /* NULL ends the formula */
    double factor, limit;
};

struct chip_family {
    const char *name;
    const char *chips[6]; /* CUPTI's names, NULL-terminated */
    /* Never NULL; a formula without terms means that the quantity is absent. */
    const struct formula_term *formula[QUANTITY_COUNT];
};
extern const struct chip_family chip_families[]; /* ends with name NULL */

const struct chip_family *chip_family_find(const char *chip); /* NULL: unknown chip */
bool chip_family_has(const struct chip_family *family, enum quantity quantity);

/* Lists the metrics of the wanted quantities, each once. Returns their number. */
enum { FORMULAS_METRICS_MAX = 48 };
size_t formulas_metrics(const struct chip_family *family, const bool wanted[QUANTITY_COUNT],
                        const char *metrics[FORMULAS_METRICS_MAX]);

/* Returns the quantity; NaN: it is absent, or one of its metrics is missing or NaN. */
double formulas_evaluate(const struct chip_family *family, enum quantity quantity,
                         const char *const *metrics, const double *values, size_t count);

#ifdef __cplusplus
}
#endif
