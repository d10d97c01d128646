/* The functions of a vendor of GPUs that this room needs, defined in the vendor's folder. Each
 * worker program links one vendor.
 *
 * All functions act on the open GPU, which is the current device of the process, and on its one
 * stream. Enqueued operations run in order, some time after the call. A function that can fail
 * returns STATUS_DEVICE once the device is lost; otherwise a more specific status, or
 * STATUS_FAILED. */
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

struct gpu;      /* an open GPU; the vendor defines it */
struct graph;    /* a captured graph; the vendor defines it */
struct profiler; /* a counter of FLOPs and bytes; the vendor defines it */

typedef enum status gpu_enqueue(struct gpu *gpu, void *argument, struct error *error);

/* Properties of an idle device. */
struct calibration {
    double overhead;   /* s, which a pair of events adds to the time between them */
    double clock_free; /* s-1, clock of the multiprocessors */
};

/* Length of a span by the multiprocessors' own clocks, mean; 0: none was read at both ends. */
struct clock_span {
    double cycles, seconds;
};
enum span_end { SPAN_BEGIN, SPAN_END };

/* Members of a record or of a roof that receive the conditions. */
struct conditions {
    double *sm_clock, *memory_clock, *temperature;
    int64_t *throttle_reasons, *throttled;
};

struct graph_kernel {
    const char *name;   /* the driver's name, mangled or not */
    unsigned launch[7]; /* grid, block, shared memory in byte */
};
typedef void graph_kernel_visit(const struct graph_kernel *kernel, void *argument);

/* ---- memory ---- */

/* STATUS_UNSUPPORTED: not enough memory. Callers use arena.h. */
enum status vendor_allocate(double bytes, void **memory, struct error *error);
void vendor_free(void *memory); /* takes NULL */
enum status vendor_available(double *available_bytes, double *total_bytes, struct error *error);
struct arena *vendor_arena(const struct gpu *gpu); /* memory of rows */

/* Enqueues a kernel that fills the first `count` elements of `precision` by fill.h. */
enum status vendor_fill(struct gpu *gpu, enum precision precision, void *data, int64_t count,
                        struct fill fill, struct error *error);
/* Enqueues a fill of every byte. */
enum status vendor_set(struct gpu *gpu, void *data, int value, size_t bytes, struct error *error);

/* Reads values[i] = data[offsets[i]] to the host and waits. `offsets` and `values` are host
 * memory; `memory` is device memory of 16 * count bytes. */
enum status vendor_gather(struct gpu *gpu, enum precision precision, const void *data,
                          const int64_t *offsets, int64_t count, void *memory, double *values,
                          struct error *error);

/* Adds a hash of a tensor's bytes to *hash, and waits. `memory` is device memory of 8 bytes. */
enum status vendor_hash(struct gpu *gpu, const void *data, size_t bytes, enum tensor tensor,
                        void *memory, uint64_t *hash, struct error *error);

/* ---- stream ---- */

enum status vendor_synchronize(struct gpu *gpu, struct error *error);
/* Makes events, memory for vendor_block and vendor_stamp, and with `flush` for vendor_flush. */
enum status vendor_reserve(struct gpu *gpu, int events, bool flush, struct error *error);
enum status vendor_record(struct gpu *gpu, int event, struct error *error);
enum status vendor_wait(struct gpu *gpu, int event, struct error *error);
/* Sets *pending if the device has not yet reached a recorded event. */
enum status vendor_pending(struct gpu *gpu, int event, bool *pending, struct error *error);
/* Sets *seconds to the time between two events that the device has reached. */
enum status vendor_elapsed(struct gpu *gpu, int first, int second, double *seconds,
                           struct error *error);

/* Enqueues a blocking kernel, which ends when the host calls `unblock`, or after `limit` s.
 * While an event recorded behind the blocking kernel is pending, the device has begun nothing
 * that follows. Before `unblock` the host must not wait for the device, and must not launch a
 * kernel for the first time: its code may be loaded only while the device is idle. */
enum status vendor_block(struct gpu *gpu, double limit, struct error *error);
void vendor_unblock(struct gpu *gpu); /* ends all blocking kernels, if there are any */

enum status vendor_launch_empty(struct gpu *gpu, struct error *error); /* a kernel without work */
/* Enqueues a kernel of one thread that waits. */
enum status vendor_delay(struct gpu *gpu, double seconds, struct error *error);

/* Enqueues a kernel that evicts everything else from the last-level cache, and leaves no line
 * there that must still be written to device memory. */
enum status vendor_flush(struct gpu *gpu, struct error *error);

/* Enqueues a reading of all multiprocessors' clocks, for one end of a span. */
enum status vendor_stamp(struct gpu *gpu, enum span_end end, struct error *error);
/* Reads the last span, whose end the device has reached. */
enum status vendor_span(struct gpu *gpu, struct clock_span *span, struct error *error);
/* Returns the place where timing.c keeps the calibration of this GPU; NaN at first. */
struct calibration *vendor_calibration(const struct gpu *gpu);

/* ---- graphs: callers use graph.h ---- */

enum status vendor_capture_begin(struct gpu *gpu, struct error *error);
/* Ends a capture, even a failed one, and clears errors. STATUS_UNSUPPORTED: nothing captured. */
enum status vendor_capture_end(struct gpu *gpu, struct graph **graph, struct error *error);
/* Before vendor_graph_ready: calls visit() for each kernel, in any order. False: one is unknown. */
bool vendor_graph_kernels(const struct graph *graph, graph_kernel_visit *visit, void *argument);
enum status vendor_graph_ready(struct graph *graph, struct error *error);
enum status vendor_graph_launch(struct gpu *gpu, const struct graph *graph, struct error *error);
void vendor_graph_drop(struct graph *graph); /* not allowed while the graph runs; takes NULL */

/* ---- sensors ---- */

/* Reads clocks, temperature and throttle reasons. Throttle reasons of an idle device say
 * nothing about the work, so they count only if the event `last` was pending when they were
 * read. Unreadable values stay as they were. */
void vendor_conditions(struct gpu *gpu, int last, const struct conditions *conditions);
/* Returns the mean power, W, of a load that began at `since` (s since 1970-01-01T00:00:00Z) and
 * has just ended; NaN if the load was too short for the sensor, or without a sensor. */
double vendor_power(struct gpu *gpu, double since);
double vendor_energy(struct gpu *gpu); /* J since some time in the past; NaN: no counter */

/* ---- properties ---- */

const struct theory *vendor_theory(const struct gpu *gpu);
double vendor_power_limit(const struct gpu *gpu); /* W; NaN: unknown */

/* ---- counters ---- */

/* Counts pieces of work in one collection: values[i] belongs to works[i]. With `launches`, the
 * numbers of launches of the works, each launch has values instead; `room` is the largest number of
 * values. `tensors` is a set of tensor quantities, see quantity_tensor(). *outcome (enum counted)
 * says why nothing was counted. The status is STATUS_OK, STATUS_DEVICE, or that of failed work. */
enum status vendor_count(struct profiler *profiler, unsigned tensors,
                         const struct profiled_work *works, size_t count, const size_t *launches,
                         size_t room, double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                         struct error *error);
