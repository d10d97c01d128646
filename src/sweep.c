/* One job's share of a sweep, from the manifest to the published file.
 *
 * Every rank has an executor, which drives its worker. Rank 0 also has the plan, the journal and
 * the dispatcher; `carry_out` does what the dispatcher decides. Set-up: rank 0 reads all inputs
 * before it replaces any file, the ranks compare their command lines and share the manifest, each
 * opens its device, rank 0 writes the session. Then `run_loop` polls worker and messages until the
 * end.
 *
 * Failure: before the loop all ranks agree on a status and return it. In the loop the dispatcher
 * goes on without silent ranks, and a rank ends the job if rank 0 is silent. Every wait has a
 * limit, and a log line names the missing ranks; where a collective call would hang, MPI_Abort ends
 * the job.
 *
 * Cost: each rank polls every 0.5 to 50 ms (`longest_wait`); rank 0 appends a line to the journal
 * for each record and syncs before it hands out more work. */
#include "sweep.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "manifest/plan.h"
#include "model/device_kind.h"
#include "ranks/devices.h"
#include "ranks/dispatcher.h"
#include "ranks/executor.h"
#include "ranks/liveness.h"
#include "ranks/node_roofs.h"
#include "ranks/resume.h"
#include "ranks/signals.h"
#include "ranks/transport.h"
#include "results/journal.h"
#include "results/outputs.h"
#include "results/results.h"
#include "results/publication.h"
#include "version.h"

struct sweep {
    MPI_Comm comm;
    int rank, ranks;
    const struct log *log;
    char *command; /* command line */
    size_t name;   /* length of the program's name at the start of `command` */
    struct manifest *manifest;
    bool complete; /* see sweep_complete */
    struct transport *transport;
    struct executor *executor;
    char worker_folder[4096];
    char session[64]; /* identifier of this job's session */
    char device_key[128];
    bool roofs_reused; /* this rank's roofs come from an earlier result */
    struct devices devices;
    struct liveness *liveness;
    struct time_limit limit;
    bool abandoned;          /* a rank is silent: no collective call may follow */
    bool signalled;          /* this rank has reported a signal to rank 0 */
    struct countdown rank_0; /* on other ranks: time left for a message from rank 0 */
    bool asked;              /* an echo request to rank 0 is unanswered */
    /* only on rank 0 */
    struct plan *plan;
    struct outputs outputs;
    struct results *earlier;       /* content of the journal that is resumed */
    struct journal *journal;       /* NULL: not begun */
    struct results *roofs_source;  /* [peaks] reuse; NULL: all roofs are measured */
    struct dispatcher *dispatcher; /* NULL outside the loop */
    struct progress *progress;
    size_t left; /* rounds of configurations that are not on disk; SIZE_MAX: unknown */
};

/* s; opening a device loads gigabytes of libraries, perhaps from a slow file system. */
static const double open_timeout_least = 30;

/* s; longest time from a signal or the sweep's end to a rank's last message. The rank kills its
 * worker within half of that time. Some batch systems kill a job 30 s after the signal. */
static const double stop_patience = 10;
/* A rank counts as silent after `margin` times the longest time that its work may take. */
static const double margin = 1.25;

/* s; time for rank 0 to read or write journal and file of any size, perhaps over a slow network. */
static const int long_patience = 600;
/* s; longest time from a rank's collective call to its next one, if no long work lies between. */
static const int short_patience = 60;

/* Returns the time in s that this rank waits. Rank 0 waits for less time, so it reports first. */
static double patience_of(const struct sweep *sweep, double seconds)
{
    return sweep->rank == 0 ? seconds : margin * seconds + stop_patience;
}

/* Waits for all ranks. If some do not come, names them and ends the job. */
static void wait_or_abort(const struct sweep *sweep, double seconds, enum status status,
                          const char *what)
{
    const struct wait_limit patience = {seconds, patience_of(sweep, stop_patience),
                                        &signals_caught};
    char absent[LIVENESS_TEXT];
    if (liveness_barrier(sweep->liveness, &patience, absent))
        return;
    log_print(sweep->log, LOG_WARNING, "%s: no answer from %s; the sweep ends", what, absent);
    MPI_Abort(sweep->comm, exit_code_of(signals_caught ? STATUS_INTERRUPTED : status));
}

