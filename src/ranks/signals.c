#include "ranks/signals.h"

#include <stddef.h>

volatile sig_atomic_t signals_seen;

static void note(int number)
{
    signals_seen = number;
}

void signals_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        sigaction(numbers[i], &action, NULL);
}
