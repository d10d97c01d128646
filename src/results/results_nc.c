#include "results/results_nc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "results/comments.h"
#include "results/dataset.h"
#include "results/derived_rows.h"
#include "results/parameters_nc.h"
#include "base/staged_file.h"

/* What the file holds for one roof beyond the roof itself. */
struct roof_row {
    double node_spread;
};
static const struct field roof_row_fields[] = {
    FIELD(struct roof_row, node_spread, FIELD_DOUBLE, "1",
          "highest minus lowest of the node's devices, over their mean"),
    {0},
};

/* The device of a row once more, so that a row can be read, and files can be joined, by itself. */
#define D(member, long_name) FIELD(struct device, member, FIELD_TEXT, "1", long_name)
static const struct field row_device_fields[] = {
    D(hostname, "host of the device"),
    D(uuid, "UUID of the device"),
    D(pci_id, "PCI bus id of the device"),
    {0},
};

/* All of one file. */
struct writer {
    const struct results *results;
    struct dataset set;
    /* The struct of each row, as the tables need them; a blank where a dimension is longer than its
     * data. */
    const struct record **records;
    const void **devices, **row_devices, **kernels, **kernel_rows, **derived, **roofs, **roof_rows;
    int64_t *config_device, *kernel_config, *roof_device;
    struct derived_row *derived_rows;
    struct derived_kernel *derived_kernels;
    struct roof_row *roof_row;
    struct device blank_device;
    struct kernel blank_kernel;
    struct roof blank_roof;
};

/* All of a record but its device's key, which config_device stands for. */
static void records_write(struct writer *w)
{
    for (const struct field *field = record_fields; field->name && !dataset_failed(&w->set);
         ++field)
        if (strcmp(field->name, "device_key") != 0)
            dataset_field(&w->set, field, "", DIM_CONFIG, (const void *const *)w->records);
}

static void samples_write(struct writer *w)
{
    const char *name = "time_sample";
    int variable = dataset_define(&w->set, name, NC_DOUBLE, DIM_CONFIG, DIM_SAMPLE, "s",
                                  "time of one iteration");
    for (size_t row = 0; row < w->set.lengths[DIM_CONFIG] && !dataset_failed(&w->set); ++row) {
        const struct record *record = w->records[row];
        const size_t start[2] = {row, 0}, count[2] = {1, record->sample_count};
        if (record->sample_count > 0)
            dataset_check(&w->set, name,
                          nc_put_vara_double(w->set.id, variable, start, count, record->sample));
    }
}

static void names_write(struct writer *w)
{
    const char *precisions[PRECISION_COUNT];
    for (int i = 0; i < PRECISION_COUNT; ++i)
        precisions[i] = precision_info[i].name;
    dataset_texts(&w->set, "precision_name", DIM_PRECISION, "precision", precisions);
    dataset_texts(&w->set, "memory_level_name", DIM_LEVEL, "memory level, from far to near",
                  memory_level_name);
}

static void workloads_write(struct writer *w)
{
    size_t count = w->set.lengths[DIM_CONFIG];
    const char **names = dataset_allocate(&w->set, count, sizeof *names);
    for (size_t i = 0; !dataset_failed(&w->set) && i < count; ++i)
        names[i] = w->records[i]->config.workload ? w->records[i]->config.workload->name : "";
    if (!dataset_failed(&w->set))
        dataset_texts(&w->set, "workload", DIM_CONFIG, "workload", names);
    free(names);
}

static void time_format(double time, char text[32])
{
    const double year_10000 = 253402300800.0;
    time_t seconds = time >= 0 && time < year_10000 ? (time_t)time : 0; /* so also for a NaN */
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* One line a session, the latest at the end. */
static void history_write(struct writer *w)
{
    char *text = NULL, start[32];
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) {
        w->set.no_memory = true;
        return;
    }
    for (size_t i = 0; i < w->results->session_count; ++i) {
        const struct session *session = &w->results->sessions[i];
        time_format(session->start_time, start);
        fprintf(stream, "%s%s session %s: roofsweep %s, %lld ranks from %s, job %s: %s",
                i ? "\n" : "", start, session->id, session->version, (long long)session->ranks,
                session->hostname, *session->job_id ? session->job_id : "none", session->command);
    }
    fclose(stream);
    dataset_attribute(&w->set, NC_GLOBAL, "history", text);
    free(text);
}

