/* Each kernel of the workloads that stream, against the reference in fp64: every element of every
 * result (of long rows of softmax some), for odd sizes and tails, in arrays that begin 16 bytes behind
 * a multiple of 256, with nothing written behind their ends.
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
#include "model/workloads/pool.h"
#include "model/workloads/softmax.h"

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

/* Every part of a pass, in its order; of a forward pass alone fused or not, as it says. */
static void conv2d_size(const struct config *config, struct arrays *arrays)
{
    struct conv2d s = conv2d_from(config);
    struct conv2d_parts parts = conv2d_parts[s.pass];
    bool output = parts.forward || conv2d_needs_y(&s), backward = parts.data || parts.filter;
    int64_t b = s.bias ? s.filters : 0;
    arrays->reads[TENSOR_INPUT] = output || parts.filter ? conv2d_x_size(&s) : 0;
    arrays->reads[TENSOR_WEIGHT] = output || parts.data ? conv2d_w_size(&s) : 0;
    arrays->reads[TENSOR_OUTPUT] = backward ? conv2d_y_size(&s) : 0;
    arrays->reads[TENSOR_BIAS] = output ? b : 0;
    arrays->writes[TENSOR_OUTPUT] = output ? conv2d_y_size(&s) : 0;
    arrays->writes[TENSOR_INPUT] = parts.data ? conv2d_x_size(&s) : 0;
    arrays->writes[TENSOR_WEIGHT] = parts.filter ? conv2d_w_size(&s) : 0;
    arrays->writes[TENSOR_BIAS] = parts.data && parts.filter ? b : 0;
    arrays->writes[TENSOR_WEIGHT_UPDATED] = parts.update ? conv2d_w_size(&s) : 0;
    arrays->writes[TENSOR_BIAS_UPDATED] = parts.update ? b : 0;
}

static cudaError_t convolve(const struct conv2d *s, enum conv2d_pass pass, void *x, void *w,
                            void *y, const void *b, bool finish)
{
    struct conv2d one = *s;
    one.pass = pass;
    const struct conv2d_arrays arrays = {x, w, y, b, finish};
    return kernel_conv2d(&one, &arrays, NULL);
}

static cudaError_t conv2d_forward(const struct conv2d *s, const struct arrays *a)
{
    bool layer = s->bias || s->activation != ACTIVATION_NONE;
    bool fused = layer && s->fusion != FUSION_SEPARATE;
    void *y = a->result[TENSOR_OUTPUT], *b = a->input[TENSOR_BIAS];
    cudaError_t code =
        convolve(s, CONV2D_FORWARD, a->input[TENSOR_INPUT], a->input[TENSOR_WEIGHT], y, b, fused);
    return code == cudaSuccess && layer && !fused ? kernel_conv2d_finish(s, y, b, NULL) : code;
}

static cudaError_t conv2d_backward(const struct conv2d *s, const struct arrays *a, void *dz)
{
    struct conv2d_parts parts = conv2d_parts[s->pass];
    void *gradient = conv2d_has_dz(s) ? dz : a->input[TENSOR_OUTPUT];
    cudaError_t code = cudaSuccess;
    if (conv2d_has_dz(s))
        code = kernel_conv2d_slope(s, dz, a->input[TENSOR_OUTPUT], a->result[TENSOR_OUTPUT], NULL);
    if (code == cudaSuccess && a->result[TENSOR_BIAS])
        code = kernel_conv2d_bias_gradient(s, a->result[TENSOR_BIAS], gradient, NULL);
    if (code == cudaSuccess && parts.data)
        code = convolve(s, CONV2D_BACKWARD_DATA, a->result[TENSOR_INPUT], a->input[TENSOR_WEIGHT],
                        gradient, NULL, false);
    if (code == cudaSuccess && parts.filter)
        code = convolve(s, CONV2D_BACKWARD_FILTER, a->input[TENSOR_INPUT], a->result[TENSOR_WEIGHT],
                        gradient, NULL, false);
    return code;
}

static cudaError_t updated(const struct conv2d *s, const struct arrays *a, enum tensor to,
                           enum tensor from, int64_t count)
{
    return a->result[to] ? kernel_update(s->precision, a->result[to], a->input[from],
                                         a->result[from], CONV2D_LEARNING_RATE, count, NULL)
                         : cudaSuccess;
}

static cudaError_t conv2d_launch(const struct config *config, const struct arrays *a)
{
    struct conv2d s = conv2d_from(config);
    size_t bytes = (size_t)conv2d_y_size(&s) * precision_info[s.precision].bytes;
    void *dz = NULL;
    cudaError_t code = cudaMalloc(&dz, bytes);
    if (code == cudaSuccess && a->result[TENSOR_OUTPUT])
        code = conv2d_forward(&s, a);
    if (code == cudaSuccess && a->reads[TENSOR_OUTPUT] > 0)
        code = conv2d_backward(&s, a, dz);
    if (code == cudaSuccess)
        code = updated(&s, a, TENSOR_WEIGHT_UPDATED, TENSOR_WEIGHT, conv2d_w_size(&s));
    if (code == cudaSuccess)
        code = updated(&s, a, TENSOR_BIAS_UPDATED, TENSOR_BIAS, s.filters);
    cudaFree(dz); /* waits */
    return code;
}

static void pool_size(const struct config *config, struct arrays *arrays)
{
    struct pool s = pool_from(config);
    arrays->reads[TENSOR_INPUT] = pool_x_size(&s);
    arrays->writes[TENSOR_OUTPUT] = pool_y_size(&s);
}

