/* A configuration's matrix products: what libraries round up, leave out or do otherwise, and so what
 * explains counts that differ from the modelled cost (results/count_note). Plain data; each
 * workload's row fills it (struct workload, member `products`). */
#ifndef ROOFSWEEP_PRODUCTS_H
#define ROOFSWEEP_PRODUCTS_H

#include <stddef.h>
#include <stdint.h>

/* One of a product's three extents. */
struct extent {
    int64_t first, second; /* of two products side by side; second is 0 for one */
    double part;           /* of the second that is done, 0 to 1 */
    const char *name;      /* where libraries pad this extent to what an instruction takes, what it
                              counts ("filters"); NULL: they do not */
};

/* Of one recurrent layer in one direction without projection: two products in each step, the input's
 * and the state's. */
struct layer_products {
    int64_t batch, steps; /* 0: there is no such layer, or it is not the only one */
    int64_t features, hidden, gates;
};

enum { PRODUCTS_WAYS = 2 };
struct products {
    /* The three extents, in each of the ways in which libraries do the same products. */
    struct extent ways[PRODUCTS_WAYS][3];
    size_t count; /* of ways; 0: their extents are not known */
    int parts; /* products of these extents one after the other, each with kernels of its own; 0: one */
    /* Part of the modelled multiply-adds that meets the input and no padding zeros; 1 without padding. */
    double inside;
    /* What is modelled beside the products: FLOPs of elementwise work. cells is 0 if there is none. */
    double cells;         /* how many elements it is done for */
    double flops_of_cell; /* modelled FLOPs of each */
    const char *cell;     /* "unit and step" */
    const char *part;     /* of the network that does it: "the gates" */
    /* Why counters see other FLOPs than the model has, where its convention is not what instructions
     * do: maxima, special functions. NULL: they see what is modelled. */
    const char *uncounted;
    /* Of an attention with a causal mask: its queries and keys. 0: there is no mask. */
    int64_t queries, keys;
    struct layer_products layer;
};

#endif
