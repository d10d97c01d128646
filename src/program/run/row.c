#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/file.h"
#include "program/workload.h"
#include "worker/measure.h"
#include "worker/row_kind.h"
#include "program/run/environment.h"
#include "program/run/handback.h"
#include "program/run/injected.h"
#include "program/run/process.h"
#include "program/run/scratch.h"

enum { PROGRAM_HASH = sizeof((struct record *)NULL)->program_hash };

/* s, between the moments at which a program and its worker get a signal that goes to both. */
static const double signal_patience = 0.5;

/* A row's program: the command of all its runs. */
struct program {
    const struct request *request;
    struct program_device device;
    struct command_line command;    /* owned */
    struct environment environment; /* owned; all but what a run adds */
    char folder[4096];              /* that it runs in, absolute */
    int64_t iterations;
    struct countdown *time;         /* that is left for all runs */
    struct persistent **persistent; /* NULL: each run is a process of its own */
};

/* Lives until the end of the expression that it is in. */
#define TEXT_OF(program, parameter) config_value(&(program)->request->config, parameter).text

static bool region_is(const struct program *program, const char *word)
{
    return strcmp(TEXT_OF(program, "region"), word) == 0;
}

static bool is_replayed(const struct program *program)
{
    return config_value(&program->request->config, "replay").first != 0;
}

/* ---- before the runs ---- */

/* Of the request and the device, which are set. To be cleared in any case. */
static enum status program_prepare(struct program *program, struct error *error)
{
    const struct request *request = program->request;
    const char *folder = request->folder[0] ? request->folder : ".";
    struct command_line variables;
    program->iterations = config_value(&request->config, "iterations").first;
    char *found = realpath(folder, NULL);
    bool fits = found && strlen(found) < sizeof program->folder;
    if (fits)
        strcpy(program->folder, found);
    free(found);
    if (!fits)
        return error_set(error, STATUS_FAILED, "%s: there is no such folder on this node", folder);
    enum status status = command_line_split(TEXT_OF(program, "command"), &program->command, error);
    if (status == STATUS_OK)
        status = command_line_split(TEXT_OF(program, "environment"), &variables, error);
    if (status)
        return STATUS_FAILED; /* a text that no manifest made */
    program->environment = environment_create();
    for (size_t i = 0; i < variables.count; ++i)
        environment_set(&program->environment, variables.words[i]);
    if (program->device.visible[0])
        environment_set(&program->environment, program->device.visible);
    command_line_clear(&variables);
    return STATUS_OK;
}

static void program_clear(struct program *program)
{
    command_line_clear(&program->command);
    environment_clear(&program->environment);
}

/* Makes of a prepared program the one without CUDA graphs, see `ungraphed` in
 * program/workload.h: its entries are "INDEX:WORD", or "NAME=VALUE". */
static enum status program_ungraph(struct program *program, struct error *error)
{
    struct command_line entries;
    enum status status = STATUS_OK;
    if (command_line_split(TEXT_OF(program, "ungraphed"), &entries, error))
        return STATUS_FAILED;
    for (size_t i = 0; i < entries.count && status == STATUS_OK; ++i) {
        char *word;
        unsigned long index = strtoul(entries.words[i], &word, 10);
        if (word == entries.words[i] || *word != ':') {
            environment_set(&program->environment, entries.words[i]);
            continue;
        }
        char *copy = index < program->command.count ? strdup(word + 1) : NULL;
        if (!copy) {
            status = error_set(error, STATUS_FAILED, "ungraphed: there is no word %lu", index);
            continue;
        }
        free(program->command.words[index]);
        program->command.words[index] = copy;
    }
    command_line_clear(&entries);
    return status;
}

static bool file_hash(XXH3_state_t *state, const char *path)
{
    struct error unheard;
    char chunk[65536];
    size_t got;
    FILE *file;
    if (file_open(path, &file, &unheard))
        return false;
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
        XXH3_128bits_update(state, chunk, got);
    fclose(file);
    return true;
}

