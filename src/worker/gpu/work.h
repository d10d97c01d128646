/* One configuration, ready to run on the open GPU. The structs of workloads begin with struct work,
 * and each workload has its own table of functions. */
#pragma once

#include "worker/device_ops.h"
#include "worker/gpu/vendor.h"

struct work;

struct work_ops {
    /* Enqueues the untimed preparation of each iteration; NULL: there is none. */
    enum status (*reset)(struct gpu *gpu, struct work *work, struct error *error);
    /* Enqueues one iteration. */
    enum status (*iterate)(struct gpu *gpu, struct work *work, struct error *error);
    /* As device_ops.run, but only enqueued. */
    enum status (*run)(struct gpu *gpu, struct work *work, int64_t samples, struct error *error);
    /* Returns the device address of a result. */
    const void *(*result)(const struct work *work, enum tensor tensor);
    /* Maps an offset of the canonical layout to an offset in the result; NULL: they are equal. */
    int64_t (*element)(const struct work *work, enum tensor tensor, int64_t offset);
    size_t (*bytes)(const struct work *work, enum tensor tensor);
    /* Returns the type of a result's elements; NULL: the result type of the work's precision. */
    enum precision (*stored)(const struct work *work, enum tensor tensor);
    /* As device_ops.reject; NULL: there is only one algorithm. */
    enum status (*reject)(struct gpu *gpu, struct work *work, struct record *record,
                          struct error *error);
    void (*release)(struct work *work); /* frees the struct as well */
};

/* Estimates of how fast the bound algorithm runs. All zero: unknown. */
struct pace {
    double enqueue_time;   /* s; the host's time to enqueue one iteration with its preparation */
    double iteration_time; /* s; the device's shortest time, without the timer's overhead */
    int iterations;        /* iterations of a recorded sample; 0: not chosen yet */
    int unblocked;         /* iterations so far without a blocking kernel */
    bool one_by_one;       /* several samples outlasted the limit of a blocking kernel */
    bool given_up;         /* a single sample outlasted the limit, or the device had to wait */
    int launches; /* launches of an iteration; 0: not counted, because they take little time */
};

struct work {
    const struct work_ops *ops;
    enum precision precision;
    struct pace pace;       /* of the bound algorithm */
    struct clock_span span; /* sum over all timed chunks */
    /* Index in the record's kernels of each launch of the last trace; owned. NULL: no trace. */
    size_t *launches, launch_count;
    /* For work that replays a graph (graph.h): the same work, launched kernel by kernel, which is
     * counted because counters may miss FLOPs of a graph. NULL: no graph. */
    struct work *stream;
    bool stream_differs; /* the kernels of `stream` may differ from those of the graph */
};

/* STATUS_UNSUPPORTED if `count` exceeds `most`: "COUNT WHAT: COUNTER to MOST; INSTEAD". For sizes
 * of a configuration that are kept in less than 64 bits; call before allocating. */
enum status count_check(const char *counter, const char *what, double count, double most,
                        const char *instead, struct error *error);
