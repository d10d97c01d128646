/* The reference of recurrent layers on the GPU, in fp64: arrays and steps are those of
 * model/workloads/lstm_network.h. On a host a step of a large layer waits for its weights, which
 * exceed the caches. */
#include "worker/cuda/workloads/workloads.h"
#include "worker/gpu/arena.h"

/* One layer: D directions, H hidden, R outputs, W = D R. A row is a sample at one step. */
struct layer {
    struct gpu *gpu;
    struct lstm s;
    int64_t samples, rows;
    int64_t layer, width;                        /* width of the input x */
    double *w, *x, *y, *units, *h, *gates, *fed; /* gates: products with x; fed: with outputs */
    double *dy, *dout, *dsums, *carried, *between, *dh, *dw, *dx, *seen;
};

static double *weights_at(const struct layer *l, double *w, int64_t direction, enum lstm_part part)
{
    return w + lstm_w_at(&l->s, l->layer, direction, part);
}

/* The outputs of one direction, whose rows are W elements apart. */
static double *y_at(const struct layer *l, double *y, int64_t direction, int64_t row)
{
    return y + (row * l->s.directions + direction) * l->s.output;
}

static enum status product(const struct layer *l, struct kernel_sums c, struct kernel_factor a,
                           struct kernel_factor b, int64_t m, int64_t n, int64_t k,
                           struct error *error)
{
    return CUDA(kernel_lstm_product(c, a, b, m, n, k, l->gpu->stream));
}

/* Adds dsums times a matrix of gates [gate][hidden][n] to c. gate: by sum, -1 for none. Sums whose
 * gates follow each other are one product. */
static enum status gates_product(const struct layer *l, struct kernel_sums c, const double *dsums,
                                 const int *gate, const double *matrix, int64_t m, int64_t n,
                                 struct error *error)
{
    const int64_t hidden = l->s.hidden, sums = l->s.cell->sums;
    for (int first = 0, next; first < sums; first = next) {
        for (next = first + 1; next < sums && gate[next] == gate[next - 1] + 1; ++next)
            ;
        if (gate[first] < 0)
            continue;
        const struct kernel_factor a = {dsums + first * hidden, sums * hidden, 1};
        const struct kernel_factor b = {matrix + gate[first] * hidden * n, 1, n};
        TRY(product(l, c, a, b, m, n, (next - first) * hidden, error));
        c.add = c.data;
        c.add_line = c.line;
    }
    return STATUS_OK;
}

/* Sets c of each gate, [gate][hidden][n], to the sum over `rows` rows of its dsums times x. */
static enum status gates_gradient(const struct layer *l, double *c, const double *dsums,
                                  const int *gate, struct kernel_factor x, int64_t n, int64_t rows,
                                  struct error *error)
{
    const int64_t hidden = l->s.hidden, sums = l->s.cell->sums;
    for (int sum = 0; sum < sums; ++sum) {
        const struct kernel_factor a = {dsums + sum * hidden, 1, sums * hidden};
        if (gate[sum] >= 0)
            TRY(product(l, (struct kernel_sums){c + gate[sum] * hidden * n, NULL, n, 0}, a, x,
                        hidden, n, rows, error));
    }
    return STATUS_OK;
}

/* The units of a step, and their first row. */
static struct kernel_lstm_step step_of(const struct layer *l, int64_t direction, int64_t step,
                                       int64_t *row)
{
    const struct lstm *s = &l->s;
    const int64_t units = l->samples * s->hidden * KERNEL_LSTM_UNIT;
    const int64_t place = direction ? s->sequence - 1 - step : step;
    double *at = l->units + (direction * s->sequence + place) * units;
    *row = place * l->samples;
    return (struct kernel_lstm_step){s->kind,    *s->cell,
                                     l->samples, s->hidden,
                                     at,         step ? at + (direction ? units : -units) : NULL};
}

