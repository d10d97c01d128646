/* Random operands of matrix instructions, one register at a time. Mantissas are full and both signs
 * occur, because zeros draw less power and so run faster than real data. Floating-point values lie
 * in 1/8 <= |x| < 2. Integers and fp4 take all values; one in eight fp4 values is 0. */
#pragma once

#include <stdint.h>

#include "model/fill.h"

static __device__ inline uint64_t operand_bits(uint64_t index)
{
    return fill_mix((index + 1) * 0x9e3779b97f4a7c15u);
}

/* `count` elements in 32 bits. random: mask of the bits that are random, which are the signs, the
 * mantissas and the two lowest bits of the exponents. fixed: the other bits of the exponents. sign:
 * mask that turns x into -x, or an integer x into -x - 1. */
template <int count, uint32_t random, uint32_t fixed, uint32_t sign> struct packed {
    typedef uint32_t word;
    static const int elements = count;
    static __device__ word make(uint64_t index)
    {
        return ((uint32_t)(operand_bits(index) >> 32) & random) | fixed;
    }
    static __device__ word opposite(word x)
    {
        return x ^ sign;
    }
};
typedef packed<1, 0x81ffe000, 0x3e000000, 0x80000000> packed_tf32;
typedef packed<2, 0x8fff8fff, 0x30003000, 0x80008000> packed_fp16;
typedef packed<2, 0x81ff81ff, 0x3e003e00, 0x80008000> packed_bf16;
typedef packed<4, 0x9f9f9f9f, 0x20202020, 0x80808080> packed_fp8; /* e4m3 */
typedef packed<8, 0xffffffff, 0x00000000, 0x88888888> packed_fp4; /* e2m1 */
typedef packed<4, 0xffffffff, 0x00000000, 0xffffffff> packed_int8;

struct single_fp64 {
    typedef double word;
    static const int elements = 1;
    static __device__ word make(uint64_t index)
    {
        uint64_t bits = (operand_bits(index) & 0x803fffffffffffffu) | 0x3fc0000000000000u;
        return __longlong_as_double((long long)bits);
    }
    static __device__ word opposite(word x)
    {
        return -x;
    }
};

/* Returns the start of a sum. The start is as large as a product, so that the sum's mantissa is
 * full from the beginning. A thread needs many starts, so each takes only one multiplication, by
 * 2^32 over the golden ratio. The empty asm statements keep the compiler from computing a start
 * twice. */
template <typename sum> static __device__ inline sum operand_sum(uint64_t index);
template <> __device__ inline uint32_t operand_sum<uint32_t>(uint64_t index)
{
    uint32_t bits = (uint32_t)(index + 1) * 0x9e3779b9u;
    asm volatile("" : "+r"(bits));
    return bits;
}
template <> __device__ inline float operand_sum<float>(uint64_t index)
{
    uint32_t bits = (uint32_t)(index + 1) * 0x9e3779b9u;
    float x = __uint_as_float((bits & 0x81ffffffu) | 0x3e000000u);
    asm volatile("" : "+f"(x));
    return x;
}
template <> __device__ inline double operand_sum<double>(uint64_t index)
{
    return single_fp64::make(index);
}
