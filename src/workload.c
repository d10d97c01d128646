#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "units.h"

/* clang-format off */
/* Significand: the leading bit counts. Tolerances: inputs are exact and products are accumulated in
 * fp32 or wider, so a right result is off by the rounding of what is stored, by the summation
 * order, and by what Winograd, FFT and recurrent algorithms lose; a wrong element is off by far
 * more. */
const struct precision_info precision_info[PRECISION_COUNT] = {
    [PRECISION_FP64] = {"fp64", 8, 53, 1e-12},
    [PRECISION_FP32] = {"fp32", 4, 24, 1e-4},
    [PRECISION_TF32] = {"tf32", 4, 11, 3e-3},
    [PRECISION_FP16] = {"fp16", 2, 11, 5e-3},
    [PRECISION_BF16] = {"bf16", 2, 8, 3e-2},
    [PRECISION_FP8] = {"fp8", 1, 4, 1e-1},
    [PRECISION_INT8] = {"int8", 1, 8, 0.0},
};

const char *const memory_level_name[LEVEL_COUNT] = {"dram", "l3", "l2", "l1"};

static const char *const precision_words[] = {"fp64", "fp32", "tf32", "fp16", "bf16", NULL};
static const char *const cache_words[] = {"hot", "cold", NULL};
static const char *const layout_words[] = {"nhwc", "nchw", NULL};
static const char *const conv2d_pass_words[] = {"forward", "backward-data", "backward-filter", NULL};
static const char *const lstm_pass_words[] = {"forward", "backward", NULL};
static const char *const conv2d_implementation_words[] = {"auto", "cudnn", "im2col", "direct", NULL};
static const char *const lstm_implementation_words[] = {"auto", "cudnn", "cblas", NULL};
static const char *const matmul_implementation_words[] = {"auto", "cublaslt", "cblas", "plain",
                                                          NULL};
static const char *const loop_implementation_words[] = {"auto", "plain", NULL};
static const char *const conv2d_algorithm_words[] = {
    "auto", "implicit-gemm", "implicit-precomp-gemm", "gemm",   "direct", "fft", "fft-tiling",
    "winograd", "winograd-nonfused", "algo-0", "algo-1", "algo-3", "graph", NULL};
static const char *const lstm_algorithm_words[] = {"auto", "standard", "persist-static",
                                                   "persist-dynamic", NULL};

#define INTEGER(name, maximum, initial, help)                                                      \
    {name, PARAMETER_INTEGER, false, 1, maximum, NULL, initial, help}
#define SERIES(name, words, initial, help)                                                         \
    {name, PARAMETER_WORD, true, 0, 0, words, initial, help}

static const struct parameter conv2d_parameters[] = {
    SERIES("algorithm", conv2d_algorithm_words, "auto", "the library's; auto: fastest as measured"),
    INTEGER("batch", 1048576, "16", "images"),
    SERIES("cache", cache_words, "hot", "cold: caches flushed before each iteration"),
    INTEGER("channels", 1048576, "64", "input channels"),
    INTEGER("dilation", 1024, "1", "pixels from one kernel element to the next"),
    INTEGER("filters", 1048576, "64", "output channels"),
    INTEGER("groups", 1048576, "1", "channel groups; must divide channels and filters"),
    INTEGER("height", 65536, "112", "input pixels"),
    SERIES("implementation", conv2d_implementation_words, "auto", "auto: the device's best library"),
    {"kernel", PARAMETER_EXTENT, false, 1, 1024, NULL, "3", "pixels, height or heightxwidth"},
    SERIES("layout", layout_words, "nhwc", "order of the tensors' dimensions"),
    {"padding", PARAMETER_PADDING, false, 0, 1024, NULL, "same",
     "pixels on each side; same: half the kernel, valid: none"},
    SERIES("pass", conv2d_pass_words, "forward", "what is computed"),
    SERIES("precision", precision_words, "fp32", "of the tensors and the multiplications"),
    INTEGER("stride", 1024, "2", "pixels"),
    INTEGER("width", 65536, "112", "input pixels"),
};

