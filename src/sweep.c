#include "sweep.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ranks/agreement.h"
#include "ranks/coordinator.h"
#include "model/device_kind.h"
#include "results/earlier_roofs.h"
#include "ranks/executor.h"
#include "base/folder.h"
#include "base/printout.h"
#include "ranks/mailbox.h"
#include "ranks/node_roofs.h"
#include "results/outputs.h"
#include "results/report.h"
#include "results/results_nc.h"
#include "ranks/job.h"

struct sweep {
    MPI_Comm comm;
    int rank, ranks;
    const struct log *log;
    struct manifest *manifest;
    bool complete;
    struct mailbox *mailbox;
    struct executor *executor;
    char worker_folder[4096];
    char device_key[128];
    bool roofs_reused; /* this rank's */
    double told;       /* s, CLOCK_MONOTONIC: when rank 0 was told of a signal; 0: it was not */
    bool abandoned;    /* some rank does not answer: no collective call may follow */
    /* rank 0 alone */
    struct plan *plan;
    struct outputs outputs;
    struct results *earlier;
    struct device *devices;         /* of each rank, as opened */
    struct device *earlier_devices; /* [peaks] reuse */
    size_t earlier_device_count;
    struct journal *journal;
};

/* The only thing that a signal handler can reach. */
static volatile sig_atomic_t signalled;

static void note_signal(int number)
{
    signalled = number;
}

/* A second signal of the same kind ends the process at once. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        sigaction(numbers[i], &action, NULL);
}

static enum status load_manifest(struct sweep *sweep, const struct options *options,
                                 struct error *error)
{
    enum status status = manifest_read(options->manifest, &sweep->manifest, error);
    if (status == STATUS_OK)
        status = plan_create(sweep->manifest, &sweep->plan, error);
    return status;
}

static enum status look_at_outputs(struct sweep *sweep, const struct options *options,
                                   struct error *error)
{
    char settings[256];
    const struct sweep_settings *manifest = &sweep->manifest->sweep;
    enum status status = outputs_check(
        options->output ? options->output : manifest->output, options->resume,
        options->overwrite || (manifest->overwrite && !options->resume), &sweep->outputs, error);
    if (status)
        return status;
    manifest_settings_text(sweep->manifest, settings);
    status = outputs_earlier(&sweep->outputs, settings, sweep->log, &sweep->journal,
                             &sweep->earlier, error);
    if (status)
        return status;
    /* With replicate, which devices there are is not known yet. */
    sweep->complete = !manifest->replicate && sweep->earlier->record_count > 0 &&
                      coordinator_missing(sweep->plan, sweep->earlier) == 0;
    return STATUS_OK;
}

/* Before anything is replaced: with --overwrite it may be the output itself. */
static enum status look_at_earlier_roofs(struct sweep *sweep, struct error *error)
{
    const char *path = sweep->manifest->reuse;
    if (!path || sweep->complete)
        return STATUS_OK;
    enum status status =
        earlier_roofs_read(path, &sweep->earlier_devices, &sweep->earlier_device_count, error);
    if (status)
        error_prefix(error, "%s: [peaks] reuse", sweep->manifest->path);
    return status;
}

/* The other ranks parse what rank 0 has read: their working folder may be another one. */
static enum status share_manifest(struct sweep *sweep, const struct options *options,
                                  struct error *error)
{
    int complete = sweep->complete;
    char *text = agreement_share_text(sweep->comm, sweep->rank == 0 ? sweep->manifest->text : NULL);
    MPI_Bcast(&complete, 1, MPI_INT, 0, sweep->comm);
    enum status status = STATUS_OK;
    if (sweep->rank != 0) {
        sweep->complete = complete;
        status = manifest_parse(options->manifest, text, strlen(text), &sweep->manifest, error);
    }
    free(text);
    return agreement_reach(sweep->comm, status, error);
}

