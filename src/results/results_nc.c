/* The result file: its variables, its attributes, and how it gets the rows of a journal.
 *
 * Tables of fields describe all variables (`groups`); dataset.c makes variables of a table.
 * Variables without a value in any row are left out. At first only the first rows decide this:
 * `look` reads them and notes variables with a value. If a later row has a value for an absent
 * variable, the file is built again. Rows are written in batches of BATCH_ROWS, and each
 * build fetches each record from the journal once, so memory does not grow with the number of rows.
 *
 * The file is built in the output's folder without a name (staged_file.h) and gets its name at the
 * end, so it is complete or absent. The first failure of netCDF, of memory or of a record is kept
 * and reported at the end. A row takes 0.06 to 0.09 ms (docs/operating.md). */
#include "results/results_nc.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <netcdf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/staged_file.h"
#include "results/dataset.h"
#include "results/derive.h"
#include "results/nodes.h"
#include "results/parameters_nc.h"
#include "version.h"

/* ---- the variables ---- */

/* clang-format off */
#define FIELDS(...)          (const struct field[]){__VA_ARGS__, {0}}
/* clang-format on */
#define ONE(...)             FIELDS({__VA_ARGS__, ALWAYS})
#define TEXT(of_name, what)  ONE(.name = of_name, .type = FIELD_TEXT, .long_name = what)
#define INDEX(of_name, what) ONE(.name = of_name, .type = FIELD_INTEGER, .long_name = what)

/* The rounds of a row, s; NaN for a row with a single round. Round 1 starts at 0. */
struct rounds {
    double round_time[ROUNDS_MAX], round_start[ROUNDS_MAX];
};

/* Groups of variables that are written together, from one struct for each row. */
enum group {
    FORMATS,
    LEVELS,
    HEALTH,
    PARTS,
    TIME_PARTS,
    ACTIVITIES,
    RECORDS,
    SAMPLES,
    ROUNDS,
    NAMES,
    LISTED,
    COUNTS,
    WORKLOADS,
    PARAMETERS,
    CONFIG_DEVICE,
    ROW_DEVICES,
    DERIVED,
    KERNEL_CONFIG,
    KERNELS,
    DERIVED_KERNELS,
    DEVICES,
    DEVICE_NODE,
    NODES,
    ROOF_DEVICE,
    ROOFS,
    LINK_NODE,
    LINK_END,
    LINKS,
    GROUPS
};

