#include "results/dataset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* A chunk has at most CHUNK_ROWS elements in the first dimension, and CHUNK_ELEMENTS in all. Rows
 * are written in order, so HDF5 caches only the last CACHED chunks of a variable, in a hash table
 * with SLOTS slots. */
enum { CHUNK_ROWS = 1024, CHUNK_ELEMENTS = 65536, CACHED = 2, SLOTS = 7 };

static const char *const dimension_name[DIM_COUNT] = {
    "config",       "kernel",   "device", "node",  "device_roof", "link",      "number_format",
    "memory_level", "activity", "sample", "round", "health",      "wall_part", "part"};

bool dataset_failed(const struct dataset *set)
{
    return set->code != NC_NOERR || set->no_memory;
}

/* Keeps the first error of netCDF, and `place`, the variable or dimension that it concerns. netCDF
 * reports a full disk as "HDF error", and a lack of descriptors as "Permission denied"; errno still
 * has the cause. */
static void dataset_check(struct dataset *set, const char *place, int code)
{
    int cause = errno;
    errno = 0; /* errno of an earlier call must not explain a later one */
    if (code == NC_NOERR || dataset_failed(set))
        return;
    set->code = code;
    set->cause = cause;
    snprintf(set->place, sizeof set->place, "%s", place);
}

void dataset_prepare(void)
{
    int id; /* id of a file in memory; the first file of a process initialises the libraries */
    if (nc_create("nameless", NC_NETCDF4 | NC_DISKLESS, &id) == NC_NOERR)
        nc_abort(id);
}

void dataset_create(struct dataset *set, const char *path)
{
    if (dataset_failed(set))
        return;
    errno = 0;
    int code = nc_create(path, NC_NETCDF4 | NC_CLOBBER, &set->id);
    set->open = code == NC_NOERR;
    dataset_check(set, "start of file", code);
    for (int i = 0; i < DIM_COUNT && !dataset_failed(set); ++i) {
        size_t length = i == DIM_CONFIG ? NC_UNLIMITED : set->lengths[i];
        if (i != DIM_CONFIG && length == 0)
            continue;
        dataset_check(set, dimension_name[i],
                      nc_def_dim(set->id, dimension_name[i], length, &set->dimensions[i]));
    }
}

enum status dataset_close(struct dataset *set, struct error *error)
{
    if (set->open)
        dataset_check(set, "end of file", nc_close(set->id));
    set->open = false;
    for (size_t i = 0; i < set->column_count; ++i)
        free((char *)set->columns[i].field.name);
    free(set->columns);
    set->columns = NULL;
    set->column_count = 0;
    if (set->no_memory)
        return error_set(error, STATUS_SYSTEM, "no memory for the netCDF file");
    if (set->code != NC_NOERR)
        return error_set(error, STATUS_SYSTEM, "netCDF cannot make '%s': %s%s%s", set->place,
                         nc_strerror(set->code), set->cause ? ": " : "",
                         set->cause ? strerror(set->cause) : "");
    return STATUS_OK;
}

void *dataset_allocate(struct dataset *set, size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    set->no_memory = set->no_memory || !memory;
    return memory;
}

void dataset_attribute(struct dataset *set, int variable, const char *name, const char *text)
{
    dataset_check(set, name, nc_put_att_text(set->id, variable, name, strlen(text), text));
}

void dataset_attribute_integer(struct dataset *set, const char *name, int value)
{
    dataset_check(set, name, nc_put_att_int(set->id, NC_GLOBAL, name, NC_INT, 1, &value));
}

static size_t at_most(size_t value, size_t limit)
{
    return value < limit ? value : limit;
}

static void define_storage(struct dataset *set, const char *name, int variable, nc_type type,
                           enum dimension rows, size_t width)
{
    size_t height = at_most(CHUNK_ELEMENTS / width, CHUNK_ROWS);
    size_t chunk[2] = {at_most(set->lengths[rows], height ? height : 1), width};
    chunk[0] = chunk[0] ? chunk[0] : 1;
    size_t bytes = chunk[0] * chunk[1] * (type == NC_STRING ? 2 * sizeof(void *) : sizeof(double));
    dataset_check(set, name, nc_def_var_chunking(set->id, variable, NC_CHUNKED, chunk));
    dataset_check(set, name, nc_set_var_chunk_cache(set->id, variable, CACHED * bytes, SLOTS, 1));
    if (type == NC_STRING) /* HDF5 cannot compress texts of variable length */
        return;
    dataset_check(set, name, nc_def_var_fletcher32(set->id, variable, NC_FLETCHER32));
    dataset_check(set, name, nc_def_var_deflate(set->id, variable, 1, 1, 1));
}

/* Sets netCDF's default fill values. xarray reads them as NaN; NaN cannot be the fill value,
 * because NCO and CDO cannot skip it. Texts need no fill value, since every text is written; HDF5
 * would store and free one for each row, which took most of the time of a large file. */
