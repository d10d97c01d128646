/* Pools of small square windows, in strips: a thread has windows below each other, with all that a piece has of
 * their channels. It loads each line once and reduces it along the line once, whichever windows it belongs
 * to. What its neighbours load as well comes from L1. */
#ifndef ROOFSWEEP_STRIPS_CUH
#define ROOFSWEEP_STRIPS_CUH

#include <limits.h>
#include <math.h>

#include "images.cuh"
#include "word.cuh"

struct strips {
    int64_t across; /* as in struct images */
    unsigned images, beside,
        below; /* strips beside each other, and chunks of rows below each other */
    int rows;  /* of windows, of a chunk */
    int in_height, in_width, out_height, out_width, pad_height, pad_width;
};
static const int strip_threads = 128;

/* Whether there are kernels for such windows. */
static inline bool strips_have(const struct pool *p)
{
    return p->window_height == p->window_width && p->window_height >= 2 && p->window_height <= 3 &&
           p->stride <= 2;
}

/* For so many rows and columns of windows; rows: of a chunk. */
static inline strips strips_make(const struct pool *p, int lanes, int rows, int64_t height,
                                 int64_t width)
{
    const bool last = p->layout == LAYOUT_NHWC;
    return {last ? p->channels / lanes : 1,
            (unsigned)(last ? p->batch : p->batch * p->channels),
            (unsigned)width,
            (unsigned)((height + rows - 1) / rows),
            rows,
            (int)p->height,
            (int)p->width,
            (int)p->out_height,
            (int)p->out_width,
            (int)p->pad_height,
            (int)p->pad_width};
}

/* Of a gradient: strips begin where the padding does, `stride` pixels a window, so that windows lie alike in
 * all of them. */
static inline strips strips_backward(const struct pool *p, int lanes, int rows)
{
    return strips_make(p, lanes, rows, (p->height + p->pad_height + p->stride - 1) / p->stride,
                       (p->width + p->pad_width + p->stride - 1) / p->stride);
}

static inline double strips_blocks(const strips &s)
{
    return ceil((double)s.across * s.images * s.beside * s.below / strip_threads);
}
/* Threads and the pieces of an image are counted in 32 bits. */
static inline bool strips_fit(const strips &s)
{
    return strips_blocks(s) * strip_threads <= UINT_MAX &&
           (double)s.across * (s.in_height + 3) * (s.in_width + 3) <= INT_MAX;
}

/* A thread's strip: its piece of a pixel, its column of windows, its chunk of rows. */
struct strip {
    int at, place, chunk;
    unsigned image; /* the last one: there is none for this thread */
};
__device__ static inline strip strip_of(const strips &s)
{
    unsigned i = blockIdx.x * strip_threads + threadIdx.x;
    strip mine;
    mine.at = (int)(i % (unsigned)s.across);
    i /= (unsigned)s.across;
    mine.place = (int)(i % s.beside);
    i /= s.beside;
    mine.chunk = (int)(i % s.below);
    mine.image = i / s.below;
    return mine;
}

/* Pixels of a line from `left` on; `beyond` stands for those that the image does not have. */
template <int count, typename P>
__device__ static inline void line_load(P *pixels, const P *image, int across, int height,
                                        int width, int line, int left, const P &beyond)
{
    const bool inside = (unsigned)line < (unsigned)height;
    const P *from = image + (line * width + left) * across;
#pragma unroll
    for (int i = 0; i < count; ++i) {
        pixels[i] = beyond;
        if (inside && (unsigned)(left + i) < (unsigned)width)
            pixels[i] = from[i * across];
    }
}

template <int count, typename P>
__device__ static inline void line_store(P *image, const P *pixels, int across, int height,
                                         int width, int line, int left)
{
    P *to = image + (line * width + left) * across;
    if ((unsigned)line < (unsigned)height)
#pragma unroll
        for (int i = 0; i < count; ++i)
            if ((unsigned)(left + i) < (unsigned)width)
                to[i * across] = pixels[i];
}

/* Which windows reach a stretch of pixels, along one axis, that begins where window number `before` does: those
 * from number 0 on. */
template <int side, int stride> struct strip_reach {
    static const int before = (side - 1) / stride;

    /* Where pixel i is in window w; outside of 0 to side - 1: nowhere. */
    static __device__ constexpr int place(int i, int w)
    {
        return i + (before - w) * stride;
    }
    static __device__ constexpr bool has(int i, int w)
    {
        return place(i, w) >= 0 && place(i, w) < side;
    }
};

#endif