/* When the rows were measured. No clock is asked: one journal always gives the same file. */
static void coverage_write(struct writer *w)
{
    double first = NAN, last = NAN;
    char text[32];
    for (size_t i = 0; i < w->results->session_count; ++i) {
        first = fmin(first, w->results->sessions[i].start_time);
        last = fmax(last, w->results->sessions[i].start_time);
    }
    for (size_t i = 0; i < w->results->record_count; ++i) {
        const struct record *record = &w->results->records[i];
        last = fmax(last, record->start_time + record->wall_time);
    }
    time_format(first, text);
    dataset_attribute(&w->set, NC_GLOBAL, "time_coverage_start", text);
    time_format(last, text);
    dataset_attribute(&w->set, NC_GLOBAL, "time_coverage_end", text);
    dataset_attribute(&w->set, NC_GLOBAL, "date_created", text);
}

static void globals_write(struct writer *w)
{
    const struct results *results = w->results;
    struct session none = {.manifest_text = NULL};
    const struct session *last =
        results->session_count ? &results->sessions[results->session_count - 1] : &none;
    char source[sizeof last->version + 16];
    snprintf(source, sizeof source, "roofsweep %s", last->version);
    const struct {
        const char *name, *text;
    } attributes[] = {
        {"Conventions", "CF-1.11 ACDD-1.3"},
        {"title", *last->title ? last->title : "roofsweep results"},
        {"summary", "Deep-learning operations, each measured on a device and set against the roofs "
                    "that were measured on the same device (time-based Roofline). One row of "
                    "config per configuration and device; config_device points into device, "
                    "kernel_config into config, device_roof_device into device."},
        {"keywords", "roofline, performance, GPU, deep learning, benchmark"},
        {"source", source},
        {"processing_level", "measured values, and values derived from them by the Roofline model"},
        {"manifest_path", last->manifest_path},
        {"manifest", last->manifest_text ? last->manifest_text : ""},
        {"settings", last->settings},
        {"mpi", last->mpi},
        {"command", last->command},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; ++i)
        dataset_attribute(&w->set, NC_GLOBAL, attributes[i].name, attributes[i].text);
    history_write(w);
    coverage_write(w);
}

static void lengths_set(struct writer *w)
{
    size_t kernels = 0, samples = 0, roofs = 0;
    for (size_t i = 0; i < w->results->record_count; ++i) {
        kernels += w->results->records[i].kernel_count;
        if (w->results->records[i].sample_count > samples)
            samples = w->results->records[i].sample_count;
    }
    w->set.lengths[DIM_CONFIG] = w->results->record_count;
    for (size_t i = 0; i < w->results->device_count; ++i)
        roofs += (size_t)w->results->devices[i].roof_count;
    /* A dimension of length 0 would be an unlimited one. */
    w->set.lengths[DIM_KERNEL] = kernels ? kernels : 1;
    w->set.lengths[DIM_DEVICE] = w->results->device_count ? w->results->device_count : 1;
    w->set.lengths[DIM_ROOF] = roofs ? roofs : 1;
    w->set.lengths[DIM_SAMPLE] = samples ? samples : 1;
    w->set.lengths[DIM_PRECISION] = PRECISION_COUNT;
    w->set.lengths[DIM_LEVEL] = LEVEL_COUNT;
}

