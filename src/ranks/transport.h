/* Messages between ranks by MPI, point to point. Sending copies and never waits; receiving never
 * waits either, so a rank can look after its worker in the same loop. Messages from one rank to
 * another arrive in the order of sending. A rank may send to itself. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "ranks/message.h"

struct transport;

/* The communicator stays the caller's and must outlive the transport. NULL without memory. */
struct transport *transport_create(MPI_Comm comm);
/* Waits until everything sent has been received. Takes NULL. */
void transport_destroy(struct transport *transport);

enum status transport_send(struct transport *transport, int to, enum message_kind kind,
                           const char *text, struct error *error);
/* Sends through this transport, which must outlive it. */
struct sender transport_sender(struct transport *transport);

/* True if there was a message. */
bool transport_receive(struct transport *transport, struct message *message);

/* How long a rank sleeps before it polls for messages again. MPI has no descriptor to wait for, so
 * they are looked for again and again: soon after something has moved, then less and less often.
 * Each look takes the processor from somebody where ranks share cores.
 *
 * Whoever waits for an answer first sleeps for most of what answers took so far, and then polls at
 * short intervals: so it neither polls often nor misses the answer for long. Pure but for its own
 * memory. */
struct poll_interval {
    double seconds;       /* of the next sleep */
    double waiting_since; /* s, on the clock of poll_interval_update; NaN: no answer is due */
    double typical;       /* s, that an answer takes; 0: none has come yet */
    int polls;            /* in vain, since it was waiting_since */
};

struct poll_interval poll_interval_start(void); /* the next look comes at once */

/* After each look. `moved`: something came or went. `due`: the rank waits for a message that
 * answers it. `longest`: s, of a sleep, unless answers take much longer. */
void poll_interval_update(struct poll_interval *interval, double now, bool moved, bool due,
                          double longest);
