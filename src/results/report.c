/* The report at the end of a run.
 *
 * The report's table has one line for each row, in the order of results_sort. Each line fetches its
 * record from the journal again. The text stops after LINES_MAX lines; JSON has all lines. A record
 * that cannot be read gives a line of missing values: the result file exists already, so the report
 * must not fail. */
#include "results/report.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "base/units.h"
#include "base/text.h"
#include "results/derive.h"

enum { CELL = 64, LINES_MAX = 200, NAME_WIDTH_MAX = 100, DEVICES_MAX = 200, REASONS_MAX = 20 };

/* ---- lines ---- */

struct line {
    const char *name;
    struct record record;
    struct device blank; /* stands for an unknown device */
    const struct device *device;
    int64_t index; /* index of the device in results; -1: unknown */
    struct derived derived;
    bool measured;
    double intensity; /* FLOPs per byte at the level of the bandwidth roof; NaN unless measured */
    char marks[TIME_MARKS];
};

/* The caller clears line->record. */
static void line_begin(const struct results *results, size_t place, struct line *line)
{
    const struct row *row = &results->rows[place];
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
    line->measured = record->status == RECORD_MEASURED;
    line->intensity = NAN;
    for (int level = 0; line->measured && level < LEVEL_COUNT; ++level)
        if (strcmp(line->derived.roof_memory_level, memory_level_name[level]) == 0)
            line->intensity = line->derived.arithmetic_intensity[level];
    time_marks(record, line->marks);
    line->name = row->name;
}

static const char *bound_of(const struct line *line)
{
    return line->measured ? roofline_bound_name[line->derived.paper_bound]
                          : record_status_name[line->record.status];
}

/* ---- as text ---- */

struct room {
    int name, terminal; /* widths in characters */
};

static int name_width(const struct results *results)
{
    size_t width = strlen("configuration");
    for (size_t i = 0; i < results->row_count && i < LINES_MAX; ++i) {
        const size_t length = strlen(results->rows[i].name);
        width = length > width ? length : width;
    }
    return (int)(width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX);
}

static const char *number_text(double value, const char *format, char text[CELL])
{
    snprintf(text, CELL, format, value);
    return isnan(value) ? "-" : text;
}

/* In a narrow terminal names have lines of their own; in a very narrow one `bound` is absent. */
static void cells_print(const char *const cells[], struct room room, FILE *stream)
{
    enum { BOUND = 6, OTHERS = 85 }; /* index of `bound`; width of all columns but the name */
    static const int widths[] = {6, 9, 13, 9, 9, 5, 9, 9, 7};
    if (room.name + OTHERS <= room.terminal)
        utf8_print(stream, "%-*s", room.name, cells[0]);
    else
        utf8_print(stream, *cells[0] ? "%s\n" : "%s", cells[0]);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; ++i)
        if (i != BOUND || room.terminal >= OTHERS)
            utf8_print(stream, " %*s", widths[i], cells[i + 1]);
    fputc('\n', stream);
}

static void line_print(const struct line *line, struct room room, FILE *stream)
{
    const struct derived *derived = &line->derived;
    char device[CELL], time[CELL], noise[CELL], performance[CELL], intensity[CELL], roof[CELL];
    char uncertainty[CELL];
    snprintf(device, CELL, "#%lld", (long long)line->index);
    snprintf(noise, CELL, "%.40s%s%s",
             number_text(100 * time_uncertainty(&line->record), "%.1f", uncertainty),
             *line->marks ? " " : "", line->marks);
    units_format(line->record.time_median, "s", time);
    units_format(derived->performance, "", performance);
    const char *const cells[] = {
        line->name,
        line->index < 0 ? "-" : device,
        time,
        noise,
        performance,
        number_text(line->intensity, fabs(line->intensity) < 999.95 ? "%#.4g" : "%.0f", intensity),
        line->measured && *derived->roof_memory_level ? derived->roof_memory_level : "-",
        bound_of(line),
        line->measured ? limiter_name[derived->limiter] : "-",
        number_text(100 * derived->roof_fraction, "%.1f", roof),
    };
    cells_print(cells, room, stream);
}

