#include "cuda_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cublasLt.h>

#include "../../../kernels/kernels.h"
#include "../../stats.h"

static enum status cublas_check(cublasStatus_t code, const char *call, struct error *error)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    TRY(cuda_check(cudaDeviceSynchronize(), call, error));
    return error_set(error, STATUS_FAILED, "%.*s: %s", (int)strcspn(call, "("), call,
                     cublasLtGetStatusString(code));
}
#define CUBLAS(call) cublas_check((call), #call, error)

enum { REPETITIONS = 5, SETTING_MAX = 160 };

/* Launch shapes that are tried: blocks for each SM (0: one piece of work for each warp), threads
 * for each block. */
struct shape {
    int blocks, threads;
};

/* What one measurement needs; owned by roofs_measure. */
struct roofs {
    struct device_state *state;
    struct device *device;
    cudaEvent_t begin, end;
    size_t settings_used; /* of device->roof_settings */
};

/* Launches something once; `roof` is its own. */
typedef enum status (*launcher)(struct roofs *roofs, const void *roof, struct error *error);

/* The shortest of `repetitions` runs, each between two events. */
static enum status shortest_time(struct roofs *roofs, launcher launch, const void *roof,
                                 int repetitions, double *seconds, struct error *error)
{
    *seconds = INFINITY;
    for (int i = 0; i < repetitions; ++i) {
        float milliseconds;
        TRY(CUDA(cudaEventRecord(roofs->begin, roofs->state->stream)));
        TRY(launch(roofs, roof, error));
        TRY(CUDA(cudaEventRecord(roofs->end, roofs->state->stream)));
        TRY(CUDA(cudaEventSynchronize(roofs->end)));
        TRY(CUDA(cudaEventElapsedTime(&milliseconds, roofs->begin, roofs->end)));
        *seconds = fmin(*seconds, 1e-3 * (double)milliseconds);
    }
    return STATUS_OK;
}

/* Appends "NAME=WHAT; " as far as there is room. */
static void settings_add(struct roofs *roofs, const char *name, const char *what)
{
    char *text = roofs->device->roof_settings;
    size_t room = sizeof roofs->device->roof_settings - roofs->settings_used;
    int length = snprintf(text + roofs->settings_used, room, "%s%s=%s",
                          roofs->settings_used > 0 ? "; " : "", name, what);
    if (length > 0 && (size_t)length < room)
        roofs->settings_used += (size_t)length;
    else
        text[roofs->settings_used] = '\0';
}

/* ---- memory ---- */

static const struct shape memory_shapes[] = {{2, 1024}, {4, 512}, {8, 256}, {16, 128}, {32, 256},
                                             {64, 256}, {0, 128}, {0, 256}, {0, 1024}};
enum { MEMORY_SHAPES = sizeof memory_shapes / sizeof *memory_shapes };

struct memory_roof {
    const struct memory_kernel *kernel;
    void *arrays[3];
    size_t bytes; /* of each array */
    int repeat, blocks, threads;
};

static enum status memory_launch(struct roofs *roofs, const void *roof, struct error *error)
{
    const struct memory_roof *m = roof;
    return cuda_check(m->kernel->launch(m->arrays[0], m->arrays[1], m->arrays[2], m->bytes,
                                        m->repeat, m->blocks, m->threads, roofs->state->stream),
                      m->kernel->name, error);
}

static enum status memory_best(struct roofs *roofs, struct memory_roof *m, double *bandwidth,
                               char setting[SETTING_MAX], struct error *error)
{
    double bytes = (double)m->bytes * m->kernel->bytes_moved * m->repeat;
    double best = 0.0;
    for (int i = 0; i < MEMORY_SHAPES; ++i) {
        double seconds;
        m->blocks = memory_shapes[i].blocks * roofs->state->multiprocessors;
        m->threads = memory_shapes[i].threads;
        TRY(shortest_time(roofs, memory_launch, m, REPETITIONS, &seconds, error));
        if (bytes / seconds > best) {
            best = bytes / seconds;
            snprintf(setting, SETTING_MAX,
                     "%s %dx%zu bytes, %d blocks (0: one a tile) of %d threads", m->kernel->name,
                     m->kernel->arrays, m->bytes, m->blocks, m->threads);
        }
    }
    *bandwidth = best;
    return STATUS_OK;
}

