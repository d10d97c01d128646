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

#include "worker/cuda/profiling/attachment.h"
#include "worker/cuda/profiling/metric_set.h"

/* What is collected together: everything but tensor units, and a set of theirs. */
struct collection {
    bool wanted[QUANTITY_COUNT];
    const char *metrics[METRICS_MAX];
    struct metric_set *set; /* owned; NULL: not yet made */
};

enum {
    RANGE_NAME = 24,
    RANGES_LEAST = 64 /* that there is room for: more than most collections have */
};

/* It is enabled only while CUPTI is attached to the process. */
struct profiler {
    bool attached;
    CUpti_RangeProfiler_Object *object; /* NULL: not enabled */
    /* What it was told first, which stays. Of another kind of range PushRange fails; another
     * configuration is taken without a word, and then it counts wrong. */
    bool by_launch;
    unsigned tensors;
    size_t room; /* ranges */
    bool stand_by;
    /* Owned: of the last collection. Nothing says that CUPTI does not hold on to them until it is
     * told of others. */
    uint8_t *image;
    char (*names)[RANGE_NAME];
};

struct counters {
    CUcontext context;
    struct profiler profiler;
    char chip[32];
    const struct metric_family *family;
    uint8_t *availability; /* owned */
    struct collection collections[QUANTITY_TENSOR_SETS];
    unsigned asked; /* tensors, since it stands by */
    int passes;
};

/* One collection. */
struct session {
    bool by_launch; /* a range of its own for each kernel; otherwise for each piece of work */
    unsigned tensors;
    size_t count; /* of what there are values of: the last ranges, or all */
    size_t room;  /* for more ranges than there may be */
    CUpti_RangeProfiler_Object *profiler;
    uint8_t *image; /* owned: counter data */
    size_t image_size;
    char (*names)[RANGE_NAME]; /* owned: of the ranges */
};

#define PARAMETERS(name, type) type##_Params name = {.structSize = type##_Params_STRUCT_SIZE}
#define TRY_CUPTI(call)                                                                            \
    do {                                                                                           \
        CUptiResult try_result = (call);                                                           \
        if (try_result != CUPTI_SUCCESS)                                                           \
            return try_result;                                                                     \
    } while (0)

/* ---- refusals ---- */

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

static void refuse(CUptiResult code, const char *call, char text[COUNTERS_TEXT])
{
    const char *name = "unknown CUPTI error";
    cuptiGetResultString(code, &name);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; ++i)
        if (causes[i].code == code) {
            snprintf(text, COUNTERS_TEXT, "refused: %s (%s); %s", causes[i].what, name,
                     causes[i].advice);
            return;
        }
    snprintf(text, COUNTERS_TEXT, "refused: %s: %s", call, name);
}

/* ---- the profiler ---- */

static CUptiResult profiler_attach(struct profiler *profiler)
{
    CUptiResult code = profiler->attached ? CUPTI_SUCCESS : attachment_begin();
    profiler->attached = code == CUPTI_SUCCESS;
    if (!profiler->attached)
        attachment_end();
    return code;
}

static void profiler_disable(struct profiler *profiler)
{
    if (!profiler->object)
        return;
    PARAMETERS(disable, CUpti_RangeProfiler_Disable);
    disable.pRangeProfilerObject = profiler->object;
    cuptiRangeProfilerDisable(&disable);
    profiler->object = NULL;
    free(profiler->names);
    free(profiler->image);
    profiler->names = NULL;
    profiler->image = NULL;
}

static void profiler_detach(struct profiler *profiler)
{
    profiler_disable(profiler);
    if (profiler->attached)
        attachment_end();
    profiler->attached = false;
}

static bool profiler_suits(const struct profiler *profiler, const struct session *session)
{
    return profiler->object && profiler->by_launch == session->by_launch &&
           profiler->tensors == session->tensors && profiler->room >= session->room;
}

/* It leaves the process before it is enabled anew: only of the first time in an attachment is it known
 * that it then leaves device times alone. */