/* In the order of the file. */
static const struct {
    const struct field *fields;
    const char *prefix;
    enum dimension dimension;
} groups[GROUPS] = {
    [FORMATS] = {TEXT("number_format", "number format"), "", DIM_FORMAT},
    [LEVELS] = {TEXT("memory_level", "memory level, from far to near"), "", DIM_LEVEL},
    [HEALTH] = {ONE(.name = "health", .type = FIELD_TEXT,
                    .long_name = "health value of a device, from the driver",
                    .comment = "names end with the unit; counts and times begin when the driver is "
                               "loaded, names with 'ever' and those of remapped and retired memory "
                               "when the device is made; XIDs, the driver's errors, begin when the "
                               "job opens the device: xids_of_programs are those that a program "
                               "can cause (13, 31, 43, 45, 68, 109), xids all others"),
                "", DIM_HEALTH},
    [PARTS] = {TEXT("wall_part", "part of the wall time of a row"), "", DIM_PART},
    [TIME_PARTS] = {TEXT("part", "part of the time of an iteration"), "", DIM_TIME_PART},
    [ACTIVITIES] = {TEXT("activity", "unit, or reason of a stall"), "", DIM_ACTIVITY},
    [RECORDS] = {record_fields, "", DIM_CONFIG},
    [SAMPLES] = {ONE(.name = "time_sample", .type = FIELD_SAMPLES, .units = "s",
                     .long_name = "time of one iteration",
                     .comment = "mean of a sample's sample_iterations; the first samples by time"),
                 "", DIM_CONFIG},
    [ROUNDS] = {FIELDS(FIELD(struct rounds, round_time, FIELD_ROUNDS, "s",
                             "median time of one iteration in a round",
                             .comment = "each round has a new process and another order of the "
                                        "rows; only the first round searched, traced and counted"),
                       FIELD(struct rounds, round_start, FIELD_ROUNDS, "s",
                             "start of the row in a round, after start_time",
                             .comment = "gives the order of a device's rows")),
                "", DIM_CONFIG},
    [NAMES] = {ONE(.name = "name", .type = FIELD_TEXT, .long_name = "short name of the row",
                   .comment =
                       "first label that is not the workload's name, its first name in a list, "
                       "and the parameters that differ within these and the workload"),
               "", DIM_CONFIG},
    [LISTED] = {FIELDS({.name = "listed",
                        .type = FIELD_TEXT,
                        .units = "1",
                        .long_name = "rows of lists that ask for it, separated by '; '",
                        .comment = "LABEL:PLACE NAME xCOUNT; PLACE in the list, from 1"}),
                "", DIM_CONFIG},
    [COUNTS] = {FIELDS({.name = "count",
                        .type = FIELD_INTEGER,
                        .units = "1",
                        .long_name = "how often the lists have it, the sum of COUNT in listed"}),
                "", DIM_CONFIG},
    [WORKLOADS] = {TEXT("workload", "workload"), "", DIM_CONFIG},
    [PARAMETERS] = {NULL, "", DIM_CONFIG}, /* parameters_nc.h defines these variables */
    [CONFIG_DEVICE] = {INDEX("config_device", "row's device: index, -1 if it reached none"), "",
                       DIM_CONFIG},
    /* Each row has its UUID, because tools that join files row by row lose the table of devices. */
    [ROW_DEVICES] = {FIELDS(FIELD(struct device, uuid, FIELD_TEXT, NULL, "UUID of the device",
                                  ALWAYS)),
                     "", DIM_CONFIG},
    [DERIVED] = {derived_fields, "", DIM_CONFIG},
    [KERNEL_CONFIG] = {INDEX("kernel_config", "kernel's row of config: index, -1 if there is none"),
                       "", DIM_KERNEL},
    [KERNELS] = {kernel_fields, "kernel_", DIM_KERNEL},
    [DERIVED_KERNELS] = {derived_kernel_fields, "kernel_", DIM_KERNEL},
    [DEVICES] = {device_fields, "device_", DIM_DEVICE},
    [DEVICE_NODE] = {INDEX("device_node", "device's node: index, -1 if there is none"), "",
                     DIM_DEVICE},
    [NODES] = {node_fields, "node_", DIM_NODE},
    [ROOF_DEVICE] = {INDEX("device_roof_device", "roof's device: index, -1 if there is none"), "",
                     DIM_ROOF},
    [ROOFS] = {roof_fields, "device_roof_", DIM_ROOF},
    [LINK_NODE] = {INDEX("link_node", "node of the link, or of link_from: index"), "", DIM_LINK},
    [LINK_END] = {INDEX("link_node_to", "node of link_to: index, -1 if all devices take part"), "",
                  DIM_LINK},
    [LINKS] = {link_fields, "link_", DIM_LINK},
};

void results_nc_list(FILE *stream)
{
    for (int group = 0; group < GROUPS; ++group)
        for (const struct field *field = groups[group].fields; field && field->name; ++field)
            if (field->presence != PRESENT_NEVER)
                dataset_list_field(field, groups[group].prefix, groups[group].dimension, stream);
}

/* ---- the attributes of the file ---- */

static void time_format(double time, char text[32])
{
    const double year_10000 = 253402300800.0;
    time_t seconds = (time_t)(time >= 0 && time < year_10000 ? time : 0);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, 32, isnan(time) ? "unknown" : "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static void history_print(const struct results *results, size_t unused, FILE *stream)
{
    char start[32];
    (void)unused;
    for (size_t i = 0; i < results->session_count; ++i) {
        const struct session *session = &results->sessions[i];
        time_format(session->start_time, start);
        fprintf(stream, "%s%s session %s: roofsweep %s, %lld ranks from %s, job %s: %s",
                i ? "\n" : "", start, session->id, session->version, (long long)session->ranks,
                session->hostname, *session->job_id ? session->job_id : "none", session->command);
    }
}

static void device_names_print(const struct results *results, size_t offset, FILE *stream)
{
    const char *separator = "";
    for (size_t i = 0; i < results->device_count; ++i) {
        const char *name = (const char *)&results->devices[i] + offset;
        bool seen = *name == '\0';
        for (size_t j = 0; j < i && !seen; ++j)
            seen = strcmp((const char *)&results->devices[j] + offset, name) == 0;
        if (seen)
            continue;
        fprintf(stream, "%s%s", separator, name);
        separator = ", ";
    }
}

static void text_write(struct dataset *set, const struct results *results, const char *attribute,
                       void (*print)(const struct results *results, size_t offset, FILE *stream),
                       size_t offset)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    set->no_memory = set->no_memory || !stream;
    if (!stream)
        return;
    print(results, offset, stream);
    fclose(stream);
    dataset_attribute(set, NC_GLOBAL, attribute, text);
    free(text);
}