static const struct parameter lstm_parameters[] = {
    SERIES("algorithm", lstm_algorithm_words, "auto", "the library's; auto: fastest as measured"),
    INTEGER("batch", 1048576, "16", "sequences"),
    SERIES("cache", cache_words, "hot", "cold: caches flushed before each iteration"),
    INTEGER("directions", 2, "1", "1, or 2: bidirectional"),
    INTEGER("features", 1048576, "32", "input width"),
    INTEGER("hidden", 1048576, "16", "hidden width"),
    SERIES("implementation", lstm_implementation_words, "auto", "auto: the device's best library"),
    INTEGER("layers", 1024, "1", "stacked layers"),
    SERIES("pass", lstm_pass_words, "forward", "what is computed; backward is without forward"),
    SERIES("precision", precision_words, "fp32", "of the tensors and the multiplications"),
    INTEGER("sequence", 65536, "16", "time steps"),
};

static const struct parameter matmul_parameters[] = {
    SERIES("cache", cache_words, "hot", "cold: caches flushed before each iteration"),
    SERIES("implementation", matmul_implementation_words, "auto", "auto: the device's best library"),
    INTEGER("k", 1048576, "1024", "columns of the first matrix, rows of the second"),
    INTEGER("m", 1048576, "1024", "rows of the first matrix and of the product"),
    INTEGER("n", 1048576, "1024", "columns of the second matrix and of the product"),
    SERIES("precision", precision_words, "fp32", "of the matrices and the multiplications"),
};

static const struct parameter compute_loop_parameters[] = {
    SERIES("cache", cache_words, "hot", "cold: caches flushed before each iteration"),
    INTEGER("elements", 68719476736, "4194304", "values, each independent of the others"),
    SERIES("implementation", loop_implementation_words, "auto", "there is one"),
    SERIES("precision", precision_words, "fp32", "of the values and the multiply-adds"),
    INTEGER("steps", 1048576, "4096", "multiply-adds of each value"),
};

static const struct parameter shared_loop_parameters[] = {
    SERIES("cache", cache_words, "hot", "cold: caches flushed before each iteration"),
    SERIES("implementation", loop_implementation_words, "auto", "there is one"),
    SERIES("precision", precision_words, "fp32", "of the values and the multiply-adds"),
    INTEGER("steps", 1048576, "4096", "multiply-adds of each value"),
    INTEGER("tile", LOOP_TILE_MAX, "1024", "values that depend on each other, in one block's shared memory"),
    INTEGER("tiles", 67108864, "4096", "tiles, each independent of the others"),
};
/* clang-format on */

static const char *const conv2d_implementations[] = {
    "cudnn: NVIDIA cuDNN, on CUDA devices",
    "im2col: im2col and CBLAS, on CPUs",
    "direct: the definition in nested loops, on CPUs",
    NULL,
};
static const char *const lstm_implementations[] = {
    "cudnn: NVIDIA cuDNN, on CUDA devices",
    "cblas: CBLAS, on CPUs",
    NULL,
};

static const char *const matmul_implementations[] = {
    "cublaslt: NVIDIA cuBLASLt, on CUDA devices",
    "cblas: CBLAS, on CPUs",
    "plain: one thread for each element of the product, or on CPUs three nested loops",
    NULL,
};
static const char *const loop_implementations[] = {
    "plain: written by hand, on CUDA devices and CPUs",
    NULL,
};

static enum status conv2d_check(const struct config *config, struct error *error)
{
    struct conv2d s = conv2d_from(config);
    if (s.channels % s.groups != 0 || s.filters % s.groups != 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "%lld groups do not divide %lld channels and %lld filters",
                         (long long)s.groups, (long long)s.channels, (long long)s.filters);
    if (s.out_height < 1 || s.out_width < 1)
        return error_set(error, STATUS_UNSUPPORTED,
                         "the output has no pixels: the kernel is larger than the padded input");
    return STATUS_OK;
}

/* Multiplications with padding zeros count, as is usual: a library may or may not skip them. */
static struct cost conv2d_cost(const struct config *config)
{
    struct conv2d s = conv2d_from(config);
    double element = (double)precision_info[s.precision].bytes;
    double x = (double)s.batch * (double)s.height * (double)s.width * (double)s.channels;
    double w = (double)s.filters * (double)(s.kernel_height * s.kernel_width) *
               ((double)s.channels / (double)s.groups);
    double y = (double)s.batch * (double)s.out_height * (double)s.out_width * (double)s.filters;
    double bytes = (x + w + y) * element;
    return (struct cost){
        .flops = 2.0 * (double)s.batch * (double)s.out_height * (double)s.out_width * w,
        .bytes = bytes,
        .memory = bytes,
    };
}

