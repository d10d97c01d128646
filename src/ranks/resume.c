#include "ranks/resume.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Plan items by hash. */
struct entry {
    const char *hash;
    size_t item;
};

static int compare_hashes(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->hash, ((const struct entry *)b)->hash);
}

size_t *resume_items(const struct plan *plan, const struct results *results)
{
    struct entry *index = malloc((plan->count + 1) * sizeof *index);
    size_t *items = malloc((results->row_count + 1) * sizeof *items);
    if (!index || !items) {
        free(index);
        free(items);
        return NULL;
    }
    for (size_t i = 0; i < plan->count; ++i)
        index[i] = (struct entry){plan->items[i].hash, i};
    qsort(index, plan->count, sizeof *index, compare_hashes);
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct entry key = {results->rows[i].config_hash, 0};
        const struct entry *found = bsearch(&key, index, plan->count, sizeof key, compare_hashes);
        items[i] = found ? found->item : RESUME_NONE;
    }
    free(index);
    return items;
}

size_t resume_missing(const struct plan *plan, const struct results *results,
                      const struct device *devices, size_t count)
{
    size_t lists = devices ? count : 1, missing = lists * plan->count;
    size_t *items = resume_items(plan, results);
    bool *there = calloc(missing + 1, sizeof *there);
    for (size_t i = 0; items && there && i < results->row_count; ++i) {
        int64_t at = results_device(results, results->rows[i].device_key);
        for (size_t list = 0; items[i] != RESUME_NONE && list < lists; ++list) {
            bool *item = &there[list * plan->count + items[i]];
            if (*item ||
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
