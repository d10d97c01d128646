/* Checks the metric tables against CUPTI itself, for every chip that it knows, without a GPU. */
#include "unit.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cupti_version.h>

#include "cupti_chips.h"
#include "worker/cuda/profiling/metric_set.h"
#include "worker/cuda/profiling/formulas.h"

/* Chips that CUPTI lists but refuses, or whose counters are incomplete in this version. */
static const char *const refused[] = {
    "GV11B",
#if CUPTI_API_VERSION < 27 /* CUDA 12.8: DRAM */
    "GB202",
    "GB203",
    "GB205",
#elif CUPTI_API_VERSION < 130000 /* CUDA 12.9: L2 */
    "GB20B",
#endif
};

/* Largest number of passes: without tensors, and with one tensor precision. The test counts passes
 * without the device's availability image, which can only lower the number. */
enum { PASSES_MOST = 3, PASSES_MOST_WITH_TENSOR = 4 };
static const struct {
    const char *family;
    size_t passes, with_tensor;
} exceptions[] = {{"GV100", 5, 5}, {"GB11x", 2, 6}, {"GR100", 2, 6}};

static const char *name_of(int quantity)
{
    return quantity < QUANTITY_ACTIVITY    ? quantity_name[quantity]
           : quantity < QUANTITY_PEAK_DRAM ? activity_name[quantity - QUANTITY_ACTIVITY]
                                           : "a peak per second";
}

static bool is_refused(const char *chip)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
        if (strcmp(refused[i], chip) == 0)
            return true;
    return false;
}

/* From CUDA 13.2 on CUPTI needs a driver to list chips; 13.2 itself crashes without one. */
static bool cupti_answers(void)
{
    if (CUPTI_API_VERSION < 130200)
        return true;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
    return init && init(0) == 0;
}

static void chips_known(const char *const **chips, size_t *count)
{
    cupti_chips(chips, count);
    assert_true(*count > 0);
}

static void test_every_chip_has_a_table(void **state)
{
    const char *const *chips;
    size_t count;
    chips_known(&chips, &count);
    for (size_t i = 0; i < count; ++i)
        if (!is_refused(chips[i]) && !chip_family_find(chips[i]))
            fail_msg("chip %s is in no table", chips[i]);
}

static void test_every_quantity_is_mapped_or_absent(void **state)
{
    for (const struct chip_family *family = chip_families; family->name; ++family)
        for (int quantity = 0; quantity < QUANTITY_COUNT; ++quantity)
            if (!family->formula[quantity])
                fail_msg("%s says nothing about %s", family->name, name_of(quantity));
}

static void test_every_metric_exists(void **state)
{
    const char *const *chips;
    size_t count;
    chips_known(&chips, &count);
    for (size_t i = 0; i < count; ++i) {
        const struct chip_family *family = is_refused(chips[i]) ? NULL : chip_family_find(chips[i]);
        for (int quantity = 0; family && quantity < QUANTITY_COUNT; ++quantity)
            for (const struct formula_term *term = family->formula[quantity]; term->metric;
                 ++term) {
                struct metric_set set = {.metrics = {term->metric}, .count = 1};
                CUptiResult code = metric_set_open(&set, chips[i], NULL);
                if (code != CUPTI_SUCCESS)
                    fail_msg("%s: %s needs %s: CUPTI error %d", chips[i], name_of(quantity),
                             term->metric, code);
                metric_set_close(&set);
            }
    }
}

static size_t passes_of(const char *chip, const struct chip_family *family,
                        const bool wanted[QUANTITY_COUNT])
{
    struct metric_set set = {.count = 0};
    set.count = formulas_metrics(family, wanted, set.metrics);
    assert_true(set.count < FORMULAS_METRICS_MAX);
    assert_int_equal(metric_set_open(&set, chip, NULL), CUPTI_SUCCESS);
    metric_set_close(&set);
    return set.passes;
}

static void check_passes(const char *chip, const struct chip_family *family)
{
    bool wanted[QUANTITY_COUNT];
    size_t most = PASSES_MOST, most_with_tensor = PASSES_MOST_WITH_TENSOR;
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; ++i)
        if (strcmp(family->name, exceptions[i].family) == 0) {
            most = exceptions[i].passes;
            most_with_tensor = exceptions[i].with_tensor;
        }
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        wanted[i] = i >= QUANTITY_ACTIVITY;
    size_t of_activities = passes_of(chip, family, wanted);
    if (of_activities > QUANTITY_ACTIVITY_PASSES)
        fail_msg("%s: activities take %zu passes, %d are allowed", chip, of_activities,
                 QUANTITY_ACTIVITY_PASSES);
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        wanted[i] = !quantity_tensor((enum quantity)i) && i < QUANTITY_ACTIVITY;
    size_t passes = passes_of(chip, family, wanted);
    if (passes > most)
        fail_msg("%s: FLOPs and bytes take %zu passes, %zu are allowed", chip, passes, most);
    for (int tensor = QUANTITY_TENSOR_FP64; tensor <= QUANTITY_TENSOR_INT8; ++tensor) {
        wanted[tensor] = true;
        passes = passes_of(chip, family, wanted);
        if (passes > most_with_tensor)
            fail_msg("%s: with %s they take %zu passes, %zu are allowed", chip,
                     quantity_name[tensor], passes, most_with_tensor);
        wanted[tensor] = false;
    }
}

