#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool file_lacks(int code)
{
    enum { ENOTSUPP = 524 }; /* internal to Linux' NFS, but Cray's DVS passes it to programs */
    return code == ENOLCK || code == ENOSYS || code == EOPNOTSUPP || code == ENOTSUPP;
}

enum status folder_sync(const char *path, struct error *error)
{
    char *copy = strdup(path);
    if (!copy)
        return error_set(error, STATUS_SYSTEM, "no memory");
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    enum status status = STATUS_OK;
    /* EINVAL: this file system cannot sync folders. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL && !file_lacks(errno)))
        status =
            error_set(error, STATUS_SYSTEM, "cannot make its folder durable: %s", strerror(errno));
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

enum status file_open(const char *path, FILE **stream, struct error *error)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool opened = fd >= 0 && fstat(fd, &info) == 0, regular = opened && S_ISREG(info.st_mode);
    FILE *made = regular ? fdopen(fd, "r") : NULL;
    int cause = errno;
    if (made) {
        *stream = made;
        return STATUS_OK;
    }
    if (fd >= 0)
        close(fd);
    return opened && !regular
               ? error_set(error, STATUS_USAGE, "%s: it is no regular file", path)
               : error_set(error, STATUS_SYSTEM, "%s: cannot open: %s", path, strerror(cause));
}

bool file_begins(const char *path, const char *bytes, size_t length)
{
    enum { MOST = 64 };
    char start[MOST];
    FILE *stream = NULL;
    if (file_open(path, &stream, &(struct error){""}))
        return false;
    size_t got = fread(start, 1, length < MOST ? length : MOST, stream);
    fclose(stream);
    return got > 0 && memcmp(start, bytes, got) == 0;
}

bool file_write(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            data += written;
            length -= (size_t)written;
        }
    }
    return true;
}

bool file_copy(int from, int to, off_t length)
{
    char block[1 << 16];
    ssize_t got;
    for (off_t at = 0; at < length; at += got) {
        size_t rest = (size_t)(length - at);
        got = pread(from, block, rest < sizeof block ? rest : sizeof block, at);
        if (got <= 0 || !file_write(to, block, (size_t)got))
            return false;
    }
    return true;
}

bool file_equal(int a, int b, off_t length)
{
    char of_a[1 << 16], of_b[1 << 16];
    for (off_t at = 0; at < length; at += (off_t)sizeof of_a) {
        off_t rest = length - at, size = (off_t)sizeof of_a;
        size = rest < size ? rest : size;
        if (pread(a, of_a, (size_t)size, at) != size || pread(b, of_b, (size_t)size, at) != size ||
            memcmp(of_a, of_b, (size_t)size) != 0)
            return false;
    }
    return true;
}

bool file_same(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

bool owner_is_trusted(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

void owner_format(uid_t owner, char text[OWNER_TEXT])
{
    const struct passwd *user = getpwuid(owner);
    if (user)
        snprintf(text, OWNER_TEXT, "%.48s", user->pw_name);
    else
        snprintf(text, OWNER_TEXT, "%ld", (long)owner);
}

void lock_holder(int fd, char text[HOLDER_TEXT])
{
    char line[256], path[32], user[OWNER_TEXT] = "unknown";
    struct stat own, about;
    unsigned upper, lower;
    unsigned long inode;
    int process;
    FILE *locks = fopen("/proc/locks", "re");
    snprintf(text, HOLDER_TEXT, "another job");
    while (locks && fstat(fd, &own) == 0 && fgets(line, sizeof line, locks))
        if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &process, &upper, &lower, &inode) ==
                4 &&
            makedev(upper, lower) == own.st_dev && inode == own.st_ino) {
            snprintf(path, sizeof path, "/proc/%d", process);
            if (stat(path, &about) == 0)
                owner_format(about.st_uid, user);
            snprintf(text, HOLDER_TEXT, "process %d of user %s", process, user);
        }
    if (locks)
        fclose(locks);
}

void spare_name(const char *path, const char *suffix, int index, char name[LINK_TARGET])
{
    const char *temporary = getenv("TMPDIR"), *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    const char *const folders[] = {"", "./", temporary && *temporary ? temporary : "/tmp"};
    size_t length = strlen(file), tail = strlen(suffix);
    int place = index / SPARE_NUMBERS;
    if (tail > length || strcmp(file + length - tail, suffix) != 0)
        tail = 0;
    snprintf(name, LINK_TARGET, "%.*s%.2000s%s%.*s.spare-%d%s", place ? 0 : (int)(file - path),
             path, folders[place], place == 2 ? "/" : "", (int)(length - tail), file,
             index % SPARE_NUMBERS + 1, file + length - tail);
}

ssize_t line_read(FILE *stream, size_t most, char **line, size_t *size)
{
    size_t length = 0;
    int byte = 0;
    while (length <= most && byte != '\n' && (byte = getc_unlocked(stream)) != EOF) {
        if (length == *size) {
            char *grown = realloc(*line, *size ? 2 * *size : 4096);
            if (!grown)
                return -1;
            *line = grown;
            *size = *size ? 2 * *size : 4096;
        }
        (*line)[length++] = (char)byte;
    }
    return byte == EOF && ferror(stream) ? -1 : (ssize_t)length;
}
