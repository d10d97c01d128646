/* roofsweep: sweep.ini -> manifest -> plan -> ranks and workers -> journal -> NetCDF file and
 * table. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "chip_list.h"
#include "options.h"
#include "manifest/plan.h"
#include "model/device_kind.h"
#include "named_sweep.h"
#include "ranks/estimate.h"
#include "ranks/liveness.h"
#include "results/results_nc.h"
#include "results/journal.h"
#include "results/outputs.h"
#include "results/publication.h"
#include "sweep.h"
#include "version.h"

/* The estimate excludes rows that the journal already has. An unreadable journal counts as empty:
 * the sweep itself reports the reason. */
static enum status print_estimate(const struct options *options, const struct manifest *manifest,
                                  const struct plan *plan, json_t *object, FILE *stream,
                                  struct error *error)
{
    struct results *earlier = NULL;
    struct estimate_total total;
    struct error unread;
    char journal[OUTPUTS_JOURNAL];
    bool torn;
    snprintf(journal, sizeof journal, "%s.journal",
             options->output ? options->output : manifest->sweep.output);
    if (journal_recognised(journal) && journal_read(journal, &earlier, &torn, &unread))
        earlier = NULL;
    enum status status = estimate_make(manifest, plan, earlier, &total, error);
    if (status == STATUS_OK && options->json)
        estimate_encode(&total, object);
    else if (status == STATUS_OK)
        estimate_print(&total, stream);
    results_destroy(earlier);
    return status;
}

static enum status dry_run(const struct options *options, FILE *stream, struct error *error)
{
    struct manifest *manifest = NULL;
    struct plan *plan = NULL;
    enum status status = options_manifest(options, &manifest, error);
    if (status == STATUS_OK)
        status = plan_create(manifest, &plan, error);
    json_t *object = NULL; /* with --json */
    if (status == STATUS_OK && options->json)
        object = plan_encode(plan);
    else if (status == STATUS_OK)
        plan_print(plan, stream);
    if (status == STATUS_OK && plan->count > 0)
        status = print_estimate(options, manifest, plan, object, stream, error);
    if (status == STATUS_OK && object) {
        json_dumpf(object, stream, JSON_INDENT(1));
        fputc('\n', stream);
    }
    json_decref(object);
    plan_destroy(plan);
    manifest_destroy(manifest);
    return status;
}

/* Replaces this process by the worker's self-test. */
static enum status self_test(const struct options *options, struct error *error)
{
    const struct device_kind *chosen =
        device_kind_chosen(options->has_device ? options->device : DEVICE_AUTO);
    const char *program = chosen ? chosen->worker : device_kinds[0].worker;
    char path[4096];
    TRY(folder_of_program(path, sizeof path - NAME_MAX, error));
    snprintf(path + strlen(path), NAME_MAX, "/%s", program);
    execl(path, program, "--self-test", (char *)NULL);
    return error_set(error, STATUS_DEVICE, "cannot start %s: %s", path, strerror(errno));
}

static enum status print(const struct options *options, FILE *stream, struct error *error)
{
    if (options->action == ACTION_DRY_RUN)
        return dry_run(options, stream, error);
    if (options->action == ACTION_SWEEPS)
        return named_sweeps_list(stream, error);
    if (options->action == ACTION_LIST)
        options_list(options->workload, options->json, stream);
    else if (options->action == ACTION_LIST_CHIPS)
        chip_list_print(stream);
    else if (options->action == ACTION_LIST_VARIABLES)
        results_nc_list(stream);
    else if (options->action == ACTION_HELP)
        options_help(stream);
    else
        fputs("roofsweep " ROOFSWEEP_VERSION "\n", stream);
    return STATUS_OK;
}

static enum status print_whole(const struct options *options, struct error *error)
{
    struct printout printout;
    struct error printing;
    bool unread;
    TRY(printout_open(&printout, error));
    enum status status = print(options, printout.stream, error);
    enum status printed = printout_close(&printout, &(struct wait_limit){0}, &unread, &printing);
    if (status == STATUS_OK && printed) {
        status = printed;
        *error = printing;
    }
    return status;
}

static enum status gather(const struct options *options, const struct log *log,
                          struct summary *summary, struct error *error)
{
    const struct publication publication = {.journal = options->journal,
                                            .netcdf = options->output,
                                            .json = options->json,
                                            .overwrite = options->overwrite,
                                            .skip_damaged = options->skip_damaged};
    return publication_gather(&publication, log, summary, error);
}

static void say(const struct log *log, enum status status, const struct error *error)
{
    if (status && log->rank == 0)
        log_error(log, error);
}

/* Prints the summary line if a file was written, also with --quiet, because programs read it. */
static void summarize(const struct options *options, const struct log *log,
                      const struct summary *summary, enum status status, double start)
{
    char text[SUMMARY_TEXT];
    if (log->rank != 0 || !*summary->file)
        return;
    if (options->advice)
        utf8_print(log->stream, "roofsweep: for advice: roofsweep-post rows %s --advice\n",
                   summary->file);
    summary_format(summary, exit_code_of(status), clock_monotonic() - start, text);
    utf8_print(log->stream, "roofsweep: %s\n", text);
}

/* Timeouts in s: of MPI_Init, which can take minutes in a large job, and of MPI_Finalize. */
static const int start_patience = 600, end_patience = 30;

