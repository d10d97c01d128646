#include "program/run/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

void descendants_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Reads "PID (NAME) STATE PARENT ..."; NAME may hold any text. -1: the process has ended. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512], *end;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    end = strrchr(text, ')');
    return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : -1;
}

struct entry {
    pid_t pid, parent;
    bool ours; /* a descendant of this process */
};

static int entry_compare(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

static bool entry_kill(struct entry *entry, const struct entry *list, size_t count, pid_t own)
{
    const struct entry key = {.pid = entry->parent};
    const struct entry *parent = bsearch(&key, list, count, sizeof *list, entry_compare);
    entry->ours = entry->parent == own || (parent && parent->ours);
    return entry->ours && (kill(entry->pid, SIGKILL), true);
}

/* Kills all descendants at once, however deep: a chain of hundreds would take a scan of /proc for
 * each level. The kernel gives numbers out in turn, so none is reused within a scan. */
static void kill_descendants(void)
{
    DIR *folder = opendir("/proc");
    struct entry *list = NULL;
    size_t count = 0;
    pid_t own = getpid();
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]) && ARRAY_GROW(list, count))
            list[count++] = (struct entry){.pid = (pid_t)strtol(entry->d_name, NULL, 10),
                                           .parent = parent_of(entry->d_name)};
    closedir(folder);
    if (list)
        qsort(list, count, sizeof *list, entry_compare);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < count; ++i)
            more |= !list[i].ours && entry_kill(&list[i], list, count, own);
    }
    free(list);
}

bool descendants_end(double seconds)
{
    double deadline = clock_monotonic() + seconds, pause = 1e-3;
    for (;;) {
        kill_descendants();
        pid_t reaped;
        while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (reaped < 0 && errno == ECHILD)
            return true;
        if (clock_monotonic() > deadline)
            return false;
        clock_sleep(pause);
        pause = fmin(2 * pause, 0.05);
    }
}
