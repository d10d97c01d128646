#include "worker/cpu/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/protocol.h"

/* With OMP_PROC_BIND the OpenMP library has bound this thread to one core before main(). The
 * library's places together are the process's initial affinity. */
static void mask_add_places(struct topology *topology)
{
    for (int place = 0; place < omp_get_num_places(); ++place) {
        int count = omp_get_place_num_procs(place);
        int *cpus = calloc((size_t)count + 1, sizeof *cpus);
        if (!cpus)
            return;
        omp_get_place_proc_ids(place, cpus);
        for (int i = 0; i < count; ++i)
            CPU_SET_S((size_t)cpus[i], topology->mask_size, topology->mask);
        free(cpus);
    }
}

/* Reads the affinity mask in growing sizes, because there may be more than 1024 CPUs. */
static enum status mask_read(struct topology *topology, struct error *error)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        topology->mask = CPU_ALLOC(cpus);
        if (!topology->mask)
            break;
        topology->mask_size = CPU_ALLOC_SIZE(cpus);
        CPU_ZERO_S(topology->mask_size, topology->mask);
        if (sched_getaffinity(0, topology->mask_size, topology->mask) == 0) {
            mask_add_places(topology);
            return STATUS_OK;
        }
        CPU_FREE(topology->mask);
        topology->mask = NULL;
        if (errno != EINVAL)
            break;
    }
    return error_set(error, STATUS_DEVICE, "the CPU affinity mask cannot be read: %s",
                     strerror(errno));
}

/* Reads up to two numbers at the begin of a file. Returns how many. */
static int numbers_read(const char *folder, const char *name, double numbers[2])
{
    char path[8192];
    snprintf(path, sizeof path, "%.8000s/%s", folder, name);
    FILE *file = fopen(path, "re");
    int count = file ? fscanf(file, "%lf %lf", &numbers[0], &numbers[1]) : 0;
    if (file)
        fclose(file);
    return count;
}

/* Returns quota / period of a cgroup, of v2 or v1. "max" and -1 mean that there is no quota. */
static double quota_read(const char *folder)
{
    double numbers[3] = {-1, 1};
    const bool known = numbers_read(folder, "cpu.max", numbers) == 2 ||
                       (numbers_read(folder, "cpu.cfs_quota_us", numbers) == 1 &&
                        numbers_read(folder, "cpu.cfs_period_us", numbers + 1) == 1);
    return known && numbers[0] > 0 ? numbers[0] / numbers[1] : NAN;
}

double cgroups_least(const char *groups, const char *mounts, double (*limit)(const char *folder))
{
    char line[4096], folder[8192];
    double least = INFINITY;
    FILE *file = fopen(groups, "re");
    while (file && fgets(line, sizeof line, file)) { /* "9:cpu,cpuacct:/a/b", or "0::/a/b" */
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path = line[strcspn(line, "\n")] = '\0';
        int root = snprintf(folder, sizeof folder, "%.2000s/%s", mounts, controllers + 1);
        for (int end = root + sprintf(folder + root, "%s", path + 1); end >= root;) {
            folder[end] = '\0';
            least = fmin(least, limit(folder));
            while (--end > root && folder[end] != '/')
                ;
        }
    }
    if (file)
        fclose(file);
    return least;
}

double topology_quota(const char *groups, const char *mounts)
{
    return cgroups_least(groups, mounts, quota_read);
}

/* If hwloc finds no cores, as on some virtual machines, each hardware thread is a core. A cgroup's
 * quota limits the number of cores, because further threads would be throttled. */
static enum status cores_find(struct topology *topology, hwloc_topology_t tree,
                              hwloc_bitmap_t chosen, struct error *error)
{
    int objects = hwloc_get_nbobjs_by_type(tree, HWLOC_OBJ_CORE);
    hwloc_obj_type_t type = objects > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    if (objects <= 0)
        objects = hwloc_get_nbobjs_by_type(tree, type);
    const double quota = topology_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    const char *ranks = getenv(NODE_RANKS_VARIABLE);
    const double most = fmax(quota / (ranks ? atof(ranks) : 1), 1);
    topology->cpus = calloc((size_t)(objects > 0 ? objects : 1), sizeof *topology->cpus);
    if (!topology->cpus)
        return error_set(error, STATUS_DEVICE, "no memory for the list of cores");
    for (int i = 0; i < objects; ++i) {
        hwloc_obj_t core = hwloc_get_obj_by_type(tree, type, (unsigned)i);
        for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0;
             cpu = hwloc_bitmap_next(core->cpuset, cpu))
            if (CPU_ISSET_S((size_t)cpu, topology->mask_size, topology->mask)) {
                if (topology->cores + 1 > most) {
                    topology->quota = quota;
                    break;
                }
                topology->cpus[topology->cores++] = cpu;
                hwloc_bitmap_set(chosen, (unsigned)cpu);
                break;
            }
    }
    if (topology->quota > 0) /* programs inherit the mask */
        hwloc_cpuset_to_glibc_sched_affinity(tree, chosen, topology->mask, topology->mask_size);
    if (topology->cores > 0)
        return STATUS_OK;
    return error_set(error, STATUS_DEVICE, "no core of the affinity mask is in the topology");
}

static const struct {
    enum memory_level level;
    hwloc_obj_type_t type;
    int size_name; /* for sysconf */
    bool shared;   /* sysconf's size is for all cores, not for each core */
} caches[] = {
    {LEVEL_L1, HWLOC_OBJ_L1CACHE, _SC_LEVEL1_DCACHE_SIZE, false},
    {LEVEL_L2, HWLOC_OBJ_L2CACHE, _SC_LEVEL2_CACHE_SIZE, false},
    {LEVEL_L3, HWLOC_OBJ_L3CACHE, _SC_LEVEL3_CACHE_SIZE, true},
};

