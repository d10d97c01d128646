#include "results/outputs.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool exists(const char *path)
{
    struct stat unused;
    return lstat(path, &unused) == 0;
}

/* ENOENT: there is none yet, or its folder is missing, for which see check_folder. */
static enum status check_file(const char *path, struct error *error)
{
    struct stat file;
    bool there = stat(path, &file) == 0;
    if (!there && errno != ENOENT)
        return error_set(error, STATUS_USAGE, "cannot write %s: %s", path, strerror(errno));
    if (there ? !S_ISREG(file.st_mode) : path[strlen(path) - 1] == '/')
        return error_set(error, STATUS_USAGE, "cannot write %s: it is no regular file", path);
    return STATUS_OK;
}

static enum status check_folder(const char *path, struct error *error)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", path);
    const char *folder = dirname(copy);
    if (access(folder, W_OK | X_OK) != 0)
        return error_set(error, STATUS_USAGE, "cannot write %s: folder '%s': %s", path, folder,
                         strerror(errno));
    return STATUS_OK;
}

enum status outputs_check(const char *path, bool resume, bool overwrite, struct outputs *outputs,
                          struct error *error)
{
    struct outputs named = {.resume = resume, .overwrite = overwrite};
    if (strlen(path) >= sizeof named.netcdf)
        return error_set(error, STATUS_USAGE, "the output's name has more than %zu characters",
                         sizeof named.netcdf - 1);
    strcpy(named.netcdf, path);
    snprintf(named.journal, sizeof named.journal, "%s.journal", path);
    enum status status = check_file(named.netcdf, error);
    if (status == STATUS_OK)
        status = check_file(named.journal, error);
    if (status == STATUS_OK)
        status = check_folder(path, error);
    if (status)
        return status;
    bool netcdf = exists(named.netcdf), journal = exists(named.journal);
    if (!resume && !overwrite && (netcdf || journal))
        return error_set(error, STATUS_USAGE,
                         "%s exists%s; --resume goes on with it, --overwrite replaces it, --output "
                         "names another",
                         netcdf ? path : named.journal, netcdf ? "" : " (an unfinished sweep)");
    if (resume && netcdf && !journal)
        return error_set(error, STATUS_USAGE,
                         "cannot resume %s: its journal %s is gone; --overwrite measures all anew",
                         path, named.journal);
    *outputs = named;
    return STATUS_OK;
}

static enum status check_settings(const struct outputs *outputs, const struct results *results,
                                  const char *settings, struct error *error)
{
    for (size_t i = 0; i < results->session_count; ++i)
        if (strcmp(results->sessions[i].settings, settings) != 0)
            return error_set(
                error, STATUS_USAGE,
                "%s was measured with '%s', the manifest now says '%s'; choose another "
                "--output, or --overwrite",
                outputs->netcdf, results->sessions[i].settings, settings);
    return STATUS_OK;
}

static enum status read_earlier(const struct outputs *outputs, const char *settings,
                                const struct log *log, struct results **results,
                                struct error *error)
{
    struct results *earlier;
    bool torn;
    enum status status = journal_read(outputs->journal, &earlier, &torn, error);
    if (status)
        return status;
    if (torn)
        log_print(log, LOG_WARNING, "%s: the last line is incomplete and left out",
                  outputs->journal);
    status = check_settings(outputs, earlier, settings, error);
    if (status)
        results_destroy(earlier);
    else
        *results = earlier;
    return status;
}

enum status outputs_earlier(const struct outputs *outputs, const char *settings,
                            const struct log *log, struct journal **journal,
                            struct results **results, struct error *error)
{
    struct journal *older = NULL;
    enum status status = STATUS_OK;
    if (exists(outputs->journal))
        status = journal_open(outputs->journal, outputs->resume ? JOURNAL_RESUME : JOURNAL_REPLACE,
                              &older, error);
    if (status)
        return status;
    if (older && outputs->resume)
        status = read_earlier(outputs, settings, log, results, error);
    else if (!(*results = results_create()))
        status = error_set(error, STATUS_SYSTEM, "no memory for results");
    if (status)
        journal_close(older);
    else
        *journal = older;
    return status;
}

enum status outputs_begin(const struct outputs *outputs, struct journal **journal,
                          struct error *error)
{
    enum status status = STATUS_OK;
    if (!*journal)
        status = journal_open(outputs->journal, JOURNAL_CREATE, journal, error);
    if (status == STATUS_OK && outputs->overwrite && unlink(outputs->netcdf) != 0 &&
        errno != ENOENT)
        status = error_set(error, STATUS_SYSTEM, "cannot remove %s: %s", outputs->netcdf,
                           strerror(errno));
    return status;
}
