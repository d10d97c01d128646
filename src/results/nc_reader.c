#include "results/nc_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool nc_reader_check(struct nc_reader *r, const char *place, int code)
{
    if (r->code == NC_NOERR && code != NC_NOERR) {
        r->code = code;
        snprintf(r->place, sizeof r->place, "%s", place);
    }
    return r->code == NC_NOERR;
}

size_t nc_reader_length(struct nc_reader *r, const char *dimension)
{
    int id;
    size_t length = 0;
    if (nc_reader_check(r, dimension, nc_inq_dimid(r->id, dimension, &id)))
        nc_reader_check(r, dimension, nc_inq_dimlen(r->id, id, &length));
    return r->code == NC_NOERR ? length : 0;
}

bool nc_reader_find(struct nc_reader *r, const char *name, int rank, int *variable)
{
    int found;
    return nc_reader_check(r, name, nc_inq_varid(r->id, name, variable)) &&
           nc_reader_check(r, name, nc_inq_varndims(r->id, *variable, &found)) &&
           nc_reader_check(r, name, found == rank ? NC_NOERR : NC_EBADDIM);
}

static void *member(const struct nc_rows *rows, size_t row, const struct field *field)
{
    return (char *)rows->first + row * rows->size + field->offset;
}

static void texts_put(const struct field *field, char **column, const struct nc_rows *rows)
{
    for (size_t row = 0; row < rows->count; ++row) {
        const char *text = column[row] ? column[row] : "";
        void *at = member(rows, row, field);
        if (field->type == FIELD_OUTCOME) /* a word that it does not know leaves it missing */
            outcome_parse(text, field->flags, at);
        else if (field->type == FIELD_WORD)
            word_set(at, field->words, text);
        else
            snprintf(at, field->size, "%s", text);
    }
    nc_free_string(rows->count, column);
}

/* A flag that the file does not know is one more value than it has names for: missing. */
static void integers_put(const struct field *field, const long long *column,
                         const struct nc_rows *rows)
{
    long long flags = 0;
    while (field->flags && field->flags[flags])
        ++flags;
    for (size_t row = 0; row < rows->count; ++row) {
        long long value = column[row];
        bool known =
            field->type == FIELD_FLAG ? value >= 0 && value < flags : value != NC_FILL_INT64;
        *(int64_t *)member(rows, row, field) = known ? value : FIELD_MISSING;
    }
}

static void doubles_put(const struct field *field, const double *column, const struct nc_rows *rows)
{
    size_t width = field->size / sizeof *column;
    for (size_t row = 0; row < rows->count; ++row)
        for (size_t i = 0; i < width; ++i) {
            double value = column[row * width + i];
            ((double *)member(rows, row, field))[i] = value == NC_FILL_DOUBLE ? NAN : value;
        }
}

bool nc_reader_has(const struct nc_reader *r, const char *variable)
{
    int unused;
    return nc_inq_varid(r->id, variable, &unused) == NC_NOERR;
}

/* The whole column at once: netCDF takes long for each single value. */
void nc_reader_column(struct nc_reader *r, const struct field *field, const char *name,
                      const struct nc_rows *rows)
{
    bool wide = field->type == FIELD_LEVELS || field->type == FIELD_PRECISIONS;
    size_t width = wide ? field->size / sizeof(double) : 1;
    const size_t start[] = {rows->at, 0}, counts[] = {rows->count, width};
    int variable;
    if (rows->count == 0 || r->code != NC_NOERR ||
        !nc_reader_find(r, name, wide ? 2 : 1, &variable))
        return;
    void *column = calloc(rows->count, width * sizeof(double)); /* no element is wider */
    if (!column) {
        nc_reader_check(r, name, NC_ENOMEM);
        return;
    }
    if (field->type == FIELD_TEXT || field->type == FIELD_OUTCOME || field->type == FIELD_WORD) {
        if (nc_reader_check(r, name, nc_get_vara_string(r->id, variable, start, counts, column)))
            texts_put(field, column, rows);
    } else if (field->type == FIELD_INTEGER || field->type == FIELD_FLAG) {
        if (nc_reader_check(r, name, nc_get_vara_longlong(r->id, variable, start, counts, column)))
            integers_put(field, column, rows);
    } else if (nc_reader_check(r, name,
                               nc_get_vara_double(r->id, variable, start, counts, column))) {
        doubles_put(field, column, rows);
    }
    free(column);
}

void nc_reader_columns(struct nc_reader *r, const struct field *table, const char *prefix,
                       const struct nc_rows *rows)
{
    for (const struct field *field = table; field->name && r->code == NC_NOERR; ++field) {
        char name[NC_MAX_NAME + 1];
        snprintf(name, sizeof name, "%s%s", prefix, field->name);
        if (field == table || nc_reader_has(r, name))
            nc_reader_column(r, field, name, rows);
    }
}
