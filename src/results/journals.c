#include "results/journals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "results/journal.h"

/* While they are joined. */
struct joining {
    const char *const *paths;
    char settings[sizeof((struct session *)0)->settings]; /* of the first session; "": none yet */
    const char *settings_path;
    size_t rows; /* of all of them, each by itself */
    int fd;
};

static int open_nameless(struct error *error)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder)
        folder = "/tmp";
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        char path[4096];
        snprintf(path, sizeof path, "%.4000s/.roofsweep-XXXXXX", folder);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
    }
    if (fd < 0)
        error_set(error, STATUS_SYSTEM, "no place in '%.800s' to join what was measured: %s",
                  folder, strerror(errno));
    return fd;
}

enum status journals_create(struct journals *journals, struct error *error)
{
    struct journals created = {.fd = open_nameless(error)};
    if (created.fd < 0)
        return STATUS_SYSTEM;
    snprintf(created.path, sizeof created.path, "/proc/self/fd/%d", created.fd);
    *journals = created;
    return STATUS_OK;
}

static enum status check_twice(const char *const *paths, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; ++i)
        for (size_t j = 0; j < i; ++j)
            if (file_same(paths[i], paths[j]))
                return error_set(error, STATUS_USAGE, "%.400s and %.400s are the same journal",
                                 paths[j], paths[i]);
    return STATUS_OK;
}

static enum status check_settings(struct joining *joining, const struct results *results,
                                  const char *path, struct error *error)
{
    for (size_t i = 0; i < results->session_count; ++i) {
        const char *settings = results->sessions[i].settings;
        if (!joining->settings_path) {
            snprintf(joining->settings, sizeof joining->settings, "%s", settings);
            joining->settings_path = path;
        } else if (strcmp(settings, joining->settings) != 0) {
            return error_set(
                error, STATUS_USAGE,
                "%.200s was measured with '%s', %.200s with '%s': their rows cannot be "
                "compared",
                joining->settings_path, joining->settings, path, settings);
        }
    }
    return STATUS_OK;
}

/* Each by itself first, so that an error names it. */
static enum status check(struct joining *joining, const char *path, struct error *error)
{
    struct results *results;
    bool torn;
    enum status status = journal_index(path, &results, &torn, error);
    if (status)
        return status;
    status = check_settings(joining, results, path, error);
    joining->rows += results->row_count;
    results_destroy(results);
    return status;
}

/* Whole lines: what lies behind the last newline was never acknowledged. */
static enum status append(const struct joining *joining, const char *path, struct error *error)
{
    FILE *from = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool written = from != NULL;
    ssize_t length;
    while (written && (length = getline(&line, &room, from)) > 0 && line[length - 1] == '\n')
        written = write(joining->fd, line, (size_t)length) == length;
    enum status status =
        written ? STATUS_OK
                : error_set(error, STATUS_SYSTEM, "cannot join %.800s: %s", path, strerror(errno));
    free(line);
    if (from)
        fclose(from);
    return status;
}

/* How many rows there are less than in all of them. */
static enum status count_replaced(const struct joining *joining, struct journals *journals,
                                  struct error *error)
{
    struct results *results;
    bool torn;
    enum status status = journal_index(journals->path, &results, &torn, error);
    if (status)
        return status;
    journals->replaced = joining->rows - results->row_count;
    results_destroy(results);
    return STATUS_OK;
}

enum status journals_join(const char *const *paths, size_t count, struct journals *journals,
                          struct error *error)
{
    struct joining joining = {.paths = paths};
    struct journals joined = {.fd = -1};
    enum status status = check_twice(paths, count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; ++i)
        status = check(&joining, paths[i], error);
    if (status)
        return status;
    status = journals_create(&joined, error);
    if (status)
        return status;
    joining.fd = joined.fd;
    for (size_t i = 0; i < count && status == STATUS_OK; ++i)
        status = append(&joining, paths[i], error);
    if (status == STATUS_OK)
        status = count_replaced(&joining, &joined, error);
    if (status == STATUS_OK)
        *journals = joined;
    else
        journals_close(&joined);
    return status;
}

void journals_close(struct journals *journals)
{
    if (journals->fd >= 0)
        close(journals->fd);
    journals->fd = -1;
}
