#include "ranks/progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const double line_interval = 30.0; /* s, between lines of a batch log */

struct progress {
    const struct log *log;
    const char *what;
    size_t total, at_start;
    double start, printed; /* s, CLOCK_MONOTONIC */
};

struct progress *progress_create(const struct log *log, const char *what, size_t done, size_t total)
{
    struct progress *progress = calloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    *progress = (struct progress){log, what, total, done, clock_monotonic(), 0};
    return progress;
}

void progress_start(struct progress *progress)
{
    progress->start = clock_monotonic();
}

static void format_left(double seconds, char text[32])
{
    long left = (long)(seconds + 0.5);
    if (left < 3600)
        snprintf(text, 32, "%ld:%02ld", left / 60, left % 60);
    else
        snprintf(text, 32, "%ld:%02ld:%02ld", left / 3600, left / 60 % 60, left % 60);
}

void progress_format(size_t done, size_t total, size_t failed, double seconds_left, char text[128])
{
    enum { WIDTH = 20 };
    char bar[WIDTH + 1], left[32] = "-:--";
    size_t filled = total ? done * WIDTH / total : WIDTH;
    memset(bar, '.', WIDTH);
    memset(bar, '#', filled);
    bar[WIDTH] = '\0';
    if (seconds_left >= 0)
        format_left(seconds_left, left);
    snprintf(text, 128, "[%s] %zu/%zu, %zu failed, %s left", bar, done, total, failed, left);
}

void progress_update(struct progress *progress, size_t left, size_t failed)
{
    const struct log *log = progress->log;
    size_t done = progress->total - left, here = done - progress->at_start;
    double now = clock_monotonic(), seconds_left = -1;
    char text[128];
    if (here > 0)
        seconds_left = (now - progress->start) / (double)here * (double)left;
    progress_format(done, progress->total, failed, seconds_left, text);
    if (log->terminal && log->level >= LOG_INFO) {
        fprintf(log->stream, "\r\033[K%s%s", progress->what, text);
        fflush(log->stream);
    } else if (left == 0 || now - progress->printed >= line_interval) {
        log_print(log, LOG_INFO, "%s%s", progress->what, text);
        progress->printed = now;
    }
}

void progress_destroy(struct progress *progress)
{
    if (progress && progress->log->terminal) {
        fputs("\r\033[K", progress->log->stream);
        fflush(progress->log->stream);
    }
    free(progress);
}
