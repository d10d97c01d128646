#include "model/roof.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const unit_name[] = {"vector", "tensor", NULL};
const char *const roof_condition_name[] = {"alone", "together", NULL};
const char *const roof_verdict_name[] = {"unproven", "proven", "above-theory", "contradicted",
                                         NULL};
static const char *const no_yes[] = {"no", "yes", NULL};

/* clang-format off */
#define MEMORY(level_name, level)                                                                  \
    {level_name " read", ROOF_BANDWIDTH, level, 0, 0, "loads"},                                    \
    {level_name " write", ROOF_BANDWIDTH, level, 0, 0, "stores"},                                  \
    {level_name " copy", ROOF_BANDWIDTH, level, 0, 0, "a = b"},                                    \
    {level_name " triad", ROOF_BANDWIDTH, level, 0, 0, "a = b + s c"}
#define PATH(name, help) {name, ROOF_BANDWIDTH, LEVEL_COUNT, 0, 0, help}
#define VECTOR(name, precision)                                                                    \
    {name " vector", ROOF_COMPUTE, LEVEL_COUNT, precision, UNIT_VECTOR,                            \
     "chains of multiply-adds in registers"}
#define TENSOR(name, precision, way, help)                                                         \
    {name " tensor " way, ROOF_COMPUTE, LEVEL_COUNT, precision, UNIT_TENSOR, help}
#define MMA(name, precision)                                                                       \
    TENSOR(name, precision, "mma", "matrix multiply-adds of a warp, from registers")
#define WGMMA(name, precision)                                                                     \
    TENSOR(name, precision, "wgmma", "matrix multiply-adds of a warpgroup, from shared memory")
#define LIBRARY(name, precision)                                                                   \
    TENSOR(name, precision, "library", "the library's best large matrix product")
#define TIME(name, help) {name, ROOF_TIME, LEVEL_COUNT, 0, 0, help}

const struct roof_kind roof_kinds[ROOF_KINDS] = {
    MEMORY("dram", LEVEL_DRAM),
    MEMORY("l3", LEVEL_L3),
    MEMORY("l2", LEVEL_L2),
    MEMORY("l1", LEVEL_L1),
    PATH("shared read", "loads from the multiprocessors' shared memory"),
    PATH("host to device", "copy engine, from pinned memory"),
    PATH("device to host", "copy engine, to pinned memory"),
    PATH("device to device", "copy engine, to the next device of the node"),
    VECTOR("fp64", PRECISION_FP64),
    VECTOR("fp32", PRECISION_FP32),
    VECTOR("fp16", PRECISION_FP16),
    VECTOR("bf16", PRECISION_BF16),
    MMA("fp64", PRECISION_FP64),
    MMA("tf32", PRECISION_TF32),
    MMA("fp16", PRECISION_FP16),
    MMA("bf16", PRECISION_BF16),
    MMA("fp8", PRECISION_FP8),
    MMA("int8", PRECISION_INT8),
    WGMMA("tf32", PRECISION_TF32),
    WGMMA("fp16", PRECISION_FP16),
    WGMMA("bf16", PRECISION_BF16),
    WGMMA("fp8", PRECISION_FP8),
    WGMMA("int8", PRECISION_INT8),
    LIBRARY("fp64", PRECISION_FP64),
    LIBRARY("tf32", PRECISION_TF32),
    LIBRARY("fp16", PRECISION_FP16),
    LIBRARY("bf16", PRECISION_BF16),
    LIBRARY("fp8", PRECISION_FP8),
    LIBRARY("int8", PRECISION_INT8),
    TIME("launch host", "host time of an asynchronous launch"),
    TIME("launch latency", "from the launch of an empty kernel to the host's knowledge of its end"),
    TIME("launch gap", "from one empty kernel (CPU: OpenMP region) to the next, all queued"),
    TIME("launch gap graph", "from one empty kernel to the next that depends on it, in a graph"),
};
/* clang-format on */

#define R(member, type, units, long_name) FIELD(struct roof, member, type, units, long_name)
const struct field roof_fields[] = {
    R(name, FIELD_TEXT, "1", "kind of roof"),
    FIELD_OF_FLAGS(struct roof, condition, roof_condition_name,
                   "what the other devices of the node did meanwhile"),
    R(setting, FIELD_TEXT, "1", "setting that won; without a value, why there is none"),
    R(bandwidth, FIELD_DOUBLE, "byte s-1", "bandwidth, read and written bytes, best sample"),
    R(performance, FIELD_DOUBLE, "s-1", "FLOP/s (int8: operations), best sample"),
    R(time, FIELD_DOUBLE, "s", "time, median of the samples"),
    R(median, FIELD_DOUBLE, "1", "median of the samples over the value"),
    R(mean, FIELD_DOUBLE, "1", "all samples together over the value"),
    R(spread, FIELD_DOUBLE, "1", "slowest minus fastest sample, over the median of their times"),
    R(samples, FIELD_INTEGER, "1", "samples"),
    R(start_time, FIELD_DOUBLE, "seconds since 1970-01-01T00:00:00Z", "start of the samples"),
    R(nominal_fraction, FIELD_DOUBLE, "1", "value over theory at the nominal clock"),
    R(clock_fraction, FIELD_DOUBLE, "1",
      "all samples together over theory at the mean clock measured meanwhile"),
    R(sm_clock, FIELD_DOUBLE, "s-1", "multiprocessor or core clock meanwhile"),
    R(memory_clock, FIELD_DOUBLE, "s-1", "memory clock meanwhile"),
    R(power, FIELD_DOUBLE, "W", "power draw meanwhile"),
    R(temperature, FIELD_DOUBLE, "K", "temperature meanwhile"),
    R(throttle_reasons, FIELD_INTEGER, "1", "clock event reasons meanwhile, NVML bit mask"),
    FIELD_OF_FLAGS(struct roof, throttled, no_yes, "power or heat held the clock down"),
    R(flops_ratio, FIELD_DOUBLE, "1", "counted over expected FLOPs"),
    R(bytes_ratio, FIELD_LEVELS, "1", "bytes counted at a level over bytes asked for"),
    FIELD_OF_FLAGS(struct roof, verdict, roof_verdict_name, "what theory and counters say of it"),
    {0},
};

