#include "kernels.h"

#include <stdint.h>

#include "element.cuh"
#include "image.cuh"

/* A layer of an LSTM over all its steps in one launch, after Diamos et al., "Persistent RNNs:
 * Stashing Recurrent Weights On-Chip", 2016. A block computes eight samples, which are independent
 * of all other samples. A warp computes the four gates of eight units and keeps the units'
 * recurrent weights in its registers. Warps exchange only the state h, through shared memory, with
 * one barrier a step. If one block has no room for all units, a cluster of blocks shares the units,
 * and h goes to the shared memory of each block.
 *
 * A matrix instruction adds A (16 rows of 16 weights) times B (16 inputs of 8 samples) to 16 x 8
 * sums. The 16 rows are two gates of the eight units, so two instructions compute all four gates. A
 * thread gets the four gates of one unit for two samples, and keeps the two cells:
 *
 *   lane = 4 row + column:  gates of unit `row` and of samples 2 column, 2 column + 1
 *
 * A lane holds four weights of its row in each half of A, and four inputs of sample `row` of B. By
 * the instruction's definition the four values are two pairs, eight summands apart. But the order
 * of the summands is free if it is the same in A and B. So a lane takes four contiguous values, in
 * one access of 8 bytes. */

enum { SAMPLES = 8, UNITS = 8, GATES = 4, DEEP = 16, BLOCK_UNITS = KERNEL_LSTM_BLOCK };

struct layer {
    int batch, sequence, width, hidden, directions; /* width: number of inputs of a step */
    int units;                                      /* number of units of a block */
};

struct place {
    int row, column;
    int unit, sample; /* first unit of the thread's warp, first sample of its block */
};

struct gates {
    float sums[2][4]; /* [0]: input and forget gate; [1]: cell and output gate; two samples each */
};

struct weights {
    uint2 of[GATES];
};

#define MULTIPLY_ADD(T, type)                                                                      \
    __device__ static inline void multiply_add(float(&sum)[4], uint2 upper, uint2 lower, uint2 b,  \
                                               T)                                                  \
    {                                                                                              \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                         \
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                      \
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                               \
            : "r"(upper.x), "r"(lower.x), "r"(upper.y), "r"(lower.y), "r"(b.x), "r"(b.y));         \
    }
MULTIPLY_ADD(__half, "f16")
MULTIPLY_ADD(__nv_bfloat16, "bf16")

template <typename T>
__device__ static inline void gates_add(gates &g, const weights &w, uint2 input)
{
    multiply_add(g.sums[0], w.of[0], w.of[1], input, T());
    multiply_add(g.sums[1], w.of[2], w.of[3], input, T());
}

/* Loads elements k to k + 3 of a row, or the last four elements if k is past the end. Loads are
 * unconditional, so that many are in flight together. */
template <typename T> __device__ static inline uint2 four(const T *row, int k, int width)
{
    return __ldg((const uint2 *)(row + min(k, width - 4)));
}

template <typename T>
__device__ static inline void gates_start(gates &g, const T *biases, const layer &s,
                                          const place &at)
{
#pragma unroll
    for (int gate = 0; gate < GATES; ++gate) {
        float bias = to_computed(biases[gate * s.hidden + min(at.unit + at.row, s.hidden - 1)]);
        g.sums[gate / 2][gate % 2 * 2] = g.sums[gate / 2][gate % 2 * 2 + 1] = bias;
    }
}

/* Loads weights of a matrix [4][hidden][width], and zeros past the end of a row. */
template <typename T>
__device__ static inline weights weights_load(const T *matrix, const layer &s, const place &at,
                                              int k, int width)
{
    const T *row = matrix + (int64_t)min(at.unit + at.row, s.hidden - 1) * width;
    weights w;
#pragma unroll
    for (int gate = 0; gate < GATES; ++gate)
        w.of[gate] = four(row + (int64_t)gate * s.hidden * width, k + 4 * at.column, width);
#pragma unroll
    for (int gate = 0; gate < GATES; ++gate)
        if (k + 4 * at.column >= width)
            w.of[gate] = make_uint2(0, 0);
    return w;
}

