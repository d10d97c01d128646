#include "results/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "base/utf8.h"
#include "results/derive.h"
#include "results/sampling.h"

enum { LINES_MAX = 200, REASONS_MAX = 20, NAME_WIDTH_MAX = 100 };

/* Rows of one label and workload. */
struct group {
    size_t begin, end;               /* of the table's order */
    const struct workload *workload; /* NULL: this version does not know it */
    bool *varies;                    /* owned; by parameter, whether it tells the rows apart */
};

struct table {
    const struct results *results;
    const struct row **order; /* owned */
    struct group *groups;     /* owned */
    size_t group_count;
};

/* What a row says is to be measured; its workload is NULL where this version does not know the text. */
static void row_config(const struct row *row, struct config *config)
{
    struct error unknown;
    if (row->record)
        *config = row->record->config;
    else if (config_parse(row->configuration, config, &unknown) != STATUS_OK)
        config->workload = NULL;
}

static void note_differences(struct group *group, const struct config *first,
                             const struct config *other)
{
    for (size_t i = 0; i < group->workload->count; ++i) {
        struct value a = config_get(first, i), b = config_get(other, i);
        group->varies[i] = group->varies[i] || !value_equal(&a, &b);
    }
}

/* The group that begins with this row. False: no memory. */
static bool group_find(const struct table *table, size_t begin, struct group *group)
{
    struct config first, other;
    row_config(table->order[begin], &first);
    *group = (struct group){begin, begin + 1, first.workload, NULL};
    if (first.workload && !(group->varies = calloc(first.workload->count + 1, sizeof(bool))))
        return false;
    for (; group->end < table->results->row_count; ++group->end) {
        if (strcmp(table->order[group->end]->label, table->order[begin]->label) != 0)
            break;
        row_config(table->order[group->end], &other);
        if (other.workload != first.workload)
            break;
        if (first.workload)
            note_differences(group, &first, &other);
    }
    return true;
}

static bool groups_find(struct table *table)
{
    for (size_t begin = 0; begin < table->results->row_count;
         begin = table->groups[table->group_count - 1].end) {
        void *grown = array_grow(table->groups, table->group_count, sizeof *table->groups);
        if (!grown)
            return false;
        table->groups = grown;
        if (!group_find(table, begin, &table->groups[table->group_count]))
            return false;
        ++table->group_count;
    }
    return true;
}

static void table_destroy(struct table *table)
{
    for (size_t i = 0; i < table->group_count; ++i)
        free(table->groups[i].varies);
    free(table->groups);
    free(table->order);
}

static bool table_create(const struct results *results, struct table *table)
{
    *table = (struct table){.results = results, .order = results_order(results)};
    if (table->order && groups_find(table))
        return true;
    table_destroy(table);
    return false;
}

/* The first label, and how many more there are. */
static void label_format(const char *label, char text[96])
{
    size_t first = strcspn(label, " "), more = 0;
    for (const char *space = label; (space = strchr(space, ' ')); ++space)
        ++more;
    int length = snprintf(text, 96, "%.*s", (int)(first < 64 ? first : 64), label);
    if (more > 0)
        snprintf(text + length, 96 - (size_t)length, "+%zu", more);
}

static const struct group *group_of(const struct table *table, size_t row)
{
    size_t i = 0;
    while (row >= table->groups[i].end)
        ++i;
    return &table->groups[i];
}

/* Label, and what distinguishes the row within it. */
static void name_format(const struct table *table, size_t row, char name[WORKLOAD_TEXT])
{
    const struct group *group = group_of(table, row);
    struct config config;
    char value[WORKLOAD_VALUE_TEXT];
    size_t used;
    if (!group->workload) {
        snprintf(name, WORKLOAD_TEXT, "%s", table->order[row]->configuration);
        return;
    }
    label_format(table->order[row]->label, name);
    row_config(table->order[row], &config);
    for (size_t i = 0; i < group->workload->count; ++i) {
        const struct parameter *parameter = &group->workload->parameters[i];
        if (!group->varies[i])
            continue;
        parameter_format(parameter, config_get(&config, i), value);
        used = strlen(name);
        snprintf(name + used, WORKLOAD_TEXT - used, " %s=%s", parameter->name, value);
    }
}

static void row_print(FILE *stream, int width, const char *name, const char *const cells[9])
{
    static const int widths[] = {6, 9, 9, 9, 9, 5, 9, 9, 7};
    utf8_print(stream, "%-*s", width, name);
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; ++i)
        utf8_print(stream, " %*s", widths[i], cells[i]);
    fputc('\n', stream);
}