static void define_fill(struct dataset *set, const char *name, int variable, nc_type type)
{
    const double fill_double = NC_FILL_DOUBLE;
    const long long fill_integer = NC_FILL_INT64;
    const char *none = NULL;
    const void *fill = type == NC_DOUBLE  ? (const void *)&fill_double
                       : type == NC_INT64 ? (const void *)&fill_integer
                                          : (const void *)&none;
    dataset_check(set, name, nc_def_var_fill(set->id, variable, NC_FILL, fill));
    if (type == NC_STRING)
        dataset_check(set, name, nc_del_att(set->id, variable, "_FillValue"));
}

/* By type of a field: type of its variable, and second dimension. */
static const struct {
    nc_type type;
    enum dimension inner;
} storage[] = {
    [FIELD_TEXT] = {NC_STRING, DIM_NONE},
    [FIELD_INTEGER] = {NC_INT64, DIM_NONE},
    [FIELD_DOUBLE] = {NC_DOUBLE, DIM_NONE},
    [FIELD_FLAG] = {NC_BYTE, DIM_NONE},
    [FIELD_OUTCOME] = {NC_STRING, DIM_NONE},
    [FIELD_WORD] = {NC_STRING, DIM_NONE},
    [FIELD_LEVELS] = {NC_DOUBLE, DIM_LEVEL},
    [FIELD_PRECISIONS] = {NC_DOUBLE, DIM_FORMAT},
    [FIELD_SAMPLES] = {NC_DOUBLE, DIM_SAMPLE},
    [FIELD_HEALTH] = {NC_DOUBLE, DIM_HEALTH},
    [FIELD_PARTS] = {NC_DOUBLE, DIM_PART},
    [FIELD_ACTIVITIES] = {NC_DOUBLE, DIM_ACTIVITY},
    [FIELD_TIME_PARTS] = {NC_DOUBLE, DIM_TIME_PART},
    [FIELD_ROUNDS] = {NC_DOUBLE, DIM_ROUND},
};

/* Only quantities have units, not texts, flags and bits. By CF, counts and fractions need no unit.
 */
static void define_attributes(struct dataset *set, int variable, const struct field *field)
{
    bool quantity = storage[field->type].type != NC_STRING && !field->flags;
    if (quantity && field->units && strcmp(field->units, "1") != 0)
        dataset_attribute(set, variable, "units", field->units);
    dataset_attribute(set, variable, "long_name", field->long_name);
    if (field->comment)
        dataset_attribute(set, variable, "comment", field->comment);
    if (field->origin == FIELD_DERIVED)
        dataset_attribute(set, variable, "source", "derived from what was measured");
}

/* Writes the words of a flag, or of a mask's bits. Flags have no fill value, because xarray would
 * convert their integers to floats; a missing flag is a further value, "unknown". */
static void define_meanings(struct dataset *set, const char *name, int variable,
                            const struct field *field)
{
    const bool bits = field->type == FIELD_INTEGER;
    char meanings[256] = "";
    long long values[64];
    size_t count = 0, used = 0;
    for (; field->flags[count]; ++count) {
        used += (size_t)snprintf(meanings + used, sizeof meanings - used, "%s%s", count ? " " : "",
                                 field->flags[count]);
        values[count] = bits ? 1LL << count : (long long)count;
    }
    if (!bits && !field->flags_known) {
        snprintf(meanings + used, sizeof meanings - used, " unknown");
        values[count] = (long long)count;
        ++count;
    }
    dataset_check(set, name,
                  nc_put_att_longlong(set->id, variable, bits ? "flag_masks" : "flag_values",
                                      bits ? NC_INT64 : NC_BYTE, count, values));
    dataset_attribute(set, variable, "flag_meanings", meanings);
}

static signed char flag_of(const struct field *field, int64_t value)
{
    if (value != FIELD_MISSING)
        return (signed char)value;
    signed char unknown = 0;
    while (field->flags[unknown])
        ++unknown;
    return unknown;
}

/* Copies a field of one struct to element `row` of the array that netCDF writes. */
static void gather(const struct field *field, const void *structure, size_t row, size_t width,
                   void *data)
{
    const void *at = (const char *)structure + field->offset;
    if (field->type == FIELD_TEXT) {
        ((const char **)data)[row] = at;
    } else if (field->type == FIELD_WORD) {
        ((const char **)data)[row] = word_text(at, field->words);
    } else if (field->type == FIELD_FLAG) {
        ((signed char *)data)[row] = flag_of(field, *(const int64_t *)at);
    } else if (field->type == FIELD_INTEGER) {
        int64_t value = *(const int64_t *)at;
        ((long long *)data)[row] = value == FIELD_MISSING ? NC_FILL_INT64 : value;
    } else {
        for (size_t i = 0; i < width; ++i) {
            double value = ((const double *)at)[i];
            ((double *)data)[row * width + i] = isnan(value) ? NC_FILL_DOUBLE : value;
        }
    }
}

bool dataset_has_column(const struct dataset *set, const char *name)
{
    for (size_t i = 0; i < set->column_count; ++i)
        if (strcmp(set->columns[i].field.name, name) == 0)
            return true;
    return false;
}

