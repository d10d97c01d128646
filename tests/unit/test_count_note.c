/* Reasons are given where a record shows them, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <math.h>

#include "results/count_note.h"
#include "sample.h"

/* Counted so many times what is modelled, by the unit itself; dram as modelled. */
static struct record counted(const char *text, enum unit unit, double times)
{
    struct record r = sample_record(text, "", "s1-0", 0);
    struct config config;
    struct error error;
    assert_ok(config_parse(text, &config, &error), &error);
    enum precision precision = config_precision(&config);
    r.unit = unit;
    r.flops_counted = times * r.flops_model;
    (unit == UNIT_TENSOR ? r.flops_tensor : r.flops_vector)[precision] = r.flops_counted;
    r.bytes_read[LEVEL_DRAM] = r.bytes_counted[LEVEL_DRAM] = r.bytes_model;
    return r;
}

static void add_kernel(struct record *record, const char *name, double flops, double dram)
{
    struct kernel kernels[8];
    struct error error;
    size_t count = record->kernel_count;
    if (count > 0)
        memcpy(kernels, record->kernels, count * sizeof *kernels);
    fields_clear(kernel_fields, &kernels[count]);
    snprintf(kernels[count].name, sizeof kernels[count].name, "%s", name);
    kernels[count].flops_counted = flops;
    kernels[count].bytes_counted[LEVEL_DRAM] = dram;
    assert_ok(record_set_kernels(record, kernels, count + 1, &error), &error);
}

static void expect(struct record *record, const char *expected)
{
    char text[COUNT_NOTE_TEXT];
    struct device device = gpu_device();
    count_note(record, &device, text);
    assert_string_equal(text, expected);
    record_clear(record);
}

static void silent_without_need(void **state)
{
    (void)state;
    static const double times[] = {0.9, 1.0, 1.1, NAN};
    for (size_t i = 0; i < sizeof times / sizeof *times; ++i) {
        struct record r = counted("conv2d", UNIT_VECTOR, times[i]);
        strcpy(r.algorithm, "winograd");
        expect(&r, "");
    }
    struct record none = sample_record("conv2d", "", "s1-0", 0);
    expect(&none, "");
}

static void algorithms_explain(void **state)
{
    (void)state;
    struct record r = counted("conv2d", UNIT_VECTOR, 0.5);
    strcpy(r.algorithm, "winograd-nonfused");
    expect(&r, "FLOPs: counted is 0.5 times the model: Winograd's algorithm multiplies less");
    r = counted("conv2d", UNIT_VECTOR, 0.5);
    add_kernel(&r, "void fft2d_r2c_32x32<float>(...)", NAN, NAN);
    expect(&r, "FLOPs: counted is 0.5 times the model: Fourier transforms stand for multiply-adds");
    r = counted("conv2d", UNIT_VECTOR, 1.7); /* Winograd explains nothing that is more */
    strcpy(r.algorithm, "winograd");
    expect(&r, "FLOPs: counted is 1.7 times the model: not explained");
}

/* A maximum is no FLOP to counters, and a sigmoid is several. */
static void conventions_explain(void **state)
{
    (void)state;
    struct record r = counted("elementwise operation=relu", UNIT_VECTOR, 0.0);
    expect(&r,
           "FLOPs: counted is 0 times the model: "
           "a maximum is one FLOP in the model and none to counters, which see the factors that "
           "a library scales with");
    r = counted("elementwise operation=sigmoid", UNIT_VECTOR, 2.0);
    expect(&r, "FLOPs: counted is 2 times the model: a sigmoid is one FLOP in the model; counters "
               "see the additions and multiplications that it is made of");
    r = counted("elementwise operation=add", UNIT_VECTOR, 4.0);
    expect(&r, "FLOPs: counted is 4 times the model: a sum is one FLOP in the model; counters also "
               "see the factors that a library scales with");
    r = counted("elementwise operation=scale", UNIT_VECTOR, 2.0);
    expect(&r, "FLOPs: counted is 2 times the model: not explained");
}

