/* The kernels that are written as one would first write them, as trial.h says: all passes, odd
 * sizes, tails. */
#include "kernels/kernels.h"
#include "model/workloads/linear.h"
#include "model/workloads/matmul.h"
#include "model/workloads/softmax.h"
#include "trial.h"

/* ---- conv2d ---- */

/* Every part of a pass, in its order; of a forward pass alone fused or not, as it says. */
static void conv2d_size(const struct config *config, struct trial_arrays *arrays)
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
    arrays->between = conv2d_needs_y(&s) ? conv2d_y_size(&s) : 0;
}

static cudaError_t convolve(const struct conv2d *s, enum conv2d_pass pass, void *x, void *w,
                            void *y, const void *b, bool finish)
{
    struct conv2d one = *s;
    one.pass = pass;
    const struct conv2d_arrays arrays = {x, w, y, b, finish};
    return kernel_conv2d(&one, &arrays, NULL);
}

static cudaError_t conv2d_forward(const struct conv2d *s, const struct trial_arrays *a)
{
    bool layer = s->bias || s->activation != ACTIVATION_NONE;
    bool fused = layer && s->fusion != FUSION_SEPARATE;
    void *y = a->result[TENSOR_OUTPUT], *b = a->input[TENSOR_BIAS];
    cudaError_t code =
        convolve(s, CONV2D_FORWARD, a->input[TENSOR_INPUT], a->input[TENSOR_WEIGHT], y, b, fused);
    return code == cudaSuccess && layer && !fused ? kernel_conv2d_finish(s, y, b, NULL) : code;
}

