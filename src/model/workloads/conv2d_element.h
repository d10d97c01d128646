/* One element of a conv2d's result, from the definition: the template of the reference (fp64,
 * inputs generated) and of the CPU's direct implementation (arrays). It may be included several
 * times; the includer defines, and it undefines:
 *
 * ELEMENT: the function, REAL ELEMENT(const struct conv2d *, SOURCE first, SOURCE second, offset).
 *
 * REAL: type of products and sums.
 *
 * SOURCE: handle of a tensor; LOAD(source, index): an element of it as REAL.
 *
 * The two sources are x, w, y in this order, without the one that the pass computes; `offset` lies
 * in the one computed. Sums go row by row, which keeps the rounding of long fp32 sums small. */
#include "model/workloads/conv2d.h"

#define ELEMENT_PASTE(name, part)  name##_##part
#define ELEMENT_EXPAND(name, part) ELEMENT_PASTE(name, part)
#define PART(part)                 ELEMENT_EXPAND(ELEMENT, part)

/* Steps of 1 have a loop of their own, which becomes vector code. */
static inline REAL PART(dot)(SOURCE a, int64_t a_first, int64_t a_step, SOURCE b, int64_t b_first,
                             int64_t b_step, int64_t count)
{
    REAL sum = 0;
    if (a_step == 1 && b_step == 1) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < count; ++i)
            sum += LOAD(a, a_first + i) * LOAD(b, b_first + i);
    } else {
        for (int64_t i = 0; i < count; ++i)
            sum += LOAD(a, a_first + i * a_step) * LOAD(b, b_first + i * b_step);
    }
    return sum;
}

static inline REAL PART(forward)(const struct conv2d *s, SOURCE x, SOURCE w, int64_t n,
                                 int64_t out_h, int64_t out_w, int64_t k)
{
    int64_t group_channels = s->channels / s->groups;
    int64_t channel = k / (s->filters / s->groups) * group_channels;
    int64_t x_step = conv2d_x_at(s, 0, 0, 0, 1), w_step = conv2d_w_at(s, 0, 0, 0, 1);
    REAL sum = 0;
    for (int64_t r = 0; r < s->kernel_height; ++r) {
        int64_t h = out_h * s->stride - s->pad_height + r * s->dilation;
        if (h < 0 || h >= s->height)
            continue;
        for (int64_t q = 0; q < s->kernel_width; ++q) {
            int64_t v = out_w * s->stride - s->pad_width + q * s->dilation;
            if (v >= 0 && v < s->width)
                sum += PART(dot)(x, conv2d_x_at(s, n, h, v, channel), x_step, w,
                                 conv2d_w_at(s, k, r, q, 0), w_step, group_channels);
        }
    }
    return sum;
}

static inline REAL PART(backward_data)(const struct conv2d *s, SOURCE w, SOURCE y, int64_t n,
                                       int64_t h, int64_t v, int64_t c)
{
    int64_t group_channels = s->channels / s->groups, group_filters = s->filters / s->groups;
    int64_t filter = c / group_channels * group_filters;
    int64_t w_step = conv2d_w_at(s, 1, 0, 0, 0), y_step = conv2d_y_at(s, 0, 0, 0, 1);
    REAL sum = 0;
    for (int64_t r = 0; r < s->kernel_height; ++r) {
        int64_t out_h = conv2d_output(s->stride, r * s->dilation - s->pad_height, h, s->out_height);
        for (int64_t q = 0; out_h >= 0 && q < s->kernel_width; ++q) {
            int64_t out_w =
                conv2d_output(s->stride, q * s->dilation - s->pad_width, v, s->out_width);
            if (out_w >= 0)
                sum += PART(dot)(w, conv2d_w_at(s, filter, r, q, c % group_channels), w_step, y,
                                 conv2d_y_at(s, n, out_h, out_w, filter), y_step, group_filters);
        }
    }
    return sum;
}

static inline REAL PART(backward_filter)(const struct conv2d *s, SOURCE x, SOURCE y, int64_t k,
                                         int64_t r, int64_t q, int64_t c)
{
    int64_t channel = k / (s->filters / s->groups) * (s->channels / s->groups) + c;
    int64_t x_step = s->stride * conv2d_x_at(s, 0, 0, 1, 0), y_step = conv2d_y_at(s, 0, 0, 1, 0);
    int64_t begin, end, offset = q * s->dilation - s->pad_width;
    conv2d_outputs(s->stride, offset, 0, s->width, s->out_width, &begin, &end);
    int64_t v = begin * s->stride + offset;
    REAL sum = 0;
    for (int64_t n = 0; begin < end && n < s->batch; ++n) {
        REAL image = 0;
        for (int64_t out_h = 0; out_h < s->out_height; ++out_h) {
            int64_t h = out_h * s->stride - s->pad_height + r * s->dilation;
            if (h >= 0 && h < s->height)
                image += PART(dot)(x, conv2d_x_at(s, n, h, v, channel), x_step, y,
                                   conv2d_y_at(s, n, out_h, begin, k), y_step, end - begin);
        }
        sum += image;
    }
    return sum;
}

static inline REAL ELEMENT(const struct conv2d *s, SOURCE first, SOURCE second, int64_t offset)
{
    bool filter = s->pass == CONV2D_BACKWARD_FILTER, data = s->pass == CONV2D_BACKWARD_DATA;
    int64_t height = filter ? s->kernel_height : data ? s->height : s->out_height;
    int64_t width = filter ? s->kernel_width : data ? s->width : s->out_width;
    int64_t channels = filter ? s->channels / s->groups : data ? s->channels : s->filters;
    int64_t outer = offset / (height * width * channels),
            rest = offset % (height * width * channels);
    bool nhwc = s->layout == LAYOUT_NHWC;
    int64_t c = nhwc ? rest % channels : rest / (height * width);
    int64_t pixel = nhwc ? rest / channels : rest % (height * width);
    int64_t h = pixel / width, v = pixel % width;
    return filter ? PART(backward_filter)(s, first, second, outer, h, v, c)
           : data ? PART(backward_data)(s, first, second, outer, h, v, c)
                  : PART(forward)(s, first, second, outer, h, v, c);
}

#undef PART
#undef ELEMENT_EXPAND
#undef ELEMENT_PASTE
#undef ELEMENT
#undef REAL
#undef SOURCE
#undef LOAD
