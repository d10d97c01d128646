/* Derived values where an input is missing or lies on an edge. tests/postproc/recompute.py proves
 * the formulas over files of real devices. */
#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "results/derive.h"
#include "sample.h"

/* Modelled bytes come from the nearest cache that holds the footprint, if the cache is hot. */
TEST(the_nearest_cache_is_the_level)
{
    static const struct {
        const char *text;
        double l3, l3_bandwidth, l2, l2_bandwidth;
        int level;          /* -1: unknown */
        double working_set; /* working set of l2; 0: not measured */
    } cases[] = {
        {"lstm cache=hot", NAN, NAN, 1e6, 1e12, LEVEL_L2, 61696},
        {"lstm cache=hot", NAN, NAN, 1e6, 1e12, LEVEL_DRAM, 61695}, /* less than the footprint */
        {"lstm cache=hot", 61696, 1e11, 1e4, 1e12, LEVEL_L3, 0},    /* exactly the footprint */
        {"lstm cache=hot", 61695, 1e11, 1e4, 1e12, LEVEL_DRAM, 0},
        {"lstm cache=hot", 1e6, NAN, 61696, 1e12, LEVEL_L2, 0}, /* nearer than l3 */
        {"lstm cache=hot", NAN, NAN, 1e6, 1e12, LEVEL_L2, 0},
        {"lstm cache=hot", NAN, NAN, 1e4, 1e12, LEVEL_DRAM, 0},
        {"lstm cache=hot", NAN, NAN, NAN, NAN, -1, 0},
        {"lstm cache=cold", 1e6, 1e11, 1e6, 1e12, LEVEL_DRAM, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct record record = sample_record(cases[i].text, "lstm", "s1-1", 0);
        struct device device = cpu_device();
        device.cache[LEVEL_L3] = cases[i].l3;
        device.peak_bandwidth[LEVEL_L3] = cases[i].l3_bandwidth;
        device.cache[LEVEL_L2] = cases[i].l2;
        if (cases[i].working_set > 0)
            device.working_set[LEVEL_L2] = cases[i].working_set;
        device.peak_bandwidth[LEVEL_L2] = cases[i].l2_bandwidth;
        struct derived derived = derive(&record, &device);
        assert_string_equal(derived.roof_memory_level,
                            cases[i].level < 0 ? "" : memory_level_name[cases[i].level]);
        for (int level = 0; level < LEVEL_COUNT; ++level)
            assert_int_equal(!isnan(derived.arithmetic_intensity[level]), level == cases[i].level);
    }
}

/* A program can state its bytes, but not its footprint. */
TEST(stated_bytes_are_of_device_memory)
{
    struct device device = gpu_device();
    struct record record = sample_record("lstm cache=hot", "lstm", "s1-1", 0);
    record.footprint = NAN;
    assert_string_equal(derive(&record, &device).roof_memory_level, "dram");
    record.bytes_model = NAN;
    assert_string_equal(derive(&record, &device).roof_memory_level, "");
}

/* The footprint lies in a cache without a measured roof, as with "memory = dram". Relative to
 * device memory, the row would exceed 100 %. */
TEST(no_level_stands_in_for_another)
{
    struct device device = gpu_device();
    struct record record = conv2d_record();
    assert_false(isnan(derive(&record, &device).roof_fraction));
    device.peak_bandwidth[LEVEL_L2] = NAN;
    struct derived derived = derive(&record, &device);
    assert_string_equal(derived.roof_memory_level, "l2");
    assert_true(isnan(derived.roof_fraction) && isnan(derived.bandwidth_roof));
    assert_int_equal(derived.paper_bound, BOUND_UNKNOWN);
    record_clear(&record);
}

/* The row takes 25 us: its kernels 22 us, the timer 2 us. */
TEST(shares_of_the_time)
{
    struct device device = gpu_device();
    struct record record = counted_record();
    struct derived derived = derive(&record, &device);
    assert_near(derived.gap_time, 1e-6);
    /* a fifth of the bytes is written: a mix between read and triad */
    assert_near(derived.level_time[LEVEL_DRAM], 32.5e6 * (0.4 / 3.5e12 + 0.6 / 4e12));
    assert_says(derived.limiter_evidence,
                "bytes at the roof of dram 37.3 %, idle between kernels 4.3 %;");
    assert_int_equal(derived.limiter, LIMITER_LATENCY); /* 128 blocks for 100 multiprocessors */
    record.busy_time = 26e-6;                           /* the traced run can take longer */
    derived = derive(&record, &device);
    assert_true(derived.gap_time == 0);
    assert_says(derived.limiter_evidence, "idle between kernels 0.0 %");
    record.busy_time = NAN;
    assert_true(isnan(derive(&record, &device).gap_time));
    record.timer_overhead = record.trace_time = NAN; /* programs lack both */
    record.busy_time = 21e-6;
    assert_near(derive(&record, &device).gap_time, 4e-6);
    /* On a busy CPU, busy and gap time add up to the traced iteration's 40 us. */
    device = cpu_device();
    record.trace_time = 40e-6;
    record.busy_time = 30e-6;
    derived = derive(&record, &device);
    assert_near(derived.gap_time, 10e-6);
    assert_says(derived.limiter_evidence, "idle between kernels 25.0 %");
    record_clear(&record);
}

/* Counted bytes: the level that needs longest is the roof. */
TEST(the_slowest_level_is_the_roof)
{
    struct device device = gpu_device();
    struct record record = conv2d_record();
    record.flops_counted = 4e9;
    record.bytes_counted[LEVEL_DRAM] = 1e6; /* l2 kept most of the data */
    record.bytes_counted[LEVEL_L1] = 8e7;
    struct derived derived = derive(&record, &device);
    assert_near(derived.performance, 4e9 / 23e-6); /* without the timer's 2 us */
    assert_string_equal(derived.roof_memory_level, "dram");
    assert_near(derived.arithmetic_intensity[LEVEL_L1], 50);
    assert_true(isnan(derived.arithmetic_intensity[LEVEL_L2]));
    /* 1e6 bytes at 4e12 take 0.25 us, 4e7 at 8e12 take 5 us: l2 bounds */
    record.bytes_counted[LEVEL_L2] = 4e7;
    derived = derive(&record, &device);
    assert_string_equal(derived.roof_memory_level, "l2");
    assert_near(derived.arithmetic_intensity[LEVEL_L1], 50);
    record.bytes_counted[LEVEL_L1] = 3.7e7; /* copies bypassed l1 */
    derived = derive(&record, &device);
    assert_true(isnan(derived.arithmetic_intensity[LEVEL_L1]) &&
                isnan(derived.level_time[LEVEL_L1]));
    record_clear(&record);
}

/* An L2 has roofs of 6 (read), 3 (write), 5 (copy) and 8 TB/s (triad). A copy writes half of its
 * bytes, a triad a third. */
TEST(a_row_has_the_roof_of_its_mix)
{
    static const struct {
        double written;         /* share of the bytes */
        double all, read_alone; /* byte s-1, expected roof if all patterns have roofs, and if only
                                   reads do */
    } cases[] = {
        {NAN, 8e12, 6e12}, /* unknown directions: the best roof */
        {0, 6e12, 6e12},   {1.0 / 6, 1 / (0.5 / 6e12 + 0.5 / 8e12), 6e12}, {1.0 / 3, 8e12, 6e12},
        {0.5, 5e12, 6e12}, {0.75, 1 / (0.5 / 5e12 + 0.5 / 3e12), 6e12},    {1, 3e12, 6e12},
    };
    static const struct {
        enum roof_id id;
        double value;
    } more[] = {{ROOF_L2_WRITE, 3e12}, {ROOF_L2_COPY, 5e12}, {ROOF_L2_TRIAD, 8e12}};
    struct record record = conv2d_record();
    struct device device = gpu_device();
    record.bytes_counted[LEVEL_DRAM] = 1e6;
    record.bytes_counted[LEVEL_L2] = 4e7;
    add_roof(&device, ROOF_L2_READ, ROOF_ALONE, 6e12);
    for (int all = 0; all < 2; ++all) {
        device_set_peaks(&device);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
            record.bytes_written[LEVEL_L2] = cases[i].written * record.bytes_counted[LEVEL_L2];
            assert_near(derive(&record, &device).bandwidth_roof,
                        all ? cases[i].all : cases[i].read_alone);
        }
        for (size_t i = 0; i < sizeof more / sizeof *more; ++i)
            add_roof(&device, more[i].id, ROOF_ALONE, more[i].value);
    }
    record_clear(&record);
}

