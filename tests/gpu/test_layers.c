/* The kernels of linear, matmul and attention, as trial.h says: all passes, odd sizes, tails. */
#include "kernels/kernels.h"
#include "model/workloads/attention.h"
#include "model/workloads/linear.h"
#include "model/workloads/matmul.h"
#include "trial.h"

#include <stdio.h>
#include <string.h>

/* ---- the workloads ---- */

static void linear_arrays(const struct config *config, struct trial_arrays *arrays)
{
    struct linear s = linear_from(config);
    bool forward = s.pass == LINEAR_FORWARD;
    enum tensor result = forward                          ? TENSOR_OUTPUT
                         : s.pass == LINEAR_BACKWARD_DATA ? TENSOR_INPUT
                                                          : TENSOR_WEIGHT;
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        enum tensor tensor = (enum tensor)i;
        bool written = tensor == result || (tensor == TENSOR_BIAS && result == TENSOR_WEIGHT);
        bool read = tensor == TENSOR_BIAS ? forward : !written;
        arrays->reads[i] = read ? linear_size(&s, tensor) : 0;
        arrays->writes[i] = written ? linear_size(&s, tensor) : 0;
    }
}

static cudaError_t product_launch(const struct linear *s, const struct trial_arrays *a)
{
    const void *x = a->input[TENSOR_INPUT], *w = a->input[TENSOR_WEIGHT];
    const void *dy = a->input[TENSOR_OUTPUT];
    if (s->pass == LINEAR_FORWARD)
        return kernel_linear_product(
            s->precision, a->result[TENSOR_OUTPUT], (struct kernel_factor){x, s->inputs, 1},
            (struct kernel_factor){w, s->inputs, 1}, s->batch, s->outputs, s->inputs, NULL);
    if (s->pass == LINEAR_BACKWARD_DATA)
        return kernel_linear_product(
            s->precision, a->result[TENSOR_INPUT], (struct kernel_factor){dy, s->outputs, 1},
            (struct kernel_factor){w, 1, s->inputs}, s->batch, s->inputs, s->outputs, NULL);
    return kernel_linear_product(
        s->precision, a->result[TENSOR_WEIGHT], (struct kernel_factor){dy, 1, s->outputs},
        (struct kernel_factor){x, 1, s->inputs}, s->outputs, s->inputs, s->batch, NULL);
}

static cudaError_t linear_launch(const struct config *config, const struct trial_arrays *a)
{
    struct linear s = linear_from(config);
    cudaError_t code = product_launch(&s, a);
    if (code != cudaSuccess || !linear_has_epilogue(&s))
        return code;
    if (s.pass == LINEAR_FORWARD)
        return kernel_linear_finish(s.precision, a->result[TENSOR_OUTPUT], a->input[TENSOR_BIAS],
                                    s.activation, s.batch, s.outputs, NULL);
    return kernel_column_sums(s.precision, a->result[TENSOR_BIAS], a->input[TENSOR_OUTPUT], s.batch,
                              s.outputs, NULL);
}

static void matmul_arrays(const struct config *config, struct trial_arrays *arrays)
{
    struct matmul s = matmul_from(config);
    arrays->reads[TENSOR_INPUT] = s.m * s.k;
    arrays->reads[TENSOR_WEIGHT] = s.k * s.n;
    arrays->writes[TENSOR_OUTPUT] = s.m * s.n;
    /* What is kept of x, and a 16-bit word of places for each 16 elements of it. */
    arrays->between = s.sparse ? s.m * s.k / 2 + s.m * s.k / 16 : 0;
}

static cudaError_t tiled_launch(const struct matmul *s, const struct trial_arrays *a)
{
    const void *x = a->input[TENSOR_INPUT];
    uint32_t *places = NULL;
    if (s->sparse) {
        places = (uint32_t *)((uint16_t *)a->scratch + s->m * s->k / 2);
        cudaError_t code =
            kernel_matmul_prune(s->precision, a->scratch, places, x, s->m, s->k, NULL);
        if (code != cudaSuccess)
            return code;
        x = a->scratch;
    }
    return kernel_matmul_tiled(s->precision, a->result[TENSOR_OUTPUT], x, places,
                               a->input[TENSOR_WEIGHT], s->m, s->n, s->k, NULL);
}

static cudaError_t matmul_launch(const struct config *config, const struct trial_arrays *a)
{
    struct matmul s = matmul_from(config);
    if (strcmp(s.implementation, "tiled") == 0)
        return tiled_launch(&s, a);
    return kernel_matmul(s.precision, a->result[TENSOR_OUTPUT], a->input[TENSOR_INPUT],
                         a->input[TENSOR_WEIGHT], s.m, s.n, s.k, NULL);
}

/* Queries scaled, and behind them the scores. */
static void attention_arrays(const struct config *config, struct trial_arrays *arrays)
{
    struct attention s = attention_from(config);
    static const enum tensor read[] = {TENSOR_INPUT, TENSOR_WEIGHT, TENSOR_VALUE};
    for (int i = 0; i < 3; ++i)
        arrays->reads[read[i]] = attention_size(&s, read[i]);
    arrays->writes[TENSOR_OUTPUT] = attention_size(&s, TENSOR_OUTPUT);
    arrays->between = attention_size(&s, TENSOR_INPUT) + s.batch * s.heads * s.sequence * s.keys;
}

static void *at(const struct attention *s, const void *array, int64_t element)
{
    return (char *)array + (size_t)element * precision_info[s->precision].bytes;
}