/* All times come from the journal, so that one journal always gives the same file. */
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
    for (size_t i = 0; i < results->device_count; ++i)
        for (int64_t j = 0; j < results->devices[i].roof_count; ++j)
            last = fmax(last, results->devices[i].roofs[j].start_time);
    time_format(first, text);
    dataset_attribute(set, NC_GLOBAL, "time_coverage_start", text);
    time_format(last, text);
    dataset_attribute(set, NC_GLOBAL, "time_coverage_end", text);
    dataset_attribute(set, NC_GLOBAL, "date_created", text);
    snprintf(text, sizeof text, "PT%.0fS", last > first ? floor(last) - floor(first) : 0.0);
    dataset_attribute(set, NC_GLOBAL, "time_coverage_duration", text);
}

static void globals_write(struct dataset *set, const struct results *results)
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
                    "kernel_config into config, device_roof_device into device, device_node into "
                    "node."},
        {"comment",
         "What was not measured is missing, and never 0. A variable without any value is absent."},
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
    dataset_attribute_integer(set, "format_version", RESULTS_NC_VERSION);
    dataset_attribute_integer(set, "rounds",
                              set->lengths[DIM_ROUND] ? (int)set->lengths[DIM_ROUND] : 1);
    text_write(set, results, "instrument", device_names_print, offsetof(struct device, model));
    text_write(set, results, "platform", device_names_print, offsetof(struct device, hostname));
    text_write(set, results, "history", history_print, 0);
    coverage_write(set, results);
}

/* ---- the rows ---- */

/* Largest numbers of rows and kernels in memory at a time; the kernels of any row fit. A chunk of
 * the file also has BATCH_ROWS rows, so that whole chunks are written. */
enum { BATCH_ROWS = 1024, BATCH_KERNELS = 4 * RECORD_KERNELS_MAX };

struct writer {
    const struct results *results;
    struct dataset set;
    struct parameters *parameters;
    struct device blank_device; /* stands for the device of rows without a device */
    struct node_summary *nodes; /* owned */
    int64_t *node_of;           /* owned: index of each device's node */
    size_t kernels, roofs;      /* numbers of kernels and roofs in the whole file */
    size_t kernel;              /* number of kernels written so far */

    /* The batch in memory. */
    size_t first, count; /* first row and number of rows of the batch */
    struct record *records;
    struct derived *derived;
    int64_t *devices; /* index into results->devices, or -1 */
    double *samples;
    struct rounds *rounds;
    char *parameter_rows; /* parameters_row_size bytes each */

    /* Kernels of the batch. */
    int64_t *kernel_rows; /* index of the kernel's row in the file */
    struct derived_kernel *shapes;
    const void **rows;  /* argument of dataset_put: structs of rows or kernels */
    bool unreadable;    /* a record of the journal cannot be read */
    struct error error; /* the reason, if unreadable */
};