static void caches_find(struct topology *topology, hwloc_topology_t tree, hwloc_bitmap_t chosen)
{
    topology->cache[LEVEL_DRAM] = NAN;
    for (size_t i = 0; i < sizeof caches / sizeof *caches; ++i) {
        double bytes = 0.0;
        for (hwloc_obj_t cache = NULL;
             (cache = hwloc_get_next_obj_by_type(tree, caches[i].type, cache));)
            if (hwloc_bitmap_intersects(cache->cpuset, chosen))
                bytes += (double)cache->attr->cache.size;
        long size = sysconf(caches[i].size_name);
        if (bytes <= 0.0 && size > 0)
            bytes = (double)size * (caches[i].shared ? 1 : topology->cores);
        topology->cache[caches[i].level] = bytes > 0.0 ? bytes : NAN;
    }
}

static bool is_gpu_memory(hwloc_obj_t node)
{
    return node->subtype && strcmp(node->subtype, "GPUMemory") == 0;
}

/* If the cores touch all NUMA nodes, the system's total replaces the sum of the nodes, which lacks
 * hot-plugged memory on some virtual machines. On chips with CPU and GPU (GH200) the system's total
 * includes the GPU's memory, so the sum stays. */
static void memory_find(struct topology *topology, hwloc_topology_t tree, hwloc_bitmap_t chosen)
{
    bool all = true;
    for (hwloc_obj_t node = NULL;
         (node = hwloc_get_next_obj_by_type(tree, HWLOC_OBJ_NUMANODE, node));)
        if (hwloc_bitmap_intersects(node->cpuset, chosen) && !is_gpu_memory(node))
            topology->memory += (double)node->attr->numanode.local_memory;
        else
            all = false;
    if (all || topology->memory <= 0.0)
        topology->memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Finds the value of "name : value" in a file like /proc/cpuinfo; "": there is none. */
static void cpuinfo_find(const char *path, const char *name, char *text, size_t size)
{
    char line[512];
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    while (file && text[0] == '\0' && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, name, strlen(name)) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
        }
    }
    if (file)
        fclose(file);
}

/* ARM's cores report numbers instead of names. */
void topology_model(const char *cpuinfo, char *text, size_t size)
{
    char implementer[16], part[16];
    cpuinfo_find(cpuinfo, "CPU implementer", implementer, sizeof implementer);
    cpuinfo_find(cpuinfo, "CPU part", part, sizeof part);
    cpuinfo_find(cpuinfo, "model name", text, size);
    if (text[0] != '\0' || part[0] == '\0')
        return;
    snprintf(text, size, "ARM implementer %s, part %s", implementer, part);
}

static void model_find(struct topology *topology, hwloc_topology_t tree)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(tree, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (model)
        snprintf(topology->model, sizeof topology->model, "%s", model);
    else
        topology_model("/proc/cpuinfo", topology->model, sizeof topology->model);
    for (size_t end = strlen(topology->model); end > 0 && topology->model[end - 1] == ' ';)
        topology->model[--end] = '\0'; /* AMD fills its names with blanks */
}

/* Too long a list becomes first core, last core and count. */
static void list_format(struct topology *topology, hwloc_bitmap_t chosen)
{
    int length = hwloc_bitmap_list_snprintf(topology->list, sizeof topology->list, chosen);
    if (length < 0 || (size_t)length >= sizeof topology->list)
        snprintf(topology->list, sizeof topology->list, "%d..%d(%d)", hwloc_bitmap_first(chosen),
                 hwloc_bitmap_last(chosen), topology->cores);
}

static double clock_read(int cpu, const char *name)
{
    char folder[64];
    double kilohertz[2];
    snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%d/cpufreq", cpu);
    return numbers_read(folder, name, kilohertz) > 0 ? kilohertz[0] * 1e3 : NAN;
}

enum status topology_init(struct topology *topology, struct error *error)
{
    struct topology found = {.quota = NAN};
    hwloc_topology_t tree = NULL;
    hwloc_bitmap_t chosen = hwloc_bitmap_alloc();
    enum status status = STATUS_OK;
    /* hwloc before 2.11 marks the memory of GPUs only with this setting. */
    setenv("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1", 0);
    if (!chosen || hwloc_topology_init(&tree) != 0 || hwloc_topology_load(tree) != 0)
        status = error_set(error, STATUS_DEVICE, "hwloc cannot read the topology of this machine");
    if (status == STATUS_OK)
        status = mask_read(&found, error);
    if (status == STATUS_OK)
        status = cores_find(&found, tree, chosen, error);
    if (status == STATUS_OK) {
        caches_find(&found, tree, chosen);
        memory_find(&found, tree, chosen);
        model_find(&found, tree);
        list_format(&found, chosen);
        found.clock_max = clock_read(found.cpus[0], "cpuinfo_max_freq");
        *topology = found;
    } else {
        topology_clear(&found);
    }
    if (tree)
        hwloc_topology_destroy(tree);
    hwloc_bitmap_free(chosen);
    return status;
}

void topology_clear(struct topology *topology)
{
    free(topology->cpus);
    CPU_FREE(topology->mask);
    *topology = (struct topology){.cores = 0};
}

double topology_clock(const struct topology *topology)
{
    double sum = 0.0;
    for (int i = 0; i < topology->cores; ++i)
        sum += clock_read(topology->cpus[i], "scaling_cur_freq");
    return sum / topology->cores;
}
