#include "worker/cuda/profiling/counters.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "worker/cuda/profiling/formulas.h"
#include "worker/cuda/profiling/metric_set.h"

enum { RANGE_NAME = 24 };

/* What is counted together. */
struct collection {
    enum counters_by by;
    unsigned tensors;
    size_t count; /* of what there are values of: the last ranges, or all */
    size_t room;  /* for so many ranges; each costs time, attaching CUPTI and collecting */
    /* Not of regions: */
    const struct profiled_work *works;
    const size_t *launches; /* of each work's run, where each is a range */
    size_t works_count;
    double (*values)[QUANTITY_COUNT];
};

/* A file that goes from run to run of a program begins with this. */
struct passed {
    uint64_t bytes; /* of the counter data */
    uint64_t pass;  /* the next one, as CUPTI counts them */
    uint64_t level; /* its nesting level */
};

struct image {
    struct passed passed;
    uint8_t *data;             /* owned: counter data */
    char (*names)[RANGE_NAME]; /* owned: of the ranges, */
    size_t count;              /* so many */
};

struct counters {
    CUcontext context;
    char chip[32];
    const struct chip_family *family;
    uint8_t *availability; /* owned */
    /* By set of tensor units: the metrics of these, and of everything else but activities. The last
     * one has the activities. */
    struct metric_set sets[QUANTITY_ACTIVITIES + 1];
    const struct metric_set *set;         /* what the image is of */
    bool attached;                        /* CUPTI, to the process */
    CUpti_RangeProfiler_Object *profiler; /* NULL: not enabled */
    /* What CUPTI was told when it was enabled. That cannot be changed: with another kind of range
     * PushRange fails, and another configuration is accepted, after which it counts wrong. */
    struct collection told;
    /* CUPTI may use the last collection's image until it gets another, or is detached: nothing
     * says that it does not. */
    struct image image, last_image;
    CUpti_SubscriberHandle subscriber;
    bool watching; /* unloaded modules */
    bool unloaded; /* one was; set by whatever thread unloads, by __atomic functions alone */
    /* pieces of work */
    unsigned asked;     /* tensors, since CUPTI was attached */
    bool afresh;        /* it counts only once an attachment */
    bool each;          /* kernel that is launched now is a range of its own; */
    size_t launched;    /* so many were in this pass; */
    CUptiResult ranged; /* what CUPTI says of their ranges */
};

/* ---- CUPTI's calls: parameters are structs that say their own size, answers are codes ---- */

#define PARAMETERS(name, type) type##_Params name = {.structSize = type##_Params_STRUCT_SIZE}

/* Returns the code from the calling function, unless it is success. */
#define TRY_CUPTI(call)                                                                            \
    do {                                                                                           \
        CUptiResult try_result = (call);                                                           \
        if (try_result != CUPTI_SUCCESS)                                                           \
            return try_result;                                                                     \
    } while (0)

static const struct cause {
    CUptiResult code;
    const char *what, *advice;
} causes[] = {
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "this user may not read hardware counters",
     "ask the administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0 (options "
     "nvidia ... in /etc/modprobe.d), or run with CAP_SYS_ADMIN"},
    {CUPTI_ERROR_HARDWARE_BUSY, "another process holds this GPU's counters",
     "end other profilers on this GPU; where DCGM watches it, the administrator pauses that with "
     "dcgmi profile --pause"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another profiler is attached to this process",
     "run without ncu, nsys or CUDA_INJECTION64_PATH"},
    {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "the GPU is in confidential computing mode",
     "the administrator must turn that mode off or offer another GPU"},
    {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "the GPU is a slice of a shared one (MIG)",
     "ask for a whole GPU"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "the GPU is virtual", "ask for a physical GPU"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     "the hypervisor forbids profiling of this virtual GPU",
     "the administrator sets enable_profiling for it, or ask for a physical GPU"},
    {CUPTI_ERROR_NOT_COMPATIBLE, "the driver is too old for this CUPTI",
     "ask the administrator for a newer driver, or build with an older CUDA toolkit"},
    {CUPTI_ERROR_API_NOT_IMPLEMENTED, "the driver is too old for this CUPTI",
     "ask the administrator for a newer driver, or build with an older CUDA toolkit"},
    {CUPTI_ERROR_NOT_SUPPORTED, "CUPTI does not support this GPU with this driver",
     "ask the administrator for a newer driver, or build with a newer CUDA toolkit"},
    {CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "the GPU is one for mining, without counters",
     "ask for another GPU"},
    {CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "no counters under this Windows subsystem",
     "run on Linux itself"},
};

