#include "ranks/resume.h"

#include <stdbool.h>
#include <stdlib.h>

size_t *resume_items(const struct plan *plan, const struct results *results)
{
    size_t *items = malloc((results->row_count + 1) * sizeof *items);
    for (size_t i = 0; items && i < results->row_count; ++i) {
        const size_t found = plan_find(plan, results->rows[i].config_hash);
        items[i] = found < plan->count ? found : RESUME_NONE;
    }
    return items;
}

size_t resume_rounds(const struct row *row, int rounds)
{
    size_t missing = 0;
    for (size_t round = 1; row->status == RECORD_MEASURED && round < (size_t)rounds; ++round)
        missing += round >= row->round_count || !row->rounds[round].there;
    return missing;
}

size_t resume_missing(const struct plan *plan, const struct results *results,
                      const struct device *devices, size_t count, int rounds)
{
    size_t lists = devices ? count : 1, missing = lists * plan->count;
    size_t *items = resume_items(plan, results);
    bool *there = calloc(missing + 1, sizeof *there);
    for (size_t i = 0; items && there && i < results->row_count; ++i) {
        int64_t at = results_device(results, results->rows[i].device_key);
        for (size_t list = 0; items[i] != RESUME_NONE && list < lists; ++list) {
            bool *item = &there[list * plan->count + items[i]];
            if (*item || resume_rounds(&results->rows[i], rounds) > 0 ||
                (devices && (at < 0 || !device_same(&results->devices[at], &devices[list]))))
                continue;
            *item = true;
            --missing;
        }
    }
    free(items);
    free(there);
    return missing;
}
