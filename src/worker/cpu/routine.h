/* What the CPU has of a workload: its routines, each one implementation, and a work, one
 * configuration of one. Each workload has a file NAME.c with the table NAME_routines. device.c
 * finds the routine, allocates what it asks for and fills the inputs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"
#include "model/workload.h"
#include "worker/cpu/team.h"

/* One configuration, allocated and filled by device.c. */
struct work {
    const struct cpu_workload *workload;
    const struct routine *routine;
    const struct topology *topology;
    struct config config;
    uint64_t seed;
    enum precision precision;
    size_t element;             /* byte */
    int64_t size[TENSOR_COUNT]; /* elements */
    bool reads[TENSOR_COUNT], writes[TENSOR_COUNT];
    void *input[TENSOR_COUNT];  /* NULL unless read; owned */
    void *result[TENSOR_COUNT]; /* NULL unless written; owned unless bound */
    bool bound[TENSOR_COUNT];   /* the routine points to the result in scratch, when it is ready */
    void *scratch;              /* owned; zero at first */
    size_t scratch_size;        /* byte */
    void *shape;                /* the workload's own struct; owned */
    void *plan;                 /* the routine's own struct; owned */
};

/* Work that is one parallel region: the region's name in traces, and its loop in each precision. */
struct region {
    const char *name;
    void (*fp32)(const struct work *work);
    void (*fp64)(const struct work *work);
};

/* One implementation of a workload. */
struct routine {
    const char *implementation, *algorithm; /* algorithm NULL: `name` tells it */
    size_t plan_size;                       /* byte, of the struct that work->plan points to */
    bool by_name;     /* `auto` never takes it: it is there to be compared with */
    bool own_regions; /* a library makes its parallel regions, of any number of threads */

    /* STATUS_UNSUPPORTED where it does not compute in this precision. NULL: fp32 and fp64. */
    enum status (*check)(enum precision precision, struct error *error);
    /* Sets bound, scratch_size and *plan, which is zero. NULL: there is nothing to set. */
    enum status (*plan)(struct work *work, struct error *error);
    /* Once the inputs are there: what is done once for all iterations. NULL: nothing. */
    enum status (*ready)(struct work *work, struct error *error);
    /* What must have run, untimed, before `run`: the training forward pass. NULL: nothing. */
    void (*before)(struct work *work);
    /* One complete iteration: a region, or what `run` does. */
    struct region region;
    void (*run)(struct work *work, struct trace *trace);
    /* Frees what the plan points to, also after a plan that failed. NULL: nothing. */
    void (*release)(struct work *work);
    /* The algorithm of a planned work; NULL: it is always the same. */
    const char *(*name)(const struct work *work);
};

enum { ROUTINES_MAX = 4 };
struct cpu_workload {
    const struct workload *workload;
    size_t shape_size; /* byte, of the struct that work->shape points to */
    /* Sets *shape, size, reads and writes. */
    void (*describe)(struct work *work);
    /* Of an output gradient: elements of a sample, and samples of a batch; the batches follow each
     * other. NULL: its comparison always needs all samples. */
    void (*gradient_shape)(const struct work *work, int64_t *sample, int64_t *batch);
    /* In the order in which `auto` tries them. The last has no implementation. */
    struct routine routines[ROUTINES_MAX + 1];
};
/* What a CPU can run: NAME_routines of each. */
/* clang-format off */
#define CPU_WORKLOADS(X) \
    X(attention) \
    X(compute_loop) \
    X(conv2d) \
    X(elementwise) \
    X(linear) \
    X(lstm) \
    X(matmul) \
    X(norm) \
    X(pool) \
    X(shared_loop) \
    X(softmax)
/* clang-format on */
#define CPU_WORKLOAD_DECLARE(name) extern const struct cpu_workload name##_routines;
CPU_WORKLOADS(CPU_WORKLOAD_DECLARE)

static inline void region_run(const struct region *region, const struct work *work,
                              struct trace *trace)
{
    double begin = trace_begin(trace);
    (work->precision == PRECISION_FP64 ? region->fp64 : region->fp32)(work);
    trace_end(trace, region->name, begin);
}

static inline void work_run(struct work *work, struct trace *trace)
{
    if (work->routine->run)
        work->routine->run(work, trace);
    else
        region_run(&work->routine->region, work, trace);
}

/* Takes some bytes of the scratch memory, from a new page on; returns their offset in bytes. */
static inline size_t scratch_take(struct work *work, size_t bytes)
{
    const size_t page = 4096;
    size_t offset = work->scratch_size;
    work->scratch_size += (bytes + page - 1) / page * page;
    return offset;
}

/* The part of [0, count) that belongs to `index` of `parts`. */
static inline int64_t share_begin(int64_t count, int64_t index, int64_t parts)
{
    return count / parts * index + (index < count % parts ? index : count % parts);
}
