#include "results/report.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/text.h"
#include "model/naming.h"
#include "results/derive.h"

enum {
    CELL = 64,
    LINES_MAX = 200,
    NAME_WIDTH_MAX = 100,
    DEVICES_MAX = 200,
    REASONS_MAX = 20,
    KERNELS_MAX = 20
};

/* The rows in the order in which people read them, and their names. */
struct table {
    const struct results *results;
    const struct row **order; /* owned */
    struct naming *naming;    /* owned */
};

/* What a row says is to be measured; its workload is NULL where this version does not know the
 * text. */
static void row_config(const struct row *row, struct config *config)
{
    struct error unknown;
    if (config_parse(row->configuration, config, &unknown) != STATUS_OK)
        config->workload = NULL;
}

static void table_destroy(struct table *table)
{
    naming_destroy(table->naming);
    free(table->order);
}

/* False: there is no memory. */
static bool table_make(const struct results *results, struct table *table)
{
    struct config config;
    *table = (struct table){results, results_order(results), naming_create()};
    bool made = table->order && table->naming;
    for (size_t i = 0; made && i < results->row_count; ++i) {
        row_config(table->order[i], &config);
        made = naming_add(table->naming, table->order[i]->label, &config);
    }
    if (!made)
        table_destroy(table);
    return made;
}

/* The label, and what distinguishes the row within it: "batch precision=fp16". */
static void table_name(const struct table *table, size_t line, char name[WORKLOAD_TEXT])
{
    const struct row *row = table->order[line];
    struct config config;
    row_config(row, &config);
    if (!naming_format(table->naming, row->label, &config, name))
        snprintf(name, WORKLOAD_TEXT, "%s", row->configuration);
}

/* ---- columns ---- */

/* A row, while its cells are made. */
struct line {
    char name[WORKLOAD_TEXT];
    struct record record;
    struct device blank;
    const struct device *device;
    int64_t index; /* of the device; -1: it is not known */
    struct derived derived;
};

/* A row that cannot be read any more has no values. */
static void line_begin(const struct table *table, size_t place, struct line *line)
{
    const struct results *results = table->results;
    const struct row *row = table->order[place];
    struct record *record = &line->record;
    struct error unread;
    record_init(record);
    device_init(&line->blank);
    if (results_fetch(results, row, record, &unread)) {
        record->status = RECORD_FAILED;
        snprintf(record->configuration, sizeof record->configuration, "%s", row->configuration);
        snprintf(record->config_hash, sizeof record->config_hash, "%s", row->config_hash);
        snprintf(record->label, sizeof record->label, "%s", row->label);
    }
    line->index = results_device(results, row->device_key);
    line->device = line->index < 0 ? &line->blank : &results->devices[line->index];
    line->derived = derive(record, line->device);
    table_name(table, place, line->name);
}

static bool is_measured(const struct line *line)
{
    return line->record.status == RECORD_MEASURED;
}

static const char *name_text(const struct line *line, char own[CELL])
{
    (void)own;
    return line->name;
}

static double device_number(const struct line *line)
{
    return line->index < 0 ? NAN : (double)line->index;
}

static const char *device_text(const struct line *line, char own[CELL])
{
    snprintf(own, CELL, "#%lld", (long long)line->index);
    return line->index < 0 ? "-" : own;
}

static double noise_number(const struct line *line)
{
    return time_uncertainty(&line->record);
}

static const char *marks_text(const struct line *line, char own[CELL])
{
    time_marks(&line->record, own);
    return *own ? own : "-";
}

/* "0.3 hb" in per cent, and what time_marks says. */
static const char *noise_text(const struct line *line, char own[CELL])
{
    char marks[TIME_MARKS], value[16] = "-";
    double uncertainty = noise_number(line);
    time_marks(&line->record, marks);
    if (!isnan(uncertainty))
        snprintf(value, sizeof value, "%.1f", 100 * uncertainty);
    snprintf(own, CELL, "%s%s%s", value, *marks ? " " : "", marks);
    return own;
}

/* At the level of the bandwidth roof. */
static double intensity_number(const struct line *line)
{
    for (int level = 0; is_measured(line) && level < LEVEL_COUNT; ++level)
        if (strcmp(line->derived.roof_memory_level, memory_level_name[level]) == 0)
            return line->derived.arithmetic_intensity[level];
    return NAN;
}