/* "0.25 hb" in per cent, and what sampling_marks says. */
static void noise_format(const struct record *record, char text[24])
{
    char marks[SAMPLING_MARKS], value[16] = "-";
    double uncertainty = sampling_derive(record).uncertainty;
    sampling_marks(record, marks);
    if (!isnan(uncertainty))
        snprintf(value, sizeof value, "%.2g", 100 * uncertainty);
    snprintf(text, 24, "%s%s%s", value, *marks ? " " : "", marks);
}

/* A row that cannot be read any more has no values. */
static void line_print(const struct table *table, size_t row, const char *name, int width,
                       FILE *stream)
{
    char noise[24], device[24] = "-", time[UNITS_TEXT], performance[UNITS_TEXT];
    char intensity[24] = "-", fraction[24] = "-";
    int64_t index = results_device(table->results, table->order[row]->device_key);
    struct device blank;
    struct record record;
    struct error unread;
    device_init(&blank);
    record_init(&record);
    if (results_fetch(table->results, table->order[row], &record, &unread))
        record.status = RECORD_FAILED;
    if (index >= 0)
        snprintf(device, sizeof device, "#%lld", (long long)index);
    struct derived derived = derive(&record, index < 0 ? &blank : &table->results->devices[index]);
    const struct roofline *roofline = &derived.roofline;
    bool measured = record.status == RECORD_MEASURED;
    units_format(record.time_median, "s", time);
    noise_format(&record, noise);
    units_format(roofline->performance, "", performance);
    if (measured && !isnan(roofline->intensity))
        snprintf(intensity, sizeof intensity, "%.4g", roofline->intensity);
    if (!isnan(roofline->fraction))
        snprintf(fraction, sizeof fraction, "%.1f", 100 * roofline->fraction);
    const char *bound =
        measured ? roofline_bound_name[roofline->bound] : record_status_name[record.status];
    const char *limiter = measured ? limiter_name[derived.limiter] : "-";
    const char *level = measured ? derived_level_name(&derived) : "-";
    const char *const cells[] = {device,      time,      noise,
                                 performance, intensity, *level ? level : "-",
                                 bound,       limiter,   fraction};
    row_print(stream, width, name, cells);
    record_clear(&record);
}

/* Of the names of the first rows. */
static size_t name_width(const struct table *table, size_t shown)
{
    size_t width = strlen("configuration");
    for (size_t i = 0; i < shown; ++i) {
        char name[WORKLOAD_TEXT];
        name_format(table, i, name);
        width = strlen(name) > width ? strlen(name) : width;
    }
    return width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX;
}

static void table_print(const struct table *table, FILE *stream)
{
    static const char *const head[] = {"device", "time",  "+-",      "FLOP/s", "AI",
                                       "level",  "bound", "limiter", "of roof"};
    static const char *const units[] = {"", "", "%", "", "FLOP/byte", "", "", "", "%"};
    size_t count = table->results->row_count, shown = count < LINES_MAX ? count : LINES_MAX;
    int width = (int)name_width(table, shown);
    row_print(stream, width, "configuration", head);
    row_print(stream, width, "", units);
    for (size_t i = 0; i < shown; ++i) {
        char name[WORKLOAD_TEXT];
        name_format(table, i, name);
        line_print(table, i, name, width, stream);
    }
    if (shown < count)
        utf8_print(stream, "... and %zu more rows\n", count - shown);
}

static void counts_print(const struct results *results, FILE *stream)
{
    size_t counts[3] = {0, 0, 0};
    for (size_t i = 0; i < results->row_count; ++i)
        ++counts[results->rows[i].status];
    utf8_print(stream, "\n%zu configurations:", results->row_count);
    for (int i = 0; record_status_name[i]; ++i)
        utf8_print(stream, "%s %zu %s", i ? "," : "", counts[i], record_status_name[i]);
    fputc('\n', stream);
}

/* What the marks behind the times mean, and how many rows have each. */
static void marks_print(const struct results *results, FILE *stream)
{
    size_t counts[128] = {0};
    for (size_t i = 0; i < results->row_count; ++i)
        for (const char *mark = results->rows[i].marks; *mark; ++mark)
            ++counts[(unsigned char)*mark];
    for (int mark = 0; mark < 128; ++mark)
        if (counts[mark] > 0)
            utf8_print(stream, "%c: %s (rows: %zu)\n", mark, sampling_mark_text((char)mark),
                       counts[mark]);
}

