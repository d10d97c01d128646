/* A device as one job saw it: description, roofs and theory. Plain data in SI units with a field
 * table (field.h). */
#pragma once

#include <stdbool.h>

#include <stdint.h>

#include "model/field.h"
#include "model/roof.h"

enum { ROOFS_MAX = 2 * ROOF_KINDS };

struct device {
    char key[128]; /* unique in a file: session and rank */
    char kind[16]; /* name in device_kind.h */
    char hostname[128];
    char uuid[96];   /* CPU: host and cores, "cpu-HOST-0-7" */
    char pci_id[32]; /* 00000000:3B:00.0; CPU: "" */
    int64_t index;   /* number by which its process knows the device */
    char model[96];
    char compute_capability[16]; /* "9.0" */
    int64_t multiprocessors;     /* SMs, or cores */
    int64_t processors;          /* hardware threads of the host; GPU: missing */
    double quota; /* processors that a cgroup grants to the ranks of the host; missing: no limit */
    int64_t multiprocessor_threads;     /* threads that fit on an SM at a time; CPU: missing */
    double memory;                      /* byte */
    double cache[LEVEL_COUNT];          /* byte, capacity on the whole device; dram: missing */
    double clock_max, memory_clock_max; /* s-1 */
    double power_limit;                 /* W */
    int64_t mig;                        /* multi-instance mode: 1 on, 0 off */
    int64_t cores_shared;               /* 1: another rank ran on the same cores */
    int64_t cores_far;                  /* 1: the launcher left the rank no core near the device */
    struct outcome counters; /* enum counted, reason "WHY; WHAT TO DO"; missing: not tried */
    int64_t count_together;  /* number of rows whose counters are read together; missing: 1 */
    char driver_version[32], runtime_version[32], library_version[64];
    char system[256]; /* "VBIOS 96.00.74.00.1A, InfoROM G520.0200.00.05, Linux 6.1.0-30-amd64" */
    /* By enum health. health_end is missing if the job ended without reading the health again. */
    double health_start[HEALTH_COUNT], health_end[HEALTH_COUNT];
    /* set by device_set_peaks; missing without a measured roof */
    double peak_bandwidth[LEVEL_COUNT];                                  /* byte s-1 */
    double peak_vector[PRECISION_COUNT], peak_tensor[PRECISION_COUNT];   /* s-1 */
    double cycle_vector[PRECISION_COUNT], cycle_tensor[PRECISION_COUNT]; /* FLOPs per cycle */
    double working_set[LEVEL_COUNT]; /* byte, largest set that the cache reads at nearly its roof */
    double latency[LEVEL_COUNT];     /* s from a load to the load that needs its result */
    double sm_clock_free; /* s-1, highest clock of a session's roofs and rows, see results_finish */
    double launch_overhead;  /* s between the starts of empty kernels (or OpenMP regions) */
    char roofs_reused[1024]; /* file with the reused roofs; "": measured by this job */
    /* theoretical roofs, from attributes and clocks of the device; missing: unknown */
    double theory_bandwidth[LEVEL_COUNT];
    double theory_vector[PRECISION_COUNT], theory_tensor[PRECISION_COUNT];

    int64_t roof_count;
    struct roof roofs[ROOFS_MAX]; /* [roof_count] */
};

extern const struct field device_fields[];

void device_init(struct device *device);
/* False if the rank could not open the device: there is no UUID. */
bool device_is_open(const struct device *device);
bool device_has_health(const struct device *device);
/* Compares kind, host and UUID, also between jobs. False without a UUID. */
bool device_same(const struct device *a, const struct device *b);
enum { DEVICE_IDENTITY = 256 };
/* Returns `text`, which equals that of another open device exactly if they are device_same. */
const char *device_identity(const struct device *device, char text[DEVICE_IDENTITY]);
/* Adds a roof, or replaces the roof of the same kind and condition. */
void device_add_roof(struct device *device, const struct roof *roof);
/* Orders roofs by condition, alone first, then as in roof_kinds. */
void device_order_roofs(struct device *device);
/* Adds the sustained rate to the roof of the same kind and condition, if there is one. */
void device_sustain_roof(struct device *device, const struct roof *roof);
/* First sets the verdict of each roof that is slower than a farther memory level to
 * ROOF_CONTRADICTED. Then sets each peak to the highest usable roof of the level, or of the
 * precision and unit, under any condition, because no row may exceed a peak. CPU ranks share memory
 * during rows, so only their bandwidths measured together count, if there are any. The launch
 * overhead is the roof `launch gap`, preferably measured alone. */
void device_set_peaks(struct device *device);

/* byte s-1: roof of a level for traffic of which the fraction `written` is written. The time per
 * byte is interpolated between the two nearest measured mixes (read, triad, copy, write); outside
 * of all mixes it is that of the nearest one. If the fraction is unknown or no mix was measured,
 * the result is the level's best roof; NaN without a roof. */
double device_mix_bandwidth(const struct device *device, int level, double written);
/* J of a byte or of a FLOP, without the constant power. The energy of a byte is interpolated
 * between mixes, as the time is. If the fraction is unknown, the byte counts as read. The energy of
 * a FLOP is the least among the roofs. NaN without roofs. */
double device_byte_energy(const struct device *device, int level, double written);
double device_flop_energy(const struct device *device, int64_t unit, enum precision precision);
/* W, the least of several measurements; NaN: not measured. */
double device_constant_power(const struct device *device);

/* s between the starts of empty kernels, in a graph or in a stream; NaN without the roof. */
double device_launch_gap(const struct device *device, bool graph);

/* Returns `clock` (s-1), or NaN if it is more than 1 % above the device's highest clock: cycles
 * that were counted over some microseconds can be wrong by a few per cent. */
double device_clock(const struct device *device, double clock);

/* JSON: the fields, and "roofs": [{...}, ...]. The caller owns the object. */
json_t *device_encode(const struct device *device);
enum status device_decode(struct json_text object, struct device *device, struct error *error);
/* As roof_check; STATUS_SYSTEM also for more than ROOF_THEORIES times the device's theory. */
enum status device_check_roof(const struct device *device, const struct roof *roof,
                              struct error *error);
/* STATUS_SYSTEM, with the field's name: no UUID, or numbers that nobody can have measured. */
enum status device_check(const struct device *device, struct error *error);
