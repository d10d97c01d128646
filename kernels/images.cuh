/* Images of a pool, and how blocks share them out. */
#ifndef ROOFSWEEP_IMAGES_CUH
#define ROOFSWEEP_IMAGES_CUH

#include "kernels.h"
#include "piece.cuh"

/* Images, as both layouts have them: pixels of `across` pieces each, which lie beside each other. NHWC:
 * the channels of a pixel. NCHW: each channel is an image of its own, with one value a pixel. */
struct images {
    int64_t across, count;
    int in_height, in_width, out_height, out_width, window_height, window_width, stride, pad_height,
        pad_width;
    unsigned across_blocks, column_blocks, row_blocks;
};

/* A block makes a tile of an image, so that the windows' common pixels come from L1. */
struct tile {
    unsigned across, columns, rows; /* threads along each; together tile_threads */
};
static const int tile_threads = 256,
                 tile_turns = 2; /* rows that a thread makes one after the other */
static const tile tile_nhwc = {8, 8, 4}, tile_nchw = {1, 32, 8};

static inline const tile &images_tile(const struct pool *p)
{
    return p->layout == LAYOUT_NHWC ? tile_nhwc : tile_nchw;
}

/* Whether a pixel is made of whole pieces of so many values. */
static inline bool images_in_pieces(const struct pool *p, int lanes)
{
    return p->layout == LAYOUT_NHWC && p->channels % lanes == 0;
}

/* For blocks that make tiles of an image of this height and width, tile_turns rows a thread. */
static inline images images_make(const struct pool *p, int lanes, const tile &t, int64_t height,
                                 int64_t width)
{
    bool last = p->layout == LAYOUT_NHWC;
    images s = {last ? p->channels / lanes : 1,
                last ? p->batch : p->batch * p->channels,
                (int)p->height,
                (int)p->width,
                (int)p->out_height,
                (int)p->out_width,
                (int)p->window_height,
                (int)p->window_width,
                (int)p->stride,
                (int)p->pad_height,
                (int)p->pad_width,
                0,
                0,
                0};
    s.across_blocks = (unsigned)((s.across + t.across - 1) / t.across);
    s.column_blocks = (unsigned)((width + t.columns - 1) / t.columns);
    s.row_blocks = (unsigned)((height + t.rows * tile_turns - 1) / (t.rows * tile_turns));
    return s;
}

static inline double images_blocks(const images &s)
{
    return (double)s.across_blocks * s.column_blocks * s.row_blocks * (double)s.count;
}

/* The windows that reach a stretch of pixels, along one axis. */
struct reach {
    int first, last;
};
__device__ static inline reach reach_of(int begin, int end, int out, int window, int stride,
                                        int pad)
{
    int beyond = begin + pad - window + 1;
    return {beyond <= 0 ? 0 : (beyond + stride - 1) / stride,
            min(out - 1, (end - 1 + pad) / stride)};
}

/* Where a block's tile begins, and which of a pixel's pieces is the thread's. */
struct tile_place {
    int64_t at, image;
    int column, row;
};
__device__ static inline tile_place tile_place_of(const images &s, const tile &t)
{
    tile_place place;
    unsigned block = blockIdx.x;
    place.at = (int64_t)(block % s.across_blocks) * t.across + threadIdx.x % t.across;
    block /= s.across_blocks;
    place.column = (int)(block % s.column_blocks * t.columns);
    block /= s.column_blocks;
    place.row = (int)(block % s.row_blocks * (t.rows * tile_turns));
    place.image = block / s.row_blocks;
    return place;
}

/* pool_max_gradient.cu: what kernel_pool_gradient launches of a maximum. */
cudaError_t pool_max_gradient(const struct pool *p, void *dx, const void *x, const void *dy,
                              cudaStream_t stream);

#endif
