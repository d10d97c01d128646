/* A routine, one implementation of a workload on CPUs, and its work, one configuration of it.
 *
 * device.c lists the routines, allocates what a routine's plan asks for, and fills the inputs. */
#ifndef ROOFSWEEP_CPU_ROUTINE_H
#define ROOFSWEEP_CPU_ROUTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"
#include "model/workload.h"
#include "worker/cpu/topology.h"
#include "worker/cpu/trace.h"

/* One configuration, allocated and filled by device.c. */
struct work {
    const struct routine *routine;
    struct config config;
    uint64_t seed;
    enum precision precision;
    size_t element;             /* byte */
    int64_t size[TENSOR_COUNT]; /* elements */
    bool reads[TENSOR_COUNT], writes[TENSOR_COUNT];
    void *input[TENSOR_COUNT];  /* NULL unless read; owned */
    void *result[TENSOR_COUNT]; /* NULL unless written; owned unless the routine bound it */
    bool bound[TENSOR_COUNT];   /* the result lies in scratch */
    void *scratch;              /* owned; zero at first */
    size_t scratch_size;        /* byte */
    void *plan;                 /* the routine's own struct; owned */
};

/* One implementation of a workload. */
struct routine {
    const struct workload *workload;
    const char *implementation, *algorithm; /* algorithm NULL: `name` tells it */
    size_t plan_size;                       /* byte, of the struct that work->plan points to */
    bool by_name;     /* `auto` never takes it: it is there to be compared with */
    bool own_regions; /* a library makes its parallel regions, of any number of threads */

    /* STATUS_UNSUPPORTED where it does not compute in this precision. NULL: fp32 and fp64. */
    enum status (*check)(enum precision precision, struct error *error);
    /* Sets size, reads, writes, bound, scratch_size and *plan, which is zero. */
    enum status (*plan)(struct work *work, const struct topology *topology, struct error *error);
    /* Points bound results into scratch. NULL: there are none. */
    void (*bind)(struct work *work);
    /* Once the inputs are there: what is done once for all iterations. NULL: nothing. */
    enum status (*ready)(struct work *work, struct error *error);
    /* What must have run, untimed, before `run`: the training forward pass. NULL: nothing. */
    void (*before)(struct work *work);
    /* One complete iteration. */
    void (*run)(struct work *work, struct trace *trace);
    /* Of an output gradient: elements of a sample, and samples of a batch; the batches follow each
     * other. NULL: its comparison always needs all samples. */
    void (*gradient_shape)(const struct work *work, int64_t *sample, int64_t *batch);
    /* Frees what the plan points to, also after a plan that failed. NULL: nothing. */
    void (*release)(struct work *work);
    /* The algorithm of a planned work; NULL: it is always the same. */
    const char *(*name)(const struct work *work);
};

/* Whether the routine was not asked for by its name. */
static inline bool routine_is_automatic(const struct work *work)
{
    return strcmp(config_word(&work->config, ROLE_IMPLEMENTATION), "auto") == 0;
}

/* The part of [0, count) that belongs to `index` of `parts`. */
static inline int64_t share_begin(int64_t count, int64_t index, int64_t parts)
{
    return count / parts * index + (index < count % parts ? index : count % parts);
}

#endif
