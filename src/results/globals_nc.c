#include "results/globals_nc.h"

#include <math.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "version.h"

static void time_format(double time, char text[32])
{
    const double year_10000 = 253402300800.0;
    time_t seconds = time >= 0 && time < year_10000 ? (time_t)time : 0; /* so also for a NaN */
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* One line a session, the latest at the end. */
static void history_write(struct dataset *set, const struct results *results)
{
    char *text = NULL, start[32];
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) {
        set->no_memory = true;
        return;
    }
    for (size_t i = 0; i < results->session_count; ++i) {
        const struct session *session = &results->sessions[i];
        time_format(session->start_time, start);
        fprintf(stream, "%s%s session %s: roofsweep %s, %lld ranks from %s, job %s: %s",
                i ? "\n" : "", start, session->id, session->version, (long long)session->ranks,
                session->hostname, *session->job_id ? session->job_id : "none", session->command);
    }
    fclose(stream);
    dataset_attribute(set, NC_GLOBAL, "history", text);
    free(text);
}

static bool seen_before(const struct results *results, size_t device, size_t offset)
{
    const char *name = (const char *)&results->devices[device] + offset;
    for (size_t i = 0; i < device; ++i)
        if (strcmp((const char *)&results->devices[i] + offset, name) == 0)
            return true;
    return *name == '\0';
}

/* A text of all devices, each of its values once. */
static void device_names_write(struct dataset *set, const struct results *results,
                               const char *attribute, size_t offset)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) {
        set->no_memory = true;
        return;
    }
    for (size_t i = 0; i < results->device_count; ++i)
        if (!seen_before(results, i, offset))
            fprintf(stream, "%s%s", ftell(stream) > 0 ? ", " : "",
                    (const char *)&results->devices[i] + offset);
    fclose(stream);
    dataset_attribute(set, NC_GLOBAL, attribute, text);
    free(text);
}

/* When the rows were measured. No clock is asked: one journal always gives the same file. */
static void coverage_write(struct dataset *set, const struct results *results)
{
    double first = NAN, last = NAN;
    char text[32];
    for (size_t i = 0; i < results->session_count; ++i) {
        first = fmin(first, results->sessions[i].start_time);
        last = fmax(last, results->sessions[i].start_time);
    }
    for (size_t i = 0; i < results->row_count; ++i)
        last = fmax(last, results->rows[i].end_time);
    time_format(first, text);
    dataset_attribute(set, NC_GLOBAL, "time_coverage_start", text);
    time_format(last, text);
    dataset_attribute(set, NC_GLOBAL, "time_coverage_end", text);
    dataset_attribute(set, NC_GLOBAL, "date_created", text);
    snprintf(text, sizeof text, "PT%.0fS", last > first ? floor(last) - floor(first) : 0.0);
    dataset_attribute(set, NC_GLOBAL, "time_coverage_duration", text);
}

void globals_write(struct dataset *set, const struct results *results)
{
    struct session none = {.manifest_text = NULL};
    const struct session *last =
        results->session_count ? &results->sessions[results->session_count - 1] : &none;
    char source[sizeof last->version + 16];
    snprintf(source, sizeof source, "roofsweep %s", last->version);
    const struct {
        const char *name, *text;
    } attributes[] = {
        {"Conventions", "CF-1.11, ACDD-1.3"},
        {"title", *last->title ? last->title : "roofsweep results"},
        {"summary", "Deep-learning operations, each measured on a device and set against the roofs "
                    "that were measured on the same device (time-based Roofline). One row of "
                    "config per configuration and device; config_device points into device, "
                    "kernel_config into config, device_roof_device into device."},
        {"comment",
         "What was not measured is missing, and never 0. A variable that no row, device or roof "
         "of the file can have a value of is absent."},
        {"references",
         "Wang et al., Time-Based Roofline for Deep Learning Performance Analysis, 2020, "
         "https://doi.org/10.48550/arXiv.2009.04598"},
        {"project", "roofsweep"},
        {"metadata_link", ROOFSWEEP_URL},
        {"id", results->session_count ? results->sessions[0].id : ""},
        {"product_version", last->version},
        {"keywords", "roofline, performance, GPU, deep learning, benchmark"},
        {"source", source},
        {"processing_level", "measured values, and values derived from them by the Roofline model"},
        {"manifest_path", last->manifest_path},
        {"manifest", last->manifest_text ? last->manifest_text : ""},
        {"settings", last->settings},
        {"mpi", last->mpi},
        {"command", last->command},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; ++i)
        if (*attributes[i].text)
            dataset_attribute(set, NC_GLOBAL, attributes[i].name, attributes[i].text);
    dataset_attribute_integer(set, "format_version", FORMAT_VERSION);
    device_names_write(set, results, "instrument", offsetof(struct device, model));
    device_names_write(set, results, "platform", offsetof(struct device, hostname));
    history_write(set, results);
    coverage_write(set, results);
}

enum status globals_check_version(int file, const char *path, const char *way_out,
                                  struct error *error)
{
    int version = 1;
    if (nc_get_att_int(file, NC_GLOBAL, "format_version", &version) != NC_NOERR)
        version = 1;
    if (version < FORMAT_VERSION)
        return error_set(error, STATUS_USAGE, "%s: an older version of roofsweep wrote it; %s",
                         path, way_out);
    if (version > FORMAT_VERSION)
        return error_set(error, STATUS_USAGE,
                         "%s: format version %d; this roofsweep knows up to %d: use a newer one",
                         path, version, FORMAT_VERSION);
    return STATUS_OK;
}
