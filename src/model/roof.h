/* A roof as measured: what a device does at its best in one respect (its kind, roof_kind.h), and
 * how much that figure is worth. Plain data in SI units, described by a field table (field.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/field.h"
#include "model/roof_kind.h"

/* Alone: the other devices of the node idle. Together: all of them do the same at the same time. */
enum roof_condition { ROOF_ALONE, ROOF_TOGETHER };
extern const char *const roof_condition_name[]; /* "alone", "together", NULL */

/* Proven: counters have seen the work, where it should be and nowhere else. Above-theory and
 * contradicted: an error to look into; such a roof is kept, and is not used. */
enum roof_verdict { ROOF_UNPROVEN, ROOF_PROVEN, ROOF_ABOVE_THEORY, ROOF_CONTRADICTED };
/* Bits from the lowest on, as NVML's nvmlClocksEventReason... has them; ends with NULL. */
extern const char *const throttle_reason_name[];
enum { THROTTLED_BY_POWER = 1 << 2 };
extern const char *const roof_verdict_name[]; /* "unproven", "proven", "above-theory", ... NULL */

struct roof {
    /* Its index is an enum roof_id. A kind that another version measured is kept by its name, and
     * is used for nothing. JSON and NetCDF show the name. */
    struct word kind;
    int64_t condition; /* enum roof_condition */
    /* What won, "4 GiB in blocks of 256 threads"; without a value, why: "not measured: ..." */
    char setting[160];
    /* One of the three: the best of the samples; a time is their median. */
    double bandwidth;   /* byte s-1, read plus written */
    double performance; /* s-1 */
    double time;        /* s */
    double median;      /* of the samples, over the value */
    double mean;        /* all their work in all their time, over the value; of a time: its mean */
    double spread;      /* (slowest - fastest) / median of the samples' times */
    int64_t samples;
    double start_time; /* s since 1970-01-01T00:00:00Z */
    /* of the theory; missing where there is none */
    double nominal_fraction; /* value / theory at the nominal clock */
    /* mean / theory at the mean clock of the samples, which is work for each cycle: under load the
     * clock falls, so that the best sample, or the middle one, may have had another */
    double clock_fraction;
    /* conditions, seen meanwhile */
    double sm_clock;     /* s-1, by the device's own counters */
    double memory_clock; /* s-1 */
    double power;        /* W */
    double temperature;  /* K */
    int64_t throttle_reasons, throttled;
    /* Of compute: the same work, gone on with until the clock has settled. What stands above is the
     * burst. Missing where nobody asked for it. */
    double sustained;       /* s-1, all work of the last windows in all their time */
    double sustained_clock; /* s-1, over these windows */
    double sustained_power; /* W, over these windows */
    double settling_time;   /* s, from the load's begin to the last window's end */
    int64_t settled; /* 1: the clock is free, at the power limit or still; 0: the time ran out */
    /* byte, of a cache's read roof: the largest set that is read at nearly the same rate; missing
     * where nobody asked for it */
    double working_set;
    /* Of the work back to back, by the device's counter of energy; missing where nobody asked. */
    double energy;         /* J of a byte or a FLOP (int8: operation), without constant_power */
    double energy_power;   /* W, all that the device draws in this run */
    double constant_power; /* W, of the device clocked up, where one thread waits */
    double rest_power;     /* W, of the device awake and left alone */
    /* counted / expected, by hardware counters in a run of its own; missing without */
    double flops_ratio;
    double bytes_ratio[LEVEL_COUNT]; /* all over the bytes that the kernel asks for */
    int64_t verdict;                 /* enum roof_verdict */
};
extern const struct field roof_fields[];

/* Everything missing, but kind and condition. */
void roof_init(struct roof *roof, int kind, enum roof_condition condition);
/* The same, with "not measured: WHY" as its setting. time: s since 1970-01-01T00:00:00Z. */
void roof_set_unmeasured(struct roof *roof, int kind, enum roof_condition condition, double time,
                         const char *why);

const struct roof_kind *
roof_kind_of(const struct roof *roof); /* NULL: this version has none such */
const char *roof_name(const struct roof *roof);

/* The one of the three values that its kind has; NaN if it was not measured. */
double roof_value(const struct roof *roof);

/* Of compute: FLOPs in each cycle of the device's clock: the greater of performance x mean /
 * sm_clock, which is all samples of the burst together, and sustained / sustained_clock. NaN
 * without a clock. It does not depend on what power and heat let the clock be. */
double roof_per_cycle(const struct roof *roof);

/* Sets value, median, mean, spread and samples from the times of equal pieces of `work` each:
 * bytes, FLOPs, or how many things took the time. Fewer than one sample: everything stays missing.
 * Sorts seconds[]. */
void roof_set_samples(struct roof *roof, double work, double *seconds, int64_t samples);

/* Takes what was sustained of another measurement of the same roof, and its energy. */
void roof_sustain(struct roof *roof, const struct roof *sustained);

/* Sets the fractions, once the samples are set, from the theory at the nominal clock and the clock
 * that was measured: NaN where either is not known. */
void roof_set_theory(struct roof *roof, double theory, double nominal_clock, double clock);

/* Sets the verdict from fractions and ratios. Theory may be exceeded by 1 %, the uncertainty of the
 * clock. A memory level's bytes must be seen there, within 3 %, and at most 5 % of them farther
 * away; shared memory's, at most 5 % in any level; of FLOPs 1 % may be missing, or 5 % too many. */
void roof_judge(struct roof *roof);

/* STATUS_SYSTEM, with the field's name: it has no kind or condition, or what nobody measured. */
enum status roof_check(const struct roof *roof, struct error *error);

/* Not missing, and neither above theory nor contradicted. */
bool roof_usable(const struct roof *roof);
