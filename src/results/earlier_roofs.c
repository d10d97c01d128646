#include "results/earlier_roofs.h"

#include <math.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is needed to know a device again. What else there is of it, the job finds out anew. */
#define D(member, type) FIELD(struct device, member, type, "", "")
static const struct field identity_fields[] = {
    D(uuid, FIELD_TEXT),
    D(driver_version, FIELD_TEXT),
    D(power_limit, FIELD_DOUBLE),
    {0},
};

/* `code` is netCDF's first error; after it, everything else does nothing. */
struct reader {
    int id;
    int code;
    char place[NC_MAX_NAME + 1]; /* what it happened at */
};

static bool check(struct reader *r, const char *place, int code)
{
    if (r->code == NC_NOERR && code != NC_NOERR) {
        r->code = code;
        snprintf(r->place, sizeof r->place, "%s", place);
    }
    return r->code == NC_NOERR;
}

static size_t length_of(struct reader *r, const char *dimension)
{
    int id;
    size_t length = 0;
    if (check(r, dimension, nc_inq_dimid(r->id, dimension, &id)))
        check(r, dimension, nc_inq_dimlen(r->id, id, &length));
    return r->code == NC_NOERR ? length : 0;
}

/* Of another rank, netCDF would look for more indices than it is given. */
static bool variable_find(struct reader *r, const char *name, int rank, int *variable)
{
    int found;
    return check(r, name, nc_inq_varid(r->id, name, variable)) &&
           check(r, name, nc_inq_varndims(r->id, *variable, &found)) &&
           check(r, name, found == rank ? NC_NOERR : NC_EBADDIM);
}

/* Where the rows of a table go: structs, one behind the other. */
struct rows {
    void *first;
    size_t size, count;
};

static void *member(const struct rows *rows, size_t row, const struct field *field)
{
    return (char *)rows->first + row * rows->size + field->offset;
}

static void texts_put(const struct field *field, char **column, const struct rows *rows)
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
                         const struct rows *rows)
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

static void doubles_put(const struct field *field, const double *column, const struct rows *rows)
{
    size_t width = field->size / sizeof *column;
    for (size_t row = 0; row < rows->count; ++row)
        for (size_t i = 0; i < width; ++i) {
            double value = column[row * width + i];
            ((double *)member(rows, row, field))[i] = value == NC_FILL_DOUBLE ? NAN : value;
        }
}

/* What no device of a file can have, the file lacks. */
static bool absent(const struct reader *r, const char *name)
{
    int unused;
    return nc_inq_varid(r->id, name, &unused) == NC_ENOTVAR;
}

/* The whole column at once: netCDF takes long for each single value. The first of a table is in every
 * result. */
static void column_read(struct reader *r, const struct field *table, const struct field *field,
                        const char *name, const struct rows *rows)
{
    bool wide = field->type == FIELD_LEVELS || field->type == FIELD_PRECISIONS;
    size_t width = wide ? field->size / sizeof(double) : 1;
    const size_t start[] = {0, 0}, counts[] = {rows->count, width};
    int variable;
    if (rows->count == 0 || (field != table && absent(r, name)) ||
        !variable_find(r, name, wide ? 2 : 1, &variable))
        return;
    void *column = calloc(rows->count, width * sizeof(double)); /* no element is wider */
    if (!column) {
        check(r, name, NC_ENOMEM);
        return;
    }
    if (field->type == FIELD_TEXT || field->type == FIELD_OUTCOME || field->type == FIELD_WORD) {
        if (check(r, name, nc_get_vara_string(r->id, variable, start, counts, column)))
            texts_put(field, column, rows);
    } else if (field->type == FIELD_INTEGER || field->type == FIELD_FLAG) {
        if (check(r, name, nc_get_vara_longlong(r->id, variable, start, counts, column)))
            integers_put(field, column, rows);
    } else if (check(r, name, nc_get_vara_double(r->id, variable, start, counts, column))) {
        doubles_put(field, column, rows);
    }
    free(column);
}