int roof_kind_find(const char *name)
{
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (strcmp(roof_kinds[kind].name, name) == 0)
            return kind;
    return -1;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

bool roof_requested(const struct roof_request *request, int kind)
{
    const struct roof_kind *info = &roof_kinds[kind];
    if (info->measure == ROOF_COMPUTE)
        return request->compute[info->precision];
    if (info->measure == ROOF_TIME)
        return request->launch;
    if (info->level < LEVEL_COUNT)
        return request->memory[info->level];
    return starts_with(info->name, "shared") ? request->memory[LEVEL_L1] : request->transfer;
}

void roof_init(struct roof *roof, int kind, enum roof_condition condition)
{
    memset(roof, 0, sizeof *roof);
    fields_clear(roof_fields, roof);
    snprintf(roof->name, sizeof roof->name, "%s", roof_kinds[kind].name);
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

/* Where the value of this measure lies. */
static double *value_of(struct roof *roof, enum roof_measure measure)
{
    double *const values[] = {
        [ROOF_BANDWIDTH] = &roof->bandwidth,
        [ROOF_COMPUTE] = &roof->performance,
        [ROOF_TIME] = &roof->time,
    };
    return values[measure];
}

double roof_value(const struct roof *roof)
{
    struct roof copy = *roof;
    int kind = roof_kind_find(roof->name);
    return kind < 0 ? NAN : *value_of(&copy, roof_kinds[kind].measure);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void roof_set_samples(struct roof *roof, double work, double *seconds, int64_t samples)
{
    int kind = roof_kind_find(roof->name);
    if (kind < 0 || samples < 1)
        return;
    qsort(seconds, (size_t)samples, sizeof *seconds, compare);
    double fastest = seconds[0], slowest = seconds[samples - 1];
    double median = 0.5 * (seconds[(samples - 1) / 2] + seconds[samples / 2]);
    double mean = 0.0;
    for (int64_t i = 0; i < samples; ++i)
        mean += seconds[i] / (double)samples;
    bool time = roof_kinds[kind].measure == ROOF_TIME;
    *value_of(roof, roof_kinds[kind].measure) = time ? median / work : work / fastest;
    roof->median = time ? 1.0 : fastest / median;
    roof->mean = time ? mean / median : fastest / mean;
    roof->spread = (slowest - fastest) / median;
    roof->samples = samples;
}

void roof_set_theory(struct roof *roof, double theory, double nominal_clock, double clock)
{
    roof->nominal_fraction = roof_value(roof) / theory;
    roof->clock_fraction = roof->mean * roof->nominal_fraction * nominal_clock / clock;
}

/* -1: contradicted, 0: the counters say nothing, 1: as it should be. */
static int evidence_of_bytes(const struct roof *roof, enum memory_level own)
{
    const double wrong = 0.03, astray = 0.05;
    int seen = 0;
    for (int level = LEVEL_DRAM; level < LEVEL_COUNT && level <= (int)own; ++level) {
        double ratio = roof->bytes_ratio[level];
        bool is_own = level == (int)own;
        if (isnan(ratio))
            continue;
        if (is_own ? fabs(ratio - 1.0) > wrong : ratio > astray)
            return -1;
        seen += is_own || own == LEVEL_COUNT;
    }
    return seen > 0;
}

/* A library's tiles may stand out over the matrix: then more is done than asked for, and the value
 * is less than what the unit did. */
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
    int kind = roof_kind_find(roof->name), evidence = 0;
    double fraction = isnan(roof->clock_fraction) ? roof->nominal_fraction : roof->clock_fraction;
    roof->verdict = ROOF_UNPROVEN;
    if (kind < 0)
        return;
    if (roof_kinds[kind].measure == ROOF_BANDWIDTH)
        evidence = evidence_of_bytes(roof, roof_kinds[kind].level);
    else if (roof_kinds[kind].measure == ROOF_COMPUTE)
        evidence = evidence_of_flops(roof);
    if (fraction > most)
        roof->verdict = ROOF_ABOVE_THEORY;
    else if (evidence != 0)
        roof->verdict = evidence > 0 ? ROOF_PROVEN : ROOF_CONTRADICTED;
}

bool roof_usable(const struct roof *roof)
{
    return !isnan(roof_value(roof)) && roof->verdict != ROOF_ABOVE_THEORY &&
           roof->verdict != ROOF_CONTRADICTED;
}
