#include "results/presence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/device_kind.h"

/* What must be the case of a file. */
enum condition {
    ACCELERATOR = 1 << 0, /* a device that a host launches grids on */
    COUNTERS = 1 << 1,    /* a device that has hardware counters, which were not switched off */
    BY_KERNEL = 1 << 2,   /* the same for each kernel */
    ENERGY = 1 << 3,
    CLOCK = 1 << 4, /* a device whose clock can be read */
    PROGRAM = 1 << 5,
    LAYOUT = 1 << 6,      /* a workload whose tensors have a layout */
    LAYOUT_AUTO = 1 << 7, /* and a choice of it */
    ADAPTIVE = 1 << 8,    /* samples until their median stands */
    VERIFIED = 1 << 9,
    JOB = 1 << 10,       /* a job of a batch system */
    REUSED = 1 << 11,    /* roofs out of an earlier file */
    NEIGHBOURS = 1 << 12 /* two devices of a host in one session */
};

/* One of the conditions must be met. What is not in here, every file has. */
static const struct need {
    const char *variable;
    unsigned conditions;
} needs[] = {
    {"job_id", JOB},
    {"layout_chosen", LAYOUT},
    {"layout_other_time", LAYOUT_AUTO},
    {"algorithm_id", ACCELERATOR},
    {"algorithm_launches", ACCELERATOR},
    {"algorithm_origin", ACCELERATOR},
    {"refused_algorithms", ACCELERATOR},
    {"search_candidates", ACCELERATOR},
    {"search_time", ACCELERATOR | LAYOUT_AUTO},
    {"search_noise", ACCELERATOR},
    {"heuristic_algorithm", ACCELERATOR},
    {"heuristic_id", ACCELERATOR},
    {"heuristic_time", ACCELERATOR},
    {"runner_up_algorithm", ACCELERATOR},
    {"runner_up_id", ACCELERATOR},
    {"runner_up_time", ACCELERATOR},
    {"program_hash", PROGRAM},
    {"memcpy_count", PROGRAM},
    {"memcpy_bytes", PROGRAM},
    {"memcpy_time", PROGRAM},
    {"memset_count", PROGRAM},
    {"memset_bytes", PROGRAM},
    {"memset_time", PROGRAM},
    {"graph_time", ACCELERATOR},
    {"host_time", ACCELERATOR},
    {"profiler_ratio", ACCELERATOR},
    {"host_paced", ACCELERATOR},
    {"converged", ADAPTIVE},
    {"flops_counted", COUNTERS},
    {"bytes_counted", COUNTERS},
    {"flops_vector", COUNTERS},
    {"flops_tensor", COUNTERS},
    {"bytes_read", COUNTERS},
    {"bytes_written", COUNTERS},
    {"sm_clock", ACCELERATOR | CLOCK},
    {"sm_clock_counted", ACCELERATOR},
    {"memory_clock", ACCELERATOR},
    {"temperature", ACCELERATOR},
    {"throttle_reasons", ACCELERATOR},
    {"throttled", ACCELERATOR},
    {"sm_clock_free", ACCELERATOR},
    {"energy", ENERGY},
    {"energy_time", ENERGY},
    {"energy_clock", ENERGY},
    {"power", ENERGY},
    {"idle_power", ENERGY},
    {"verify_error", VERIFIED},
    {"verify_tolerance", VERIFIED},
    {"verify_element_error", VERIFIED},
    {"verify_element_tolerance", VERIFIED},
    {"verify_elements", VERIFIED},
    {"pci_id", ACCELERATOR},
    {"sustained_fraction", ACCELERATOR},
    {"unit_note", COUNTERS},
    {"dependent_time", ACCELERATOR},
    {"host_share", ACCELERATOR},
    {"zero_flop_launches", COUNTERS},
    {"zero_flop_share", COUNTERS},
    {"few_blocks_share", ACCELERATOR},
    {"energy_idle_share", ENERGY},
    {"search_margin", ACCELERATOR},
    {"algorithm_tuned", ACCELERATOR},
    {"flops_ratio", COUNTERS},
    {"bytes_ratio", COUNTERS},
    {"kernel_grid_x", ACCELERATOR},
    {"kernel_grid_y", ACCELERATOR},
    {"kernel_grid_z", ACCELERATOR},
    {"kernel_block_x", ACCELERATOR},
    {"kernel_block_y", ACCELERATOR},
    {"kernel_block_z", ACCELERATOR},
    {"kernel_registers", ACCELERATOR},
    {"kernel_static_shared", ACCELERATOR},
    {"kernel_dynamic_shared", ACCELERATOR},
    {"kernel_cluster", ACCELERATOR},
    {"kernel_resident", ACCELERATOR},
    {"kernel_flops_counted", BY_KERNEL},
    {"kernel_bytes_counted", BY_KERNEL},
    {"kernel_blocks", ACCELERATOR},
    {"kernel_threads", ACCELERATOR},
    {"kernel_occupancy", ACCELERATOR},
    {"kernel_waves", ACCELERATOR},
    {"kernel_tail_loss", ACCELERATOR},
    {"kernel_enough_parallelism", ACCELERATOR},
    {"device_pci_id", ACCELERATOR},
    {"device_multiprocessor_threads", ACCELERATOR},
    {"device_clock_max", ACCELERATOR | CLOCK},
    {"device_memory_clock_max", ACCELERATOR},
    {"device_power_limit", ACCELERATOR},
    {"device_ecc", ACCELERATOR},
    {"device_mig", ACCELERATOR},
    {"device_count_together", COUNTERS},
    {"device_peak_tensor", ACCELERATOR},
    {"device_cycle_vector", ACCELERATOR | CLOCK},
    {"device_cycle_tensor", ACCELERATOR},
    {"device_sustained_vector", ACCELERATOR},
    {"device_sustained_tensor", ACCELERATOR},
    {"device_working_set", ACCELERATOR},
    {"device_launch_dependent", ACCELERATOR},
    {"device_roofs_reused", REUSED},
    {"device_theory_bandwidth", ACCELERATOR},
    {"device_theory_vector", ACCELERATOR},
    {"device_theory_tensor", ACCELERATOR},
    {"device_roof_nominal_fraction", ACCELERATOR},
    {"device_roof_clock_fraction", ACCELERATOR},
    {"device_roof_sm_clock", ACCELERATOR | CLOCK},
    {"device_roof_memory_clock", ACCELERATOR},
    {"device_roof_power", ACCELERATOR},
    {"device_roof_temperature", ACCELERATOR},
    {"device_roof_throttle_reasons", ACCELERATOR},
    {"device_roof_throttled", ACCELERATOR},
    {"device_roof_sustained", ACCELERATOR},
    {"device_roof_sustained_clock", ACCELERATOR},
    {"device_roof_sustained_power", ACCELERATOR},
    {"device_roof_settling_time", ACCELERATOR},
    {"device_roof_settled", ACCELERATOR},
    {"device_roof_working_set", ACCELERATOR},
    {"device_roof_flops_ratio", COUNTERS},
    {"device_roof_bytes_ratio", COUNTERS},
    {"device_roof_node_spread", NEIGHBOURS},
};

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
        met |= !kind || kind->accelerator ? ACCELERATOR : 0U;
        met |= !kind || kind->has_counters ? COUNTERS | BY_KERNEL : 0U;
        met |= !kind || kind->has_counters ? ENERGY : 0U;
        met |= has_clock(device) ? CLOCK : 0U;
        met |= *device->roofs_reused ? REUSED : 0U;
        met |= !(met & NEIGHBOURS) && has_neighbour(results, i) ? NEIGHBOURS : 0U;
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
        {"counters=off", false, COUNTERS}, {"kernels=yes", true, BY_KERNEL},
        {"energy=yes", true, ENERGY},      {"stop=", true, ADAPTIVE},
        {"verify=no", false, VERIFIED},
    };
    unsigned met = 0;
    for (size_t i = 0; i < results->session_count; ++i) {
        for (size_t j = 0; j < sizeof rules / sizeof *rules; ++j)
            if ((strstr(results->sessions[i].settings, rules[j].word) != NULL) == rules[j].with)
                met |= rules[j].conditions;
        met |= *results->sessions[i].job_id ? JOB : 0U;
    }
    return met;
}

