#include "model/chip.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Sources.
 *
 * Vector units: CUDA C++ Programming Guide, "Arithmetic Instructions".
 *
 * Tensor units, dense, with sums of 32 bits: architecture whitepapers, checked against the quoted
 * peaks of products (tests/unit/test_chip.c). The vendor halves the rate of some products of a
 * capability. Products with a stated rate have rows of their own, from these sources:
 *   7.5   Turing whitepaper, tables of RTX 2080 Ti and Quadro RTX 6000; T4 datasheet
 *   8.6   GA102 whitepaper, tables of RTX 3090 and RTX A6000; A40 and A10 datasheets
 *   8.9   Ada whitepaper, table of RTX 4090; datasheets of L4, L40, L40S; RTX 6000 Ada datasheet
 *   12.0  RTX Blackwell whitepaper, table of RTX 5090; RTX PRO 6000 Blackwell datasheet
 * Nobody has run roofsweep on these chips, nor on chips with fp4: the figures are the vendor's
 * alone. fp4 rates are dense rates of block-scaled products. Source for 10.0: HGX B200 datasheet.
 *
 * Shared memory: 32 banks of 4 bytes per clock (Programming Guide); L1 has the same rate. Turing
 * has half of both (GA102 whitepaper, which announces the doubling). L2 reads: A100 whitepaper,
 * 2048 bytes per clock for V100 and 5120 for A100; not stated since. */
#define VECTOR(fp64, fp32, fp16, bf16)                                                             \
    {                                                                                              \
        [PRECISION_FP64] = fp64, [PRECISION_FP32] = fp32, [PRECISION_FP16] = fp16,                 \
        [PRECISION_BF16] = bf16, [PRECISION_INT8] = NAN                                            \
    }
#define TENSOR(fp64, tf32, fp16, bf16, fp8, fp4, int8)                                             \
    {                                                                                              \
        [PRECISION_FP64] = fp64, [PRECISION_TF32] = tf32, [PRECISION_FP16] = fp16,                 \
        [PRECISION_BF16] = bf16, [PRECISION_FP8] = fp8, [PRECISION_FP4] = fp4,                     \
        [PRECISION_INT8] = int8                                                                    \
    }
#define K 1024.0

/* clang-format off */
/* Figures that all chips of a capability share:
 *                                     L1 size, reads, L2,  fp64 fp32 fp16 bf16 */
#define VOLTA     "Volta",         70,  128*K, 128, 2048, VECTOR(32,  64, 128,   0)
#define TURING    "Turing",        75,   96*K,  64,  NAN, VECTOR( 2,  64, 128,   0)
#define AMPERE    "Ampere",        80,  192*K, 128, 5120, VECTOR(32,  64, 256, 128)
#define AMPERE_86 "Ampere",        86,  128*K, 128,  NAN, VECTOR( 2, 128, 128, 128)
#define ADA       "Ada Lovelace",  89,  128*K, 128,  NAN, VECTOR( 2, 128, 128, 128)
#define HOPPER    "Hopper",        90,  256*K, 128,  NAN, VECTOR(64, 128, 256, 256)
#define BLACKWELL "Blackwell",    100, 256*K, 128,  NAN, VECTOR(64, 128, 256, 256)
#define RTX_120   "Blackwell",    120, 128*K, 128,  NAN, VECTOR( 2, 128, 128, 128)

