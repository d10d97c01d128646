/* libroofsweep-inject.so: times, traces or counts the region of a program from within.
 *
 * CUDA loads the library into the program (CUDA_INJECTION64_PATH) and calls InitializeInjection;
 * NVTX loads it (NVTX_INJECTION64_PATH) and calls InitializeInjectionNvtx2. Environment variables
 * set the task. The findings are lines in a file of this process (program/run/report.h). Refusals
 * and failures are lines too, so the program itself never fails. CUPTI callbacks watch the calls of
 * the program, all under one lock. Without ROOFSWEEP_INJECT, the library does nothing. The
 * variables:
 *
 *   ROOFSWEEP_INJECT    time, trace, count, or profile: trace the first region, count later ones
 *   ROOFSWEEP_REGION    profiler, all, or nvtx NAME
 *   ROOFSWEEP_REPORT    folder for the file of findings
 *   ROOFSWEEP_POINT     set if the program may call roofsweep_point to measure another point
 *   ROOFSWEEP_IMAGE     count, profile: file that carries the counter data from run to run
 *   ROOFSWEEP_TENSORS   count, profile: set of tensor quantities, or activities: model/quantity.h
 *   ROOFSWEEP_REGIONS   count, profile: number of regions that the program opens
 *   ROOFSWEEP_RANGES    count, profile: region; launches (each kernel alone, if there are regions
 *                       enough for all passes); or replay (each kernel, repeated by CUPTI)
 *   ROOFSWEEP_LAUNCHES  count: number of launches in a region according to the trace
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cuda.h>
#include <cupti.h>
#include <nvtx3/nvToolsExt.h>

#include "base/clock.h"
#include "base/text.h"
#include "worker/cuda/profiling/counters.h"
#include "worker/cuda/profiling/residency.h"
#include "worker/cuda/profiling/tracer.h"

enum {
    LAUNCHES_MOST = 4000, /* more launches become one range: ranges take memory and time */
    ROOM_LEAST = 64       /* spare ranges for launches outside the region */
};
enum stage { STAGE_BEFORE, STAGE_OPEN, STAGE_AFTER };
enum task_kind { TASK_TIME, TASK_TRACE, TASK_COUNT, TASK_PROFILE };
enum task_region { TASK_PROFILER, TASK_ALL, TASK_NVTX };
enum {
    TIMES = 1 << TASK_TIME,
    TRACES = 1 << TASK_TRACE | 1 << TASK_PROFILE,
    COUNTS = 1 << TASK_COUNT | 1 << TASK_PROFILE
};

struct task {
    enum task_kind kind;
    enum task_region region;
    char range[64]; /* TASK_NVTX: name of the NVTX range */
    char folder[4096], image[4096];
    unsigned tensors;
    enum counters_by ranges;
    size_t regions, launches; /* values of ROOFSWEEP_REGIONS and ROOFSWEEP_LAUNCHES */
};

/* State of the process. It is global, since CUDA passes no argument to callbacks. */
static struct injection {
    pthread_mutex_t lock;
    pid_t owner; /* the process with the task; 0: none; a forked child differs and is ignored */
    struct task task;
    FILE *notes;                 /* file of the findings; NULL: the file cannot be made */
    struct tracer *tracer;       /* NULL: no memory */
    CUptiResult watching;        /* CUPTI's answer to the subscription */
    struct counters *counters;   /* CUPTI may use them until counting_stop */
    bool counting;               /* counters are started, and passes are left */
    struct counters_order order; /* request with which `counters` were started */
    CUcontext context;           /* the counters count the GPU of this context */
    bool tried;                  /* the process has tried to start the counters */
    bool counted;                /* counting of a region has begun */
    bool unloaded;               /* the report says that counted code may have been unloaded */
    enum stage stage;
    size_t regions;                    /* number of regions opened so far */
    double began;                      /* start of the open region, in s of CLOCK_MONOTONIC */
    uint64_t sequence, first_sequence; /* hashes of the launches of this and of the first region */
    size_t launches, first_launches;   /* numbers of launches in this and in the first region */
    size_t graphs;                     /* number of launches of graphs in all regions */
    size_t begun;                      /* number of launches since the pass started */
} injection = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* True while the thread is in a callback of this library: CUDA calls that the thread makes then are
 * the library's, not the program's. */
