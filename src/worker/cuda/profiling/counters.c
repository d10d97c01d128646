/* Hardware counters by CUPTI's range profiler.
 *
 * A collection counts pieces of work: every pass runs all of them, each as a range of its own, and
 * counts some of the metrics. formulas.h turns metrics into quantities. Attaching CUPTI and
 * enabling the range profiler cost far more than counting, so both stay for the next collection, as
 * long as it counts the same tensor quantities and no larger number of ranges. A region of a
 * program is counted instead over several runs of the program, one pass in each: the counter data
 * travel in a file (counters_start and below).
 *
 * Set-up, in this order: attach (cuptiProfilerInitialize), enable, set the configuration, then
 * start, ranges and stop for each pass, then decode. CUPTI keeps the configuration of the first
 * start after enabling, and counts wrong with a later configuration. So a different collection
 * enables the profiler again.
 *
 * Failure: a refusal of CUPTI becomes an outcome with its cause and the way out (table `causes`);
 * values are NaN then, and CUPTI is detached. A failure of the work becomes the status. On a lost
 * device nothing is called any more.
 *
 * Cost: docs/measurements.md, "Cost of attaching CUPTI". */
#include "worker/cuda/profiling/counters.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "worker/cuda/profiling/formulas.h"
#include "worker/cuda/profiling/metric_set.h"

enum { RANGE_NAME = 24 };

/* Fixed while the range profiler is enabled: later changes make calls fail, or counts wrong. */
struct setup {
    enum counters_by by;
    unsigned tensors;
    size_t room; /* largest number of ranges; more room makes attaching and collecting slower */
};

struct collection {
    struct setup setup;
    const struct profiled_work *works;
    size_t works_count;
    const size_t *launches; /* of each work; every launch is a range. NULL: every work is a range */
    size_t count;           /* number of ranges */
    double (*values)[QUANTITY_COUNT];
};

/* Header of the file that travels from run to run of a program. */
struct passed {
    uint64_t bytes; /* bytes of the counter data */
    uint64_t pass;  /* number of the next pass, as CUPTI counts */
    uint64_t level; /* nesting level of the next pass */
};

struct image {
    struct passed passed;
    uint8_t *data;             /* owned: counter data */
    char (*names)[RANGE_NAME]; /* owned: names of `count` ranges */
    size_t count;
};

struct counters {
    CUcontext context;
    char chip[32];
    const struct chip_family *family;
    uint8_t *availability; /* owned */
    /* Opened on demand. sets[QUANTITY_ACTIVITIES] has the activities. sets[TENSORS] has the tensor
     * quantities of the set TENSORS, and all quantities that are neither tensor nor activity. */
    struct metric_set sets[QUANTITY_ACTIVITIES + 1];
    const struct metric_set *set;         /* metrics of the image */
    bool attached;                        /* CUPTI is in the process */
    CUpti_RangeProfiler_Object *profiler; /* NULL: not enabled */
    struct setup setup;                   /* set-up of the enabled profiler */
    /* The last image stays until CUPTI has another one: how long CUPTI uses it is undocumented. */
    struct image image, last_image;
    CUpti_SubscriberHandle subscriber;
    bool watching; /* the subscriber reports unloaded modules and launches */
    bool unloaded; /* atomic: a module was unloaded since watching began */
    /* members for counting pieces of work */
    unsigned tensors;   /* all tensor quantities requested since CUPTI was attached */
    bool reattach;      /* for each collection, because values were missing while CUPTI stayed */
    bool by_launch;     /* each launch is now a range */
    size_t launched;    /* kernels launched in this pass */
    CUptiResult ranged; /* first failure of a launch's range */
};

/* ---- calls of CUPTI ---- */

/* CUPTI takes parameters as structs that contain their own size. */
#define PARAMETERS(name, type) type##_Params name = {.structSize = type##_Params_STRUCT_SIZE}
/* Calls a function of the enabled range profiler that has no results. */
#define RANGE(call, ...)                                                                           \
    cuptiRangeProfiler##call(&(CUpti_RangeProfiler_##call##_Params){                               \
        .structSize = CUpti_RangeProfiler_##call##_Params_STRUCT_SIZE,                             \
        .pRangeProfilerObject = counters->profiler,                                                \
        __VA_ARGS__})

/* Returns a failure from the calling function. */
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
enum { CAUSES = sizeof causes / sizeof *causes };

/* Returns whether the call succeeded. Otherwise *refusal is COUNTED_REFUSED, with cause and way
 * out. For codes without a row in `causes`, the reason is the names of call and code. */
