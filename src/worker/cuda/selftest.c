#include "worker/cuda/selftest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/known_kernels.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/timer.h"
#include "worker/cuda/row_profiler.h"

static const double flops_tolerance = 1e-4, dram_tolerance = 0.005, cache_tolerance = 0.005;

struct selftest {
    struct profiler *profiler;
    struct gpu *gpu;
    FILE *stream;
    void *a, *b, *c; /* owned, on the device */
    bool afresh;     /* CUPTI is attached anew for each collection */
    int right, wrong;
};

/* One piece of work; what it does not use is 0. */
struct job {
    struct selftest *test;
    char name[48];
    const struct known_kernel *kernel;
    const struct memory_kernel *memory;
    size_t bytes;
    int repeat;   /* iterations of `kernel`, passes of `memory` */
    int blocks;   /* of `memory`, each with a part of its own; 0: one behind the other */
    bool in_dram; /* nothing of it may lie in L2 before, nor after */
    cudaError_t (*launch)(const struct job *job, cudaStream_t stream);
};

struct expectation {
    enum quantity quantity;
    double value, tolerance;
};

static bool is_tensor(enum quantity quantity)
{
    return quantity >= QUANTITY_TENSOR_FP64 && quantity <= QUANTITY_TENSOR_INT8;
}

static enum status job_run(void *argument, struct error *error)
{
    const struct job *job = argument;
    cudaStream_t stream = job->test->gpu->stream;
    TRY(CUDA(job->launch(job, stream)));
    if (job->in_dram)
        TRY(timer_flush(job->test->gpu->timer, error));
    return CUDA(cudaStreamSynchronize(stream));
}

static void print(struct selftest *test, const char *name, const char *what, double expected,
                  double counted, bool right)
{
    fprintf(test->stream, "%-26s %-22s %13.8g %13.8g  %s\n", name, what, expected, counted,
            right ? "right" : "WRONG");
    ++*(right ? &test->right : &test->wrong);
}

/* FLOPs of a kind that the work has none of. */
static void check_others(struct job *job, const double values[QUANTITY_COUNT],
                         const struct expectation *expected, size_t count)
{
    double sum = 0.0;
    for (int i = 0; i <= QUANTITY_TENSOR_INT8; ++i) {
        bool own = false;
        for (size_t j = 0; j < count; ++j)
            own |= expected[j].quantity == (enum quantity)i;
        if (!own && !isnan(values[i]))
            sum += values[i];
    }
    print(job->test, job->name, "all other FLOPs", 0.0, sum, sum == 0.0);
}

static void compare(struct job *job, const double values[QUANTITY_COUNT],
                    const struct outcome *outcome, const struct expectation *expected, size_t count)
{
    if (outcome->code != COUNTED_YES) {
        char text[OUTCOME_TEXT];
        outcome_format(outcome, counted_word, text);
        print(job->test, job->name, text, NAN, NAN, false);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        const struct expectation *e = &expected[i];
        double value = values[e->quantity];
        if (!profiler_has(job->test->profiler, e->quantity))
            fprintf(job->test->stream, "%-26s %-22s this chip has no counter for it\n", job->name,
                    quantity_name[e->quantity]);
        else
            print(job->test, job->name, quantity_name[e->quantity], e->value, value,
                  fabs(value - e->value) <= e->tolerance * e->value);
    }
    check_others(job, values, expected, count);
}

/* Counts the job with this quantity of the tensor units, or none, and compares. */
static enum status check(struct job *job, enum quantity tensor, const struct expectation *expected,
                         size_t count, struct error *error)
{
    const struct profiled_work work = {job_run, job_run, job, NULL}; /* each finds what it leaves */
    double values[1][QUANTITY_COUNT];
    struct outcome outcome;
    if (job->test->afresh)
        profiler_leave(job->test->profiler);
    TRY(profiler_count(job->test->profiler, quantity_tensor(tensor), &work, 1, values, &outcome,
                       error));
    compare(job, values[0], &outcome, expected, count);
    return STATUS_OK;
}

/* ---- FLOPs ---- */

static int flops_blocks(const struct job *job)
{
    return 4 * job->test->gpu->multiprocessors;
}