/* The compute roof is the roof of the record's unit and precision, at the row's clock. Without a
 * clock it stays at the clock of its measurement. */
TEST(the_compute_roof_follows_unit_and_clock)
{
    static const struct {
        int64_t unit;
        double cycle, clock, vector, expected;
    } cases[] = {
        {UNIT_TENSOR, 5e5, 1.8e9, NAN, 9e14},
        {UNIT_TENSOR, 5e5, NAN, NAN, 8e14},
        {UNIT_TENSOR, NAN, 1.8e9, NAN, 8e14},
        {UNIT_VECTOR, 5e5, 1.8e9, NAN, NAN},
        {UNIT_VECTOR, 5e5, 1.8e9, 1e14, 1e14},
        {FIELD_MISSING, 5e5, 1.8e9, 1e14, NAN},
        {UNIT_TENSOR, 5e5, 2.01e9, NAN, 1.005e15},
        {UNIT_TENSOR, 5e5, 2.03e9, NAN, 8e14}, /* 2e9 at most */
    };
    struct record record = conv2d_record(); /* fp16 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct device device = gpu_device();
        device.cycle_tensor[PRECISION_FP16] = cases[i].cycle;
        device.peak_vector[PRECISION_FP16] = cases[i].vector;
        record.unit = cases[i].unit;
        record.sm_clock_counted = cases[i].clock;
        double roof = derive(&record, &device).compute_roof;
        assert_int_equal(isnan(derive(&record, &device).sm_clock),
                         !(cases[i].clock <= 1.01 * device.clock_max));
        assert_true(isnan(cases[i].expected) ? isnan(roof)
                                             : fabs(roof / cases[i].expected - 1) < 1e-12);
    }
    record_clear(&record);
}

/* Units work at the same time; precisions of one unit do not. */
TEST(the_slowest_unit_needs_longest)
{
    struct device device = gpu_device(); /* fp32 vector 5e13, fp16 tensor 8e14 */
    struct record record = conv2d_record();
    record.flops_counted = 5e9;
    record.flops_tensor[PRECISION_FP16] = 4e9;
    record.flops_vector[PRECISION_FP32] = 1e9;
    record.flops_tensor[PRECISION_INT8] = 1e12; /* no FLOPs */
    struct derived derived = derive(&record, &device);
    assert_near(derived.compute_roof, 5e9 / (1e9 / 5e13));
    device.peak_vector[PRECISION_FP64] = 1e13;
    record.flops_vector[PRECISION_FP64] = 1e7;
    assert_near(derive(&record, &device).compute_roof, 5e9 / (1e9 / 5e13 + 1e7 / 1e13));
    record.flops_vector[PRECISION_FP64] = 0;
    device.peak_vector[PRECISION_FP32] = NAN;
    assert_true(isnan(derive(&record, &device).compute_roof));
    record.flops_vector[PRECISION_FP32] = 0.9 * 0.01 * 4e9; /* negligible */
    record.flops_counted = 4.036e9;
    assert_near(derive(&record, &device).compute_roof, 4.036e9 / (4e9 / 8e14));
    record.flops_counted = NAN;
    record.flops_model = 0;
    derived = derive(&record, &device);
    assert_says(derived.limiter_evidence, "FLOPs at their roofs 0.0 %");
    assert_near(derived.compute_roof, 8e14);
    record_clear(&record);
}

/* A byte counts at the farthest level that it reaches. Without an energy roof, the sum is unknown,
 * unless the part is negligible. */
TEST(energies_add_up)
{
    struct device device = gpu_device();
    struct record record = counted_record();
    const double dram = 32.5e6, more = 26e6;                      /* added at l2, and again at l1 */
    assert_true(isnan(derive(&record, &device).energy_at_roofs)); /* l1 has no roof */
    add_roof(&device, ROOF_L1_READ, ROOF_ALONE, 3e13);
    device.roofs[device.roof_count - 1].energy = 3e-12;
    const double constant = 150 * record.energy_time;
    const double flops = record.flops_model * 0.625e-12 + 3211264 * 8e-12;
    /* a fifth of the bytes is written: a mix between read and triad */
    const double bytes = dram * (0.4 * 60e-12 + 0.6 * 66e-12) + more * (20e-12 + 3e-12);
    struct derived derived = derive(&record, &device);
    assert_near(derived.energy_at_roofs, constant + flops + bytes);
    assert_near(derived.energy_constant_share, constant / (constant + flops + bytes));
    record.bytes_counted[LEVEL_L1] = 0.5 * dram; /* copies bypass l1 */
    record.energy_time = NAN;
    record.flops_vector[PRECISION_FP64] = 1; /* negligible */
    assert_near(derive(&record, &device).energy_at_roofs,
                150 * (record.time_median - 2e-6) + flops + bytes - more * 3e-12);
    device.roofs[0].energy = device.roofs[1].energy = NAN;
    assert_true(isnan(derive(&record, &device).energy_at_roofs));
    record_clear(&record);
    record = conv2d_record(); /* modelled bytes stay in l2 */
    assert_near(derive(&record, &device).energy_at_roofs, 150 * record.energy_time +
                                                              record.flops_model * 0.625e-12 +
                                                              record.bytes_model * 20e-12);
    record_clear(&record);
}

/* A kernel with nine tenths of a wave has enough parallelism, even if a wave is only one large
 * block per multiprocessor. The kernel takes 18 of 22 us. */
TEST(blocks_fill_the_device_or_not)
{
    static const struct {
        int64_t blocks, resident;
        const char *share;
    } cases[] = {{8, 8, "18.2 %"},
                 {7, 8, "100.0 %"},
                 {132, 132, "18.2 %"},
                 {476, 528, "18.2 %"},
                 {475, 528, "100.0 %"}, /* less than nine tenths of a wave */
                 {528, FIELD_MISSING, "unknown"}};
    struct device device = gpu_device();
    struct record record = counted_record();
    record.kernels[1].grid_x = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[64];
        record.kernels[0].grid_x = cases[i].blocks;
        record.kernels[0].resident = cases[i].resident;
        snprintf(text, sizeof text, "without enough parallelism: %s", cases[i].share);
        assert_says(derive(&record, &device).limiter_evidence, text);
    }
    record_clear(&record);
}

