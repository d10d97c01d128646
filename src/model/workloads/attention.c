#include "model/workloads/attention.h"

#include <math.h>

#include "model/reference.h"

#define SHAPE struct attention
/* clang-format off */
static const char *const attention_implementation_words[] = {"auto", "cudnn", "onednn", "plain",
                                                             NULL};

static const struct parameter attention_parameters[] = {
    WORKLOAD_INTEGER("batch", 65536, "8", "sets of sequences", INTO(batch)),
    WORKLOAD_CACHE,
    WORKLOAD_SERIES("causal", workload_no_yes, "no", "yes: a query sees no later key",
                    INTO(causal)),
    WORKLOAD_INTEGER("head_size", 65536, "64", "values of each query, key and value vector",
                     INTO(head_size)),
    WORKLOAD_INTEGER("heads", 65536, "16", "attention heads", INTO(heads)),
    WORKLOAD_IMPLEMENTATION(attention_implementation_words),
    WORKLOAD_INTEGER("keys", 16777216, "1024", "keys and values of a head", INTO(keys)),
    WORKLOAD_LAUNCH,
    WORKLOAD_PRECISION("of the tensors and the multiplications"),
    WORKLOAD_INTEGER("sequence", 16777216, "1024", "queries of a head", INTO(sequence)),
};
/* clang-format on */

WORKLOAD_SHAPE(attention)

int64_t attention_keys(const struct attention *s, int64_t query)
{
    return s->causal && query + 1 < s->keys ? query + 1 : s->keys;
}

double attention_scale(const struct attention *s)
{
    return 1.0 / sqrt((double)s->head_size);
}

/* Returns the number of pairs of a query and a key that the query sees, in one head. */
static double pairs(const struct attention *s)
{
    double queries = (double)s->sequence, keys = (double)s->keys;
    double growing = fmin(queries, keys); /* queries that see one more key than the query before */
    if (!s->causal)
        return queries * keys;
    return growing * (growing + 1.0) / 2.0 + (queries - growing) * keys;
}

static struct cost attention_cost(const struct config *config)
{
    struct attention s = attention_from(config);
    double heads = (double)s.batch * (double)s.heads, width = (double)s.head_size;
    double seen = (double)attention_keys(&s, s.sequence - 1);
    double element = (double)precision_info[s.precision].bytes;
    return (struct cost){
        .flops = 4.0 * heads * pairs(&s) * width,
        .bytes = 2.0 * heads * ((double)s.sequence + seen) * width * element,
    };
}

static struct tensors attention_tensors(const struct config *config)
{
    const struct attention s = attention_from(config);
    const double values = (double)s.batch * (double)s.heads * (double)s.head_size;
    const double q = values * (double)s.sequence, k = values * (double)s.keys;
    return (struct tensors){
        .read = {[TENSOR_INPUT] = q, [TENSOR_WEIGHT] = k, [TENSOR_VALUE] = k},
        .written = {[TENSOR_OUTPUT] = q},
    };
}

/* Queries are large, so that the weights of the softmax differ. */
static int attention_exponent(const struct config *config, enum tensor tensor)
{
    (void)config;
    return tensor == TENSOR_INPUT ? 2 : 0;
}

static double score(const struct reference_inputs *in, int64_t query, int64_t key)
{
    const struct attention *s = in->shape;
    double sum = 0.0;
    for (int64_t i = 0; i < s->head_size; ++i)
        sum += input_value(in, TENSOR_INPUT, query * s->head_size + i) *
               input_value(in, TENSOR_WEIGHT, key * s->head_size + i);
    return sum * attention_scale(s);
}

/* Makes one pass over the keys. A new largest score scales down the sums so far. */
static double element(const struct reference_inputs *in, int64_t offset)
{
    const struct attention *s = in->shape;
    int64_t column = offset % s->head_size, query = offset / s->head_size;
    int64_t head = query / s->sequence, first = head * s->keys;
    int64_t keys = attention_keys(s, query % s->sequence);
    double largest = -INFINITY, weights = 0.0, sum = 0.0;
    for (int64_t j = first; j < first + keys; ++j) {
        double value = score(in, query, j), before = largest;
        largest = fmax(largest, value);
        double kept = exp(before - largest), weight = exp(value - largest);
        weights = weights * kept + weight;
        sum = sum * kept + weight * input_value(in, TENSOR_VALUE, j * s->head_size + column);
    }
    return sum / weights;
}

static enum status attention_reference(const struct reference_request *request,
                                       struct expectation *expectation, struct error *error)
{
    const struct attention s = attention_from(request->config);
    const struct elements o = {
        .tensor = TENSOR_OUTPUT,
        .products = (double)s.keys * (double)(s.head_size + 1),
        .element = element,
    };
    return reference_elements(request, &s, &o, expectation, error);
}

/* Implementations also round the weights of the softmax, and those of three kernels the scores. */
static struct tolerance attention_tolerance(const struct config *config)
{
    const enum precision precision = config_precision(config);
    return precision == PRECISION_TF32 || precision == PRECISION_FP16
               ? (struct tolerance){1e-3, 2e-3}
           : precision == PRECISION_BF16 ? (struct tolerance){8e-3, 2e-2}
                                         : precision_info[precision].tolerance;
}

const struct workload attention_workload = {
    .name = "attention",
    WORKLOAD_TABLE(attention_parameters),
    .cost = attention_cost,
    .tensors = attention_tensors,
    .exponent = attention_exponent,
    .reference = attention_reference,
    .tolerance = attention_tolerance,
};
