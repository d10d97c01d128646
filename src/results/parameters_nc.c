#include "results/parameters_nc.h"

#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/workloads/program.h"

/* One parameter, of all workloads that have it. */
struct entry {
    const struct parameter *parameter; /* of the first of them */
    int *index;                        /* owned; by workload, its place there, -1: it has none */
};

struct parameters {
    struct dataset *set;
    const struct workload **workloads; /* owned; all that are known */
    bool *used;                        /* owned; by workload: the file has rows of it */
    size_t workload_count;
    struct entry *entries; /* owned */
    size_t count;
    char **axes; /* owned: names of the programs' axes, each a text variable "axis_NAME" */
    size_t axis_count;
    int group;
};

/* What a row holds of each parameter. */
struct cell {
    int64_t first, second;
    char text[WORKLOAD_VALUE_TEXT];
};

static int listed(const struct parameters *p, const struct workload *workload)
{
    for (size_t i = 0; i < p->workload_count; ++i)
        if (p->workloads[i] == workload)
            return (int)i;
    return -1;
}

static void workload_add(struct parameters *p, const struct workload *workload)
{
    if (listed(p, workload) >= 0)
        return;
    void *grown = array_grow(p->workloads, p->workload_count, sizeof *p->workloads);
    p->set->no_memory = p->set->no_memory || !grown;
    if (!grown)
        return;
    p->workloads = grown;
    p->workloads[p->workload_count++] = workload;
}

/* Those of the table come first, so that files of the same version have the same order and say the same of
 * a parameter. */
static void workloads_list(struct parameters *p, const struct results *results)
{
    for (size_t i = 0; workloads[i]; ++i)
        workload_add(p, workloads[i]);
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct record *record = results->rows[i].record;
        if (record && record->config.workload)
            workload_add(p, record->config.workload);
    }
}

/* False: it is none of those. */
static bool row_is_of(const struct row *row, const struct workload *workload)
{
    size_t length = strlen(workload->name);
    if (row->record)
        return row->record->config.workload == workload;
    return strncmp(row->configuration, workload->name, length) == 0 &&
           row->configuration[length] == ' ';
}

/* Rows of the same workload mostly follow each other. */
static void workloads_mark(struct parameters *p, const struct results *results)
{
    p->used = dataset_allocate(p->set, p->workload_count, sizeof *p->used);
    size_t last = 0;
    for (size_t i = 0; p->used && p->workloads && i < results->row_count; ++i) {
        const struct row *row = &results->rows[i];
        for (size_t j = 0; j < p->workload_count && !row_is_of(row, p->workloads[last]); ++j)
            last = j;
        p->used[last] = p->used[last] || row_is_of(row, p->workloads[last]);
    }
}

static const char *help_of(const struct workload *workload, const char *name)
{
    int parameter = workload_parameter(workload, name);
    return parameter < 0 ? NULL : workload->parameters[parameter].help;
}

static bool same_help(const struct parameters *p, size_t workload, size_t other, const char *name)
{
    const char *a = help_of(p->workloads[workload], name), *b = help_of(p->workloads[other], name);
    return a && b && strcmp(a, b) == 0;
}

static bool help_seen(const struct parameters *p, size_t workload, const char *name)
{
    for (size_t i = 0; i < workload; ++i)
        if (same_help(p, i, workload, name))
            return true;
    return false;
}

/* What the parameter means in each workload that has it: "conv2d: images; lstm, gru: sequences". */
static void parameter_meaning(const struct parameters *p, const char *name, FILE *stream)
{
    for (size_t i = 0; i < p->workload_count; ++i) {
        if (!help_of(p->workloads[i], name) || help_seen(p, i, name))
            continue;
        fprintf(stream, "; %s", p->workloads[i]->name);
        for (size_t j = i + 1; j < p->workload_count; ++j)
            if (same_help(p, i, j, name))
                fprintf(stream, ", %s", p->workloads[j]->name);
        fprintf(stream, ": %s", help_of(p->workloads[i], name));
    }
}

/* A name that a dimension (precision) or a field of the record (algorithm) has already is
 * "config_NAME". */