static const char *intensity_text(const struct line *line, char own[CELL])
{
    double intensity = intensity_number(line);
    snprintf(own, CELL, fabs(intensity) < 999.95 ? "%#.4g" : "%.0f", intensity);
    return isnan(intensity) ? "-" : own;
}

static const char *bound_text(const struct line *line, char own[CELL])
{
    (void)own;
    return is_measured(line) ? roofline_bound_name[line->derived.paper_bound]
                             : record_status_name[line->record.status];
}

/* JSON has all columns, the text those with a head, which come first. */
static const struct column {
    const char *head, *unit; /* of the text; "%": a fraction */
    int width;
    const char *key; /* in JSON */
    /* Name in the field tables of records, derived values or devices. NULL: `text` and `number`
     * make the cell. */
    const char *variable;
    enum { ANY, MEASURED, UNMEASURED } rows; /* status of the rows that have the variable */
    /* Returns `own` or a text that lives as long as the line; "-": missing. */
    const char *(*text)(const struct line *line, char own[CELL]);
    double (*number)(const struct line *line); /* NaN: missing. NULL: JSON has the text */
} columns[] = {
    {"configuration", "", 0, "name", .text = name_text},
    {"device", "", 6, "device", .text = device_text, .number = device_number},
    {"time", "", 9, "time_s", .variable = "time_median"},
    {"+-", "%", 9, "time_uncertainty", .text = noise_text, .number = noise_number},
    {"FLOP/s", "", 9, "flops_per_s", .variable = "performance"},
    {"AI", "FLOP/byte", 9, "flops_per_byte", .text = intensity_text, .number = intensity_number},
    {"level", "", 5, "memory_level", .variable = "roof_memory_level", .rows = MEASURED},
    {"bound", "", 9, "bound", .text = bound_text},
    {"limiter", "", 9, "limiter", .variable = "limiter", .rows = MEASURED},
    {"of roof", "%", 7, "fraction_of_roof", .variable = "roof_fraction"},
    {NULL, "", 0, "status", .variable = "status"},
    {NULL, "", 0, "error", .variable = "error", .rows = UNMEASURED},
    {NULL, "", 0, "marks", .text = marks_text},
    {NULL, "", 0, "label", .variable = "label"},
    {NULL, "", 0, "configuration", .variable = "configuration"},
    {NULL, "", 0, "config_hash", .variable = "config_hash"},
    {NULL, "", 0, "hostname", .variable = "hostname"},
    {NULL, "", 0, "uuid", .variable = "uuid"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

struct cell {
    const char *text; /* "-": missing */
    bool is_number;   /* in JSON */
    double number;    /* NaN: missing */
    char own[CELL];   /* room for `text` */
};

static const struct field *variable_find(const struct field *table, const char *name)
{
    while (table->name && strcmp(table->name, name) != 0)
        ++table;
    return table->name ? table : NULL;
}

static void cell_of_variable(const struct line *line, const struct column *column,
                             struct cell *cell)
{
    const struct {
        const struct field *table;
        const void *structure;
    } places[] = {{record_fields, &line->record},
                  {derived_fields, &line->derived},
                  {device_fields, line->device}};
    const struct field *field = NULL;
    size_t place = 0;
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): one of these tables has it */
    while (!(field = variable_find(places[place].table, column->variable)))
        ++place;
    const void *at = (const char *)places[place].structure + field->offset;
    cell->text = "-";
    cell->is_number = field->type == FIELD_DOUBLE;
    if (field_is_missing(field, places[place].structure) ||
        (column->rows != ANY && is_measured(line) != (column->rows == MEASURED)))
        return;
    if (field->type == FIELD_TEXT) {
        cell->text = at;
    } else if (field->type == FIELD_FLAG) {
        cell->text = field->flags[*(const int64_t *)at];
    } else {
        cell->number = *(const double *)at;
        cell->text = cell->own;
        if (*column->unit == '%')
            snprintf(cell->own, CELL, "%.1f", 100 * cell->number);
        else /* FLOP/s: the head says so */
            units_format(cell->number, strcmp(field->units, "s") == 0 ? "s" : "", cell->own);
    }
}

static void cell_make(const struct line *line, const struct column *column, struct cell *cell)
{
    cell->is_number = column->number != NULL;
    cell->number = column->number ? column->number(line) : NAN;
    if (column->variable)
        cell_of_variable(line, column, cell);
    else
        cell->text = column->text(line, cell->own);
}

/* The caller clears line->record. */
static void cells_make(const struct table *table, size_t place, struct line *line,
                       struct cell cells[COLUMNS])
{
    line_begin(table, place, line);
    for (int i = 0; i < COLUMNS; ++i)
        cell_make(line, &columns[i], &cells[i]);
}

/* ---- as text ---- */

/* Of the names of the first rows. */
static int name_width(const struct table *table)
{
    size_t width = strlen(columns[0].head);
    for (size_t i = 0; i < table->results->row_count && i < LINES_MAX; ++i) {
        char name[WORKLOAD_TEXT];
        table_name(table, i, name);
        width = strlen(name) > width ? strlen(name) : width;
    }
    return (int)(width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX);
}

/* The first column is left-aligned. */
static void text_line(const struct cell cells[COLUMNS], int width, FILE *stream)
{
    utf8_print(stream, "%-*s", width, cells[0].text);
    for (int i = 1; columns[i].head; ++i)
        utf8_print(stream, " %*s", columns[i].width, cells[i].text);
    fputc('\n', stream);
}

static void text_print(const struct table *table, FILE *stream)
{
    const int width = name_width(table);
    const size_t count = table->results->row_count, shown = count < LINES_MAX ? count : LINES_MAX;
    struct cell cells[COLUMNS], units[COLUMNS];
    struct line line;
    bool above = false;
    for (int i = 0; i < COLUMNS; ++i) {
        cells[i].text = columns[i].head;
        units[i].text = columns[i].unit;
    }
    text_line(cells, width, stream);
    text_line(units, width, stream);
    for (size_t i = 0; i < shown; ++i) {
        cells_make(table, i, &line, cells);
        text_line(cells, width, stream);
        record_clear(&line.record);
        above |= line.derived.roof_fraction > 1;
    }
    if (shown < count)
        utf8_print(stream, "... and %zu more rows\n", count - shown);
    if (above)
        fputs("of roof above 100 %: fewer FLOPs than modelled, bytes from a nearer memory, or a "
              "higher clock\nthan while the roof was measured\n",
              stream);
}

/* ---- as JSON ---- */

static json_t *cell_encode(const struct cell *cell)
{
    if (!cell->is_number)
        return strcmp(cell->text, "-") == 0 ? json_null() : json_string(cell->text);
    bool whole = cell->number == floor(cell->number) && fabs(cell->number) < 1e9;
    return isnan(cell->number) ? json_null()
           : whole             ? json_integer((json_int_t)cell->number)
                               : json_real(cell->number);
}

static void json_print(const struct table *table, FILE *stream)
{
    fputs("[\n", stream);
    for (size_t i = 0; i < table->results->row_count; ++i) {
        struct cell cells[COLUMNS];
        struct line line;
        json_t *object = json_object();
        cells_make(table, i, &line, cells);
        for (int j = 0; j < COLUMNS; ++j) {
            json_t *value = cell_encode(&cells[j]);
            json_object_set_new(object, columns[j].key, value ? value : json_null());
        }
        fputs(i > 0 ? ",\n" : "", stream);
        json_dumpf(object, stream, JSON_COMPACT);
        json_decref(object);
        record_clear(&line.record);
    }
    fputs("\n]\n", stream);
}

/* ---- what follows the table ---- */

static void counts_print(const struct results *results, FILE *stream)
{
    enum { STATUSES = 3 };
    size_t counts[STATUSES] = {0, 0, 0};
    for (size_t i = 0; i < results->row_count; ++i)
        ++counts[results->rows[i].status];
    utf8_print(stream, "\n%zu configuration%s:", results->row_count,
               results->row_count == 1 ? "" : "s");
    for (int i = 0; i < STATUSES; ++i)
        utf8_print(stream, "%s %zu %s", i ? "," : "", counts[i], record_status_name[i]);
    fputc('\n', stream);
}

/* What the marks after the times mean, how many rows have each, and the first of them. */
static void marks_print(const struct results *results, const struct table *table, FILE *stream)
{
    size_t counts[128] = {0}, first[128] = {0};
    char name[WORKLOAD_TEXT];
    for (size_t i = 0; i < results->row_count; ++i)
        for (const char *mark = table->order[i]->marks; *mark; ++mark)
            if (counts[(unsigned char)*mark]++ == 0)
                first[(unsigned char)*mark] = i;
    for (int mark = 0; mark < 128; ++mark) {
        if (counts[mark] == 0)
            continue;
        table_name(table, first[mark], name);
        utf8_print(stream, "%c: %s: %s", mark, time_mark_text((char)mark), name);
        if (counts[mark] > 1)
            utf8_print(stream, " and %zu more", counts[mark] - 1);
        fputc('\n', stream);
    }
}

/* Each reason once, with the first row of this status that it stopped. */
static void reasons_print(const struct results *results, const struct table *table,
                          enum record_status status, FILE *stream)
{
    struct {
        size_t first, count;
    } reasons[REASONS_MAX];
    size_t found = 0;
    bool more = false;
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct row *row = table->order[i];
        size_t at = 0;
        if (row->status != (int64_t)status)
            continue;
        while (at < found && strcmp(table->order[reasons[at].first]->error, row->error) != 0)
            ++at;
        if (at < found) {
            ++reasons[at].count;
        } else if (found < REASONS_MAX) {
            reasons[found].first = i;
            reasons[found++].count = 1;
        } else {
            more = true;
        }
    }
    for (size_t i = 0; i < found; ++i) {
        char name[WORKLOAD_TEXT];
        table_name(table, reasons[i].first, name);
        utf8_print(stream, "%s: %s", record_status_name[status], name);
        if (reasons[i].count > 1)
            utf8_print(stream, " and %zu more", reasons[i].count - 1);
        utf8_print(stream, ": %s\n", table->order[reasons[i].first]->error);
    }
    if (more)
        utf8_print(stream, "... and more reasons\n");
}

