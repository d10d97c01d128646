/* attention: scaled dot-product attention, o = softmax(q k^T / sqrt(head_size)) v. */
#pragma once

#include <stdbool.h>

#include "model/workload.h"

extern const struct workload attention_workload;

/* In numbers. All tensors are row-major: q and o [batch][heads][sequence][head_size], k and v
 * [batch][heads][keys][head_size]. q is TENSOR_INPUT, k TENSOR_WEIGHT, v TENSOR_VALUE, o
 * TENSOR_OUTPUT. With `causal`, query i sees the keys 0 to i and no others.
 * Cost: 2 FLOPs for each multiply-add of the two products, of the pairs that are seen; the softmax
 * is none. q, k, v are read and o is written once, as a fused kernel does: keys that no query sees
 * are not read. */
struct attention {
    int64_t batch, heads, sequence, keys, head_size;
    bool causal;
    enum precision precision;
};
struct attention attention_from(const struct config *config);
int64_t attention_size(const struct attention *shape, enum tensor tensor); /* elements */
/* How many keys a query sees, from the first one on. */
int64_t attention_keys(const struct attention *shape, int64_t query);
double attention_scale(const struct attention *shape); /* 1 / sqrt(head_size) */
