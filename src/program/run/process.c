/* Runs commands through a reaper (reaper.h), each in a session of its own.
 *
 * Three pipes connect worker and reaper: the worker holds `life` open for as long as it lives, the
 * reaper writes the command's status to `report`, and the command prints into `output`. The
 * standard input of a persistent process is a socket. One loop polls the pipes and the socket until
 * the report has come, the time is up, or the persistent process answers. Without an answer the
 * reaper then ends all descendants of the command, even if the worker is killed; if the reaper is
 * killed, the worker ends them. So no process of an old command runs beside a new one. A command
 * that hangs in a driver costs 20 s, and then the worker gives up the device (STATUS_DEVICE). */
#include "program/run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/file.h"
#include "program/run/descendants.h"
#include "program/run/reaper.h"

static const double end_patience = 10; /* s; longest wait for a process that hangs in a driver */

/* A command that runs. Descriptors are the worker's ends; -1: closed. */
struct running {
    int life, report, output;
    int channel; /* socket: the standard input of a persistent process */
    struct reaper_report ended;
    size_t ended_bytes; /* bytes of `ended` that have been read */
    struct tail *tail;  /* member of the caller's struct process_end */
    bool answered;      /* the process has answered "done" to the last point */
    int matched;        /* bytes of "done" that its unfinished line has; -1: the line differs */
};

/* A row needs at most four processes: one timed, one traced, one counted, one without graphs. */
enum { PERSISTENT_MOST = 4 };
struct persistent {
    size_t count;
    struct member {
        char *key; /* owned; see key_of */
        struct running running;
        struct process_end end;
    } list[PERSISTENT_MOST];
};

static void close_once(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* ---- start ---- */

/* Both ends of each pipe. The reaper reads `life`, and writes `report` and `output`. */
struct pipes {
    int life[2], report[2], output[2], channel[2];
};

/* A child inherits the affinity of the calling thread, so the thread takes the affinity of the
 * process while it starts the child. */
static int spawn_bound(const struct process *process, const char *path, char **arguments,
                       const posix_spawn_file_actions_t *actions)
{
    posix_spawnattr_t attributes;
    size_t size = process->cpus ? process->cpus_size : 0;
    cpu_set_t *own = size ? malloc(size) : NULL;
    bool bound = own && sched_getaffinity(0, size, own) == 0 &&
                 sched_setaffinity(0, size, process->cpus) == 0;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    int failure = posix_spawn(NULL, path, actions, &attributes, arguments, process->environment);
    posix_spawnattr_destroy(&attributes);
    if (bound)
        sched_setaffinity(0, size, own);
    free(own);
    return failure;
}

static int spawn(const struct process *process, const char *path, const struct pipes *pipes)
{
    size_t count = 0;
    while (process->words[count])
        ++count;
    char **arguments = calloc(count + 3, sizeof *arguments);
    if (!arguments)
        return ENOMEM;
    arguments[0] = REAPER_NAME;
    arguments[1] = (char *)process->folder;
    memcpy(arguments + 2, process->words, count * sizeof *arguments);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (process->served)
        posix_spawn_file_actions_adddup2(&actions, pipes->channel[1], STDIN_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes->output[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes->output[1], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes->life[0], REAPER_LIFE);
    posix_spawn_file_actions_adddup2(&actions, pipes->report[1], REAPER_REPORT);
    int failure = spawn_bound(process, path, arguments, &actions);
    posix_spawn_file_actions_destroy(&actions);
    free(arguments);
    return failure;
}

static enum status start(const struct process *process, struct running *running,
                         struct error *error)
{
    char folder[4096], path[4096 + sizeof REAPER_PROGRAM];
    struct pipes pipes = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    int *const theirs[] = {&pipes.life[0], &pipes.report[1], &pipes.output[1], &pipes.channel[1]};
    int *const ours[] = {&pipes.life[1], &pipes.report[0], &pipes.output[0], &pipes.channel[0]};
    TRY(folder_of_program(folder, sizeof folder, error));
    snprintf(path, sizeof path, "%s/%s", folder, REAPER_PROGRAM);
    int failure = pipe2(pipes.life, O_CLOEXEC) == 0 && pipe2(pipes.report, O_CLOEXEC) == 0 &&
                          pipe2(pipes.output, O_CLOEXEC) == 0 &&
                          (!process->served ||
                           socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes.channel) == 0)
                      ? 0
                      : errno;
    /* dup2 to the same number would keep close-on-exec, so all descriptors move up first. */
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; ++i) {
        int moved = *theirs[i] < 0 ? -1 : fcntl(*theirs[i], F_DUPFD_CLOEXEC, REAPER_REPORT + 1);
        if (moved >= 0) {
            close(*theirs[i]);
            *theirs[i] = moved;
        }
    }
    if (!failure)
        failure = spawn(process, path, &pipes);
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; ++i) {
        close_once(theirs[i]);
        if (failure)
            close_once(ours[i]);
        else if (*ours[i] >= 0)
            fcntl(*ours[i], F_SETFL, O_NONBLOCK);
    }
    if (failure)
        return error_set(error, STATUS_SYSTEM, "cannot start %s: %s", path, strerror(failure));
    running->life = pipes.life[1];
    running->report = pipes.report[0];
    running->output = pipes.output[0];
    running->channel = pipes.channel[0];
    return STATUS_OK;
}

