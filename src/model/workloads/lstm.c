#include "model/workloads/lstm.h"

#include <math.h>

#include "model/workloads/lstm_reference.h"

/* FLOPs beside the products: forward
 *   lstm  4 in c = f c + i g, h = o tanh(c)
 *   gru   6 in n + r q, (1 - z) n + z h
 * backward, of the sums' gradients and the biases', with d the output's gradient
 *   lstm  22: c's with 5 and 1 to the step before, 4 for each of four gates; 4
 *   gru   17: d z and a sum to the step before, d (1 - z) (1 - n n), d (h - n) z (1 - z), n's times
 *         q r (1 - r), n's times r; 4
 *   tanh  3: d (1 - h h); 1
 *   relu  1 */
const struct lstm_cell lstm_cells[LSTM_KINDS] = {
    [LSTM_LSTM] = {"lstm", 4, 4, {0, 1, 2, 3}, {0, 1, 2, 3}, 5, 4.0, 26.0},
    [LSTM_GRU] = {"gru", 3, 4, {0, 1, 2, -1}, {0, 1, -1, 2}, 4, 6.0, 21.0},
    [LSTM_RELU] = {"relu", 1, 1, {0, -1, -1, -1}, {0, -1, -1, -1}, 0, 0.0, 1.0},
    [LSTM_TANH] = {"tanh", 1, 1, {0, -1, -1, -1}, {0, -1, -1, -1}, 0, 0.0, 4.0},
};

/* clang-format off */
static const char *const lstm_pass_words[] = {"forward", "backward", NULL};
static const char *const lstm_cell_words[] = {"lstm", "gru", "relu", "tanh", NULL};
static const char *const lstm_implementation_words[] = {"auto", "cudnn", "onednn", "cblas",
                                                        "persistent", NULL};
static const char *const lstm_algorithm_words[] = {"auto", "standard", "persist-static",
                                                   "persist-dynamic",
                                                   "persist-static-small-h", NULL};

static const struct parameter lstm_parameters[] = {
    WORKLOAD_ALGORITHM(lstm_algorithm_words),
    WORKLOAD_INTEGER("batch", 1048576, "16", "sequences"),
    WORKLOAD_CACHE,
    WORKLOAD_LATER_SERIES("cell", lstm_cell_words, "lstm",
                          "of the layers; relu, tanh: a plain one with this activation"),
    WORKLOAD_INTEGER("directions", 2, "1", "1, or 2: bidirectional"),
    WORKLOAD_INTEGER("features", 1048576, "32", "input width"),
    WORKLOAD_INTEGER("hidden", 1048576, "16", "hidden width"),
    WORKLOAD_IMPLEMENTATION(lstm_implementation_words, "auto: the device's best library"),
    WORKLOAD_LAUNCH,
    WORKLOAD_INTEGER("layers", 1024, "1", "stacked layers"),
    WORKLOAD_PASS(lstm_pass_words, "what is computed; backward is without forward"),
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
    WORKLOAD_LATER_INTEGER("projection", 0, 1048576, "0",
                           "width that an LSTM's output is projected to; 0: as it is"),
    WORKLOAD_INTEGER("sequence", 65536, "16", "time steps"),
};
/* clang-format on */

static const char *const lstm_implementations[] = {
    "cudnn: NVIDIA cuDNN, on CUDA devices",
    "onednn: Intel oneDNN, on CPUs",
    "cblas: CBLAS, on CPUs",
    "persistent: written by hand, one launch for all steps of a layer, on CUDA devices",
    NULL,
};

struct lstm lstm_from(const struct config *config)
{
    struct lstm s = {
        .batch = config_value(config, "batch").first,
        .sequence = config_value(config, "sequence").first,
        .features = config_value(config, "features").first,
        .hidden = config_value(config, "hidden").first,
        .layers = config_value(config, "layers").first,
        .directions = config_value(config, "directions").first,
        .projection = config_value(config, "projection").first,
        .kind = (enum lstm_kind)config_value(config, "cell").first,
        .precision = config_precision(config),
        .pass = (enum lstm_pass)config_value(config, "pass").first,
        .implementation = config_word(config, ROLE_IMPLEMENTATION),
        .algorithm = config_word(config, ROLE_ALGORITHM),
        .cold = config_cold(config),
    };
    s.cell = &lstm_cells[s.kind];
    s.output = s.projection ? s.projection : s.hidden;
    return s;
}

static enum status lstm_check(const struct config *config, struct error *error)
{
    struct lstm s = lstm_from(config);
    if (s.projection && s.kind != LSTM_LSTM)
        return error_set(error, STATUS_UNSUPPORTED, "cell %s has no projection: an lstm has",
                         s.cell->name);
    if (s.projection >= s.hidden && s.projection > 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "projection %lld: it must be less than hidden, %lld",
                         (long long)s.projection, (long long)s.hidden);
    if (s.kind == LSTM_RELU && s.pass == LSTM_BACKWARD && s.layers > 1)
        return error_set(error, STATUS_UNSUPPORTED,
                         "backward of %lld layers of cell relu: which units were 0 below the last "
                         "layer cannot be seen, so its result cannot be verified",
                         (long long)s.layers);
    return STATUS_OK;
}

