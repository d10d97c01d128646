#include "base/link.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A link's text is meant from the folder of the link. */
static bool step(const char *link, const char *text, char next[LINK_TARGET])
{
    const char *slash = *text == '/' ? NULL : strrchr(link, '/');
    int folder = slash ? (int)(slash - link) + 1 : 0;
    return snprintf(next, LINK_TARGET, "%.*s%s", folder, link, text) < LINK_TARGET;
}

enum status link_follow(const char *path, char target[LINK_TARGET], struct error *error)
{
    enum { STEPS_MAX = 40 }; /* as Linux itself */
    char at[LINK_TARGET], next[LINK_TARGET], text[LINK_TARGET];
    if (snprintf(at, sizeof at, "%s", path) >= LINK_TARGET)
        return error_set(error, STATUS_SYSTEM, "%s: the name is too long", path);
    for (int i = 0; i < STEPS_MAX; ++i) {
        ssize_t length = readlink(at, text, sizeof text - 1);
        if (length < 0) { /* no link, or nothing */
            strcpy(target, at);
            return STATUS_OK;
        }
        text[length] = '\0';
        if (!step(at, text, next))
            return error_set(error, STATUS_SYSTEM, "%s: the name that it links to is too long",
                             path);
        strcpy(at, next);
    }
    return error_set(error, STATUS_SYSTEM, "%s: its links lead in a circle", path);
}
