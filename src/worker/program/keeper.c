/* roofsweep-keeper: runs one command and leaves nothing of it behind; keeper.h has its contract. */
#include "worker/program/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/program/descendants.h"

static const double patience = 5; /* s, for a process that hangs in a driver */

/* In the child. A keeper that is killed takes the command with it. */
static _Noreturn void become(const char *folder, char **words, pid_t keeper)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(127);
    if (chdir(folder) != 0) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        _exit(127);
    }
    execvp(words[0], words);
    fprintf(stderr, "cannot run %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

/* Waits for the command's end or for the end of its time. True: it ended, with *status. */
static bool wait_for(pid_t command, int signals, int *status)
{
    struct pollfd events[2] = {{.fd = KEEPER_LIFE, .events = POLLIN},
                               {.fd = signals, .events = POLLIN}};
    for (;;) {
        struct signalfd_siginfo info;
        if (waitpid(command, status, WNOHANG) == command)
            return true;
        if (poll(events, 2, -1) < 0 && errno != EINTR)
            return false;
        if (events[0].revents)
            return false;
        if (events[1].revents && read(signals, &info, sizeof info) == sizeof info &&
            info.ssi_signo == SIGTERM)
            return false;
        /* An orphan of the command's. */
        siginfo_t ended = {0};
        while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0 &&
               ended.si_pid != command) {
            waitpid(ended.si_pid, NULL, 0);
            ended.si_pid = 0;
        }
    }
}

int main(int argc, char **argv)
{
    struct keeper_news news = {-1, 0, 0.0};
    sigset_t set;
    if (argc < 3) {
        fprintf(stderr, "usage: %s FOLDER COMMAND [ARGUMENT...]; roofsweep's workers start it\n",
                KEEPER_PROGRAM);
        return 2;
    }
    fcntl(KEEPER_LIFE, F_SETFD, FD_CLOEXEC);
    fcntl(KEEPER_NEWS, F_SETFD, FD_CLOEXEC);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    descendants_adopt();
    double start = clock_monotonic();
    pid_t own = getpid(), command = fork();
    if (command == 0)
        become(argv[1], argv + 2, own);
    if (command < 0 || signals < 0) {
        perror(KEEPER_PROGRAM);
        return 1;
    }
    if (!wait_for(command, signals, &news.status))
        kill(-command, SIGKILL);
    news.seconds = clock_monotonic() - start;
    news.left = !descendants_end(patience);
    return write(KEEPER_NEWS, &news, sizeof news) == sizeof news ? 0 : 1;
}