int64_t lstm_input_width(const struct lstm *s, int64_t layer)
{
    return layer == 0 ? s->features : s->output * s->directions;
}

int64_t lstm_x_size(const struct lstm *s)
{
    return s->sequence * s->batch * s->features;
}

int64_t lstm_y_size(const struct lstm *s)
{
    return s->sequence * s->batch * s->output * s->directions;
}

int64_t lstm_part_size(const struct lstm *s, int64_t layer, enum lstm_part part)
{
    const int64_t rows[LSTM_PARTS] = {
        [LSTM_INPUT_MATRIX] = s->cell->gates * lstm_input_width(s, layer),
        [LSTM_RECURRENT_MATRIX] = s->cell->gates * s->output,
        [LSTM_BIAS] = s->cell->sums,
        [LSTM_PROJECTION] = s->projection,
    };
    return rows[part] * s->hidden;
}

static int64_t lstm_cell_size(const struct lstm *s, int64_t layer)
{
    int64_t size = 0;
    for (int part = 0; part < LSTM_PARTS; ++part)
        size += lstm_part_size(s, layer, (enum lstm_part)part);
    return size;
}

int64_t lstm_w_at(const struct lstm *s, int64_t layer, int64_t direction, enum lstm_part part)
{
    /* All layers but the first have the same size. */
    int64_t offset = direction * lstm_cell_size(s, layer);
    if (layer > 0)
        offset += s->directions * (lstm_cell_size(s, 0) + (layer - 1) * lstm_cell_size(s, 1));
    for (int before = 0; before < (int)part; ++before)
        offset += lstm_part_size(s, layer, (enum lstm_part)before);
    return offset;
}

int64_t lstm_w_size(const struct lstm *s)
{
    return lstm_w_at(s, s->layers, 0, LSTM_INPUT_MATRIX);
}

static double cells_of(const struct lstm *s)
{
    return (double)s->sequence * (double)s->batch * (double)s->directions * (double)s->hidden;
}

/* FLOPs of a unit and step beside the products. Backward, the output's gradient is added to that from
 * the later step: once for each output. */
static double flops_of_cell(const struct lstm *s)
{
    double outputs = (double)s->output / (double)s->hidden;
    return s->pass == LSTM_FORWARD ? s->cell->forward_flops : s->cell->backward_flops + outputs;
}

/* Per unit and step, with the input width I, R outputs, G gates and a projection to P:
 *   forward   2 G (I + R) + 2 P in the matrix products, bias included; struct lstm_cell has the rest
 *   backward  twice the products, for the data and the weights
 * The sigmoids, hyperbolic tangents and maxima themselves are no FLOPs. Backward also reads what the
 * training forward pass keeps: struct lstm_cell's values of each unit, the output, and before a
 * projection what is projected. */
static struct cost lstm_cost(const struct config *config)
{
    struct lstm s = lstm_from(config);
    double element = (double)precision_info[s.precision].bytes;
    double hidden = (double)s.hidden, output = (double)s.output, projection = (double)s.projection;
    double directions = (double)s.directions, gates = s.cell->gates, cells = cells_of(&s);
    double x = (double)s.sequence * (double)s.batch * (double)s.features;
    double y = (double)s.sequence * (double)s.batch * directions * output;
    double kept = (cells * (s.cell->kept + (s.projection > 0)) + y) * (double)s.layers;
    double w = 0.0, flops = 0.0;
    for (int64_t layer = 0; layer < s.layers; ++layer) {
        double width = layer == 0 ? (double)s.features : output * directions;
        double products = 2.0 * gates * (width + output) + 2.0 * projection;
        w += directions * hidden * (gates * (width + output) + s.cell->sums + projection);
        flops += cells * (s.pass == LSTM_FORWARD ? products : 2.0 * products);
        flops += cells * flops_of_cell(&s);
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

/* The states are rounded in each step. In fp32 nothing else is, so multiplications in a narrower format
 * show. */
static double lstm_tolerance(enum precision precision)
{
    return precision == PRECISION_FP32   ? 3e-5
           : precision == PRECISION_FP16 ? 1e-3
           : precision == PRECISION_BF16 ? 8e-3
                                         : precision_info[precision].tolerance;
}

const struct workload lstm_workload = {
    .name = "lstm",
    WORKLOAD_TABLE(lstm_parameters),
    .implementations = lstm_implementations,
    .check = lstm_check,
    .cost = lstm_cost,
    .exponent = lstm_exponent,
    .reference = lstm_reference,
    .tolerance = lstm_tolerance,
};
