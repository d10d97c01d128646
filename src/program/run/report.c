#include "program/run/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/field.h"

enum { LINE_BYTES = 4096 };

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_FAILED, "out of memory");
}

static enum status several_processes(struct error *error)
{
    return error_set(error, STATUS_FAILED,
                     "several processes of the program open the region; only one may");
}

static bool is_injected(const char *name)
{
    static const char suffix[] = ".injected";
    size_t length = strlen(name);
    return length >= sizeof suffix && strcmp(name + length - strlen(suffix), suffix) == 0;
}

/* ---- the program's report ---- */

static enum status number_read(char **text, double *value, struct error *error)
{
    char *end;
    double read = strtod(*text, &end);
    if (end == *text || !strchr(" \n", *end) || !isfinite(read) || read < 0)
        return error_set(error, STATUS_FAILED, "'%.60s' is no number from 0", *text);
    *text = end;
    *value = read;
    return STATUS_OK;
}

static enum status region_take(double seconds, struct report *report, struct error *error)
{
    if (seconds == 0)
        return error_set(error, STATUS_FAILED, "a region of 0 s: nothing is done in no time");
    if (seconds > FIELD_SECONDS_MAX || report->region_count == REPORT_REGIONS_MAX)
        return error_set(error, STATUS_FAILED, "more regions, or longer ones, than there can be");
    return ARRAY_ADD(report->regions, report->region_count, seconds) ? STATUS_OK : no_memory(error);
}

static enum status report_line(char *line, struct report *report, struct error *error)
{
    const bool region = strncmp(line, "region ", 7) == 0, verify = strncmp(line, "verify ", 7) == 0,
               threads = strncmp(line, "threads ", 8) == 0;
    char *text = line + (threads ? 8 : 7);
    double first = 0, second = 0, waiting = NAN;
    if (!region && !verify && !threads) {
        line[strcspn(line, "\n")] = '\0';
        return error_set(error, STATUS_FAILED,
                         "'%.60s' is none of: region SECONDS, verify ERROR TOLERANCE, threads "
                         "RUNNING SWITCHES WAITING",
                         line);
    }
    TRY(number_read(&text, &first, error));
    if (!region)
        TRY(number_read(&text, &second, error));
    if (threads && *text == ' ')
        TRY(number_read(&text, &waiting, error));
    text += strspn(text, " ");
    if (*text && *text != '\n') {
        line[strcspn(line, "\n")] = '\0';
        return error_set(error, STATUS_FAILED, "'%.60s' goes on after its last number", line);
    }
    if (region)
        return region_take(first, report, error);
    if (threads) {
        report->occupied.running += first;
        report->occupied.switches += (int64_t)second;
        report->occupied.waiting += waiting;
        ++report->occupied_count;
        return STATUS_OK;
    }
    /* Keep the worst of several results. */
    if (isnan(report->verify_error) ||
        first - second > report->verify_error - report->verify_tolerance) {
        report->verify_error = first;
        report->verify_tolerance = second;
    }
    return STATUS_OK;
}

static enum status report_file(const char *name, FILE *file, void *argument, struct error *error)
{
    char line[LINE_BYTES];
    struct report *report = argument;
    const size_t others = report->region_count;
    while (!is_injected(name) && fgets(line, sizeof line, file))
        TRY(report_line(line, report, error));
    return others > 0 && report->region_count > others ? several_processes(error) : STATUS_OK;
}

enum status report_read(const struct scratch *folder, struct report *report, struct error *error)
{
    struct report read = {.verify_error = NAN, .verify_tolerance = NAN};
    enum status status = scratch_each(folder, report_file, &read, error);
    if (status)
        report_clear(&read);
    else
        *report = read;
    return error_prefix(error, status, "the program handed back");
}

void report_clear(struct report *report)
{
    free(report->regions);
    *report = (struct report){.verify_error = NAN, .verify_tolerance = NAN};
}

/* ---- the library's report ---- */

static enum status no_meaning(const char *what, const char *text, struct error *error)
{
    return error_set(error, STATUS_FAILED, "%s nothing: %.100s", what, text);
}