/* One head's product: of scores with the values, or of queries with keys. */
static cudaError_t head_launch(const struct attention *s, const struct trial_arrays *a,
                               int64_t head, bool values)
{
    void *scores =
        at(s, a->scratch, attention_size(s, TENSOR_INPUT) + head * s->sequence * s->keys);
    int64_t query = head * s->sequence * s->head_size, key = head * s->keys * s->head_size;
    if (values)
        return kernel_linear_product(
            s->precision, at(s, a->result[TENSOR_OUTPUT], query),
            (struct kernel_factor){scores, s->keys, 1},
            (struct kernel_factor){at(s, a->input[TENSOR_VALUE], key), 1, s->head_size},
            s->sequence, s->head_size, s->keys, NULL);
    return kernel_linear_product(
        s->precision, scores, (struct kernel_factor){at(s, a->scratch, query), s->head_size, 1},
        (struct kernel_factor){at(s, a->input[TENSOR_WEIGHT], key), s->head_size, 1}, s->sequence,
        s->keys, s->head_size, NULL);
}

/* The queries are filled anew, already scaled: exact where 1 / sqrt(head_size) is a power of two. */
static cudaError_t attention_launch(const struct config *config, const struct trial_arrays *a)
{
    struct attention s = attention_from(config);
    struct fill fill = config_fill(config, TRIAL_SEED, TENSOR_INPUT);
    int64_t queries = attention_size(&s, TENSOR_INPUT), heads = s.batch * s.heads;
    fill.unit *= attention_scale(&s);
    cudaError_t code = kernel_fill(s.precision, a->scratch, queries, fill, 0, NULL);
    for (int64_t head = 0; code == cudaSuccess && head < heads; ++head)
        code = head_launch(&s, a, head, false);
    if (code == cudaSuccess)
        code = kernel_attention_softmax(s.precision, at(&s, a->scratch, queries),
                                        heads * s.sequence, s.sequence, s.keys, s.causal, NULL);
    for (int64_t head = 0; code == cudaSuccess && head < heads; ++head)
        code = head_launch(&s, a, head, true);
    return code;
}

static const struct trial kinds[] = {
    {"linear", linear_arrays, linear_launch},
    {"matmul", matmul_arrays, matmul_launch},
    {"attention", attention_arrays, attention_launch},
    {NULL, NULL, NULL},
};

/* ---- shapes ---- */

/* Each shape with each variant in each precision. */
static void shapes_check(struct trials *trials, const char *workload, const char *const *shapes,
                         const char *const *variants)
{
    for (; *shapes; ++shapes)
        for (const char *const *variant = variants; *variant; ++variant)
            for (int i = 0; i < TRIAL_PRECISIONS; ++i) {
                char text[WORKLOAD_TEXT];
                snprintf(text, sizeof text, "%s precision=%s %s%s%s", workload, trial_precisions[i],
                         *shapes, **variant ? " " : "", *variant);
                trial_check(trials, text);
            }
}

/* Bias and activation take 16 bytes at a time where rows are of whole pieces; columns are summed 32 at
 * a time. */
static void linear_check(struct trials *trials)
{
    static const char *const shapes[] = {
        "batch=1 inputs=1 outputs=9",    "batch=7 inputs=33 outputs=65",
        "batch=9 inputs=70 outputs=64",  "batch=65 inputs=5 outputs=8",
        "batch=3 inputs=129 outputs=2",  "batch=33 inputs=8 outputs=31",
        "batch=2 inputs=3 outputs=4100", NULL,
    };
    static const char *const variants[] = {
        "bias=no",
        "bias=yes",
        "bias=yes activation=relu",
        "bias=yes activation=gelu",
        "bias=no activation=gelu",
        "bias=no pass=backward-data",
        "bias=no pass=backward-weights",
        "bias=yes pass=backward-weights",
        NULL,
    };
    shapes_check(trials, "linear", shapes, variants);
}

static void matmul_check(struct trials *trials)
{
    static const char *const shapes[] = {"m=1 n=1 k=1", "m=33 n=65 k=130", "m=9 n=31 k=7",
                                         "m=64 n=64 k=64", NULL};
    static const char *const variants[] = {"", NULL};
    shapes_check(trials, "matmul", shapes, variants);
}

/* Less than a tile, tiles and a rest, few pieces and more than are in flight. */
static void tiled_check(struct trials *trials)
{
    static const char *const shapes[] = {"m=16 n=16 k=64",    "m=128 n=128 k=128",
                                         "m=144 n=272 k=192", "m=48 n=16 k=704",
                                         "m=272 n=400 k=64",  NULL};
    static const char *const variants[] = {"none", "2:4", NULL};
    for (int i = 0; shapes[i]; ++i)
        for (int j = 0; variants[j]; ++j)
            for (int p = 0; p < 2; ++p) {
                char text[WORKLOAD_TEXT];
                snprintf(text, sizeof text,
                         "matmul precision=%s implementation=tiled sparsity=%s %s",
                         p ? "bf16" : "fp16", variants[j], shapes[i]);
                trial_check(trials, text);
            }
}

/* Fewer keys than threads of a block, and more; fewer than queries, and more. */
static void attention_check(struct trials *trials)
{
    static const char *const shapes[] = {
        "batch=1 heads=1 sequence=1 keys=1 head_size=1",
        "batch=2 heads=3 sequence=5 keys=7 head_size=4",
        "batch=1 heads=2 sequence=9 keys=3 head_size=16",
        "batch=1 heads=2 sequence=40 keys=257 head_size=16",
        "batch=2 heads=1 sequence=3 keys=1031 head_size=64",
        NULL,
    };
    static const char *const variants[] = {"causal=no", "causal=yes", NULL};
    shapes_check(trials, "attention", shapes, variants);
}

static void all_check(struct trials *trials)
{
    linear_check(trials);
    matmul_check(trials);
    tiled_check(trials);
    attention_check(trials);
}

int main(int count, char **arguments)
{
    return trial_main(count, arguments, kinds, all_check);
}