static bool is_well(CUptiResult code, const char *call, struct outcome *refusal)
{
    const char *name = "unknown CUPTI error";
    size_t i = 0;
    if (code == CUPTI_SUCCESS)
        return true;
    cuptiGetResultString(code, &name);
    while (i < CAUSES && causes[i].code != code)
        ++i;
    if (i < CAUSES)
        outcome_set(refusal, COUNTED_REFUSED, "%s (%s); %s", causes[i].what, name,
                    causes[i].advice);
    else
        outcome_set(refusal, COUNTED_REFUSED, "%s: %s", call, name);
    return false;
}

/* ---- calls of the driver ----
 *
 * To count vector FLOPs CUPTI adds instructions to each kernel at its first launch. CUPTI knows the
 * kernel by an address, and does not notice when the kernel's module is unloaded. If another kernel
 * is later loaded to the address, its FLOPs are wrong, or its launch kills the process. So CUPTI is
 * attached again after a module was unloaded. cuDNN unloads one with each plan that it compiled.
 *
 * CUPTI can make a range of each launch by itself, but would also make ranges of the launches that
 * prepare a work, and a range costs 1 ms in each pass. */

/* Makes the launch a range, named by its number, unless there are more launches than expected. */
static void launch_range(struct counters *counters, CUpti_ApiCallbackSite site)
{
    const bool named = counters->launched < counters->image.count;
    char *name = counters->image.names[named ? counters->launched : 0];
    if (named && counters->ranged == CUPTI_SUCCESS) {
        snprintf(name, RANGE_NAME, "%zu", counters->launched);
        counters->ranged =
            site == CUPTI_API_ENTER ? RANGE(PushRange, .pRangeName = name) : RANGE(PopRange, );
    }
    counters->launched += site == CUPTI_API_EXIT;
}

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const void *data)
{
    struct counters *counters = user;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        __atomic_store_n(&counters->unloaded, true, __ATOMIC_SEQ_CST);
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && counters->by_launch)
        launch_range(counters, ((const CUpti_CallbackData *)data)->callbackSite);
}

static bool saw_unload(const struct counters *counters)
{
    return __atomic_load_n(&counters->unloaded, __ATOMIC_SEQ_CST);
}

/* Watches nothing if another tool is CUPTI's one subscriber. */
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

/* ---- attaching ---- */

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

static CUptiResult attach(struct counters *counters)
{
    PARAMETERS(initialize, CUpti_Profiler_Initialize);
    if (counters->attached)
        return CUPTI_SUCCESS;
    counters->attached = true;
    /* Without this call cuptiProfilerInitialize fails after a cuptiFinalize. */
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
    if (counters->profiler) {
        RANGE(Disable, );
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
    counters->tensors = 0;
    detach(counters);
}

bool counters_are_attached(const struct counters *counters)
{
    return counters && counters->attached;
}

/* ---- the device ---- */

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
    get.pCounterAvailabilityImage = counters->availability =
        malloc(get.counterAvailabilityImageSize);
    return counters->availability ? cuptiProfilerGetCounterAvailability(&get)
                                  : CUPTI_ERROR_OUT_OF_MEMORY;
}

