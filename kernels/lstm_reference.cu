#include "kernels.h"

#define REAL       double
#define NAME(name) name##_fp64
#include "model/workloads/lstm_unit.h"

static_assert(sizeof(struct unit_fp64) == KERNEL_LSTM_UNIT * sizeof(double), "a unit is an array");

static const int lanes = 32, rows_most = 65535; /* lanes of a warp, rows of a grid */
typedef struct kernel_lstm_layer layer;

__device__ static inline bool row_exists(const layer &l, int64_t row)
{
    return row >= 0 && row < l.rows;
}

__device__ static inline struct unit_fp64 *unit_at(const layer &l, int64_t row, int64_t u)
{
    return (struct unit_fp64 *)l.units + row * l.hidden + u;
}

/* Returns the unit's state at the previous step; 0 before the first. */
__device__ static inline double state_before(const layer &l, int64_t row, int64_t u)
{
    return row_exists(l, row - l.ahead) ? unit_at(l, row - l.ahead, u)->state : 0;
}

__device__ static inline double warp_sum(double v)
{
    for (int other = lanes / 2; other > 0; other /= 2)
        v += __shfl_xor_sync(0xffffffff, v, other);
    return v;
}

/* A block computes one unit. Each warp multiplies one row of the input or recurrent matrix. */
static const int products = 2 * LSTM_SUMS;
__global__ void __launch_bounds__(lanes *products) lstm_forward(layer l, int64_t first)
{
    __shared__ double sums[products];
    const int64_t u = blockIdx.x, gate = threadIdx.y % LSTM_SUMS;
    const bool recurrent = threadIdx.y >= LSTM_SUMS;
    const int64_t length = recurrent ? l.hidden : l.width;
    const double *w = l.w[recurrent ? LSTM_RECURRENT_MATRIX : LSTM_INPUT_MATRIX];
    w += (gate * l.hidden + u) * length;
    for (int64_t row = first + blockIdx.y; row < first + l.samples; row += gridDim.y) {
        const double *v = recurrent ? l.y + (row - l.ahead) * l.line : l.x + row * l.width;
        double sum = 0;
        if (gate < l.cell.gates && (!recurrent || row_exists(l, row - l.ahead)))
            for (int64_t i = threadIdx.x; i < length; i += lanes)
                sum = fma(w[i], v[i], sum);
        sum = warp_sum(sum);
        if (threadIdx.x == 0)
            sums[threadIdx.y] = sum;
        __syncthreads();
        if (threadIdx.x == 0 && threadIdx.y == 0) {
            struct unit_fp64 *unit = unit_at(l, row, u);
            for (int i = 0; i < l.cell.sums; ++i) {
                const int input = l.cell.input[i], output = l.cell.recurrent[i];
                unit->sums[i] = l.w[LSTM_BIAS][i * l.hidden + u] + (input < 0 ? 0 : sums[input]) +
                                (output < 0 ? 0 : sums[LSTM_SUMS + output]);
            }
            l.y[row * l.line + u] = unit_forward_fp64(l.kind, unit, state_before(l, row, u));
        }
        __syncthreads();
    }
}

cudaError_t kernel_lstm_forward(const struct kernel_lstm_layer *l, int64_t row, cudaStream_t stream)
{
    const dim3 blocks((unsigned)l->hidden, (unsigned)min(l->samples, (int64_t)rows_most));
    lstm_forward<<<blocks, dim3(lanes, products), 0, stream>>>(*l, row);
    return cudaGetLastError();
}

/* Multiplies gradients of sums by columns of a matrix. A block has 32 columns, each with 32 threads
 * that take the units in turn. dx NULL: columns are units of the step that begins at row `first`,
 * and the kernel also computes the gradients of this step's sums. Otherwise columns are inputs, and
 * the kernel computes dx of all steps. */
