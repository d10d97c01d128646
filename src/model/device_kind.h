/* The kinds of devices, one const table: what is measured, by which program, and what ranks must
 * know about it. `struct device.kind` is a name of this table; every decision asks the row,
 * never the name.
 *
 * A new kind is a row here (and DEVICE_KINDS), its name in the long name of device_kind
 * (device.c), a folder src/worker/NAME/ that defines a struct device_ops, and its program in
 * CMakeLists.txt. The words of `device =` and of --device, the order in which `auto` tries, the
 * check for two ranks on one device and the roofs of a node follow from the row. Workloads list
 * the kind's implementations in their own files. */
#pragma once

#include <stdbool.h>

struct device_kind {
    const char *name;   /* in manifest, options and struct device.kind */
    const char *worker; /* its program, which lies beside roofsweep */
    const char *noun;   /* one such device, in messages */
    /* Two ranks must not have the same one: their times would disturb one another. */
    bool exclusive;
    /* Of several on a node, a rank takes the one of its number among the node's ranks. Otherwise
     * the device is the cores that the rank runs on. */
    bool numbered;
    /* Its ranks share the memory while they work: of its bandwidth roofs those measured together
     * count. */
    bool shares_memory;
    /* Its hardware counters can be read, so that a refusal is worth a warning. */
    bool has_counters;
    /* The host enqueues grids of blocks for it; what becomes of them, its driver and its profiler
     * tell. */
    bool accelerator;
    /* Its clock falls for a while under heavy load: such a roof gets time to settle. */
    bool clock_settles;
};

/* In the order in which `auto` tries them. */
enum { DEVICE_KINDS = 2 };
extern const struct device_kind device_kinds[DEVICE_KINDS];

/* NULL if there is none: a newer program wrote it. */
const struct device_kind *device_kind_find(const char *name);

/* What a user asks for: DEVICE_AUTO, or 1 + the index of a kind, which is also the index of its
 * word. NULL: any kind. */
enum { DEVICE_AUTO = 0 };
const struct device_kind *device_kind_chosen(int choice);
/* "auto" and the names, NULL-terminated. */
void device_kind_words(const char *words[DEVICE_KINDS + 2]);
