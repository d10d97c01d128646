/* The table of architectures, against the check values of the design and the products' quoted
 * peaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "model/roofline.h"
#include "worker/cuda/gpu/chip.h"

/* Products: what CUDA says of them. */
enum product { V100, V100_PAPER, A100, H100, H200, B200, PRODUCTS };
static const struct {
    int capability, multiprocessors;
    double clock, memory_clock, bus_bits;
} products[PRODUCTS] = {
    [V100] = {70, 80, 1.53e9, 0.877e9, 4096},        /* SXM2 */
    [V100_PAPER] = {70, 80, 1.312e9, 0.877e9, 4096}, /* at the clock that the paper assumes */
    [A100] = {80, 108, 1.41e9, 1.215e9, 5120},       /* SXM4, 40 GB */
    [H100] = {90, 132, 1.83e9, 2.619e9, 5120},       /* SXM5 */
    [H200] = {90, 132, 1.98e9, 3.201e9, 6016},       [B200] = {100, 148, 1.86e9, 3.996e9, 8192},
};

static struct theory theory_of(enum product product)
{
    return chip_theory(chip_find(products[product].capability), products[product].multiprocessors,
                       products[product].clock, products[product].memory_clock,
                       products[product].bus_bits);
}

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.6g is not %.6g", value, expected);
}

enum side { VECTOR, TENSOR };

/* Tolerance: half of the last digit that is quoted. */
static const struct {
    enum product product;
    enum side side;
    enum precision precision;
    double quoted, tolerance;
} peaks[] = {
    {V100, VECTOR, PRECISION_FP64, 7.8e12, 0.05e12},
    {V100, VECTOR, PRECISION_FP32, 15.7e12, 0.05e12},
    {V100, TENSOR, PRECISION_FP16, 125e12, 0.5e12},
    {V100_PAPER, TENSOR, PRECISION_FP16, 107.479e12, 0.0005e12},
    {A100, VECTOR, PRECISION_FP64, 9.7e12, 0.05e12},
    {A100, VECTOR, PRECISION_FP32, 19.5e12, 0.05e12},
    {A100, VECTOR, PRECISION_FP16, 78e12, 0.5e12},
    {A100, VECTOR, PRECISION_BF16, 39e12, 0.5e12},
    {A100, TENSOR, PRECISION_FP64, 19.5e12, 0.05e12},
    {A100, TENSOR, PRECISION_TF32, 156e12, 0.5e12},
    {A100, TENSOR, PRECISION_FP16, 312e12, 0.5e12},
    {A100, TENSOR, PRECISION_BF16, 312e12, 0.5e12},
    {A100, TENSOR, PRECISION_INT8, 624e12, 0.5e12},
    {H100, TENSOR, PRECISION_TF32, 494.7e12, 0.05e12},
    {H100, TENSOR, PRECISION_FP16, 989.4e12, 0.05e12},
    {H100, TENSOR, PRECISION_BF16, 989.4e12, 0.05e12},
    {H100, TENSOR, PRECISION_FP8, 1978.9e12, 0.05e12},
    {H100, TENSOR, PRECISION_INT8, 1978.9e12, 0.05e12},
    {H200, VECTOR, PRECISION_FP32, 66.9e12, 0.05e12},
    {H200, VECTOR, PRECISION_FP64, 33.5e12, 0.05e12},
    {H200, TENSOR, PRECISION_FP64, 66.9e12, 0.05e12},
    {B200, TENSOR, PRECISION_FP16, 2.25e15, 0.01e15},
    {B200, TENSOR, PRECISION_FP8, 4.5e15, 0.02e15},
    {B200, TENSOR, PRECISION_INT8, 4.5e15, 0.02e15},
};

static void peaks_are_the_quoted_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; ++i) {
        enum product product = peaks[i].product;
        const struct chip *chip = chip_find(products[product].capability);
        struct theory theory = theory_of(product);
        bool tensor = peaks[i].side == TENSOR;
        double peak = (tensor ? theory.tensor : theory.vector)[peaks[i].precision];
        double rate = (tensor ? chip->tensor : chip->vector)[peaks[i].precision];
        assert_near(peak, peaks[i].quoted, peaks[i].tolerance);
        assert_near(peak,
                    roofline_peak(products[product].multiprocessors, rate, products[product].clock),
                    1e-9 * peak);
    }
}

static const struct {
    enum product product;
    double dram, l1, l2; /* byte s-1; NAN: not stated */
} bandwidths[] = {
    {V100, 898e9, 80 * 128 * 1.53e9, 2048 * 1.53e9},
    {A100, 1555e9, 108 * 128 * 1.41e9, 5120 * 1.41e9},
    {H100, 3352e9, 132 * 128 * 1.83e9, NAN},
    {H200, 4814e9, 132 * 128 * 1.98e9, NAN},
    {B200, 8184e9, 148 * 128 * 1.86e9, NAN},
};

static void bandwidths_are_the_quoted_ones(void **state)
{
    (void)state;
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

/* The paper's V100, with the bandwidth that it measured. */
static void machine_balance_is_the_papers(void **state)
{
    (void)state;
    const double measured = 828.8e9;
    struct theory theory = theory_of(V100_PAPER);
    assert_near(roofline_balance(theory.tensor[PRECISION_FP16], measured), 129.68, 0.005);
}

static void what_a_chip_has_not_is_missing(void **state)
{
    (void)state;
    assert_true(chip_find(70)->tensor[PRECISION_TF32] == 0.0);
    assert_true(isnan(theory_of(V100).tensor[PRECISION_TF32]));
    assert_true(isnan(theory_of(V100).vector[PRECISION_BF16]));
    assert_true(isnan(theory_of(A100).tensor[PRECISION_FP8]));
    assert_true(isnan(theory_of(H100).vector[PRECISION_INT8]));
    for (int i = 0; i < PRECISION_COUNT; ++i)
        assert_true(isnan(theory_of(H100).vector[i]) || isnan(theory_of(H100).tensor[i]) ||
                    theory_of(H100).tensor[i] > theory_of(H100).vector[i]);
}

static void an_unknown_chip_is_all_unknown(void **state)
{
    (void)state;
    struct theory theory = chip_theory(chip_find(999), 100, 1e9, 1e9, 1024);
    assert_true(isnan(chip_find(999)->tensor[PRECISION_FP16]));
    assert_true(isnan(theory.tensor[PRECISION_FP16]));
    assert_true(isnan(theory.vector[PRECISION_FP32]));
    assert_true(isnan(theory.bandwidth[LEVEL_L1]));
    assert_true(isnan(theory.shared_read));
    assert_near(theory.bandwidth[LEVEL_DRAM], 256e9, 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_are_the_quoted_ones),
        cmocka_unit_test(bandwidths_are_the_quoted_ones),
        cmocka_unit_test(machine_balance_is_the_papers),
        cmocka_unit_test(what_a_chip_has_not_is_missing),
        cmocka_unit_test(an_unknown_chip_is_all_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
