/* CUPTI as a script: these functions stand in for it, and for the host's part of it (metric_set.h),
 * so that every refusal, and every kind of incomplete counting and tracing, is met without a GPU.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 scripted_kernel;
#else
typedef CUpti_ActivityKernel9 scripted_kernel;
#endif

/* A set takes three passes, and finds 7 for every metric, 7 more in each further range. */
enum { CUPTI_PASSES = 3, CUPTI_EACH = 7, CUPTI_RECORDS = 8, CUPTI_RANGES = 256 };

extern struct cupti_script {
    const char *chip;
    CUptiResult initialize, supported, availability;
    CUpti_Profiler_DeviceSupported_Params support;
    struct cupti_trouble {
        CUptiResult enable, start;
        CUptiResult push; /* what PushRange says, */
        int push_from;    /* once so many ranges have been pushed */
        int passes;       /* that the profiler wants beside `passes` */
        size_t dropped;   /* ranges, of which CUPTI says so */
        size_t ranges;    /* that the image has; 0: as many as were pushed in the last pass */
        bool nameless;    /* the image knows no names */
    } trouble;
    CUpti_ProfilerRange range; /* as configured */
    size_t room;
    int pushed;
    int passes;          /* after which the profiler has enough; the test counts `runs` */
    const char *lacking; /* metrics with this in their names have no value */
    int attached, finalized, runs, enabled, disabled;
    char names[CUPTI_RANGES][8]; /* of the ranges pushed last, */
    size_t in_pass;              /* so many */
    bool config_once;            /* after each enabling only: later it is refused */
    int configured;       /* the enabling that was configured last; later it is without effect */
    bool replayed;        /* kernel replay is what it is to be configured for */
    bool in_process;      /* each Stop is one of `runs` */
    bool passing, within; /* a pass has begun, and a range of it */

    /* Activity records. */
    CUptiResult register_callbacks, activity_enable, flush;
    scripted_kernel records[CUPTI_RECORDS]; /* as they are handed over */
    size_t record_count, records_dropped, handed;
    bool in_the_way; /* tracing is refused where CUPTI is in the process already */
    int activity_enabled, activity_disabled;
    bool tracing;
    CUpti_BuffersCallbackRequestFunc requested;
    CUpti_BuffersCallbackCompleteFunc completed;

    bool present; /* CUPTI is in the process */

    uint64_t now; /* ns, of CUPTI's clock */

    /* Its one subscriber. */
    CUptiResult subscribe;
    CUpti_CallbackFunc called; /* NULL: nobody has subscribed */
    void *caller;
    int subscribed;
    bool modules, calls[1000]; /* what the subscriber asked for: unloading, calls of the driver */
} cupti;

/* A module is unloaded, a kernel launched: subscribers are notified. */
void cupti_unload(void);
void cupti_launch(void);

/* For cmocka: a GH100 whose counters can be read; nothing has happened, and nothing will be traced.
 */
int cupti_set_up(void **state);
