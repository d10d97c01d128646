/* The tiles that a kernel's name tells, and how much matrix products grow in them: what counts more
 * than the model where a tile stands out over the matrices. Pure. */
#ifndef ROOFSWEEP_KERNEL_TILE_H
#define ROOFSWEEP_KERNEL_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/products.h"
#include "model/record.h"

/* What a block of a kernel does at a time: extents[0] x extents[1] results, extents[2] products of
 * each. Libraries differ in which extent of a product lies along which of a tile. */
struct kernel_tile {
    int64_t extents[3];
    int64_t blocks;  /* of the grid; 0: not known */
    int64_t cluster; /* blocks that run together: a kernel has whole clusters; 1: there are none */
};

/* False, with the tile unchanged, if the kernel's name tells none. */
bool kernel_tile_of(const struct kernel *kernel, struct kernel_tile *tile);

int64_t kernel_tile_padded(int64_t size, int64_t multiple);

/* How many times as large the products become, each extent padded to its multiple. */
double products_growth(const struct extent extents[3], const int64_t multiples[3]);

/* Do the products become `ratio` times as large in such tiles? Clusters: and are there more of them
 * because all clusters are whole? Within 1 %. */
bool kernel_tile_fits(const struct kernel_tile *tile, const struct products *shape, double ratio);
bool kernel_tile_fits_in_clusters(const struct kernel_tile *tile, const struct products *shape,
                                  double ratio);

/* The first of so many parts, each with these products, have these tiles; the others need none: do
 * all become `sum` times as large as one part? Within 1 %. */
bool kernel_tiles_fit(const struct kernel_tile *tiles, int tile_count, const struct products *shape,
                      int parts, double sum);

#endif
