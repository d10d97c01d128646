/* What a conv2d, an LSTM, a matrix product and the two loops are: their parameters, shapes, validity
 * and modelled cost.
 *
 * The one place that knows this; rank and workers share it. Everything is const data and pure
 * functions: thread-safe, nothing to free. A new workload is a new row of the table in
 * workload.c. */
#ifndef ROOFSWEEP_WORKLOAD_H
#define ROOFSWEEP_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

enum precision {
    PRECISION_FP64,
    PRECISION_FP32,
    PRECISION_TF32, /* stored as fp32, multiplied with 10 bits of mantissa */
    PRECISION_FP16,
    PRECISION_BF16,
    PRECISION_FP8,  /* e4m3; of roofs only, as int8: no workload has it yet */
    PRECISION_INT8, /* its operations are no FLOPs, and are never added to them */
    PRECISION_COUNT
};

struct precision_info {
    const char *name;
    size_t bytes;    /* of one stored element */
    int significand; /* bits, the leading one included; inputs are drawn so that they fit exactly */
    double tolerance; /* largest relative error of a right result, ||out - ref|| / ||ref|| */
};
extern const struct precision_info precision_info[PRECISION_COUNT];

/* From far to near. A GPU has no l3. */
enum memory_level { LEVEL_DRAM, LEVEL_L3, LEVEL_L2, LEVEL_L1, LEVEL_COUNT };
extern const char *const memory_level_name[LEVEL_COUNT];

enum parameter_kind {
    PARAMETER_INTEGER, /* value.first */
    PARAMETER_EXTENT,  /* "3" or "3x5": value.first rows, value.second columns */
    PARAMETER_PADDING, /* "same", "valid" or a number: PADDING_SAME, PADDING_VALID or value.first */
    PARAMETER_WORD     /* value.first is the index into words */
};
enum { PADDING_SAME = -1, PADDING_VALID = -2 };

struct parameter {
    const char *name;
    enum parameter_kind kind;
    bool series;              /* always crossed with the shape, whatever `vary` says */
    int64_t minimum, maximum; /* inclusive; of numbers */
    const char *const *words; /* NULL-terminated; of PARAMETER_WORD */
    const char *initial;      /* default, as one would write it */
    const char *help;         /* one line for --list, unit included */
};

struct value {
    int64_t first, second; /* second is 0 unless the kind is PARAMETER_EXTENT */
};

enum { WORKLOAD_PARAMETERS_MAX = 20, WORKLOAD_VALUE_TEXT = 32, WORKLOAD_TEXT = 512 };

struct config;

/* Modelled cost of one iteration; the formulas and what they count stand in workload.c. */
struct cost {
    double flops; /* floating-point operations; a multiply-add is 2 */
    double bytes; /* compulsory traffic: each input read once, each output written once */
    /* bytes that must be allocated for the tensors, without the library's workspace */
    double memory;
};

struct workload {
    const char *name;
    const struct parameter *parameters; /* sorted by name: the order of the canonical text */
    size_t count;
    const char *const *implementations; /* "NAME: what it is", NULL-terminated, for --list */
    enum status (*check)(const struct config *config, struct error *error);
    struct cost (*cost)(const struct config *config);
};

/* A workload with one value for each parameter. Plain data; copy it freely. */
struct config {
    const struct workload *workload;
    struct value values[WORKLOAD_PARAMETERS_MAX]; /* by the workload's parameter order */
};

extern const struct workload *const workloads[];        /* NULL-terminated */
const struct workload *workload_find(const char *name); /* NULL if there is none */

/* Index of the parameter in workload->parameters, or -1. */
int workload_parameter(const struct workload *workload, const char *name);

/* Text to value and back, by kind, range and words. STATUS_USAGE names what is allowed. */
enum status parameter_parse(const struct parameter *parameter, const char *text,
                            struct value *value, struct error *error);
void parameter_format(const struct parameter *parameter, struct value value,
                      char text[WORKLOAD_VALUE_TEXT]);

/* All parameters at their defaults. */
struct config config_default(const struct workload *workload);

/* The chosen word of a PARAMETER_WORD, e.g. config_word(c, "pass"); NULL if there is no such
 * parameter. */
const char *config_word(const struct config *config, const char *parameter);

/* The canonical text, "conv2d algorithm=auto batch=16 ...", parameters sorted by name. It is what
 * the identity of a configuration is computed from, so its form must never change. */
void config_format(const struct config *config, char text[WORKLOAD_TEXT]);
enum status config_parse(const char *text, struct config *config, struct error *error);

/* 128-bit xxHash (XXH3) of the canonical text, as 32 lower-case hexadecimal digits. */
enum { CONFIG_HASH_TEXT = 33 };
void config_hash(const struct config *config, char hash[CONFIG_HASH_TEXT]);

/* STATUS_UNSUPPORTED with the reason if the configuration cannot exist (an output of no pixels,
 * groups that do not divide the channels, ...). */
enum status config_check(const struct config *config, struct error *error);
struct cost config_cost(const struct config *config);
enum precision config_precision(const struct config *config);

enum layout { LAYOUT_NHWC, LAYOUT_NCHW };