/* Limits the time of an MPI call that waits for all ranks. Call it right after wait_or_abort. */
static struct guard *guard_all(const struct sweep *sweep, int seconds, const char *what)
{
    const struct guard_settings settings = {sweep->comm, sweep->log, seconds,
                                            exit_code_of(STATUS_SYSTEM), what};
    return guard_begin(&settings);
}

/* Only rank 0 knows the limit, because it has the job's environment. share_time_limit gives every
 * rank an alarm, which ends the opening of devices and the measurement of roofs. */
static void set_time_limit(struct sweep *sweep, const struct options *options, double start)
{
    const struct time_limit_clock now = {start, clock_monotonic(), clock_epoch()};
    const char *job_end = getenv("SLURM_JOB_END_TIME");
    double unused;
    if (job_end && !time_limit_job_end(job_end, &unused))
        log_print(sweep->log, LOG_WARNING,
                  "SLURM_JOB_END_TIME is '%.40s', not a time; it is ignored", job_end);
    sweep->limit = time_limit_create(options->time_limit, job_end, &now);
}

static void share_time_limit(const struct sweep *sweep)
{
    double left = 0;
    if (sweep->rank == 0)
        left = time_limit_left(&sweep->limit, clock_monotonic(), sweep->earlier->row_count);
    MPI_Bcast(&left, 1, MPI_DOUBLE, 0, sweep->comm);
    signals_alarm(left);
}

/* ---- inputs of rank 0 ---- */

static enum status read_roofs(struct sweep *sweep, struct error *error)
{
    char journal[OUTPUTS_JOURNAL];
    bool torn;
    outputs_journal_of(sweep->manifest->reuse, journal);
    if (journal_read(journal, &sweep->roofs_source, &torn, error))
        return error_prefix(error, STATUS_USAGE, "%s%s:%d: [peaks] reuse",
                            sweep->manifest->amended ? AMENDED ": " : "", sweep->manifest->path,
                            sweep->manifest->reuse_line);
    return STATUS_OK;
}

/* Checks before the measurement of roofs that rank 0's node has the manifest's programs. */
static enum status check_programs(const struct sweep *sweep, struct error *error)
{
    char *notes = NULL;
    size_t size;
    FILE *stream = open_memstream(&notes, &size);
    if (stream) {
        plan_print_notes(sweep->plan, stream);
        fclose(stream);
        for (char *at = notes, *line; (line = strsep(&at, "\n"));)
            if (*line)
                log_print(sweep->log, LOG_INFO, "%s", line);
        free(notes);
    }
    const char *folder = sweep->manifest->folder ? sweep->manifest->folder : ".";
    enum status status = plan_find_programs(sweep->plan, folder, error);
    return error_prefix(error, status, "%s", sweep->manifest->path);
}

/* Runs before any file is replaced: with --overwrite the output can be an input, too. */
static enum status read_inputs(struct sweep *sweep, const struct options *options,
                               struct error *error)
{
    char line[256];
    TRY(options_manifest(options, &sweep->manifest, error));
    const struct sweep_settings *settings = &sweep->manifest->sweep;
    TRY(plan_create(sweep->manifest, &sweep->plan, error));
    TRY(outputs_name(options->output ? options->output : settings->output, options->resume,
                     options->overwrite, &sweep->outputs, error));
    sweep->outputs.any_owner = options->any_owner;
    TRY(outputs_check_input(&sweep->outputs, sweep->manifest->path, "the manifest", error));
    TRY(outputs_check(&sweep->outputs, error));
    manifest_settings_text(sweep->manifest, line);
    TRY(outputs_earlier(&sweep->outputs, line, sweep->log, &sweep->journal, &sweep->earlier,
                        error));
    /* With replicate, completeness depends on the devices, which are not open yet. */
    sweep->complete = !settings->replicate && sweep->earlier->row_count > 0 &&
                      resume_missing(sweep->plan, sweep->earlier, NULL, 0, settings->rounds) == 0;
    if (!sweep->complete)
        TRY(check_programs(sweep, error));
    return !sweep->manifest->reuse || sweep->complete ? STATUS_OK : read_roofs(sweep, error);
}

/* A launcher can start ranks with different command lines (mpirun ... : ...), which is an error. */
static enum status compare_commands(const struct sweep *sweep, struct error *error)
{
    const char *own = sweep->command + sweep->name;
    char *first = liveness_share_text(sweep->comm, own);
    enum status status = STATUS_OK;
    if (strcmp(own, first) != 0)
        status = error_set(error, STATUS_USAGE,
                           "started with '%.300s', but rank 0 with '%.300s'; all ranks of a job "
                           "take the same manifest and options",
                           own + (*own != '\0'), first + (*first != '\0'));
    free(first);
    return liveness_agree(sweep->comm, status, error);
}