/* Whether it succeeded. If not, COUNTED_REFUSED with the cause and the way out; with `call` and
 * CUPTI's own name of a code that is in no table. */
static bool is_well(CUptiResult code, const char *call, struct outcome *refusal)
{
    const char *name = "unknown CUPTI error";
    if (code == CUPTI_SUCCESS)
        return true;
    cuptiGetResultString(code, &name);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; ++i)
        if (causes[i].code == code) {
            outcome_set(refusal, COUNTED_REFUSED, "%s (%s); %s", causes[i].what, name,
                        causes[i].advice);
            return false;
        }
    outcome_set(refusal, COUNTED_REFUSED, "%s: %s", call, name);
    return false;
}

/* ---- ranges ---- */

static CUptiResult range_push(struct counters *counters, const char *name)
{
    PARAMETERS(push, CUpti_RangeProfiler_PushRange);
    push.pRangeProfilerObject = counters->profiler;
    push.pRangeName = name;
    return cuptiRangeProfilerPushRange(&push);
}

static CUptiResult range_pop(struct counters *counters)
{
    PARAMETERS(pop, CUpti_RangeProfiler_PopRange);
    pop.pRangeProfilerObject = counters->profiler;
    return cuptiRangeProfilerPopRange(&pop);
}

/* ---- calls of the driver ----
 *
 * CUPTI counts vector FLOPs by instructions that it adds to each kernel when the kernel is first
 * launched. It knows such a kernel by an address, and is not told when the kernel's module is
 * unloaded. A kernel that is loaded to the same address later is taken for the old one: its FLOPs
 * are wrong, or the process dies in the launch. So counters are begun afresh once a module has been
 * unloaded. cuDNN unloads one with each plan that it has compiled.
 *
 * CUPTI can make a range of each launch by itself, but then of those that prepare a work, too, and
 * a range costs 1 ms in each pass. */

/* The range's name is the launch's number. A launch for which there is no name gets no range, but
 * is one of `launched`, which then is not what was expected. */
static void launch_range(struct counters *counters, CUpti_ApiCallbackSite site)
{
    const bool named = counters->launched < counters->image.count;
    char *name = counters->image.names[named ? counters->launched : 0];
    if (named && counters->ranged == CUPTI_SUCCESS) {
        snprintf(name, RANGE_NAME, "%zu", counters->launched);
        counters->ranged =
            site == CUPTI_API_ENTER ? range_push(counters, name) : range_pop(counters);
    }
    counters->launched += site == CUPTI_API_EXIT;
}

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const void *data)
{
    struct counters *counters = user;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        __atomic_store_n(&counters->unloaded, true, __ATOMIC_SEQ_CST);
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && counters->each)
        launch_range(counters, ((const CUpti_CallbackData *)data)->callbackSite);
}

static bool saw_unload(const struct counters *counters)
{
    return __atomic_load_n(&counters->unloaded, __ATOMIC_SEQ_CST);
}

/* Where another tool is CUPTI's subscriber nothing can be watched. */
static void watch_begin(struct counters *counters)
{
    __atomic_store_n(&counters->unloaded, false, __ATOMIC_SEQ_CST);
    static const CUpti_CallbackId launches[] = {
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    };
    if (cuptiSubscribe(&counters->subscriber, called, counters) != CUPTI_SUCCESS)
        return;
    counters->watching =
        cuptiEnableCallback(1, counters->subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                            CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) == CUPTI_SUCCESS;
    for (size_t i = 0; i < sizeof launches / sizeof *launches; ++i)
        counters->watching &=
            cuptiEnableCallback(1, counters->subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launches[i]) ==
            CUPTI_SUCCESS;
    if (!counters->watching)
        cuptiUnsubscribe(counters->subscriber);
}