static double *bandwidth_field(struct device *device, const char *pattern, enum memory_level level)
{
    double *const fields[] = {device->bandwidth_read, device->bandwidth_write,
                              device->bandwidth_copy, device->bandwidth_triad};
    static const char *const names[] = {"read", "write", "copy", "triad"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (strcmp(names[i], pattern) == 0)
            return &fields[i][level];
    return NULL;
}

/* The four patterns on a working set that is shared out among the arrays of each. */
static enum status memory_level(struct roofs *roofs, enum memory_level level, void *const arrays[3],
                                double array_bytes, double working_set, double traffic,
                                struct error *error)
{
    char winner[SETTING_MAX] = "";
    double peak = 0.0;
    for (const struct memory_kernel *kernel = memory_kernels; kernel->name; ++kernel) {
        struct memory_roof m = {.kernel = kernel, .arrays = {arrays[0], arrays[1], arrays[2]}};
        char setting[SETTING_MAX] = "";
        double bandwidth;
        m.bytes = (size_t)fmin(array_bytes, working_set / kernel->arrays) / 4096 * 4096;
        m.repeat = (int)fmax(1.0, traffic / ((double)m.bytes * kernel->bytes_moved));
        TRY(memory_best(roofs, &m, &bandwidth, setting, error));
        double *field = bandwidth_field(roofs->device, kernel->name, level);
        *field = fmax(*field, bandwidth); /* of the pattern's rows; missing before the first */
        if (bandwidth > peak) {
            peak = bandwidth;
            memcpy(winner, setting, sizeof winner);
        }
    }
    roofs->device->peak_bandwidth[level] = peak;
    settings_add(roofs, memory_level_name[level], winner);
    return STATUS_OK;
}

/* For DRAM, arrays far beyond L2. For L2, a quarter of it: where the cache has two partitions, half
 * of it can hold copies of the other half's lines. */
static enum status memory_levels(struct roofs *roofs, const struct roof_request *request,
                                 void *const arrays[3], double array_bytes, struct error *error)
{
    const double l2 = (double)roofs->state->l2_bytes;
    const double l2_traffic = 4e9; /* bytes: about a millisecond */
    for (int i = 0; i < 3; ++i) {
        struct fill fill = fill_make(1, (enum tensor)i, 24, 0);
        TRY(CUDA(kernel_fill(PRECISION_FP32, arrays[i], (int64_t)(array_bytes / sizeof(float)),
                             fill, 0, roofs->state->stream)));
    }
    if (request->memory[LEVEL_DRAM] && array_bytes < 8.0 * l2)
        settings_add(roofs, "dram", "not measured: too little free memory");
    else if (request->memory[LEVEL_DRAM])
        TRY(memory_level(roofs, LEVEL_DRAM, arrays, array_bytes, 3.0 * array_bytes, 0.0, error));
    if (request->memory[LEVEL_L2] && l2 > 0.0)
        TRY(memory_level(roofs, LEVEL_L2, arrays, array_bytes, l2 / 4.0, l2_traffic, error));
    return STATUS_OK;
}

static enum status memory_roofs(struct roofs *roofs, const struct roof_request *request,
                                struct error *error)
{
    const double most = 4.0 * 1024 * 1024 * 1024; /* bytes: launch and tail are below 1 % there */
    size_t available, total;
    TRY(CUDA(cudaMemGetInfo(&available, &total)));
    double bytes = 4096.0 * floor(fmin(most, (double)available / 8.0) / 4096.0);
    void *arrays[3] = {NULL, NULL, NULL};
    enum status status = STATUS_OK;
    for (int i = 0; i < 3 && status == STATUS_OK; ++i)
        status = memory_allocate(bytes, "the memory roofs", &arrays[i], error);
    if (status == STATUS_OK)
        status = memory_levels(roofs, request, arrays, bytes, error);
    for (int i = 0; i < 3; ++i)
        cudaFree(arrays[i]);
    return status;
}

/* ---- vector units ---- */

static const struct shape fma_shapes[] = {{1, 1024}, {2, 1024}, {8, 256}, {4, 256}, {2, 512}};
enum {
    FMA_SHAPES = sizeof fma_shapes / sizeof *fma_shapes,
    FMA_BLOCKS_MAX = 8,
    THREADS_MAX = 1024
};

struct vector_roof {
    const struct fma_kernel *kernel;
    void *out;
    int64_t iterations;
    int blocks, threads;
};

static enum status vector_launch(struct roofs *roofs, const void *roof, struct error *error)
{
    const struct vector_roof *v = roof;
    return cuda_check(
        v->kernel->launch(v->out, v->iterations, v->blocks, v->threads, roofs->state->stream),
        "fma kernel", error);
}

/* As many iterations as take a few milliseconds, whatever the rate. */
static enum status vector_shape(struct roofs *roofs, struct vector_roof *v, double *rate,
                                struct error *error)
{
    const double aim = 3e-3; /* s */
    double seconds;
    v->iterations = 8;
    TRY(shortest_time(roofs, vector_launch, v, 2, &seconds, error));
    v->iterations = (int64_t)fmin(fmax(8.0 * aim / seconds, 8.0), 1e6);
    TRY(shortest_time(roofs, vector_launch, v, REPETITIONS, &seconds, error));
    *rate = (double)v->iterations * (double)v->kernel->flops_per_iteration * v->blocks *
            v->threads / seconds;
    return STATUS_OK;
}

static enum status vector_roof(struct roofs *roofs, const struct fma_kernel *kernel, void *out,
                               struct error *error)
{
    struct vector_roof v = {.kernel = kernel, .out = out};
    char winner[SETTING_MAX] = "", name[32];
    double best = 0.0;
    for (int i = 0; i < FMA_SHAPES; ++i) {
        double rate;
        v.blocks = fma_shapes[i].blocks * roofs->state->multiprocessors;
        v.threads = fma_shapes[i].threads;
        TRY(vector_shape(roofs, &v, &rate, error));
        if (rate > best) {
            best = rate;
            snprintf(winner, sizeof winner, "fma %dx%d", v.blocks, v.threads);
        }
    }
    roofs->device->peak_vector[kernel->precision] = best;
    snprintf(name, sizeof name, "%s vector", precision_info[kernel->precision].name);
    settings_add(roofs, name, winner);
    return STATUS_OK;
}

static enum status vector_roofs(struct roofs *roofs, const struct roof_request *request,
                                struct error *error)
{
    const struct chip *chip = chip_find(roofs->state->capability);
    double threads = (double)FMA_BLOCKS_MAX * THREADS_MAX * roofs->state->multiprocessors;
    void *out = NULL;
    TRY(memory_allocate(threads * sizeof(double), "the FMA roofs", &out, error));
    enum status status = STATUS_OK;
    for (const struct fma_kernel *kernel = fma_kernels;
         kernel->flops_per_iteration > 0 && status == STATUS_OK; ++kernel)
        if (request->compute[kernel->precision] && chip->vector[kernel->precision] != 0.0)
            status = vector_roof(roofs, kernel, out, error);
    cudaFree(out);
    return status;
}

/* ---- tensor units: the best matrix product of cuBLASLt ---- */

static const struct gemm_format {
    enum precision precision;
    cudaDataType_t data, scale;
    cublasComputeType_t compute;
} gemm_formats[] = {
    {PRECISION_FP64, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    {PRECISION_TF32, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    {PRECISION_FP16, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {PRECISION_BF16, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
};
enum { GEMM_FORMATS = sizeof gemm_formats / sizeof *gemm_formats, GEMM_CANDIDATES = 8 };

/* C = A^T B, square; all owned. */
struct gemm {
    const struct gemm_format *format;
    int64_t n;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulPreference_t preference;
    void *a, *b, *c, *workspace;
    cublasLtMatmulAlgo_t algorithm;
};
static const size_t gemm_workspace = (size_t)64 << 20; /* bytes */

static enum status gemm_launch(struct roofs *roofs, const void *roof, struct error *error)
{
    static const float one_float = 1.0f, zero_float = 0.0f;
    static const double one_double = 1.0, zero_double = 0.0;
    const struct gemm *g = roof;
    bool wide = g->format->scale == CUDA_R_64F;
    const void *one = wide ? (const void *)&one_double : &one_float;
    const void *zero = wide ? (const void *)&zero_double : &zero_float;
    return CUBLAS(cublasLtMatmul(g->handle, g->operation, one, g->a, g->layout, g->b, g->layout,
                                 zero, g->c, g->layout, g->c, g->layout, &g->algorithm,
                                 g->workspace, gemm_workspace, roofs->state->stream));
}

static enum status gemm_describe(struct gemm *g, struct error *error)
{
    const cublasOperation_t transpose = CUBLAS_OP_T;
    uint64_t n = (uint64_t)g->n;
    TRY(CUBLAS(cublasLtCreate(&g->handle)));
    TRY(CUBLAS(cublasLtMatmulDescCreate(&g->operation, g->format->compute, g->format->scale)));
    TRY(CUBLAS(cublasLtMatmulDescSetAttribute(g->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                              sizeof transpose)));
    TRY(CUBLAS(cublasLtMatrixLayoutCreate(&g->layout, g->format->data, n, n, g->n)));
    TRY(CUBLAS(cublasLtMatmulPreferenceCreate(&g->preference)));
    return CUBLAS(cublasLtMatmulPreferenceSetAttribute(g->preference,
                                                       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                       &gemm_workspace, sizeof gemm_workspace));
}

/* Random operands: zeros would draw less power and so run faster than real data. */
static enum status gemm_allocate(struct roofs *roofs, struct gemm *g, struct error *error)
{
    const struct precision_info *info = &precision_info[g->format->precision];
    int64_t size = g->n * g->n;
    double bytes = (double)size * (double)info->bytes;
    void **const operands[] = {&g->a, &g->b};
    for (int i = 0; i < 2; ++i) {
        struct fill fill = fill_make(1, (enum tensor)i, info->significand, 0);
        TRY(memory_allocate(bytes, "the tensor roofs", operands[i], error));
        TRY(CUDA(
            kernel_fill(g->format->precision, *operands[i], size, fill, 0, roofs->state->stream)));
    }
    TRY(memory_allocate(bytes, "the tensor roofs", &g->c, error));
    return memory_allocate((double)gemm_workspace, "the tensor roofs", &g->workspace, error);
}

/* Whatever of cuBLASLt's proposals runs is timed; one that does not is passed over. */
static enum status gemm_best(struct roofs *roofs, struct gemm *g, double *rate, struct error *error)
{
    cublasLtMatmulHeuristicResult_t found[GEMM_CANDIDATES];
    int count = 0;
    double best = INFINITY;
    TRY(CUBLAS(cublasLtMatmulAlgoGetHeuristic(g->handle, g->operation, g->layout, g->layout,
                                              g->layout, g->layout, g->preference, GEMM_CANDIDATES,
                                              found, &count)));
    for (int i = 0; i < count; ++i) {
        double seconds;
        g->algorithm = found[i].algo;
        enum status status = shortest_time(roofs, gemm_launch, g, REPETITIONS, &seconds, error);
        if (status == STATUS_DEVICE)
            return status;
        if (status == STATUS_OK)
            best = fmin(best, seconds);
    }
    if (isinf(best))
        return error_set(error, STATUS_UNSUPPORTED, "cuBLASLt has no matrix product in %s",
                         precision_info[g->format->precision].name);
    *rate = 2.0 * pow((double)g->n, 3.0) / best;
    return STATUS_OK;
}

static void gemm_destroy(struct gemm *g)
{
    cudaFree(g->workspace);
    cudaFree(g->c);
    cudaFree(g->b);
    cudaFree(g->a);
    if (g->preference)
        cublasLtMatmulPreferenceDestroy(g->preference);
    if (g->layout)
        cublasLtMatrixLayoutDestroy(g->layout);
    if (g->operation)
        cublasLtMatmulDescDestroy(g->operation);
    if (g->handle)
        cublasLtDestroy(g->handle);
}

static enum status tensor_roof(struct roofs *roofs, const struct gemm_format *format,
                               struct error *error)
{
    struct gemm g = {.format = format, .n = 8192};
    const struct precision_info *info = &precision_info[format->precision];
    char winner[SETTING_MAX], name[32];
    double rate = NAN;
    size_t available, total;
    TRY(CUDA(cudaMemGetInfo(&available, &total)));
    while (g.n > 1024 && 4.0 * (double)(g.n * g.n) * (double)info->bytes > (double)available)
        g.n /= 2;
    enum status status = gemm_describe(&g, error);
    if (status == STATUS_OK)
        status = gemm_allocate(roofs, &g, error);
    if (status == STATUS_OK)
        status = gemm_best(roofs, &g, &rate, error);
    gemm_destroy(&g);
    TRY(status);
    roofs->device->peak_tensor[format->precision] = rate;
    snprintf(name, sizeof name, "%s tensor", info->name);
    snprintf(winner, sizeof winner, "cublasLt %lldx%lldx%lld", (long long)g.n, (long long)g.n,
             (long long)g.n);
    settings_add(roofs, name, winner);
    return STATUS_OK;
}

/* Where the rate is not known, fp64 is left out: such chips do it on their vector units. */
static enum status tensor_roofs(struct roofs *roofs, const struct roof_request *request,
                                struct error *error)
{
    const struct chip *chip = chip_find(roofs->state->capability);
    for (int i = 0; i < GEMM_FORMATS; ++i) {
        enum precision precision = gemm_formats[i].precision;
        double known = chip->tensor[precision];
        bool offered = known > 0.0 || (isnan(known) && precision != PRECISION_FP64);
        if (request->compute[precision] && offered)
            TRY(tensor_roof(roofs, &gemm_formats[i], error));
    }
    return STATUS_OK;
}

/* ---- launches ---- */

/* Time per empty kernel of a run of them. All are enqueued before the first begins, as in timing.c:
 * what is left is the gap from one kernel to the next, not the pace of the host. */
static enum status launch_time(struct roofs *roofs, double *seconds, struct error *error)
{
    enum { LAUNCHES = 500 };         /* a stream's queue holds about a thousand */
    const double enqueueing = 10e-3; /* s, more than 500 launches take the host */
    cudaStream_t stream = roofs->state->stream;
    float milliseconds;
    TRY(CUDA(kernel_delay(enqueueing, stream)));
    TRY(CUDA(cudaEventRecord(roofs->begin, stream)));
    for (int i = 0; i < LAUNCHES; ++i)
        TRY(CUDA(kernel_empty(stream)));
    TRY(CUDA(cudaEventRecord(roofs->end, stream)));
    TRY(CUDA(cudaEventSynchronize(roofs->end)));
    TRY(CUDA(cudaEventElapsedTime(&milliseconds, roofs->begin, roofs->end)));
    *seconds = 1e-3 * (double)milliseconds / LAUNCHES;
    return STATUS_OK;
}

/* Not the best but the median of several: a roof of time is what a launch costs, not its luckiest
 * case. */
static enum status launch_roof(struct roofs *roofs, struct error *error)
{
    enum { SAMPLES = 7 };
    double seconds[SAMPLES];
    struct stats stats;
    TRY(launch_time(roofs, &seconds[0], error)); /* warm-up */
    for (int i = 0; i < SAMPLES; ++i)
        TRY(launch_time(roofs, &seconds[i], error));
    TRY(stats_compute(seconds, SAMPLES, &stats, error));
    roofs->device->launch_overhead = stats.median;
    settings_add(roofs, "launch", "gap of 500 queued empty kernels, median of 7");
    return STATUS_OK;
}

/* ---- all ---- */

/* A roof that this device or its free memory does not offer stays missing, with the reason. */
static enum status roof_group(struct roofs *roofs, const char *name, enum status status,
                              struct error *error)
{
    if (status != STATUS_UNSUPPORTED)
        return status;
    char reason[SETTING_MAX];
    snprintf(reason, sizeof reason, "not measured: %.*s", (int)sizeof reason - 16, error->text);
    settings_add(roofs, name, reason);
    return STATUS_OK;
}

static enum status roofs_run(struct roofs *roofs, const struct roof_request *request,
                             struct error *error)
{
    TRY(CUDA(cudaEventCreate(&roofs->begin)));
    TRY(CUDA(cudaEventCreate(&roofs->end)));
    if (request->memory[LEVEL_DRAM] || request->memory[LEVEL_L2])
        TRY(roof_group(roofs, "memory", memory_roofs(roofs, request, error), error));
    TRY(roof_group(roofs, "vector", vector_roofs(roofs, request, error), error));
    TRY(roof_group(roofs, "tensor", tensor_roofs(roofs, request, error), error));
    return request->launch ? launch_roof(roofs, error) : STATUS_OK;
}

enum status roofs_measure(struct device_state *state, const struct roof_request *request,
                          struct device *device, struct error *error)
{
    struct device measured = *device;
    struct roofs roofs = {.state = state, .device = &measured};
    measured.roof_settings[0] = '\0';
    enum status status = roofs_run(&roofs, request, error);
    if (roofs.end)
        cudaEventDestroy(roofs.end);
    if (roofs.begin)
        cudaEventDestroy(roofs.begin);
    if (status == STATUS_OK)
        *device = measured;
    return status;
}
