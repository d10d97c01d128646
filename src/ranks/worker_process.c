#include "ranks/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "ranks/signals.h"

enum { LINE_BYTES_MAX = 16 << 20 };

/* s, longest waits for the end of the process: without SIGKILL, and after it. A process that hangs
 * in a driver is left behind. */
static const double end_timeout = 1, kill_timeout = 5;

struct worker_process {
    pid_t pid;
    int requests; /* own end of the socket pair, for requests and replies */
    int errors;   /* read end of standard error; -1: closed */
    FILE *echo;   /* NULL: none */
    char *buffer; /* received bytes that are not yet a whole line */
    size_t length, capacity;
    struct tail tail; /* end of standard error */
    double timeout;   /* s; limit of the last request */
    struct countdown time;
};

static void close_if_open(int descriptor)
{
    if (descriptor >= 0)
        close(descriptor);
}

/* The child inherits the thread's affinity and leads its own process group. It blocks signals that
 * end a sweep, because terminals and batch systems send these to all processes; its rank ends it by
 * SIGKILL. */
static int spawn(const char *path, const char *watched, const struct cpus *cpus, int requests,
                 int errors, pid_t *pid)
{
    char *const arguments[] = {(char *)path, watched ? "--watch" : NULL, (char *)watched, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    struct cpus own;
    sigset_t ignored;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, requests, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, requests, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    signals_ending(&ignored);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &ignored);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    bool bound = cpus && sched_getaffinity(0, sizeof own, own.part) == 0 &&
                 sched_setaffinity(0, sizeof *cpus, cpus->part) == 0;
    int failure = posix_spawn(pid, path, &actions, &attributes, arguments, environ);
    if (bound)
        sched_setaffinity(0, sizeof own, own.part);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

enum status worker_process_start(const char *path, const char *watched, const struct cpus *cpus,
                                 FILE *echo, struct worker_process **process, struct error *error)
{
    int sockets[2] = {-1, -1}, pipes[2] = {-1, -1};
    struct worker_process *created = calloc(1, sizeof *created);
    int failure = ENOMEM;
    if (created) {
        failure =
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) || pipe2(pipes, O_CLOEXEC)
                ? errno
                : spawn(path, watched, cpus, sockets[1], pipes[1], &created->pid);
    }
    close_if_open(sockets[1]);
    close_if_open(pipes[1]);
    if (failure) {
        close_if_open(sockets[0]);
        close_if_open(pipes[0]);
        free(created);
        return error_set(error, STATUS_SYSTEM, "cannot start %s: %s%s", path, strerror(failure),
                         failure == ENOENT ? "; was it built, and is it beside roofsweep?" : "");
    }
    created->requests = sockets[0];
    created->errors = pipes[0];
    created->echo = echo;
    created->time = countdown_start(INFINITY);
    fcntl(created->requests, F_SETFL, O_NONBLOCK);
    fcntl(created->errors, F_SETFL, O_NONBLOCK);
    *process = created;
    return STATUS_OK;
}

/* Leaves a zombie, so that the process number, which is also the group's, stays in use. */
static bool has_ended(const struct worker_process *process)
{
    siginfo_t info = {0};
    return process->pid == 0 ||
           (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0);
}

