/* Each kernel of the workloads that stream, against the reference in fp64: every element of every result,
 * for odd sizes and tails, in arrays that begin 16 bytes behind a multiple of 256, with nothing written
 * behind their ends.
 *
 * With the argument "exact" no guard lies behind the arrays, so that compute-sanitizer sees the first
 * byte too far. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/reference.h"

enum { SKIPPED = 77, OFFSET = 16 };

static const uint64_t seed = 5;
static size_t guard = 4096; /* byte */
static int failures, checked;

/* Of one configuration, on the device. */
struct arrays {
    int64_t reads[TENSOR_COUNT], writes[TENSOR_COUNT]; /* elements; 0: there is none */
    void *input[TENSOR_COUNT], *result[TENSOR_COUNT];
};

struct streaming {
    const char *workload;
    void (*size)(const struct config *config, struct arrays *arrays);
    cudaError_t (*launch)(const struct config *config, const struct arrays *arrays);
};

static void fail(const char *text, const char *problem)
{
    fprintf(stderr, "FAIL: %s: %s\n", text, problem);
    ++failures;
}

static bool ran(const char *text, cudaError_t code)
{
    if (code == cudaSuccess)
        code = cudaDeviceSynchronize();
    if (code != cudaSuccess)
        fail(text, cudaGetErrorString(code));
    return code == cudaSuccess;
}

/* ---- the workloads ---- */

static void elementwise_size(const struct config *config, struct arrays *arrays)
{
    struct elementwise s = elementwise_from(config);
    arrays->reads[TENSOR_INPUT] = arrays->writes[TENSOR_OUTPUT] = s.elements;
    arrays->reads[TENSOR_WEIGHT] = elementwise_inputs(s.operation) == 2 ? s.elements : 0;
}

static cudaError_t elementwise_launch(const struct config *config, const struct arrays *arrays)
{
    struct elementwise s = elementwise_from(config);
    return kernel_elementwise(s.precision, s.operation, arrays->result[TENSOR_OUTPUT],
                              arrays->input[TENSOR_INPUT], arrays->input[TENSOR_WEIGHT], s.elements,
                              NULL);
}

static const struct streaming streamings[] = {
    {"elementwise", elementwise_size, elementwise_launch},
};

/* ---- arrays ---- */

static char *array_create(size_t bytes)
{
    char *memory = NULL;
    if (cudaMalloc((void **)&memory, OFFSET + bytes + guard) != cudaSuccess)
        return NULL;
    cudaMemset(memory, 0xff, OFFSET + bytes + guard);
    return memory + OFFSET;
}

static void array_free(void *array)
{
    if (array)
        cudaFree((char *)array - OFFSET);
}

static bool arrays_create(const struct config *config, struct arrays *arrays)
{
    enum precision precision = config_precision(config);
    size_t element = precision_info[precision].bytes;
    bool complete = true;
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        if (arrays->reads[i] > 0) {
            arrays->input[i] = array_create((size_t)arrays->reads[i] * element);
            complete =
                complete && arrays->input[i] &&
                kernel_fill(precision, arrays->input[i], arrays->reads[i],
                            config_fill(config, seed, (enum tensor)i), 0, NULL) == cudaSuccess;
        }
        if (arrays->writes[i] > 0)
            complete =
                complete && (arrays->result[i] = array_create((size_t)arrays->writes[i] * element));
    }
    return complete;
}

static void arrays_free(const struct arrays *arrays)
{
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        array_free(arrays->input[i]);
        array_free(arrays->result[i]);
    }
}

/* ---- comparison ---- */

static void guards_check(const char *text, const struct config *config, const struct arrays *arrays)
{
    size_t element = precision_info[config_precision(config)].bytes;
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        unsigned char around[OFFSET + 4096];
        if (!arrays->result[i])
            continue;
        const char *result = arrays->result[i];
        cudaMemcpy(around, result - OFFSET, OFFSET, cudaMemcpyDeviceToHost);
        cudaMemcpy(around + OFFSET, result + (size_t)arrays->writes[i] * element, guard,
                   cudaMemcpyDeviceToHost);
        for (size_t j = 0; j < OFFSET + guard; ++j)
            if (around[j] != 0xff) {
                fail(text, "it writes where it must not");
                return;
            }
    }
}