static void text_print(const struct results *results, int terminal, FILE *stream)
{
    const char *heads[] = {"configuration", "device", "time",    "+- in process", "FLOP/s", "AI",
                           "level",         "bound",  "limiter", "of roof"};
    static const char *const units[] = {"", "", "", "%", "", "FLOP/byte", "", "", "", "%"};
    const bool colour = colour_wanted(terminal);
    struct winsize size = {0};
    ioctl(terminal, TIOCGWINSZ, &size); /* without a terminal the size stays 0 */
    const struct room room = {name_width(results), size.ws_col ? size.ws_col : INT_MAX};
    const size_t count = results->row_count, shown = count < LINES_MAX ? count : LINES_MAX;
    bool above = false, lacking[LEVEL_COUNT] = {false};
    for (size_t i = 0; i < count; ++i)
        if (results->rows[i].round_count > 1)
            heads[3] = "+-";
    cells_print(heads, room, stream);
    cells_print(units, room, stream);
    for (size_t i = 0; i < shown; ++i) {
        struct line line;
        line_begin(results, i, &line);
        const char *code = line.record.status == RECORD_FAILED    ? COLOUR_RED
                           : line.record.status == RECORD_SKIPPED ? COLOUR_DIM
                           : *line.marks                          ? COLOUR_YELLOW
                                                                  : NULL;
        fputs(colour && code ? code : "", stream);
        line_print(&line, room, stream);
        fputs(colour && code ? COLOUR_END : "", stream);
        record_clear(&line.record);
        above |= line.derived.roof_fraction > 1;
        for (int level = 0; line.measured && level < LEVEL_COUNT; ++level)
            lacking[level] |= isnan(line.device->peak_bandwidth[level]) &&
                              !strcmp(line.derived.roof_memory_level, memory_level_name[level]);
    }
    if (shown < count)
        utf8_print(stream, "... and %zu more rows\n", count - shown);
    for (int level = 0; level < LEVEL_COUNT; ++level)
        if (lacking[level])
            utf8_print(
                stream,
                "no roof of %s was measured: rows at that level have no share of a roof; add "
                "%s to the key memory of [peaks]\n",
                memory_level_name[level], memory_level_name[level]);
    if (above)
        fputs(
            "of roof above 100 %: fewer FLOPs than modelled, bytes from a nearer memory, a higher "
            "clock than\nwhile the roof was measured, or launches that take less than the roof "
            "launch gap\n",
            stream);
}

/* ---- as JSON ---- */

/* json_real returns NULL for NaN, and text_encode for "": both become null. */
static json_t *line_encode(const struct line *line)
{
    const struct record *record = &line->record;
    const struct derived *derived = &line->derived;
    return json_pack(
        "{s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?,"
        " s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?}",
        "name", text_encode(line->name), "config_device",
        line->index < 0 ? NULL : json_integer(line->index), "time_median",
        json_real(record->time_median), "noise", json_real(time_uncertainty(record)), "performance",
        json_real(derived->performance), "intensity", json_real(line->intensity),
        "roof_memory_level", text_encode(line->measured ? derived->roof_memory_level : ""),
        "paper_bound", text_encode(bound_of(line)), "limiter",
        text_encode(line->measured ? limiter_name[derived->limiter] : ""), "roof_fraction",
        json_real(derived->roof_fraction), "status",
        text_encode(record_status_name[record->status]), "error",
        text_encode(line->measured ? "" : record->error), "marks", text_encode(line->marks),
        "label", text_encode(record->label), "configuration", text_encode(record->configuration),
        "config_hash", text_encode(record->config_hash), "hostname",
        text_encode(line->device->hostname), "uuid", text_encode(line->device->uuid));
}

