#include "results/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/staged_file.h"
#include "base/target.h"

static bool exists(const char *path)
{
    struct stat unused;
    return lstat(path, &unused) == 0;
}

/* A missing file is no error; check_output reports a missing folder. */
static enum status check_file(const char *path, struct error *error)
{
    struct stat file;
    bool there = stat(path, &file) == 0;
    if (!there && errno != ENOENT)
        return error_set(error, STATUS_USAGE, "cannot write %s: %s", path, strerror(errno));
    if (there ? !S_ISREG(file.st_mode) : path[strlen(path) - 1] == '/')
        return error_set(error, STATUS_USAGE,
                         "cannot write %s: it is no regular file; --output names another", path);
    return STATUS_OK;
}

static enum status refuse(const char *path, struct error *error)
{
    error_prefix(error, STATUS_USAGE, "cannot write %s", path);
    return error_append(error, STATUS_USAGE, "; --output names another");
}

/* The folder of the file must be writable; for a link, the folder of its target. */
static enum status check_output(const char *path, struct error *error)
{
    struct target target;
    TRY(check_file(path, error));
    enum status status = target_open(path, true, &target, error);
    if (status == STATUS_OK) {
        if (access(target.folder, W_OK | X_OK) != 0)
            status = error_set(error, STATUS_USAGE, "its folder: %s", strerror(errno));
        target_close(&target);
    }
    if (status)
        return refuse(path, error);
    /* A journal may have the only copy of rows, so no option lets a result file replace it. */
    return journal_recognised(path)
               ? error_set(error, STATUS_USAGE,
                           "cannot write %s: it is a journal; --output names another", path)
               : STATUS_OK;
}

/* Only a journal may be replaced, never another file with this name. With --resume journal_read
 * refuses such files. */
static enum status check_journal(const char *path, bool resume, struct error *error)
{
    struct stat file;
    TRY(check_file(path, error));
    if (!resume && stat(path, &file) == 0 && file.st_size > 0 && !journal_recognised(path))
        return error_set(error, STATUS_USAGE,
                         "%s is no journal of roofsweep, but has a journal's name; move it, or "
                         "choose another --output",
                         path);
    return STATUS_OK;
}

enum status outputs_check_input(const struct outputs *outputs, const char *input, const char *what,
                                struct error *error)
{
    const char *const files[] = {outputs->netcdf, outputs->journal};
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i)
        if (file_same(files[i], input) || strcmp(files[i], input) == 0)
            return error_set(error, STATUS_USAGE,
                             "cannot write %s: it is %s; --output names another", files[i], what);
    return STATUS_OK;
}

static bool is_netcdf(const char *path)
{
    static const char hdf5[] = {'\x89', 'H', 'D', 'F'};
    return file_begins(path, hdf5, sizeof hdf5);
}

void outputs_journal_of(const char *path, char journal[OUTPUTS_JOURNAL])
{
    const char *ending = strrchr(path, '.');
    const bool result = (ending && strcmp(ending, ".nc") == 0) || is_netcdf(path);
    snprintf(journal, OUTPUTS_JOURNAL, "%.*s%s", OUTPUTS_PATH - 1, path, result ? ".journal" : "");
}

enum status outputs_check_journal(const char *journal, struct error *error)
{
    if (is_netcdf(journal))
        return error_set(error, STATUS_USAGE,
                         "%.400s is a result file; its journal is %.400s.journal", journal,
                         journal);
    return STATUS_OK;
}

enum status outputs_check_gathered(const char *journal, const char *path, bool overwrite,
                                   struct error *error)
{
    if (access(journal, F_OK) != 0)
        return error_set(error, STATUS_USAGE,
                         "%s: %s; --gather reads the file OUTPUT.journal that a sweep wrote",
                         journal, strerror(errno));
    if (file_same(journal, path))
        return error_set(error, STATUS_USAGE,
                         "cannot write %s: it is the journal; --output names another", path);
    char own[OUTPUTS_JOURNAL], holder[HOLDER_TEXT];
    snprintf(own, sizeof own, "%s.journal", path);
    if (file_same(journal, own) && journal_in_use(journal, holder))
        return error_set(error, STATUS_USAGE,
                         "%s is in use by %s; a job writes %s at its end; --output names another",
                         journal, holder, path);
    enum status status = check_output(path, error);
    if (status == STATUS_OK && !overwrite && exists(path))
        status = error_set(error, STATUS_USAGE,
                           "%s exists; --overwrite replaces it, --output names another", path);
    return status;
}

