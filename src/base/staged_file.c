#include "base/staged_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a, 32 bit. */
static unsigned name_hash(const char *target)
{
    const char *name = strrchr(target, '/');
    unsigned hash = 2166136261u;
    for (const char *c = name ? name + 1 : target; *c; ++c)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return hash;
}

#define NAME_PREFIX ".roofsweep-"
enum { NAME_LENGTH = sizeof NAME_PREFIX - 1 + 16, HASH_LENGTH = 8 };

/* The first half of the digits identifies the output. The second half is random, so that nobody can
 * create the file first. */
static bool name_make(const struct target *target, char name[TARGET_PATH])
{
    unsigned number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    snprintf(name, TARGET_PATH, "%s/" NAME_PREFIX "%08x%08x", target->folder,
             name_hash(target->path), number);
    return true;
}

/* Opens a new file in the target's folder and locks it, so that staged_file_sweep of other
 * processes leaves it alone. (On a file system without locks staged_file_sweep removes nothing.)
 * Sets `name` to the file's name, or to the name that a nameless file may get. Makes a new file if
 * another process removes this one before it is locked. */
static int open_aside(const struct target *target, mode_t mode, bool nameless,
                      char name[TARGET_PATH])
{
    enum { TRIES = 3 };
    const int flags = nameless ? O_TMPFILE : O_CREAT | O_EXCL | O_NOFOLLOW;
    struct stat info;
    for (int i = 0; i < TRIES && name_make(target, name); ++i) {
        int fd = open(nameless ? target->folder : name, O_RDWR | O_CLOEXEC | flags, mode);
        if (fd >= 0)
            flock(fd, LOCK_EX | LOCK_NB);
        if (fd < 0 || nameless || (fstat(fd, &info) == 0 && info.st_nlink > 0))
            return fd;
        close(fd);
    }
    return -1;
}

static bool name_link(int fd, const char *name)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

static void block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

static bool is_name(const char *name, const char *start)
{
    return strlen(name) == NAME_LENGTH && strncmp(name, start, strlen(start)) == 0 &&
           strspn(name + strlen(NAME_PREFIX), "0123456789abcdef") == 16;
}