/* Returns a step's position in the sequence. The second direction runs backwards. */
__device__ static inline int64_t time_of(const layer &s, int step)
{
    return blockIdx.y ? s.sequence - 1 - step : step;
}

/* Adds the products with the input x to the gates of several steps. These products need no state,
 * so the weights are loaded once for all these steps. Steps past the end take the inputs of the
 * last step, and samples past the end those of the last sample; nothing reads their sums. */
template <typename T, int steps>
__device__ static inline void input_add(gates (&g)[steps], const T *x, const T *matrix,
                                        const layer &s, const place &at, int first)
{
    const int64_t sample = min(at.sample + at.row, s.batch - 1);
    const int64_t next = (blockIdx.y ? -1 : 1) * (int64_t)s.batch * s.width;
    x += (time_of(s, first) * s.batch + sample) * s.width;
    const int together = steps > 4 ? 2 : 1; /* number of pieces in flight that registers can hold */
#pragma unroll together
    for (int k = 0; k < s.width; k += DEEP) {
        weights w = weights_load(matrix, s, at, k, s.width);
        uint2 input[steps];
        const T *row = x;
#pragma unroll
        for (int i = 0; i < steps; ++i) {
            input[i] = four(row, k + 4 * at.column, s.width);
            row += first + i + 1 < s.sequence ? next : 0;
        }
#pragma unroll
        for (int i = 0; i < steps; ++i)
            gates_add<T>(g[i], w, input[i]);
    }
}

/* Prefetches the inputs of the next steps. */
template <typename T, int steps>
__device__ static inline void input_prefetch(const T *x, const layer &s, const place &at, int first)
{
    const int pieces = (s.width + DEEP - 1) / DEEP;
    for (int i = (int)threadIdx.x; i < steps * SAMPLES * pieces; i += (int)blockDim.x) {
        int row = i / pieces, step = first + row / SAMPLES, sample = at.sample + row % SAMPLES;
        if (step < s.sequence && sample < s.batch)
            asm volatile("prefetch.global.L1 [%0];" ::"l"(
                x + (time_of(s, step) * s.batch + sample) * s.width + i % pieces * DEEP));
    }
}

/* tanh by a single instruction, whose error is as large as that of rounding to fp16. */
__device__ static inline float tangent(float v)
{
    float result;
    asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
}

__device__ static inline float sigmoid(float v)
{
    return fmaf(0.5f, tangent(0.5f * v), 0.5f);
}

/* Advances the cell of one of the thread's two samples, and returns the sample's h. */
__device__ static inline float cell_step(const gates &g, int sample, float &cell)
{
    float i = sigmoid(g.sums[0][sample]), f = sigmoid(g.sums[0][2 + sample]);
    float c = tangent(g.sums[1][sample]), o = sigmoid(g.sums[1][2 + sample]);
    cell = f * cell + i * c;
    return o * tangent(cell);
}

/* Transposes an 8 x 8 matrix. Lane 4 i + j has the elements 2 j and 2 j + 1 of row i. */
__device__ static inline uint32_t transposed(uint32_t pair)
{
    uint32_t result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
    return result;
}

/* Returns the number of blocks in the cluster; clusters need compute capability 9.0. */
__device__ static inline int cluster_blocks()
{
    int count = 1;
    FROM_900(asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(count));)
    return count;
}

/* Returns the rank of this block in its cluster. */
__device__ static inline int cluster_rank()
{
    int rank = 0;
    FROM_900(asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));)
    return rank;
}

