/* The fp64 reference of recurrent layers on the GPU, in the order of network_forward and
 * network_backward (model/workloads/lstm_network.h). The host would be slow: the weights of a large
 * layer exceed its caches, and each step reads them all. */
#include "worker/cuda/workloads/workloads.h"
#include "worker/gpu/arena.h"

/* Arrays on the device. */
enum { W, X, Y, UNITS, DY, SEEN, DSUMS, CARRIED, BETWEEN, DX, PLACES, DW, ARRAYS };
struct network {
    const struct lstm_results *results;
    struct lstm s;
    int64_t rows, y_size; /* y_size is also the number of units */
    double *arrays[ARRAYS];
};

static struct kernel_lstm_layer layer_of(const struct network *net, int64_t number,
                                         int64_t direction)
{
    const struct lstm *s = &net->s;
    const int64_t samples = net->results->samples, units = net->rows * s->hidden;
    const int64_t before = (number - 1) * net->y_size, own = direction * s->hidden;
    struct kernel_lstm_layer layer = {
        .kind = s->kind,
        .cell = *s->cell,
        .samples = samples,
        .rows = net->rows,
        .width = lstm_input_width(s, number),
        .hidden = s->hidden,
        .line = s->directions * s->hidden,
        .ahead = direction ? -samples : samples,
        .w_begin = lstm_w_at(s, number, direction, LSTM_INPUT_MATRIX),
        .x = number ? net->arrays[Y] + before : net->arrays[X],
        .dy = net->arrays[number == s->layers - 1 ? DY : BETWEEN] + own,
        .seen = net->results->seen ? net->arrays[SEEN] + own : NULL,
        .y = net->arrays[Y] + number * net->y_size + own,
        .units = net->arrays[UNITS] + (number * net->y_size + direction * units) * KERNEL_LSTM_UNIT,
        .dsums = net->arrays[DSUMS] + direction * units * s->cell->sums,
        .carried = net->arrays[CARRIED],
    };
    for (int part = 0; part < LSTM_PARTS; ++part)
        layer.w[part] = net->arrays[W] + lstm_w_at(s, number, direction, (enum lstm_part)part);
    return layer;
}

/* Runs all steps of a layer; backward from the last to the first. */
static enum status layer_run(struct gpu *gpu, const struct network *net, int64_t number,
                             bool backward, struct error *error)
{
    for (int64_t direction = 0; direction < net->s.directions; ++direction) {
        const struct kernel_lstm_layer layer = layer_of(net, number, direction);
        int64_t row = backward == (direction == 0) ? net->rows - layer.samples : 0;
        for (int64_t i = 0; i < net->s.sequence; ++i, row += backward ? -layer.ahead : layer.ahead)
            TRY(backward ? CUDA(kernel_lstm_backward(&layer, row, gpu->stream))
                         : CUDA(kernel_lstm_forward(&layer, row, gpu->stream)));
        if (backward && net->results->dw_count > 0)
            TRY(CUDA(kernel_lstm_weights_gradient(&layer, (const int64_t *)net->arrays[PLACES],
                                                  net->results->dw_count, net->arrays[DW],
                                                  gpu->stream)));
    }
    for (int64_t direction = 0; backward && direction < net->s.directions; ++direction) {
        const struct kernel_lstm_layer layer = layer_of(net, number, direction);
        TRY(CUDA(kernel_lstm_input_gradient(&layer, net->arrays[number ? BETWEEN : DX],
                                            direction > 0, gpu->stream)));
    }
    return STATUS_OK;
}

/* Fills an array [sequence][samples][width] from one of [sequence][batch][width]. */
static enum status samples_fill(struct gpu *gpu, const struct network *net, double *data,
                                enum tensor tensor, int64_t width, struct error *error)
{
    const struct lstm_results *r = net->results;
    for (int64_t t = 0; t < net->s.sequence; ++t)
        TRY(CUDA(kernel_fill(PRECISION_FP64, data + t * r->samples * width, r->samples * width,
                             config_fill(r->config, r->seed, tensor), t * net->s.batch * width,
                             gpu->stream)));
    return STATUS_OK;
}

/* Copies `count` numbers of 8 bytes; nothing if `to` or `from` is NULL. */
static enum status copy(struct gpu *gpu, void *to, const void *from, int64_t count,
                        struct error *error)
{
    return to && from ? CUDA(cudaMemcpyAsync(to, from, (size_t)count * sizeof(double),
                                             cudaMemcpyDefault, gpu->stream))
                      : STATUS_OK;
}

static enum status network_compute(struct gpu *gpu, const struct network *net, struct error *error)
{
    const struct lstm_results *r = net->results;
    const struct lstm *s = &net->s;
    double *const *arrays = net->arrays;
    TRY(CUDA(kernel_fill(PRECISION_FP64, arrays[W], lstm_w_size(s),
                         config_fill(r->config, r->seed, TENSOR_WEIGHT), 0, gpu->stream)));
    TRY(samples_fill(gpu, net, arrays[X], TENSOR_INPUT, s->features, error));
    TRY(samples_fill(gpu, net, arrays[DY], TENSOR_OUTPUT, s->directions * s->hidden, error));
    TRY(copy(gpu, arrays[SEEN], r->seen, net->y_size, error));
    TRY(copy(gpu, arrays[PLACES], r->dw_offsets, r->dw_count, error));
    for (int64_t layer = 0; layer < s->layers; ++layer)
        TRY(layer_run(gpu, net, layer, false, error));
    for (int64_t layer = s->layers - 1; layer >= 0 && (r->dx || r->dw); --layer)
        TRY(layer_run(gpu, net, layer, true, error));
    TRY(copy(gpu, r->y, arrays[Y] + (s->layers - 1) * net->y_size, net->y_size, error));
    TRY(copy(gpu, r->dx, arrays[DX], net->rows * s->features, error));
    TRY(copy(gpu, r->dw, arrays[DW], r->dw_count, error));
    return CUDA(cudaStreamSynchronize(gpu->stream));
}

enum status lstm_compute(struct gpu *gpu, const struct lstm_results *results, struct error *error)
{
    struct network net = {.results = results, .s = lstm_from(results->config)};
    const struct lstm *s = &net.s;
    net.rows = s->sequence * results->samples;
    net.y_size = net.rows * s->directions * s->hidden;
    const int64_t sizes[ARRAYS] = {
        [W] = lstm_w_size(s),
        [X] = net.rows * s->features,
        [Y] = s->layers * net.y_size,
        [UNITS] = s->layers * net.y_size * KERNEL_LSTM_UNIT,
        [DY] = net.y_size,
        [SEEN] = net.y_size,
        [DSUMS] = net.y_size * s->cell->sums,
        [CARRIED] = results->samples * s->hidden,
        [BETWEEN] = net.y_size,
        [DX] = net.rows * s->features,
        [PLACES] = results->dw_count,
        [DW] = results->dw_count,
    };
    int64_t size = 0;
    void *memory = NULL;
    if (s->projection)
        return error_set(error, STATUS_UNSUPPORTED, "the host computes projections");
    for (int i = 0; i < ARRAYS; ++i)
        size += sizes[i];
    TRY(arena_allocate(gpu->arena, (double)size * sizeof(double), "the reference", &memory, error));
    double *next = memory;
    for (int i = 0; i < ARRAYS; ++i) {
        net.arrays[i] = next;
        next += sizes[i];
    }
    enum status status = network_compute(gpu, &net, error);
    arena_free(gpu->arena, memory);
    return status;
}