/* The hash of a program's text: 128-bit xxHash (XXH3) of the contents, one after the other, of all
 * words that name a regular file, seen from the folder, as hexadecimal digits. "" if no word does:
 * a command from PATH alone. */
static void program_hash(char *const *words, const char *folder, char hash[PROGRAM_HASH])
{
    XXH3_state_t *state = XXH3_createState();
    bool any = false;
    hash[0] = '\0';
    if (!state)
        return;
    XXH3_128bits_reset(state);
    for (size_t i = 0; words[i]; ++i) {
        char path[8192];
        if (i == 0 && !strchr(words[i], '/')) /* from PATH */
            continue;
        snprintf(path, sizeof path, "%s%s%s", *words[i] == '/' ? "" : folder,
                 *words[i] == '/' ? "" : "/", words[i]);
        any |= file_hash(state, path);
    }
    XXH128_hash_t h = XXH3_128bits_digest(state);
    if (any)
        snprintf(hash, PROGRAM_HASH, "%016llx%016llx", (unsigned long long)h.high64,
                 (unsigned long long)h.low64);
    XXH3_freeState(state);
}

/* ---- one run ---- */

/* Whether a signal that the worker blocks has come, now or within so many seconds. Its rank has it
 * block those that end a job. They go to all processes of the job: the program ends of it. */
static bool job_ends(double seconds)
{
    double end = clock_monotonic() + seconds;
    sigset_t come;
    while (sigpending(&come) == 0 && sigisemptyset(&come)) {
        if (clock_monotonic() >= end)
            return false;
        clock_sleep(0.005);
    }
    return true;
}

/* Either of `handback` and `injected` may be NULL: nobody asks. */
static enum status program_run(struct program *program, struct process_end *end,
                               struct handback *handback, struct injected *injected,
                               struct error *error)
{
    const double missed = program->time->missed;
    struct persistent **persistent = program->persistent;
    struct scratch report;
    TRY(scratch_create(&report, error));
    enum status status = STATUS_OK;
    environment_put(&program->environment, HANDBACK_VARIABLE, report.path);
    const struct process process = {
        .words = program->command.words,
        .environment = program->environment.variables,
        .folder = program->folder,
        .cpus = program->device.cpus,
        .cpus_size = program->device.cpus_size,
        .time = program->time,
    };
    if (!program->environment.complete)
        status = error_set(error, STATUS_FAILED, "out of memory");
    else
        status = persistent ? process_point(&process, persistent, error)
                            : process_run(&process, end, error);
    if (status) /* the program may get a signal before its worker does */
        job_ends(fmin(signal_patience, program->time->left));
    if (program->time->missed > missed && status != STATUS_DEVICE) {
        scratch_remove(&report); /* it ran while its job was suspended: its times say nothing */
        return program_run(program, end, handback, injected, error);
    }
    if (status == STATUS_OK && handback)
        status = handback_read(&report, handback, error);
    if (status == STATUS_OK && injected)
        status = injected_read(&report, injected, error);
    scratch_remove(&report);
    return status;
}

/* A variable of the environment, of all runs from now on. */
static void number_put(struct program *program, const char *name, size_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    environment_put(&program->environment, name, text);
}

/* With the injection library, see program/inject/task.h. */
static enum status program_run_injected(struct program *program, const char *task,
                                        struct injected *injected, struct error *error)
{
    struct process_end end;
    enum precision precision = config_precision(&program->request->config);
    environment_put(&program->environment, "CUDA_INJECTION64_PATH", program->device.library);
    environment_put(&program->environment, "NVTX_INJECTION64_PATH", program->device.library);
    environment_put(&program->environment, "ROOFSWEEP_INJECT", task);
    environment_put(&program->environment, "ROOFSWEEP_REGION", TEXT_OF(program, "region"));
    number_put(program, "ROOFSWEEP_TENSORS", injected_tensors(precision));
    return program_run(program, &end, NULL, injected, error);
}

/* ---- times ---- */

/* Of one iteration each; *seconds become that. */
static enum status record_samples(double *seconds, size_t count, int64_t iterations,
                                  struct record *record, struct error *error)
{
    struct stats stats;
    for (size_t i = 0; i < count; ++i)
        seconds[i] /= (double)iterations;
    return measure_keep_samples(seconds, count, record, &stats, error);
}