/* Of 512 queries and keys 131328 pairs are seen; 10 of 16 tiles of 128 x 128 have some of them. */
static void masks_explain(void **state)
{
    (void)state;
    const char *text = "attention causal=yes sequence=512 keys=512 precision=fp16";
    struct record r = counted(text, UNIT_TENSOR, 512.0 * 512.0 / 131328.0);
    expect(&r, "FLOPs: counted is 2 times the model: "
               "all pairs of a query and a key are computed, seen or not");
    r = counted(text, UNIT_TENSOR, 10.0 * 128.0 * 128.0 / 131328.0);
    expect(&r, "FLOPs: counted is 1.25 times the model: as much as tiles of 128 queries or keys "
               "need, not all of which are seen");
    r = counted(text, UNIT_TENSOR, 2.5);
    expect(&r, "FLOPs: counted is 2.5 times the model: not explained");
    r = counted("attention precision=fp32", UNIT_VECTOR, 1.2);
    expect(&r, "FLOPs: counted is 1.2 times the model: the softmax is no FLOP in the model");
    r = counted("attention causal=yes sequence=512 keys=512 precision=fp32", UNIT_VECTOR, 2.2);
    expect(&r, "FLOPs: counted is 2.2 times the model: all pairs of a query and a key are "
               "computed, seen or not, and the softmax is no FLOP in the model");
    r = counted("attention precision=fp16", UNIT_TENSOR, 1.05);
    strcpy(r.algorithm, "three-steps algo-66 algo-66");
    r.bytes_read[LEVEL_DRAM] = r.bytes_counted[LEVEL_DRAM] = 17.0 * r.bytes_model;
    expect(&r, "dram bytes: counted is 17 times the model: the scores are written and read between "
               "its steps; the model has them in a kernel");
}

/* 4 x 4 pixels, 3 x 3 taps, padding 1: 10 of 12 pairs lie inside on each axis. */
static void padding_zeros_are_left_out(void **state)
{
    (void)state;
    const char *text = "conv2d height=4 width=4 kernel=3 padding=1";
    struct record r = counted(text, UNIT_VECTOR, 100.0 / 144.0);
    expect(&r, "FLOPs: counted is 0.694 times the model: "
               "0.306 of the multiply-adds are with padding zeros; left out");
    r = counted(text, UNIT_VECTOR, 0.75);
    expect(&r, "FLOPs: counted is 0.75 times the model: not explained");
    /* 5 pixels, stride 2, dilation 2, padding 2: 3 outputs meet 2, 3 and 2 of 3 taps. */
    r = counted("conv2d height=5 width=5 kernel=3 padding=2 stride=2 dilation=2", UNIT_VECTOR,
                49.0 / 81.0);
    expect(&r, "FLOPs: counted is 0.605 times the model: "
               "0.395 of the multiply-adds are with padding zeros; left out");
}

static void channels_explain(void **state)
{
    (void)state;
    struct record r = counted("conv2d channels=3 precision=fp16", UNIT_TENSOR, 8.0 / 3.0);
    expect(&r, "FLOPs: counted is 2.67 times the model: "
               "as much as 64 filters padded to 64 and 3 channels padded to 8 need");
    /* 3 and 3 to 4 and 8, or to 8 and 4: nobody knows. */
    r = counted("conv2d channels=3 filters=3 precision=fp16", UNIT_TENSOR, 32.0 / 9.0);
    expect(&r, "FLOPs: counted is 3.56 times the model: not explained");
}

