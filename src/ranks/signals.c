#include "ranks/signals.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>

volatile sig_atomic_t signals_caught;

static void note(int number)
{
    if (number != SIGALRM || !signals_caught) /* SIGALRM must not hide another signal */
        signals_caught = number;
}

static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGALRM};

/* False for SIGHUP under nohup. */
static bool ends(int number)
{
    struct sigaction now;
    return number != SIGHUP || sigaction(SIGHUP, NULL, &now) != 0 || now.sa_handler != SIG_IGN;
}

void signals_ending(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; numbers[i] != SIGALRM; ++i)
        if (ends(numbers[i]))
            sigaddset(set, numbers[i]);
}

void signals_catch(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (ends(numbers[i]))
            sigaction(numbers[i], &action, NULL);
}

void signals_alarm(double seconds)
{
    static const double shortest = 1e-3; /* s; 0 would send no signal */
    struct itimerval timer = {.it_value = {0}};
    if (!isinf(seconds)) {
        double wait = fmax(seconds, shortest);
        timer.it_value.tv_sec = (time_t)wait;
        timer.it_value.tv_usec = (suseconds_t)((wait - floor(wait)) * 1e6);
    }
    setitimer(ITIMER_REAL, &timer, NULL);
}

const char *signals_text(int number)
{
    return number == SIGALRM ? "the time limit has come" : "interrupted by a signal";
}
