#include "ranks/transport.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* A message on its way: MPI reads the text until the request completes. */
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

/* Frees the messages that have been received. */
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

enum status transport_send(struct transport *transport, int to, enum message_kind kind,
                           const char *text, struct error *error)
{
    free_delivered(transport);
    char *copy = strdup(text);
    void *grown = array_grow(transport->outgoing, transport->count, sizeof *transport->outgoing);
    transport->outgoing = grown ? grown : transport->outgoing;
    if (!copy || !grown) {
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

static enum status send_message(void *context, int to, enum message_kind kind, const char *text,
                                struct error *error)
{
    return transport_send(context, to, kind, text, error);
}

struct sender transport_sender(struct transport *transport)
{
    return (struct sender){.context = transport, .send = send_message};
}

bool transport_receive(struct transport *transport, struct message *message)
{
    free_delivered(transport); /* lets MPI progress long messages, too */
    int waiting, length;
    MPI_Status status;
    MPI_Message matched;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, transport->comm, &waiting, &matched, &status);
    if (!waiting)
        return false;
    MPI_Get_count(&status, MPI_CHAR, &length);
    char *text = malloc((size_t)length);
    if (!text) /* the message would be lost, and a record with it */
        MPI_Abort(transport->comm, 1);
    MPI_Mrecv(text, length, MPI_CHAR, &matched, MPI_STATUS_IGNORE);
    *message = (struct message){(enum message_kind)status.MPI_TAG, status.MPI_SOURCE, text};
    return true;
}

/* ---- how often ---- */

static const double least = 50e-6;     /* s */
static const double most_of_it = 0.75; /* of what is usual, before the first look */
static const double part_of_it = 0.125;
static const double weight_of_less = 0.5,
                    weight_of_more = 0.25; /* of the last answer in what is usual */
/* s: who waited for longer waited for others, not for an answer. */
static const double usual_most = 50e-3;
/* An answer that is there at the first look may have come long before. It is taken for this part of
 * what is usual. */
static const double part_at_first_look = 0.4;

struct poll_interval poll_interval_start(void)
{
    return (struct poll_interval){.asked = NAN};
}

static void learn_answer(struct poll_interval *interval, double seconds)
{
    if (seconds > usual_most)
        return;
    bool at_once = interval->usual > 0 && interval->looks == 0;
    double answer = fmax(at_once ? part_at_first_look * interval->usual : seconds, least);
    double weight = answer < interval->usual ? weight_of_less : weight_of_more;
    interval->usual =
        interval->usual > 0 ? (1 - weight) * interval->usual + weight * answer : answer;
}

/* An answer that takes far longer than usual is looked for less and less often. */
static double until_answer(const struct poll_interval *interval, double now, double longest)
{
    double waited = now - interval->asked, first = most_of_it * interval->usual;
    double part = part_of_it * interval->usual;
    double later = fmin(part_of_it * fmax(waited, interval->usual), fmax(longest, part));
    return fmax(waited < first ? first - waited : later, least);
}

void poll_interval_update(struct poll_interval *interval, double now, bool moved, bool due,
                          double longest)
{
    if (!due && !isnan(interval->asked))
        learn_answer(interval, now - interval->asked);
    interval->looks = due && !isnan(interval->asked) ? interval->looks + 1 : 0;
    if (!due)
        interval->asked = NAN;
    else if (isnan(interval->asked))
        interval->asked = now;
    if (due && interval->usual > 0)
        interval->seconds = until_answer(interval, now, longest);
    else
        interval->seconds = moved ? 0 : fmin(fmax(2 * interval->seconds, least), longest);
}