static int variable_define(struct dataset *set, const char *name, const struct field *field,
                           enum dimension rows)
{
    enum dimension inner = storage[field->type].inner;
    int variable = -1, count = inner == DIM_NONE ? 1 : 2;
    const int dimensions[2] = {set->dimensions[rows], count == 2 ? set->dimensions[inner] : -1};
    nc_type type = storage[field->type].type;
    dataset_check(set, name, nc_def_var(set->id, name, type, count, dimensions, &variable));
    if (dataset_failed(set))
        return -1;
    define_storage(set, name, variable, type, rows, count == 2 ? set->lengths[inner] : 1);
    define_attributes(set, variable, field);
    if (type == NC_DOUBLE || type == NC_STRING || (type == NC_INT64 && field->units))
        define_fill(set, name, variable, type);
    if (field->flags && (field->type == FIELD_FLAG || field->type == FIELD_INTEGER))
        define_meanings(set, name, variable, field);
    return variable;
}

void dataset_define_field(struct dataset *set, const struct field *field, const char *prefix,
                          enum dimension dimension, int group)
{
    if (dataset_failed(set) || field->presence == PRESENT_NEVER ||
        (dimension != DIM_CONFIG && set->lengths[dimension] == 0))
        return;
    struct column column = {*field, -1, group};
    char *name = NULL;
    if (!ARRAY_GROW(set->columns, set->column_count) ||
        asprintf(&name, "%s%s", prefix, field->name) < 0) {
        set->no_memory = true;
        return;
    }
    column.field.name = name;
    bool wanted = field->presence == PRESENT_ALWAYS || json_object_get(set->found, name);
    if (set->open && wanted)
        column.variable = variable_define(set, name, field, dimension);
    set->columns[set->column_count++] = column;
}

void dataset_list_field(const struct field *field, const char *prefix, enum dimension dimension,
                        FILE *stream)
{
    static const char *const origins[] = {
        [FIELD_MEASURED] = "", [FIELD_DERIVED] = ", derived", [FIELD_MODELLED] = ", modelled"};
    enum dimension inner = storage[field->type].inner;
    bool text = storage[field->type].type == NC_STRING;
    fprintf(stream, "%s%s(%s%s%s): %s%s\n    %s\n", prefix, field->name, dimension_name[dimension],
            inner == DIM_NONE ? "" : ", ", inner == DIM_NONE ? "" : dimension_name[inner],
            text                        ? "text"
            : field->type == FIELD_FLAG ? "flag"
            : field->flags              ? "bits"
            : field->units              ? field->units
                                        : "index",
            origins[field->origin], field->long_name);
    for (size_t i = 0; !text && field->flags && field->flags[i]; ++i)
        fprintf(stream, "%s%s", i == 0 ? "    = " : " ", field->flags[i]);
    if (!text && field->flags)
        fputs(field->type == FIELD_FLAG && !field->flags_known ? " unknown\n" : "\n", stream);
    if (field->comment)
        fprintf(stream, "    (%s)\n", field->comment);
}

static char *outcome_text(const struct field *field, const void *structure)
{
    char text[OUTCOME_TEXT];
    outcome_format((const void *)((const char *)structure + field->offset), field->flags, text);
    return strdup(text);
}

static void column_put(struct dataset *set, const struct column *column, size_t first, size_t count,
                       const void *const *rows)
{
    const struct field *field = &column->field;
    enum dimension inner = storage[field->type].inner;
    size_t width = inner == DIM_NONE ? 1 : set->lengths[inner];
    bool made = field->type == FIELD_OUTCOME;
    const size_t start[2] = {first, 0}, counts[2] = {count, width};
    /* No element is larger than a double. */
    void *data = dataset_allocate(set, count * width, sizeof(double));
    for (size_t row = 0; data && row < count; ++row)
        if (!made)
            gather(field, rows[row], row, width, data);
        else if (!(((char **)data)[row] = outcome_text(field, rows[row])))
            set->no_memory = true;
    if (data)
        dataset_check(set, field->name,
                      nc_put_vara(set->id, column->variable, start, counts, data));
    for (size_t row = 0; data && made && row < count; ++row)
        free(((char **)data)[row]);
    free(data);
}

static void column_look(struct dataset *set, const struct column *column, size_t count,
                        const void *const *rows)
{
    for (size_t row = 0; row < count; ++row)
        if (!field_is_missing(&column->field, rows[row])) {
            set->no_memory |= json_object_set_new(set->found, column->field.name, json_true()) != 0;
            return;
        }
}

void dataset_put(struct dataset *set, int group, size_t first, size_t count,
                 const void *const *rows)
{
    for (size_t i = 0; count > 0 && i < set->column_count && !dataset_failed(set); ++i)
        if (set->columns[i].group == group && set->columns[i].variable < 0)
            column_look(set, &set->columns[i], count, rows);
        else if (set->columns[i].group == group)
            column_put(set, &set->columns[i], first, count, rows);
}
