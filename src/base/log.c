#include "base/log.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

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