static CUptiResult profiler_enable(struct profiler *profiler, CUcontext context,
                                   const struct session *session)
{
    PARAMETERS(enable, CUpti_RangeProfiler_Enable);
    enable.ctx = context;
    if (profiler_suits(profiler, session))
        return CUPTI_SUCCESS;
    if (profiler->object)
        profiler_detach(profiler);
    TRY_CUPTI(profiler_attach(profiler));
    TRY_CUPTI(cuptiRangeProfilerEnable(&enable));
    profiler->object = enable.pRangeProfilerObject;
    profiler->by_launch = session->by_launch;
    profiler->tensors = session->tensors;
    profiler->room = session->room > RANGES_LEAST ? session->room : RANGES_LEAST;
    return CUPTI_SUCCESS;
}

void counters_stand_by(struct counters *counters, bool stand_by)
{
    counters->profiler.stand_by = stand_by;
    counters->asked = 0;
    if (!stand_by)
        profiler_detach(&counters->profiler);
}

bool counters_attached(const struct counters *counters)
{
    return counters && counters->profiler.attached;
}

unsigned counters_asked(const struct counters *counters)
{
    return counters->asked;
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

static CUptiResult read_chip(int device, char chip[32])
{
    PARAMETERS(name, CUpti_Device_GetChipName);
    name.deviceIndex = (size_t)device;
    TRY_CUPTI(cuptiDeviceGetChipName(&name));
    snprintf(chip, 32, "%s", name.pChipName);
    return CUPTI_SUCCESS;
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

/* Sets *call to what failed. */
static CUptiResult describe(struct counters *counters, int device, const char **call)
{
    *call = "cuptiProfilerInitialize";
    TRY_CUPTI(profiler_attach(&counters->profiler));
    *call = "cuptiProfilerDeviceSupported";
    TRY_CUPTI(check_support(device));
    *call = "cuptiDeviceGetChipName";
    TRY_CUPTI(read_chip(device, counters->chip));
    *call = "cuptiProfilerGetCounterAvailability";
    return read_availability(counters);
}

struct counters *counters_open(int device, CUcontext context, char refusal[COUNTERS_TEXT])
{
    const char *call;
    struct counters *counters = calloc(1, sizeof *counters);
    if (!counters) {
        snprintf(refusal, COUNTERS_TEXT, "refused: no memory");
        return NULL;
    }
    counters->context = context;
    counters->profiler.stand_by = true;
    CUptiResult code = describe(counters, device, &call);
    if (code == CUPTI_SUCCESS) {
        counters->family = metric_family_find(counters->chip);
        if (counters->family)
            return counters;
        snprintf(refusal, COUNTERS_TEXT,
                 "refused: no metric table for the chip %s; a newer roofsweep "
                 "may have one",
                 counters->chip);
    } else {
        refuse(code, call, refusal);
    }
    counters_close(counters);
    return NULL;
}

void counters_close(struct counters *counters)
{
    if (!counters)
        return;
    profiler_detach(&counters->profiler);
    for (int i = 0; i < QUANTITY_TENSOR_SETS; ++i)
        metric_set_destroy(counters->collections[i].set);
    free(counters->availability);
    free(counters);
}

bool counters_have(const struct counters *counters, enum quantity quantity)
{
    return metric_family_has(counters->family, quantity);
}

int counters_passes(const struct counters *counters)
{
    return counters->passes;
}

static CUptiResult collection_get(struct counters *counters, unsigned tensors,
                                  struct collection **collection)
{
    struct collection *c = *collection = &counters->collections[tensors];
    if (c->set)
        return CUPTI_SUCCESS;
    for (int i = 0; i < QUANTITY_COUNT; ++i) {
        unsigned tensor = quantity_tensor((enum quantity)i);
        c->wanted[i] = !tensor || tensor & tensors;
    }
    size_t count = metrics_list(counters->family, c->wanted, c->metrics);
    return metric_set_create(counters->chip, counters->availability, c->metrics, count, &c->set);
}

/* ---- one collection ---- */

static CUptiResult session_image(struct session *session, size_t room, const struct metric_set *set)
{
    PARAMETERS(size, CUpti_RangeProfiler_GetCounterDataSize);
    size.pRangeProfilerObject = session->profiler;
    size.pMetricNames = (const char **)metric_set_metrics(set, &size.numMetrics);
    size.maxNumOfRanges = room;
    size.maxNumRangeTreeNodes = (uint32_t)room;
    TRY_CUPTI(cuptiRangeProfilerGetCounterDataSize(&size));
    session->image_size = size.counterDataSize;
    session->image = malloc(session->image_size);
    if (!session->image)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    PARAMETERS(image, CUpti_RangeProfiler_CounterDataImage_Initialize);
    image.pRangeProfilerObject = session->profiler;
    image.counterDataSize = session->image_size;
    image.pCounterData = session->image;
    return cuptiRangeProfilerCounterDataImageInitialize(&image);
}

static CUptiResult session_begin(struct session *session, struct counters *counters,
                                 const struct metric_set *set)
{
    TRY_CUPTI(profiler_enable(&counters->profiler, counters->context, session));
    session->profiler = counters->profiler.object;
    session->names = calloc(session->count, sizeof *session->names);
    if (!session->names)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    TRY_CUPTI(session_image(session, counters->profiler.room, set));
    PARAMETERS(config, CUpti_RangeProfiler_SetConfig);
    config.pRangeProfilerObject = session->profiler;
    config.pConfig = metric_set_config(set, &config.configSize);
    config.pCounterDataImage = session->image;
    config.counterDataImageSize = session->image_size;
    config.range = session->by_launch ? CUPTI_AutoRange : CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = counters->profiler.room;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    return cuptiRangeProfilerSetConfig(&config);
}

/* What went wrong may have left a pass open: the next collection begins afresh. */
static void session_end(struct session *session, struct counters *counters, bool well)
{
    struct profiler *profiler = &counters->profiler;
    struct profiler last = *profiler;
    profiler->image = session->image;
    profiler->names = session->names;
    if (!well || !profiler->stand_by)
        profiler_detach(profiler);
    free(last.names);
    free(last.image);
}

static CUptiResult pass_begin(struct session *session)
{
    PARAMETERS(start, CUpti_RangeProfiler_Start);
    start.pRangeProfilerObject = session->profiler;
    return cuptiRangeProfilerStart(&start);
}

static CUptiResult pass_end(struct session *session, bool *last)
{
    PARAMETERS(stop, CUpti_RangeProfiler_Stop);
    stop.pRangeProfilerObject = session->profiler;
    TRY_CUPTI(cuptiRangeProfilerStop(&stop));
    *last = stop.isAllPassSubmitted;
    return CUPTI_SUCCESS;
}

/* The name is the number: what comes back is known by it. */
static CUptiResult range_begin(struct session *session, size_t number)
{
    if (session->by_launch)
        return CUPTI_SUCCESS;
    PARAMETERS(push, CUpti_RangeProfiler_PushRange);
    snprintf(session->names[number], sizeof *session->names, "%zu", number);
    push.pRangeProfilerObject = session->profiler;
    push.pRangeName = session->names[number];
    return cuptiRangeProfilerPushRange(&push);
}

static CUptiResult range_end(struct session *session)
{
    PARAMETERS(pop, CUpti_RangeProfiler_PopRange);
    pop.pRangeProfilerObject = session->profiler;
    return session->by_launch ? CUPTI_SUCCESS : cuptiRangeProfilerPopRange(&pop);
}

static enum status range_run(struct session *session, const struct counters_work *work,
                             size_t number, CUptiResult *code, struct error *error)
{
    *code = range_begin(session, number);
    if (*code != CUPTI_SUCCESS)
        return STATUS_OK;
    enum status status = work->run(work->argument, error);
    *code = range_end(session);
    return status;
}

/* Each piece of work once. Beginning a pass leaves L2 full of what CUPTI wrote: so all is prepared
 * after it. */
static enum status pass(struct counters *counters, struct session *session,
                        const struct counters_work *works, size_t count, CUptiResult *code,
                        bool *complete, struct error *error)
{
    enum status status = STATUS_OK;
    *code = pass_begin(session);
    if (*code != CUPTI_SUCCESS)
        return STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK && *code == CUPTI_SUCCESS; ++i) {
        status = works[i].prepare(works[i].argument, error);
        if (status == STATUS_OK)
            status = range_run(session, &works[i], i, code, error);
    }
    ++counters->passes;
    CUptiResult end = pass_end(session, complete);
    if (*code == CUPTI_SUCCESS)
        *code = end;
    return status;
}

/* Until all passes are submitted. */
static enum status repeat(struct counters *counters, struct session *session, size_t passes,
                          const struct counters_work *works, size_t count, CUptiResult *code,
                          bool *complete, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < passes; ++i) {
        status = pass(counters, session, works, count, code, complete, error);
        if (status || *code != CUPTI_SUCCESS || *complete)
            break;
    }
    return status;
}

