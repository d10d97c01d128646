#include "worker/program_profile.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/program/counts.h"

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

/* ---- the trace ---- */

/* Counts of the same run become those of `counted`. */
static void counts_move(struct found *found)
{
    struct injected *from = &found->traced, *to = &found->counted;
    memcpy(to->values, from->values, sizeof to->values);
    to->each = from->each;
    to->each_count = from->each_count;
    from->each = NULL;
    from->each_count = 0;
}

/* `task` is trace or profile. */
static enum status trace(struct program_run *run, const char *task, struct injected *traced,
                         struct error *error)
{
    enum status status = program_run_injected(run, task, NULL, traced, error);
    if (status)
        return status;
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

/* ---- counts in runs of their own ---- */

static bool is_replayed(const struct program_run *run)
{
    return config_value(&run->request->config, "replay").first != 0;
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

/* What the run leaves is what the next one goes on from. */
static enum status image_pass_on(const struct injected *counted, const char *image,
                                 struct error *error)
{
    char next[4300];
    snprintf(next, sizeof next, "%s.next", image);
    return counted->last || rename(next, image) == 0
               ? STATUS_OK
               : error_set(error, STATUS_FAILED, "the counter data cannot be passed on");
}

/* One run. A program may choose its kernels by chance: a run that launches something else than was traced is
 * repeated. The outcome is COUNTED_YES, and may have a reason all the same, or says why not. */
static enum status count_run(struct program_run *run, const struct injected *traced,
                             const char *image, struct injected *counted, struct outcome *outcome,
                             struct error *error)
{
    const int tries = 3;
    for (int i = 0; i < tries; ++i) {
        enum status status = program_run_injected(run, "count", NULL, counted, error);
        if (status)
            return status;
        if (!is_counted(counted, outcome))
            return STATUS_OK;
        if (strcmp(counted->sequence, traced->sequence) == 0) {
            outcome_set(outcome, COUNTED_YES, NULL);
            status = image_pass_on(counted, image, error);
            if (status)
                injected_clear(counted);
            return status;
        }
        outcome_set(outcome, is_replayed(run) ? COUNTED_YES : COUNTED_INCOMPLETE,
                    "the program launches something else each time that it runs: %s and %s (hash "
                    "and number of its launches)",
                    traced->sequence, counted->sequence);
        if (is_replayed(
                run)) { /* its counts are of one run all the same, though of no kernel of the trace */
            counted->each_count = 0;
            return STATUS_OK;
        }
        if (i + 1 < tries)
            injected_clear(counted);
    }
    return STATUS_OK;
}

/* Runs until no pass is left; the file of the counter data goes from one to the next. */
static enum status count_runs(struct program_run *run, struct found *found, const char *image,
                              struct error *error)
{
    const size_t most = 64; /* runs: more than any chip has passes */
    for (size_t i = 0; i < most; ++i) {
        struct injected counted;
        enum status status =
            count_run(run, &found->traced, image, &counted, &found->outcome, error);
        if (status)
            return status;
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

/* ---- one command ---- */

/* The first run. What it could not count is for runs of their own, which begin anew, or go on. */
static enum status profile_first(struct program_run *run, struct found *found, const char *image,
                                 bool *over, struct error *error)
{
    struct injected *traced = &found->traced;
    enum status status = trace(run, "profile", traced, error);
    if (status)
        return status;
    *over = traced->last || traced->refusal.code == COUNTED_REFUSED;
    if (traced->last)
        counts_move(found);
    else if (traced->refusal.code == COUNTED_REFUSED)
        outcome_set_brief(&found->outcome, &traced->refusal);
    else if (traced->refusal.code == OUTCOME_MISSING && traced->passes > 0)
        status = image_pass_on(traced, image, error);
    return status;
}

/* Three regions are the fewest in which one pass can follow the trace. */
static enum status profile_runs(struct program_run *run, size_t regions, struct found *found,
                                const char *image, struct error *error)
{
    bool over = false, several = regions >= 3;
    const char *alone = is_replayed(run) ? "replay" : "region";
    const char *ranges = run->request->measure.kernels ? "launches" : "region";
    surroundings_put(&run->environment, "ROOFSWEEP_IMAGE", image);
    surroundings_put(&run->environment, "ROOFSWEEP_RANGES", is_replayed(run) ? alone : ranges);
    program_run_number(run, "ROOFSWEEP_REGIONS", regions);
    enum status status = several ? profile_first(run, found, image, &over, error)
                                 : trace(run, "trace", &found->traced, error);
    if (status || over)
        return status;
    if (found->traced.refusal.code !=
        OUTCOME_MISSING) /* regions that differ: only the first is traced */
        program_run_number(run, "ROOFSWEEP_REGIONS", 1);
    surroundings_put(&run->environment, "ROOFSWEEP_RANGES", alone);
    program_run_number(run, "ROOFSWEEP_LAUNCHES", found->traced.launch_count);
    status = count_runs(run, found, image, error);
    if (status && status != STATUS_DEVICE) { /* the trace stays */
        outcome_set(&found->outcome, COUNTED_INCOMPLETE, "%s", error->text);
        status = STATUS_OK;
    }
    return status;
}

/* Traces one command, and counts it if `counted`. Nothing is left of it if it fails. */
static enum status profile_command(struct program_run *run, size_t regions, bool counted,
                                   struct found *found, struct error *error)
{
    char folder[4096], image[4200];
    injected_init(&found->traced);
    injected_init(&found->counted);
    outcome_set(&found->outcome, COUNTED_YES, NULL);
    if (!counted)
        return trace(run, "trace", &found->traced, error);
    enum status status = handback_folder(folder, error);
    if (status)
        return status;
    snprintf(image, sizeof image, "%s/image", folder);
    status = profile_runs(run, regions, found, image, error);
    handback_remove(folder);
    if (status)
        found_clear(found);
    return status;
}

/* ---- the same without graphs ---- */

static enum status plain_profile(struct program_run *plain, const struct program_run *run,
                                 size_t regions, struct found *found, struct error *error)
{
    plain->request = run->request;
    plain->loan = run->loan;
    enum status status = program_run_prepare(plain, error);
    plain->deadline = run->deadline;
    if (status == STATUS_OK)
        status = program_run_ungraph(plain, error);
    return status ? status : profile_command(plain, regions, true, found, error);
}

/* Whether the run without graphs tells what the graphs' vector FLOPs are; *why if it does not. */
static bool is_the_same(const struct found *found, const struct found *plain, struct outcome *why)
{
    outcome_set(why, OUTCOME_MISSING, NULL);
    if (plain->outcome.code != COUNTED_YES)
        outcome_set_brief(why, &plain->outcome);
    else if (plain->traced.in_graphs > 0)
        outcome_set(why, COUNTED_INCOMPLETE, "graphs launch kernels there, too");
    else if (!counts_same_kernels(&found->traced, &plain->traced))
        outcome_set(why, COUNTED_INCOMPLETE, "other kernels run there");
    return why->code == OUTCOME_MISSING;
}

/* Takes vector FLOPs of what graphs launched from a run that launches the same kernels one by one. One that
 * chooses its kernels by chance is repeated. *why says why they cannot be had. Fails only with STATUS_DEVICE. */
static enum status ungraph(const struct program_run *run, size_t regions, struct found *found,
                           struct outcome *why, struct error *error)
{
    const int tries = 3;
    bool same = false;
    for (int i = 0; i < tries && !same; ++i) {
        struct program_run plain = {0};
        struct found ungraphed;
        enum status status = plain_profile(&plain, run, regions, &ungraphed, error);
        program_run_clear(&plain);
        if (status) {
            outcome_set(why, COUNTED_INCOMPLETE, "%s", error->text);
            return status == STATUS_DEVICE ? status : STATUS_OK;
        }
        same = is_the_same(found, &ungraphed, why);
        if (same)
            counts_ungraph(&found->traced, &found->counted, &ungraphed.traced, &ungraphed.counted);
        found_clear(&ungraphed);
    }
    return STATUS_OK;
}

/* ---- the row ---- */

static enum status record_counts(const struct program_run *run, size_t regions, struct found *found,
                                 struct record *record, struct error *error)
{
    struct outcome why = {.code = OUTCOME_MISSING};
    enum status status = STATUS_OK;
    if (found->outcome.code != COUNTED_YES) {
        outcome_set_brief(&record->counters, &found->outcome);
        return STATUS_OK;
    }
    if (found->traced.in_graphs > 0 && config_value(&run->request->config, "ungraphed").text[0])
        status = ungraph(run, regions, found, &why, error);
    if (status == STATUS_OK)
        counts_record(&found->counted, &found->traced, run->iterations, record);
    if (status == STATUS_OK && found->outcome.reason[0])
        outcome_set(&record->counters, COUNTED_INCOMPLETE, "%s", found->outcome.reason);
    if (status == STATUS_OK && why.code != OUTCOME_MISSING)
        outcome_set(&record->counters, COUNTED_INCOMPLETE,
                    "vector FLOPs of kernels in CUDA graphs cannot be counted, nor in the run "
                    "without graphs: %s",
                    why.reason);
    return status;
}

enum status program_profile(struct program_run *run, size_t regions, struct record *record,
                            struct error *error)
{
    struct found found;
    bool wanted = run->request->measure.counters != COUNTERS_OFF;
    bool able = run->loan.counters.code == COUNTED_YES;
    if (!wanted)
        outcome_set(&record->counters, COUNTED_OFF, NULL);
    else if (!able)
        outcome_set_brief(&record->counters, &run->loan.counters);
    if (!run->loan.library[0])
        return STATUS_OK;
    enum status status = profile_command(run, regions, wanted && able, &found, error);
    if (status == STATUS_OK) {
        status = counts_trace(&found.traced, run->iterations, record, error);
        if (status == STATUS_OK && wanted && able)
            status = record_counts(run, regions, &found, record, error);
        found_clear(&found);
    }
    if (status == STATUS_OK || status == STATUS_DEVICE)
        return status;
    /* Times stay, whatever comes of the runs for kernels and counts. */
    if (wanted && able)
        outcome_set(&record->counters, COUNTED_INCOMPLETE, "%s", error->text);
    fprintf(stderr, "no kernel trace: %s\n", error->text);
    return STATUS_OK;
}