static void tiles_explain(void **state)
{
    (void)state;
    struct record r;
    r = counted("conv2d precision=fp16", UNIT_TENSOR, 1.37); /* nothing there to pad */
    expect(&r, "FLOPs: counted is 1.37 times the model: not explained");
    r = counted("conv2d filters=40 precision=fp16", UNIT_TENSOR, 64.0 / 40.0);
    add_kernel(&r, "sm90_xmma_fprop_implicit_gemm_f16f16_nhwc_tilesize128x64x32_warpgroupsize1x1x1",
               NAN, NAN);
    expect(&r, "FLOPs: counted is 1.6 times the model: "
               "as much as a kernel's tiles of 128 x 64 x 32 need");
    /* 72 in a row are 128 in tiles of 64 of a kernel of our own, and 70 filters are 128. */
    r = counted("conv2d channels=8 filters=70 precision=fp16", UNIT_TENSOR,
                128.0 / 72.0 * 128.0 / 70.0);
    add_kernel(&r, "void conv2d_wgmma<group_128x64x64, __half>(__half*, __half const*)", NAN, NAN);
    expect(&r, "FLOPs: counted is 3.25 times the model: "
               "as much as a kernel's tiles of 128 x 64 x 64 need");
    /* Widths 32 and 16 to 64 each; beside the products there are 4 FLOPs a unit and step. */
    r = counted("lstm precision=fp16", UNIT_TENSOR, 1.0);
    r.flops_counted = r.flops_tensor[PRECISION_FP16] =
        128.0 / 48.0 * (r.flops_model - 4.0 * 16 * 16 * 16);
    add_kernel(&r, "elemWiseRNNcell<__half>", NAN, NAN);
    add_kernel(&r, "nvjet_sm90_hsh_64x8_64x16_1x2_h_bz_NNT", NAN, NAN);
    expect(&r, "FLOPs: counted is 2.64 times the model: "
               "as much as a kernel's tiles of 64 x 8 x 64 need");
    r = counted("matmul m=200 n=96 k=64 precision=fp16", UNIT_TENSOR, 256.0 / 200 * 128 / 96);
    add_kernel(&r, "nvjet_sm90_hsh_128x256_64x4_2x1_v_bz_NNN", NAN, NAN);
    expect(&r, "FLOPs: counted is 1.71 times the model: "
               "as much as a kernel's tiles of 128 x 256 x 64 need");
    r = counted("shared-loop", UNIT_VECTOR, 1.5); /* no product */
    add_kernel(&r, "loop_128x256_64", NAN, NAN);
    expect(&r, "FLOPs: counted is 1.5 times the model: not explained");
}

/* As counted on an H200: 31/12 of the products, because widths 32 and 16 become 64 and the first of
 * 16 steps has no recurrent product; in a backward pass 47/24, which no one tile explains. */
static void recurrent_products_explain(void **state)
{
    (void)state;
    const double cells = 16.0 * 16 * 16, products = 8.0 * 48 * cells;
    struct record r = counted("lstm precision=fp16", UNIT_TENSOR, 1.0);
    r.flops_tensor[PRECISION_FP16] = 31.0 / 12.0 * products;
    r.flops_counted = r.flops_tensor[PRECISION_FP16] + 58.0 * cells;
    add_kernel(&r, "nvjet_sm90_hsh_8x64_64x16_4x2_h_bz_TNN", NAN, NAN);
    add_kernel(&r, "nvjet_sm90_hsh_64x8_64x16_1x4_h_bz_TNT", NAN, NAN);
    expect(&r, "FLOPs: counted is 2.71 times the model: "
               "as much as a kernel's tiles of 8 x 64 x 64 need");
    r = counted("lstm precision=fp16 pass=backward", UNIT_TENSOR, 1.0);
    r.flops_tensor[PRECISION_FP16] = 47.0 / 24.0 * 2.0 * products;
    r.flops_counted = r.flops_tensor[PRECISION_FP16] + 60.0 * cells;
    add_kernel(&r, "nvjet_sm90_hsh_64x8_64x16_1x4_h_bz_TNT", NAN, NAN);
    expect(&r,
           "FLOPs: counted is 1.97 times the model: the tensor units do 1.96 times the products, "
           "the vector units 60 for each unit and step; not explained further");
}

