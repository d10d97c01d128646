/* The CUDA worker's workloads refuse by the configuration and the chip alone, with the reason,
 * before any allocation and library call. */
#include "unit.h"

#include <string.h>

#include "parsed.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/workloads/cudnn_tensor.h"
#include "worker/cuda/workloads/workloads.h"

static const struct {
    const struct tensor_routine *routine;
    const char *text, *reason;
    int capability; /* 0: 90 */
} rows[] = {
    {&attention_cudnn, "attention precision=fp32", "takes fp16 and bf16", 0},
    {&attention_cudnn, "attention precision=fp16", "8.0; this GPU has 7.5", 75},
    {&attention_cudnn, "attention precision=fp16 head_size=60", "multiple of 8", 0},
    {&attention_plain, "attention precision=fp32 batch=65536 heads=65536 sequence=1 keys=1",
     "4.295e+09 products at once: cuBLASLt counts to 2147483647", 0},
    {&conv2d_single, "conv2d precision=tf32", "tf32 needs compute capability 8.0", 75},
    {&conv2d_single, "conv2d precision=fp8", "8.9; this GPU has 8.0", 80},
    {&conv2d_cudnn, "conv2d pass=training bias=yes fusion=fused", "plain fuses them", 0},
    {&conv2d_single, "conv2d height=65536 width=65536 channels=1 filters=1 batch=1",
     "4.295e+09 elements of a tensor: cuDNN's calls count to 2147483647; implementation = plain",
     0},
    {&conv2d_plain, "conv2d precision=tf32", "tensor units", 0},
    {&conv2d_plain, "conv2d algorithm=fft", "is cuDNN's", 0},
    {&conv2d_tiled, "conv2d precision=fp32", "fp16 and bf16", 0},
    {&conv2d_tiled, "conv2d precision=tf32", "fp16 and bf16", 0},
    {&conv2d_tiled, "conv2d precision=fp16 layout=nchw", "layout nhwc", 0},
    {&conv2d_tiled, "conv2d precision=fp16 channels=16 groups=4", "4 in a group", 0},
    {&conv2d_tiled, "conv2d precision=fp16 channels=3", "3 in a group", 0},
    {&conv2d_tiled, "conv2d precision=fp16 pass=backward-data", "forward pass", 0},
    {&conv2d_tiled, "conv2d precision=fp16 algorithm=gemm", "is cuDNN's", 0},
    {&conv2d_tiled, "conv2d precision=fp16 batch=1048576 height=32 width=32",
     "1.074e+09 pixels: implementation tiled counts to 1073741823", 0},
    {&conv2d_tiled,
     "conv2d precision=bf16 batch=1048576 height=16 width=16 stride=1 filters=1048576 channels=8",
     "tiles, blocks of one launch", 0},
    {&conv2d_tiled, "conv2d precision=fp16", "compute capability 8.0", 75},
    {&elementwise_cudnn, "elementwise precision=fp16 elements=2147482625",
     "2.147e+09 elements: cuDNN's kernels count to 2147482624", 0},
    {&linear_cublaslt, "linear precision=fp8", "8.9; this GPU has 7.5", 75},
    {&lstm_cudnn, "lstm precision=tf32", "fp64, fp32, fp16 and bf16, not in tf32", 0},
    {&lstm_cudnn, "lstm batch=1048576 hidden=4096", "cuDNN's calls count to 2147483647", 0},
    {&lstm_persistent, "lstm precision=fp16 pass=backward", "forward pass only", 0},
    {&lstm_persistent, "lstm precision=fp32", "not in fp32", 0},
    {&lstm_persistent, "lstm precision=fp16 algorithm=standard", "is cuDNN's", 0},
    {&lstm_persistent, "lstm precision=fp16 cell=gru", "the LSTM's cell", 0},
    {&lstm_persistent, "lstm precision=fp16 projection=8", "without a projection", 0},
    {&lstm_persistent, "lstm precision=fp16 hidden=260", "at most 256 hidden", 0},
    {&lstm_persistent, "lstm precision=fp16 hidden=68", "at most 64 hidden", 80},
    {&lstm_persistent, "lstm precision=fp16 hidden=18", "multiples", 0},
    {&lstm_persistent, "lstm precision=fp16 features=33", "multiples", 0},
    {&matmul_cublaslt, "matmul precision=fp8", "8.9; this GPU has 8.0", 80},
    {&matmul_plain, "matmul precision=fp8", "tensor units", 0},
    {&norm_cudnn_layer, "norm precision=fp64", "use implementation=plain", 0},
};

TEST(each_refusal_has_its_reason)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        struct gpu gpu = {.capability = rows[i].capability ? rows[i].capability : 90};
        struct config config = parse(rows[i].text);
        struct work *work = NULL;
        struct record record;
        struct error error = {""};
        record_init(&record);
        enum status status =
            tensor_work_prepare(rows[i].routine, &gpu, &config, 1, &work, &record, &error);
        if (status != STATUS_UNSUPPORTED || work || !strstr(error.text, rows[i].reason))
            fail_msg("%s: '%s' does not say '%s'", rows[i].text, error.text, rows[i].reason);
        record_clear(&record);
    }
}

/* cuDNN's calls count elements in an int. */
TEST(oversized_tensors_are_refused)
{
    const struct cudnn_extents extents = cudnn_extents_nchw(1, 1, 1 << 16, 1 << 15);
    cudnnTensorDescriptor_t descriptor = NULL;
    assert_fails(cudnn_tensor_create(PRECISION_FP16, &extents, &descriptor, &failure),
                 STATUS_UNSUPPORTED, "choose smaller tensors");
    assert_null(descriptor);
}
