#include "ranks/earlier_rows.h"

#include <stdlib.h>
#include <string.h>

/* Plan items by hash, to find an earlier record's. */
struct entry {
    const char *hash;
    size_t item;
};

static int compare_hashes(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->hash, ((const struct entry *)b)->hash);
}

static struct entry *index_create(const struct plan *plan)
{
    struct entry *index = malloc(plan->count * sizeof *index);
    for (size_t i = 0; index && i < plan->count; ++i)
        index[i] = (struct entry){plan->items[i].hash, i};
    if (index)
        qsort(index, plan->count, sizeof *index, compare_hashes);
    return index;
}

static const struct entry *index_find(const struct entry *index, size_t count, const char *hash)
{
    struct entry key = {hash, 0};
    return bsearch(&key, index, count, sizeof key, compare_hashes);
}

bool earlier_rows_each(const struct plan *plan, const struct results *results,
                       void (*visit)(void *context, const struct row *row, size_t item),
                       void *context)
{
    struct entry *index = index_create(plan);
    for (size_t i = 0; index && i < results->row_count; ++i) {
        const struct row *row = &results->rows[i];
        const struct entry *found = index_find(index, plan->count, row->config_hash);
        if (found)
            visit(context, row, found->item);
    }
    free(index);
    return index || plan->count == 0;
}

static void note(void *context, const struct row *row, size_t item)
{
    bool *there = context;
    (void)row;
    there[item] = true;
}

size_t earlier_rows_missing(const struct plan *plan, const struct results *results)
{
    bool *there = calloc(plan->count, sizeof *there);
    size_t missing = plan->count;
    if (there && earlier_rows_each(plan, results, note, there))
        for (size_t i = 0; i < plan->count; ++i)
            missing -= there[i];
    free(there);
    return missing;
}
