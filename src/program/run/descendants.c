#include "program/run/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

/* Kills children; their children become children of this process. */
static void kill_children(void)
{
    DIR *folder = opendir("/proc");
    pid_t own = getpid();
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]) && parent_of(entry->d_name) == own)
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    closedir(folder);
}

bool descendants_end(double seconds)
{
    double deadline = clock_monotonic() + seconds;
    for (;;) {
        kill_children();
        pid_t reaped;
        while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (reaped < 0 && errno == ECHILD)
            return true;
        if (clock_monotonic() > deadline)
            return false;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}