static cudaError_t flops_launch(const struct job *job, cudaStream_t stream)
{
    return job->kernel->launch(job->repeat, flops_blocks(job), stream);
}

static struct job flops_job(struct selftest *test, const struct known_kernel *kernel,
                            const char *how)
{
    struct job job = {.test = test, .kernel = kernel, .repeat = 4000, .launch = flops_launch};
    snprintf(job.name, sizeof job.name, "%s%s", kernel->name, how);
    return job;
}

static struct expectation flops_expected(const struct job *job)
{
    return (struct expectation){job->kernel->quantity,
                                job->kernel->flops * job->repeat * flops_blocks(job),
                                flops_tolerance};
}

static bool runs_here(const struct selftest *test, const struct known_kernel *kernel)
{
    int capability = test->gpu->capability;
    return capability >= kernel->least && capability <= kernel->most;
}

static enum status check_flops(struct selftest *test, const struct known_kernel *kernels,
                               const char *how, struct error *error)
{
    for (const struct known_kernel *kernel = kernels; kernel->name; ++kernel) {
        if (!runs_here(test, kernel))
            continue;
        struct job job = flops_job(test, kernel, how);
        const struct expectation expected = flops_expected(&job);
        /* What the vector units do is checked against the tensor pipe's moves as well. */
        TRY(check(&job, is_tensor(kernel->quantity) ? kernel->quantity : QUANTITY_TENSOR_FP16,
                  &expected, 1, error));
    }
    return STATUS_OK;
}

/* All that need no counter of their own, as ranges of one collection. */
static enum status check_ranges(struct selftest *test, struct error *error)
{
    enum { MOST = 16 };
    struct job jobs[MOST];
    struct profiled_work works[MOST] = {0};
    double values[MOST][QUANTITY_COUNT];
    struct outcome outcome;
    size_t count = 0;
    for (const struct known_kernel *kernel = known_kernels; kernel->name && count < MOST; ++kernel)
        if (runs_here(test, kernel) &&
            (!is_tensor(kernel->quantity) || kernel->quantity == QUANTITY_TENSOR_FP16)) {
            jobs[count] = flops_job(test, kernel, ", range");
            works[count] = (struct profiled_work){job_run, job_run, &jobs[count], NULL};
            ++count;
        }
    TRY(profiler_count(test->profiler, quantity_tensor(QUANTITY_TENSOR_FP16), works, count, values,
                       &outcome, error));
    for (size_t i = 0; i < count; ++i) {
        const struct expectation expected = flops_expected(&jobs[i]);
        compare(&jobs[i], values[i], &outcome, &expected, 1);
    }
    return STATUS_OK;
}

/* Each with CUPTI attached anew; the same again, while it stays attached. */
static enum status check_attached(struct selftest *test, struct error *error)
{
    test->afresh = true;
    TRY(check_flops(test, known_kernels, "", error));
#ifdef ROOFSWEEP_WGMMA
    TRY(check_flops(test, known_wgmma_kernels, "", error));
#endif
    test->afresh = false;
    return check_flops(test, known_kernels, ", idle", error);
}

/* ---- bytes ---- */

static cudaError_t memory_launch(const struct job *job, cudaStream_t stream)
{
    const int threads = 256;
    const struct selftest *test = job->test;
    return job->memory->launch(test->a, test->b, test->c, job->bytes, job->repeat, job->blocks,
                               threads, stream);
}

static const struct pattern {
    enum memory_pattern id;
    double read, written;     /* arrays */
    double flops_per_element; /* fp32 */
} patterns[] = {{PATTERN_READ, 1, 0, 1},
                {PATTERN_WRITE, 0, 1, 0},
                {PATTERN_COPY, 1, 1, 0},
                {PATTERN_TRIAD, 2, 1, 2}};
/* In L2, which takes operands and adds; it has no FLOPs that a multiprocessor counts. */
static const struct pattern atomic = {PATTERN_ATOMIC, 0, 1, 0};

static const struct memory_kernel *memory_find(enum memory_pattern pattern)
{
    const struct memory_kernel *kernel = memory_kernels;
    while (kernel->launch && kernel->pattern != pattern)
        ++kernel;
    return kernel;
}

enum { EXPECTED_MOST = 3, MOVEMENTS_MOST = 20 };

