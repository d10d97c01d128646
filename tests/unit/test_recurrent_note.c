/* What is said of LSTM rows whose recurrence is one kernel of cuDNN: names, grids and FLOPs as an H200 gave
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "results/count_note.h"
#include "sample.h"

#define FP16_FORWARD "void RNN_blockPersist_fp_LSTM<__half, __half, float, 32>(__half const*)"
#define FP32_FORWARD "void RNN_blockPersist_fp_LSTM<float, float, float, 32>(float const*)"
#define HMMA_FORWARD                                                                               \
    "void RNN_blockPersist_fp_LSTM_HMMA<__half, __half, float, 1, 32>(__half const*)"
#define FP16_BACKWARD                                                                              \
    "void RNN_blockPersist_bp_LSTM_FMA<__half, __half, float, 32>(block_bp_args_lstm)"
#define FP32_BACKWARD                                                                              \
    "void RNN_blockPersist_bp_LSTM_FMA<float, float, float, 32>(block_bp_args_lstm)"
#define HMMA_BACKWARD                                                                              \
    "void RNN_blockPersist_bp_LSTM_HMMA<__half, __half, float, 64>(block_bp_args_lstm)"
#define TILE16      "void ampere_lstm_tile16<16, 1>(params_t)"
#define LARGEK      "void sgemm_largek_lds64<true, false, 5, 5, 4, 4, 4, 34>(float*, float const*)"
#define SM80_TN     "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma"
#define SM80_NN     "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma"
#define CUTLASS_128 "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nt_align1>(Params)"
#define CUTLASS_64  "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_nt_align1>(Params)"

#define PADS    "the recurrence's kernel pads 16 hidden to 32, "
#define OUTSIDE "products outside the recurrence are "

struct ran {
    const char *name;
    int64_t count, grid[3];
};

/* FLOPs are for each unit and step. */
static const struct measured {
    const char *text;
    enum unit unit;
    double vector, tensor;
    struct ran kernels[5];
    const char *note;
} rows[] = {
    {"lstm precision=fp16",
     UNIT_TENSOR,
     280.25,
     512,
     {{"nvjet_sm90_hsh_8x64_64x16_4x2_h_bz_TNN", 1, {8, 4, 1}}, {FP16_FORWARD, 1, {16, 1, 1}}},
     "2.04 times the model: " PADS "functions are 24.2 FLOPs for each unit and step, " OUTSIDE
     "2 times the model: whole tiles of 8 x 64 x 64"},
    {"lstm precision=fp16 features=64",
     UNIT_TENSOR,
     280.25,
     512,
     {{"nvjet_sm90_hsh_64x8_64x16_1x4_h_bz_TNT", 1, {4, 8, 1}}, {FP16_FORWARD, 1, {16, 1, 1}}},
     "1.23 times the model: " PADS "functions are 24.2 FLOPs for each unit and step, " OUTSIDE
     "as modelled"},
    /* 86 tiles of 24 become 88 in clusters of 4. */
    {"lstm precision=fp16 batch=128",
     UNIT_TENSOR,
     280.25,
     528,
     {{"nvjet_sm90_hsh_64x24_64x16_1x4_h_bz_TNT", 1, {4, 22, 1}}, {FP16_FORWARD, 1, {128, 1, 1}}},
     "2.08 times the model: " PADS "functions are 24.2 FLOPs for each unit and step, " OUTSIDE
     "2.06 times the model: whole tiles of 64 x 24 x 64"},
    {"lstm precision=fp16 hidden=32",
     UNIT_TENSOR,
     24.125,
     768,
     {{"nvjet_sm90_hsh_64x8_64x16_2x4_h_bz_TNT", 1, {8, 8, 1}}, {HMMA_FORWARD, 1, {2, 1, 1}}},
     "1.54 times the model: functions are 24.1 FLOPs for each unit and step, " OUTSIDE
     "2 times the model: whole tiles of 64 x 8 x 64"},
    {"lstm precision=fp16 hidden=128",
     UNIT_TENSOR,
     104.25,
     4672,
     {{"nvjet_sm90_hsh_64x24_64x16_2x4_h_bz_TNT", 1, {8, 12, 1}}, {TILE16, 1, {16, 1, 1}}},
     "3.72 times the model: the recurrence's kernel pads 128 hidden to 256, functions are 104 FLOPs "
     "for each unit and step, " OUTSIDE "2.25 times the model: whole tiles of 64 x 24 x 64"},
    {"lstm precision=fp16 hidden=256",
     UNIT_TENSOR,
     52.125,
     2624,
     {{"nvjet_sm90_hsh_48x64_64x15_4x2_h_bz_TNN", 1, {8, 12, 1}}, {TILE16, 1, {16, 1, 1}}},
     "1.16 times the model: functions are 52.1 FLOPs for each unit and step, " OUTSIDE
     "2.25 times the model: whole tiles of 48 x 64 x 64"},
    {"lstm precision=fp16 pass=backward",
     UNIT_TENSOR,
     547.67,
     1024,
     {{"void LSTM_elementWise_bp1<__half, __half, float>(int, int, __half*)", 1, {1, 1, 1}},
      {FP16_BACKWARD, 1, {16, 1, 1}},
      {"nvjet_sm90_hsh_64x8_64x16_1x4_h_bz_NNT", 1, {4, 8, 1}},
      {"nvjet_sm90_hsh_32x64_64x16_1x1_h_badd_NTN", 2, {1, 1, 1}}},
     "1.98 times the model: " PADS "functions are 35.7 FLOPs for each unit and step, " OUTSIDE
     "1.6 times the model: whole tiles of 64 x 8 x 64, 32 x 64 x 64"},
    /* PyTorch gives the state of the first step, whose product is one more. */
    {"lstm precision=fp16 pass=backward",
     UNIT_TENSOR,
     547.91,
     1088,
     {{FP16_BACKWARD, 1, {16, 1, 1}},
      {"nvjet_sm90_hsh_64x8_64x16_1x4_h_bz_NNT", 1, {4, 8, 1}},
      {"nvjet_sm90_hsh_32x64_64x16_1x1_h_badd_NTN", 3, {1, 1, 1}}},
     "2.06 times the model: " PADS "functions are 35.9 FLOPs for each unit and step, " OUTSIDE
     "1.7 times the model: whole tiles of 64 x 8 x 64, 32 x 64 x 64"},
    {"lstm precision=fp16 pass=backward hidden=64",
     UNIT_TENSOR,
     35.672,
     1792,
     {{HMMA_BACKWARD, 1, {2, 1, 1}},
      {"nvjet_sm90_hsh_64x8_64x16_1x4_h_bz_NNT", 1, {4, 8, 1}},
      {"nvjet_sm90_hsh_32x64_64x16_2x4_h_badd_NTN", 1, {8, 1, 1}},
      {"nvjet_sm90_hsh_32x64_64x16_1x4_h_badd_NTN", 1, {4, 1, 1}}},
     "1.17 times the model: functions are 35.7 FLOPs for each unit and step, " OUTSIDE
     "1.25 times the model: whole tiles of 64 x 8 x 64, 32 x 64 x 64"},
    {"lstm",
     UNIT_VECTOR,
     840.25,
     0,
     {{LARGEK, 1, {2, 8, 4}}, {FP32_FORWARD, 1, {16, 1, 1}}},
     "2.17 times the model: " PADS OUTSIDE
     "2.19 times the model: whole tiles of 32 x 32 x 16, scaling and sums of results"},
    {"lstm batch=64",
     UNIT_VECTOR,
     544.25,
     0,
     {{SM80_TN, 1, {32, 2, 1}}, {FP32_FORWARD, 1, {64, 1, 1}}},
     "1.4 times the model: " PADS OUTSIDE "1.03 times the model: scaling and sums of results"},
    {"lstm pass=backward",
     UNIT_VECTOR,
     2827.672,
     0,
     {{FP32_BACKWARD, 1, {16, 1, 1}}, {SM80_NN, 1, {8, 1, 1}}, {CUTLASS_128, 2, {2, 1, 3}}},
     "3.56 times the model: " PADS OUTSIDE
     "3.56 times the model: whole tiles of 32 x 32 x 8, 128 x 32 x 8"},
    {"lstm pass=backward batch=64",
     UNIT_VECTOR,
     2284.887,
     0,
     {{FP32_BACKWARD, 1, {64, 1, 1}},
      {SM80_NN, 1, {32, 1, 1}},
      {CUTLASS_128, 1, {2, 1, 3}},
      {CUTLASS_64, 1, {1, 1, 5}}},
     "2.87 times the model: " PADS OUTSIDE
     "2.71 times the model: whole tiles of 32 x 32 x 8, 128 x 32 x 8, 64 x 64 x 8"},
    /* Beside the recurrence more than whole tiles do. */
    {"lstm precision=fp16",
     UNIT_TENSOR,
     280.25,
     600,
     {{"nvjet_sm90_hsh_8x64_64x16_4x2_h_bz_TNN", 1, {8, 4, 1}}, {FP16_FORWARD, 1, {16, 1, 1}}},
     "2.27 times the model: " PADS "functions are 24.2 FLOPs for each unit and step, " OUTSIDE
     "2.34 times the model, not explained further"},
    /* More functions than this kernel does. */
    {"lstm precision=fp16",
     UNIT_TENSOR,
     290,
     512,
     {{"nvjet_sm90_hsh_8x64_64x16_4x2_h_bz_TNN", 1, {8, 4, 1}}, {FP16_FORWARD, 1, {16, 1, 1}}},
     "2.07 times the model: the tensor units do 1.33 times the products, the vector units 290 for each "
     "unit and step; not explained further"},
    /* What was not seen: two such kernels, two directions, another cell. */
    {"lstm",
     UNIT_VECTOR,
     840.25,
     0,
     {{LARGEK, 1, {2, 8, 4}}, {FP32_FORWARD, 2, {16, 1, 1}}},
     "2.17 times the model: not explained"},
    {"lstm directions=2",
     UNIT_VECTOR,
     840.25,
     0,
     {{LARGEK, 1, {2, 8, 4}}, {FP32_FORWARD, 1, {16, 1, 1}}},
     "2.17 times the model: not explained"},
    {"lstm cell=gru",
     UNIT_VECTOR,
     840.25,
     0,
     {{LARGEK, 1, {2, 8, 4}}, {FP32_FORWARD, 1, {16, 1, 1}}},
     "2.86 times the model: not explained"},
};

