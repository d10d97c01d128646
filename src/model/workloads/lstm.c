#include "model/workloads/lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/reference.h"

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

/* Per unit and step, with the input width I, R outputs, G gates and a projection to P:
 *   forward   2 G (I + R) + 2 P in the matrix products, bias included; struct lstm_cell has the
 *   rest
 *   backward  twice the products, for the data and the weights
 * The sigmoids, hyperbolic tangents and maxima themselves are no FLOPs. Backward also reads what
 * the training forward pass keeps: struct lstm_cell's values of each unit, the output, and before a
 * projection what is projected. It adds the output's gradient to that from the later step. */
static struct cost lstm_cost(const struct config *config)
{
    struct lstm s = lstm_from(config);
    double element = (double)precision_info[s.precision].bytes;
    double hidden = (double)s.hidden, output = (double)s.output, projection = (double)s.projection;
    double directions = (double)s.directions, gates = s.cell->gates;
    double x = (double)s.sequence * (double)s.batch * (double)s.features;
    double y = (double)s.sequence * (double)s.batch * directions * output;
    double cells = (double)s.sequence * (double)s.batch * directions * hidden;
    bool forward = s.pass == LSTM_FORWARD;
    double kept = (cells * (s.cell->kept + (s.projection > 0)) + y) * (double)s.layers;
    double w = 0.0, flops = 0.0;
    for (int64_t layer = 0; layer < s.layers; ++layer) {
        double width = layer == 0 ? (double)s.features : output * directions;
        double products = 2.0 * gates * (width + output) + 2.0 * projection;
        w += directions * hidden * (gates * (width + output) + s.cell->sums + projection);
        flops += cells * (forward ? products : 2.0 * products);
        flops +=
            cells * (forward ? s.cell->forward_flops : s.cell->backward_flops + output / hidden);
    }
    return (struct cost){
        .flops = flops,
        .bytes = (forward ? x + w + y : 2.0 * x + 2.0 * w + y + kept) * element,
        .memory = (forward ? x + w + y : 2.0 * (x + w + y) + kept) * element,
    };
}

/* Weights are drawn from [-2^e, 2^e) with 2^e near 1 / sqrt(fan-in), as networks are initialised,
 * so that the gates neither saturate nor vanish. */
static int lstm_exponent(const struct config *config, enum tensor tensor)
{
    struct lstm s = lstm_from(config);
    return tensor == TENSOR_WEIGHT ? -(int)lround(log2(sqrt((double)(s.features + s.hidden)))) : 0;
}

/* The states are rounded in each step. In fp32 nothing else is, so multiplications in a narrower
 * format show. Where a state of relu is rounded to 0 the slope is lost: a few of those are several
 * per cent of a gradient, in bf16 3 % of a batch of 16. */
static struct tolerance lstm_tolerance(const struct config *config)
{
    const struct lstm s = lstm_from(config);
    const bool slopes = s.kind == LSTM_RELU && s.pass == LSTM_BACKWARD;
    return s.precision == PRECISION_FP32   ? (struct tolerance){3e-5, 1e-4}
           : s.precision == PRECISION_FP16 ? (struct tolerance){1e-3, slopes ? 0.1 : 2e-3}
           : s.precision == PRECISION_BF16 ? (struct tolerance){8e-3, slopes ? 0.1 : 2e-2}
                                           : precision_info[s.precision].tolerance;
}

/* ---- one unit at one step of one sample, in fp64 ---- */

struct unit {
    double sums[LSTM_SUMS]; /* after unit_forward what the gates make of them, for the way back */
    double state;           /* an LSTM's c, else h */
};

static double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}

/* Takes unit->sums and the state of the step before; sets the rest. Returns h, before a
 * projection. */
static double unit_forward(enum lstm_kind kind, struct unit *unit, double before)
{
    double *v = unit->sums;
    switch (kind) {
    case LSTM_LSTM:
        v[0] = sigmoid(v[0]);
        v[1] = sigmoid(v[1]);
        v[2] = tanh(v[2]);
        v[3] = sigmoid(v[3]);
        unit->state = v[1] * before + v[0] * v[2];
        return v[3] * tanh(unit->state);
    case LSTM_GRU:
        v[0] = sigmoid(v[0]);
        v[1] = sigmoid(v[1]);
        v[2] = tanh(v[2] + v[1] * v[3]);
        return unit->state = (1.0 - v[0]) * v[2] + v[0] * before;
    case LSTM_RELU:
        return unit->state = v[0] = fmax(v[0], 0.0);
    default:
        return unit->state = v[0] = tanh(v[0]);
    }
}

