/* roofsweep-reaper: runs one command and ends all that it started; see reaper.h.
 *
 * The command's orphans become children of the reaper. All signals but SIGCONT are blocked, since
 * the worker decides when the command ends. If the reaper is killed, the kernel kills the command;
 * if the worker is killed, the kernel kills the command's group. */
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "program/run/descendants.h"
#include "program/run/report.h"
#include "program/run/scratch.h"

/* s; longest waits for processes hung in a driver: while the worker lives, and after its death */
static const double patience = 5, patience_alone = 600;

/* System call of Linux 5.3, which older headers lack; on Alpha the number differs. */
enum { PIDFD_OPEN = 434 };

/* Turns the child into the command. The kernel kills the command when the reaper dies (PDEATHSIG).
 * REAPER_LIFE closes when the worker dies. The kernel then sends SIGKILL to the command's group
 * (O_ASYNC, F_SETSIG), even if the reaper is stopped. */
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
    if (getppid() != reaper || poll(&life, 1, 0) > 0) /* reaper or worker died before these calls */
        _exit(127);
    if (chdir(folder) != 0) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        _exit(127);
    }
    execvp(words[0], words);
    fprintf(stderr, "cannot run %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Waits until the command ends, and then sets *status; or until the worker dies or wants the
 * command's end. Reaps orphans meanwhile. */
static void wait_for(pid_t command, int children, int *status)
{
    struct pollfd events[2] = {{.fd = REAPER_LIFE, .events = POLLIN},
                               {.fd = children, .events = POLLIN}};
    while (waitpid(command, status, WNOHANG) != command) {
        struct signalfd_siginfo info;
        if (poll(events, 2, -1) < 0) /* SIGCONT interrupts poll */
            continue;
        if (events[0].revents || read(children, &info, sizeof info) != sizeof info)
            return;
        siginfo_t ended = {0};
        while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0 &&
               ended.si_pid != command) {
            waitpid(ended.si_pid, NULL, 0);
            ended.si_pid = 0;
        }
    }
}

/* Closes descriptors that the reaper inherits from the rank through the worker, such as MPI's. */
static void close_inherited(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        int descriptor = atoi(entry->d_name); /* 0 for "." and ".." */
        if (descriptor > REAPER_REPORT && descriptor != dirfd(folder))
            close(descriptor);
    }
    if (folder)
        closedir(folder);
}

static void nothing(int number)
{
    (void)number;
}

/* Sends the reaper SIGCONT each second, because a program may stop the reaper. Without a handler
 * for SIGCONT, the timer would not go on. */
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

/* Moves the words out of sight of `pkill -f`, because a path often has "roofsweep". False: no
 * memory. */
static bool words_hide(char **words)
{
    for (; *words; ++words) {
        char *copy = strdup(*words);
        if (!copy)
            return false;
        memset(*words, '\0', strlen(*words));
        *words = copy;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct reaper_report report = {0};
    sigset_t all, child;
    if (argc < 3) {
        fprintf(stderr, "usage: %s FOLDER COMMAND [ARGUMENT...]; roofsweep's workers start it\n",
                REAPER_PROGRAM);
        return 2;
    }
    fcntl(REAPER_LIFE, F_SETFD, FD_CLOEXEC);
    fcntl(REAPER_REPORT, F_SETFD, FD_CLOEXEC);
    prctl(PR_SET_NAME, REAPER_NAME);
    close_inherited();
    /* Some batch systems signal all processes of a job, but only the worker may end the reaper. */
    sigfillset(&all);
    sigdelset(&all, SIGCONT);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sigaddset(&all, SIGCONT);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int children = signalfd(-1, &child, SFD_CLOEXEC);
    int worker = (int)syscall(PIDFD_OPEN, getppid(),
                              0); /* readable when all threads of the worker are dead */
    never_stopped();
    descendants_adopt();
    double start = clock_monotonic();
    pid_t own = getpid(), command = words_hide(argv + 1) ? fork() : -1;
    if (command == 0)
        become(argv[1], argv + 2, own);
    if (command < 0 || children < 0) {
        perror(REAPER_PROGRAM);
        return 1;
    }
    wait_for(command, children, &report.status);
    report.seconds = clock_monotonic() - start;
    report.gone = descendants_end(patience);
    sigprocmask(SIG_BLOCK, &all, NULL); /* nobody is left to stop the reaper */
    if (write(REAPER_REPORT, &report, sizeof report) == sizeof report)
        poll(&(struct pollfd){.fd = REAPER_LIFE}, 1, -1); /* returns when the worker is dead */
    descendants_end(patience_alone);
    if (getenv(REPORT_VARIABLE)) {
        /* The worker's locks may outlast its pipe by seconds, while a driver cleans up. Without a
         * descriptor the reaper waits for the whole time. */
        poll(&(struct pollfd){.fd = worker, .events = POLLIN}, 1, 10000);
        scratch_sweep(getenv(REPORT_VARIABLE));
    }
    _exit(1); /* without exit handlers: a sanitizer would print into the output */
}
