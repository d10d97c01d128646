#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

/* A pipe or a terminal that perhaps nobody reads. */
struct outlet {
    int descriptor;
    size_t lost; /* messages dropped since the last one that was written */
};

static bool outlet_takes(const struct outlet *outlet, int milliseconds)
{
    struct pollfd out = {.fd = outlet->descriptor, .events = POLLOUT};
    int found;
    while ((found = poll(&out, 1, milliseconds)) < 0 && errno == EINTR)
        ;
    return found > 0;
}

/* Waits a second for a slow reader. After a dropped message it does not wait until the reader reads
 * again. */
static ssize_t outlet_write(void *cookie, const char *text, size_t length)
{
    const int patience = 1000; /* ms */
    struct outlet *outlet = cookie;
    bool takes = outlet_takes(outlet, outlet->lost ? 0 : patience);
    if (takes && outlet->lost) {
        dprintf(outlet->descriptor, "roofsweep: %zu messages are missing here, nobody read them\n",
                outlet->lost);
        outlet->lost = 0;
        takes = outlet_takes(outlet, 0);
    }
    for (size_t at = 0; at < length && takes;) {
        /* poll promises room for PIPE_BUF bytes */
        size_t part = length - at < PIPE_BUF ? length - at : PIPE_BUF;
        ssize_t written = write(outlet->descriptor, text + at, part);
        if (written < 0)
            return (ssize_t)length; /* the reader has gone */
        at += (size_t)written;
        takes = at == length || outlet_takes(outlet, patience);
    }
    outlet->lost += !takes;
    return (ssize_t)length;
}

static int outlet_close(void *cookie)
{
    free(cookie);
    return 0;
}

/* A stream over `stream` that never waits for a reader. Regular files are returned as they are. */
static FILE *never_waiting(FILE *stream)
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
    struct log log = {.stream = never_waiting(stream),
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

enum status printout_close(struct printout *printout, bool *unread, struct error *error)
{
    enum status status = STATUS_OK;
    bool whole = fflush(printout->stream) == 0 && !ferror(printout->stream);
    fclose(printout->stream);
    bool printed = whole && file_write(STDOUT_FILENO, printout->text, printout->length);
    if (unread && !printed)
        *unread = whole && errno == EPIPE;
    if (!whole)
        status = error_set(error, STATUS_SYSTEM, "no memory to print");
    else if (!printed)
        status =
            error_set(error, STATUS_SYSTEM, "cannot write to standard output: %s", strerror(errno));
    free(printout->text);
    return status;
}