/* On the host; NULL without memory or device. */
static double *values_read(const struct config *config, const void *data, const struct slice *slice)
{
    size_t bytes = (size_t)slice->count * sizeof(double);
    double *values = malloc(bytes), *gathered = NULL;
    int64_t *offsets = NULL;
    cudaMalloc((void **)&offsets, bytes);
    cudaMalloc((void **)&gathered, bytes);
    cudaMemcpy(offsets, slice->offsets, bytes, cudaMemcpyHostToDevice);
    kernel_gather(config_precision(config), data, offsets, slice->count, gathered, NULL);
    if (values && cudaMemcpy(values, gathered, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
        free(values);
        values = NULL;
    }
    cudaFree(offsets);
    cudaFree(gathered);
    return values;
}

static void slice_check(const char *text, const struct config *config, const struct slice *slice,
                        const void *data)
{
    double difference = 0.0, norm = 0.0, *values = values_read(config, data, slice);
    for (int64_t i = 0; values && i < slice->count; ++i) {
        double d = values[i] - slice->expected[i];
        difference += d * d;
        norm += slice->expected[i] * slice->expected[i];
    }
    double error = sqrt(difference / (norm > 0.0 ? norm : 1.0));
    if (!values || !(error <= config_tolerance(config))) {
        char problem[128];
        snprintf(problem, sizeof problem, "tensor %d: relative error %g over %lld elements",
                 (int)slice->tensor, error, (long long)slice->count);
        fail(text, problem);
    }
    free(values);
}

static void expectation_check(const char *text, const struct config *config,
                              const struct arrays *arrays)
{
    const struct reference_request request = {
        config, seed, INFINITY, 1, INT64_MAX, reference_in_turn, NULL, NULL};
    struct expectation expectation = {.count = 0};
    struct error error;
    if (config->workload->reference(&request, &expectation, &error))
        fail(text, error.text);
    for (size_t i = 0; i < expectation.count; ++i)
        slice_check(text, config, &expectation.slices[i],
                    arrays->result[expectation.slices[i].tensor]);
    expectation_clear(&expectation);
}

static const struct streaming *streaming_find(const struct config *config)
{
    for (size_t i = 0; i < sizeof streamings / sizeof *streamings; ++i)
        if (strcmp(streamings[i].workload, config->workload->name) == 0)
            return &streamings[i];
    return NULL;
}

static void check(const char *text)
{
    struct config config;
    struct error error;
    struct arrays arrays = {.input = {NULL}};
    if (config_parse(text, &config, &error) || config_check(&config, &error)) {
        fail(text, error.text);
        return;
    }
    const struct streaming *streaming = streaming_find(&config);
    streaming->size(&config, &arrays);
    ++checked;
    if (!arrays_create(&config, &arrays))
        fail(text, "no memory");
    else if (ran(text, streaming->launch(&config, &arrays))) {
        guards_check(text, &config, &arrays);
        expectation_check(text, &config, &arrays);
    }
    arrays_free(&arrays);
}

/* ---- shapes ---- */

static const char *const precisions[] = {"fp64", "fp32", "fp16", "bf16"};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

/* Around a piece, a block and several blocks. */
static void elementwise_check(void)
{
    static const char *const operations[] = {"relu", "sigmoid", "tanh", "add", "scale"};
    static const int counts[] = {1, 2, 7, 8, 9, 255, 4096, 8191, 8192, 8193, 100003};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
        for (int variant = 0; variant < 5 * PRECISIONS; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "elementwise elements=%d operation=%s precision=%s",
                     counts[i], operations[variant / PRECISIONS], precisions[variant % PRECISIONS]);
            check(text);
        }
}

int main(int count, char **arguments)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        puts("no GPU");
        return SKIPPED;
    }
    if (count > 1 && strcmp(arguments[1], "exact") == 0)
        guard = 0;
    elementwise_check();
    printf("%d configurations, %d failures\n", checked, failures);
    return failures > 0;
}
