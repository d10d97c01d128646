/* Attention in one precision: a template, see real.h. Written for attention.c, which explains it. */
#include "worker/cpu/functions_real.h"

/* Of one query's scores: their exponentials over the sum of all. What it does not see is 0. */
static void NAME(soften)(REAL *scores, int64_t seen, int64_t count)
{
    const REAL least = -80; /* below, the exponential is 0 beside 1 in the sum */
    REAL largest = scores[0], sum = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t j = 0; j < seen; ++j)
        largest = scores[j] > largest ? scores[j] : largest;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < seen; ++j) {
        REAL below = scores[j] - largest;
        scores[j] = NAME(exponential)(below < least ? least : below);
        sum += scores[j];
    }
    REAL factor = 1 / sum;
#pragma omp simd
    for (int64_t j = 0; j < seen; ++j)
        scores[j] *= factor;
    for (int64_t j = seen; j < count; ++j)
        scores[j] = 0;
}

static void NAME(attend_block)(const struct work *work, int64_t head, int64_t first, REAL *scores)
{
    const struct attention_plan *plan = work->plan;
    const struct attention *s = &plan->shape;
    int64_t left = s->sequence - first, queries = left < plan->block ? left : plan->block;
    int64_t keys = attention_keys(s, first + queries - 1), width = s->head_size;
    int64_t at = (head * s->sequence + first) * width, from = head * s->keys * width;
    const REAL *q = (const REAL *)work->input[TENSOR_INPUT] + at;
    const REAL *k = (const REAL *)work->input[TENSOR_WEIGHT] + from;
    const REAL *v = (const REAL *)work->input[TENSOR_VALUE] + from;
    REAL *o = (REAL *)work->result[TENSOR_OUTPUT] + at;
    REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, (int)queries, (int)keys, (int)width,
              (REAL)attention_scale(s), q, (int)width, k, (int)width, 0, scores, (int)keys);
    for (int64_t i = 0; i < queries; ++i)
        NAME(soften)(scores + i * keys, attention_keys(s, first + i), keys);
    REAL_GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)queries, (int)width, (int)keys, 1,
              scores, (int)keys, v, (int)width, 0, o, (int)width);
}

static void NAME(attend)(const struct work *work)
{
    const struct attention_plan *plan = work->plan;
    const struct attention *s = &plan->shape;
    int64_t units = s->batch * s->heads * plan->blocks;
#pragma omp parallel
    {
        REAL *scores = (REAL *)work->scratch + omp_get_thread_num() * plan->block * s->keys;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < units; ++i)
            NAME(attend_block)(work, i / plan->blocks, i % plan->blocks * plan->block, scores);
    }
}
