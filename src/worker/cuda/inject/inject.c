/* libroofsweep-inject.so: CUDA loads it into a program (CUDA_INJECTION64_PATH) and calls
 * InitializeInjection. It times, traces or counts the program's region, see task.h, and leaves lines for
 * the worker, see worker/program/handback.h. */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cuda.h>
#include <cupti.h>

#include "base/clock.h"
#include "worker/cuda/inject/counting.h"
#include "worker/cuda/inject/inject.h"
#include "worker/cuda/inject/notes.h"
#include "worker/cuda/inject/task.h"
#include "worker/cuda/inject/tracing.h"

enum stage { STAGE_BEFORE, STAGE_OPEN, STAGE_AFTER };

/* A process that was injected into has one injection; CUDA calls it without an argument. */
static struct injection {
    pthread_mutex_t lock;
    pid_t owner; /* a fork is another process, which is none of ours */
    struct task task;
    struct notes *notes;
    struct counting *counting; /* NULL: not yet started, or refused */
    bool tried;                /* counting */
    enum stage stage;
    double began;      /* s, CLOCK_MONOTONIC */
    uint64_t sequence; /* hash of the region's launches, in their order */
    size_t launches;
} injection = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Calls of ours within a callback are none of the program's. */
static _Thread_local bool inside;

/* ---- the region ---- */

static void refused(const struct outcome *outcome)
{
    note(injection.notes, "refused %lld %s", (long long)outcome->code, outcome->reason);
}

