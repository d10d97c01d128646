#include "model/workloads/lstm.h"

#include <math.h>

#include "model/products.h"
#include "model/workloads/lstm_reference.h"

/* clang-format off */
static const char *const lstm_pass_words[] = {"forward", "backward", NULL};
static const char *const lstm_implementation_words[] = {"auto", "cudnn", "onednn", "cblas", NULL};
static const char *const lstm_algorithm_words[] = {"auto", "standard", "persist-static",
                                                   "persist-dynamic",
                                                   "persist-static-small-h", NULL};

static const struct parameter lstm_parameters[] = {
    WORKLOAD_ALGORITHM(lstm_algorithm_words),
    WORKLOAD_INTEGER("batch", 1048576, "16", "sequences"),
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("directions", 2, "1", "1, or 2: bidirectional"),
    WORKLOAD_INTEGER("features", 1048576, "32", "input width"),
    WORKLOAD_INTEGER("hidden", 1048576, "16", "hidden width"),
    WORKLOAD_IMPLEMENTATION(lstm_implementation_words, "auto: the device's best library"),
    WORKLOAD_LAUNCH,
    WORKLOAD_INTEGER("layers", 1024, "1", "stacked layers"),
    WORKLOAD_PASS(lstm_pass_words, "what is computed; backward is without forward"),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
    WORKLOAD_INTEGER("sequence", 65536, "16", "time steps"),
};
/* clang-format on */

static const char *const lstm_implementations[] = {
    "cudnn: NVIDIA cuDNN, on CUDA devices",
    "onednn: Intel oneDNN, on CPUs",
    "cblas: CBLAS, on CPUs",
    NULL,
};

struct lstm lstm_from(const struct config *config)
{
    return (struct lstm){
        .batch = config_value(config, "batch").first,
        .sequence = config_value(config, "sequence").first,
        .features = config_value(config, "features").first,
        .hidden = config_value(config, "hidden").first,
        .layers = config_value(config, "layers").first,
        .directions = config_value(config, "directions").first,
        .precision = config_precision(config),
        .pass = (enum lstm_pass)config_value(config, "pass").first,
        .implementation = config_word(config, ROLE_IMPLEMENTATION),
        .algorithm = config_word(config, ROLE_ALGORITHM),
        .cold = config_cold(config),
    };
}

int64_t lstm_input_width(const struct lstm *s, int64_t layer)
{
    return layer == 0 ? s->features : s->hidden * s->directions;
}

int64_t lstm_x_size(const struct lstm *s)
{
    return s->sequence * s->batch * s->features;
}

int64_t lstm_y_size(const struct lstm *s)
{
    return s->sequence * s->batch * s->hidden * s->directions;
}

static int64_t lstm_cell_size(const struct lstm *s, int64_t layer)
{
    return 4 * s->hidden * (lstm_input_width(s, layer) + s->hidden + 1);
}

int64_t lstm_w_at(const struct lstm *s, int64_t layer, int64_t direction, enum lstm_part part)
{
    /* All layers but the first have the same size. */
    int64_t offset = direction * lstm_cell_size(s, layer);
    if (layer > 0)
        offset += s->directions * (lstm_cell_size(s, 0) + (layer - 1) * lstm_cell_size(s, 1));
    if (part != LSTM_INPUT_MATRIX)
        offset += 4 * s->hidden * lstm_input_width(s, layer);
    if (part == LSTM_BIAS)
        offset += 4 * s->hidden * s->hidden;
    return offset;
}

int64_t lstm_w_size(const struct lstm *s)
{
    return lstm_w_at(s, s->layers, 0, LSTM_INPUT_MATRIX);
}

/* Modelled FLOPs of one unit and step beside the matrix products. */
static const double forward_of_cell = 4.0, backward_of_cell = 27.0;

/* Per unit and step, with the input width I and H hidden units:
 *   forward   8 (I + H) in the gates' matrix products, bias included; 4 in c = f c + i g, h = o tanh(c)
 *   backward  twice the products, for the data and the weights; 23 in the gates' derivatives and 4 in the
 *             bias gradient
 * The sigmoids and hyperbolic tangents themselves are no FLOPs. Backward also reads what the
 * training forward pass keeps: four gates, the cell and the hidden state. */
static struct cost lstm_cost(const struct config *config)
{
    struct lstm s = lstm_from(config);
    double element = (double)precision_info[s.precision].bytes;
    double hidden = (double)s.hidden, directions = (double)s.directions;
    double cells = (double)s.sequence * (double)s.batch * directions * hidden;
    double x = (double)s.sequence * (double)s.batch * (double)s.features;
    double y = cells;
    double kept = 6.0 * cells * (double)s.layers;
    double w = 0.0, flops = 0.0;
    for (int64_t layer = 0; layer < s.layers; ++layer) {
        double width = (double)lstm_input_width(&s, layer);
        w += directions * 4.0 * hidden * (width + hidden + 1.0);
        flops += s.pass == LSTM_FORWARD ? cells * (8.0 * (width + hidden) + forward_of_cell)
                                        : cells * (16.0 * (width + hidden) + backward_of_cell);
    }
    bool forward = s.pass == LSTM_FORWARD;
    return (struct cost){
        .flops = flops,
        .bytes = (forward ? x + w + y : 2.0 * x + 2.0 * w + y + kept) * element,
        .memory = (forward ? x + w + y : 2.0 * (x + w + y) + kept) * element,
    };
}

/* Weights are drawn from [-2^e, 2^e) with 2^e near 1 / sqrt(fan-in), as networks are initialised, so
 * that the gates neither saturate nor vanish. */
static int lstm_exponent(const struct config *config, enum tensor tensor)
{
    struct lstm s = lstm_from(config);
    return tensor == TENSOR_WEIGHT ? -(int)lround(log2(sqrt((double)(s.features + s.hidden)))) : 0;
}

/* Batch, gates and widths: those of the input and of the recurrent product side by side. A library
 * may leave out the recurrent product of the first step, whose state is zero. Layers above the first
 * have another width: extents are given of one layer only. */
static void lstm_products(const struct config *config, struct products *products)
{
    struct lstm s = lstm_from(config);
    double steps = (double)s.sequence;
    for (size_t way = 0; way < 2; ++way) {
        struct extent *extents = products->ways[way];
        double part = way ? (steps - 1.0) / steps : 1.0;
        extents[0] = (struct extent){s.batch, 0, 1.0, NULL};
        extents[1] = (struct extent){4 * s.hidden, 0, 1.0, NULL};
        extents[2] = (struct extent){s.features, s.hidden, part, NULL};
    }
    products->count = s.layers == 1 ? 2 : 0;
    products->cells = (double)(s.sequence * s.batch) * (double)(s.layers * s.directions * s.hidden);
    products->flops_of_cell = s.pass == LSTM_FORWARD ? forward_of_cell : backward_of_cell;
    products->cell = "unit and step";
    products->part = "the gates";
}

/* The states are rounded in each step. In fp32 nothing else is, so multiplications in a narrower format
 * show. */
static double lstm_tolerance(enum precision precision)
{
    return precision == PRECISION_FP32   ? 3e-5
           : precision == PRECISION_FP16 ? 1e-3
                                         : precision_info[precision].tolerance;
}

const struct workload lstm_workload = {
    .name = "lstm",
    WORKLOAD_TABLE(lstm_parameters),
    .implementations = lstm_implementations,
    .cost = lstm_cost,
    .exponent = lstm_exponent,
    .reference = lstm_reference,
    .products = lstm_products,
    .tolerance = lstm_tolerance,
};
