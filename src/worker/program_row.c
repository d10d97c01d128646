#include "worker/program_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "worker/program/text_hash.h"
#include "worker/program_profile.h"
#include "worker/program_run.h"

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

static bool region_is(const struct program_run *row, const char *word)
{
    return strcmp(config_value(&row->request->config, "region").text, word) == 0;
}

static enum status no_region(const struct program_run *row, struct error *error)
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
static enum status time_injected(struct program_run *row, struct record *record,
                                 struct error *error)
{
    struct injected injected;
    if (!row->loan.library[0])
        return no_region(row, error);
    enum status status = program_run_injected(row, "time", NULL, &injected, error);
    if (status)
        return status;
    status = injected.region_count > 0 ? record_samples(injected.regions, injected.region_count,
                                                        row->iterations, record, error)
                                       : no_region(row, error);
    injected_clear(&injected);
    return status;
}

/* Of the whole run; of the regions that the program handed back; or of those that the library sees. */
static enum status record_times(struct program_run *row, const struct handback *handback,
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

static enum status record_verified(const struct program_run *row, const struct handback *handback,
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
static void record_describe(const struct program_run *row, struct record *record)
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

static enum status row_measure(struct program_run *row, struct record *record, struct error *error)
{
    struct process_end end;
    struct handback handback;
    size_t regions;
    record_describe(row, record);
    enum status status = program_run_once(row, &end, &handback, NULL, error);
    if (status)
        return status;
    status = record_times(row, &handback, &end, record, error);
    if (status == STATUS_OK)
        status = record_verified(row, &handback, record, error);
    handback_clear(&handback);
    /* A region of the whole program is one, whatever else was timed. */
    regions = record->samples > 0 && !region_is(row, "all") ? (size_t)record->samples : 1;
    return status ? status : program_profile(row, regions, record, error);
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
    struct program_run row = {.request = request};
    double start = clock_monotonic(), start_time = clock_epoch();
    record_set_config(record, &request->config);
    record->start_time = start_time;
    record->status = RECORD_MEASURED;
    enum status status = config_check(&request->config, error);
    if (status == STATUS_OK)
        status = device->lend(state, &row.loan, error);
    if (status == STATUS_OK)
        status = program_run_prepare(&row, error);
    if (status == STATUS_OK)
        status = row_measure(&row, record, error);
    program_run_clear(&row);
    if (status == STATUS_DEVICE)
        return status;
    if (status)
        record_fail(request, start_time, status, error, record);
    record->wall_time = clock_monotonic() - start;
    return STATUS_OK;
}
