#include "results/result_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "results/globals_nc.h"

static enum status damaged(const struct result_file *file, struct error *error)
{
    return error_set(error, STATUS_USAGE,
                     "%s: %s: %s; is it whole, and does a result file of roofsweep have this?",
                     file->path, file->reader.place, nc_strerror(file->reader.code));
}

static enum status no_memory(const struct result_file *file, struct error *error)
{
    return error_set(error, STATUS_SYSTEM, "%s: no memory to read it", file->path);
}

/* ---- what kind of file it is ---- */

static enum status check_kind(const struct result_file *file, struct error *error)
{
    static const char *const needed[] = {"config_hash", "configuration", "config_device",
                                         "device_uuid", "device_roof_name"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; ++i)
        if (!nc_reader_has(&file->reader, needed[i]))
            return error_set(error, STATUS_USAGE, "%s: no result file of roofsweep, it has no %s",
                             file->path, needed[i]);
    return globals_check_version(file->reader.id, file->path,
                                 "write it anew from its journal, with --gather", error);
}

/* ---- sessions ---- */

/* "" if there is none; the caller frees it. NULL without memory. */
static char *attribute_read(const struct result_file *file, const char *name)
{
    size_t length = 0;
    if (nc_inq_attlen(file->reader.id, NC_GLOBAL, name, &length) != NC_NOERR)
        length = 0;
    char *text = calloc(length + 1, 1);
    if (text && length > 0 && nc_get_att_text(file->reader.id, NC_GLOBAL, name, text) != NC_NOERR)
        *text = '\0';
    return text;
}

/* Copies it into a member of a session. */
static bool attribute_take(const struct result_file *file, const char *name, char *at, size_t size)
{
    char *text = attribute_read(file, name);
    if (text)
        snprintf(at, size, "%s", text);
    free(text);
    return text != NULL;
}

static bool session_complete(const struct result_file *file, struct session *session)
{
    session->manifest_text = attribute_read(file, "manifest");
    return session->manifest_text &&
           attribute_take(file, "settings", session->settings, sizeof session->settings) &&
           attribute_take(file, "title", session->title, sizeof session->title) &&
           attribute_take(file, "manifest_path", session->manifest_path,
                          sizeof session->manifest_path) &&
           attribute_take(file, "mpi", session->mpi, sizeof session->mpi);
}

static double time_parse(const char *text)
{
    struct tm utc = {.tm_isdst = 0};
    return strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc) ? (double)timegm(&utc) : NAN;
}

/* Copies what stands before `mark` (NULL: all), and goes on behind it. False: it is not there. */
static bool part_take(const char **line, const char *mark, char *at, size_t size)
{
    const char *end = mark ? strstr(*line, mark) : *line + strlen(*line);
    if (!end)
        return false;
    snprintf(at, size, "%.*s", (int)(end - *line), *line);
    *line = end + (mark ? strlen(mark) : 0);
    return true;
}

/* A line of history, as globals_nc.c writes it; false of what another tool has put there. */
static bool session_parse(const char *line, struct session *session)
{
    char start[32], ranks[32];
    *session = (struct session){.ranks = 0};
    if (!part_take(&line, " session ", start, sizeof start) ||
        !part_take(&line, ": roofsweep ", session->id, sizeof session->id) ||
        !part_take(&line, ", ", session->version, sizeof session->version) ||
        !part_take(&line, " ranks from ", ranks, sizeof ranks) ||
        !part_take(&line, ", job ", session->hostname, sizeof session->hostname) ||
        !part_take(&line, ": ", session->job_id, sizeof session->job_id) ||
        !part_take(&line, NULL, session->command, sizeof session->command))
        return false;
    if (strcmp(session->job_id, "none") == 0)
        session->job_id[0] = '\0';
    session->start_time = time_parse(start);
    session->ranks = strtoll(ranks, NULL, 10);
    return !isnan(session->start_time);
}

static enum status session_add(struct result_file *file, struct session *session,
                               struct error *error)
{
    void *grown = array_grow(file->sessions, file->session_count, sizeof *session);
    if (!grown)
        return no_memory(file, error);
    file->sessions = grown;
    file->sessions[file->session_count++] = *session;
    return session_complete(file, &file->sessions[file->session_count - 1])
               ? STATUS_OK
               : no_memory(file, error);
}

