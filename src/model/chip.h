/* NVIDIA's chips by compute capability, and their theoretical roofs, for `roofsweep --list chips`
 * and for workers. Const data and pure functions. */
#pragma once

#include "model/workload.h"

struct chip {
    const char *architecture; /* "Hopper" */
    int capability;           /* 10 * major + minor */
    double l1_bytes;          /* byte per SM, including shared memory */
    double onchip_read;       /* byte per clock and SM: reads of L1 or of shared memory */
    double l2_read;           /* byte per clock of the whole chip; NaN: unknown */
    /* Fused multiply-adds per clock and SM, by precision; 0: no units, NaN: unknown. */
    double vector[PRECISION_COUNT], tensor[PRECISION_COUNT];
    const char *model; /* words in the name of the product; NULL: all products of the capability */
};
extern const struct chip chips[]; /* ends with a row without architecture */
/* `name` is the product's name in CUDA, such as "NVIDIA L40S". If no row fits, all numbers of the
 * result are unknown. */
const struct chip *chip_find(int capability, const char *name);

/* Products by their CUDA names, with the numbers of a whole chip at its boost clock. */
struct chip_product {
    const char *name;
    int capability, multiprocessors;
    double clock, memory_clock, bus_bits; /* s-1, s-1, bit */
};
extern const struct chip_product chip_products[]; /* ends with a row without name */

/* Theoretical roofs at nominal clocks; NaN: unknown, or the chip has no such units. */
struct theory {
    double clock, memory_clock;                              /* s-1 */
    double bandwidth[LEVEL_COUNT];                           /* byte s-1; caches: reads */
    double shared_read;                                      /* byte s-1 */
    double vector[PRECISION_COUNT], tensor[PRECISION_COUNT]; /* s-1 */
};
struct theory chip_theory(const struct chip *chip, int multiprocessors, double clock,
                          double memory_clock, double bus_bits);
struct theory chip_product_theory(const struct chip_product *product);
