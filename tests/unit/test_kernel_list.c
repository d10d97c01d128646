/* The names of kernels beside an algorithm's: short, the most launched first, as many as fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "worker/gpu/search.h"

static void add(struct kernel_list *list, const char *symbol, int launches)
{
    for (int i = 0; i < launches; ++i)
        kernel_list_add(list, symbol);
}

/* As the driver has them. */
static void names_are_short(void **state)
{
    (void)state;
    static const struct {
        const char *symbol, *told;
    } cases[] = {
        {"nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_NNT", "nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_NNT"},
        {"_Z24RNN_blockPersist_fp_LSTMI6__halfS0_fLi32EEvPKT_PS1_", "RNN_blockPersist_fp_LSTM"},
        {"void RNN_blockPersist_bp_LSTM_FMA<float, float, float, 32>(args<float>)",
         "RNN_blockPersist_bp_LSTM_FMA"},
        {"_ZN7cutlass7Kernel2I31cutlass_80_simt_sgemm_128x32_8xEEvNT_6ParamsE",
         "cutlass_80_simt_sgemm_128x32_8x"},
        {"void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_nn_align1>(P)",
         "cutlass_80_simt_sgemm_64x64_8x5_nn_align1"},
        {"_Z20LSTM_elementWise_bp1IfffEvii", ""},
        {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::P)", ""},
        {"void elemWiseRNNcell<__half, __half, float, (cudnnRNNMode_t)3>(int, int)", ""},
        {"void persistRNN_addBias<float>(float*, float const*)", ""},
        {"void LSTM_dgrad_combine_dh_di<float>(float*)", ""},
        {"RNN_init_128x4(uint4*, int, unsigned int)", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct kernel_list list = {.count = 0};
        char text[128];
        kernel_list_add(&list, cases[i].symbol);
        kernel_list_format(&list, text, sizeof text);
        assert_string_equal(text, cases[i].told);
    }
}

static void the_most_launched_is_first(void **state)
{
    (void)state;
    struct kernel_list list = {.count = 0};
    char text[64];
    add(&list, "GENERIC_elementWise_bp2", 16);
    add(&list, "gemm_b", 1);
    add(&list, "gemm_a", 1);
    add(&list, "gemm_c", 15);
    kernel_list_format(&list, text, sizeof text);
    assert_string_equal(text, "gemm_c, gemm_a, gemm_b");
    kernel_list_format(&list, text, 20); /* and the dots */
    assert_string_equal(text, "gemm_c, gemm_a, ...");
    kernel_list_format(&list, text, 11);
    assert_string_equal(text, "");
}

static void there_is_room_for_so_many(void **state)
{
    (void)state;
    struct kernel_list list = {.count = 0};
    char name[KERNEL_LIST_NAME + 20], text[4 * KERNEL_LIST_NAME];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < KERNEL_LIST_MAX + 3; ++i) {
        name[0] = (char)('a' + i);
        kernel_list_add(&list, name);
    }
    assert_int_equal(list.count, KERNEL_LIST_MAX);
    kernel_list_format(&list, text, sizeof text);
    assert_int_equal(strlen(text), 3 * (KERNEL_LIST_NAME - 1) + 4 + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_short),
        cmocka_unit_test(the_most_launched_is_first),
        cmocka_unit_test(there_is_room_for_so_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
