/* The scripted GPU's own state, shared by the files that are it; no test includes it. */
#ifndef ROOFSWEEP_SCRIPTED_MACHINE_H
#define ROOFSWEEP_SCRIPTED_MACHINE_H

#include "scripted_vendor.h"

enum {
    DEVICES = 2,
    HOST = DEVICES, /* where pinned memory lies */
    ALLOCATIONS = 256,
    LOADED = 512,
    CAPABILITY = 90,
    MULTIPROCESSORS = 132,
    QUEUE = 1000,             /* launches and the like that wait for the device */
    SHARED_BYTES = 228 << 10, /* of each multiprocessor; L1 is a little larger */
    L2_BYTES = 50 << 20,
    EVENTS = 600,
    GRAPH_NODES = 1000 /* of a graph */
};

struct allocation {
    uintptr_t address; /* 0: free */
    size_t bytes;
    int device;
    size_t filled;            /* of its bytes, */
    enum precision precision; /* with random numbers of this type */
};

/* What there is now. */
extern struct machine {
    double host, device; /* s: now, and when all that is enqueued will be done */
    double ends[QUEUE];  /* when each of what was enqueued last will be */
    size_t enqueued;
    double joules, drawn;       /* beyond idle: of all that is enqueued; W, of the last of it */
    double counter, counted_at; /* J, of the counter of energy at its last step; s, when that was */
    bool held; /* the stream: what is enqueued after it is as if the host never released it, and */
    double hold_begin, hold_end; /* comes earlier when that does. s: end by its limit */
    double events[EVENTS];       /* s; NaN: not recorded */
    double stamps[2];            /* s, of a span's begin and end */
    struct calibration calibration;
    void *flush;            /* what is read to flush the cache; NULL: not reserved */
    struct graph *captured; /* NULL: the stream is not captured */
    int graphs;
    int current;
    bool context[DEVICES], mapped;
    int last_error; /* of the CUDA runtime */
    uintptr_t next_address;
    struct allocation allocations[ALLOCATIONS];
    size_t runs;
    struct {
        const void *row;
        int choice;
    } loaded[LOADED]; /* code; the first `loads` */
    size_t loads;
    bool opened, tried, attached;  /* the counters */
    double counts[QUANTITY_COUNT]; /* of the last work */
    enum script_cache cache;
} machine;

/* What every call does: takes its time, and may fail. */
enum status script_call(struct error *error);
bool script_is_lost(void);

enum status script_allocate(double bytes, int device, void **memory, struct error *error);
void script_free(void *memory, int device);
/* Where `bytes` from here on lie: on this device, or the test fails. */
struct allocation *script_within(const void *memory, size_t bytes, int device);
/* They hold random numbers of this type. */
void script_assert_filled(const void *memory, size_t bytes, enum precision precision, int device);

enum status script_enqueue(double seconds, struct error *error);
double script_next_jitter(void);

#endif