static size_t kernel_find(const struct injected *in, const struct kernel *kernel)
{
    size_t i = 0;
    while (i < in->kernel_count && !kernel_same(&in->kernels[i], kernel))
        ++i;
    return i;
}

static enum status kernel_take(const char *text, struct injected *in, struct error *error)
{
    struct kernel kernel;
    unsigned long long start, end, node;
    long long g[3], b[3], registers, fixed, dynamic, cluster, resident, limit;
    unsigned correlation;
    int name = 0;
    fields_clear(kernel_fields, &kernel);
    if (sscanf(text,
               "%llu %llu %u %llu %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %n",
               &start, &end, &correlation, &node, &g[0], &g[1], &g[2], &b[0], &b[1], &b[2],
               &registers, &fixed, &dynamic, &cluster, &resident, &limit, &name) < 16 ||
        name == 0)
        return no_meaning("a kernel that means", text, error);
    kernel.grid_x = g[0], kernel.grid_y = g[1], kernel.grid_z = g[2];
    kernel.block_x = b[0], kernel.block_y = b[1], kernel.block_z = b[2];
    kernel.registers = registers, kernel.static_shared = fixed, kernel.dynamic_shared = dynamic;
    kernel.cluster = cluster, kernel.resident = resident, kernel.resident_limit = limit;
    kernel.count = 0;
    kernel.time = 0.0;
    snprintf(kernel.name, sizeof kernel.name, "%s", text + name);
    size_t row = kernel_find(in, &kernel);
    bool known = row < in->kernel_count;
    if (!known && !ARRAY_ADD(in->kernels, in->kernel_count, kernel))
        return no_memory(error);
    ++in->kernels[row].count;
    in->kernels[row].time += 1e-9 * (double)(end - start);
    in->in_graphs += node != 0;
    return ARRAY_ADD(in->launches, in->launch_count,
                     (struct launch){start, end, correlation, row, node})
               ? STATUS_OK
               : no_memory(error);
}

static enum status moved_take(const char *text, struct injected_moves *moves, struct error *error)
{
    unsigned long long start, end, bytes;
    if (sscanf(text, "%llu %llu %llu", &start, &end, &bytes) != 3 || end < start)
        return no_meaning("a copy that means", text, error);
    ++moves->count;
    moves->bytes += (double)bytes;
    moves->time += 1e-9 * (double)(end - start);
    return STATUS_OK;
}

static enum status value_take(const char *text, double values[QUANTITY_COUNT], struct error *error)
{
    int quantity = -1;
    double value = NAN;
    if (sscanf(text, "%d %lf", &quantity, &value) != 2 || quantity < 0 ||
        quantity >= QUANTITY_COUNT)
        return no_meaning("a value that means", text, error);
    values[quantity] = value;
    return STATUS_OK;
}

/* The lines of a launch come together, and the launches come in order. */
static enum status each_take(const char *text, struct injected *in, struct error *error)
{
    char *rest;
    size_t launch = strtoul(text, &rest, 10);
    if (launch >= in->each_count) {
        if (launch > in->each_count || !ARRAY_GROW(in->each, launch))
            return no_memory(error);
        for (int i = 0; i < QUANTITY_COUNT; ++i)
            in->each[launch][i] = NAN;
        ++in->each_count;
    }
    return value_take(rest, in->each[launch], error);
}

