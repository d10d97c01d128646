/* Inputs of workloads. Each element is a pure function of seed, tensor and index, so device and
 * reference compute the same inputs without a copy. Values are k * 2^(exponent - significand + 1),
 * where k is a uniform signed integer of `significand` bits. They are exact in the tested precision
 * and use the whole mantissa: zeros and round numbers would draw less power, and so run faster than
 * real data. */
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define FILL_FUNCTION static inline __host__ __device__
#else
#define FILL_FUNCTION static inline
#endif

/* Roles of a workload's tensors. In a backward pass the input TENSOR_OUTPUT is the gradient of the
 * output, and each result is the gradient of the forward tensor of that role. Tensors ..._UPDATED
 * are results of a training step. Append new roles: input values depend on a role's number. */
enum tensor {
    TENSOR_INPUT,
    TENSOR_WEIGHT,
    TENSOR_OUTPUT,
    TENSOR_BIAS,
    TENSOR_WEIGHT_UPDATED,
    TENSOR_BIAS_UPDATED,
    TENSOR_VALUE,
    TENSOR_COUNT,
    TENSOR_BASIC_COUNT = TENSOR_BIAS /* input, weight, output: the tensors of most workloads */
};

struct fill {
    uint64_t key;    /* see fill_make */
    int significand; /* bits, 2 to 53 */
    double unit;     /* value of k = 1 */
};

/* The output function of SplitMix64 (Steele, Lea, Flood 2014). */
FILL_FUNCTION uint64_t fill_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Values are uniform in [-2^exponent, 2^exponent). */
FILL_FUNCTION struct fill fill_make(uint64_t seed, enum tensor tensor, int significand,
                                    int exponent)
{
    struct fill fill;
    fill.key = fill_mix(seed * 0x9e3779b97f4a7c15u + (uint64_t)tensor + 1);
    fill.significand = significand;
    fill.unit = 1.0;
    for (int i = 0; i < significand - 1; ++i)
        fill.unit *= 0.5;
    for (int i = 0; i < exponent; ++i)
        fill.unit *= 2.0;
    for (int i = 0; i > exponent; --i)
        fill.unit *= 0.5;
    return fill;
}

FILL_FUNCTION double fill_value(struct fill fill, uint64_t index)
{
    uint64_t bits = fill_mix(fill.key + (index + 1) * 0x9e3779b97f4a7c15u);
    int64_t k = (int64_t)(bits >> (64 - fill.significand)) - ((int64_t)1 << (fill.significand - 1));
    return (double)k * fill.unit;
}
