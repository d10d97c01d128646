#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

struct log log_create(FILE *stream, enum log_level level, int rank)
{
    struct log log = {stream, level, isatty(fileno(stream)) == 1, rank, ""};
    if (gethostname(log.hostname, sizeof log.hostname - 1) != 0)
        log.hostname[0] = '\0';
    return log;
}

/* Now, "2026-11-22T01:50:03Z". */
static void stamp_format(char text[32])
{
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

void log_print(const struct log *log, enum log_level level, const char *format, ...)
{
    if (level > log->level || (level == LOG_INFO && log->rank != 0))
        return;
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    text[utf8_clean(text, strlen(text))] = '\0';
    char rank[32] = "", stamp[32];
    if (log->rank > 0)
        snprintf(rank, sizeof rank, " rank %d", log->rank);
    stamp_format(stamp);
    /* One call, so that lines of several ranks do not run into each other. */
    fprintf(log->stream, "%sroofsweep: %s %s%s: %s%s\n", log->terminal ? "\r\033[K" : "", stamp,
            log->hostname, rank, level == LOG_WARNING ? "warning: " : "", text);
    fflush(log->stream);
}

void log_error(const struct log *log, const struct error *error)
{
    fputs(log->terminal ? "\r\033[K" : "", log->stream);
    utf8_print(log->stream, "roofsweep: %s\n", error->text);
}

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
