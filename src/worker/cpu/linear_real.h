/* A fully connected layer in one precision: a template, see real.h. Written for linear.c. */
#include "worker/cpu/functions_real.h"

/* A block of the result: where it begins, and its rows and columns. */
struct NAME(block) {
    int64_t row, column, rows, columns;
};

static REAL *NAME(at)(const struct work *work, enum tensor tensor)
{
    return work->reads[tensor] ? work->input[tensor] : work->result[tensor];
}

static void NAME(multiply)(const struct work *work, const struct NAME(block) * block)
{
    const struct linear_plan *plan = work->plan;
    const struct linear_product *p = &plan->product;
    int64_t a_leading = p->a_transposed ? p->m : p->k, b_leading = p->b_transposed ? p->k : p->n;
    const REAL *a = NAME(at)(work, p->a) + block->row * (p->a_transposed ? 1 : p->k);
    const REAL *b = NAME(at)(work, p->b) + block->column * (p->b_transposed ? p->k : 1);
    REAL *c = NAME(at)(work, p->c) + block->row * p->n + block->column;
    REAL_GEMM(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
              p->b_transposed ? CblasTrans : CblasNoTrans, (int)block->rows, (int)block->columns,
              (int)p->k, 1, a, (int)a_leading, b, (int)b_leading, 0, c, (int)p->n);
}

/* As one would first write it: a sum for each element. */
static void NAME(multiply_plain)(const struct work *work, const struct NAME(block) * block)
{
    const struct linear_plan *plan = work->plan;
    const struct linear_product *p = &plan->product;
    const REAL *a = NAME(at)(work, p->a), *b = NAME(at)(work, p->b);
    REAL *c = NAME(at)(work, p->c);
    int64_t a_row = p->a_transposed ? 1 : p->k, a_step = p->a_transposed ? p->m : 1;
    int64_t b_column = p->b_transposed ? p->k : 1, b_step = p->b_transposed ? 1 : p->n;
    for (int64_t i = block->row; i < block->row + block->rows; ++i)
        for (int64_t j = block->column; j < block->column + block->columns; ++j) {
            REAL sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t q = 0; q < p->k; ++q)
                sum += a[i * a_row + q * a_step] * b[j * b_column + q * b_step];
            c[i * p->n + j] = sum;
        }
}

static inline REAL NAME(gelu)(REAL x)
{
    REAL inner = (REAL)LINEAR_GELU_SCALE * (x + (REAL)LINEAR_GELU_CUBIC * x * x * x);
    return (REAL)0.5 * x * (1 + NAME(hyperbolic_tangent)(inner));
}

static void NAME(finish)(const struct work *work, const struct NAME(block) * block)
{
    const struct linear_plan *plan = work->plan;
    const struct linear *s = &plan->shape;
    const REAL *bias = work->input[TENSOR_BIAS];
    for (int64_t i = block->row; i < block->row + block->rows; ++i) {
        REAL *y = NAME(at)(work, TENSOR_OUTPUT) + i * s->outputs;
        int64_t begin = block->column, end = block->column + block->columns;
        if (s->bias)
#pragma omp simd
            for (int64_t j = begin; j < end; ++j)
                y[j] += bias[j];
        if (s->activation == LINEAR_RELU)
#pragma omp simd
            for (int64_t j = begin; j < end; ++j)
                y[j] = y[j] > 0 ? y[j] : 0;
        if (s->activation == LINEAR_GELU)
#pragma omp simd
            for (int64_t j = begin; j < end; ++j)
                y[j] = NAME(gelu)(y[j]);
    }
}

/* db, a share of the outputs: rows of dy in order, so that loads are of neighbours. */
static void NAME(bias_gradient)(const struct work *work, int64_t begin, int64_t end)
{
    const struct linear_plan *plan = work->plan;
    const REAL *dy = work->input[TENSOR_OUTPUT];
    REAL *db = work->result[TENSOR_BIAS];
    for (int64_t j = begin; j < end; ++j)
        db[j] = 0;
    for (int64_t i = 0; i < plan->shape.batch; ++i)
#pragma omp simd
        for (int64_t j = begin; j < end; ++j)
            db[j] += dy[i * plan->shape.outputs + j];
}

static void NAME(layer)(const struct work *work, bool library)
{
    const struct linear_plan *plan = work->plan;
    const struct linear_product *p = &plan->product;
    bool by_rows = p->m >= p->n;
#pragma omp parallel
    {
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t extent = by_rows ? p->m : p->n, outputs = plan->shape.outputs;
        int64_t begin = share_begin(extent, thread, threads);
        int64_t count = share_begin(extent, thread + 1, threads) - begin;
        const struct NAME(block) block = by_rows ? (struct NAME(block)){begin, 0, count, p->n}
                                                 : (struct NAME(block)){0, begin, p->m, count};
        if (count > 0)
            (library ? NAME(multiply) : NAME(multiply_plain))(work, &block);
        if (count > 0 && plan->shape.pass == LINEAR_FORWARD)
            NAME(finish)(work, &block);
        if (work->writes[TENSOR_BIAS])
            NAME(bias_gradient)
        (work, share_begin(outputs, thread, threads), share_begin(outputs, thread + 1, threads));
    }
}
