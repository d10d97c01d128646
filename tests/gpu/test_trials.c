/* Compares hand-written kernels with references. Each trial prepares a configuration as the worker
 * does, runs it once, and compares all elements of all results (only some, if an element takes many
 * products) with the workload's reference in fp64. Further runs must have the same hash, and a
 * result with a flipped bit must have another hash.
 * This program allocates the arrays of the worker. Arrays begin 16 bytes after a multiple of 256,
 * and nothing may be written before or after them. There is no search: each candidate has its own
 * trial.
 *
 * Usage: test_trials plain|tiles|lstm [exact|guarded [TEXT]]. With "exact" no guard bytes follow
 * the arrays, so that compute-sanitizer reports the first byte beyond. TEXT selects
 * configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/in_turn.h"
#include "base/clock.h"
#include "model/reference.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/cuda/workloads/workloads.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/prepare.h"
#include "worker/gpu/search.h"

enum { SKIPPED = 77, SEED = 5, OFFSET = 16, GUARD = 4096, BLOCKS = 64 };

static struct gpu gpu;
static struct {
    char *memory;
    size_t bytes;
} blocks[BLOCKS];             /* arrays in use */
static size_t guard = GUARD;  /* number of guard bytes after an array */
static int wanted, offered;   /* candidate of this trial; number of candidates, 0: no search */
static int checked, failures; /* configurations */
static int hashed, flipped;   /* numbers of further runs, and of flipped bits */
static double hash_time;      /* s; time of all hashes */

static void fail(const char *text, const char *problem)
{
    fprintf(stderr, "FAIL: %s, candidate %d: %s\n", text, wanted, problem);
    ++failures;
}

/* ---- the linker calls these instead of the worker's functions ---- */

enum status __wrap_arena_allocate(struct arena *arena, double bytes, const char *what,
                                  void **memory, struct error *error);
enum status __wrap_arena_allocate(struct arena *arena, double bytes, const char *what,
                                  void **memory, struct error *error)
{
    const size_t size = (size_t)bytes;
    int i = 0;
    (void)arena;
    *memory = NULL;
    if (size == 0)
        return STATUS_OK;
    while (i < BLOCKS && blocks[i].memory)
        ++i;
    if (i == BLOCKS || cudaMalloc((void **)&blocks[i].memory, OFFSET + size + guard))
        return error_set(error, STATUS_FAILED, "no memory for %s", what);
    blocks[i].bytes = size;
    *memory = blocks[i].memory + OFFSET;
    TRY(CUDA(cudaMemset(blocks[i].memory, 0xff, OFFSET + size + guard)));
    return CUDA(cudaDeviceSynchronize()); /* waits, because the worker's stream does not wait for
                                             the memset */
}

void __wrap_arena_free(struct arena *arena, void *memory);
void __wrap_arena_free(struct arena *arena, void *memory)
{
    (void)arena;
    for (int i = 0; i < BLOCKS && memory; ++i)
        if (blocks[i].memory && blocks[i].memory + OFFSET == (char *)memory) {
            cudaFree(blocks[i].memory);
            blocks[i].memory = NULL;
        }
}

enum status __wrap_search_run(const struct search *search, int *chosen, struct record *record,
                              struct error *error);
enum status __wrap_search_run(const struct search *search, int *chosen, struct record *record,
                              struct error *error)
{
    (void)record;
    offered = search->count;
    *chosen = wanted;
    return search->bind(search->gpu, search->work, wanted, error);
}

/* ---- one trial ---- */

static void guards_check(const char *text)
{
    static unsigned char around[OFFSET + GUARD];
    for (int i = 0; i < BLOCKS; ++i) {
        if (!blocks[i].memory)
            continue;
        cudaMemcpy(around, blocks[i].memory, OFFSET, cudaMemcpyDeviceToHost);
        cudaMemcpy(around + OFFSET, blocks[i].memory + OFFSET + blocks[i].bytes, guard,
                   cudaMemcpyDeviceToHost);
        for (size_t j = 0; j < OFFSET + guard; ++j)
            if (around[j] != 0xff) {
                fail(text, "it writes where it must not");
                return;
            }
    }
}

static enum status computed_read(void *context, enum tensor tensor, const int64_t *offsets,
                                 int64_t count, double *values, struct error *error)
{
    return work_read(&gpu, context, tensor, offsets, count, values, error);
}

