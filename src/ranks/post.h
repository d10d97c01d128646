/* Letters between ranks, and how one is sent. Coordinator and executor know no more of the other
 * ranks than this: a mailbox carries their letters by MPI, a test collects them. */
#ifndef ROOFSWEEP_POST_H
#define ROOFSWEEP_POST_H

#include "base/status.h"

enum letter_kind {
    LETTER_DEVICE,    /* to rank 0: device JSON; the sender is ready for work */
    LETTER_WORK,      /* from rank 0: a request line for the worker */
    LETTER_RECORD,    /* to rank 0: record JSON of that work, which is done */
    LETTER_TIMED,     /* to rank 0: configuration; it waits for its counters; ready for more */
    LETTER_COUNT,     /* from rank 0: count what waits; no text */
    LETTER_BACK,      /* to rank 0: configuration that was timed, and lost with its worker */
    LETTER_LOST,      /* to rank 0: why the sender has no usable device any more */
    LETTER_INTERRUPT, /* to rank 0: a signal arrived */
    LETTER_STOP,      /* from rank 0: stop, whatever you do */
    LETTER_BYE        /* to rank 0: the sender's last letter */
};

struct letter {
    enum letter_kind kind;
    int from;
    char *text; /* NUL-terminated, owned by whoever received it: free */
};

/* Who carries letters. Plain data; copy it freely while `context` lives. */
struct post {
    void *context;
    /* Copies the text and does not wait. STATUS_SYSTEM: no memory. */
    enum status (*send)(void *context, int to, enum letter_kind kind, const char *text,
                        struct error *error);
};

enum status post_send(const struct post *post, int to, enum letter_kind kind, const char *text,
                      struct error *error);

#endif
