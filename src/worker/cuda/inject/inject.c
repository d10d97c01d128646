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

enum {
    LAUNCHES_MOST = 4000, /* that are counted one by one: each takes room and time */
    ROOM_LEAST = 64
};
enum stage { STAGE_BEFORE, STAGE_OPEN, STAGE_AFTER };

/* A process that was injected into has one injection; CUDA calls it without an argument. */
static struct injection {
    pthread_mutex_t lock;
    pid_t owner; /* a fork is another process, which is none of ours */
    struct task task;
    struct notes *notes;
    struct counting *counting; /* NULL: not yet started, refused, or over */
    bool tried;                /* counting */
    bool counted;              /* a region, or a part of one, since counting started */
    bool unloaded;             /* code that may have been counted; that has been told */
    enum stage stage;
    size_t regions;    /* that have been opened */
    double began;      /* s, CLOCK_MONOTONIC */
    uint64_t sequence; /* hash of the region's launches, in their order */
    size_t launches;
    uint64_t first_sequence; /* of the first region */
    size_t first_launches;
    size_t graphs; /* of the launches */
    size_t begun;  /* launches since the pass started */
} injection = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Calls of ours within a callback are none of the program's. */
static _Thread_local bool inside;

/* ---- the region ---- */

static void refused(const struct outcome *outcome)
{
    note(injection.notes, "refused %lld %s", (long long)outcome->code, outcome->reason);
}

/* No more of it in this process. */
static void counting_stop(const struct outcome *refusal)
{
    if (refusal)
        refused(refusal);
    injection.counting = NULL;
}

/* What a launch of a graph is as a range is not known: such regions are counted as a whole. */
static struct counting_order counting_order(void)
{
    const struct task *task = &injection.task;
    struct counting_order order = {.tensors = task->tensors, .image = task->image};
    size_t launches = task->kind == TASK_PROFILE ? injection.first_launches : task->launches;
    size_t each =
        launches +
        launches / 8; /* a program that launches more is told apart from one that does not */
    if (task->ranges == TASK_LAUNCHES && task->kind == TASK_PROFILE && injection.graphs == 0 &&
        launches <= LAUNCHES_MOST)
        order.by = COUNTING_LAUNCHES;
    if (task->ranges == TASK_REPLAY)
        order.by = COUNTING_REPLAY;
    /* Each pass needs a region, and one before it in which what the start of the pass left in L2 is gone. */
    order.passes = (task->regions - 1) / 2;
    order.room = (order.by == COUNTING_LAUNCHES ? 2 : 1) * each + ROOM_LEAST;
    return order;
}

static void counting_try(void)
{
    CUcontext context = NULL;
    struct outcome refusal;
    if (injection.tried || cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
        return;
    injection.tried = true;
    injection.begun = 0;
    const struct counting_order order = counting_order();
    injection.counting = counting_start(context, &order, &refusal);
    if (!injection.counting)
        refused(&refusal);
}

/* The context that is counted is that of the first allocation, or of the first region. */
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
    if (counting_by(injection.counting) == COUNTING_REPLAY)
        injection.begun = 0;
    if (!context_is_counted()) {
        outcome_set(&refusal, COUNTED_INCOMPLETE,
                    "the region is in another context than the first %s",
                    injection.task.kind == TASK_COUNT ? "allocation" : "region");
    } else if (counting_open(injection.counting, &refusal)) {
        injection.counted = true;
        return;
    }
    counting_stop(&refusal);
}

static bool by_launch(void)
{
    return counting_by(injection.counting) != COUNTING_REGION;
}

/* Lines of the whole; and, where each launch was counted, of each. */
static void values_note(double (*values)[QUANTITY_COUNT], size_t count)
{
    for (int quantity = 0; quantity < QUANTITY_COUNT; ++quantity) {
        double sum = 0.0;
        for (size_t i = 0; i < count; ++i)
            sum += values[i][quantity];
        note(injection.notes, "value %d %.17g", quantity, sum);
        for (size_t i = 0; i < count && by_launch(); ++i)
            note(injection.notes, "each %zu %d %.17g", i, quantity, values[i][quantity]);
    }
}

static void counting_tell(void)
{
    struct outcome refusal;
    size_t count = !by_launch() ? 1 : injection.launches;
    double(*values)[QUANTITY_COUNT] = calloc(count + 1, sizeof *values);
    if (values && counting_read(injection.counting, count, injection.begun, values, &refusal)) {
        note(injection.notes, "passes %zu 1", counting_passes(injection.counting));
        values_note(values, count);
        counting_stop(NULL);
    } else {
        if (!values)
            outcome_set(&refusal, COUNTED_REFUSED, "no memory");
        counting_stop(&refusal);
    }
    free(values);
}

/* Another pass in a later region, or in the next run of the program. */
static void counting_go_on(void)
{
    struct outcome refusal;
    bool well;
    injection.begun = 0;
    if (injection.regions + 2 <= injection.task.regions) {
        well = counting_again(injection.counting, &refusal);
    } else if (by_launch()) {
        outcome_set(&refusal, COUNTED_INCOMPLETE, "too few regions for all passes");
        well = false;
    } else {
        well = counting_leave(injection.counting, &refusal);
        note(injection.notes, "passes %zu 0", counting_passes(injection.counting));
        if (well)
            counting_stop(NULL);
    }
    if (!well)
        counting_stop(&refusal);
}

