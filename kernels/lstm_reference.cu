#include "kernels.h"

#include "element.cuh"

#define REAL       double
#define NAME(name) name##_fp64
#include "model/workloads/lstm_unit.h"

static_assert(sizeof(struct unit_fp64) == KERNEL_LSTM_UNIT * sizeof(double), "a unit is an array");

/* ---- products ----
 *
 * A block computes 32 neighbouring elements of a row. 32 threads share the sum of an element, so
 * that a product of one row has enough threads. The lanes of a warp read neighbouring elements of
 * the second factor. */

static const int side = 32;

__global__ void __launch_bounds__(side *side)
    lstm_product(struct kernel_sums c, struct kernel_factor a, struct kernel_factor b, int64_t m,
                 int64_t n, int64_t k)
{
    __shared__ double parts[side][side + 1];
    const bool across = b.step == 1; /* lanes are summands, not elements */
    const int element = (int)(across ? threadIdx.y : threadIdx.x);
    const int share = (int)(across ? threadIdx.x : threadIdx.y);
    const int64_t first = (int64_t)blockIdx.x * side;
    const int64_t column = min(first + element, n - 1), stored = first + threadIdx.x;
    const double *w = (const double *)b.data + column * b.line;
    for (int64_t row = blockIdx.y; row < m; row += gridDim.y) {
        const double *x = (const double *)a.data + row * a.line;
        double sum = 0;
#pragma unroll 4
        for (int64_t i = share; i < k; i += side)
            sum = fma(x[i * a.step], w[i * b.step], sum);
        parts[share][element] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && stored < n) {
            sum = c.add ? c.add[row * c.add_line + stored] : 0;
            for (int i = 0; i < side; ++i)
                sum += parts[i][threadIdx.x];
            c.data[row * c.line + stored] = sum;
        }
        __syncthreads();
    }
}

cudaError_t kernel_lstm_product(struct kernel_sums c, struct kernel_factor a,
                                struct kernel_factor b, int64_t m, int64_t n, int64_t k,
                                cudaStream_t stream)
{
    const int64_t rows_most = 65535;
    const dim3 blocks((unsigned)((n + side - 1) / side), (unsigned)(m < rows_most ? m : rows_most));
    lstm_product<<<blocks, dim3(side, side), 0, stream>>>(c, a, b, m, n, k);
    return cudaGetLastError();
}

/* ---- units ---- */

__global__ void lstm_units(struct kernel_lstm_step s, const double *bias, const double *inputs,
                           const double *recurrent, double *h, int64_t line)
{
    for (int64_t i = first_element(); i < s.samples * s.hidden; i += next_element()) {
        const int64_t n = i / s.hidden, u = i % s.hidden, gates = n * s.cell.gates * s.hidden + u;
        struct unit_fp64 *unit = (struct unit_fp64 *)s.units + i;
        for (int sum = 0; sum < s.cell.sums; ++sum) {
            const int input = s.cell.input[sum], output = s.cell.recurrent[sum];
            double value = bias[sum * s.hidden + u];
            if (input >= 0)
                value += inputs[gates + input * s.hidden];
            if (output >= 0 && recurrent)
                value += recurrent[gates + output * s.hidden];
            unit->sums[sum] = value;
        }
        const double before = s.before ? ((const struct unit_fp64 *)s.before)[i].state : 0;
        h[n * line + u] = unit_forward_fp64(s.kind, unit, before);
    }
}

cudaError_t kernel_lstm_units(const struct kernel_lstm_step *step, const double *bias,
                              const double *inputs, const double *recurrent, double *h,
                              int64_t line, cudaStream_t stream)
{
    lstm_units<<<element_blocks(step->samples * step->hidden), element_threads, 0, stream>>>(
        *step, bias, inputs, recurrent, h, line);
    return cudaGetLastError();
}

__global__ void lstm_unit_gradients(struct kernel_lstm_step s, const double *d, double *carried,
                                    const double *seen, int64_t line, double *dsums)
{
    for (int64_t i = first_element(); i < s.samples * s.hidden; i += next_element()) {
        const int64_t n = i / s.hidden, u = i % s.hidden;
        struct unit_fp64 unit = ((const struct unit_fp64 *)s.units)[i];
        const double before = s.before ? ((const struct unit_fp64 *)s.before)[i].state : 0;
        double sums[LSTM_SUMS] = {0};
        if (seen)
            unit.sums[0] = seen[n * line + u];
        unit_backward_fp64(s.kind, &unit, before, d[i], &carried[i], sums);
        for (int sum = 0; sum < s.cell.sums; ++sum)
            dsums[(n * s.cell.sums + sum) * s.hidden + u] = sums[sum];
    }
}

cudaError_t kernel_lstm_unit_gradients(const struct kernel_lstm_step *step, const double *d,
                                       double *carried, const double *seen, int64_t line,
                                       double *dsums, cudaStream_t stream)
{
    lstm_unit_gradients<<<element_blocks(step->samples * step->hidden), element_threads, 0,
                          stream>>>(*step, d, carried, seen, line, dsums);
    return cudaGetLastError();
}
