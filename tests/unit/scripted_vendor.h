/* A GPU as a script: a vendor's table of functions (worker/gpu/vendor.h), so that every refusal is
 * met, and every value known, without a GPU.
 *
 * Time is virtual. The one stream runs what is enqueued in turn; calls take the host its time.
 * Device memory is addresses alone: the host cannot touch it, and each pointer and size that is
 * given is checked against what was allocated. */
#pragma once

#include "unit.h"

#include <stdbool.h>

#include "model/quantity.h"
#include "worker/gpu/work.h"

enum { SCRIPT_JITTER = 4 };

/* What lies in L2: what the profiler wrote, what was read for no other purpose, what work left. */
enum script_cache { SCRIPT_FOREIGN, SCRIPT_FLUSHED, SCRIPT_WARM };

struct script {
    double free_bytes;

    /* How fast. */
    double call_time;             /* s, of the host, for each call and launch */
    double pause_time;            /* s, that the host does something else, */
    int pause_every;              /* at every so many-th call; 0: never */
    double event_time;            /* s, of the device, for each event */
    double empty_time;            /* s, of the device, from one empty kernel to the next */
    double node_time;             /* s, the same in a graph */
    double jitter[SCRIPT_JITTER]; /* factors of the times of one run after the other, in turn */
    double sm_clock, memory_clock;
    /* From `falls_from`, s of the device, the clock lies by this share above sm_clock, and falls to
     * it with this time constant, s. 0: it is sm_clock all the time. */
    double falls_from, falls_by, falls_in;
    double swings_by,
        swings_in; /* it swings about that by this share, s for once up and down; 0: it does not */
    /* W, by the counter of energy: without work, while the stream is held, and at work; 0: there is
     * none. */
    double idle_power, held_power, busy_power;

    /* What is known of it. */
    struct arena *arena;
    const struct theory *theory;
    double power_limit; /* W */

    /* What fails. */
    int fail_at; /* only the call of this number, from 1; 0: none */
    int lost_at; /* that one and all after it: the context is gone */

    /* What the counters do. */
    const char *collection, *activities; /* outcomes: "counted", or why not */
    double counted[QUANTITY_COUNT];      /* over what was done; NaN: not known */
    double done[QUANTITY_COUNT];         /* by the work that runs, which adds to it */
    enum script_cache cache;             /* work leaves it warm */

    /* What happened. */
    int allocations, frees; /* of device memory, NULL not counted */
    int calls, collections;
    int holds;                       /* of the stream */
    enum script_cache counted_cache; /* as the work that was counted last found it */
    double busy;                     /* s, that the device has worked */
    double begin_time; /* s since the epoch, when the device last read its clocks for a begin */
};
extern struct script script;

/* A GPU alone, idle; nothing has happened. */
void script_reset(void);
/* Fails the test unless all that was allocated or captured is gone. */
void script_assert_clean(void);
/* For cmocka: script_reset, and at the end script_assert_clean. */
int script_set_up(void **state);
int script_tear_down(void **state);

/* Enqueues what takes the device so long. */
enum status script_enqueue(double seconds, struct error *error);
double script_next_jitter(void);
/* Enqueues a kernel of this name that takes the device so long, in the stream and in a graph. */
enum status script_kernel(const char *name, double seconds, double in_graph, struct error *error);

double script_device_time(void); /* s: when all that is enqueued will be done */

void assert_near(double value, double expected); /* within 1 % */