/* A filter's 9 taps of 64 channels, 576 in a row, are 640 in tiles of 128. */
static void taps_explain(void **state)
{
    (void)state;
    struct record r =
        counted("conv2d precision=fp16 pass=backward-filter", UNIT_TENSOR, 640.0 / 576);
    add_kernel(&r, "sm90_xmma_wgrad_implicit_gemm_f16f16_nhwc_tilesize64x128x64_warpgroupsize1x1x1",
               NAN, NAN);
    expect(&r, "FLOPs: counted is 1.11 times the model: "
               "as much as a kernel's tiles of 64 x 128 x 64 need");
}

/* As counted on an H200: 16 channels become 32 in one gradient's tiles; the other's 9 taps of 16
 * channels, 144 in a row, become 160; forward there is nothing to pad. */
static void parts_explain(void **state)
{
    (void)state;
    static const char *const forward =
        "void convolve_common_engine_float_NHWC<float, float, 1024, 5, 5, 3, 3, 3, true, false>()";
    static const char *const data = "sm80_xmma_dgrad_implicit_gemm_f32f32_tilesize32x32x8_stage3";
    static const char *const filter =
        "void wgrad_alg0_engine_NHWC<float, 128, 5, 5, 3, 3, 3, false, 512>(int, int)";
    const char *shape = "conv2d batch=16 height=32 width=32 channels=16 filters=32 stride=1 "
                        "precision=fp32";
    char text[WORKLOAD_TEXT];
    snprintf(text, sizeof text, "%s pass=backward-filter", shape);
    struct record r = counted(text, UNIT_VECTOR, 1.1121);
    add_kernel(&r, filter, NAN, NAN);
    expect(&r, "FLOPs: counted is 1.11 times the model: as much as a kernel's tiles of 32 x 32 x 8 "
               "need");
    snprintf(text, sizeof text, "%s pass=backward", shape);
    r = counted(text, UNIT_VECTOR, 1.5621);
    add_kernel(&r, "void nhwcToNchwKernel<float, float, float, true>(int)", NAN, NAN);
    add_kernel(&r, data, NAN, NAN);
    add_kernel(&r, filter, NAN, NAN);
    expect(&r, "FLOPs: counted is 1.56 times the model: as much as the tiles of its parts' kernels "
               "need: 32 x 32 x 8, 32 x 32 x 8");
    snprintf(text, sizeof text, "%s pass=training bias=yes activation=relu", shape);
    r = counted(text, UNIT_VECTOR, 1.373);
    add_kernel(&r, forward, NAN, NAN);
    add_kernel(&r, data, NAN, NAN);
    add_kernel(&r, filter, NAN, NAN);
    expect(&r, "FLOPs: counted is 1.37 times the model: as much as the tiles of its parts' kernels "
               "need: 32 x 32 x 8, 32 x 32 x 8, 32 x 32 x 8");
    snprintf(text, sizeof text, "%s pass=backward", shape);
    r = counted(text, UNIT_VECTOR, 1.3); /* no tiles of these fit */
    add_kernel(&r, data, NAN, NAN);
    add_kernel(&r, filter, NAN, NAN);
    expect(&r, "FLOPs: counted is 1.3 times the model: not explained");
}

/* 7 x 7 pixels of products in fp16 whose sums are in fp32: (19 / 21) squared of them meet the image. */
static void wide_sums_explain(void **state)
{
    (void)state;
    struct record r =
        counted("conv2d height=7 width=7 stride=1 precision=fp16 implementation=plain", UNIT_VECTOR,
                0.8186);
    r.flops_vector[PRECISION_FP32] = r.flops_counted;
    r.flops_vector[PRECISION_FP16] = 0.0;
    expect(&r,
           "FLOPs: counted is 0.819 times the model: 0.181 of the multiply-adds are with padding "
           "zeros; left out");
    r = counted("norm operation=layer precision=fp16 implementation=plain", UNIT_VECTOR, 1.14);
    expect(&r,
           "FLOPs: counted is 1.14 times the model: sums across threads, differences that are made "
           "twice, quotients and roots are no FLOPs in the model");
}

