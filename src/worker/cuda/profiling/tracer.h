/* The tracer: which kernels are launched, and how long each takes, by CUPTI's activity records.
 *
 * It has two users. profiler.c traces one run of a piece of work: tracer_run. The library that is
 * injected into a program traces a region of the program, with copies and fills of memory:
 * tracer_watch, tracer_begin, tracer_end.
 *
 * One tracer at a time may be running in a process: CUPTI's buffer callbacks have no user argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cupti_result.h>

#include "base/status.h"
#include "model/kernel.h"
#include "model/outcome.h"
#include "model/profiled_work.h"

struct traced_kernel {
    struct kernel kernel;  /* without what is resident and counted; of a region without sums */
    int64_t shared_room;   /* byte, of a multiprocessor, as the driver set it */
    int64_t clusters_most; /* that the device holds at a time; 0: not known */
};

/* A copy of memory, or a fill. */
struct traced_move {
    bool fill;
    uint64_t start, end, bytes; /* ns */
};

/* Plain data. */
struct trace {
    struct traced_kernel *kernels;
    size_t kernel_count;
    struct launch *launches; /* in the order of their calls; of a region, as CUPTI gave them */
    size_t launch_count;
    struct traced_move *moves; /* of a region */
    size_t move_count;
    /* s, of tracer_run: in which at least one launch ran; from the start of the first to the end of
     * the last */
    double busy_time, span;
};

/* What became of a trace. */
enum traced {
    TRACED_WELL,
    TRACED_BADLY,  /* this one is not complete */
    TRACED_REFUSED /* CUPTI cannot be attached */
};

struct tracer;

struct tracer *tracer_open(void);         /* NULL without memory */
void tracer_close(struct tracer *tracer); /* takes NULL */

/* Traces one run of the work. `stays`: CUPTI stays attached afterwards. The outcome (enum traced)
 * says why a trace is not complete; the status is that of the work. If `prepare` fails nothing has
 * been attached. */
enum status tracer_run(struct tracer *tracer, const struct profiled_work *work, bool stays,
                       struct outcome *outcome, struct error *error);
bool tracer_is_attached(const struct tracer *tracer);
/* Takes CUPTI out of the process, if the tracer is attached. Nothing may be running. */
void tracer_detach(struct tracer *tracer);

/* Before the program does anything: a graph is traced if it was made after this. */
CUptiResult tracer_watch(void);
/* With the device idle. What begins from now on is traced. */
CUptiResult tracer_begin(struct tracer *tracer);
/* With the device idle: all of it has been. *problem is why some is missing; NULL: none is. */
CUptiResult tracer_end(struct tracer *tracer, const char **problem);

/* The last one; without any launch where tracer_run failed. It lives until the next. */
const struct trace *tracer_last(const struct tracer *tracer);