__global__ void __launch_bounds__(lanes *lanes)
    lstm_backward(layer l, int64_t first, double *dx, bool added)
{
    __shared__ double parts[lanes][lanes];
    const int64_t columns = dx ? l.width : l.hidden, end = dx ? l.rows : first + l.samples;
    const int64_t j = (int64_t)blockIdx.x * lanes + threadIdx.x, sums = l.cell.sums;
    const int *gates = dx ? l.cell.input : l.cell.recurrent;
    for (int64_t row = first + blockIdx.y; row < end; row += gridDim.y) {
        const int64_t later = dx ? row : row + l.ahead;
        double sum = 0;
        for (int s = 0; s < sums && row_exists(l, later) && j < columns; ++s) {
            const double *w = l.w[dx ? LSTM_INPUT_MATRIX : LSTM_RECURRENT_MATRIX];
            w += gates[s] * l.hidden * columns + j;
            for (int64_t u = threadIdx.y; gates[s] >= 0 && u < l.hidden; u += lanes)
                sum = fma(l.dsums[(later * sums + s) * l.hidden + u], w[u * columns], sum);
        }
        parts[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && j < columns) {
            for (int i = 1; i < lanes; ++i)
                sum += parts[i][threadIdx.x];
            if (dx) {
                dx[row * columns + j] = sum + (added ? dx[row * columns + j] : 0);
            } else {
                struct unit_fp64 unit = *unit_at(l, row, j);
                double *carried = &l.carried[(row - first) * l.hidden + j], dsums[LSTM_SUMS] = {};
                if (l.seen)
                    unit.sums[0] = l.seen[row * l.line + j];
                if (!row_exists(l, later))
                    *carried = 0;
                unit_backward_fp64(l.kind, &unit, state_before(l, row, j),
                                   sum + l.dy[row * l.line + j], carried, dsums);
                for (int s = 0; s < sums; ++s)
                    l.dsums[(row * sums + s) * l.hidden + j] = dsums[s];
            }
        }
        __syncthreads();
    }
}

static cudaError_t backward_launch(const layer *l, int64_t row, int64_t columns, int64_t rows,
                                   double *dx, bool added, cudaStream_t stream)
{
    const dim3 blocks((unsigned)((columns + lanes - 1) / lanes),
                      (unsigned)min(rows, (int64_t)rows_most));
    lstm_backward<<<blocks, dim3(lanes, lanes), 0, stream>>>(*l, row, dx, added);
    return cudaGetLastError();
}

cudaError_t kernel_lstm_backward(const struct kernel_lstm_layer *l, int64_t row,
                                 cudaStream_t stream)
{
    return backward_launch(l, row, l->hidden, l->samples, NULL, false, stream);
}

cudaError_t kernel_lstm_input_gradient(const struct kernel_lstm_layer *l, double *dx, bool added,
                                       cudaStream_t stream)
{
    return backward_launch(l, 0, l->width, l->rows, dx, added, stream);
}

/* Each warp computes the gradient of one weight. */
__global__ void lstm_weights_gradient(layer l, const int64_t *places, int64_t count, double *values)
{
    const int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / lanes;
    const int64_t lengths[] = {l.width, l.hidden, 1}; /* weights of one unit, by part */
    const int rows[] = {l.cell.gates, l.cell.gates, l.cell.sums};
    int64_t at = i < count ? places[i] - l.w_begin : -1;
    int part = LSTM_INPUT_MATRIX, sum = 0;
    while (at >= 0 && part < LSTM_PROJECTION && at >= rows[part] * l.hidden * lengths[part]) {
        at -= rows[part] * l.hidden * lengths[part];
        ++part;
    }
    if (at < 0 || part == LSTM_PROJECTION)
        return;
    const int64_t unit = at / lengths[part], u = unit % l.hidden, j = at % lengths[part];
    const int *gates = part == LSTM_INPUT_MATRIX ? l.cell.input : l.cell.recurrent;
    const int64_t ahead = part == LSTM_RECURRENT_MATRIX ? l.ahead : 0;
    double total = 0;
    while (part == LSTM_BIAS ? sum != unit / l.hidden : gates[sum] != unit / l.hidden)
        ++sum;
    for (int64_t row = threadIdx.x % lanes; row < l.rows; row += lanes)
        if (row_exists(l, row - ahead))
            total = fma(l.dsums[(row * l.cell.sums + sum) * l.hidden + u],
                        part == LSTM_INPUT_MATRIX       ? l.x[row * l.width + j]
                        : part == LSTM_RECURRENT_MATRIX ? l.y[(row - ahead) * l.line + j]
                                                        : 1,
                        total);
    total = warp_sum(total);
    if (threadIdx.x % lanes == 0)
        values[i] = total;
}

cudaError_t kernel_lstm_weights_gradient(const struct kernel_lstm_layer *l, const int64_t *places,
                                         int64_t count, double *values, cudaStream_t stream)
{
    const int threads = 256, places_of_block = threads / lanes;
    const int64_t blocks = (count + places_of_block - 1) / places_of_block;
    lstm_weights_gradient<<<(unsigned)blocks, threads, 0, stream>>>(*l, places, count, values);
    return cudaGetLastError();
}
