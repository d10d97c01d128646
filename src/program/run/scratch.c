#include "program/run/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The end of a folder's name, which mkdtemp replaces. The name of the host comes before it, because
 * a lock may be valid on one host only. */
static const char unique[] = "XXXXXX";

enum { FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

enum status scratch_create(struct scratch *scratch, struct error *error)
{
    const char *named = getenv("TMPDIR"), *temporary = named && *named ? named : "/tmp";
    char whole[PATH_MAX], host[65] = "";
    struct scratch created;
    if (!realpath(temporary, whole)) /* programs run in another folder */
        return error_set(error, STATUS_FAILED, "%s: %s; TMPDIR names another place", temporary,
                         strerror(errno));
    gethostname(host, sizeof host - 1);
    for (bool swept = false;; swept = true) {
        snprintf(created.path, sizeof created.path, "%.3900s/roofsweep-program-%s-%s", whole, host,
                 unique);
        if (!swept) /* before mkdtemp, so that a reaper soon guards the folder */
            scratch_sweep(created.path);
        const bool made = mkdtemp(created.path) != NULL;
        created.descriptor = made ? open(created.path, FOLDER_FLAGS) : -1;
        if (made && created.descriptor < 0 && errno == ENOENT)
            continue; /* another process swept the folder before this process opened it */
        if (created.descriptor < 0)
            return error_set(error, STATUS_FAILED, "%s: %s; TMPDIR names another place",
                             created.path, strerror(errno));
        flock(created.descriptor, LOCK_EX);
        if (access(created.path, F_OK) == 0)
            break;
        /* Another process swept the folder before this process locked it. */
        close(created.descriptor);
    }
    *scratch = created;
    return STATUS_OK;
}

/* -1: no folder, or not this user's. */
static int folder_open(int parent, const char *name)
{
    int descriptor = openat(parent, name, FOLDER_FLAGS);
    if (descriptor < 0 && errno == EACCES && fchmodat(parent, name, S_IRWXU, 0) == 0)
        descriptor = openat(parent, name, FOLDER_FLAGS);
    if (descriptor >= 0)
        fchmod(descriptor, S_IRWXU); /* files in a read-only folder cannot be removed */
    return descriptor;
}

/* Removes the files of the folder `top`, or of a folder in it. Folders in a subfolder move to
 * `top`, so that any depth takes few descriptors and little stack. Returns whether anything has
 * changed. */
static bool folder_shrink(int folder, int top)
{
    bool changed = false;
    int again = openat(folder, ".", FOLDER_FLAGS);
    DIR *entries = again >= 0 ? fdopendir(again) : NULL;
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        char number[24];
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        int inner = folder_open(folder, name);
        snprintf(number, sizeof number, "%ju", (uintmax_t)entry->d_ino);
        if (inner >= 0 && folder != top) {
            changed |= renameat(folder, name, top, number) == 0;
        } else {
            changed |= inner >= 0 && folder_shrink(inner, top);
            changed |= unlinkat(folder, name, inner >= 0 ? AT_REMOVEDIR : 0) == 0;
        }
        if (inner >= 0)
            close(inner);
    }
    if (entries)
        closedir(entries);
    return changed;
}

static bool tree_remove(int parent, const char *name)
{
    int top = folder_open(parent, name);
    while (top >= 0 && folder_shrink(top, top))
        ;
    bool removed = unlinkat(parent, name, top >= 0 ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT;
    if (top >= 0)
        close(top);
    return removed;
}

bool scratch_remove(struct scratch *scratch)
{
    bool removed = tree_remove(AT_FDCWD, scratch->path);
    close(scratch->descriptor);
    return removed;
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
            tree_remove(dirfd(folder), entry->d_name);
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