static void evaluate(const struct counters *counters, const struct metric_set *set,
                     const double metrics[METRICS_MAX], double values[QUANTITY_COUNT])
{
    size_t count;
    const char *const *names = metric_set_metrics(set, &count);
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        values[i] = metrics_evaluate(counters->family, (enum quantity)i, names, metrics, count);
}

/* Which of the values the i-th range of the image is, of `ranges`. SIZE_MAX: none. */
static CUptiResult range_number(const struct session *session, size_t i, size_t ranges,
                                size_t *number)
{
    *number = i + session->count - ranges;
    if (session->by_launch || session->count == 1)
        return CUPTI_SUCCESS;
    PARAMETERS(range, CUpti_RangeProfiler_CounterData_GetRangeInfo);
    range.pCounterDataImage = session->image;
    range.counterDataImageSize = session->image_size;
    range.rangeIndex = i;
    range.rangeDelimiter = "/";
    TRY_CUPTI(cuptiRangeProfilerCounterDataGetRangeInfo(&range));
    char *end = NULL;
    unsigned long value = range.rangeName ? strtoul(range.rangeName, &end, 10) : 0;
    *number = end && end != range.rangeName && *end == '\0' ? value : SIZE_MAX;
    return CUPTI_SUCCESS;
}

/* Kernels that prepared come first, and CUPTI does not say of all ranges that they were dropped for
 * lack of room. */
