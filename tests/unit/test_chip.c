/* The table of architectures, against peaks that vendors quote for products. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/chip.h"
#include "chip_list.h"

#define V100         "Tesla V100-SXM2"
#define A100         "NVIDIA A100-SXM4-40GB"
#define H100         "NVIDIA H100 80GB HBM3"
#define H100_PCIE    "NVIDIA H100 PCIe"
#define H100_NVL     "NVIDIA H100 NVL"
#define H200         "NVIDIA H200"
#define B200         "NVIDIA B200"
#define RTX_2080_TI  "NVIDIA GeForce RTX 2080 Ti"
#define T4           "Tesla T4"
#define RTX_3090     "NVIDIA GeForce RTX 3090"
#define A40          "NVIDIA A40"
#define RTX_4090     "NVIDIA GeForce RTX 4090"
#define L4           "NVIDIA L4"
#define L40          "NVIDIA L40"
#define L40S         "NVIDIA L40S"
#define RTX_5090     "NVIDIA GeForce RTX 5090"
#define RTX_PRO_6000 "NVIDIA RTX PRO 6000 Blackwell Server Edition"

static const struct chip_product *product_of(const char *name)
{
    const struct chip_product *product = chip_products;
    while (product->name && strcmp(product->name, name) != 0)
        ++product;
    assert_non_null(product->name);
    return product;
}

static struct theory theory_of(const char *name)
{
    return chip_product_theory(product_of(name));
}

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.6g is not %.6g", value, expected);
}

enum side { VECTOR, TENSOR };

/* The vendor quotes vector units at 1.98 GHz and these tensor units at 1.83 GHz. */
#define H100_TENSOR (1.98 / 1.83)

/* The tolerance is half a unit of the last digit that the vendor quotes. */
static const struct {
    const char *product;
    enum side side;
    enum precision precision;
    double quoted, tolerance;
} peaks[] = {
    {V100, VECTOR, PRECISION_FP64, 7.8e12, 0.05e12},
    {V100, VECTOR, PRECISION_FP32, 15.7e12, 0.05e12},
    {V100, TENSOR, PRECISION_FP16, 125e12, 0.5e12},
    {A100, VECTOR, PRECISION_FP64, 9.7e12, 0.05e12},
    {A100, VECTOR, PRECISION_FP32, 19.5e12, 0.05e12},
    {A100, VECTOR, PRECISION_FP16, 78e12, 0.5e12},
    {A100, VECTOR, PRECISION_BF16, 39e12, 0.5e12},
    {A100, TENSOR, PRECISION_FP64, 19.5e12, 0.05e12},
    {A100, TENSOR, PRECISION_TF32, 156e12, 0.5e12},
    {A100, TENSOR, PRECISION_FP16, 312e12, 0.5e12},
    {A100, TENSOR, PRECISION_BF16, 312e12, 0.5e12},
    {A100, TENSOR, PRECISION_INT8, 624e12, 0.5e12},
    {H100, TENSOR, PRECISION_TF32, H100_TENSOR * 494.7e12, 0.1e12},
    {H100, TENSOR, PRECISION_FP16, H100_TENSOR * 989.4e12, 0.1e12},
    {H100, TENSOR, PRECISION_BF16, H100_TENSOR * 989.4e12, 0.1e12},
    {H100, TENSOR, PRECISION_FP8, H100_TENSOR * 1978.9e12, 0.1e12},
    {H100, TENSOR, PRECISION_INT8, H100_TENSOR * 1978.9e12, 0.1e12},
    {H100, VECTOR, PRECISION_FP32, 66.9e12, 0.05e12},
    {H100, VECTOR, PRECISION_FP64, 33.5e12, 0.05e12},
    {H100_PCIE, VECTOR, PRECISION_FP32, 51.2e12, 0.05e12},
    {H100_NVL, VECTOR, PRECISION_FP32, 60.3e12, 0.05e12},
    {H200, VECTOR, PRECISION_FP32, 66.9e12, 0.05e12},
    {H200, VECTOR, PRECISION_FP64, 33.5e12, 0.05e12},
    {H200, TENSOR, PRECISION_FP64, 66.9e12, 0.05e12},
    {B200, TENSOR, PRECISION_FP16, 2.25e15, 0.01e15},
    {B200, TENSOR, PRECISION_FP8, 4.5e15, 0.02e15},
    {B200, TENSOR, PRECISION_FP4, 9e15, 0.05e15},
    {B200, TENSOR, PRECISION_INT8, 4.5e15, 0.02e15},
    {RTX_2080_TI, TENSOR, PRECISION_FP16, 56.9e12, 0.05e12},
    {RTX_2080_TI, TENSOR, PRECISION_INT8, 227.7e12, 0.05e12},
    {T4, TENSOR, PRECISION_FP16, 65e12, 0.5e12},
    {T4, TENSOR, PRECISION_INT8, 130e12, 0.5e12},
    {RTX_3090, TENSOR, PRECISION_TF32, 35.6e12, 0.05e12},
    {RTX_3090, TENSOR, PRECISION_FP16, 71e12, 0.5e12},
    {RTX_3090, TENSOR, PRECISION_INT8, 284e12, 1e12},
    {A40, TENSOR, PRECISION_TF32, 74.8e12, 0.05e12},
    {A40, TENSOR, PRECISION_BF16, 149.7e12, 0.05e12},
    {A40, TENSOR, PRECISION_INT8, 299.3e12, 0.05e12},
    {RTX_4090, TENSOR, PRECISION_TF32, 82.6e12, 0.05e12},
    {RTX_4090, TENSOR, PRECISION_BF16, 165.2e12, 0.05e12},
    {RTX_4090, TENSOR, PRECISION_FP8, 330.3e12, 0.05e12},
    {RTX_4090, TENSOR, PRECISION_INT8, 660.6e12, 0.05e12},
    {L4, TENSOR, PRECISION_FP16, 121e12, 0.5e12},
    {L40, TENSOR, PRECISION_FP16, 181.05e12, 0.05e12},
    {L40, TENSOR, PRECISION_FP8, 362e12, 0.5e12},
    {L40S, TENSOR, PRECISION_TF32, 183e12, 0.5e12},
    {L40S, TENSOR, PRECISION_FP8, 733e12, 0.5e12},
    {RTX_5090, TENSOR, PRECISION_TF32, 104.8e12, 0.05e12},
    {RTX_5090, TENSOR, PRECISION_FP16, 209.5e12, 0.05e12},
    {RTX_5090, TENSOR, PRECISION_FP8, 419e12, 0.5e12},
    {RTX_5090, TENSOR, PRECISION_FP4, 1676e12, 0.5e12},
    {RTX_5090, TENSOR, PRECISION_INT8, 838e12, 0.5e12},
    {RTX_PRO_6000, TENSOR, PRECISION_FP16, 503.8e12, 0.05e12},
    {RTX_PRO_6000, TENSOR, PRECISION_FP4, 2e15, 0.05e15},
};

