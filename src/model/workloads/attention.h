/* attention: scaled dot-product attention, o = softmax(q k^T / sqrt(head_size)) v. */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

extern const struct workload attention_workload;

/* The shape. All tensors are row-major: q and o [batch][heads][sequence][head_size], k and v
 * [batch][heads][keys][head_size]. q is TENSOR_INPUT, k TENSOR_WEIGHT, v TENSOR_VALUE, o
 * TENSOR_OUTPUT. With `causal`, query i sees only the keys 0 to i.
 * Cost: 2 FLOPs for each multiply-add of both products over the pairs of a query and a key that
 * the query sees; the softmax counts no FLOPs. As in a fused kernel, q, k and v are read once,
 * without keys that no query sees, and o is written once. */
struct attention {
    int64_t batch, heads, sequence, keys, head_size;
    bool causal;
    enum precision precision;
};
struct attention attention_from(const struct config *config);
/* A query sees this number of keys, from the first on. */
int64_t attention_keys(const struct attention *shape, int64_t query);
double attention_scale(const struct attention *shape); /* 1 / sqrt(head_size) */
