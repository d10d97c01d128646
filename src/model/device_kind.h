/* Kinds of devices, one const table: worker program, and properties for the ranks. `struct
 * device.kind` is a name in this table. Decisions depend on the row, never on the name.
 *
 * A new kind is a row here (and DEVICE_KINDS), its name in the long name of device_kind (device.c),
 * a folder src/worker/NAME/ that defines a struct device_ops, and its program in CMakeLists.txt.
 * The row determines the words of `device =` and --device, the order of `auto`, the check for two
 * ranks on one device and the roofs of a node. Workloads list their implementations for the kind in
 * their own files. */
#pragma once

#include <stdbool.h>

struct device_kind {
    const char *name;   /* in manifest, options and struct device.kind */
    const char *worker; /* program in roofsweep's folder */
    const char *noun;   /* a device in messages */
    /* Two ranks must not share a device: they would disturb each other's times. */
    bool exclusive;
    /* A rank with several devices takes the one with its own number among the node's ranks.
     * Otherwise the device is the rank's cores. */
    bool numbered;
    /* Devices of a node share memory during rows: bandwidth roofs measured together take
     * precedence. */
    bool shares_memory;
    /* Hardware counters exist, so a refusal deserves a warning. */
    bool has_counters;
    /* The host enqueues grids of blocks; driver and profiler report them. */
    bool accelerator;
    /* The clock falls for a while under heavy load: compute roofs get time to settle. */
    bool clock_settles;
    /* Adaptive rule (struct measure_settings) of manifests without `iterations` and `stop`, for
     * devices that other work disturbs; 0: the default number of iterations. */
    double stop, min_time, max_time;
};

/* Number of kinds. `auto` tries them in the table's order. */
enum { DEVICE_KINDS = 2 };
extern const struct device_kind device_kinds[DEVICE_KINDS];

/* NULL: a name of a newer version. */
const struct device_kind *device_kind_find(const char *name);

/* The kind for an index into device_kind_words; NULL (any kind) for DEVICE_AUTO. */
enum { DEVICE_AUTO = 0 };
const struct device_kind *device_kind_chosen(int choice);
/* "auto" and the names, NULL-terminated. */
void device_kind_words(const char *words[DEVICE_KINDS + 2]);
