/* Measures a row of a program: runs its command several times, each time for another task, and
 * makes a record of the reports. The tasks:
 *
 *   time     times regions by the program's own clock, or by the library if it reports no region
 *   trace    traces kernels, copies and fills of the first region
 *   profile  traces the first region and counts others in the same run, if there are three or more
 *   count    counts: one run for each pass of the counters, or one run with all kernels replayed
 *
 * A program whose CUDA graphs hide vector FLOPs is traced and counted once more without graphs.
 * With counters = causes, one more run counts the activities of launches outside graphs. Only the
 * time must succeed: a run for kernels or counts that fails leaves its reason in the record. The
 * request's timeout limits all runs together. A run during which the job was suspended is repeated.
 * Each run costs the start of the program. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/file.h"
#include "program/run/environment.h"
#include "program/run/report.h"
#include "program/run/process.h"
#include "program/run/scratch.h"
#include "program/workload.h"
#include "worker/measure.h"
#include "worker/row_kind.h"

enum { PROGRAM_HASH = sizeof((struct record *)NULL)->program_hash };

/* s; longest time between the arrivals of a job's signal at the program and at the worker */
static const double signal_patience = 0.5;

struct program {
    const struct request *request;
    struct program_device device;
    struct command_line command;    /* owned; equal in all runs */
    struct environment environment; /* owned; each run replaces the variables of its task */
    char folder[4096];              /* working folder, absolute */
    int64_t iterations;
    bool causes;                    /* the next run counts activities */
    struct countdown *time;         /* time that is left for all runs together */
    struct persistent **persistent; /* NULL: each run is a process of its own */
    struct error *stays;            /* a folder that cannot be removed; "": none */
};

/* The text lives until the end of the expression. */
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

static void number_put(struct program *program, const char *name, size_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    environment_put(&program->environment, name, text);
}

/* The caller clears the program, also on failure. */
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
        return STATUS_FAILED; /* a manifest never makes such a text */
    program->environment = environment_create();
    for (size_t i = 0; i < variables.count; ++i)
        environment_set(&program->environment, variables.words[i]);
    if (program->device.visible[0])
        environment_set(&program->environment, program->device.visible);
    if (program->device.cpus)
        number_put(program, "ROOFSWEEP_CORES", (size_t)program->device.cores);
    command_line_clear(&variables);
    return STATUS_OK;
}

static void program_clear(struct program *program)
{
    command_line_clear(&program->command);
    environment_clear(&program->environment);
}

/* Makes the command without CUDA graphs: applies "INDEX:WORD" and "NAME=VALUE" of `ungraphed`. */
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
        if (copy) {
            free(program->command.words[index]);
            program->command.words[index] = copy;
        } else {
            status = error_set(error, STATUS_FAILED, "ungraphed: there is no word %lu", index);
        }
    }
    command_line_clear(&entries);
    return status;
}

/* 128-bit xxHash (XXH3) of the joined contents of all regular files whose names are words of the
 * command. Relative names are below `folder`. "": no word names a file, as in a command found in
 * PATH. */
static void program_hash(char *const *words, const char *folder, char hash[PROGRAM_HASH])
{
    XXH3_state_t *state = XXH3_createState();
    bool any = false;
    hash[0] = '\0';
    if (!state)
        return;
    XXH3_128bits_reset(state);
    for (size_t i = 0; words[i]; ++i) {
        char path[8192], chunk[65536];
        struct error unheard;
        size_t got;
        FILE *file;
        bool absolute = *words[i] == '/';
        if (i == 0 && !strchr(words[i], '/')) /* the program is searched in PATH */
            continue;
        snprintf(path, sizeof path, "%s%s%s", absolute ? "" : folder, absolute ? "" : "/",
                 words[i]);
        if (file_open(path, &file, &unheard))
            continue;
        while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
            XXH3_128bits_update(state, chunk, got);
        fclose(file);
        any = true;
    }
    XXH128_hash_t h = XXH3_128bits_digest(state);
    if (any)
        snprintf(hash, PROGRAM_HASH, "%016llx%016llx", (unsigned long long)h.high64,
                 (unsigned long long)h.low64);
    XXH3_freeState(state);
}

/* ---- one run ---- */

/* Waits up to `seconds` for a signal that ends the job, and returns whether one came. The worker
 * blocks these signals. Launchers send them to all processes of a job, so the program may die of
 * the signal before the worker receives it. */
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

