#include "results/parameters_nc.h"

#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct cell {
    int64_t first, second;
    char text[WORKLOAD_VALUE_TEXT];
};

struct parameters {
    struct dataset *set;
    int group;
    bool *used;                          /* owned; by workload: the file has rows of the workload */
    const struct parameter **parameters; /* owned; the first workload's parameter of each name */
    bool *requested;                     /* owned; by parameter: the variable is requested_NAME */
    size_t count;                        /* number of parameters, whose cells come first in a row */
    char **axes; /* owned: names of programs' axes, each with a text variable axis_NAME */
    size_t axis_count;
};

static bool row_is_of(const struct row *row, const struct workload *workload)
{
    size_t length = strlen(workload->name);
    return strncmp(row->configuration, workload->name, length) == 0 &&
           row->configuration[length] == ' ';
}

/* Neighbouring rows mostly have one workload, so each search begins at the last row's workload. */
static void workloads_mark(struct parameters *p, const struct results *results)
{
    size_t count = 0, last = 0;
    while (workloads[count])
        ++count;
    p->used = dataset_allocate(p->set, count, sizeof *p->used);
    for (size_t i = 0; p->used && i < results->row_count; ++i) {
        for (size_t j = 0; j < count && !row_is_of(&results->rows[i], workloads[last]); ++j)
            last = j;
        p->used[last] = p->used[last] || row_is_of(&results->rows[i], workloads[last]);
    }
}

static void axis_note(struct parameters *p, const char *name)
{
    for (size_t i = 0; i < p->axis_count; ++i)
        if (strcmp(p->axes[i], name) == 0)
            return;
    char *copy = strdup(name);
    if (!copy || !ARRAY_ADD(p->axes, p->axis_count, copy)) {
        p->set->no_memory = true;
        free(copy);
    }
}

static void axes_list(struct parameters *p, const struct results *results)
{
    struct config config;
    struct error unknown;
    char name[WORKLOAD_STRING];
    for (size_t i = 0; workloads[i]; ++i)
        for (size_t row = 0; workloads[i]->axes && row < results->row_count; ++row)
            if (row_is_of(&results->rows[row], workloads[i]) &&
                config_parse(results->rows[row].configuration, &config, &unknown) == STATUS_OK)
                for (size_t axis = 0; config_axis_name(&config, axis, name); ++axis)
                    axis_note(p, name);
}

/* Whether a row of the workload needs the parameter's variable. A number needs no variable if all
 * rows have its default. A later parameter (parameter.h) needs a variable only if a row names it.
 */
static bool is_named(const struct workload *workload, const char *name,
                     const struct results *results)
{
    int place = workload_parameter(workload, name);
    if (place < 0)
        return false;
    const struct parameter *own = &workload->parameters[place];
    const bool number = own->kind < PARAMETER_WORD && !workload->axes;
    char usual[NC_MAX_NAME], word[NC_MAX_NAME];
    const size_t length = (size_t)snprintf(usual, sizeof usual, " %s=%s", name, own->initial);
    bool named = false;
    snprintf(word, sizeof word, " %s=", name);
    for (size_t i = 0; !named && i < results->row_count; ++i) {
        const char *at = strstr(results->rows[i].configuration, word);
        named = at && !(number && strncmp(at, usual, length) == 0 && strchr(" ", at[length]));
    }
    return named;
}

static bool is_wanted(const struct parameters *p, const char *name, const struct results *results)
{
    for (size_t i = 0; p->used && workloads[i]; ++i)
        if (p->used[i] && is_named(workloads[i], name, results))
            return true;
    for (size_t i = 0; i < p->axis_count; ++i)
        if (strcmp(p->axes[i], name) == 0)
            return true;
    return false;
}

static const char *help_of(const struct parameters *p, size_t workload, const char *name)
{
    int parameter = p->used[workload] ? workload_parameter(workloads[workload], name) : -1;
    return parameter < 0 ? "" : workloads[workload]->parameters[parameter].help;
}

/* Prints the parameter's meaning in each workload: "conv2d: images; lstm, gru: sequences". */
static void meaning_print(const struct parameters *p, const char *name, FILE *stream)
{
    for (size_t i = 0; workloads[i]; ++i) {
        const char *help = help_of(p, i, name);
        bool seen = *help == '\0';
        for (size_t j = 0; j < i; ++j)
            seen = seen || strcmp(help_of(p, j, name), help) == 0;
        if (seen)
            continue;
        fprintf(stream, "%s%s", ftell(stream) > 0 ? "; " : "", workloads[i]->name);
        for (size_t j = i + 1; workloads[j]; ++j)
            if (strcmp(help_of(p, j, name), help) == 0)
                fprintf(stream, ", %s", workloads[j]->name);
        fprintf(stream, ": %s", help);
    }
}

/* True: records have a field with the parameter's name, which has the value that was really used;
 * the parameter's variable is then requested_NAME. */
