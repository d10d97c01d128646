/* roofsweep: sweep.ini -> manifest -> plan -> ranks and workers -> journal -> NetCDF file and
 * table. */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/log.h"
#include "options.h"
#include "manifest/plan.h"
#include "model/device_kind.h"
#include "sweep.h"
#include "version.h"

static enum status dry_run(const struct options *options, struct error *error)
{
    struct manifest *manifest = NULL;
    struct plan *plan = NULL;
    enum status status = manifest_read(options->manifest, &manifest, error);
    if (status == STATUS_OK)
        status = plan_create(manifest, &plan, error);
    if (status == STATUS_OK)
        plan_print(plan, stdout);
    plan_destroy(plan);
    manifest_destroy(manifest);
    return status;
}

/* JOURNAL without its ".journal" is where the NetCDF file belongs. */
static enum status gather(const struct options *options, const struct log *log, struct error *error)
{
    static const char suffix[] = ".journal";
    char netcdf[4096];
    size_t length = strlen(options->journal), cut = sizeof suffix - 1;
    bool has_suffix = length > cut && strcmp(options->journal + length - cut, suffix) == 0;
    if (!options->output && (!has_suffix || length >= sizeof netcdf))
        return error_set(error, STATUS_USAGE, "'%s' does not end in %s; say --output FILE",
                         options->journal, suffix);
    if (!options->output)
        snprintf(netcdf, sizeof netcdf, "%.*s", (int)(length - cut), options->journal);
    return sweep_gather(options->journal, options->output ? options->output : netcdf, log, error);
}

/* Becomes the worker, which does it all. */
static enum status self_test(const struct options *options, struct error *error)
{
    const struct device_kind *chosen =
        device_kind_chosen(options->has_device ? options->device : DEVICE_AUTO);
    const char *program = chosen ? chosen->worker : device_kinds[0].worker;
    char path[4096];
    enum status status = folder_of_program(path, sizeof path - NAME_MAX, error);
    if (status)
        return status;
    snprintf(path + strlen(path), NAME_MAX, "/%s", program);
    execl(path, program, "--self-test", (char *)NULL);
    return error_set(error, STATUS_DEVICE, "cannot start %s: %s", path, strerror(errno));
}

/* What needs neither MPI nor a device. Under a launcher, one of the processes does it. */
static enum status run_locally(const struct options *options, const struct log *log,
                               struct error *error)
{
    if (options_launched_rank() != 0)
        return STATUS_OK;
    if (options->action == ACTION_DRY_RUN)
        return dry_run(options, error);
    if (options->action == ACTION_GATHER)
        return gather(options, log, error);
    if (options->action == ACTION_SELF_TEST)
        return self_test(options, error);
    if (options->action == ACTION_LIST)
        options_list(stdout);
    else if (options->action == ACTION_HELP)
        options_help(stdout);
    else
        puts("roofsweep " ROOFSWEEP_VERSION);
    return STATUS_OK;
}

static enum status run_sweep(MPI_Comm comm, const struct options *options, const struct log *log,
                             int argc, char **argv, struct error *error)
{
    struct sweep *sweep;
    enum status status = sweep_load(comm, options, log, &sweep, error);
    if (status == STATUS_OK && !sweep_complete(sweep))
        status = sweep_open_devices(sweep, error);
    bool opened = status == STATUS_OK;
    if (opened && !sweep_complete(sweep))
        status = sweep_measure(sweep, argc, argv, error);
    /* What was measured is published, whatever ended the sweep; the first trouble is what is
     * reported. */
    struct error publishing;
    enum status published = opened ? sweep_publish(sweep, &publishing) : STATUS_OK;
    if (status == STATUS_OK && published) {
        status = published;
        *error = publishing;
    }
    sweep_destroy(sweep);
    return status;
}

static void say(const struct log *log, enum status status, const struct error *error)
{
    if (status && log->rank == 0)
        log_error(log, error);
}

int main(int argc, char **argv)
{
    struct options options;
    struct error error;
    struct log log = log_create(stderr, LOG_INFO, options_launched_rank());
    enum status status = options_parse(argc, argv, &options, &error);
    if (status == STATUS_OK)
        log.level = options.level;
    if (status == STATUS_OK && options.action == ACTION_SWEEP) {
        signal(SIGPIPE, SIG_IGN); /* a sweep goes on when nobody reads its log any more */
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &log.rank);
        status = run_sweep(MPI_COMM_WORLD, &options, &log, argc, argv, &error);
        /* Before the ranks part: a launcher may kill this one as soon as another has ended
         * badly. */
        say(&log, status, &error);
        MPI_Finalize();
        return exit_code_of(status);
    }
    if (status == STATUS_OK)
        status = run_locally(&options, &log, &error);
    say(&log, status, &error);
    return exit_code_of(status);
}