static void lengths_set(struct writer *w)
{
    size_t samples = 0, rounds = 0, nodes = 0;
    w->node_of = dataset_allocate(&w->set, w->results->device_count + 1, sizeof *w->node_of);
    w->nodes = w->node_of ? nodes_find(w->results, w->node_of, &nodes) : NULL;
    w->set.no_memory = w->set.no_memory || !w->nodes;
    for (size_t i = 0; i < w->results->row_count; ++i) {
        w->kernels += w->results->rows[i].kernels;
        if (w->results->rows[i].samples > samples)
            samples = w->results->rows[i].samples;
        if (w->results->rows[i].round_count > rounds)
            rounds = w->results->rows[i].round_count;
    }
    w->set.lengths[DIM_CONFIG] = w->results->row_count;
    for (size_t i = 0; i < w->results->device_count; ++i) {
        w->roofs += (size_t)w->results->devices[i].roof_count;
        w->set.lengths[DIM_LINK] += results_links(w->results, &w->results->devices[i])->count;
        if (device_has_health(&w->results->devices[i]))
            w->set.lengths[DIM_HEALTH] = HEALTH_COUNT;
    }
    /* netCDF would make a dimension of length 0 unlimited. */
    w->set.lengths[DIM_KERNEL] = w->kernels ? w->kernels : 1;
    w->set.lengths[DIM_DEVICE] = w->results->device_count ? w->results->device_count : 1;
    w->set.lengths[DIM_NODE] = nodes ? nodes : 1;
    w->set.lengths[DIM_ROOF] = w->roofs ? w->roofs : 1;
    w->set.lengths[DIM_SAMPLE] = samples ? samples : 1;
    w->set.lengths[DIM_ROUND] = rounds > 1 ? rounds : 0;
    w->set.lengths[DIM_FORMAT] = PRECISION_COUNT;
    w->set.lengths[DIM_LEVEL] = LEVEL_COUNT;
    w->set.lengths[DIM_PART] = PART_COUNT;
    w->set.lengths[DIM_TIME_PART] = TIME_PART_COUNT;
    w->set.lengths[DIM_ACTIVITY] =
        json_object_get(w->set.found, "kernel_activity") ? ACTIVITY_COUNT : 0;
}

static void define_all(struct writer *w)
{
    for (int group = 0; group < GROUPS; ++group) {
        if (group == PARAMETERS)
            w->parameters = parameters_define(&w->set, w->results, group);
        for (const struct field *field = groups[group].fields; field && field->name; ++field)
            dataset_define_field(&w->set, field, groups[group].prefix, groups[group].dimension,
                                 group);
    }
}

static void put_one(struct writer *w, enum group group, size_t row, const void *structure)
{
    dataset_put(&w->set, (int)group, row, 1, &structure);
}

static void names_put(struct writer *w)
{
    for (size_t i = 0; i < PRECISION_COUNT; ++i)
        put_one(w, FORMATS, i, precision_info[i].name);
    for (size_t i = 0; i < LEVEL_COUNT; ++i)
        put_one(w, LEVELS, i, memory_level_name[i]);
    for (size_t i = 0; i < w->set.lengths[DIM_HEALTH]; ++i)
        put_one(w, HEALTH, i, health_name[i]);
    for (size_t i = 0; i < PART_COUNT; ++i)
        put_one(w, PARTS, i, wall_part_name[i]);
    for (size_t i = 0; i < TIME_PART_COUNT; ++i)
        put_one(w, TIME_PARTS, i, time_part_name[i]);
    for (size_t i = 0; i < w->set.lengths[DIM_ACTIVITY]; ++i)
        put_one(w, ACTIVITIES, i, activity_name[i]);
}

/* Writes an array of structs of `size` bytes; with size 0, one struct for all rows. */
static void structs_put(struct writer *w, enum group group, size_t first, size_t count,
                        const void *structs, size_t size)
{
    for (size_t at = 0, part; at < count; at += part) {
        part = count - at < BATCH_KERNELS ? count - at : BATCH_KERNELS;
        for (size_t i = 0; i < part; ++i)
            w->rows[i] = (const char *)structs + (at + i) * size;
        dataset_put(&w->set, (int)group, first + at, part, w->rows);
    }
}

static void devices_put(struct writer *w)
{
    const struct device *device = w->results->devices;
    size_t count = w->results->device_count, row = 0, link = 0;
    structs_put(w, DEVICES, 0, count, device, sizeof *device);
    structs_put(w, DEVICE_NODE, 0, count, w->node_of, sizeof *w->node_of);
    structs_put(w, NODES, 0, count ? w->set.lengths[DIM_NODE] : 0, w->nodes, sizeof *w->nodes);
    for (int64_t i = 0; i < (int64_t)count; ++i, ++device) {
        const struct link_list *links = results_links(w->results, device);
        int64_t *ends = dataset_allocate(&w->set, links->count, sizeof *ends);
        for (size_t j = 0; ends && j < links->count; ++j)
            ends[j] = nodes_of_end(w->results, w->node_of, (size_t)i, &links->links[j]);
        structs_put(w, ROOFS, row, (size_t)device->roof_count, device->roofs, sizeof(struct roof));
        structs_put(w, ROOF_DEVICE, row, (size_t)device->roof_count, &i, 0);
        structs_put(w, LINKS, link, links->count, links->links, sizeof *links->links);
        structs_put(w, LINK_NODE, link, links->count, &w->node_of[i], 0);
        structs_put(w, LINK_END, link, ends ? links->count : 0, ends, sizeof *ends);
        row += (size_t)device->roof_count;
        link += links->count;
        free(ends);
    }
}

