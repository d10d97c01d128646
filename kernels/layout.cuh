/* Offsets of the elements of images, in both layouts. */
#pragma once

#include <stdint.h>

/* A tensor [outer][height][width][channels], or [outer][channels][height][width]. */
struct extents {
    int height, width, channels;
    bool nhwc;
};

__device__ static inline int64_t at(extents e, int64_t outer, int h, int v, int c)
{
    return e.nhwc ? ((outer * e.height + h) * e.width + v) * e.channels + c
                  : ((outer * e.channels + c) * e.height + h) * e.width + v;
}

struct place {
    int outer, h, v, c;
};

__device__ static inline place place_of(extents e, int64_t i)
{
    int64_t size = (int64_t)e.height * e.width * e.channels, rest = i % size;
    int64_t pixel = e.nhwc ? rest / e.channels : rest % ((int64_t)e.height * e.width);
    int c = (int)(e.nhwc ? rest % e.channels : rest / ((int64_t)e.height * e.width));
    return {(int)(i / size), (int)(pixel / e.width), (int)(pixel % e.width), c};
}