/* Removes the file if it can be locked: then its process has ended. */
static void sweep_file(int folder, const char *name)
{
    struct stat info;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

void staged_file_sweep(const char *output)
{
    char start[sizeof NAME_PREFIX + HASH_LENGTH];
    struct target target;
    if (target_open(output, true, &target, &(struct error){""}))
        return;
    snprintf(start, sizeof start, NAME_PREFIX "%08x", name_hash(target.path));
    DIR *folder = opendir(target.folder);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (is_name(entry->d_name, start))
            sweep_file(dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
    target_close(&target);
}

enum status staged_file_open(struct staged_file *file, const char *output, struct error *error)
{
    /* staged_file_publish reports a link that is not trusted. */
    if (target_open(output, true, &file->target, error))
        TRY(target_open(output, false, &file->target, error));
    block_signals(&file->signals);
    file->fd = open_aside(&file->target, 0600, true, file->path);
    file->named = file->fd < 0;
    if (file->named)
        file->fd = open_aside(&file->target, 0600, false, file->path);
    if (file->fd < 0)
        error_set(error, STATUS_SYSTEM, "cannot write into its folder: %s", strerror(errno));
    if (!file->named || file->fd < 0)
        pthread_sigmask(SIG_SETMASK, &file->signals, NULL);
    if (file->fd >= 0)
        return STATUS_OK;
    target_close(&file->target);
    return STATUS_SYSTEM;
}

enum status staged_file_show(struct staged_file *file, struct error *error)
{
    if (file->named)
        return STATUS_OK;
    block_signals(&file->signals);
    file->named = name_link(file->fd, file->path);
    if (file->named)
        return STATUS_OK;
    error_set(error, STATUS_SYSTEM, "%s: %s", file->path, strerror(errno));
    pthread_sigmask(SIG_SETMASK, &file->signals, NULL);
    return STATUS_SYSTEM;
}

void staged_file_hide(struct staged_file *file)
{
    if (!file->named)
        return;
    unlink(file->path);
    file->named = false;
    pthread_sigmask(SIG_SETMASK, &file->signals, NULL);
}

/* Renames the file unless the target exists. Where RENAME_NOREPLACE is missing, a hard link does
 * the same. Where both are missing, an empty file reserves the target until the rename replaces
 * it. */
static bool rename_new(const char *name, const char *target)
{
    if (renameat2(AT_FDCWD, name, AT_FDCWD, target, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && !file_lacks(errno))
        return false;
    if (link(name, target) == 0)
        return unlink(name) == 0;
    if (errno != EPERM && !file_lacks(errno))
        return false;
    int reserved = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (reserved < 0)
        return false;
    close(reserved);
    if (rename(name, target) == 0)
        return true;
    int cause = errno;
    unlink(target);
    errno = cause;
    return false;
}

/* Gives the file its final name. A nameless file gets that name by a link; if it must replace
 * another file, it first gets its temporary name. */
static bool place(int fd, const char *name, bool *named, const char *target, bool replace)
{
    if (!*named && name_link(fd, target))
        return true;
    if (!*named && replace && errno == EEXIST)
        *named = name_link(fd, name);
    if (!*named || (replace ? rename(name, target) != 0 : !rename_new(name, target)))
        return false;
    *named = false;
    return true;
}

/* As staged_file_publish, without the sync of the folder. False: errno says why. */
static bool copy_to(int from, const struct target *target, const char *path, char *published,
                    bool nameless)
{
    char name[TARGET_PATH], spare[LINK_TARGET];
    int fd = open_aside(target, 0666, nameless, name);
    bool named = fd >= 0 && !nameless, done = false;
    struct stat info;
    if (published)
        snprintf(published, LINK_TARGET, "%s", path);
    if (fd >= 0 && fstat(from, &info) == 0 && file_copy(from, fd, info.st_size) && fsync(fd) == 0) {
        done = place(fd, name, &named, target->path, !published);
        for (int i = 0; published && !done && errno == EEXIST && i < SPARE_NUMBERS; ++i) {
            spare_name(path, "", i, published);
            spare_name(target->path, "", i, spare);
            done = place(fd, name, &named, spare, false);
        }
    }
    int cause = errno;
    if (named)
        unlink(name);
    if (fd >= 0)
        close(fd); /* after fsync an error of close loses nothing */
    errno = cause;
    return done;
}

/* Signals are blocked as long as the temporary name exists. */
static enum status publish_to(int from, const struct target *target, const char *path,
                              char *published, struct error *error)
{
    sigset_t before;
    enum status status;
    block_signals(&before);
    if (copy_to(from, target, path, published, true) ||
        copy_to(from, target, path, published, false))
        status = folder_sync(target->path, error);
    else
        status =
            error_set(error, STATUS_SYSTEM, "cannot write into its folder: %s", strerror(errno));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum status staged_file_publish(const struct staged_file *file, const char *path,
                                char published[LINK_TARGET], struct error *error)
{
    struct target target;
    enum status status = target_open(path, !published, &target, error);
    TRY(error_prefix(error, status, "%s", path));
    status = publish_to(file->fd, &target, path, published, error);
    target_close(&target);
    return error_prefix(error, status, "%s", path);
}

enum status staged_file_try(const char *output, struct error *error)
{
    struct staged_file file;
    char published[LINK_TARGET];
    sigset_t before;
    TRY(staged_file_open(&file, output, error));
    struct target trial = file.target;
    if (!name_make(&file.target, trial.path)) {
        staged_file_close(&file);
        return error_set(error, STATUS_SYSTEM, "no random number: %s", strerror(errno));
    }
    block_signals(&before); /* until the name is gone */
    enum status status = publish_to(file.fd, &trial, trial.path, published, error);
    if (status == STATUS_OK) /* now the file exists and is replaced */
        status = publish_to(file.fd, &trial, trial.path, NULL, error);
    if (unlink(trial.path) != 0 && status == STATUS_OK)
        status = error_set(error, STATUS_SYSTEM, "cannot remove a file from its folder: %s",
                           strerror(errno));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    staged_file_close(&file);
    return status;
}

void staged_file_close(struct staged_file *file)
{
    staged_file_hide(file);
    bool cut = ftruncate(file->fd, 0) == 0;
    (void)cut; /* if this fails, the blocks are freed when the process ends */
    close(file->fd);
    target_close(&file->target);
}
