#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/folder.h"
#include "inputs.h"
#include "model/device_kind.h"
#include "ranks/agreement.h"
#include "ranks/coordinator.h"
#include "ranks/inventory.h"
#include "ranks/job.h"
#include "ranks/mailbox.h"
#include "ranks/node_roofs.h"
#include "ranks/roll.h"
#include "ranks/shift.h"
#include "ranks/signals.h"
#include "ranks/watchdog.h"
#include "results/publication.h"

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
    struct inventory inventory;
    struct roll *roll;
    struct time_limit limit;
    bool abandoned; /* some rank does not answer: no collective call may follow */
    /* rank 0 alone */
    struct inputs inputs;
    size_t left; /* configurations without a row */
};

/* Opening a device loads libraries of gigabytes, at times from a slow file system. */
static const double open_timeout_least = 30; /* s */

/* s. How long a rank may take to say its last word after the end, or the signal for it. Its worker is
 * killed within half of that, and some batch systems kill a job 30 s after the signal. */
static const double stop_patience = 10;
/* The longest that a rank's work should take, times this, before the rank counts as silent. */
static const double margin = 1.25;

/* s. Rank 0 reads or writes a journal and a file of any size, perhaps through a slow network. */
static const double long_patience = 600;
/* s. From one agreement to the next no rank has anything to do. */
static const double short_patience = 60;

/* Ends the job, with names, if not all ranks come here. */
static void wait_or_abort(const struct sweep *sweep, double seconds, enum status status,
                          const char *what)
{
    const struct roll_patience patience = {seconds, stop_patience, &signals_seen};
    char absent[ROLL_TEXT];
    if (roll_call(sweep->roll, &patience, absent))
        return;
    log_print(sweep->log, LOG_WARNING, "%s: no answer from %s; the sweep ends", what, absent);
    MPI_Abort(sweep->comm, exit_code_of(signals_seen ? STATUS_INTERRUPTED : status));
}

/* For calls of MPI that wait for all ranks: a moment ago they were here. */
static struct watchdog *guard(const struct sweep *sweep, double seconds, const char *what)
{
    const struct watchdog_settings settings = {sweep->comm, sweep->log, seconds,
                                               exit_code_of(STATUS_SYSTEM), what};
    return watchdog_begin(&settings);
}

/* Counted by rank 0, which has the environment of the job. The others need to know no more than when it
 * comes: in the middle of opening, or of roofs. */
static void set_time_limit(struct sweep *sweep, const struct options *options, double start)
{
    const struct time_limit_clock now = {start, clock_monotonic(), clock_epoch()};
    const char *job_end = getenv("SLURM_JOB_END_TIME");
    double unused;
    if (job_end && !time_limit_job_end(job_end, &unused))
        log_print(sweep->log, LOG_WARNING, "SLURM_JOB_END_TIME is '%.40s', no time; it is ignored",
                  job_end);
    sweep->limit = time_limit_create(options->time_limit, job_end, &now);
}

