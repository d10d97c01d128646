#include "model/roof.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

const char *const roof_condition_name[] = {"alone", "together", NULL};
const char *const roof_verdict_name[] = {"unproven", "proven", "above-theory", "contradicted",
                                         NULL};
/* clang-format off */
const char *const throttle_reason_name[] = {
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost",
    "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown",
    "display_clock_setting", NULL};
/* clang-format on */

#define R(member, type, units, ...) FIELD(struct roof, member, type, units, __VA_ARGS__)
#define F(member, flags, ...)       FIELD_OF_FLAGS(struct roof, member, flags, __VA_ARGS__)
const struct field roof_fields[] = {
    FIELD_OF_WORDS(struct roof, kind, "name", roof_kind_name, "kind of roof", ALWAYS),
    F(condition, roof_condition_name, "what the other devices of the node did meanwhile",
      .comment = "alone: they idle; together: all of a kind do the same at the same time", ALWAYS),
    R(setting, FIELD_TEXT, "1", "setting that won; without a value, why there is none", ALWAYS),
    R(bandwidth, FIELD_DOUBLE, "byte s-1", "bandwidth, read and written bytes, best sample",
      FIELD_RATE, ALWAYS),
    R(performance, FIELD_DOUBLE, "s-1", "FLOP/s (int8: operations), best sample",
      .comment = "the burst: before power or heat bring the clock down", FIELD_RATE, ALWAYS),
    FIELD_OF_ITERATION(struct roof, time, "time, median of the samples", ALWAYS),
    R(median, FIELD_DOUBLE, "1", "median of the samples, over the roof's value", JSON_ONLY),
    R(mean, FIELD_DOUBLE, "1", "all samples together, over the roof's value"),
    R(spread, FIELD_DOUBLE, "1", "slowest minus fastest sample, over the median of their times"),
    R(samples, FIELD_INTEGER, "1", "samples", JSON_ONLY),
    FIELD_OF_DATE(struct roof, start_time, "start of the samples"),
    R(nominal_fraction, FIELD_DOUBLE, "1", "roof's value over theory at the nominal clock",
      .most = ROOF_THEORIES),
    R(clock_fraction, FIELD_DOUBLE, "1",
      "all samples together over theory at the mean clock measured meanwhile",
      .most = ROOF_THEORIES),
    R(sm_clock, FIELD_DOUBLE, "s-1", "multiprocessor or core clock meanwhile"),
    R(memory_clock, FIELD_DOUBLE, "s-1", "memory clock meanwhile", JSON_ONLY),
    R(temperature, FIELD_DOUBLE, "K", "temperature meanwhile", JSON_ONLY),
    FIELD_OF_BITS(struct roof, throttle_reasons, throttle_reason_name,
                  "clock event reasons meanwhile, as NVML tells", JSON_ONLY),
    F(throttled, field_no_yes, "the load held the clock down", JSON_ONLY),
    R(sustained, FIELD_DOUBLE, "s-1", "FLOP/s (int8: operations) once the clock has settled",
      .comment = "the same work, gone on with until nothing limits it, the power limit is kept "
                 "on the average or the clock has held still for 0.5 s; after 2 s as it is"),
    R(sustained_clock, FIELD_DOUBLE, "s-1", "multiprocessor clock once it has settled"),
    R(sustained_power, FIELD_DOUBLE, "W", "power draw once the clock has settled", JSON_ONLY),
    R(settling_time, FIELD_DOUBLE, "s", "time under load until the clock has settled", JSON_ONLY),
    F(settled, field_no_yes,
      "the clock has settled: nothing limits it, or power does on the average, or it held still"),
    R(working_set, FIELD_DOUBLE, "byte", "largest set that is read at nearly the roof's rate",
      .comment = "of the read roof of a GPU's l2: at nine tenths of it or more; of a CPU's l3: at "
                 "five sixths"),
    R(energy, FIELD_DOUBLE, "J",
      "energy of one byte or FLOP (int8: operation), beyond the constant power",
      .comment = "energy_power - constant_power, over bytes or FLOPs in a second of the same run"),
    R(energy_power, FIELD_DOUBLE, "W", "power draw while the roof's work runs back to back"),
    R(constant_power, FIELD_DOUBLE, "W", "power draw clocked up, while one thread waits"),
    R(rest_power, FIELD_DOUBLE, "W", "power draw of the device awake without work"),
    R(flops_ratio, FIELD_DOUBLE, "1", "counted over expected FLOPs",
      .comment = "in a run of its own"),
    R(bytes_ratio, FIELD_LEVELS, "1", "bytes counted at a level over bytes asked for",
      .comment = "in a run of its own"),
    F(verdict, roof_verdict_name, "what theory and counters say of the roof",
      .origin = FIELD_DERIVED,
      .comment = "proven: counters saw the work where it should be and nowhere else; "
                 "above-theory (by 1 % at the clock measured meanwhile) and contradicted: an "
                 "error to look into, not used as a peak",
      ALWAYS),
    {0},
};

void roof_init(struct roof *roof, int kind, enum roof_condition condition)
{
    memset(roof, 0, sizeof *roof);
    fields_clear(roof_fields, roof);
    roof->kind.index = kind;
    roof->condition = condition;
    roof->verdict = ROOF_UNPROVEN;
}

void roof_set_unmeasured(struct roof *roof, int kind, enum roof_condition condition, double time,
                         const char *why)
{
    static const char text[] = "not measured: ";
    roof_init(roof, kind, condition);
    roof->start_time = time;
    snprintf(roof->setting, sizeof roof->setting, "%s%.*s", text,
             (int)(sizeof roof->setting - sizeof text), why);
}

