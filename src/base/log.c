#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

/* A pipe or a terminal that perhaps nobody reads. */
struct outlet {
    int descriptor;
    size_t lost; /* messages dropped since the last one that was written */
};

/* Writes to a blocking or non-blocking descriptor that perhaps nobody reads. False: errno says why;
 * ETIMEDOUT after the limit. */
static bool outlet_put(int descriptor, const char *text, size_t length,
                       const struct wait_limit *limit)
{
    struct pollfd out = {.fd = descriptor, .events = POLLOUT};
    struct countdown wait = countdown_start(limit->seconds > 0 ? limit->seconds : INFINITY);
    for (size_t at = 0; at < length;) {
        const int looks = (int)fmin(100, 1e3 * wait.left); /* ms */
        if (poll(&out, 1, looks) <= 0) {
            errno = ETIMEDOUT;
            if (wait_over(&wait, limit))
                return false;
            continue;
        }
        /* poll promises room for PIPE_BUF bytes */
        size_t part = length - at < PIPE_BUF ? length - at : PIPE_BUF;
        ssize_t written = write(descriptor, text + at, part);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        at += written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* Waits up to a second for a slow reader, but only 1 ms while messages are being dropped. */
static ssize_t outlet_write(void *cookie, const char *text, size_t length)
{
    struct outlet *outlet = cookie;
    const struct wait_limit limit = {.seconds = outlet->lost ? 1e-3 : 1};
    char missing[80] = "";
    if (outlet->lost)
        snprintf(missing, sizeof missing,
                 "roofsweep: %zu messages are missing here, nobody read them\n", outlet->lost);
    bool put = outlet_put(outlet->descriptor, missing, strlen(missing), &limit);
    if (put)
        outlet->lost = 0;
    put = put && outlet_put(outlet->descriptor, text, length, &limit);
    outlet->lost += !put && errno == ETIMEDOUT; /* otherwise the reader has gone */
    return (ssize_t)length;
}

static int outlet_close(void *cookie)
{
    free(cookie);
    return 0;
}

/* Returns a stream that writes by outlet_write to the descriptor of `stream`; `stream` itself if it
 * is a regular file. */
static FILE *outlet_open(FILE *stream)
{
    struct stat about;
    struct outlet *outlet;
    if (fileno(stream) < 0 || fstat(fileno(stream), &about) != 0 || S_ISREG(about.st_mode) ||
        !(outlet = calloc(1, sizeof *outlet)))
        return stream;
    outlet->descriptor = fileno(stream);
    const cookie_io_functions_t functions = {.write = outlet_write, .close = outlet_close};
    FILE *opened = fopencookie(outlet, "w", functions);
    if (!opened) {
        free(outlet);
        return stream;
    }
    setvbuf(opened, NULL, _IONBF, 0);
    return opened;
}

bool colour_wanted(int descriptor)
{
    const char *refused = getenv("NO_COLOR"), *kind = getenv("TERM");
    return isatty(descriptor) == 1 && !(refused && *refused) && !(kind && !strcmp(kind, "dumb"));
}

struct log log_create(FILE *stream, enum log_level level, int rank)
{
    struct log log = {.stream = outlet_open(stream),
                      .level = level,
                      .terminal = isatty(fileno(stream)) == 1,
                      .colour = colour_wanted(fileno(stream)),
                      .rank = rank};
    if (gethostname(log.hostname, sizeof log.hostname - 1) != 0)
        log.hostname[0] = '\0';
    return log;
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
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (log->rank > 0)
        snprintf(rank, sizeof rank, " rank %d", log->rank);
    /* One call, so that lines of several ranks do not mix. */
    const bool colour = log->colour && level == LOG_WARNING;
    fprintf(log->stream, "%s%sroofsweep: %s %s%s: %s%s%s\n", log->terminal ? "\r\033[K" : "",
            colour ? COLOUR_YELLOW : "", stamp, log->hostname, rank,
            level == LOG_WARNING ? "warning: " : "", text, colour ? COLOUR_END : "");
    fflush(log->stream);
}

void log_error(const struct log *log, const struct error *error)
{
    fputs(log->terminal ? "\r\033[K" : "", log->stream);
    fputs(log->colour ? COLOUR_RED : "", log->stream);
    utf8_print(log->stream, "roofsweep: %s\n", error->text);
    fputs(log->colour ? COLOUR_END : "", log->stream);
}

enum status printout_open(struct printout *printout, struct error *error)
{
    *printout = (struct printout){0};
    printout->stream = open_memstream(&printout->text, &printout->length);
    return printout->stream ? STATUS_OK : error_set(error, STATUS_SYSTEM, "no memory to print");
}

enum status printout_close(struct printout *printout, const struct wait_limit *limit, bool *unread,
                           struct error *error)
{
    enum status status = STATUS_OK;
    bool whole = fflush(printout->stream) == 0 && !ferror(printout->stream);
    fclose(printout->stream);
    bool printed = whole && outlet_put(STDOUT_FILENO, printout->text, printout->length, limit);
    const int cause = errno;
    *unread = whole && !printed && (cause == EPIPE || cause == ETIMEDOUT);
    if (!whole)
        status = error_set(error, STATUS_SYSTEM, "no memory to print");
    else if (!printed)
        status = error_set(error, STATUS_SYSTEM, "cannot write to standard output: %s",
                           cause == ETIMEDOUT ? "nobody reads it" : strerror(cause));
    free(printout->text);
    return status;
}