static void vector_units_explain(void **state)
{
    (void)state;
    struct record r = counted("conv2d precision=fp16", UNIT_TENSOR, 1.0);
    r.flops_vector[PRECISION_FP32] = 0.25 * r.flops_model;
    r.flops_counted *= 1.25;
    expect(&r, "FLOPs: counted is 1.25 times the model: "
               "the tensor units do 1 times the products, the vector units the rest");
}

/* 16 x 16 steps of 16 units. */
static void gates_explain(void **state)
{
    (void)state;
    struct record r = counted("lstm", UNIT_VECTOR, 1.0);
    double gates = 100.0 * 16 * 16 * 16, products = r.flops_model - 4.0 * 16 * 16 * 16;
    add_kernel(&r, "gemmSN_TN_kernel<float>", products, NAN);
    add_kernel(&r, "elemWiseRNNcell<float>", gates, NAN);
    r.flops_counted = r.flops_vector[PRECISION_FP32] = products + gates;
    expect(&r, "FLOPs: counted is 1.25 times the model: "
               "elementwise kernels of the gates do 100 for each unit and step, the model 4");
    r = counted("lstm", UNIT_VECTOR, 1.25); /* not counted by kernel */
    add_kernel(&r, "elemWiseRNNcell<float>", NAN, NAN);
    expect(&r, "FLOPs: counted is 1.25 times the model: not explained");
}

static void conversions_move_bytes(void **state)
{
    (void)state;
    struct record r = counted("conv2d layout=nchw", UNIT_VECTOR, 1.0);
    r.bytes_counted[LEVEL_DRAM] = 3.0 * r.bytes_model;
    add_kernel(&r, "implicit_gemm", 1.0, r.bytes_model);
    add_kernel(&r, "nchwToNhwcKernel<float>", 0.0, 1.5 * r.bytes_model);
    add_kernel(&r, "nhwcToNchwKernel<float>", 0.0, 0.5 * r.bytes_model);
    expect(&r, "dram bytes: counted is 3 times the model: "
               "kernels that convert the layout move 2 times the model, all others 1");
    r = counted("conv2d layout=nchw", UNIT_VECTOR, 1.0);
    r.bytes_counted[LEVEL_DRAM] = 3.0 * r.bytes_model;
    add_kernel(&r, "nchwToNhwcKernel<float>", NAN, NAN);
    expect(&r, "dram bytes: counted is 3 times the model: "
               "kernels that convert the layout ran; kernels = yes would show their part");
    r = counted("conv2d", UNIT_VECTOR, 1.0);
    r.bytes_counted[LEVEL_DRAM] = 3.0 * r.bytes_model;
    expect(&r, "dram bytes: counted is 3 times the model: not explained");
}

static struct record moving(const char *text, double bytes)
{
    struct record r = counted(text, UNIT_VECTOR, 1.0);
    r.bytes_read[LEVEL_DRAM] = r.bytes_counted[LEVEL_DRAM] = r.bytes_model + bytes;
    add_kernel(&r, "im2col4d_kernel<float>", 0.0, NAN);
    add_kernel(&r, "explicit_convolve_sgemm<float>", r.flops_model, NAN);
    return r;
}

