#include "worker/cuda/workloads/lstm_weights.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/gpu/libraries.h"

/* cuDNN's numbers of a cell's matrices, and of the biases that belong to them. A sum has two biases for
 * cuDNN, of which one stays zero; but a GRU's last one has the recurrent one alone. */
static const struct numbers {
    int input[LSTM_SUMS], recurrent[LSTM_SUMS]; /* by gate */
    int bias[LSTM_SUMS];                        /* by sum */
} numbers[LSTM_KINDS] = {
    [LSTM_LSTM] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}},
    [LSTM_GRU] = {{1, 0, 2}, {4, 3, 5}, {1, 0, 2, 5}},
    [LSTM_RELU] = {{0}, {1}, {0}},
    [LSTM_TANH] = {{0}, {1}, {0}},
};
enum { PROJECTION_NUMBER = 8 };

/* What one mapping works with. */
struct map {
    struct gpu *gpu;
    const struct lstm *shape;
    cudnnRNNDescriptor_t rnn;
    const void *space;
    size_t bytes;
    cudnnTensorDescriptor_t matrix, bias;
    struct lstm_weights *weights;
};

/* Elements of a tensor that cuDNN describes; it calls matrices 1 x rows x columns. */
static enum status descriptor_size(cudnnTensorDescriptor_t descriptor, int64_t *size,
                                   struct error *error)
{
    enum { DIMENSIONS_MAX = 8 };
    cudnnDataType_t type;
    int count, dimensions[DIMENSIONS_MAX], strides[DIMENSIONS_MAX];
    TRY(CUDNN(cudnnGetTensorNdDescriptor(descriptor, DIMENSIONS_MAX, &type, &count, dimensions,
                                         strides)));
    *size = 1;
    for (int i = 0; i < count; ++i)
        *size *= dimensions[i];
    return STATUS_OK;
}

static enum status segment_add(const struct map *map, int64_t begin, int64_t length,
                               cudnnTensorDescriptor_t descriptor, const void *address,
                               struct error *error)
{
    int64_t size, element = (int64_t)precision_info[map->shape->precision].bytes;
    TRY(descriptor_size(descriptor, &size, error));
    if (!address || size != length)
        return error_set(error, STATUS_FAILED,
                         "cuDNN's weights are laid out in a way not known here");
    int64_t at = ((const char *)address - (const char *)map->space) / element;
    map->weights->segments[map->weights->count++] = (struct lstm_segment){begin, length, at};
    return STATUS_OK;
}

/* How many numbers a part has, and which. */
static int part_numbers(const struct lstm *s, enum lstm_part part, const int **list)
{
    static const int projection[] = {PROJECTION_NUMBER};
    const struct numbers *cell = &numbers[s->kind];
    const int *const lists[LSTM_PARTS] = {cell->input, cell->recurrent, cell->bias, projection};
    const int counts[LSTM_PARTS] = {s->cell->gates, s->cell->gates, s->cell->sums,
                                    s->projection ? 1 : 0};
    *list = lists[part];
    return counts[part];
}

static enum status part_map(const struct map *map, int64_t layer, int64_t direction,
                            enum lstm_part part, struct error *error)
{
    const struct lstm *s = map->shape;
    const int *list;
    int count = part_numbers(s, part, &list);
    int64_t begin = lstm_w_at(s, layer, direction, part), size = lstm_part_size(s, layer, part);
    for (int i = 0; i < count; ++i) {
        void *matrix_at = NULL, *bias_at = NULL;
        TRY(CUDNN(cudnnGetRNNWeightParams(
            map->gpu->cudnn, map->rnn, (int32_t)(layer * s->directions + direction), map->bytes,
            map->space, list[i], map->matrix, &matrix_at, map->bias, &bias_at)));
        TRY(segment_add(map, begin + i * (size / count), size / count,
                        part == LSTM_BIAS ? map->bias : map->matrix,
                        part == LSTM_BIAS ? bias_at : matrix_at, error));
    }
    return STATUS_OK;
}

static enum status segments_map(const struct map *map, struct error *error)
{
    for (int64_t layer = 0; layer < map->shape->layers; ++layer)
        for (int64_t direction = 0; direction < map->shape->directions; ++direction)
            for (int part = 0; part < LSTM_PARTS; ++part)
                TRY(part_map(map, layer, direction, (enum lstm_part)part, error));
    return STATUS_OK;
}

enum status lstm_weights_map(struct gpu *gpu, const struct lstm *shape, cudnnRNNDescriptor_t rnn,
                             const void *space, size_t bytes, struct lstm_weights *weights,
                             struct error *error)
{
    struct map map = {gpu, shape, rnn, space, bytes, NULL, NULL, weights};
    size_t count = (size_t)(shape->layers * shape->directions) * LSTM_PARTS * LSTM_SUMS;
    *weights = (struct lstm_weights){calloc(count, sizeof *weights->segments), 0};
    if (!weights->segments)
        return error_set(error, STATUS_FAILED, "no memory for %zu weight segments", count);
    enum status status = CUDNN(cudnnCreateTensorDescriptor(&map.matrix));
    if (status == STATUS_OK)
        status = CUDNN(cudnnCreateTensorDescriptor(&map.bias));
    if (status == STATUS_OK)
        status = segments_map(&map, error);
    if (map.bias)
        cudnnDestroyTensorDescriptor(map.bias);
    if (map.matrix)
        cudnnDestroyTensorDescriptor(map.matrix);
    return status;
}

void lstm_weights_clear(struct lstm_weights *weights)
{
    free(weights->segments);
    *weights = (struct lstm_weights){NULL, 0};
}

enum status lstm_weights_fill(struct gpu *gpu, const struct lstm_weights *weights,
                              enum precision precision, struct fill fill, void *space, size_t bytes,
                              struct error *error)
{
    TRY(CUDA(cudaMemsetAsync(space, 0, bytes, gpu->stream)));
    for (size_t i = 0; i < weights->count; ++i) {
        const struct lstm_segment *segment = &weights->segments[i];
        void *address = (char *)space + segment->at * (int64_t)precision_info[precision].bytes;
        TRY(CUDA(
            kernel_fill(precision, address, segment->length, fill, segment->begin, gpu->stream)));
    }
    return STATUS_OK;
}

static int segment_compare(const void *key, const void *element)
{
    int64_t offset = *(const int64_t *)key;
    const struct lstm_segment *segment = element;
    return offset < segment->begin ? -1 : offset >= segment->begin + segment->length;
}

int64_t lstm_weights_at(const struct lstm_weights *weights, int64_t offset)
{
    const struct lstm_segment *segment = bsearch(&offset, weights->segments, weights->count,
                                                 sizeof *weights->segments, segment_compare);
    return segment->at + (offset - segment->begin);
}
