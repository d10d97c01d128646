#include "base/printout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status printout_open(struct printout *printout, struct error *error)
{
    *printout = (struct printout){0};
    printout->stream = open_memstream(&printout->text, &printout->length);
    return printout->stream ? STATUS_OK : error_set(error, STATUS_SYSTEM, "no memory to print");
}

static enum status print(const char *text, size_t length, bool *unread, struct error *error)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            *unread = errno == EPIPE;
            return error_set(error, STATUS_SYSTEM, "cannot write to standard output: %s",
                             strerror(errno));
        }
        text += written;
        length -= (size_t)written;
    }
    return STATUS_OK;
}

enum status printout_close(struct printout *printout, bool *unread, struct error *error)
{
    bool pipe_is_unread = false;
    bool whole = fflush(printout->stream) == 0 && !ferror(printout->stream);
    fclose(printout->stream);
    enum status status = whole ? print(printout->text, printout->length, &pipe_is_unread, error)
                               : error_set(error, STATUS_SYSTEM, "no memory to print");
    free(printout->text);
    if (unread && status)
        *unread = pipe_is_unread;
    return status;
}
