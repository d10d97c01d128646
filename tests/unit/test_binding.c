#include "unit.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/binding.h"
#include "ranks/links.h"

/* Each pair of at most 64 nodes meets once. Each of more nodes meets 63 others, one in a round. */
TEST(nodes_meet_once)
{
    static const int counts[] = {2, 3, 4, 7, 64, 65, 10000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        const int nodes = counts[i], rounds = links_rounds(nodes);
        bool *busy = calloc((size_t)nodes * LINK_ROUNDS, sizeof *busy); /* by node and round */
        int meetings = 0;
        assert_non_null(busy);
        for (int one = 0; one < nodes; ++one)
            for (int other = one + 1; other < nodes; ++other) {
                const int round = links_round(one, other, nodes);
                assert_int_equal(links_round(other, one, nodes), round);
                if (round >= rounds)
                    continue;
                bool *first = &busy[one * LINK_ROUNDS + round];
                bool *second = &busy[other * LINK_ROUNDS + round];
                assert_false(*first || *second);
                *first = *second = true;
                ++meetings;
            }
        assert_int_equal(meetings, nodes <= 64 ? nodes * (nodes - 1) / 2 : 63 * (nodes / 2));
        free(busy);
    }
}

TEST(a_single_rank_gets_all_cores)
{
    struct cpus all;
    bool shared = true;
    sched_getaffinity(0, sizeof all, all.part);
    struct cpus share = binding_share(&all, 0, 1, &shared);
    assert_true(CPU_EQUAL_S(sizeof share, share.part, all.part));
    assert_false(shared);
}

/* One rank per processor: the ranks divide the cores without overlap. If two processors are one
 * core, `shared` is true and every rank has all cores. */
TEST(shares_do_not_overlap)
{
    struct cpus all, taken;
    sched_getaffinity(0, sizeof all, all.part);
    int count = CPU_COUNT_S(sizeof all, all.part);
    CPU_ZERO_S(sizeof taken, taken.part);
    for (int place = 0; place < count; ++place) {
        bool shared;
        struct cpus common, share = binding_share(&all, place, count, &shared);
        CPU_AND_S(sizeof common, common.part, share.part, taken.part);
        assert_true(CPU_COUNT_S(sizeof share, share.part) > 0);
        if (shared && count > 1)
            assert_true(CPU_EQUAL_S(sizeof share, share.part, all.part));
        else
            assert_int_equal(CPU_COUNT_S(sizeof common, common.part), 0);
        CPU_OR_S(sizeof taken, taken.part, taken.part, share.part);
    }
    assert_true(CPU_EQUAL_S(sizeof taken, taken.part, all.part));
}

TEST(more_ranks_than_cores_share)
{
    struct cpus all;
    bool shared = false;
    sched_getaffinity(0, sizeof all, all.part);
    struct cpus share = binding_share(&all, 3, CPU_COUNT_S(sizeof all, all.part) + 5, &shared);
    assert_true(shared);
    assert_true(CPU_EQUAL_S(sizeof share, share.part, all.part));
}

enum { RANKS = 8 };

/* Launchers show GPUs in different ways. A letter is a PCI address. `visible`: devices of each rank
 * in its order. `taken`: device of each rank, "-" for none. `devices`: their number. */
TEST(each_rank_takes_a_device)
{
    static const struct {
        const char *way, *visible[RANKS], *taken;
        int devices;
    } rows[] = {
        {"all visible to all", {"abcd", "abcd", "abcd", "abcd"}, "abcd", 4},
        {"fewer ranks than GPUs", {"abcd", "abcd"}, "ab", 2},
        {"more ranks than GPUs", {"ab", "ab", "ab"}, "ab-", 2},
        {"one per task, --gpus-per-task=1", {"a", "b", "c", "d"}, "abcd", 4},
        {"--gpus-per-task=2", {"ab", "cd"}, "ac", 2},
        {"--gpu-bind=closest, ranks by blocks", {"ab", "ab", "cd", "cd"}, "abcd", 4},
        {"--gpu-bind=closest, ranks alternating", {"ab", "cd", "ab", "cd"}, "acbd", 4},
        {"--gpu-bind=closest, sockets uneven", {"ab", "ab", "ab", "cd"}, "ab-c", 3},
        {"CUDA_VISIBLE_DEVICES=1,0, by index or UUID", {"ba", "ba"}, "ba", 2},
        {"a task that sees all beside one that sees one", {"ab", "a"}, "ba", 2},
        /* devices_number_shared reports shared devices. */
        {"two tasks on one GPU", {"a", "a"}, "aa", 1},
        {"two MIG slices of one GPU", {"a", "a", "b"}, "aab", 2},
        {"CUDA_VISIBLE_DEVICES=1,9,0: the wrong one hides the last", {"b", "b"}, "bb", 1},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; ++row) {
        struct visible visible[RANKS] = {{0}};
        const int ranks = (int)strlen(rows[row].taken);
        for (int i = 0; i < ranks; ++i)
            for (const char *at = rows[row].visible[i]; *at; ++at)
                visible[i].address[visible[i].count++] = (unsigned char)*at;
        for (int i = 0; i < ranks; ++i) {
            struct binding binding = binding_choose(visible, ranks, i);
            bool none = binding.device == visible[i].count;
            int taken = none ? '-' : visible[i].address[binding.device];
            if (taken != rows[row].taken[i] || binding.devices != rows[row].devices)
                fail_msg("%s: rank %d of %d GPUs takes %c", rows[row].way, i, binding.devices,
                         taken);
        }
    }
}