static bool variable_define(const struct parameters *p, const struct parameter *parameter,
                            const char *suffix, enum field_type type, size_t offset)
{
    char name[NC_MAX_NAME + 1], long_name[NC_MAX_NAME + 16], *comment = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&comment, &size);
    p->set->no_memory = p->set->no_memory || !stream;
    if (!stream)
        return false;
    /* The variables kernel_... describe the kernels that ran. */
    bool filter = strcmp(parameter->name, "kernel") == 0;
    snprintf(name, sizeof name, "%s%s", filter ? "filter" : parameter->name, suffix);
    snprintf(long_name, sizeof long_name, "parameter %s%s%s", parameter->name,
             *suffix == '_' ? ", " : "", *suffix == '_' ? suffix + 1 : "");
    bool ran = dataset_has_column(p->set, name);
    if (ran)
        fprintf(stream, "as the manifest asks for it, empty for auto; %s is what ran", name);
    meaning_print(p, parameter->name, stream);
    fclose(stream);
    const struct field field = {.name = name,
                                .type = type,
                                .offset = p->count * sizeof(struct cell) + offset,
                                .units = "1",
                                .long_name = long_name,
                                .comment = size ? comment : NULL};
    dataset_define_field(p->set, &field, ran ? "requested_" : "", DIM_CONFIG, p->group);
    free(comment);
    return ran;
}

/* Whether a row has "NAME=2x1". */
static bool is_rectangular(const struct parameter *parameter, const struct results *results)
{
    char word[NC_MAX_NAME];
    const int length = snprintf(word, sizeof word, " %s=", parameter->name);
    for (size_t i = 0; i < results->row_count; ++i) {
        const char *at = strstr(results->rows[i].configuration, word);
        if (at && at[length + (int)strspn(at + length, "0123456789")] == 'x')
            return true;
    }
    return false;
}

static void parameter_add(struct parameters *p, const struct parameter *parameter,
                          const struct results *results)
{
    const size_t first = offsetof(struct cell, first), second = offsetof(struct cell, second);
    for (size_t i = 0; i < p->count; ++i)
        if (strcmp(p->parameters[i]->name, parameter->name) == 0)
            return;
    if (!ARRAY_GROW(p->parameters, p->count) || !ARRAY_GROW(p->requested, p->count)) {
        p->set->no_memory = true;
        return;
    }
    p->requested[p->count] = false;
    if (parameter->kind == PARAMETER_INTEGER || parameter->kind == PARAMETER_STEP) {
        /* Height and width are mostly equal, so most files have one variable for both. */
        variable_define(p, parameter, "", FIELD_INTEGER, first);
        if (parameter->kind == PARAMETER_STEP && is_rectangular(parameter, results))
            variable_define(p, parameter, "_width", FIELD_INTEGER, second);
    } else if (parameter->kind == PARAMETER_EXTENT) {
        variable_define(p, parameter, "_height", FIELD_INTEGER, first);
        variable_define(p, parameter, "_width", FIELD_INTEGER, second);
    } else {
        p->requested[p->count] =
            variable_define(p, parameter, "", FIELD_TEXT, offsetof(struct cell, text));
    }
    p->parameters[p->count++] = parameter;
}

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

struct parameters *parameters_define(struct dataset *set, const struct results *results, int group)
{
    struct parameters *p = dataset_allocate(set, 1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct parameters){.set = set, .group = group};
    workloads_mark(p, results);
    axes_list(p, results);
    for (size_t i = 0; workloads[i]; ++i)
        for (size_t j = 0; j < workloads[i]->count && !dataset_failed(set); ++j)
            if (is_wanted(p, workloads[i]->parameters[j].name, results))
                parameter_add(p, &workloads[i]->parameters[j], results);
    axes_define(p);
    return p;
}

void parameters_destroy(struct parameters *parameters)
{
    if (!parameters)
        return;
    for (size_t i = 0; i < parameters->axis_count; ++i)
        free(parameters->axes[i]);
    free(parameters->axes);
    free(parameters->parameters);
    free(parameters->requested);
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
    else if (parameter->kind >= PARAMETER_PADDING)
        parameter_format(parameter, *value, cell->text);
}

/* If a program has an axis with the parameter's name and a value that the parameter allows, the
 * cell gets this value, so that rows of programs and of libraries can be compared. */
static void cell_set_axis(struct cell *cell, const struct config *config,
                          const struct parameter *parameter)
{
    char text[WORKLOAD_STRING];
    struct value value;
    struct error unused;
    if (config_axis(config, parameter->name, text) &&
        parameter_parse(parameter, text, &value, &unused) == STATUS_OK)
        cell_set(cell, parameter, &value);
}

void parameters_row(const struct parameters *parameters, const struct config *config, void *row)
{
    struct cell *cells = row, *axes = cells + parameters->count;
    for (size_t i = 0; i < parameters->count; ++i) {
        const struct parameter *wanted = parameters->parameters[i];
        int own = config->workload ? workload_parameter(config->workload, wanted->name) : -1;
        cells[i].first = cells[i].second = FIELD_MISSING;
        cells[i].text[0] = '\0';
        if (own >= 0) {
            struct value value = config_get(config, (size_t)own);
            cell_set(&cells[i], &config->workload->parameters[own], &value);
        } else {
            cell_set_axis(&cells[i], config, wanted);
        }
        if (parameters->requested[i] && strcmp(cells[i].text, "auto") == 0)
            cells[i].text[0] = '\0';
    }
    for (size_t i = 0; i < parameters->axis_count; ++i)
        if (!config_axis(config, parameters->axes[i], axes[i].text))
            axes[i].text[0] = '\0';
}