static enum status sessions_read(struct result_file *file, struct error *error)
{
    char *history = attribute_read(file, "history"), *rest = history, *line;
    enum status status = history ? STATUS_OK : no_memory(file, error);
    while (status == STATUS_OK && (line = strsep(&rest, "\n"))) {
        struct session session;
        if (session_parse(line, &session))
            status = session_add(file, &session, error);
    }
    free(history);
    if (status == STATUS_OK && file->session_count == 0)
        status = error_set(error, STATUS_USAGE,
                           "%s: its history names no session of roofsweep, so nobody knows where "
                           "its rows come from",
                           file->path);
    return status;
}

/* ---- devices ---- */

/* A roof and the row of its device. */
struct roof_row {
    struct roof roof;
    int64_t device;
};

static void roofs_read(struct result_file *file)
{
    static const struct field device_field[] = {
        FIELD(struct roof_row, device, FIELD_INTEGER, "", ""), {0}};
    struct nc_reader *reader = &file->reader;
    struct nc_rows rows = {.size = sizeof(struct roof_row),
                           .count = nc_reader_length(reader, "device_roof")};
    struct roof_row *read = calloc(rows.count ? rows.count : 1, sizeof *read);
    if (!read) {
        nc_reader_check(reader, "device_roof", NC_ENOMEM);
        return;
    }
    rows.first = read;
    for (size_t i = 0; i < rows.count; ++i)
        fields_clear(roof_fields, &read[i].roof);
    nc_reader_columns(reader, device_field, "device_roof_", &rows);
    nc_reader_columns(reader, roof_fields, "device_roof_", &rows); /* `roof` comes first */
    for (size_t i = 0; i < rows.count && reader->code == NC_NOERR; ++i)
        if (read[i].device >= 0 && (uint64_t)read[i].device < file->device_count)
            device_add_roof(&file->devices[read[i].device], &read[i].roof);
    free(read);
}

static enum status devices_read(struct result_file *file, struct error *error)
{
    file->device_count = nc_reader_length(&file->reader, "device");
    file->devices = calloc(file->device_count + 1, sizeof *file->devices);
    if (!file->devices)
        return no_memory(file, error);
    for (size_t i = 0; i < file->device_count; ++i)
        device_init(&file->devices[i]);
    const struct nc_rows rows = {
        .first = file->devices, .size = sizeof *file->devices, .count = file->device_count};
    nc_reader_columns(&file->reader, device_fields, "device_", &rows);
    roofs_read(file);
    return file->reader.code == NC_NOERR ? STATUS_OK : damaged(file, error);
}

/* ---- rows ---- */

static enum status index_read(struct result_file *file, const char *name, size_t count,
                              int64_t **index, struct error *error)
{
    const struct field field[] = {
        {.name = name, .type = FIELD_INTEGER, .size = sizeof **index, .units = "1"}, {0}};
    *index = calloc(count + 1, sizeof **index);
    if (!*index)
        return no_memory(file, error);
    const struct nc_rows rows = {.first = *index, .size = sizeof **index, .count = count};
    nc_reader_columns(&file->reader, field, "", &rows);
    return file->reader.code == NC_NOERR ? STATUS_OK : damaged(file, error);
}

/* The device of a row once more. */
struct row_device {
    char uuid[sizeof((struct device *)0)->uuid];
};

enum { SLAB = 1024 };

static enum status foreign(const struct result_file *file, struct error *error)
{
    return error_set(
        error, STATUS_USAGE,
        "%s: its rows were not measured on its devices, or its kernels are not theirs, "
        "as when ncrcat joins files or ncks cuts them; name the files that roofsweep "
        "wrote",
        file->path);
}

