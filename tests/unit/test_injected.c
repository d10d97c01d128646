/* What the injection library's lines say, as the worker reads them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "worker/program/handback.h"
#include "worker/program/injected.h"

static struct kernel kernel_of(const char *name, int64_t count)
{
    struct kernel kernel;
    fields_clear(kernel_fields, &kernel);
    snprintf(kernel.name, sizeof kernel.name, "%s", name);
    kernel.count = count;
    return kernel;
}

/* Of two launches of one kernel. */
static struct injected region_of(const char *name, bool graph)
{
    struct injected injected;
    injected_init(&injected);
    injected.kernels = malloc(sizeof *injected.kernels);
    injected.kernels[0] = kernel_of(name, 2);
    injected.kernel_count = 1;
    injected.launches = calloc(2, sizeof *injected.launches);
    injected.launches[1] = (struct launch){.start = 5, .end = 9, .correlation = 1};
    injected.launch_count = 2;
    injected.in_graphs = graph ? 2 : 0;
    return injected;
}

static void graphs_take_flops_from_the_same_kernels_without(void **state)
{
    (void)state;
    struct injected graph = region_of("a", true), plain = region_of("a", false);
    struct injected other = region_of("b", false), counted, one_by_one;
    struct record record;
    struct error error;
    injected_init(&counted);
    injected_init(&one_by_one);
    assert_true(injected_same_kernels(&graph, &plain) && !injected_same_kernels(&graph, &other));
    other.kernels[0] = kernel_of("a", 3);
    assert_false(injected_same_kernels(&graph, &other));
    counted.values[QUANTITY_VECTOR_FP32] = 0;
    counted.values[QUANTITY_TENSOR_FP16] = 100;
    one_by_one.values[QUANTITY_VECTOR_FP32] = 30;
    one_by_one.each = malloc(2 * sizeof *one_by_one.each);
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < QUANTITY_COUNT; ++j)
            one_by_one.each[i][j] = j == QUANTITY_VECTOR_FP32 ? 15 : NAN;
    one_by_one.each_count = 2;
    record_init(&record);
    assert_int_equal(injected_record_trace(&graph, 2, &record, &error), STATUS_OK);
    injected_ungraph(&graph, &counted, &plain, &one_by_one);
    injected_record_counts(&counted, &graph, 2, &record);
    assert_int_equal(record.counters.code, COUNTED_YES);
    assert_true(record.flops_vector[PRECISION_FP32] == 15 && record.flops_counted == 65);
    assert_true(record.kernels[0].flops_counted == 15);
    assert_true(isnan(record.kernels[0].bytes_counted[LEVEL_DRAM]));
    record_clear(&record);
    injected_clear(&graph);
    injected_clear(&plain);
    injected_clear(&other);
    injected_clear(&counted);
    injected_clear(&one_by_one);
}

static void copies_and_fills_are_told(void **state)
{
    (void)state;
    char folder[4096], path[4200];
    struct injected injected;
    struct record record;
    struct error error;
    assert_int_equal(handback_folder(folder, &error), STATUS_OK);
    snprintf(path, sizeof path, "%s/1.injected", folder);
    FILE *stream = fopen(path, "w");
    fputs("opened\ncopy 10 30 4000\ncopy 40 60 4000\nfill 5 10 256\nclosed 1\n", stream);
    fclose(stream);
    assert_int_equal(injected_read(folder, &injected, &error), STATUS_OK);
    handback_remove(folder);
    record_init(&record);
    assert_int_equal(injected_record_trace(&injected, 2, &record, &error), STATUS_OK);
    assert_true(record.memcpy_count == 1 && record.memcpy_bytes == 4000);
    assert_true(fabs(record.memcpy_time - 20e-9) < 1e-15);
    assert_true(record.memset_count == 1 && record.memset_bytes == 128);
    record_clear(&record);
    injected_clear(&injected);
}

static struct injected injected_of(double vector, double tensor, size_t in_graphs)
{
    struct injected injected = {.launch_count = 4, .in_graphs = in_graphs};
    for (int i = 0; i < QUANTITY_COUNT; ++i)
        injected.values[i] = 40;
    injected.values[QUANTITY_VECTOR_FP64] = injected.values[QUANTITY_VECTOR_FP16] = 0;
    injected.values[QUANTITY_VECTOR_FP32] = vector;
    injected.values[QUANTITY_TENSOR_FP16] = tensor;
    for (int i = QUANTITY_TENSOR_FP64; i <= QUANTITY_TENSOR_INT8; ++i)
        if (i != QUANTITY_TENSOR_FP16)
            injected.values[i] = NAN;
    return injected;
}