static void counting_try(void)
{
    CUcontext context = NULL;
    struct outcome refusal;
    if (injection.task.kind != TASK_COUNT || injection.tried ||
        cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
        return;
    injection.tried = true;
    injection.counting =
        counting_start(context, injection.task.tensors, injection.task.image, &refusal);
    if (!injection.counting)
        refused(&refusal);
}

/* The context that is counted is that of the first allocation. */
static bool context_is_counted(void)
{
    CUcontext context = NULL;
    return cuCtxGetCurrent(&context) == CUDA_SUCCESS &&
           context == counting_context(injection.counting);
}

static void counting_begin(void)
{
    struct outcome refusal;
    counting_try();
    if (!injection.counting)
        return;
    if (!context_is_counted()) {
        outcome_set(&refusal, COUNTED_INCOMPLETE,
                    "the region is in another context than the first allocation");
    } else if (counting_open(injection.counting, &refusal)) {
        return;
    }
    refused(&refusal);
    injection.counting = NULL;
}

static void counting_end(void)
{
    struct outcome refusal;
    double values[QUANTITY_COUNT];
    bool last = false;
    if (!injection.counting)
        return;
    bool well = counting_close(injection.counting, &last, values, &refusal);
    if (!well)
        refused(&refusal);
    note(injection.notes, "passes %zu %d", counting_passes(injection.counting), well && last);
    for (int i = 0; i < QUANTITY_COUNT && well && last; ++i)
        note(injection.notes, "value %d %.17g", i, values[i]);
}

static void region_open(void)
{
    cuCtxSynchronize();
    injection.sequence = 14695981039346656037u; /* FNV-1a */
    injection.launches = 0;
    injection.stage = STAGE_OPEN;
    note(injection.notes, "opened");
    notes_flush(injection.notes);
    if (injection.task.kind == TASK_TRACE && tracing_begin(injection.notes) != CUPTI_SUCCESS)
        note(injection.notes, "untraced CUPTI refuses");
    if (injection.task.kind == TASK_COUNT)
        counting_begin();
    injection.began = clock_monotonic();
}

/* What is timed may have several regions; what is traced or counted is the first. */
static void region_close(void)
{
    const char *problem = NULL;
    cuCtxSynchronize();
    double seconds = clock_monotonic() - injection.began;
    injection.stage = injection.task.kind == TASK_TIME ? STAGE_BEFORE : STAGE_AFTER;
    if (injection.task.kind == TASK_TRACE && (tracing_end(&problem) != CUPTI_SUCCESS || problem))
        note(injection.notes, "untraced %s", problem ? problem : "CUPTI refuses");
    if (injection.task.kind == TASK_COUNT)
        counting_end();
    if (injection.task.kind != TASK_TIME)
        note(injection.notes, "launched %016" PRIx64 " %zu", injection.sequence,
             injection.launches);
    note(injection.notes, "closed %.9g", seconds);
    notes_flush(injection.notes);
}

void inject_region(bool opens)
{
    if (inside || injection.owner != getpid())
        return;
    inside = true;
    pthread_mutex_lock(&injection.lock);
    if (opens && injection.stage == STAGE_BEFORE)
        region_open();
    else if (!opens && injection.stage == STAGE_OPEN)
        region_close();
    pthread_mutex_unlock(&injection.lock);
    inside = false;
}

const struct task *inject_task(void)
{
    return injection.owner == getpid() ? &injection.task : NULL;
}

/* Of a program that ends by exit or by the end of main. */
static void at_exit(void)
{
    if (injection.task.region == TASK_ALL)
        inject_region(false);
}

/* ---- what the program calls ---- */

static void launch_add(const char *name)
{
    for (const char *c = name ? name : "a graph"; *c; ++c)
        injection.sequence = (injection.sequence ^ (unsigned char)*c) * 1099511628211u;
    ++injection.launches;
}

static void launched(const CUpti_CallbackData *data)
{
    if (data->callbackSite != CUPTI_API_ENTER || inside || injection.owner != getpid())
        return;
    if (injection.task.region == TASK_ALL)
        inject_region(true);
    pthread_mutex_lock(&injection.lock);
    if (injection.stage == STAGE_OPEN)
        launch_add(data->symbolName);
    pthread_mutex_unlock(&injection.lock);
}

static void allocated(const CUpti_CallbackData *data)
{
    if (data->callbackSite != CUPTI_API_EXIT || inside || injection.owner != getpid())
        return;
    inside = true;
    pthread_mutex_lock(&injection.lock);
    counting_try();
    pthread_mutex_unlock(&injection.lock);
    inside = false;
}

static void profiler_started(const CUpti_CallbackData *data)
{
    if (data->callbackSite == CUPTI_API_EXIT)
        inject_region(true);
}

static void profiler_stopped(const CUpti_CallbackData *data)
{
    if (data->callbackSite == CUPTI_API_ENTER)
        inject_region(false);
}

/* For which tasks, a bit each, a call is watched; and with which kind of region alone. */
#define ANY         (1u << TASK_TIME | 1u << TASK_TRACE | 1u << TASK_COUNT)
#define RUN         (1u << TASK_TRACE | 1u << TASK_COUNT)
#define ALL_REGIONS (1u << TASK_PROFILER | 1u << TASK_ALL | 1u << TASK_NVTX)
#define CBID(name)  CUPTI_DRIVER_TRACE_CBID_##name
static const struct watched {
    CUpti_CallbackId id;
    unsigned tasks, regions;
    void (*call)(const CUpti_CallbackData *data);
} calls[] = {
    {CBID(cuProfilerStart), ANY, 1u << TASK_PROFILER, profiler_started},
    {CBID(cuProfilerStop), ANY, 1u << TASK_PROFILER, profiler_stopped},
    {CBID(cuMemAlloc_v2), 1u << TASK_COUNT, ALL_REGIONS, allocated},
    {CBID(cuMemAllocPitch_v2), 1u << TASK_COUNT, ALL_REGIONS, allocated},
    {CBID(cuMemAllocManaged), 1u << TASK_COUNT, ALL_REGIONS, allocated},
    {CBID(cuMemAllocAsync), 1u << TASK_COUNT, ALL_REGIONS, allocated},
    {CBID(cuMemAllocFromPoolAsync), 1u << TASK_COUNT, ALL_REGIONS, allocated},
    {CBID(cuMemCreate), 1u << TASK_COUNT, ALL_REGIONS, allocated},
    {CBID(cuLaunchKernel), RUN, ALL_REGIONS, launched},
    {CBID(cuLaunchKernel_ptsz), RUN, ALL_REGIONS, launched},
    {CBID(cuLaunchKernelEx), RUN, ALL_REGIONS, launched},
    {CBID(cuLaunchKernelEx_ptsz), RUN, ALL_REGIONS, launched},
    {CBID(cuLaunchCooperativeKernel), RUN, ALL_REGIONS, launched},
    {CBID(cuLaunchCooperativeKernel_ptsz), RUN, ALL_REGIONS, launched},
    {CBID(cuGraphLaunch), RUN, ALL_REGIONS, launched},
    {CBID(cuGraphLaunch_ptsz), RUN, ALL_REGIONS, launched},
};
enum { CALLS = sizeof calls / sizeof *calls };

static bool is_watched(const struct watched *call)
{
    return call->tasks >> injection.task.kind & 1 && call->regions >> injection.task.region & 1;
}

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const void *data)
{
    (void)user;
    for (int i = 0; i < CALLS && domain == CUPTI_CB_DOMAIN_DRIVER_API; ++i)
        if (calls[i].id == id)
            calls[i].call(data);
}

static CUptiResult watch(void)
{
    CUpti_SubscriberHandle subscriber;
    CUptiResult code = cuptiSubscribe(&subscriber, called, NULL);
    for (int i = 0; i < CALLS && code == CUPTI_SUCCESS; ++i)
        if (is_watched(&calls[i]))
            code = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, calls[i].id);
    if (code == CUPTI_SUCCESS && injection.task.kind == TASK_TRACE)
        code = tracing_enable();
    return code;
}

/* Timing a range of NVTX needs no CUPTI. */
static bool needs_cupti(void)
{
    return injection.task.kind != TASK_TIME || injection.task.region != TASK_NVTX;
}

/* Once for each process, whoever comes first: CUDA, or NVTX. */
bool inject_begin(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    if (injection.owner == 0 && task_read(&injection.task)) {
        injection.owner = getpid();
        injection.notes = notes_open(injection.task.folder);
        atexit(at_exit);
    }
    pthread_mutex_unlock(&once);
    return injection.owner == getpid();
}

/* CUDA ignores what it returns. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
    if (!inject_begin() || !needs_cupti())
        return 1;
    CUptiResult code = watch();
    const char *name = "unknown";
    if (code != CUPTI_SUCCESS) {
        cuptiGetResultString(code, &name);
        note(injection.notes, "untraced CUPTI cannot watch the program: %s", name);
        notes_flush(injection.notes);
    }
    return 1;
}