/* A job and what it must count. */
struct movement {
    struct job job;
    struct expectation expected[EXPECTED_MOST];
    size_t count;
};

/* Of all that moves bytes. */
struct movements {
    struct movement list[MOVEMENTS_MOST];
    size_t count;
};

/* The job's own reads, writes and fp32 FLOPs; what is 0 is not checked. In device memory the flush counts,
 * too: what the job wrote is all there after it. */
static void movement_add(struct movements *movements, const struct job *job, double read,
                         double written, double flops)
{
    const bool in_dram = job->in_dram;
    const double flushed = in_dram ? (double)job->test->gpu->timer->flush_bytes : 0.0;
    const double tolerance = in_dram ? dram_tolerance : cache_tolerance;
    const struct expectation all[EXPECTED_MOST] = {
        {in_dram ? QUANTITY_DRAM_READ : QUANTITY_L2_READ, read + flushed, tolerance},
        {in_dram ? QUANTITY_DRAM_WRITE : QUANTITY_L2_WRITE, written, tolerance},
        {QUANTITY_VECTOR_FP32, flops + flushed / sizeof(float), flops_tolerance},
    };
    struct movement *added = &movements->list[movements->count++];
    *added = (struct movement){.job = *job};
    for (size_t i = 0; i < EXPECTED_MOST; ++i)
        if (all[i].value > 0.0)
            added->expected[added->count++] = all[i];
}

/* In L2 each block keeps to a part of its own. Else two multiprocessors may ask for the same line at the
 * same time, in passes that follow each other: such requests are answered together before they reach
 * L2, which then counts fewer bytes than were asked for. */
static void pattern_add(struct movements *movements, struct selftest *test,
                        const struct pattern *pattern, const char *where, size_t bytes, int repeat,
                        bool in_dram)
{
    struct job job = {.test = test,
                      .memory = memory_find(pattern->id),
                      .bytes = bytes,
                      .repeat = repeat,
                      .blocks = in_dram ? 0 : test->gpu->multiprocessors,
                      .in_dram = in_dram,
                      .launch = memory_launch};
    double total = (double)bytes * repeat;
    snprintf(job.name, sizeof job.name, "%s, %s", memory_pattern_name[pattern->id], where);
    movement_add(movements, &job, pattern->read * total, pattern->written * total,
                 pattern->flops_per_element * total / sizeof(float));
}

static cudaError_t l1_launch(const struct job *job, cudaStream_t stream)
{
    return known_read_l1(job->test->b, job->repeat, job->test->gpu->multiprocessors, stream);
}

static cudaError_t widen_launch(const struct job *job, cudaStream_t stream)
{
    const size_t element = 4; /* byte, of the result */
    return known_widen(job->test->a, job->test->b, job->bytes / element,
                       16 * job->test->gpu->multiprocessors, stream);
}

static void l1_add(struct movements *movements, struct selftest *test)
{
    const int rounds = 2000;
    struct movement *added = &movements->list[movements->count++];
    *added = (struct movement){
        .job = {.test = test, .name = "read, in L1", .repeat = rounds, .launch = l1_launch},
        .expected = {{QUANTITY_L1_READ,
                      (double)KNOWN_L1_CHUNK * test->gpu->multiprocessors * rounds,
                      cache_tolerance}},
        .count = 1,
    };
}

static void widen_add(struct movements *movements, struct selftest *test, size_t bytes)
{
    const struct job widen = {.test = test,
                              .name = "fp16 to fp32, 1 GiB",
                              .bytes = bytes,
                              .in_dram = true,
                              .launch = widen_launch};
    movement_add(movements, &widen, 0.5 * (double)bytes, (double)bytes, 0.0);
}

static void movements_list(struct selftest *test, size_t largest, struct movements *movements)
{
    const int rounds = 100;
    size_t l2_bytes = test->gpu->l2_bytes / 8 / 4096 * 4096;
    movements->count = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; ++i) {
        pattern_add(movements, test, &patterns[i], "1 GiB", largest, 1, true);
        pattern_add(movements, test, &patterns[i], "256 MiB", largest / 4, 1, true);
        pattern_add(movements, test, &patterns[i], "in L2", l2_bytes, rounds, false);
    }
    pattern_add(movements, test, &atomic, "in L2", l2_bytes, rounds, false);
    l1_add(movements, test);
    widen_add(movements, test, largest);
}

