/* Tiles out of kernels' names, as libraries give them, and what products become in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "results/kernel_tile.h"
#include "sample.h"

static struct kernel named(const char *name)
{
    struct kernel kernel;
    fields_clear(kernel_fields, &kernel);
    snprintf(kernel.name, sizeof kernel.name, "%s", name);
    return kernel;
}

static void names_tell(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t extents[3];
    } cases[] = {
        {"nvjet_sm90_hsh_8x64_64x16_4x2_h_bz_TNN", {8, 64, 64}},
        {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma",
         {32, 32, 8}},
        {"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nt_align1>(Params)", {128, 32, 8}},
        {"void wgrad_alg0_engine_NHWC<float, 128, 5, 5, 3, 3, 3, false, 512>(int)", {32, 32, 8}},
        {"void explicit_convolve_sgemm<__half, int, 128, 6, 7, 3, 3, 5, 0, false>(int, int)",
         {64, 128, 8}},
        {"void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false>(int)",
         {32, 32, 8}},
        {"void sgemm_largek_lds64<true, false, 5, 5, 4, 4, 4, 34>(float*)", {32, 32, 16}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct kernel kernel = named(cases[i].name);
        struct kernel_tile tile;
        assert_true(kernel_tile_of(&kernel, &tile));
        assert_memory_equal(tile.extents, cases[i].extents, sizeof tile.extents);
        assert_int_equal(tile.blocks, 0);
        assert_int_equal(tile.cluster, 1);
    }
}

static void others_do_not(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "nchwToNhwcKernel<__half, __half, float, false, true>",
        "void RNN_blockPersist_fp_LSTM<__half, __half, float, 32>(__half const*)",
        "dgrad_engine",
        "dgrad_engine<float, 512>",
        "dgrad_engine<float, 512, 0, 5, 3>",
        "dgrad_engine<float, 16, 5, 5, 3>",
        "dgrad_engine<float, 512, 9, 5, 3>",
        "sgemm_largek_lds64<true, false>",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        struct kernel kernel = named(names[i]);
        struct kernel_tile tile = {{7, 7, 7}, 7, 7};
        assert_false(kernel_tile_of(&kernel, &tile));
        assert_int_equal(tile.extents[0] + tile.blocks, 14);
    }
}

static struct products shaped(int64_t first, int64_t second, int64_t third)
{
    const int64_t sizes[3] = {first, second, third};
    struct products products = {.count = 1, .parts = 1};
    for (int i = 0; i < 3; ++i)
        products.ways[0][i] = (struct extent){sizes[i], 0, 1.0, NULL};
    return products;
}

static void products_grow(void **state)
{
    (void)state;
    struct products shape = shaped(4096, 64, 576);
    struct kernel_tile tile = {{64, 128, 8}, 784, 1}, small = {{64, 64, 8}, 784, 1};
    assert_true(kernel_tile_fits(&tile, &shape, 2.0)); /* 64 filters become 128 */
    assert_true(kernel_tile_fits(&tile, &shape, 1.0)); /* the other way round they need none */
    assert_false(kernel_tile_fits(&tile, &shape, 1.5));
    assert_true(kernel_tiles_fit((struct kernel_tile[]){tile, small}, 2, &shape, 3, 4.0));
    assert_false(kernel_tiles_fit((struct kernel_tile[]){small, small}, 2, &shape, 3, 4.0));
    assert_int_equal(kernel_tile_padded(65, 64), 128);
    assert_int_equal(kernel_tile_padded(0, 64), 0);
}

/* As counted on an H200: 9 tiles of results become 10 in clusters of 5, with 11 blocks for each, and 12
 * in clusters of 6, with 8. */
static void clusters_are_whole(void **state)
{
    (void)state;
    struct products shape = shaped(100352, 64, 576);
    struct kernel_tile five = {{64, 64, 64}, 110, 5}, six = {{64, 64, 64}, 96, 6};
    assert_true(kernel_tile_fits_in_clusters(&five, &shape, 10.0 / 9));
    assert_true(kernel_tile_fits_in_clusters(&six, &shape, 12.0 / 9));
    assert_false(kernel_tile_fits(&five, &shape, 10.0 / 9));
    assert_false(kernel_tile_fits_in_clusters(&five, &shape, 12.0 / 9));
    five.blocks = 117; /* as clusters of 3 have them */
    assert_false(kernel_tile_fits_in_clusters(&five, &shape, 10.0 / 9));
    five.blocks = 0;
    assert_false(kernel_tile_fits_in_clusters(&five, &shape, 10.0 / 9));
    six.cluster = 1;
    assert_false(kernel_tile_fits_in_clusters(&six, &shape, 12.0 / 9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell),
        cmocka_unit_test(others_do_not),
        cmocka_unit_test(products_grow),
        cmocka_unit_test(clusters_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