enum status sweep_load(MPI_Comm comm, const struct options *options, const struct log *log,
                       struct sweep **sweep, struct error *error)
{
    struct sweep *created = calloc(1, sizeof *created);
    if (!created)
        MPI_Abort(comm, 1);
    created->comm = comm;
    created->log = log;
    MPI_Comm_rank(comm, &created->rank);
    MPI_Comm_size(comm, &created->ranks);
    *sweep = created;
    enum status status = STATUS_OK;
    if (created->rank == 0) {
        status = load_manifest(created, options, error);
        if (status == STATUS_OK)
            status = look_at_outputs(created, options, error);
        if (status == STATUS_OK)
            status = look_at_earlier_roofs(created, error);
    }
    status = agreement_reach(comm, status, error);
    if (status == STATUS_OK)
        status = share_manifest(created, options, error);
    if (status == STATUS_OK && options->has_device)
        created->manifest->sweep.device = options->device;
    return status;
}

bool sweep_complete(const struct sweep *sweep)
{
    return sweep->complete;
}

/* Opening a device loads libraries of gigabytes, at times from a slow file system. */
static const double open_timeout_least = 30; /* s */

/* s. How long a rank may take to say its last word after the end, or the signal for it. Its worker is
 * killed within half of that, and some batch systems kill a job 30 s after the signal. */
static const double stop_patience = 10;
/* The longest that a rank's work should take, times this, before the rank counts as silent. */
static const double margin = 1.25;

static struct executor_settings executor_settings_of(const struct sweep *sweep)
{
    const struct sweep_settings *settings = &sweep->manifest->sweep;
    return (struct executor_settings){
        .worker_folder = sweep->worker_folder,
        .device = device_kind_chosen(settings->device),
        .timeout = settings->timeout,
        .open_timeout = fmax(settings->timeout, open_timeout_least),
        .retries = settings->retries,
        .counters = sweep->manifest->measure.counters,
        .device_key = sweep->device_key,
        .interrupted = &signalled,
    };
}

static enum status open_executor(struct sweep *sweep, const struct binding *binding,
                                 struct error *error)
{
    enum status status =
        folder_of_program(sweep->worker_folder, sizeof sweep->worker_folder, error);
    if (status)
        return status;
    struct executor_settings settings = executor_settings_of(sweep);
    settings.binding = *binding;
    sweep->mailbox = mailbox_create(sweep->comm);
    const struct post post = mailbox_post(sweep->mailbox);
    sweep->executor = executor_create(&settings, &post, sweep->log);
    if (!sweep->mailbox || !sweep->executor)
        return error_set(error, STATUS_SYSTEM, "no memory");
    return executor_open(sweep->executor, error);
}

/* False of a device that is the cores of its rank. */
static bool is_numbered(const struct device *device)
{
    const struct device_kind *kind = device_kind_find(device->kind);
    return kind && kind->numbered;
}

/* One line for each host, device model and reason, with the ranks counted. */
static void log_devices(const struct sweep *sweep, const char *choices, size_t choice_size)
{
    for (int i = 0; i < sweep->ranks; ++i) {
        const struct device *device = &sweep->devices[i];
        int count = 0, earlier = 0;
        for (int j = 0; j < sweep->ranks; ++j) {
            const struct device *other = &sweep->devices[j];
            bool same =
                strcmp(device->hostname, other->hostname) == 0 &&
                strcmp(device->model, other->model) == 0 &&
                strcmp(choices + (size_t)i * choice_size, choices + (size_t)j * choice_size) == 0;
            count += same;
            earlier += same && j < i;
        }
        if (earlier == 0 && device_is_open(device))
            log_print(sweep->log, LOG_INFO, "%s: %d rank%s on %s (%s)", device->hostname, count,
                      count == 1 ? "" : "s", device->model, choices + (size_t)i * choice_size);
        if (device->cores_shared == 1 && !is_numbered(device) && earlier == 0)
            log_print(sweep->log, LOG_WARNING,
                      "%s: more ranks than cores; times and roofs disturb one another (variable "
                      "device_cores_shared)",
                      device->hostname);
    }
}

static bool is_refused(const struct device *device)
{
    return device->counters.code != OUTCOME_MISSING && device->counters.code != COUNTED_YES;
}

