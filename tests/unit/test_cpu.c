/* Parts of the CPU device: elements in memory, topologies of other machines,
 * loops of the roofs, and the team. */
#include "unit.h"

#include <hwloc.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/cpu/memory.h"
#include "worker/cpu/simd.h"
#include "worker/cpu/team.h"

/* ---- elements in memory: exact values round-trip, other values are truncated ---- */

static double through(enum precision precision, double value)
{
    double data[2] = {0};
    element_store(precision, data, 1, value);
    return element_load(precision, data, 1);
}

TEST(elements_round_trip)
{
    static const enum precision precisions[] = {PRECISION_FP64, PRECISION_FP32, PRECISION_BF16,
                                                PRECISION_FP16};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; ++i)
        for (int exponent = -6; exponent <= 0; ++exponent) {
            struct fill fill =
                fill_make(7, TENSOR_INPUT, precision_info[precisions[i]].significand, exponent);
            for (uint64_t index = 0; index < 5000; ++index) {
                double value = fill_value(fill, index);
                assert_true(through(precisions[i], value) == value);
            }
            assert_true(isnan(through(precisions[i], NAN)));
            assert_true(through(precisions[i], -INFINITY) == -INFINITY);
        }
}

TEST(halves_are_truncated)
{
    static const struct {
        enum precision precision;
        double value, expected;
    } cases[] = {
        {PRECISION_FP16, 65504.0, 65504.0},   {PRECISION_FP16, 65536.0, INFINITY},
        {PRECISION_FP16, 0x1p-14, 0x1p-14},   {PRECISION_FP16, -0x1p-24, -0x1p-24},
        {PRECISION_FP16, 0x1p-26, 0.0},       {PRECISION_FP16, 0x3p-24, 0x3p-24},
        {PRECISION_FP16, 1.0 + 0x1p-11, 1.0}, {PRECISION_FP16, 1.0 + 0x1p-10, 1.0 + 0x1p-10},
        {PRECISION_BF16, 1.0 + 0x1p-8, 1.0},  {PRECISION_BF16, 1.0 + 0x1p-7, 1.0 + 0x1p-7},
        {PRECISION_BF16, 0x1p100, 0x1p100},   {PRECISION_FP32, 1.0 + 0x1p-40, 1.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_true(through(cases[i].precision, cases[i].value) == cases[i].expected);
}

/* ---- machines ---- */

static FILE *create_file(char *path)
{
    strcpy(path, "/tmp/test_topology.XXXXXX");
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    return file;
}

static void check_model(const char *expected, const char *cpuinfo)
{
    char path[32], model[96];
    FILE *file = create_file(path);
    fputs(cpuinfo, file);
    fclose(file);
    topology_model(path, model, sizeof model);
    unlink(path);
    assert_string_equal(model, expected);
}

TEST(models_are_named)
{
    check_model("Some CPU @ 3 GHz",
                "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some CPU @ 3 GHz\n");
    check_model("ARM implementer 0x41, part 0xd4f",
                "processor\t: 0\nCPU implementer\t: 0x41\n"
                "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n");
    check_model("", "processor\t: 0\n");
}

/* cgroup v2 has one file, v1 two below a controller. The quota of a parent group counts, too. */
TEST(quotas_are_found)
{
    static const struct {
        const char *group, *file;
        double quota;
    } cases[] = {
        {"0::/a", "echo max 100000 >a/cpu.max", INFINITY},
        {"0::/a", "echo 150000 100000 >cpu.max", 1.5},
        {"4:cpu,x:/b", "echo 100000 >cpu,x/b/cpu.cfs_period_us", INFINITY},
        {"4:cpu,x:/b", "echo -1 >cpu,x/b/cpu.cfs_quota_us", INFINITY},
        {"1:x:/b\n4:cpu,x:/b/c", "echo 50000 >cpu,x/b/cpu.cfs_quota_us", 0.5},
    };
    char folder[] = "/tmp/roofsweep-quota-XXXXXX", text[256];
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        snprintf(text, sizeof text, "cd %s && mkdir -p a cpu,x/b && %s && echo '%s' >group", folder,
                 cases[i].file, cases[i].group);
        assert_int_equal(system(text), 0);
        snprintf(text, sizeof text, "%s/group", folder);
        assert_true(topology_quota(text, folder) == cases[i].quota);
    }
    snprintf(text, sizeof text, "rm -r %s", folder);
    assert_int_equal(system(text), 0);
}

/* A package with a NUMA node of 4 GiB and, as on a GH200, a NUMA node of 1 GiB that is the GPU's
 * memory. hwloc builds the topology and reads it back in place of this machine's. */
TEST(gpu_memory_is_excluded)
{
    static const char machine[] = "Package:1 [NUMANode(memory=4294967296)] "
                                  "[NUMANode(memory=1073741824)] Core:1024 PU:1";
    hwloc_topology_t tree;
    struct topology topology;
    char path[32];
    fclose(create_file(path));
    assert_int_equal(hwloc_topology_init(&tree), 0);
    assert_int_equal(hwloc_topology_set_synthetic(tree, machine), 0);
    assert_int_equal(hwloc_topology_load(tree), 0);
    hwloc_get_obj_by_type(tree, HWLOC_OBJ_NUMANODE, 1)->subtype = strdup("GPUMemory");
    assert_int_equal(hwloc_topology_export_xml(tree, path, 0), 0);
    hwloc_topology_destroy(tree);
    setenv("HWLOC_XMLFILE", path, 1);
    assert_ok(topology_init(&topology, &failure));
    unsetenv("HWLOC_XMLFILE");
    unlink(path);
    assert_true(topology.memory == 4.0 * 1024 * 1024 * 1024);
    topology_clear(&topology);
}

/* ---- the loops of the roofs, for all vectors of this CPU ---- */

enum { COUNT = 2 * SIMD_BLOCK / sizeof(double) };

static double a[COUNT] __attribute__((aligned(64)));
static double b[COUNT] __attribute__((aligned(64)));
static double c[COUNT] __attribute__((aligned(64)));

static double expected(enum memory_pattern pattern, size_t i, double scale)
{
    if (pattern == PATTERN_WRITE)
        return scale;
    if (pattern == PATTERN_COPY)
        return b[i];
    if (pattern == PATTERN_TRIAD)
        return b[i] + scale * c[i];
    return -1.0; /* read: unchanged */
}

static void check_sweep(enum memory_pattern pattern, simd_sweep *sweep)
{
    double result = 0.0;
    const struct simd_arrays arrays = {a, b, c, 0.5, &result};
    for (size_t i = 0; i < COUNT; ++i) {
        a[i] = -1.0;
        b[i] = (double)i;
        c[i] = (double)(4 * i);
    }
    sweep(&arrays, sizeof a, 3);
    for (size_t i = 0; i < COUNT; ++i)
        if (a[i] != expected(pattern, i, 0.5))
            fail_msg("%s: element %zu is %g", memory_pattern_name[pattern], i, a[i]);
    if (pattern == PATTERN_READ)
        assert_true(result < 0.0 && -result * 2.0 <= 3.0 * COUNT); /* one lane's share */
}

TEST(sweeps_write_their_pattern)
{
    const struct simd *kinds[SIMD_KINDS];
    int count = simd_list(kinds);
    assert_true(count >= 1);
    for (int kind = 0; kind < count; ++kind)
        for (int i = 0; i < PATTERN_COUNT; ++i) {
            const struct simd_pattern *pattern = &kinds[kind]->patterns[i];
            assert_int_equal(pattern->plain == NULL, i >= PATTERN_ATOMIC); /* GPUs only */
            if (!pattern->plain)
                continue;
            check_sweep((enum memory_pattern)i, pattern->plain);
            if (pattern->stream)
                check_sweep((enum memory_pattern)i, pattern->stream);
        }
}

static double fma_result(simd_fma *fma, int64_t iterations)
{
    double result = NAN;
    fma(0x1p-20, iterations, &result);
    return result;
}

/* Every value still alternates between two numbers after thousands of steps. */
TEST(chains_alternate)
{
    const struct simd *kinds[SIMD_KINDS];
    for (int precision = 0; precision < PRECISION_COUNT; ++precision)
        for (int kind = simd_products((enum precision)precision, kinds) - 1; kind >= 0; --kind) {
            simd_fma *fma = kinds[kind]->fma[precision];
            if (!fma)
                continue;
            double even = fma_result(fma, 10000), odd = fma_result(fma, 10001);
            assert_true(isfinite(even) && fabs(even - odd) > kinds[kind]->chains);
            assert_true(fabs(even - fma_result(fma, 10002)) < 0.01 * fabs(even - odd));
        }
}

/* ---- a team of four threads, also on fewer processors ---- */

enum { THREADS = 4 };

/* Finds on how many processors each thread of a region may run. */
static void widths_find(int threads, int widths[THREADS])
{
#pragma omp parallel num_threads(threads)
    {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        widths[omp_get_thread_num()] = CPU_COUNT(&set);
    }
}

/* A smaller region ends threads. New threads may run on all processors, not just the caller's. */
TEST(new_threads_of_an_unbound_team_get_all_cores)
{
    cpu_set_t all;
    int cpus[THREADS], found = 0, widths[THREADS];
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        skip();
    for (int i = 0, cpu = 0; i < THREADS; cpu = (cpu + 1) % CPU_SETSIZE)
        if (CPU_ISSET(cpu, &all))
            cpus[i++] = cpu;
    found = CPU_COUNT(&all) < THREADS ? CPU_COUNT(&all) : THREADS;
    struct topology topology = {
        .cores = THREADS, .cpus = cpus, .mask = &all, .mask_size = sizeof all};
    assert_ok(team_bind(&topology, &failure));
    widths_find(THREADS, widths);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(widths[i], 1);
    team_unbind_caller(&topology);
    widths_find(2, widths);
    widths_find(THREADS, widths);
    assert_int_equal(widths[0], found);
    for (int i = 2; i < THREADS; ++i)
        assert_int_equal(widths[i], found);
    assert_ok(team_bind(&topology, &failure));
    widths_find(THREADS, widths);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(widths[i], 1);
    team_unbind(&topology);
    widths_find(THREADS, widths);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(widths[i], CPU_COUNT(&all));
}
