#include "results/derive.h"

#include <math.h>
#include <string.h>

#include "model/device_kind.h"
#include "results/compute_roof.h"
#include "results/level_time.h"

const char *const source_name[] = {"counted", "modelled", "none", NULL};

/* Only a cache that all cores share can hold the footprint as a whole: a device's last one. (The l1
 * of a GPU and the l1 and l2 of a CPU with an l3 are many small ones.) */
static enum memory_level shared_level(const struct record *record, const struct device *device)
{
    enum memory_level cache = isnan(device->cache[LEVEL_L3]) ? LEVEL_L2 : LEVEL_L3;
    if (isnan(record->footprint)) /* a program that states its bytes alone */
        return isnan(record->bytes_model) ? LEVEL_COUNT : LEVEL_DRAM;
    if (isnan(device->cache[cache]))
        return LEVEL_COUNT;
    double holds = device->working_set[cache];
    if (isnan(holds))
        holds = device->cache[cache];
    return record->footprint <= holds ? cache : LEVEL_DRAM;
}

static struct level_traffic traffic_of(const struct record *record, int level)
{
    return (struct level_traffic){.read = record->bytes_read[level],
                                  .written = record->bytes_written[level],
                                  .all = record->bytes_counted[level]};
}

/* Of counted traffic, the level that needs longest for its own at its roofs: the lowest of the
 * bandwidth roofs. Device memory, without a roof, if no level has one. */
static enum memory_level slowest_level(const struct record *record, const struct device *device)
{
    enum memory_level slowest = LEVEL_DRAM;
    double longest = -1.0;
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        const struct level_traffic traffic = traffic_of(record, level);
        double time = level_time(device, (enum memory_level)level, &traffic);
        if (time > longest) { /* not so for a NaN */
            longest = time;
            slowest = (enum memory_level)level;
        }
    }
    return slowest;
}

static bool bytes_counted(const struct record *record)
{
    return !isnan(record->bytes_counted[LEVEL_DRAM]);
}

static enum memory_level roof_level(const struct record *record, const struct device *device)
{
    if (bytes_counted(record))
        return slowest_level(record, device);
    if (!record->config.workload || config_cold(&record->config))
        return LEVEL_DRAM;
    return shared_level(record, device);
}

static enum source source_of(double counted, double modelled)
{
    if (!isnan(counted))
        return SOURCE_COUNTED;
    return isnan(modelled) ? SOURCE_NONE : SOURCE_MODELLED;
}

static double number_of(int64_t value)
{
    return value == FIELD_MISSING ? NAN : (double)value;
}

/* At one level; modelled bytes are those of the row's own, and nobody knows their directions. */
static struct level_traffic bytes_of(const struct record *record, const struct derived *derived,
                                     int level)
{
    if (bytes_counted(record))
        return traffic_of(record, level);
    return (struct level_traffic){NAN, NAN,
                                  level == (int)derived->level ? record->bytes_model : NAN};
}

static void levels_derive(const struct record *record, const struct device *device, double flops,
                          struct derived *derived)
{
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        const struct level_traffic traffic = bytes_of(record, derived, level);
        derived->intensity[level] = flops / traffic.all;
        derived->level_time[level] = level_time(device, (enum memory_level)level, &traffic);
    }
}

static void roofline_derive(const struct record *record, const struct device *device, double flops,
                            struct derived *derived)
{
    bool known = derived->level < LEVEL_COUNT;
    const struct level_traffic none = {NAN, NAN, NAN};
    const struct level_traffic traffic = known ? bytes_of(record, derived, derived->level) : none;
    derived->compute_roof = derived->units.peak;
    derived->bandwidth_roof = known ? level_bandwidth(device, derived->level, &traffic) : NAN;
    bool graph = record->config.workload && config_replayed(&record->config);
    const struct roofline_work work = {
        .flops = flops,
        .bytes = traffic.all,
        .time = record->time_median,
        .launches = number_of(record->launches),
    };
    const struct roofline_roofs roofs = {
        .peak = derived->compute_roof,
        .bandwidth = derived->bandwidth_roof,
        .launch_overhead = device_launch_gap(device, graph),
    };
    derived->roofline = roofline_evaluate(&work, &roofs);
    derived->sustained_fraction = derived->roofline.performance / derived->units.sustained;
}

/* s, of an iteration without what the timer adds to it. Programs have no timer. */
static double own_time(const struct record *record)
{
    const double timer = record->timer_overhead / number_of(record->sample_iterations);
    return isnan(timer) ? record->time_median : record->time_median - timer;
}

/* s, of which kernels and gaps are the parts. What CPUs trace is the work as it is: there the traced run itself
 * tells, of both. Accelerators have gaps between iterations, which no trace of one shows. */
static double whole_time(const struct record *record, const struct device *device)
{
    const struct device_kind *kind = device_kind_find(device->kind);
    bool traced = kind && !kind->accelerator && !isnan(record->trace_time);
    return traced ? record->trace_time : own_time(record);
}

/* An accelerator's trace is a run of its own: it may be a little longer than the time. */
static void limiter_derive(const struct record *record, const struct device *device,
                           struct derived *derived)
{
    double time = own_time(record), whole = whole_time(record, device);
    double gap = whole - record->busy_time;
    derived->gap_time = isnan(gap) ? NAN : fmax(gap, 0);
    derived->busy_share = record->busy_time / whole;
    derived->shares = (struct limiter_shares){
        .compute = derived->units.time / time,
        .bandwidth =
            derived->level < LEVEL_COUNT ? derived->level_time[derived->level] / time : NAN,
        .gap = derived->gap_time / whole,
        .host = record->host_time / time,
        .few_blocks = derived->kernels.few_blocks,
    };
    derived->limiter = limiter_of(&derived->shares);
    limiter_evidence(&derived->shares, derived_level_name(derived), derived->limiter_evidence);
}

struct derived derive(const struct record *record, const struct device *device)
{
    struct derived derived = {.level = roof_level(record, device)};
    derived.flops_source = source_of(record->flops_counted, record->flops_model);
    derived.bytes_source = source_of(record->bytes_counted[LEVEL_DRAM], record->bytes_model);
    bool counted = derived.flops_source == SOURCE_COUNTED;
    double flops = counted ? record->flops_counted : record->flops_model;
    derived.units = unit_use(record, device, flops, counted);
    derived.kernels = kernel_shares(record, device);
    derived.useful_performance = record->flops_model / record->time_median;
    derived.dependent_time = number_of(record->launches) * device->launch_dependent;
    levels_derive(record, device, flops, &derived);
    roofline_derive(record, device, flops, &derived);
    limiter_derive(record, device, &derived);
    return derived;
}

const char *derived_level_name(const struct derived *derived)
{
    return derived->level < LEVEL_COUNT ? memory_level_name[derived->level] : "";
}