/* One message for each cause; where counters are required, the first cause ends the sweep. */
static enum status check_counters(const struct sweep *sweep, struct error *error)
{
    bool required = sweep->manifest->measure.counters == COUNTERS_REQUIRE;
    for (int i = 0; i < sweep->ranks; ++i) {
        const struct device *device = &sweep->devices[i];
        int count = 0, earlier = 0;
        for (int j = 0; j < sweep->ranks; ++j) {
            bool same = outcome_same(&device->counters, &sweep->devices[j].counters);
            count += same;
            earlier += same && j < i;
        }
        if (!is_refused(device) || earlier > 0)
            continue;
        char refusal[OUTCOME_TEXT];
        outcome_format(&device->counters, counted_word, refusal);
        if (required)
            return error_set(error, STATUS_DEVICE, "counters = require, but on %d of %d ranks %s",
                             count, sweep->ranks, refusal);
        const struct device_kind *kind = device_kind_find(device->kind);
        log_print(sweep->log, kind && !kind->has_counters ? LOG_DEBUG : LOG_WARNING,
                  "hardware counters on %d of %d ranks %s; FLOPs and bytes are the modelled ones",
                  count, sweep->ranks, refusal);
    }
    return STATUS_OK;
}

/* One lost device costs its share of the work, all of them end the sweep. */
static enum status check_open(const struct sweep *sweep, struct error *error)
{
    for (int i = 0; i < sweep->ranks; ++i)
        if (device_is_open(&sweep->devices[i]))
            return STATUS_OK;
    return error_set(error, STATUS_DEVICE, "no rank could open its device; rank 0: %.800s",
                     executor_lost(sweep->executor));
}

static enum status compare_devices(struct sweep *sweep, struct error *error)
{
    enum { CHOICE = 1200 };
    char choice[CHOICE], *choices = NULL;
    const struct device *own = executor_device(sweep->executor);
    enum status status = STATUS_OK;
    snprintf(choice, sizeof choice, "%s", executor_choice(sweep->executor));
    if (sweep->rank == 0) {
        choices = malloc((size_t)sweep->ranks * CHOICE);
        sweep->devices = malloc((size_t)sweep->ranks * sizeof *sweep->devices);
        if (!choices || !sweep->devices)
            MPI_Abort(sweep->comm, 1);
    }
    MPI_Gather(own, sizeof *own, MPI_BYTE, sweep->devices, sizeof *own, MPI_BYTE, 0, sweep->comm);
    MPI_Gather(choice, CHOICE, MPI_CHAR, choices, CHOICE, MPI_CHAR, 0, sweep->comm);
    if (sweep->rank == 0) {
        log_devices(sweep, choices, CHOICE);
        status = check_open(sweep, error);
        if (status == STATUS_OK)
            status = agreement_check_devices(sweep->devices, sweep->ranks, error);
        if (status == STATUS_OK && !sweep->manifest->sweep.replicate)
            status = agreement_check_kinds(sweep->devices, sweep->ranks, error);
        if (status == STATUS_OK)
            status = check_counters(sweep, error);
    }
    free(choices);
    return agreement_reach(sweep->comm, status, error);
}

/* Rank 0 hands every rank the earlier roofs of its device. */
static void reuse_roofs(struct sweep *sweep)
{
    struct device own, *matches = NULL;
    int missing = 0;
    if (!sweep->manifest->reuse)
        return;
    if (sweep->rank == 0 && !(matches = calloc((size_t)sweep->ranks, sizeof *matches)))
        MPI_Abort(sweep->comm, 1);
    for (int i = 0; matches && i < sweep->ranks; ++i) {
        const struct device *match = earlier_roofs_find(
            sweep->earlier_devices, sweep->earlier_device_count, &sweep->devices[i]);
        if (match)
            matches[i] = *match;
        missing += !match && device_is_open(&sweep->devices[i]);
    }
    if (missing > 0)
        log_print(
            sweep->log, LOG_WARNING,
            "%s has no roofs of %d of the %d devices (same UUID, driver and power cap): these "
            "are measured",
            sweep->manifest->reuse, missing, sweep->ranks);
    MPI_Scatter(matches, sizeof own, MPI_BYTE, &own, sizeof own, MPI_BYTE, 0, sweep->comm);
    free(matches);
    sweep->roofs_reused = own.roof_count > 0 && !executor_lost(sweep->executor);
    if (sweep->roofs_reused)
        executor_set_roofs(sweep->executor, &own);
}