static int kernels_longer(const void *a, const void *b)
{
    const struct kernel *x = *(const struct kernel *const *)a,
                        *y = *(const struct kernel *const *)b;
    return (x->time < y->time) - (x->time > y->time);
}

/* "  34.0 %" of the whole, "       -" if either is missing. */
static void share_print(double part, double whole, FILE *stream)
{
    if (isnan(part / whole))
        utf8_print(stream, "%8s ", "-");
    else
        utf8_print(stream, "%6.1f %% ", 100 * part / whole);
}

/* A part of an iteration's time. */
static void part_print(double seconds, double whole, const char *what, FILE *stream)
{
    char text[UNITS_TEXT];
    if (isnan(seconds))
        return;
    units_format(seconds, "s", text);
    share_print(seconds, whole, stream);
    utf8_print(stream, "%-10s %s\n", text, what);
}

/* Of a single row where its time went, if it has kernels: these by their time, each at the roofs
 * and with its cause, and what is beside them. */
static void parts_print(const struct table *table, FILE *stream)
{
    struct line line;
    char text[CAUSE_TEXT];
    line_begin(table, 0, &line);
    const struct record *record = &line.record;
    const struct kernel **kernels = calloc(record->kernel_count + 1, sizeof *kernels);
    size_t shown = record->kernel_count < KERNELS_MAX ? record->kernel_count : KERNELS_MAX;
    for (size_t i = 0; kernels && i < record->kernel_count; ++i)
        kernels[i] = &record->kernels[i];
    if (kernels && shown > 0) {
        qsort(kernels, record->kernel_count, sizeof *kernels, kernels_longer);
        fputs("\nwhere the time of an iteration went\n", stream);
        part_print(record->busy_time, record->time_median, "kernels run", stream);
        part_print(line.derived.gap_time, record->time_median, "no kernel runs", stream);
        part_print(record->memcpy_time, record->time_median, "copies", stream);
        part_print(record->memset_time, record->time_median, "fills of memory", stream);
        part_print(record->host_time, record->time_median, "the host enqueues it", stream);
        utf8_print(stream,
                   "\nof the kernels' time, launches, of the compute roof, of dram's, name\n");
    }
    for (size_t i = 0; kernels && i < shown; ++i) {
        const struct kernel *kernel = kernels[i];
        share_print(kernel->time, record->busy_time, stream);
        utf8_print(stream, "%5lld ", (long long)kernel->count);
        share_print(kernel->flops_counted / kernel->time, line.derived.compute_roof, stream);
        share_print(kernel->bytes_counted[LEVEL_DRAM] / kernel->time,
                    line.device->peak_bandwidth[LEVEL_DRAM], stream);
        utf8_print(stream, "%s\n", kernel->name);
        cause_of_kernel(kernel, line.device, text);
        if (*text)
            utf8_print(stream, "%9s%s\n", "", text);
    }
    if (kernels && shown < record->kernel_count)
        utf8_print(stream, "... and %zu more kernels\n", record->kernel_count - shown);
    free(kernels);
    record_clear(&line.record);
}

