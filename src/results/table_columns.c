#include "results/table_columns.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/units.h"
#include "results/sampling.h"

void table_line_begin(const struct results *results, const struct row *row, struct table_line *line)
{
    struct error unread;
    line->row = row;
    record_init(&line->record);
    device_init(&line->blank);
    if (results_fetch(results, line->row, &line->record, &unread))
        line->record.status = RECORD_FAILED;
    line->index = results_device(results, line->row->device_key);
    line->device = line->index < 0 ? &line->blank : &results->devices[line->index];
    line->derived = derive(&line->record, line->device);
}

void table_line_end(struct table_line *line)
{
    record_clear(&line->record);
}

static bool is_measured(const struct table_line *line)
{
    return line->record.status == RECORD_MEASURED;
}

/* The cells for people. */

static const char *name_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return line->name;
}

static const char *device_text(const struct table_line *line, char text[CELL])
{
    snprintf(text, CELL, "#%lld", (long long)line->index);
    return line->index < 0 ? "-" : text;
}

static const char *time_text(const struct table_line *line, char text[CELL])
{
    units_format(line->record.time_median, "s", text);
    return text;
}

/* "0.25 hb" in per cent, and what sampling_marks says. */
static const char *noise_text(const struct table_line *line, char text[CELL])
{
    char marks[SAMPLING_MARKS], value[16] = "-";
    double uncertainty = sampling_derive(&line->record).uncertainty;
    sampling_marks(&line->record, marks);
    if (!isnan(uncertainty))
        snprintf(value, sizeof value, "%.2g", 100 * uncertainty);
    snprintf(text, CELL, "%s%s%s", value, *marks ? " " : "", marks);
    return text;
}

static const char *performance_text(const struct table_line *line, char text[CELL])
{
    units_format(line->derived.roofline.performance, "", text);
    return text;
}

static double intensity_number(const struct table_line *line)
{
    return is_measured(line) ? line->derived.roofline.intensity : NAN;
}

static const char *intensity_text(const struct table_line *line, char text[CELL])
{
    snprintf(text, CELL, "%.4g", intensity_number(line));
    return isnan(intensity_number(line)) ? "-" : text;
}

static const char *level_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    const char *level = is_measured(line) ? derived_level_name(&line->derived) : "";
    return *level ? level : "-";
}

static const char *bound_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return is_measured(line) ? roofline_bound_name[line->derived.roofline.bound]
                             : record_status_name[line->record.status];
}

static const char *limiter_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return is_measured(line) ? limiter_name[line->derived.limiter] : "-";
}

static const char *fraction_text(const struct table_line *line, char text[CELL])
{
    double fraction = line->derived.roofline.fraction;
    snprintf(text, CELL, "%.1f", 100 * fraction);
    return isnan(fraction) ? "-" : text;
}

static const char *status_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return record_status_name[line->row->status];
}

static const char *error_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return *line->row->error ? line->row->error : "-";
}

static const char *marks_text(const struct table_line *line, char text[CELL])
{
    sampling_marks(&line->record, text);
    return *text ? text : "-";
}

static const char *label_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return line->row->label;
}

static const char *configuration_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return line->row->configuration;
}

static const char *hash_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return line->row->config_hash;
}

static const char *hostname_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return *line->device->hostname ? line->device->hostname : "-";
}

static const char *uuid_text(const struct table_line *line, char text[CELL])
{
    (void)text;
    return *line->device->uuid ? line->device->uuid : "-";
}

/* The numbers for programs; NaN: missing. */

static double device_number(const struct table_line *line)
{
    return line->index < 0 ? NAN : (double)line->index;
}

static double time_number(const struct table_line *line)
{
    return line->record.time_median;
}

static double noise_number(const struct table_line *line)
{
    return sampling_derive(&line->record).uncertainty;
}

static double performance_number(const struct table_line *line)
{
    return line->derived.roofline.performance;
}

static double fraction_number(const struct table_line *line)
{
    return line->derived.roofline.fraction;
}

const struct table_column table_columns[COLUMNS] = {
    {"configuration", "", 0, "name", name_text, NULL},
    {"device", "", 6, "device", device_text, device_number},
    {"time", "", 9, "time_s", time_text, time_number},
    {"+-", "%", 9, "time_uncertainty", noise_text, noise_number},
    {"FLOP/s", "", 9, "flops_per_s", performance_text, performance_number},
    {"AI", "FLOP/byte", 9, "flops_per_byte", intensity_text, intensity_number},
    {"level", "", 5, "memory_level", level_text, NULL},
    {"bound", "", 9, "bound", bound_text, NULL},
    {"limiter", "", 9, "limiter", limiter_text, NULL},
    {"of roof", "%", 7, "fraction_of_roof", fraction_text, fraction_number},
    {NULL, "", 0, "status", status_text, NULL},
    {NULL, "", 0, "error", error_text, NULL},
    {NULL, "", 0, "marks", marks_text, NULL},
    {NULL, "", 0, "label", label_text, NULL},
    {NULL, "", 0, "configuration", configuration_text, NULL},
    {NULL, "", 0, "config_hash", hash_text, NULL},
    {NULL, "", 0, "hostname", hostname_text, NULL},
    {NULL, "", 0, "uuid", uuid_text, NULL},
};
