#include "model/workloads/loop.h"

#include <math.h>

#include "model/reference.h"

#define SHAPE struct loop
/* clang-format off */
static const char *const loop_implementation_words[] = {"auto", "plain", NULL};

static const struct parameter compute_loop_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("elements", 68719476736, "4194304", "independent values",
                     INTO(tiles)),
    WORKLOAD_WORDS("implementation", loop_implementation_words, "auto", ROLE_IMPLEMENTATION,
                   "auto: plain"),
    WORKLOAD_LAUNCH,
    WORKLOAD_PRECISION("of the values and the multiply-adds"),
    WORKLOAD_INTEGER("steps", 1048576, "4096", "multiply-adds for each value", INTO(steps)),
};

static const struct parameter shared_loop_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_WORDS("implementation", loop_implementation_words, "auto", ROLE_IMPLEMENTATION,
                   "auto: plain"),
    WORKLOAD_LAUNCH,
    WORKLOAD_PRECISION("of the values and the multiply-adds"),
    WORKLOAD_INTEGER("steps", 1048576, "4096", "multiply-adds for each value", INTO(steps)),
    WORKLOAD_INTEGER("tile", LOOP_TILE_MAX, "1024",
                     "dependent values, in the shared memory of one block", INTO(tile)),
    WORKLOAD_INTEGER("tiles", 67108864, "4096", "independent tiles", INTO(tiles)),
};
/* clang-format on */

struct loop loop_from(const struct config *config)
{
    struct loop s = {.tile = 1, .shared = config->workload == &shared_loop_workload};
    config_shape(config, &s);
    return s;
}

/* The factors lie between 1/2 and 1, so a unit in the last place is 2^-significand. */
double loop_factor(enum precision precision, int64_t step)
{
    int significand = precision_info[precision].significand;
    return ldexp(rint(ldexp(LOOP_FACTOR(step), significand)), -significand);
}

/* Vector units process fp16 and bf16 in pairs; a neighbour's value would be half a pair. */
static enum status shared_loop_check(const struct config *config, struct error *error)
{
    const enum precision precision = config_precision(config);
    return precision == PRECISION_FP16 || precision == PRECISION_BF16
               ? error_set(error, STATUS_UNSUPPORTED, "shared-loop needs fp64 or fp32, not %s",
                           precision_info[precision].name)
               : STATUS_OK;
}

static struct cost loop_cost(const struct config *config)
{
    struct loop s = loop_from(config);
    return (struct cost){.flops = 2.0 * (double)s.tiles * (double)s.tile * (double)s.steps};
}

static struct tensors loop_tensors(const struct config *config)
{
    const struct loop s = loop_from(config);
    const double size = (double)s.tiles * (double)s.tile;
    return (struct tensors){.read = {[TENSOR_INPUT] = size}, .written = {[TENSOR_OUTPUT] = size}};
}

/* Follows the value that ends in the element: it starts `steps` places further on, and moves one
 * place nearer in each step. */
static double element(const struct reference_inputs *in, int64_t offset)
{
    const struct loop *s = in->shape;
    const double factor[] = {loop_factor(s->precision, 0), loop_factor(s->precision, 1)};
    int64_t first = offset / s->tile * s->tile, at = (offset + s->steps) % s->tile;
    double value = input_value(in, TENSOR_INPUT, first + at);
    for (int64_t step = 0; step < s->steps; ++step) {
        at = at == 0 ? s->tile - 1 : at - 1;
        value = factor[step % 2] * value + input_value(in, TENSOR_INPUT, first + at);
    }
    return value;
}

static enum status loop_reference(const struct reference_request *request,
                                  struct expectation *expectation, struct error *error)
{
    const struct loop s = loop_from(request->config);
    const struct elements y = {TENSOR_OUTPUT, (double)s.steps, element, NULL};
    return reference_elements(request, &s, &y, expectation, error);
}

/* Each step rounds the value. The value is 0.28 x after an odd number of steps, and 1.26 x after an
 * even number. The last two steps leave an error of 3.6 roundings of the final size, and each pair
 * of steps 0.52 times the error of the pair after it: together at most 7.5 roundings. A rounding is
 * half a unit in the last place, which is up to 1.2 times the tolerance of a precision. */
static struct tolerance loop_tolerance(const struct config *config)
{
    const double most = 9.0 * precision_info[config_precision(config)].tolerance.accurate;
    return (struct tolerance){most, most};
}

#define LOOP                                                                                       \
    .without_tensors = "a loop", .cost = loop_cost, .tensors = loop_tensors,                       \
    .reference = loop_reference, .tolerance = loop_tolerance
const struct workload compute_loop_workload = {
    .name = "compute-loop", WORKLOAD_TABLE(compute_loop_parameters), LOOP};
const struct workload shared_loop_workload = {.name = "shared-loop",
                                              WORKLOAD_TABLE(shared_loop_parameters),
                                              .check = shared_loop_check,
                                              LOOP};