static enum status line_take(char *line, struct injected *in, struct error *error)
{
    line[strcspn(line, "\n")] = '\0';
    char *text = line + strcspn(line, " "), *rest;
    int last = 0;
    if (*text)
        *text++ = '\0';
    if (strcmp(line, "opened") == 0) {
        in->processes = 1;
    } else if (strcmp(line, "closed") == 0) {
        if (!ARRAY_ADD(in->regions, in->region_count, strtod(text, NULL)))
            return no_memory(error);
    } else if (strcmp(line, "kernel") == 0) {
        return kernel_take(text, in, error);
    } else if (strcmp(line, "call") == 0) {
        if (!ARRAY_ADD(in->calls, in->call_count, strtoull(text, NULL, 10)))
            return no_memory(error);
    } else if (strcmp(line, "copy") == 0) {
        return moved_take(text, &in->copies, error);
    } else if (strcmp(line, "fill") == 0) {
        return moved_take(text, &in->fills, error);
    } else if (strcmp(line, "untraced") == 0) {
        snprintf(in->untraced, sizeof in->untraced, "%s", text);
    } else if (strcmp(line, "launched") == 0) {
        snprintf(in->sequence, sizeof in->sequence, "%s", text);
    } else if (strcmp(line, "passes") == 0) {
        if (sscanf(text, "%zu %d", &in->passes, &last) != 2)
            return no_meaning("passes that mean", text, error);
        in->last = last == 1;
    } else if (strcmp(line, "value") == 0) {
        return value_take(text, in->values, error);
    } else if (strcmp(line, "each") == 0) {
        return each_take(text, in, error);
    } else if (strcmp(line, "unloaded") == 0) {
        in->unloaded = true;
    } else if (strcmp(line, "refused") == 0) {
        long code = strtol(text, &rest, 10);
        outcome_set(&in->refusal, code == COUNTED_INCOMPLETE ? COUNTED_INCOMPLETE : COUNTED_REFUSED,
                    "%s", rest + strspn(rest, " "));
    } else {
        if (text > line + strlen(line))
            text[-1] = ' ';
        return no_meaning("a line that means", line, error);
    }
    return STATUS_OK;
}

void injected_init(struct injected *in)
{
    memset(in, 0, sizeof *in);
    in->refusal.code = OUTCOME_MISSING;
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        in->values[i] = NAN;
}

/* A process without a region only reports why nothing was traced or counted; a process with a
 * region replaces its report. */
static enum status process_take(const char *name, FILE *file, void *argument, struct error *error)
{
    struct injected one, *all = argument;
    char line[LINE_BYTES];
    enum status status = STATUS_OK;
    if (!is_injected(name))
        return STATUS_OK;
    injected_init(&one);
    while (status == STATUS_OK && fgets(line, sizeof line, file))
        status = line_take(line, &one, error);
    if (status == STATUS_OK && one.processes && all->processes)
        status = several_processes(error);
    if (status == STATUS_OK && (one.processes || !all->processes)) {
        injected_clear(all);
        *all = one;
        return STATUS_OK;
    }
    injected_clear(&one);
    return status;
}

enum status injected_read(const struct scratch *folder, struct injected *injected,
                          struct error *error)
{
    struct injected all;
    injected_init(&all);
    enum status status = scratch_each(folder, process_take, &all, error);
    if (status)
        injected_clear(&all);
    else
        *injected = all;
    return status;
}

void injected_clear(struct injected *injected)
{
    free(injected->regions);
    free(injected->kernels);
    free(injected->launches);
    free(injected->each);
    free(injected->calls);
    injected_init(injected);
}

void injected_move_each(struct injected *to, struct injected *from)
{
    free(to->each);
    to->each = from->each;
    to->each_count = from->each_count;
    from->each = NULL;
    from->each_count = 0;
}

unsigned injected_tensors(enum precision precision)
{
    if (precision == PRECISION_COUNT)
        return QUANTITY_ALL_TENSORS & ~quantity_tensor(QUANTITY_TENSOR_INT8);
    if (precision == PRECISION_FP32) /* libraries may compute FP32 in TF32 */
        precision = PRECISION_TF32;
    return quantity_tensor(quantity_of(precision, true));
}

/* ---- the trace into a record ---- */

/* Count of one iteration, rounded, but at least 1: the region may launch a kernel only once. */
static int64_t each(int64_t count, int64_t iterations)
{
    int64_t rounded = (count + iterations / 2) / iterations;
    return count > 0 && rounded == 0 ? 1 : rounded;
}

static void moves_record(const struct injected_moves *moves, int64_t iterations, int64_t *count,
                         double *bytes, double *time)
{
    *count = each(moves->count, iterations);
    *bytes = moves->bytes / (double)iterations;
    *time = moves->time / (double)iterations;
}

