#include "worker/cuda/profiling/tracer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cupti.h>

#include "worker/cuda/profiling/cupti_process.h"

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 activity_kernel;
#else
typedef CUpti_ActivityKernel9 activity_kernel; /* CUDA 12.8, 12.9 */
#endif

enum { BUFFER_BYTES = 1 << 20, BUFFER_ALIGNMENT = 8 };

struct tracer {
    struct traced_kernel *kernels; /* owned */
    size_t kernel_count, kernel_capacity;
    struct traced_launch *launches; /* owned */
    size_t launch_count, launch_capacity;
    double busy_time, span; /* s */
    /* Of the trace that is being taken. */
    enum traced code;
    const char *problem; /* why it is not complete; NULL: it is */
};

/* CUPTI's buffer callbacks have no user argument, and CUPTI may call them on a thread of its own:
 * this is where they find the tracer. */
static pthread_mutex_t active_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tracer *active;

/* From the C++ runtime library; the Itanium ABI fixes its C signature. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

static void name_write(const char *mangled, char name[TRACED_NAME])
{
    int failed = 1;
    char *demangled = __cxa_demangle(mangled, NULL, NULL, &failed);
    snprintf(name, TRACED_NAME, "%s", failed ? mangled : demangled);
    free(demangled);
}

/* Chips without clusters leave the sizes 0. */
static int64_t cluster_size(const activity_kernel *activity)
{
    int64_t blocks = (int64_t)activity->clusterX * activity->clusterY * activity->clusterZ;
    return blocks > 0 ? blocks : 1;
}

static struct traced_kernel kernel_from(const activity_kernel *activity)
{
    struct traced_kernel kernel = {
        .grid_x = activity->gridX,
        .grid_y = activity->gridY,
        .grid_z = activity->gridZ,
        .block_x = activity->blockX,
        .block_y = activity->blockY,
        .block_z = activity->blockZ,
        .registers = activity->registersPerThread,
        .static_shared = activity->staticSharedMemory,
        .dynamic_shared = activity->dynamicSharedMemory,
        .shared_room = activity->sharedMemoryExecuted,
        .cluster = cluster_size(activity),
        .clusters_most = activity->maxActiveClusters,
    };
    name_write(activity->name ? activity->name : "unknown", kernel.name);
    return kernel;
}

static bool kernel_same(const struct traced_kernel *a, const struct traced_kernel *b)
{
    return a->grid_x == b->grid_x && a->grid_y == b->grid_y && a->grid_z == b->grid_z &&
           a->block_x == b->block_x && a->block_y == b->block_y && a->block_z == b->block_z &&
           a->registers == b->registers && a->static_shared == b->static_shared &&
           a->dynamic_shared == b->dynamic_shared && a->shared_room == b->shared_room &&
           a->cluster == b->cluster && strcmp(a->name, b->name) == 0;
}

/* The row of this kernel, which is added if it is new; NULL without memory. */
static struct traced_kernel *row_of(struct tracer *tracer, const struct traced_kernel *kernel)
{
    for (size_t i = 0; i < tracer->kernel_count; ++i)
        if (kernel_same(&tracer->kernels[i], kernel))
            return &tracer->kernels[i];
    if (tracer->kernel_count == tracer->kernel_capacity) {
        size_t capacity = 2 * tracer->kernel_capacity + 16;
        struct traced_kernel *kernels = realloc(tracer->kernels, capacity * sizeof *kernels);
        if (!kernels)
            return NULL;
        tracer->kernels = kernels;
        tracer->kernel_capacity = capacity;
    }
    tracer->kernels[tracer->kernel_count] = *kernel;
    return &tracer->kernels[tracer->kernel_count++];
}

static bool launches_add(struct tracer *tracer, struct traced_launch launch)
{
    if (tracer->launch_count == tracer->launch_capacity) {
        size_t capacity = 2 * tracer->launch_capacity + 64;
        struct traced_launch *launches = realloc(tracer->launches, capacity * sizeof *launches);
        if (!launches)
            return false;
        tracer->launches = launches;
        tracer->launch_capacity = capacity;
    }
    tracer->launches[tracer->launch_count++] = launch;
    return true;
}