/* Dimensions without rows get one row without values, see lengths_set. */
static void blanks_put(struct writer *w)
{
    const int64_t none = -1;
    if (w->results->device_count == 0) {
        struct node_summary node;
        memset(&node, 0, sizeof node);
        fields_clear(node_fields, &node);
        put_one(w, DEVICES, 0, &w->blank_device);
        put_one(w, DEVICE_NODE, 0, &none);
        put_one(w, NODES, 0, &node);
    }
    if (w->roofs == 0) {
        struct roof roof;
        fields_clear(roof_fields, &roof);
        put_one(w, ROOFS, 0, &roof);
        put_one(w, ROOF_DEVICE, 0, &none);
    }
    if (w->kernels == 0) {
        struct kernel kernel;
        fields_clear(kernel_fields, &kernel);
        put_one(w, KERNELS, 0, &kernel);
        const struct derived_kernel shape = derive_kernel(&kernel);
        put_one(w, DERIVED_KERNELS, 0, &shape);
        put_one(w, KERNEL_CONFIG, 0, &none);
    }
}

static void rows_allocate(struct writer *w)
{
    struct dataset *set = &w->set;
    if (dataset_failed(set))
        return;
    w->records = dataset_allocate(set, BATCH_ROWS, sizeof *w->records);
    w->derived = dataset_allocate(set, BATCH_ROWS, sizeof *w->derived);
    w->devices = dataset_allocate(set, BATCH_ROWS, sizeof *w->devices);
    w->samples = dataset_allocate(set, BATCH_ROWS * set->lengths[DIM_SAMPLE], sizeof *w->samples);
    w->rounds = dataset_allocate(set, BATCH_ROWS, sizeof *w->rounds);
    w->parameter_rows = dataset_allocate(set, BATCH_ROWS, parameters_row_size(w->parameters));
    w->rows = dataset_allocate(set, BATCH_KERNELS, sizeof *w->rows);
    w->shapes = dataset_allocate(set, BATCH_KERNELS, sizeof *w->shapes);
    w->kernel_rows = dataset_allocate(set, BATCH_KERNELS, sizeof *w->kernel_rows);
    for (size_t i = 0; w->records && i < BATCH_ROWS; ++i)
        record_init(&w->records[i]);
}

static void rows_free(struct writer *w)
{
    for (size_t i = 0; w->records && i < BATCH_ROWS; ++i)
        record_clear(&w->records[i]);
    free(w->nodes);
    free(w->node_of);
    free(w->records);
    free(w->derived);
    free(w->devices);
    free(w->samples);
    free(w->rounds);
    free(w->parameter_rows);
    free(w->kernel_rows);
    free(w->shapes);
    free(w->rows);
}

static const struct device *device_of(const struct writer *w, size_t i)
{
    return w->devices[i] < 0 ? &w->blank_device : &w->results->devices[w->devices[i]];
}

static bool row_load(struct writer *w, size_t i)
{
    const struct row *row = &w->results->rows[w->first + i];
    struct record *record = &w->records[i];
    size_t width = w->set.lengths[DIM_SAMPLE];
    enum status status = results_fetch(w->results, row, record, &w->error);
    if (status == STATUS_OK && record->kernel_count != row->kernels)
        status = error_set(&w->error, STATUS_SYSTEM, "the journal has changed meanwhile");
    w->unreadable = status != STATUS_OK;
    if (w->unreadable)
        return false;
    w->devices[i] = results_device(w->results, record->device_key);
    if (record->config.workload) /* NULL for an earlier version's layout = auto */
        record->layout_chosen[0] = '\0';
    if (strcmp(record->algorithm_origin, algorithm_searched) == 0)
        record->algorithm_origin[0] = '\0'; /* search_time already shows that the row searched */
    w->derived[i] = derive(record, device_of(w, i));
    for (size_t j = 0; j < width; ++j)
        w->samples[i * width + j] = j < record->sample_count ? record->sample[j] : NAN;
    for (size_t j = 0; j < ROUNDS_MAX; ++j) {
        const bool there = row->round_count > 1 && j < row->round_count;
        w->rounds[i].round_time[j] = there ? row->rounds[j].time : NAN;
        w->rounds[i].round_start[j] = there ? row->rounds[j].start - row->rounds[0].start : NAN;
    }
    parameters_row(w->parameters, &record->config,
                   w->parameter_rows + i * parameters_row_size(w->parameters));
    return true;
}

