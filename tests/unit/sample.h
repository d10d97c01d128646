/* A small sweep for tests, with fixed numbers, two devices and a row of each outcome. The golden
 * files are its results. Its rows go through a journal, as in every sweep. */
#pragma once

#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal_bench.h"

#define assert_near(value, expected) assert_true(fabs((value) / (expected)-1) < 1e-12)

#define SAMPLE_START 1735689600.0 /* 2025-01-01T00:00:00Z */

static struct session sample_session(void)
{
    struct session session = {
        .id = "s1",
        .version = "0.1.0",
        .settings =
            "warmup=5 stop=0.01 min_time=0.5 max_time=15 repeat=5 counters=auto kernels=yes "
            "verify=yes energy=yes seed=1",
        .title = "Golden sample",
        .manifest_path = "golden.ini",
        .manifest_text = strdup("[sweep]\ntitle = Golden sample\n\n[conv2d]\nbatch = 2, 16\n"),
        .command = "roofsweep golden.ini",
        .job_id = "4711",
        .hostname = "node1",
        .mpi = "Open MPI 4.1.4",
        .ranks = 2,
        .start_time = SAMPLE_START,
    };
    return session;
}

/* Adds a roof of three samples whose best sample gives `value`. */
static void add_roof(struct device *device, enum roof_id id, enum roof_condition condition,
                     double value)
{
    struct roof roof;
    bool time = roof_kinds[id].measure == ROOF_TIME;
    double seconds[] = {1.125, 1.0, 1.25};
    roof_init(&roof, id, condition);
    roof_set_samples(&roof, time ? 1.125 / value : value, seconds, 3);
    strcpy(roof.setting, "sample");
    roof.start_time = 1735689500.0;
    device_add_roof(device, &roof);
}

static struct device gpu_device(void)
{
    struct device d;
    device_init(&d);
    strcpy(d.key, "s1-0");
    strcpy(d.kind, "cuda");
    strcpy(d.hostname, "node1");
    strcpy(d.uuid, "GPU-00000000-0000-0000-0000-000000000001");
    strcpy(d.pci_id, "00000000:3B:00.0");
    strcpy(d.model, "Sample GPU");
    strcpy(d.compute_capability, "9.0");
    strcpy(d.driver_version, "580.0");
    strcpy(d.runtime_version, "13.0");
    strcpy(d.library_version, "cuDNN 9.0.0");
    strcpy(d.system, "VBIOS 96.00.74.00.1A, Linux 6.1.0");
    d.health_start[HEALTH_ECC_ENABLED] = 1;
    d.health_start[HEALTH_PCIE_WIDTH] = d.health_end[HEALTH_PCIE_WIDTH] = 16;
    d.health_start[HEALTH_THROTTLED_BY_POWER] = 1.5;
    d.health_end[HEALTH_THROTTLED_BY_POWER] = 2.5;
    d.index = 0;
    d.multiprocessors = 100;
    d.multiprocessor_threads = 2048;
    d.memory = 1e11;
    d.cache[LEVEL_L2] = 5e7;
    d.cache[LEVEL_L1] = 2.5e7;
    d.clock_max = 2e9;
    d.memory_clock_max = 3e9;
    d.power_limit = 700;
    d.mig = 0;
    add_roof(&d, ROOF_DRAM_READ, ROOF_ALONE, 3.5e12);
    add_roof(&d, ROOF_DRAM_TRIAD, ROOF_ALONE, 4e12);
    add_roof(&d, ROOF_DRAM_TRIAD, ROOF_TOGETHER, 3.9e12);
    add_roof(&d, ROOF_L2_READ, ROOF_ALONE, 8e12);
    add_roof(&d, ROOF_FP32_VECTOR, ROOF_ALONE, 5e13);
    add_roof(&d, ROOF_FP16_TENSOR_WGMMA, ROOF_ALONE, 8e14);
    add_roof(&d, ROOF_FP16_TENSOR_LIBRARY, ROOF_ALONE, 9e15);
    add_roof(&d, ROOF_LAUNCH_GAP, ROOF_ALONE, 2e-6);
    add_roof(&d, ROOF_LAUNCH_GAP_DEPENDENT, ROOF_ALONE, 2.5e-6);
    d.roofs[1].nominal_fraction = 4e12 / 4.8e12;
    d.roofs[1].bytes_ratio[LEVEL_DRAM] = 1.002;
    d.roofs[0].sm_clock = 1.98e9;
    const double energies[] = {60e-12, 66e-12, NAN, 20e-12, 8e-12, 0.625e-12};
    for (size_t i = 0; i < sizeof energies / sizeof *energies; ++i) {
        struct roof *roof = &d.roofs[i];
        if (isnan(energies[i]))
            continue;
        roof->energy = energies[i];
        roof->energy_power = 150 + energies[i] * roof_value(roof);
        roof->constant_power = 150;
        roof->rest_power = 128.125;
    }
    d.roofs[6].nominal_fraction = 9.0; /* above theory, so not used */
    for (int64_t i = 0; i < d.roof_count; ++i)
        roof_judge(&d.roofs[i]);
    device_set_peaks(&d);
    d.theory_bandwidth[LEVEL_DRAM] = 4.8e12;
    d.theory_vector[PRECISION_FP32] = 6.4e13;
    return d;
}