/* Other ranks parse the text that rank 0 read, as their working folders can differ. */
static enum status share_manifest(struct sweep *sweep, const struct options *options,
                                  struct error *error)
{
    int complete = sweep->complete;
    char *text = liveness_share_text(sweep->comm, sweep->rank == 0 ? sweep->manifest->text : NULL);
    MPI_Bcast(&complete, 1, MPI_INT, 0, sweep->comm);
    enum status status = STATUS_OK;
    if (sweep->rank != 0) {
        sweep->complete = complete;
        status = manifest_parse(options->manifest, text, strlen(text), &sweep->manifest, error);
    }
    free(text);
    return liveness_agree(sweep->comm, status, error);
}

enum status sweep_load(MPI_Comm comm, const struct options *options, char **argv, double start,
                       const struct log *log, struct sweep **sweep, struct error *error)
{
    signals_catch();
    struct sweep *created = memory_require(comm, calloc(1, sizeof *created), "the sweep");
    created->comm = comm;
    created->log = log;
    created->left = SIZE_MAX;
    size_t length;
    FILE *command = open_memstream(&created->command, &length);
    for (char **word = argv; command && *word; ++word) {
        fprintf(command, "%s%s", word > argv ? " " : "", *word);
        created->name = word > argv ? created->name : strlen(*word);
    }
    bool whole = command && fclose(command) == 0;
    memory_require(comm, whole ? created->command : NULL, "the command line");
    MPI_Comm_rank(comm, &created->rank);
    MPI_Comm_size(comm, &created->ranks);
    *sweep = created;
    enum status status = STATUS_OK;
    struct guard *guard = guard_all(created, short_patience, "the first call of all ranks");
    created->liveness = memory_require(comm, liveness_create(comm), "the ranks");
    guard_end(guard);
    wait_or_abort(created, patience_of(created, short_patience), STATUS_SYSTEM, "starting");
    if (created->rank == 0) {
        set_time_limit(created, options, start);
        status = read_inputs(created, options, error);
    }
    wait_or_abort(created, created->rank == 0 ? short_patience : long_patience, STATUS_SYSTEM,
                  "reading manifest and journal");
    guard = guard_all(created, short_patience, "sharing the manifest");
    status = liveness_agree(comm, status, error);
    if (status == STATUS_OK)
        status = compare_commands(created, error);
    if (status == STATUS_OK)
        status = share_manifest(created, options, error);
    guard_end(guard);
    if (status == STATUS_OK && options->has_device)
        created->manifest->sweep.device = options->device;
    return status;
}

bool sweep_complete(const struct sweep *sweep)
{
    return sweep->complete;
}

/* Job identifier of the batch system (Slurm, PBS, LSF, Flux), "" if there is none. */
static const char *job_id(void)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (getenv(names[i]))
            return getenv(names[i]);
    return "";
}

static struct executor_settings executor_settings_of(const struct sweep *sweep)
{
    const struct sweep_settings *settings = &sweep->manifest->sweep;
    return (struct executor_settings){
        .worker_folder = sweep->worker_folder,
        .device = device_kind_chosen(settings->device),
        .open_timeout = fmax(settings->timeout, open_timeout_least),
        .require_counters = sweep->manifest->measure.counters == COUNTERS_REQUIRE,
        .interrupted = &signals_caught,
        .timeout = settings->timeout,
        .retries = settings->retries,
        .device_key = sweep->device_key,
    };
}

static enum status create_executor(struct sweep *sweep, struct error *error)
{
    TRY(folder_of_program(sweep->worker_folder, sizeof sweep->worker_folder, error));
    struct executor_settings settings = executor_settings_of(sweep);
    sched_getaffinity(0, sizeof settings.binding.cpus, settings.binding.cpus.part);
    sweep->transport = transport_create(sweep->comm);
    const struct sender sender = {sweep->transport, transport_send};
    sweep->executor = executor_create(&settings, &sender, sweep->log);
    if (!sweep->transport || !sweep->executor)
        return error_set(error, STATUS_SYSTEM, "no memory");
    return STATUS_OK;
}

