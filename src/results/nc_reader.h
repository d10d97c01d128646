/* A netCDF file while it is read back: columns of variables into the structs that field tables describe.
 *
 * The first failure is kept, and after it every call does nothing: a reader asks once, at the end. */
#ifndef ROOFSWEEP_NC_READER_H
#define ROOFSWEEP_NC_READER_H

#include <netcdf.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/field.h"

struct nc_reader {
    int id;                      /* of the open file */
    int code;                    /* the first error of netCDF */
    char place[NC_MAX_NAME + 1]; /* what it happened at */
};

/* Keeps `code`, what a call of netCDF about `place` returned; false if anything has failed. */
bool nc_reader_check(struct nc_reader *reader, const char *place, int code);

size_t nc_reader_length(struct nc_reader *reader, const char *dimension);
bool nc_reader_has(const struct nc_reader *reader, const char *variable);
/* A variable of so many dimensions; of others it is an error, as netCDF would look for more indices than it is
 * given. */
bool nc_reader_find(struct nc_reader *reader, const char *name, int rank, int *variable);

/* Where the rows of a table go, structs one behind the other; and the file's row of the first. */
struct nc_rows {
    void *first;
    size_t size, count, at;
};

/* A variable of any name as a field. */
void nc_reader_column(struct nc_reader *reader, const struct field *field, const char *name,
                      const struct nc_rows *rows);

/* Variables PREFIX + name of the fields. The first of a table is in every file; of another that the file lacks,
 * the members stay as they are. */
void nc_reader_columns(struct nc_reader *reader, const struct field *table, const char *prefix,
                       const struct nc_rows *rows);

#endif