static cudaError_t nothing_launch(const struct job *job, cudaStream_t stream)
{
    (void)job;
    return kernel_empty(stream);
}

static void print_foreign(struct selftest *test, const struct outcome *outcome,
                          const double values[QUANTITY_COUNT])
{
    if (outcome->code == COUNTED_YES)
        fprintf(test->stream,
                "a kernel that does nothing, in a batch: DRAM reads %.0f, writes %.0f\n",
                values[QUANTITY_DRAM_READ], values[QUANTITY_DRAM_WRITE]);
}

/* The same as ranges of one collection, as rows are counted, and last a kernel that does nothing. What turns
 * up there is nobody's: it is told, not judged. */
static enum status check_batch(struct selftest *test, struct movements *movements,
                               struct error *error)
{
    const size_t count = movements->count;
    struct profiled_work works[MOVEMENTS_MOST + 1];
    double values[MOVEMENTS_MOST + 1][QUANTITY_COUNT];
    struct job nothing = {.test = test, .launch = nothing_launch};
    struct outcome outcome;
    for (size_t i = 0; i < count; ++i) {
        struct job *job = &movements->list[i].job;
        strncat(job->name, ", batch", sizeof job->name - strlen(job->name) - 1);
        works[i] = (struct profiled_work){job_run, job_run, job, NULL};
    }
    works[count] = (struct profiled_work){job_run, job_run, &nothing, NULL};
    TRY(profiler_count(test->profiler, quantity_tensor(QUANTITY_TENSOR_FP16), works, count + 1,
                       values, &outcome, error));
    for (size_t i = 0; i < count; ++i) {
        struct movement *movement = &movements->list[i];
        compare(&movement->job, values[i], &outcome, movement->expected, movement->count);
    }
    print_foreign(test, &outcome, values[count]);
    return STATUS_OK;
}

static enum status check_movement(struct selftest *test, size_t largest, struct error *error)
{
    struct movements movements;
    movements_list(test, largest, &movements);
    for (size_t i = 0; i < movements.count; ++i) {
        struct movement *movement = &movements.list[i];
        TRY(check(&movement->job, QUANTITY_TENSOR_FP16, movement->expected, movement->count,
                  error));
    }
    return check_batch(test, &movements, error);
}

static enum status arrays_allocate(struct selftest *test, size_t bytes, struct error *error)
{
    void **const arrays[] = {&test->a, &test->b, &test->c};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) {
        TRY(memory_allocate((double)bytes, "the self-test", arrays[i], error));
        TRY(CUDA(cudaMemsetAsync(*arrays[i], 0, bytes, test->gpu->stream)));
    }
    return CUDA(cudaStreamSynchronize(test->gpu->stream));
}

static enum status check_all(struct selftest *test, struct error *error)
{
    const size_t largest = (size_t)1 << 30;
    TRY(check_attached(test, error));
    TRY(check_ranges(test, error));
    TRY(arrays_allocate(test, largest, error));
    return check_movement(test, largest, error);
}

enum status selftest_run(struct profiler *profiler, struct gpu *gpu, FILE *stream,
                         struct error *error)
{
    struct selftest test = {.profiler = profiler, .gpu = gpu, .stream = stream};
    struct outcome outcome;
    TRY(row_profiler_try(profiler, gpu, &outcome, error));
    if (outcome.code != COUNTED_YES) {
        char text[OUTCOME_TEXT];
        outcome_format(&outcome, counted_word, text);
        return error_set(error, STATUS_UNSUPPORTED, "hardware counters: %s", text);
    }
    fprintf(stream, "%-26s %-22s %13s %13s  %s\n", "work", "quantity", "expected", "counted",
            "verdict");
    enum status status = check_all(&test, error);
    if (status != STATUS_DEVICE)
        profiler_leave(profiler);
    cudaFree(test.a);
    cudaFree(test.b);
    cudaFree(test.c);
    if (status)
        return status;
    fprintf(stream, "%d counts are right, %d are wrong\n", test.right, test.wrong);
    return test.wrong ? error_set(error, STATUS_FAILED, "%d counts are wrong", test.wrong)
                      : STATUS_OK;
}