static enum status lstm_check(const struct config *config, struct error *error)
{
    (void)config;
    (void)error;
    return STATUS_OK;
}

/* Per unit and step, with the input width I and H hidden units:
 *   forward   8 (I + H) in the gates' matrix products, bias included; 4 in c = f c + i g, h = o tanh(c)
 *   backward  twice the products, for the data and the weights; 23 in the gates' derivatives and 4 in the
 *             bias gradient
 * The sigmoids and hyperbolic tangents themselves are no FLOPs. Backward also reads what the
 * training forward pass keeps: four gates, the cell and the hidden state. */
static struct cost lstm_cost(const struct config *config)
{
    struct lstm s = lstm_from(config);
    double element = (double)precision_info[s.precision].bytes;
    double hidden = (double)s.hidden, directions = (double)s.directions;
    double cells = (double)s.sequence * (double)s.batch * directions * hidden;
    double x = (double)s.sequence * (double)s.batch * (double)s.features;
    double y = cells;
    double kept = 6.0 * cells * (double)s.layers;
    double w = 0.0, flops = 0.0;
    for (int64_t layer = 0; layer < s.layers; ++layer) {
        double width = (double)lstm_input_width(&s, layer);
        w += directions * 4.0 * hidden * (width + hidden + 1.0);
        flops += s.pass == LSTM_FORWARD ? cells * (8.0 * (width + hidden) + 4.0)
                                        : cells * (16.0 * (width + hidden) + 27.0);
    }
    bool forward = s.pass == LSTM_FORWARD;
    return (struct cost){
        .flops = flops,
        .bytes = (forward ? x + w + y : 2.0 * x + 2.0 * w + y + kept) * element,
        .memory = (forward ? x + w + y : 2.0 * (x + w + y) + kept) * element,
    };
}

static enum status matmul_check(const struct config *config, struct error *error)
{
    (void)config;
    (void)error;
    return STATUS_OK;
}

static struct cost matmul_cost(const struct config *config)
{
    struct matmul s = matmul_from(config);
    double m = (double)s.m, n = (double)s.n, k = (double)s.k;
    double bytes = (m * k + k * n + m * n) * (double)precision_info[s.precision].bytes;
    return (struct cost){.flops = 2.0 * m * n * k, .bytes = bytes, .memory = bytes};
}

static enum status loop_check(const struct config *config, struct error *error)
{
    enum precision precision = config_precision(config);
    bool pairs = precision == PRECISION_FP16 || precision == PRECISION_BF16;
    if (precision == PRECISION_TF32)
        return error_set(error, STATUS_UNSUPPORTED,
                         "tf32 is a precision of tensor units, a loop is for the vector units");
    /* Their vector units work on two values at a time, and a neighbour would be half of a pair. */
    if (pairs && workload_parameter(config->workload, "tile") >= 0)
        return error_set(error, STATUS_UNSUPPORTED, "%s is of fp64 and fp32, not of %s",
                         config->workload->name, precision_info[precision].name);
    return STATUS_OK;
}

