/* Template: functions in one precision for loops that the compiler vectorises (real.h). These loops
 * need -fno-trapping-math (CMakeLists.txt). */

/* exp(x) for -80 <= x <= 0, without branches, so that loops become vector code. x = n ln 2 + r:
 * exp(r) is a Taylor series, the exponent's bits give 2^n, adding 1.5 * 2^mantissa rounds to n. */
static inline REAL NAME(exponential)(REAL x)
{
    const REAL ln2_high = (REAL)0.693145751953125, ln2_low = (REAL)1.42860682030941723e-6;
    const REAL round = (REAL)1.5 * (REAL)((REAL_INTEGER)1 << REAL_MANTISSA);
    const int degree = REAL_MANTISSA == 23 ? 7 : 13;
    REAL shifted = x * (REAL)1.44269504088896341 + round, sum = 1, power;
    REAL n = shifted - round;
    REAL r = x - n * ln2_high - n * ln2_low;
#pragma GCC unroll 16
    for (int k = degree; k > 0; --k)
        sum = 1 + sum * r * ((REAL)1 / (REAL)k);
    REAL_INTEGER bits, exponent;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << REAL_MANTISSA;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Absolute error: a few roundings of 1. Beyond 40 the result is 1. */
static inline REAL NAME(hyperbolic_tangent)(REAL x)
{
    REAL size = REAL_ABSOLUTE(x);
    REAL e = NAME(exponential)(-2 * (size > 40 ? 40 : size));
    return REAL_COPYSIGN((1 - e) / (1 + e), x);
}

static inline REAL NAME(sigmoid)(REAL x)
{
    return (REAL)0.5 + (REAL)0.5 * NAME(hyperbolic_tangent)((REAL)0.5 * x);
}

/* y may be x. exp(-80) is negligible beside 1, so larger differences count as 80. */
static inline void NAME(row_softmax)(int64_t columns, const REAL *x, REAL *y)
{
    REAL largest = x[0];
    double sum = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < columns; ++i)
        largest = x[i] > largest ? x[i] : largest;
    for (int64_t first = 0; first < columns; first = sum_end(first, columns)) {
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (int64_t i = first; i < sum_end(first, columns); ++i) {
            REAL difference = x[i] - largest;
            y[i] = NAME(exponential)(difference < -80 ? -80 : difference);
            part += y[i];
        }
        sum += (double)part;
    }
    REAL share = (REAL)(1 / sum);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i)
        y[i] *= share;
}
