/* A scripted CUPTI: these functions replace CUPTI and its host part (metric_set.h). Tests cause
 * every refusal, and every kind of incomplete counting and tracing, without a GPU. */
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

/* A metric set takes three passes. Every metric of the first range is 7; each further range has 7
 * more. */
enum { CUPTI_PASSES = 3, CUPTI_EACH = 7, CUPTI_RECORDS = 8, CUPTI_RANGES = 256 };

extern struct cupti_script {
    const char *chip;
    CUptiResult initialize, supported, availability; /* results of these calls */
    CUpti_Profiler_DeviceSupported_Params support;
    struct cupti_trouble {
        CUptiResult enable, start;
        CUptiResult push; /* result of PushRange after push_from successful calls */
        int push_from;
        int passes;     /* passes needed in addition to `passes` below */
        size_t dropped; /* number of ranges that CUPTI reports as dropped */
        size_t ranges;  /* number of ranges in the image; 0: those pushed in the last pass */
        bool nameless;  /* the image has no names */
    } trouble;
    CUpti_ProfilerRange range; /* of the last SetConfig */
    size_t room;
    int pushed;
    int passes;          /* CUPTI has all passes after this many `runs` */
    const char *lacking; /* part of the names of metrics without a value */
    const char *unknown; /* part of the names of metrics that no set may have */
    int attached, finalized, runs, enabled, disabled; /* calls */
    char names[CUPTI_RANGES][8];                      /* names of the ranges of the last pass */
    size_t in_pass;                                   /* ranges of the last pass */
    bool config_once;                                 /* SetConfig refuses a second configuration */
    int configured;       /* value of `enabled` at the last effective configuration */
    bool replayed;        /* the configuration must ask for kernel replay */
    bool in_process;      /* each Stop adds one to `runs` */
    bool passing, within; /* a pass is open; a range is open */

    /* Activity records. */
    CUptiResult register_callbacks, activity_enable, flush; /* results of these calls */
    scripted_kernel records[CUPTI_RECORDS];
    size_t record_count, records_dropped, handed;
    bool in_the_way; /* tracing is refused if CUPTI is already in the process */
    int activity_enabled, activity_disabled; /* calls */
    bool tracing;
    CUpti_BuffersCallbackRequestFunc requested;
    CUpti_BuffersCallbackCompleteFunc completed;

    bool present; /* CUPTI is in the process */
    bool tracer;  /* activity records were enabled since CUPTI came into the process */

    uint64_t now; /* ns on CUPTI's clock */

    /* The one subscriber. */
    CUptiResult subscribe;     /* result of the call */
    CUpti_CallbackFunc called; /* NULL: no subscriber */
    void *caller;
    int subscribed;            /* calls */
    bool modules, calls[1000]; /* enabled callbacks: unloaded modules, calls of the driver */
} cupti;

/* Call the subscriber for an unloaded module, and for a launch. */
void cupti_unload(void);
void cupti_launch(void);

/* For cmocka: a GH100 with readable counters, without history or records. */
int cupti_set_up(void **state);
