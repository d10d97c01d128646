/* The cores that this process may use (one hardware thread of each), their caches and memory. */
#pragma once

#include <sched.h>

#include "base/status.h"
#include "model/workload.h"

struct topology {
    int cores;
    int *cpus;                 /* [cores] the system's number of each core's first allowed thread */
    cpu_set_t *mask;           /* initial affinity of the process */
    size_t mask_size;          /* byte */
    double cache[LEVEL_COUNT]; /* byte, sum over the caches of these cores; NaN: unknown */
    double memory;             /* byte, of the NUMA nodes of these cores */
    double quota;     /* processors that a cgroup grants; NaN: no limit below the number of cores */
    double clock_max; /* s-1; NaN: unknown */
    char model[96];
    char list[48]; /* "0-3,8" */
};

/* The caller clears it with topology_clear. */
enum status topology_init(struct topology *topology, struct error *error);
void topology_clear(struct topology *topology);

/* Returns the least limit() (NaN: none) of the cgroups in a file like /proc/self/cgroup, and of
 * those above them. limit() gets a group's folder; all controllers are mounted below `mounts`. */
double cgroups_least(const char *groups, const char *mounts, double (*limit)(const char *folder));
/* Returns the least CPU quota, in processors; INFINITY: none. */
double topology_quota(const char *groups, const char *mounts);

/* Reads the CPU's name from a file like /proc/cpuinfo; "": it has no name. */
void topology_model(const char *cpuinfo, char *text, size_t size);

/* Returns the current clock, mean over the cores, s-1; NaN: the system does not report it. */
double topology_clock(const struct topology *topology);