static bool wait_for_end(const struct worker_process *process, double seconds)
{
    struct countdown time = countdown_start(seconds);
    while (!has_ended(process)) {
        if (countdown_over(&time))
            return false;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return true;
}

/* Kills the group and reaps the process. Returns the status of waitpid, or -1 if the process does
 * not end. */
static int kill_group(struct worker_process *process)
{
    int status = -1;
    if (process->pid == 0)
        return status;
    kill(-process->pid, SIGKILL);
    if (wait_for_end(process, kill_timeout))
        waitpid(process->pid, &status, 0);
    process->pid = 0;
    return status;
}

void worker_process_destroy(struct worker_process *process)
{
    if (!process)
        return;
    kill_group(process);
    close(process->requests);
    close_if_open(process->errors);
    free(process->buffer);
    free(process);
}

void worker_process_send(struct worker_process *process, const char *line, double timeout)
{
    process->timeout = timeout;
    process->time = countdown_start(timeout);
    /* A request fits the socket's buffer, so one call writes it. The next step reports EPIPE as a
     * loss. */
    struct iovec parts[2] = {{(void *)line, strlen(line)}, {"\n", 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    while (sendmsg(process->requests, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

/* Reads at most a pipe's content, so that a worker that prints endlessly does not block its rank.
 */
static void read_errors(struct worker_process *process)
{
    char chunk[65536];
    if (process->errors < 0)
        return;
    ssize_t got = read(process->errors, chunk, sizeof chunk);
    if (got > 0) {
        tail_append(&process->tail, chunk, (size_t)got);
        size_t shown = utf8_clean_lines(chunk, (size_t)got);
        if (process->echo)
            fwrite(chunk, 1, shown, process->echo);
    } else if (got == 0) { /* an open descriptor would end every poll at once */
        close(process->errors);
        process->errors = -1;
    }
}

enum stream { STREAM_DATA, STREAM_EMPTY, STREAM_END };

static enum stream read_replies(struct worker_process *process)
{
    if (process->capacity - process->length < 65536) {
        char *grown = realloc(process->buffer, 2 * process->capacity + 65536);
        if (!grown)
            return STREAM_END;
        process->buffer = grown;
        process->capacity = 2 * process->capacity + 65536;
    }
    ssize_t got = read(process->requests, process->buffer + process->length,
                       process->capacity - process->length);
    if (got > 0)
        process->length += (size_t)got;
    return got > 0                                          ? STREAM_DATA
           : got < 0 && (errno == EAGAIN || errno == EINTR) ? STREAM_EMPTY
                                                            : STREAM_END;
}

static void explain(struct worker_process *process, const char *reason, struct error *why)
{
    tail_join(&process->tail);
    error_set(why, STATUS_DEVICE, "%s%s%s", reason,
              process->tail.length ? "; it last printed: " : "", process->tail.text);
}

/* Reports how the worker ended; waits a moment if only its socket is closed. A shell around the
 * worker ends with 128 + signal. */
static enum worker_event explain_end(struct worker_process *process, struct error *why)
{
    char reason[128];
    sigset_t of_end;
    bool ended = wait_for_end(process, end_timeout);
    read_errors(process);
    int status = kill_group(process), code = ended && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    signals_ending(&of_end);
    if (!ended)
        strcpy(reason, "worker closed its standard output without ending");
    else if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "worker was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(reason, sizeof reason, "worker ended with status %d", code);
    explain(process, reason, why);
    int number = ended && WIFSIGNALED(status) ? WTERMSIG(status) : code - 128;
    return number > 0 && sigismember(&of_end, number) == 1 ? WORKER_SIGNALLED : WORKER_LOST;
}

static enum worker_event give_up(struct worker_process *process, const char *reason,
                                 struct error *why)
{
    kill_group(process);
    explain(process, reason, why);
    return WORKER_LOST;
}

enum worker_event worker_process_step(struct worker_process *process, char **line,
                                      struct error *why)
{
    /* `ended` is set before reading, so that all output of an ended worker is read. Children of the
     * worker may keep the socket open. */
    bool ended = has_ended(process);
    read_errors(process);
    enum stream stream = read_replies(process);
    char *newline = process->length ? memchr(process->buffer, '\n', process->length) : NULL;
    if (newline) {
        size_t length = (size_t)(newline - process->buffer);
        char *copy = strndup(process->buffer, length);
        if (!copy)
            return give_up(process, "no memory for a reply", why);
        *line = copy;
        process->length -= length + 1;
        memmove(process->buffer, newline + 1, process->length);
        process->time = countdown_start(INFINITY);
        return WORKER_LINE;
    }
    if (stream == STREAM_END || (ended && stream == STREAM_EMPTY))
        return explain_end(process, why);
    if (countdown_over(&process->time)) {
        char reason[64];
        snprintf(reason, sizeof reason, "timed out after %g s", process->timeout);
        return give_up(process, reason, why);
    }
    if (process->length > LINE_BYTES_MAX)
        return give_up(process, "worker sent a reply without end", why);
    return WORKER_QUIET;
}

void worker_process_poll(const struct worker_process *process, struct pollfd descriptors[2])
{
    descriptors[0] = (struct pollfd){.fd = process->requests, .events = POLLIN};
    descriptors[1] = (struct pollfd){.fd = process->errors, .events = POLLIN};
}