static void scratch_end(const struct program *program, struct scratch *folder)
{
    if (!scratch_remove(folder))
        error_set(program->stays, STATUS_FAILED, "%.500s cannot be removed", folder->path);
}

/* Removes the folder of a run. Until then the reaper removes the folder if the worker dies. */
static void folder_remove(struct program *program, struct scratch *folder, struct process_end *end,
                          bool failed)
{
    scratch_end(program, folder);
    if (!program->persistent)
        process_release(end);
    else if (failed)
        persistent_end(program->persistent);
}

/* Runs the command, and reads its reports. `report` and `injected` may be NULL. */
static enum status program_run(struct program *program, struct process_end *end,
                               struct report *report, struct injected *injected,
                               struct error *error)
{
    const double missed = program->time->missed;
    const struct occupancy before = measure_occupancy(RUSAGE_CHILDREN);
    struct scratch folder;
    end->life = -1;
    TRY(scratch_create(&folder, error));
    enum status status = STATUS_OK;
    environment_put(&program->environment, REPORT_VARIABLE, folder.path);
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
        status = program->persistent ? process_point(&process, program->persistent, error)
                                     : process_run(&process, end, error);
    bool failed = status != STATUS_OK;
    if (failed)
        job_ends(fmin(signal_patience, program->time->left));
    if (program->time->missed > missed && status != STATUS_DEVICE) {
        /* The job was suspended meanwhile, so the times are wrong. */
        folder_remove(program, &folder, end, failed);
        return program_run(program, end, report, injected, error);
    }
    if (status == STATUS_OK && report)
        status = report_read(&folder, report, error);
    if (status == STATUS_OK && injected)
        status = injected_read(&folder, injected, error);
    folder_remove(program, &folder, end, failed);
    if (status == STATUS_OK && report && region_is(program, "all")) {
        const struct occupancy now = measure_occupancy(RUSAGE_CHILDREN);
        report->occupied = (struct occupancy){0, now.running - before.running, NAN,
                                              now.switches - before.switches};
    }
    return status;
}

static enum status program_run_injected(struct program *program, const char *task,
                                        struct injected *injected, struct error *error)
{
    struct process_end end;
    enum precision precision = config_precision(&program->request->config);
    environment_put(&program->environment, "CUDA_INJECTION64_PATH", program->device.library);
    environment_put(&program->environment, "NVTX_INJECTION64_PATH", program->device.library);
    environment_put(&program->environment, "ROOFSWEEP_INJECT", task);
    environment_put(&program->environment, "ROOFSWEEP_REGION", TEXT_OF(program, "region"));
    number_put(program, "ROOFSWEEP_TENSORS",
               program->causes ? QUANTITY_ACTIVITIES : injected_tensors(precision));
    return program_run(program, &end, NULL, injected, error);
}

/* ---- times ---- */

static enum status record_samples(double *seconds, size_t count, int64_t iterations,
                                  struct record *record, struct error *error)
{
    struct stats stats;
    for (size_t i = 0; i < count; ++i)
        seconds[i] /= (double)iterations;
    return measure_keep_samples(seconds, count, record, &stats, error);
}

/* On a CPU the timed region is one kernel. Its threads are those of the whole run (region = all),
 * or those that the program reports for each region. */
