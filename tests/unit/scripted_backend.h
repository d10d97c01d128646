/* What stands in for cuDNN's graph backend: descriptors with their attributes, engines by number, and
 * graphs that are computed element by element when they run. */
#ifndef ROOFSWEEP_SCRIPTED_BACKEND_H
#define ROOFSWEEP_SCRIPTED_BACKEND_H

#include <stdint.h>
#include <cudnn.h>

enum { SCRIPTED_OUTPUTS = 4096 };

extern struct scripted_backend {
    int engines;         /* that its first heuristic names; 0: it knows none */
    int64_t workspace;   /* byte, of each plan */
    int fail_at;         /* the call of this number, from 1, fails; 0: none */
    int calls, alive;    /* descriptors that there are */
    int heuristics;      /* that were asked */
    int operations, ran; /* of the graph that ran last; how many did */
    /* An element of an input, by the tensor's unique id and its place in memory. */
    double (*value)(int64_t uid, int64_t at);
    double output[SCRIPTED_OUTPUTS]; /* of the last result, by its place in memory */
    /* Takes an element of each of a norm's results; NULL: they are not wanted. */
    void (*result)(int64_t uid, int64_t at, double value);
} scripted_backend;

#endif