static void rows_allocate(struct writer *w)
{
    size_t configs = w->set.lengths[DIM_CONFIG];
    w->records = results_order(w->results);
    w->set.no_memory = !w->records;
    w->row_devices = dataset_allocate(&w->set, configs, sizeof *w->row_devices);
    w->config_device = dataset_allocate(&w->set, configs, sizeof *w->config_device);
    w->derived = dataset_allocate(&w->set, configs, sizeof *w->derived);
    w->derived_rows = dataset_allocate(&w->set, configs, sizeof *w->derived_rows);
    w->devices = dataset_allocate(&w->set, w->set.lengths[DIM_DEVICE], sizeof *w->devices);
    w->derived_kernels =
        dataset_allocate(&w->set, w->set.lengths[DIM_KERNEL], sizeof *w->derived_kernels);
    w->kernel_rows = dataset_allocate(&w->set, w->set.lengths[DIM_KERNEL], sizeof *w->kernel_rows);
    w->kernels = dataset_allocate(&w->set, w->set.lengths[DIM_KERNEL], sizeof *w->kernels);
    w->kernel_config =
        dataset_allocate(&w->set, w->set.lengths[DIM_KERNEL], sizeof *w->kernel_config);
    w->roofs = dataset_allocate(&w->set, w->set.lengths[DIM_ROOF], sizeof *w->roofs);
    w->roof_rows = dataset_allocate(&w->set, w->set.lengths[DIM_ROOF], sizeof *w->roof_rows);
    w->roof_row = dataset_allocate(&w->set, w->set.lengths[DIM_ROOF], sizeof *w->roof_row);
    w->roof_device = dataset_allocate(&w->set, w->set.lengths[DIM_ROOF], sizeof *w->roof_device);
}

static void rows_free(struct writer *w)
{
    free(w->records);
    free(w->row_devices);
    free(w->config_device);
    free(w->derived);
    free(w->derived_rows);
    free(w->devices);
    free(w->kernels);
    free(w->kernel_rows);
    free(w->derived_kernels);
    free(w->kernel_config);
    free(w->roofs);
    free(w->roof_rows);
    free(w->roof_row);
    free(w->roof_device);
}

static void row_set(struct writer *w, size_t row)
{
    const struct record *record = w->records[row];
    int64_t index = results_device(w->results, record->device_key);
    const struct device *device = index < 0 ? &w->blank_device : &w->results->devices[index];
    w->config_device[row] = index;
    w->row_devices[row] = device;
    w->derived_rows[row] = derived_row_of(record, device);
    w->derived[row] = &w->derived_rows[row];
}

static void roofs_set(struct writer *w)
{
    size_t row = 0;
    w->roofs[0] = &w->blank_roof;
    w->roof_rows[0] = &w->roof_row[0];
    w->roof_row[0].node_spread = NAN;
    w->roof_device[0] = -1;
    for (size_t i = 0; i < w->results->device_count; ++i) {
        double spreads[ROOFS_MAX];
        results_node_spreads(w->results, i, spreads);
        for (int64_t j = 0; j < w->results->devices[i].roof_count; ++j, ++row) {
            w->roofs[row] = &w->results->devices[i].roofs[j];
            w->roof_row[row].node_spread = spreads[j];
            w->roof_rows[row] = &w->roof_row[row];
            w->roof_device[row] = (int64_t)i;
        }
    }
}

static void rows_set(struct writer *w)
{
    size_t kernel = 0;
    w->devices[0] = &w->blank_device;
    for (size_t i = 0; i < w->results->device_count; ++i)
        w->devices[i] = &w->results->devices[i];
    roofs_set(w);
    w->kernels[0] = &w->blank_kernel;
    w->derived_kernels[0] = derived_kernel_of(&w->blank_kernel, &w->blank_device);
    w->kernel_rows[0] = &w->derived_kernels[0];
    w->kernel_config[0] = -1;
    for (size_t row = 0; row < w->set.lengths[DIM_CONFIG]; ++row) {
        row_set(w, row);
        for (size_t i = 0; i < w->records[row]->kernel_count; ++i, ++kernel) {
            w->kernels[kernel] = &w->records[row]->kernels[i];
            w->derived_kernels[kernel] =
                derived_kernel_of(&w->records[row]->kernels[i], w->row_devices[row]);
            w->kernel_rows[kernel] = &w->derived_kernels[kernel];
            w->kernel_config[kernel] = (int64_t)row;
        }
    }
}

