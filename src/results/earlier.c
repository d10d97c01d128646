#include "results/earlier.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "results/results_nc.h"

/* ---- columns of variables into the structs that field tables describe ---- */

enum { DEVICES_MOST = 1 << 14, DEVICE_ROOFS_MOST = 1 << 20, LEVELS_MOST = 64, ROWS_MOST = 1 << 24 };
enum { BLOCK = 1 << 7 }; /* rows of configurations that are read at once */

/* The first failure is kept, and after it every call does nothing: a reader asks once, at the
 * end. */
struct reader {
    int id;                      /* of the open file */
    int code;                    /* the first error of netCDF */
    char place[NC_MAX_NAME + 1]; /* what it happened at */
};

/* Keeps `code`, what a call of netCDF about `place` returned; false if anything has failed. */
static bool check(struct reader *r, const char *place, int code)
{
    if (r->code == NC_NOERR && code != NC_NOERR) {
        r->code = code;
        snprintf(r->place, sizeof r->place, "%s", place);
    }
    return r->code == NC_NOERR;
}

/* A file may claim any length: beyond `most` nothing is read, and no memory taken. */
static size_t length_of(struct reader *r, const char *dimension, size_t most)
{
    int id;
    size_t length = 0;
    if (check(r, dimension, nc_inq_dimid(r->id, dimension, &id)) &&
        check(r, dimension, nc_inq_dimlen(r->id, id, &length)))
        check(r, dimension, length <= most ? NC_NOERR : NC_EDIMSIZE);
    return r->code == NC_NOERR ? length : 0;
}

/* A variable of so many dimensions; of others it is an error, as netCDF would look for more indices
 * than it is given. */
static bool variable_find(struct reader *r, const char *name, int rank, int *variable)
{
    int found;
    return check(r, name, nc_inq_varid(r->id, name, variable)) &&
           check(r, name, nc_inq_varndims(r->id, *variable, &found)) &&
           check(r, name, found == rank ? NC_NOERR : NC_EBADDIM);
}

