/* A netCDF-4 file while it is written: its dimensions, its attributes, and variables that are laid
 * out by field tables.
 *
 * The first failure is kept, and after it every call does nothing: a writer asks once, at the end.
 * Order of calls: lengths set, dataset_create, anything, dataset_close. */
#ifndef ROOFSWEEP_DATASET_H
#define ROOFSWEEP_DATASET_H

#include <netcdf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/field.h"
#include "base/status.h"

enum dimension {
    DIM_CONFIG, /* unlimited */
    DIM_KERNEL,
    DIM_DEVICE,
    DIM_ROOF,
    DIM_PRECISION,
    DIM_LEVEL,
    DIM_SAMPLE,
    DIM_COUNT,
    DIM_NONE = DIM_COUNT
};

/* What a reader must know of a variable beyond its long_name. A table ends with a NULL name. */
struct comment {
    const char *variable, *text;
};

struct dataset {
    size_t lengths[DIM_COUNT];      /* at least 1, but for DIM_CONFIG; the caller sets them */
    const struct comment *comments; /* the caller's, or NULL */
    const char *const *derived;     /* names of variables that follow from others; or NULL */
    bool open;
    int id;
    int dimensions[DIM_COUNT];
    int code;                    /* the first error of netCDF */
    char place[NC_MAX_NAME + 1]; /* what it happened at */
    bool no_memory;
};

void dataset_create(struct dataset *set, const char *path);

/* STATUS_SYSTEM if anything has failed since dataset_create. */
enum status dataset_close(struct dataset *set, struct error *error);

bool dataset_failed(const struct dataset *set);

/* Keeps `code`, what a call of netCDF about `place` returned, if it is the first error. */
void dataset_check(struct dataset *set, const char *place, int code);

/* Zeroed, and the caller's to free; NULL is a failure of the dataset. */
void *dataset_allocate(struct dataset *set, size_t count, size_t size);

/* `variable` may be NC_GLOBAL. */
void dataset_attribute(struct dataset *set, int variable, const char *name, const char *text);

/* Variable over `rows`, or with `inner` over rows x inner; its id, for nc_put_vara. Doubles get the
 * fill value of netCDF. */
int dataset_define(struct dataset *set, const char *name, nc_type type, enum dimension rows,
                   enum dimension inner, const char *units, const char *long_name);

/* Defines and writes the variable PREFIX + name of a field. rows[i] is the struct of row i. */
void dataset_field(struct dataset *set, const struct field *field, const char *prefix,
                   enum dimension dimension, const void *const *rows);

/* The same for a whole table. */
void dataset_fields(struct dataset *set, const struct field *table, const char *prefix,
                    enum dimension dimension, const void *const *rows);

/* One text a row. */
void dataset_texts(struct dataset *set, const char *name, enum dimension dimension,
                   const char *long_name, const char *const *texts);

/* One index a row. It is no measurement and never missing. */
void dataset_index(struct dataset *set, const char *name, enum dimension dimension,
                   const char *long_name, const int64_t *rows);

#endif
