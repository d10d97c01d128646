/* Processes as ps shows them. */
#ifndef ROOFSWEEP_TEST_PROCESS_STATE_H
#define ROOFSWEEP_TEST_PROCESS_STATE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* 'X': there is none. */
static inline char process_state(pid_t pid)
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

static inline bool is_running(pid_t pid)
{
    char state = process_state(pid);
    return state != 'X' && state != 'Z';
}

#endif
