/* A netCDF-4 file while it is written: its dimensions, its attributes, and variables that are laid
 * out by field tables and written some rows at a time.
 *
 * The first failure is kept, and after it every call does nothing: a writer asks once, at the end.
 * Order of calls: lengths set, dataset_create, all that defines, all that puts, dataset_close. */
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
    DIM_COUNT,
    DIM_NONE = DIM_COUNT
};

/* A variable of a field; -1: the file has it not. Those of one group are written together; the
 * caller numbers its groups. */
struct column {
    struct field field; /* its name is the variable's, and owned */
    int variable, group;
};

struct dataset {
    size_t lengths[DIM_COUNT]; /* 0: there is none, but of DIM_CONFIG; the caller sets them */
    json_t *found;             /* the caller's: names of variables that have a value */
    bool open;
    int id;
    int dimensions[DIM_COUNT];
    int code;                    /* the first error of netCDF */
    char place[NC_MAX_NAME + 1]; /* what it happened at */
    bool no_memory;
    struct column *columns; /* owned */
    size_t column_count;
};

/* Sets up the libraries, which takes longer than to create a file. */
void dataset_prepare(void);

void dataset_create(struct dataset *set, const char *path);

/* STATUS_SYSTEM if anything has failed since dataset_create. */
enum status dataset_close(struct dataset *set, struct error *error);

/* Whether a field has this name, be it in the file or not. */
bool dataset_has_column(const struct dataset *set, const char *name);

bool dataset_failed(const struct dataset *set);

/* Keeps `code`, what a call of netCDF about `place` returned, if it is the first error. */
void dataset_check(struct dataset *set, const char *place, int code);

/* Zeroed, and the caller's to free; NULL is a failure of the dataset. */
void *dataset_allocate(struct dataset *set, size_t count, size_t size);

/* `variable` may be NC_GLOBAL. */
void dataset_attribute(struct dataset *set, int variable, const char *name, const char *text);

/* Variable PREFIX + name of a field, in a group. None if it is not in `found`, unless every file
 * has it; none at all before dataset_create. An integer without units is an index: never missing,
 * so without a fill value. */
void dataset_define_field(struct dataset *set, const struct field *field, const char *prefix,
                          enum dimension dimension, int group);

/* Prints what files say of the variable, as --list variables does. */
void dataset_list_field(const struct field *field, const char *prefix, enum dimension dimension,
                        FILE *stream);

/* A number of the whole file. */
void dataset_attribute_integer(struct dataset *set, const char *name, int value);

/* Writes the variables of a group in `count` rows from `first` on. rows[i] is the struct of row
 * first + i. A value of a variable that the file has not is noted in `found`. */
void dataset_put(struct dataset *set, int group, size_t first, size_t count,
                 const void *const *rows);