static enum status no_region(const struct program *program, struct error *error)
{
    bool library = program->device.library[0];
    if (region_is(program, "profiler"))
        return error_set(error, STATUS_FAILED,
                         "the program ended well, but %s region: put what counts between the calls "
                         "of sweeps/programs/roofsweep_region.py%s, or write region = all",
                         library ? "opened or closed no" : "handed back no",
                         library ? ", or between cuProfilerStart and cuProfilerStop" : "");
    return error_set(error, STATUS_FAILED,
                     "the program ended well, but opened no NVTX range of the name in region%s",
                     library ? "" : "; only a GPU's worker sees them");
}

/* Of the whole run; of the regions that the program handed back; or of those that the library sees
 * in a run of its own. */
static enum status record_times(struct program *program, struct handback *handback,
                                struct process_end *end, struct record *record, struct error *error)
{
    struct injected injected;
    if (region_is(program, "all"))
        return record_samples(&end->seconds, 1, program->iterations, record, error);
    if (region_is(program, "profiler") && handback->region_count > 0)
        return record_samples(handback->regions, handback->region_count, program->iterations,
                              record, error);
    if (!program->device.library[0])
        return no_region(program, error);
    TRY(program_run_injected(program, "time", &injected, error));
    enum status status = injected.region_count > 0
                             ? record_samples(injected.regions, injected.region_count,
                                              program->iterations, record, error)
                             : no_region(program, error);
    injected_clear(&injected);
    return status;
}