/* ---- what is attached ---- */

static void CUPTIAPI no_buffer(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = NULL;
    *size = *records = 0;
}

static void CUPTIAPI ignore_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                   size_t valid)
{
    (void)context, (void)stream, (void)buffer, (void)size, (void)valid;
}

/* Nothing happens if it is attached. While it is there every launch takes longer. */
static CUptiResult attach(struct counters *counters)
{
    PARAMETERS(initialize, CUpti_Profiler_Initialize);
    if (counters->attached)
        return CUPTI_SUCCESS;
    counters->attached = true;
    /* After cuptiFinalize the profiler does not find the driver again by itself:
     * cuptiProfilerInitialize then returns CUPTI_ERROR_NOT_INITIALIZED. This call does. */
    TRY_CUPTI(cuptiActivityRegisterCallbacks(no_buffer, ignore_buffer));
    return cuptiProfilerInitialize(&initialize);
}

static void image_free(struct image *image)
{
    free(image->data);
    free(image->names);
    *image = (struct image){.data = NULL};
}

static void detach(struct counters *counters)
{
    PARAMETERS(disable, CUpti_RangeProfiler_Disable);
    if (counters->profiler) {
        disable.pRangeProfilerObject = counters->profiler;
        cuptiRangeProfilerDisable(&disable);
        if (counters->watching)
            cuptiUnsubscribe(counters->subscriber);
        counters->watching = false;
        counters->profiler = NULL;
        image_free(&counters->image);
        image_free(&counters->last_image);
    }
    if (counters->attached)
        cuptiFinalize();
    counters->attached = false;
}

void counters_detach(struct counters *counters)
{
    counters->asked = 0;
    detach(counters);
}

bool counters_are_attached(const struct counters *counters)
{
    return counters && counters->attached;
}

/* ---- the device ---- */