static bool ranges_complete(const struct counters *counters, const struct session *session,
                            size_t ranges)
{
    if (session->by_launch)
        return ranges >= session->count && ranges < counters->profiler.room;
    return ranges == session->count;
}

static CUptiResult decode_values(const struct counters *counters, const struct session *session,
                                 struct metric_set *set, size_t ranges,
                                 double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT])
{
    for (size_t i = ranges - session->count; i < ranges; ++i) {
        double metrics[METRICS_MAX];
        size_t number;
        TRY_CUPTI(range_number(session, i, ranges, &number));
        if (number >= session->count) {
            snprintf(problem, COUNTERS_TEXT, "incomplete: range %zu is unknown", i);
            return CUPTI_SUCCESS;
        }
        TRY_CUPTI(metric_set_evaluate(set, session->image, session->image_size, i, metrics));
        evaluate(counters, set, metrics, values[number]);
    }
    return CUPTI_SUCCESS;
}

/* Says in `problem` what is missing, if anything. */
static CUptiResult decode(const struct counters *counters, struct session *session,
                          struct metric_set *set, double (*values)[QUANTITY_COUNT],
                          char problem[COUNTERS_TEXT])
{
    PARAMETERS(data, CUpti_RangeProfiler_DecodeData);
    data.pRangeProfilerObject = session->profiler;
    TRY_CUPTI(cuptiRangeProfilerDecodeData(&data));
    PARAMETERS(info, CUpti_RangeProfiler_GetCounterDataInfo);
    info.pCounterDataImage = session->image;
    info.counterDataImageSize = session->image_size;
    TRY_CUPTI(cuptiRangeProfilerGetCounterDataInfo(&info));
    if (data.numOfRangeDropped == 0 && ranges_complete(counters, session, info.numTotalRanges))
        return decode_values(counters, session, set, info.numTotalRanges, values, problem);
    snprintf(problem, COUNTERS_TEXT, "incomplete: %zu ranges dropped, %zu kept for %zu",
             data.numOfRangeDropped, info.numTotalRanges, session->count);
    return CUPTI_SUCCESS;
}