static _Thread_local bool inside;

/* Takes the lock for a call of the program. False, without the lock: the call comes from this
 * library or from a process without a task. */
static bool enter(void)
{
    if (inside || injection.owner != getpid())
        return false;
    inside = true;
    pthread_mutex_lock(&injection.lock);
    return true;
}

static void leave(void)
{
    pthread_mutex_unlock(&injection.lock);
    inside = false;
}

/* ---- the task ---- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static bool task_read(struct task *task)
{
    static const char *const kinds[] = {"time", "trace", "count", "profile", NULL};
    static const char *const ranges[] = {"region", "launches", "replay", NULL};
    static const char *const named[] = {"profiler", "all", NULL};
    static const char nvtx[] = "nvtx ";
    const char *region = variable("ROOFSWEEP_REGION");
    int kind = words_find(kinds, variable("ROOFSWEEP_INJECT")),
        by = words_find(ranges, variable("ROOFSWEEP_RANGES")), where = words_find(named, region);
    struct task read = {.kind = (enum task_kind)kind, .region = (enum task_region)where};
    if (strncmp(region, nvtx, strlen(nvtx)) == 0) {
        where = read.region = TASK_NVTX;
        snprintf(read.range, sizeof read.range, "%s", region + strlen(nvtx));
    }
    read.ranges = by < 0 ? COUNTERS_BY_RANGE : (enum counters_by)by;
    read.regions = strtoul(variable("ROOFSWEEP_REGIONS"), NULL, 10);
    read.launches = strtoul(variable("ROOFSWEEP_LAUNCHES"), NULL, 10);
    snprintf(read.folder, sizeof read.folder, "%s", variable("ROOFSWEEP_REPORT"));
    snprintf(read.image, sizeof read.image, "%s", variable("ROOFSWEEP_IMAGE"));
    read.tensors = (unsigned)strtoul(variable("ROOFSWEEP_TENSORS"), NULL, 10);
    *task = read;
    return kind >= 0 && where >= 0 && read.folder[0] != '\0';
}

static bool task_is(unsigned kinds)
{
    return kinds >> injection.task.kind & 1;
}

/* ---- lines for the worker ---- */

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list arguments;
    if (!injection.notes)
        return;
    va_start(arguments, format);
    vfprintf(injection.notes, format, arguments);
    va_end(arguments);
    fputc('\n', injection.notes);
}

static void notes_flush(void)
{
    if (injection.notes)
        fflush(injection.notes);
}

/* ---- counting ---- */

static void refused(const struct outcome *outcome)
{
    note("refused %lld %s", (long long)outcome->code, outcome->reason);
}

/* Regions with launches of graphs are not counted launch by launch, because CUPTI does not say
 * which range belongs to a graph. */
static struct counters_order counting_order(void)
{
    const struct task *task = &injection.task;
    struct counters_order order = {.tensors = task->tensors, .image = task->image};
    size_t launches = task->kind == TASK_PROFILE ? injection.first_launches : task->launches;
    /* Room for more launches than were traced, so that a program that launches more is noticed. */
    size_t each = launches + launches / 8;
    if (task->ranges == COUNTERS_BY_LAUNCH && task->kind == TASK_PROFILE && injection.graphs == 0 &&
        launches <= LAUNCHES_MOST)
        order.by = COUNTERS_BY_LAUNCH;
    if (task->ranges == COUNTERS_BY_REPLAY)
        order.by = COUNTERS_BY_REPLAY;
    /* Each pass needs two regions: the start of a pass fills L2 with CUPTI's data, the first region
     * replaces these, and the second is counted. */
    order.passes = (task->regions - 1) / 2;
    order.room = (order.by == COUNTERS_BY_LAUNCH ? 2 : 1) * each + ROOM_LEAST;
    return order;
}