/* `d`: the gradient of h, by way of the outputs. *carried: that of the state, by way of the later
 * step's state; set to what the step before gets. Sets the gradients of the sums. */
static void unit_backward(enum lstm_kind kind, const struct unit *unit, double before, double d,
                          double *carried, double dsums[LSTM_SUMS])
{
    const double *v = unit->sums;
    if (kind == LSTM_LSTM) {
        double i = v[0], f = v[1], g = v[2], o = v[3];
        double t = tanh(unit->state), dc = *carried + d * o * (1.0 - t * t);
        *carried = dc * f;
        dsums[0] = dc * g * i * (1.0 - i);
        dsums[1] = dc * before * f * (1.0 - f);
        dsums[2] = dc * i * (1.0 - g * g);
        dsums[3] = d * t * o * (1.0 - o);
    } else if (kind == LSTM_GRU) {
        double z = v[0], r = v[1], n = v[2], q = v[3], dh = d + *carried;
        *carried = dh * z;
        dsums[0] = dh * (before - n) * z * (1.0 - z);
        dsums[2] = dh * (1.0 - z) * (1.0 - n * n);
        dsums[1] = dsums[2] * q * r * (1.0 - r);
        dsums[3] = dsums[2] * r;
    } else if (kind == LSTM_RELU) {
        dsums[0] = v[0] > 0.0 ? d : 0.0;
    } else {
        dsums[0] = d * (1.0 - v[0] * v[0]);
    }
}

/* ---- all layers in fp64, from the definition: all results of some samples of the batch ---- */

/* All arrays are owned and hold the first `samples` of the batch, N of them; D directions, H
 * hidden, R outputs of a direction. A row is a sample at one time step: there are T N of them, and
 * the same sample's next step is N rows further on. */
struct network {
    struct lstm s;
    int64_t samples, rows;
    reference_loop *loop;
    double *w;          /* all of it */
    double *x;          /* [row][features] */
    double *y;          /* [layer][row][D * R] */
    struct unit *units; /* [layer][D][row][H] */
    double *h;          /* of each unit, before the projection */
    double *dy, *dx;    /* of one layer: [row][D * R], [row][widest input] */
    double *dout;       /* of one layer: of its outputs, [D][row][R] */
    double *dsums;      /* of one layer: [D][row][sums][H] */
    double *carried;    /* from the later step: [D][N][H] */
};

static double *fill_create(struct fill fill, int64_t rows, int64_t columns, int64_t stride)
{
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): at least 1 */
    double *data = malloc((size_t)(rows * columns) * sizeof *data);
    for (int64_t i = 0; data && i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            data[i * columns + j] = fill_value(fill, (uint64_t)(i * stride + j));
    return data;
}

static double *zeros_create(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

static void network_clear(struct network *net)
{
    void *arrays[] = {net->w,  net->x,  net->y,    net->units, net->h,
                      net->dy, net->dx, net->dout, net->dsums, net->carried};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i)
        free(arrays[i]);
}

static enum status network_init(struct network *net, const struct reference_request *request,
                                int64_t samples, struct error *error)
{
    const struct config *config = request->config;
    struct lstm s = lstm_from(config);
    int64_t rows = s.sequence * samples, cells = s.directions * rows * s.hidden;
    int64_t width = s.output * s.directions, widest = s.features > width ? s.features : width;
    *net = (struct network){
        .s = s,
        .samples = samples,
        .rows = rows,
        .loop = request->loop,
        .w = fill_create(config_fill(config, request->seed, TENSOR_WEIGHT), 1, lstm_w_size(&s), 0),
        .x = fill_create(config_fill(config, request->seed, TENSOR_INPUT), s.sequence,
                         samples * s.features, s.batch * s.features),
        .y = zeros_create(s.layers * rows * width),
        .units = calloc((size_t)(s.layers * cells), sizeof(struct unit)),
        .h = zeros_create(s.layers * cells),
        .dy = fill_create(config_fill(config, request->seed, TENSOR_OUTPUT), s.sequence,
                          samples * width, s.batch * width),
        .dx = zeros_create(rows * widest),
        .dout = zeros_create(rows * width),
        .dsums = zeros_create(cells * s.cell->sums),
        .carried = zeros_create(s.directions * samples * s.hidden),
    };
    if (net->w && net->x && net->y && net->units && net->h && net->dy && net->dx && net->dout &&
        net->dsums && net->carried)
        return STATUS_OK;
    network_clear(net);
    return error_set(error, STATUS_SYSTEM, "no memory for the reference of %lld samples",
                     (long long)samples);
}

