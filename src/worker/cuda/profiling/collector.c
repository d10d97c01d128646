#include "worker/cuda/profiling/collector.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "worker/cuda/profiling/cupti_call.h"
#include "worker/cuda/profiling/formulas.h"
#include "worker/cuda/profiling/metric_set.h"
#include "worker/cuda/profiling/range_profiler.h"
#include "worker/cuda/profiling/refusal.h"

/* What is collected together: everything but tensor units, and a set of theirs. */
struct collection {
    bool wanted[QUANTITY_COUNT];
    const char *metrics[FORMULAS_METRICS_MAX];
    struct metric_set *set; /* owned; NULL: not yet made */
};

struct collector {
    CUcontext context;
    struct range_profiler profiler;
    char chip[32];
    const struct chip_family *family;
    uint8_t *availability; /* owned */
    struct collection collections[QUANTITY_TENSOR_SETS];
    unsigned asked; /* tensors, since CUPTI was attached */
    bool afresh;    /* it counts only once an attachment */
    int passes;
};

/* ---- what is attached ---- */

void collector_detach(struct collector *collector)
{
    collector->asked = 0;
    range_profiler_detach(&collector->profiler);
}

bool collector_is_attached(const struct collector *collector)
{
    return collector && collector->profiler.attached;
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

static CUptiResult read_availability(struct collector *collector)
{
    PARAMETERS(get, CUpti_Profiler_GetCounterAvailability);
    get.ctx = collector->context;
    TRY_CUPTI(cuptiProfilerGetCounterAvailability(&get));
    collector->availability = malloc(get.counterAvailabilityImageSize);
    if (!collector->availability)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    get.pCounterAvailabilityImage = collector->availability;
    return cuptiProfilerGetCounterAvailability(&get);
}

/* Sets *call to what failed. */
static CUptiResult describe(struct collector *collector, int device, const char **call)
{
    *call = "cuptiProfilerInitialize";
    TRY_CUPTI(range_profiler_attach(&collector->profiler));
    *call = "cuptiProfilerDeviceSupported";
    TRY_CUPTI(check_support(device));
    *call = "cuptiDeviceGetChipName";
    TRY_CUPTI(read_chip(device, collector->chip));
    *call = "cuptiProfilerGetCounterAvailability";
    return read_availability(collector);
}

struct collector *collector_open(int device, CUcontext context, struct outcome *refusal)
{
    const char *call;
    struct collector *collector = calloc(1, sizeof *collector);
    if (!collector) {
        outcome_set(refusal, COUNTED_REFUSED, "no memory");
        return NULL;
    }
    collector->context = context;
    CUptiResult code = describe(collector, device, &call);
    if (code == CUPTI_SUCCESS) {
        collector->family = chip_family_find(collector->chip);
        if (collector->family)
            return collector;
        outcome_set(refusal, COUNTED_REFUSED,
                    "no metric table for the chip %s; a newer roofsweep "
                    "may have one",
                    collector->chip);
    } else {
        refusal_set(code, call, refusal);
    }
    collector_close(collector);
    return NULL;
}

void collector_close(struct collector *collector)
{
    if (!collector)
        return;
    range_profiler_detach(&collector->profiler);
    for (int i = 0; i < QUANTITY_TENSOR_SETS; ++i)
        metric_set_destroy(collector->collections[i].set);
    free(collector->availability);
    free(collector);
}

bool collector_has(const struct collector *collector, enum quantity quantity)
{
    return chip_family_has(collector->family, quantity);
}

int collector_passes(const struct collector *collector)
{
    return collector->passes;
}

static CUptiResult collection_get(struct collector *collector, unsigned tensors,
                                  struct collection **collection)
{
    struct collection *c = *collection = &collector->collections[tensors];
    if (c->set)
        return CUPTI_SUCCESS;
    for (int i = 0; i < QUANTITY_COUNT; ++i) {
        unsigned tensor = quantity_tensor((enum quantity)i);
        c->wanted[i] = !tensor || tensor & tensors;
    }
    size_t count = formulas_metrics(collector->family, c->wanted, c->metrics);
    return metric_set_create(collector->chip, collector->availability, c->metrics, count, &c->set);
}

/* ---- one collection ---- */

static enum status range_run(struct range_session *session, const struct profiled_work *work,
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
static enum status pass(struct collector *collector, struct range_session *session,
                        const struct profiled_work *works, size_t count, CUptiResult *code,
                        bool *complete, struct error *error)
{
    enum status status = STATUS_OK;
    *code = range_pass_begin(session);
    if (*code != CUPTI_SUCCESS)
        return STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK && *code == CUPTI_SUCCESS; ++i) {
        status = works[i].prepare(works[i].argument, error);
        if (status == STATUS_OK)
            status = range_run(session, &works[i], i, code, error);
    }
    ++collector->passes;
    CUptiResult end = range_pass_end(session, complete);
    if (*code == CUPTI_SUCCESS)
        *code = end;
    return status;
}

/* Until all passes are submitted. */
static enum status repeat(struct collector *collector, struct range_session *session, size_t passes,
                          const struct profiled_work *works, size_t count, CUptiResult *code,
                          bool *complete, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < passes; ++i) {
        status = pass(collector, session, works, count, code, complete, error);
        if (status || *code != CUPTI_SUCCESS || *complete)
            break;
    }
    return status;
}