/* Also releases the counters if the process has several points, so that others can count. */
static void counting_stop(void)
{
    injection.counting = false;
    if (!getenv("ROOFSWEEP_POINT"))
        return;
    counters_end(injection.counters);
    injection.counters = NULL;
}

static void counting_try(void)
{
    CUdevice device;
    struct outcome refusal;
    if (injection.tried || cuCtxGetCurrent(&injection.context) != CUDA_SUCCESS ||
        !injection.context)
        return;
    injection.tried = true;
    injection.begun = 0;
    injection.order = counting_order();
    if (cuCtxGetDevice(&device) == CUDA_SUCCESS)
        injection.counters = counters_start(device, injection.context, &injection.order, &refusal);
    else
        outcome_set(&refusal, COUNTED_REFUSED, "CUDA does not tell the context's device");
    injection.counting = injection.counters != NULL;
    if (!injection.counting)
        refused(&refusal);
}

/* After a failure this process counts nothing more. */
static void counting_begin(void)
{
    CUcontext context = NULL;
    struct outcome refusal;
    counting_try();
    if (!injection.counting)
        return;
    if (injection.order.by == COUNTERS_BY_REPLAY)
        injection.begun = 0;
    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context != injection.context) {
        outcome_set(&refusal, COUNTED_INCOMPLETE,
                    "the region is in another context than the first %s",
                    injection.task.kind == TASK_COUNT ? "allocation" : "region");
    } else if (counters_region_open(injection.counters, &refusal)) {
        injection.counted = true;
        return;
    }
    refused(&refusal);
    counting_stop();
}

static bool by_launch(void)
{
    return injection.order.by != COUNTERS_BY_RANGE;
}

/* Writes the values after the last pass: their sum, and if launches are counted one by one, also
 * each value. */
static bool counts_note(struct outcome *refusal)
{
    size_t count = by_launch() ? injection.launches : 1;
    double(*values)[QUANTITY_COUNT] = calloc(count + 1, sizeof *values);
    if (!values) {
        outcome_set(refusal, COUNTED_REFUSED, "no memory");
        return false;
    }
    bool read = counters_read(injection.counters, count, injection.begun, values, refusal);
    if (read)
        note("passes %zu 1", counters_passes(injection.counters));
    const bool activities = injection.task.tensors == QUANTITY_ACTIVITIES;
    for (int quantity = activities ? QUANTITY_ACTIVITY : 0;
         read && quantity < (activities ? QUANTITY_COUNT : QUANTITY_ACTIVITY); ++quantity) {
        double sum = 0.0;
        for (size_t i = 0; i < count; ++i)
            sum += values[i][quantity];
        note("value %d %.17g", quantity, sum);
        for (size_t i = 0; i < count && by_launch(); ++i)
            note("each %zu %d %.17g", i, quantity, values[i][quantity]);
    }
    free(values);
    return read;
}

/* Starts another pass if enough regions are left. Otherwise sets *over and leaves the pass to the
 * next run of the program. */
static bool counting_go_on(bool *over, struct outcome *refusal)
{
    injection.begun = 0;
    *over = injection.regions + 2 > injection.task.regions;
    if (!*over)
        return counters_pass_start(injection.counters, refusal);
    if (by_launch()) {
        outcome_set(refusal, COUNTED_INCOMPLETE, "too few regions for all passes");
        return false;
    }
    note("passes %zu 0", counters_passes(injection.counters));
    return counters_leave(injection.counters, injection.task.image, refusal);
}