static enum status record_verified(const struct program *program, const struct handback *handback,
                                   struct record *record, struct error *error)
{
    if (!program->request->measure.verify)
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

/* ---- kernels and counts ---- */

/* What the runs of one command found. */
struct found {
    struct injected traced;
    struct injected counted; /* its values alone */
    struct outcome outcome;  /* of counting */
};

static void found_clear(struct found *found)
{
    injected_clear(&found->traced);
    injected_clear(&found->counted);
}

/* `task` is trace or profile. */
static enum status trace(struct program *program, const char *task, struct injected *traced,
                         struct error *error)
{
    TRY(program_run_injected(program, task, traced, error));
    enum status status = STATUS_OK;
    if (traced->region_count == 0)
        status = error_set(error, STATUS_FAILED, "%s",
                           traced->processes ? "the program ended with its region open"
                                             : "the program opened no region");
    else if (traced->untraced[0])
        status = error_set(error, STATUS_FAILED, "%s", traced->untraced);
    if (status)
        injected_clear(traced);
    return status;
}

/* What the run leaves is what the next one goes on from. */
static enum status image_pass_on(const struct injected *counted, const struct scratch *images,
                                 struct error *error)
{
    const int folder = images->descriptor;
    return counted->last || renameat(folder, "image.next", folder, "image") == 0
               ? STATUS_OK
               : error_set(error, STATUS_FAILED, "the counter data cannot be passed on");
}

/* One run. A program may choose its kernels by chance: a run that launches something else than was
 * traced is repeated. The outcome is COUNTED_YES, and may have a reason all the same, or says why
 * not. */
static enum status count_run(struct program *program, const struct injected *traced,
                             const struct scratch *images, struct injected *counted,
                             struct outcome *outcome, struct error *error)
{
    for (int tries = 3;; --tries) {
        TRY(program_run_injected(program, "count", counted, error));
        enum status status = STATUS_OK;
        if (counted->refusal.code != OUTCOME_MISSING) {
            outcome_set(outcome, counted->refusal.code, "%s", counted->refusal.reason);
            return STATUS_OK;
        }
        if (counted->region_count == 0 || counted->passes == 0) {
            outcome_set(outcome, COUNTED_INCOMPLETE,
                        "the program did not close its region when counted");
            return STATUS_OK;
        }
        if (strcmp(counted->sequence, traced->sequence) == 0) {
            outcome_set(outcome, COUNTED_YES, NULL);
            status = image_pass_on(counted, images, error);
            if (status)
                injected_clear(counted);
            return status;
        }
        outcome_set(outcome, is_replayed(program) ? COUNTED_YES : COUNTED_INCOMPLETE,
                    "the program launches something else each time that it runs: %s and %s (hash "
                    "and number of its launches)",
                    traced->sequence, counted->sequence);
        if (is_replayed(program)) /* counts of one run all the same, though of no traced kernel */
            counted->each_count = 0;
        if (is_replayed(program) || tries == 1)
            return STATUS_OK;
        injected_clear(counted);
    }
}

/* Runs until no pass is left; the file of the counter data goes from one to the next. */
static enum status count_runs(struct program *program, struct found *found,
                              const struct scratch *images, struct error *error)
{
    const size_t most = 64;     /* runs: more than any chip has passes */
    program->persistent = NULL; /* the counters begin with the first allocation of a process */
    for (size_t i = 0; i < most; ++i) {
        struct injected counted;
        TRY(count_run(program, &found->traced, images, &counted, &found->outcome, error));
        found->traced.unloaded |= counted.unloaded;
        if (found->outcome.code != COUNTED_YES || counted.last) {
            injected_clear(&found->counted);
            found->counted = counted;
            return STATUS_OK;
        }
        injected_clear(&counted);
    }
    outcome_set(&found->outcome, COUNTED_INCOMPLETE, "so many passes were not enough");
    return STATUS_OK;
}

/* The first run of several regions. What it could not count is for runs of their own, which begin
 * anew, or go on. *over: there are none. */
static enum status profile_first(struct program *program, struct found *found,
                                 const struct scratch *images, bool *over, struct error *error)
{
    struct injected *traced = &found->traced;
    TRY(trace(program, "profile", traced, error));
    enum status status = STATUS_OK;
    *over = traced->last || traced->refusal.code == COUNTED_REFUSED;
    if (traced->last) {
        memcpy(found->counted.values, traced->values, sizeof traced->values);
        injected_move_each(&found->counted, traced);
    } else if (traced->refusal.code == COUNTED_REFUSED) {
        outcome_set_brief(&found->outcome, &traced->refusal);
    } else if (traced->refusal.code == OUTCOME_MISSING && traced->passes > 0) {
        status = image_pass_on(traced, images, error);
    }
    return status;
}

/* Three regions are the fewest in which one pass can follow the trace. */
static enum status profile_runs(struct program *program, size_t regions, struct found *found,
                                const struct scratch *images, struct error *error)
{
    bool over = false;
    char image[4200];
    const char *alone = is_replayed(program) ? "replay" : "region";
    bool launches = program->request->measure.kernels && !is_replayed(program);
    snprintf(image, sizeof image, "%s/image", images->path);
    environment_put(&program->environment, "ROOFSWEEP_IMAGE", image);
    environment_put(&program->environment, "ROOFSWEEP_RANGES", launches ? "launches" : alone);
    number_put(program, "ROOFSWEEP_REGIONS", regions);
    enum status status = regions >= 3 ? profile_first(program, found, images, &over, error)
                                      : trace(program, "trace", &found->traced, error);
    if (status || over)
        return status;
    if (found->traced.refusal.code != OUTCOME_MISSING) /* regions differ: the first is traced */
        number_put(program, "ROOFSWEEP_REGIONS", 1);
    environment_put(&program->environment, "ROOFSWEEP_RANGES", alone);
    number_put(program, "ROOFSWEEP_LAUNCHES", found->traced.launch_count);
    status = count_runs(program, found, images, error);
    if (status && status != STATUS_DEVICE) { /* the trace stays */
        outcome_set(&found->outcome, COUNTED_INCOMPLETE, "%s", error->text);
        status = STATUS_OK;
    }
    return status;
}

/* Traces one command, and counts it if `counted`. Nothing is left of it if it fails. */
static enum status profile_command(struct program *program, size_t regions, bool counted,
                                   struct found *found, struct error *error)
{
    struct scratch images;
    injected_init(&found->traced);
    injected_init(&found->counted);
    outcome_set(&found->outcome, COUNTED_YES, NULL);
    if (!counted)
        return trace(program, "trace", &found->traced, error);
    TRY(scratch_create(&images, error));
    enum status status = profile_runs(program, regions, found, &images, error);
    scratch_remove(&images);
    if (status)
        found_clear(found);
    return status;
}

/* ---- the same without graphs ---- */

/* Whether the run without graphs tells what the graphs' vector FLOPs are; *why if it does not. */
static bool is_the_same(const struct found *found, const struct found *plain, struct outcome *why)
{
    outcome_set(why, OUTCOME_MISSING, NULL);
    if (plain->outcome.code != COUNTED_YES)
        outcome_set_brief(why, &plain->outcome);
    else if (plain->traced.in_graphs > 0)
        outcome_set(why, COUNTED_INCOMPLETE, "graphs launch kernels there, too");
    else if (!injected_same_kernels(&found->traced, &plain->traced))
        outcome_set(why, COUNTED_INCOMPLETE, "other kernels run there");
    return why->code == OUTCOME_MISSING;
}

/* Takes vector FLOPs of what graphs launched from a run that launches the same kernels one by one.
 * One that chooses its kernels by chance is repeated. *why says why they cannot be had. Fails only
 * with STATUS_DEVICE. */
static enum status ungraph(const struct program *program, size_t regions, struct found *found,
                           struct outcome *why, struct error *error)
{
    bool same = false;
    for (int tries = 3; tries > 0 && !same; --tries) {
        struct program plain = {.request = program->request,
                                .device = program->device,
                                .time = program->time,
                                .persistent = program->persistent};
        struct found ungraphed;
        enum status status = program_prepare(&plain, error);
        if (status == STATUS_OK)
            status = program_ungraph(&plain, error);
        if (status == STATUS_OK)
            status = profile_command(&plain, regions, true, &ungraphed, error);
        program_clear(&plain);
        if (status) {
            outcome_set(why, COUNTED_INCOMPLETE, "%s", error->text);
            return status == STATUS_DEVICE ? status : STATUS_OK;
        }
        same = is_the_same(found, &ungraphed, why);
        if (same)
            injected_ungraph(&found->traced, &found->counted, &ungraphed.traced,
                             &ungraphed.counted);
        found_clear(&ungraphed);
    }
    return STATUS_OK;
}

static enum status record_counts(const struct program *program, size_t regions, struct found *found,
                                 struct record *record, struct error *error)
{
    struct outcome why = {.code = OUTCOME_MISSING};
    enum status status = STATUS_OK;
    if (found->outcome.code != COUNTED_YES) {
        outcome_set_brief(&record->counters, &found->outcome);
        return STATUS_OK;
    }
    if (found->traced.in_graphs > 0 && TEXT_OF(program, "ungraphed")[0])
        status = ungraph(program, regions, found, &why, error);
    TRY(status);
    injected_record_counts(&found->counted, &found->traced, program->iterations, record);
    if (found->outcome.reason[0])
        outcome_set(&record->counters, COUNTED_INCOMPLETE, "%s", found->outcome.reason);
    if (why.code != OUTCOME_MISSING)
        outcome_set(&record->counters, COUNTED_INCOMPLETE,
                    "vector FLOPs of kernels in CUDA graphs cannot be counted, nor in the run "
                    "without graphs: %s",
                    why.reason);
    return STATUS_OK;
}

/* `regions`: that the program opened when it was timed. Where they are three or more the first is
 * traced, and those that follow are counted in the same run. What cannot be had is missing, and the
 * record says why: times stay, whatever comes of the runs for kernels and counts. Fails only with
 * STATUS_DEVICE. */
static enum status record_profile(struct program *program, size_t regions, struct record *record,
                                  struct error *error)
{
    struct found found;
    bool wanted = program->request->measure.counters != COUNTERS_OFF;
    bool counted = wanted && program->device.counters.code == COUNTED_YES;
    if (!wanted)
        outcome_set(&record->counters, COUNTED_OFF, NULL);
    else if (!counted)
        outcome_set_brief(&record->counters, &program->device.counters);
    if (!program->device.library[0])
        return STATUS_OK;
    enum status status = profile_command(program, regions, counted, &found, error);
    if (status == STATUS_OK) {
        status = injected_record_trace(&found.traced, program->iterations, record, error);
        if (status == STATUS_OK && counted)
            status = record_counts(program, regions, &found, record, error);
        found_clear(&found);
    }
    if (status == STATUS_OK || status == STATUS_DEVICE)
        return status;
    if (counted)
        outcome_set(&record->counters, COUNTED_INCOMPLETE, "%s", error->text);
    else if (!record->error[0])
        snprintf(record->error, sizeof record->error, "no kernels: %.900s", error->text);
    return STATUS_OK;
}

/* ---- the row ---- */

/* Without counts, the unit is that which a library would use where the device has it: whose peak
 * exists. */
static enum status row_measure(struct program *program, double start, struct record *record,
                               struct error *error)
{
    struct process_end end = {.seconds = NAN};
    struct handback handback;
    enum precision precision = config_precision(&program->request->config);
    bool half =
        precision == PRECISION_TF32 || precision == PRECISION_FP16 || precision == PRECISION_BF16;
    snprintf(record->implementation, sizeof record->implementation, "program");
    if (precision != PRECISION_COUNT)
        record->unit = half ? UNIT_TENSOR : UNIT_VECTOR;
    record->workspace = NAN;
    program_hash(program->command.words, program->folder, record->program_hash);
    record_end_part(record, PART_PREPARE, clock_monotonic() - start);
    TRY(program_run(program, &end, &handback, NULL, error));
    enum status status = record_times(program, &handback, &end, record, error);
    if (status == STATUS_OK)
        status = record_verified(program, &handback, record, error);
    handback_clear(&handback);
    TRY(status);
    /* A region of the whole program is one, whatever else was timed. */
    bool several = record->samples > 0 && !region_is(program, "all");
    record_end_part(record, PART_TIMING, clock_monotonic() - start);
    status = record_profile(program, several ? (size_t)record->samples : 1, record, error);
    record_end_part(record, PART_COUNTS, clock_monotonic() - start);
    return status;
}

/* All runs together may take request->timeout. *kept: struct persistent. A row that shares its
 * process goes on with one of an earlier row; any other row ends them. */
static enum status row_measured(const struct device_ops *device, struct device_state *state,
                                void **kept, const struct request *request, struct record *record,
                                struct error *error)
{
    struct countdown time = countdown_start(request->timeout > 0 ? request->timeout : INFINITY);
    struct program program = {.request = request, .time = &time};
    struct persistent *persistent = *kept;
    double start = clock_monotonic(), start_time = clock_date();
    record_set_config(record, &request->config);
    enum status status = config_check(&request->config, error);
    if (status == STATUS_OK)
        status = device->program(state, &program.device, error);
    if (status == STATUS_OK)
        status = program_prepare(&program, error);
    if (config_is_shared(&request->config))
        program.persistent = &persistent;
    else
        persistent_end(&persistent);
    if (status == STATUS_OK)
        status = row_measure(&program, start, record, error);
    *kept = persistent;
    program_clear(&program);
    if (job_ends(0)) /* whatever the program made of it: --resume measures the row */
        return error_set(error, STATUS_INTERRUPTED, "a signal came while the program ran");
    if (status == STATUS_DEVICE)
        return status;
    if (status) { /* a row that failed keeps what was asked for, and why */
        record_clear(record);
        record_set_config(record, &request->config);
        memcpy(record->error, error->text, sizeof error->text);
    }
    record->status = status == STATUS_OK            ? RECORD_MEASURED
                     : status == STATUS_UNSUPPORTED ? RECORD_SKIPPED
                                                    : RECORD_FAILED;
    record->start_time = start_time;
    record->wall_time = clock_monotonic() - start;
    return STATUS_OK;
}

static void row_release(void **kept)
{
    struct persistent *persistent = *kept;
    persistent_end(&persistent);
    *kept = persistent;
}

const struct row_kind program_row = {&program_workload, row_measured, row_release};