static void slice_check(const char *text, const struct config *config, const struct slice *slice,
                        struct work *work)
{
    struct slice_errors errors = {0};
    struct error error = {""};
    char problem[160];
    double *values = malloc((size_t)slice->count * sizeof *values);
    enum status status =
        work_read(&gpu, work, slice->tensor, slice->offsets, slice->count, values, &error);
    if (status == STATUS_OK)
        slice_compare(slice, values, config_precision(config), &errors);
    if (status || !(errors.norm <= config_tolerance(config).accurate)) {
        snprintf(problem, sizeof problem, "%s: relative error %g over %lld elements %.60s",
                 tensor_name[slice->tensor], errors.norm, (long long)slice->count, error.text);
        fail(text, problem);
    }
    free(values);
}

static enum status lstm_results(void *context, const void *results, struct error *error)
{
    (void)context;
    return lstm_compute(&gpu, results, error);
}

/* The reference that the device computes equals that of the host, except for the order of
 * additions. */
static void reference_trial(const char *text)
{
    struct config config;
    struct error error = {""};
    if (config_parse(text, &config, &error))
        fail(text, error.text);
    if (config_check(&config, &error))
        return;
    struct reference_request request = {&config,      SEED, 1e7,  64,  1000,
                                        loop_in_turn, NULL, NULL, NULL};
    struct expectation host = {.count = 0}, device = {.count = 0};
    enum status status = config.workload->reference(&request, &host, &error);
    request.compute = lstm_results;
    if (status || config.workload->reference(&request, &device, &error))
        fail(text, error.text);
    for (size_t i = 0; i < device.count; ++i) {
        struct slice_errors errors = {0};
        slice_compare(&host.slices[i], device.slices[i].expected, PRECISION_FP64, &errors);
        if (!(errors.element <= 1e-11))
            fail(text, "the device's reference differs from the host's");
    }
    expectation_clear(&host);
    expectation_clear(&device);
    ++checked;
}

static void results_check(const char *text, const struct config *config, struct work *work)
{
    const struct reference_request request = {config,       SEED,          2e7,  64,  INT64_MAX,
                                              loop_in_turn, computed_read, work, NULL};
    struct expectation expectation = {.count = 0};
    struct error error;
    if (config->workload->reference(&request, &expectation, &error))
        fail(text, error.text);
    for (size_t i = 0; i < expectation.count; ++i)
        slice_check(text, config, &expectation.slices[i], work);
    expectation_clear(&expectation);
}

static uint64_t hash_of(const char *text, struct work *work)
{
    const double begin = clock_monotonic();
    struct error error;
    uint64_t hash = 0;
    if (work_hash(&gpu, work, &hash, &error))
        fail(text, error.text);
    hash_time += clock_monotonic() - begin;
    return hash;
}

static void bits_check(const char *text, struct work *work)
{
    enum { RUNS = 8 };
    const uint64_t hash = hash_of(text, work);
    struct error error;
    for (int i = 0; i < RUNS; ++i, ++hashed)
        if (work->ops->run(&gpu, work, INT64_MAX, &error) || hash_of(text, work) != hash)
            fail(text, "another run has other bits");
    for (int i = 0; i < TENSOR_COUNT; ++i) {
        char *data = (char *)work->ops->result(work, (enum tensor)i);
        const size_t bytes = data ? work->ops->bytes(work, (enum tensor)i) : 0;
        for (size_t at = 0; at < bytes; at += (bytes + 2) / 3, ++flipped) {
            unsigned char byte;
            cudaMemcpy(&byte, data + at, 1, cudaMemcpyDeviceToHost);
            cudaMemset(data + at, byte ^ 1 << flipped % 8, 1);
            cudaDeviceSynchronize();
            if (hash_of(text, work) == hash)
                fail(text, "its hash does not see a flipped bit");
            cudaMemset(data + at, byte, 1);
        }
    }
}

static enum status work_start(const char *text, const struct tensor_routine *routine,
                              struct config *config, struct record *record, struct work **work,
                              struct error *error)
{
    TRY(config_parse(text, config, error));
    TRY(config_check(config, error));
    record_set_config(record, config);
    TRY(tensor_work_prepare(routine, &gpu, config, SEED, work, record, error));
    TRY((*work)->ops->run(&gpu, *work, INT64_MAX, error));
    return vendor_synchronize(&gpu, error);
}

static void trial(const char *text, const struct tensor_routine *routine)
{
    struct config config;
    struct record record;
    struct error error = {""};
    struct work *work = NULL;
    ++checked;
    record_init(&record);
    if (work_start(text, routine, &config, &record, &work, &error))
        fail(text, error.text);
    else {
        guards_check(text);
        results_check(text, &config, work);
        bits_check(text, work);
    }
    if (work)
        work->ops->release(work);
    record_clear(&record);
}

/* ---- configurations ---- */

