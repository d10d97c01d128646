/* Attention on the CPU by three operations of oneDNN: product, softmax, product. They do some heads at a
 * time, so that the scores of these stay in the caches. */
#include "worker/cpu/attention_onednn.h"

#include <stdio.h>

#include "model/workloads/attention.h"
#include "worker/cpu/attention.h"
#include "worker/cpu/onednn_routine.h"

enum step { SCORES, SOFTMAX, VALUES, STEPS };

struct attention_onednn_plan {
    struct attention shape;
    int64_t heads; /* at a time; a divisor of all */
    struct onednn *steps[STEPS];
    size_t memory[STEPS]; /* offsets in the scratch memory, behind the scores; bytes */
    char name[128];
};

static struct onednn_tensor matrices(const struct attention_onednn_plan *plan, int64_t rows,
                                     int64_t columns)
{
    return (struct onednn_tensor){
        .precision = plan->shape.precision,
        .axes = 3,
        .extents = {plan->heads, rows, columns},
        .strides = {rows * columns, columns, 1},
    };
}

/* k enters its product transposed. */
static struct onednn_tensor keys_across(const struct attention_onednn_plan *plan)
{
    const struct attention *s = &plan->shape;
    struct onednn_tensor tensor = matrices(plan, s->head_size, s->keys);
    tensor.strides[1] = 1;
    tensor.strides[2] = s->head_size;
    return tensor;
}

static struct onednn_operation operation_of(const struct attention_onednn_plan *plan,
                                            enum step step)
{
    const struct attention *s = &plan->shape;
    const struct onednn_tensor scores = matrices(plan, s->sequence, s->keys);
    const struct onednn_tensor lines = matrices(plan, s->sequence, s->head_size);
    struct onednn_tensor rows = {.precision = s->precision,
                                 .axes = 2,
                                 .extents = {plan->heads * s->sequence, s->keys},
                                 .strides = {s->keys, 1}};
    const struct onednn_operation operations[STEPS] = {
        [SCORES] = {.kind = ONEDNN_MATMUL,
                    .function = ONEDNN_SCALE,
                    .factor = attention_scale(s),
                    .tensors = {[ONEDNN_SOURCE] = lines,
                                [ONEDNN_WEIGHTS] = keys_across(plan),
                                [ONEDNN_DESTINATION] = scores}},
        [SOFTMAX] = {.kind = ONEDNN_SOFTMAX,
                     .tensors = {[ONEDNN_SOURCE] = rows, [ONEDNN_DESTINATION] = rows}},
        [VALUES] = {.kind = ONEDNN_MATMUL,
                    .tensors = {[ONEDNN_SOURCE] = scores,
                                [ONEDNN_WEIGHTS] = matrices(plan, s->keys, s->head_size),
                                [ONEDNN_DESTINATION] = lines}},
    };
    return operations[step];
}

/* As many heads as give each core scores of this size, at least one. */
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

static size_t scratch_take(struct work *work, size_t bytes)
{
    const size_t page = 4096;
    size_t offset = work->scratch_size;
    work->scratch_size += (bytes + page - 1) / page * page;
    return offset;
}

static enum status steps_plan(struct work *work, const struct topology *topology,
                              struct error *error)
{
    struct attention_onednn_plan *plan = work->plan;
    plan->shape = attention_from(&work->config);
    const struct attention *s = &plan->shape;
    plan->heads = heads_at_a_time(s, topology->cores, work->element);
    attention_tensors(work, s);
    scratch_take(work, (size_t)(plan->heads * s->sequence * s->keys) * work->element);
    for (int i = 0; i < STEPS; ++i) {
        const struct onednn_operation operation = operation_of(plan, (enum step)i);
        enum status status = onednn_create(&operation, NULL, &plan->steps[i], error);
        if (status == STATUS_OK)
            status = onednn_routine_accept(work, plan->steps[i], error);
        if (status)
            return status;
        plan->memory[i] = scratch_take(work, onednn_memory(plan->steps[i]));
    }
    snprintf(plan->name, sizeof plan->name, "three-steps %.30s %.30s %.30s",
             onednn_name(plan->steps[SCORES]), onednn_name(plan->steps[SOFTMAX]),
             onednn_name(plan->steps[VALUES]));
    return STATUS_OK;
}

static void steps_release(struct work *work)
{
    struct attention_onednn_plan *plan = work->plan;
    for (int i = 0; i < STEPS; ++i)
        onednn_destroy(plan->steps[i]);
}

static enum status steps_ready(struct work *work, struct error *error)
{
    const struct attention_onednn_plan *plan = work->plan;
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

/* What a query does not see gets the lowest score that there is, whose exponential is 0. */
static void scores_hide(const struct work *work, struct trace *trace)
{
    static const uint32_t lowest[PRECISION_COUNT] = {
        [PRECISION_FP32] = 0xff7fffff, [PRECISION_BF16] = 0xff7f, [PRECISION_FP16] = 0xfbff};
    const struct attention_onednn_plan *plan = work->plan;
    const struct attention *s = &plan->shape;
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

static void *head_at(const struct attention_onednn_plan *plan, const struct work *work,
                     enum tensor tensor, int64_t head)
{
    const struct attention *s = &plan->shape;
    void *all = tensor == TENSOR_OUTPUT ? work->result[tensor] : work->input[tensor];
    int64_t lines = tensor == TENSOR_INPUT || tensor == TENSOR_OUTPUT ? s->sequence : s->keys;
    return (char *)all + (size_t)(head * lines * s->head_size) * work->element;
}

static void steps_run(struct work *work, struct trace *trace)
{
    const struct attention_onednn_plan *plan = work->plan;
    const struct attention *s = &plan->shape;
    for (int64_t head = 0; head < s->batch * s->heads; head += plan->heads) {
        onednn_move(plan->steps[SCORES], ONEDNN_SOURCE, head_at(plan, work, TENSOR_INPUT, head));
        onednn_move(plan->steps[SCORES], ONEDNN_WEIGHTS, head_at(plan, work, TENSOR_WEIGHT, head));
        onednn_move(plan->steps[VALUES], ONEDNN_WEIGHTS, head_at(plan, work, TENSOR_VALUE, head));
        onednn_move(plan->steps[VALUES], ONEDNN_DESTINATION,
                    head_at(plan, work, TENSOR_OUTPUT, head));
        onednn_run(plan->steps[SCORES], trace);
        if (s->causal)
            scores_hide(work, trace);
        onednn_run(plan->steps[SOFTMAX], trace);
        onednn_run(plan->steps[VALUES], trace);
    }
}

static const char *steps_name(const struct work *work)
{
    return ((const struct attention_onednn_plan *)work->plan)->name;
}

const struct routine attention_onednn = {
    .workload = &attention_workload,
    .implementation = "onednn",
    .plan_size = sizeof(struct attention_onednn_plan),
    .own_regions = true,
    .check = onednn_check,
    .plan = steps_plan,
    .ready = steps_ready,
    .run = steps_run,
    .release = steps_release,
    .name = steps_name,
};