static enum status forward(const struct layer *l, int64_t direction, struct error *error)
{
    const struct lstm *s = &l->s;
    const int64_t gates = s->cell->gates * s->hidden, line = s->directions * s->output;
    const double *bias = weights_at(l, l->w, direction, LSTM_BIAS);
    const struct kernel_factor x = {l->x, l->width, 1},
                               inputs = {weights_at(l, l->w, direction, LSTM_INPUT_MATRIX),
                                         l->width, 1},
                               outputs = {weights_at(l, l->w, direction, LSTM_RECURRENT_MATRIX),
                                          s->output, 1},
                               projection = {weights_at(l, l->w, direction, LSTM_PROJECTION),
                                             s->hidden, 1};
    TRY(product(l, (struct kernel_sums){l->gates, NULL, gates, 0}, x, inputs, l->rows, gates,
                l->width, error));
    for (int64_t step = 0, row; step < s->sequence; ++step) {
        const struct kernel_lstm_step units = step_of(l, direction, step, &row);
        double *y = y_at(l, l->y, direction, row);
        double *h = s->projection ? l->h + (direction * l->rows + row) * s->hidden : y;
        const int64_t ahead = (direction ? -1 : 1) * l->samples * line;
        if (step > 0)
            TRY(product(l, (struct kernel_sums){l->fed, NULL, gates, 0},
                        (struct kernel_factor){y - ahead, line, 1}, outputs, l->samples, gates,
                        s->output, error));
        TRY(CUDA(kernel_lstm_units(&units, bias, l->gates + row * gates, step ? l->fed : NULL, h,
                                   s->projection ? s->hidden : line, l->gpu->stream)));
        if (s->projection)
            TRY(product(l, (struct kernel_sums){y, NULL, line, 0},
                        (struct kernel_factor){h, s->hidden, 1}, projection, l->samples, s->output,
                        s->hidden, error));
    }
    return STATUS_OK;
}

/* Sets dsums of all rows. */
static enum status backward(const struct layer *l, int64_t direction, struct error *error)
{
    const struct lstm *s = &l->s;
    const int64_t sums = s->cell->sums * s->hidden, line = s->directions * s->output;
    const double *matrix = weights_at(l, l->w, direction, LSTM_RECURRENT_MATRIX);
    const struct kernel_factor projection = {weights_at(l, l->w, direction, LSTM_PROJECTION), 1,
                                             s->hidden};
    TRY(CUDA(cudaMemsetAsync(l->carried, 0, (size_t)(l->samples * s->hidden) * sizeof *l->carried,
                             l->gpu->stream)));
    for (int64_t step = s->sequence - 1, row; step >= 0; --step) {
        const struct kernel_lstm_step units = step_of(l, direction, step, &row);
        const int64_t place = direction * l->rows + row;
        const int64_t ahead = (direction ? -1 : 1) * l->samples * sums;
        double *d = l->dout + place * s->output, *dsums = l->dsums + place * sums;
        struct kernel_sums c = {d, y_at(l, l->dy, direction, row), s->output, line};
        if (step == s->sequence - 1) /* no products: a copy */
            TRY(product(l, c, projection, projection, l->samples, s->output, 0, error));
        else
            TRY(gates_product(l, c, dsums + ahead, s->cell->recurrent, matrix, l->samples,
                              s->output, error));
        if (s->projection)
            TRY(product(l, (struct kernel_sums){l->dh, NULL, s->hidden, 0},
                        (struct kernel_factor){d, s->output, 1}, projection, l->samples, s->hidden,
                        s->output, error));
        TRY(CUDA(kernel_lstm_unit_gradients(&units, s->projection ? l->dh : d, l->carried,
                                            l->seen ? y_at(l, l->seen, direction, row) : NULL, line,
                                            dsums, l->gpu->stream)));
    }
    return STATUS_OK;
}