static void counting_end(void)
{
    struct outcome refusal;
    bool last = false, over = true;
    if (!injection.counting)
        return;
    bool well = counters_region_close(injection.counters, &last, &refusal);
    if (well && (injection.sequence != injection.first_sequence ||
                 injection.launches != injection.first_launches)) {
        well = false;
        outcome_set(&refusal, COUNTED_INCOMPLETE,
                    "a region launches something else than the first one");
    }
    well = well && (last ? counts_note(&refusal) : counting_go_on(&over, &refusal));
    if (!well)
        refused(&refusal);
    if (!well || over)
        counting_stop();
}

/* ---- the region ---- */

/* The first region is traced or counted. After it every second region is counted. */
static bool is_traced(void)
{
    return injection.regions == 1 && injection.tracer && task_is(TRACES);
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
        note("opened");
    notes_flush();
    if (is_traced() && tracer_begin(injection.tracer) != CUPTI_SUCCESS)
        note("untraced CUPTI refuses");
    if (is_counted())
        counting_begin();
    injection.began = clock_monotonic();
}

static int attribute(int device, int number)
{
    int value = 0;
    cuDeviceGetAttribute(&value, (CUdevice_attribute)number, device);
    return value;
}

static void trace_close(void)
{
    enum { NAME_BYTES = 1000 };
    const char *problem = NULL;
    CUdevice device = 0;
    cuCtxGetDevice(&device);
    const cudaOccDeviceProp limits = residency_limits(device, attribute);
    if (tracer_end(injection.tracer, &problem) != CUPTI_SUCCESS || problem)
        note("untraced %s", problem ? problem : "CUPTI refuses");
    const struct trace *trace = tracer_last(injection.tracer);
    for (size_t i = 0; i < trace->launch_count; ++i) {
        const struct launch *launch = &trace->launches[i];
        const struct traced_kernel *traced = &trace->kernels[launch->kernel];
        const struct kernel *k = &traced->kernel;
        int64_t limit, resident = residency_blocks(traced, &limits, &limit);
        note("kernel %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRId64 " %" PRId64
             " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
             " %" PRId64 " %" PRId64 " %" PRId64 " %.*s",
             launch->start, launch->end, launch->correlation, launch->graph_node, k->grid_x,
             k->grid_y, k->grid_z, k->block_x, k->block_y, k->block_z, k->registers,
             k->static_shared, k->dynamic_shared, k->cluster, resident, limit, NAME_BYTES, k->name);
    }
    for (size_t i = 0; i < trace->move_count; ++i) {
        const struct traced_move *move = &trace->moves[i];
        note("%s %" PRIu64 " %" PRIu64 " %" PRIu64, move->fill ? "fill" : "copy", move->start,
             move->end, move->bytes);
    }
}

static void region_close(void)
{
    cuCtxSynchronize();
    double seconds = clock_monotonic() - injection.began;
    bool timed = injection.task.kind == TASK_TIME, several = injection.task.regions > 1;
    injection.stage = timed || several ? STAGE_BEFORE : STAGE_AFTER;
    if (is_traced())
        trace_close();
    if (!timed && injection.regions == 1) { /* later regions must launch the same kernels */
        injection.first_sequence = injection.sequence;
        injection.first_launches = injection.launches;
        note("launched %016" PRIx64 " %zu", injection.sequence, injection.launches);
    }
    if (timed || injection.regions == 1)
        note("closed %.9g", seconds);
    if (is_counted())
        counting_end();
    if (injection.task.kind == TASK_PROFILE && injection.regions == 1)
        counting_try();
    notes_flush();
}

/* The program opens or closes its region. Calls in the wrong order are ignored. */
static void region(bool opens)
{
    if (!enter())
        return;
    if (opens && injection.stage == STAGE_BEFORE)
        region_open();
    else if (!opens && injection.stage == STAGE_OPEN)
        region_close();
    leave();
}

/* Closes the region of a whole program, which ends by exit or by the end of main. */
static void at_exit(void)
{
    if (injection.task.region == TASK_ALL)
        region(false);
}

/* ---- calls of the program ---- */

