#include "results/results_nc.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/conditions.h"
#include "results/dataset.h"
#include "results/derived_rows.h"
#include "results/draft.h"
#include "results/globals_nc.h"
#include "results/parameters_nc.h"
#include "results/slab.h"

/* What the file holds for one roof beyond the roof itself. */
struct roof_row {
    double node_spread;
};
static const struct field roof_row_fields[] = {
    FIELD(struct roof_row, node_spread, FIELD_DOUBLE, "1",
          "highest minus lowest of the node's devices, over their mean", .origin = FIELD_DERIVED,
          .needs = NEEDS_NEIGHBOURS, .comment = "same kind, condition and session"),
    {0},
};

/* The device of a row once more, so that a row can be read, and files can be joined, by itself. */
#define D(member, ...) FIELD(struct device, member, FIELD_TEXT, "1", __VA_ARGS__)
static const struct field row_device_fields[] = {
    D(hostname, "host of the device"),
    D(uuid, "UUID of the device"),
    D(pci_id, "PCI bus id of the device", ON_ACCELERATOR),
    {0},
};

/* What is written together. */
enum group {
    GROUP_RECORD,
    GROUP_WORKLOAD,
    GROUP_PARAMETERS,
    GROUP_ROW_DEVICE,
    GROUP_CONFIG_DEVICE,
    GROUP_DERIVED,
    GROUP_KERNEL,
    GROUP_DERIVED_KERNEL,
    GROUP_KERNEL_CONFIG,
    GROUP_DEVICE,
    GROUP_ROOF,
    GROUP_ROOF_ROW,
    GROUP_ROOF_DEVICE,
    GROUP_PRECISION,
    GROUP_LEVEL
};

/* All of one file. */
struct writer {
    const struct results *results;
    const struct row **order;
    struct dataset set;
    struct parameters *parameters;
    struct slab slab;
    int sample_variable;
    size_t kernels, roofs; /* of all rows, of all devices */
    size_t kernel;         /* kernels written so far */
    /* where a dimension is longer than its data */
    struct device blank_device;
    struct kernel blank_kernel;
    struct roof blank_roof;
};

static void lengths_set(struct writer *w)
{
    size_t samples = 0;
    for (size_t i = 0; i < w->results->row_count; ++i) {
        w->kernels += w->results->rows[i].kernels;
        if (w->results->rows[i].samples > samples)
            samples = w->results->rows[i].samples;
    }
    w->set.lengths[DIM_CONFIG] = w->results->row_count;
    for (size_t i = 0; i < w->results->device_count; ++i)
        w->roofs += (size_t)w->results->devices[i].roof_count;
    /* A dimension of length 0 would be an unlimited one. */
    w->set.lengths[DIM_KERNEL] = w->kernels ? w->kernels : 1;
    w->set.lengths[DIM_DEVICE] = w->results->device_count ? w->results->device_count : 1;
    w->set.lengths[DIM_ROOF] = w->roofs ? w->roofs : 1;
    w->set.lengths[DIM_SAMPLE] = samples ? samples : 1;
    w->set.lengths[DIM_PRECISION] = PRECISION_COUNT;
    w->set.lengths[DIM_LEVEL] = LEVEL_COUNT;
}

/* All of a record but its device's key, which config_device stands for. */
static void define_records(struct writer *w)
{
    for (const struct field *field = record_fields; field->name; ++field)
        if (strcmp(field->name, "device_key") != 0)
            dataset_define_field(&w->set, field, "", DIM_CONFIG, GROUP_RECORD);
    static const struct field sample = {
        .type = FIELD_DOUBLE,
        .units = "s",
        .long_name = "time of one iteration",
        .comment =
            "of one sample, over its sample_iterations; the first samples in the order of time"};
    w->sample_variable = dataset_define(&w->set, "time_sample", &sample, DIM_CONFIG, DIM_SAMPLE);
}

