/* compute-loop and shared-loop. Each thread has its own values or tiles. loops_simd.h has the loops
 * for one kind of vectors. CMakeLists.txt lets the compiler fuse multiply-adds in this file. */
#include <omp.h>
#include <string.h>

#include "model/workloads/loop.h"
#include "worker/cpu/routine.h"
#include "worker/cpu/simd.h"

struct part {
    const void *x;
    void *y;
    int64_t count, tile, steps;
    double even, odd; /* factors of even and odd steps */
};

#define LOOP_PASTE(name, suffix)  name##_##suffix
#define LOOP_EXPAND(name, suffix) LOOP_PASTE(name, suffix)
#define LOOP_NAME(name)           LOOP_EXPAND(LOOP_EXPAND(name, LOOP_REAL), LOOP_SUFFIX)

#if defined __x86_64__
#define LOOP_SUFFIX avx512
#define LOOP_TARGET __attribute__((target("avx512f")))
#define LOOP_BYTES  64
#define LOOP_CHAINS 12
#define LOOP_REAL   float
#include "worker/cpu/loops_simd.h"
#define LOOP_REAL double
#include "worker/cpu/loops_simd.h"
#undef LOOP_SUFFIX
#undef LOOP_TARGET
#undef LOOP_BYTES
#undef LOOP_CHAINS

#define LOOP_SUFFIX avx2
#define LOOP_TARGET __attribute__((target("avx2,fma")))
#define LOOP_BYTES  32
#define LOOP_CHAINS 10
#define LOOP_REAL   float
#include "worker/cpu/loops_simd.h"
#define LOOP_REAL double
#include "worker/cpu/loops_simd.h"
#undef LOOP_SUFFIX
#undef LOOP_TARGET
#undef LOOP_BYTES
#undef LOOP_CHAINS
#endif

#define LOOP_SUFFIX base
#define LOOP_TARGET
#define LOOP_BYTES  16
#define LOOP_CHAINS 10
#define LOOP_REAL   float
#include "worker/cpu/loops_simd.h"
#define LOOP_REAL double
#include "worker/cpu/loops_simd.h"

typedef void part_run(const struct part *part);

/* By the name of struct simd; the last row serves all other kinds of vectors. */
static const struct {
    const char *vectors;
    part_run *compute[2], *shared[2]; /* fp32, fp64 */
} kinds[] = {
#if defined __x86_64__
    {"avx512",
     {compute_float_avx512, compute_double_avx512},
     {shared_float_avx512, shared_double_avx512}},
    {"avx2", {compute_float_avx2, compute_double_avx2}, {shared_float_avx2, shared_double_avx2}},
#endif
    {NULL, {compute_float_base, compute_double_base}, {shared_float_base, shared_double_base}},
};

CPU_SHAPE(loop)

static void loop_run(struct work *work, struct trace *trace)
{
    const struct loop *s = work->shape;
    double even = loop_factor(s->precision, 0), odd = loop_factor(s->precision, 1);
    bool wide = work->precision == PRECISION_FP64;
    size_t kind = 0;
    while (kinds[kind].vectors && strcmp(kinds[kind].vectors, simd_name()) != 0)
        ++kind;
    part_run *run = s->shared ? kinds[kind].shared[wide] : kinds[kind].compute[wide];
    double region = trace_begin(trace);
#pragma omp parallel
    {
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t begin = share_begin(s->tiles, thread, threads);
        size_t offset = (size_t)(begin * s->tile) * work->element;
        const struct part part = {
            .x = (const char *)work->input[TENSOR_INPUT] + offset,
            .y = (char *)work->result[TENSOR_OUTPUT] + offset,
            .count = share_begin(s->tiles, thread + 1, threads) - begin,
            .tile = s->tile,
            .steps = s->steps,
            .even = even,
            .odd = odd,
        };
        run(&part);
    }
    trace_end(trace, s->shared ? "shared_loop" : "compute_loop", region);
}

const struct cpu_workload compute_loop_routines = {
    .workload = &compute_loop_workload,
    .shape_size = sizeof(struct loop),
    .shape = loop_shape,
    .routines = {{.implementation = "plain", .algorithm = "registers", .run = loop_run}},
};

const struct cpu_workload shared_loop_routines = {
    .workload = &shared_loop_workload,
    .shape_size = sizeof(struct loop),
    .shape = loop_shape,
    .routines = {{.implementation = "plain", .algorithm = "cache", .run = loop_run}},
};
