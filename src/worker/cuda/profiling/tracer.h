/* The tracer: launched kernels and their times, from CUPTI's activity records.
 *
 * There are two users. profiler.c traces one run of a piece of work: tracer_run. The library that
 * is injected into a program traces a region of the program, with copies and fills of memory:
 * tracer_watch, tracer_begin, tracer_end. Only one tracer of a process may run at a time. */
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
    struct kernel kernel;  /* without resident blocks and counts; for a region also without sums */
    int64_t clusters_most; /* largest number of clusters resident on the device; 0: unknown */
};

/* A copy or a fill of memory. */
struct traced_move {
    bool fill;
    uint64_t start, end; /* ns */
    uint64_t bytes;
};

struct trace {
    struct traced_kernel *kernels;
    size_t kernel_count;
    struct launch *launches; /* sorted by call; for a region in CUPTI's order */
    size_t launch_count;
    struct traced_move *moves; /* for a region only */
    size_t move_count;
    double busy_time; /* s, with at least one launch running; only after tracer_run */
    double span;      /* s, from the first start to the last end; only after tracer_run */
};

/* Outcome of a trace. */
enum traced {
    TRACED_WELL,
    TRACED_BADLY,  /* records are missing */
    TRACED_REFUSED /* CUPTI cannot be attached */
};

struct tracer;

struct tracer *tracer_open(void);         /* NULL: no memory */
void tracer_close(struct tracer *tracer); /* takes NULL */

/* Traces one run of the work. `stays`: CUPTI stays attached. *outcome (enum traced) says why a
 * trace is incomplete; the status is that of the work. Attaches nothing if `prepare` fails. */
enum status tracer_run(struct tracer *tracer, const struct profiled_work *work, bool stays,
                       struct outcome *outcome, struct error *error);
bool tracer_is_attached(const struct tracer *tracer);
/* Takes CUPTI out of the process if the tracer is attached. The device must be idle. */
void tracer_detach(struct tracer *tracer);

/* Call before the program makes graphs: only graphs made later are traced. */
CUptiResult tracer_watch(void);
/* Traces everything that begins from now on. The device must be idle. */
CUptiResult tracer_begin(struct tracer *tracer);
/* Ends the trace. The device must be idle. *problem: why records are missing; NULL: complete. */
CUptiResult tracer_end(struct tracer *tracer, const char **problem);

/* Returns the last trace, without launches if tracer_run failed; valid until the next trace. */
const struct trace *tracer_last(const struct tracer *tracer);