static void define_all(struct writer *w)
{
    struct dataset *set = &w->set;
    dataset_define_texts(set, "precision_name", DIM_PRECISION, "precision", GROUP_PRECISION);
    dataset_define_texts(set, "memory_level_name", DIM_LEVEL, "memory level, from far to near",
                         GROUP_LEVEL);
    define_records(w);
    dataset_define_texts(set, "workload", DIM_CONFIG, "workload", GROUP_WORKLOAD);
    w->parameters = parameters_define(set, w->results, GROUP_PARAMETERS);
    dataset_define_index(set, "config_device", DIM_CONFIG,
                         "row's device: index, -1 if it reached none", GROUP_CONFIG_DEVICE);
    dataset_define_fields(set, row_device_fields, "", DIM_CONFIG, GROUP_ROW_DEVICE);
    dataset_define_fields(set, derived_row_fields, "", DIM_CONFIG, GROUP_DERIVED);
    dataset_define_index(set, "kernel_config", DIM_KERNEL,
                         "kernel's row of config: index, -1 if there is none", GROUP_KERNEL_CONFIG);
    dataset_define_fields(set, kernel_fields, "kernel_", DIM_KERNEL, GROUP_KERNEL);
    dataset_define_fields(set, derived_kernel_fields, "kernel_", DIM_KERNEL, GROUP_DERIVED_KERNEL);
    dataset_define_fields(set, device_fields, "device_", DIM_DEVICE, GROUP_DEVICE);
    dataset_define_index(set, "device_roof_device", DIM_ROOF,
                         "roof's device: index, -1 if there is none", GROUP_ROOF_DEVICE);
    dataset_define_fields(set, roof_fields, "device_roof_", DIM_ROOF, GROUP_ROOF);
    dataset_define_fields(set, roof_row_fields, "device_roof_", DIM_ROOF, GROUP_ROOF_ROW);
}

static void names_put(struct writer *w)
{
    const void *precisions[PRECISION_COUNT], *levels[LEVEL_COUNT];
    for (int i = 0; i < PRECISION_COUNT; ++i)
        precisions[i] = precision_info[i].name;
    for (int i = 0; i < LEVEL_COUNT; ++i)
        levels[i] = memory_level_name[i];
    dataset_put(&w->set, GROUP_PRECISION, 0, PRECISION_COUNT, precisions);
    dataset_put(&w->set, GROUP_LEVEL, 0, LEVEL_COUNT, levels);
}

static void put_one(struct writer *w, enum group group, size_t row, const void *structure)
{
    dataset_put(&w->set, (int)group, row, 1, &structure);
}

/* Those of a device, from `row` on. */
static void roofs_put(struct writer *w, size_t row, size_t device)
{
    const struct device *own = &w->results->devices[device];
    const int64_t index = (int64_t)device;
    const void *roofs[ROOFS_MAX], *rows[ROOFS_MAX], *devices[ROOFS_MAX];
    struct roof_row spreads[ROOFS_MAX];
    double values[ROOFS_MAX];
    size_t count = (size_t)own->roof_count;
    results_node_spreads(w->results, device, values);
    for (size_t i = 0; i < count; ++i) {
        spreads[i].node_spread = values[i];
        roofs[i] = &own->roofs[i];
        rows[i] = &spreads[i];
        devices[i] = &index;
    }
    dataset_put(&w->set, GROUP_ROOF, row, count, roofs);
    dataset_put(&w->set, GROUP_ROOF_ROW, row, count, rows);
    dataset_put(&w->set, GROUP_ROOF_DEVICE, row, count, devices);
}

static void devices_put(struct writer *w)
{
    size_t count = w->results->device_count, row = 0;
    const void **devices = dataset_allocate(&w->set, count, sizeof *devices);
    for (size_t i = 0; devices && i < count; ++i) {
        devices[i] = &w->results->devices[i];
        roofs_put(w, row, i);
        row += (size_t)w->results->devices[i].roof_count;
    }
    if (devices)
        dataset_put(&w->set, GROUP_DEVICE, 0, count, devices);
    free(devices);
}

