/* The two loops on the CPU, each thread on values or tiles of its own.
 *
 * loops_simd.h has them for one kind of vectors; which this CPU has, simd.c knows. CMakeLists.txt
 * lets the compiler fuse a multiplication and an addition here, where the vectors can do it. */
#include "worker/cpu/loops.h"

#include <omp.h>
#include <string.h>

#include "model/workloads/loop.h"
#include "worker/cpu/simd.h"

/* A part of the work: `count` values or tiles, with the factors of even and odd steps. */
struct part {
    const void *x;
    void *y;
    int64_t count, tile, steps;
    double even, odd;
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

/* By the names of struct simd; the last one is for all others. */
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

static enum status loop_plan(struct work *work, const struct topology *topology,
                             struct error *error)
{
    (void)topology;
    (void)error;
    struct loop s = loop_from(&work->config);
    *(struct loop *)work->plan = s;
    work->size[TENSOR_INPUT] = work->size[TENSOR_OUTPUT] = s.tiles * s.tile;
    work->reads[TENSOR_INPUT] = work->writes[TENSOR_OUTPUT] = true;
    return STATUS_OK;
}

static void loop_run(struct work *work, part_run *run)
{
    const struct loop *s = work->plan;
    double even = loop_factor(s->precision, 0), odd = loop_factor(s->precision, 1);
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
}

static size_t kind_find(void)
{
    size_t kind = 0;
    while (kinds[kind].vectors && strcmp(kinds[kind].vectors, simd_name()) != 0)
        ++kind;
    return kind;
}

/* runs: fp32, fp64 */
static void region_run(struct work *work, struct trace *trace, const char *name,
                       part_run *const runs[2])
{
    double begin = trace_begin(trace);
    loop_run(work, runs[work->precision == PRECISION_FP64]);
    trace_end(trace, name, begin);
}

static void compute_loop_run(struct work *work, struct trace *trace)
{
    region_run(work, trace, "compute_loop", kinds[kind_find()].compute);
}

const struct routine compute_loop_plain = {
    .workload = &compute_loop_workload,
    .implementation = "plain",
    .algorithm = "registers",
    .plan_size = sizeof(struct loop),
    .plan = loop_plan,
    .run = compute_loop_run,
};

static void shared_loop_run(struct work *work, struct trace *trace)
{
    region_run(work, trace, "shared_loop", kinds[kind_find()].shared);
}

const struct routine shared_loop_plain = {
    .workload = &shared_loop_workload,
    .implementation = "plain",
    .algorithm = "cache",
    .plan_size = sizeof(struct loop),
    .plan = loop_plan,
    .run = shared_loop_run,
};
