#include "worker/cuda/gpu/cuda_internal.h"

#include <cupti.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cuda/profiling/attachment.h"

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 activity_kernel;
#else
typedef CUpti_ActivityKernel9 activity_kernel; /* CUDA 12.8, 12.9 */
#endif

enum { BUFFER_BYTES = 1 << 20, BUFFER_ALIGNMENT = 8 };

/* Distinct kernels of one iteration. */
struct trace {
    struct kernel *kernels; /* owned */
    size_t count, capacity;
    struct launch *launches; /* owned */
    size_t launch_count, launch_capacity;
    double busy_time;   /* s */
    const char *broken; /* why the trace is not complete; NULL: it is */
};

/* CUPTI's buffer callbacks have no user argument, and CUPTI may call them on a thread of its own:
 * this is where they find the trace that is being taken. */
static pthread_mutex_t active_lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace *active;

/* From the C++ runtime library; the Itanium ABI fixes its C signature. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

static void name_write(const char *mangled, char name[KERNEL_NAME_MAX])
{
    int failed = 1;
    char *demangled = __cxa_demangle(mangled, NULL, NULL, &failed);
    snprintf(name, KERNEL_NAME_MAX, "%s", failed ? mangled : demangled);
    free(demangled);
}

static struct kernel kernel_from(const activity_kernel *activity)
{
    struct kernel kernel;
    fields_clear(kernel_fields, &kernel);
    kernel.count = 0;
    kernel.time = 0.0;
    kernel.grid_x = activity->gridX;
    kernel.grid_y = activity->gridY;
    kernel.grid_z = activity->gridZ;
    kernel.block_x = activity->blockX;
    kernel.block_y = activity->blockY;
    kernel.block_z = activity->blockZ;
    kernel.registers = activity->registersPerThread;
    kernel.static_shared = activity->staticSharedMemory;
    kernel.dynamic_shared = activity->dynamicSharedMemory;
    name_write(activity->name ? activity->name : "unknown", kernel.name);
    return kernel;
}

static bool kernel_same(const struct kernel *a, const struct kernel *b)
{
    return a->grid_x == b->grid_x && a->grid_y == b->grid_y && a->grid_z == b->grid_z &&
           a->block_x == b->block_x && a->block_y == b->block_y && a->block_z == b->block_z &&
           a->registers == b->registers && a->static_shared == b->static_shared &&
           a->dynamic_shared == b->dynamic_shared && strcmp(a->name, b->name) == 0;
}

/* The row of this kernel, which is added if it is new; NULL without memory. */
static struct kernel *trace_row(struct trace *trace, const struct kernel *kernel)
{
    for (size_t i = 0; i < trace->count; ++i)
        if (kernel_same(&trace->kernels[i], kernel))
            return &trace->kernels[i];
    if (trace->count == trace->capacity) {
        size_t capacity = 2 * trace->capacity + 16;
        struct kernel *kernels = realloc(trace->kernels, capacity * sizeof *kernels);
        if (!kernels)
            return NULL;
        trace->kernels = kernels;
        trace->capacity = capacity;
    }
    trace->kernels[trace->count] = *kernel;
    return &trace->kernels[trace->count++];
}

static bool launches_add(struct trace *trace, struct launch launch)
{
    if (trace->launch_count == trace->launch_capacity) {
        size_t capacity = 2 * trace->launch_capacity + 64;
        struct launch *launches = realloc(trace->launches, capacity * sizeof *launches);
        if (!launches)
            return false;
        trace->launches = launches;
        trace->launch_capacity = capacity;
    }
    trace->launches[trace->launch_count++] = launch;
    return true;
}

