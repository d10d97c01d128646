/* A real worker process: replies, its end, a hang, its last words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/protocol.h"
#include "ranks/worker_process.h"
#include "process_state.h"

static struct worker_process *start(const char *path)
{
    struct worker_process *process;
    struct error error;
    if (worker_process_start(path, NULL, -1, &process, &error))
        fail_msg("%s", error.text);
    return process;
}

static enum worker_event wait_for(struct worker_process *process, char **line, struct error *why)
{
    enum worker_event event;
    struct pollfd descriptors[2];
    while ((event = worker_process_step(process, line, why)) == WORKER_QUIET) {
        worker_process_poll(process, descriptors);
        poll(descriptors, 2, 10);
    }
    return event;
}

/* A worker that is a shell script, for what a good worker never does. */
static const char *script(char *path, const char *body)
{
    strcpy(path, "/tmp/roofsweep-worker-XXXXXX");
    FILE *file = fdopen(mkstemp(path), "w");
    fprintf(file, "#!/bin/sh\n%s\n", body);
    fclose(file);
    chmod(path, 0700);
    return path;
}

static void worker_answers(void **state)
{
    (void)state;
    struct worker_process *process = start(TEST_BIN_DIR "/roofsweep-worker-cpu");
    struct error why;
    struct reply reply;
    char *line;
    reply_init(&reply);
    worker_process_send(process, "{\"op\":\"devices\"}", 60);
    worker_process_send(process, "{\"op\":\"describe\"}", 60);
    assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
    assert_int_equal(reply_decode(line, &reply, &why), STATUS_OK);
    assert_int_equal(reply.count, 1);
    free(line);
    assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
    assert_int_equal(reply_decode(line, &reply, &why), STATUS_OK);
    assert_string_equal(reply.device.kind, "cpu");
    free(line);
    worker_process_send(process, "nonsense", 60);
    assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
    assert_int_equal(reply_decode(line, &reply, &why), STATUS_OK);
    assert_int_equal(reply.kind, REPLY_ERROR);
    free(line);
    worker_process_send(process, "{\"op\":\"describe\",\"counters\":\"of\"}", 60);
    assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
    assert_int_equal(reply_decode(line, &reply, &why), STATUS_OK);
    assert_int_equal(reply.status, STATUS_USAGE);
    assert_non_null(
        strstr(reply.error.text, "counters: 'of' is unknown; allowed: auto, require, off"));
    free(line);
    reply_clear(&reply);
    worker_process_destroy(process);
}

