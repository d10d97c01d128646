/* Routines and works. A workload has a routine for each implementation, in the table NAME_routines
 * of its file NAME.c. A work is one configuration of a routine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/workload.h"
#include "worker/cpu/topology.h"
#include "worker/measure.h"

/* Parallel regions of one iteration, by name. Both functions do nothing if the trace is NULL. */
struct trace {
    struct {
        const char *name; /* a literal, or owned by the work */
        int64_t count;
        double time; /* s */
    } regions[8];
    size_t count;
};
double trace_begin(const struct trace *trace);
void trace_end(struct trace *trace, const char *name, double begin);

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
    void *input[TENSOR_COUNT];  /* owned; NULL: the pass does not read it */
    void *result[TENSOR_COUNT]; /* owned unless bound; NULL: the pass does not write it */
    bool bound[TENSOR_COUNT];   /* the result is in scratch, where `ready` puts it */
    void *scratch;              /* owned; initially zero */
    size_t scratch_size;        /* byte */
    void *shape;                /* the workload's own struct; owned */
    void *plan;                 /* the routine's own struct; owned */
    struct occupancy occupied;  /* sum over all timed samples so far */
    bool failed;                /* an iteration failed */
};

/* One parallel region: its name in traces, and its function in each precision. */
struct region {
    const char *name;
    void (*fp32)(const struct work *work);
    void (*fp64)(const struct work *work);
};

/* One implementation of a workload. */
struct routine {
    const char *implementation, *algorithm; /* algorithm NULL: `name` returns it */
    size_t plan_size;                       /* byte, of the struct that work->plan points to */
    bool own_regions; /* a library runs parallel regions with any number of threads */

    /* STATUS_UNSUPPORTED: the routine lacks the precision. NULL: it has fp32 and fp64. */
    enum status (*check)(enum precision precision, struct error *error);
    /* Sets bound, scratch_size and *plan, which are zero. NULL: they stay zero. */
    enum status (*plan)(struct work *work, struct error *error);
    /* Prepares all iterations, once the inputs are filled. NULL: nothing. */
    enum status (*ready)(struct work *work, struct error *error);
    /* Runs what precedes the timed `run`: a training forward pass. NULL: nothing. */
    void (*before)(struct work *work);
    /* One iteration: `run`, or `region` if `run` is NULL. */
    struct region region;
    void (*run)(struct work *work, struct trace *trace);
    /* Frees what the plan owns, also after a plan that failed. NULL: nothing. */
    void (*release)(struct work *work);
    /* Returns the algorithm of a planned work. NULL: `algorithm`. */
    const char *(*name)(const struct work *work);
};

enum { ROUTINES_MAX = 4 };
struct cpu_workload {
    const struct workload *workload;
    size_t shape_size;            /* byte, of the struct that work->shape points to */
    void (*shape)(struct work *); /* sets work->shape */
    /* Lets verification use some samples of the batch: the output gradient consists of batches of
     * *batch samples with *sample elements each. NULL: verification needs all samples. */
    void (*gradient_shape)(const struct work *work, int64_t *sample, int64_t *batch);
    /* In the order in which `auto` tries them; ends with implementation NULL. */
    struct routine routines[ROUTINES_MAX + 1];
};
#define CPU_WORKLOAD(name)                                                                         \
    .workload = &name##_workload, .shape_size = sizeof(struct name), .shape = name##_shape
#define CPU_SHAPE(name)                                                                            \
    static void name##_shape(struct work *work)                                                    \
    {                                                                                              \
        *(struct name *)work->shape = name##_from(&work->config);                                  \
    }
#define CPU_WORKLOAD_DECLARE(name) extern const struct cpu_workload name##_routines;
WORKLOADS(CPU_WORKLOAD_DECLARE)

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

/* Reserves scratch memory that begins at a page. Returns its offset in bytes. */
static inline size_t scratch_take(struct work *work, size_t bytes)
{
    const size_t page = 4096;
    size_t offset = work->scratch_size;
    work->scratch_size += (bytes + page - 1) / page * page;
    return offset;
}

/* Largest number of terms that a loop adds in the precision of the elements: SUM_TERMS along a row
 * (all lanes of a vector together), SUM_ROWS along a column. Longer sums add parts of this length
 * in fp64, because the error of a sum grows with its terms. */
enum { SUM_TERMS = 4096, SUM_ROWS = 64 };

static inline int64_t sum_end(int64_t first, int64_t count)
{
    return count - first < SUM_TERMS ? count : first + SUM_TERMS;
}

/* Returns the begin of part `index` of [0, count), divided into `parts` parts. */
static inline int64_t share_begin(int64_t count, int64_t index, int64_t parts)
{
    return count / parts * index + (index < count % parts ? index : count % parts);
}