/* Twice: written, and read. */
static void workspaces_move_bytes(void **state)
{
    (void)state;
    const char *text = "conv2d height=56 width=56 cache=cold";
    const double size = 160e6, model = counted(text, UNIT_VECTOR, 1.0).bytes_model;
    char expected[COUNT_NOTE_TEXT];
    static const struct {
        double moved, size;
        const char *kernel; /* besides */
        bool explained;
    } cases[] = {
        {1.98, 1.0, NULL, true},     {0.6, 1.0, NULL, true},
        {0.4, 1.0, NULL, false},     {2.5, 1.0, NULL, false},
        {1.98, 0.0, NULL, false},    {16.0, 1.0, "fft2d_r2c_32x32<float>", true},
        {16.0, 0.0, "fft2d", false}, {0.02, 1.0, "fft2d", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record r = moving(text, cases[i].moved * size);
        r.workspace = cases[i].size * size;
        if (cases[i].kernel)
            add_kernel(&r, cases[i].kernel, 0.0, NAN);
        int used = snprintf(
            expected, sizeof expected,
            "dram bytes: counted is %.3g times the model: ", 1.0 + cases[i].moved * size / model);
        if (cases[i].explained)
            snprintf(
                expected + used, sizeof expected - (size_t)used,
                "its kernels hand over results%s in a workspace of 160 MB; %.3g times that is moved",
                cases[i].moved > 2.1 ? " of one tile after the other" : "", cases[i].moved);
        else
            snprintf(expected + used, sizeof expected - (size_t)used, "not explained");
        expect(&r, expected);
    }
}

static void results_are_added_to(void **state)
{
    (void)state;
    struct record r = counted("conv2d layout=nchw pass=backward-data", UNIT_VECTOR, 1.0);
    r.bytes_counted[LEVEL_DRAM] = 2.0 * r.bytes_model;
    add_kernel(&r, "scalePackedTensor_kernel<float>", 0.0, NAN);
    add_kernel(&r, "dgrad_engine<float>", r.flops_model, NAN);
    expect(&r, "dram bytes: counted is 2 times the model: a kernel sets the result to zero, and "
               "another adds to it");
}

/* 201 MB in fp32, of which an L2 of 50 MB holds a part. */
static void products_read_again(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
        double read, written; /* of all tensors */
    } cases[] = {
        {"matmul m=4096 n=4096 k=4096",
         "its kernel reads 342 MB from dram and writes 67.1 MB to l2, of tensors of 201 MB: l2 does "
         "not hold them",
         1.7, 1.0 / 3.0},
        {"matmul m=4096 n=4096 k=4096",
         "its kernel reads 161 MB from dram and writes 67.1 MB to l2, of tensors of 201 MB: l2 does "
         "not hold them",
         0.8, 1.0 / 3.0},
        {"matmul m=4096 n=4096 k=4096", "not explained", 0.7, 1.0 / 3.0},
        {"matmul m=256 n=256 k=256", "not explained", 1.7, 1.0 / 3.0},
    };
    char expected[COUNT_NOTE_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record r = counted(cases[i].text, UNIT_VECTOR, 1.0);
        r.bytes_read[LEVEL_DRAM] = cases[i].read * r.footprint;
        r.bytes_written[LEVEL_L2] = cases[i].written * r.footprint;
        r.bytes_counted[LEVEL_DRAM] = 2.0 * r.bytes_model;
        add_kernel(&r, "gemm", r.flops_model, NAN);
        snprintf(expected, sizeof expected, "dram bytes: counted is 2 times the model: %s",
                 cases[i].reason);
        expect(&r, expected);
    }
}

static void devices_write(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
        double written; /* byte */
    } cases[] = {
        {"lstm cache=hot", "262 kB of it are the device's own writes, which come now and then",
         262144},
        {"lstm cache=hot", "not explained", 400e3},
        {"lstm cache=hot", "not explained", 30e3},
        {"lstm cache=hot batch=4096 hidden=256", "not explained", 262144},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char expected[COUNT_NOTE_TEXT];
        struct record r = counted(cases[i].text, UNIT_VECTOR, 1.0);
        r.bytes_written[LEVEL_DRAM] = cases[i].written;
        r.bytes_counted[LEVEL_DRAM] = r.bytes_model * 1.2 + cases[i].written;
        add_kernel(&r, "RNN_step", r.flops_model, NAN);
        snprintf(expected, sizeof expected, "dram bytes: counted is %.3g times the model: %s",
                 r.bytes_counted[LEVEL_DRAM] / r.bytes_model, cases[i].reason);
        expect(&r, expected);
    }
}