/* CUPTI hands the kernels over in the order in which they ended, on whatever stream. */
static int launches_compare(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static void trace_add(struct trace *trace, const activity_kernel *activity)
{
    const double nanosecond = 1e-9;
    double time = nanosecond * (double)(activity->end - activity->start);
    struct kernel kernel = kernel_from(activity);
    struct kernel *row = trace_row(trace, &kernel);
    if (!row || activity->end <= activity->start) {
        trace->broken = row ? "a kernel without timestamps" : "no memory";
        return;
    }
    if (!launches_add(trace,
                      (struct launch){activity->correlationId, (size_t)(row - trace->kernels)})) {
        trace->broken = "no memory";
        return;
    }
    ++row->count;
    row->time += time;
    trace->busy_time += time;
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
            trace_add(active, (const activity_kernel *)activity);
    if (active && cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS &&
        dropped > 0)
        active->broken = "CUPTI dropped records";
    pthread_mutex_unlock(&active_lock);
    free(buffer);
}

static void trace_activate(struct trace *trace)
{
    pthread_mutex_lock(&active_lock);
    active = trace;
    pthread_mutex_unlock(&active_lock);
}

/* A message, or NULL on success. */
static const char *cupti_error(CUptiResult result)
{
    const char *text = "unknown CUPTI error";
    if (result == CUPTI_SUCCESS)
        return NULL;
    cuptiGetErrorMessage(result, &text);
    return text;
}

static const char *tracer_attach(void)
{
    CUptiResult result = cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
    if (result == CUPTI_SUCCESS)
        result = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    return cupti_error(result);
}

static bool stands_by(const struct device_state *state)
{
    return counters_attached(state->counters) || state->trace_stands_by;
}

/* Only after all buffers have been handed over. */
static void tracer_detach(const struct device_state *state)
{
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (!stands_by(state))
        attachment_end();
}

static void tracer_drop(struct device_state *state)
{
    attachment_drop(&state->trace_stands_by);
    state->profiler_ratio = NAN;
}

/* One iteration between attach and detach; a CUPTI failure goes to trace->broken. */
static enum status trace_iteration(struct device_state *state, struct work *work,
                                   struct trace *trace, struct error *error)
{
    if (work->ops->reset)
        TRY(work->ops->reset(state, work, error));
    TRY(CUDA(cudaStreamSynchronize(state->stream)));
    trace_activate(trace);
    trace->broken = tracer_attach();
    state->trace_refused = trace->broken != NULL;
    enum status status = STATUS_OK;
    if (!trace->broken) {
        status = work->ops->iterate(state, work, error);
        if (status == STATUS_OK)
            status = CUDA(cudaStreamSynchronize(state->stream));
        const char *flush = cupti_error(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
        trace->broken = trace->broken ? trace->broken : flush;
    }
    tracer_detach(state);
    trace_activate(NULL);
    if (!trace->broken && trace->launch_count == 0)
        trace->broken = "it saw no kernels";
    return status;
}

static void trace_clear(struct trace *trace)
{
    free(trace->launches);
    free(trace->kernels);
    *trace = (struct trace){0};
}

/* For count.c; takes the launches over. */
static void launches_keep(struct device_state *state, struct trace *trace)
{
    qsort(trace->launches, trace->launch_count, sizeof *trace->launches, launches_compare);
    state->launches = trace->launches;
    state->launch_count = trace->launch_count;
    trace->launches = NULL;
}

void trace_close(struct device_state *state)
{
    free(state->launches);
    state->launches = NULL;
    state->launch_count = 0;
}

/* What stood by may have been in the way. Then it does not come back. */
static void clear_the_way(struct device_state *state)
{
    if (counters_attached(state->counters))
        count_never_stand_by(state);
    tracer_drop(state);
    state->trace_decided = true;
}

/* Where nothing is counted CUPTI stays for the next trace, if it leaves device times alone: to attach
 * it takes 10 ms, for which the processes of a node wait for each other. */
static enum status iterate_and_decide(struct device_state *state, struct work *work,
                                      struct trace *trace, struct error *error)
{
    bool tolerable = false;
    if (state->trace_decided || state->counters)
        return trace_iteration(state, work, trace, error);
    TRY(disturbance_begin(state, &state->trace_stands_by, error));
    enum status status = trace_iteration(state, work, trace, error);
    if (status && status != STATUS_DEVICE)
        tracer_drop(state); /* decided with the next one, and so with nothing attached */
    if (status || !state->trace_stands_by)
        return status;
    state->trace_decided = true;
    TRY(disturbance_judge(state, &tolerable, error));
    if (!tolerable)
        tracer_drop(state);
    return STATUS_OK;
}

enum status trace_run(struct device_state *state, struct work *work, struct record *record,
                      struct error *error)
{
    trace_close(state);
    if (state->trace_refused)
        return STATUS_OK;
    struct trace trace = {0};
    enum status status = iterate_and_decide(state, work, &trace, error);
    if (status == STATUS_OK && trace.broken && stands_by(state)) {
        clear_the_way(state);
        trace_clear(&trace);
        status = trace_iteration(state, work, &trace, error);
    }
    if (status == STATUS_OK && !trace.broken)
        status = record_set_kernels(record, trace.kernels, trace.count, error);
    if (status == STATUS_OK && !trace.broken) {
        record->launches = (int64_t)trace.launch_count;
        record->busy_time = trace.busy_time;
        launches_keep(state, &trace);
    }
    if (trace.broken)
        fprintf(stderr, "no kernel trace: CUPTI: %s%s\n", trace.broken,
                state->trace_refused ? "; there will be none from this worker" : "");
    trace_clear(&trace);
    return status == STATUS_OK ? count_check_stand_by(state, error) : status;
}