/* What the tasks of a loop share: one layer, and a time step of it in each direction's own order.
 * Its arrays lie in the network's; those of weights are by direction. */
struct layer {
    const struct network *net;
    int64_t width, step; /* of the input */
    const double *x;
    double *y, *h;
    struct unit *units;
    const double *w[2][LSTM_PARTS];
    double *dw[2][LSTM_PARTS];
};

/* dw: of all layers; NULL: not wanted. */
static struct layer layer_of(const struct network *net, int64_t layer, double *dw)
{
    const struct lstm *s = &net->s;
    int64_t y_size = net->rows * s->directions * s->output;
    int64_t cells = s->directions * net->rows * s->hidden;
    struct layer at = {
        .net = net,
        .width = lstm_input_width(s, layer),
        .x = layer == 0 ? net->x : net->y + (layer - 1) * y_size,
        .y = net->y + layer * y_size,
        .h = net->h + layer * cells,
        .units = net->units + layer * cells,
    };
    for (int64_t direction = 0; direction < s->directions; ++direction)
        for (int part = 0; part < LSTM_PARTS; ++part) {
            int64_t offset = lstm_w_at(s, layer, direction, (enum lstm_part)part);
            at.w[direction][part] = net->w + offset;
            at.dw[direction][part] = dw ? dw + offset : NULL;
        }
    return at;
}

/* One value of a sample in one direction at the layer's step. */
struct place {
    int64_t direction, n, u;
    int64_t row;           /* of this step */
    int64_t before, after; /* of the steps beside it in the direction's own order; see row_exists */
    int64_t cell;          /* row among those of both directions */
};

/* Task `i` of `width` for each sample and direction. */
static struct place place_find(const struct layer *at, int64_t width, int64_t i)
{
    const struct network *net = at->net;
    int64_t direction = i / width / net->samples, n = i / width % net->samples;
    int64_t row = (direction ? net->s.sequence - 1 - at->step : at->step) * net->samples + n;
    int64_t ahead = direction ? -net->samples : net->samples;
    return (struct place){
        direction, n, i % width, row, row - ahead, row + ahead, direction * net->rows + row};
}

static bool row_exists(const struct network *net, int64_t row)
{
    return row >= 0 && row < net->rows;
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i)
        sum += a[i] * b[i];
    return sum;
}

static double column_dot(const double *a, const double *column, int64_t stride, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i)
        sum += a[i] * column[i * stride];
    return sum;
}

static void row_add(double *row, double factor, const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        row[i] += factor * values[i];
}

/* The outputs of a row in one direction. */
static double *y_at(const struct layer *at, int64_t direction, int64_t row)
{
    const struct lstm *s = &at->net->s;
    return at->y + (row * s->directions + direction) * s->output;
}

/* The unit's state at the step before. */
static double state_before(const struct layer *at, struct place p)
{
    const struct network *net = at->net;
    int64_t cell = p.direction * net->rows + p.before;
    return row_exists(net, p.before) ? at->units[cell * net->s.hidden + p.u].state : 0.0;
}