static struct device cpu_device(void)
{
    struct device d;
    device_init(&d);
    strcpy(d.key, "s1-1");
    strcpy(d.kind, "cpu");
    strcpy(d.hostname, "node2");
    strcpy(d.uuid, "cpu-node2-0-3");
    strcpy(d.model, "Sample CPU");
    strcpy(d.compute_capability, "avx2");
    d.index = 0;
    d.multiprocessors = 4;
    d.processors = 8;
    d.memory = 8e9;
    d.cache[LEVEL_L3] = 1.6e7;
    d.cache[LEVEL_L2] = 4e6;
    d.cores_shared = 0;
    outcome_set(&d.counters, COUNTED_REFUSED, "this kind of device has no counters");
    add_roof(&d, ROOF_DRAM_COPY, ROOF_ALONE, 2e10);
    add_roof(&d, ROOF_L3_READ, ROOF_ALONE, 1e11);
    add_roof(&d, ROOF_FP64_VECTOR, ROOF_ALONE, 1e11);
    add_roof(&d, ROOF_FP32_VECTOR, ROOF_ALONE, 2e11);
    add_roof(&d, ROOF_LAUNCH_GAP, ROOF_ALONE, 1e-6);
    device_set_peaks(&d);
    return d;
}

/* Makes a record with identity and modelled cost. `text` can leave parameters at their defaults. */
static struct record sample_record(const char *text, const char *label, const char *device_key,
                                   double start)
{
    struct record r;
    struct config config;
    record_init(&r);
    assert_ok(config_parse(text, &config, &failure));
    r.config = config;
    config_format(&config, r.configuration);
    config_hash(&config, r.config_hash);
    snprintf(r.label, sizeof r.label, "%s", label);
    snprintf(r.device_key, sizeof r.device_key, "%s", device_key);
    snprintf(r.job_id, sizeof r.job_id, "4711");
    struct cost cost = config_cost(&config);
    r.flops_model = cost.flops;
    r.bytes_model = cost.bytes;
    r.footprint = cost.memory;
    r.start_time = SAMPLE_START + start;
    r.attempts = 1;
    return r;
}

static void set_times(struct record *r, double time)
{
    r->status = RECORD_MEASURED;
    r->wall_time = 2;
    r->wall_time_part[PART_VERIFY] = 0.5;
    r->wall_time_part[PART_TIMING] = 1.5;
    r->samples = 3;
    r->placements = 3;
    r->sample_count = 3;
    r->sample = calloc(3, sizeof *r->sample);
    assert_non_null(r->sample);
    for (int i = 0; i < 3; ++i)
        r->sample[i] = time * (1 + 0.125 * (i - 1));
    r->time_median = r->time_mean = time;
    r->time_min = r->sample[0];
    r->time_max = r->sample[2];
    r->verify_error = 1e-7;
    r->verify_tolerance = 1e-5;
    r->verify_elements = 4096;
    strcpy(r->output_hash, "0123456789abcdef");
    strcpy(r->accuracy, "inaccurate: more than one rounding");
    struct kernel kernel;
    fields_clear(kernel_fields, &kernel);
    strcpy(kernel.name, "sample_kernel<float, 128>");
    kernel.count = r->launches = 1;
    kernel.time = r->busy_time = 0.75 * time;
    assert_ok(record_set_kernels(r, &kernel, 1, &failure));
}

