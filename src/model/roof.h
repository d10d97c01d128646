/* A measured roof: the best rate of a device in one respect, with evidence. roof_kind.h lists the
 * kinds. Plain data in SI units with a field table (field.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/field.h"
#include "model/roof_kind.h"

/* Alone: the other devices of the node are idle. Together: all devices measure this roof at the
 * same time. */
enum roof_condition { ROOF_ALONE, ROOF_TOGETHER };
extern const char *const roof_condition_name[]; /* "alone", "together", NULL */

/* Proven: counters saw the expected work and no other. Above-theory and contradicted roofs are
 * errors to investigate; they are stored, but rows are not compared with them. */
enum roof_verdict { ROOF_UNPROVEN, ROOF_PROVEN, ROOF_ABOVE_THEORY, ROOF_CONTRADICTED };
/* Names of the bits of NVML's nvmlClocksEventReason..., from the lowest bit on; ends with NULL. */
extern const char *const throttle_reason_name[];
enum { THROTTLED_BY_POWER = 1 << 2 };
extern const char *const roof_verdict_name[]; /* "unproven", "proven", "above-theory", ... NULL */

/* Beyond this multiple of theory a value is corrupt, not a measurement to investigate. */
#define ROOF_THEORIES 10

struct roof {
    struct word kind;  /* enum roof_id; rows are not compared with kinds of other versions */
    int64_t condition; /* enum roof_condition */
    char setting[160]; /* fastest variant, "4 GiB, 256 threads"; or "not measured: WHY" */
    /* The value is in one of three members: the best sample, or for a time the median. */
    double bandwidth;   /* byte s-1, read plus written */
    double performance; /* s-1, before the clock settles */
    double time;        /* s */
    double median;      /* median of the samples / value */
    double mean;        /* rate over all samples (or mean of a time) / value */
    double spread;      /* (slowest - fastest) / median of the sample times */
    int64_t samples;
    double start_time; /* s since 1970-01-01T00:00:00Z */
    /* comparison with theory; missing without a theory */
    double nominal_fraction; /* value / theory at the nominal clock */
    /* rate over all samples / theory at their mean clock. (The clock falls under load, so the best
     * sample may have had a different clock.) */
    double clock_fraction;
    /* conditions during the samples */
    double sm_clock;     /* s-1, by the device's counters */
    double memory_clock; /* s-1 */
    double temperature;  /* K */
    int64_t throttle_reasons, throttled;
    /* compute roofs, if requested: the work has run until the clock has settled */
    double sustained;       /* s-1, total work of the last windows / their time */
    double sustained_clock; /* s-1, over the last windows */
    double sustained_power; /* W, over the last windows */
    double settling_time;   /* s, from the start of the load to the end of the last window */
    /* 1: the clock is not limited, limited by power, or constant; 0: none of these */
    int64_t settled;
    /* byte, largest set that is read at nearly the roof's rate: of the read roofs of a GPU's l2 (if
     * requested) and of a CPU's l3 */
    double working_set;
    /* energy run, if requested: the work is repeated back to back while the device counts energy */
    double energy;         /* J per byte or FLOP (int8: operation), without constant_power */
    double energy_power;   /* W, total power draw */
    double constant_power; /* W, of the device at full clock, with one thread that waits */
    double rest_power;     /* W, of the device awake and idle */
    /* counted work / expected work, in a separate run; missing without hardware counters */
    double flops_ratio;
    double bytes_ratio[LEVEL_COUNT]; /* counted bytes at the level / bytes of the kernel */
    int64_t verdict;                 /* enum roof_verdict */
};
extern const struct field roof_fields[];

/* Sets kind and condition; all other members become missing. */
void roof_init(struct roof *roof, int kind, enum roof_condition condition);
/* Sets kind, condition, date (s since 1970-01-01T00:00:00Z) and the setting "not measured: WHY". */
void roof_set_unmeasured(struct roof *roof, int kind, enum roof_condition condition, double time,
                         const char *why);

const struct roof_kind *roof_kind_of(const struct roof *roof); /* NULL: unknown to this version */
const char *roof_name(const struct roof *roof);

/* The value: bandwidth, performance or time, by the kind of the roof; NaN: not measured. */
double roof_value(const struct roof *roof);

/* FLOPs per clock cycle of a compute roof, which do not depend on power and heat: the larger of
 * performance x mean / sm_clock (burst) and sustained / sustained_clock. NaN without a clock. */
double roof_per_cycle(const struct roof *roof);

/* Sets value, median, mean, spread and samples from seconds[], the times of the samples. Each
 * sample did `work`: bytes, FLOPs, or a number of events. Without samples, all stay missing. Sorts
 * seconds[]. */
void roof_set_samples(struct roof *roof, double work, double *seconds, int64_t samples);

/* Copies sustained rate and energy of another measurement of the same roof. */
void roof_sustain(struct roof *roof, const struct roof *sustained);

/* Sets nominal_fraction and clock_fraction of a roof with samples. `theory` is the theoretical
 * value at `nominal_clock`, `clock` the measured clock. An unknown input makes a fraction NaN. */
void roof_set_theory(struct roof *roof, double theory, double nominal_clock, double clock);

/* Sets the verdict from fractions and ratios. Tolerances: 1 % above theory, because the clock is
 * uncertain; bytes at the roof's level within 3 % (latency: -3 % to +10 %), and at farther levels
 * at most 5 % of these bytes (shared memory: at any level); FLOPs -1 % to +5 %. */
void roof_judge(struct roof *roof);

/* STATUS_SYSTEM, with the name of the field: the roof has no kind, no condition, a value without a
 * verdict, or a number that nobody can have measured. */
enum status roof_check(const struct roof *roof, struct error *error);

/* Mean time of a sample divided by the time of the best sample, minus 1. 0 for times, whose value
 * is a median, and for transfers, because devices share the bus. Beyond ROOF_DISTURBED other work
 * disturbed the samples, probably also the best one. */
#define ROOF_DISTURBED 0.2
double roof_disturbance(const struct roof *roof);

/* False: the value is missing, above theory or contradicted. */
bool roof_usable(const struct roof *roof);
