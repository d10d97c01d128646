#include "results/slab.h"

#include <math.h>
#include <stdlib.h>

/* Rows that are in memory at the same time, and kernels of them. As many rows as a chunk has, so that
 * chunks are written whole. */
enum { SLAB_ROWS = 1024, SLAB_KERNELS = 16384 };

void slab_allocate(struct slab *slab)
{
    struct dataset *set = slab->set;
    if (dataset_failed(set))
        return;
    slab->records = dataset_allocate(set, SLAB_ROWS, sizeof *slab->records);
    slab->derived = dataset_allocate(set, SLAB_ROWS, sizeof *slab->derived);
    slab->devices = dataset_allocate(set, SLAB_ROWS, sizeof *slab->devices);
    slab->samples =
        dataset_allocate(set, SLAB_ROWS * set->lengths[DIM_SAMPLE], sizeof *slab->samples);
    slab->parameter_rows = dataset_allocate(set, SLAB_ROWS, parameters_row_size(slab->parameters));
    for (size_t i = 0; slab->records && i < SLAB_ROWS; ++i)
        record_init(&slab->records[i]);
}

void slab_free(struct slab *slab)
{
    for (size_t i = 0; slab->records && i < SLAB_ROWS; ++i)
        record_clear(&slab->records[i]);
    free(slab->records);
    free(slab->derived);
    free(slab->devices);
    free(slab->samples);
    free(slab->parameter_rows);
    free(slab->kernel_rows);
    free(slab->derived_kernels);
    free(slab->rows);
}

bool slab_grow(struct slab *slab, size_t count)
{
    if (count <= slab->room)
        return true;
    free(slab->rows);
    free(slab->kernel_rows);
    free(slab->derived_kernels);
    slab->rows = dataset_allocate(slab->set, count, sizeof *slab->rows);
    slab->kernel_rows = dataset_allocate(slab->set, count, sizeof *slab->kernel_rows);
    slab->derived_kernels = dataset_allocate(slab->set, count, sizeof *slab->derived_kernels);
    slab->room = count;
    return !dataset_failed(slab->set);
}

/* The rows that follow; at least one. */
static size_t slab_length(const struct slab *slab, size_t first)
{
    size_t kernels = 0, count = 0;
    while (count < SLAB_ROWS && first + count < slab->results->row_count) {
        kernels += slab->order[first + count]->kernels;
        if (count > 0 && kernels > SLAB_KERNELS)
            break;
        ++count;
    }
    return count;
}

const struct device *slab_device(const struct slab *slab, size_t i)
{
    int64_t index = slab->devices[i];
    return index < 0 ? slab->blank : &slab->results->devices[index];
}

static void row_samples(struct slab *slab, size_t i)
{
    const struct record *record = &slab->records[i];
    size_t width = slab->set->lengths[DIM_SAMPLE];
    for (size_t j = 0; j < width; ++j)
        slab->samples[i * width + j] = j < record->sample_count && !isnan(record->sample[j])
                                           ? record->sample[j]
                                           : NC_FILL_DOUBLE;
}

/* False: it cannot be read, or is not what it was. */
static bool row_load(struct slab *slab, size_t i)
{
    const struct row *row = slab->order[slab->first + i];
    struct record *record = &slab->records[i];
    enum status status = results_fetch(slab->results, row, record, &slab->error);
    if (status == STATUS_OK && record->kernel_count != row->kernels)
        status = error_set(&slab->error, STATUS_SYSTEM, "the journal has changed meanwhile");
    slab->unreadable = status != STATUS_OK;
    if (slab->unreadable)
        return false;
    slab->devices[i] = results_device(slab->results, record->device_key);
    slab->derived[i] = derived_row_of(record, slab_device(slab, i));
    row_samples(slab, i);
    parameters_row(slab->parameters, &record->config,
                   slab->parameter_rows + i * parameters_row_size(slab->parameters));
    return true;
}

bool slab_load(struct slab *slab, size_t first)
{
    slab->first = first;
    slab->count = slab_length(slab, first);
    for (size_t i = 0; i < slab->count; ++i)
        if (!row_load(slab, i))
            return false;
    return slab_grow(slab, slab->count);
}