enum status outputs_name(const char *path, bool resume, bool overwrite, struct outputs *outputs,
                         struct error *error)
{
    struct outputs named = {.resume = resume, .overwrite = overwrite};
    if (strlen(path) >= sizeof named.netcdf)
        return error_set(error, STATUS_USAGE, "the output's name has more than %zu characters",
                         sizeof named.netcdf - 1);
    strcpy(named.netcdf, path);
    snprintf(named.journal, sizeof named.journal, "%s.journal", path);
    *outputs = named;
    return STATUS_OK;
}

enum status outputs_check(const struct outputs *outputs, struct error *error)
{
    TRY(check_output(outputs->netcdf, error));
    TRY(check_journal(outputs->journal, outputs->resume, error));
    bool netcdf = exists(outputs->netcdf), journal = exists(outputs->journal);
    if (!outputs->resume && !outputs->overwrite && (netcdf || journal))
        return error_set(error, STATUS_USAGE,
                         "%s exists%s; --resume goes on with it, --overwrite replaces it, --output "
                         "names another",
                         netcdf ? outputs->netcdf : outputs->journal,
                         netcdf ? "" : " (an unfinished sweep)");
    if (outputs->resume && netcdf && !journal)
        return error_set(error, STATUS_USAGE,
                         "cannot resume %s: its journal %s is gone; --overwrite begins again",
                         outputs->netcdf, outputs->journal);
    return staged_file_try(outputs->netcdf, error) ? refuse(outputs->netcdf, error) : STATUS_OK;
}

bool outputs_replaces(const struct outputs *outputs)
{
    struct stat now;
    return outputs->overwrite ||
           (outputs->resume && outputs->inode && stat(outputs->netcdf, &now) == 0 &&
            now.st_dev == outputs->device && now.st_ino == outputs->inode);
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
                                const struct log *log, struct journal *journal,
                                struct results **results, struct error *error)
{
    struct results *earlier;
    bool torn;
    enum status status = journal_read(journal_path(journal), &earlier, &torn, error);
    if (status &&
        journal_check_path(journal, &(struct error){""})) /* another process removed the file */
        status = journal_read(journal_path(journal), &earlier, &torn, error);
    TRY(status);
    journal_warn_left_out(outputs->journal, torn, earlier, log);
    status = check_settings(outputs, earlier, settings, error);
    if (status)
        results_destroy(earlier);
    else
        *results = earlier;
    return status;
}

enum status outputs_earlier(struct outputs *outputs, const char *settings, const struct log *log,
                            struct journal **journal, struct results **results, struct error *error)
{
    struct journal *older = NULL;
    struct stat before;
    enum status status = STATUS_OK;
    if (exists(outputs->journal))
        status = journal_open(outputs->journal,
                              !outputs->resume     ? JOURNAL_REPLACE
                              : outputs->any_owner ? JOURNAL_ADOPT
                                                   : JOURNAL_RESUME,
                              &older, error);
    TRY(status);
    if (older && stat(outputs->netcdf, &before) == 0) {
        outputs->device = before.st_dev;
        outputs->inode = before.st_ino;
    }
    if (older && outputs->resume)
        status = read_earlier(outputs, settings, log, older, results, error);
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
    struct target target;
    if (!*journal)
        TRY(journal_open(outputs->journal, JOURNAL_CREATE, journal, error));
    if (!outputs->overwrite)
        return STATUS_OK;
    enum status status = target_open(outputs->netcdf, true, &target, error);
    TRY(error_prefix(error, status, "%s", outputs->netcdf));
    if (unlink(target.path) != 0 && errno != ENOENT)
        status = error_set(error, STATUS_SYSTEM, "cannot remove %s: %s", outputs->netcdf,
                           strerror(errno));
    target_close(&target);
    return status;
}