/* Waits as long as a rank may take to try all kinds of devices. */
static void wait_for_opening(struct sweep *sweep)
{
    const struct executor_settings settings = executor_settings_of(sweep);
    wait_or_abort(sweep, patience_of(sweep, margin * executor_opening(&settings)), STATUS_DEVICE,
                  "opening the devices");
}

enum status sweep_open_devices(struct sweep *sweep, struct error *error)
{
    sweep->devices = (struct devices){sweep->comm, sweep->manifest, sweep->log, 0, 0, NULL};
    struct visible visible = {0};
    enum status status = create_executor(sweep, error);
    if (status == STATUS_OK)
        visible = executor_visible(sweep->executor);
    wait_for_opening(sweep);
    struct guard *guard = guard_all(sweep, short_patience, "dividing the cores");
    share_time_limit(sweep);
    const struct binding binding = binding_create(sweep->comm, &visible);
    guard_end(guard);
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", binding.local_count);
    setenv(NODE_RANKS_VARIABLE, ranks, 1);
    if (status == STATUS_OK) {
        executor_bind(sweep->executor, &binding);
        status = executor_open(sweep->executor, error);
    }
    wait_for_opening(sweep);
    guard = guard_all(sweep, short_patience, "comparing the devices");
    status = liveness_agree(sweep->comm, status, error);
    if (status == STATUS_INTERRUPTED && signals_caught == SIGALRM)
        error_set(error, status,
                  "the time limit (%s) came while devices were opened; go on with --resume",
                  sweep->limit.text);
    if (status == STATUS_OK)
        status = devices_collect(&sweep->devices, sweep->executor, error);
    if (status == STATUS_OK && sweep->manifest->sweep.replicate) {
        int complete = sweep->rank == 0 && sweep->earlier->row_count > 0 &&
                       resume_missing(sweep->plan, sweep->earlier, sweep->devices.list,
                                      (size_t)sweep->ranks, sweep->manifest->sweep.rounds) == 0;
        MPI_Bcast(&complete, 1, MPI_INT, 0, sweep->comm);
        sweep->complete = complete;
    }
    if (status == STATUS_OK && sweep->manifest->reuse)
        sweep->roofs_reused =
            devices_reuse_roofs(&sweep->devices, sweep->roofs_source, sweep->executor);
    guard_end(guard);
    return status;
}

/* Fills in this job's session; session_clear frees it. */
static enum status make_session(const struct sweep *sweep, struct session *session,
                                struct error *error)
{
    const struct manifest *manifest = sweep->manifest;
    char version[MPI_MAX_LIBRARY_VERSION_STRING], stamp[32];
    struct timespec now;
    struct tm utc;
    int length;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", &utc);
    session->ranks = sweep->ranks;
    session->rows = (int64_t)sweep->plan->count * (manifest->sweep.replicate ? sweep->ranks : 1);
    session->rounds = manifest->sweep.rounds > 1 ? manifest->sweep.rounds : FIELD_MISSING;
    session->start_time = clock_date();
    gethostname(session->hostname, sizeof session->hostname - 1);
    snprintf(session->id, sizeof session->id, "%s.%03ldZ-%ld", stamp, now.tv_nsec / 1000000,
             (long)getpid());
    snprintf(session->version, sizeof session->version, "%s", ROOFSWEEP_VERSION);
    utf8_copy(session->title, sizeof session->title, manifest->sweep.title,
              strlen(manifest->sweep.title));
    utf8_copy(session->manifest_path, sizeof session->manifest_path, manifest->path,
              strlen(manifest->path));
    snprintf(session->job_id, sizeof session->job_id, "%s", job_id());
    manifest_settings_text(manifest, session->settings);
    utf8_copy(session->command, sizeof session->command, sweep->command, strlen(sweep->command));
    MPI_Get_library_version(version, &length);
    snprintf(session->mpi, sizeof session->mpi, "%.*s", (int)strcspn(version, "\n"), version);
    session->manifest_text = strdup(manifest->text);
    return session->manifest_text ? STATUS_OK
                                  : error_set(error, STATUS_SYSTEM, "no memory for the manifest");
}

static enum status append_session(const struct sweep *sweep, struct session *session,
                                  struct error *error)
{
    TRY(make_session(sweep, session, error));
    TRY(journal_append(sweep->journal, "session", session_encode(session), error));
    return journal_sync(sweep->journal, error);
}