static cudaError_t conv2d_backward(const struct conv2d *s, const struct trial_arrays *a, void *dz)
{
    struct conv2d_parts parts = conv2d_parts[s->pass];
    void *gradient = conv2d_needs_y(s) ? dz : a->input[TENSOR_OUTPUT];
    cudaError_t code = cudaSuccess;
    if (conv2d_needs_y(s))
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

static cudaError_t updated(const struct conv2d *s, const struct trial_arrays *a, enum tensor to,
                           enum tensor from, int64_t count)
{
    return a->result[to] ? kernel_update(s->precision, a->result[to], a->input[from],
                                         a->result[from], CONV2D_LEARNING_RATE, count, NULL)
                         : cudaSuccess;
}

static cudaError_t conv2d_launch(const struct config *config, const struct trial_arrays *a)
{
    struct conv2d s = conv2d_from(config);
    cudaError_t code = a->result[TENSOR_OUTPUT] ? conv2d_forward(&s, a) : cudaSuccess;
    if (code == cudaSuccess && a->reads[TENSOR_OUTPUT] > 0)
        code = conv2d_backward(&s, a, a->scratch);
    if (code == cudaSuccess)
        code = updated(&s, a, TENSOR_WEIGHT_UPDATED, TENSOR_WEIGHT, conv2d_w_size(&s));
    if (code == cudaSuccess)
        code = updated(&s, a, TENSOR_BIAS_UPDATED, TENSOR_BIAS, s.filters);
    return code;
}

/* ---- elementwise, pool, softmax ---- */

static void elementwise_size(const struct config *config, struct trial_arrays *a)
{
    struct elementwise s = elementwise_from(config);
    a->reads[TENSOR_INPUT] = a->writes[TENSOR_OUTPUT] = s.elements;
    a->reads[TENSOR_WEIGHT] = elementwise_inputs(s.operation) == 2 ? s.elements : 0;
}

static cudaError_t elementwise_launch(const struct config *config, const struct trial_arrays *a)
{
    struct elementwise s = elementwise_from(config);
    return kernel_elementwise(s.precision, s.operation, a->result[TENSOR_OUTPUT],
                              a->input[TENSOR_INPUT], a->input[TENSOR_WEIGHT], s.elements, NULL);
}

static void pool_size(const struct config *config, struct trial_arrays *a)
{
    struct pool s = pool_from(config);
    bool forward = s.pass == POOL_FORWARD;
    a->reads[TENSOR_INPUT] = forward || s.operation == POOL_MAX ? pool_x_size(&s) : 0;
    a->reads[TENSOR_OUTPUT] = forward ? 0 : pool_y_size(&s);
    a->writes[TENSOR_INPUT] = forward ? 0 : pool_x_size(&s);
    a->writes[TENSOR_OUTPUT] = forward ? pool_y_size(&s) : 0;
}

static cudaError_t pool_launch(const struct config *config, const struct trial_arrays *a)
{
    struct pool s = pool_from(config);
    if (s.pass == POOL_FORWARD)
        return kernel_pool(&s, a->result[TENSOR_OUTPUT], a->input[TENSOR_INPUT], NULL);
    return kernel_pool_gradient(&s, a->result[TENSOR_INPUT], a->input[TENSOR_INPUT],
                                a->input[TENSOR_OUTPUT], NULL);
}

static void softmax_size(const struct config *config, struct trial_arrays *a)
{
    struct softmax s = softmax_from(config);
    bool forward = s.pass == SOFTMAX_FORWARD;
    a->reads[TENSOR_INPUT] = s.rows * s.columns;
    a->reads[TENSOR_OUTPUT] = forward ? 0 : s.rows * s.columns;
    a->writes[forward ? TENSOR_OUTPUT : TENSOR_INPUT] = s.rows * s.columns;
}

static cudaError_t softmax_launch(const struct config *config, const struct trial_arrays *a)
{
    struct softmax s = softmax_from(config);
    if (s.pass == SOFTMAX_FORWARD)
        return kernel_softmax(s.precision, a->result[TENSOR_OUTPUT], a->input[TENSOR_INPUT], s.rows,
                              s.columns, 0, NULL);
    return kernel_softmax_gradient(s.precision, a->result[TENSOR_INPUT], a->input[TENSOR_INPUT],
                                   a->input[TENSOR_OUTPUT], s.rows, s.columns, NULL);
}

/* ---- norm ---- */

/* Between the kernels: means and inverse deviations, in at most 8 bytes each. */
static void norm_size(const struct config *config, struct trial_arrays *a)
{
    struct norm s = norm_from(config);
    bool backward = s.pass == NORM_BACKWARD;
    int64_t kept = backward ? s.columns : s.pass == NORM_TRAINING ? norm_statistics(&s) : 0;
    a->reads[TENSOR_INPUT] = s.rows * s.columns;
    a->reads[TENSOR_WEIGHT] = a->reads[TENSOR_BIAS] = s.columns;
    a->reads[TENSOR_OUTPUT] = backward ? s.rows * s.columns : 0;
    a->writes[backward ? TENSOR_INPUT : TENSOR_OUTPUT] = s.rows * s.columns;
    a->writes[TENSOR_WEIGHT] = a->writes[TENSOR_BIAS] = kept;
    a->wide[TENSOR_WEIGHT] = a->wide[TENSOR_BIAS] = true;
    a->between =
        2 * norm_statistics(&s) * 8 / (int64_t)precision_info[config_precision(config)].bytes;
}

static cudaError_t norm_launch(const struct config *config, const struct trial_arrays *a)
{
    struct norm s = norm_from(config);
    double *mean = a->scratch, *inverse = mean + norm_statistics(&s);
    const struct norm_arrays moments = {
        .x = a->input[TENSOR_INPUT], .mean = mean, .inverse = inverse};
    struct norm_arrays arrays = {
        .x = a->input[TENSOR_INPUT],
        .dy = a->input[TENSOR_OUTPUT],
        .gamma = a->input[TENSOR_WEIGHT],
        .beta = a->input[TENSOR_BIAS],
        .y = a->result[TENSOR_OUTPUT],
        .dx = a->result[TENSOR_INPUT],
    };
    cudaError_t code = kernel_norm(NORM_KERNEL_Y, &s, &moments, NULL);
    if (s.pass == NORM_TRAINING) {
        arrays.mean = a->result[TENSOR_WEIGHT];
        arrays.inverse = a->result[TENSOR_BIAS];
    } else {
        arrays.mean_given = mean;
        arrays.inverse_given = inverse;
        arrays.dgamma = a->result[TENSOR_WEIGHT];
        arrays.dbeta = a->result[TENSOR_BIAS];
    }
    if (code != cudaSuccess || s.pass != NORM_BACKWARD)
        return code == cudaSuccess ? kernel_norm(NORM_KERNEL_Y, &s, &arrays, NULL) : code;
    code = kernel_norm(NORM_KERNEL_PARAMETERS, &s, &arrays, NULL);
    return code == cudaSuccess ? kernel_norm(NORM_KERNEL_DX, &s, &arrays, NULL) : code;
}

/* ---- linear, matmul ---- */

static void linear_size_all(const struct config *config, struct trial_arrays *a)
{
    static const enum tensor results[] = {TENSOR_OUTPUT, TENSOR_INPUT, TENSOR_WEIGHT};
    struct linear s = linear_from(config);
    enum tensor result = results[s.pass];
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        enum tensor tensor = (enum tensor)i;
        bool written = tensor == result || (tensor == TENSOR_BIAS && result == TENSOR_WEIGHT);
        bool read = tensor == TENSOR_BIAS ? s.pass == LINEAR_FORWARD : !written;
        a->reads[i] = read ? linear_size(&s, tensor) : 0;
        a->writes[i] = written ? linear_size(&s, tensor) : 0;
    }
}

