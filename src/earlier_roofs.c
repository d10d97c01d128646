#include "earlier_roofs.h"

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

static void text_read(struct reader *r, const char *name, int variable, size_t row, char *text,
                      size_t size)
{
    char *value = NULL;
    if (!check(r, name, nc_get_var1_string(r->id, variable, &row, &value)))
        return;
    snprintf(text, size, "%s", value ? value : "");
    nc_free_string(1, &value);
}

static void doubles_read(struct reader *r, const char *name, int variable, size_t row, size_t count,
                         double *values)
{
    const size_t start[] = {row, 0}, counts[] = {1, count};
    if (!check(r, name, nc_get_vara_double(r->id, variable, start, counts, values)))
        return;
    for (size_t i = 0; i < count; ++i)
        values[i] = values[i] == NC_FILL_DOUBLE ? NAN : values[i];
}

/* A flag that the file does not know is one more value than it has names for: missing. */
static void integer_read(struct reader *r, const struct field *field, const char *name,
                         int variable, size_t row, int64_t *value)
{
    long long read = 0, flags = 0;
    if (!check(r, name, nc_get_var1_longlong(r->id, variable, &row, &read)))
        return;
    while (field->flags && field->flags[flags])
        ++flags;
    bool known = field->flags ? read >= 0 && read < flags : read != NC_FILL_INT64;
    *value = known ? read : FIELD_MISSING;
}

static void field_read(struct reader *r, const struct field *field, const char *prefix, size_t row,
                       void *structure)
{
    char name[NC_MAX_NAME + 1];
    int variable;
    void *at = (char *)structure + field->offset;
    snprintf(name, sizeof name, "%s%s", prefix, field->name);
    if (!check(r, name, nc_inq_varid(r->id, name, &variable)))
        return;
    if (field->type == FIELD_TEXT)
        text_read(r, name, variable, row, at, field->size);
    else if (field->type == FIELD_INTEGER || field->type == FIELD_FLAG)
        integer_read(r, field, name, variable, row, at);
    else
        doubles_read(r, name, variable, row, field->size / sizeof(double), at);
}

static void fields_read(struct reader *r, const struct field *table, const char *prefix, size_t row,
                        void *structure)
{
    fields_clear(table, structure);
    for (const struct field *field = table; field->name && r->code == NC_NOERR; ++field)
        field_read(r, field, prefix, row, structure);
}

static void roofs_read(struct reader *r, struct device *devices, size_t count)
{
    size_t roofs = length_of(r, "device_roof");
    int variable = -1;
    check(r, "device_roof_device", nc_inq_varid(r->id, "device_roof_device", &variable));
    for (size_t row = 0; row < roofs && r->code == NC_NOERR; ++row) {
        struct roof roof;
        long long device = -1;
        check(r, "device_roof_device", nc_get_var1_longlong(r->id, variable, &row, &device));
        fields_read(r, roof_fields, "device_roof_", row, &roof);
        if (r->code == NC_NOERR && device >= 0 && (size_t)device < count)
            device_add_roof(&devices[device], &roof);
    }
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
        fields_read(r, identity_fields, "device_", i, &read[i]);
        snprintf(read[i].roofs_reused, sizeof read[i].roofs_reused, "%s", path);
    }
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
