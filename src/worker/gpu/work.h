/* One configuration, ready to run on the open GPU. The structs of workloads begin with struct work,
 * and each workload has its own table of functions. */
#pragma once

#include "worker/device_ops.h"
#include "worker/gpu/vendor.h"

struct work;

struct work_ops {
    /* Enqueues what stands before every iteration and is not timed; NULL: nothing. */
    enum status (*reset)(struct gpu *gpu, struct work *work, struct error *error);
    /* Enqueues one iteration. */
    enum status (*iterate)(struct gpu *gpu, struct work *work, struct error *error);
    /* As device_ops.run, but only enqueued. */
    enum status (*run)(struct gpu *gpu, struct work *work, int64_t samples, struct error *error);
    /* The device address of the result in this role. `element` says where an element of the
     * canonical layout lies in it; NULL if the layouts are the same. */
    const void *(*result)(const struct work *work, enum tensor tensor);
    int64_t (*element)(const struct work *work, enum tensor tensor, int64_t offset);
    /* The type of that result's elements; NULL: all are in the work's precision. */
    enum precision (*stored)(const struct work *work, enum tensor tensor);
    /* As device_ops.reject; NULL: there is never another algorithm. */
    enum status (*reject)(struct gpu *gpu, struct work *work, struct record *record,
                          struct error *error);
    void (*release)(struct work *work); /* frees the struct as well */
};

/* What is known of one piece of bound work. All zero: nothing yet. */
struct pace {
    double enqueue_time;   /* s, of the host, for all that belongs to one iteration */
    double iteration_time; /* s, of the device, the shortest seen, less the timer's overhead */
    int iterations;        /* of a sample that is recorded; 0: not chosen yet */
    bool one_by_one;       /* several samples could not be enqueued within the limit of a hold */
    bool given_up;         /* nor could a single one within that of a second attempt */
};

struct work {
    const struct work_ops *ops;
    enum precision precision;
    struct pace pace;       /* of what is bound now */
    struct clock_span span; /* all timed chunks together */
    /* Of each launch of the last trace its kernel, as a place in the record; owned. Without any: it
     * was not traced well */
    size_t *launches, launch_count;
    /* graph.h: the same work, launched one by one; NULL: this is it. What is counted, since
     * counters may miss the FLOPs of a graph. */
    struct work *stream;
    bool stream_differs; /* its kernels are not known to be the same */
};

/* How a workload is prepared, one function for each of its implementations. On failure *work stays
 * NULL. */
typedef enum status work_preparation(struct gpu *gpu, const struct config *config, uint64_t seed,
                                     struct work **work, struct record *record,
                                     struct error *error);

/* One implementation of a workload. */
struct implementation {
    const char *workload, *name;
    work_preparation *prepare;
    bool (*takes)(const struct config *config); /* "auto" passes it over if not; NULL: takes all */
};

/* As device_ops.prepare. `rows` end with one without a name; "auto" is the first of the workload
 * that takes the configuration. `devices`: what people call the vendor's. */
enum status work_create(struct gpu *gpu, const struct implementation *rows, const char *devices,
                        const struct config *config, uint64_t seed, struct work **work,
                        struct record *record, struct error *error);

/* STATUS_UNSUPPORTED, with `instead`, where `count`, which who "counter" says keeps in a type that
 * holds `most`, is more than that. Before anything is allocated: whoever computes a size of a
 * configuration in less than 64 bits asks here. */
enum status count_check(const char *counter, const char *what, double count, double most,
                        const char *instead, struct error *error);

/* As device_ops.has_room. */
bool work_has_room(struct gpu *gpu, const struct config *config);

/* As device_ops.read. */
enum status work_read(struct gpu *gpu, struct work *work, enum tensor tensor,
                      const int64_t *offsets, int64_t count, double *values, struct error *error);
