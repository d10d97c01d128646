#include "results/nc_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_MAX = (int)PRECISION_COUNT > (int)LEVEL_COUNT ? PRECISION_COUNT : LEVEL_COUNT };

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

/* What a column has for each row: `width` elements, and of the member's elements those at `places`, -1
 * being nowhere. */
struct nc_elements {
    size_t width;
    int places[ELEMENTS_MAX];
};

static void doubles_put(const struct field *field, const double *column,
                        const struct nc_elements *elements, const struct nc_rows *rows)
{
    for (size_t row = 0; row < rows->count; ++row)
        for (size_t i = 0; i < field->size / sizeof *column; ++i) {
            int place = elements->places[i];
            double value =
                place < 0 ? NC_FILL_DOUBLE : column[row * elements->width + (size_t)place];
            ((double *)member(rows, row, field))[i] = value == NC_FILL_DOUBLE ? NAN : value;
        }
}

/* By their names, as versions differ in which there are. */
static void elements_match(const struct field *field, char *const *names,
                           struct nc_elements *elements)
{
    for (size_t i = 0; i < field_elements(field); ++i) {
        elements->places[i] = -1;
        for (size_t at = 0; at < elements->width; ++at)
            if (names[at] && strcmp(names[at], field_element_name(field, i)) == 0)
                elements->places[i] = (int)at;
    }
}

static bool elements_find(struct nc_reader *r, const struct field *field,
                          struct nc_elements *elements)
{
    const bool levels = field->type == FIELD_LEVELS;
    const char *of = levels ? "memory_level_name" : "precision_name";
    const size_t first = 0;
    int variable;
    elements->width = nc_reader_length(r, levels ? "memory_level" : "precision");
    char **names = calloc(elements->width + 1, sizeof *names);
    if (!names)
        return nc_reader_check(r, of, NC_ENOMEM);
    if (nc_reader_find(r, of, 1, &variable) &&
        nc_reader_check(r, of,
                        nc_get_vara_string(r->id, variable, &first, &elements->width, names))) {
        elements_match(field, names, elements);
        nc_free_string(elements->width, names);
    }
    free(names);
    return r->code == NC_NOERR;
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
    struct nc_elements elements = {.width = 1};
    int variable;
    if (rows->count == 0 || r->code != NC_NOERR ||
        !nc_reader_find(r, name, wide ? 2 : 1, &variable) ||
        (wide && !elements_find(r, field, &elements)))
        return;
    const size_t start[] = {rows->at, 0}, counts[] = {rows->count, elements.width};
    /* no element is wider than a double */
    void *column = calloc(rows->count, (elements.width + 1) * sizeof(double));
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
        doubles_put(field, column, &elements, rows);
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
