/* The scripted GPU's own state, shared by its units; nobody else includes it. */
#ifndef ROOFSWEEP_SCRIPTED_MACHINE_H
#define ROOFSWEEP_SCRIPTED_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scripted_cuda.h"
#include "model/workload.h"

enum {
    DEVICES = 2,
    HOST = DEVICES, /* where pinned memory lies */
    ALLOCATIONS = 256,
    LOADED = 512,
    CAPABILITY = 90,
    MULTIPROCESSORS = 132,
    QUEUE = 1000,             /* launches and the like that wait for the device */
    SHARED_BYTES = 228 << 10, /* of each multiprocessor; L1 is a little larger */
    L2_BYTES = 50 << 20
};

struct allocation {
    uintptr_t address; /* 0: free */
    size_t bytes;
    int device;
    unsigned char *contents;  /* owned: what the device has written; NULL if it is large */
    size_t filled;            /* of its bytes, */
    enum precision precision; /* with random numbers of this type */
    size_t alike;             /* of its bytes, of this value */
    int value;
};

struct clock_stamp; /* kernels.h */

/* A reading of the clocks, which is written when it is enqueued. */
struct stamp {
    struct clock_stamp *written;
    bool end;    /* of a span */
    double time; /* s, of the device */
};

/* What holds the stream: it is enqueued as if the host never released it, and all behind it comes earlier
 * when that does. */
struct hold {
    const volatile uint64_t *released; /* NULL: nothing holds it */
    uint64_t ticket;
    double begin, end; /* s: end by its limit */
    struct stamp stamps[2];
    int stamp_count;
};

/* What there is now. */
extern struct machine {
    double host, device; /* s: now, and when all that is enqueued will be done */
    double ends[QUEUE];  /* when each of what was enqueued last will be */
    size_t enqueued;
    struct hold hold;
    cudaEvent_t first_event; /* of a list of all */
    int current;
    bool context[DEVICES], mapped, capturing;
    cudaError_t last_error;
    uintptr_t next_address;
    struct allocation allocations[ALLOCATIONS];
    int events, graphs, executables;
    int nodes, links;        /* of the graph that is captured */
    int executable_nodes[2]; /* of the executable of empty kernels, and of that of links */
    size_t runs;
    struct {
        const void *row;
        int choice;
    } loaded[LOADED]; /* code; the first `loads` */
    size_t loads;
    bool opened, tried, attached;  /* the collector */
    double counts[QUANTITY_COUNT]; /* of the last work */
    enum script_cache cache;
} machine;

/* What every call does: takes its time, and may fail. */
cudaError_t script_call(void);
bool script_is_lost(void);
/* What gives something back does so even if the context is gone. */
cudaError_t script_give_back(int *count);
double script_epoch(void); /* s, of the time 0 */

/* Where `bytes` from here on lie: on this device, or the test fails. */
struct allocation *script_within(const void *memory, size_t bytes, int device);
/* They hold random numbers of this type. */
void script_assert_filled(const void *memory, size_t bytes, enum precision precision, int device);
/* What the device has written there. */
unsigned char *script_contents(const void *memory, size_t bytes);

cudaError_t script_enqueue(double seconds, cudaStream_t stream);
/* Whether the hold has been released, or is over: before anything that goes by the time. */
void script_look(void);
void script_stamp(const struct stamp *stamp);

/* One run of a roof's work. */
struct work_done {
    const char *kind, *what;
    const void *row; /* whose code it is, */
    int choice;      /* or which of its codes */
    double amount;   /* bytes or FLOPs */
    int blocks, threads;
    double pace; /* of the fastest way's rate, beside what `best` says; 0: 1 */
};
cudaError_t script_run(const struct work_done *work, cudaStream_t stream);
double script_next_jitter(void);
/* For the counters, by the type of what is multiplied. */
extern const enum quantity script_tensor_quantities[PRECISION_COUNT];

#endif