static enum status collect(struct counters *counters, struct session *session,
                           struct metric_set *set, const struct counters_work *works, size_t count,
                           double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                           struct error *error)
{
    bool complete = false;
    enum status status = STATUS_OK;
    counters->passes = 0;
    CUptiResult code = session_begin(session, counters, set);
    if (code == CUPTI_SUCCESS)
        status = repeat(counters, session, metric_set_passes(set), works, count, &code, &complete,
                        error);
    if (code != CUPTI_SUCCESS) {
        refuse(code, "range profiler", problem);
    } else if (status == STATUS_OK && !complete) {
        snprintf(problem, COUNTERS_TEXT, "incomplete: %zu passes were not enough",
                 metric_set_passes(set));
    } else if (status == STATUS_OK) {
        code = decode(counters, session, set, values, problem);
        if (code != CUPTI_SUCCESS)
            refuse(code, "counter data", problem);
    }
    if (status != STATUS_DEVICE)
        session_end(session, counters, status == STATUS_OK && strcmp(problem, "counted") == 0);
    return status;
}

static void forget(double (*values)[QUANTITY_COUNT], size_t ranges)
{
    for (size_t i = 0; i < ranges; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            values[i][j] = NAN;
}

/* A quantity that is wanted, and that the chip has, without a value. */
static bool any_missing(const struct counters *counters, const struct collection *collection,
                        double (*values)[QUANTITY_COUNT], size_t ranges)
{
    for (size_t i = 0; i < ranges; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            if (collection->wanted[j] && counters_have(counters, (enum quantity)j) &&
                isnan(values[i][j]))
                return true;
    return false;
}

static enum status collect_ranges(struct counters *counters, const struct session *described,
                                  const struct counters_work *works, size_t count,
                                  double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                                  struct error *error)
{
    struct session session = *described;
    struct collection *collection;
    const bool stood_by = profiler_suits(&counters->profiler, &session);
    CUptiResult code = collection_get(counters, session.tensors, &collection);
    if (code != CUPTI_SUCCESS) {
        refuse(code, "metric set", problem);
        return STATUS_OK;
    }
    enum status status =
        collect(counters, &session, collection->set, works, count, values, problem, error);
    if (status == STATUS_OK && stood_by &&
        any_missing(counters, collection, values, session.count)) { /* all are, where it failed */
        profiler_detach(&counters->profiler);
        forget(values, session.count);
        session = *described;
        snprintf(problem, COUNTERS_TEXT, "counted");
        status = collect(counters, &session, collection->set, works, count, values, problem, error);
        if (status == STATUS_OK && strcmp(problem, "counted") == 0)
            counters_stand_by(counters, false);
    }
    return status;
}

/* What was counted because others had asked for it. */
static void forget_unasked(double (*values)[QUANTITY_COUNT], size_t ranges, unsigned tensors)
{
    for (size_t i = 0; i < ranges; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            if (quantity_tensor((enum quantity)j) & ~tensors)
                values[i][j] = NAN;
}

static enum status collect_kind(struct counters *counters, struct session session,
                                const struct counters_work *works, size_t count,
                                double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                                struct error *error)
{
    const unsigned tensors = session.tensors;
    if (counters->profiler.stand_by)
        session.tensors = counters->asked |= tensors;
    forget(values, session.count);
    snprintf(problem, COUNTERS_TEXT, "counted");
    enum status status = collect_ranges(counters, &session, works, count, values, problem, error);
    if (strcmp(problem, "counted") == 0)
        forget_unasked(values, session.count, tensors);
    else
        forget(values, session.count);
    return status;
}

enum status counters_collect(struct counters *counters, unsigned tensors,
                             const struct counters_work *work, double values[QUANTITY_COUNT],
                             char problem[COUNTERS_TEXT], struct error *error)
{
    return counters_collect_each(counters, tensors, work, 1, (double(*)[QUANTITY_COUNT])values,
                                 problem, error);
}

enum status counters_collect_each(struct counters *counters, unsigned tensors,
                                  const struct counters_work *works, size_t count,
                                  double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                                  struct error *error)
{
    const struct session session = {.tensors = tensors, .count = count, .room = count};
    return collect_kind(counters, session, works, count, values, problem, error);
}

enum status counters_collect_launches(struct counters *counters, unsigned tensors,
                                      const struct counters_work *work, size_t launches,
                                      double (*values)[QUANTITY_COUNT], char problem[COUNTERS_TEXT],
                                      struct error *error)
{
    const size_t preparing = 7; /* times what is counted: twice another pass, and itself */
    const struct session session = {.by_launch = true,
                                    .tensors = tensors,
                                    .count = launches,
                                    .room = RANGES_LEAST + (1 + preparing) * launches};
    return collect_kind(counters, session, work, 1, values, problem, error);
}