static void content_write(struct writer *w)
{
    struct dataset *set = &w->set;
    globals_write(w);
    names_write(w);
    records_write(w);
    samples_write(w);
    workloads_write(w);
    parameters_write(set, w->records);
    dataset_index(set, "config_device", DIM_CONFIG, "row's device: index, -1 if it reached none",
                  w->config_device);
    dataset_fields(set, row_device_fields, "", DIM_CONFIG, w->row_devices);
    dataset_fields(set, derived_row_fields, "", DIM_CONFIG, w->derived);
    dataset_index(set, "kernel_config", DIM_KERNEL,
                  "kernel's row of config: index, -1 if there is none", w->kernel_config);
    dataset_fields(set, kernel_fields, "kernel_", DIM_KERNEL, w->kernels);
    dataset_fields(set, derived_kernel_fields, "kernel_", DIM_KERNEL, w->kernel_rows);
    dataset_fields(set, device_fields, "device_", DIM_DEVICE, w->devices);
    dataset_index(set, "device_roof_device", DIM_ROOF, "roof's device: index, -1 if there is none",
                  w->roof_device);
    dataset_fields(set, roof_fields, "device_roof_", DIM_ROOF, w->roofs);
    dataset_fields(set, roof_row_fields, "device_roof_", DIM_ROOF, w->roof_rows);
}

static enum status draft_fill(const struct staged_file *draft, const struct results *results,
                              struct error *error)
{
    struct writer w = {
        .results = results, .set.comments = file_comments, .set.derived = file_derived};
    device_init(&w.blank_device);
    fields_clear(kernel_fields, &w.blank_kernel);
    fields_clear(roof_fields, &w.blank_roof);
    lengths_set(&w);
    rows_allocate(&w);
    if (!dataset_failed(&w.set))
        rows_set(&w);
    dataset_create(&w.set, draft->path);
    staged_file_hide(draft);
    content_write(&w);
    enum status status = dataset_close(&w.set, error);
    rows_free(&w);
    return status;
}

/* Bytes, rather too many. Measured files need half of that. */
static double size_estimate(const struct results *results)
{
    enum { FILE_BYTES = 1 << 19, ROW = 1 << 13, KERNEL = 1 << 9, ROOF = 1 << 9, DEVICE = 1 << 12 };
    double size = FILE_BYTES;
    for (size_t i = 0; i < results->record_count; ++i) {
        const struct record *record = &results->records[i];
        size += ROW + KERNEL * (double)record->kernel_count +
                (double)sizeof *record->sample * (double)record->sample_count;
    }
    for (size_t i = 0; i < results->device_count; ++i)
        size += DEVICE + ROOF * (double)results->devices[i].roof_count;
    return size;
}

/* HDF5 says "HDF error" where a disk is full: the file itself knows why. */
static enum status draft_make(struct staged_file *draft, const char *place,
                              const struct results *results, struct error *error)
{
    enum status status = staged_file_open(draft, place, error);
    if (status)
        return status;
    status = draft_fill(draft, results, error);
    if (status == STATUS_OK)
        return STATUS_OK;
    int obstacle = staged_file_obstacle(draft);
    if (obstacle)
        error_set(error, status, "folder '%s': %s", place, strerror(obstacle));
    staged_file_close(draft);
    return status;
}

/* In the first place that takes it. The error names all places. */
static enum status draft_place(struct staged_file *draft, const char *path,
                               const struct results *results, struct error *error)
{
    char places[STAGED_PLACES][STAGED_PLACE];
    double size = size_estimate(results);
    size_t count = staged_file_places(path, size, places);
    struct error tried[STAGED_PLACES];
    for (size_t i = 0; i < count; ++i)
        if (draft_make(draft, places[i], results, &tried[i]) == STATUS_OK)
            return STATUS_OK;
    char causes[1024] = "";
    for (size_t i = 0, used = 0; i < count && used < sizeof causes; ++i)
        used += (size_t)snprintf(causes + used, sizeof causes - used, "%s%.300s", i ? "; " : "",
                                 tried[i].text);
    return error_set(error, STATUS_SYSTEM,
                     "no place to build it in, of about %.0f MB: %.800s; let TMPDIR name a folder "
                     "with room",
                     ceil(size / 1e6), causes);
}

/* HDF5 does not write to where the file shall be: it calls a missing folder "Permission denied" and
 * a full disk "HDF error", and needs locks of the filesystem. */
enum status results_nc_write(const struct results *results, const char *path, struct error *error)
{
    struct staged_file draft;
    enum status status = draft_place(&draft, path, results, error);
    if (status) {
        error_prefix(error, "%s", path);
        return status;
    }
    status = staged_file_publish(&draft, path, error);
    staged_file_close(&draft);
    return status;
}