static void columns_read(struct reader *r, const struct field *table, const char *prefix,
                         const struct rows *rows)
{
    for (const struct field *field = table; field->name && r->code == NC_NOERR; ++field) {
        char name[NC_MAX_NAME + 1];
        snprintf(name, sizeof name, "%s%s", prefix, field->name);
        column_read(r, table, field, name, rows);
    }
}

/* A roof and the row of its device. */
struct roof_row {
    struct roof roof;
    int64_t device;
};

static void roofs_read(struct reader *r, struct device *devices, size_t count)
{
    static const struct field device_field[] = {
        FIELD(struct roof_row, device, FIELD_INTEGER, "", ""), {0}};
    struct rows rows = {.size = sizeof(struct roof_row), .count = length_of(r, "device_roof")};
    struct roof_row *read = calloc(rows.count ? rows.count : 1, sizeof *read);
    if (!read) {
        check(r, "device_roof", NC_ENOMEM);
        return;
    }
    rows.first = read;
    for (size_t i = 0; i < rows.count; ++i)
        fields_clear(roof_fields, &read[i].roof);
    columns_read(r, device_field, "device_roof_", &rows);
    columns_read(r, roof_fields, "device_roof_", &rows); /* `roof` comes first */
    for (size_t i = 0; i < rows.count && r->code == NC_NOERR; ++i)
        if (read[i].device >= 0 && (uint64_t)read[i].device < count)
            device_add_roof(&devices[read[i].device], &read[i].roof);
    free(read);
}

static size_t devices_with_roofs(struct device *devices, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i)
        if (devices[i].roof_count > 0)
            devices[kept++] = devices[i];
    return kept;
}

static enum status devices_read(struct reader *r, const char *path, struct device **devices,
                                size_t *count, struct error *error)
{
    size_t rows = length_of(r, "device");
    struct device *read = calloc(rows ? rows : 1, sizeof *read);
    if (!read)
        return error_set(error, STATUS_SYSTEM, "no memory for %zu devices", rows);
    for (size_t i = 0; i < rows && r->code == NC_NOERR; ++i) {
        device_init(&read[i]);
        snprintf(read[i].roofs_reused, sizeof read[i].roofs_reused, "%s", path);
    }
    columns_read(r, identity_fields, "device_", &(struct rows){read, sizeof *read, rows});
    roofs_read(r, read, rows);
    rows = devices_with_roofs(read, rows);
    if (r->code == NC_NOERR && rows > 0) {
        *devices = read;
        *count = rows;
        return STATUS_OK;
    }
    free(read);
    if (r->code != NC_NOERR)
        return error_set(error, STATUS_USAGE,
                         "%s: %s: %s; roofs can be taken from a result of this roofsweep only",
                         path, r->place, nc_strerror(r->code));
    return error_set(error, STATUS_USAGE, "%s: none of its devices has roofs", path);
}

enum status earlier_roofs_read(const char *path, struct device **devices, size_t *count,
                               struct error *error)
{
    struct reader r = {.code = NC_NOERR};
    int code = nc_open(path, NC_NOWRITE, &r.id);
    if (code != NC_NOERR)
        return error_set(error, STATUS_USAGE, "%s: %s", path, nc_strerror(code));
    enum status status = devices_read(&r, path, devices, count, error);
    nc_close(r.id);
    return status;
}

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

const struct device *earlier_roofs_find(const struct device *devices, size_t count,
                                        const struct device *device)
{
    const struct device *best = NULL;
    for (size_t i = 0; i < count; ++i)
        if (strcmp(devices[i].uuid, device->uuid) == 0 &&
            strcmp(devices[i].driver_version, device->driver_version) == 0 &&
            same_number(devices[i].power_limit, device->power_limit) &&
            (!best || devices[i].roof_count >= best->roof_count))
            best = &devices[i];
    return best;
}