TEST(the_largest_part_limits)
{
    static const struct {
        double compute, bandwidth, gap, few_blocks;
        int64_t host_paced;
        enum limiter limiter;
    } rows[] = {
        {0.69, 0.30, 0.03, 1, false, LIMITER_COMPUTE},
        {0.30, 0.69, 0.03, 1, false, LIMITER_BANDWIDTH},
        {0.10, 0.05, 0.55, 1, false, LIMITER_OVERHEAD},
        {0.10, 0.05, 0.55, 1, true, LIMITER_HOST},
        {0.69, 0.30, 0.03, 1, true, LIMITER_COMPUTE},
        {0.10, 0.05, 0.20, 1, false, LIMITER_LATENCY},
        {0.10, 0.05, 0.35, 0.9, false, LIMITER_LATENCY},  /* the rest is 0.55 */
        {0.20, 0.05, 0.42, 0.9, false, LIMITER_OVERHEAD}, /* the rest is 0.38 */
        {0.20, 0.05, 0.42, 0.1, false, LIMITER_OVERHEAD},
        {0.05, 0.10, 0.20, 0.4, false, LIMITER_KERNEL}, /* most kernels have enough blocks */
        {0.61, 0.10, 0.10, 0.4, false, LIMITER_COMPUTE},
        {0.59, 0.10, 0.10, 0.4, false, LIMITER_KERNEL}, /* the largest part, but no limit */
        {0.10, 0.52, 0.10, 0.4, false, LIMITER_KERNEL},
        {0.10, 0.55, 0.44, 0.4, false, LIMITER_OVERHEAD},
        {0.10, 0.05, 0.55, 1, FIELD_MISSING, LIMITER_GAPS}, /* a program's row */
        {0, 0.9, 0.05, 0, false, LIMITER_BANDWIDTH},
        {0.5, 0.2, 0.1, NAN, false, LIMITER_COMPUTE}, /* shapes are unknown */
        {0.3, 0.2, 0.1, NAN, false, LIMITER_UNKNOWN},
        {NAN, 0.6, 0.1, 0, false, LIMITER_UNKNOWN}, /* FLOPs can take longer */
        {NAN, 0.4, 0.1, 0, false, LIMITER_UNKNOWN},
        {0.6, NAN, NAN, NAN, false, LIMITER_UNKNOWN},
        {0.6, 0.3, NAN, NAN, false, LIMITER_COMPUTE},
        {0.3, 0.4, NAN, 0, false, LIMITER_UNKNOWN},
        {0.3, NAN, 0.55, NAN, false, LIMITER_OVERHEAD},
        {NAN, NAN, 0.6, NAN, false, LIMITER_OVERHEAD},
        {NAN, NAN, NAN, NAN, false, LIMITER_UNKNOWN},
    };
    struct device device;
    device_init(&device);
    strcpy(device.kind, "cuda");
    device.peak_vector[PRECISION_FP32] = device.peak_bandwidth[LEVEL_DRAM] = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct kernel kernels[2];
        struct record record = sample_record("lstm precision=fp32", "lstm", "s1-1", 1);
        record.time_median = 1;
        record.unit = UNIT_VECTOR;
        record.bytes_model = record.flops_model = record.timer_overhead = NAN;
        record.flops_counted = rows[i].compute;
        record.bytes_counted[LEVEL_DRAM] = rows[i].bandwidth;
        record.busy_time = 1 - rows[i].gap;
        record.host_paced = rows[i].host_paced;
        /* The device holds two blocks. Kernel 0 has one, kernel 1 has two. */
        for (int j = 0; j < 2; ++j) {
            fields_clear(kernel_fields, &kernels[j]);
            kernels[j].grid_x = j + 1;
            kernels[j].grid_y = kernels[j].grid_z = 1;
            kernels[j].resident = 2;
            kernels[j].time = j == 0 ? rows[i].few_blocks : 1 - rows[i].few_blocks;
        }
        record.kernels = kernels;
        record.kernel_count = isnan(rows[i].few_blocks) ? 0 : 2;
        const int64_t limiter = derive(&record, &device).limiter;
        if (limiter != (int64_t)rows[i].limiter)
            fail_msg("row %zu: %s", i, limiter_name[limiter]);
    }
}