/* Each rank tries each kind of device within a bound. One that takes longer has stopped. */
static void wait_for_opening(const struct sweep *sweep)
{
    const struct executor_settings settings = executor_settings_of(sweep);
    if (agreement_wait(sweep->comm, margin * DEVICE_KINDS * executor_longest(&settings)))
        return;
    log_print(sweep->log, LOG_WARNING, "a rank does not come back from opening its device");
    MPI_Abort(sweep->comm, exit_code_of(STATUS_DEVICE));
}

enum status sweep_open_devices(struct sweep *sweep, struct error *error)
{
    catch_signals();
    struct binding binding = binding_create(sweep->comm);
    enum status status = open_executor(sweep, &binding, error);
    wait_for_opening(sweep);
    status = agreement_reach(sweep->comm, status, error);
    if (status == STATUS_OK)
        status = compare_devices(sweep, error);
    if (status == STATUS_OK)
        reuse_roofs(sweep);
    return status;
}

/* Rank 0 begins or goes on with the journal and writes who works on it; every rank learns its
 * device's key. */
static enum status begin_session(struct sweep *sweep, int argc, char **argv, struct error *error)
{
    struct session session = {0};
    enum status status = STATUS_OK;
    if (sweep->rank == 0) {
        status = outputs_begin(&sweep->outputs, &sweep->journal, error);
        if (status == STATUS_OK)
            status = job_session(sweep->manifest, sweep->comm, argc, argv, &session, error);
        if (status == STATUS_OK)
            status = journal_append(sweep->journal, "session", session_encode(&session), error);
    }
    status = agreement_reach(sweep->comm, status, error);
    char *id = agreement_share_text(sweep->comm, session.id);
    snprintf(sweep->device_key, sizeof sweep->device_key, "%s/%d", id, sweep->rank);
    free(id);
    session_clear(&session);
    return status;
}

static void deliver(const struct letter *letter, struct executor *executor,
                    struct coordinator *coordinator)
{
    if (letter->kind == LETTER_WORK || letter->kind == LETTER_STOP)
        executor_handle(executor, letter);
    else
        coordinator_handle(coordinator, letter);
}

static void pass_signal_on(struct sweep *sweep, struct coordinator *coordinator)
{
    struct error error;
    signalled = 0;
    sweep->told = clock_monotonic();
    if (coordinator)
        coordinator_interrupt(coordinator);
    else if (mailbox_send(sweep->mailbox, 0, LETTER_INTERRUPT, "", &error))
        log_print(sweep->log, LOG_WARNING, "%s", error.text);
}

/* Rank 0 publishes and says the last word. If it does not answer, there is nobody to do that; the journal
 * has what was measured. */
static void leave_silent_rank_0(const struct sweep *sweep)
{
    if (sweep->rank == 0 || sweep->told == 0.0 ||
        clock_monotonic() - sweep->told < 3 * stop_patience)
        return;
    log_print(sweep->log, LOG_WARNING,
              "rank 0 does not answer to the signal; go on with --resume, or see --gather");
    MPI_Abort(sweep->comm, exit_code_of(STATUS_INTERRUPTED));
}

/* MPI has no descriptor to wait for, so letters are looked for every 2 ms: that costs well under
 * one per cent of a core, and at most 2 ms of a configuration. */
static void run_loop(struct sweep *sweep, struct coordinator *coordinator)
{
    struct pollfd descriptors[2];
    nfds_t count;
    struct letter letter;
    while (!executor_stopped(sweep->executor) ||
           (coordinator && !coordinator_finished(coordinator))) {
        executor_poll(sweep->executor, descriptors, &count);
        poll(descriptors, count, 2);
        if (signalled)
            pass_signal_on(sweep, coordinator);
        leave_silent_rank_0(sweep);
        if (coordinator)
            coordinator_watch(coordinator, clock_monotonic());
        executor_step(sweep->executor);
        while (mailbox_receive(sweep->mailbox, &letter)) {
            deliver(&letter, sweep->executor, coordinator);
            free(letter.text);
        }
    }
}

/* Of one device: three lost workers with all that opening and tuning may take, and its roofs. */
static double roofs_patience(const struct sweep *sweep)
{
    return 25 * fmax(sweep->manifest->sweep.timeout, open_timeout_least);
}