/* Sets the gradients of the weights in one direction. */
static enum status weights_gradient(const struct layer *l, int64_t direction, struct error *error)
{
    const struct lstm *s = &l->s;
    const int64_t sums = s->cell->sums * s->hidden, line = s->directions * s->output;
    const int64_t earlier = direction ? 0 : l->samples, before = direction ? l->samples : 0;
    const double *dsums = l->dsums + direction * l->rows * sums;
    const double *dout = l->dout + direction * l->rows * s->output;
    TRY(gates_gradient(l, weights_at(l, l->dw, direction, LSTM_INPUT_MATRIX), dsums, s->cell->input,
                       (struct kernel_factor){l->x, 1, l->width}, l->width, l->rows, error));
    TRY(gates_gradient(l, weights_at(l, l->dw, direction, LSTM_RECURRENT_MATRIX),
                       dsums + earlier * sums, s->cell->recurrent,
                       (struct kernel_factor){y_at(l, l->y, direction, before), 1, line}, s->output,
                       l->rows - l->samples, error));
    if (s->projection)
        TRY(product(l,
                    (struct kernel_sums){weights_at(l, l->dw, direction, LSTM_PROJECTION), NULL,
                                         s->hidden, 0},
                    (struct kernel_factor){dout, 1, s->output},
                    (struct kernel_factor){l->h + direction * l->rows * s->hidden, 1, s->hidden},
                    s->output, s->hidden, l->rows, error));
    return CUDA(kernel_column_sums(PRECISION_FP64, weights_at(l, l->dw, direction, LSTM_BIAS),
                                   dsums, l->rows, sums, l->gpu->stream));
}

static enum status input_gradient(const struct layer *l, double *dx, struct error *error)
{
    const struct lstm *s = &l->s;
    for (int64_t direction = 0; direction < s->directions; ++direction) {
        const struct kernel_sums c = {dx, direction ? dx : NULL, l->width, l->width};
        TRY(gates_product(l, c, l->dsums + direction * l->rows * s->cell->sums * s->hidden,
                          s->cell->input, weights_at(l, l->w, direction, LSTM_INPUT_MATRIX),
                          l->rows, l->width, error));
    }
    return STATUS_OK;
}

/* Runs all layers. `net` has the arrays of the first layer. */
static enum status network(const struct layer *net, bool backwards, struct error *error)
{
    const struct lstm *s = &net->s;
    const int64_t y_size = net->rows * s->directions * s->output;
    const int64_t cells = s->directions * net->rows * s->hidden;
    const int64_t passes = backwards ? 2 * s->layers : s->layers;
    for (int64_t pass = 0; pass < passes; ++pass) {
        struct layer l = *net;
        l.layer = pass < s->layers ? pass : passes - 1 - pass;
        l.width = lstm_input_width(s, l.layer);
        l.x = l.layer ? net->y + (l.layer - 1) * y_size : net->x;
        l.y = net->y + l.layer * y_size;
        l.h = net->h + l.layer * (s->projection ? cells : 0);
        l.units = net->units + l.layer * cells * KERNEL_LSTM_UNIT;
        l.dy = l.layer == s->layers - 1 ? net->dy : net->between;
        for (int64_t direction = 0; direction < s->directions; ++direction) {
            TRY(pass < s->layers ? forward(&l, direction, error) : backward(&l, direction, error));
            if (pass >= s->layers)
                TRY(weights_gradient(&l, direction, error));
        }
        if (pass >= s->layers)
            TRY(input_gradient(&l, l.layer ? net->between : net->dx, error));
    }
    return STATUS_OK;
}

/* Fills an array [sequence][samples][width] from one of [sequence][batch][width]. */
static enum status samples_fill(const struct layer *l, double *data, struct fill fill,
                                int64_t width, struct error *error)
{
    for (int64_t t = 0; t < l->s.sequence; ++t)
        TRY(CUDA(kernel_fill(PRECISION_FP64, data + t * l->samples * width, l->samples * width,
                             fill, t * l->s.batch * width, l->gpu->stream)));
    return STATUS_OK;
}