static void share_time_limit(const struct sweep *sweep)
{
    double left = 0;
    if (sweep->rank == 0)
        left = time_limit_left(&sweep->limit, clock_monotonic(), sweep->inputs.earlier->row_count);
    MPI_Bcast(&left, 1, MPI_DOUBLE, 0, sweep->comm);
    signals_alarm(left);
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

enum status sweep_load(MPI_Comm comm, const struct options *options, double start,
                       const struct log *log, struct sweep **sweep, struct error *error)
{
    struct sweep *created = calloc(1, sizeof *created);
    if (!created) {
        MPI_Abort(comm, 1);
        abort();
    }
    created->comm = comm;
    created->log = log;
    MPI_Comm_rank(comm, &created->rank);
    MPI_Comm_size(comm, &created->ranks);
    *sweep = created;
    enum status status = STATUS_OK;
    struct watchdog *watchdog = guard(created, short_patience, "the first call of all ranks");
    created->roll = roll_create(comm);
    watchdog_end(watchdog);
    if (!created->roll)
        MPI_Abort(comm, 1);
    wait_or_abort(created, short_patience, STATUS_SYSTEM, "starting");
    if (created->rank == 0) {
        set_time_limit(created, options, start);
        status = inputs_read(options, log, &created->inputs, &created->manifest, error);
        created->complete = created->inputs.complete;
    }
    wait_or_abort(created, long_patience, STATUS_SYSTEM, "reading manifest and journal");
    watchdog = guard(created, short_patience, "sharing the manifest");
    status = agreement_reach(comm, status, error);
    if (status == STATUS_OK)
        status = share_manifest(created, options, error);
    watchdog_end(watchdog);
    if (status == STATUS_OK && options->has_device)
        created->manifest->sweep.device = options->device;
    return status;
}

bool sweep_complete(const struct sweep *sweep)
{
    return sweep->complete;
}

static struct executor_settings executor_settings_of(const struct sweep *sweep)
{
    const struct sweep_settings *settings = &sweep->manifest->sweep;
    return (struct executor_settings){
        .station = {.worker_folder = sweep->worker_folder,
                    .device = device_kind_chosen(settings->device),
                    .open_timeout = fmax(settings->timeout, open_timeout_least),
                    .counters = sweep->manifest->measure.counters,
                    .interrupted = &signals_seen},
        .timeout = settings->timeout,
        .retries = settings->retries,
        .device_key = sweep->device_key,
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
    settings.station.binding = *binding;
    sweep->mailbox = mailbox_create(sweep->comm);
    const struct post post = mailbox_post(sweep->mailbox);
    sweep->executor = executor_create(&settings, &post, sweep->log);
    if (!sweep->mailbox || !sweep->executor)
        return error_set(error, STATUS_SYSTEM, "no memory");
    return executor_open(sweep->executor, error);
}

/* Each rank tries each kind of device within a bound. One that takes longer has stopped. */
static void wait_for_opening(struct sweep *sweep)
{
    const struct executor_settings settings = executor_settings_of(sweep);
    wait_or_abort(sweep, margin * executor_opening(&settings), STATUS_DEVICE,
                  "opening the devices");
}

enum status sweep_open_devices(struct sweep *sweep, struct error *error)
{
    signals_catch();
    share_time_limit(sweep);
    sweep->inventory = (struct inventory){sweep->comm, sweep->manifest, sweep->log, 0, 0, NULL};
    struct watchdog *watchdog = guard(sweep, short_patience, "dividing the cores");
    struct binding binding = binding_create(sweep->comm);
    watchdog_end(watchdog);
    enum status status = open_executor(sweep, &binding, error);
    wait_for_opening(sweep);
    watchdog = guard(sweep, short_patience, "comparing the devices");
    status = agreement_reach(sweep->comm, status, error);
    if (status == STATUS_INTERRUPTED && signals_seen == SIGALRM)
        error_set(error, status,
                  "the time limit (%s) came while devices were opened; go on with --resume",
                  sweep->limit.text);
    if (status == STATUS_OK)
        status = inventory_collect(&sweep->inventory, sweep->executor, error);
    if (status == STATUS_OK && sweep->manifest->reuse)
        sweep->roofs_reused =
            inventory_reuse_roofs(&sweep->inventory, sweep->inputs.earlier_devices,
                                  sweep->inputs.earlier_device_count, sweep->executor);
    watchdog_end(watchdog);
    return status;
}

/* Rank 0 begins or goes on with the journal and writes who works on it; every rank learns its
 * device's key. */
static enum status begin_session(struct sweep *sweep, int argc, char **argv, struct error *error)
{
    struct session session = {0};
    enum status status = STATUS_OK;
    struct watchdog *watchdog = guard(sweep, long_patience, "beginning the journal");
    if (sweep->rank == 0) {
        status = outputs_begin(&sweep->inputs.outputs, &sweep->inputs.journal, error);
        if (status == STATUS_OK)
            status = job_session(sweep->manifest, sweep->comm, argc, argv, &session, error);
        if (status == STATUS_OK)
            status =
                journal_append(sweep->inputs.journal, "session", session_encode(&session), error);
        if (status == STATUS_OK)
            status = journal_sync(sweep->inputs.journal, error);
    }
    status = agreement_reach(sweep->comm, status, error);
    char *id = agreement_share_text(sweep->comm, session.id);
    snprintf(sweep->device_key, sizeof sweep->device_key, "%s/%d", id, sweep->rank);
    watchdog_end(watchdog);
    free(id);
    session_clear(&session);
    return status;
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
    node_roofs_measure(sweep->comm, sweep->executor, &settings, &signals_seen, sweep->log);
}

static struct coordinator *create_coordinator(const struct sweep *sweep)
{
    const struct executor_settings executor = executor_settings_of(sweep);
    const struct coordinator_settings settings = {
        .manifest = sweep->manifest,
        .plan = sweep->inputs.plan,
        .earlier = sweep->inputs.earlier,
        .devices = sweep->inventory.devices,
        .ranks = sweep->ranks,
        .roofs_patience = margin * roofs_patience(sweep),
        .work_patience = margin * executor_longest(&executor),
        .count_patience = margin * sweep->manifest->sweep.timeout,
        .stop_patience = stop_patience,
        .limit = &sweep->limit,
        .choices = sweep->inputs.choices,
    };
    const struct post post = mailbox_post(sweep->mailbox);
    struct coordinator *created =
        coordinator_create(&settings, sweep->inputs.journal, &post, sweep->log);
    if (!created)
        MPI_Abort(sweep->comm, 1);
    return created;
}

/* Rank 0 goes on without those that are silent. The others wait for rank 0, which may be writing the file. */
static bool wait_for_ranks(struct sweep *sweep)
{
    const struct roll_patience patience = {.seconds = sweep->rank == 0 ? stop_patience : 0,
                                           .after_signal = sweep->rank == 0 ? 0 : long_patience,
                                           .signal = &signals_seen};
    char absent[ROLL_TEXT];
    if (sweep->abandoned)
        return false;
    sweep->abandoned = !roll_call(sweep->roll, &patience, absent);
    if (sweep->abandoned)
        log_print(sweep->log, LOG_WARNING, "no answer at the end from: %s", absent);
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

static struct shift shift_of(const struct sweep *sweep, struct coordinator *coordinator)
{
    return (struct shift){
        .comm = sweep->comm,
        .rank = sweep->rank,
        .ranks = sweep->ranks,
        .log = sweep->log,
        .mailbox = sweep->mailbox,
        .executor = sweep->executor,
        .coordinator = coordinator,
        .stop_patience = stop_patience,
        .exit_code = exit_code_of(STATUS_INTERRUPTED),
    };
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
    signals_alarm(INFINITY); /* from here on the coordinator looks at the clock */
    if (signals_seen == SIGALRM)
        signals_seen = 0;
    struct shift shift = shift_of(sweep, coordinator);
    if (signals_seen) /* before its device arrives: of roofs alone, the last one ends the sweep */
        shift_interrupt(&shift);
    executor_start(sweep->executor);
    shift_run(&shift);
    status = end_loop(sweep, coordinator, error);
    if (coordinator)
        sweep->left = coordinator_left(coordinator);
    coordinator_destroy(coordinator);
    if (!wait_for_ranks(sweep))
        return status;
    struct watchdog *watchdog = guard(sweep, short_patience, "agreeing on the outcome");
    status = agreement_reach(sweep->comm, status, error);
    watchdog_end(watchdog);
    return status;
}

bool sweep_part(struct sweep *sweep)
{
    return wait_for_ranks(sweep);
}

enum status sweep_publish(const struct sweep *sweep, struct table_form form,
                          struct summary *summary, struct error *error)
{
    if (!sweep->inputs.journal)
        return STATUS_OK;
    const struct publication publication = {.journal = sweep->inputs.outputs.journal,
                                            .netcdf = sweep->inputs.outputs.netcdf,
                                            .form = form};
    enum status status = publication_make(&publication, sweep->log, summary, error);
    if (*summary->file)
        summary->left = sweep->left;
    return status;
}

void sweep_destroy(struct sweep *sweep)
{
    if (!sweep)
        return;
    executor_destroy(sweep->executor);
    mailbox_destroy(sweep->mailbox);
    roll_destroy(sweep->roll);
    inputs_clear(&sweep->inputs);
    manifest_destroy(sweep->manifest);
    inventory_clear(&sweep->inventory);
    free(sweep);
}
