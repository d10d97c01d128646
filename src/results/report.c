#include "results/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "results/derive.h"
#include "results/sampling.h"

enum { LINES_MAX = 200, REASONS_MAX = 20, NAME_WIDTH_MAX = 100 };

/* One line of the table. */
struct line {
    const struct record *record;
    char name[WORKLOAD_TEXT]; /* label and what distinguishes it within the label */
    int64_t device;           /* row of results->devices, or -1 */
};

static bool same_group(const struct line *a, const struct line *b)
{
    return strcmp(a->record->label, b->record->label) == 0 &&
           a->record->config.workload == b->record->config.workload;
}

static bool varies(const struct line *group, size_t count, size_t parameter)
{
    struct value first = config_get(&group[0].record->config, parameter);
    for (size_t i = 1; i < count; ++i) {
        struct value other = config_get(&group[i].record->config, parameter);
        if (!value_equal(&other, &first))
            return true;
    }
    return false;
}

static void name_append(struct line *line, size_t parameter)
{
    const struct parameter *p = &line->record->config.workload->parameters[parameter];
    char value[WORKLOAD_VALUE_TEXT];
    size_t used = strlen(line->name);
    parameter_format(p, config_get(&line->record->config, parameter), value);
    snprintf(line->name + used, sizeof line->name - used, " %s=%s", p->name, value);
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

/* Gives the lines of one label and workload names that say what differs between them. */
static void group_name(struct line *group, size_t count)
{
    const struct workload *workload = group[0].record->config.workload;
    char label[96];
    label_format(group[0].record->label, label);
    for (size_t i = 0; i < count; ++i)
        snprintf(group[i].name, sizeof group[i].name, "%s",
                 workload ? label : group[i].record->configuration);
    for (size_t parameter = 0; workload && parameter < workload->count; ++parameter)
        if (varies(group, count, parameter))
            for (size_t i = 0; i < count; ++i)
                name_append(&group[i], parameter);
}

static struct line *lines_create(const struct results *results)
{
    size_t count = results->record_count;
    const struct record **order = results_order(results);
    struct line *lines = calloc(count ? count : 1, sizeof *lines);
    for (size_t i = 0; order && lines && i < count; ++i) {
        lines[i].record = order[i];
        lines[i].device = results_device(results, order[i]->device_key);
    }
    free(order);
    if (!order) {
        free(lines);
        return NULL;
    }
    for (size_t begin = 0, end = 0; lines && begin < count; begin = end) {
        while (end < count && same_group(&lines[begin], &lines[end]))
            ++end;
        group_name(&lines[begin], end - begin);
    }
    return lines;
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

static void line_print(const struct results *results, const struct line *line, int width,
                       FILE *stream)
{
    char noise[24], device[24] = "-", time[UNITS_TEXT], performance[UNITS_TEXT];
    char intensity[24] = "-", fraction[24] = "-";
    struct device blank;
    device_init(&blank);
    if (line->device >= 0)
        snprintf(device, sizeof device, "#%lld", (long long)line->device);
    const struct record *record = line->record;
    struct derived derived =
        derive(record, line->device < 0 ? &blank : &results->devices[line->device]);
    const struct roofline *roofline = &derived.roofline;
    bool measured = record->status == RECORD_MEASURED;
    units_format(record->time_median, "s", time);
    noise_format(record, noise);
    units_format(roofline->performance, "", performance);
    if (measured && !isnan(roofline->intensity))
        snprintf(intensity, sizeof intensity, "%.4g", roofline->intensity);
    if (!isnan(roofline->fraction))
        snprintf(fraction, sizeof fraction, "%.1f", 100 * roofline->fraction);
    const char *bound =
        measured ? roofline_bound_name[roofline->bound] : record_status_name[record->status];
    const char *limiter = measured ? limiter_name[derived.limiter] : "-";
    const char *level = measured ? derived_level_name(&derived) : "-";
    const char *const cells[] = {device,      time,      noise,
                                 performance, intensity, *level ? level : "-",
                                 bound,       limiter,   fraction};
    row_print(stream, width, line->name, cells);
}

static void table_print(const struct results *results, const struct line *lines, FILE *stream)
{
    static const char *const head[] = {"device", "time",  "+-",      "FLOP/s", "AI",
                                       "level",  "bound", "limiter", "of roof"};
    static const char *const units[] = {"", "", "%", "", "FLOP/byte", "", "", "", "%"};
    size_t count = results->record_count, shown = count < LINES_MAX ? count : LINES_MAX;
    size_t width = strlen("configuration");
    for (size_t i = 0; i < shown; ++i)
        if (strlen(lines[i].name) > width)
            width = strlen(lines[i].name);
    if (width > NAME_WIDTH_MAX)
        width = NAME_WIDTH_MAX;
    row_print(stream, (int)width, "configuration", head);
    row_print(stream, (int)width, "", units);
    for (size_t i = 0; i < shown; ++i)
        line_print(results, &lines[i], (int)width, stream);
    if (shown < count)
        utf8_print(stream, "... and %zu more rows\n", count - shown);
}

static void counts_print(const struct results *results, FILE *stream)
{
    size_t counts[3] = {0, 0, 0};
    for (size_t i = 0; i < results->record_count; ++i)
        ++counts[results->records[i].status];
    utf8_print(stream, "\n%zu configurations:", results->record_count);
    for (int i = 0; record_status_name[i]; ++i)
        utf8_print(stream, "%s %zu %s", i ? "," : "", counts[i], record_status_name[i]);
    fputc('\n', stream);
}

/* What the marks behind the times mean, and how many rows have each. */
static void marks_print(const struct results *results, FILE *stream)
{
    size_t counts[128] = {0};
    for (size_t i = 0; i < results->record_count; ++i) {
        char marks[SAMPLING_MARKS];
        sampling_marks(&results->records[i], marks);
        for (const char *mark = marks; *mark; ++mark)
            ++counts[(unsigned char)*mark];
    }
    for (int mark = 0; mark < 128; ++mark)
        if (counts[mark] > 0)
            utf8_print(stream, "%c: %s (rows: %zu)\n", mark, sampling_mark_text((char)mark),
                       counts[mark]);
}

static size_t same_reason_count(const struct line *lines, size_t count, const struct record *record)
{
    size_t same = 0;
    for (size_t i = 0; i < count; ++i)
        same += lines[i].record->status == record->status &&
                strcmp(lines[i].record->error, record->error) == 0;
    return same;
}

static bool reason_seen(const struct record *const *seen, size_t count, const struct record *record)
{
    for (size_t i = 0; i < count; ++i)
        if (strcmp(seen[i]->error, record->error) == 0)
            return true;
    return false;
}

/* Each reason once, with the first line that it stopped. */
static void reasons_print(const struct line *lines, size_t count, enum record_status status,
                          FILE *stream)
{
    const struct record *seen[REASONS_MAX];
    size_t shown = 0;
    for (size_t i = 0; i < count; ++i) {
        const struct record *record = lines[i].record;
        if (record->status != (int64_t)status || reason_seen(seen, shown, record))
            continue;
        if (shown == REASONS_MAX) {
            utf8_print(stream, "... and more reasons\n");
            return;
        }
        seen[shown++] = record;
        size_t others = same_reason_count(lines, count, record) - 1;
        utf8_print(stream, "%s: %s", record_status_name[status], lines[i].name);
        if (others > 0)
            utf8_print(stream, " and %zu more", others);
        utf8_print(stream, ": %s\n", record->error);
    }
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
    struct line *lines = lines_create(results);
    if (!lines) {
        utf8_print(stream, "no memory for the table; the file has it\n");
        return;
    }
    if (results->record_count > 0) {
        table_print(results, lines, stream);
        counts_print(results, stream);
        marks_print(results, stream);
    }
    reasons_print(lines, results->record_count, RECORD_FAILED, stream);
    reasons_print(lines, results->record_count, RECORD_SKIPPED, stream);
    fputs(results->record_count > 0 ? "\n" : "", stream);
    fputs("devices and their measured roofs\n", stream);
    size_t shown = results->device_count < LINES_MAX ? results->device_count : LINES_MAX;
    for (size_t i = 0; i < shown; ++i)
        device_print(&results->devices[i], i, stream);
    if (shown < results->device_count)
        utf8_print(stream, "... and %zu more devices\n", results->device_count - shown);
    free(lines);
}