/* Those of one variable, by memory level or precision. */
static void roofs_print(const struct device *device, const char *title, const char *variable,
                        const char *unit, FILE *stream)
{
    const struct field *field = variable_find(device_fields, variable);
    const double *values = (const void *)((const char *)device + field->offset);
    const char *separator = title;
    char text[UNITS_TEXT];
    for (size_t i = 0; i < field_elements(field); ++i) {
        if (isnan(values[i]))
            continue;
        units_format(values[i], unit, text);
        utf8_print(stream, "%s %s %s", separator, field_element_name(field, i), text);
        separator = ",";
    }
    if (separator != title)
        fputc('\n', stream);
}

/* Roofs that theory or counters speak against. */
static void doubts_print(const struct device *device, FILE *stream)
{
    for (int64_t i = 0; i < device->roof_count; ++i) {
        const struct roof *roof = &device->roofs[i];
        if (roof->verdict == ROOF_ABOVE_THEORY || roof->verdict == ROOF_CONTRADICTED)
            utf8_print(stream, "   not used: %s, %s, is %s\n", roof_name(roof),
                       roof_condition_name[roof->condition == ROOF_TOGETHER],
                       roof_verdict_name[roof->verdict]);
    }
}

/* From one kernel to the next: of empty ones, and of small ones that need each other's results. */
static void launches_print(const struct device *device, FILE *stream)
{
    char text[UNITS_TEXT];
    if (isnan(device->launch_overhead))
        return;
    units_format(device->launch_overhead, "s", text);
    utf8_print(stream, "   launch overhead %s", text);
    if (!isnan(device->launch_dependent)) {
        units_format(device->launch_dependent, "s", text);
        utf8_print(stream, ", of dependent kernels %s", text);
    }
    fputc('\n', stream);
}