static struct cost loop_cost(const struct config *config)
{
    struct loop s = loop_from(config);
    double elements = (double)s.tiles * (double)s.tile;
    double bytes = 2.0 * elements * (double)precision_info[s.precision].bytes;
    return (struct cost){
        .flops = 2.0 * elements * (double)s.steps, .bytes = bytes, .memory = bytes};
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct workload conv2d_workload = {
    "conv2d",     conv2d_parameters, COUNT(conv2d_parameters), conv2d_implementations,
    conv2d_check, conv2d_cost,
};
static const struct workload lstm_workload = {
    "lstm", lstm_parameters, COUNT(lstm_parameters), lstm_implementations, lstm_check, lstm_cost,
};
static const struct workload matmul_workload = {
    "matmul",     matmul_parameters, COUNT(matmul_parameters), matmul_implementations,
    matmul_check, matmul_cost,
};
static const struct workload compute_loop_workload = {
    "compute-loop",
    compute_loop_parameters,
    COUNT(compute_loop_parameters),
    loop_implementations,
    loop_check,
    loop_cost,
};
static const struct workload shared_loop_workload = {
    "shared-loop",
    shared_loop_parameters,
    COUNT(shared_loop_parameters),
    loop_implementations,
    loop_check,
    loop_cost,
};
const struct workload *const workloads[] = {&conv2d_workload,      &lstm_workload,
                                            &matmul_workload,      &compute_loop_workload,
                                            &shared_loop_workload, NULL};

const struct workload *workload_find(const char *name)
{
    for (size_t i = 0; workloads[i]; ++i)
        if (strcmp(workloads[i]->name, name) == 0)
            return workloads[i];
    return NULL;
}

int workload_parameter(const struct workload *workload, const char *name)
{
    for (size_t i = 0; i < workload->count; ++i)
        if (strcmp(workload->parameters[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void words_join(const char *const *words, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; words[i] && used < size; ++i)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", words[i]);
}

static enum status parse_number(const struct parameter *parameter, const char *text,
                                int64_t *number, struct error *error)
{
    enum status status = units_integer(text, parameter->minimum, parameter->maximum, number, error);
    if (status)
        error_prefix(error, "%s", parameter->name);
    return status;
}

static enum status parse_extent(const struct parameter *parameter, const char *text,
                                struct value *value, struct error *error)
{
    const char *cross = strchr(text, 'x');
    char rows[WORKLOAD_VALUE_TEXT];
    size_t length = cross ? (size_t)(cross - text) : strlen(text);
    struct value parsed = {0, 0};
    enum status status = STATUS_USAGE;
    if (length < sizeof rows) {
        memcpy(rows, text, length);
        rows[length] = '\0';
        status = parse_number(parameter, rows, &parsed.first, error);
        parsed.second = parsed.first;
    }
    if (status == STATUS_OK && cross)
        status = parse_number(parameter, cross + 1, &parsed.second, error);
    if (status)
        return error_set(
            error, status, "%s: '%s' is no extent; write 3 or 3x5, with numbers from %lld to %lld",
            parameter->name, text, (long long)parameter->minimum, (long long)parameter->maximum);
    *value = parsed;
    return STATUS_OK;
}

static enum status parse_word(const struct parameter *parameter, const char *text,
                              struct value *value, struct error *error)
{
    for (size_t i = 0; parameter->words[i]; ++i)
        if (strcmp(parameter->words[i], text) == 0) {
            *value = (struct value){(int64_t)i, 0};
            return STATUS_OK;
        }
    char allowed[512];
    words_join(parameter->words, allowed, sizeof allowed);
    return error_set(error, STATUS_USAGE, "%s: '%s' is unknown; allowed: %s", parameter->name, text,
                     allowed);
}

enum status parameter_parse(const struct parameter *parameter, const char *text,
                            struct value *value, struct error *error)
{
    struct value number = {0, 0};
    enum status status;
    switch (parameter->kind) {
    case PARAMETER_WORD:
        return parse_word(parameter, text, value, error);
    case PARAMETER_EXTENT:
        return parse_extent(parameter, text, value, error);
    case PARAMETER_PADDING:
        if (strcmp(text, "same") == 0 || strcmp(text, "valid") == 0) {
            *value = (struct value){text[0] == 's' ? PADDING_SAME : PADDING_VALID, 0};
            return STATUS_OK;
        }
        status = parse_number(parameter, text, &number.first, error);
        if (status)
            error_set(error, status,
                      "%s: '%s' is neither same, valid nor a number from %lld to %lld",
                      parameter->name, text, (long long)parameter->minimum,
                      (long long)parameter->maximum);
        break;
    case PARAMETER_INTEGER:
    default:
        status = parse_number(parameter, text, &number.first, error);
    }
    if (status == STATUS_OK)
        *value = number;
    return status;
}

void parameter_format(const struct parameter *parameter, struct value value,
                      char text[WORKLOAD_VALUE_TEXT])
{
    if (parameter->kind == PARAMETER_WORD)
        snprintf(text, WORKLOAD_VALUE_TEXT, "%s", parameter->words[value.first]);
    else if (parameter->kind == PARAMETER_EXTENT && value.first != value.second)
        snprintf(text, WORKLOAD_VALUE_TEXT, "%lldx%lld", (long long)value.first,
                 (long long)value.second);
    else if (parameter->kind == PARAMETER_PADDING && value.first < 0)
        snprintf(text, WORKLOAD_VALUE_TEXT, "%s", value.first == PADDING_SAME ? "same" : "valid");
    else
        snprintf(text, WORKLOAD_VALUE_TEXT, "%lld", (long long)value.first);
}

struct config config_default(const struct workload *workload)
{
    struct config config = {.workload = workload};
    struct error unused;
    for (size_t i = 0; i < workload->count; ++i)
        parameter_parse(&workload->parameters[i], workload->parameters[i].initial,
                        &config.values[i], &unused);
    return config;
}

const char *config_word(const struct config *config, const char *parameter)
{
    int i = workload_parameter(config->workload, parameter);
    return i < 0 ? NULL : config->workload->parameters[i].words[config->values[i].first];
}

void config_format(const struct config *config, char text[WORKLOAD_TEXT])
{
    const struct workload *workload = config->workload;
    size_t used = (size_t)snprintf(text, WORKLOAD_TEXT, "%s", workload->name);
    for (size_t i = 0; i < workload->count; ++i) {
        char value[WORKLOAD_VALUE_TEXT];
        parameter_format(&workload->parameters[i], config->values[i], value);
        used += (size_t)snprintf(text + used, WORKLOAD_TEXT - used, " %s=%s",
                                 workload->parameters[i].name, value);
    }
}

enum status config_parse(const char *text, struct config *config, struct error *error)
{
    char copy[WORKLOAD_TEXT], *rest = copy;
    if (strlen(text) >= sizeof copy)
        return error_set(error, STATUS_USAGE, "a configuration of %zu bytes is too long",
                         strlen(text));
    strcpy(copy, text);
    const char *name = strsep(&rest, " ");
    const struct workload *workload = workload_find(name);
    if (!workload)
        return error_set(error, STATUS_USAGE, "unknown workload '%s' in configuration '%s'", name,
                         text);
    struct config parsed = config_default(workload);
    for (char *item; (item = strsep(&rest, " "));) {
        char *equals = strchr(item, '=');
        if (equals)
            *equals = '\0';
        int i = equals ? workload_parameter(workload, item) : -1;
        if (i < 0)
            return error_set(error, STATUS_USAGE, "'%s' is no parameter of %s", item, name);
        enum status status =
            parameter_parse(&workload->parameters[i], equals + 1, &parsed.values[i], error);
        if (status)
            return status;
    }
    *config = parsed;
    return STATUS_OK;
}

void config_hash(const struct config *config, char hash[CONFIG_HASH_TEXT])
{
    char text[WORKLOAD_TEXT];
    config_format(config, text);
    XXH128_hash_t h = XXH3_128bits(text, strlen(text));
    snprintf(hash, CONFIG_HASH_TEXT, "%016llx%016llx", (unsigned long long)h.high64,
             (unsigned long long)h.low64);
}

enum status config_check(const struct config *config, struct error *error)
{
    enum status status = config->workload->check(config, error);
    if (status)
        return status;
    /* Beyond this, sizes in elements could leave the range of int64_t. */
    const double largest = 1e17;
    double memory = config_cost(config).memory;
    if (memory > largest)
        return error_set(error, STATUS_UNSUPPORTED,
                         "its tensors would take %.3g bytes; no device has that", memory);
    return STATUS_OK;
}

struct cost config_cost(const struct config *config)
{
    return config->workload->cost(config);
}

static struct value value_of(const struct config *config, const char *parameter)
{
    return config->values[workload_parameter(config->workload, parameter)];
}

enum precision config_precision(const struct config *config)
{
    return (enum precision)value_of(config, "precision").first;
}

static int64_t padding_resolve(int64_t padding, int64_t extent)
{
    return padding == PADDING_SAME ? extent / 2 : padding == PADDING_VALID ? 0 : padding;
}

static int64_t output_extent(int64_t input, int64_t padding, int64_t extent, int64_t stride)
{
    int64_t room = input + 2 * padding - extent;
    return room < 0 ? 0 : room / stride + 1;
}

struct conv2d conv2d_from(const struct config *config)
{
    struct value kernel = value_of(config, "kernel");
    int64_t padding = value_of(config, "padding").first;
    struct conv2d s = {
        .batch = value_of(config, "batch").first,
        .height = value_of(config, "height").first,
        .width = value_of(config, "width").first,
        .channels = value_of(config, "channels").first,
        .filters = value_of(config, "filters").first,
        .kernel_height = kernel.first,
        .kernel_width = kernel.second,
        .stride = value_of(config, "stride").first,
        .dilation = value_of(config, "dilation").first,
        .groups = value_of(config, "groups").first,
        .layout = (enum layout)value_of(config, "layout").first,
        .precision = config_precision(config),
        .pass = (enum conv2d_pass)value_of(config, "pass").first,
        .implementation = config_word(config, "implementation"),
        .algorithm = config_word(config, "algorithm"),
        .cold = value_of(config, "cache").first != 0,
    };
    int64_t extent_height = s.dilation * (s.kernel_height - 1) + 1;
    int64_t extent_width = s.dilation * (s.kernel_width - 1) + 1;
    s.pad_height = padding_resolve(padding, extent_height);
    s.pad_width = padding_resolve(padding, extent_width);
    s.out_height = output_extent(s.height, s.pad_height, extent_height, s.stride);
    s.out_width = output_extent(s.width, s.pad_width, extent_width, s.stride);
    return s;
}

int64_t conv2d_x_size(const struct conv2d *s)
{
    return s->batch * s->height * s->width * s->channels;
}

int64_t conv2d_w_size(const struct conv2d *s)
{
    return s->filters * s->kernel_height * s->kernel_width * (s->channels / s->groups);
}

int64_t conv2d_y_size(const struct conv2d *s)
{
    return s->batch * s->out_height * s->out_width * s->filters;
}

struct lstm lstm_from(const struct config *config)
{
    return (struct lstm){
        .batch = value_of(config, "batch").first,
        .sequence = value_of(config, "sequence").first,
        .features = value_of(config, "features").first,
        .hidden = value_of(config, "hidden").first,
        .layers = value_of(config, "layers").first,
        .directions = value_of(config, "directions").first,
        .precision = config_precision(config),
        .pass = (enum lstm_pass)value_of(config, "pass").first,
        .implementation = config_word(config, "implementation"),
        .algorithm = config_word(config, "algorithm"),
        .cold = value_of(config, "cache").first != 0,
    };
}

int64_t lstm_input_width(const struct lstm *s, int64_t layer)
{
    return layer == 0 ? s->features : s->hidden * s->directions;
}

int64_t lstm_x_size(const struct lstm *s)
{
    return s->sequence * s->batch * s->features;
}

int64_t lstm_y_size(const struct lstm *s)
{
    return s->sequence * s->batch * s->hidden * s->directions;
}

static int64_t lstm_cell_size(const struct lstm *s, int64_t layer)
{
    return 4 * s->hidden * (lstm_input_width(s, layer) + s->hidden + 1);
}

int64_t lstm_w_at(const struct lstm *s, int64_t layer, int64_t direction, enum lstm_part part)
{
    /* All layers but the first have the same size. */
    int64_t offset = direction * lstm_cell_size(s, layer);
    if (layer > 0)
        offset += s->directions * (lstm_cell_size(s, 0) + (layer - 1) * lstm_cell_size(s, 1));
    if (part != LSTM_INPUT_MATRIX)
        offset += 4 * s->hidden * lstm_input_width(s, layer);
    if (part == LSTM_BIAS)
        offset += 4 * s->hidden * s->hidden;
    return offset;
}

int64_t lstm_w_size(const struct lstm *s)
{
    return lstm_w_at(s, s->layers, 0, LSTM_INPUT_MATRIX);
}

struct matmul matmul_from(const struct config *config)
{
    return (struct matmul){
        .m = value_of(config, "m").first,
        .n = value_of(config, "n").first,
        .k = value_of(config, "k").first,
        .precision = config_precision(config),
        .implementation = config_word(config, "implementation"),
    };
}

struct loop loop_from(const struct config *config)
{
    bool shared = workload_parameter(config->workload, "tile") >= 0;
    return (struct loop){
        .tiles = value_of(config, shared ? "tiles" : "elements").first,
        .tile = shared ? value_of(config, "tile").first : 1,
        .steps = value_of(config, "steps").first,
        .precision = config_precision(config),
    };
}

/* The factors lie between 1/2 and 1, so a unit in the last place is 2^-significand. */
double loop_factor(enum precision precision, int64_t step)
{
    int significand = precision_info[precision].significand;
    return ldexp(rint(ldexp(LOOP_FACTOR(step), significand)), -significand);
}