/* The kernel takes 18 of 22 us. The device's 100 multiprocessors hold 2048 threads each, or 300 of
 * the kernel's blocks of 256 threads. */
TEST(a_kernel_has_a_cause)
{
    static const struct {
        double dram, pipe, issue, active, memory, barrier;
        const char *cause;
    } rows[] = {
        {0.06, 0.94, 0.72, 1, 0.1, 0.1,
         "data_pipe: data pipe of l1 and shared memory 94 % busy; of"},
        {0.06, 0.94, 0.89, 0.85, 0.1, 0.1,
         "data_pipe, issue: data pipe of l1 and shared memory 94 %"},
        {0.06, 0.45, 0.85, 0.76, 0.1, 0.1,
         "issue, idle: issue slots 85 % busy; multiprocessors without a thread 24 % of the time; "
         "0.4 waves of blocks; of the kernel with 82 % of the kernels' time"},
        {0.65, 0.1, 0.1, 1, 0.4, 0.1, "dram: device memory 65 % busy; of"},
        {0.62, 0.1, 0.1, 1, 0.4, 0.1, "dram, latency: device memory 62 % busy; 40 %"},
        {0.1, 0.1, 0.57, 1, 0.4, 0.1,
         "latency, issue: 40 % of the threads' time they wait for global"},
        {0.1, 0.1, 0.54, 1, 0.4, 0.36,
         "latency: 36 % of the threads' time they wait for other threads at a barrier (barrier); "
         "40 % of the threads' time they wait for global memory (long_scoreboard); 3 blocks on a "
         "multiprocessor at a time (registers); 0.4 waves of blocks; of"},
        {NAN, NAN, NAN, 1, 0.4, 0.1, ""},
        {0.1, 0.1, 0.5, 1, 0.4, 0.1, "fp64: FP64 pipe 96 % busy; of"}, /* the last row */
    };
    struct device device = gpu_device();
    struct record record = counted_record();
    double *activity = record.kernels[0].activity;
    device.multiprocessors = 100;
    device.multiprocessor_threads = 2048;
    activity[ACTIVITY_TENSOR] = activity[ACTIVITY_DRAM] = NAN;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        activity[ACTIVITY_DRAM] = rows[i].dram;
        activity[ACTIVITY_DATA_PIPE] = rows[i].pipe;
        activity[ACTIVITY_ISSUE] = rows[i].issue;
        activity[ACTIVITY_MULTIPROCESSORS] = rows[i].active;
        activity[ACTIVITY_STALL_LONG_SCOREBOARD] = rows[i].memory;
        activity[ACTIVITY_STALL_BARRIER] = rows[i].barrier;
        activity[ACTIVITY_STALL_SELECTED] = 0.5; /* no reason to wait */
        activity[ACTIVITY_FP64] = i + 1 < sizeof rows / sizeof *rows ? NAN : 0.96;
        struct derived derived = derive(&record, &device);
        if (strncmp(derived.cause, rows[i].cause, strlen(rows[i].cause)) != 0 ||
            !*rows[i].cause != !*derived.cause)
            fail_msg("'%s' is not '%s'", derived.cause, rows[i].cause);
    }
    record_clear(&record);
}

