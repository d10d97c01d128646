#include "ranks/progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { RECENT = 32 };
static const double line_interval = 30.0; /* s, between lines of a batch log */

struct progress {
    const struct log *log;
    const char *what;
    size_t total;
    double printed; /* s, CLOCK_MONOTONIC: time of the last line */
    /* The latest changes, by number % RECENT. The first change is the end of the first row, because
     * work before it, such as loading libraries, does not repeat. */
    struct {
        double time; /* s, CLOCK_MONOTONIC */
        size_t reached;
    } recent[RECENT];
    size_t changes, reached;
};

struct progress *progress_create(const struct log *log, const char *what, size_t done, size_t total)
{
    struct progress *progress = calloc(1, sizeof *progress);
    if (progress)
        *progress = (struct progress){.log = log, .what = what, .total = total, .reached = done};
    return progress;
}

void progress_start(struct progress *progress)
{
    progress->changes = 0;
}

void progress_format(size_t total, struct progress_left left, size_t failed, double seconds_left,
                     char text[PROGRESS_TEXT])
{
    enum { WIDTH = 20 };
    char bar[WIDTH + 1], time[32] = "-:--", timed[32] = "", round[48] = "";
    const size_t done = total - left.count;
    const long seconds = (long)(seconds_left + 0.5);
    memset(bar, '.', WIDTH);
    memset(bar, '+', total ? (done + left.timed) * WIDTH / total : WIDTH);
    memset(bar, '#', total ? done * WIDTH / total : WIDTH);
    bar[WIDTH] = '\0';
    if (left.timed > 0)
        snprintf(timed, sizeof timed, " %zu timed,", left.timed);
    if (left.rounds > 1)
        snprintf(round, sizeof round, " round %d of %d,", left.round, left.rounds);
    if (seconds_left >= 3600)
        snprintf(time, sizeof time, "%ld:%02ld:%02ld", seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
    else if (seconds_left >= 0)
        snprintf(time, sizeof time, "%ld:%02ld", seconds / 60, seconds % 60);
    snprintf(text, PROGRESS_TEXT, "[%s] %zu/%zu,%s%s %zu failed, %s left", bar, done, total, round,
             timed, failed, time);
}

/* Returns the time left, s, at the rate of the latest rows: long rows come first. Timed rows count
 * as done, because counting takes a small part of a row. < 0: unknown. */
static double seconds_left(struct progress *progress, struct progress_left left, double now)
{
    const size_t reached = progress->total - left.count + left.timed;
    if (reached > progress->reached) {
        const size_t at = progress->changes++ % RECENT;
        progress->recent[at].time = now;
        progress->recent[at].reached = progress->reached = reached;
    }
    const size_t oldest = progress->changes > RECENT ? progress->changes % RECENT : 0;
    if (left.count == 0)
        return 0;
    return progress->changes > 1 && reached > progress->recent[oldest].reached
               ? (now - progress->recent[oldest].time) /
                     (double)(reached - progress->recent[oldest].reached) *
                     (double)(left.count - left.timed)
               : -1;
}

void progress_update(struct progress *progress, struct progress_left left, size_t failed)
{
    const struct log *log = progress->log;
    double now = clock_monotonic();
    char text[PROGRESS_TEXT];
    if (left.timed > left.count)
        left.timed = left.count;
    progress_format(progress->total, left, failed, seconds_left(progress, left, now), text);
    if (log->terminal && log->level >= LOG_INFO) {
        fprintf(log->stream, "\r\033[K%s%s", progress->what, text);
        fflush(log->stream);
    } else if (left.count == 0 || now - progress->printed >= line_interval) {
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
