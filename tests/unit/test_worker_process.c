/* Real worker processes: replies, end, hang, last output. */

#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/protocol.h"
#include "ranks/worker_process.h"

static struct worker_process *start(const char *path)
{
    struct worker_process *process;
    assert_ok(worker_process_start(path, NULL, NULL, NULL, &process, &failure));
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

/* Writes a worker, a shell script, and returns its path. */
static const char *script(char *path, const char *body)
{
    strcpy(path, "/tmp/roofsweep-worker-XXXXXX");
    FILE *file = fdopen(mkstemp(path), "w");
    fprintf(file, "#!/bin/sh\n%s\n", body);
    fclose(file);
    chmod(path, 0700);
    return path;
}

/* Returns the state in /proc; 'X' if the process does not exist. */
static char process_state(pid_t pid)
{
    char path[64], state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X';
    if (file)
        fclose(file);
    return state;
}

static bool is_running(pid_t pid)
{
    char state = process_state(pid);
    return state != 'X' && state != 'Z';
}

/* Waits, because the process that adopts an orphan may take time to reap it. */
static void assert_gone(pid_t pid)
{
    for (int i = 0; i < 1000 && is_running(pid); ++i)
        usleep(10000);
    assert_false(is_running(pid));
}

TEST(worker_answers)
{
    static const char *const requests[] = {"{\"op\":\"devices\"}", "{\"op\":\"describe\"}",
                                           "nonsense", "{\"op\":\"describe\",\"counters\":\"of\"}"};
    enum { COUNT = sizeof requests / sizeof *requests };
    struct worker_process *process = start(TEST_BIN_DIR "/roofsweep-worker-cpu");
    struct reply replies[COUNT];
    struct error why;
    char *line;
    for (int i = 0; i < COUNT; ++i)
        worker_process_send(process, requests[i], 60);
    for (int i = 0; i < COUNT; ++i) {
        reply_init(&replies[i]);
        assert_int_equal(wait_for(process, &line, &why), WORKER_LINE);
        assert_int_equal(reply_decode(line, &replies[i], &why), STATUS_OK);
        free(line);
    }
    assert_int_equal(replies[0].count, 1);
    assert_string_equal(replies[1].device.kind, "cpu");
    assert_int_equal(replies[2].kind, REPLY_ERROR);
    assert_int_equal(replies[3].status, STATUS_USAGE);
    assert_says(replies[3].error.text, "counters: 'of' is unknown; allowed: auto, require, off");
    for (int i = 0; i < COUNT; ++i)
        reply_clear(&replies[i]);
    worker_process_destroy(process);
}

/* The worker prints 0, or the number of a process that it has started, which keeps socket and
 * standard error open. A busy machine may need seconds to end a process. */
TEST(end_is_explained)
{
    static const struct {
        const char *body, *reason;
        double timeout; /* s */
    } rows[] = {
        {"echo 'out of luck' >&2; exit 3",
         "worker ended with status 3; it last printed: out of luck", 60},
        {"kill -SEGV $$", "worker was killed by signal 11", 60},
        /* signals that end a sweep do not end its workers */
        {"kill -USR1 $$; kill -TERM $$; kill -INT $$; exit 4", "worker ended with status 4", 60},
        {"printf 'one\\ntwo\\n' >&2; exit 1", "one|two", 60},
        {"exec <&- >&-; exec sleep 1000", "closed its standard output without ending", 60},
        {"exec tr '\\0' x </dev/zero", "a reply without end", 60},
        {"sleep 1000 & echo $!; exit 3", "worker ended with status 3", 60},
        {"sleep 1000 & echo $!; kill -KILL $$", "worker was killed by signal 9", 60},
        {"sleep 1000 & echo $!; wait", "timed out after 0.3 s", 0.3},
        {"echo waiting >&2; echo 0; exec sleep 1000",
         "timed out after 0.3 s; it last printed: waiting", 0.3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char path[64], *line;
        struct error why = {""};
        pid_t grandchild = 0;
        struct worker_process *process = start(script(path, rows[i].body));
        worker_process_send(process, "{}", 60);
        while (wait_for(process, &line, &why) == WORKER_LINE) {
            grandchild = (pid_t)atoi(line);
            free(line);
            worker_process_send(process, "{}", rows[i].timeout);
        }
        assert_says(why.text, rows[i].reason);
        if (grandchild)
            assert_gone(grandchild);
        worker_process_destroy(process);
        unlink(path);
    }
}

TEST(a_group_is_killed_as_one)
{
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

/* A closed standard error must not wake every poll: the rank would spin. */
TEST(closed_errors_do_not_wake)
{
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

TEST(long_replies_arrive_whole)
{
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

TEST(missing_program_is_named)
{
    struct worker_process *process = NULL;
    assert_fails(worker_process_start("/no/such/worker", NULL, NULL, NULL, &process, &failure),
                 STATUS_SYSTEM, "was it built");
    assert_null(process);
    assert_says(failure.text, "/no/such/worker");
}

#ifdef ROOFSWEEP_PROGRAMS
/* ---- nothing outlives a killed rank ---- */

/* Processes below a rank of this test, whose worker measures a program. */
enum { REAPER, COMMAND, CHILD, DAEMON, OTHERS };
struct family {
    int rank, worker, others[OTHERS];
};

/* The rank leads a session, because the kernel wakes a stopped group when its parent dies, but not
 * if the stop comes at the same moment. */
static _Noreturn void be_rank(const char *path, const char *program, int report)
{
    char *line, request[256];
    struct error why;
    int worker;
    struct worker_process *process = start(path);
    if (wait_for(process, &line, &why) != WORKER_LINE || sscanf(line, "%d", &worker) != 1)
        _exit(1);
    snprintf(request, sizeof request,
             "{\"op\":\"measure\",\"configuration\":\"program command=%s\"}", program);
    worker_process_send(process, request, 60);
    setsid();
    if (write(report, &worker, sizeof worker) != (ssize_t)sizeof worker)
        _exit(1);
    for (;;)
        pause();
}

/* The program runs `last` after it has started all its processes. */
static struct family family_start(const char *last)
{
    struct family family = {0};
    int report[2], *others = family.others;
    char worker[64], program[64], pids[80], body[512], folder[] = "/tmp/roofsweep-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    script(worker, "echo $$; exec " TEST_BIN_DIR "/roofsweep-worker-cpu");
    script(program, "");
    snprintf(pids, sizeof pids, "%s.pids", program);
    snprintf(body, sizeof body,
             "#!/bin/sh\nsleep 300 &\necho $PPID $$ $! >%s\n"
             "setsid sh -c 'echo $$ >>%s; sleep 300' &\n%s\nwait\n",
             pids, pids, last);
    FILE *file = fopen(program, "w");
    fputs(body, file);
    fclose(file);
    assert_int_equal(pipe(report), 0);
    if ((family.rank = fork()) == 0)
        be_rank(worker, program, report[1]);
    close(report[1]);
    assert_int_equal(read(report[0], &family.worker, sizeof family.worker), sizeof family.worker);
    close(report[0]);
    for (int i = 0, count = 0; i < 10000 && count != OTHERS; ++i) {
        usleep(1000);
        if ((file = fopen(pids, "r"))) {
            count = fscanf(file, "%d%d%d%d", &others[REAPER], &others[COMMAND], &others[CHILD],
                           &others[DAEMON]);
            fclose(file);
        }
    }
    unlink(worker);
    unlink(program);
    unlink(pids);
    assert_true(is_running(family.worker) && is_running(others[DAEMON]));
    return family;
}

static void wait_for_state(pid_t pid, char state)
{
    for (int i = 0; i < 5000 && process_state(pid) != state; ++i)
        usleep(1000);
}

static void rank_dies(const struct family *family)
{
    kill(family->rank, SIGKILL);
    waitpid(family->rank, NULL, 0);
    assert_gone(family->worker);
    for (int i = 0; i < OTHERS; ++i)
        assert_gone(family->others[i]);
    assert_int_equal(rmdir(getenv("TMPDIR")), 0); /* the folder of the program's report is gone */
}

/* The worker, or the whole job, may be stopped when the rank dies. */
TEST(all_end_with_the_rank)
{
    struct family family = family_start("");
    rank_dies(&family);
    family = family_start("");
    kill(family.worker, SIGSTOP);
    wait_for_state(family.worker, 'T');
    rank_dies(&family);
    family = family_start("");
    kill(family.rank, SIGSTOP);
    kill(family.worker, SIGSTOP);
    for (int i = 0; i < OTHERS; ++i)
        kill(family.others[i], SIGSTOP);
    for (int i = 0; i < OTHERS; ++i)
        wait_for_state(family.others[i], 'T');
    rank_dies(&family);
}

/* Stop and death in either order, a moment apart. */
TEST(a_stop_at_the_same_moment)
{
    for (useconds_t apart = 0; apart < 2000; apart += 200) {
        const struct family family = family_start("");
        kill(apart % 400 ? family.worker : family.rank, apart % 400 ? SIGSTOP : SIGKILL);
        usleep(apart);
        kill(family.worker, SIGSTOP);
        rank_dies(&family);
    }
}

/* A program may stop its reaper, also after the worker's death has continued the reaper. */
TEST(a_program_that_stops_its_reaper)
{
    const struct family family = family_start("while kill -STOP $PPID; do :; done");
    wait_for_state(family.others[REAPER], 'T');
    kill(family.worker, SIGKILL);
    for (int i = 0; i < OTHERS; ++i)
        assert_gone(family.others[i]);
    rank_dies(&family);
}

/* Some batch systems signal every process of a job; only the rank reacts. */
TEST(signals_to_all_end_nothing)
{
    static const int numbers[] = {SIGUSR1, SIGTERM, SIGINT, SIGHUP};
    const struct family family = family_start("");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
        kill(family.worker, numbers[i]);
        kill(family.others[REAPER], numbers[i]);
    }
    usleep(100000);
    assert_true(is_running(family.worker) && is_running(family.others[COMMAND]));
    rank_dies(&family);
}
#endif