static void variable_define(const struct parameters *p, const struct parameter *parameter,
                            const char *suffix, enum field_type type, size_t offset)
{
    char name[NC_MAX_NAME + 1], long_name[2048] = "";
    int unused;
    FILE *stream = fmemopen(long_name, sizeof long_name, "w");
    snprintf(name, sizeof name, "%s%s", parameter->name, suffix);
    bool taken =
        dataset_has_column(p->set, name) || nc_inq_dimid(p->set->id, name, &unused) == NC_NOERR;
    const bool ran = strcmp(name, "algorithm") == 0 || strcmp(name, "implementation") == 0;
    char comment[96];
    snprintf(comment, sizeof comment, "as the manifest asks for it; %.50s is what ran", name);
    if (stream) {
        fprintf(stream, "parameter %s", name);
        parameter_meaning(p, parameter->name, stream);
        fclose(stream);
    }
    const struct field field = {.name = name,
                                .type = type,
                                .offset = (p->count - 1) * sizeof(struct cell) + offset,
                                .units = "1",
                                .long_name = long_name,
                                .comment = ran ? comment : NULL};
    dataset_define_field(p->set, &field, taken ? "config_" : "", DIM_CONFIG, p->group);
}

/* Those of the last entry. */
static void variables_define(const struct parameters *p)
{
    const size_t first = offsetof(struct cell, first), second = offsetof(struct cell, second);
    const struct parameter *parameter = p->entries[p->count - 1].parameter;
    if (parameter->kind == PARAMETER_INTEGER) {
        variable_define(p, parameter, "", FIELD_INTEGER, first);
    } else if (parameter->kind == PARAMETER_EXTENT) {
        variable_define(p, parameter, "_height", FIELD_INTEGER, first);
        variable_define(p, parameter, "_width", FIELD_INTEGER, second);
    } else {
        variable_define(p, parameter, "", FIELD_TEXT, offsetof(struct cell, text));
    }
}

static bool parameter_seen(const struct parameters *p, const char *name)
{
    for (size_t i = 0; i < p->count; ++i)
        if (strcmp(p->entries[i].parameter->name, name) == 0)
            return true;
    return false;
}

static void parameter_add(struct parameters *p, const struct parameter *parameter)
{
    if (dataset_failed(p->set) || parameter_seen(p, parameter->name))
        return;
    void *grown = array_grow(p->entries, p->count, sizeof *p->entries);
    int *index = dataset_allocate(p->set, p->workload_count, sizeof *index);
    p->set->no_memory = p->set->no_memory || !grown;
    if (grown)
        p->entries = grown;
    if (dataset_failed(p->set) || !p->entries) {
        free(index);
        return;
    }
    for (size_t i = 0; i < p->workload_count; ++i)
        index[i] = workload_parameter(p->workloads[i], parameter->name);
    p->entries[p->count++] = (struct entry){parameter, index};
    variables_define(p);
}

/* ---- axes of programs ---- */

static void axis_note(void *user, const char *name)
{
    struct parameters *p = user;
    for (size_t i = 0; i < p->axis_count; ++i)
        if (strcmp(p->axes[i], name) == 0)
            return;
    char *copy = strdup(name);
    void *grown = copy ? array_grow(p->axes, p->axis_count, sizeof *p->axes) : NULL;
    p->set->no_memory = p->set->no_memory || !grown;
    if (!grown) {
        free(copy);
        return;
    }
    p->axes = grown;
    p->axes[p->axis_count++] = copy;
}

/* A row may be known by its text alone. */
static void axes_list(struct parameters *p, const struct results *results)
{
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct row *row = &results->rows[i];
        struct config config = {.workload = NULL};
        struct error unknown;
        if (row->record)
            config = row->record->config;
        else if (strncmp(row->configuration, "program ", strlen("program ")) != 0 ||
                 config_parse(row->configuration, &config, &unknown) != STATUS_OK)
            continue;
        if (config_is_program(&config))
            program_axes_visit(&config, axis_note, p);
    }
}

