/* A layer's activation y = f(z), and the derivative of f as a function of y, both in the type of
 * computation. */
#pragma once

#include "model/workloads/conv2d.h"

template <typename C> __device__ inline C activated(enum activation activation, C z)
{
    switch (activation) {
    case ACTIVATION_RELU:
        return z > 0 ? z : 0;
    case ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-z));
    case ACTIVATION_TANH:
        return tanh(z);
    default:
        return z;
    }
}

template <typename C> __device__ inline C slope_of(enum activation activation, C y)
{
    switch (activation) {
    case ACTIVATION_RELU:
        return y > 0 ? 1 : 0;
    case ACTIVATION_SIGMOID:
        return y * (1 - y);
    case ACTIVATION_TANH:
        return 1 - y * y;
    default:
        return 1;
    }
}