static enum status devices_check(struct result_file *file, size_t first, size_t count,
                                 struct error *error)
{
    static const struct field field[] = {FIELD(struct row_device, uuid, FIELD_TEXT, "", ""), {0}};
    static const struct row_device none;
    struct row_device *of = calloc(count, sizeof *of);
    enum status status = of ? STATUS_OK : no_memory(file, error);
    const struct nc_rows rows = {.first = of, .size = sizeof *of, .count = count, .at = first};
    if (of)
        nc_reader_columns(&file->reader, field, "", &rows);
    for (size_t i = 0; of && i < count && status == STATUS_OK; ++i) {
        int64_t device = file->config_device[first + i];
        if (device >= (int64_t)file->device_count ||
            strcmp(of[i].uuid, device < 0 ? none.uuid : file->devices[device].uuid) != 0)
            status = foreign(file, error);
    }
    free(of);
    if (status == STATUS_OK && file->reader.code != NC_NOERR)
        status = damaged(file, error);
    return status;
}

static enum status kernels_check(const struct result_file *file, struct error *error)
{
    for (size_t i = 0; i < file->kernels; ++i)
        if (file->kernel_config[i] >= (int64_t)file->rows ||
            (i > 0 && file->kernel_config[i] < file->kernel_config[i - 1]))
            return foreign(file, error);
    return STATUS_OK;
}

static enum status rows_read(struct result_file *file, struct error *error)
{
    file->rows = nc_reader_length(&file->reader, "config");
    file->samples = nc_reader_length(&file->reader, "sample");
    file->kernels = nc_reader_length(&file->reader, "kernel");
    enum status status = file->reader.code == NC_NOERR ? STATUS_OK : damaged(file, error);
    if (status == STATUS_OK)
        status = index_read(file, "config_device", file->rows, &file->config_device, error);
    if (status == STATUS_OK)
        status = index_read(file, "kernel_config", file->kernels, &file->kernel_config, error);
    bool uuids = nc_reader_has(&file->reader, "uuid");
    for (size_t row = 0; row < file->rows && status == STATUS_OK && uuids; row += SLAB)
        status = devices_check(file, row, file->rows - row < SLAB ? file->rows - row : SLAB, error);
    return status == STATUS_OK ? kernels_check(file, error) : status;
}

enum status result_file_open(const char *path, struct result_file *file, struct error *error)
{
    struct result_file opened = {.path = path, .reader.code = NC_NOERR};
    int code = nc_open(path, NC_NOWRITE, &opened.reader.id);
    if (code != NC_NOERR)
        return error_set(error, STATUS_USAGE, "%s: %s", path,
                         code > 0 ? strerror(code) : "no netCDF file, or it is not whole");
    enum status status = check_kind(&opened, error);
    if (status == STATUS_OK)
        status = sessions_read(&opened, error);
    if (status == STATUS_OK)
        status = devices_read(&opened, error);
    if (status == STATUS_OK)
        status = rows_read(&opened, error);
    if (status == STATUS_OK)
        *file = opened;
    else
        result_file_close(&opened);
    return status;
}

void result_file_rest(struct result_file *file)
{
    if (!file->resting)
        nc_close(file->reader.id);
    file->resting = true;
}

static enum status wake(struct result_file *file, struct error *error)
{
    size_t rows = file->rows;
    if (!file->resting)
        return STATUS_OK;
    int code = nc_open(file->path, NC_NOWRITE, &file->reader.id);
    file->resting = code != NC_NOERR;
    if (code == NC_NOERR)
        rows = nc_reader_length(&file->reader, "config");
    if (file->resting || rows != file->rows)
        return error_set(error, STATUS_USAGE, "%s: it has changed meanwhile", file->path);
    return STATUS_OK;
}

void result_file_close(struct result_file *file)
{
    result_file_rest(file);
    for (size_t i = 0; i < file->session_count; ++i)
        session_clear(&file->sessions[i]);
    free(file->sessions);
    free(file->devices);
    free(file->config_device);
    free(file->kernel_config);
    *file = (struct result_file){.path = NULL};
}

