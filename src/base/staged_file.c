#include "base/staged_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"

enum status staged_file_open(struct staged_file *file, struct error *error)
{
    strcpy(file->path, "/dev/shm/roofsweep-XXXXXX");
    file->fd = mkostemp(file->path, O_CLOEXEC);
    if (file->fd < 0) {
        strcpy(file->path, "/tmp/roofsweep-XXXXXX");
        file->fd = mkostemp(file->path, O_CLOEXEC);
    }
    if (file->fd < 0)
        return error_set(error, STATUS_SYSTEM, "neither /dev/shm nor /tmp can be written: %s",
                         strerror(errno));
    return STATUS_OK;
}

void staged_file_hide(const struct staged_file *file)
{
    unlink(file->path);
}

static bool file_copy(int from, int to)
{
    char block[1 << 16];
    off_t at = 0;
    ssize_t got;
    while ((got = pread(from, block, sizeof block, at)) > 0) {
        ssize_t written = write(to, block, (size_t)got);
        if (written < 0 && errno != EINTR)
            return false;
        at += written > 0 ? written : 0;
    }
    return got == 0;
}

static enum status file_save(int from, const char *path, struct error *error)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    enum status status = STATUS_OK;
    if (fd < 0 || !file_copy(from, fd) || fsync(fd) != 0)
        status = error_set(error, STATUS_SYSTEM, "%s: cannot write: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

enum status staged_file_publish(const struct staged_file *file, const char *path,
                                struct error *error)
{
    char *temporary;
    if (asprintf(&temporary, "%s.tmp", path) < 0)
        return error_set(error, STATUS_SYSTEM, "%s: no memory", path);
    enum status status = file_save(file->fd, temporary, error);
    if (status == STATUS_OK && rename(temporary, path) != 0)
        status = error_set(error, STATUS_SYSTEM, "%s: cannot rename %s to it: %s", path, temporary,
                           strerror(errno));
    if (status == STATUS_OK)
        status = folder_sync(path, error);
    unlink(temporary);
    free(temporary);
    return status;
}

void staged_file_close(const struct staged_file *file)
{
    staged_file_hide(file);
    close(file->fd);
}