static void record_threads(const struct program *program, const struct report *report,
                           struct record *record)
{
    struct occupancy occupied = report->occupied;
    occupied.wall = record->time_mean * (double)(program->iterations * record->samples);
    if (region_is(program, "all") || report->occupied_count == report->region_count)
        measure_keep_occupancy(&occupied, program->device.cores, record);
    else if (getloadavg(&record->host_load, 1) != 1)
        record->host_load = NAN;
    record->busy_time = record->time_median;
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

/* Records the time of the whole run (region = all), of the regions that the program reported, or of
 * the regions that the library sees in a run of its own. */
static enum status record_times(struct program *program, struct report *report,
                                struct process_end *end, struct record *record, struct error *error)
{
    struct injected injected;
    if (region_is(program, "all"))
        return record_samples(&end->seconds, 1, program->iterations, record, error);
    if (region_is(program, "profiler") && report->region_count > 0)
        return record_samples(report->regions, report->region_count, program->iterations, record,
                              error);
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

static enum status record_verified(const struct program *program, const struct report *report,
                                   struct record *record, struct error *error)
{
    if (!program->request->measure.verify)
        return STATUS_OK;
    if (isnan(report->verify_error)) {
        snprintf(record->error, sizeof record->error,
                 "not verified: the program hands nothing back to compare");
        return STATUS_OK;
    }
    record->verify_error = report->verify_error;
    record->verify_tolerance = report->verify_tolerance;
    if (report->verify_error <= report->verify_tolerance)
        return STATUS_OK;
    return error_set(
        error, STATUS_FAILED,
        "wrong result: the program says that its relative error is %.3g; allowed: %.3g",
        report->verify_error, report->verify_tolerance);
}

/* ---- kernels and counts ---- */

struct found {
    struct injected traced;
    struct injected counted; /* counts of the region and of its launches; nothing else is used */
    struct injected causes;  /* activities of the launches; its refusal says why they are missing */
    struct outcome outcome;  /* outcome of counting */
};

static void found_clear(struct found *found)
{
    injected_clear(&found->traced);
    injected_clear(&found->counted);
    injected_clear(&found->causes);
}

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

/* Hands the counter data of the last run to the next run as its input. */
static enum status image_pass_on(const struct injected *counted, const struct scratch *images,
                                 struct error *error)
{
    const int folder = images->descriptor;
    return counted->last || renameat(folder, "image.next", folder, "image") == 0
               ? STATUS_OK
               : error_set(error, STATUS_FAILED, "the counter data cannot be passed on");
}

/* Counts in one run. Repeats it if the program chose, by chance, other kernels than were traced.
 * *outcome is COUNTED_YES (a reason may be set as well), or says why nothing was counted. */
static enum status count_run(struct program *program, const struct injected *traced,
                             const struct scratch *images, struct injected *counted,
                             struct outcome *outcome, struct error *error)
{
    const bool replayed = is_replayed(program);
    for (int tries = 3;; --tries) {
        TRY(program_run_injected(program, "count", counted, error));
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
            enum status status = image_pass_on(counted, images, error);
            if (status)
                injected_clear(counted);
            return status;
        }
        outcome_set(outcome, replayed ? COUNTED_YES : COUNTED_INCOMPLETE,
                    "the program launches something else each time that it runs: %s and %s (hash "
                    "and number of its launches)",
                    traced->sequence, counted->sequence);
        if (replayed) /* the sums are right, but other launches were traced */
            counted->each_count = 0;
        if (replayed || tries == 1)
            return STATUS_OK;
        injected_clear(counted);
    }
}

/* Counts until no pass is left; the file of the counter data goes from run to run. */
static enum status count_runs(struct program *program, struct found *found,
                              const struct scratch *images, struct error *error)
{
    const size_t most = 64;     /* no chip needs this number of passes */
    program->persistent = NULL; /* counters start at the first allocation, so in a new process */
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

/* Traces the first of several regions and counts in the others. *over: all is counted, or counting
 * was refused. Otherwise further runs count from the beginning, or continue with the data of this
 * run. */
static enum status profile_first(struct program *program, struct found *found,
                                 const struct scratch *images, bool *over, struct error *error)
{
    struct injected *traced = &found->traced;
    TRY(trace(program, "profile", traced, error));
    *over = traced->last || traced->refusal.code == COUNTED_REFUSED;
    if (traced->last) {
        memcpy(found->counted.values, traced->values, sizeof traced->values);
        injected_move_each(&found->counted, traced);
    } else if (traced->refusal.code == COUNTED_REFUSED) {
        outcome_set_brief(&found->outcome, &traced->refusal);
    } else if (traced->refusal.code == OUTCOME_MISSING && traced->passes > 0) {
        return image_pass_on(traced, images, error);
    }
    return STATUS_OK;
}

/* In a run with fewer than three regions, no pass of the counters fits after the trace. */
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
    if (found->traced.refusal.code !=
        OUTCOME_MISSING) /* regions may differ: only the first is traced, so count it alone */
        number_put(program, "ROOFSWEEP_REGIONS", 1);
    environment_put(&program->environment, "ROOFSWEEP_RANGES", alone);
    number_put(program, "ROOFSWEEP_LAUNCHES", found->traced.launch_count);
    status = count_runs(program, found, images, error);
    if (status && status != STATUS_DEVICE) { /* without counts the row still has its trace */
        outcome_set(&found->outcome, COUNTED_INCOMPLETE, "%s", error->text);
        status = STATUS_OK;
    }
    return status;
}

/* With counters = causes, counts the activities of each traced launch in one more run: one pass in
 * every second region, or all passes of a replayed kernel. Fails only with STATUS_DEVICE. */
static enum status causes_run(struct program *program, size_t regions,
                              const struct injected *traced, struct injected *causes,
                              struct error *error)
{
    const bool replayed = is_replayed(program);
    const size_t least = replayed ? 1 : 1 + 2 * (size_t)QUANTITY_ACTIVITY_PASSES;
    struct outcome *refusal = &causes->refusal;
    if (traced->in_graphs > 0)
        outcome_set(refusal, COUNTED_INCOMPLETE,
                    "CUDA graphs launch the kernels; ungraphed.AXIS = VALUE names a run without");
    else if (regions < least)
        outcome_set(refusal, COUNTED_INCOMPLETE,
                    "activities need %zu regions, and the program opens %zu; or replay = kernel",
                    least, regions);
    if (refusal->code != OUTCOME_MISSING || program->request->measure.counters != COUNTERS_CAUSES)
        return STATUS_OK;
    environment_put(&program->environment, "ROOFSWEEP_RANGES", replayed ? "replay" : "launches");
    number_put(program, "ROOFSWEEP_REGIONS", regions);
    number_put(program, "ROOFSWEEP_LAUNCHES", traced->launch_count);
    program->causes = true;
    enum status status =
        program_run_injected(program, regions >= 3 ? "profile" : "count", causes, error);
    program->causes = false;
    if (status)
        outcome_set(refusal, COUNTED_INCOMPLETE, "%s", error->text);
    else if (strcmp(causes->sequence, traced->sequence) != 0)
        outcome_set(refusal, COUNTED_INCOMPLETE, "the program launches something else each time");
    return status == STATUS_DEVICE ? status : STATUS_OK;
}

/* Traces the program's command, and counts it if `counted`. On failure *found owns nothing. */
static enum status profile_command(struct program *program, size_t regions, bool counted,
                                   struct found *found, struct error *error)
{
    struct scratch images;
    injected_init(&found->traced);
    injected_init(&found->counted);
    injected_init(&found->causes);
    outcome_set(&found->outcome, COUNTED_YES, NULL);
    if (!counted)
        return trace(program, "trace", &found->traced, error);
    TRY(scratch_create(&images, error));
    enum status status = profile_runs(program, regions, found, &images, error);
    scratch_end(program, &images);
    if (status)
        found_clear(found);
    return status;
}

/* ---- without CUDA graphs ---- */

/* True if the run without graphs, `plain`, gives the vector FLOPs of the run with graphs, `found`.
 * If not, *why has the reason. */
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

/* Takes vector FLOPs of kernels in graphs from a run that launches the same kernels one by one.
 * Makes three tries, since a program may choose its kernels by chance; if all fail, *why has the
 * reason. Fails only with STATUS_DEVICE. */
static enum status ungraph(const struct program *program, size_t regions, struct found *found,
                           struct outcome *why, struct error *error)
{
    bool same = false;
    for (int tries = 3; tries > 0 && !same; --tries) {
        struct program plain = {.request = program->request,
                                .device = program->device,
                                .time = program->time,
                                .persistent = program->persistent,
                                .stays = program->stays};
        struct found ungraphed;
        enum status status = program_prepare(&plain, error);
        if (status == STATUS_OK)
            status = program_ungraph(&plain, error);
        if (status == STATUS_OK)
            status = profile_command(&plain, regions, true, &ungraphed, error);
        if (status) {
            program_clear(&plain);
            outcome_set(why, COUNTED_INCOMPLETE, "%s", error->text);
            return status == STATUS_DEVICE ? status : STATUS_OK;
        }
        same = is_the_same(found, &ungraphed, why);
        if (same) {
            status = causes_run(&plain, regions, &ungraphed.traced, &found->causes, error);
            injected_ungraph(&found->traced, &found->counted, &ungraphed.traced,
                             &ungraphed.counted);
        }
        program_clear(&plain);
        found_clear(&ungraphed);
        TRY(status);
    }
    return STATUS_OK;
}

static enum status record_counts(struct program *program, size_t regions, struct found *found,
                                 struct record *record, struct error *error)
{
    struct outcome why = {.code = OUTCOME_MISSING};
    if (found->outcome.code != COUNTED_YES) {
        outcome_set_brief(&record->counters, &found->outcome);
        return STATUS_OK;
    }
    if (found->traced.in_graphs > 0 && TEXT_OF(program, "ungraphed")[0])
        TRY(ungraph(program, regions, found, &why, error));
    else
        TRY(causes_run(program, regions, &found->traced, &found->causes, error));
    injected_record_counts(&found->counted, &found->traced, program->iterations, record);
    if (program->request->measure.counters == COUNTERS_CAUSES)
        injected_record_causes(&found->causes, &found->traced, record);
    if (found->outcome.reason[0])
        outcome_set(&record->counters, COUNTED_INCOMPLETE, "%s", found->outcome.reason);
    if (why.code != OUTCOME_MISSING)
        outcome_set(&record->counters, COUNTED_INCOMPLETE,
                    "vector FLOPs of kernels in CUDA graphs cannot be counted, nor in the run "
                    "without graphs: %s",
                    why.reason);
    return STATUS_OK;
}

/* Traces and counts a program that opened `regions` regions when it was timed. If a run fails, its
 * values are missing and the record has the reason. Fails only with STATUS_DEVICE. */
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
        /* a timed cold row has a flush before it, which hides the host's part */
        if (config_cold(&program->request->config))
            record->host_paced = FIELD_MISSING;
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

static enum status runs_measure(struct program *program, double start, struct record *record,
                                struct error *error)
{
    struct process_end end = {.seconds = NAN};
    struct report report;
    enum precision precision = config_precision(&program->request->config);
    bool half =
        !program->device.cpus && /* cores have no tensor units */
        (precision == PRECISION_TF32 || precision == PRECISION_FP16 || precision == PRECISION_BF16);
    snprintf(record->implementation, sizeof record->implementation, "program");
    if (precision != PRECISION_COUNT) /* a guess of the unit, which counts replace */
        record->unit = half ? UNIT_TENSOR : UNIT_VECTOR;
    record->workspace = NAN;
    program_hash(program->command.words, program->folder, record->program_hash);
    record_end_part(record, PART_PREPARE, clock_monotonic() - start);
    TRY(program_run(program, &end, &report, NULL, error));
    enum status status = record_times(program, &report, &end, record, error);
    if (status == STATUS_OK)
        status = record_verified(program, &report, record, error);
    if (status == STATUS_OK && program->device.cpus)
        record_threads(program, &report, record);
    report_clear(&report);
    TRY(status);
    /* With region = all the whole program is one region, whatever the program reports. */
    bool several = record->samples > 0 && !region_is(program, "all");
    record_end_part(record, PART_TIMING, clock_monotonic() - start);
    if (program->request->round < 2)
        status = record_profile(program, several ? (size_t)record->samples : 1, record, error);
    record_end_part(record, PART_COUNTS, clock_monotonic() - start);
    return status;
}

/* See struct row_kind. *kept is a struct persistent; a row with a process of its own ends the
 * persistent processes. */
static enum status row_measure(const struct device_ops *device, struct device_state *state,
                               void **kept, const struct request *request, struct record *record,
                               struct error *error)
{
    struct countdown time = countdown_start(request->timeout > 0 ? request->timeout : INFINITY);
    struct error stays = {""};
    struct program program = {.request = request, .time = &time, .stays = &stays};
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
        status = runs_measure(&program, start, record, error);
    *kept = persistent;
    program_clear(&program);
    if (job_ends(0)) /* the program may have died of the signal, so --resume measures the row */
        return error_set(error, STATUS_INTERRUPTED, "a signal came while the program ran");
    if (status == STATUS_DEVICE)
        return status;
    record->status = RECORD_MEASURED;
    record->start_time = start_time;
    record->wall_time = clock_monotonic() - start;
    if (status == STATUS_OK && record_check(record, error)) /* a program may report wrong values */
        status = STATUS_FAILED;
    if (status) { /* the record of a failed row has only its configuration and the reason */
        record_clear(record);
        record_set_config(record, &request->config);
        memcpy(record->error, error->text, sizeof error->text);
        record->status = status == STATUS_UNSUPPORTED ? RECORD_SKIPPED : RECORD_FAILED;
        record->start_time = start_time;
        record->wall_time = clock_monotonic() - start;
    }
    size_t length = strlen(record->error);
    snprintf(record->error + length, sizeof record->error - length, "%s%s",
             length && *stays.text ? "; " : "", stays.text);
    return STATUS_OK;
}

static void row_release(void **kept)
{
    struct persistent *persistent = *kept;
    persistent_end(&persistent);
    *kept = NULL;
}

const struct row_kind program_row = {&program_workload, row_measure, row_release};