/* Where the rows of a table go: structs one after the other. */
struct rows {
    void *first;
    size_t size, count;
    size_t from; /* the file's row that comes first */
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
        if (field->type == FIELD_WORD)
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

/* Names of the file's memory levels; the caller frees them. */
static char **levels_read(struct reader *r, size_t *count)
{
    const size_t first = 0;
    int variable;
    const bool today = nc_inq_varid(r->id, "memory_level", &variable) == NC_NOERR;
    const char *of = today ? "memory_level" : "memory_level_name"; /* before format 3 */
    *count = length_of(r, "memory_level", LEVELS_MOST);
    char **names = calloc(*count + 1, sizeof *names);
    check(r, of, names ? NC_NOERR : NC_ENOMEM);
    if (variable_find(r, of, 1, &variable))
        check(r, of, nc_get_vara_string(r->id, variable, &first, count, names));
    return names;
}

/* The member's levels have the file's of the same name, as versions differ in which there are. A
 * single number has no names. */
static void doubles_put(const struct field *field, const double *column, char *const *names,
                        size_t width, const struct rows *rows)
{
    for (size_t i = 0; i < field->size / sizeof *column; ++i) {
        size_t place = 0;
        while (names && place < width &&
               !(names[place] && strcmp(names[place], field_element_name(field, i)) == 0))
            ++place;
        for (size_t row = 0; row < rows->count; ++row) {
            double value = place < width ? column[row * width + place] : NC_FILL_DOUBLE;
            ((double *)member(rows, row, field))[i] = value == NC_FILL_DOUBLE ? NAN : value;
        }
    }
}

/* The whole column at once: netCDF takes long for each single value. */
static void column_read(struct reader *r, const struct field *field, const char *name,
                        const struct rows *rows)
{
    bool wide = field->type == FIELD_LEVELS;
    size_t width = 1;
    int variable;
    if (rows->count == 0 || !variable_find(r, name, wide ? 2 : 1, &variable))
        return;
    char **names = wide ? levels_read(r, &width) : NULL;
    const size_t start[] = {rows->from, 0}, counts[] = {rows->count, width};
    /* no element is wider than a double */
    void *column = calloc(rows->count, (width + 1) * sizeof(double));
    check(r, name, column ? NC_NOERR : NC_ENOMEM);
    if (!column || r->code != NC_NOERR) {
        /* nothing is read */
    } else if (field->type == FIELD_TEXT || field->type == FIELD_WORD) {
        if (check(r, name, nc_get_vara_string(r->id, variable, start, counts, column)))
            texts_put(field, column, rows);
    } else if (field->type == FIELD_INTEGER || field->type == FIELD_FLAG) {
        if (check(r, name, nc_get_vara_longlong(r->id, variable, start, counts, column)))
            integers_put(field, column, rows);
    } else if (check(r, name, nc_get_vara_double(r->id, variable, start, counts, column))) {
        doubles_put(field, column, names, width, rows);
    }
    if (names)
        nc_free_string(width, names);
    free(names);
    free(column);
}

/* Variables PREFIX + name of the fields. The first of a table is in every file; of another that the
 * file lacks, the members stay as they are. */
static void columns_read(struct reader *r, const struct field *table, const char *prefix,
                         const struct rows *rows)
{
    for (const struct field *field = table; field->name && r->code == NC_NOERR; ++field) {
        char name[NC_MAX_NAME + 1];
        int unused;
        snprintf(name, sizeof name, "%s%s", prefix, field->name);
        if (field == table || nc_inq_varid(r->id, name, &unused) == NC_NOERR)
            column_read(r, field, name, rows);
    }
}

/* ---- devices and their roofs ---- */

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

static void roofs_read(struct reader *r, struct device *devices, size_t count)
{
    static const struct field device_field[] = {
        FIELD(struct roof_row, device, FIELD_INTEGER, "", ""), {0}};
    struct rows rows = {.size = sizeof(struct roof_row),
                        .count = length_of(r, "device_roof", DEVICE_ROOFS_MOST)};
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

static enum status devices_read(struct reader *r, const char *path, void **devices, size_t *count,
                                struct error *error)
{
    size_t rows = length_of(r, "device", DEVICES_MOST);
    struct device *read = calloc(rows ? rows : 1, sizeof *read);
    if (!read)
        return error_set(error, STATUS_SYSTEM, "no memory for %zu devices", rows);
    for (size_t i = 0; i < rows && r->code == NC_NOERR; ++i) {
        device_init(&read[i]);
        snprintf(read[i].roofs_reused, sizeof read[i].roofs_reused, "%s", path);
    }
    const struct rows identities = {.first = read, .size = sizeof *read, .count = rows};
    columns_read(r, identity_fields, "device_", &identities);
    roofs_read(r, read, rows);
    rows = devices_with_roofs(read, rows);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < rows && r->code == NC_NOERR && status == STATUS_OK; ++i)
        status = device_check(&read[i], error);
    if (status)
        status = error_prefix(error, STATUS_USAGE, "%s", path);
    else if (r->code == NC_NOERR && rows == 0)
        status = error_set(error, STATUS_USAGE, "%s: none of its devices has roofs", path);
    *devices = read;
    *count = rows;
    return status;
}

/* ---- algorithms of searches ---- */

#define O(member) FIELD(struct algorithm_owner, member, FIELD_TEXT, "", "")
static const struct field owner_fields[] = {
    O(model),
    O(library_version),
    O(driver_version),
    {0},
};
#define C(member, type) FIELD(struct earlier_algorithm, member, type, "", "")
static const struct field row_fields[] = {
    C(config_hash, FIELD_TEXT),
    C(config_device, FIELD_INTEGER),
    C(status, FIELD_INTEGER),
    C(start_time, FIELD_DOUBLE),
    {0},
};

/* A search chose, in this row or before it. Only what names its kernels can be taken: a worker
 * checks that it still runs these. */
static bool row_has_algorithm(const struct earlier_algorithm *row, size_t devices)
{
    return row->status == RECORD_MEASURED && row->config_device >= 0 &&
           (uint64_t)row->config_device < devices && algorithm_is_known(&row->algorithm) &&
           row->algorithm.algorithm_id[0] && !isnan(row->algorithm.search_time);
}

/* In blocks, as most rows of a large file may have nothing to keep. A file in which no row searched
 * lacks search_time, and one without known kernels algorithm_id. */
static enum status algorithms_read(struct reader *r, const char *path, void **algorithms,
                                   size_t *count, struct error *error)
{
    const size_t devices = length_of(r, "device", DEVICES_MOST);
    const size_t rows = length_of(r, "config", ROWS_MOST);
    struct algorithm_owner *owners = calloc(devices + 1, sizeof *owners);
    struct earlier_algorithm *kept = NULL, *longer = NULL;
    size_t found = 0, from = 0;
    int unused;
    bool more = owners && rows > 0 && nc_inq_varid(r->id, "algorithm_id", &unused) == NC_NOERR &&
                nc_inq_varid(r->id, "search_time", &unused) == NC_NOERR;
    if (more)
        columns_read(r, owner_fields, "device_",
                     &(struct rows){owners, sizeof *owners, devices, 0});
    while (more && (longer = realloc(kept, (found + BLOCK) * sizeof *kept))) {
        kept = longer;
        memset(&kept[found], 0, BLOCK * sizeof *kept);
        struct rows block = {&kept[found], sizeof *kept, 0, from};
        while (block.count < BLOCK && from < rows) {
            algorithm_init(&kept[found + block.count++].algorithm);
            ++from;
        }
        columns_read(r, row_fields, "", &block);
        columns_read(r, algorithm_fields, "", &block); /* `algorithm` comes first */
        more = from < rows && r->code == NC_NOERR;
        for (size_t i = 0, first = found; i < block.count && r->code == NC_NOERR; ++i)
            if (row_has_algorithm(&kept[first + i], devices)) {
                kept[found] = kept[first + i];
                kept[found].owner = owners[kept[found].config_device];
                ++found;
            }
    }
    const bool enough = owners && !more;
    free(owners);
    *algorithms = kept;
    *count = found;
    return enough ? STATUS_OK : error_set(error, STATUS_SYSTEM, "%s: no memory for its rows", path);
}

/* ---- the file ---- */

/* Takes all items of one kind from a file. */
typedef enum status items_read(struct reader *r, const char *path, void **items, size_t *count,
                               struct error *error);

static enum status check_version(int file, const char *path, struct error *error)
{
    int version = 1, unused;
    size_t count;
    if (nc_inq_attlen(file, NC_GLOBAL, "format_version", &count) != NC_NOERR || count != 1 ||
        nc_get_att_int(file, NC_GLOBAL, "format_version", &version) != NC_NOERR)
        version = 1;
    if (version == 1 && nc_inq_varid(file, "device_uuid", &unused) != NC_NOERR)
        return error_set(error, STATUS_USAGE, "%s: roofsweep did not write it", path);
    if (version < RESULTS_NC_OLDEST)
        return error_set(error, STATUS_USAGE,
                         "%s: an older version of roofsweep wrote it, which measured in another "
                         "way: measure anew",
                         path);
    if (version > RESULTS_NC_VERSION)
        return error_set(error, STATUS_USAGE,
                         "%s: format version %d; this roofsweep knows up to %d: use a newer one",
                         path, version, RESULTS_NC_VERSION);
    return STATUS_OK;
}

static enum status file_read(const char *path, items_read *read, void **items, size_t *count,
                             struct error *error)
{
    struct reader r = {.code = NC_NOERR};
    int code = nc_open(path, NC_NOWRITE, &r.id);
    if (code != NC_NOERR)
        return error_set(error, STATUS_USAGE, "%s: %s", path, nc_strerror(code));
    enum status status = check_version(r.id, path, error);
    if (status == STATUS_OK)
        status = read(&r, path, items, count, error);
    if (status == STATUS_OK && r.code != NC_NOERR)
        status =
            error_set(error, STATUS_USAGE, "%s: %s: %s; name a result that this roofsweep wrote",
                      path, r.place, nc_strerror(r.code));
    nc_close(r.id);
    return status;
}

/* What the process that reads tells before the items. */
struct answer {
    enum status status;
    size_t count;
    struct error error;
};

static _Noreturn void answer_write(int to, const char *path, items_read *read, size_t size)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE};
    struct answer answer = {.status = STATUS_OK};
    void *items = NULL;
    FILE *stream = fdopen(to, "w");
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; ++i)
        signal(crashes[i], SIG_DFL); /* MPI's handlers would tell of them */
    answer.status = file_read(path, read, &items, &answer.count, &answer.error);
    if (answer.status)
        answer.count = 0;
    if (!stream || fwrite(&answer, sizeof answer, 1, stream) != 1 ||
        (items && fwrite(items, size, answer.count, stream) != answer.count) || fclose(stream))
        _exit(EXIT_FAILURE);
    _exit(EXIT_SUCCESS);
}

