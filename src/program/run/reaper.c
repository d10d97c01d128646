/* roofsweep-reaper: runs one command and ends all that it started; reaper.h has its contract. */
#include "program/run/reaper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "program/run/descendants.h"
#include "program/run/handback.h"
#include "program/run/scratch.h"

static const double patience = 5; /* s, for a process that hangs in a driver */

/* In the child. The kernel kills the command if the reaper is killed. It kills the command's group
 * when the worker dies and closes REAPER_LIFE, also where the reaper is stopped. */
static _Noreturn void become(const char *folder, char **words, pid_t reaper)
{
    struct pollfd life = {.fd = REAPER_LIFE, .events = POLLIN};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(REAPER_LIFE, F_SETOWN, -getpid());
    fcntl(REAPER_LIFE, F_SETSIG, SIGKILL);
    fcntl(REAPER_LIFE, F_SETFL, O_ASYNC);
    if (getppid() != reaper || poll(&life, 1, 0) > 0) /* dead before these calls */
        _exit(127);
    if (chdir(folder) != 0) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        _exit(127);
    }
    execvp(words[0], words);
    fprintf(stderr, "cannot run %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Until the command has ended, with *status, or the worker is dead. */
static void wait_for(pid_t command, int children, int *status)
{
    struct pollfd events[2] = {{.fd = REAPER_LIFE, .events = POLLIN},
                               {.fd = children, .events = POLLIN}};
    while (waitpid(command, status, WNOHANG) != command) {
        struct signalfd_siginfo info;
        if (poll(events, 2, -1) < 0) /* SIGCONT */
            continue;
        if (events[0].revents || read(children, &info, sizeof info) != sizeof info)
            return;
        /* An orphan of the command's. */
        siginfo_t ended = {0};
        while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0 &&
               ended.si_pid != command) {
            waitpid(ended.si_pid, NULL, 0);
            ended.si_pid = 0;
        }
    }
}

/* The worker has descriptors of its rank, as MPI's, which it hands down. */
static void close_inherited(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        int descriptor = atoi(entry->d_name); /* 0: "." and ".." */
        if (descriptor > REAPER_NEWS && descriptor != dirfd(folder))
            close(descriptor);
    }
    if (folder)
        closedir(folder);
}

static void nothing(int number)
{
    (void)number;
}

/* A program may stop its reaper, also after the worker's death. A timer runs on, and its signal
 * lets a process go on that is stopped. It is handled, since only then the timer goes on. */
static void never_stopped(void)
{
    const struct sigaction handled = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    const struct itimerspec each = {.it_interval = {.tv_sec = 1}, .it_value = {.tv_sec = 1}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
    timer_t timer;
    sigaction(SIGCONT, &handled, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &each, NULL);
}

int main(int argc, char **argv)
{
    struct reaper_news news = {0};
    sigset_t all, child;
    if (argc < 3) {
        fprintf(stderr, "usage: %s FOLDER COMMAND [ARGUMENT...]; roofsweep's workers start it\n",
                REAPER_PROGRAM);
        return 2;
    }
    fcntl(REAPER_LIFE, F_SETFD, FD_CLOEXEC);
    fcntl(REAPER_NEWS, F_SETFD, FD_CLOEXEC);
    close_inherited();
    /* Some batch systems send their signals to all processes of a job: only the worker decides. */
    sigfillset(&all);
    sigdelset(&all, SIGCONT);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int children = signalfd(-1, &child, SFD_CLOEXEC);
    never_stopped();
    descendants_adopt();
    double start = clock_monotonic();
    pid_t worker = getppid(), own = getpid(), command = fork();
    if (command == 0)
        become(argv[1], argv + 2, own);
    if (command < 0 || children < 0) {
        perror(REAPER_PROGRAM);
        return 1;
    }
    wait_for(command, children, &news.status);
    news.seconds = clock_monotonic() - start;
    descendants_end(patience);
    struct pollfd life = {.fd = REAPER_LIFE, .events = POLLIN};
    if (poll(&life, 1, 0) == 0) /* what a sanitizer prints at an exit is not the program's output */
        _exit(write(REAPER_NEWS, &news, sizeof news) == sizeof news ? 0 : 1);
    if (getenv(HANDBACK_VARIABLE)) {
        /* The worker's locks may outlast its pipe: its end takes seconds where a driver cleans up.
         * If it was dead from the start, the parent stays the same. */
        for (int i = 0; getppid() == worker && i < 1000; ++i)
            clock_sleep(0.01);
        scratch_sweep(getenv(HANDBACK_VARIABLE));
    }
    return 1;
}