static cudaError_t linear_product(const struct linear *s, const struct trial_arrays *a)
{
    const void *x = a->input[TENSOR_INPUT], *w = a->input[TENSOR_WEIGHT];
    const void *dy = a->input[TENSOR_OUTPUT];
    if (s->pass == LINEAR_FORWARD)
        return kernel_product(
            s->precision, a->result[TENSOR_OUTPUT], (struct kernel_factor){x, s->inputs, 1},
            (struct kernel_factor){w, s->inputs, 1}, s->batch, s->outputs, s->inputs, NULL);
    if (s->pass == LINEAR_BACKWARD_DATA)
        return kernel_product(
            s->precision, a->result[TENSOR_INPUT], (struct kernel_factor){dy, s->outputs, 1},
            (struct kernel_factor){w, 1, s->inputs}, s->batch, s->inputs, s->outputs, NULL);
    return kernel_product(
        s->precision, a->result[TENSOR_WEIGHT], (struct kernel_factor){dy, 1, s->outputs},
        (struct kernel_factor){x, 1, s->inputs}, s->outputs, s->inputs, s->batch, NULL);
}

static cudaError_t linear_launch(const struct config *config, const struct trial_arrays *a)
{
    struct linear s = linear_from(config);
    cudaError_t code = linear_product(&s, a);
    if (code != cudaSuccess || !linear_has_epilogue(&s))
        return code;
    if (s.pass == LINEAR_FORWARD)
        return kernel_linear_finish(s.precision, a->result[TENSOR_OUTPUT], a->input[TENSOR_BIAS],
                                    s.activation, s.batch, s.outputs, NULL);
    return kernel_column_sums(s.precision, a->result[TENSOR_BIAS], a->input[TENSOR_OUTPUT], s.batch,
                              s.outputs, NULL);
}

static void matmul_size(const struct config *config, struct trial_arrays *a)
{
    struct matmul s = matmul_from(config);
    a->reads[TENSOR_INPUT] = s.m * s.k;
    a->reads[TENSOR_WEIGHT] = s.k * s.n;
    a->writes[TENSOR_OUTPUT] = s.m * s.n;
}

static cudaError_t matmul_launch(const struct config *config, const struct trial_arrays *a)
{
    struct matmul s = matmul_from(config);
    return kernel_product(s.precision, a->result[TENSOR_OUTPUT],
                          (struct kernel_factor){a->input[TENSOR_INPUT], s.k, 1},
                          (struct kernel_factor){a->input[TENSOR_WEIGHT], 1, s.n}, s.m, s.n, s.k,
                          NULL);
}

/* ---- shapes ---- */

static const struct trial kinds[] = {
    {"conv2d", conv2d_size, conv2d_launch},
    {"elementwise", elementwise_size, elementwise_launch},
    {"linear", linear_size_all, linear_launch},
    {"matmul", matmul_size, matmul_launch},
    {"norm", norm_size, norm_launch},
    {"pool", pool_size, pool_launch},
    {"softmax", softmax_size, softmax_launch},
    {NULL, NULL, NULL},
};

#define LIST(...)                                                                                  \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define PRECISIONS LIST("precision=fp64", "precision=fp32", "precision=fp16", "precision=bf16")

/* Fewer elements than threads of a block, more than those of all blocks; windows that overlap, that
 * lie apart, that see little but padding. */