static double cells_of(const struct config *config)
{
    double cells = 1.0;
    static const char *const factors[] = {"batch", "sequence", "hidden", "directions"};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; ++i)
        cells *= (double)config_value(config, factors[i]).first;
    return cells;
}

static void kernels_set(struct record *record, const struct ran *ran, size_t count)
{
    struct kernel kernels[5];
    struct error error;
    size_t used = 0;
    for (; used < count && ran[used].name; ++used) {
        fields_clear(kernel_fields, &kernels[used]);
        snprintf(kernels[used].name, sizeof kernels[used].name, "%s", ran[used].name);
        kernels[used].count = ran[used].count;
        kernels[used].grid_x = ran[used].grid[0];
        kernels[used].grid_y = ran[used].grid[1];
        kernels[used].grid_z = ran[used].grid[2];
    }
    assert_ok(record_set_kernels(record, kernels, used, &error), &error);
}

static struct record record_of(const struct measured *row, const char *text)
{
    struct record r = sample_record(text, "", "s1-0", 0);
    struct config config;
    struct error error;
    assert_ok(config_parse(row->text, &config, &error), &error);
    double cells = cells_of(&config);
    r.unit = row->unit;
    r.flops_counted = cells * (row->vector + row->tensor);
    for (int i = 0; i < PRECISION_COUNT; ++i)
        r.flops_vector[i] = r.flops_tensor[i] = 0.0;
    r.flops_vector[PRECISION_FP32] = cells * row->vector;
    r.flops_tensor[PRECISION_FP16] = cells * row->tensor;
    r.bytes_read[LEVEL_DRAM] = r.bytes_counted[LEVEL_DRAM] = r.bytes_model;
    kernels_set(&r, row->kernels, sizeof row->kernels / sizeof *row->kernels);
    return r;
}

static void expect(struct record *record, const char *note)
{
    char text[COUNT_NOTE_TEXT], expected[COUNT_NOTE_TEXT];
    struct device device = gpu_device();
    snprintf(expected, sizeof expected, "FLOPs: counted is %s", note);
    count_note(record, &device, text);
    assert_string_equal(text, expected);
    record_clear(record);
}

static void rows_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct record r = record_of(&rows[i], rows[i].text);
        expect(&r, rows[i].note);
    }
}

/* The same kernels in a program that is modelled as such a layer. Its own FLOPs are of nothing known. */
static void programs_are_explained(void **state)
{
    (void)state;
    const char *program = "program command=\"python3 train.py\" modelled_as=lstm precision=fp16 "
                          "axes=\"precision=fp16\"";
    char text[WORKLOAD_TEXT];
    struct record r = record_of(&rows[0], program);
    expect(&r, rows[0].note);
    snprintf(text, sizeof text, "%s model_flops=1589248", program);
    r = record_of(&rows[0], text);
    expect(&r, "2.04 times the model: not explained");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_explained),
        cmocka_unit_test(programs_are_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
