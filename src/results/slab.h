/* Rows of the NetCDF file that are in memory: what they hold, ready to be written. As many as a chunk of
 * the file has, so that chunks are written whole. */
#ifndef ROOFSWEEP_SLAB_H
#define ROOFSWEEP_SLAB_H

#include "results/dataset.h"
#include "results/derived_rows.h"
#include "results/parameters_nc.h"
#include "results/results.h"

struct slab {
    /* What it is filled from, the caller's. `blank`: the device of a row that reached none. */
    const struct results *results;
    const struct row **order;
    struct dataset *set;
    const struct parameters *parameters;
    const struct device *blank;

    size_t first, count;
    struct record *records;
    struct derived_row *derived;
    int64_t *devices; /* index into results->devices, or -1 */
    double *samples;
    char *parameter_rows;                   /* of parameters_row_size each */
    int64_t *kernel_rows;                   /* of config */
    struct derived_kernel *derived_kernels; /* as many as kernel_rows */
    const void **rows; /* as dataset_put wants them; for as many as there are rows or kernels */
    size_t room;       /* of kernel_rows and rows */
    bool unreadable;
    struct error error; /* of a record that cannot be read */
};

/* Room for rows; a failure is one of the set's (dataset_failed). */
void slab_allocate(struct slab *slab);
void slab_free(struct slab *slab);

/* The rows from `first` on, at least one. False: one cannot be read, or there is no memory. */
bool slab_load(struct slab *slab, size_t first);

/* Room for the pointers to so many rows or kernels. False: there is no memory. */
bool slab_grow(struct slab *slab, size_t count);

const struct device *slab_device(const struct slab *slab, size_t i);

#endif