static bool rows_load(struct writer *w, size_t first)
{
    size_t kernels = 0;
    w->first = first;
    for (w->count = 0; w->count < BATCH_ROWS && first + w->count < w->results->row_count;
         ++w->count) {
        kernels += w->results->rows[first + w->count].kernels;
        if (w->count > 0 && kernels > BATCH_KERNELS)
            break;
        if (!row_load(w, w->count))
            return false;
    }
    return true;
}

static void kernels_put(struct writer *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->count; ++i)
        for (size_t j = 0; j < w->records[i].kernel_count; ++j, ++count) {
            const struct kernel *kernel = &w->records[i].kernels[j];
            w->rows[count] = kernel;
            w->kernel_rows[count] = (int64_t)(w->first + i);
            w->shapes[count] = derive_kernel(kernel);
        }
    dataset_put(&w->set, KERNELS, w->kernel, count, w->rows);
    structs_put(w, KERNEL_CONFIG, w->kernel, count, w->kernel_rows, sizeof *w->kernel_rows);
    structs_put(w, DERIVED_KERNELS, w->kernel, count, w->shapes, sizeof *w->shapes);
    w->kernel += count;
}

static void rows_put(struct writer *w)
{
    const struct {
        enum group group;
        const void *structs;
        size_t size;
    } of_rows[] = {
        {RECORDS, w->records, sizeof *w->records},
        {SAMPLES, w->samples, w->set.lengths[DIM_SAMPLE] * sizeof *w->samples},
        {ROUNDS, w->rounds, sizeof *w->rounds},
        {PARAMETERS, w->parameter_rows, parameters_row_size(w->parameters)},
        {CONFIG_DEVICE, w->devices, sizeof *w->devices},
        {DERIVED, w->derived, sizeof *w->derived},
        {COUNTS, &w->results->rows[w->first].count, sizeof *w->results->rows},
    };
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; ++i)
        structs_put(w, of_rows[i].group, w->first, w->count, of_rows[i].structs, of_rows[i].size);
    for (size_t i = 0; i < w->count; ++i)
        w->rows[i] = device_of(w, i);
    dataset_put(&w->set, ROW_DEVICES, w->first, w->count, w->rows);
    for (size_t i = 0; i < w->count; ++i)
        w->rows[i] = w->results->rows[w->first + i].name;
    dataset_put(&w->set, NAMES, w->first, w->count, w->rows);
    for (size_t i = 0; i < w->count; ++i) {
        const char *listed = w->results->rows[w->first + i].listed;
        w->rows[i] = listed ? listed : "";
    }
    dataset_put(&w->set, LISTED, w->first, w->count, w->rows);
    for (size_t i = 0; i < w->count; ++i) {
        const struct workload *workload = w->records[i].config.workload;
        w->rows[i] = workload ? workload->name : "";
    }
    dataset_put(&w->set, WORKLOADS, w->first, w->count, w->rows);
    kernels_put(w);
}

static void content_write(struct writer *w)
{
    globals_write(&w->set, w->results);
    define_all(w);
    rows_allocate(w);
    if (dataset_failed(&w->set))
        return;
    names_put(w);
    devices_put(w);
    for (size_t row = 0; row < w->results->row_count; row += w->count) {
        if (dataset_failed(&w->set) || !rows_load(w, row))
            return;
        rows_put(w);
    }
    blanks_put(w);
}

/* ---- the file ---- */

static void writer_init(struct writer *w, const struct results *results, json_t *found)
{
    *w = (struct writer){.results = results, .set.found = found};
    device_init(&w->blank_device);
    lengths_set(w);
}

