/* A device as one job saw it: description, roofs and theory. Plain data in SI units with a field
 * table (field.h). */
#pragma once

#include <stdbool.h>

#include <stdint.h>

#include "model/field.h"
#include "model/link.h"
#include "model/roof.h"

enum { ROOFS_MAX = 2 * ROOF_KINDS, LINKS_MAX = 192 + 3 * LINK_ROUNDS + 18 };

struct device {
    char key[128]; /* unique in a file: session and rank */
    char kind[16]; /* name in device_kind.h */
    char hostname[128];
    char uuid[96];   /* CPU: host and cores, "cpu-HOST-0-7" */
    char pci_id[32]; /* 00000000:3B:00.0; CPU: "" */
    int64_t index;   /* number of the device in its process */
    char model[96];
    char compute_capability[16]; /* "9.0" */
    int64_t multiprocessors;     /* SMs, or cores */
    int64_t processors;          /* hardware threads of the host; GPU: missing */
    double quota; /* processors that a cgroup grants to the ranks of the host; missing: enough */
    int64_t multiprocessor_threads;     /* resident threads of an SM, at most; CPU: missing */
    double memory;                      /* byte */
    double cache[LEVEL_COUNT];          /* byte, capacity on the whole device; dram: missing */
    double clock_max, memory_clock_max; /* s-1 */
    double power_limit;                 /* W */
    int64_t mig;                        /* multi-instance mode: 1 on, 0 off */
    int64_t cores_shared;               /* 1: another rank ran on the same cores */
    int64_t cores_far;                  /* 1: the launcher left the rank no core near the device */
    struct outcome counters; /* enum counted with "WHY; WHAT TO DO"; missing: not tried */
    /* largest number of rows whose counters are read together; missing: 1 */
    int64_t count_together;
    char driver_version[32], runtime_version[32], library_version[64];
    char system[256]; /* "VBIOS 96.00.74.00.1A, InfoROM G520.0200.00.05, Linux 6.1.0-30-amd64" */
    /* By enum health. health_end is missing unless the job described the device again. */
    double health_start[HEALTH_COUNT], health_end[HEALTH_COUNT];
    /* Peaks for the Roofline, set by device_set_peaks; missing without a measured roof. */
    double peak_bandwidth[LEVEL_COUNT];                                /* byte s-1 */
    double peak_vector[PRECISION_COUNT], peak_tensor[PRECISION_COUNT]; /* s-1 */
    /* FLOPs of the whole device per cycle of the multiprocessors' clock, and per second once the
     * clock has settled under load. */
    double cycle_vector[PRECISION_COUNT], cycle_tensor[PRECISION_COUNT];
    double sustained_vector[PRECISION_COUNT], sustained_tensor[PRECISION_COUNT]; /* s-1 */
    /* byte, largest set that a shared cache serves at nearly its read roof; less than its capacity
     */
    double working_set[LEVEL_COUNT];
    double latency[LEVEL_COUNT]; /* s from a load to the load that needs its result */
    /* s-1, accelerators: highest clock during a roof or a row; set by results_finish */
    double sm_clock_free;
    double launch_overhead;  /* s between the starts of empty kernels (or OpenMP regions) */
    double launch_dependent; /* s between the starts of small kernels that depend on one another */
    char roofs_reused[1024]; /* file with the reused roofs; "": measured by this job */
    /* theory from attributes and clocks; missing: unknown */
    double theory_bandwidth[LEVEL_COUNT];
    double theory_vector[PRECISION_COUNT], theory_tensor[PRECISION_COUNT];

    struct roof roofs[ROOFS_MAX]; /* the first roof_count */
    int64_t roof_count;
    /* the first link_count; the node's links, kept by its first device only */
    struct link links[LINKS_MAX];
    int64_t link_count;
};

extern const struct field device_fields[];

void device_init(struct device *device);
/* False if the rank could not open the device: there is no UUID. */
bool device_is_open(const struct device *device);
/* True if some health is known. */
bool device_has_health(const struct device *device);
/* Compares kind, host and UUID, also between jobs. False without a UUID. */
bool device_same(const struct device *a, const struct device *b);
/* Replaces the roof of the same kind and condition. */
void device_add_roof(struct device *device, const struct roof *roof);
/* Orders roofs by condition, alone first, then as in roof_kinds. */
void device_order_roofs(struct device *device);
/* Ignores links beyond LINKS_MAX. */
void device_add_link(struct device *device, const struct link *link);
/* Adds the sustained rate to the roof of the same kind and condition, if there is one. */
void device_sustain_roof(struct device *device, const struct roof *roof);
/* First sets the verdict of each roof that a farther memory level overtakes to ROOF_CONTRADICTED.
 * Then sets each peak to the highest usable roof of its level, or precision and unit, under any
 * condition, because no row may exceed a peak. CPU ranks share memory during rows, so bandwidths
 * measured together take precedence. The launch overhead is the roof `launch gap`, measured alone
 * if there is such a value. */
void device_set_peaks(struct device *device);

/* byte s-1: roof of a level for traffic of which the fraction `written` is written. Interpolates
 * the time per byte between measured mixes (read, triad, copy, write), as if each mix moved a part
 * of the bytes; beyond them takes the nearest mix. If the fraction is unknown or no mix was
 * measured: the level's best roof. NaN without any. */
double device_mix_bandwidth(const struct device *device, int level, double written);
/* J of a byte or a FLOP, beyond the constant power. For a byte, interpolates like the bandwidth,
 * and takes it as read if the fraction is unknown. For a FLOP, takes the least of the roofs. NaN
 * without roofs. */
double device_byte_energy(const struct device *device, int level, double written);
double device_flop_energy(const struct device *device, int64_t unit, enum precision precision);
/* W, the least of several measurements; NaN: not measured. */
double device_constant_power(const struct device *device);

/* s between the starts of empty kernels, in a graph or in a stream; NaN without the roof. */
double device_launch_gap(const struct device *device, bool graph);

/* Returns `clock` (s-1); NaN if it is more than 1 % above the device's highest clock, because
 * cycles counted over some microseconds can be wrong by some per cent. */
double device_clock(const struct device *device, double clock);

/* JSON: the fields, "roofs": [{...}, ...] and "links". The caller owns the object. */
json_t *device_encode(const struct device *device);
enum status device_decode(struct json_text object, struct device *device, struct error *error);
/* As roof_check; STATUS_SYSTEM also for more than ROOF_THEORIES times the device's theory. */
enum status device_check_roof(const struct device *device, const struct roof *roof,
                              struct error *error);
/* STATUS_SYSTEM, with the field's name: no UUID, or numbers that nobody can have measured. */
enum status device_check(const struct device *device, struct error *error);