enum status result_file_keys(struct result_file *file, size_t first, size_t count,
                             struct row_key *keys, struct error *error)
{
#define K(member, type) FIELD(struct row_key, member, type, "1", "")
    static const struct field fields[] = {
        K(configuration, FIELD_TEXT), K(config_hash, FIELD_TEXT), K(start_time, FIELD_DOUBLE), {0}};
    const struct nc_rows rows = {.first = keys, .size = sizeof *keys, .count = count, .at = first};
    enum status status = wake(file, error);
    if (status)
        return status;
    for (size_t i = 0; i < count; ++i)
        fields_clear(fields, &keys[i]);
    nc_reader_columns(&file->reader, fields, "", &rows);
    return file->reader.code == NC_NOERR ? STATUS_OK : damaged(file, error);
}

/* ---- records ---- */

/* The first ones: what follows the last is no sample. */
static enum status samples_read(struct result_file *file, size_t first, size_t count,
                                struct record *records, struct error *error)
{
    int variable;
    const size_t start[] = {first, 0}, counts[] = {count, file->samples};
    double *samples = calloc(count * file->samples + 1, sizeof *samples);
    enum status status = samples ? STATUS_OK : no_memory(file, error);
    if (samples && nc_reader_find(&file->reader, "time_sample", 2, &variable))
        nc_reader_check(&file->reader, "time_sample",
                        nc_get_vara_double(file->reader.id, variable, start, counts, samples));
    for (size_t i = 0; i < count && status == STATUS_OK; ++i) {
        const double *own = samples + i * file->samples;
        size_t length = 0;
        while (length < file->samples && own[length] != NC_FILL_DOUBLE && isfinite(own[length]))
            ++length;
        records[i].sample = calloc(length + 1, sizeof *own);
        records[i].sample_count = length;
        if (records[i].sample)
            memcpy(records[i].sample, own, length * sizeof *own);
        else
            status = no_memory(file, error);
    }
    free(samples);
    return status;
}

/* The first kernel of row `row` or of one behind it. */
static size_t kernel_of(const struct result_file *file, size_t row)
{
    size_t low = 0, high = file->kernels;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (file->kernel_config[middle] < (int64_t)row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* All of the rows at once: netCDF takes long for a few. */
static enum status kernels_read(struct result_file *file, size_t first, size_t count,
                                struct record *records, struct error *error)
{
    size_t from = kernel_of(file, first), end = kernel_of(file, first + count);
    struct kernel *kernels = calloc(end > from ? end - from : 1, sizeof *kernels);
    enum status status = kernels ? STATUS_OK : no_memory(file, error);
    for (size_t i = 0; kernels && i < end - from; ++i)
        fields_clear(kernel_fields, &kernels[i]);
    const struct nc_rows rows = {
        .first = kernels, .size = sizeof *kernels, .count = end - from, .at = from};
    if (kernels)
        nc_reader_columns(&file->reader, kernel_fields, "kernel_", &rows);
    for (size_t i = 0; i < count && status == STATUS_OK; ++i) {
        size_t own = kernel_of(file, first + i), next = kernel_of(file, first + i + 1);
        status = record_set_kernels(&records[i], kernels + (own - from), next - own, error);
    }
    free(kernels);
    return status;
}

/* All but the device's key, which config_device stands for: device_key is a variable of devices. */
static void fields_read(struct result_file *file, size_t first, size_t count,
                        struct record *records)
{
    const struct nc_rows rows = {
        .first = records, .size = sizeof *records, .count = count, .at = first};
    for (const struct field *field = record_fields; field->name; ++field)
        if (strcmp(field->name, "device_key") != 0 && nc_reader_has(&file->reader, field->name))
            nc_reader_column(&file->reader, field, field->name, &rows);
    for (size_t i = 0; i < count; ++i) {
        int64_t device = file->config_device[first + i];
        if (device >= 0)
            memcpy(records[i].device_key, file->devices[device].key, sizeof records[i].device_key);
    }
}

enum status result_file_records(struct result_file *file, size_t first, size_t count,
                                struct record *records, struct error *error)
{
    enum status status = wake(file, error);
    if (status)
        return status;
    fields_read(file, first, count, records);
    status = samples_read(file, first, count, records, error);
    if (status == STATUS_OK)
        status = kernels_read(file, first, count, records, error);
    if (status == STATUS_OK && file->reader.code != NC_NOERR)
        status = damaged(file, error);
    return status;
}
