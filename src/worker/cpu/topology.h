/* The cores that this process may use, one hardware thread of each, and the memory beside them. */
#pragma once

#include <sched.h>

#include "base/status.h"
#include "model/workload.h"

struct topology {
    int cores;
    int *cpus;        /* [cores] operating system's number of the core's first allowed thread */
    cpu_set_t *mask;  /* of the process, as it was found */
    size_t mask_size; /* byte */
    double cache[LEVEL_COUNT]; /* byte, all caches of the level that these cores touch; NaN: not
                                  known */
    double memory;             /* byte, of the NUMA nodes of these cores */
    double clock_max;          /* s-1, NaN: not known */
    char model[96];
    char list[48]; /* "0-3,8" */
};

/* The caller clears it with topology_clear. */
enum status topology_init(struct topology *topology, struct error *error);
void topology_clear(struct topology *topology);

/* The CPU's name from a file like /proc/cpuinfo; "" without it. */
void topology_model(const char *cpuinfo, char *text, size_t size);

/* Present mean clock of the cores, s-1; NaN where the system does not say. */
double topology_clock(const struct topology *topology);