static const struct {
    const char *workload;
    const char *const *lists[6];
} crossed[] = {
    {"conv2d",
     {LIST("batch=2 height=9 width=8 channels=3 filters=5",
           "batch=3 height=6 width=7 channels=8 filters=4 stride=1 groups=2 layout=nchw",
           "batch=1 height=11 width=12 channels=4 filters=70 kernel=3x2 dilation=2",
           "batch=5 height=4 width=4 channels=2 filters=130 stride=4 padding=valid layout=nchw"),
      LIST("pass=forward", "pass=backward-data", "pass=backward-filter",
           "pass=forward bias=yes activation=relu fusion=fused",
           "pass=forward bias=yes activation=tanh fusion=separate",
           "pass=backward bias=yes activation=sigmoid",
           "pass=training bias=yes activation=relu fusion=separate", "pass=training"),
      PRECISIONS}},
    {"elementwise",
     {LIST("elements=1", "elements=257", "elements=100003", "elements=17000001"),
      LIST("operation=relu", "operation=sigmoid", "operation=tanh", "operation=add",
           "operation=scale"),
      PRECISIONS}},
    {"linear",
     {LIST("batch=1 inputs=1 outputs=9", "batch=7 inputs=33 outputs=65",
           "batch=65 inputs=5 outputs=8", "batch=33 inputs=129 outputs=31",
           "batch=2 inputs=3 outputs=4100"),
      LIST("bias=no", "bias=yes", "bias=yes activation=relu", "bias=no activation=gelu",
           "bias=no pass=backward-data", "bias=yes pass=backward-weights"),
      PRECISIONS}},
    {"matmul",
     {LIST("m=1 n=1 k=1", "m=33 n=65 k=130", "m=9 n=31 k=7", "m=64 n=64 k=64"), PRECISIONS}},
    {"norm",
     {LIST("rows=6 columns=6", "rows=17 columns=33", "rows=300 columns=64", "rows=5 columns=257",
           "rows=4000 columns=6", "rows=2 columns=20000"),
      LIST("operation=layer", "operation=batch"),
      LIST("pass=forward", "pass=training", "pass=backward"), PRECISIONS}},
    {"pool",
     {LIST("batch=2 height=9 width=9 channels=3", "batch=3 height=12 width=7 channels=8 stride=1",
           "batch=2 height=7 width=9 channels=16 window=3x4 stride=1 padding=1",
           "batch=1 height=9 width=8 channels=72 window=2 stride=3 padding=1",
           "batch=1 height=2 width=2 channels=64 window=5 stride=4 padding=4",
           "batch=4 height=1 width=1 channels=6 window=1 stride=1",
           "batch=1 height=40 width=21 channels=8 window=30x17 stride=9",
           "batch=1 height=15 width=300 channels=16 padding=2"),
      LIST("operation=max", "operation=average"), LIST("layout=nhwc", "layout=nchw"),
      LIST("pass=forward", "pass=backward"), PRECISIONS}},
    {"softmax",
     {LIST("rows=1 columns=1", "rows=300 columns=1", "rows=17 columns=33", "rows=5 columns=256",
           "rows=8 columns=257", "rows=1 columns=40001"),
      LIST("pass=forward", "pass=backward"), PRECISIONS}},
};

/* An image of more pixels than an int counts: all are 0 but the last one, in both layouts. */
static void large_image_check(struct trials *trials)
{
    struct conv2d s = {.batch = 1,
                       .out_height = 46341,
                       .out_width = 46342,
                       .filters = 1,
                       .groups = 1,
                       .precision = PRECISION_FP16};
    const size_t bytes = 2 * (size_t)conv2d_y_size(&s);
    const uint16_t one = 0x3c00;
    char *dz = NULL;
    if (cudaMalloc((void **)&dz, bytes + sizeof one) != cudaSuccess) {
        puts("bias gradient of a large image left out: no memory");
        ++trials->left;
        return;
    }
    cudaMemset(dz, 0, bytes);
    cudaMemcpy(dz + bytes - sizeof one, &one, sizeof one, cudaMemcpyHostToDevice);
    for (int i = 0; i < 2; ++i) {
        uint16_t sum = 0;
        s.layout = i ? LAYOUT_NCHW : LAYOUT_NHWC;
        cudaError_t code = kernel_conv2d_bias_gradient(&s, dz + bytes, dz, NULL);
        cudaMemcpy(&sum, dz + bytes, sizeof sum, cudaMemcpyDeviceToHost);
        ++trials->checked;
        if (code == cudaSuccess && sum == one)
            continue;
        fprintf(stderr, "FAIL: bias gradient of a large image: %s, 0x%x\n",
                cudaGetErrorString(code), (unsigned)sum);
        ++trials->failures;
    }
    cudaFree(dz);
}

static void all_check(struct trials *trials)
{
    if (!trials->only && trials->turn == 0)
        large_image_check(trials);
    for (size_t i = 0; i < sizeof crossed / sizeof *crossed; ++i)
        trial_cross(trials, crossed[i].workload, crossed[i].lists);
}

int main(int count, char **arguments)
{
    return trial_main(count, arguments, kinds, all_check);
}