enum conv2d_pass { CONV2D_FORWARD, CONV2D_BACKWARD_DATA, CONV2D_BACKWARD_FILTER };

/* A conv2d in numbers. Tensors, dense, in the given layout:
 *   x [batch][height][width][channels]                   or [batch][channels][height][width]
 *   w [filters][kernel_height][kernel_width][channels/groups] or [filters][channels/groups][kh][kw]
 *   y [batch][out_height][out_width][filters]            or [batch][filters][out_height][out_width]
 * forward: y from x, w; backward-data: x from y, w; backward-filter: w from x, y. */
struct conv2d {
    int64_t batch, height, width, channels, filters, kernel_height, kernel_width;
    int64_t stride, pad_height, pad_width, dilation, groups; /* pads: zeros on each side */
    int64_t out_height, out_width;
    enum layout layout;
    enum precision precision;
    enum conv2d_pass pass;
    const char *implementation, *algorithm;
    bool cold; /* cache flushed before each iteration */
};
struct conv2d conv2d_from(const struct config *config);

/* Elements of each tensor, and the offset of one element in it, in elements. `c` of conv2d_w_at
 * counts within the filter's group. */
int64_t conv2d_x_size(const struct conv2d *s);
int64_t conv2d_w_size(const struct conv2d *s);
int64_t conv2d_y_size(const struct conv2d *s);
static inline int64_t conv2d_x_at(const struct conv2d *s, int64_t n, int64_t h, int64_t w,
                                  int64_t c)
{
    return s->layout == LAYOUT_NHWC ? ((n * s->height + h) * s->width + w) * s->channels + c
                                    : ((n * s->channels + c) * s->height + h) * s->width + w;
}
static inline int64_t conv2d_w_at(const struct conv2d *s, int64_t k, int64_t r, int64_t q,
                                  int64_t c)
{
    int64_t group_channels = s->channels / s->groups;
    return s->layout == LAYOUT_NHWC
               ? ((k * s->kernel_height + r) * s->kernel_width + q) * group_channels + c
               : ((k * group_channels + c) * s->kernel_height + r) * s->kernel_width + q;
}
static inline int64_t conv2d_y_at(const struct conv2d *s, int64_t n, int64_t h, int64_t w,
                                  int64_t k)
{
    return s->layout == LAYOUT_NHWC ? ((n * s->out_height + h) * s->out_width + w) * s->filters + k
                                    : ((n * s->filters + k) * s->out_height + h) * s->out_width + w;
}

enum lstm_pass { LSTM_FORWARD, LSTM_BACKWARD };

/* An LSTM in numbers, after equation (5) of the time-based Roofline paper, one bias per gate, zero
 * initial states. With D = directions, layer l has input width I(0) = features, I(l) = hidden * D:
 *   x [sequence][batch][features]      y [sequence][batch][hidden * D] (forward, then reverse)
 *   w [layer][direction] { input [4][hidden][I(l)], recurrent [4][hidden][hidden], bias [4][hidden] }
 * Gates in the order input, forget, cell, output. `forward` computes y in inference mode;
 * `backward` computes dx and dw from dy, x, w and what a training forward pass has kept; that pass
 * is not timed. */
struct lstm {
    int64_t batch, sequence, features, hidden, layers, directions;
    enum precision precision;
    enum lstm_pass pass;
    const char *implementation, *algorithm;
    bool cold;
};
struct lstm lstm_from(const struct config *config);

enum lstm_part { LSTM_INPUT_MATRIX, LSTM_RECURRENT_MATRIX, LSTM_BIAS };
int64_t lstm_input_width(const struct lstm *s, int64_t layer); /* I(layer) */
int64_t lstm_x_size(const struct lstm *s);
int64_t lstm_w_size(const struct lstm *s);
int64_t lstm_y_size(const struct lstm *s);
/* Offset of a part in w, in elements; the four gates follow one another in it. */
int64_t lstm_w_at(const struct lstm *s, int64_t layer, int64_t direction, enum lstm_part part);

/* A matrix product in numbers, row-major: x [m][k], w [k][n], y [m][n] = x w. */
struct matmul {
    int64_t m, n, k;
    enum precision precision;
    const char *implementation;
};
struct matmul matmul_from(const struct config *config);

/* The loops in numbers. x and y are [tiles][tile]; within a tile v begins as x, then in each step,
 * all values at once,
 *   v[i] = a v[(i + 1) mod tile] + x[i],  a = LOOP_FACTOR(step) rounded to the precision,
 * and y is v in the end. compute-loop: tiles of one value, which stays in a register; shared-loop:
 * the neighbour's comes through shared memory or, on a CPU, its cache. The two factors differ, so
 * that v changes in every step for ever; they are below 1, so that rounding does not add up; x keeps
 * coming in, so that y tells one input from another after any number of steps. Nothing is round: see
 * fill.h. */
struct loop {
    int64_t tiles, tile, steps;
    enum precision precision;
};
struct loop loop_from(const struct config *config);

enum { LOOP_TILE_MAX = 2048 }; /* two of them in fp64 are within what any block may have */
#define LOOP_FACTOR(step) ((step) % 2 == 0 ? -0.57168429 : 0.91372318)
double loop_factor(enum precision precision, int64_t step);

#endif