#define LIST(...)                                                                                  \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define PRECISIONS LIST("precision=fp64", "precision=fp32", "precision=fp16", "precision=bf16")
#define LOW        LIST("precision=fp16", "precision=bf16")

#define FAMILY(name, workload, routine, least, ...) /* clang-format off */ \
    {name, workload, routine, least, {__VA_ARGS__}} /* clang-format on */
static const struct family {
    const char *name, *workload;
    const struct tensor_routine *routine; /* NULL: the workload's reference */
    int least;                            /* least compute capability */
    const char *const *lists[6];          /* one word of each list makes a configuration */
} families[] = {
    /* Sizes: fewer elements than threads in a block, more than threads in all blocks. Windows:
       overlapping, apart, mostly in the padding. */
    FAMILY(
        "plain", "conv2d", &conv2d_plain, 0,
        LIST("batch=2 height=9 width=8 channels=3 filters=5",
             "batch=3 height=6 width=7 channels=8 filters=4 stride=1 groups=2 layout=nchw",
             "batch=1 height=11 width=12 channels=4 filters=70 kernel=3x2 dilation=2",
             "batch=5 height=4 width=4 channels=2 filters=130 stride=4 padding=valid layout=nchw",
             "batch=2 height=9 width=11 channels=3 filters=5 stride=2x1 padding=0:2x3:1",
             "batch=2 height=13 width=9 channels=3 filters=5 stride=1x3 dilation=3x1 layout=nchw"),
        LIST("pass=forward", "pass=backward-data", "pass=backward-filter",
             "pass=forward bias=yes activation=relu fusion=fused",
             "pass=forward bias=yes activation=tanh fusion=separate",
             "pass=backward bias=yes activation=sigmoid",
             "pass=training bias=yes activation=relu fusion=separate", "pass=training"),
        PRECISIONS),
    FAMILY("plain", "matmul", &matmul_plain, 0,
           LIST("m=1 n=1 k=1", "m=33 n=65 k=130", "m=9 n=31 k=7", "m=64 n=64 k=64"), PRECISIONS),
    FAMILY("plain", "norm", &norm_plain, 0,
           LIST("rows=6 columns=6", "rows=17 columns=33", "rows=300 columns=64",
                "rows=5 columns=257", "rows=4000 columns=6", "rows=2 columns=20000"),
           LIST("operation=layer", "operation=batch"),
           LIST("pass=forward", "pass=training", "pass=backward"), PRECISIONS),
    FAMILY("plain", "softmax", &softmax_plain, 0,
           LIST("rows=1 columns=1", "rows=300 columns=1", "rows=17 columns=33",
                "rows=5 columns=256", "rows=8 columns=257", "rows=1 columns=40001"),
           LIST("pass=forward", "pass=backward"), PRECISIONS),
    /* Each thread adds 15,626 terms. */
    FAMILY("plain", "softmax", &softmax_plain, 0, LIST("rows=1 columns=4000001 precision=fp32"),
           LIST("pass=forward", "pass=backward")),
    /* Incomplete tiles of pixels, of filters and of a patch; a slice with several taps, a tap in
       several slices; fewer slices than are in flight; outputs in padding alone. */
    FAMILY("tiles", "conv2d", &conv2d_tiled, 80,
           LIST("batch=2 height=9 width=8 channels=8 filters=5",
                "batch=3 height=13 width=11 channels=64 filters=64",
                "batch=1 height=16 width=16 channels=72 filters=136 stride=1",
                "batch=2 height=7 width=9 channels=40 filters=70 kernel=3x2 dilation=2 stride=1",
                "batch=5 height=4 width=4 channels=128 filters=130 stride=4 padding=valid kernel=1",
                "batch=3 height=6 width=7 channels=48 filters=24 stride=1 groups=2",
                "batch=2 height=12 width=10 channels=32 filters=68 groups=4 kernel=5",
                "batch=1 height=3 width=3 channels=16 filters=8 kernel=1 padding=5 stride=1",
                "batch=1 height=19 width=17 channels=24 filters=200 kernel=7 stride=3",
                "batch=1 height=1 width=1 channels=8 filters=1 kernel=1",
                "batch=2 height=9 width=11 channels=24 filters=70 stride=2x1 padding=0:2x3:1",
                "batch=2 height=13 width=9 channels=24 filters=70 stride=1x3 dilation=3"),
           LIST("bias=no", "bias=yes activation=relu fusion=fused", "activation=sigmoid",
                "bias=yes activation=tanh fusion=separate"),
           LOW),
    /* Shapes around the kernel's blocks: eight samples and units, 16 summands, four or eight steps.
     * A block has 64 units; more units need two or four blocks. */
    FAMILY("lstm", "lstm", &lstm_persistent, 80,
           LIST("batch=16", "batch=1 sequence=1 features=4 hidden=4",
                "batch=9 sequence=7 features=12 hidden=8",
                "batch=8 sequence=9 features=36 hidden=20",
                "batch=130 sequence=5 features=256 hidden=16",
                "batch=5 sequence=8 hidden=36 directions=2",
                "batch=3 sequence=5 features=8 hidden=12 layers=3 directions=2",
                "batch=16 sequence=128", "batch=11 sequence=33 features=20 hidden=64"),
           LOW),
    FAMILY("lstm", "lstm", &lstm_persistent, 90,
           LIST("batch=7 sequence=3 hidden=68",
                "batch=20 sequence=13 features=36 hidden=100 directions=2",
                "batch=16 hidden=128 layers=2", "batch=9 sequence=6 features=12 hidden=132",
                "batch=4 sequence=13 hidden=196", "batch=24 sequence=9 features=64 hidden=256"),
           LOW),
    /* The reference itself, with sums shorter and longer than a block. The last shape compares one
     * sample of many. */
    FAMILY("lstm", "lstm", NULL, 0,
           LIST("batch=3 sequence=1 features=1 hidden=1", "batch=5 sequence=7 features=6 hidden=33",
                "batch=2 sequence=3 features=70 hidden=40 layers=3 directions=2",
                "batch=90 sequence=40 features=300 hidden=128 directions=2"),
           LIST("cell=lstm", "cell=gru", "cell=tanh", "projection=20"),
           LIST("pass=forward", "pass=backward")),
};