/* A device that is not supported for one reason gets that reason's code. */
static CUptiResult check_support(int device)
{
    PARAMETERS(support, CUpti_Profiler_DeviceSupported);
    support.cuDevice = device;
    support.api = CUPTI_PROFILER_RANGE_PROFILING;
    TRY_CUPTI(cuptiProfilerDeviceSupported(&support));
    if (support.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
        return CUPTI_SUCCESS;
    const struct {
        CUpti_Profiler_Support_Level level;
        CUptiResult code;
    } reasons[] = {
        {support.vGpu, support.vGpu == CUPTI_PROFILER_CONFIGURATION_DISABLED
                           ? CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
                           : CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED},
        {support.confidentialCompute, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED},
        {support.cmp, CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED},
        {support.wsl, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; ++i)
        if (reasons[i].level != CUPTI_PROFILER_CONFIGURATION_SUPPORTED &&
            reasons[i].level != CUPTI_PROFILER_CONFIGURATION_UNKNOWN)
            return reasons[i].code;
    return CUPTI_ERROR_NOT_SUPPORTED;
}

static CUptiResult read_availability(struct counters *counters)
{
    PARAMETERS(get, CUpti_Profiler_GetCounterAvailability);
    get.ctx = counters->context;
    TRY_CUPTI(cuptiProfilerGetCounterAvailability(&get));
    counters->availability = malloc(get.counterAvailabilityImageSize);
    if (!counters->availability)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    get.pCounterAvailabilityImage = counters->availability;
    return cuptiProfilerGetCounterAvailability(&get);
}

static bool describe(struct counters *counters, int device, struct outcome *refusal)
{
    PARAMETERS(name, CUpti_Device_GetChipName);
    name.deviceIndex = (size_t)device;
    if (!is_well(cuptiDeviceGetChipName(&name), "cuptiDeviceGetChipName", refusal))
        return false;
    snprintf(counters->chip, sizeof counters->chip, "%s", name.pChipName);
    if (!is_well(read_availability(counters), "cuptiProfilerGetCounterAvailability", refusal))
        return false;
    counters->family = chip_family_find(counters->chip);
    if (!counters->family)
        outcome_set(refusal, COUNTED_REFUSED,
                    "no metric table for the chip %s; a newer roofsweep may have one",
                    counters->chip);
    return counters->family != NULL;
}

static struct counters *counters_create(CUcontext context, struct outcome *refusal)
{
    struct counters *counters = calloc(1, sizeof *counters);
    if (!counters)
        outcome_set(refusal, COUNTED_REFUSED, "no memory");
    else
        counters->context = context;
    return counters;
}

/* Leaves CUPTI as it is. */
static void counters_free(struct counters *counters)
{
    for (unsigned i = 0; i <= QUANTITY_ACTIVITIES; ++i)
        metric_set_close(&counters->sets[i]);
    image_free(&counters->image);
    free(counters->availability);
    free(counters);
}

struct counters *counters_open(int device, CUcontext context, struct outcome *refusal)
{
    struct counters *counters = counters_create(context, refusal);
    if (counters && is_well(attach(counters), "cuptiProfilerInitialize", refusal) &&
        is_well(check_support(device), "cuptiProfilerDeviceSupported", refusal) &&
        describe(counters, device, refusal))
        return counters;
    counters_close(counters);
    return NULL;
}

void counters_close(struct counters *counters)
{
    if (!counters)
        return;
    detach(counters);
    counters_free(counters);
}

bool counters_have(const struct counters *counters, enum quantity quantity)
{
    return chip_family_has(counters->family, quantity);
}

/* ---- configuration, passes and ranges ---- */

static bool is_wanted(enum quantity quantity, unsigned tensors)
{
    unsigned tensor = quantity_tensor(quantity);
    if (quantity >= QUANTITY_ACTIVITY || tensors == QUANTITY_ACTIVITIES)
        return quantity >= QUANTITY_ACTIVITY && tensors == QUANTITY_ACTIVITIES;
    return !tensor || tensor & tensors;
}

static CUptiResult set_choose(struct counters *counters, unsigned tensors)
{
    struct metric_set *set = &counters->sets[tensors];
    bool wanted[QUANTITY_COUNT];
    counters->set = set;
    if (set->host)
        return CUPTI_SUCCESS;
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        wanted[i] = is_wanted((enum quantity)i, tensors);
    set->count = formulas_metrics(counters->family, wanted, set->metrics);
    return metric_set_open(set, counters->chip, counters->availability);
}

size_t counters_passes(const struct counters *counters)
{
    return counters->set->passes;
}

static CUptiResult enable(struct counters *counters, const struct collection *collection)
{
    PARAMETERS(enable, CUpti_RangeProfiler_Enable);
    enable.ctx = counters->context;
    TRY_CUPTI(cuptiRangeProfilerEnable(&enable));
    counters->profiler = enable.pRangeProfilerObject;
    counters->told = *collection;
    return CUPTI_SUCCESS;
}

static CUptiResult image_create(struct counters *counters)
{
    PARAMETERS(size, CUpti_RangeProfiler_GetCounterDataSize);
    PARAMETERS(initialize, CUpti_RangeProfiler_CounterDataImage_Initialize);
    struct image *image = &counters->image;
    size.pRangeProfilerObject = counters->profiler;
    size.pMetricNames = (const char **)counters->set->metrics;
    size.numMetrics = counters->set->count;
    size.maxNumOfRanges = counters->told.room;
    size.maxNumRangeTreeNodes = (uint32_t)counters->told.room;
    TRY_CUPTI(cuptiRangeProfilerGetCounterDataSize(&size));
    image->passed = (struct passed){.bytes = size.counterDataSize};
    image->data = malloc(size.counterDataSize);
    if (!image->data)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    initialize.pRangeProfilerObject = counters->profiler;
    initialize.counterDataSize = size.counterDataSize;
    initialize.pCounterData = image->data;
    return cuptiRangeProfilerCounterDataImageInitialize(&initialize);
}

static CUptiResult configure(struct counters *counters)
{
    PARAMETERS(config, CUpti_RangeProfiler_SetConfig);
    const struct collection *told = &counters->told;
    config.pRangeProfilerObject = counters->profiler;
    config.pConfig = counters->set->config;
    config.configSize = counters->set->config_size;
    config.pCounterDataImage = counters->image.data;
    config.counterDataImageSize = counters->image.passed.bytes;
    config.range = told->by == COUNTERS_BY_RANGE ? CUPTI_UserRange : CUPTI_AutoRange;
    config.replayMode = told->by == COUNTERS_BY_REPLAY ? CUPTI_KernelReplay : CUPTI_UserReplay;
    config.maxRangesPerPass = told->room;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = counters->image.passed.pass;
    config.targetNestingLevel = (uint16_t)counters->image.passed.level;
    return cuptiRangeProfilerSetConfig(&config);
}

static CUptiResult pass_start(struct counters *counters)
{
    PARAMETERS(start, CUpti_RangeProfiler_Start);
    start.pRangeProfilerObject = counters->profiler;
    return cuptiRangeProfilerStart(&start);
}

/* *last: CUPTI has all passes. */
static CUptiResult pass_stop(struct counters *counters, bool *last)
{
    PARAMETERS(stop, CUpti_RangeProfiler_Stop);
    stop.pRangeProfilerObject = counters->profiler;
    TRY_CUPTI(cuptiRangeProfilerStop(&stop));
    counters->image.passed.pass = stop.passIndex;
    counters->image.passed.level = stop.targetNestingLevel;
    *last = stop.isAllPassSubmitted;
    return CUPTI_SUCCESS;
}

static CUptiResult decode(struct counters *counters, size_t *dropped)
{
    PARAMETERS(data, CUpti_RangeProfiler_DecodeData);
    data.pRangeProfilerObject = counters->profiler;
    TRY_CUPTI(cuptiRangeProfilerDecodeData(&data));
    *dropped = data.numOfRangeDropped;
    return CUPTI_SUCCESS;
}

static CUptiResult ranges_found(const struct counters *counters, size_t *found)
{
    PARAMETERS(info, CUpti_RangeProfiler_GetCounterDataInfo);
    info.pCounterDataImage = counters->image.data;
    info.counterDataImageSize = counters->image.passed.bytes;
    TRY_CUPTI(cuptiRangeProfilerGetCounterDataInfo(&info));
    *found = info.numTotalRanges;
    return CUPTI_SUCCESS;
}

static CUptiResult evaluate(const struct counters *counters, size_t range,
                            double values[QUANTITY_COUNT])
{
    double metrics[FORMULAS_METRICS_MAX];
    const struct metric_set *set = counters->set;
    TRY_CUPTI(metric_set_evaluate(set, counters->image.data, counters->image.passed.bytes, range,
                                  metrics));
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        values[i] = formulas_evaluate(counters->family, (enum quantity)i, set->metrics, metrics,
                                      set->count);
    return CUPTI_SUCCESS;
}

/* ---- pieces of work ---- */

/* It was enabled for what this collection needs, and all code that it may have counted is still
 * there. */
static bool suits(const struct counters *counters, const struct collection *collection)
{
    const struct collection *told = &counters->told;
    return counters->profiler && counters->watching && !saw_unload(counters) &&
           told->by == collection->by && told->tensors == collection->tensors &&
           told->room >= collection->room;
}

/* CUPTI is detached before the range profiler is enabled anew: only so was it measured to leave
 * device times alone. */
static CUptiResult collection_begin(struct counters *counters, const struct collection *collection)
{
    if (!suits(counters, collection)) {
        if (counters->profiler)
            detach(counters);
        TRY_CUPTI(attach(counters));
        TRY_CUPTI(enable(counters, collection));
        watch_begin(counters);
    }
    const size_t names = collection->count > 0 ? collection->count : 1;
    counters->last_image = counters->image;
    counters->image = (struct image){
        .names = calloc(names, sizeof *counters->image.names),
        .count = collection->count,
    };
    if (!counters->image.names)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    TRY_CUPTI(image_create(counters));
    return configure(counters);
}

/* The range's name is the work's number: what comes back is known by it. */
static enum status work_run(struct counters *counters, const struct collection *collection,
                            size_t number, CUptiResult *code, struct error *error)
{
    const struct profiled_work *work = &collection->works[number];
    TRY(work->prepare(work->argument, error));
    if (collection->launches) {
        counters->each = true;
        enum status status = work->run(work->argument, error);
        counters->each = false;
        *code = counters->ranged;
        return status;
    }
    char *name = counters->image.names[number];
    snprintf(name, RANGE_NAME, "%zu", number);
    *code = range_push(counters, name);
    if (*code != CUPTI_SUCCESS)
        return STATUS_OK;
    enum status status = work->run(work->argument, error);
    *code = range_pop(counters);
    return status;
}

/* Each piece of work once. Beginning a pass leaves L2 full of what CUPTI wrote: so all is prepared
 * after it. */
static enum status pass_run(struct counters *counters, const struct collection *collection,
                            CUptiResult *code, bool *complete, struct error *error)
{
    enum status status = STATUS_OK;
    *code = pass_start(counters);
    counters->launched = 0;
    counters->ranged = CUPTI_SUCCESS;
    if (*code != CUPTI_SUCCESS)
        return STATUS_OK;
    for (size_t i = 0; i < collection->works_count && status == STATUS_OK && *code == CUPTI_SUCCESS;
         ++i)
        status = work_run(counters, collection, i, code, error);
    CUptiResult end = pass_stop(counters, complete);
    if (*code == CUPTI_SUCCESS)
        *code = end;
    return status;
}

/* The name of the i-th range of the image, as a number. SIZE_MAX: it has none. */
static CUptiResult range_number(const struct counters *counters, size_t i, size_t *number)
{
    PARAMETERS(range, CUpti_RangeProfiler_CounterData_GetRangeInfo);
    range.pCounterDataImage = counters->image.data;
    range.counterDataImageSize = counters->image.passed.bytes;
    range.rangeIndex = i;
    range.rangeDelimiter = "/";
    TRY_CUPTI(cuptiRangeProfilerCounterDataGetRangeInfo(&range));
    char *end = NULL;
    unsigned long value = range.rangeName ? strtoul(range.rangeName, &end, 10) : 0;
    *number = end && end != range.rangeName && *end == '\0' ? value : SIZE_MAX;
    return CUPTI_SUCCESS;
}

/* Says in `outcome` what is missing, if anything. */
static CUptiResult values_read(struct counters *counters, const struct collection *collection,
                               struct outcome *outcome)
{
    size_t dropped, found;
    TRY_CUPTI(decode(counters, &dropped));
    TRY_CUPTI(ranges_found(counters, &found));
    if (collection->launches && counters->launched != collection->count)
        outcome_set(outcome, COUNTED_INCOMPLETE, "%zu launches where %zu were traced",
                    counters->launched, collection->count);
    else if (dropped > 0 || found != collection->count)
        outcome_set(outcome, COUNTED_INCOMPLETE, "%zu ranges dropped, %zu kept for %zu", dropped,
                    found, collection->count);
    for (size_t i = 0; i < collection->count && outcome->code == COUNTED_YES; ++i) {
        size_t number = i;
        if (collection->count > 1)
            TRY_CUPTI(range_number(counters, i, &number));
        if (number < collection->count)
            TRY_CUPTI(evaluate(counters, i, collection->values[number]));
        else
            outcome_set(outcome, COUNTED_INCOMPLETE, "range %zu is unknown", i);
    }
    return CUPTI_SUCCESS;
}

static enum status collect(struct counters *counters, const struct collection *collection,
                           struct outcome *outcome, struct error *error)
{
    bool complete = false;
    enum status status = STATUS_OK;
    CUptiResult code = collection_begin(counters, collection);
    for (size_t i = 0;
         i < counters_passes(counters) && status == STATUS_OK && code == CUPTI_SUCCESS && !complete;
         ++i)
        status = pass_run(counters, collection, &code, &complete, error);
    if (is_well(code, "range profiler", outcome) && status == STATUS_OK) {
        if (!complete)
            outcome_set(outcome, COUNTED_INCOMPLETE, "%zu passes were not enough",
                        counters_passes(counters));
        else
            is_well(values_read(counters, collection, outcome), "counter data", outcome);
        if (outcome->code == COUNTED_YES && saw_unload(counters))
            outcome_set(outcome, COUNTED_INCOMPLETE,
                        "a module was unloaded while its kernels were counted");
    }
    /* What went wrong may have left a pass open: the next collection begins afresh. On a lost
     * device nothing is called. */
    if (status != STATUS_DEVICE && (status || outcome->code != COUNTED_YES))
        detach(counters);
    image_free(&counters->last_image);
    return status;
}

/* Values become NaN: all, or those of tensors that are not among these. */
static void forget(const struct collection *collection, bool all, unsigned tensors)
{
    for (size_t i = 0; i < collection->count; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            if (all || !is_wanted((enum quantity)j, tensors))
                collection->values[i][j] = NAN;
}

/* A quantity that is wanted, and that the chip has, without a value. */
static bool any_missing(const struct counters *counters, const struct collection *collection)
{
    for (size_t i = 0; i < collection->count; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            if (is_wanted((enum quantity)j, collection->tensors) &&
                counters_have(counters, (enum quantity)j) && isnan(collection->values[i][j]))
                return true;
    return false;
}

/* Its tensors become all that were asked for since CUPTI was attached. */
static enum status collect_or_repeat(struct counters *counters, struct collection *collection,
                                     struct outcome *outcome, struct error *error)
{
    const unsigned tensors = collection->tensors;
    if (counters->afresh)
        counters_detach(counters);
    if (tensors != QUANTITY_ACTIVITIES)
        collection->tensors = counters->asked |= tensors;
    forget(collection, true, 0);
    outcome_set(outcome, COUNTED_YES, NULL);
    const bool stayed = suits(counters, collection);
    if (!is_well(set_choose(counters, collection->tensors), "metric set", outcome))
        return STATUS_OK;
    enum status status = collect(counters, collection, outcome, error);
    if (status == STATUS_OK && stayed && any_missing(counters, collection)) {
        /* if it failed, all are */
        detach(counters);
        forget(collection, true, 0);
        outcome_set(outcome, COUNTED_YES, NULL);
        status = collect(counters, collection, outcome, error);
        counters->afresh = status == STATUS_OK && outcome->code == COUNTED_YES;
    }
    forget(collection, outcome->code != COUNTED_YES, tensors);
    return status;
}

enum status counters_collect(struct counters *counters, unsigned tensors,
                             const struct profiled_work *works, size_t count,
                             double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                             struct error *error)
{
    struct collection collection = {
        COUNTERS_BY_RANGE, tensors, count, count, works, NULL, count, values};
    return collect_or_repeat(counters, &collection, outcome, error);
}

enum status counters_collect_launches(struct counters *counters, unsigned tensors,
                                      const struct profiled_work *works, const size_t *launches,
                                      size_t count, size_t room, double (*values)[QUANTITY_COUNT],
                                      struct outcome *outcome, struct error *error)
{
    struct collection collection = {COUNTERS_BY_RANGE, tensors, 0,     room, works,
                                    launches,          count,   values};
    for (size_t i = 0; i < count; ++i)
        collection.count += launches[i];
    return collect_or_repeat(counters, &collection, outcome, error);
}

/* ---- regions of a program ---- */

/* The last run's, which is not to be initialised again. False: there is none. */
static bool image_load(struct counters *counters, const char *path)
{
    const uint64_t most = 1u << 30;
    FILE *file = counters->told.by == COUNTERS_BY_RANGE ? fopen(path, "re") : NULL;
    struct image *image = &counters->image;
    struct passed *passed = &image->passed;
    if (!file)
        return false;
    bool read = fread(passed, sizeof *passed, 1, file) == 1 && passed->bytes < most &&
                (image->data = malloc(passed->bytes)) != NULL &&
                fread(image->data, passed->bytes, 1, file) == 1;
    fclose(file);
    if (!read)
        image_free(image);
    return read;
}

/* The worker takes it for the next run, if this one launched what it should. */
static bool image_save(const struct image *image, const char *image_path)
{
    char path[4200];
    snprintf(path, sizeof path, "%s%s", image_path, COUNTERS_NEXT);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool written = fwrite(&image->passed, sizeof image->passed, 1, file) == 1 &&
                   fwrite(image->data, image->passed.bytes, 1, file) == 1;
    return fclose(file) == 0 && written;
}

static CUptiResult regions_begin(struct counters *counters, struct counters_order *order)
{
    TRY_CUPTI(set_choose(counters, order->tensors));
    if (order->by == COUNTERS_BY_LAUNCH && counters_passes(counters) > order->passes)
        order->by = COUNTERS_BY_RANGE;
    const struct collection collection = {
        .by = order->by,
        .tensors = order->tensors,
        .room = order->by == COUNTERS_BY_RANGE ? 1 : order->room,
    };
    TRY_CUPTI(enable(counters, &collection));
    if (!image_load(counters, order->image)) {
        TRY_CUPTI(image_create(counters));
        counters->image.passed.level = 1;
    }
    TRY_CUPTI(configure(counters));
    return order->by == COUNTERS_BY_REPLAY ? CUPTI_SUCCESS : pass_start(counters);
}

struct counters *counters_start(int device, CUcontext context, struct counters_order *order,
                                struct outcome *refusal)
{
    struct counters *counters = counters_create(context, refusal);
    if (!counters)
        return NULL;
    if (is_well(attach(counters), "cuptiProfilerInitialize", refusal) &&
        describe(counters, device, refusal) &&
        is_well(regions_begin(counters, order), "range profiler", refusal))
        return counters;
    counters_free(counters);
    return NULL;
}

bool counters_region_open(struct counters *counters, struct outcome *refusal)
{
    CUptiResult code = CUPTI_SUCCESS;
    if (counters->told.by == COUNTERS_BY_RANGE)
        code = range_push(counters, "region");
    else if (counters->told.by == COUNTERS_BY_REPLAY)
        code = pass_start(counters);
    return is_well(code, "range profiler", refusal);
}

bool counters_region_close(struct counters *counters, bool *last, struct outcome *refusal)
{
    CUptiResult code = CUPTI_SUCCESS;
    *last = false;
    if (counters->told.by == COUNTERS_BY_RANGE)
        code = range_pop(counters);
    if (code == CUPTI_SUCCESS)
        code = pass_stop(counters, last);
    *last |= counters->told.by == COUNTERS_BY_REPLAY;
    return is_well(code, "range profiler", refusal);
}

bool counters_pass_start(struct counters *counters, struct outcome *refusal)
{
    return is_well(pass_start(counters), "range profiler", refusal);
}

static bool is_decoded(struct counters *counters, struct outcome *refusal)
{
    size_t dropped = 0;
    if (!is_well(decode(counters, &dropped), "range profiler", refusal))
        return false;
    if (dropped > 0)
        outcome_set(refusal, COUNTED_INCOMPLETE, "%zu ranges were dropped by CUPTI", dropped);
    return dropped == 0;
}

bool counters_leave(struct counters *counters, const char *image, struct outcome *refusal)
{
    if (!is_decoded(counters, refusal))
        return false;
    if (image_save(&counters->image, image))
        return true;
    outcome_set(refusal, COUNTED_INCOMPLETE, "%s cannot be written", image);
    return false;
}

bool counters_read(struct counters *counters, size_t count, size_t begun,
                   double (*values)[QUANTITY_COUNT], struct outcome *refusal)
{
    size_t found = 0;
    if (!is_decoded(counters, refusal) ||
        !is_well(ranges_found(counters, &found), "range profiler", refusal))
        return false;
    if (counters->told.by != COUNTERS_BY_RANGE && found != begun) {
        /* nothing else tells which launch a range is of */
        outcome_set(refusal, COUNTED_INCOMPLETE, "%zu ranges of %zu launches", found, begun);
        return false;
    }
    for (size_t i = 0; i < count; ++i)
        if (!is_well(evaluate(counters, found - count + i, values[i]), "range profiler", refusal))
            return false;
    return true;
}

/* Callbacks and the tracer go on: no cuptiFinalize. */
void counters_end(struct counters *counters)
{
    if (counters)
        counters->attached = false;
    counters_close(counters);
}
