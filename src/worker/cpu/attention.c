/* Attention on the CPU. Loops take one query of one head at a time. oneDNN runs three operations
 * over a few heads at a time, so that their scores stay in the caches. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "model/workloads/attention.h"
#include "worker/cpu/onednn.h"
#include "worker/cpu/routine.h"

#ifdef REAL
#include "worker/cpu/functions_real.h"

/* `scores`: room for the weights of all keys. */
static void NAME(attend_query)(const struct work *work, int64_t head, int64_t query, REAL *scores)
{
    const struct attention *s = work->shape;
    const int64_t width = s->head_size, seen = attention_keys(s, query);
    const int64_t at = (head * s->sequence + query) * width, from = head * s->keys * width;
    const REAL scale = (REAL)attention_scale(s);
    const REAL *q = (const REAL *)work->input[TENSOR_INPUT] + at;
    const REAL *k = (const REAL *)work->input[TENSOR_WEIGHT] + from;
    const REAL *v = (const REAL *)work->input[TENSOR_VALUE] + from;
    REAL *o = (REAL *)work->result[TENSOR_OUTPUT] + at;
    for (int64_t i = 0; i < seen; ++i) {
        REAL sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < width; ++j)
            sum += q[j] * k[i * width + j];
        scores[i] = scale * sum;
    }
    NAME(row_softmax)(seen, scores, scores);
    for (int64_t j = 0; j < width; ++j)
        o[j] = 0;
    for (int64_t i = 0; i < seen; ++i)
#pragma omp simd
        for (int64_t j = 0; j < width; ++j)
            o[j] += scores[i] * v[i * width + j];
}

static void NAME(attend)(const struct work *work)
{
    const struct attention *s = work->shape;
#pragma omp parallel
    {
        REAL *scores = (REAL *)work->scratch + omp_get_thread_num() * s->keys;
#pragma omp for schedule(dynamic, 16)
        for (int64_t i = 0; i < s->batch * s->heads * s->sequence; ++i)
            NAME(attend_query)(work, i / s->sequence, i % s->sequence, scores);
    }
}

#else
#define REAL_TEMPLATE "worker/cpu/attention.c"
#include "worker/cpu/real.h"

CPU_SHAPE(attention)

static enum status plain_plan(struct work *work, struct error *error)
{
    const struct attention *s = work->shape;
    (void)error;
    work->scratch_size = (size_t)(work->topology->cores * s->keys) * work->element;
    return STATUS_OK;
}

#ifdef ROOFSWEEP_ONEDNN
enum step { SCORES, SOFTMAX, VALUES, STEPS };

struct steps_plan {
    int64_t heads; /* heads at a time; divides the number of all heads */
    struct onednn *steps[STEPS];
    size_t memory[STEPS]; /* offsets in the scratch memory, byte; the scores come first */
    char name[128];
};

/* Returns the number of heads, one or more, whose scores fill at most 1 MiB for each core. */
static int64_t heads_at_a_time(const struct attention *s, int64_t cores, size_t element)
{
    const double bytes_of_core = 1 << 20;
    double most =
        bytes_of_core * (double)cores / ((double)s->sequence * (double)s->keys * (double)element);
    int64_t all = s->batch * s->heads, heads = most < (double)all ? (int64_t)most : all;
    heads = heads < 1 ? 1 : heads;
    while (all % heads != 0)
        --heads;
    return heads;
}

static enum status steps_plan(struct work *work, struct error *error)
{
    struct steps_plan *plan = work->plan;
    const struct attention *s = work->shape;
    int64_t heads = heads_at_a_time(s, work->topology->cores, work->element);
    const struct onednn_tensor scores = onednn_matrices(s->precision, heads, s->sequence, s->keys);
    const struct onednn_tensor lines =
        onednn_matrices(s->precision, heads, s->sequence, s->head_size);
    const struct onednn_tensor rows =
        onednn_matrix(s->precision, ONEDNN_PLAIN, heads * s->sequence, s->keys);
    struct onednn_tensor keys_across = onednn_matrices(s->precision, heads, s->head_size, s->keys);
    keys_across.strides[1] = 1; /* k is transposed */
    keys_across.strides[2] = s->head_size;
    const struct onednn_operation operations[STEPS] = {
        [SCORES] = {.kind = ONEDNN_MATMUL,
                    .function = ONEDNN_SCALE,
                    .factor = attention_scale(s),
                    .tensors = {[ONEDNN_SOURCE] = lines,
                                [ONEDNN_WEIGHTS] = keys_across,
                                [ONEDNN_DESTINATION] = scores}},
        [SOFTMAX] = {.kind = ONEDNN_SOFTMAX,
                     .tensors = {[ONEDNN_SOURCE] = rows, [ONEDNN_DESTINATION] = rows}},
        [VALUES] = {.kind = ONEDNN_MATMUL,
                    .tensors = {[ONEDNN_SOURCE] = scores,
                                [ONEDNN_WEIGHTS] =
                                    onednn_matrices(s->precision, heads, s->keys, s->head_size),
                                [ONEDNN_DESTINATION] = lines}},
    };
    plan->heads = heads;
    scratch_take(work, (size_t)(heads * s->sequence * s->keys) * work->element);
    for (int i = 0; i < STEPS; ++i)
        TRY(onednn_create_for(work, &operations[i], NULL, &plan->steps[i], &plan->memory[i],
                              error));
    snprintf(plan->name, sizeof plan->name, "three-steps %.30s %.30s %.30s",
             onednn_name(plan->steps[SCORES]), onednn_name(plan->steps[SOFTMAX]),
             onednn_name(plan->steps[VALUES]));
    return STATUS_OK;
}