/* Appends a session if the journal has all rows of a manifest with another text. */
static enum status keep_manifest(const struct sweep *sweep, struct error *error)
{
    const size_t count = sweep->complete ? sweep->earlier->session_count : 0;
    const char *last = count > 0 ? sweep->earlier->sessions[count - 1].manifest_text : NULL;
    if (!last || strcmp(last, sweep->manifest->text) == 0)
        return STATUS_OK;
    struct session session = {0};
    enum status status = append_session(sweep, &session, error);
    session_clear(&session);
    return status;
}

/* Rank 0 opens the journal and appends the session. Every rank gets its device's key. */
static enum status begin_session(struct sweep *sweep, struct error *error)
{
    struct session session = {0};
    enum status status = STATUS_OK;
    struct guard *guard = guard_all(sweep, long_patience, "beginning the journal");
    if (sweep->rank == 0) {
        status = outputs_begin(&sweep->outputs, &sweep->journal, error);
        if (status == STATUS_OK)
            status = append_session(sweep, &session, error);
    }
    status = liveness_agree(sweep->comm, status, error);
    char *id = liveness_share_text(sweep->comm, session.id);
    snprintf(sweep->session, sizeof sweep->session, "%s", id);
    snprintf(sweep->device_key, sizeof sweep->device_key, "%s/%d", id, sweep->rank);
    guard_end(guard);
    free(id);
    session_clear(&session);
    return status;
}

/* s; enough for the roofs of one device even if three workers are lost. */
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
        .wait_limit = {roofs_patience(sweep), stop_patience, &signals_caught},
    };
    node_roofs_measure(sweep->comm, sweep->executor, &settings, sweep->log);
}

static void create_dispatcher(struct sweep *sweep)
{
    const struct executor_settings executor = executor_settings_of(sweep);
    const struct dispatcher_settings settings = {
        .manifest = sweep->manifest,
        .plan = sweep->plan,
        .earlier = sweep->earlier,
        .devices = sweep->devices.list,
        .ranks = sweep->ranks,
        .session = sweep->session,
        .job_id = job_id(),
        .roofs_timeout = margin * roofs_patience(sweep),
        .work_timeout = margin * executor_longest(&executor),
        .count_timeout = margin * sweep->manifest->sweep.timeout,
        .stop_timeout = stop_patience,
        .limit = &sweep->limit,
    };
    sweep->dispatcher =
        memory_require(sweep->comm, dispatcher_create(&settings, sweep->log), "the rows");
    size_t total = dispatcher_total(sweep->dispatcher);
    size_t done = total - dispatcher_left(sweep->dispatcher);
    void *memory = progress_create(sweep->log, "", done, total);
    sweep->progress = memory_require(sweep->comm, memory, "the progress");
}

/* ---- actions of the dispatcher ---- */

static enum status carry_out(struct sweep *sweep, const struct dispatcher_action *action,
                             struct error *error)
{
    struct journal *journal = sweep->journal;
    enum status status;
    switch (action->kind) {
    case ACTION_STORE_DEVICE:
        progress_start(sweep->progress);
        return journal_append_text(journal, "device", action->text, error);
    case ACTION_STORE_RECORD:
        return journal_append_text(journal,
                                   action->record->round == FIELD_MISSING ? "record" : "round",
                                   action->text, error);
    case ACTION_SYNC:
        return journal_sync(journal, error);
    case ACTION_SEND:
        status =
            transport_send(sweep->transport, action->rank, action->message, action->text, error);
        if (status) { /* the rank would wait for ever */
            log_print(sweep->log, LOG_WARNING, "%s; the job ends", error->text);
            MPI_Abort(sweep->comm, exit_code_of(STATUS_SYSTEM));
        }
        return STATUS_OK;
    case ACTION_PROGRESS:
        progress_update(sweep->progress, action->left, action->failed);
        return STATUS_OK;
    }
    return STATUS_OK;
}

static void carry_out_all(struct sweep *sweep)
{
    struct dispatcher_action action;
    struct error error;
    while (dispatcher_next(sweep->dispatcher, &action))
        if (carry_out(sweep, &action, &error))
            dispatcher_failed(sweep->dispatcher, &error);
}

/* ---- the loop of a rank ---- */