const struct roof_kind *roof_kind_of(const struct roof *roof)
{
    return roof_kind_name(roof->kind.index) ? &roof_kinds[roof->kind.index] : NULL;
}

const char *roof_name(const struct roof *roof)
{
    return word_text(&roof->kind, roof_kind_name);
}

double roof_value(const struct roof *roof)
{
    const struct roof_kind *kind = roof_kind_of(roof);
    const double values[] = {roof->bandwidth, roof->performance, roof->time};
    return kind ? values[kind->measure] : NAN;
}

double roof_per_cycle(const struct roof *roof)
{
    double burst = roof->performance * roof->mean / roof->sm_clock;
    return fmax(burst, roof->sustained / roof->sustained_clock); /* fmax ignores NaN */
}

void roof_set_samples(struct roof *roof, double work, double *seconds, int64_t samples)
{
    const struct roof_kind *kind = roof_kind_of(roof);
    if (!kind || samples < 1)
        return;
    double median = stats_sort(seconds, (size_t)samples);
    double fastest = seconds[0], slowest = seconds[samples - 1];
    double mean = 0.0;
    for (int64_t i = 0; i < samples; ++i)
        mean += seconds[i] / (double)samples;
    bool time = kind->measure == ROOF_TIME;
    *(time                            ? &roof->time
      : kind->measure == ROOF_COMPUTE ? &roof->performance
                                      : &roof->bandwidth) = time ? median / work : work / fastest;
    roof->median = time ? 1.0 : fastest / median;
    roof->mean = time ? mean / median : fastest / mean;
    roof->spread = (slowest - fastest) / median;
    roof->samples = samples;
}

void roof_sustain(struct roof *roof, const struct roof *sustained)
{
    roof->sustained = sustained->sustained;
    roof->sustained_clock = sustained->sustained_clock;
    roof->sustained_power = sustained->sustained_power;
    roof->settling_time = sustained->settling_time;
    roof->settled = sustained->settled;
    roof->energy = sustained->energy;
    roof->energy_power = sustained->energy_power;
    roof->constant_power = sustained->constant_power;
    roof->rest_power = sustained->rest_power;
}

void roof_set_theory(struct roof *roof, double theory, double nominal_clock, double clock)
{
    roof->nominal_fraction = roof_value(roof) / theory;
    roof->clock_fraction = roof->mean * roof->nominal_fraction * nominal_clock / clock;
}

/* -1: contradicted, 0: unknown, 1: confirmed. */
static int evidence_of_bytes(const struct roof *roof, enum memory_level own)
{
    /* A chain moves little: reads by other work were up to 3.3 % of its bytes. */
    const double wrong = 0.03, astray = 0.05,
                 more = roof_kind_of(roof)->pattern == PATTERN_CHASE ? 0.1 : wrong;
    int seen = 0;
    for (int level = LEVEL_DRAM; level < LEVEL_COUNT && level <= (int)own; ++level) {
        double ratio = roof->bytes_ratio[level];
        bool is_own = level == (int)own;
        if (isnan(ratio))
            continue;
        if (is_own ? ratio < 1.0 - wrong || ratio > 1.0 + more : ratio > astray)
            return -1;
        seen += is_own || own == LEVEL_COUNT;
    }
    return seen > 0;
}

/* The tiles of a library may exceed the matrix: the unit then does more FLOPs than the value
 * counts. */
static int evidence_of_flops(const struct roof *roof)
{
    const double fewer = 0.01, more = 0.05;
    if (isnan(roof->flops_ratio))
        return 0;
    return roof->flops_ratio >= 1.0 - fewer && roof->flops_ratio <= 1.0 + more ? 1 : -1;
}

void roof_judge(struct roof *roof)
{
    const double most = 1.01;
    const struct roof_kind *kind = roof_kind_of(roof);
    int evidence = 0;
    double fraction = isnan(roof->clock_fraction) ? roof->nominal_fraction : roof->clock_fraction;
    roof->verdict = ROOF_UNPROVEN;
    if (!kind)
        return;
    if (kind->measure == ROOF_BANDWIDTH || kind->pattern == PATTERN_CHASE)
        evidence = evidence_of_bytes(roof, kind->level);
    else if (kind->measure == ROOF_COMPUTE)
        evidence = evidence_of_flops(roof);
    if (fraction > most)
        roof->verdict = ROOF_ABOVE_THEORY;
    else if (evidence != 0)
        roof->verdict = evidence > 0 ? ROOF_PROVEN : ROOF_CONTRADICTED;
}

enum status roof_check(const struct roof *roof, struct error *error)
{
    if (roof->kind.index == FIELD_MISSING || roof->condition == FIELD_MISSING)
        return error_set(error, STATUS_SYSTEM, "a roof without '%s'",
                         roof->condition == FIELD_MISSING ? "condition" : "name");
    if (!isnan(roof_value(roof)) && roof->verdict == FIELD_MISSING)
        return error_set(error, STATUS_SYSTEM, "a roof with a value, but without 'verdict'");
    return fields_check(roof_fields, roof, error);
}

double roof_disturbance(const struct roof *roof)
{
    const struct roof_kind *kind = roof_kind_of(roof);
    const bool judged = kind && (kind->measure == ROOF_COMPUTE ||
                                 (kind->measure == ROOF_BANDWIDTH && kind->level < LEVEL_COUNT));
    return judged && roof->mean > 0 ? 1 / roof->mean - 1 : 0;
}

bool roof_usable(const struct roof *roof)
{
    return !isnan(roof_value(roof)) && roof->verdict != ROOF_ABOVE_THEORY &&
           roof->verdict != ROOF_CONTRADICTED;
}
