#include "model/workloads/lstm.h"

/* clang-format off */
static const char *const lstm_pass_words[] = {"forward", "backward", NULL};
static const char *const lstm_implementation_words[] = {"auto", "cudnn", "cblas", NULL};
static const char *const lstm_algorithm_words[] = {"auto", "standard", "persist-static",
                                                   "persist-dynamic", NULL};

static const struct parameter lstm_parameters[] = {
    WORKLOAD_SERIES("algorithm", lstm_algorithm_words, "auto", "the library's; auto: fastest as measured"),
    WORKLOAD_INTEGER("batch", 1048576, "16", "sequences"),
    WORKLOAD_CACHE,
    WORKLOAD_INTEGER("directions", 2, "1", "1, or 2: bidirectional"),
    WORKLOAD_INTEGER("features", 1048576, "32", "input width"),
    WORKLOAD_INTEGER("hidden", 1048576, "16", "hidden width"),
    WORKLOAD_SERIES("implementation", lstm_implementation_words, "auto", "auto: the device's best library"),
    WORKLOAD_INTEGER("layers", 1024, "1", "stacked layers"),
    WORKLOAD_SERIES("pass", lstm_pass_words, "forward", "what is computed; backward is without forward"),
    WORKLOAD_SERIES("precision", workload_precisions, "fp32", "of the tensors and the multiplications"),
    WORKLOAD_INTEGER("sequence", 65536, "16", "time steps"),
};
/* clang-format on */

static const char *const lstm_implementations[] = {
    "cudnn: NVIDIA cuDNN, on CUDA devices",
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
        .implementation = config_word(config, "implementation"),
        .algorithm = config_word(config, "algorithm"),
        .cold = config_value(config, "cache").first != 0,
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
        flops += s.pass == LSTM_FORWARD ? cells * (8.0 * (width + hidden) + 4.0)
                                        : cells * (16.0 * (width + hidden) + 27.0);
    }
    bool forward = s.pass == LSTM_FORWARD;
    return (struct cost){
        .flops = flops,
        .bytes = (forward ? x + w + y : 2.0 * x + 2.0 * w + y + kept) * element,
        .memory = (forward ? x + w + y : 2.0 * (x + w + y) + kept) * element,
    };
}

const struct workload lstm_workload = {
    "lstm", WORKLOAD_TABLE(lstm_parameters), lstm_implementations, NULL, lstm_cost,
};