/* A task is one unit of one sample in one direction. */
static void forward_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct lstm *s = &at->net->s;
    struct place p = place_find(at, s->hidden, i);
    const double *const *w = at->w[p.direction];
    int64_t cell = p.cell * s->hidden + p.u;
    struct unit *unit = &at->units[cell];
    for (int sum = 0; sum < s->cell->sums; ++sum) {
        int input = s->cell->input[sum], recurrent = s->cell->recurrent[sum];
        double value = w[LSTM_BIAS][sum * s->hidden + p.u];
        if (input >= 0)
            value += dot(w[LSTM_INPUT_MATRIX] + (input * s->hidden + p.u) * at->width,
                         at->x + p.row * at->width, at->width);
        if (recurrent >= 0 && row_exists(at->net, p.before))
            value += dot(w[LSTM_RECURRENT_MATRIX] + (recurrent * s->hidden + p.u) * s->output,
                         y_at(at, p.direction, p.before), s->output);
        unit->sums[sum] = value;
    }
    at->h[cell] = unit_forward(s->kind, unit, state_before(at, p));
    if (!s->projection)
        y_at(at, p.direction, p.row)[p.u] = at->h[cell];
}

/* A task is one output of a projection. */
static void projection_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct lstm *s = &at->net->s;
    struct place p = place_find(at, s->output, i);
    y_at(at, p.direction, p.row)[p.u] = dot(at->w[p.direction][LSTM_PROJECTION] + p.u * s->hidden,
                                            at->h + p.cell * s->hidden, s->hidden);
}

static void forward_layer(struct network *net, int64_t layer)
{
    struct layer at = layer_of(net, layer, NULL);
    int64_t rows = net->s.directions * net->samples;
    for (at.step = 0; at.step < net->s.sequence; ++at.step) {
        net->loop(rows * net->s.hidden, forward_task, &at);
        if (net->s.projection)
            net->loop(rows * net->s.output, projection_task, &at);
    }
}

/* The gradient of one output: from above, and from the later step's sums, which are complete. */
static void output_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    struct place p = place_find(at, s->output, i);
    const double *matrix = at->w[p.direction][LSTM_RECURRENT_MATRIX] + p.u;
    const double *later =
        net->dsums + (p.direction * net->rows + p.after) * s->cell->sums * s->hidden;
    double d = net->dy[(p.row * s->directions + p.direction) * s->output + p.u];
    for (int sum = 0; row_exists(net, p.after) && sum < s->cell->sums; ++sum)
        if (s->cell->recurrent[sum] >= 0)
            d += column_dot(later + sum * s->hidden,
                            matrix + s->cell->recurrent[sum] * s->hidden * s->output, s->output,
                            s->hidden);
    net->dout[p.cell * s->output + p.u] = d;
}

/* A task is one unit of one sample in one direction. */
static void backward_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    struct place p = place_find(at, s->hidden, i);
    const double *dout = net->dout + p.cell * s->output;
    const double *matrix = at->w[p.direction][LSTM_PROJECTION] + p.u;
    double d = s->projection ? column_dot(dout, matrix, s->hidden, s->output) : dout[p.u];
    double *carried = net->carried + (p.direction * net->samples + p.n) * s->hidden + p.u;
    double dsums[LSTM_SUMS] = {0};
    if (!row_exists(net, p.after))
        *carried = 0.0;
    unit_backward(s->kind, &at->units[p.cell * s->hidden + p.u], state_before(at, p), d, carried,
                  dsums);
    for (int sum = 0; sum < s->cell->sums; ++sum)
        net->dsums[(p.cell * s->cell->sums + sum) * s->hidden + p.u] = dsums[sum];
}

/* The gradients of the rows of w that belong to one sum of a unit. A task is one of them. */
static void weights_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    int64_t sums = s->cell->sums * s->hidden, direction = i / sums, u = i % s->hidden;
    int64_t step = direction ? net->samples : -net->samples; /* to the one before */
    int input = s->cell->input[i % sums / s->hidden];
    int recurrent = s->cell->recurrent[i % sums / s->hidden];
    double *inputs = at->dw[direction][LSTM_INPUT_MATRIX] + (input * s->hidden + u) * at->width;
    double *outputs =
        at->dw[direction][LSTM_RECURRENT_MATRIX] + (recurrent * s->hidden + u) * s->output;
    double *bias = at->dw[direction][LSTM_BIAS] + i % sums;
    *bias = 0.0;
    if (input >= 0)
        memset(inputs, 0, (size_t)at->width * sizeof *inputs);
    if (recurrent >= 0)
        memset(outputs, 0, (size_t)s->output * sizeof *outputs);
    for (int64_t row = 0; row < net->rows; ++row) {
        double d = net->dsums[(direction * net->rows + row) * sums + i % sums];
        if (input >= 0)
            row_add(inputs, d, at->x + row * at->width, at->width);
        if (recurrent >= 0 && row_exists(net, row + step))
            row_add(outputs, d, y_at(at, direction, row + step), s->output);
        *bias += d;
    }
}