static enum status results_compute(const struct layer *net, const struct lstm_results *results,
                                   double *picked, struct error *error)
{
    const struct lstm *s = &net->s;
    const struct config *config = results->config;
    const bool backwards = results->dx || results->dw;
    const int64_t y_size = net->rows * s->directions * s->output, x_size = net->rows * s->features;
    const size_t y_bytes = (size_t)y_size * sizeof *net->y;
    cudaStream_t stream = net->gpu->stream;
    TRY(CUDA(kernel_fill(PRECISION_FP64, net->w, lstm_w_size(s),
                         config_fill(config, results->seed, TENSOR_WEIGHT), 0, stream)));
    TRY(samples_fill(net, net->x, config_fill(config, results->seed, TENSOR_INPUT), s->features,
                     error));
    TRY(samples_fill(net, net->dy, config_fill(config, results->seed, TENSOR_OUTPUT),
                     s->directions * s->output, error));
    if (results->seen)
        TRY(CUDA(cudaMemcpyAsync(net->seen, results->seen, y_bytes, cudaMemcpyDefault, stream)));
    TRY(network(net, backwards, error));
    if (results->y)
        TRY(CUDA(cudaMemcpyAsync(results->y, net->y + (s->layers - 1) * y_size, y_bytes,
                                 cudaMemcpyDefault, stream)));
    if (results->dx)
        TRY(CUDA(cudaMemcpyAsync(results->dx, net->dx, (size_t)x_size * sizeof *net->dx,
                                 cudaMemcpyDefault, stream)));
    if (results->dw)
        TRY(vendor.gather(net->gpu, PRECISION_FP64, net->dw, results->dw_offsets, results->dw_count,
                          picked, results->dw, error));
    return CUDA(cudaStreamSynchronize(stream));
}

enum status lstm_compute(struct gpu *gpu, const struct lstm_results *results, struct error *error)
{
    struct layer net = {.gpu = gpu, .s = lstm_from(results->config), .samples = results->samples};
    const struct lstm *s = &net.s;
    const bool backwards = results->dx || results->dw;
    net.rows = s->sequence * net.samples;
    const int64_t x_size = net.rows * s->features, y_size = net.rows * s->directions * s->output;
    const int64_t units = net.samples * s->hidden, cells = s->directions * s->sequence * units;
    double *picked = NULL;
    const struct {
        double **array;
        int64_t forward, backward; /* elements */
    } arrays[] = {
        {&net.w, lstm_w_size(s), 0},
        {&net.x, x_size, 0},
        {&net.y, s->layers * y_size, 0},
        {&net.units, s->layers * cells * KERNEL_LSTM_UNIT, 0},
        {&net.h, s->projection ? s->layers * cells : 0, 0},
        {&net.gates, cells / s->directions * s->cell->gates, 0},
        {&net.fed, units * s->cell->gates, 0},
        {&net.dy, y_size, 0},
        {&net.seen, results->seen ? y_size : 0, 0},
        {&net.dout, 0, y_size},
        {&net.dsums, 0, cells * s->cell->sums},
        {&net.carried, 0, units},
        {&net.between, 0, y_size},
        {&net.dh, 0, units},
        {&net.dw, 0, lstm_w_size(s)},
        {&net.dx, 0, x_size},
        {&picked, 0, 2 * results->dw_count},
    };
    int64_t size = 0;
    void *memory = NULL;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i)
        size += arrays[i].forward + (backwards ? arrays[i].backward : 0);
    TRY(arena_allocate(gpu->arena, (double)size * sizeof(double), "the reference", &memory, error));
    double *next = memory;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) {
        *arrays[i].array = next;
        next += arrays[i].forward + (backwards ? arrays[i].backward : 0);
    }
    if (!results->seen)
        net.seen = NULL;
    enum status status = results_compute(&net, results, picked, error);
    arena_free(gpu->arena, memory);
    return status;
}