/* Behind the parameters in a row. */
static void axes_define(const struct parameters *p)
{
    for (size_t i = 0; i < p->axis_count && !dataset_failed(p->set); ++i) {
        char name[NC_MAX_NAME + 1], long_name[NC_MAX_NAME + 64];
        snprintf(name, sizeof name, "axis_%.200s", p->axes[i]);
        snprintf(long_name, sizeof long_name, "axis %.200s of the programs that have it",
                 p->axes[i]);
        const struct field field = {.name = name,
                                    .type = FIELD_TEXT,
                                    .offset = (p->count + i) * sizeof(struct cell) +
                                              offsetof(struct cell, text),
                                    .units = "1",
                                    .long_name = long_name};
        dataset_define_field(p->set, &field, "", DIM_CONFIG, p->group);
    }
}

/* Also of a program whose axis has its name: it lies on that axis. */
static bool parameter_wanted(const struct parameters *p, const char *name)
{
    for (size_t i = 0; i < p->workload_count; ++i)
        if (p->used && p->used[i] && workload_parameter(p->workloads[i], name) >= 0)
            return true;
    for (size_t i = 0; i < p->axis_count; ++i)
        if (strcmp(p->axes[i], name) == 0)
            return true;
    return false;
}

struct parameters *parameters_define(struct dataset *set, const struct results *results, int group)
{
    struct parameters *p = dataset_allocate(set, 1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct parameters){.set = set, .group = group};
    workloads_list(p, results);
    workloads_mark(p, results);
    axes_list(p, results);
    for (size_t i = 0; i < p->workload_count; ++i)
        for (size_t j = 0; j < p->workloads[i]->count; ++j)
            if (parameter_wanted(p, p->workloads[i]->parameters[j].name))
                parameter_add(p, &p->workloads[i]->parameters[j]);
    axes_define(p);
    return p;
}

void parameters_destroy(struct parameters *parameters)
{
    if (!parameters)
        return;
    for (size_t i = 0; i < parameters->count; ++i)
        free(parameters->entries[i].index);
    for (size_t i = 0; i < parameters->axis_count; ++i)
        free(parameters->axes[i]);
    free(parameters->axes);
    free(parameters->entries);
    free(parameters->workloads);
    free(parameters->used);
    free(parameters);
}

size_t parameters_row_size(const struct parameters *parameters)
{
    return (parameters->count + parameters->axis_count) * sizeof(struct cell);
}

static void cell_set(struct cell *cell, const struct parameter *parameter,
                     const struct value *value)
{
    cell->first = value->first;
    cell->second = value->second;
    if (parameter->kind == PARAMETER_TEXT)
        memcpy(cell->text, value->text, sizeof value->text); /* without quotes */
    else if (parameter->kind != PARAMETER_INTEGER && parameter->kind != PARAMETER_EXTENT)
        parameter_format(parameter, *value, cell->text);
}

/* A program's axis of the parameter's name, where it has a value that the parameter can have: rows of
 * programs and of libraries then lie on one axis. */
static void cell_set_axis(struct cell *cell, const struct config *config,
                          const struct parameter *parameter)
{
    char text[WORKLOAD_STRING];
    struct value value;
    struct error unused;
    if (program_axis(config, parameter->name, text) &&
        parameter_parse(parameter, text, &value, &unused) == STATUS_OK)
        cell_set(cell, parameter, &value);
}

static void axes_row(const struct parameters *parameters, const struct config *config,
                     struct cell *cells)
{
    for (size_t i = 0; i < parameters->axis_count; ++i)
        if (!config_is_program(config) || !program_axis(config, parameters->axes[i], cells[i].text))
            cells[i].text[0] = '\0';
}

void parameters_row(const struct parameters *parameters, const struct config *config, void *row)
{
    int workload = config->workload ? listed(parameters, config->workload) : -1;
    struct cell *cells = row;
    for (size_t i = 0; i < parameters->count; ++i) {
        const struct entry *entry = &parameters->entries[i];
        int parameter = workload < 0 ? -1 : entry->index[workload];
        cells[i].first = cells[i].second = FIELD_MISSING;
        cells[i].text[0] = '\0';
        if (parameter >= 0) {
            struct value value = config_get(config, (size_t)parameter);
            cell_set(&cells[i], &config->workload->parameters[parameter], &value);
        } else if (config_is_program(config)) {
            cell_set_axis(&cells[i], config, entry->parameter);
        }
    }
    axes_row(parameters, config, cells + parameters->count);
}
