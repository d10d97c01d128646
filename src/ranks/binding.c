#include "ranks/binding.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <limits.h>
#include <stdlib.h>

/* Only these cores, as if the machine had no others. */
static bool load_topology(const cpu_set_t *all, hwloc_topology_t *topology)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    bool loaded = cpus && hwloc_topology_init(topology) == 0;
    if (loaded && (hwloc_topology_load(*topology) != 0 ||
                   hwloc_cpuset_from_glibc_sched_affinity(*topology, cpus, all, sizeof *all) != 0 ||
                   hwloc_topology_restrict(*topology, cpus, 0) != 0)) {
        hwloc_topology_destroy(*topology);
        loaded = false;
    }
    hwloc_bitmap_free(cpus);
    return loaded;
}

cpu_set_t binding_share(const cpu_set_t *all, int place, int count, bool *shared)
{
    cpu_set_t share = *all;
    hwloc_topology_t topology;
    *shared = count > 1;
    if (count <= 1 || !load_topology(all, &topology))
        return share;
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    hwloc_cpuset_t *sets = calloc((size_t)count, sizeof *sets);
    if (sets && count <= hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) &&
        hwloc_distrib(topology, &root, 1, sets, (unsigned)count, INT_MAX, 0) == 0) {
        hwloc_cpuset_to_glibc_sched_affinity(topology, sets[place], &share, sizeof share);
        *shared = false;
    }
    for (int i = 0; sets && i < count; ++i)
        hwloc_bitmap_free(sets[i]);
    free(sets);
    hwloc_topology_destroy(topology);
    return share;
}

struct binding binding_create(MPI_Comm comm)
{
    struct binding binding = {0};
    MPI_Comm node;
    cpu_set_t own;
    int place = 0, count = 0;
    bool overlap = false;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &binding.local_rank);
    MPI_Comm_size(node, &binding.local_count);
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        CPU_ZERO(&own);
    cpu_set_t *masks = malloc((size_t)binding.local_count * sizeof *masks);
    if (!masks)
        MPI_Abort(comm, 1);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, masks, sizeof own, MPI_BYTE, node);
    /* Masks that overlap without being equal are left as they are: somebody meant them so. */
    for (int i = 0; i < binding.local_count; ++i) {
        cpu_set_t common;
        CPU_AND(&common, &masks[i], &own);
        if (CPU_EQUAL(&masks[i], &own)) {
            place += i < binding.local_rank;
            ++count;
        } else if (CPU_COUNT(&common) > 0) {
            overlap = true;
        }
    }
    binding.cpus = binding_share(&own, place, count, &binding.shared);
    binding.shared |= overlap;
    free(masks);
    MPI_Comm_free(&node);
    return binding;
}