/* A dimension that cannot have length 0 has a row without values. */
static void blanks_put(struct writer *w)
{
    const struct roof_row spread = {.node_spread = NAN};
    const int64_t none = -1;
    if (w->results->device_count == 0)
        put_one(w, GROUP_DEVICE, 0, &w->blank_device);
    if (w->roofs == 0) {
        put_one(w, GROUP_ROOF, 0, &w->blank_roof);
        put_one(w, GROUP_ROOF_ROW, 0, &spread);
        put_one(w, GROUP_ROOF_DEVICE, 0, &none);
    }
    if (w->kernels == 0) {
        const struct derived_kernel kernel = derived_kernel_of(&w->blank_kernel, &w->blank_device);
        put_one(w, GROUP_KERNEL, 0, &w->blank_kernel);
        put_one(w, GROUP_DERIVED_KERNEL, 0, &kernel);
        put_one(w, GROUP_KERNEL_CONFIG, 0, &none);
    }
}

/* Rows that lie one behind the other, `size` bytes each. */
static void rows_put(struct writer *w, enum group group, const void *rows, size_t size)
{
    struct slab *slab = &w->slab;
    for (size_t i = 0; i < slab->count; ++i)
        slab->rows[i] = (const char *)rows + i * size;
    dataset_put(&w->set, (int)group, slab->first, slab->count, slab->rows);
}

static const void *workload_of(const struct writer *w, size_t i)
{
    const struct workload *workload = w->slab.records[i].config.workload;
    return workload ? workload->name : "";
}

static const void *device_of(const struct writer *w, size_t i)
{
    return slab_device(&w->slab, i);
}

static void each_put(struct writer *w, enum group group,
                     const void *(*of)(const struct writer *w, size_t i))
{
    struct slab *slab = &w->slab;
    for (size_t i = 0; i < slab->count; ++i)
        slab->rows[i] = of(w, i);
    dataset_put(&w->set, (int)group, slab->first, slab->count, slab->rows);
}

static void kernels_put(struct writer *w)
{
    struct slab *slab = &w->slab;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < slab->count; ++i)
        count += slab->records[i].kernel_count;
    if (!slab_grow(slab, count))
        return;
    for (size_t i = 0; i < slab->count; ++i)
        for (size_t j = 0; j < slab->records[i].kernel_count; ++j, ++at) {
            slab->rows[at] = &slab->records[i].kernels[j];
            slab->kernel_rows[at] = (int64_t)(slab->first + i);
            slab->derived_kernels[at] =
                derived_kernel_of(&slab->records[i].kernels[j], slab_device(&w->slab, i));
        }
    dataset_put(&w->set, GROUP_KERNEL, w->kernel, count, slab->rows);
    for (size_t i = 0; i < count; ++i)
        slab->rows[i] = &slab->kernel_rows[i];
    dataset_put(&w->set, GROUP_KERNEL_CONFIG, w->kernel, count, slab->rows);
    for (size_t i = 0; i < count; ++i)
        slab->rows[i] = &slab->derived_kernels[i];
    dataset_put(&w->set, GROUP_DERIVED_KERNEL, w->kernel, count, slab->rows);
    w->kernel += count;
}

static void slab_put(struct writer *w)
{
    struct slab *slab = &w->slab;
    rows_put(w, GROUP_RECORD, slab->records, sizeof *slab->records);
    dataset_put_values(&w->set, "time_sample", w->sample_variable, slab->first, slab->count,
                       w->set.lengths[DIM_SAMPLE], slab->samples);
    each_put(w, GROUP_WORKLOAD, workload_of);
    rows_put(w, GROUP_PARAMETERS, slab->parameter_rows, parameters_row_size(w->parameters));
    rows_put(w, GROUP_CONFIG_DEVICE, slab->devices, sizeof *slab->devices);
    each_put(w, GROUP_ROW_DEVICE, device_of);
    rows_put(w, GROUP_DERIVED, slab->derived, sizeof *slab->derived);
    kernels_put(w);
}

