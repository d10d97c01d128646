/* The routines of oneDNN through the CPU device: bitwise reproducible, in the threads of the team,
 * and named in the record. test_cpu_device.c compares the results. */
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opened.h"
#include "parsed.h"
#include "worker/cpu/onednn.h"
#include "worker/device_ops.h"

static const uint64_t seed = 3;

/* Returns NULL if the configuration is not supported. */
static struct work *prepare(struct device_state *state, const char *text, struct record *record)
{
    struct config config = parse(text);
    struct work *work = NULL;
    record_init(record);
    enum status status = device_ops.prepare(state, &config, seed, &work, record, &failure);
    if (status != STATUS_OK && status != STATUS_UNSUPPORTED)
        fail_msg("%s: %s", text, failure.text);
    if (status)
        record_clear(record);
    return work;
}

static void read_all(struct device_state *state, struct work *work, enum tensor tensor,
                     double *values, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        assert_ok(device_ops.read(state, work, tensor, &i, 1, &values[i], &failure));
}

DEVICE_TEST(results_are_the_same_to_the_bit)
{
    static const struct {
        const char *text;
        enum tensor result;
        int64_t count;
    } cases[] = {
        {"conv2d batch=4 height=28 width=28 channels=64 filters=64 stride=1 pass=backward-filter",
         TENSOR_WEIGHT, 64 * 64 * 9},
        {"conv2d batch=4 height=28 width=28 channels=64 filters=64 stride=1", TENSOR_OUTPUT, 50000},
        {"matmul m=256 n=256 k=3000", TENSOR_OUTPUT, 256 * 256},
        {"lstm batch=32 sequence=20 features=64 hidden=64", TENSOR_OUTPUT, 32 * 20 * 64},
        {"attention batch=1 heads=5 sequence=90 keys=130 head_size=16 causal=yes", TENSOR_OUTPUT,
         5 * 90 * 16},
    };
    if (onednn_check(PRECISION_FP32, &failure))
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        size_t size = (size_t)cases[i].count * sizeof(double);
        double *first = malloc(size), *again = malloc(size);
        char text[WORKLOAD_TEXT];
        snprintf(text, sizeof text, "%s implementation=onednn", cases[i].text);
        for (int attempt = 0; attempt < 3; ++attempt) {
            static struct work *work;
            struct record record;
            if (attempt != 1)
                work = prepare(*state, text, &record);
            assert_non_null(work);
            assert_ok(device_ops.run(*state, work, INT64_MAX, &failure));
            read_all(*state, work, cases[i].result, attempt ? again : first, cases[i].count);
            if (attempt > 0)
                assert_memory_equal(first, again, size);
            if (attempt != 0)
                device_ops.release(*state, work);
            if (attempt == 1)
                record_clear(&record);
        }
        free(first);
        free(again);
    }
}

static int threads_count(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* The row's algorithm is the library's name of the code, which the kernel's name contains. The
 * library starts no threads. */
DEVICE_TEST(record_names_the_code)
{
    struct record record;
    double seconds[4];
    if (onednn_check(PRECISION_FP32, &failure))
        skip();
    const int threads = threads_count();
    struct work *work =
        prepare(*state, "conv2d batch=4 channels=32 layout=nchw implementation=onednn", &record);
    assert_non_null(work);
    assert_true(record.algorithm[0] != '\0' && record.workspace > 0.0);
    assert_ok(device_ops.time(*state, work, false, 4, seconds, &record, &failure));
    assert_int_equal(threads_count(), threads);
    assert_ok(device_ops.trace(*state, work, false, &record, &failure));
    bool named = false;
    for (size_t i = 0; i < record.kernel_count; ++i)
        named |= strncmp(record.kernels[i].name, "onednn_convolution ", 19) == 0 &&
                 strcmp(record.kernels[i].name + 19, record.algorithm) == 0;
    assert_true(named);
    device_ops.release(*state, work);
    record_clear(&record);
}

/* `auto` is oneDNN if it supports the configuration, else the next routine. */
DEVICE_TEST(auto_prefers_onednn)
{
    static const struct {
        const char *text, *with, *without;
    } cases[] = {
        {"conv2d batch=1 channels=16 filters=16", "onednn", "plain"},
        {"conv2d batch=1 channels=16 filters=16 precision=fp64", "plain", "plain"},
        {"conv2d batch=1 channels=16 filters=16 pass=backward", "onednn", "plain"},
        {"conv2d batch=1 channels=16 filters=16 pass=training bias=yes activation=relu", "onednn",
         "plain"},
        {"matmul m=64 n=64 k=64", "onednn", "plain"},
        {"matmul m=64 n=64 k=64 precision=fp64", "plain", "plain"},
        {"lstm pass=backward", "onednn", "plain"},
        {"lstm cell=gru pass=backward", "onednn", "plain"},
        {"lstm projection=4 pass=backward", "plain", "plain"},
        {"lstm precision=fp64", "plain", "plain"},
    };
    bool with = onednn_check(PRECISION_FP32, &failure) == STATUS_OK;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        struct work *work = prepare(*state, cases[i].text, &record);
        assert_non_null(work);
        assert_string_equal(record.implementation, with ? cases[i].with : cases[i].without);
        device_ops.release(*state, work);
        record_clear(&record);
    }
    assert_int_equal(onednn_check(PRECISION_FP64, &failure), STATUS_UNSUPPORTED);
    assert_int_equal(onednn_check(PRECISION_TF32, &failure), STATUS_UNSUPPORTED);
}

