/* Text letters between ranks, point to point. Sending copies and never waits; receiving never waits
 * either, so a rank can look after its worker in the same loop. Letters from one rank to another
 * arrive in the order of sending. A rank may write to itself. */
#ifndef ROOFSWEEP_MAILBOX_H
#define ROOFSWEEP_MAILBOX_H

#include <mpi.h>
#include <stdbool.h>

#include "ranks/post.h"

struct mailbox;

/* The communicator stays the caller's and must outlive the mailbox. NULL without memory. */
struct mailbox *mailbox_create(MPI_Comm comm);
/* Waits until everything sent has been received. Takes NULL. */
void mailbox_destroy(struct mailbox *mailbox);

enum status mailbox_send(struct mailbox *mailbox, int to, enum letter_kind kind, const char *text,
                         struct error *error);
/* Sends through this mailbox, which must outlive it. */
struct post mailbox_post(struct mailbox *mailbox);

/* True if there was a letter. */
bool mailbox_receive(struct mailbox *mailbox, struct letter *letter);

#endif
