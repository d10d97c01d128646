#include "ranks/transport.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ranks/liveness.h"

/* A message in flight: MPI reads the text until the request completes. */
struct outgoing {
    MPI_Request request;
    char *text;
};

struct transport {
    MPI_Comm comm;
    struct outgoing *outgoing;
    size_t count;
};

struct transport *transport_create(MPI_Comm comm)
{
    struct transport *transport = calloc(1, sizeof *transport);
    if (transport)
        transport->comm = comm;
    return transport;
}

static void free_delivered(struct transport *transport)
{
    for (size_t i = 0; i < transport->count;) {
        int done;
        MPI_Test(&transport->outgoing[i].request, &done, MPI_STATUS_IGNORE);
        if (done) {
            free(transport->outgoing[i].text);
            transport->outgoing[i] = transport->outgoing[--transport->count];
        } else {
            ++i;
        }
    }
}

void transport_destroy(struct transport *transport)
{
    if (!transport)
        return;
    for (size_t i = 0; i < transport->count; ++i) {
        MPI_Wait(&transport->outgoing[i].request, MPI_STATUS_IGNORE);
        free(transport->outgoing[i].text);
    }
    free(transport->outgoing);
    free(transport);
}

enum status transport_send(void *context, int to, enum message_kind kind, const char *text,
                           struct error *error)
{
    struct transport *transport = context;
    free_delivered(transport);
    char *copy = strdup(text);
    if (!copy || !ARRAY_GROW(transport->outgoing, transport->count)) {
        free(copy);
        return error_set(error, STATUS_SYSTEM, "no memory for a message of %zu bytes",
                         strlen(text));
    }
    struct outgoing *outgoing = &transport->outgoing[transport->count++];
    MPI_Isend(copy, (int)strlen(copy) + 1, MPI_CHAR, to, (int)kind, transport->comm,
              &outgoing->request);
    outgoing->text = copy;
    return STATUS_OK;
}

bool transport_receive(struct transport *transport, struct message *message)
{
    free_delivered(transport); /* this call also lets MPI make progress with long messages */
    int waiting, length;
    MPI_Status status;
    MPI_Message matched;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, transport->comm, &waiting, &matched, &status);
    if (!waiting)
        return false;
    MPI_Get_count(&status, MPI_CHAR, &length);
    /* If memory is lacking, a message, perhaps a record, would be lost. */
    char *text = memory_require(transport->comm, malloc((size_t)length), "a message");
    MPI_Mrecv(text, length, MPI_CHAR, &matched, MPI_STATUS_IGNORE);
    *message = (struct message){(enum message_kind)status.MPI_TAG, status.MPI_SOURCE, text};
    return true;
}

double poll_interval(double last, bool moved, double longest)
{
    const double shortest = 50e-6; /* s */
    return moved ? 0 : fmin(fmax(2 * last, shortest), longest);
}
