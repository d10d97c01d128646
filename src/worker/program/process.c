#include "worker/program/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "worker/program/descendants.h"
#include "worker/program/keeper.h"

static const double end_patience = 10; /* s, for a process that hangs in a driver */

/* One that runs. Descriptors are ours; -1: closed. */
struct running {
    pid_t keeper;
    int life, news, output;
    struct keeper_news told;
    size_t told_bytes;
    struct tail *tail; /* of struct process_end */
};

static void close_once(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* ---- start ---- */

/* The ends of the keeper, and ours. */
struct pipes {
    int life[2], news[2], output[2];
};

/* The child gets the affinity of the calling thread. */
static int spawn_bound(const struct process *process, const char *path, char **arguments,
                       const posix_spawn_file_actions_t *actions, pid_t *pid)
{
    posix_spawnattr_t attributes;
    size_t size = process->cpus ? process->cpus_size : 0;
    cpu_set_t *own = size ? malloc(size) : NULL;
    bool bound = own && sched_getaffinity(0, size, own) == 0 &&
                 sched_setaffinity(0, size, process->cpus) == 0;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    int failure = posix_spawn(pid, path, actions, &attributes, arguments, process->environment);
    posix_spawnattr_destroy(&attributes);
    if (bound)
        sched_setaffinity(0, size, own);
    free(own);
    return failure;
}

static int spawn(const struct process *process, const char *path, const struct pipes *pipes,
                 pid_t *pid)
{
    size_t count = 0;
    while (process->words[count])
        ++count;
    char **arguments = calloc(count + 3, sizeof *arguments);
    if (!arguments)
        return ENOMEM;
    arguments[0] = KEEPER_PROGRAM;
    arguments[1] = (char *)process->folder;
    memcpy(arguments + 2, process->words, count * sizeof *arguments);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes->output[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes->output[1], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes->life[0], KEEPER_LIFE);
    posix_spawn_file_actions_adddup2(&actions, pipes->news[1], KEEPER_NEWS);
    int failure = spawn_bound(process, path, arguments, &actions, pid);
    posix_spawn_file_actions_destroy(&actions);
    free(arguments);
    return failure;
}

static enum status start(const struct process *process, struct running *running,
                         struct error *error)
{
    char folder[4096], path[4096 + sizeof KEEPER_PROGRAM];
    struct pipes pipes = {{-1, -1}, {-1, -1}, {-1, -1}};
    int *const theirs[] = {&pipes.life[0], &pipes.news[1], &pipes.output[1]};
    int *const ours[] = {&pipes.life[1], &pipes.news[0], &pipes.output[0]};
    enum status status = folder_of_program(folder, sizeof folder, error);
    if (status)
        return status;
    snprintf(path, sizeof path, "%s/%s", folder, KEEPER_PROGRAM);
    int failure = pipe2(pipes.life, O_CLOEXEC) == 0 && pipe2(pipes.news, O_CLOEXEC) == 0 &&
                          pipe2(pipes.output, O_CLOEXEC) == 0
                      ? 0
                      : errno;
    /* A descriptor that has its number already would keep its close-on-exec: all are moved up
     * first. */
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; ++i) {
        int moved = fcntl(*theirs[i], F_DUPFD_CLOEXEC, KEEPER_NEWS + 1);
        if (moved >= 0) {
            close(*theirs[i]);
            *theirs[i] = moved;
        }
    }
    if (!failure)
        failure = spawn(process, path, &pipes, &running->keeper);
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; ++i) {
        close_once(theirs[i]);
        if (failure)
            close_once(ours[i]);
        else
            fcntl(*ours[i], F_SETFL, O_NONBLOCK);
    }
    if (failure)
        return error_set(error, STATUS_SYSTEM, "cannot start %s: %s", path, strerror(failure));
    running->life = pipes.life[1];
    running->news = pipes.news[0];
    running->output = pipes.output[0];
    return STATUS_OK;
}