static void begin_mpi(int *argc, char ***argv, const struct log *log)
{
    const struct guard_settings settings = {MPI_COMM_NULL, log, start_patience, EXIT_SYSTEM,
                                            "starting MPI"};
    struct guard *guard = guard_begin(&settings);
    MPI_Init(argc, argv);
    guard_end(guard);
}

/* Refuses ranks that do not know each other, because all would write one output. srun starts such
 * ranks without a PMI that this MPI supports, and so does the launcher of another MPI (PMI_SIZE).
 * Only the first task reports the error. Ranks of mpirun are exempt: they have the variables of the
 * task in which mpirun's daemon runs. */
static enum status check_launch(struct log *log, bool by_mpirun, struct error *error)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS"), *task = getenv("SLURM_PROCID");
    const char *others = getenv("PMI_SIZE"), *other = getenv("PMI_RANK");
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &log->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > 1 || by_mpirun)
        return STATUS_OK;
    if (!(tasks && atoi(tasks) > 1) && others && atoi(others) > 1) {
        log->rank = other ? atoi(other) : 0;
        return error_set(
            error, STATUS_USAGE,
            "the launcher started %.10s ranks, but MPI sees each alone: use the mpirun "
            "of the MPI that roofsweep was built with; for runs of one rank, unset "
            "PMI_SIZE",
            others);
    }
    if (!tasks || atoi(tasks) < 2)
        return STATUS_OK;
    log->rank = task ? atoi(task) : 0;
    return error_set(error, STATUS_USAGE,
                     "srun started %.10s tasks, but MPI sees each alone: use 'srun --mpi=pmix' "
                     "('srun --mpi=list' lists the choices); for runs of one rank, unset "
                     "SLURM_STEP_NUM_TASKS",
                     tasks);
}

/* Everything is published by now, so a rank that hangs here loses nothing. */
static void end_mpi(MPI_Comm comm, const struct log *log, enum status status, struct sweep *sweep)
{
    /* Rank 0's guard ends the job first: if two ranks end it at once, the launcher can return 1. */
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct guard_settings settings = {comm, log, end_patience + (rank > 0 ? 5 : 0),
                                            exit_code_of(status), "ending MPI"};
    struct guard *guard = guard_begin(&settings);
    sweep_destroy(sweep);
    MPI_Finalize();
    guard_end(guard);
}

static enum status run_sweep(MPI_Comm comm, const struct options *options, double start,
                             const struct log *log, char **argv, struct error *error)
{
    struct sweep *sweep;
    enum status status = sweep_load(comm, options, argv, start, log, &sweep, error);
    if (status == STATUS_OK && !sweep_complete(sweep))
        status = sweep_open_devices(sweep, error);
    bool opened = status == STATUS_OK;
    if (opened && !sweep_complete(sweep))
        status = sweep_measure(sweep, error);
    /* Publishes measured rows, whatever ended the sweep. Reports the first error. */
    struct error publishing;
    struct summary summary = {.file = ""};
    enum status published =
        opened ? sweep_publish(sweep, options->json, &summary, &publishing) : STATUS_OK;
    if (status == STATUS_OK && published) {
        status = published;
        *error = publishing;
    } else if (published && published != STATUS_FAILED) {
        log_print(log, LOG_WARNING, "%s", publishing.text);
    }
    bool all_here = sweep_part(sweep);
    /* Runs before MPI_Finalize, because a launcher can kill rank 0 once another rank has failed. */
    say(log, status, error);
    summarize(options, log, &summary, status, start);
    if (!all_here) { /* MPI_Abort ends the silent ranks, and gives the launcher this exit status */
        fflush(NULL);
        MPI_Abort(comm, exit_code_of(status));
    }
    end_mpi(comm, log, status, sweep);
    return status;
}

/* Gives a closed standard stream a read-only /dev/null. Otherwise the next opened file would get
 * the descriptor, and the table would be printed into that file. */
static void guard_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", O_RDONLY);
}

/* Skips exit handlers of libraries: all files are written and closed by now. */
static _Noreturn void leave(enum status status)
{
    fflush(stderr);
    _exit(exit_code_of(status));
}

int main(int argc, char **argv)
{
    const double start = clock_monotonic();
    struct options options;
    struct error error;
    struct log log = log_create(stderr, LOG_INFO, 0);
    guard_standard_streams();
    /* With ignored signals, writes to a closed pipe or beyond a file's size limit return errors. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    results_nc_prepare();
    enum status status = options_parse(argc, argv, &options, &error);
    if (status == STATUS_OK)
        log.level = options.level;
    if (status == STATUS_OK && options.action == ACTION_SWEEP) {
        const bool by_mpirun =
            getenv("OMPI_COMM_WORLD_SIZE"); /* before MPI_Init can set the variable */
        begin_mpi(&argc, &argv, &log);
        status = check_launch(&log, by_mpirun, &error);
        if (status == STATUS_OK)
            leave(run_sweep(MPI_COMM_WORLD, &options, start, &log, argv, &error));
    }
    /* Actions without MPI run in every process of a launcher. Its variables cannot prevent that: a
     * shell within a job has them, too. */
    struct summary summary = {.file = ""};
    if (status == STATUS_OK && options.action != ACTION_SWEEP)
        status = options.action == ACTION_GATHER      ? gather(&options, &log, &summary, &error)
                 : options.action == ACTION_SELF_TEST ? self_test(&options, &error)
                                                      : print_whole(&options, &error);
    say(&log, status, &error);
    summarize(&options, &log, &summary, status, start);
    leave(status);
}
