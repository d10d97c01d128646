#include "worker/cuda/profiling/tracer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cupti.h>

#include "base/array.h"

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 activity_kernel;
typedef CUpti_ActivityMemcpy6 activity_copy;
#else
typedef CUpti_ActivityKernel9 activity_kernel; /* CUDA 12.8, 12.9 */
typedef CUpti_ActivityMemcpy5 activity_copy;
#endif
typedef CUpti_ActivityMemset4 activity_fill;

enum { BUFFER_BYTES = 1 << 20, BUFFER_ALIGNMENT = 8 };

struct tracer {
    struct trace trace; /* its arrays are owned */
    bool attached;
    /* members of the trace in progress */
    uint64_t begin; /* ns on CUPTI's clock; records that began earlier are dropped */
    enum traced code;
    const char *problem; /* why records are missing; NULL: complete */
};

/* For CUPTI's buffer callbacks, which have no user argument and may run on another thread. */
static pthread_mutex_t active_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tracer *active; /* NULL: drop records */

/* ---- records ---- */

/* From the C++ runtime library; the Itanium ABI fixes its C signature. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

static struct traced_kernel kernel_from(const activity_kernel *activity)
{
    int failed = 1;
    /* Sizes are 0 on chips without clusters. */
    const int64_t blocks = (int64_t)activity->clusterX * activity->clusterY * activity->clusterZ;
    const char *mangled = activity->name ? activity->name : "unknown";
    struct traced_kernel traced = {
        .kernel = {.grid_x = activity->gridX,
                   .grid_y = activity->gridY,
                   .grid_z = activity->gridZ,
                   .block_x = activity->blockX,
                   .block_y = activity->blockY,
                   .block_z = activity->blockZ,
                   .registers = activity->registersPerThread,
                   .static_shared = activity->staticSharedMemory,
                   .dynamic_shared = activity->dynamicSharedMemory,
                   .cluster = blocks > 0 ? blocks : 1},
        .clusters_most = activity->maxActiveClusters,
    };
    char *demangled = __cxa_demangle(mangled, NULL, NULL, &failed);
    snprintf(traced.kernel.name, sizeof traced.kernel.name, "%s", failed ? mangled : demangled);
    free(demangled);
    return traced;
}

static void problem_set(struct tracer *tracer, const char *problem)
{
    tracer->code = TRACED_BADLY;
    tracer->problem = problem;
}

static void kernel_add(struct tracer *tracer, const activity_kernel *activity)
{
    struct trace *trace = &tracer->trace;
    const struct traced_kernel kernel = kernel_from(activity);
    size_t row = 0;
    if (activity->end <= activity->start) {
        problem_set(tracer, "a kernel without timestamps");
        return;
    }
    while (row < trace->kernel_count && !kernel_same(&trace->kernels[row].kernel, &kernel.kernel))
        ++row;
    const bool known = row < trace->kernel_count;
    if ((!known && !ARRAY_GROW(trace->kernels, trace->kernel_count)) ||
        !ARRAY_GROW(trace->launches, trace->launch_count)) {
        problem_set(tracer, "no memory");
        return;
    }
    if (!known)
        trace->kernels[trace->kernel_count++] = kernel;
    trace->launches[trace->launch_count++] = (struct launch){
        .correlation = activity->correlationId,
        .kernel = row,
        .start = activity->start,
        .end = activity->end,
        .graph_node = activity->graphNodeId,
    };
}

static void move_add(struct tracer *tracer, struct traced_move move)
{
    struct trace *trace = &tracer->trace;
    if (!ARRAY_ADD(trace->moves, trace->move_count, move))
        problem_set(tracer, "no memory");
}

static void activity_add(struct tracer *tracer, const CUpti_Activity *activity)
{
    const activity_kernel *kernel = (const activity_kernel *)activity;
    const activity_copy *copy = (const activity_copy *)activity;
    const activity_fill *fill = (const activity_fill *)activity;
    if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && kernel->start >= tracer->begin)
        kernel_add(tracer, kernel);
    else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMCPY && copy->start >= tracer->begin)
        move_add(tracer, (struct traced_move){false, copy->start, copy->end, copy->bytes});
    else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMSET && fill->start >= tracer->begin)
        move_add(tracer, (struct traced_move){true, fill->start, fill->end, fill->bytes});
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
        activity_add(active, activity);
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

/* ---- sums over launches ---- */

/* Drops the first launch with its kernel, the blocking kernel. */
static void blocking_launch_drop(struct trace *trace)
{
    size_t kernel = trace->launches[0].kernel;
    --trace->launch_count;
    --trace->kernel_count;
    memmove(trace->launches, trace->launches + 1, trace->launch_count * sizeof *trace->launches);
    memmove(trace->kernels + kernel, trace->kernels + kernel + 1,
            (trace->kernel_count - kernel) * sizeof *trace->kernels);
    for (size_t i = 0; i < trace->launch_count; ++i)
        trace->launches[i].kernel -= trace->launches[i].kernel > kernel;
}

