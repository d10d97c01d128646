#include "worker/program_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/stats.h"
#include "model/workloads/program.h"
#include "worker/program/counts.h"
#include "worker/program/handback.h"
#include "worker/program/injected.h"
#include "worker/program/loan.h"
#include "worker/program/process.h"
#include "worker/program/surroundings.h"
#include "worker/program/text_hash.h"

/* One row. */
struct row {
    const struct request *request;
    struct program_loan loan;
    struct command_line command;     /* owned */
    struct surroundings environment; /* owned; all but what a run adds */
    char folder[4096];               /* that it runs in, absolute */
    int64_t iterations;
    double deadline; /* s, CLOCK_MONOTONIC; INFINITY: none */
};

/* ---- before ---- */

static enum status row_environment(struct row *row, struct error *error)
{
    struct command_line variables;
    enum status status = command_line_split(config_value(&row->request->config, "environment").text,
                                            &variables, error);
    if (status)
        return status;
    row->environment = surroundings_create();
    for (size_t i = 0; i < variables.count; ++i)
        surroundings_set(&row->environment, variables.words[i]);
    if (row->loan.visible[0])
        surroundings_set(&row->environment, row->loan.visible);
    command_line_clear(&variables);
    return row->environment.complete ? STATUS_OK : error_set(error, STATUS_FAILED, "out of memory");
}

static enum status row_folder(struct row *row, struct error *error)
{
    const char *folder = row->request->folder[0] ? row->request->folder : ".";
    char *found = realpath(folder, NULL);
    if (!found || strlen(found) >= sizeof row->folder) {
        free(found);
        return error_set(error, STATUS_FAILED, "%s: there is no such folder on this node", folder);
    }
    strcpy(row->folder, found);
    free(found);
    return STATUS_OK;
}

static enum status row_prepare(struct row *row, struct error *error)
{
    const struct config *config = &row->request->config;
    row->iterations = config_value(config, "iterations").first;
    row->deadline =
        row->request->timeout > 0 ? clock_monotonic() + row->request->timeout : INFINITY;
    enum status status = row_folder(row, error);
    if (status == STATUS_OK)
        status = command_line_split(config_value(config, "command").text, &row->command, error);
    if (status == STATUS_OK)
        status = row_environment(row, error);
    if (status == STATUS_USAGE) /* of a text that no manifest made */
        status = STATUS_FAILED;
    return status;
}

/* ---- runs ---- */

/* The environment with the folder of what is handed back; it is the row's but for that. */
static enum status run_in(struct row *row, const char *report, struct process_end *end,
                          struct error *error)
{
    surroundings_put(&row->environment, HANDBACK_VARIABLE, report);
    if (!row->environment.complete)
        return error_set(error, STATUS_FAILED, "out of memory");
    const struct process process = {
        .words = row->command.words,
        .environment = row->environment.variables,
        .folder = row->folder,
        .cpus = row->loan.cpus,
        .cpus_size = row->loan.cpus_size,
        .timeout = isfinite(row->deadline) ? fmax(row->deadline - clock_monotonic(), 0.1) : 0.0,
    };
    enum status status = process_run(&process, end, error);
    return status ? status : process_judge(&process, end, error);
}

/* Either may be NULL: nobody asks. */
static enum status run_once(struct row *row, struct process_end *end, struct handback *handback,
                            struct injected *injected, struct error *error)
{
    char report[4096];
    enum status status = handback_folder(report, error);
    if (status)
        return status;
    status = run_in(row, report, end, error);
    if (status == STATUS_OK && handback)
        status = handback_read(report, handback, error);
    if (status == STATUS_OK && injected) {
        status = injected_read(report, injected, error);
        if (status && handback)
            handback_clear(handback);
    }
    handback_remove(report);
    return status;
}

