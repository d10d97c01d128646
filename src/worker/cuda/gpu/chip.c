#include "worker/cuda/gpu/chip.h"

#include <math.h>
#include <stddef.h>

/* Sources.
 * Vector units: CUDA C++ Programming Guide, "Arithmetic Instructions".
 * Tensor units, dense: the architecture whitepapers, checked against the products' quoted peaks
 * (tests/unit/test_chip.c). GeForce and RTX chips of one capability differ in their rates: NaN.
 * Shared memory: 32 banks of 4 bytes a clock (Programming Guide); L1 the same. Turing has half of
 * both (GA102 whitepaper, where the doubling is announced).
 * L2 reads: A100 whitepaper, 2048 bytes per clock for V100 and 5120 for A100; not stated since. */
#define VECTOR(fp64, fp32, fp16, bf16)                                                             \
    {                                                                                              \
        [PRECISION_FP64] = fp64, [PRECISION_FP32] = fp32, [PRECISION_FP16] = fp16,                 \
        [PRECISION_BF16] = bf16                                                                    \
    }
#define TENSOR(fp64, tf32, fp16, bf16, fp8, int8)                                                  \
    {                                                                                              \
        [PRECISION_FP64] = fp64, [PRECISION_TF32] = tf32, [PRECISION_FP16] = fp16,                 \
        [PRECISION_BF16] = bf16, [PRECISION_FP8] = fp8, [PRECISION_INT8] = int8                    \
    }
#define K 1024.0

static const struct chip chips[] = {
    /* clang-format off */
    /* L1 size, reads, L2,   fp64 fp32 fp16 bf16,         fp64  tf32  fp16  bf16   fp8  int8 */
    {70,  128*K, 128, 2048, VECTOR(32,  64, 128,   0), TENSOR(  0,    0,  512,    0,    0,    0)},
    {75,   96*K,  64,  NAN, VECTOR( 2,  64, 128,   0), TENSOR(  0,    0,  NAN,    0,    0,  NAN)},
    {80,  192*K, 128, 5120, VECTOR(32,  64, 256, 128), TENSOR( 64,  512, 1024, 1024,    0, 2048)},
    {86,  128*K, 128,  NAN, VECTOR( 2, 128, 128, 128), TENSOR(NAN,  NAN,  NAN,  NAN,    0,  NAN)},
    {89,  128*K, 128,  NAN, VECTOR( 2, 128, 128, 128), TENSOR(NAN,  NAN,  NAN,  NAN,  NAN,  NAN)},
    {90,  256*K, 128,  NAN, VECTOR(64, 128, 256, 256), TENSOR(128, 1024, 2048, 2048, 4096, 4096)},
    {100, 256*K, 128,  NAN, VECTOR(64, 128, 256, 256), TENSOR( 64, 2048, 4096, 4096, 8192, 8192)},
    {120, 128*K, 128,  NAN, VECTOR( 2, 128, 128, 128), TENSOR(NAN,  NAN,  NAN,  NAN,  NAN,  NAN)},
    /* clang-format on */
};
static const struct chip unknown = {
    0, NAN, NAN, NAN, VECTOR(NAN, NAN, NAN, NAN), TENSOR(NAN, NAN, NAN, NAN, NAN, NAN),
};

const struct chip *chip_find(int capability)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; ++i)
        if (chips[i].capability == capability)
            return &chips[i];
    return &unknown;
}

struct theory chip_theory(const struct chip *chip, int multiprocessors, double clock,
                          double memory_clock, double bus_bits)
{
    /* FLOPs of a multiply-add; transfers per clock of double data rate memory */
    const double flops = 2.0, transfers = 2.0, byte_bits = 8.0;
    double cycles = clock * multiprocessors; /* of all SMs, in a second */
    struct theory theory = {
        .clock = clock,
        .memory_clock = memory_clock,
        .bandwidth = {[LEVEL_DRAM] = transfers * memory_clock * bus_bits / byte_bits,
                      [LEVEL_L3] = NAN,
                      [LEVEL_L2] = clock * chip->l2_read,
                      [LEVEL_L1] = cycles * chip->onchip_read},
        .shared_read = cycles * chip->onchip_read,
    };
    for (int i = 0; i < PRECISION_COUNT; ++i) {
        theory.vector[i] = chip->vector[i] > 0.0 ? flops * cycles * chip->vector[i] : NAN;
        theory.tensor[i] = chip->tensor[i] > 0.0 ? flops * cycles * chip->tensor[i] : NAN;
    }
    return theory;
}
