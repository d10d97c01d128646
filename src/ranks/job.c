#include "ranks/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "version.h"

const char *job_id(void)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (getenv(names[i]))
            return getenv(names[i]);
    return "";
}

static void join_arguments(int argc, char **argv, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < argc && used < size; ++i)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", argv[i]);
}

static void set_mpi_version(struct session *session)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    snprintf(session->mpi, sizeof session->mpi, "%.*s", (int)strcspn(version, "\n"), version);
}

enum status job_session(const struct manifest *manifest, MPI_Comm comm, int argc, char **argv,
                        struct session *session, struct error *error)
{
    int ranks;
    struct timespec now;
    struct tm utc;
    char stamp[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", &utc);
    MPI_Comm_size(comm, &ranks);
    memset(session, 0, sizeof *session);
    session->ranks = ranks;
    session->start_time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    gethostname(session->hostname, sizeof session->hostname - 1);
    snprintf(session->id, sizeof session->id, "%s.%03ldZ-%ld", stamp, now.tv_nsec / 1000000,
             (long)getpid());
    snprintf(session->version, sizeof session->version, "%s", ROOFSWEEP_VERSION);
    snprintf(session->title, sizeof session->title, "%s", manifest->sweep.title);
    snprintf(session->manifest_path, sizeof session->manifest_path, "%s", manifest->path);
    snprintf(session->job_id, sizeof session->job_id, "%s", job_id());
    manifest_settings_text(manifest, session->settings);
    join_arguments(argc, argv, session->command, sizeof session->command);
    set_mpi_version(session);
    session->manifest_text = strdup(manifest->text);
    return session->manifest_text ? STATUS_OK
                                  : error_set(error, STATUS_SYSTEM, "no memory for the manifest");
}