static bool describe(struct counters *counters, int device, struct outcome *refusal)
{
    PARAMETERS(name, CUpti_Device_GetChipName);
    name.deviceIndex = (size_t)device;
    if (!is_well(cuptiDeviceGetChipName(&name), "cuptiDeviceGetChipName", refusal) ||
        !is_well(read_availability(counters), "cuptiProfilerGetCounterAvailability", refusal))
        return false;
    snprintf(counters->chip, sizeof counters->chip, "%s", name.pChipName);
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

static CUptiResult enable(struct counters *counters, const struct setup *setup)
{
    PARAMETERS(enable, CUpti_RangeProfiler_Enable);
    enable.ctx = counters->context;
    TRY_CUPTI(cuptiRangeProfilerEnable(&enable));
    counters->profiler = enable.pRangeProfilerObject;
    counters->setup = *setup;
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
    size.maxNumOfRanges = counters->setup.room;
    size.maxNumRangeTreeNodes = (uint32_t)counters->setup.room;
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

static CUptiResult configure(const struct counters *counters)
{
    const struct setup *setup = &counters->setup;
    const struct image *image = &counters->image;
    return RANGE(
        SetConfig, .pConfig = counters->set->config, .configSize = counters->set->config_size,
        .pCounterDataImage = image->data, .counterDataImageSize = image->passed.bytes,
        .range = setup->by == COUNTERS_BY_RANGE ? CUPTI_UserRange : CUPTI_AutoRange,
        .replayMode = setup->by == COUNTERS_BY_REPLAY ? CUPTI_KernelReplay : CUPTI_UserReplay,
        .maxRangesPerPass = setup->room, .numNestingLevels = 1, .minNestingLevel = 1,
        .passIndex = image->passed.pass, .targetNestingLevel = (uint16_t)image->passed.level);
}

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

/* *dropped: number of ranges that CUPTI reports as lost. *found: number of ranges in the image,
 * known after the last pass; NULL: not wanted. */
static CUptiResult decode(struct counters *counters, size_t *dropped, size_t *found)
{
    PARAMETERS(data, CUpti_RangeProfiler_DecodeData);
    PARAMETERS(info, CUpti_RangeProfiler_GetCounterDataInfo);
    data.pRangeProfilerObject = counters->profiler;
    TRY_CUPTI(cuptiRangeProfilerDecodeData(&data));
    *dropped = data.numOfRangeDropped;
    if (!found)
        return CUPTI_SUCCESS;
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

/* The enabled profiler can count only while all code that it counted before is still loaded. */
static bool suits(const struct counters *counters, const struct setup *setup)
{
    return counters->profiler && counters->watching && !saw_unload(counters) &&
           counters->setup.by == setup->by && counters->setup.tensors == setup->tensors &&
           counters->setup.room >= setup->room;
}

/* Detaches CUPTI before enabling the range profiler again; otherwise device times change. */
static CUptiResult collection_begin(struct counters *counters, const struct collection *collection)
{
    if (!suits(counters, &collection->setup)) {
        if (counters->profiler)
            detach(counters);
        TRY_CUPTI(attach(counters));
        TRY_CUPTI(enable(counters, &collection->setup));
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

/* The name of a work's range is the number of the work. */
static enum status work_run(struct counters *counters, const struct collection *collection,
                            size_t number, CUptiResult *code, struct error *error)
{
    const struct profiled_work *work = &collection->works[number];
    TRY(work->prepare(work->argument, error));
    if (collection->launches) {
        counters->by_launch = true;
        enum status status = work->run(work->argument, error);
        counters->by_launch = false;
        *code = counters->ranged;
        return status;
    }
    char *name = counters->image.names[number];
    snprintf(name, RANGE_NAME, "%zu", number);
    *code = RANGE(PushRange, .pRangeName = name);
    if (*code != CUPTI_SUCCESS)
        return STATUS_OK;
    enum status status = work->run(work->argument, error);
    *code = RANGE(PopRange, );
    return status;
}

/* Prepares works after the start of the pass, which leaves CUPTI's own data in L2. */
static enum status pass_run(struct counters *counters, const struct collection *collection,
                            CUptiResult *code, bool *complete, struct error *error)
{
    enum status status = STATUS_OK;
    *code = RANGE(Start, );
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

/* The name of a range is the index of its values. *outcome says what is missing. */
static CUptiResult values_read(struct counters *counters, const struct collection *collection,
                               struct outcome *outcome)
{
    PARAMETERS(range, CUpti_RangeProfiler_CounterData_GetRangeInfo);
    size_t dropped, found;
    TRY_CUPTI(decode(counters, &dropped, &found));
    if (collection->launches && counters->launched != collection->count)
        outcome_set(outcome, COUNTED_INCOMPLETE, "%zu launches where %zu were traced",
                    counters->launched, collection->count);
    else if (dropped > 0 || found != collection->count)
        outcome_set(outcome, COUNTED_INCOMPLETE, "%zu ranges dropped, %zu kept for %zu", dropped,
                    found, collection->count);
    range.pCounterDataImage = counters->image.data;
    range.counterDataImageSize = counters->image.passed.bytes;
    range.rangeDelimiter = "/";
    for (size_t i = 0; i < collection->count && outcome->code == COUNTED_YES; ++i) {
        size_t number = i;
        if (collection->count > 1) {
            range.rangeIndex = i;
            TRY_CUPTI(cuptiRangeProfilerCounterDataGetRangeInfo(&range));
            char *end = NULL;
            number = range.rangeName ? strtoul(range.rangeName, &end, 10) : 0;
            if (!end || end == range.rangeName || *end != '\0')
                number = SIZE_MAX;
        }
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
    /* A failure may have left a pass open, so the next collection attaches CUPTI again. */
    if (status != STATUS_DEVICE && (status || outcome->code != COUNTED_YES))
        detach(counters);
    image_free(&counters->last_image);
    return status;
}

/* Sets values to NaN: all, or those of quantities that is_wanted rejects. */
static void forget(const struct collection *collection, bool all, unsigned tensors)
{
    for (size_t i = 0; i < collection->count; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            if (all || !is_wanted((enum quantity)j, tensors))
                collection->values[i][j] = NAN;
}

/* Returns whether a requested quantity that the chip can count has no value. */
static bool any_missing(const struct counters *counters, const struct collection *collection)
{
    for (size_t i = 0; i < collection->count; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            if (is_wanted((enum quantity)j, collection->setup.tensors) &&
                counters_have(counters, (enum quantity)j) && isnan(collection->values[i][j]))
                return true;
    return false;
}

enum status counters_collect(struct counters *counters, unsigned tensors,
                             const struct profiled_work *works, size_t count,
                             const size_t *launches, size_t room, double (*values)[QUANTITY_COUNT],
                             struct outcome *outcome, struct error *error)
{
    if (counters->reattach)
        counters_detach(counters);
    if (tensors != QUANTITY_ACTIVITIES)
        counters->tensors |= tensors;
    struct collection collection = {{COUNTERS_BY_RANGE,
                                     tensors == QUANTITY_ACTIVITIES ? tensors : counters->tensors,
                                     launches || room > count ? room : count},
                                    works,
                                    count,
                                    launches,
                                    launches ? 0 : count,
                                    values};
    for (size_t i = 0; launches && i < count; ++i)
        collection.count += launches[i];
    forget(&collection, true, 0);
    outcome_set(outcome, COUNTED_YES, NULL);
    const bool stayed = suits(counters, &collection.setup);
    if (!is_well(set_choose(counters, collection.setup.tensors), "metric set", outcome))
        return STATUS_OK;
    enum status status = collect(counters, &collection, outcome, error);
    if (status == STATUS_OK && stayed && any_missing(counters, &collection)) {
        detach(counters);
        forget(&collection, true, 0);
        outcome_set(outcome, COUNTED_YES, NULL);
        status = collect(counters, &collection, outcome, error);
        counters->reattach = status == STATUS_OK && outcome->code == COUNTED_YES;
    }
    forget(&collection, outcome->code != COUNTED_YES, tensors);
    return status;
}

/* ---- regions of a program ---- */

/* Loads the image of the last run; false: there is none. */
static bool image_load(struct counters *counters, const char *path)
{
    const uint64_t most = 1u << 30;
    FILE *file = counters->setup.by == COUNTERS_BY_RANGE ? fopen(path, "re") : NULL;
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

/* The worker renames the new file for the next run if this run launched the expected kernels. */
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
    const struct setup setup = {order->by, order->tensors,
                                order->by == COUNTERS_BY_RANGE ? 1 : order->room};
    TRY_CUPTI(enable(counters, &setup));
    if (!image_load(counters, order->image)) {
        TRY_CUPTI(image_create(counters));
        counters->image.passed.level = 1;
    }
    TRY_CUPTI(configure(counters));
    return order->by == COUNTERS_BY_REPLAY ? CUPTI_SUCCESS : RANGE(Start, );
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
    if (counters->setup.by == COUNTERS_BY_RANGE)
        code = RANGE(PushRange, .pRangeName = "region");
    else if (counters->setup.by == COUNTERS_BY_REPLAY)
        code = RANGE(Start, );
    return is_well(code, "range profiler", refusal);
}

bool counters_region_close(struct counters *counters, bool *last, struct outcome *refusal)
{
    CUptiResult code = CUPTI_SUCCESS;
    *last = false;
    if (counters->setup.by == COUNTERS_BY_RANGE)
        code = RANGE(PopRange, );
    if (code == CUPTI_SUCCESS)
        code = pass_stop(counters, last);
    *last |= counters->setup.by == COUNTERS_BY_REPLAY;
    return is_well(code, "range profiler", refusal);
}

bool counters_pass_start(struct counters *counters, struct outcome *refusal)
{
    return is_well(RANGE(Start, ), "range profiler", refusal);
}

static bool is_decoded(struct counters *counters, size_t *found, struct outcome *refusal)
{
    size_t dropped = 0;
    if (!is_well(decode(counters, &dropped, found), "range profiler", refusal))
        return false;
    if (dropped > 0)
        outcome_set(refusal, COUNTED_INCOMPLETE, "%zu ranges were dropped by CUPTI", dropped);
    return dropped == 0;
}

bool counters_leave(struct counters *counters, const char *image, struct outcome *refusal)
{
    if (!is_decoded(counters, NULL, refusal))
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
    if (!is_decoded(counters, &found, refusal))
        return false;
    if (counters->setup.by != COUNTERS_BY_RANGE && found != begun) {
        /* the order alone assigns ranges to launches */
        outcome_set(refusal, COUNTED_INCOMPLETE, "%zu ranges of %zu launches", found, begun);
        return false;
    }
    for (size_t i = 0; i < count; ++i)
        if (!is_well(evaluate(counters, found - count + i, values[i]), "range profiler", refusal))
            return false;
    return true;
}

/* Does not call cuptiFinalize, because callbacks and the tracer stay in use. */
void counters_end(struct counters *counters)
{
    if (counters)
        counters->attached = false;
    counters_close(counters);
}