/* Rows of one status and one error; the first is the one in the table's order. */
struct reason {
    size_t first, count;
};

static struct reason *reason_find(const struct table *table, struct reason *reasons, size_t count,
                                  const struct row *row)
{
    for (size_t i = 0; i < count; ++i)
        if (strcmp(table->order[reasons[i].first]->error, row->error) == 0)
            return &reasons[i];
    return NULL;
}

/* The first reasons, with their rows; *more: there are others. */
static size_t reasons_count(const struct table *table, enum record_status status,
                            struct reason reasons[REASONS_MAX], bool *more)
{
    size_t found = 0;
    *more = false;
    for (size_t i = 0; i < table->results->row_count; ++i) {
        const struct row *row = table->order[i];
        if (row->status != (int64_t)status)
            continue;
        struct reason *same = reason_find(table, reasons, found, row);
        if (same)
            ++same->count;
        else if (found < REASONS_MAX)
            reasons[found++] = (struct reason){i, 1};
        else
            *more = true;
    }
    return found;
}

/* Each reason once, with the first row that it stopped. */
static void reasons_print(const struct table *table, enum record_status status, FILE *stream)
{
    struct reason reasons[REASONS_MAX];
    char name[WORKLOAD_TEXT];
    bool more;
    size_t count = reasons_count(table, status, reasons, &more);
    for (size_t i = 0; i < count; ++i) {
        name_format(table, reasons[i].first, name);
        utf8_print(stream, "%s: %s", record_status_name[status], name);
        if (reasons[i].count > 1)
            utf8_print(stream, " and %zu more", reasons[i].count - 1);
        utf8_print(stream, ": %s\n", table->order[reasons[i].first]->error);
    }
    if (more)
        utf8_print(stream, "... and more reasons\n");
}

static void roofs_print(FILE *stream, const char *title, const double *values, size_t count,
                        const char *(*name)(size_t i), const char *unit)
{
    const char *separator = title;
    char text[UNITS_TEXT];
    for (size_t i = 0; i < count; ++i) {
        if (isnan(values[i]))
            continue;
        units_format(values[i], unit, text);
        utf8_print(stream, "%s %s %s", separator, name(i), text);
        separator = ",";
    }
    if (separator != title)
        fputc('\n', stream);
}

static const char *level_name(size_t i)
{
    return memory_level_name[i];
}

static const char *precision_name(size_t i)
{
    return precision_info[i].name;
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

static void device_print(const struct device *device, size_t row, FILE *stream)
{
    char text[UNITS_TEXT];
    utf8_print(stream, "#%zu %s: %s %lld, %s, %s%s%s\n", row, device->hostname, device->kind,
               (long long)device->index, device->model, device->uuid,
               *device->pci_id ? ", PCI " : "", device->pci_id);
    roofs_print(stream, "   bandwidth", device->peak_bandwidth, LEVEL_COUNT, level_name, "B/s");
    roofs_print(stream, "   vector peak", device->peak_vector, PRECISION_COUNT, precision_name,
                "FLOP/s");
    roofs_print(stream, "   tensor peak", device->peak_tensor, PRECISION_COUNT, precision_name,
                "FLOP/s");
    if (!isnan(device->launch_overhead)) {
        units_format(device->launch_overhead, "s", text);
        utf8_print(stream, "   launch overhead %s\n", text);
    }
    doubts_print(device, stream);
}

void report_print(const struct results *results, FILE *stream)
{
    struct table table;
    if (!table_create(results, &table)) {
        utf8_print(stream, "no memory for the table; the file has it\n");
        return;
    }
    if (results->row_count > 0) {
        table_print(&table, stream);
        counts_print(results, stream);
        marks_print(results, stream);
    }
    reasons_print(&table, RECORD_FAILED, stream);
    reasons_print(&table, RECORD_SKIPPED, stream);
    table_destroy(&table);
    fputs(results->row_count > 0 ? "\n" : "", stream);
    fputs("devices and their measured roofs\n", stream);
    size_t shown = results->device_count < LINES_MAX ? results->device_count : LINES_MAX;
    for (size_t i = 0; i < shown; ++i)
        device_print(&results->devices[i], i, stream);
    if (shown < results->device_count)
        utf8_print(stream, "... and %zu more devices\n", results->device_count - shown);
}
