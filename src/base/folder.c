#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status folder_sync(const char *path, struct error *error)
{
    char *copy = strdup(path);
    if (!copy)
        return error_set(error, STATUS_SYSTEM, "%s: no memory", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    enum status status = STATUS_OK;
    /* EINVAL: this filesystem has no such thing for folders. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        status = error_set(error, STATUS_SYSTEM, "%s: cannot make its folder durable: %s", path,
                           strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

enum status folder_of_program(char *folder, size_t size, struct error *error)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0 || (size_t)length >= size)
        return error_set(error, STATUS_SYSTEM, "cannot read /proc/self/exe to find the workers");
    path[length] = '\0';
    snprintf(folder, size, "%s", dirname(path));
    return STATUS_OK;
}
