#include "results/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "results/sampling.h"

enum { DEVICES_MAX = 200, REASONS_MAX = 20 };

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

/* What the marks behind the times mean, how many rows have each, and the first of them. */
static void marks_print(const struct results *results, const struct table *table, FILE *stream)
{
    size_t counts[128] = {0}, first[128] = {0};
    char name[WORKLOAD_TEXT];
    for (size_t i = 0; i < results->row_count; ++i)
        for (const char *mark = table_row(table, i)->marks; *mark; ++mark)
            if (counts[(unsigned char)*mark]++ == 0)
                first[(unsigned char)*mark] = i;
    for (int mark = 0; mark < 128; ++mark) {
        if (counts[mark] == 0)
            continue;
        table_name(table, first[mark], name);
        utf8_print(stream, "%c: %s: %s", mark, sampling_mark_text((char)mark), name);
        if (counts[mark] > 1)
            utf8_print(stream, " and %zu more", counts[mark] - 1);
        fputc('\n', stream);
    }
}

/* Rows of one status and one error; the first is the one in the table's order. */
struct reason {
    size_t first, count;
};

static struct reason *reason_find(const struct table *table, struct reason *reasons, size_t count,
                                  const struct row *row)
{
    for (size_t i = 0; i < count; ++i)
        if (strcmp(table_row(table, reasons[i].first)->error, row->error) == 0)
            return &reasons[i];
    return NULL;
}

/* The first reasons, with their rows; *more: there are others. */
static size_t reasons_count(const struct results *results, const struct table *table,
                            enum record_status status, struct reason reasons[REASONS_MAX],
                            bool *more)
{
    size_t found = 0;
    *more = false;
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct row *row = table_row(table, i);
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
static void reasons_print(const struct results *results, const struct table *table,
                          enum record_status status, FILE *stream)
{
    struct reason reasons[REASONS_MAX];
    char name[WORKLOAD_TEXT];
    bool more;
    size_t count = reasons_count(results, table, status, reasons, &more);
    for (size_t i = 0; i < count; ++i) {
        table_name(table, reasons[i].first, name);
        utf8_print(stream, "%s: %s", record_status_name[status], name);
        if (reasons[i].count > 1)
            utf8_print(stream, " and %zu more", reasons[i].count - 1);
        utf8_print(stream, ": %s\n", table_row(table, reasons[i].first)->error);
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
    roofs_print(stream, "   bandwidth", device->peak_bandwidth, LEVEL_COUNT, level_name, "B/s");
    roofs_print(stream, "   vector peak", device->peak_vector, PRECISION_COUNT, precision_name,
                "FLOP/s");
    roofs_print(stream, "   tensor peak", device->peak_tensor, PRECISION_COUNT, precision_name,
                "FLOP/s");
    launches_print(device, stream);
    doubts_print(device, stream);
}

void report_print(const struct results *results, enum table_format format, FILE *stream)
{
    struct table *table = table_create(results);
    if (!table) {
        utf8_print(stream, "no memory for the table; the file has it\n");
        return;
    }
    if (format != TABLE_TEXT) {
        table_print(table, format, stream);
        table_destroy(table);
        return;
    }
    if (results->row_count > 0) {
        table_print(table, format, stream);
        counts_print(results, stream);
        marks_print(results, table, stream);
    }
    reasons_print(results, table, RECORD_FAILED, stream);
    reasons_print(results, table, RECORD_SKIPPED, stream);
    table_destroy(table);
    fputs(results->row_count > 0 ? "\n" : "", stream);
    fputs("devices and their measured roofs\n", stream);
    size_t shown = results->device_count < DEVICES_MAX ? results->device_count : DEVICES_MAX;
    for (size_t i = 0; i < shown; ++i)
        device_print(&results->devices[i], i, stream);
    if (shown < results->device_count)
        utf8_print(stream, "... and %zu more devices\n", results->device_count - shown);
}