static struct record conv2d_record(void)
{
    struct record r = sample_record("conv2d batch=16 precision=fp16", "batch filters", "s1-0", 10);
    set_times(&r, 25e-6);
    strcpy(r.implementation, "cudnn");
    strcpy(r.algorithm, "implicit-precomp-gemm");
    strcpy(r.math, "tensor-op");
    r.unit = UNIT_TENSOR;
    r.workspace = 1048576;
    strcpy(r.algorithm_id, "0123456789abcdef");
    r.search_candidates = 2;
    r.search_time = 24e-6;
    r.search_noise = 0.0625;
    strcpy(r.heuristic_algorithm, r.algorithm);
    strcpy(r.heuristic_id, r.algorithm_id);
    r.heuristic_time = r.search_time;
    strcpy(r.runner_up_algorithm, "engine-38 k2=5");
    strcpy(r.runner_up_id, "fedcba9876543210");
    r.runner_up_time = 30e-6;
    r.sm_clock = 1.98e9;
    r.sm_clock_counted = 1.755e9;
    r.memory_clock = 3e9;
    r.time_median_low = 24.5e-6;
    r.time_median_high = 26e-6;
    r.sample_iterations = 1;
    r.timer_overhead = 2e-6;
    r.host_paced = 0;
    r.bimodal = 1;
    r.sm_clock_free = 1.98e9;
    strcpy(r.other_processes, "none");
    r.power = 512.5;
    r.temperature = 330.15;
    r.energy_time = 32e-6;
    r.energy = 0.0164;
    r.energy_clock = 1.5e9;
    r.idle_power = 128.125;
    r.throttle_reasons = 4;
    struct kernel kernels[2];
    for (int i = 0; i < 2; ++i) {
        fields_clear(kernel_fields, &kernels[i]);
        strcpy(kernels[i].name, i == 0 ? "implicit_gemm<__half>(Params)" : "nchwToNhwc");
        kernels[i].count = 1;
        kernels[i].time = i == 0 ? 18e-6 : 4e-6;
        kernels[i].grid_x = 128;
        kernels[i].grid_y = kernels[i].grid_z = 1;
        kernels[i].block_x = 256;
        kernels[i].block_y = kernels[i].block_z = 1;
        kernels[i].registers = 168;
        kernels[i].static_shared = 0;
        kernels[i].dynamic_shared = 65536;
        kernels[i].cluster = 1;
        kernels[i].resident = 300;
    }
    r.launches = 2;
    r.busy_time = 22e-6;
    r.trace_time = 23e-6;
    r.host_time = 29e-6;
    r.caller_time = 30e-6;
    r.caller_uncertainty = 0.0625;
    assert_ok(record_set_kernels(&r, kernels, 2, &failure));
    return r;
}

static struct record counted_record(void)
{
    struct record r = conv2d_record();
    outcome_set(&r.counters, COUNTED_YES, NULL);
    r.flops_tensor[PRECISION_FP16] = r.flops_model;
    r.flops_vector[PRECISION_FP64] = r.flops_vector[PRECISION_FP16] = 0;
    r.flops_vector[PRECISION_FP32] = 3211264;
    r.flops_counted = r.flops_model + 3211264;
    const enum memory_level levels[] = {LEVEL_DRAM, LEVEL_L2, LEVEL_L1};
    for (int i = 0; i < 3; ++i) {
        enum memory_level level = levels[i];
        r.bytes_written[level] = 6.5e6;
        r.bytes_counted[level] = (i + 1) * 26e6 + r.bytes_written[level];
    }
    r.kernels[0].flops_counted = r.flops_counted;
    r.kernels[0].bytes_counted[LEVEL_DRAM] = 2e7;
    r.kernels[0].bytes_counted[LEVEL_L2] = 5e7;
    r.kernels[0].activity[ACTIVITY_DRAM] = 0.25;
    r.kernels[0].activity[ACTIVITY_TENSOR] = 0.5;
    r.kernels[0].activity[ACTIVITY_STALL_LONG_SCOREBOARD] = 0.375;
    r.kernels[0].resident_limit = 2;
    r.kernels[1].flops_counted = 0;
    r.kernels[1].bytes_counted[LEVEL_DRAM] = 1.25e7;
    return r;
}

