/* A rank among the ranks of its node, while they measure roofs: what node_tuning and node_roofs share. */
#ifndef ROOFSWEEP_NODE_H
#define ROOFSWEEP_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/device_kind.h"
#include "ranks/gathering.h"
#include "ranks/node_roofs.h"

struct progress;

struct node {
    struct gathering ranks;
    struct executor *executor;
    const struct node_roofs_settings *settings;
    const struct log *log;
    struct device device;   /* the executor's, with the roofs so far */
    int device_kind;        /* of this device: index into device_kinds */
    bool found[ROOF_KINDS]; /* of this device; not those that a worker was lost over */
    bool tuned[ROOF_KINDS]; /* of them, those that the present worker can measure */
    /* How many devices of the node have a roof, for each kind of device: only devices of one
     * kind do the same. What a GPU and a CPU call "dram read" are two things. */
    int owners[DEVICE_KINDS][ROOF_KINDS];
    bool sustains[DEVICE_KINDS]
                 [ROOF_KINDS]; /* of compute: also measured once the clock has settled */
    bool held;  /* the worker goes on with its last roof until it is asked for something */
    int losses; /* of this rank's workers */
    /* On the heap: MPI writes to an abandoned call when the last rank comes after all. */
    double *rates; /* best bursts of each kind of device and roof: own, and all ranks' sums */
    struct roof_way *way, *ways; /* ROOF_KINDS of this rank, and of each rank */
    uint64_t *models;            /* of each rank's device; node_tuning.c */
    int *members;                /* room for as many ranks as there are */
    struct progress *progress;   /* of rank 0 of the job; else NULL */
    size_t left;                 /* roofs that the node still has to measure */
    double part_began;           /* s, of clock_monotonic */
    size_t turns;                /* that this device measures alone, in its turn */
};

#endif
