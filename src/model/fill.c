#include <math.h>

#include "model/workloads/lstm.h"
#include "worker/device_ops.h"

/* Weights of an LSTM are drawn from [-2^e, 2^e) with 2^e near 1 / sqrt(fan-in), as networks are
 * initialised, so that the gates neither saturate nor vanish. */
static int weight_exponent(const struct config *config)
{
    if (workload_parameter(config->workload, "hidden") < 0)
        return 0;
    struct lstm s = lstm_from(config);
    return -(int)lround(log2(sqrt((double)(s.features + s.hidden))));
}

struct fill device_fill(const struct config *config, uint64_t seed, enum tensor tensor)
{
    int exponent = tensor == TENSOR_WEIGHT ? weight_exponent(config) : 0;
    return fill_make(seed, tensor, precision_info[config_precision(config)].significand, exponent);
}