/* Launches by a graph have the gap of graphs. */
TEST(each_launch_has_its_overhead)
{
    struct device device = gpu_device();
    struct record record = conv2d_record();
    record.launches = 10;
    const double stream = device.launch_overhead, graph = 0.5 * stream;
    add_roof(&device, ROOF_LAUNCH_GAP_GRAPH, ROOF_ALONE, graph);
    assert_near(derive(&record, &device).overhead_time, 10 * stream);
    record.launches_in_graphs = 8;
    assert_near(derive(&record, &device).overhead_time, 2 * stream + 8 * graph);
    record.launches_in_graphs = 10;
    device.launch_overhead = NAN; /* without effect */
    assert_near(derive(&record, &device).overhead_time, 10 * graph);
    record_clear(&record);
}

/* After a flush, writes that stay in L2 are traffic of device memory. With a hot cache these writes
 * may never reach device memory, and without bytes the intensity is missing. */
TEST(dirty_bytes_reach_device_memory)
{
    struct device device = gpu_device();
    struct record record = counted_record();
    record.bytes_model = 2 * 32.5e6;
    assert_near(derive(&record, &device).arithmetic_intensity[LEVEL_DRAM],
                record.flops_counted / 32.5e6);
    record.bytes_counted[LEVEL_DRAM] = record.bytes_written[LEVEL_DRAM] = 0;
    assert_true(isnan(derive(&record, &device).arithmetic_intensity[LEVEL_DRAM]));
    struct record cold = sample_record("conv2d batch=16 precision=fp16 cache=cold", "", "s1-0", 10);
    record.config = cold.config;
    record.bytes_counted[LEVEL_DRAM] = 32.5e6;
    record.bytes_written[LEVEL_DRAM] = 6.5e6;
    struct derived derived = derive(&record, &device);
    assert_near(derived.arithmetic_intensity[LEVEL_DRAM], record.flops_counted / 65e6);
    /* 39 of 65 MB are written, but no measured roof writes more than a triad's third */
    assert_near(derived.level_time[LEVEL_DRAM], 65e6 / 4e12);
    record_clear(&record);
}