/* HDF5 crashes over many damaged files, so that the file is read in a process of its own. */
static enum status process_read(const char *path, items_read *reading, size_t size, void **items,
                                size_t *count, struct error *error)
{
    struct answer answer;
    void *read = NULL;
    FILE *stream; /* that it can be read, and no pipe: netCDF would wait for one */
    int ends[2];
    pid_t reader = -1;
    if (file_open(path, &stream, error))
        return STATUS_USAGE;
    fclose(stream);
    if (pipe2(ends, O_CLOEXEC) != 0 || !(stream = fdopen(ends[0], "r")) || (reader = fork()) < 0)
        return error_set(error, STATUS_SYSTEM, "%s: cannot start a process that reads it: %s", path,
                         strerror(errno));
    if (reader == 0)
        answer_write(ends[1], path, reading, size);
    close(ends[1]);
    bool whole = fread(&answer, sizeof answer, 1, stream) == 1 &&
                 (read = calloc(answer.count + 1, size)) &&
                 fread(read, size, answer.count, stream) == answer.count;
    fclose(stream);
    waitpid(reader, NULL, 0);
    if (whole && answer.status == STATUS_OK) {
        *items = read;
        *count = answer.count;
        return STATUS_OK;
    }
    free(read);
    if (!whole)
        return error_set(error, STATUS_USAGE,
                         "%s: the file is damaged, HDF5 crashed over it; name another one", path);
    *error = answer.error;
    return answer.status;
}

enum status earlier_roofs_read(const char *path, struct device **devices, size_t *count,
                               struct error *error)
{
    void *items;
    TRY(process_read(path, devices_read, sizeof **devices, &items, count, error));
    *devices = items;
    return STATUS_OK;
}

enum status earlier_algorithms_read(const char *path, struct earlier_algorithm **algorithms,
                                    size_t *count, struct error *error)
{
    void *items;
    TRY(process_read(path, algorithms_read, sizeof **algorithms, &items, count, error));
    *algorithms = items;
    return STATUS_OK;
}

bool earlier_is_result(const char *path)
{
    static const char hdf5[] = {'\x89', 'H', 'D', 'F'}; /* how a netCDF-4 file begins */
    return file_begins(path, hdf5, sizeof hdf5);
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
