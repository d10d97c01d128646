#include "ranks/binding.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <hwloc/linux.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "ranks/liveness.h"

static bool load_topology(const struct cpus *all, hwloc_topology_t *topology)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    bool loaded = cpus && hwloc_topology_init(topology) == 0;
    if (loaded &&
        (hwloc_topology_load(*topology) != 0 ||
         hwloc_cpuset_from_glibc_sched_affinity(*topology, cpus, all->part, sizeof *all) != 0 ||
         hwloc_topology_restrict(*topology, cpus, 0) != 0)) {
        hwloc_topology_destroy(*topology);
        loaded = false;
    }
    hwloc_bitmap_free(cpus);
    return loaded;
}

struct cpus binding_share(const struct cpus *all, int place, int count, bool *shared)
{
    struct cpus share = *all;
    hwloc_topology_t topology;
    *shared = count > 1;
    if (count <= 1 || !load_topology(all, &topology))
        return share;
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    hwloc_cpuset_t *sets = calloc((size_t)count, sizeof *sets);
    if (sets && count <= hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) &&
        hwloc_distrib(topology, &root, 1, sets, (unsigned)count, INT_MAX, 0) == 0) {
        hwloc_cpuset_to_glibc_sched_affinity(topology, sets[place], share.part, sizeof share);
        *shared = false;
    }
    for (int i = 0; sets && i < count; ++i)
        hwloc_bitmap_free(sets[i]);
    free(sets);
    hwloc_topology_destroy(topology);
    return share;
}

static bool is_taken(int address, const int *taken, int count)
{
    while (count > 0 && taken[count - 1] != address)
        --count;
    return count > 0;
}

struct binding binding_choose(const struct visible *visible, int ranks, int rank)
{
    struct binding binding = {.local_rank = rank, .local_count = ranks, .device = rank};
    int *taken = calloc((size_t)ranks * VISIBLE_MAX, sizeof *taken), place;
    for (int size = 1; taken && size <= VISIBLE_MAX; ++size)
        for (int i = 0; i < ranks; ++i) {
            const int *own = visible[i].address;
            if (visible[i].count != size)
                continue;
            for (place = 0; place < size && is_taken(own[place], taken, binding.devices); ++place)
                ;
            if (place < size)
                taken[binding.devices++] = own[place];
            if (i == rank)
                binding.device = size == 1 ? 0 : place;
        }
    free(taken);
    return binding;
}

bool binding_narrow(struct cpus *cpus, const struct cpus *near)
{
    struct cpus common;
    CPU_AND_S(sizeof common, common.part, cpus->part, near->part);
    if (CPU_COUNT_S(sizeof common, common.part) > 0)
        *cpus = common;
    return CPU_COUNT_S(sizeof common, common.part) > 0 ||
           CPU_COUNT_S(sizeof *near, near->part) == 0;
}

/* Cores near the device with this PCI address; empty if unknown. */
static struct cpus read_near(int address)
{
    char path[96];
    struct cpus near;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/local_cpus",
             (unsigned)address >> 16, (unsigned)address >> 8 & 255, (unsigned)address & 255);
    CPU_ZERO_S(sizeof near, near.part);
    if (set && hwloc_linux_read_path_as_cpumask(path, set) == 0)
        hwloc_cpuset_to_glibc_sched_affinity(NULL, set, near.part, sizeof near);
    hwloc_bitmap_free(set);
    return near;
}

void binding_divide(const struct cpus *masks, int ranks, int rank, struct binding *binding)
{
    const struct cpus *own = &masks[rank];
    int place = 0, count = 0;
    bool overlap = false;
    /* Masks that overlap without being equal stay, because the user chose them. */
    for (int i = 0; i < ranks; ++i) {
        struct cpus common;
        CPU_AND_S(sizeof common, common.part, masks[i].part, own->part);
        if (CPU_EQUAL_S(sizeof *own, masks[i].part, own->part)) {
            place += i < rank;
            ++count;
        } else if (CPU_COUNT_S(sizeof common, common.part) > 0) {
            overlap = true;
        }
    }
    binding->cpus = binding_share(own, place, count, &binding->shared);
    binding->shared |= overlap;
}

struct binding binding_create(MPI_Comm comm, const struct visible *visible)
{
    MPI_Comm node;
    struct cpus own, near;
    int rank, ranks;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &ranks);
    struct cpus *masks =
        memory_require(comm, malloc((size_t)ranks * sizeof *masks), "the CPUs of a node");
    struct visible *all =
        memory_require(comm, malloc((size_t)ranks * sizeof *all), "the devices of a node");
    MPI_Allgather(visible, sizeof *visible, MPI_BYTE, all, sizeof *visible, MPI_BYTE, node);
    struct binding binding = binding_choose(all, ranks, rank);
    if (sched_getaffinity(0, sizeof own, own.part) != 0)
        CPU_ZERO_S(sizeof own, own.part);
    if (binding.device < visible->count) {
        near = read_near(visible->address[binding.device]);
        binding.far = !binding_narrow(&own, &near);
    }
    MPI_Allgather(&own, sizeof own, MPI_BYTE, masks, sizeof own, MPI_BYTE, node);
    binding_divide(masks, ranks, rank, &binding);
    free(masks);
    free(all);
    MPI_Comm_free(&node);
    return binding;
}