static struct onednn_tensor a_matrix(enum onednn_place place, int64_t rows, int64_t columns)
{
    return onednn_matrix(PRECISION_FP32, place, rows, columns);
}

/* A packed tensor keeps the values of onednn_bind, unless the library uses the caller's layout on
 * this CPU. A reordered tensor has the current values. */
DEVICE_TEST(packed_tensors_are_copied_once)
{
    enum { N = 64 };
    static float x[N * N], w[N * N], y[N * N];
    const struct onednn_operation operation = {
        .kind = ONEDNN_MATMUL,
        .tensors = {[ONEDNN_SOURCE] = a_matrix(ONEDNN_REORDERED, N, N),
                    [ONEDNN_WEIGHTS] = a_matrix(ONEDNN_PACKED, N, N),
                    [ONEDNN_DESTINATION] = a_matrix(ONEDNN_PLAIN, N, N)},
    };
    void *data[ONEDNN_ARGUMENTS] = {
        [ONEDNN_SOURCE] = x, [ONEDNN_WEIGHTS] = w, [ONEDNN_DESTINATION] = y};
    struct onednn *made = NULL;
    if (onednn_check(PRECISION_FP32, &failure))
        skip();
    assert_ok(onednn_create(&operation, NULL, &made, &failure));
    size_t bytes = (onednn_memory(made) + 64) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);
    for (int i = 0; i < N * N; ++i)
        x[i] = w[i] = (float)(i / N == i % N);
    assert_ok(onednn_bind(made, data, memory, &failure));
    for (int i = 0; i < N * N; ++i)
        x[i] *= 3.0F;
    onednn_run(made, NULL);
    assert_true(y[0] == 3.0F && y[1] == 0.0F && y[N + 1] == 3.0F);
    for (int i = 0; i < N * N; ++i)
        w[i] *= 5.0F;
    onednn_run(made, NULL);
    assert_true((y[0] == 3.0F || y[0] == 15.0F) && y[N * N - 1] == y[0]);
    onednn_destroy(made);
    free(memory);
}

TEST(missing_operations_are_reported)
{
    struct onednn_operation operation = {.kind = ONEDNN_MATMUL, .pass = ONEDNN_BACKWARD};
    struct onednn *made = NULL;
    char text[8];
    operation.tensors[ONEDNN_SOURCE] = a_matrix(ONEDNN_PLAIN, 2, 3);
    operation.tensors[ONEDNN_WEIGHTS] = a_matrix(ONEDNN_PLAIN, 4, 5);
    operation.tensors[ONEDNN_DESTINATION] = a_matrix(ONEDNN_PLAIN, 2, 5);
    assert_int_equal(onednn_create(&operation, NULL, &made, &failure), STATUS_UNSUPPORTED);
    operation.pass = ONEDNN_INFERENCE;
    assert_fails(onednn_create(&operation, NULL, &made, &failure), STATUS_UNSUPPORTED, "oneDNN");
    assert_null(made);
    onednn_describe(text, sizeof text);
    assert_true(memchr(text, '\0', sizeof text) != NULL);
    onednn_destroy(NULL);
}
