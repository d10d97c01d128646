#include "results/derive.h"

#include <math.h>
#include <string.h>

#include "results/compute_roof.h"
#include "results/level_time.h"

const char *const source_name[] = {"counted", "modelled", "none", NULL};

/* Only a cache that all cores share can hold the footprint as a whole: a device's last one. (The l1
 * of a GPU and the l1 and l2 of a CPU with an l3 are many small ones.) */
static enum memory_level shared_level(const struct record *record, const struct device *device)
{
    enum memory_level cache = isnan(device->cache[LEVEL_L3]) ? LEVEL_L2 : LEVEL_L3;
    bool holds = record->footprint <= device->cache[cache];
    return holds && !isnan(device->peak_bandwidth[cache]) ? cache : LEVEL_DRAM;
}

static struct level_traffic traffic_of(const struct record *record, enum memory_level level)
{
    return (struct level_traffic){.read = record->bytes_read[level],
                                  .written = record->bytes_written[level],
                                  .all = record->bytes_counted[level]};
}

/* Of counted traffic, the level that needs longest for its own at its roofs: the lowest of the
 * bandwidth roofs. Device memory if no level has both. */
static enum memory_level slowest_level(const struct record *record, const struct device *device)
{
    enum memory_level slowest = LEVEL_DRAM;
    double longest = -1.0;
    for (int level = 0; level < LEVEL_COUNT; ++level) {
        const struct level_traffic traffic = traffic_of(record, (enum memory_level)level);
        double time = level_time(device, (enum memory_level)level, &traffic);
        if (time > longest) { /* not so for a NaN */
            longest = time;
            slowest = (enum memory_level)level;
        }
    }
    return slowest;
}

static enum memory_level roof_level(const struct record *record, const struct device *device,
                                    bool hot)
{
    if (!isnan(record->bytes_counted[LEVEL_DRAM]))
        return slowest_level(record, device);
    return hot ? shared_level(record, device) : LEVEL_DRAM;
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

struct derived derive(const struct record *record, const struct device *device)
{
    const struct config *config = &record->config;
    bool known = config->workload != NULL;
    bool hot = known && !config_cold(config);

    struct derived derived;
    derived.level = roof_level(record, device, hot);
    double bytes_counted = record->bytes_counted[derived.level];
    derived.flops_source = source_of(record->flops_counted, record->flops_model);
    derived.bytes_source = source_of(bytes_counted, record->bytes_model);
    bool counted = derived.flops_source == SOURCE_COUNTED;
    const struct roofline_work work = {
        .flops = counted ? record->flops_counted : record->flops_model,
        .bytes = derived.bytes_source == SOURCE_COUNTED ? bytes_counted : record->bytes_model,
        .time = record->time_median,
        .launches = number_of(record->launches),
    };
    const struct level_traffic traffic = traffic_of(record, derived.level);
    const struct compute_roof compute =
        compute_roof_of(device, record->unit, known ? config_precision(config) : PRECISION_COUNT,
                        record->sm_clock_counted);
    const struct roofline_roofs roofs = {
        .peak = compute.peak,
        .bandwidth = level_bandwidth(device, derived.level, &traffic),
        .launch_overhead = device->launch_overhead,
    };
    derived.roofline = roofline_evaluate(&work, &roofs);
    derived.compute_roof = compute.peak;
    derived.bandwidth_roof = roofs.bandwidth;
    derived.sustained_fraction = derived.roofline.performance / compute.sustained;
    for (int level = 0; level < LEVEL_COUNT; ++level)
        derived.intensity[level] = work.flops / record->bytes_counted[level];
    derived.intensity[derived.level] = derived.roofline.intensity;
    return derived;
}
