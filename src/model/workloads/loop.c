#include "model/workloads/loop.h"

#include <math.h>

/* clang-format off */
static const char *const loop_implementation_words[] = {"auto", "plain", NULL};

static const struct parameter compute_loop_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("elements", 68719476736, "4194304", "values, each independent of the others"),
    WORKLOAD_SERIES("implementation", loop_implementation_words, "auto", "there is one"),
    WORKLOAD_SERIES("precision", workload_precisions, "fp32", "of the values and the multiply-adds"),
    WORKLOAD_INTEGER("steps", 1048576, "4096", "multiply-adds of each value"),
};

static const struct parameter shared_loop_parameters[] = {
    WORKLOAD_CACHE,
    WORKLOAD_SERIES("implementation", loop_implementation_words, "auto", "there is one"),
    WORKLOAD_SERIES("precision", workload_precisions, "fp32", "of the values and the multiply-adds"),
    WORKLOAD_INTEGER("steps", 1048576, "4096", "multiply-adds of each value"),
    WORKLOAD_INTEGER("tile", LOOP_TILE_MAX, "1024", "values that depend on each other, in one block's shared memory"),
    WORKLOAD_INTEGER("tiles", 67108864, "4096", "tiles, each independent of the others"),
};
/* clang-format on */

static const char *const loop_implementations[] = {
    "plain: written by hand, on CUDA devices and CPUs",
    NULL,
};

struct loop loop_from(const struct config *config)
{
    bool shared = workload_parameter(config->workload, "tile") >= 0;
    return (struct loop){
        .tiles = config_value(config, shared ? "tiles" : "elements").first,
        .tile = shared ? config_value(config, "tile").first : 1,
        .steps = config_value(config, "steps").first,
        .precision = config_precision(config),
    };
}

/* The factors lie between 1/2 and 1, so a unit in the last place is 2^-significand. */
double loop_factor(enum precision precision, int64_t step)
{
    int significand = precision_info[precision].significand;
    return ldexp(rint(ldexp(LOOP_FACTOR(step), significand)), -significand);
}

static enum status loop_check(const struct config *config, struct error *error)
{
    enum precision precision = config_precision(config);
    bool pairs = precision == PRECISION_FP16 || precision == PRECISION_BF16;
    if (precision == PRECISION_TF32)
        return error_set(error, STATUS_UNSUPPORTED,
                         "tf32 is a precision of tensor units, a loop is for the vector units");
    /* Their vector units work on two values at a time, and a neighbour would be half of a pair. */
    if (pairs && workload_parameter(config->workload, "tile") >= 0)
        return error_set(error, STATUS_UNSUPPORTED, "%s is of fp64 and fp32, not of %s",
                         config->workload->name, precision_info[precision].name);
    return STATUS_OK;
}

static struct cost loop_cost(const struct config *config)
{
    struct loop s = loop_from(config);
    double elements = (double)s.tiles * (double)s.tile;
    double bytes = 2.0 * elements * (double)precision_info[s.precision].bytes;
    return (struct cost){
        .flops = 2.0 * elements * (double)s.steps, .bytes = bytes, .memory = bytes};
}

const struct workload compute_loop_workload = {
    "compute-loop", WORKLOAD_TABLE(compute_loop_parameters), loop_implementations, loop_check,
    loop_cost,
};
const struct workload shared_loop_workload = {
    "shared-loop", WORKLOAD_TABLE(shared_loop_parameters), loop_implementations, loop_check,
    loop_cost,
};