static unsigned of_rows(const struct results *results)
{
    static const struct {
        const char *text;
        unsigned conditions;
    } rules[] = {{" layout=", LAYOUT}, {" layout=auto", LAYOUT_AUTO}};
    static const char program[] = "program ";
    unsigned met = 0;
    for (size_t i = 0; i < results->row_count; ++i) {
        const char *text = results->rows[i].configuration;
        met |= strncmp(text, program, sizeof program - 1) == 0 ? PROGRAM : 0U;
        for (size_t j = 0; j < sizeof rules / sizeof *rules; ++j)
            if (!(met & rules[j].conditions) && strstr(text, rules[j].text))
                met |= rules[j].conditions;
    }
    return met;
}

/* Both a device and a session must allow these. */
static const unsigned of_both = COUNTERS | BY_KERNEL | ENERGY;

struct presence presence_of(const struct results *results)
{
    unsigned devices = of_devices(results), sessions = of_sessions(results);
    return (struct presence){.met = (devices & sessions & of_both) |
                                    ((devices | sessions) & ~of_both) | of_rows(results)};
}

const char *presence_conditional(size_t i)
{
    return i < sizeof needs / sizeof *needs ? needs[i].variable : NULL;
}

void presence_clear(struct presence *presence)
{
    for (size_t i = 0; i < presence->found_count; ++i)
        free(presence->found[i]);
    free(presence->found);
    *presence = (struct presence){.met = 0};
}

bool presence_has(const struct presence *presence, const char *variable)
{
    for (size_t i = 0; i < presence->found_count; ++i)
        if (strcmp(presence->found[i], variable) == 0)
            return true;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; ++i)
        if (strcmp(needs[i].variable, variable) == 0)
            return (needs[i].conditions & presence->met) != 0;
    return true;
}

void presence_found(struct presence *presence, const char *variable)
{
    if (presence->no_memory || presence_has(presence, variable))
        return;
    char *copy = strdup(variable);
    void *grown =
        copy ? array_grow(presence->found, presence->found_count, sizeof *presence->found) : NULL;
    presence->no_memory = !grown;
    if (!grown) {
        free(copy);
        return;
    }
    presence->found = grown;
    presence->found[presence->found_count++] = copy;
}
