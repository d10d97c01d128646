/* One device as one job saw it: what it is, what it reached (its roofs), what it should reach.
 * Plain data in SI units, described by a field table (field.h). */
#pragma once

#include <stdbool.h>

#include <stdint.h>

#include "model/field.h"
#include "model/link.h"
#include "model/roof.h"

enum { ROOFS_MAX = 2 * ROOF_KINDS, LINKS_MAX = 192 };

/* One device as one job saw it. Plain data. */
struct device {
    char key[128]; /* unique in a file: session and rank */
    char kind[16]; /* a name of device_kind.h */
    char hostname[128];
    char uuid[96];   /* CPU: the host and the cores, "cpu-HOST-0-7" */
    char pci_id[32]; /* 00000000:3B:00.0; CPU: empty */
    int64_t index;   /* as the job's processes see it */
    char model[96];
    char compute_capability[16];        /* "9.0" */
    int64_t multiprocessors;            /* SMs, or cores */
    int64_t multiprocessor_threads;     /* that one SM holds at a time; CPU: missing */
    double memory;                      /* byte */
    double cache[LEVEL_COUNT];          /* byte, capacity on the whole device; dram missing */
    double clock_max, memory_clock_max; /* s-1 */
    double power_limit;                 /* W */
    int64_t mig;                        /* 1 on, 0 off */
    int64_t cores_shared;               /* 1: another rank ran on the same cores */
    int64_t cores_far;                  /* 1: the launcher left the rank no core near it */
    struct outcome counters; /* enum counted, and "WHY; WHAT TO DO"; missing if nobody asked */
    int64_t count_together; /* rows whose counters its worker reads together, at most; missing: 1 */
    char driver_version[32], runtime_version[32], library_version[64];
    char system[256]; /* "VBIOS 96.00.74.00.1A, InfoROM G520.0200.00.05, Linux 6.1.0-30-amd64" */
    /* By enum health. At the end: missing unless the job asked once more. */
    double health_start[HEALTH_COUNT], health_end[HEALTH_COUNT];
    /* The roofs that the model uses, set by device_set_peaks; missing where none was measured. */
    double peak_bandwidth[LEVEL_COUNT];                                /* byte s-1 */
    double peak_vector[PRECISION_COUNT], peak_tensor[PRECISION_COUNT]; /* s-1 */
    /* FLOPs in each cycle of the multiprocessors' clock, on the whole device; and in a second once
     * the clock has settled under the load. */
    double cycle_vector[PRECISION_COUNT], cycle_tensor[PRECISION_COUNT];
    double sustained_vector[PRECISION_COUNT], sustained_tensor[PRECISION_COUNT]; /* s-1 */
    /* byte: the largest set that a shared cache serves at nearly its read roof; less than its
     * capacity */
    double working_set[LEVEL_COUNT];
    /* s-1, of an accelerator: the highest clock that a roof or a row held; set by
     * results_finish, which knows all rows */
    double sm_clock_free;
    double launch_overhead;  /* s, from one empty kernel (or OpenMP region) to the next */
    double launch_dependent; /* s, from one small kernel to the next that needs its result */
    char roofs_reused[1024]; /* file that the roofs were taken from; "": measured by this job */
    /* theory, from attributes and clocks; missing where not known */
    double theory_bandwidth[LEVEL_COUNT];
    double theory_vector[PRECISION_COUNT], theory_tensor[PRECISION_COUNT];

    struct roof roofs[ROOFS_MAX]; /* the first roof_count */
    int64_t roof_count;
    struct link links[LINKS_MAX]; /* of its node, if it is the first there; likewise */
    int64_t link_count;
};

extern const struct field device_fields[];

void device_init(struct device *device);
/* False of a device that its rank could not open: it has no UUID. */
bool device_is_open(const struct device *device);
/* Some of its health is known. */
bool device_has_health(const struct device *device);
/* One device, perhaps as two jobs saw it: by kind, host and UUID. False of those without one. */
bool device_same(const struct device *a, const struct device *b);
/* Replaces that roof, if there is one. */
void device_add_roof(struct device *device, const struct roof *roof);
/* Those alone first, each condition in the order of roof_kinds. */
void device_order_roofs(struct device *device);
/* The first LINKS_MAX. */
void device_add_link(struct device *device, const struct link *link);
/* What was sustained, to that roof, if there is one. */
void device_sustain_roof(struct device *device, const struct roof *roof);
/* Of the usable roofs the highest at each memory level and for each precision and unit, whatever
 * their condition: a ceiling is what nothing exceeds. But the ranks of a CPU share its memory while
 * they work: of its bandwidths those measured together count, if there are any. Launch overhead:
 * the gap, alone if there is such a roof. */
void device_set_peaks(struct device *device);

/* byte s-1: the roof of a level for bytes of which this part is written. Between two measured mixes
 * (read, triad, copy, write) the time for a byte is interpolated: as if some bytes were moved in
 * the one mix, and the rest after that in the other. Beyond them, that of the nearest. The best
 * roof of the level where the part is not known, or no mix was measured; NaN without any. */
double device_mix_bandwidth(const struct device *device, int level, double written);
/* J, beyond the constant power: of a byte in the same way, where the part is not known as read; of
 * a FLOP, the least of the roofs. NaN without such roofs. */
double device_byte_energy(const struct device *device, int level, double written);
double device_flop_energy(const struct device *device, int64_t unit, enum precision precision);
/* W; NaN: not measured. The least, should several workers have measured it. */
double device_constant_power(const struct device *device);

/* s, NaN if there is no such roof: from one empty kernel to the next, in a graph or in the
 * stream. */
double device_launch_gap(const struct device *device, bool graph);

/* JSON: the fields, "roofs": [{...}, ...] and "links". The caller owns the result. */
json_t *device_encode(const struct device *device);
enum status device_decode(struct json_text object, struct device *device, struct error *error);
/* STATUS_SYSTEM, with the field's name: it has no UUID, or holds what nobody measured. As
 * record_check. */
enum status device_check(const struct device *device, struct error *error);