static void steps_release(struct work *work)
{
    struct steps_plan *plan = work->plan;
    for (int i = 0; i < STEPS; ++i)
        onednn_destroy(plan->steps[i]);
}

static enum status steps_ready(struct work *work, struct error *error)
{
    const struct steps_plan *plan = work->plan;
    char *scratch = work->scratch;
    void *const data[STEPS][ONEDNN_ARGUMENTS] = {
        [SCORES] = {[ONEDNN_SOURCE] = work->input[TENSOR_INPUT],
                    [ONEDNN_WEIGHTS] = work->input[TENSOR_WEIGHT],
                    [ONEDNN_DESTINATION] = scratch},
        [SOFTMAX] = {[ONEDNN_SOURCE] = scratch, [ONEDNN_DESTINATION] = scratch},
        [VALUES] = {[ONEDNN_SOURCE] = scratch,
                    [ONEDNN_WEIGHTS] = work->input[TENSOR_VALUE],
                    [ONEDNN_DESTINATION] = work->result[TENSOR_OUTPUT]},
    };
    enum status status = STATUS_OK;
    for (int i = 0; !status && i < STEPS; ++i)
        status = onednn_bind(plan->steps[i], data[i], scratch + plan->memory[i], error);
    return status;
}

/* Sets scores of keys that a query does not see to the lowest number, whose exponential is 0. */
static void scores_hide(const struct work *work, struct trace *trace)
{
    static const uint32_t lowest[PRECISION_COUNT] = {
        [PRECISION_FP32] = 0xff7fffff, [PRECISION_BF16] = 0xff7f, [PRECISION_FP16] = 0xfbff};
    const struct steps_plan *plan = work->plan;
    const struct attention *s = work->shape;
    uint32_t *wide = work->scratch, value = lowest[s->precision];
    uint16_t *narrow = work->scratch;
    double begin = trace_begin(trace);
#pragma omp parallel for
    for (int64_t row = 0; row < plan->heads * s->sequence; ++row)
        for (int64_t key = attention_keys(s, row % s->sequence); key < s->keys; ++key)
            if (work->element == sizeof *wide)
                wide[row * s->keys + key] = value;
            else
                narrow[row * s->keys + key] = (uint16_t)value;
    trace_end(trace, "attention_hide", begin);
}

static void steps_run(struct work *work, struct trace *trace)
{
    static const struct {
        enum step step;
        enum onednn_argument argument;
        enum tensor tensor;
    } moved[] = {
        {SCORES, ONEDNN_SOURCE, TENSOR_INPUT},
        {SCORES, ONEDNN_WEIGHTS, TENSOR_WEIGHT},
        {VALUES, ONEDNN_WEIGHTS, TENSOR_VALUE},
        {VALUES, ONEDNN_DESTINATION, TENSOR_OUTPUT},
    };
    const struct steps_plan *plan = work->plan;
    const struct attention *s = work->shape;
    int64_t heads = s->batch * s->heads;
    for (int64_t head = 0; head < heads; head += plan->heads) {
        for (size_t i = 0; i < sizeof moved / sizeof *moved; ++i) {
            enum tensor tensor = moved[i].tensor;
            char *all = tensor == TENSOR_OUTPUT ? work->result[tensor] : work->input[tensor];
            onednn_move(plan->steps[moved[i].step], moved[i].argument,
                        all + (size_t)(work->size[tensor] / heads * head) * work->element);
        }
        onednn_run(plan->steps[SCORES], trace);
        if (s->causal)
            scores_hide(work, trace);
        onednn_run(plan->steps[SOFTMAX], trace);
        onednn_run(plan->steps[VALUES], trace);
    }
}

static const char *steps_name(const struct work *work)
{
    return ((const struct steps_plan *)work->plan)->name;
}
#endif

const struct cpu_workload attention_routines = {
    CPU_WORKLOAD(attention),
    .routines =
        {
#ifdef ROOFSWEEP_ONEDNN
            {.implementation = "onednn",
             .plan_size = sizeof(struct steps_plan),
             .own_regions = true,
             .check = onednn_check,
             .plan = steps_plan,
             .ready = steps_ready,
             .run = steps_run,
             .release = steps_release,
             .name = steps_name},
#endif
            {.implementation = "plain",
             .algorithm = "query-by-query",
             .plan = plain_plan,
             .region = {"attention_plain", attend_fp32, attend_fp64}},
        },
};
#endif
