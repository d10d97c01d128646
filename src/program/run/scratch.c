#include "program/run/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The end of a folder's name, which mkdtemp replaces. The name of the host comes before it, because
 * a lock may be valid on one host only. */
static const char unique[] = "XXXXXX";

enum { FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, DEPTH = 200 };

enum status scratch_create(struct scratch *scratch, struct error *error)
{
    const char *temporary = getenv("TMPDIR");
    char host[65] = "";
    struct scratch created;
    gethostname(host, sizeof host - 1);
    for (bool swept = false;; swept = true) {
        snprintf(created.path, sizeof created.path, "%.3900s/roofsweep-program-%s-%s",
                 temporary && *temporary ? temporary : "/tmp", host, unique);
        if (!swept) /* before the folder is made: it should be short without a reaper */
            scratch_sweep(created.path);
        const bool made = mkdtemp(created.path) != NULL;
        created.descriptor = made ? open(created.path, FOLDER_FLAGS) : -1;
        if (made && created.descriptor < 0 && errno == ENOENT)
            continue; /* another process swept the folder before this one opened it */
        if (created.descriptor < 0)
            return error_set(error, STATUS_FAILED, "%s: %s; TMPDIR names another place",
                             created.path, strerror(errno));
        flock(created.descriptor, LOCK_EX);
        if (access(created.path, F_OK) == 0)
            break;
        close(created.descriptor); /* another process swept the folder before this one locked it */
    }
    *scratch = created;
    return STATUS_OK;
}

/* Removes a file or folder. Contents deeper than `depth` remain, since each level takes a
 * descriptor and stack. */
static void tree_remove(int parent, const char *name, int depth)
{
    int descriptor = depth > 0 ? openat(parent, name, FOLDER_FLAGS) : -1;
    if (depth > 0 && descriptor < 0 && errno == EACCES && fchmodat(parent, name, S_IRWXU, 0) == 0)
        descriptor = openat(parent, name, FOLDER_FLAGS);
    DIR *folder = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (folder) {
        fchmod(descriptor, S_IRWXU); /* files in a read-only folder cannot be removed */
        for (const struct dirent *entry; (entry = readdir(folder));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                tree_remove(descriptor, entry->d_name, depth - 1);
        closedir(folder);
    }
    unlinkat(parent, name, folder ? AT_REMOVEDIR : 0);
}

void scratch_remove(struct scratch *scratch)
{
    tree_remove(AT_FDCWD, scratch->path, DEPTH);
    close(scratch->descriptor);
}

void scratch_sweep(const char *path)
{
    char *parent = strdup(path), *name = parent ? strrchr(parent, '/') : NULL;
    if (name) { /* split into parent and pattern, with "?" for each character that mkdtemp made */
        *name++ = '\0';
        memset(name + strlen(name) - strlen(unique), '?', strlen(unique));
    }
    DIR *folder = name ? opendir(parent) : NULL;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        struct stat about;
        if (fnmatch(name, entry->d_name, 0) != 0)
            continue;
        int descriptor = openat(dirfd(folder), entry->d_name, FOLDER_FLAGS);
        if (descriptor < 0)
            continue;
        if (fstat(descriptor, &about) == 0 && about.st_uid == geteuid() &&
            flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            tree_remove(dirfd(folder), entry->d_name, DEPTH);
        close(descriptor);
    }
    if (folder)
        closedir(folder);
    free(parent);
}

enum status scratch_each(const struct scratch *scratch, scratch_take *take, void *argument,
                         struct error *error)
{
    enum status status = STATUS_OK;
    int descriptor = openat(scratch->descriptor, ".", FOLDER_FLAGS);
    DIR *folder = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (!folder)
        return error_set(error, STATUS_FAILED, "%s: %s", scratch->path, strerror(errno));
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(folder));) {
        struct stat about = {0};
        const char *name = entry->d_name;
        if (*name == '.' ||
            (fstatat(descriptor, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode)))
            continue;
        if (!S_ISREG(about.st_mode)) {
            status = error_set(error, STATUS_FAILED,
                               "%s/%s must be a regular file, not a link or a pipe", scratch->path,
                               name);
            break;
        }
        int opened = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        FILE *file = opened >= 0 ? fdopen(opened, "r") : NULL;
        status = file ? take(name, file, argument, error)
                      : error_set(error, STATUS_FAILED, "%s/%s: %s", scratch->path, name,
                                  strerror(errno));
        if (file)
            fclose(file);
    }
    closedir(folder);
    return status;
}