static void launched(const CUpti_CallbackData *data)
{
    const char *name = data->symbolName; /* NULL for a launch of a graph */
    const bool begins = data->callbackSite == CUPTI_API_ENTER;
    uint64_t now = 0;
    if (inside || injection.owner != getpid())
        return;
    if (begins && injection.task.region == TASK_ALL)
        region(true);
    pthread_mutex_lock(&injection.lock);
    injection.begun += begins;
    if (!begins && injection.stage == STAGE_OPEN && is_traced() &&
        cuptiGetTimestamp(&now) == CUPTI_SUCCESS)
        note("call %" PRIu64, now);
    if (begins && injection.stage == STAGE_OPEN) {
        for (const char *c = name ? name : "a graph"; *c; ++c)
            injection.sequence = (injection.sequence ^ (unsigned char)*c) * 1099511628211u;
        injection.graphs += name == NULL;
        ++injection.launches;
    }
    pthread_mutex_unlock(&injection.lock);
}

/* Once CUPTI has counted a kernel's vector FLOPs, it identifies the kernel by its address: code
 * that is loaded there later would be counted wrongly; see worker/cuda/profiling/counters.c. */
static void module_unloaded(void)
{
    if (!enter())
        return;
    if (injection.counting && !injection.unloaded && (injection.counted || by_launch())) {
        injection.unloaded = true;
        note("unloaded");
        notes_flush();
    }
    leave();
}

static void allocated(const CUpti_CallbackData *data)
{
    if (data->callbackSite != CUPTI_API_EXIT || !enter())
        return;
    counting_try();
    leave();
}

static void profiler_started(const CUpti_CallbackData *data)
{
    if (data->callbackSite == CUPTI_API_EXIT)
        region(true);
}

static void profiler_stopped(const CUpti_CallbackData *data)
{
    if (data->callbackSite == CUPTI_API_ENTER)
        region(false);
}

/* Watched calls, with the kinds of task and the kinds of region for which they are watched. */
#define ALL_REGIONS  (1u << TASK_PROFILER | 1u << TASK_ALL | 1u << TASK_NVTX)
#define CALL(name)   CUPTI_DRIVER_TRACE_CBID_##name
#define REGION(name) CALL(name), TIMES | TRACES | COUNTS, 1u << TASK_PROFILER
#define ALLOCATE(name)                                                                             \
    {                                                                                              \
        CALL(name), 1u << TASK_COUNT, ALL_REGIONS, allocated                                       \
    }
#define LAUNCH(name)                                                                               \
    {                                                                                              \
        CALL(name), TRACES | COUNTS, ALL_REGIONS, launched                                         \
    }
static const struct watched {
    CUpti_CallbackId id;
    unsigned tasks, regions;
    void (*call)(const CUpti_CallbackData *data);
} calls[] = {
    {REGION(cuProfilerStart), profiler_started},
    {REGION(cuProfilerStop), profiler_stopped},
    ALLOCATE(cuMemAlloc_v2),
    ALLOCATE(cuMemAllocPitch_v2),
    ALLOCATE(cuMemAllocManaged),
    ALLOCATE(cuMemAllocAsync),
    ALLOCATE(cuMemAllocFromPoolAsync),
    ALLOCATE(cuMemCreate),
    LAUNCH(cuLaunchKernel),
    LAUNCH(cuLaunchKernel_ptsz),
    LAUNCH(cuLaunchKernelEx),
    LAUNCH(cuLaunchKernelEx_ptsz),
    LAUNCH(cuLaunchCooperativeKernel),
    LAUNCH(cuLaunchCooperativeKernel_ptsz),
    LAUNCH(cuGraphLaunch),
    LAUNCH(cuGraphLaunch_ptsz),
};
enum { CALLS = sizeof calls / sizeof *calls };

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

