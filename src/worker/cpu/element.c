#include "worker/cpu/element.h"

#include <math.h>
#include <string.h>

/* A bf16 is the upper half of an fp32. */
static uint16_t bf16_from(double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double bf16_value(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float single;
    memcpy(&single, &bits, sizeof single);
    return single;
}

/* An fp16: sign, 5 bits of exponent, 10 of mantissa. Below 2^-14 steps are of 2^-24. */
static uint16_t fp16_from(double value)
{
    const uint16_t infinite = 0x7c00;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    if (isnan(value))
        return infinite | 1;
    double fraction = frexp(fabs(value), &exponent);
    if (exponent > 16 || isinf(value))
        return sign | infinite;
    if (fraction == 0.0 || exponent < -13)
        return (uint16_t)(sign | (uint16_t)ldexp(fabs(value), 24));
    return (uint16_t)(sign | ((uint16_t)(exponent + 14) << 10) |
                      ((uint16_t)ldexp(fraction, 11) & 0x3ff));
}

static double fp16_value(uint16_t half)
{
    int exponent = half >> 10 & 0x1f;
    double mantissa = half & 0x3ff, value;
    if (exponent == 0x1f)
        value = mantissa > 0.0 ? NAN : INFINITY;
    else
        value = exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024.0, exponent - 25);
    return half & 0x8000 ? -value : value;
}

void element_store(enum precision precision, void *data, int64_t index, double value)
{
    switch (precision) {
    case PRECISION_FP64:
        ((double *)data)[index] = value;
        break;
    case PRECISION_BF16:
        ((uint16_t *)data)[index] = bf16_from(value);
        break;
    case PRECISION_FP16:
        ((uint16_t *)data)[index] = fp16_from(value);
        break;
    default:
        ((float *)data)[index] = (float)value;
    }
}

double element_load(enum precision precision, const void *data, int64_t index)
{
    switch (precision) {
    case PRECISION_FP64:
        return ((const double *)data)[index];
    case PRECISION_BF16:
        return bf16_value(((const uint16_t *)data)[index]);
    case PRECISION_FP16:
        return fp16_value(((const uint16_t *)data)[index]);
    default:
        return ((const float *)data)[index];
    }
}