static void measure_roofs(struct sweep *sweep)
{
    const struct node_roofs_settings settings = {
        .request = sweep->manifest->peaks,
        .prove = sweep->manifest->measure.counters != COUNTERS_OFF,
        .skip = sweep->roofs_reused || executor_lost(sweep->executor),
        .timeout = sweep->manifest->sweep.timeout,
        .patience = roofs_patience(sweep),
        .stop_patience = stop_patience,
    };
    node_roofs_measure(sweep->comm, sweep->executor, &settings, &signalled, sweep->log);
}

static struct coordinator *create_coordinator(const struct sweep *sweep)
{
    const struct executor_settings executor = executor_settings_of(sweep);
    const struct coordinator_settings settings = {
        .manifest = sweep->manifest,
        .plan = sweep->plan,
        .earlier = sweep->earlier,
        .devices = sweep->devices,
        .ranks = sweep->ranks,
        .roofs_patience = margin * roofs_patience(sweep),
        .work_patience = margin * executor_longest(&executor),
        .stop_patience = stop_patience,
    };
    const struct post post = mailbox_post(sweep->mailbox);
    struct coordinator *created = coordinator_create(&settings, sweep->journal, &post, sweep->log);
    if (!created)
        MPI_Abort(sweep->comm, 1);
    return created;
}

/* Rank 0 goes on without those that are silent, the others wait for rank 0. */
static bool wait_for_ranks(struct sweep *sweep)
{
    if (!sweep->abandoned)
        sweep->abandoned = !agreement_wait(sweep->comm, sweep->rank == 0 ? stop_patience : 0);
    return !sweep->abandoned;
}

/* How the loop has ended for this rank. */
static enum status end_loop(struct sweep *sweep, const struct coordinator *coordinator,
                            struct error *error)
{
    char absent[800];
    if (!coordinator)
        return STATUS_OK;
    sweep->abandoned = coordinator_absent(coordinator, absent, sizeof absent);
    if (sweep->abandoned)
        log_print(sweep->log, LOG_WARNING, "no answer within %g s, the file is written without: %s",
                  stop_patience, absent);
    return coordinator_status(coordinator, error);
}

enum status sweep_measure(struct sweep *sweep, int argc, char **argv, struct error *error)
{
    struct coordinator *coordinator = NULL;
    enum status status = begin_session(sweep, argc, argv, error);
    if (status)
        return status;
    if (sweep->rank == 0)
        coordinator = create_coordinator(sweep);
    measure_roofs(sweep);
    if (signalled) /* before its device arrives: of roofs alone, the last one ends the sweep */
        pass_signal_on(sweep, coordinator);
    executor_start(sweep->executor);
    run_loop(sweep, coordinator);
    status = end_loop(sweep, coordinator, error);
    coordinator_destroy(coordinator);
    return wait_for_ranks(sweep) ? agreement_reach(sweep->comm, status, error) : status;
}

bool sweep_part(struct sweep *sweep)
{
    return wait_for_ranks(sweep);
}

static bool has_failures(const struct results *results)
{
    for (size_t i = 0; i < results->record_count; ++i)
        if (results->records[i].status == RECORD_FAILED)
            return true;
    return false;
}

static size_t count_roofs(const struct results *results)
{
    size_t count = 0;
    for (size_t i = 0; i < results->device_count; ++i)
        count += (size_t)results->devices[i].roof_count;
    return count;
}

/* The file is written by then: that nobody reads the table any more is no failure. */
static enum status print_table(const struct results *results, const struct log *log,
                               struct error *error)
{
    struct printout table;
    bool unread = false;
    enum status status = printout_open(&table, error);
    if (status)
        return status;
    report_print(results, table.stream);
    status = printout_close(&table, &unread, error);
    if (status && unread) {
        log_print(log, LOG_WARNING, "the table: %s", error->text);
        status = STATUS_OK;
    }
    return status;
}

static enum status write_file(const struct results *results, const char *journal,
                              const char *netcdf, struct error *error)
{
    if (results->record_count == 0 && results->device_count == 0)
        return error_set(error, STATUS_SYSTEM, "%s holds nothing yet", journal);
    enum status status = results_nc_write(results, netcdf, error);
    if (status)
        error_prefix(error, "%s keeps every row, for --gather%s", journal,
                     access(netcdf, F_OK) == 0 ? " with --overwrite" : "");
    return status;
}