/* CUDA_VISIBLE_DEVICES is empty or wrong, or the worker is of another kind. */
TEST(unknown_devices_go_by_number)
{
    const struct visible visible[3] = {{0}};
    assert_int_equal(binding_choose(visible, 3, 2).device, 2);
    assert_int_equal(binding_choose(visible, 3, 2).devices, 0);
}

static struct cpus cpus_of(const char *list)
{
    struct cpus cpus;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_list_sscanf(set, list);
    hwloc_cpuset_to_glibc_sched_affinity(NULL, set, cpus.part, sizeof cpus);
    hwloc_bitmap_free(set);
    return cpus;
}

/* Nodes with GPUs: cores, local_cpulist of each GPU, masks that the launcher sets, and expected
 * masks of the workers. */
TEST(workers_run_near_their_gpus)
{
    static const char a100[] = "package:2 numa:4 core:16 pu:2(indexes=2*128:1*2)";
    static const char h100[] = "package:2 numa:1 core:56 pu:2(indexes=2*112:1*2)";
    static const char large[] = "package:8 numa:1 core:120 pu:2(indexes=2*960:1*2)";
    static const struct {
        const char *node, *near[RANKS], *left[RANKS], *gets[RANKS];
        bool far;
    } rows[] = {
        {a100,
         {"48-63,176-191", "48-63,176-191", "16-31,144-159", "16-31,144-159", "112-127,240-255",
          "112-127,240-255", "80-95,208-223", "80-95,208-223"},
         {"0-255", "0-255", "0-255", "0-255", "0-255", "0-255", "0-255", "0-255"},
         {"48-55,176-183", "56-63,184-191", "16-23,144-151", "24-31,152-159", "112-119,240-247",
          "120-127,248-255", "80-87,208-215", "88-95,216-223"},
         false},
        {h100,
         {"0-55,112-167", "56-111,168-223"},
         {"0-223", "0-223"},
         {"0-55,112-167", "56-111,168-223"},
         false},
        {h100, {"0-55,112-167", "0-55,112-167"}, {"50-63", "0-7"}, {"50-55", "0-7"}, false},
        {h100, {"56-111,168-223", "56-111,168-223"}, {"0-7", "8-15"}, {"0-7", "8-15"}, true},
        /* more CPUs than a cpu_set_t has */
        {large, {"", ""}, {"960-1919", "960-1919"}, {"960-1439", "1440-1919"}, false},
        {large,
         {"840-959,1800-1919", "720-839,1680-1799"},
         {"0-1919", "0-1919"},
         {"840-959,1800-1919", "720-839,1680-1799"},
         false},
        {h100, {"", "0-223"}, {"0-7", "8-15"}, {"0-7", "8-15"}, false}, /* a virtual machine */
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; ++row) {
        struct cpus masks[RANKS];
        struct binding binding;
        int ranks = 0;
        setenv("HWLOC_SYNTHETIC", rows[row].node, 1);
        for (; ranks < RANKS && rows[row].left[ranks]; ++ranks) {
            masks[ranks] = cpus_of(rows[row].left[ranks]);
            const struct cpus near = cpus_of(rows[row].near[ranks]);
            assert_int_equal(binding_narrow(&masks[ranks], &near), !rows[row].far);
        }
        for (int i = 0; i < ranks; ++i) {
            const struct cpus expected = cpus_of(rows[row].gets[i]);
            binding_divide(masks, ranks, i, &binding);
            if (!CPU_EQUAL_S(sizeof expected, binding.cpus.part, expected.part) || binding.shared)
                fail_msg("row %zu, rank %d: not %s", row, i, rows[row].gets[i]);
        }
    }
    unsetenv("HWLOC_SYNTHETIC");
}
