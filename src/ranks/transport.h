/* Messages between ranks by MPI, point to point. Neither sending, which copies, nor receiving
 * waits, so a rank serves its worker in the same loop. Messages from one rank to another keep their
 * order. A rank may send to itself. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "ranks/message.h"

struct transport;

/* Borrows the communicator. NULL without memory. */
struct transport *transport_create(MPI_Comm comm);
/* Waits until every message has been received. Takes NULL. */
void transport_destroy(struct transport *transport);

enum status transport_send(struct transport *transport, int to, enum message_kind kind,
                           const char *text, struct error *error);
/* Sends through `transport`, which must outlive the sender. */
struct sender transport_sender(struct transport *transport);

/* True: a message. */
bool transport_receive(struct transport *transport, struct message *message);

/* Sleep between polls for messages. MPI has no descriptor to wait for, so a rank polls: soon after
 * a message, then ever less often, because polls take time from ranks on shared cores.
 *
 * A rank that waits for an answer sleeps for most of the typical time of answers, then polls at
 * short intervals: few polls and little delay. Pure but for its state. */
struct poll_interval {
    double seconds;       /* s, next sleep */
    double waiting_since; /* s, on the clock of poll_interval_update; NaN: no answer due */
    double typical;       /* s, typical time of answers; 0: unknown */
    int polls;            /* polls without the answer */
};

struct poll_interval poll_interval_start(void); /* first poll at once */

/* After each poll. `moved`: a message came or went. `due`: an answer is outstanding. `longest`: s,
 * limit on the sleep unless answers typically take much longer. */
void poll_interval_update(struct poll_interval *interval, double now, bool moved, bool due,
                          double longest);