/* Whether the device waited for the host. The host causes a gap if the call of the next launch ends
 * after the previous kernel. 1: such gaps are most of the time between kernels, and more than 5 %
 * of the timed region; `gap` is the share of all gaps in the timed region. The trace slows the
 * start and the end of a region most, so they do not count. A call of a graph launches several
 * kernels. FIELD_MISSING: the numbers of calls and launches differ, or there are no gaps. */
static int64_t waited_for_host(struct injected *traced, double gap)
{
    const double half = 0.5, visible = 0.05;
    double idle = 0, host = 0;
    uint64_t end = UINT64_MAX;
    size_t call = 0;
    launches_sort(traced->launches, traced->launch_count);
    for (size_t i = 0; i < traced->launch_count; ++i) {
        const struct launch *launch = &traced->launches[i];
        call += i > 0 && launch->correlation != launch[-1].correlation;
        if (call == traced->call_count)
            return FIELD_MISSING;
        const double own = launch->start > end ? (double)(launch->start - end) : 0;
        idle += own;
        host += traced->calls[call] > end ? own : 0;
        end = i > 0 && launch->end < end ? end : launch->end;
    }
    return idle > 0 && call + 1 == traced->call_count
               ? host > half * idle && gap * host / idle > visible
               : FIELD_MISSING;
}

enum status injected_record_trace(struct injected *traced, int64_t iterations,
                                  struct record *record, struct error *error)
{
    enum status status = STATUS_OK;
    size_t used = strlen(record->error);
    if (traced->kernel_count <= RECORD_KERNELS_MAX)
        status = record_set_kernels(record, traced->kernels, traced->kernel_count, error);
    else /* the record keeps the sums without the kernels */
        snprintf(record->error + used, sizeof record->error - used,
                 "%sno kernels: the region runs %zu different ones, and a row has %d at most",
                 used ? "; " : "", traced->kernel_count, RECORD_KERNELS_MAX);
    for (size_t i = 0; i < record->kernel_count; ++i) {
        record->kernels[i].count = each(record->kernels[i].count, iterations);
        record->kernels[i].time /= (double)iterations;
    }
    record->launches = each((int64_t)traced->launch_count, iterations);
    record->launches_in_graphs = each((int64_t)traced->in_graphs, iterations);
    record->busy_time =
        launches_busy_time(traced->launches, traced->launch_count) / (double)iterations;
    record->host_paced = waited_for_host(traced, 1 - record->busy_time / record->time_median);
    moves_record(&traced->copies, iterations, &record->memcpy_count, &record->memcpy_bytes,
                 &record->memcpy_time);
    moves_record(&traced->fills, iterations, &record->memset_count, &record->memset_bytes,
                 &record->memset_time);
    return status;
}

/* If `vectorless`, vector FLOPs are unknown, and so is the sum of all FLOPs. */
static void values_record(const double counted[QUANTITY_COUNT], double iterations, bool vectorless,
                          struct record *record)
{
    double values[QUANTITY_COUNT], vector = 0.0;
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        values[i] = vectorless && i <= QUANTITY_VECTOR_FP16 ? NAN : counted[i] / iterations;
    for (int i = QUANTITY_VECTOR_FP64; i <= QUANTITY_VECTOR_FP16; ++i)
        vector += isnan(values[i]) ? 0.0 : values[i];
    record_set_quantities(record, values);
    double tensor = record->flops_counted - vector;
    if (!vectorless || tensor > 0.0)
        record->unit = tensor > vector ? UNIT_TENSOR : UNIT_VECTOR;
    if (vectorless)
        record->flops_counted = NAN;
}

static void kernel_add(double *sum, double value)
{
    *sum = (isnan(*sum) ? 0.0 : *sum) + value;
}

/* Gives the record's kernels the counts of their launches: trace and counts have the same sequence
 * of launches, in the order of the calls. */