/* Stores at the address `here` in the shared memory of block `rank` of the cluster. */
__device__ static inline void cluster_store(uint32_t *here, int rank, uint32_t value)
{
    FROM_900(uint32_t there; asm("mapa.shared::cluster.u32 %0, %1, %2;"
                                 : "=r"(there)
                                 : "r"((uint32_t)__cvta_generic_to_shared(here)), "r"(rank));
             asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(value)
                          : "memory");)
}

/* The blocks that share the units: a cluster, or one block. */
template <typename T, bool clustered> struct team {
    __device__ static int blocks()
    {
        return clustered ? cluster_blocks() : 1;
    }
    __device__ static int rank()
    {
        return clustered ? cluster_rank() : 0;
    }
    /* Copies a warp's 8 x 8 states h to all blocks, in rows of `pitch` elements from `to` on. A
     * lane has the states of one unit for two samples. */
    __device__ static void share(T *to, int pitch, const place &at, const pack<T, 2> &h)
    {
        if (clustered) {
            uint32_t pair = transposed(*(const uint32_t *)&h);
            for (int rank = 0; rank < cluster_blocks(); ++rank)
                cluster_store((uint32_t *)(to + at.row * pitch + 2 * at.column), rank, pair);
        } else {
            to[2 * at.column * pitch + at.row] = h.at[0];
            to[(2 * at.column + 1) * pitch + at.row] = h.at[1];
        }
    }
    /* Stores before `arrive` are visible to all threads of all blocks after `wait`. */
    __device__ static void arrive()
    {
        if (clustered)
            FROM_900(asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"));
    }
    __device__ static void wait()
    {
        if (clustered)
            FROM_900(asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"));
        else
            __syncthreads();
    }
};

/* `depth` pieces of 16 units hold all units. The name of the kernel has the size of a warp's matrix
 * product: samples x rows of weights x summands. */
template <typename T, int depth>
__global__ void __launch_bounds__(BLOCK_UNITS / UNITS * 32)
    lstm_8x32x16(T *y, const T *x, const T *w, layer s)
{
    typedef team<T, (depth * DEEP > BLOCK_UNITS)> ours;
    const int steps = depth > 4 ? 4 : 8; /* number of steps whose gates are in registers */
    /* Instructions of one chain wait for each other, so deep products have several chains. */
    const int chains = depth >= 12 ? 4 : depth >= 4 ? 2 : 1;
    const int pitch = DEEP * (depth | 1); /* odd, so that rows lie in different banks */
    __shared__ __align__(8) T states[2][SAMPLES][pitch];
    const int row = (int)threadIdx.x % 32 / 4, column = (int)threadIdx.x % 4;
    const place at = {row, column, ours::rank() * s.units + (int)threadIdx.x / 32 * UNITS,
                      (int)blockIdx.x / ours::blocks() * SAMPLES};
    const T *matrix = w + (int64_t)blockIdx.y * GATES * s.hidden * (s.width + s.hidden + 1);
    const T *recurrent_matrix = matrix + (int64_t)GATES * s.hidden * s.width;
    const T *biases = recurrent_matrix + (int64_t)GATES * s.hidden * s.hidden;
    const int64_t y_width = (int64_t)s.directions * s.hidden;
    const int64_t y_step = (blockIdx.y ? -1 : 1) * s.batch * y_width;
    const bool stored = at.sample + row < s.batch && at.unit + 2 * column < s.hidden;
    y += (time_of(s, 0) * s.batch + at.sample + row) * y_width + blockIdx.y * s.hidden + at.unit +
         2 * column;
    weights recurrent[depth];
    float cells[2] = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < depth; ++k)
        recurrent[k] = weights_load(recurrent_matrix, s, at, k * DEEP, s.hidden);
    for (int i = (int)threadIdx.x; i < 2 * SAMPLES * pitch; i += (int)blockDim.x)
        states[0][0][i] = to_stored<T>(0.0f);
    ours::arrive();
    ours::wait();
    for (int first = 0; first < s.sequence; first += steps) {
        gates g[steps];
#pragma unroll
        for (int i = 0; i < steps; ++i)
            gates_start(g[i], biases, s, at);
        input_add(g, x, matrix, s, at, first);
        input_prefetch<T, steps>(x, s, at, first + steps);
#pragma unroll
        for (int i = 0; i < steps; ++i) {
            if (first + i >= s.sequence)
                break;
            const T *before = &states[i % 2][row][0];
            uint32_t h = *(const uint32_t *)(before + at.unit + 2 * column);
            gates chain[chains] = {};
#pragma unroll
            for (int k = 0; k < depth; ++k)
                if (depth <= 4 || k * DEEP < s.hidden)
                    gates_add<T>(k % chains ? chain[k % chains] : g[i], recurrent[k],
                                 *(const uint2 *)(before + k * DEEP + 4 * column));
#pragma unroll
            for (int c = 1; c < chains; ++c)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    g[i].sums[j / 4][j % 4] += chain[c].sums[j / 4][j % 4];
            if (first + i > 0) { /* store the previous step's h while matrix instructions run */
                if (stored)
                    *(uint32_t *)y = h;
                y += y_step;
            }
            ours::share(&states[(i + 1) % 2][0][at.unit], pitch, at,
                        {to_stored<T>(cell_step(g[i], 0, cells[0])),
                         to_stored<T>(cell_step(g[i], 1, cells[1]))});
            ours::arrive();
            ours::wait();
        }
    }
    if (stored)
        *(uint32_t *)y = *(const uint32_t *)&states[s.sequence % 2][row][at.unit + 2 * column];
}

/* ---- launches ---- */

template <typename T, int depth>
static cudaError_t launch_depth(const layer &s, T *y, const T *x, const T *w, int blocks,
                                cudaStream_t stream)
{
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim =
        dim3((unsigned)((s.batch + SAMPLES - 1) / SAMPLES * blocks), (unsigned)s.directions);
    config.blockDim = dim3((unsigned)(s.units / UNITS * 32));
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = blocks > 1;
    return cudaLaunchKernelEx(&config, lstm_8x32x16<T, depth>, y, x, w, s);
}

template <typename T>
static cudaError_t launch(layer s, void *y, const void *x, const void *w, cudaStream_t stream)
{
    typedef cudaError_t launcher(const layer &, T *, const T *, const T *, int, cudaStream_t);
    static launcher *const launchers[] = {
        launch_depth<T, 1>, launch_depth<T, 2>,  launch_depth<T, 3>, launch_depth<T, 4>,
        launch_depth<T, 8>, launch_depth<T, 12>, launch_depth<T, 16>};
    const int pieces = (s.hidden + DEEP - 1) / DEEP;
    const int blocks = s.hidden <= BLOCK_UNITS ? 1 : s.hidden <= 2 * BLOCK_UNITS ? 2 : 4;
    s.units = (s.hidden + blocks * UNITS - 1) / (blocks * UNITS) * UNITS;
    return launchers[pieces <= 4 ? pieces - 1 : 2 + (pieces + 3) / 4](s, (T *)y, (const T *)x,
                                                                      (const T *)w, blocks, stream);
}

cudaError_t kernel_lstm(const struct lstm *shape, int64_t width, void *y, const void *x,
                        const void *w, cudaStream_t stream)
{
    const layer s = {(int)shape->batch,  (int)shape->sequence,   (int)width,
                     (int)shape->hidden, (int)shape->directions, 0};
    if (s.hidden > KERNEL_LSTM_CLUSTER || s.hidden % KERNEL_LSTM_MULTIPLE != 0 ||
        s.width % KERNEL_LSTM_MULTIPLE != 0)
        return cudaErrorInvalidValue;
    return shape->precision == PRECISION_FP16   ? launch<__half>(s, y, x, w, stream)
           : shape->precision == PRECISION_BF16 ? launch<__nv_bfloat16>(s, y, x, w, stream)
                                                : cudaErrorInvalidValue;
}