/* One run with the injection library, see worker/cuda/inject/task.h. `handback` may be NULL. */
static enum status run_injected(struct row *row, const char *task, struct handback *handback,
                                struct injected *injected, struct error *error)
{
    struct process_end end;
    const struct config *config = &row->request->config;
    char tensors[16];
    snprintf(tensors, sizeof tensors, "%u", counts_tensors(config_precision(config)));
    surroundings_put(&row->environment, "CUDA_INJECTION64_PATH", row->loan.library);
    surroundings_put(&row->environment, "NVTX_INJECTION64_PATH", row->loan.library);
    surroundings_put(&row->environment, "ROOFSWEEP_INJECT", task);
    surroundings_put(&row->environment, "ROOFSWEEP_REGION", config_value(config, "region").text);
    surroundings_put(&row->environment, "ROOFSWEEP_TENSORS", tensors);
    return run_once(row, &end, handback, injected, error);
}

/* ---- the record ---- */

static enum status record_samples(const double *seconds, size_t count, int64_t iterations,
                                  struct record *record, struct error *error)
{
    struct stats stats;
    record->sample_count = count < RECORD_SAMPLES_MAX ? count : RECORD_SAMPLES_MAX;
    double *all = malloc(count * sizeof *all);
    record->sample = malloc(record->sample_count * sizeof *record->sample);
    enum status status = all && record->sample
                             ? STATUS_OK
                             : error_set(error, STATUS_FAILED, "no memory for the samples");
    for (size_t i = 0; i < count && status == STATUS_OK; ++i)
        all[i] = seconds[i] / (double)iterations;
    if (status == STATUS_OK)
        memcpy(record->sample, all, record->sample_count * sizeof *all);
    if (status == STATUS_OK)
        status = stats_compute(all, count, &stats, error);
    free(all);
    if (status)
        return status;
    record->time_median = stats.median;
    record->time_mean = stats.mean;
    record->time_stdev = stats.stdev;
    record->time_min = stats.min;
    record->time_max = stats.max;
    record->samples = (int64_t)count;
    return STATUS_OK;
}

static bool region_is(const struct row *row, const char *word)
{
    return strcmp(config_value(&row->request->config, "region").text, word) == 0;
}

static enum status no_region(const struct row *row, struct error *error)
{
    if (region_is(row, "profiler"))
        return error_set(error, STATUS_FAILED,
                         "the program ended well, but %s region: put what counts between the calls "
                         "of sweeps/programs/roofsweep_region.py%s, or write region = all",
                         row->loan.library[0] ? "opened or closed no" : "handed back no",
                         row->loan.library[0] ? ", or between cuProfilerStart and cuProfilerStop"
                                              : "");
    return error_set(error, STATUS_FAILED,
                     "the program ended well, but opened no NVTX range of the name in region%s",
                     row->loan.library[0] ? "" : "; only a GPU's worker sees them");
}

/* The program did not time its region itself: the library does, in a run of its own. */
static enum status time_injected(struct row *row, struct record *record, struct error *error)
{
    struct injected injected;
    if (!row->loan.library[0])
        return no_region(row, error);
    enum status status = run_injected(row, "time", NULL, &injected, error);
    if (status)
        return status;
    status = injected.region_count > 0 ? record_samples(injected.regions, injected.region_count,
                                                        row->iterations, record, error)
                                       : no_region(row, error);
    injected_clear(&injected);
    return status;
}

/* Of the whole run; of the regions that the program handed back; or of those that the library sees. */
static enum status record_times(struct row *row, const struct handback *handback,
                                const struct process_end *end, struct record *record,
                                struct error *error)
{
    if (region_is(row, "all"))
        return record_samples(&end->seconds, 1, row->iterations, record, error);
    if (region_is(row, "profiler") && handback->region_count > 0)
        return record_samples(handback->regions, handback->region_count, row->iterations, record,
                              error);
    return time_injected(row, record, error);
}

