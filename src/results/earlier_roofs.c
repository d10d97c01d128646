#include "results/earlier_roofs.h"

#include <math.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/nc_reader.h"
#include "results/results_nc.h"

/* What is needed to know a device again. What else there is of it, the job finds out anew. */
#define D(member, type) FIELD(struct device, member, type, "", "")
static const struct field identity_fields[] = {
    D(uuid, FIELD_TEXT),
    D(driver_version, FIELD_TEXT),
    D(power_limit, FIELD_DOUBLE),
    {0},
};

/* A roof and the row of its device. */
struct roof_row {
    struct roof roof;
    int64_t device;
};

static void roofs_read(struct nc_reader *r, struct device *devices, size_t count)
{
    static const struct field device_field[] = {
        FIELD(struct roof_row, device, FIELD_INTEGER, "", ""), {0}};
    struct nc_rows rows = {.size = sizeof(struct roof_row),
                           .count = nc_reader_length(r, "device_roof")};
    struct roof_row *read = calloc(rows.count ? rows.count : 1, sizeof *read);
    if (!read) {
        nc_reader_check(r, "device_roof", NC_ENOMEM);
        return;
    }
    rows.first = read;
    for (size_t i = 0; i < rows.count; ++i)
        fields_clear(roof_fields, &read[i].roof);
    nc_reader_columns(r, device_field, "device_roof_", &rows);
    nc_reader_columns(r, roof_fields, "device_roof_", &rows); /* `roof` comes first */
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

static enum status devices_read(struct nc_reader *r, const char *path, struct device **devices,
                                size_t *count, struct error *error)
{
    size_t rows = nc_reader_length(r, "device");
    struct device *read = calloc(rows ? rows : 1, sizeof *read);
    if (!read)
        return error_set(error, STATUS_SYSTEM, "no memory for %zu devices", rows);
    for (size_t i = 0; i < rows && r->code == NC_NOERR; ++i) {
        device_init(&read[i]);
        snprintf(read[i].roofs_reused, sizeof read[i].roofs_reused, "%s", path);
    }
    const struct nc_rows identities = {.first = read, .size = sizeof *read, .count = rows};
    nc_reader_columns(r, identity_fields, "device_", &identities);
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

static enum status check_version(int file, const char *path, struct error *error)
{
    int version = 1;
    if (nc_get_att_int(file, NC_GLOBAL, "format_version", &version) != NC_NOERR)
        version = 1;
    if (version < RESULTS_NC_VERSION)
        return error_set(error, STATUS_USAGE,
                         "%s: an older version of roofsweep wrote it; its roofs were measured in "
                         "another way: measure them anew",
                         path);
    if (version > RESULTS_NC_VERSION)
        return error_set(error, STATUS_USAGE,
                         "%s: format version %d; this roofsweep knows up to %d: use a newer one",
                         path, version, RESULTS_NC_VERSION);
    return STATUS_OK;
}

enum status earlier_roofs_read(const char *path, struct device **devices, size_t *count,
                               struct error *error)
{
    struct nc_reader r = {.code = NC_NOERR};
    int code = nc_open(path, NC_NOWRITE, &r.id);
    if (code != NC_NOERR)
        return error_set(error, STATUS_USAGE, "%s: %s", path, nc_strerror(code));
    enum status status = check_version(r.id, path, error);
    if (status == STATUS_OK)
        status = devices_read(&r, path, devices, count, error);
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
