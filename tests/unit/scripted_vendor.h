/* A GPU as a script: a vendor's table of functions (worker/gpu/vendor.h), and for roofs what stands
 * in for kernels and counters (scripted_cuda.c, scripted_kernels.c, scripted_counters.c).
 * So every refusal is met, and every value known, without a GPU.
 *
 * Time is virtual. The one stream of the own device runs what is enqueued in turn; calls take the
 * host its time. Device memory is addresses alone: the host cannot touch it, and each pointer and
 * size that is given is checked against what was allocated. */
#ifndef ROOFSWEEP_SCRIPTED_VENDOR_H
#define ROOFSWEEP_SCRIPTED_VENDOR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/quantity.h"
#include "model/roof.h"
#include "worker/gpu/work.h"

enum { SCRIPT_JITTER = 4 };

#define SCRIPT_REACH 0.65 /* of L2: larger sets come from device memory */

/* What lies in L2: what the profiler wrote, what was read for no other purpose, what work left. */
enum script_cache { SCRIPT_FOREIGN, SCRIPT_FLUSHED, SCRIPT_WARM };

struct script {
    /* What the process sees. */
    int devices, own;
    int capability; /* of all of them; who changes it tells the worker, too */
    double free_bytes;
    bool direct;        /* the other device's memory can be mapped */
    int remote_context; /* what becoming the other device's gives, */
    int remote_memory;  /* and allocating there */

    /* How fast: bytes or FLOPs per second of the fastest way, by kind of roof. */
    double rate[ROOF_KINDS];
    double call_time;                 /* s, of the host, for each call and launch */
    double pause_time;                /* s, that the host does something else, */
    int pause_every;                  /* at every so many-th call; 0: never */
    double event_time;                /* s, of the device, for each event */
    double empty_time;                /* s, of the device, from one empty kernel to the next */
    double node_time;                 /* s, the same in a graph */
    double link_time, link_node_time; /* s, the same of links */
    /* The fastest way. Each part of this that another way lacks costs it this factor. */
    double less;
    struct {
        const char *what;    /* in the kernel's label, "dram read: 4 in flight" */
        int blocks, threads; /* 0: all are alike */
        double begin_time;   /* s, that each run of it takes more */
    } best;
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
    int processes; /* that compute on the device, this one included */

    /* What fails. */
    const char *refused; /* kernels and products with this in their labels; NULL: none */
    int refusal;         /* of kernels, at their launch */
    int fail_at;         /* only the call of this number, from 1; 0: none */
    int lost_at;         /* that one and all after it: the context is gone */

    /* What the counters do. */
    const char *preflight, *collection, *activities; /* outcomes: "counted", or why not */
    const char *no_tensors;         /* of a preflight that asks for any; NULL: as of others */
    enum quantity absent;           /* QUANTITY_COUNT: none */
    double counted[QUANTITY_COUNT]; /* over what was done */

    /* What happened. */
    int allocations, frees;         /* of device memory, NULL not counted */
    int calls, collections, afresh; /* afresh: attached for the collection */
    int holds;                      /* of the stream */
    bool ran[ROOF_KINDS];
    enum script_cache counted_cache; /* as the work that was counted last found it */
    double busy;                     /* s, that the device has worked */
    double begin_time; /* s since the epoch, when the device last read its clocks for a begin */
};
extern struct script script;

/* An H200 alone, idle; nothing has happened. */
void script_reset(void);
/* Fails the test unless all that was allocated, created, mapped or attached is gone, and the own
 * device current. */
void script_assert_clean(void);
/* For cmocka: script_reset, and at the end script_assert_clean. */
int script_set_up(void **state);
int script_tear_down(void **state);

/* What vendor.arena gives. */
extern struct arena *script_arena;
/* What is known of the GPU, and what counts. Tests of roofs set it. */
extern struct script_roofs {
    const struct theory *theory;
    const double *power_limit;
    enum status (*count)(struct profiler *profiler, unsigned tensors,
                         const struct profiled_work *works, size_t count,
                         double (*values)[QUANTITY_COUNT], struct outcome *outcome,
                         struct error *error);
} script_roofs;

/* Enqueues a kernel of this name that takes the device so long, in the stream and in a graph. */
enum status script_kernel(const char *name, double seconds, double in_graph, struct error *error);

double script_device_time(void); /* s: when all that is enqueued will be done */

void assert_near(double value, double expected); /* within 1 % */

#endif
