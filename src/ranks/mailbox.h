/* Text letters between ranks, point to point. Sending copies and never waits; receiving never waits
 * either, so a rank can look after its worker in the same loop. Letters from one rank to another
 * arrive in the order of sending. A rank may write to itself. */
#ifndef ROOFSWEEP_MAILBOX_H
#define ROOFSWEEP_MAILBOX_H

#include <mpi.h>
#include <stdbool.h>

#include "base/status.h"

enum letter_kind {
    LETTER_DEVICE,    /* to rank 0: device JSON; the sender is ready for work */
    LETTER_WORK,      /* from rank 0: a request line for the worker */
    LETTER_RECORD,    /* to rank 0: record JSON of that work; ready for more */
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

struct mailbox;

/* The communicator stays the caller's and must outlive the mailbox. NULL without memory. */
struct mailbox *mailbox_create(MPI_Comm comm);
/* Waits until everything sent has been received. Takes NULL. */
void mailbox_destroy(struct mailbox *mailbox);

enum status mailbox_send(struct mailbox *mailbox, int to, enum letter_kind kind, const char *text,
                         struct error *error);

/* True if there was a letter. */
bool mailbox_receive(struct mailbox *mailbox, struct letter *letter);

#endif