static void device_print(const struct device *device, size_t row, FILE *stream)
{
    utf8_print(stream, "#%zu %s: %s %lld, %s, %s%s%s\n", row, device->hostname, device->kind,
               (long long)device->index, device->model, device->uuid,
               *device->pci_id ? ", PCI " : "", device->pci_id);
    roofs_print(device, "   bandwidth", "peak_bandwidth", "B/s", stream);
    roofs_print(device, "   vector peak", "peak_vector", "FLOP/s", stream);
    roofs_print(device, "   tensor peak", "peak_tensor", "FLOP/s", stream);
    launches_print(device, stream);
    doubts_print(device, stream);
}

static void text_report(const struct table *table, FILE *stream)
{
    const struct results *results = table->results;
    if (results->row_count > 0) {
        text_print(table, stream);
        counts_print(results, stream);
        marks_print(results, table, stream);
    }
    reasons_print(results, table, RECORD_FAILED, stream);
    reasons_print(results, table, RECORD_SKIPPED, stream);
    if (results->row_count == 1)
        parts_print(table, stream);
    fputs(results->row_count > 0 ? "\n" : "", stream);
    fputs("devices and their measured roofs\n", stream);
    size_t shown = results->device_count < DEVICES_MAX ? results->device_count : DEVICES_MAX;
    for (size_t i = 0; i < shown; ++i)
        device_print(&results->devices[i], i, stream);
    if (shown < results->device_count)
        utf8_print(stream, "... and %zu more devices\n", results->device_count - shown);
}

void report_print(const struct results *results, bool json, FILE *stream)
{
    struct table table;
    if (!table_make(results, &table)) {
        utf8_print(stream, "no memory for the table; the file has it\n");
        return;
    }
    if (json)
        json_print(&table, stream);
    else
        text_report(&table, stream);
    table_destroy(&table);
}