/* Tries all configurations that consist of the text and one word of each list. */
static void cross(const char *text, const char *const *const *lists,
                  const struct tensor_routine *routine, const char *only)
{
    char longer[WORKLOAD_TEXT];
    for (const char *const *word = *lists; word && *word; ++word) {
        snprintf(longer, sizeof longer, "%s %s", text, *word);
        cross(longer, lists + 1, routine, only);
    }
    if (*lists || (only && !strstr(text, only)))
        return;
    offered = 0;
    if (!routine)
        reference_trial(text);
    for (wanted = 0; routine && (wanted == 0 || wanted < offered); ++wanted)
        trial(text, routine);
}

/* An image with more pixels than an int can count, of which only the last one is not 0, in both
 * layouts. */
static void large_image_check(void)
{
    struct conv2d s = {.batch = 1, .filters = 1, .groups = 1, .precision = PRECISION_FP16};
    s.out_height = 46341, s.out_width = 46342;
    const size_t bytes = 2 * (size_t)conv2d_y_size(&s);
    const uint16_t one = 0x3c00;
    char *dz = NULL;
    if (cudaMalloc((void **)&dz, bytes + sizeof one) != cudaSuccess) {
        puts("bias gradient of a large image left out: no memory");
        (void)cudaGetLastError();
        return;
    }
    cudaMemset(dz, 0, bytes);
    cudaMemcpy(dz + bytes - sizeof one, &one, sizeof one, cudaMemcpyHostToDevice);
    for (int i = 0; i < 2; ++i) {
        uint16_t sum = 0;
        s.layout = i ? LAYOUT_NCHW : LAYOUT_NHWC;
        cudaError_t code = kernel_conv2d_bias_gradient(&s, dz + bytes, dz, NULL);
        cudaMemcpy(&sum, dz + bytes, sizeof sum, cudaMemcpyDeviceToHost);
        ++checked;
        if (code != cudaSuccess || sum != one)
            fail("bias gradient of a large image", cudaGetErrorString(code));
    }
    cudaFree(dz);
}

int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "", *only = count > 3 ? arguments[3] : NULL;
    struct device device;
    struct error error;
    int gpus;
    if (gpu_count(&gpus, &error)) {
        printf("%s\n", error.text);
        return SKIPPED;
    }
    device_init(&device);
    if (gpu_open(0, &gpu, &device, &error)) {
        printf("FAIL: %s\n", error.text);
        return 1;
    }
    guard = count > 2 && strcmp(arguments[2], "exact") == 0 ? 0 : GUARD;
    if (strcmp(name, "plain") == 0 && !only)
        large_image_check();
    for (size_t i = 0; i < sizeof families / sizeof *families; ++i)
        if (strcmp(families[i].name, name) == 0 && gpu.capability >= families[i].least)
            cross(families[i].workload, families[i].lists, families[i].routine, only);
    gpu_close(&gpu);
    printf("%d configurations, %d further runs, %d flipped bits, %g s for hashes, %d failures\n",
           checked, hashed, flipped, hash_time, failures);
    return failures > 0 || checked == 0;
}
