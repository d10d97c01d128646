#include "worker/lifeline.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A pipe or a socket that this process holds would never end for those who read from it. */
static void close_all(void)
{
    enum { MOST = 1024 };
    DIR *folder = opendir("/proc/self/fd");
    int open_ones[MOST], count = 0;
    const struct dirent *entry;
    while (folder && count < MOST && (entry = readdir(folder)))
        if (*entry->d_name != '.')
            open_ones[count++] = atoi(entry->d_name);
    if (folder)
        closedir(folder);
    for (int i = 0; i < count; ++i)
        close(open_ones[i]);
}

/* Waits for the worker's end. No signal ends it sooner but SIGKILL: some batch systems send theirs
 * to all processes of a job. The worker's number is not another's so soon. That the files are
 * closed tells the worker that its lifeline is there. */
static _Noreturn void watch(pid_t worker, char *name)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    /* So that nobody who looks for workers by their name finds this process. */
    size_t length = strlen(name);
    memset(name, 0, length);
    strncpy(name, "roofsweep-lifeline", length);
    prctl(PR_SET_NAME, "rs-lifeline");
    close_all();
    while (getppid() == worker)
        sigwaitinfo(&all, NULL);
    kill(-worker, SIGKILL);
    _exit(0);
}

/* Until the other process has left the worker's group, a signal that stops the group would stop it,
 * too: the worker waits for that. The pipe ends when the other process closes its files. */
static void watched(char *name)
{
    int ready[2];
    char none;
    pid_t worker = getpid();
    if (pipe(ready) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        watch(worker, name);
    close(ready[1]);
    while (pid > 0 && read(ready[0], &none, 1) < 0 && errno == EINTR)
        ;
    close(ready[0]);
}

/* A wrapper may stand between the two: then the worker leads no group, and the wrapper is who it
 * ends with. */
void lifeline_tie(char *name)
{
    struct ucred maker = {0}; /* of standard input's socket pair: the rank */
    socklen_t size = sizeof maker;
    pid_t parent = getppid(), worker = getpid();
    bool paired = getsockopt(STDIN_FILENO, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0;
    pid_t rank = paired ? maker.pid : 0; /* 0: standard input is something else */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || (rank > 0 && kill(rank, 0) != 0 && errno == ESRCH))
        kill(worker, SIGKILL);
    if (rank > 0 && getpgrp() == worker)
        watched(name);
}