/* ---- while it runs ---- */

/* Reads at most as much as a pipe holds. Copies the output to standard error, the worker's log. */
static void output_read(struct running *running)
{
    char chunk[65536];
    ssize_t got = running->output < 0 ? 0 : read(running->output, chunk, sizeof chunk);
    if (got > 0) {
        tail_append(running->tail, chunk, (size_t)got);
        if (write(STDERR_FILENO, chunk, (size_t)got) < 0)
            return; /* nobody reads the log */
    } else if (got == 0 || errno != EAGAIN) {
        close_once(&running->output);
    }
}

static void report_read(struct running *running)
{
    char *at = (char *)&running->ended + running->ended_bytes;
    ssize_t got = read(running->report, at, sizeof running->ended - running->ended_bytes);
    if (got > 0)
        running->ended_bytes += (size_t)got;
    else if (got == 0 || errno != EAGAIN)
        close_once(&running->report);
}

static void channel_read(struct running *running)
{
    static const char done[] = "done";
    char bytes[64];
    ssize_t got = read(running->channel, bytes, sizeof bytes);
    for (ssize_t i = 0; i < got; ++i) { /* a line may come in parts */
        int *matched = &running->matched;
        running->answered |= bytes[i] == '\n' && *matched == (int)strlen(done);
        *matched = bytes[i] == '\n'                                          ? 0
                   : bytes[i] && *matched >= 0 && bytes[i] == done[*matched] ? *matched + 1
                                                                             : -1;
    }
    if (got == 0 || (got < 0 && errno != EAGAIN))
        close_once(&running->channel);
}

/* Waits up to `seconds`, at most 1 s, for input, and reads it. */
static void step(struct running *running, double seconds)
{
    struct pollfd events[3] = {{.fd = running->report, .events = POLLIN},
                               {.fd = running->output, .events = POLLIN},
                               {.fd = running->channel, .events = POLLIN}};
    if (poll(events, 3, (int)ceil(1e3 * fmin(seconds, 1))) <= 0)
        return;
    if (events[2].revents)
        channel_read(running);
    if (events[1].revents)
        output_read(running);
    if (events[0].revents)
        report_read(running);
}

static bool is_over(const struct running *running)
{
    return running->report < 0 || running->ended_bytes == sizeof running->ended;
}

/* Ends the command and all processes that it has started. False: some hang in the system. */
static bool command_end(struct running *running)
{
    double deadline = clock_monotonic() + end_patience;
    bool told = is_over(running) || write(running->life, "", 1) == 1;
    for (double left; told && !is_over(running) && (left = deadline - clock_monotonic()) > 0;)
        step(running, left);
    if (running->ended_bytes == sizeof running->ended && running->ended.gone)
        return true;
    close_once(&running->life); /* a living reaper ends now */
    return descendants_end(end_patience);
}

/* Ends the command. A living reaper stays, until `life` is closed. STATUS_DEVICE: some processes
 * cannot be ended. */
