/* A scripted GPU: a vendor's functions (worker/gpu/vendor.h) without a GPU. Tests cause every
 * refusal and know every value.
 *
 * Time is virtual. One stream runs enqueued work in order, and each call takes time of the host.
 * Device memory has addresses and no contents: the script checks each pointer and size against its
 * allocations. */
#pragma once

#include "unit.h"

#include <stdbool.h>

#include "model/quantity.h"
#include "worker/gpu/work.h"

enum { SCRIPT_JITTER = 4 };

/* Contents of L2: data of the profiler, data of a flush, data of the work. */
enum script_cache { SCRIPT_FOREIGN, SCRIPT_FLUSHED, SCRIPT_WARM };

struct script {
    double free_bytes;

    /* Speed. */
    double call_time;             /* s of the host for each call and launch */
    double pause_time;            /* s of a pause of the host */
    int pause_every;              /* calls from one pause to the next; 0: no pauses */
    double event_time;            /* s of the device for each event */
    double empty_time;            /* s of the device for an empty kernel in the stream */
    double node_time;             /* s of the device for an empty kernel in a graph */
    double jitter[SCRIPT_JITTER]; /* factors of the times of successive runs, in turn */
    double sm_clock, memory_clock;
    bool uncalibrated; /* timing.c must measure event_time and clock */
    /* The clock begins at (1 + falls_by) sm_clock at the device time falls_from, s, and approaches
     * sm_clock with the time constant falls_in, s; 0: constant. */
    double falls_from, falls_by, falls_in;
    double swings_by, swings_in; /* amplitude relative to sm_clock, and period, s; 0: no swings */
    /* Power by the energy counter, W: idle, during a blocking kernel, at work. 0: no counter. */
    double idle_power, blocked_power, busy_power;

    /* Properties. */
    struct arena *arena;
    const struct theory *theory;
    double power_limit; /* W */

    /* Failures. */
    int fail_at; /* number of the call that fails, from 1; 0: no call fails */
    int lost_at; /* number of the first call that finds the device lost; 0: none */

    /* Counters. */
    const char *collection, *activities; /* outcomes: "counted", or a refusal */
    double counted[QUANTITY_COUNT];      /* counted amount / real amount; NaN: unknown */
    double done[QUANTITY_COUNT];         /* each work adds its real amount */
    enum script_cache cache;             /* work sets SCRIPT_WARM */

    /* Results. */
    int allocations, frees; /* calls for device memory; frees of NULL do not count */
    int calls, collections;
    int blocks; /* blocking kernels */
    struct {
        double limit, host, device;  /* s: limit, launch to unblocking, work behind it */
        int samples;                 /* pairs of events behind the blocking kernel */
    } block;                         /* the last blocking kernel */
    enum script_cache counted_cache; /* contents of L2 before the last counted work */
    double busy;                     /* s of work on the device */
    double begin_time;               /* s since the epoch, begin of the last span read */
};
extern struct script script;

/* Sets an idle GPU without a history. */
void script_reset(void);
/* Fails the test if memory or graphs are left. */
void script_assert_clean(void);
/* For cmocka: script_reset at the start, script_assert_clean at the end. */
int script_set_up(void **state);
int script_tear_down(void **state);

/* Enqueues work that takes the device this long. */
enum status script_enqueue(double seconds, struct error *error);
double script_next_jitter(void);
/* Enqueues a kernel that takes `seconds` in the stream, and `in_graph` s in a graph. */
enum status script_kernel(const char *name, double seconds, double in_graph, struct error *error);

double script_device_time(void); /* s, end of all enqueued work */

void assert_near(double value, double expected); /* within 1 % */