static enum status record_verified(const struct row *row, const struct handback *handback,
                                   struct record *record, struct error *error)
{
    if (!row->request->measure.verify)
        return STATUS_OK;
    if (isnan(handback->verify_error)) {
        snprintf(record->error, sizeof record->error,
                 "not verified: the program hands nothing back to compare");
        return STATUS_OK;
    }
    record->verify_error = handback->verify_error;
    record->verify_tolerance = handback->verify_tolerance;
    if (handback->verify_error <= handback->verify_tolerance)
        return STATUS_OK;
    return error_set(
        error, STATUS_FAILED,
        "wrong result: the program says that its relative error is %.3g; allowed: %.3g",
        handback->verify_error, handback->verify_tolerance);
}

/* Without counts, the unit that a library would use where the device has it: whose peak exists. */
static void record_describe(const struct row *row, struct record *record)
{
    enum precision precision = config_precision(&row->request->config);
    bool half =
        precision == PRECISION_TF32 || precision == PRECISION_FP16 || precision == PRECISION_BF16;
    snprintf(record->implementation, sizeof record->implementation, "program");
    if (precision != PRECISION_COUNT)
        record->unit = half ? UNIT_TENSOR : UNIT_VECTOR;
    record->workspace = NAN;
    text_hash(row->command.words, row->folder, record->program_hash);
}

/* ---- kernels and counts ---- */

/* Times stay, whatever comes of the runs for kernels and counts. */
static void uncounted(struct record *record, enum counted code, const char *reason)
{
    outcome_set(&record->counters, code, "%s", reason);
}

/* *untraced says why there is no trace; "" if there is one. */
static enum status trace(struct row *row, struct injected *traced, struct record *record,
                         struct error *error)
{
    enum status status = run_injected(row, "trace", NULL, traced, error);
    if (status)
        return status;
    if (traced->region_count == 0)
        status = error_set(error, STATUS_FAILED, "%s",
                           traced->processes ? "the program ended with its region open"
                                             : "the program opened no region");
    else if (traced->untraced[0])
        status = error_set(error, STATUS_FAILED, "%s", traced->untraced);
    else
        status = counts_trace(traced, row->iterations, record, error);
    if (status)
        injected_clear(traced);
    return status;
}

/* Whether the run counted; *why if it did not. */
static bool is_counted(const struct injected *counted, struct outcome *why)
{
    if (counted->refusal.code != OUTCOME_MISSING)
        outcome_set(why, counted->refusal.code, "%s", counted->refusal.reason);
    else if (counted->region_count == 0 || counted->passes == 0)
        outcome_set(why, COUNTED_INCOMPLETE, "the program did not close its region when counted");
    else
        return true;
    return false;
}

/* One pass. A program may choose its kernels by chance: a run that launches something else than was traced
 * is repeated. The outcome is COUNTED_YES, or says why not. */
static enum status count_pass(struct row *row, const struct injected *traced, const char *image,
                              struct injected *counted, struct outcome *outcome,
                              struct error *error)
{
    const int tries = 3;
    char next[4300];
    snprintf(next, sizeof next, "%s.next", image);
    for (int i = 0; i < tries; ++i) {
        enum status status = run_injected(row, "count", NULL, counted, error);
        if (status)
            return status;
        if (!is_counted(counted, outcome))
            return STATUS_OK;
        if (strcmp(counted->sequence, traced->sequence) == 0) {
            outcome_set(outcome, COUNTED_YES, NULL);
            return counted->last || rename(next, image) == 0
                       ? STATUS_OK
                       : error_set(error, STATUS_FAILED, "the counter data cannot be passed on");
        }
        outcome_set(outcome, COUNTED_INCOMPLETE,
                    "the program launches something else each time that it runs: %s and %s (hash "
                    "and number of its launches)",
                    traced->sequence, counted->sequence);
        if (i + 1 < tries)
            injected_clear(counted);
    }
    return STATUS_OK;
}