static enum status writer_end(struct writer *w, struct error *error)
{
    rows_free(w);
    parameters_destroy(w->parameters);
    enum status status = dataset_close(&w->set, error);
    if (!w->unreadable)
        return status;
    *error = w->error;
    return STATUS_SYSTEM;
}

/* Notes which variables have a value in the devices and in the first batch of rows. */
static enum status look(const struct results *results, json_t *found, struct error *error)
{
    struct writer w;
    writer_init(&w, results, found);
    define_all(&w);
    rows_allocate(&w);
    if (!dataset_failed(&w.set))
        devices_put(&w);
    if (!dataset_failed(&w.set) && w.results->row_count > 0 && rows_load(&w, 0))
        rows_put(&w);
    return writer_end(&w, error);
}

/* Writes the draft, which has a name only while netCDF opens it. */
static enum status fill(struct staged_file *draft, const struct results *results, json_t *found,
                        struct error *error)
{
    struct writer w;
    dataset_prepare();
    TRY(staged_file_show(draft, error));
    writer_init(&w, results, found);
    dataset_create(&w.set, draft->path);
    staged_file_hide(draft);
    content_write(&w);
    return writer_end(&w, error);
}

struct fill_report {
    enum status status;
    struct error error;
};

/* Calls `fill` in a process of its own, because nc_close crashes if the system cannot close the
 * file. The process sends its report, then `found` as JSON. */
static enum status fill_apart(struct staged_file *draft, const struct results *results,
                              json_t *found, struct error *error)
{
    static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE};
    struct fill_report report;
    int ends[2], state = 0;
    sigset_t all, before;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(error, STATUS_SYSTEM, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        for (size_t i = 0; i < sizeof crashes / sizeof *crashes; ++i)
            signal(crashes[i], SIG_DFL); /* MPI's handlers print a page */
        report.status = fill(draft, results, found, &report.error);
        bool sent = file_write(ends[1], (const char *)&report, sizeof report) &&
                    json_dumpfd(found, ends[1], JSON_COMPACT) == 0;
        _exit(sent ? 0 : errno);
    }
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* a signal would interrupt the reads */
    close(ends[1]);
    bool complete = pid > 0 && read(ends[0], &report, sizeof report) == (ssize_t)sizeof report;
    json_t *now = complete ? json_loadfd(ends[0], 0, NULL) : NULL;
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, &state, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    staged_file_hide(draft);
    if (!now)
        return error_set(error, STATUS_SYSTEM,
                         "netCDF cannot write the file: memory, a write or a close failed: %s",
                         pid < 0              ? strerror(errno)
                         : WIFSIGNALED(state) ? strsignal(WTERMSIG(state))
                                              : strerror(WEXITSTATUS(state)));
    json_object_update(found, now);
    json_decref(now);
    if (report.status)
        *error = report.error;
    return report.status;
}

static enum status build(struct staged_file *draft, const struct results *results, json_t *found,
                         const char *output, struct error *error)
{
    for (;;) {
        size_t before = json_object_size(found);
        TRY(staged_file_open(draft, output, error));
        enum status status = fill_apart(draft, results, found, error);
        if (status == STATUS_OK && json_object_size(found) == before)
            return STATUS_OK;
        staged_file_close(draft); /* the next build needs a new draft */
        TRY(status);
    }
}

void results_nc_prepare(void)
{
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
}

/* HDF5 allocates and frees two zeroed buffers of 1 MiB for each write of texts. If the C library
 * returned them to the system, the system would zero their pages each time, which took a third of
 * the whole time. So the process keeps freed buffers. */
static void keep_buffers(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

enum status results_nc_write(const struct results *results, const char *path,
                             char published[LINK_TARGET], struct error *error)
{
    struct staged_file draft;
    json_t *found = json_object(); /* names of variables with a value, see struct dataset */
    enum status status = STATUS_OK;
    keep_buffers();
    staged_file_sweep(path);
    if (!found)
        status = error_set(error, STATUS_SYSTEM, "no memory for the netCDF file");
    else if ((status = look(results, found, error)) == STATUS_OK)
        status = build(&draft, results, found, path, error);
    json_decref(found);
    TRY(error_prefix(error, status, "%s", path));
    status = staged_file_publish(&draft, path, published, error);
    staged_file_close(&draft);
    return status;
}