static void counting_end(void)
{
    struct outcome refusal;
    bool last = false;
    if (!injection.counting)
        return;
    if (!counting_close(injection.counting, &last, &refusal)) {
        counting_stop(&refusal);
    } else if (injection.sequence != injection.first_sequence ||
               injection.launches != injection.first_launches) {
        outcome_set(&refusal, COUNTED_INCOMPLETE,
                    "a region launches something else than the first one");
        counting_stop(&refusal);
    } else if (last) {
        counting_tell();
    } else {
        counting_go_on();
    }
}

/* What becomes of a region: the first is traced, or counted; every second one after it is counted. */
static bool is_traced(void)
{
    return injection.regions == 1 &&
           (injection.task.kind == TASK_TRACE || injection.task.kind == TASK_PROFILE);
}

static bool is_counted(void)
{
    if (injection.regions % 2 == 0 || (injection.regions > 1 && !injection.counting))
        return false;
    return injection.task.kind == TASK_COUNT ||
           (injection.task.kind == TASK_PROFILE && injection.regions > 1);
}

static void region_open(void)
{
    cuCtxSynchronize();
    injection.sequence = 14695981039346656037u; /* FNV-1a */
    injection.launches = 0;
    injection.stage = STAGE_OPEN;
    if (++injection.regions == 1 || injection.task.kind == TASK_TIME)
        note(injection.notes, "opened");
    notes_flush(injection.notes);
    if (is_traced() && tracing_begin(injection.notes) != CUPTI_SUCCESS)
        note(injection.notes, "untraced CUPTI refuses");
    if (is_counted())
        counting_begin();
    injection.began = clock_monotonic();
}

static void trace_close(void)
{
    const char *problem = NULL;
    if (tracing_end(&problem) != CUPTI_SUCCESS || problem)
        note(injection.notes, "untraced %s", problem ? problem : "CUPTI refuses");
}

/* All regions of a program that is not timed are to launch what the first one does. */
static void first_close(double seconds)
{
    injection.first_sequence = injection.sequence;
    injection.first_launches = injection.launches;
    note(injection.notes, "launched %016" PRIx64 " %zu", injection.sequence, injection.launches);
    note(injection.notes, "closed %.9g", seconds);
}

static void region_close(void)
{
    cuCtxSynchronize();
    double seconds = clock_monotonic() - injection.began;
    bool timed = injection.task.kind == TASK_TIME, several = injection.task.regions > 1;
    injection.stage = timed || several ? STAGE_BEFORE : STAGE_AFTER;
    if (is_traced())
        trace_close();
    if (timed)
        note(injection.notes, "closed %.9g", seconds);
    else if (injection.regions == 1)
        first_close(seconds);
    if (is_counted())
        counting_end();
    if (injection.task.kind == TASK_PROFILE && injection.regions == 1)
        counting_try();
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
    injection.graphs += name == NULL;
    ++injection.launches;
}

static void launched(const CUpti_CallbackData *data)
{
    if (data->callbackSite != CUPTI_API_ENTER || inside || injection.owner != getpid())
        return;
    if (injection.task.region == TASK_ALL)
        inject_region(true);
    pthread_mutex_lock(&injection.lock);
    ++injection.begun;
    if (injection.stage == STAGE_OPEN)
        launch_add(data->symbolName);
    pthread_mutex_unlock(&injection.lock);
}

/* CUPTI knows kernels whose vector FLOPs it has counted by their addresses: those of what is loaded to the same
 * address next would be wrong; see profiling/module_watch.h. */
static void module_unloaded(void)
{
    if (inside || injection.owner != getpid())
        return;
    pthread_mutex_lock(&injection.lock);
    if (injection.counting && !injection.unloaded && (injection.counted || by_launch())) {
        injection.unloaded = true;
        note(injection.notes, "unloaded");
        notes_flush(injection.notes); /* before the process may die of it */
    }
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
#define RUN         (1u << TASK_TRACE | 1u << TASK_COUNT | 1u << TASK_PROFILE)
#define ANY         (1u << TASK_TIME | RUN)
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
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        module_unloaded();
}

static bool may_count(void)
{
    return injection.task.kind == TASK_COUNT || injection.task.kind == TASK_PROFILE;
}

static CUptiResult watch(void)
{
    CUpti_SubscriberHandle subscriber;
    CUptiResult code = cuptiSubscribe(&subscriber, called, NULL);
    for (int i = 0; i < CALLS && code == CUPTI_SUCCESS; ++i)
        if (is_watched(&calls[i]))
            code = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, calls[i].id);
    if (code == CUPTI_SUCCESS && may_count())
        code = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                   CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
    if (code == CUPTI_SUCCESS &&
        (injection.task.kind == TASK_TRACE || injection.task.kind == TASK_PROFILE))
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
