/* A netCDF-4 file that is being written. Tables of fields define its variables. Rows are written in
 * batches.
 *
 * After a failure later calls do nothing, and dataset_close reports the first failure. Order of
 * calls: set the lengths, dataset_create, definitions, dataset_put, dataset_close. */
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
    DIM_NODE,
    DIM_ROOF,
    DIM_LINK,
    DIM_FORMAT,
    DIM_LEVEL,
    DIM_ACTIVITY,
    DIM_SAMPLE,
    DIM_ROUND,
    DIM_HEALTH,
    DIM_PART,
    DIM_TIME_PART,
    DIM_COUNT,
    DIM_NONE = DIM_COUNT
};

/* A field and its variable. */
struct column {
    struct field field; /* field.name is owned and is the name of the variable */
    int variable;       /* netCDF's id; -1: the file lacks the variable */
    int group;          /* number that the caller chooses; dataset_put writes one group */
};

struct dataset {
    size_t lengths[DIM_COUNT]; /* set by the caller; 0: no such dimension, except DIM_CONFIG */
    json_t *found;             /* {name of a variable with a value: true}; the caller owns it */
    bool open;
    int id;
    int dimensions[DIM_COUNT];
    int code;                    /* the first error of netCDF */
    int cause;                   /* errno at the first error; 0: unknown */
    char place[NC_MAX_NAME + 1]; /* variable or dimension of the first error */
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

/* Defines a variable for a field, in a group. Its name is `prefix` and the field's name. The file
 * gets the variable if dataset_create has opened it, and if `found` has the variable or the field
 * is PRESENT_ALWAYS. Integers without units are indices: they are never missing and have no fill
 * value. */
void dataset_define_field(struct dataset *set, const struct field *field, const char *prefix,
                          enum dimension dimension, int group);

/* Prints name, dimensions, unit and description of the variable, for --list variables. */
void dataset_list_field(const struct field *field, const char *prefix, enum dimension dimension,
                        FILE *stream);

void dataset_attribute_integer(struct dataset *set, const char *name, int value);

/* Writes `count` rows of a group's variables, from row `first` on. rows[i] is the struct of row
 * first + i. Adds a variable that the file lacks to `found` if a row has a value for it. */
void dataset_put(struct dataset *set, int group, size_t first, size_t count,
                 const void *const *rows);
