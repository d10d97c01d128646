/* A netCDF-4 file while it is written. Field tables lay out its variables, which get some rows at a
 * time.
 *
 * The first failure is kept, and later calls do nothing: dataset_close reports it. Order of calls:
 * lengths set, dataset_create, definitions, puts, dataset_close. */
#pragma once

#include <netcdf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "model/field.h"
#include "base/status.h"

enum dimension {
    DIM_CONFIG, /* unlimited */
    DIM_KERNEL,
    DIM_DEVICE,
    DIM_ROOF,
    DIM_LINK,
    DIM_FORMAT,
    DIM_LEVEL,
    DIM_ACTIVITY,
    DIM_SAMPLE,
    DIM_HEALTH,
    DIM_PART,
    DIM_TIME_PART,
    DIM_COUNT,
    DIM_NONE = DIM_COUNT
};

/* A field and its variable. */
struct column {
    struct field field; /* its name, the variable's, is owned */
    int variable;       /* netCDF's id; -1: the file lacks the variable */
    int group;          /* number by the caller; a group is written together */
};

struct dataset {
    size_t lengths[DIM_COUNT]; /* set by the caller; 0: no such dimension, except DIM_CONFIG */
    json_t *found;             /* the caller's: {name of a variable with a value: true} */
    bool open;
    int id;
    int dimensions[DIM_COUNT];
    int code;                    /* the first error of netCDF */
    int cause;                   /* its errno; 0: unknown */
    char place[NC_MAX_NAME + 1]; /* variable or dimension of the error */
    bool no_memory;
    struct column *columns; /* owned */
    size_t column_count;
};

/* Initialises netCDF and HDF5, which takes longer than creating a file. */
void dataset_prepare(void);

void dataset_create(struct dataset *set, const char *path);

/* STATUS_SYSTEM: a call since dataset_create failed. */
enum status dataset_close(struct dataset *set, struct error *error);

/* Whether a defined field has this name, even if the file lacks its variable. */
bool dataset_has_column(const struct dataset *set, const char *name);

bool dataset_failed(const struct dataset *set);

/* Returns zeroed memory, which the caller frees; NULL: the dataset has failed. */
void *dataset_allocate(struct dataset *set, size_t count, size_t size);

/* `variable` may be NC_GLOBAL. */
void dataset_attribute(struct dataset *set, int variable, const char *name, const char *text);

/* Defines variable PREFIX + name of a field, in a group. The file gets the variable if it is in
 * `found` or PRESENT_ALWAYS, and only after dataset_create. Integers without units are indices:
 * never missing, so without a fill value. */
void dataset_define_field(struct dataset *set, const struct field *field, const char *prefix,
                          enum dimension dimension, int group);

/* Prints name, dimensions, unit and description of the variable, for --list variables. */
void dataset_list_field(const struct field *field, const char *prefix, enum dimension dimension,
                        FILE *stream);

/* Sets a global attribute. */
void dataset_attribute_integer(struct dataset *set, const char *name, int value);

/* Writes a group's variables in `count` rows from `first` on. rows[i] is the struct of row first +
 * i. Notes values without a variable in `found`. */
void dataset_put(struct dataset *set, int group, size_t first, size_t count,
                 const void *const *rows);
