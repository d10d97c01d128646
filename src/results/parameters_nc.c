#include "results/parameters_nc.h"

#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all variables need. */
struct writer {
    struct dataset *set;
    const struct record *const *records;
    const struct workload **workloads; /* owned; all whose parameters are written */
    size_t count;
};

static bool listed(const struct writer *w, const struct workload *workload)
{
    for (size_t i = 0; i < w->count; ++i)
        if (w->workloads[i] == workload)
            return true;
    return false;
}

/* Those of the table come first, so that files of the same version have the same variables. */
static void workloads_list(struct writer *w)
{
    size_t known = 0, rows = w->set->lengths[DIM_CONFIG];
    if (dataset_failed(w->set))
        return;
    while (workloads[known])
        ++known;
    w->workloads = dataset_allocate(w->set, known + rows, sizeof *w->workloads);
    if (!w->workloads)
        return;
    for (; w->count < known; ++w->count)
        w->workloads[w->count] = workloads[w->count];
    for (size_t i = 0; i < rows; ++i)
        if (w->records[i]->config.workload && !listed(w, w->records[i]->config.workload))
            w->workloads[w->count++] = w->records[i]->config.workload;
}

struct parameter_row {
    int64_t first, second;
    char text[WORKLOAD_VALUE_TEXT];
};

static struct parameter_row parameter_row(const struct config *config, const char *name)
{
    struct parameter_row row = {FIELD_MISSING, FIELD_MISSING, ""};
    int i = !config->workload ? -1 : workload_parameter(config->workload, name);
    if (i >= 0) {
        struct value value = config_get(config, (size_t)i);
        row.first = value.first;
        row.second = value.second;
        if (config->workload->parameters[i].kind == PARAMETER_TEXT)
            memcpy(row.text, value.text, sizeof value.text); /* without quotes */
        else
            parameter_format(&config->workload->parameters[i], value, row.text);
    }
    return row;
}

static const char *help_of(const struct workload *workload, const char *name)
{
    int parameter = workload_parameter(workload, name);
    return parameter < 0 ? NULL : workload->parameters[parameter].help;
}

static bool same_help(const struct writer *w, size_t workload, size_t other, const char *name)
{
    const char *a = help_of(w->workloads[workload], name), *b = help_of(w->workloads[other], name);
    return a && b && strcmp(a, b) == 0;
}

static bool help_seen(const struct writer *w, size_t workload, const char *name)
{
    for (size_t i = 0; i < workload; ++i)
        if (same_help(w, i, workload, name))
            return true;
    return false;
}

/* What the parameter means in each workload that has it: "conv2d: images; lstm, gru: sequences". */
static void parameter_meaning(const struct writer *w, const char *name, FILE *stream)
{
    for (size_t i = 0; i < w->count; ++i) {
        if (!help_of(w->workloads[i], name) || help_seen(w, i, name))
            continue;
        fprintf(stream, "; %s", w->workloads[i]->name);
        for (size_t j = i + 1; j < w->count; ++j)
            if (same_help(w, i, j, name))
                fprintf(stream, ", %s", w->workloads[j]->name);
        fprintf(stream, ": %s", help_of(w->workloads[i], name));
    }
}

/* A name that a dimension (precision) or a field of the record (algorithm) has already is
 * "config_NAME". */
static void parameter_variable(const struct writer *w, const struct parameter *parameter,
                               const char *suffix, enum field_type type, size_t offset,
                               const void **rows)
{
    char name[NC_MAX_NAME + 1], long_name[512] = "";
    int unused;
    FILE *stream = fmemopen(long_name, sizeof long_name, "w");
    snprintf(name, sizeof name, "%s%s", parameter->name, suffix);
    bool taken = nc_inq_varid(w->set->id, name, &unused) == NC_NOERR ||
                 nc_inq_dimid(w->set->id, name, &unused) == NC_NOERR;
    if (stream) {
        fprintf(stream, "parameter %s", name);
        parameter_meaning(w, parameter->name, stream);
        fclose(stream);
    }
    const struct field field = {
        .name = name, .type = type, .offset = offset, .units = "1", .long_name = long_name};
    dataset_field(w->set, &field, taken ? "config_" : "", DIM_CONFIG, rows);
}

static void parameter_write(const struct writer *w, const struct parameter *parameter)
{
    const size_t first = offsetof(struct parameter_row, first);
    const size_t second = offsetof(struct parameter_row, second);
    const size_t text = offsetof(struct parameter_row, text);
    size_t count = w->set->lengths[DIM_CONFIG];
    struct parameter_row *values = dataset_allocate(w->set, count, sizeof *values);
    const void **rows = dataset_allocate(w->set, count, sizeof *rows);
    for (size_t i = 0; !dataset_failed(w->set) && i < count; ++i) {
        values[i] = parameter_row(&w->records[i]->config, parameter->name);
        rows[i] = &values[i];
    }
    if (!dataset_failed(w->set) && parameter->kind == PARAMETER_INTEGER)
        parameter_variable(w, parameter, "", FIELD_INTEGER, first, rows);
    else if (!dataset_failed(w->set) && parameter->kind == PARAMETER_EXTENT) {
        parameter_variable(w, parameter, "_height", FIELD_INTEGER, first, rows);
        parameter_variable(w, parameter, "_width", FIELD_INTEGER, second, rows);
    } else if (!dataset_failed(w->set)) {
        parameter_variable(w, parameter, "", FIELD_TEXT, text, rows);
    }
    free(rows);
    free(values);
}

static bool parameter_seen(const struct writer *w, size_t workload, const char *name)
{
    for (size_t i = 0; i < workload; ++i)
        if (workload_parameter(w->workloads[i], name) >= 0)
            return true;
    return false;
}

void parameters_write(struct dataset *set, const struct record *const *records)
{
    struct writer w = {.set = set, .records = records};
    workloads_list(&w);
    for (size_t i = 0; i < w.count; ++i)
        for (size_t j = 0; j < w.workloads[i]->count; ++j)
            if (!parameter_seen(&w, i, w.workloads[i]->parameters[j].name))
                parameter_write(&w, &w.workloads[i]->parameters[j]);
    free(w.workloads);
}
