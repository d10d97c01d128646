#include "worker/cuda/profiling/range_profiler.h"

#include <stdio.h>
#include <stdlib.h>

#include "worker/cuda/profiling/cupti_call.h"
#include "worker/cuda/profiling/cupti_process.h"

CUptiResult range_profiler_attach(struct range_profiler *profiler)
{
    CUptiResult code = profiler->attached ? CUPTI_SUCCESS : cupti_attach();
    profiler->attached = code == CUPTI_SUCCESS;
    if (!profiler->attached)
        cupti_detach();
    return code;
}

static void range_profiler_disable(struct range_profiler *profiler)
{
    if (!profiler->object)
        return;
    PARAMETERS(disable, CUpti_RangeProfiler_Disable);
    disable.pRangeProfilerObject = profiler->object;
    cuptiRangeProfilerDisable(&disable);
    module_watch_end(&profiler->watch);
    profiler->object = NULL;
    free(profiler->names);
    free(profiler->image);
    profiler->names = NULL;
    profiler->image = NULL;
}

void range_profiler_detach(struct range_profiler *profiler)
{
    range_profiler_disable(profiler);
    if (profiler->attached)
        cupti_detach();
    profiler->attached = false;
}

bool range_profiler_suits(const struct range_profiler *profiler,
                          const struct range_session *session)
{
    return profiler->object && module_watch_is_clean(&profiler->watch) &&
           profiler->by_launch == session->by_launch && profiler->tensors == session->tensors &&
           profiler->room >= session->room;
}

/* CUPTI is detached before the range profiler is enabled anew. One that was enabled twice without that
 * has never been shown to leave device times alone. */
static CUptiResult range_profiler_enable(struct range_profiler *profiler, CUcontext context,
                                         const struct range_session *session)
{
    PARAMETERS(enable, CUpti_RangeProfiler_Enable);
    enable.ctx = context;
    if (range_profiler_suits(profiler, session))
        return CUPTI_SUCCESS;
    if (profiler->object)
        range_profiler_detach(profiler);
    TRY_CUPTI(range_profiler_attach(profiler));
    TRY_CUPTI(cuptiRangeProfilerEnable(&enable));
    profiler->object = enable.pRangeProfilerObject;
    module_watch_begin(&profiler->watch);
    profiler->by_launch = session->by_launch;
    profiler->tensors = session->tensors;
    profiler->room = session->room;
    return CUPTI_SUCCESS;
}

/* ---- one collection ---- */

static CUptiResult session_image(struct range_session *session, size_t room,
                                 const struct metric_set *set)
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

CUptiResult range_session_begin(struct range_session *session, struct range_profiler *profiler,
                                CUcontext context, const struct metric_set *set)
{
    TRY_CUPTI(range_profiler_enable(profiler, context, session));
    session->profiler = profiler->object;
    session->names = calloc(session->count, sizeof *session->names);
    if (!session->names)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    TRY_CUPTI(session_image(session, profiler->room, set));
    PARAMETERS(config, CUpti_RangeProfiler_SetConfig);
    config.pRangeProfilerObject = session->profiler;
    config.pConfig = metric_set_config(set, &config.configSize);
    config.pCounterDataImage = session->image;
    config.counterDataImageSize = session->image_size;
    config.range = session->by_launch ? CUPTI_AutoRange : CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = profiler->room;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    return cuptiRangeProfilerSetConfig(&config);
}

void range_session_end(const struct range_session *session, struct range_profiler *profiler,
                       bool well, bool lost)
{
    uint8_t *last_image = profiler->image;
    char(*last_names)[RANGE_NAME] = profiler->names;
    profiler->image = session->image;
    profiler->names = session->names;
    if (!lost && !well)
        range_profiler_detach(profiler);
    free(last_names);
    free(last_image);
}

CUptiResult range_pass_begin(struct range_session *session)
{
    PARAMETERS(start, CUpti_RangeProfiler_Start);
    start.pRangeProfilerObject = session->profiler;
    return cuptiRangeProfilerStart(&start);
}

CUptiResult range_pass_end(struct range_session *session, bool *last)
{
    PARAMETERS(stop, CUpti_RangeProfiler_Stop);
    stop.pRangeProfilerObject = session->profiler;
    TRY_CUPTI(cuptiRangeProfilerStop(&stop));
    *last = stop.isAllPassSubmitted;
    return CUPTI_SUCCESS;
}

CUptiResult range_begin(struct range_session *session, size_t number)
{
    if (session->by_launch)
        return CUPTI_SUCCESS;
    PARAMETERS(push, CUpti_RangeProfiler_PushRange);
    snprintf(session->names[number], sizeof *session->names, "%zu", number);
    push.pRangeProfilerObject = session->profiler;
    push.pRangeName = session->names[number];
    return cuptiRangeProfilerPushRange(&push);
}

CUptiResult range_end(struct range_session *session)
{
    PARAMETERS(pop, CUpti_RangeProfiler_PopRange);
    pop.pRangeProfilerObject = session->profiler;
    return session->by_launch ? CUPTI_SUCCESS : cuptiRangeProfilerPopRange(&pop);
}