static void launches_finish(struct trace *trace, bool blocked)
{
    const double nanosecond = 1e-9;
    uint64_t end = 0;
    launches_sort(trace->launches, trace->launch_count);
    if (blocked)
        blocking_launch_drop(trace);
    trace->busy_time = launches_busy_time(trace->launches, trace->launch_count);
    for (size_t i = 0; i < trace->launch_count; ++i) {
        const struct launch *launch = &trace->launches[i];
        struct kernel *kernel = &trace->kernels[launch->kernel].kernel;
        ++kernel->count;
        kernel->time += nanosecond * (double)(launch->end - launch->start);
        end = launch->end > end ? launch->end : end;
    }
    trace->span = nanosecond * (double)(end - trace->launches[0].start);
    launches_sort(trace->launches, trace->launch_count);
}

static void forget(struct tracer *tracer)
{
    free(tracer->trace.launches);
    free(tracer->trace.kernels);
    free(tracer->trace.moves);
    memset(&tracer->trace, 0, sizeof tracer->trace);
    tracer->begin = 0;
    tracer->code = TRACED_WELL;
    tracer->problem = NULL;
}

/* ---- traces of work ---- */

/* Kinds of records. A trace of work has the first kind only, a trace of a region all kinds. */
static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
enum { KINDS = sizeof kinds / sizeof *kinds };

static CUptiResult enable(int count)
{
    CUptiResult code = cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
    for (int i = 0; i < count && code == CUPTI_SUCCESS; ++i)
        code = cuptiActivityEnable(kinds[i]);
    return code;
}

static const char *cupti_message(CUptiResult result)
{
    const char *text = "unknown CUPTI error";
    cuptiGetErrorMessage(result, &text);
    return text;
}

static enum status run(struct tracer *tracer, const struct profiled_work *work, bool stays,
                       struct error *error)
{
    TRY(work->prepare(work->argument, error));
    enum status status = STATUS_OK;
    activate(tracer);
    tracer->attached = true;
    CUptiResult attached = enable(1);
    if (attached == CUPTI_SUCCESS) {
        status = work->block ? work->block(work->argument, error) : STATUS_OK;
        if (status == STATUS_OK)
            status = work->run(work->argument, error);
        CUptiResult flushed = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        if (flushed != CUPTI_SUCCESS && !tracer->problem)
            problem_set(tracer, cupti_message(flushed));
    } else {
        tracer->code = TRACED_REFUSED;
        tracer->problem = cupti_message(attached);
    }
    cuptiActivityDisable(kinds[0]); /* must follow the flush */
    if (!stays)
        tracer_detach(tracer);
    activate(NULL);
    if (!tracer->problem && tracer->trace.launch_count <= (size_t)(work->block != NULL))
        problem_set(tracer, "it saw no kernels");
    return status;
}

enum status tracer_run(struct tracer *tracer, const struct profiled_work *work, bool stays,
                       struct outcome *outcome, struct error *error)
{
    forget(tracer);
    enum status status = run(tracer, work, stays, error);
    outcome_set(outcome, tracer->code, "%s", tracer->problem ? tracer->problem : "");
    if (status || tracer->problem)
        forget(tracer);
    else
        launches_finish(&tracer->trace, work->block != NULL);
    return status;
}

bool tracer_is_attached(const struct tracer *tracer)
{
    return tracer->attached;
}

void tracer_detach(struct tracer *tracer)
{
    if (tracer->attached)
        cuptiFinalize();
    tracer->attached = false;
}

/* ---- a region of a program ---- */

CUptiResult tracer_watch(void)
{
    return enable(KINDS);
}

CUptiResult tracer_begin(struct tracer *tracer)
{
    forget(tracer);
    CUptiResult code = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (code == CUPTI_SUCCESS)
        code = cuptiGetTimestamp(&tracer->begin);
    activate(tracer);
    return code;
}

CUptiResult tracer_end(struct tracer *tracer, const char **problem)
{
    CUptiResult code = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    for (int i = 0; i < KINDS; ++i)
        cuptiActivityDisable(kinds[i]);
    activate(NULL);
    *problem = tracer->problem;
    return code;
}

/* ---- life ---- */

const struct trace *tracer_last(const struct tracer *tracer)
{
    return &tracer->trace;
}

struct tracer *tracer_open(void)
{
    return calloc(1, sizeof(struct tracer));
}

void tracer_close(struct tracer *tracer)
{
    if (tracer)
        forget(tracer);
    free(tracer);
}