/* A row of 23 us has kernels of 18 and 4 us. The second case has the activities of the first
 * kernel. */
TEST(parts_add_up_to_the_time)
{
    struct device device = gpu_device();
    struct record record = counted_record();
    const double time = 23e-6, gap = 1e-6;
    for (int causes = 0; causes < 2; ++causes) {
        double *activity = record.kernels[0].activity, sum = 0;
        if (causes) {
            activity[ACTIVITY_MULTIPROCESSORS] = 0.75;
            activity[ACTIVITY_ISSUE] = 0.2;
            activity[ACTIVITY_STALL_LONG_SCOREBOARD] = 0.3;
            activity[ACTIVITY_STALL_WAIT] = 0.1;
            activity[ACTIVITY_STALL_SELECTED] = 0.6; /* no reason to wait */
        }
        struct derived derived = derive(&record, &device);
        for (int i = 0; i < TIME_PART_COUNT; ++i)
            sum += derived.time_part[i];
        assert_near(sum, time);
        assert_near(derived.time_part[TIME_GAPS], gap);
        assert_near(derived.time_part[TIME_INSIDE_KERNELS], causes ? 4e-6 : 22e-6);
        if (!causes) {
            assert_string_equal(derived.limit, "inside_kernels 96 %");
            continue;
        }
        assert_near(derived.time_part[TIME_FEW_BLOCKS], 0.25 * 18e-6); /* 128 of 300 */
        assert_near(derived.time_part[TIME_ISSUING], 0.2 * 0.75 * 18e-6);
        assert_near(derived.time_part[TIME_MEMORY_LATENCY], 0.75 * 0.8 * 0.75 * 18e-6);
        assert_near(derived.time_part[TIME_DEPENDENCY], 0.25 * 0.8 * 0.75 * 18e-6);
        assert_string_equal(derived.limit, "memory_latency 35 %");
        record.kernels[0].grid_x = 3000; /* ten waves */
        record.kernels[1].activity[ACTIVITY_DRAM] = 0.8;
        activity[ACTIVITY_DRAM] = 0.95;
        activity[ACTIVITY_STALL_WAIT] = 0.3;
        derived = derive(&record, &device);
        assert_near(derived.time_part[TIME_IDLE_MULTIPROCESSORS], 0.25 * 18e-6);
        assert_string_equal(derived.limit, "dram 88 %");
        activity[ACTIVITY_DRAM] = 0.2;
        assert_string_equal(derive(&record, &device).limit,
                            "mixed: memory_latency 23 %, dependency 23 %");
        activity[ACTIVITY_ISSUE] = 0.78; /* in 0.75 of 18 us */
        assert_string_equal(derive(&record, &device).limit, "issue 59 %");
        /* Kernels overlap: they are active in 13.5 and 4 of their own 18 and 4 us. */
        record.busy_time = 15e-6;
        derived = derive(&record, &device);
        assert_near(derived.time_part[TIME_GAPS], 8e-6);
        assert_true(fabs(derived.time_part[TIME_IDLE_MULTIPROCESSORS]) < 1e-15);
        assert_near(derived.time_part[TIME_INSIDE_KERNELS], 15e-6 * 4 / 17.5);
    }
    record.busy_time = NAN;
    struct derived derived = derive(&record, &device);
    assert_true(isnan(derived.time_part[TIME_GAPS]) && derived.limit[0] == '\0');
    record_clear(&record);
}

