#include "base/staged_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/link.h"

static void folder_of(const char *path, char folder[STAGED_PLACE])
{
    char copy[STAGED_PLACE];
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(folder, STAGED_PLACE, "%s", dirname(copy));
}

/* Nobody can guess it, and so nobody can be there first. */
static bool name_make(const char *folder, char name[STAGED_PATH])
{
    unsigned long long number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    snprintf(name, STAGED_PATH, "%s/.roofsweep-%016llx", folder, number);
    return true;
}

static int open_named(const char *folder, mode_t mode, char name[STAGED_PATH])
{
    if (!name_make(folder, name))
        return -1;
    return open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

static void block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

static double room_of(const char *folder)
{
    struct statvfs info;
    return statvfs(folder, &info) == 0 ? (double)info.f_bavail * (double)info.f_frsize : -1;
}

size_t staged_file_places(const char *output, double size, char places[STAGED_PLACES][STAGED_PLACE])
{
    char own[STAGED_PLACE], target[LINK_TARGET];
    struct error unused;
    const char *chosen = getenv("TMPDIR");
    folder_of(link_follow(output, target, &unused) == STATUS_OK ? target : output, own);
    const char *const all[] = {chosen && *chosen ? chosen : NULL, "/dev/shm", own};
    size_t count = 0;
    for (int roomy = 1; roomy >= 0; --roomy)
        for (size_t i = 0; i < STAGED_PLACES; ++i)
            if (all[i] && (room_of(all[i]) >= size) == roomy)
                snprintf(places[count++], STAGED_PLACE, "%s", all[i]);
    return count;
}

enum status staged_file_open(struct staged_file *file, const char *place, struct error *error)
{
    block_signals(&file->signals);
    file->fd = open_named(place, 0600, file->path);
    if (file->fd >= 0)
        return STATUS_OK;
    error_set(error, STATUS_SYSTEM, "folder '%s': %s", place, strerror(errno));
    pthread_sigmask(SIG_SETMASK, &file->signals, NULL);
    return STATUS_SYSTEM;
}

void staged_file_hide(const struct staged_file *file)
{
    unlink(file->path);
    pthread_sigmask(SIG_SETMASK, &file->signals, NULL);
}

int staged_file_obstacle(const struct staged_file *file)
{
    enum { BLOCKS = 64 }; /* more than what a failed write may have left free */
    static const char block[1 << 16];
    struct stat info;
    if (fstat(file->fd, &info) != 0)
        return errno;
    for (int i = 0; i < BLOCKS; ++i) {
        ssize_t written =
            pwrite(file->fd, block, sizeof block, info.st_size + (off_t)i * (off_t)sizeof block);
        if (written < 0 && errno != EINTR)
            return errno;
    }
    return 0;
}

static bool file_copy(int from, int to)
{
    char block[1 << 16];
    off_t at = 0;
    ssize_t got;
    while ((got = pread(from, block, sizeof block, at)) > 0) {
        ssize_t written = pwrite(to, block, (size_t)got, at);
        if (written < 0 && errno != EINTR)
            return false;
        at += written > 0 ? written : 0;
    }
    return got == 0 && fsync(to) == 0;
}

static bool copy_nameless(int from, const char *folder, char name[STAGED_PATH])
{
    char self[32];
    int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    bool named = fd >= 0 && file_copy(from, fd) && name_make(folder, name) &&
                 linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    if (fd >= 0)
        close(fd);
    return named;
}

static bool copy_named(int from, const char *folder, char name[STAGED_PATH])
{
    int fd = open_named(folder, 0666, name);
    if (fd < 0)
        return false;
    bool copied = file_copy(from, fd);
    int cause = errno;
    if (close(fd) != 0 && copied) {
        copied = false;
        cause = errno;
    }
    if (!copied)
        unlink(name);
    errno = cause;
    return copied;
}

static enum status replace(int from, const char *target, struct error *error)
{
    char folder[STAGED_PLACE], name[STAGED_PATH];
    folder_of(target, folder);
    if (!copy_nameless(from, folder, name) && !copy_named(from, folder, name))
        return error_set(error, STATUS_SYSTEM, "cannot write into the folder '%s': %s", folder,
                         strerror(errno));
    if (rename(name, target) == 0)
        return folder_sync(target, error);
    error_set(error, STATUS_SYSTEM, "cannot rename to it: %s", strerror(errno));
    unlink(name);
    return STATUS_SYSTEM;
}

/* Signals that end the process wait until the temporary name is gone again. */
enum status staged_file_publish(const struct staged_file *file, const char *path,
                                struct error *error)
{
    char target[LINK_TARGET];
    sigset_t before;
    enum status status = link_follow(path, target, error);
    if (status)
        return status;
    block_signals(&before);
    status = replace(file->fd, target, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status)
        error_prefix(error, "%s", path);
    return status;
}

void staged_file_close(const struct staged_file *file)
{
    bool cut = ftruncate(file->fd, 0) == 0;
    (void)cut; /* else its room is back at the end of the process */
    close(file->fd);
}
