/* Messages between ranks by MPI, point to point. Sending copies the message. Neither sending nor
 * receiving waits, so a rank serves its worker in the same loop. Messages from one rank to another
 * keep their order. A rank may send to itself. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "ranks/message.h"

struct transport;

/* Borrows the communicator. NULL: no memory. */
struct transport *transport_create(MPI_Comm comm);
/* Waits until every message has been received. Takes NULL. */
void transport_destroy(struct transport *transport);

/* A struct sender's function; its context is a struct transport. */
enum status transport_send(void *transport, int to, enum message_kind kind, const char *text,
                           struct error *error);

/* False: no message has arrived. */
bool transport_receive(struct transport *transport, struct message *message);

/* Returns the time until the next poll for messages, s. MPI has no descriptor to wait for, so a
 * rank polls: soon after a message came or went (`moved`), then ever less often up to `longest`,
 * because polls take time from ranks on shared cores. `last`: the previous interval, s. */
double poll_interval(double last, bool moved, double longest);