/* A run for each pass; the file of the counter data goes from one to the next. */
static enum status count_passes(struct row *row, const struct injected *traced, const char *image,
                                struct record *record, struct error *error)
{
    bool more = true;
    for (size_t pass = 0; more; ++pass) {
        struct injected counted;
        struct outcome outcome;
        enum status status = count_pass(row, traced, image, &counted, &outcome, error);
        if (status)
            return status;
        more = outcome.code == COUNTED_YES && !counted.last && pass + 1 < counted.passes;
        if (outcome.code != COUNTED_YES)
            outcome_set_brief(&record->counters, &outcome);
        else if (counted.last)
            counts_record(&counted, traced, row->iterations, record);
        else if (!more)
            uncounted(record, COUNTED_INCOMPLETE, "so many passes were not enough");
        injected_clear(&counted);
    }
    return STATUS_OK;
}

static enum status count(struct row *row, const struct injected *traced, struct record *record,
                         struct error *error)
{
    char folder[4096], image[4200];
    enum status status = handback_folder(folder, error);
    if (status)
        return status;
    snprintf(image, sizeof image, "%s/image", folder);
    surroundings_put(&row->environment, "ROOFSWEEP_IMAGE", image);
    status = count_passes(row, traced, image, record, error);
    handback_remove(folder);
    return status;
}

/* Fails only with STATUS_DEVICE. */
static enum status profile(struct row *row, struct record *record, struct error *error)
{
    struct injected traced;
    bool wanted = row->request->measure.counters != COUNTERS_OFF;
    bool able = row->loan.counters.code == COUNTED_YES;
    if (!wanted)
        outcome_set(&record->counters, COUNTED_OFF, NULL);
    else if (!able)
        outcome_set_brief(&record->counters, &row->loan.counters);
    if (!row->loan.library[0])
        return STATUS_OK;
    enum status status = trace(row, &traced, record, error);
    if (status) {
        if (wanted && able)
            uncounted(record, COUNTED_INCOMPLETE, error->text);
        fprintf(stderr, "no kernel trace: %s\n", error->text);
        return status == STATUS_DEVICE ? status : STATUS_OK;
    }
    status = wanted && able ? count(row, &traced, record, error) : STATUS_OK;
    injected_clear(&traced);
    if (status && status != STATUS_DEVICE)
        uncounted(record, COUNTED_INCOMPLETE, error->text);
    return status == STATUS_DEVICE ? status : STATUS_OK;
}

static enum status row_measure(struct row *row, struct record *record, struct error *error)
{
    struct process_end end;
    struct handback handback;
    record_describe(row, record);
    enum status status = run_once(row, &end, &handback, NULL, error);
    if (status)
        return status;
    status = record_times(row, &handback, &end, record, error);
    if (status == STATUS_OK)
        status = record_verified(row, &handback, record, error);
    handback_clear(&handback);
    return status ? status : profile(row, record, error);
}

/* What a row that failed keeps is what was asked for, and why. */
static void record_fail(const struct request *request, double start_time, enum status status,
                        const struct error *error, struct record *record)
{
    record_clear(record);
    record_set_config(record, &request->config);
    record->start_time = start_time;
    record->status = status == STATUS_UNSUPPORTED ? RECORD_SKIPPED : RECORD_FAILED;
    memcpy(record->error, error->text, sizeof error->text);
}

enum status program_row_measure(const struct device_ops *device, struct device_state *state,
                                const struct request *request, struct record *record,
                                struct error *error)
{
    struct row row = {.request = request};
    double start = clock_monotonic(), start_time = clock_epoch();
    record_set_config(record, &request->config);
    record->start_time = start_time;
    record->status = RECORD_MEASURED;
    enum status status = config_check(&request->config, error);
    if (status == STATUS_OK)
        status = device->lend(state, &row.loan, error);
    if (status == STATUS_OK)
        status = row_prepare(&row, error);
    if (status == STATUS_OK)
        status = row_measure(&row, record, error);
    command_line_clear(&row.command);
    surroundings_clear(&row.environment);
    if (status == STATUS_DEVICE)
        return status;
    if (status)
        record_fail(request, start_time, status, error, record);
    record->wall_time = clock_monotonic() - start;
    return STATUS_OK;
}