static struct record lstm_record(void)
{
    struct record r = sample_record("lstm cache=cold", "lstm", "s1-1", 11);
    set_times(&r, 1e-3);
    strcpy(r.implementation, "plain");
    r.unit = UNIT_VECTOR;
    r.threads_running = 0.5;
    r.threads_waiting = 0.25;
    r.host_load = 77;
    r.converged = 1;
    outcome_set(&r.counters, COUNTED_OFF, NULL);
    return r;
}

static struct record skipped_record(void)
{
    struct record r = sample_record("conv2d batch=2 precision=bf16", "batch", "s1-1", 12);
    r.status = RECORD_SKIPPED;
    strcpy(r.error, "a CPU has no bf16 here");
    return r;
}

static struct record failed_record(void)
{
    struct record r = sample_record("conv2d batch=2 kernel=3x5", "batch", "s1-0", 13);
    r.status = RECORD_FAILED;
    r.attempts = 2;
    strcpy(r.error, "the worker was killed by signal 9");
    return r;
}

static void sample_journal(const char *path)
{
    struct session session = sample_session();
    const struct device devices[] = {gpu_device(), cpu_device()};
    struct record records[] = {lstm_record(), skipped_record(), counted_record(), failed_record()};
    struct record round = lstm_record();
    round.round = 3;
    round.start_time += 60;
    strcpy(round.output_hash, "other bits");
    struct journal *journal = open_journal(path, JOURNAL_CREATE);
    append(journal, "session", session_encode(&session));
    for (size_t i = 0; i < 2; ++i)
        append(journal, "device", device_encode(&devices[i]));
    for (size_t i = 0; i < 4; ++i) {
        append(journal, "record", record_encode(&records[i]));
        record_clear(&records[i]);
    }
    append(journal, "round", record_encode(&round));
    record_clear(&round);
    journal_close(journal);
    session_clear(&session);
}

/* Appends records to a journal, creating it if missing, and clears the records. */
static inline void sample_add(const char *path, struct record *records, size_t count)
{
    const bool there = access(path, F_OK) == 0;
    struct journal *journal = open_journal(path, there ? JOURNAL_RESUME : JOURNAL_CREATE);
    for (size_t i = 0; i < count; ++i) {
        append(journal, "record", record_encode(&records[i]));
        record_clear(&records[i]);
    }
    journal_close(journal);
}

static inline struct results *sample_read(const char *path)
{
    bool torn;
    struct results *results = read_journal(path, &torn);
    assert_false(torn);
    results_sort(results, NULL, &(struct error){{0}});
    return results;
}

/* Appends the device of each record to a journal. */
static inline void sample_describe(const char *path, const struct record *records, size_t count)
{
    struct journal *journal = open_journal(path, JOURNAL_RESUME);
    for (size_t i = 0; i < count; ++i) {
        struct device device;
        device_init(&device);
        memcpy(device.key, records[i].device_key, sizeof device.key);
        snprintf(device.uuid, sizeof device.uuid, "GPU of %.80s", device.key);
        append(journal, "device", device_encode(&device));
    }
    journal_close(journal);
}

/* Returns the results of records; removes their journal. */
static inline struct results *results_of(struct record *records, size_t count)
{
    char path[] = "/tmp/roofsweep-sample-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    sample_describe(path, records, count);
    sample_add(path, records, count);
    struct results *results = sample_read(path);
    unlink(path);
    return results;
}

/* Writes the journal at `path`, which must not exist, and reads it. */
static inline struct results *sample_results(const char *path)
{
    sample_journal(path);
    return sample_read(path);
}