/* A task is one row of a projection: that of one output. */
static void projection_weights_task(void *context, int64_t i)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    int64_t direction = i / s->output, output = i % s->output;
    double *weights = at->dw[direction][LSTM_PROJECTION] + output * s->hidden;
    memset(weights, 0, (size_t)s->hidden * sizeof *weights);
    for (int64_t cell = direction * net->rows; cell < (direction + 1) * net->rows; ++cell)
        row_add(weights, net->dout[cell * s->output + output], at->h + cell * s->hidden, s->hidden);
}

/* A task is one sample of one time step. */
static void input_task(void *context, int64_t row)
{
    const struct layer *at = context;
    const struct network *net = at->net;
    const struct lstm *s = &net->s;
    double *dx = net->dx + row * at->width;
    memset(dx, 0, (size_t)at->width * sizeof *dx);
    for (int64_t direction = 0; direction < s->directions; ++direction) {
        const double *matrix = at->w[direction][LSTM_INPUT_MATRIX];
        const double *d = net->dsums + (direction * net->rows + row) * s->cell->sums * s->hidden;
        for (int sum = 0; sum < s->cell->sums; ++sum)
            for (int64_t u = 0; s->cell->input[sum] >= 0 && u < s->hidden; ++u)
                row_add(dx, d[sum * s->hidden + u],
                        matrix + (s->cell->input[sum] * s->hidden + u) * at->width, at->width);
    }
}

/* Takes dy, leaves dx and this layer's part of dw (NULL: not wanted). */
static void backward_layer(struct network *net, int64_t layer, double *dw)
{
    const struct lstm *s = &net->s;
    struct layer at = layer_of(net, layer, dw);
    int64_t rows = s->directions * net->samples;
    for (at.step = s->sequence - 1; at.step >= 0; --at.step) {
        net->loop(rows * s->output, output_task, &at);
        net->loop(rows * s->hidden, backward_task, &at);
    }
    if (dw)
        net->loop(s->directions * s->cell->sums * s->hidden, weights_task, &at);
    if (dw && s->projection)
        net->loop(s->directions * s->projection, projection_weights_task, &at);
    net->loop(net->rows, input_task, &at);
}

enum status lstm_network_compute(const struct reference_request *request, int64_t samples,
                                 const double *seen, double *y, double *dx, double *dw,
                                 struct error *error)
{
    struct network net;
    TRY(network_init(&net, request, samples, error));
    const struct lstm *s = &net.s;
    int64_t width = s->output * s->directions, y_size = net.rows * width;
    for (int64_t layer = 0; layer < s->layers; ++layer)
        forward_layer(&net, layer);
    struct layer last = layer_of(&net, s->layers - 1, NULL);
    if (y)
        memcpy(y, last.y, (size_t)y_size * sizeof *y);
    /* A unit of the last layer is on where the device has it on. */
    for (int64_t i = 0; seen && i < y_size; ++i) {
        int64_t cell = i % width / s->hidden * net.rows + i / width;
        last.units[cell * s->hidden + i % s->hidden].sums[0] = seen[i];
    }
    if (s->pass == LSTM_BACKWARD && (dx || dw)) {
        for (int64_t layer = s->layers - 1; layer >= 0; --layer) {
            backward_layer(&net, layer, dw);
            if (layer > 0) /* what comes out of a layer goes into the one below: same width */
                memcpy(net.dy, net.dx, (size_t)y_size * sizeof *net.dy);
        }
        if (dx)
            memcpy(dx, net.dx, (size_t)(net.rows * s->features) * sizeof *dx);
    }
    network_clear(&net);
    return STATUS_OK;
}

/* ---- what is compared ---- */

/* The reference's [sequence][samples][width] as offsets into the device's
 * [sequence][batch][width]. */