/* Regions ran in 0.75 of 1 ms; threads ran for half of the cores' time and waited for a quarter. */
TEST(parts_of_threads_add_up)
{
    struct device device = cpu_device();
    struct record record = lstm_record();
    struct derived derived = derive(&record, &device);
    const double roof = fmax(derived.level_time[LEVEL_DRAM], record.flops_model / 2e11);
    const double parts[] = {[TIME_GAPS] = 0.25e-3,
                            [TIME_INSIDE_KERNELS] = 0.375e-3 - roof,
                            [TIME_IDLE_THREADS] = 0.1875e-3,
                            [TIME_OFF_PROCESSOR] = 0.1875e-3,
                            [TIME_AT_ROOF] = roof};
    for (int i = 0; i < TIME_PART_COUNT; ++i)
        assert_true(fabs(derived.time_part[i] - parts[i]) < 1e-15);
    record.threads_running = 0.1; /* share of a mean of 8 ms, with outliers */
    record.threads_waiting = 0.9;
    record.time_mean = 8 * record.time_median;
    derived = derive(&record, &device);
    assert_near(derived.time_part[TIME_OFF_PROCESSOR], 0.2 * 0.75e-3);
    assert_true(derived.time_part[TIME_IDLE_THREADS] < 1e-15);
    record.time_mean = record.time_median;
    record.threads_running = 1;
    record.threads_waiting = NAN; /* a kernel without times of run queues */
    record.flops_model = 0.6e-3 * 2e11;
    derived = derive(&record, &device);
    assert_near(derived.time_part[TIME_AT_ROOF], 0.6e-3);
    assert_true(derived.time_part[TIME_OFF_PROCESSOR] == 0);
    assert_string_equal(derived.limit, "compute 60 %");
    record_clear(&record);
}