static void flops_in_graphs_are_missing_and_never_0(void **state)
{
    (void)state;
    struct record record;
    struct injected whole = injected_of(100, 1000, 0), graph = injected_of(0, 1000, 4);
    record_init(&record);
    injected_record_counts(&whole, &whole, 20, &record);
    assert_true(record.flops_counted == 55 && record.flops_vector[PRECISION_FP32] == 5);
    assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
    assert_true(record.bytes_counted[LEVEL_DRAM] == 4 && isnan(record.bytes_counted[LEVEL_L3]));
    assert_int_equal(record.counters.code, COUNTED_YES);
    record_clear(&record);
    injected_record_counts(&graph, &graph, 20, &record);
    assert_true(isnan(record.flops_counted) && isnan(record.flops_vector[PRECISION_FP32]));
    assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
    assert_true(record.bytes_counted[LEVEL_DRAM] == 4);
    assert_int_equal(record.counters.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(record.counters.reason, "4 of 4 kernels are launched by CUDA graphs"));
    record_clear(&record);
}

/* Of code that was unloaded vector FLOPs may be those of something else. */
static void flops_of_unloaded_code_are_missing(void **state)
{
    (void)state;
    struct record record;
    struct injected injected = injected_of(100, 1000, 0);
    injected.unloaded = true;
    record_init(&record);
    injected_record_counts(&injected, &injected, 20, &record);
    assert_true(isnan(record.flops_counted) && isnan(record.flops_vector[PRECISION_FP32]));
    assert_true(record.flops_tensor[PRECISION_FP16] == 50 && record.unit == UNIT_TENSOR);
    assert_true(record.bytes_counted[LEVEL_DRAM] == 4);
    assert_int_equal(record.counters.code, COUNTED_INCOMPLETE);
    assert_non_null(strstr(record.counters.reason, "unloads code"));
    record_clear(&record);
}

static void tensors_follow_from_the_precision(void **state)
{
    (void)state;
    assert_int_equal(injected_tensors(PRECISION_FP16), quantity_tensor(QUANTITY_TENSOR_FP16));
    assert_int_equal(injected_tensors(PRECISION_FP32), quantity_tensor(QUANTITY_TENSOR_TF32));
    assert_int_equal(injected_tensors(PRECISION_COUNT),
                     QUANTITY_ALL_TENSORS & ~quantity_tensor(QUANTITY_TENSOR_INT8));
}

static void lines_of_several_processes(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        bool good;
    } rows[] = {
        {"opened\nclosed 1\n", "refused 2 busy\n", true},
        {"refused 2 busy\n", "opened\nclosed 1\n", true},
        {"opened\nclosed 1\n", "opened\n", false},
        {"kernel 1 2\n", "", false},
        {"value 99 1\n", "", false},
        {"hello\n", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char folder[4096], path[4200];
        struct error error;
        struct injected injected;
        assert_int_equal(handback_folder(folder, &error), STATUS_OK);
        for (int file = 0; file < 2; ++file) {
            snprintf(path, sizeof path, "%s/%d.injected", folder, file);
            FILE *stream = fopen(path, "w");
            fputs(file ? rows[i].second : rows[i].first, stream);
            fclose(stream);
        }
        enum status status = injected_read(folder, &injected, &error);
        assert_int_equal(status, rows[i].good ? STATUS_OK : STATUS_FAILED);
        if (rows[i].good) {
            assert_int_equal(injected.region_count, 1);
            assert_int_equal(injected.refusal.code, OUTCOME_MISSING);
            injected_clear(&injected);
        }
        handback_remove(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_take_flops_from_the_same_kernels_without),
        cmocka_unit_test(copies_and_fills_are_told),
        cmocka_unit_test(flops_in_graphs_are_missing_and_never_0),
        cmocka_unit_test(flops_of_unloaded_code_are_missing),
        cmocka_unit_test(tensors_follow_from_the_precision),
        cmocka_unit_test(lines_of_several_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
