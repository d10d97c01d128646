/* What this room asks of a vendor of GPUs: one table of functions, which the vendor's folder fills.
 * Exactly one is linked into each worker program.
 *
 * All of it is about the open GPU, which is the current device of the process, and its one stream.
 * What is enqueued runs in that order, some time after the call. Functions that can fail return
 * STATUS_DEVICE once the device is lost, and else what is known of them, or STATUS_FAILED. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/chip.h"
#include "model/fill.h"
#include "model/outcome.h"
#include "model/profiled_work.h"
#include "model/quantity.h"
#include "model/workload.h"

struct gpu;      /* an open GPU: the vendor's own */
struct graph;    /* what was captured: the vendor's own */
struct profiler; /* what counts works: the vendor's own */

/* What a pair of events and the clock are like on a device that has nothing else to do. */
struct calibration {
    double overhead;   /* s, that a pair of events adds to what is between them */
    double clock_free; /* s-1, of the multiprocessors */
};

/* A span of work by the multiprocessors' own clocks: means. All zero if none was read at both
 * ends. */
struct clock_span {
    double cycles, seconds;
};
enum span_end { SPAN_BEGIN, SPAN_END };

/* Where the conditions of a record or of a roof are kept. */
struct conditions {
    double *sm_clock, *memory_clock, *temperature;
    int64_t *throttle_reasons, *throttled;
};

struct graph_kernel {
    const char *name;   /* as the driver has it, mangled or not */
    unsigned launch[7]; /* grid, block, shared memory in byte */
};
typedef void graph_kernel_visit(const struct graph_kernel *kernel, void *argument);

struct gpu_vendor {
    /* ---- memory ---- */

    /* STATUS_UNSUPPORTED if there is not so much. arena.h has what callers use. */
    enum status (*allocate)(double bytes, void **memory, struct error *error);
    void (*free)(void *memory); /* takes NULL */
    /* byte */
    enum status (*available)(double *available, double *total, struct error *error);
    struct arena *(*arena)(const struct gpu *gpu); /* of the rows of this GPU */

    /* Enqueues: count elements of this precision, the values of fill.h from the first on; bytes of
     * one value. */
    enum status (*fill)(struct gpu *gpu, enum precision precision, void *data, int64_t count,
                        struct fill fill, struct error *error);
    enum status (*set)(struct gpu *gpu, void *data, int value, size_t bytes, struct error *error);

    /* Waits for values[i] = data[offsets[i]], which are the host's. memory: of the device, 16 bytes
     * for each of them. */
    enum status (*gather)(struct gpu *gpu, enum precision precision, const void *data,
                          const int64_t *offsets, int64_t count, void *memory, double *values,
                          struct error *error);

    /* ---- stream ---- */

    enum status (*synchronize)(struct gpu *gpu, struct error *error);
    /* At least so many events, and what hold and stamp need; with `flush`, what flush needs. */
    enum status (*reserve)(struct gpu *gpu, int events, bool flush, struct error *error);
    enum status (*record)(struct gpu *gpu, int event, struct error *error);
    enum status (*wait)(struct gpu *gpu, int event, struct error *error);
    /* Whether a recorded event has not come yet. */
    enum status (*pending)(struct gpu *gpu, int event, bool *pending, struct error *error);
    /* s, from the first of two recorded events to the second, which must be over. */
    enum status (*elapsed)(struct gpu *gpu, int first, int second, double *seconds,
                           struct error *error);

    /* Holds the device: what is enqueued from here on begins when the host calls release, or after
     * `limit` s. As long as an event that was recorded after it is pending, the device has begun
     * nothing after that event. The host must not wait for the device before it has released it:
     * nor does it launch a kernel for the first time, whose code may be loaded only when the device
     * has nothing to do. */
    enum status (*block)(struct gpu *gpu, double limit, struct error *error);
    /* Of all holds until now; nothing if there is none. */
    void (*unblock)(struct gpu *gpu);

    /* Enqueues a kernel that drives everything else out of the last-level cache, and leaves nothing
     * there that is still to be written to device memory. */
    enum status (*flush)(struct gpu *gpu, struct error *error);

    /* Enqueues a reading of all multiprocessors' clocks where a span of work begins or ends. */
    enum status (*stamp)(struct gpu *gpu, enum span_end end, struct error *error);
    /* The last span, which must be over. */
    enum status (*span)(struct gpu *gpu, struct clock_span *span, struct error *error);
    /* Measures once; later calls tell what was measured. */
    enum status (*calibrate)(struct gpu *gpu, struct calibration *calibration, struct error *error);

    /* ---- graphs: graph.h has what callers use ---- */

    enum status (*capture_begin)(struct gpu *gpu, struct error *error);
    /* Ends a capture, whatever happened in it, and leaves no error. STATUS_UNSUPPORTED with
     * the reason if nothing was captured. */
    enum status (*capture_end)(struct gpu *gpu, struct graph **graph, struct error *error);
    /* Calls see() for each kernel, in no order. False: not all of them are known. Not once it is
     * ready. */
    bool (*graph_kernels)(const struct graph *graph, graph_kernel_visit *see, void *argument);
    /* To be launched. */
    enum status (*graph_ready)(struct graph *graph, struct error *error);
    enum status (*graph_launch)(struct gpu *gpu, const struct graph *graph, struct error *error);
    void (*graph_drop)(struct graph *graph); /* it must not be running. Takes NULL */

    /* ---- sensors ---- */

    /* Reads clocks, temperature and throttle reasons. Throttle reasons count only if the event
     * `last` had not yet come when they were read: those of an idle device say nothing about the
     * work. What cannot be read stays as it was. */
    void (*conditions)(struct gpu *gpu, int last, const struct conditions *seen);
    /* W, the mean of a load that began at `since` (s since 1970-01-01T00:00:00Z) and has ended just
     * now; NaN if that is too short for the sensor, or if there is none. */
    double (*power)(struct gpu *gpu, double since);
    double (*energy)(struct gpu *gpu); /* J since some time in the past; NaN if not offered */

    /* ---- what is known of it ---- */

    const struct theory *(*theory)(const struct gpu *gpu);
    double (*power_limit)(const struct gpu *gpu); /* W; NaN: not known */

    /* ---- counters ---- */

    /* Counts pieces of work as ranges of one collection: values[i] is of works[i]. `tensors`: of
     * the tensor units, quantity_tensor(). Fails only with STATUS_DEVICE, or with what a work says;
     * why nothing was counted is in *outcome (enum counted). */
    enum status (*count)(struct profiler *profiler, unsigned tensors,
                         const struct profiled_work *works, size_t count,
                         double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                         struct error *error);
};

extern const struct gpu_vendor vendor;
