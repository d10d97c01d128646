/* Which output pixels a tap of a conv2d's kernel connects with which input pixels, in one
 * dimension. */
#ifndef ROOFSWEEP_CONV2D_GEOMETRY_H
#define ROOFSWEEP_CONV2D_GEOMETRY_H

#include <stdint.h>

/* The outputs [*begin, *end), possibly none, for which output * stride + offset lies in [low,
 * high); `offset` is tap * dilation - padding, and outputs are those below `count`. */
static inline void conv2d_outputs(int64_t stride, int64_t offset, int64_t low, int64_t high,
                                  int64_t count, int64_t *begin, int64_t *end)
{
    int64_t first = low > offset ? (low - offset + stride - 1) / stride : 0;
    int64_t behind = high > offset ? (high - offset + stride - 1) / stride : 0;
    *end = behind < count ? behind : count;
    *begin = first < *end ? first : *end;
}

/* The output whose tap at `offset` falls on `input`, or -1. */
static inline int64_t conv2d_output(int64_t stride, int64_t offset, int64_t input, int64_t count)
{
    int64_t scaled = input - offset;
    return scaled >= 0 && scaled % stride == 0 && scaled / stride < count ? scaled / stride : -1;
}

#endif
