/* A roof: what a device does at its best in one respect, and how much that figure is worth.
 *
 * The kinds of roofs are one const table, which ranks and workers share. A measured roof is plain
 * data in SI units, described by a field table (field.h). */
#ifndef ROOFSWEEP_ROOF_H
#define ROOFSWEEP_ROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "model/field.h"
#include "model/workload.h"

/* What kind of figure it is: bytes read plus written per second, FLOPs per second (int8:
 * operations), or the seconds of one thing. */
enum roof_measure { ROOF_BANDWIDTH, ROOF_COMPUTE, ROOF_TIME };

/* Which unit of the device computes. */
enum unit { UNIT_VECTOR, UNIT_TENSOR };
extern const char *const unit_name[]; /* "vector", "tensor", NULL */

struct roof_kind {
    const char *name; /* unique, e.g. "dram triad" */
    enum roof_measure measure;
    enum memory_level level;  /* of ROOF_BANDWIDTH; LEVEL_COUNT: none of the model's levels */
    enum precision precision; /* of ROOF_COMPUTE, as `unit` */
    enum unit unit;
    const char *help; /* one line: what is measured */
};
enum { ROOF_KINDS = 45 };
extern const struct roof_kind roof_kinds[ROOF_KINDS];
int roof_kind_find(const char *name); /* index into roof_kinds, or -1 */

/* Alone: the other devices of the node idle. Together: all of them do the same at the same time. */
enum roof_condition { ROOF_ALONE, ROOF_TOGETHER };
extern const char *const roof_condition_name[]; /* "alone", "together", NULL */

/* Which roofs to measure, and under which conditions; a device measures those of them that it has.
 * One without neighbours is measured alone, whichever condition is wanted. */
struct roof_request {
    bool memory[LEVEL_COUNT]; /* with l1, shared memory too */
    bool compute[PRECISION_COUNT];
    bool launch;
    bool transfer;     /* between host and device, and from device to device */
    bool condition[2]; /* by enum roof_condition */
};
bool roof_requested(const struct roof_request *request, int kind);

/* Proven: counters have seen the work, where it should be and nowhere else. Above-theory and
 * contradicted: an error to look into; such a roof is kept, and is not used. */
enum roof_verdict { ROOF_UNPROVEN, ROOF_PROVEN, ROOF_ABOVE_THEORY, ROOF_CONTRADICTED };
extern const char *const roof_verdict_name[]; /* "unproven", "proven", "above-theory", ... NULL */

struct roof {
    char name[32];     /* of its kind */
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
    /* counted / expected, by hardware counters in a run of its own; missing without */
    double flops_ratio;
    double bytes_ratio[LEVEL_COUNT]; /* all over the bytes that the kernel asks for */
    int64_t verdict;                 /* enum roof_verdict */
};
extern const struct field roof_fields[];

/* Everything missing, but name and condition. */
void roof_init(struct roof *roof, int kind, enum roof_condition condition);
/* The same, with "not measured: WHY" as its setting. time: s since 1970-01-01T00:00:00Z. */
void roof_set_unmeasured(struct roof *roof, int kind, enum roof_condition condition, double time,
                         const char *why);

/* The one of the three values that its kind has; NaN if it was not measured. */
double roof_value(const struct roof *roof);

/* Sets value, median, mean, spread and samples from the times of equal pieces of `work` each: bytes,
 * FLOPs, or how many things took the time. Fewer than one sample: everything stays missing. Sorts
 * seconds[]. */
void roof_set_samples(struct roof *roof, double work, double *seconds, int64_t samples);

/* Sets the fractions, once the samples are set, from the theory at the nominal clock and the clock
 * that was measured: NaN where either is not known. */
void roof_set_theory(struct roof *roof, double theory, double nominal_clock, double clock);

/* Sets the verdict from fractions and ratios. Theory may be exceeded by 1 %, the uncertainty of the
 * clock. A memory level's bytes must be seen there, within 3 %, and at most 5 % of them farther
 * away; shared memory's, at most 5 % in any level; of FLOPs 1 % may be missing, or 5 % too many. */
void roof_judge(struct roof *roof);

/* Not missing, and neither above theory nor contradicted. */
bool roof_usable(const struct roof *roof);

#endif
