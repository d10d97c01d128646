/* Rules that leave configurations out, as in "filters>=512 & batch>=64, pass=forward". */
#pragma once

#include <stdbool.h>

#include "base/status.h"
#include "model/workload.h"

enum comparison { COMPARE_EQ, COMPARE_NE, COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE };
struct term {
    int parameter;
    enum comparison comparison;
    struct value value;
};
/* A rule excludes the configurations for which all terms hold. */
struct exclusion {
    struct term *terms;
    size_t count;
};

/* Parses rules, separated by commas. A rule has terms, joined by &. Only numbers, square extents
 * and paddings of one number have an order. Each term takes one value from *room, see axis.h. Sets
 * the outputs, owned by the caller, on success only. */
enum status exclusions_parse(const struct workload *workload, const char *text, size_t *room,
                             struct exclusion **exclusions, size_t *count, struct error *error);
void exclusions_destroy(struct exclusion *exclusions, size_t count);

/* Whether all terms hold. Comparisons of order hold for an extent if they hold for rows and
 * columns, and never for a padding keyword. */
bool exclusion_holds(const struct exclusion *exclusion, const struct config *config);
