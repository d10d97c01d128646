/* The CPU device from the inside: a team of threads, one configuration's work, and the routines
 * that do it. device.c puts them together behind device.h. */
#ifndef ROOFSWEEP_CPU_H
#define ROOFSWEEP_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "model/workloads/conv2d.h"
#include "model/workloads/loop.h"
#include "model/workloads/lstm.h"
#include "model/workloads/matmul.h"
#include "worker/device_ops.h"
#include "worker/cpu/topology.h"

/* The OpenMP team: one thread on each core, bound to it from open to close. libgomp binds a thread
 * that it creates anew wherever its parent is, so no parallel region may ask for another number of
 * threads. */
struct device_state {
    struct topology topology;
    void *flush; /* for cold caches; created when first needed */
    size_t flush_size;
    struct roofs *roofs; /* NULL unless they are tuned */
};

/* What the regions of one iteration took, by name, when they are traced; NULL: they are not. */
struct trace {
    struct {
        const char *name; /* lives for ever */
        int64_t count;
        double time; /* s */
    } regions[8];
    size_t count;
};
double trace_begin(const struct trace *trace);
void trace_end(struct trace *trace, const char *name, double begin);

/* The part of [0, count) that belongs to `index` of `parts`. */
static inline int64_t share_begin(int64_t count, int64_t index, int64_t parts)
{
    return count / parts * index + (index < count % parts ? index : count % parts);
}

/* How the im2col routine cuts a conv2d into tasks; conv2d.c explains it. */
struct conv2d_plan {
    struct conv2d shape;
    int threads;
    bool in_place;         /* 1x1, stride 1, no padding: x is its own column matrix */
    int64_t elements;      /* of one filter, and of one pixel's column */
    int64_t images;        /* 1 where tiles may reach over all of them (nhwc) */
    int64_t pixels;        /* output pixels of one of `images` */
    int64_t tile, tiles;   /* pixels at a time; tiles in `pixels` */
    int64_t bands;         /* backward-data: parts of an image's rows */
    int64_t slices, parts; /* backward-filter: parts of a group's filters, parts of all tiles */
    size_t column;         /* elements of one thread's column matrix */
};

/* How the CBLAS routine cuts an LSTM, and where its arrays lie in the scratch memory; see lstm.c */
struct lstm_plan {
    struct lstm shape;
    int threads;
    bool keep; /* a training pass: gates and cells of all layers and steps stay */
    int64_t row_parts, unit_parts; /* of one direction's time step */
    size_t hidden, cell, gates;    /* offsets in elements */
    size_t dgates, dhidden, dcell, dinput[2];
};

/* One configuration. The routine's plan says what there is; device.c allocates and fills it. */
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
    union {
        struct conv2d_plan conv2d;
        struct lstm_plan lstm;
        struct matmul matmul;
        struct loop loop;
    } plan;
};

/* One implementation of a workload. */
struct routine {
    const struct workload *workload;
    const char *implementation, *algorithm;

    /* Sets size, reads, writes, bound, scratch_size and plan. */
    enum status (*plan)(struct work *work, const struct device_state *state, struct error *error);
    /* Points bound results into scratch. NULL: there are none. */
    void (*bind)(struct work *work);
    /* What must have run, untimed, before `run`: the training forward pass. NULL: nothing. */
    void (*before)(struct work *work);
    /* One complete iteration. */
    void (*run)(struct work *work, struct trace *trace);
};

extern const struct routine conv2d_im2col, conv2d_direct, lstm_cblas;
extern const struct routine matmul_cblas, matmul_plain, compute_loop_plain, shared_loop_plain;

/* STATUS_UNSUPPORTED if one of the extents is beyond BLAS's integers. */
enum status blas_check(const int64_t *extents, size_t count, struct error *error);

/* timing.c: the members time and trace of device_ops. */
enum status timing_time(struct device_state *state, struct work *work, bool cold, int iterations,
                        double *seconds, struct record *record, struct error *error);
enum status timing_trace(struct device_state *state, struct work *work, struct record *record,
                         struct error *error);

/* roofs.c: the members tune_roofs, measure_roof and release_roofs of device_ops. */
enum status roofs_tune(struct device_state *state, const struct roof_request *request, bool prove,
                       bool found[ROOF_KINDS], struct error *error);
enum status roofs_measure(struct device_state *state, int kind, double start, struct roof *roof,
                          struct error *error);
void roofs_release(struct device_state *state);
const char *simd_name(void); /* the widest vectors of this CPU that the roofs use, "avx512" */

#endif
