/* The end of what a process prints: its last lines, kept as they come. */
#ifndef ROOFSWEEP_TAIL_H
#define ROOFSWEEP_TAIL_H

#include <stddef.h>

enum { TAIL_MAX = 600 };

/* All zero: nothing was printed. */
struct tail {
    char text[TAIL_MAX + 1];
    size_t length;
};

/* Keeps the last TAIL_MAX bytes of what is there and of what comes. */
void tail_append(struct tail *tail, const char *text, size_t length);

/* Puts its lines on one: '|' between them, a blank for any other control character. */
void tail_join(struct tail *tail);

#endif