/* Within a capability, rows with a model precede the row without one. */
const struct chip chips[] = {
    /*                   fp64  tf32  fp16  bf16   fp8    fp4  int8 */
    {VOLTA,     TENSOR(  0,    0,  512,    0,    0,     0,    0), NULL},
    {TURING,    TENSOR(  0,    0,    0,    0,    0,     0,    0), "GeForce GTX 16*"},
    {TURING,    TENSOR(  0,    0,  256,    0,    0,     0, 1024), "GeForce RTX 20*"},
    {TURING,    TENSOR(  0,    0,  512,    0,    0,     0, 1024), "Quadro RTX*"},
    {TURING,    TENSOR(  0,    0,  512,    0,    0,     0, 1024), "T4"},
    {TURING,    TENSOR(  0,    0,  NAN,    0,    0,     0,  NAN), NULL},
    {AMPERE,    TENSOR( 64,  512, 1024, 1024,    0,     0, 2048), NULL},
    {AMPERE_86, TENSOR(NAN,  128,  256,  256,    0,     0, 1024), "GeForce RTX 30*"},
    {AMPERE_86, TENSOR(NAN,  256,  512,  512,    0,     0, 1024), "RTX A6000"},
    {AMPERE_86, TENSOR(NAN,  256,  512,  512,    0,     0, 1024), "A40"},
    {AMPERE_86, TENSOR(NAN,  256,  512,  512,    0,     0, 1024), "A10"},
    {AMPERE_86, TENSOR(NAN,  NAN,  NAN,  NAN,    0,     0,  NAN), NULL},
    {ADA,       TENSOR(NAN,  128,  256,  256,  512,     0, 1024), "GeForce RTX 40*"},
    {ADA,       TENSOR(NAN,  256,  512,  512, 1024,     0, 1024), "RTX 6000 Ada*"},
    {ADA,       TENSOR(NAN,  256,  512,  512, 1024,     0, 1024), "L40S"},
    {ADA,       TENSOR(NAN,  128,  256,  256,  512,     0,  512), "L40"},
    {ADA,       TENSOR(NAN,  256,  512,  512, 1024,     0, 1024), "L4"},
    {ADA,       TENSOR(NAN,  NAN,  NAN,  NAN,  NAN,     0,  NAN), NULL},
    {HOPPER,    TENSOR(128, 1024, 2048, 2048, 4096,     0, 4096), NULL},
    {BLACKWELL, TENSOR( 64, 2048, 4096, 4096, 8192, 16384, 8192), NULL},
    {RTX_120,   TENSOR(NAN,  128,  256,  256,  512,  2048, 1024), "GeForce RTX 50*"},
    {RTX_120,   TENSOR(NAN,  256,  512,  512, 1024,  2048, 1024), "RTX PRO 6000 Blackwell*"},
    {RTX_120,   TENSOR(NAN,  NAN,  NAN,  NAN,  NAN,   NAN,  NAN), NULL},
    {0},
};

const struct chip_product chip_products[] = {
    {"Tesla V100-SXM2",                              70,  80, 1.530e9,  0.877e9, 4096},
    {"NVIDIA GeForce RTX 2080 Ti",                   75,  68, 1.635e9,  7.000e9,  352},
    {"Tesla T4",                                     75,  40, 1.590e9,  5.001e9,  256},
    {"NVIDIA A100-SXM4-40GB",                        80, 108, 1.410e9,  1.215e9, 5120},
    {"NVIDIA GeForce RTX 3090",                      86,  82, 1.695e9,  9.751e9,  384},
    {"NVIDIA A40",                                   86,  84, 1.740e9,  7.251e9,  384},
    {"NVIDIA GeForce RTX 4090",                      89, 128, 2.520e9, 10.501e9,  384},
    {"NVIDIA L4",                                    89,  58, 2.040e9,  6.251e9,  192},
    {"NVIDIA L40",                                   89, 142, 2.490e9,  9.001e9,  384},
    {"NVIDIA L40S",                                  89, 142, 2.520e9,  9.001e9,  384},
    {"NVIDIA H100 80GB HBM3",                        90, 132, 1.980e9,  2.619e9, 5120},
    {"NVIDIA H100 PCIe",                             90, 114, 1.755e9,  1.593e9, 5120},
    {"NVIDIA H100 NVL",                              90, 132, 1.785e9,  2.619e9, 6016},
    {"NVIDIA H200",                                  90, 132, 1.980e9,  3.201e9, 6016},
    {"NVIDIA B200",                                 100, 148, 1.860e9,  3.996e9, 8192},
    {"NVIDIA GeForce RTX 5090",                     120, 170, 2.407e9, 14.001e9,  512},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, 188, 2.617e9, 14.001e9, 512},
    {0},
};
/* clang-format on */
static const struct chip unknown = {
    "",   0, NAN, NAN, NAN, VECTOR(NAN, NAN, NAN, NAN), TENSOR(NAN, NAN, NAN, NAN, NAN, NAN, NAN),
    NULL,
};

/* Whether the name contains the pattern's words as whole words. If the pattern ends with "*", the
 * last word may be longer. */
static bool name_has(const char *name, const char *pattern)
{
    size_t length = strcspn(pattern, "*");
    bool open = pattern[length] == '*';
    for (const char *at = name; *at; ++at)
        if ((at == name || at[-1] == ' ') && strncmp(at, pattern, length) == 0 &&
            (open || at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

const struct chip *chip_find(int capability, const char *name)
{
    for (const struct chip *chip = chips; chip->architecture; ++chip)
        if (chip->capability == capability && (!chip->model || name_has(name, chip->model)))
            return chip;
    return &unknown;
}

struct theory chip_theory(const struct chip *chip, int multiprocessors, double clock,
                          double memory_clock, double bus_bits)
{
    /* FLOPs of a multiply-add; transfers per clock of double data rate memory */
    const double flops = 2.0, transfers = 2.0, byte_bits = 8.0;
    double cycles = clock * multiprocessors; /* SM cycles per second, all SMs together */
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

struct theory chip_product_theory(const struct chip_product *product)
{
    return chip_theory(chip_find(product->capability, product->name), product->multiprocessors,
                       product->clock, product->memory_clock, product->bus_bits);
}