/* ---- while it runs ---- */

/* What it prints is shown, too: standard error is the log of the worker. A pipe's worth at most. */
static void output_read(struct running *running)
{
    char chunk[65536];
    ssize_t got = running->output < 0 ? 0 : read(running->output, chunk, sizeof chunk);
    if (got > 0) {
        tail_append(running->tail, chunk, (size_t)got);
        if (write(STDERR_FILENO, chunk, (size_t)got) < 0)
            return; /* nobody reads it */
    } else if (got == 0 || errno != EAGAIN) {
        close_once(&running->output);
    }
}

static void news_read(struct running *running)
{
    char *at = (char *)&running->told + running->told_bytes;
    ssize_t got = read(running->news, at, sizeof running->told - running->told_bytes);
    if (got > 0)
        running->told_bytes += (size_t)got;
    else if (got == 0 || errno != EAGAIN)
        close_once(&running->news);
}

/* A second at most. */
static void step(struct running *running, double seconds)
{
    struct pollfd events[2] = {{.fd = running->news, .events = POLLIN},
                               {.fd = running->output, .events = POLLIN}};
    if (poll(events, 2, (int)(1e3 * fmin(seconds, 1)) + 1) <= 0)
        return;
    if (events[1].revents)
        output_read(running);
    if (events[0].revents)
        news_read(running);
}

/* False: it is not over then. */
static bool run_within(struct running *running, struct countdown *time)
{
    while (running->news >= 0 && running->told_bytes < sizeof running->told) {
        if (countdown_over(time))
            return false;
        step(running, time->left);
    }
    countdown_over(time); /* the job may have been suspended during the last wait */
    return true;
}

/* Ends the keeper, if it does not end itself, and all that it left. */
static enum status finish(struct running *running, bool timed_out, struct error *error)
{
    bool gone = descendants_end(end_patience);
    struct pollfd event = {.fd = running->output, .events = POLLIN};
    while (running->output >= 0 && gone && poll(&event, 1, 0) > 0)
        output_read(running); /* all who write are dead */
    tail_join(running->tail);
    close_once(&running->life);
    close_once(&running->news);
    close_once(&running->output);
    if (!gone)
        return error_set(error, STATUS_DEVICE, "the program cannot be ended; it last printed: %s",
                         running->tail->text);
    if (!timed_out && running->told_bytes < sizeof running->told)
        return error_set(error, STATUS_FAILED, "%s was killed over the program", KEEPER_PROGRAM);
    return STATUS_OK;
}

static enum status judge(const struct process_end *end, double allowed, struct error *error)
{
    char what[128];
    if (end->timed_out)
        snprintf(what, sizeof what, "took longer than the %.3g s that were left of its timeout",
                 allowed);
    else if (WIFSIGNALED(end->status))
        snprintf(what, sizeof what, "was ended by signal %d (%s)", WTERMSIG(end->status),
                 strsignal(WTERMSIG(end->status)));
    else if (WEXITSTATUS(end->status) != 0)
        snprintf(what, sizeof what, "ended with status %d", WEXITSTATUS(end->status));
    else
        return STATUS_OK;
    return error_set(error, STATUS_FAILED, "the program %s%s%s", what,
                     end->tail.length ? "; it last printed: " : " and printed nothing",
                     end->tail.text);
}

enum status process_run(const struct process *process, struct process_end *end, struct error *error)
{
    struct process_end ended = {.timed_out = false};
    struct running running = {.life = -1, .news = -1, .output = -1, .tail = &ended.tail};
    double allowed = fmax(process->time->left, 0);
    descendants_adopt();
    enum status status = start(process, &running, error);
    if (status)
        return status;
    ended.timed_out = !run_within(&running, process->time);
    status = finish(&running, ended.timed_out, error);
    ended.status = running.told.status;
    ended.seconds = running.told.seconds;
    if (status)
        return status;
    *end = ended;
    return judge(end, allowed, error);
}
