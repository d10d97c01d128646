/* What is known of the chips of one vendor by compute capability, and what follows from it: the
 * theoretical roofs. One table, which `roofsweep --list chips` prints and workers ask. Const data
 * and pure functions. */
#pragma once

#include "model/workload.h"

struct chip {
    const char *architecture; /* "Hopper" */
    int capability;           /* 10 major + minor */
    double l1_bytes;          /* per SM, shared memory included */
    double onchip_read;       /* byte per clock and SM, of L1 and of shared memory alike */
    double l2_read;           /* byte per clock, the whole chip; NaN: not known */
    /* Fused multiply-adds per clock and SM; 0: there are no such units, NaN: not known here. */
    double vector[PRECISION_COUNT], tensor[PRECISION_COUNT];
    const char
        *model; /* words of the product's name that it holds for; NULL: all of the capability */
};
/* All rows in turn: NULL gives the first one, the last one gives NULL. */
const struct chip *chip_next(const struct chip *chip);
/* name: of the product, as CUDA tells it, "NVIDIA L40S". A chip of unknowns if there is no row. */
const struct chip *chip_find(int capability, const char *name);

/* Whole chips by the name that CUDA tells, at their boost clocks. */
struct chip_product {
    const char *name;
    int capability, multiprocessors;
    double clock, memory_clock, bus_bits; /* s-1, s-1, bit */
};
const struct chip_product *chip_product_next(const struct chip_product *product); /* as chip_next */

/* At the nominal clocks; NaN where not known or where there are no such units. */
struct theory {
    double clock, memory_clock;                              /* s-1 */
    double bandwidth[LEVEL_COUNT];                           /* byte s-1; caches: of reads */
    double shared_read;                                      /* byte s-1 */
    double vector[PRECISION_COUNT], tensor[PRECISION_COUNT]; /* s-1 */
};
struct theory chip_theory(const struct chip *chip, int multiprocessors, double clock,
                          double memory_clock, double bus_bits);
struct theory chip_product_theory(const struct chip_product *product);
