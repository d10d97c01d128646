#include "results/conditions.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "model/device_kind.h"

static bool has_clock(const struct device *device)
{
    bool known = !isnan(device->clock_max);
    for (int64_t i = 0; i < device->roof_count; ++i)
        known = known || !isnan(device->roofs[i].sm_clock);
    return known;
}

static bool has_neighbour(const struct results *results, size_t device)
{
    double spreads[ROOFS_MAX];
    results_node_spreads(results, device, spreads);
    for (int64_t i = 0; i < results->devices[device].roof_count; ++i)
        if (!isnan(spreads[i]))
            return true;
    return false;
}

/* Of a kind that this version does not know, anything may be measured. */
static unsigned of_devices(const struct results *results)
{
    unsigned met = 0;
    for (size_t i = 0; i < results->device_count; ++i) {
        const struct device *device = &results->devices[i];
        const struct device_kind *kind = device_kind_find(device->kind);
        met |= !kind || kind->accelerator ? NEEDS_ACCELERATOR : 0U;
        met |= !kind || kind->has_counters ? NEEDS_COUNTERS | NEEDS_BY_KERNEL : 0U;
        met |= !kind || kind->has_counters ? NEEDS_ENERGY : 0U;
        met |= has_clock(device) ? NEEDS_CLOCK : 0U;
        met |= *device->roofs_reused ? NEEDS_REUSED : 0U;
        met |= !(met & NEEDS_NEIGHBOURS) && has_neighbour(results, i) ? NEEDS_NEIGHBOURS : 0U;
    }
    return met;
}

/* Words of manifest_settings_text. */
static unsigned of_sessions(const struct results *results)
{
    static const struct {
        const char *word;
        bool with; /* else without */
        unsigned conditions;
    } rules[] = {
        {"counters=off", false, NEEDS_COUNTERS}, {"kernels=yes", true, NEEDS_BY_KERNEL},
        {"energy=yes", true, NEEDS_ENERGY},      {"stop=", true, NEEDS_ADAPTIVE},
        {"verify=no", false, NEEDS_VERIFIED},
    };
    unsigned met = 0;
    for (size_t i = 0; i < results->session_count; ++i) {
        for (size_t j = 0; j < sizeof rules / sizeof *rules; ++j)
            if ((strstr(results->sessions[i].settings, rules[j].word) != NULL) == rules[j].with)
                met |= rules[j].conditions;
        met |= *results->sessions[i].job_id ? NEEDS_JOB : 0U;
    }
    return met;
}

static unsigned of_rows(const struct results *results)
{
    static const struct {
        const char *text;
        unsigned conditions;
    } rules[] = {{" layout=", NEEDS_LAYOUT}, {" layout=auto", NEEDS_LAYOUT_AUTO}};
    static const char program[] = "program ";
    unsigned met = 0;
    for (size_t i = 0; i < results->row_count; ++i) {
        const char *text = results->rows[i].configuration;
        met |= strncmp(text, program, sizeof program - 1) == 0 ? NEEDS_PROGRAM : 0U;
        for (size_t j = 0; j < sizeof rules / sizeof *rules; ++j)
            if (!(met & rules[j].conditions) && strstr(text, rules[j].text))
                met |= rules[j].conditions;
    }
    return met;
}

/* Both a device and a session must allow these. */
static const unsigned of_both = NEEDS_COUNTERS | NEEDS_BY_KERNEL | NEEDS_ENERGY;

unsigned conditions_met(const struct results *results)
{
    unsigned devices = of_devices(results), sessions = of_sessions(results);
    return (devices & sessions & of_both) | ((devices | sessions) & ~of_both) | of_rows(results);
}