TEST(peaks_are_the_quoted_ones)
{
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; ++i) {
        const struct chip_product *product = product_of(peaks[i].product);
        const struct chip *chip = chip_find(product->capability, product->name);
        struct theory theory = chip_product_theory(product);
        bool tensor = peaks[i].side == TENSOR;
        double peak = (tensor ? theory.tensor : theory.vector)[peaks[i].precision];
        double rate = (tensor ? chip->tensor : chip->vector)[peaks[i].precision];
        assert_near(peak, peaks[i].quoted, peaks[i].tolerance);
        assert_near(peak, 2 * product->multiprocessors * rate * product->clock, 1e-9 * peak);
        assert_near(rate, exp2(round(log2(rate))), 0); /* as roofsweep-post requires */
    }
}

static const struct {
    const char *product;
    double dram, l1, l2; /* byte s-1; NAN: the vendor gives no value */
} bandwidths[] = {
    {V100, 898e9, 80 * 128 * 1.53e9, 2048 * 1.53e9},
    {A100, 1555e9, 108 * 128 * 1.41e9, 5120 * 1.41e9},
    {H100, 3352e9, 132 * 128 * 1.98e9, NAN},
    {H100_PCIE, 2039e9, 114 * 128 * 1.755e9, NAN},
    {H100_NVL, 3939e9, 132 * 128 * 1.785e9, NAN},
    {H200, 4814e9, 132 * 128 * 1.98e9, NAN},
    {B200, 8184e9, 148 * 128 * 1.86e9, NAN},
};