static cudaError_t pool_launch(const struct config *config, const struct arrays *arrays)
{
    struct pool s = pool_from(config);
    return kernel_pool(&s, arrays->result[TENSOR_OUTPUT], arrays->input[TENSOR_INPUT], NULL);
}

static void softmax_size(const struct config *config, struct arrays *arrays)
{
    struct softmax s = softmax_from(config);
    bool forward = s.pass == SOFTMAX_FORWARD;
    arrays->reads[TENSOR_INPUT] = s.rows * s.columns;
    arrays->reads[TENSOR_OUTPUT] = forward ? 0 : s.rows * s.columns;
    arrays->writes[forward ? TENSOR_OUTPUT : TENSOR_INPUT] = s.rows * s.columns;
}

static cudaError_t softmax_launch(const struct config *config, const struct arrays *arrays)
{
    struct softmax s = softmax_from(config);
    if (s.pass == SOFTMAX_FORWARD)
        return kernel_softmax(s.precision, arrays->result[TENSOR_OUTPUT],
                              arrays->input[TENSOR_INPUT], s.rows, s.columns, NULL);
    return kernel_softmax_gradient(s.precision, arrays->result[TENSOR_INPUT],
                                   arrays->input[TENSOR_INPUT], arrays->input[TENSOR_OUTPUT],
                                   s.rows, s.columns, NULL);
}

static const struct streaming streamings[] = {
    {"conv2d", conv2d_size, conv2d_launch},
    {"elementwise", elementwise_size, elementwise_launch},
    {"pool", pool_size, pool_launch},
    {"softmax", softmax_size, softmax_launch},
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

/* What references start from, see struct reference_request. */
struct computed {
    const struct config *config;
    const struct arrays *arrays;
};

static enum status computed_read(void *context, enum tensor tensor, const int64_t *offsets,
                                 int64_t count, double *values, struct error *error)
{
    const struct computed *computed = context;
    const struct slice slice = {tensor, count, (int64_t *)offsets, NULL};
    double *read = values_read(computed->config, computed->arrays->result[tensor], &slice);
    if (!read)
        return error_set(error, STATUS_FAILED, "tensor %d cannot be read", (int)tensor);
    memcpy(values, read, (size_t)count * sizeof *values);
    free(read);
    return STATUS_OK;
}

static void expectation_check(const char *text, const struct config *config,
                              const struct arrays *arrays)
{
    struct computed computed = {config, arrays};
    const struct reference_request request = {
        config, seed, 2e7, 64, INT64_MAX, reference_in_turn, computed_read, &computed};
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

static void conv2d_check(void)
{
    static const char *const shapes[] = {
        "batch=2 height=9 width=8 channels=3 filters=5",
        "batch=3 height=6 width=7 channels=8 filters=4 stride=1 groups=2 layout=nchw",
        "batch=1 height=11 width=12 channels=4 filters=70 kernel=3x2 dilation=2",
        "batch=5 height=4 width=4 channels=2 filters=130 stride=4 padding=valid layout=nchw",
    };
    static const char *const steps[] = {
        "pass=forward",
        "pass=backward-data",
        "pass=backward-filter",
        "pass=forward bias=yes activation=relu fusion=fused",
        "pass=forward bias=yes activation=tanh fusion=separate",
        "pass=backward bias=yes activation=sigmoid",
        "pass=training bias=yes activation=relu fusion=separate",
        "pass=training",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (size_t j = 0; j < sizeof steps / sizeof *steps; ++j)
            for (int precision = 0; precision < PRECISIONS; ++precision) {
                char text[WORKLOAD_TEXT];
                snprintf(text, sizeof text, "conv2d precision=%s %s %s", precisions[precision],
                         shapes[i], steps[j]);
                check(text);
            }
}

static void pool_check(void)
{
    static const char *const shapes[] = {
        "batch=2 height=9 width=9 channels=3",
        "batch=3 height=12 width=7 channels=8 stride=1",
        "batch=1 height=8 width=10 channels=17 window=2 padding=valid",
        "batch=2 height=7 width=9 channels=16 window=3x4 stride=1 padding=1",
        "batch=1 height=9 width=8 channels=72 window=2 stride=3 padding=1",
        "batch=1 height=2 width=2 channels=64 window=5 stride=4 padding=4",
        "batch=1 height=37 width=41 channels=24 stride=1",
        "batch=4 height=1 width=1 channels=6 window=1 stride=1",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 4 * PRECISIONS; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "pool %s operation=%s layout=%s precision=%s", shapes[i],
                     variant % 2 ? "max" : "average", variant / 2 % 2 ? "nhwc" : "nchw",
                     precisions[variant / 4]);
            check(text);
        }
}

/* A warp and a group for a row, rows in registers and longer ones, with and without whole pieces. */
static void softmax_check(void)
{
    static const int shapes[][2] = {{1, 1},    {3, 1},     {9, 8},     {17, 33},   {5, 256},
                                    {8, 257},  {3, 1024},  {2, 4096},  {2, 4095},  {3, 8192},
                                    {2, 8200}, {2, 16384}, {1, 16385}, {1, 40000}, {1, 40001}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
        for (int variant = 0; variant < 2 * PRECISIONS; ++variant) {
            char text[WORKLOAD_TEXT];
            snprintf(text, sizeof text, "softmax rows=%d columns=%d pass=%s precision=%s",
                     shapes[i][0], shapes[i][1], variant % 2 ? "forward" : "backward",
                     precisions[variant / 2]);
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
    conv2d_check();
    pool_check();
    softmax_check();
    printf("%d configurations, %d failures\n", checked, failures);
    return failures > 0;
}
