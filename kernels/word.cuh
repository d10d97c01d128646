/* Values as instructions compare them: of 16 bits two at a time, where several lie beside each other. */
#ifndef ROOFSWEEP_WORD_CUH
#define ROOFSWEEP_WORD_CUH

#include "piece.cuh"

/* As an integer, since the compiler loads several of these at a time, but not of CUDA's own types. */
template <typename T> struct pair {
    unsigned bits;
};
typedef pair<__half> half_pair;
typedef pair<__nv_bfloat16> bfloat16_pair;

__device__ inline __half2 pair_from(half_pair x)
{
    return *(const __half2 *)&x.bits;
}
__device__ inline __nv_bfloat162 pair_from(bfloat16_pair x)
{
    return *(const __nv_bfloat162 *)&x.bits;
}
__device__ inline half_pair pair_to(__half2 x)
{
    return {*(const unsigned *)&x};
}
__device__ inline bfloat16_pair pair_to(__nv_bfloat162 x)
{
    return {*(const unsigned *)&x};
}

template <typename T, bool several> struct word_of {
    typedef T type;
};
template <> struct word_of<__half, true> {
    typedef half_pair type;
};
template <> struct word_of<__nv_bfloat16, true> {
    typedef bfloat16_pair type;
};

/* `lanes` values beside each other in memory, as a piece has them. */
template <typename T, int lanes> struct alignas(lanes * sizeof(T)) words {
    typedef typename word_of<T, (lanes > 1)>::type word;
    static const int count = lanes * (int)sizeof(T) / (int)sizeof(word);
    static const int values = lanes / count; /* of a word */
    word at[count];
};

/* ---- the same value everywhere ---- */

template <typename W> __device__ inline W word_filled(double value)
{
    return to_stored<W>(value);
}
template <> __device__ inline half_pair word_filled<half_pair>(double value)
{
    return pair_to(__float2half2_rn((float)value));
}
template <> __device__ inline bfloat16_pair word_filled<bfloat16_pair>(double value)
{
    return pair_to(__float2bfloat162_rn((float)value));
}
template <typename T, int lanes> __device__ inline words<T, lanes> words_filled(double value)
{
    words<T, lanes> x;
#pragma unroll
    for (int i = 0; i < x.count; ++i)
        x.at[i] = word_filled<typename words<T, lanes>::word>(value);
    return x;
}

/* ---- comparisons ---- */

__device__ inline double greater(double a, double b)
{
    return a > b ? a : b;
}
__device__ inline float greater(float a, float b)
{
    return fmaxf(a, b);
}
template <typename T> __device__ inline pair<T> greater(pair<T> a, pair<T> b)
{
    return pair_to(__hmax2(pair_from(a), pair_from(b)));
}
__device__ inline __half greater(__half a, __half b)
{
    return __hmax(a, b);
}
__device__ inline __nv_bfloat16 greater(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __hmax(a, b);
}

/* All bits of each value of `a` that is greater; those of the first of two are the lower half. */
template <typename T> __device__ inline unsigned where_greater(pair<T> a, pair<T> b)
{
    return __hgt2_mask(pair_from(a), pair_from(b));
}
template <typename W> __device__ inline unsigned where_greater(W a, W b)
{
    return a > b ? 0xffffffffu : 0;
}

/* ---- to and from the type that is computed in ---- */

template <typename T> __device__ inline void word_values(pair<T> x, float *values)
{
    values[0] = __low2float(pair_from(x));
    values[1] = __high2float(pair_from(x));
}
template <typename W, typename C> __device__ inline void word_values(W x, C *values)
{
    values[0] = to_computed(x);
}

__device__ inline void word_store(half_pair *x, const float *values)
{
    *x = pair_to(__floats2half2_rn(values[0], values[1]));
}
__device__ inline void word_store(bfloat16_pair *x, const float *values)
{
    *x = pair_to(__floats2bfloat162_rn(values[0], values[1]));
}
template <typename W, typename C> __device__ inline void word_store(W *x, const C *values)
{
    *x = to_stored<W>(values[0]);
}

/* Values in the type that they are computed in. */
template <typename T, int lanes> struct sums {
    typedef typename computed<T>::type C;
    C at[lanes];

    __device__ void clear()
    {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            at[i] = 0;
    }
    __device__ void set(const words<T, lanes> &x)
    {
#pragma unroll
        for (int i = 0; i < x.count; ++i)
            word_values(x.at[i], at + i * x.values);
    }
    __device__ void add(const sums &other)
    {
#pragma unroll
        for (int i = 0; i < lanes; ++i)
            at[i] += other.at[i];
    }
    __device__ words<T, lanes> times(C factor) const
    {
        words<T, lanes> y;
#pragma unroll
        for (int i = 0; i < y.count; ++i) {
            C scaled[y.values];
#pragma unroll
            for (int j = 0; j < y.values; ++j)
                scaled[j] = at[i * y.values + j] * factor;
            word_store(&y.at[i], scaled);
        }
        return y;
    }
};

#endif
