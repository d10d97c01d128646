/* Messages between ranks. transport.h sends them by MPI; tests collect them. */
#pragma once

#include "base/status.h"

enum message_kind {
    MESSAGE_DEVICE,      /* to rank 0: JSON of the device; ready for work */
    MESSAGE_MEASURE,     /* from rank 0: request line for the worker */
    MESSAGE_RECORD,      /* to rank 0: attempts, a blank, JSON of the record */
    MESSAGE_TIMED,       /* to rank 0: configuration that waits for counting; ready for work */
    MESSAGE_COUNT,       /* from rank 0: count the waiting rows; no text */
    MESSAGE_RETURNED,    /* to rank 0: timed configuration that was lost with its worker */
    MESSAGE_DEVICE_LOST, /* to rank 0: reason for the loss of the device */
    MESSAGE_SIGNAL,      /* to rank 0: a signal arrived, or ended the row */
    MESSAGE_STOP,        /* from rank 0: stop now */
    MESSAGE_ECHO,        /* to rank 0, which returns it: liveness */
    MESSAGE_HEALTH,      /* to rank 0: JSON of the device with health_end */
    MESSAGE_FINISHED     /* to rank 0: last message */
};

struct message {
    enum message_kind kind;
    int from;
    char *text; /* NUL-terminated; the receiver frees it */
};

/* Plain data, valid while `context` lives. */
struct sender {
    void *context;
    /* Copies the text without waiting. STATUS_SYSTEM: no memory. */
    enum status (*send)(void *context, int to, enum message_kind kind, const char *text,
                        struct error *error);
};