static void json_print(const struct results *results, FILE *stream)
{
    fputs("[\n", stream);
    for (size_t i = 0; i < results->row_count; ++i) {
        struct line line;
        line_begin(results, i, &line);
        json_t *object = line_encode(&line);
        record_clear(&line.record);
        fputs(i > 0 ? ",\n" : "", stream);
        json_dumpf(object, stream, JSON_COMPACT);
        json_decref(object);
    }
    fputs("\n]\n", stream);
}

/* ---- notes below the table ---- */

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

static void marks_print(const struct results *results, FILE *stream)
{
    size_t counts[128] = {0}, first[128] = {0};
    for (size_t i = 0; i < results->row_count; ++i)
        for (const char *mark = results->rows[i].marks; *mark; ++mark)
            if (counts[(unsigned char)*mark]++ == 0)
                first[(unsigned char)*mark] = i;
    for (int mark = 0; mark < 128; ++mark) {
        if (counts[mark] == 0)
            continue;
        utf8_print(stream, "%c: %s: %s", mark, time_mark_text((char)mark),
                   results->rows[first[mark]].name);
        if (counts[mark] > 1)
            utf8_print(stream, " and %zu more", counts[mark] - 1);
        fputc('\n', stream);
    }
}

static void disturbance_print(const struct results *results, FILE *stream)
{
    size_t disturbed = 0;
    const struct row *worst = NULL;
    for (size_t i = 0; i < results->row_count; ++i)
        if (strchr(results->rows[i].marks, TIME_PREEMPTED) && ++disturbed &&
            !(worst && worst->host_load >= results->rows[i].host_load))
            worst = &results->rows[i];
    const int64_t at = worst ? results_device(results, worst->device_key) : -1;
    if (at >= 0)
        utf8_print(stream, "%zu of %zu rows were disturbed: load %.0f on %lld processors of %s\n",
                   disturbed, results->row_count, worst->host_load,
                   (long long)results->devices[at].processors, results->devices[at].hostname);
}

static void reasons_print(const struct results *results, enum record_status status, FILE *stream)
{
    struct {
        size_t first, count;
    } reasons[REASONS_MAX];
    size_t found = 0;
    bool more = false;
    for (size_t i = 0; i < results->row_count; ++i) {
        const struct row *row = &results->rows[i];
        size_t at = 0;
        if (row->status != (int64_t)status)
            continue;
        while (at < found && strcmp(results->rows[reasons[at].first].error, row->error) != 0)
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
        utf8_print(stream, "%s: %s", record_status_name[status],
                   results->rows[reasons[i].first].name);
        if (reasons[i].count > 1)
            utf8_print(stream, " and %zu more", reasons[i].count - 1);
        utf8_print(stream, ": %s\n", results->rows[reasons[i].first].error);
    }
    if (more)
        utf8_print(stream, "... and more reasons\n");
}

void report_print(const struct results *results, bool json, int terminal, FILE *stream)
{
    if (json) {
        json_print(results, stream);
        return;
    }
    if (results->row_count > 0) {
        text_print(results, terminal, stream);
        counts_print(results, stream);
        marks_print(results, stream);
        disturbance_print(results, stream);
    }
    reasons_print(results, RECORD_FAILED, stream);
    reasons_print(results, RECORD_SKIPPED, stream);
    fputs(results->row_count > 0 ? "\n" : "", stream);
    fputs("devices; roofsweep-post roofs prints their roofs\n", stream);
    size_t shown = results->device_count < DEVICES_MAX ? results->device_count : DEVICES_MAX;
    for (size_t i = 0; i < shown; ++i) {
        const struct device *device = &results->devices[i];
        utf8_print(stream, "#%zu %s: %s %lld, %s, %s%s%s\n", i, device->hostname, device->kind,
                   (long long)device->index, device->model, device->uuid,
                   *device->pci_id ? ", PCI " : "", device->pci_id);
    }
    if (shown < results->device_count)
        utf8_print(stream, "... and %zu more devices\n", results->device_count - shown);
}