/* Reports the signal that arrived (signals.h) to rank 0. */
static void take_signal(struct sweep *sweep)
{
    struct error error;
    signals_caught = 0;
    sweep->signalled = true;
    sweep->rank_0 = countdown_start(3 * stop_patience);
    if (sweep->dispatcher) {
        dispatcher_time(sweep->dispatcher, clock_monotonic()); /* stop_timeout starts now */
        dispatcher_interrupt(sweep->dispatcher);
    } else if (transport_send(sweep->transport, 0, MESSAGE_SIGNAL, "", &error)) {
        log_print(sweep->log, LOG_WARNING, "%s", error.text);
    }
}

/* Ends the job if rank 0 is silent: no other rank can hand out work or publish, and the journal has
 * all finished rows. Rank 0 may have nothing to send for hours, so this rank requests an echo. */
static void watch_rank_0(struct sweep *sweep)
{
    struct error error;
    if (sweep->rank == 0)
        return;
    if (countdown_over(&sweep->rank_0)) {
        log_print(sweep->log, LOG_WARNING,
                  "rank 0 on %s has said nothing for %d s; go on with --resume, or see --gather",
                  liveness_host_of_rank_0(sweep->liveness),
                  sweep->signalled ? (int)(3 * stop_patience) : long_patience);
        MPI_Abort(sweep->comm, exit_code_of(sweep->signalled ? STATUS_INTERRUPTED : STATUS_SYSTEM));
    }
    if (!sweep->asked && sweep->rank_0.left < long_patience - short_patience)
        sweep->asked = transport_send(sweep->transport, 0, MESSAGE_ECHO, "", &error) == STATUS_OK;
}

/* False: the worker has written nothing. */
static bool wait_for_worker(const struct sweep *sweep, double seconds)
{
    struct pollfd descriptors[2];
    nfds_t count;
    const struct timespec time = {.tv_nsec = (long)(seconds * 1e9)};
    executor_poll(sweep->executor, descriptors, &count);
    return ppoll(descriptors, count, &time, NULL) > 0;
}

/* Handles all messages. False: there was none. */
static bool receive_all(struct sweep *sweep)
{
    struct message message;
    struct error error;
    bool any = false;
    while (transport_receive(sweep->transport, &message)) {
        if (message.kind == MESSAGE_MEASURE || message.kind == MESSAGE_COUNT ||
            message.kind == MESSAGE_STOP) {
            executor_handle(sweep->executor, &message);
        } else if (message.kind == MESSAGE_ECHO && sweep->rank == 0) {
            transport_send(sweep->transport, message.from, MESSAGE_ECHO, "", &error);
        } else if (sweep->dispatcher) {
            dispatcher_message(sweep->dispatcher, &message);
            carry_out_all(sweep);
        }
        if (sweep->rank != 0 && !sweep->signalled)
            sweep->rank_0 = countdown_start(long_patience);
        sweep->asked = false;
        free(message.text);
        any = true;
    }
    return any;
}

/* Returns the longest time in s between two polls for messages. Rank 0 polls more often, because
 * ranks wait for its replies. A rank with a busy worker polls less often: the worker's output ends
 * the wait, no message but MESSAGE_STOP is due, and hundreds of polling ranks would use cores. */
static double longest_wait(const struct sweep *sweep)
{
    static const double usual = 2e-3, of_rank_0 = 0.5e-3, at_work = 50e-3;
    if (sweep->dispatcher && sweep->ranks > 1)
        return of_rank_0;
    return executor_works(sweep->executor) ? at_work : usual;
}

/* Serves worker and messages until this rank has stopped and, on rank 0, all ranks have sent their
 * last message or are silent. */
static void run_loop(struct sweep *sweep)
{
    double interval = 0;
    struct countdown gaps = countdown_start(INFINITY); /* finds suspensions of the job */
    if (!sweep->signalled)
        sweep->rank_0 = countdown_start(long_patience);
    while (!executor_stopped(sweep->executor) ||
           (sweep->dispatcher && !dispatcher_finished(sweep->dispatcher))) {
        bool moved = wait_for_worker(sweep, interval);
        if (signals_caught)
            take_signal(sweep);
        watch_rank_0(sweep);
        countdown_over(&gaps);
        if (sweep->dispatcher && gaps.missed > 0)
            dispatcher_suspended(sweep->dispatcher, gaps.missed);
        gaps.missed = 0;
        if (sweep->dispatcher)
            dispatcher_time(sweep->dispatcher, clock_monotonic());
        executor_step(sweep->executor);
        moved |= receive_all(sweep);
        if (sweep->dispatcher) {
            dispatcher_commit(sweep->dispatcher);
            carry_out_all(sweep);
        }
        interval = poll_interval(interval, moved, longest_wait(sweep));
    }
}

