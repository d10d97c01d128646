#include "base/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* A walk along a path, which opens each folder from the one before. */
struct walk {
    struct target at;
    int links; /* number of links followed so far */
    char rest[LINK_TARGET];
};

void target_close(struct target *target)
{
    if (target->descriptor >= 0)
        close(target->descriptor);
}

/* Continues with the target of the link, then with `rest`. Applies the rule of
 * fs.protected_symlinks to every folder. */
static enum status follow_link(struct walk *walk, const char *name, uid_t owner, const char *text,
                               const char *rest, struct error *error)
{
    enum { LINKS_MAX = 40 }; /* the limit of Linux itself */
    char user[OWNER_TEXT], whole[LINK_TARGET];
    struct stat around;
    bool closed = fstatat(walk->at.descriptor, ".", &around, 0) == 0 &&
                  owner_is_trusted(around.st_uid) && !(around.st_mode & (S_IWGRP | S_IWOTH));
    owner_format(owner, user);
    if (!closed && !owner_is_trusted(owner))
        return error_set(error, STATUS_SYSTEM,
                         "'%.200s' is a link of user %s to %.300s: links of others are not "
                         "followed; name the file itself",
                         name, user, text);
    if (++walk->links > LINKS_MAX ||
        snprintf(whole, sizeof whole, "%s%s%s", text, *rest ? "/" : "", rest) >= LINK_TARGET)
        return error_set(error, STATUS_SYSTEM,
                         "'%.200s': its links lead in a circle, or to a name that is too long",
                         name);
    strcpy(walk->rest, whole);
    return STATUS_OK;
}

/* Goes to the next folder, or follows the next link. *end: the rest is the file's name. */
static enum status step(struct walk *walk, bool follow, bool *end, struct error *error)
{
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    char name[LINK_TARGET], text[LINK_TARGET] = "";
    struct stat about;
    size_t length = strcspn(walk->rest, "/");
    const char *rest = walk->rest + length + strspn(walk->rest + length, "/");
    snprintf(name, sizeof name, "%.*s", length ? (int)length : 1, walk->rest);
    /* O_DIRECTORY makes an automounter mount the folder. */
    int inner = *rest || *name == '/' ? openat(walk->at.descriptor, name, flags | O_DIRECTORY) : -1;
    if (inner >= 0) {
        target_close(&walk->at);
        walk->at.descriptor = inner;
        memmove(walk->rest, rest, strlen(rest) + 1);
        return STATUS_OK;
    }
    int file = openat(walk->at.descriptor, name, flags), cause = file < 0 ? errno : ENOTDIR;
    bool found = file >= 0 && fstat(file, &about) == 0;
    ssize_t got = found && (*rest || follow) ? readlinkat(file, "", text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    if (got > 0)
        return follow_link(walk, name, about.st_uid, text, rest, error);
    *end = !*rest && (file >= 0 || cause == ENOENT);
    return *end ? STATUS_OK
                : error_set(error, STATUS_SYSTEM, "'%.200s': %s", name, strerror(cause));
}

enum status target_open(const char *path, bool follow, struct target *target, struct error *error)
{
    struct walk walk = {.at = {AT_FDCWD, ".", ""}};
    bool end = false;
    enum status status = STATUS_OK;
    if (snprintf(walk.rest, sizeof walk.rest, "%s", path) >= LINK_TARGET)
        status = error_set(error, STATUS_SYSTEM, "the name is too long");
    while (status == STATUS_OK && !end)
        status = step(&walk, follow, &end, error);
    if (status) {
        target_close(&walk.at);
        return status;
    }
    *target = walk.at;
    if (target->descriptor >= 0)
        snprintf(target->folder, TARGET_FOLDER, "/proc/self/fd/%d", target->descriptor);
    snprintf(target->path, TARGET_PATH, "%s/%.255s", target->folder, walk.rest);
    return STATUS_OK;
}