static enum status finish(struct running *running, bool timed_out, struct error *error)
{
    bool gone = command_end(running);
    struct pollfd event = {.fd = running->output, .events = POLLIN};
    while (running->output >= 0 && gone && poll(&event, 1, 0) > 0)
        output_read(running); /* until the pipe's end, since all writers are dead */
    tail_join(running->tail);
    close_once(&running->report);
    close_once(&running->output);
    close_once(&running->channel);
    if (!gone)
        return error_set(error, STATUS_DEVICE, "the program cannot be ended; it last printed: %s",
                         running->tail->text);
    if (!timed_out && running->ended_bytes < sizeof running->ended)
        return error_set(error, STATUS_FAILED, "%s was killed over the program", REAPER_PROGRAM);
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

static const struct running not_started = {.life = -1, .report = -1, .output = -1, .channel = -1};

/* Waits until the command has ended or answered, or ends it when its time is up. */
static enum status run(struct running *running, struct countdown *time, struct process_end *end,
                       struct error *error)
{
    double allowed = fmax(time->left, 0);
    while (!running->answered && !is_over(running) && !countdown_over(time))
        step(running, time->left);
    end->timed_out = !running->answered && !is_over(running);
    if (!end->timed_out)
        countdown_over(time); /* the job may have been suspended during the last wait */
    if (running->answered)
        return STATUS_OK;
    enum status status = finish(running, end->timed_out, error);
    end->status = running->ended.status;
    end->seconds = running->ended.seconds;
    return status ? status : judge(end, allowed, error);
}

enum status process_run(const struct process *process, struct process_end *end, struct error *error)
{
    struct running running = not_started;
    *end = (struct process_end){.life = -1};
    running.tail = &end->tail;
    descendants_adopt();
    enum status status = start(process, &running, error);
    if (status == STATUS_OK)
        status = run(&running, process->time, end, error);
    end->life = running.life;
    return status;
}

void process_release(struct process_end *end)
{
    if (end->life >= 0)
        descendants_end(end_patience); /* ends the reaper, and persistent processes */
    close_once(&end->life);
}

/* ---- persistent processes ---- */

void persistent_end(struct persistent **persistent)
{
    struct error unheard;
    if (!*persistent)
        return;
    for (size_t i = 0; i < (*persistent)->count; ++i) {
        finish(&(*persistent)->list[i].running, true, &unheard);
        free((*persistent)->list[i].key);
    }
    descendants_end(end_patience); /* ends the reapers */
    for (size_t i = 0; i < (*persistent)->count; ++i)
        close_once(&(*persistent)->list[i].running.life);
    free(*persistent);
    *persistent = NULL;
}

/* True if the process gets the variable with each point. ROOFSWEEP_INJECT is set only at the start:
 * a process keeps its kind of task. */
static bool comes_with_points(const char *variable)
{
    static const char point[] = "ROOFSWEEP_", start[] = "ROOFSWEEP_INJECT=";
    return strncmp(variable, point, strlen(point)) == 0 &&
           strncmp(variable, start, strlen(start)) != 0;
}

/* Words and environment of a process as one text; two points with equal texts share a process.
 * NULL: no memory. The caller frees the text. */
static char *key_of(const struct process *process)
{
    char *key = NULL;
    size_t size;
    FILE *text = open_memstream(&key, &size);
    for (size_t i = 0; text && process->words[i]; ++i)
        fprintf(text, "%s\n", process->words[i]);
    for (size_t i = 0; text && process->environment[i]; ++i)
        if (!comes_with_points(process->environment[i]))
            fprintf(text, "%s\n", process->environment[i]);
    if (text)
        fclose(text);
    return key;
}

/* Sends a point to an idle process. False: the process has ended since its last point. */
static bool point_send(struct member *member, const char *line)
{
    struct running *running = &member->running;
    ssize_t length = (ssize_t)strlen(line);
    step(running, 0);
    member->end = (struct process_end){.life = -1};
    running->answered = false;
    running->matched = 0;
    return !is_over(running) && running->channel >= 0 &&
           send(running->channel, line, (size_t)length, MSG_NOSIGNAL) == length;
}

/* Starts a persistent process, and owns `key` from now on. */
static enum status member_start(struct persistent **persistent, const struct process *process,
                                char *key, struct member **member, struct error *error)
{
    if (*persistent && (*persistent)->count == PERSISTENT_MOST)
        persistent_end(persistent);
    if (!*persistent)
        *persistent = calloc(1, sizeof **persistent);
    enum status status = STATUS_SYSTEM;
    if (*persistent) {
        *member = &(*persistent)->list[(*persistent)->count];
        (*member)->running = not_started;
        (*member)->running.tail = &(*member)->end.tail;
        (*member)->end = (struct process_end){.life = -1};
        (*member)->key = key;
        status = start(process, &(*member)->running, error);
    } else {
        error_set(error, STATUS_SYSTEM, "out of memory");
    }
    if (status)
        free(key);
    else
        ++(*persistent)->count;
    return status;
}

static enum status point_give(struct persistent **persistent, const struct process *process,
                              struct member **member, struct error *error)
{
    char line[16384] = "", *key = key_of(process);
    bool fits = key;
    for (size_t i = 0; fits && process->environment[i]; ++i)
        if (comes_with_points(process->environment[i]))
            fits = command_line_append(line, sizeof line - 1, process->environment[i]);
    if (!fits) {
        free(key);
        return error_set(error, STATUS_FAILED, "no memory for a point, or no room in a line");
    }
    strcat(line, "\n");
    for (size_t i = 0; *persistent && i < (*persistent)->count; ++i) {
        *member = &(*persistent)->list[i];
        if (strcmp((*member)->key, key) != 0)
            continue;
        if (!point_send(*member, line)) {
            persistent_end(persistent);
            break;
        }
        free(key);
        return STATUS_OK;
    }
    return member_start(persistent, process, key, member, error);
}

enum status process_point(const struct process *process, struct persistent **persistent,
                          struct error *error)
{
    struct member *member;
    struct process served = *process;
    served.served = true;
    descendants_adopt();
    enum status status = point_give(persistent, &served, &member, error);
    if (status == STATUS_OK)
        status = run(&member->running, process->time, &member->end, error);
    if (status == STATUS_OK && !member->running.answered)
        status = error_set(error, STATUS_FAILED,
                           "the program ended well, but asked for no other point: let it take its "
                           "points from roofsweep_region.points, or write process = own");
    return status;
}