static void evaluate(const struct collector *collector, const struct metric_set *set,
                     const double metrics[FORMULAS_METRICS_MAX], double values[QUANTITY_COUNT])
{
    size_t count;
    const char *const *names = metric_set_metrics(set, &count);
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        values[i] = formulas_evaluate(collector->family, (enum quantity)i, names, metrics, count);
}

/* Which of the values the i-th range of the image is, of `ranges`. SIZE_MAX: none. */
static CUptiResult range_number(const struct range_session *session, size_t i, size_t ranges,
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
static bool ranges_complete(const struct collector *collector, const struct range_session *session,
                            size_t ranges)
{
    if (session->by_launch)
        return ranges >= session->count && ranges < collector->profiler.room;
    return ranges == session->count;
}

static CUptiResult decode_values(const struct collector *collector,
                                 const struct range_session *session, struct metric_set *set,
                                 size_t ranges, double (*values)[QUANTITY_COUNT],
                                 struct outcome *outcome)
{
    for (size_t i = ranges - session->count; i < ranges; ++i) {
        double metrics[FORMULAS_METRICS_MAX];
        size_t number;
        TRY_CUPTI(range_number(session, i, ranges, &number));
        if (number >= session->count) {
            outcome_set(outcome, COUNTED_INCOMPLETE, "range %zu is unknown", i);
            return CUPTI_SUCCESS;
        }
        TRY_CUPTI(metric_set_evaluate(set, session->image, session->image_size, i, metrics));
        evaluate(collector, set, metrics, values[number]);
    }
    return CUPTI_SUCCESS;
}

/* Says in `outcome` what is missing, if anything. */
static CUptiResult decode(const struct collector *collector, struct range_session *session,
                          struct metric_set *set, double (*values)[QUANTITY_COUNT],
                          struct outcome *outcome)
{
    PARAMETERS(data, CUpti_RangeProfiler_DecodeData);
    data.pRangeProfilerObject = session->profiler;
    TRY_CUPTI(cuptiRangeProfilerDecodeData(&data));
    PARAMETERS(info, CUpti_RangeProfiler_GetCounterDataInfo);
    info.pCounterDataImage = session->image;
    info.counterDataImageSize = session->image_size;
    TRY_CUPTI(cuptiRangeProfilerGetCounterDataInfo(&info));
    if (data.numOfRangeDropped == 0 && ranges_complete(collector, session, info.numTotalRanges))
        return decode_values(collector, session, set, info.numTotalRanges, values, outcome);
    outcome_set(outcome, COUNTED_INCOMPLETE, "%zu ranges dropped, %zu kept for %zu",
                data.numOfRangeDropped, info.numTotalRanges, session->count);
    return CUPTI_SUCCESS;
}

/* What was counted after that is not to be believed; see module_watch.h. */
static void check_modules(const struct collector *collector, struct outcome *outcome)
{
    if (outcome->code == COUNTED_YES && module_watch_saw_unload(&collector->profiler.watch))
        outcome_set(outcome, COUNTED_INCOMPLETE,
                    "a module was unloaded while its kernels were counted");
}

static enum status collect(struct collector *collector, struct range_session *session,
                           struct metric_set *set, const struct profiled_work *works, size_t count,
                           double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                           struct error *error)
{
    bool complete = false;
    enum status status = STATUS_OK;
    collector->passes = 0;
    CUptiResult code = range_session_begin(session, &collector->profiler, collector->context, set);
    if (code == CUPTI_SUCCESS)
        status = repeat(collector, session, metric_set_passes(set), works, count, &code, &complete,
                        error);
    if (code != CUPTI_SUCCESS) {
        refusal_set(code, "range profiler", outcome);
    } else if (status == STATUS_OK && !complete) {
        outcome_set(outcome, COUNTED_INCOMPLETE, "%zu passes were not enough",
                    metric_set_passes(set));
    } else if (status == STATUS_OK) {
        code = decode(collector, session, set, values, outcome);
        if (code != CUPTI_SUCCESS)
            refusal_set(code, "counter data", outcome);
        check_modules(collector, outcome);
    }
    range_session_end(session, &collector->profiler,
                      status == STATUS_OK && outcome->code == COUNTED_YES, status == STATUS_DEVICE);
    return status;
}

static void forget(double (*values)[QUANTITY_COUNT], size_t ranges)
{
    for (size_t i = 0; i < ranges; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            values[i][j] = NAN;
}

/* A quantity that is wanted, and that the chip has, without a value. */
static bool any_missing(const struct collector *collector, const struct collection *collection,
                        double (*values)[QUANTITY_COUNT], size_t ranges)
{
    for (size_t i = 0; i < ranges; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            if (collection->wanted[j] && collector_has(collector, (enum quantity)j) &&
                isnan(values[i][j]))
                return true;
    return false;
}

static enum status collect_ranges(struct collector *collector,
                                  const struct range_session *described,
                                  const struct profiled_work *works, size_t count,
                                  double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                                  struct error *error)
{
    struct range_session session = *described;
    struct collection *collection;
    const bool stayed = range_profiler_suits(&collector->profiler, &session);
    CUptiResult code = collection_get(collector, session.tensors, &collection);
    if (code != CUPTI_SUCCESS) {
        refusal_set(code, "metric set", outcome);
        return STATUS_OK;
    }
    enum status status =
        collect(collector, &session, collection->set, works, count, values, outcome, error);
    if (status == STATUS_OK && stayed &&
        any_missing(collector, collection, values, session.count)) { /* if it failed, all are */
        range_profiler_detach(&collector->profiler);
        forget(values, session.count);
        session = *described;
        outcome_set(outcome, COUNTED_YES, NULL);
        status =
            collect(collector, &session, collection->set, works, count, values, outcome, error);
        collector->afresh = status == STATUS_OK && outcome->code == COUNTED_YES;
    }
    return status;
}

/* Of the tensors only those of this collection: the others were asked for by earlier ones. */
static void forget_unasked(double (*values)[QUANTITY_COUNT], size_t ranges, unsigned tensors)
{
    for (size_t i = 0; i < ranges; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            if (quantity_tensor((enum quantity)j) & ~tensors)
                values[i][j] = NAN;
}

static enum status collect_kind(struct collector *collector, struct range_session session,
                                const struct profiled_work *works, size_t count,
                                double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                                struct error *error)
{
    const unsigned tensors = session.tensors;
    if (collector->afresh)
        collector_detach(collector);
    session.tensors = collector->asked |= tensors;
    forget(values, session.count);
    outcome_set(outcome, COUNTED_YES, NULL);
    enum status status = collect_ranges(collector, &session, works, count, values, outcome, error);
    if (outcome->code == COUNTED_YES)
        forget_unasked(values, session.count, tensors);
    else
        forget(values, session.count);
    return status;
}

enum status collector_collect(struct collector *collector, unsigned tensors,
                              const struct profiled_work *works, size_t count,
                              double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                              struct error *error)
{
    const struct range_session session = {.tensors = tensors, .count = count, .room = count};
    return collect_kind(collector, session, works, count, values, outcome, error);
}

enum status collector_collect_launches(struct collector *collector, unsigned tensors,
                                       const struct profiled_work *work, size_t launches,
                                       size_t most, double (*values)[QUANTITY_COUNT],
                                       struct outcome *outcome, struct error *error)
{
    const size_t filling = 128; /* launches that make caches as they are when timed, at most */
    const size_t preparing = 7; /* times what is counted: twice another pass, and itself */
    const struct range_session session = {
        .by_launch = true,
        .tensors = tensors,
        .count = launches,
        .room = filling + (1 + preparing) * (launches > most ? launches : most)};
    return collect_kind(collector, session, work, 1, values, outcome, error);
}
