/* Kinds of devices, in one const table: the worker program, and properties that ranks need. `struct
 * device.kind` is a name in this table. Code depends on the properties of a kind, never on its
 * name. src/README.md says what a new kind needs. */
#pragma once

#include <stdbool.h>

struct device_kind {
    const char *name;   /* in manifest, options and struct device.kind */
    const char *worker; /* program in roofsweep's folder */
    const char *noun;   /* word for a device of this kind in messages */
    bool exclusive;     /* two ranks must not share a device: sharing disturbs times */
    bool numbered;      /* rank i of a node takes its i-th visible device; else the rank's cores */
    bool shares_memory; /* devices of a node share memory: bandwidths measured together count */
    bool has_counters;  /* devices have hardware counters: warn if these cannot be read */
    bool accelerator;   /* the host enqueues kernels as grids of blocks */
    bool clock_settles; /* the clock falls under load, then settles: roofs have a sustained value */
    /* The adaptive rule (struct measure_settings) of manifests without `iterations` and `stop`, for
     * devices that other work disturbs. stop = 0: such manifests have the default iterations. */
    double stop, min_time, max_time;
};

/* Number of kinds. `auto` tries them in the table's order. */
enum { DEVICE_KINDS = 2 };
extern const struct device_kind device_kinds[DEVICE_KINDS];

/* NULL: no such kind, for example because a newer version wrote the name. */
const struct device_kind *device_kind_find(const char *name);

/* The kind for an index into device_kind_words. NULL for DEVICE_AUTO: any kind. */
enum { DEVICE_AUTO = 0 };
const struct device_kind *device_kind_chosen(int choice);
/* "auto" and the names, NULL-terminated. */
void device_kind_words(const char *words[DEVICE_KINDS + 2]);
extern const char device_kind_help[]; /* help of --device, with these words */
