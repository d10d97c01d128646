/* A real worker process whose rank dies by SIGKILL: it ends, and so does what it has started, also where it is
 * stopped. The rank of this test leads a session of its own, so that the kernel does not wake a stopped group
 * when its parent dies, as it does not for a stop that comes at the same moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_state.h"

#define WORKER TEST_BIN_DIR "/../tests/scripted_worker"

/* What a rank of this test has started. */
struct family {
    pid_t rank, worker, grandchild;
};

static void assert_gone(const char *what, pid_t pid)
{
    for (int i = 0; i < 1000 && is_running(pid); ++i)
        usleep(10000);
    if (is_running(pid)) {
        kill(pid, SIGKILL);
        fail_msg("%s is still there, in state %c", what, process_state(pid));
    }
}

static pid_t worker_start(int requests)
{
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        dup2(requests, STDIN_FILENO);
        dup2(requests, STDOUT_FILENO);
        execl(WORKER, WORKER, (char *)NULL);
        _exit(127);
    }
    setpgid(pid, pid);
    return pid;
}

/* In the worker's group, as what a worker starts is. */
static pid_t grandchild_start(pid_t worker)
{
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, worker);
        for (;;)
            pause();
    }
    setpgid(pid, worker);
    return pid;
}

/* The worker has answered: it is tied to its rank. */
static bool worker_is_ready(int requests)
{
    static const char request[] = "{\"op\":\"devices\"}\n";
    char reply[256];
    return write(requests, request, strlen(request)) == (ssize_t)strlen(request) &&
           read(requests, reply, sizeof reply) > 0;
}

static _Noreturn void be_rank(int report)
{
    int sockets[2];
    struct family family = {.rank = getpid()};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        _exit(1);
    family.worker = worker_start(sockets[1]);
    close(sockets[1]);
    if (!worker_is_ready(sockets[0]))
        _exit(1);
    family.grandchild = grandchild_start(family.worker);
    setsid();
    if (write(report, &family, sizeof family) != (ssize_t)sizeof family)
        _exit(1);
    for (;;)
        pause();
}

static struct family family_start(void)
{
    struct family family = {0};
    int report[2];
    assert_int_equal(pipe(report), 0);
    pid_t rank = fork();
    if (rank == 0)
        be_rank(report[1]);
    close(report[1]);
    assert_int_equal(read(report[0], &family, sizeof family), sizeof family);
    close(report[0]);
    return family;
}

static void wait_for_state(pid_t pid, char state)
{
    for (int i = 0; i < 500 && process_state(pid) != state; ++i)
        usleep(1000);
}

static void rank_dies(const struct family *family)
{
    kill(family->rank, SIGKILL);
    waitpid(family->rank, NULL, 0);
    assert_gone("the worker", family->worker);
    assert_gone("what the worker has started", family->grandchild);
}

static void all_end_with_the_rank(void **state)
{
    (void)state;
    const struct family family = family_start();
    assert_true(is_running(family.worker) && is_running(family.grandchild));
    rank_dies(&family);
}

static void a_stopped_worker_ends_too(void **state)
{
    (void)state;
    const struct family family = family_start();
    kill(family.worker, SIGSTOP);
    wait_for_state(family.worker, 'T');
    rank_dies(&family);
}

static void a_stopped_group_ends_too(void **state)
{
    (void)state;
    const struct family family = family_start();
    kill(-family.worker, SIGSTOP);
    wait_for_state(family.worker, 'T');
    wait_for_state(family.grandchild, 'T');
    rank_dies(&family);
}

/* The stop and the death in any order, a moment apart. */
static void a_stop_at_the_same_moment(void **state)
{
    (void)state;
    for (useconds_t apart = 0; apart < 2000; apart += 100) {
        const struct family family = family_start();
        kill(apart % 200 ? family.worker : family.rank, apart % 200 ? SIGSTOP : SIGKILL);
        usleep(apart);
        kill(family.worker, SIGSTOP);
        rank_dies(&family);
    }
}

/* What the worker has started does not outlive it, though the rank lives on. */
static void the_group_ends_with_the_worker(void **state)
{
    (void)state;
    const struct family family = family_start();
    kill(family.worker, SIGKILL);
    assert_gone("what the worker has started", family.grandchild);
    kill(family.rank, SIGKILL);
    waitpid(family.rank, NULL, 0);
}

/* Some batch systems send their signal to every process of a job. */
static void signals_to_all_end_nothing(void **state)
{
    (void)state;
    static const int numbers[] = {SIGUSR1, SIGTERM, SIGHUP};
    const struct family family = family_start();
    char command[256];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
        snprintf(command, sizeof command, "pkill -%d -P %d 2>/dev/null", numbers[i],
                 (int)family.worker);
        assert_int_equal(system(command), 0); /* there is such a process */
    }
    usleep(100000);
    assert_true(is_running(family.worker));
    rank_dies(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_end_with_the_rank),
        cmocka_unit_test(a_stopped_worker_ends_too),
        cmocka_unit_test(a_stopped_group_ends_too),
        cmocka_unit_test(a_stop_at_the_same_moment),
        cmocka_unit_test(the_group_ends_with_the_worker),
        cmocka_unit_test(signals_to_all_end_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
