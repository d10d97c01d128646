#include "cuda_internal.h"

#include <math.h>

/* Sources: CUDA C++ Programming Guide, "Arithmetic Instructions" (vector rates); the architecture
 * whitepapers (dense tensor rates, checked against the products' quoted peaks, e.g. A100: 108 SMs
 * at 1.41 GHz and 1024 give 312 TFLOP/s). GeForce and RTX chips of one capability differ in their
 * tensor rates: NaN. */
#define RATES(fp64, fp32, tf32, fp16, bf16)                                                        \
    {                                                                                              \
        [PRECISION_FP64] = fp64, [PRECISION_FP32] = fp32, [PRECISION_TF32] = tf32,                 \
        [PRECISION_FP16] = fp16, [PRECISION_BF16] = bf16                                           \
    }

static const struct chip chips[] = {
    /* clang-format off */
    {75,   96 * 1024.0, RATES( 2,  64, 0, 128,   0), RATES(  0, 0,    0,  NAN,    0)},
    {80,  192 * 1024.0, RATES(32,  64, 0, 256, 128), RATES( 64, 0,  512, 1024, 1024)},
    {86,  128 * 1024.0, RATES( 2, 128, 0, 128, 128), RATES(NAN, 0,  NAN,  NAN,  NAN)},
    {89,  128 * 1024.0, RATES( 2, 128, 0, 128, 128), RATES(NAN, 0,  NAN,  NAN,  NAN)},
    {90,  256 * 1024.0, RATES(64, 128, 0, 256, 256), RATES(128, 0, 1024, 2048, 2048)},
    {100, 256 * 1024.0, RATES(64, 128, 0, 256, 256), RATES( 64, 0, 2048, 4096, 4096)},
    {120, 128 * 1024.0, RATES( 2, 128, 0, 128, 128), RATES(NAN, 0,  NAN,  NAN,  NAN)},
    /* clang-format on */
};
static const struct chip unknown = {0, NAN, RATES(NAN, NAN, 0, NAN, NAN),
                                    RATES(NAN, 0, NAN, NAN, NAN)};

const struct chip *chip_find(int capability)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; ++i)
        if (chips[i].capability == capability)
            return &chips[i];
    return &unknown;
}
