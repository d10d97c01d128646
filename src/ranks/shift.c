#include "ranks/shift.h"

#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ranks/pause.h"
#include "ranks/signals.h"

static void deliver(const struct letter *letter, struct executor *executor,
                    struct coordinator *coordinator)
{
    if (letter->kind == LETTER_WORK || letter->kind == LETTER_COUNT || letter->kind == LETTER_STOP)
        executor_handle(executor, letter);
    else
        coordinator_handle(coordinator, letter);
}

void shift_interrupt(struct shift *shift)
{
    struct error error;
    signals_seen = 0;
    shift->told = clock_monotonic();
    if (shift->coordinator)
        coordinator_interrupt(shift->coordinator);
    else if (mailbox_send(shift->mailbox, 0, LETTER_INTERRUPT, "", &error))
        log_print(shift->log, LOG_WARNING, "%s", error.text);
}

/* Rank 0 publishes and says the last word. If it does not answer, there is nobody to do that; the journal
 * has what was measured. */
static void leave_silent_rank_0(const struct shift *shift)
{
    if (shift->rank == 0 || shift->told == 0.0 ||
        clock_monotonic() - shift->told < 3 * shift->stop_patience)
        return;
    log_print(shift->log, LOG_WARNING,
              "rank 0 does not answer to the signal; go on with --resume, or see --gather");
    MPI_Abort(shift->comm, shift->exit_code);
}

/* s, between two looks for letters. Rank 0 looks more often, because others wait for it. A rank whose worker works
 * looks less often: its worker ends the wait, no letter but the end is due, and hundreds of ranks on few cores would
 * take them from each other and from the work. */
static const double wait_most = 2e-3, wait_most_of_rank_0 = 0.5e-3, wait_most_at_work = 50e-3;

/* What comes from the worker ends the wait. True: something has. */
static bool wait_for_worker(const struct shift *shift, double seconds)
{
    struct pollfd descriptors[2];
    nfds_t count;
    const struct timespec time = {.tv_nsec = (long)(seconds * 1e9)};
    executor_poll(shift->executor, descriptors, &count);
    return ppoll(descriptors, count, &time, NULL) > 0;
}

/* True: there was a letter. */
static bool deliver_letters(const struct shift *shift)
{
    struct letter letter;
    bool any = false;
    while (mailbox_receive(shift->mailbox, &letter)) {
        deliver(&letter, shift->executor, shift->coordinator);
        free(letter.text);
        any = true;
    }
    if (shift->coordinator)
        coordinator_settle(shift->coordinator);
    return any;
}

static double longest_wait(const struct shift *shift)
{
    if (shift->coordinator && shift->ranks > 1)
        return wait_most_of_rank_0;
    return executor_works(shift->executor) ? wait_most_at_work : wait_most;
}

void shift_run(struct shift *shift)
{
    struct pause pause = pause_none();
    while (!executor_stopped(shift->executor) ||
           (shift->coordinator && !coordinator_finished(shift->coordinator))) {
        bool moved = wait_for_worker(shift, pause.seconds);
        if (signals_seen)
            shift_interrupt(shift);
        leave_silent_rank_0(shift);
        if (shift->coordinator)
            coordinator_watch(shift->coordinator, clock_monotonic());
        executor_step(shift->executor);
        moved |= deliver_letters(shift);
        pause_look(&pause, clock_monotonic(), moved,
                   !shift->coordinator && !executor_works(shift->executor), longest_wait(shift));
    }
}