static void slabs_put(struct writer *w)
{
    for (size_t row = 0; row < w->results->row_count && !dataset_failed(&w->set);
         row += w->slab.count) {
        if (!slab_load(&w->slab, row))
            return;
        slab_put(w);
    }
}

static void content_write(struct writer *w)
{
    globals_write(&w->set, w->results);
    define_all(w);
    w->slab = (struct slab){.results = w->results,
                            .order = w->order,
                            .set = &w->set,
                            .parameters = w->parameters,
                            .blank = &w->blank_device};
    slab_allocate(&w->slab);
    if (dataset_failed(&w->set))
        return;
    names_put(w);
    devices_put(w);
    slabs_put(w);
    blanks_put(w);
}

/* The file has a name while netCDF opens it, and no longer. */
static enum status create(struct writer *w, struct staged_file *draft, struct error *error)
{
    dataset_prepare();
    enum status status = staged_file_show(draft, error);
    if (status)
        return status;
    dataset_create(&w->set, draft->path);
    staged_file_hide(draft);
    return STATUS_OK;
}

/* What a draft is made of. */
struct content {
    const struct results *results;
    unsigned met;
    json_t *found;  /* see struct dataset */
    size_t drafted; /* of these, those that the last draft had */
};

static enum status draft_fill(void *context, struct staged_file *draft, struct error *error)
{
    struct content *content = context;
    struct writer w = {
        .results = content->results, .set.met = content->met, .set.found = content->found};
    device_init(&w.blank_device);
    fields_clear(kernel_fields, &w.blank_kernel);
    fields_clear(roof_fields, &w.blank_roof);
    lengths_set(&w);
    w.order = results_order(w.results);
    w.set.no_memory = !w.order || !content->found;
    enum status created = create(&w, draft, error);
    if (created == STATUS_OK)
        content_write(&w);
    slab_free(&w.slab);
    parameters_destroy(w.parameters);
    free(w.order);
    enum status status = created ? created : dataset_close(&w.set, error);
    if (w.slab.unreadable) {
        *error = w.slab.error;
        status = STATUS_SYSTEM;
    }
    return status;
}

static bool draft_again(void *context)
{
    struct content *content = context;
    bool more = json_object_size(content->found) > content->drafted;
    content->drafted = json_object_size(content->found);
    return more;
}

/* Bytes, rather too many. Measured files need half of that. */
static double size_estimate(const struct results *results)
{
    enum { FILE_BYTES = 1 << 19, ROW = 1 << 13, KERNEL = 1 << 9, ROOF = 1 << 9, DEVICE = 1 << 12 };
    double size = FILE_BYTES;
    for (size_t i = 0; i < results->row_count; ++i)
        size += ROW + KERNEL * (double)results->rows[i].kernels +
                (double)sizeof(double) * (double)results->rows[i].samples;
    for (size_t i = 0; i < results->device_count; ++i)
        size += DEVICE + ROOF * (double)results->devices[i].roof_count;
    return size;
}

void results_nc_prepare(void)
{
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
}

/* For each write of texts HDF5 takes two cleared buffers of 1 MiB and gives them back. A C library that hands
 * them on to the system has it clear each of their pages again, a third of the whole time. */
static void keep_buffers(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

enum status results_nc_write(const struct results *results, const char *path, struct error *error)
{
    struct content content = {
        .results = results, .met = conditions_met(results), .found = json_object()};
    const struct draft_content draft = {.context = &content,
                                        .size = size_estimate(results),
                                        .fill = draft_fill,
                                        .again = draft_again};
    keep_buffers();
    enum status status = draft_publish(&draft, path, error);
    json_decref(content.found);
    return status;
}