static void kernels_record(const struct injected *counted, struct injected *traced,
                           double iterations, bool graphs, struct record *record)
{
    if (counted->each_count == 0 || counted->each_count != traced->launch_count ||
        record->kernel_count != traced->kernel_count) /* the record had no room for the kernels */
        return;
    launches_sort(traced->launches, traced->launch_count);
    for (size_t i = 0; i < traced->launch_count; ++i) {
        struct kernel *kernel = &record->kernels[traced->launches[i].kernel];
        double bytes[LEVEL_COUNT];
        quantity_bytes(counted->each[i], bytes);
        if (!traced->unloaded)
            kernel_add(&kernel->flops_counted, quantity_flops(counted->each[i]));
        for (int level = 0; level < LEVEL_COUNT && !graphs; ++level)
            if (!isnan(bytes[level]))
                kernel_add(&kernel->bytes_counted[level], bytes[level]);
    }
    for (size_t i = 0; i < record->kernel_count;
         ++i) { /* divided only after the sum, so that the sum is a whole number */
        record->kernels[i].flops_counted /= iterations;
        for (int level = 0; level < LEVEL_COUNT; ++level)
            record->kernels[i].bytes_counted[level] /= iterations;
    }
}

/* ---- without CUDA graphs ---- */

bool injected_same_kernels(const struct injected *a, const struct injected *b)
{
    bool same = a->kernel_count == b->kernel_count;
    for (size_t i = 0; i < a->kernel_count && same; ++i) {
        size_t j = kernel_find(b, &a->kernels[i]);
        same = j < b->kernel_count && a->kernels[i].count == b->kernels[j].count;
    }
    return same;
}

void injected_ungraph(struct injected *traced, struct injected *counted,
                      struct injected *plain_traced, struct injected *plain_counted)
{
    for (int i = QUANTITY_VECTOR_FP64; i <= QUANTITY_VECTOR_FP16; ++i)
        counted->values[i] = plain_counted->values[i];
    injected_move_each(counted, plain_counted);
    free(traced->launches); /* launches of a run without graphs replace these launches */
    traced->launches = plain_traced->launches;
    for (size_t i = 0; i < plain_traced->launch_count; ++i)
        traced->launches[i].kernel =
            kernel_find(traced, &plain_traced->kernels[traced->launches[i].kernel]);
    plain_traced->launches = NULL;
    plain_traced->launch_count = 0;
    traced->ungraphed = true;
    traced->unloaded = plain_traced->unloaded;
}

void injected_record_counts(const struct injected *counted, struct injected *traced,
                            int64_t iterations, struct record *record)
{
    bool graphs = traced->in_graphs > 0, in_graphs = graphs && !traced->ungraphed;
    values_record(counted->values, (double)iterations, in_graphs || traced->unloaded, record);
    kernels_record(counted, traced, (double)iterations, graphs, record);
    if (in_graphs)
        outcome_set(&record->counters, COUNTED_INCOMPLETE,
                    "%zu of %zu kernels are launched by CUDA graphs, where vector FLOPs cannot be "
                    "counted",
                    traced->in_graphs, traced->launch_count);
    else if (traced->unloaded)
        outcome_set(&record->counters, COUNTED_INCOMPLETE,
                    "the program unloads code while it is counted, so that its vector FLOPs may be "
                    "wrong");
    else
        outcome_set(&record->counters, COUNTED_YES, NULL);
}

void injected_record_causes(const struct injected *causes, struct injected *traced,
                            struct record *record)
{
    const bool known = causes->refusal.code == OUTCOME_MISSING && traced->launch_count > 0 &&
                       causes->each_count == traced->launch_count &&
                       record->kernel_count == traced->kernel_count;
    if (!known && record->counters.code == COUNTED_YES)
        outcome_set(&record->counters, COUNTED_WITHOUT_CAUSES, "%s", causes->refusal.reason);
    launches_sort(traced->launches, traced->launch_count);
    for (size_t i = 0; known && i < traced->kernel_count; ++i) {
        const struct kernel *kernel = &traced->kernels[i];
        double sums[QUANTITY_COUNT] = {0};
        for (size_t j = 0; j < traced->launch_count; ++j)
            for (int k = 0; k < QUANTITY_COUNT && traced->launches[j].kernel == i; ++k)
                sums[k] += causes->each[j][k];
        quantity_activities(sums, (double)kernel->count, kernel->time, record->kernels[i].activity);
    }
}
