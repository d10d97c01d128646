/* Messages between the ranks of a sweep, and who sends them: transport.h by MPI, a test collects
 * them. */
#pragma once

#include "base/status.h"

enum message_kind {
    MESSAGE_DEVICE,      /* to rank 0: device JSON; the sender is ready for work */
    MESSAGE_MEASURE,     /* from rank 0: a request line for the worker */
    MESSAGE_RECORD,      /* to rank 0: number of attempts, a blank, the record's JSON */
    MESSAGE_TIMED,       /* to rank 0: configuration; it waits for its counters; ready for more */
    MESSAGE_COUNT,       /* from rank 0: count what waits; no text */
    MESSAGE_RETURNED,    /* to rank 0: configuration that was timed, and lost with its worker */
    MESSAGE_DEVICE_LOST, /* to rank 0: why the sender has no usable device any more */
    MESSAGE_SIGNAL,      /* to rank 0: a signal arrived, or has ended what the sender measured */
    MESSAGE_STOP,        /* from rank 0: stop, whatever you do */
    MESSAGE_ECHO,        /* to rank 0, which sends it back: is it there? */
    MESSAGE_HEALTH,      /* to rank 0: device JSON again, with its health at the end */
    MESSAGE_FINISHED     /* to rank 0: the sender's last message */
};

struct message {
    enum message_kind kind;
    int from;
    char *text; /* NUL-terminated, owned by whoever received it: free */
};

/* Plain data; copy it freely while `context` lives. */
struct sender {
    void *context;
    /* Copies the text and does not wait. STATUS_SYSTEM: no memory. */
    enum status (*send)(void *context, int to, enum message_kind kind, const char *text,
                        struct error *error);
};