/* CUPTI hands the kernels over in the order in which they ended, on whatever stream. */
static int launches_compare(const void *a, const void *b)
{
    const struct traced_launch *x = a, *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static void problem_set(struct tracer *tracer, const char *problem)
{
    tracer->code = TRACED_BADLY;
    tracer->problem = problem;
}

static void add_activity(struct tracer *tracer, const activity_kernel *activity)
{
    struct traced_kernel kernel = kernel_from(activity);
    struct traced_kernel *row = row_of(tracer, &kernel);
    if (!row || activity->end <= activity->start) {
        problem_set(tracer, row ? "a kernel without timestamps" : "no memory");
        return;
    }
    const struct traced_launch launch = {activity->correlationId, (size_t)(row - tracer->kernels),
                                         activity->start, activity->end};
    if (!launches_add(tracer, launch))
        problem_set(tracer, "no memory");
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t size, size_t valid)
{
    (void)size;
    CUpti_Activity *activity = NULL;
    size_t dropped = 0;
    pthread_mutex_lock(&active_lock);
    while (active && cuptiActivityGetNextRecord(buffer, valid, &activity) == CUPTI_SUCCESS)
        if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            add_activity(active, (const activity_kernel *)activity);
    if (active && cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS &&
        dropped > 0)
        problem_set(active, "CUPTI dropped records");
    pthread_mutex_unlock(&active_lock);
    free(buffer);
}

static void activate(struct tracer *tracer)
{
    pthread_mutex_lock(&active_lock);
    active = tracer;
    pthread_mutex_unlock(&active_lock);
}

static const char *cupti_message(CUptiResult result)
{
    const char *text = "unknown CUPTI error";
    cuptiGetErrorMessage(result, &text);
    return text;
}

static CUptiResult attach(void)
{
    CUptiResult result = cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
    return result == CUPTI_SUCCESS ? cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
                                   : result;
}

/* Only after all buffers have been handed over. */
static void detach(bool stays)
{
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (!stays)
        cupti_detach();
}

/* With the records of the work, when it is over. */
static enum status traced_run(struct tracer *tracer, const struct profiled_work *work,
                              struct error *error)
{
    enum status status = work->hold ? work->hold(work->argument, error) : STATUS_OK;
    if (status == STATUS_OK)
        status = work->run(work->argument, error);
    CUptiResult flushed = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (flushed != CUPTI_SUCCESS && !tracer->problem)
        problem_set(tracer, cupti_message(flushed));
    return status;
}

/* ---- what the launches add up to ---- */

/* The first launch kept the device waiting, and its kernel is that of no other. */
static void held_launch_drop(struct tracer *tracer)
{
    size_t kernel = tracer->launches[0].kernel;
    --tracer->launch_count;
    --tracer->kernel_count;
    memmove(tracer->launches, tracer->launches + 1,
            tracer->launch_count * sizeof *tracer->launches);
    memmove(tracer->kernels + kernel, tracer->kernels + kernel + 1,
            (tracer->kernel_count - kernel) * sizeof *tracer->kernels);
    for (size_t i = 0; i < tracer->launch_count; ++i)
        tracer->launches[i].kernel -= tracer->launches[i].kernel > kernel;
}

static int starts_compare(const void *a, const void *b)
{
    const struct traced_launch *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Kernels on several streams may run at the same time: such time counts once. */
static void times_set(struct tracer *tracer)
{
    const double nanosecond = 1e-9;
    uint64_t end = 0, busy = 0;
    qsort(tracer->launches, tracer->launch_count, sizeof *tracer->launches, starts_compare);
    for (size_t i = 0; i < tracer->launch_count; ++i) {
        const struct traced_launch *launch = &tracer->launches[i];
        struct traced_kernel *kernel = &tracer->kernels[launch->kernel];
        ++kernel->count;
        kernel->time += nanosecond * (double)(launch->end - launch->start);
        if (launch->end > end)
            busy += launch->end - (launch->start > end ? launch->start : end);
        end = launch->end > end ? launch->end : end;
    }
    tracer->busy_time = nanosecond * (double)busy;
    tracer->span = nanosecond * (double)(end - tracer->launches[0].start);
}

static void launches_finish(struct tracer *tracer, bool held)
{
    qsort(tracer->launches, tracer->launch_count, sizeof *tracer->launches, launches_compare);
    if (held)
        held_launch_drop(tracer);
    times_set(tracer);
    qsort(tracer->launches, tracer->launch_count, sizeof *tracer->launches, launches_compare);
}

/* One run between attach and detach. */
static enum status run(struct tracer *tracer, const struct profiled_work *work, bool stays,
                       struct error *error)
{
    enum status status = work->prepare(work->argument, error);
    if (status)
        return status;
    activate(tracer);
    CUptiResult attached = attach();
    if (attached == CUPTI_SUCCESS) {
        status = traced_run(tracer, work, error);
    } else {
        tracer->code = TRACED_REFUSED;
        tracer->problem = cupti_message(attached);
    }
    detach(stays);
    activate(NULL);
    if (!tracer->problem && tracer->launch_count <= (size_t)(work->hold != NULL))
        problem_set(tracer, "it saw no kernels");
    return status;
}

void tracer_forget(struct tracer *tracer)
{
    free(tracer->launches);
    free(tracer->kernels);
    tracer->launches = NULL;
    tracer->kernels = NULL;
    tracer->launch_count = tracer->launch_capacity = 0;
    tracer->kernel_count = tracer->kernel_capacity = 0;
    tracer->busy_time = tracer->span = 0.0;
    tracer->code = TRACED_WELL;
    tracer->problem = NULL;
}

enum status tracer_run(struct tracer *tracer, const struct profiled_work *work, bool stays,
                       struct outcome *outcome, struct error *error)
{
    tracer_forget(tracer);
    enum status status = run(tracer, work, stays, error);
    outcome_set(outcome, tracer->code, "%s", tracer->problem ? tracer->problem : "");
    if (status || tracer->problem)
        tracer_forget(tracer);
    else
        launches_finish(tracer, work->hold != NULL);
    return status;
}

struct trace tracer_last(const struct tracer *tracer)
{
    return (struct trace){tracer->kernels,      tracer->kernel_count, tracer->launches,
                          tracer->launch_count, tracer->busy_time,    tracer->span};
}

struct tracer *tracer_open(void)
{
    return calloc(1, sizeof(struct tracer));
}

void tracer_close(struct tracer *tracer)
{
    if (tracer)
        tracer_forget(tracer);
    free(tracer);
}