static void sample_offsets(const struct lstm *s, int64_t samples, int64_t width, int64_t *offsets)
{
    for (int64_t t = 0; t < s->sequence; ++t)
        for (int64_t i = 0; i < samples * width; ++i)
            *offsets++ = t * s->batch * width + i;
}

/* The device's output, whose zeros say which units of a relu were off: that a sum is just below
 * zero in fp64 and just above it in the device's precision is no error. The caller owns *seen. */
static enum status output_read(const struct reference_request *request, const struct lstm *s,
                               int64_t samples, double **seen, struct error *error)
{
    int64_t width = s->output * s->directions, count = s->sequence * samples * width;
    int64_t *offsets = malloc((size_t)count * sizeof *offsets);
    double *values = malloc((size_t)count * sizeof *values);
    enum status status = STATUS_OK;
    if (!offsets || !values)
        status =
            error_set(error, STATUS_FAILED, "no memory to verify %lld elements", (long long)count);
    else
        sample_offsets(s, samples, width, offsets);
    if (status == STATUS_OK)
        status = request->read(request->context, TENSOR_OUTPUT, offsets, count, values, error);
    free(offsets);
    if (status)
        free(values);
    else
        *seen = values;
    return status;
}

/* The gates' gradients differ by orders of magnitude, those of the matrices and of the bias as
 * well. */
static enum status weights_divide(const struct lstm *s, struct slice *weights, struct error *error)
{
    const int runs[LSTM_PARTS] = {
        [LSTM_INPUT_MATRIX] = s->cell->gates,
        [LSTM_RECURRENT_MATRIX] = s->cell->gates,
        [LSTM_BIAS] = s->cell->sums,
        [LSTM_PROJECTION] = s->projection > 0,
    };
    int each = 0;
    for (int part = 0; part < LSTM_PARTS; ++part)
        each += runs[part];
    weights->ends = malloc((size_t)(s->layers * s->directions * each) * sizeof *weights->ends);
    if (!weights->ends)
        return error_set(error, STATUS_FAILED, "no memory for the parts of the weights");
    for (int64_t layer = 0; layer < s->layers; ++layer)
        for (int64_t direction = 0; direction < s->directions; ++direction)
            for (int part = 0; part < LSTM_PARTS; ++part)
                for (int run = 1; run <= runs[part]; ++run)
                    weights->ends[weights->parts++] =
                        lstm_w_at(s, layer, direction, (enum lstm_part)part) +
                        lstm_part_size(s, layer, (enum lstm_part)part) / runs[part] * run;
    return STATUS_OK;
}

/* Compares y (forward), or dx and dw (backward), of as many samples as the request affords: unlike
 * other results, an element cannot be had without all before it. */
static enum status lstm_reference(const struct reference_request *request,
                                  struct expectation *expectation, struct error *error)
{
    struct lstm s = lstm_from(request->config);
    bool forward = s.pass == LSTM_FORWARD;
    double sample = config_cost(request->config).flops / 2.0 / (double)s.batch;
    int64_t samples = (int64_t)fmin(fmax(request->products / sample, 1.0), (double)s.batch);
    int64_t width = forward ? s.output * s.directions : s.features;
    struct slice *first = NULL, *weights = NULL;
    double *seen = NULL;
    enum status status = expectation_add(expectation, forward ? TENSOR_OUTPUT : TENSOR_INPUT,
                                         s.sequence * samples * width, &first, error);
    if (status == STATUS_OK && !forward)
        status = expectation_add(expectation, TENSOR_WEIGHT, lstm_w_size(&s), &weights, error);
    if (status == STATUS_OK && !forward)
        status = weights_divide(&s, weights, error);
    if (status == STATUS_OK && !forward && s.kind == LSTM_RELU)
        status = output_read(request, &s, samples, &seen, error);
    TRY(status);
    sample_offsets(&s, samples, width, first->offsets);
    for (int64_t i = 0; weights && i < weights->count; ++i)
        weights->offsets[i] = i;
    expectation->samples = samples;
    status = lstm_network_compute(request, samples, seen, forward ? first->expected : NULL,
                                  forward ? NULL : first->expected,
                                  weights ? weights->expected : NULL, error);
    free(seen);
    return status;
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