/* Ranks other than 0 wait until rank 0 has written the file. */
bool sweep_part(struct sweep *sweep)
{
    const struct wait_limit patience = {.seconds =
                                            sweep->rank == 0 ? stop_patience : long_patience};
    char absent[LIVENESS_TEXT];
    if (sweep->abandoned)
        return false;
    const double began = clock_monotonic();
    sweep->abandoned = !liveness_barrier(sweep->liveness, &patience, absent);
    if (sweep->abandoned)
        log_print(sweep->log, LOG_WARNING, "no answer at the end within %.0f s from: %s",
                  clock_monotonic() - began, absent);
    if (sweep->abandoned && sweep->rank != 0) /* rank 0 hangs and publishes nothing */
        MPI_Abort(sweep->comm, exit_code_of(STATUS_SYSTEM));
    return !sweep->abandoned;
}

/* Releases what only the loop needs, and returns its outcome. */
static enum status end_loop(struct sweep *sweep, struct error *error)
{
    char absent[800];
    if (!sweep->dispatcher)
        return STATUS_OK;
    progress_destroy(sweep->progress);
    sweep->abandoned = dispatcher_missing(sweep->dispatcher, absent, sizeof absent);
    if (sweep->abandoned)
        log_print(sweep->log, LOG_WARNING, "no answer within %g s, the file is written without: %s",
                  stop_patience, absent);
    sweep->left = dispatcher_left(sweep->dispatcher);
    enum status status = dispatcher_status(sweep->dispatcher, error);
    dispatcher_destroy(sweep->dispatcher);
    sweep->dispatcher = NULL;
    return status;
}

enum status sweep_measure(struct sweep *sweep, struct error *error)
{
    TRY(begin_session(sweep, error));
    if (sweep->rank == 0)
        create_dispatcher(sweep);
    measure_roofs(sweep);
    signals_alarm(INFINITY); /* from here on the dispatcher keeps the time limit */
    if (signals_caught == SIGALRM)
        signals_caught = 0;
    if (signals_caught) /* must precede the report of this rank's device, which can end the sweep */
        take_signal(sweep);
    executor_start(sweep->executor);
    run_loop(sweep);
    enum status status = end_loop(sweep, error);
    if (!sweep_part(sweep))
        return status;
    struct guard *guard = guard_all(sweep, short_patience, "agreeing on the outcome");
    status = liveness_agree(sweep->comm, status, error);
    guard_end(guard);
    return status;
}

enum status sweep_publish(const struct sweep *sweep, bool json, struct summary *summary,
                          struct error *error)
{
    if (!sweep->journal)
        return STATUS_OK;
    TRY(keep_manifest(sweep, error));
    const struct outputs *outputs = &sweep->outputs;
    struct publication publication = {
        .plan = sweep->plan,
        .json = json,
        .patience = {short_patience, 1, &signals_caught},
    };
    struct error moved;
    char source[JOURNAL_SOURCE];
    enum status held = journal_check_path(sweep->journal, &moved);
    journal_source(sweep->journal, source);
    publication.journal = journal_path(sweep->journal);
    publication.source = source;
    publication.netcdf = held ? NULL : outputs->netcdf;
    publication.overwrite = !held && outputs_replaces(outputs);
    enum status status = publication_make(&publication, sweep->log, summary, error);
    if (!held) /* other processes may have changed the journal */
        held = journal_check_path(sweep->journal, &moved);
    if (held) { /* rows may be lost, so `left` is unknown */
        if (status)
            log_print(sweep->log, LOG_WARNING, "%s", error->text);
        *error = moved;
        return held;
    }
    if (*summary->file)
        summary->left = sweep->complete ? 0 : sweep->left;
    return status;
}

void sweep_destroy(struct sweep *sweep)
{
    if (!sweep)
        return;
    executor_destroy(sweep->executor);
    transport_destroy(sweep->transport);
    liveness_destroy(sweep->liveness);
    journal_close(sweep->journal);
    results_destroy(sweep->earlier);
    plan_destroy(sweep->plan);
    results_destroy(sweep->roofs_source);
    free(sweep->command);
    manifest_destroy(sweep->manifest);
    devices_clear(&sweep->devices);
    free(sweep);
}