static void code_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *cache, *reason;
        size_t kernels;
        double beyond; /* byte, beyond the model */
    } cases[] = {
        {"cold", "a cold cache reads the code of its 2 kernels, too: at least 30 kB for each", 2,
         60e3},
        {"cold", "a cold cache reads its kernel's code, too: at least 27 kB", 1, 27e3},
        {"cold", "not explained", 1, 70e3},
        {"cold", "not explained", 0, 27e3},
        {"hot", "not explained", 2, 60e3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[128], expected[COUNT_NOTE_TEXT];
        snprintf(text, sizeof text, "lstm batch=16 features=32 hidden=16 cache=%s", cases[i].cache);
        struct record r = counted(text, UNIT_VECTOR, 1.0);
        r.bytes_counted[LEVEL_DRAM] += cases[i].beyond;
        for (size_t j = 0; j < cases[i].kernels; ++j)
            add_kernel(&r, j > 0 ? "RNN_step" : "gemm", r.flops_model, NAN);
        snprintf(expected, sizeof expected, "dram bytes: counted is %.3g times the model: %s",
                 r.bytes_counted[LEVEL_DRAM] / r.bytes_model, cases[i].reason);
        expect(&r, expected);
    }
}

static void caches_save_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
        double counted; /* of the model */
    } cases[] = {
        {"conv2d cache=hot batch=2", "hot cache: l2 holds all tensors", 0.2},
        {"conv2d cache=hot batch=16", "hot cache: l2 still holds a part of the tensors", 0.85},
        {"conv2d cache=cold", "not explained", 0.5},
    };
    char expected[COUNT_NOTE_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record r = counted(cases[i].text, UNIT_VECTOR, 1.0);
        r.bytes_read[LEVEL_DRAM] = r.bytes_counted[LEVEL_DRAM] = cases[i].counted * r.bytes_model;
        snprintf(expected, sizeof expected, "dram bytes: counted is %.3g times the model: %s",
                 cases[i].counted, cases[i].reason);
        expect(&r, expected);
    }
    struct record r = counted("conv2d cache=cold", UNIT_VECTOR, 1.0);
    r.bytes_read[LEVEL_DRAM] = r.bytes_counted[LEVEL_DRAM] = 0.5 * r.bytes_model;
    r.bytes_written[LEVEL_L2] = 0.5 * r.bytes_model;
    expect(&r, "dram bytes: counted is 0.5 times the model: what was written is still in l2");
}

static void both_are_said(void **state)
{
    (void)state;
    struct record r = counted("conv2d", UNIT_VECTOR, 0.5);
    strcpy(r.algorithm, "winograd");
    r.bytes_counted[LEVEL_DRAM] = 2.0 * r.bytes_model;
    expect(&r, "FLOPs: counted is 0.5 times the model: Winograd's algorithm multiplies less; "
               "dram bytes: counted is 2 times the model: not explained");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conventions_explain),
        cmocka_unit_test(masks_explain),
        cmocka_unit_test(silent_without_need),
        cmocka_unit_test(algorithms_explain),
        cmocka_unit_test(padding_zeros_are_left_out),
        cmocka_unit_test(channels_explain),
        cmocka_unit_test(tiles_explain),
        cmocka_unit_test(parts_explain),
        cmocka_unit_test(wide_sums_explain),
        cmocka_unit_test(recurrent_products_explain),
        cmocka_unit_test(taps_explain),
        cmocka_unit_test(vector_units_explain),
        cmocka_unit_test(gates_explain),
        cmocka_unit_test(conversions_move_bytes),
        cmocka_unit_test(workspaces_move_bytes),
        cmocka_unit_test(results_are_added_to),
        cmocka_unit_test(products_read_again),
        cmocka_unit_test(devices_write),
        cmocka_unit_test(code_is_read),
        cmocka_unit_test(caches_save_bytes),
        cmocka_unit_test(both_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