/* File and table. STATUS_FAILED if configurations have failed. */
static enum status publish(struct results *results, const char *journal, const char *netcdf,
                           const struct log *log, struct error *error)
{
    results_order_devices(results);
    enum status status = write_file(results, journal, netcdf, error);
    if (status)
        return status;
    status = print_table(results, log, error);
    log_print(log, LOG_INFO, "%zu rows and %zu roofs in %s", results->record_count,
              count_roofs(results), netcdf);
    if (status == STATUS_OK && has_failures(results))
        status = error_set(error, STATUS_FAILED, "some configurations failed, see above");
    return status;
}

static void warn_of_torn_line(const struct log *log, const char *journal, bool torn)
{
    if (torn)
        log_print(log, LOG_WARNING, "%s: the last line is incomplete and left out", journal);
}

static enum status publish_undamaged(const char *journal, const char *netcdf, const struct log *log,
                                     struct error *error)
{
    struct results *results;
    bool torn;
    enum status status = journal_read(journal, &results, &torn, error);
    if (status)
        return status;
    warn_of_torn_line(log, journal, torn);
    status = publish(results, journal, netcdf, log, error);
    results_destroy(results);
    return status;
}

static enum status publish_rest(const char *journal, const char *netcdf, const struct log *log,
                                struct error *error)
{
    struct results *results;
    struct journal_damage damage;
    char lines[JOURNAL_DAMAGE_TEXT];
    enum status status = journal_salvage(journal, &results, &damage, error);
    if (status)
        return status;
    warn_of_torn_line(log, journal, damage.torn);
    status = publish(results, journal, netcdf, log, error);
    results_destroy(results);
    if ((status && status != STATUS_FAILED) || damage.count == 0)
        return status;
    journal_damage_format(&damage, lines);
    return error_set(error, STATUS_SYSTEM, "%s: %zu damaged, left out: %s; the rest is in %s",
                     journal, damage.count, lines, netcdf);
}

/* JOURNAL without its ".journal" is where the NetCDF file belongs. */
static enum status gathered_name(const struct options *options, char *netcdf, size_t size,
                                 struct error *error)
{
    static const char suffix[] = ".journal";
    size_t length = strlen(options->journal), cut = sizeof suffix - 1;
    bool has_suffix = length > cut && strcmp(options->journal + length - cut, suffix) == 0;
    if (!options->output && !has_suffix)
        return error_set(error, STATUS_USAGE, "'%s' does not end in %s; say --output FILE",
                         options->journal, suffix);
    int used = options->output
                   ? snprintf(netcdf, size, "%s", options->output)
                   : snprintf(netcdf, size, "%.*s", (int)(length - cut), options->journal);
    return (size_t)used < size ? STATUS_OK
                               : error_set(error, STATUS_USAGE, "the output's name is too long");
}

enum status sweep_gather(const struct options *options, const struct log *log, struct error *error)
{
    char netcdf[4096];
    enum status status = gathered_name(options, netcdf, sizeof netcdf, error);
    if (status == STATUS_OK)
        status = outputs_check_gathered(options->journal, netcdf, options->overwrite, error);
    if (status)
        return status;
    return options->skip_damaged ? publish_rest(options->journal, netcdf, log, error)
                                 : publish_undamaged(options->journal, netcdf, log, error);
}

enum status sweep_publish(const struct sweep *sweep, struct error *error)
{
    if (!sweep->journal)
        return STATUS_OK;
    return publish_undamaged(sweep->outputs.journal, sweep->outputs.netcdf, sweep->log, error);
}

void sweep_destroy(struct sweep *sweep)
{
    if (!sweep)
        return;
    executor_destroy(sweep->executor);
    mailbox_destroy(sweep->mailbox);
    journal_close(sweep->journal);
    results_destroy(sweep->earlier);
    plan_destroy(sweep->plan);
    manifest_destroy(sweep->manifest);
    free(sweep->devices);
    free(sweep->earlier_devices);
    free(sweep);
}