static void test_passes_stay_within_budget(void **state)
{
    const char *const *chips;
    size_t count;
    chips_known(&chips, &count);
    for (size_t i = 0; i < count; ++i)
        if (!is_refused(chips[i]) && chip_family_find(chips[i]))
            check_passes(chips[i], chip_family_find(chips[i]));
}

static void test_unknown_names_are_refused(void **state)
{
    struct metric_set set = {.metrics = {"sm__no_such_metric.sum"}, .count = 1};
    assert_int_not_equal(metric_set_open(&set, "GH100", NULL), CUPTI_SUCCESS);
    assert_int_not_equal(metric_set_open(&set, "XX999", NULL), CUPTI_SUCCESS);
    assert_null(chip_family_find("XX999"));
}

/* Counts are thread instructions, except those of type_hfma2, which are warp instructions. */
static void test_formulas(void **state)
{
    static const struct {
        const char *chip;
        enum quantity quantity;
        struct {
            const char *metric; /* part of the metric's name; other metrics are 0 */
            double value;
        } counted[3];
        double expected;
    } rows[] = {
        {"GA100",
         QUANTITY_VECTOR_FP32,
         {{"_op_ffma_", 1000}, {"_op_fadd_", 7}, {"_op_fmul_", 5}},
         2012},
        {"GB100",
         QUANTITY_VECTOR_FP32,
         {{"_op_ffma2_", 10}, {"_op_fadd2_", 3}, {"_op_ffma_", 1}},
         48},
        {"GH100", QUANTITY_TENSOR_FP16, {{"src_fp16", 4096}}, 4096},
        {"GA100", QUANTITY_TENSOR_FP16, {{"dst_fp16", 1}, {"dst_fp32", 2}}, 3},
        {"GH100", QUANTITY_L2_WRITE, {{"_op_write", 2}, {"_op_atom", 1}}, 96},
        {"GH100", QUANTITY_L1_READ, {{"l1tex__t_bytes.", 100}, {"_global_op_st", 30}}, 70},
        {"TU116", QUANTITY_TENSOR_FP16, {{"src_fp16", 1}}, NAN},
        {"GA100", QUANTITY_ACTIVITY + ACTIVITY_ISSUE, {{"issue_active", 85}}, 0.85},
        {"GH100", QUANTITY_ACTIVITY + ACTIVITY_STALL_GMMA, {{"_gmma", 12}}, 12},
        {"GB202", QUANTITY_ACTIVITY + ACTIVITY_STALL_GMMA, {{"_gmma", 12}}, NAN},
        {"GB202", QUANTITY_VECTOR_FP16, {{"_op_hfma_", 1}}, NAN},
        {"GH100", QUANTITY_VECTOR_FP64, {{"_op_dfma_", NAN}}, NAN},
        {"GV100", QUANTITY_VECTOR_FP16, {{"_op_hfma_", 10}, {"_op_hmul_", 1}}, 42},
        /* 20 constants loaded with HFMA2.MMA and no real FMA */
        {"GH100", QUANTITY_VECTOR_FP16, {{"_op_hfma_", 640}, {"type_hfma2", 20}}, 0},
        /* 100 packed FMAs, half of them on the tensor pipe, and 20 constants */
        {"GH100", QUANTITY_VECTOR_FP16, {{"_op_hfma_", 3840}, {"type_hfma2", 70}}, 12800},
        /* 100 scalar FMAs, none on the tensor pipe */
        {"GA100", QUANTITY_VECTOR_FP16, {{"_op_hfma_", 3200}}, 12800},
        /* a warp with idle threads must not give a negative count */
        {"GA100", QUANTITY_VECTOR_FP16, {{"_op_hfma_", 100}, {"type_hfma2", 20}}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        bool wanted[QUANTITY_COUNT] = {false};
        const char *metrics[FORMULAS_METRICS_MAX];
        double values[FORMULAS_METRICS_MAX] = {0};
        const struct chip_family *family = chip_family_find(rows[i].chip);
        wanted[rows[i].quantity] = true;
        size_t count = formulas_metrics(family, wanted, metrics);
        for (size_t j = 0; j < count; ++j)
            for (size_t k = 0; k < 3 && rows[i].counted[k].metric; ++k)
                if (strstr(metrics[j], rows[i].counted[k].metric))
                    values[j] = rows[i].counted[k].value;
        double value = formulas_evaluate(family, rows[i].quantity, metrics, values, count);
        assert_true(isnan(rows[i].expected) ? isnan(value) : value == rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(test_every_quantity_is_mapped_or_absent),
        cmocka_unit_test(test_formulas),
    };
    const struct CMUnitTest asking_cupti[] = {
        cmocka_unit_test(test_every_chip_has_a_table),
        cmocka_unit_test(test_every_metric_exists),
        cmocka_unit_test(test_passes_stay_within_budget),
        cmocka_unit_test(test_unknown_names_are_refused),
    };
    int failed = cmocka_run_group_tests(alone, NULL, NULL);
    if (cupti_answers())
        return failed + cmocka_run_group_tests(asking_cupti, NULL, NULL);
    puts("skipped: from CUDA 13.2 on CUPTI needs a driver to list its chips");
    return failed ? failed : 77;
}