static CUptiResult watch(void)
{
    CUpti_SubscriberHandle subscriber;
    CUptiResult code = cuptiSubscribe(&subscriber, called, NULL);
    for (int i = 0; i < CALLS && code == CUPTI_SUCCESS; ++i)
        if (task_is(calls[i].tasks) && calls[i].regions >> injection.task.region & 1)
            code = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, calls[i].id);
    if (code == CUPTI_SUCCESS && task_is(COUNTS))
        code = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                   CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
    return code == CUPTI_SUCCESS && task_is(TRACES) ? tracer_watch() : code;
}

static void notes_open(void)
{
    char path[sizeof injection.task.folder + 64];
    snprintf(path, sizeof path, "%s/%d.injected", injection.task.folder, (int)getpid());
    injection.notes = fopen(path, "ae");
    if (!injection.tracer)
        note("untraced no memory");
}

static void watching_note(void)
{
    const char *name = "unknown";
    if (injection.watching == CUPTI_SUCCESS)
        return;
    cuptiGetResultString(injection.watching, &name);
    note("untraced CUPTI cannot watch the program: %s", name);
    notes_flush();
}

/* The program sets the environment variables of another point and then calls this function. */
__attribute__((visibility("default"))) void roofsweep_point(void);
void roofsweep_point(void)
{
    if (!enter())
        return;
    counting_stop();
    if (injection.notes)
        fclose(injection.notes);
    task_read(&injection.task);
    notes_open();
    injection.tried = injection.counted = injection.unloaded = false;
    injection.stage = STAGE_BEFORE;
    injection.regions = injection.graphs = 0;
    if (injection.watching == CUPTI_SUCCESS && task_is(TRACES))
        injection.watching = tracer_watch();
    watching_note();
    leave();
}

/* Reads the task and opens the file, once in each process, whether CUDA or NVTX calls first. False:
 * this process has no task. */
static bool begin(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    if (injection.owner == 0 && task_read(&injection.task)) {
        injection.owner = getpid();
        injection.tracer = tracer_open();
        notes_open();
        atexit(at_exit);
    }
    pthread_mutex_unlock(&once);
    return injection.owner == getpid();
}

/* Always returns 1; CUDA ignores the result. */
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void)
{
    if (!begin() || (task_is(TIMES) && injection.task.region == TASK_NVTX)) /* without CUPTI */
        return 1;
    injection.watching = watch();
    watching_note();
    return 1;
}

/* ---- ranges of NVTX, without CUPTI ---- */

/* Ranges nest in each thread; the region is the outermost range of its name. */
static _Thread_local int depth, region_depth;

static int NVTX_API push(const char *name)
{
    ++depth;
    if (region_depth == 0 && injection.owner == getpid() && name &&
        strcmp(name, injection.task.range) == 0) {
        region_depth = depth;
        region(true);
    }
    return depth;
}

static int NVTX_API push_event(const nvtxEventAttributes_t *event)
{
    return push(event && event->messageType == NVTX_MESSAGE_TYPE_ASCII ? event->message.ascii
                                                                       : NULL);
}

static int NVTX_API pop(void)
{
    if (region_depth != 0 && region_depth == depth) {
        region_depth = 0;
        region(false);
    }
    depth -= depth > 0;
    return depth;
}

static int NVTX_API push_domain(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    (void)domain;
    return push_event(event);
}

static int NVTX_API pop_domain(nvtxDomainHandle_t domain)
{
    (void)domain;
    return pop();
}

static const struct slot {
    NvtxCallbackModule module;
    unsigned index;
    void (*function)(void);
} slots[] = {
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, (void (*)(void))push},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, (void (*)(void))push_event},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, (void (*)(void))pop},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, (void (*)(void))push_domain},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, (void (*)(void))pop_domain},
};

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    if (!callbacks || !begin() || injection.task.region != TASK_NVTX)
        return 0;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; ++i) {
        NvtxFunctionTable table = NULL;
        unsigned size = 0;
        if (callbacks->GetModuleFunctionTable(slots[i].module, &table, &size) &&
            slots[i].index < size && table[slots[i].index])
            *(void (**)(void))table[slots[i].index] = slots[i].function;
    }
    return 1;
}