static void end_is_explained(void **state)
{
    (void)state;
    static const struct {
        const char *body, *reason;
    } rows[] = {
        {"echo 'out of luck' >&2; exit 3",
         "worker ended with status 3; it last printed: out of luck"},
        {"kill -SEGV $$", "worker was killed by signal 11"},
        /* what ends a sweep does not end its workers: the rank does */
        {"kill -USR1 $$; kill -TERM $$; kill -INT $$; exit 4", "worker ended with status 4"},
        {"printf 'one\\ntwo\\n' >&2; exit 1", "one|two"},
        {"exec <&- >&-; exec sleep 1000", "closed its standard output without ending"},
        {"exec tr '\\0' x </dev/zero", "a reply without end"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char path[64], *line;
        struct error why = {""};
        struct worker_process *process = start(script(path, rows[i].body));
        worker_process_send(process, "{}", 60);
        assert_int_equal(wait_for(process, &line, &why), WORKER_LOST);
        if (!strstr(why.text, rows[i].reason))
            fail_msg("'%s' does not say '%s'", why.text, rows[i].reason);
        worker_process_destroy(process);
        unlink(path);
    }
}

/* Whoever adopts it may take its time to reap it. */
static void assert_gone(pid_t pid)
{
    for (int i = 0; i < 500 && is_running(pid); ++i)
        usleep(10000);
    assert_false(is_running(pid));
}

/* A process that the worker has started keeps the socket and standard error open. */
static void end_is_seen_behind_a_grandchild(void **state)
{
    (void)state;
    static const struct {
        const char *body, *reason;
        double timeout; /* s; a busy machine may take seconds to end a process */
    } rows[] = {
        {"sleep 1000 & echo $!; exit 3", "worker ended with status 3", 60},
        {"sleep 1000 & echo $!; kill -KILL $$", "worker was killed by signal 9", 60},
        {"sleep 1000 & echo $!; wait", "timed out after 0.3 s", 0.3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char path[64], *line;
        struct error why = {""};
        struct worker_process *process = start(script(path, rows[i].body));
        worker_process_send(process, "{}", 60);
        assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
        pid_t grandchild = (pid_t)atoi(line);
        free(line);
        worker_process_send(process, "{}", rows[i].timeout);
        assert_int_equal(wait_for(process, &line, &why), WORKER_LOST);
        if (!strstr(why.text, rows[i].reason))
            fail_msg("'%s' does not say '%s'", why.text, rows[i].reason);
        assert_gone(grandchild);
        worker_process_destroy(process);
        unlink(path);
    }
}

static void a_group_is_killed_as_one(void **state)
{
    (void)state;
    char path[64], *line;
    struct error why;
    struct worker_process *process = start(script(path, "sleep 1000 & echo $!; wait"));
    assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
    pid_t grandchild = (pid_t)atoi(line);
    free(line);
    assert_true(is_running(grandchild));
    worker_process_destroy(process);
    assert_gone(grandchild);
    unlink(path);
}

/* What a rank starts in its place, and how it ends: by SIGKILL. The worker is stopped or not. */
static void nothing_outlives_a_killed_rank(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < 2; ++stopped) {
        char path[64], numbers[64], *line;
        int pipes[2];
        struct error why;
        assert_int_equal(pipe(pipes), 0);
        script(path,
               "sleep 1000 >&- <&- 2>&- & echo $$ $!; exec " TEST_BIN_DIR "/roofsweep-worker-cpu");
        pid_t rank = fork();
        if (rank == 0) {
            struct worker_process *process = start(path);
            if (wait_for(process, &line, &why) != WORKER_LINE)
                _exit(1);
            snprintf(numbers, sizeof numbers, "%s", line);
            worker_process_send(process, "{\"op\":\"devices\"}", 60);
            if (wait_for(process, &line, &why) != WORKER_LINE) /* it is the worker by now */
                _exit(1);
            if (stopped) {
                /* It has stopped when its last thread has. */
                siginfo_t unused;
                kill(atoi(numbers), SIGSTOP);
                waitid(P_PID, (id_t)atoi(numbers), &unused, WSTOPPED | WNOWAIT);
            }
            if (write(pipes[1], numbers, sizeof numbers) < 0)
                _exit(1);
            pause();
        }
        assert_int_equal(read(pipes[0], numbers, sizeof numbers), sizeof numbers);
        int worker, grandchild;
        assert_int_equal(sscanf(numbers, "%d %d", &worker, &grandchild), 2);
        assert_true(is_running(worker) && is_running(grandchild));
        kill(rank, SIGKILL);
        waitpid(rank, NULL, 0);
        assert_gone(worker);
        assert_gone(grandchild);
        close(pipes[0]);
        close(pipes[1]);
        unlink(path);
    }
}

static void hang_is_ended(void **state)
{
    (void)state;
    char path[64], *line;
    struct error why = {""};
    struct worker_process *process = start(script(path, "echo waiting >&2; exec sleep 1000"));
    worker_process_send(process, "{}", 0.3);
    assert_int_equal(wait_for(process, &line, &why), WORKER_LOST);
    assert_non_null(strstr(why.text, "timed out after 0.3 s; it last printed: waiting"));
    worker_process_destroy(process);
    unlink(path);
}

/* Its standard error at its end must not wake every poll: the rank would spin. */
static void closed_errors_do_not_wake(void **state)
{
    (void)state;
    char path[64], *line = NULL;
    struct error why;
    struct pollfd descriptors[2];
    struct worker_process *process = start(script(path, "exec 2>&-; echo closed; cat"));
    assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
    free(line);
    assert_int_equal(worker_process_step(process, &line, &why), WORKER_QUIET);
    worker_process_poll(process, descriptors);
    assert_int_equal(poll(descriptors, 2, 50), 0);
    worker_process_destroy(process);
    unlink(path);
}

static void long_replies_arrive_whole(void **state)
{
    (void)state;
    char path[64], *line;
    struct error why;
    struct worker_process *process =
        start(script(path, "read x; head -c 3000000 /dev/zero | tr '\\0' a; echo; echo b; cat"));
    worker_process_send(process, "go", 60);
    assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
    assert_int_equal(strlen(line), 3000000);
    free(line);
    assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
    assert_string_equal(line, "b");
    free(line);
    worker_process_destroy(process);
    unlink(path);
}

static void missing_program_is_named(void **state)
{
    (void)state;
    struct worker_process *process = NULL;
    struct error error = {""};
    assert_int_equal(worker_process_start("/no/such/worker", NULL, -1, &process, &error),
                     STATUS_SYSTEM);
    assert_non_null(strstr(error.text, "was it built"));
    assert_null(process);
    assert_non_null(strstr(error.text, "/no/such/worker"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_answers),
        cmocka_unit_test(end_is_explained),
        cmocka_unit_test(end_is_seen_behind_a_grandchild),
        cmocka_unit_test(a_group_is_killed_as_one),
        cmocka_unit_test(nothing_outlives_a_killed_rank),
        cmocka_unit_test(hang_is_ended),
        cmocka_unit_test(closed_errors_do_not_wake),
        cmocka_unit_test(long_replies_arrive_whole),
        cmocka_unit_test(missing_program_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