TEST(nothing_follows_from_nothing)
{
    struct record record;
    struct device device;
    char marks[TIME_MARKS];
    record_init(&record);
    device_init(&device);
    struct derived derived = derive(&record, &device);
    assert_int_equal(derived.paper_bound, BOUND_UNKNOWN);
    assert_string_equal(derived.limiter_evidence, "");
    assert_true(isnan(derived.performance) && isnan(derived.roof_fraction));
    assert_true(isnan(time_uncertainty(&record)));
    time_marks(&record, marks);
    assert_string_equal(marks, "");
}

TEST(each_mark_of_a_time_has_a_meaning)
{
    struct record record;
    char marks[TIME_MARKS];
    record_init(&record);
    record.time_median = 30e-6;
    record.time_median_low = 29.7e-6;
    record.time_median_high = 30.3e-6;
    record.timer_overhead = 3e-6;
    record.sample_iterations = 40;
    time_marks(&record, marks);
    assert_string_equal(marks, "");
    record.sample_iterations = 1;
    time_marks(&record, marks);
    assert_string_equal(marks, "t");
    record.host_paced = record.bimodal = 1;
    record.caller_time = 33e-6;
    record.caller_uncertainty = 0.05; /* 33 us minus 5 % is within 5 % of the time */
    strcpy(record.accuracy, "inaccurate: ...");
    record.time_median_high = 1.2 * record.time_median;
    time_marks(&record, marks);
    assert_string_equal(marks, "nhbti");
    record.caller_uncertainty = 0.04;
    record.threads_waiting = 0.06;
    time_marks(&record, marks);
    assert_string_equal(marks, "nhbticp");
    record.bytes_counted[LEVEL_DRAM] = 1e6;
    time_marks(&record, marks);
    assert_string_equal(marks, "nhbticpm");
    for (const char *mark = marks; *mark; ++mark)
        assert_non_null(time_mark_text(*mark));
    assert_null(time_mark_text('x'));
}
