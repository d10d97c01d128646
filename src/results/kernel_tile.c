#include "results/kernel_tile.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool near(double value, double expected)
{
    return fabs(value - expected) <= 0.01 * expected;
}

/* Kernels of cuDNN and cuBLAS that have a tile as powers of two behind their types, most of them also
 * the number of threads: wgrad_alg0_engine_NHWC<float, 128, 5, 5, 3, 3, 3, false, 512>,
 * sgemm_largek_lds64<true, false, 5, 5, 4, 4, 4, 34>. */
static const struct {
    const char *name;
    bool threads;
} powers_kernels[] = {
    {"_engine", true},
    {"_convolve_sgemm", true},
    {"sgemm_largek", false},
};

/* The numbers begin behind a "<" or a space. */
static const char *numbers_find(const char *name)
{
    const char *at = strchr(name, '<');
    for (; at && !isdigit((unsigned char)at[1]); at = strchr(at + 1, ' '))
        ;
    return at ? at + 1 : NULL;
}

static bool powers_parse(const char *name, bool has_threads, int64_t extents[3])
{
    int threads = 32, powers[3], used = 0;
    const char *at = numbers_find(name);
    if (!at || (has_threads && (sscanf(at, "%d, %n", &threads, &used) != 1 || used == 0)) ||
        sscanf(at + used, "%d, %d, %d", &powers[0], &powers[1], &powers[2]) != 3)
        return false;
    for (int i = 0; i < 3; ++i)
        if (powers[i] < 1 || powers[i] > 8)
            return false;
    for (int i = 0; i < 3; ++i)
        extents[i] = (int64_t)1 << powers[i];
    return threads >= 32 && threads <= 1024;
}

/* The first "64x8_64" or "256x64x8" in a name: the extents of a tile. */
static bool extents_parse(const char *name, int64_t extents[3])
{
    for (const char *at = name; *at; ++at) {
        long long m, n, k;
        bool begins = at == name || !isdigit((unsigned char)at[-1]);
        if (begins && isdigit((unsigned char)*at) &&
            (sscanf(at, "%lldx%lldx%lld", &m, &n, &k) == 3 ||
             sscanf(at, "%lldx%lld_%lld", &m, &n, &k) == 3) &&
            m > 0 && n > 0 && k > 0) {
            memcpy(extents, (const int64_t[3]){m, n, k}, 3 * sizeof *extents);
            return true;
        }
    }
    for (size_t i = 0; i < sizeof powers_kernels / sizeof *powers_kernels; ++i) {
        const char *found = strstr(name, powers_kernels[i].name);
        if (found)
            return powers_parse(found, powers_kernels[i].threads, extents);
    }
    return false;
}

bool kernel_tile_of(const struct kernel *kernel, struct kernel_tile *tile)
{
    int64_t extents[3];
    if (!extents_parse(kernel->name, extents))
        return false;
    bool known = kernel->grid_x > 0 && kernel->grid_y > 0 && kernel->grid_z > 0;
    memcpy(tile->extents, extents, sizeof extents);
    tile->blocks = known ? kernel->grid_x * kernel->grid_y * kernel->grid_z : 0;
    tile->cluster = kernel->cluster > 0 ? kernel->cluster : 1;
    return true;
}

int64_t kernel_tile_padded(int64_t size, int64_t multiple)
{
    return (size + multiple - 1) / multiple * multiple;
}

static double growth(const struct extent *extent, int64_t multiple)
{
    return ((double)kernel_tile_padded(extent->first, multiple) +
            extent->part * (double)kernel_tile_padded(extent->second, multiple)) /
           (double)(extent->first + extent->second);
}

double products_growth(const struct extent extents[3], const int64_t multiples[3])
{
    return growth(&extents[0], multiples[0]) * growth(&extents[1], multiples[1]) *
           growth(&extents[2], multiples[2]);
}

/* Which extent of a tile lies along which of the products is the library's choice. */
enum { TILE_ORDERS = 6 };

static size_t choices(const struct products *shape)
{
    return shape->count * TILE_ORDERS;
}

static void multiples_choose(const struct kernel_tile *tile, size_t choice, int64_t multiples[3])
{
    static const int orders[TILE_ORDERS][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                               {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 3; ++i)
        multiples[i] = tile->extents[orders[choice % TILE_ORDERS][i]];
}

static double tile_growth(const struct kernel_tile *tile, const struct products *shape,
                          size_t choice)
{
    int64_t multiples[3];
    multiples_choose(tile, choice, multiples);
    return products_growth(shape->ways[choice / TILE_ORDERS], multiples);
}

bool kernel_tile_fits(const struct kernel_tile *tile, const struct products *shape, double ratio)
{
    for (size_t choice = 0; choice < choices(shape); ++choice)
        if (near(tile_growth(tile, shape, choice), ratio))
            return true;
    return false;
}

/* Tiles of the results, if the products are summed up along this extent. */
static int64_t result_tiles(const struct kernel_tile *tile, const struct products *shape,
                            size_t choice, int summed)
{
    const struct extent *extents = shape->ways[choice / TILE_ORDERS];
    int64_t multiples[3], tiles = 1;
    multiples_choose(tile, choice, multiples);
    for (int i = 0; i < 3; ++i)
        if (i != summed)
            tiles *= kernel_tile_padded(extents[i].first, multiples[i]) / multiples[i];
    return tiles;
}

bool kernel_tile_fits_in_clusters(const struct kernel_tile *tile, const struct products *shape,
                                  double ratio)
{
    if (tile->cluster == 1 || tile->blocks == 0)
        return false;
    for (size_t choice = 0; choice < choices(shape); ++choice)
        for (int summed = 0; summed < 3; ++summed) {
            int64_t tiles = result_tiles(tile, shape, choice, summed);
            int64_t whole = kernel_tile_padded(tiles, tile->cluster);
            double grown = tile_growth(tile, shape, choice) * (double)whole / (double)tiles;
            if (shape->ways[choice / TILE_ORDERS][summed].second == 0 &&
                tile->blocks % whole == 0 && near(grown, ratio))
                return true;
        }
    return false;
}

bool kernel_tiles_fit(const struct kernel_tile *tiles, int tile_count, const struct products *shape,
                      int parts, double sum)
{
    size_t combinations = 1;
    for (int i = 0; i < tile_count; ++i)
        combinations *= choices(shape);
    for (size_t chosen = 0; chosen < combinations; ++chosen) {
        double grown = parts - tile_count;
        size_t rest = chosen;
        for (int i = 0; i < tile_count; ++i, rest /= choices(shape))
            grown += tile_growth(&tiles[i], shape, rest % choices(shape));
        if (near(grown, sum))
            return true;
    }
    return false;
}
