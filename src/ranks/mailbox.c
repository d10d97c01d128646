#include "ranks/mailbox.h"

#include <stdlib.h>
#include <string.h>

/* A letter on its way: MPI reads the text until the request completes. */
struct outgoing {
    MPI_Request request;
    char *text;
};

struct mailbox {
    MPI_Comm comm;
    struct outgoing *outgoing;
    size_t count, capacity;
};

struct mailbox *mailbox_create(MPI_Comm comm)
{
    struct mailbox *mailbox = calloc(1, sizeof *mailbox);
    if (mailbox)
        mailbox->comm = comm;
    return mailbox;
}

/* Frees the letters that have been received. */
static void free_delivered(struct mailbox *mailbox)
{
    for (size_t i = 0; i < mailbox->count;) {
        int done;
        MPI_Test(&mailbox->outgoing[i].request, &done, MPI_STATUS_IGNORE);
        if (done) {
            free(mailbox->outgoing[i].text);
            mailbox->outgoing[i] = mailbox->outgoing[--mailbox->count];
        } else {
            ++i;
        }
    }
}

void mailbox_destroy(struct mailbox *mailbox)
{
    if (!mailbox)
        return;
    for (size_t i = 0; i < mailbox->count; ++i) {
        MPI_Wait(&mailbox->outgoing[i].request, MPI_STATUS_IGNORE);
        free(mailbox->outgoing[i].text);
    }
    free(mailbox->outgoing);
    free(mailbox);
}

static struct outgoing *outgoing_add(struct mailbox *mailbox)
{
    if (mailbox->count == mailbox->capacity) {
        size_t capacity = mailbox->capacity ? 2 * mailbox->capacity : 8;
        struct outgoing *grown = realloc(mailbox->outgoing, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        mailbox->outgoing = grown;
        mailbox->capacity = capacity;
    }
    return &mailbox->outgoing[mailbox->count];
}

enum status mailbox_send(struct mailbox *mailbox, int to, enum letter_kind kind, const char *text,
                         struct error *error)
{
    free_delivered(mailbox);
    struct outgoing *outgoing = outgoing_add(mailbox);
    char *copy = outgoing ? strdup(text) : NULL;
    if (!copy)
        return error_set(error, STATUS_SYSTEM, "no memory for a letter of %zu bytes", strlen(text));
    MPI_Isend(copy, (int)strlen(copy) + 1, MPI_CHAR, to, (int)kind, mailbox->comm,
              &outgoing->request);
    outgoing->text = copy;
    ++mailbox->count;
    return STATUS_OK;
}

static enum status send_by_mailbox(void *context, int to, enum letter_kind kind, const char *text,
                                   struct error *error)
{
    return mailbox_send(context, to, kind, text, error);
}

struct post mailbox_post(struct mailbox *mailbox)
{
    return (struct post){.context = mailbox, .send = send_by_mailbox};
}

bool mailbox_receive(struct mailbox *mailbox, struct letter *letter)
{
    free_delivered(mailbox); /* lets MPI progress long letters, too */
    int waiting, length;
    MPI_Status status;
    MPI_Message message;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, mailbox->comm, &waiting, &message, &status);
    if (!waiting)
        return false;
    MPI_Get_count(&status, MPI_CHAR, &length);
    char *text = malloc((size_t)length);
    if (!text) /* the letter would be lost, and a record with it */
        MPI_Abort(mailbox->comm, 1);
    MPI_Mrecv(text, length, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    *letter = (struct letter){(enum letter_kind)status.MPI_TAG, status.MPI_SOURCE, text};
    return true;
}