TEST(bandwidths_are_the_quoted_ones)
{
    for (size_t i = 0; i < sizeof bandwidths / sizeof *bandwidths; ++i) {
        struct theory theory = theory_of(bandwidths[i].product);
        assert_near(theory.bandwidth[LEVEL_DRAM], bandwidths[i].dram, 0.5e9);
        assert_near(theory.bandwidth[LEVEL_L1], bandwidths[i].l1, 1.0);
        assert_near(theory.shared_read, bandwidths[i].l1, 1.0);
        assert_true(isnan(theory.bandwidth[LEVEL_L3]));
        if (isnan(bandwidths[i].l2))
            assert_true(isnan(theory.bandwidth[LEVEL_L2]));
        else
            assert_near(theory.bandwidth[LEVEL_L2], bandwidths[i].l2, 1.0);
    }
}

/* The paper's V100, at the paper's clock, with the paper's measured bandwidth. */
TEST(machine_balance_is_the_papers)
{
    const double measured = 828.8e9;
    struct theory theory = chip_theory(chip_find(70, ""), 80, 1.312e9, 0.877e9, 4096);
    assert_near(theory.tensor[PRECISION_FP16], 107.479e12, 0.0005e12);
    assert_near(theory.tensor[PRECISION_FP16] / measured, 129.68, 0.005);
}

TEST(units_that_a_chip_lacks_are_missing)
{
    assert_true(chip_find(70, "")->tensor[PRECISION_TF32] == 0.0);
    assert_true(isnan(theory_of(V100).tensor[PRECISION_TF32]));
    assert_true(isnan(theory_of(V100).vector[PRECISION_BF16]));
    assert_true(isnan(theory_of(A100).tensor[PRECISION_FP8]));
    assert_true(isnan(theory_of(H100).vector[PRECISION_INT8]));
    for (const struct chip *chip = chips; chip->architecture; ++chip)
        assert_true((chip->tensor[PRECISION_FP4] == 0.0) == (chip->capability < 100));
    assert_true(isnan(theory_of(H200).tensor[PRECISION_FP4]));
    for (int i = 0; i < PRECISION_COUNT; ++i)
        assert_true(isnan(theory_of(H100).vector[i]) || isnan(theory_of(H100).tensor[i]) ||
                    theory_of(H100).tensor[i] > theory_of(H100).vector[i]);
}

/* Products with one chip can differ in rates by a factor of 2. */
TEST(products_of_one_chip_have_own_rates)
{
    static const struct {
        int capability;
        const char *name;
        double fp16; /* multiply-adds a clock */
    } names[] = {
        {75, "NVIDIA GeForce GTX 1660 Ti", 0},
        {75, "NVIDIA T400 4GB", NAN},
        {75, "Quadro RTX 6000", 512},
        {86, "NVIDIA A10", 512},
        {86, "NVIDIA A10G", NAN},
        {86, "NVIDIA GeForce RTX 3080 Laptop GPU", 256},
        {89, "NVIDIA L40S", 512},
        {89, "NVIDIA L40", 256},
        {89, "NVIDIA RTX 6000 Ada Generation", 512},
        {89, "NVIDIA RTX 4000 Ada Generation", NAN},
        {90, "whatever", 2048},
        {120, "NVIDIA RTX PRO 5000 Blackwell", NAN},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        double rate = chip_find(names[i].capability, names[i].name)->tensor[PRECISION_FP16];
        if (!(rate == names[i].fp16 || (isnan(rate) && isnan(names[i].fp16))))
            fail_msg("%s: %g", names[i].name, rate);
    }
}

TEST(an_unknown_chip_is_all_unknown)
{
    struct theory theory = chip_theory(chip_find(999, ""), 100, 1e9, 1e9, 1024);
    assert_true(isnan(chip_find(999, "")->tensor[PRECISION_FP16]));
    assert_true(isnan(theory.tensor[PRECISION_FP16]));
    assert_true(isnan(theory.vector[PRECISION_FP32]));
    assert_true(isnan(theory.bandwidth[LEVEL_L1]));
    assert_true(isnan(theory.shared_read));
    assert_near(theory.bandwidth[LEVEL_DRAM], 256e9, 1.0);
}

/* ---- --list chips ---- */

static char *printed(void)
{
    char *text;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    chip_list_print(stream);
    fclose(stream);
    return text;
}

TEST(the_text_has_rates_and_peaks)
{
    static const char *const lines[] = {
        "Ampere               8.6 A10                     ",
        "      ?    256    512    512      -      -   1024\n",
        "   9.7   19.5   78.0   39.0   19.5    156    312    312      -      -    624\n",
    };
    char *text = printed();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i)
        if (!strstr(text, lines[i]))
            fail_msg("no line '%s' in:\n%s", lines[i], text);
    free(text);
}
