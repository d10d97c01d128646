/* A measured roof: the best rate of a device in one respect (its kind, roof_kind.h), with evidence.
 * Plain data in SI units with a field table (field.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/field.h"
#include "model/roof_kind.h"

/* Alone: other devices of the node idle. Together: all devices do the same at the same time. */
enum roof_condition { ROOF_ALONE, ROOF_TOGETHER };
extern const char *const roof_condition_name[]; /* "alone", "together", NULL */

/* Proven: counters saw the work at its level and nowhere else. Above-theory and contradicted roofs
 * are errors to investigate: they are kept and not used. */
enum roof_verdict { ROOF_UNPROVEN, ROOF_PROVEN, ROOF_ABOVE_THEORY, ROOF_CONTRADICTED };
/* Bits from the lowest on, as in NVML's nvmlClocksEventReason...; ends with NULL. */
extern const char *const throttle_reason_name[];
enum { THROTTLED_BY_POWER = 1 << 2 };
extern const char *const roof_verdict_name[]; /* "unproven", "proven", "above-theory", ... NULL */

/* Beyond this multiple of theory a value is corrupt, not a measurement to investigate. */
#define ROOF_THEORIES 10

struct roof {
    /* enum roof_id. An unknown kind of another version keeps its name and is not used. JSON and
     * NetCDF show the name. */
    struct word kind;
    int64_t condition; /* enum roof_condition */
    /* Fastest variant, "4 GiB in blocks of 256 threads"; without a value, "not measured: WHY". */
    char setting[160];
    /* The value, in one of three members: the best sample; for a time the median. */
    double bandwidth;   /* byte s-1, read plus written */
    double performance; /* s-1 */
    double time;        /* s */
    double median;      /* median of the samples over the value */
    double mean;   /* total work over total time, over the value; for a time: mean over the value */
    double spread; /* (slowest - fastest) / median of the sample times */
    int64_t samples;
    double start_time; /* s since 1970-01-01T00:00:00Z */
    /* comparison with theory; missing without a theory */
    double nominal_fraction; /* value / theory at the nominal clock */
    /* mean rate over theory at the mean clock of the samples: work per cycle. The clock falls under
     * load, so the best or median sample may have had another clock. */
    double clock_fraction;
    /* conditions during the samples */
    double sm_clock;     /* s-1, by the device's counters */
    double memory_clock; /* s-1 */
    double temperature;  /* K */
    int64_t throttle_reasons, throttled;
    /* Compute: the same work continued until the clock has settled; the value above is the burst.
     * Missing unless requested. */
    double sustained;       /* s-1, total work of the last windows over their time */
    double sustained_clock; /* s-1, over these windows */
    double sustained_power; /* W, over these windows */
    double settling_time;   /* s, from the start of the load to the end of the last window */
    /* 1: the clock is free, power-limited or constant; 0: not within the time limit */
    int64_t settled;
    /* byte, read roof of a GPU's l2 (if requested) and of a CPU's l3: largest set read at nearly
     * the same rate */
    double working_set;
    /* Energy run: repeats the work back to back, and reads the device's energy counter; missing
     * unless requested. */
    double energy;         /* J per byte or FLOP (int8: operation), without constant_power */
    double energy_power;   /* W, total power draw */
    double constant_power; /* W, of the device at full clock with one waiting thread */
    double rest_power;     /* W, of the device awake and idle */
    /* counted / expected by hardware counters in a separate run; missing without counters */
    double flops_ratio;
    double bytes_ratio[LEVEL_COUNT]; /* counted bytes at the level over the bytes of the kernel */
    int64_t verdict;                 /* enum roof_verdict */
};
extern const struct field roof_fields[];

/* Sets kind and condition, all else missing. */
void roof_init(struct roof *roof, int kind, enum roof_condition condition);
/* Sets kind, condition, date (s since 1970-01-01T00:00:00Z) and the setting "not measured: WHY". */
void roof_set_unmeasured(struct roof *roof, int kind, enum roof_condition condition, double time,
                         const char *why);

const struct roof_kind *roof_kind_of(const struct roof *roof); /* NULL: unknown to this version */
const char *roof_name(const struct roof *roof);

/* The value for its kind; NaN: not measured. */
double roof_value(const struct roof *roof);

/* Compute: FLOPs per cycle of the device's clock: the larger of performance x mean / sm_clock
 * (burst) and sustained / sustained_clock. NaN without a clock. Independent of the clock that power
 * and heat allow. */
double roof_per_cycle(const struct roof *roof);

/* Sets value, median, mean, spread and samples from the times of equal pieces of `work`: bytes,
 * FLOPs, or number of events. Without samples everything stays missing. Sorts seconds[]. */
void roof_set_samples(struct roof *roof, double work, double *seconds, int64_t samples);

/* Copies sustained rate and energy of another measurement of the same roof. */
void roof_sustain(struct roof *roof, const struct roof *sustained);

/* Sets the fractions of a roof with samples, from the theory at the nominal clock and the measured
 * clock; NaN if either is unknown. */
void roof_set_theory(struct roof *roof, double theory, double nominal_clock, double clock);

/* Sets the verdict from fractions and ratios. Tolerances: theory + 1 % (uncertainty of the clock);
 * bytes of a memory level within 3 % (of latencies -3 % to +10 %), at most 5 % of them at farther
 * levels; bytes of shared memory at most 5 % at any level; FLOPs -1 % to +5 %. */
void roof_judge(struct roof *roof);

/* STATUS_SYSTEM, with the field's name: no kind or condition, a value without verdict, or numbers
 * that nobody can have measured. */
enum status roof_check(const struct roof *roof, struct error *error);

/* How much longer a sample takes on average than the best one, as a share. 0 for times, whose value
 * is a median, and for transfers, which devices share. Beyond ROOF_DISTURBED other work disturbed
 * the samples, and the best one may have been disturbed, too. */
#define ROOF_DISTURBED 0.2
double roof_disturbance(const struct roof *roof);

/* True unless missing, above theory or contradicted. */
bool roof_usable(const struct roof *roof);
