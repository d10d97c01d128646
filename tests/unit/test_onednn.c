/* The routines of oneDNN through the CPU device: right in all passes and precisions that this CPU has, the
 * same to the bit each time, in the threads that are there, and told by name. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/reference.h"
#include "opened.h"
#include "parsed.h"
#include "worker/cpu/onednn.h"
#include "worker/device_ops.h"
#include "worker/verify.h"

static const uint64_t seed = 3;

/* NULL where the library does not offer it. */
static struct work *prepare(struct device_state *state, const char *text, struct record *record)
{
    struct config config = parse(text);
    struct work *work = NULL;
    struct error error;
    record_init(record);
    enum status status = device_ops.prepare(state, &config, seed, &work, record, &error);
    if (status != STATUS_OK && status != STATUS_UNSUPPORTED)
        fail_msg("%s: %s", text, error.text);
    if (status)
        record_clear(record);
    return work;
}

/* Runs between other precisions and shapes: what one leaves must not be in the next. */
static void it_agrees_with_the_reference(void **state)
{
    static const char *const cases[] = {
        "conv2d batch=2 height=14 width=14 channels=32 filters=48 kernel=3 stride=1",
        "conv2d batch=2 height=14 width=14 channels=32 filters=48 kernel=3 stride=2",
        "conv2d batch=1 height=28 width=28 channels=3 filters=64 kernel=7 stride=2",
        "conv2d batch=3 height=9 width=9 channels=64 filters=64 kernel=1 stride=1",
        "conv2d batch=2 height=9 width=8 channels=16 filters=16 kernel=3 stride=1 groups=16",
        "conv2d batch=2 height=9 width=8 channels=32 filters=64 kernel=3 stride=1 groups=2",
        "conv2d batch=1 height=11 width=13 channels=16 filters=8 kernel=3 stride=1 dilation=2",
        "conv2d batch=2 height=9 width=8 channels=16 filters=24 kernel=3 bias=yes activation=relu",
        "conv2d batch=2 height=9 width=8 channels=16 filters=24 kernel=3 bias=yes activation=tanh",
        "conv2d batch=2 height=9 width=8 channels=16 filters=24 kernel=3 activation=sigmoid",
        "conv2d batch=2 height=9 width=8 channels=16 filters=24 groups=2 kernel=1 bias=yes",
        "matmul m=64 n=48 k=80",
        "matmul m=1 n=1 k=1",
        "matmul m=33 n=65 k=130",
        "lstm batch=16 sequence=16 features=32 hidden=16",
        "lstm batch=1 sequence=1 features=1 hidden=1",
        "lstm batch=4 sequence=3 features=6 hidden=5 layers=3 directions=2",
        "lstm batch=8 sequence=5 features=32 hidden=64 layers=2",
        "lstm batch=8 sequence=5 features=32 hidden=64 layers=2 projection=16",
        "lstm batch=4 sequence=3 features=6 hidden=5 layers=2 directions=2 projection=3",
        "lstm cell=gru batch=16 sequence=16 features=32 hidden=16",
        "lstm cell=gru batch=4 sequence=3 features=6 hidden=5 layers=3 directions=2",
        "lstm cell=tanh batch=16 sequence=16 features=32 hidden=16",
        "lstm cell=tanh batch=4 sequence=3 features=6 hidden=5 layers=3 directions=2",
        "lstm cell=relu batch=16 sequence=16 features=32 hidden=16",
        "lstm cell=relu batch=4 sequence=3 features=6 hidden=5 directions=2",
        "elementwise elements=1 operation=relu",
        "elementwise elements=10007 operation=relu",
        "elementwise elements=10007 operation=sigmoid",
        "elementwise elements=10007 operation=tanh",
        "elementwise elements=10007 operation=add",
        "elementwise elements=10007 operation=scale",
        "linear batch=7 inputs=33 outputs=65",
        "linear batch=64 inputs=96 outputs=128 bias=yes activation=relu",
        "linear batch=64 inputs=96 outputs=128 bias=yes activation=gelu fusion=fused",
        "linear batch=1 inputs=96 outputs=128 bias=no activation=relu",
        "linear batch=20 inputs=96 outputs=128 bias=no activation=none pass=backward-data",
        "linear batch=20 inputs=96 outputs=128 bias=no activation=none pass=backward-weights",
        "linear batch=20 inputs=96 outputs=128 bias=yes activation=none pass=backward-weights",
        "pool batch=2 height=14 width=13 channels=32 operation=max",
        "pool batch=2 height=14 width=13 channels=32 operation=average",
        "pool batch=2 height=14 width=13 channels=5 operation=average layout=nchw",
        "pool batch=2 height=14 width=13 channels=16 operation=max layout=nchw",
        "softmax rows=37 columns=101",
        "softmax rows=3 columns=4096",
        "softmax rows=37 columns=101 pass=backward",
        "attention batch=2 heads=3 sequence=17 keys=33 head_size=16",
        "attention batch=2 heads=3 sequence=17 keys=33 head_size=16 causal=yes",
        "attention batch=1 heads=5 sequence=40 keys=9 head_size=7 causal=yes",
        "attention batch=1 heads=2 sequence=1 keys=1 head_size=1",
        "attention batch=3 heads=4 sequence=300 keys=700 head_size=64",
    };
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    static const char *const variants[] = {"layout=nhwc pass=forward",
                                           "layout=nchw pass=forward",
                                           "layout=nhwc pass=backward-data",
                                           "layout=nchw pass=backward-data",
                                           "layout=nhwc pass=backward-filter",
                                           "layout=nchw pass=backward-filter",
                                           "pass=forward",
                                           "pass=backward",
                                           ""};
    int done[3] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 9 * 3; ++i) {
        const char *shape = cases[i / 27], *variant = variants[i / 3 % 9];
        bool convolution = strncmp(shape, "conv2d", 6) == 0,
             recurrent = strncmp(shape, "lstm", 4) == 0;
        if ((i / 3 % 9 < 6) != convolution || (*variant == '\0') != (!convolution && !recurrent))
            continue;
        char text[WORKLOAD_TEXT];
        struct record record;
        struct error error;
        snprintf(text, sizeof text, "%s%s%s precision=%s implementation=onednn", shape,
                 *variant ? " " : "", variant, precisions[i % 3]);
        struct config config;
        if (config_parse(text, &config, &error))
            fail_msg("%s: %s", text, error.text);
        if (config_check(&config, &error))
            continue; /* of bias and activation, forward alone */
        struct work *work = prepare(*state, text, &record);
        if (!work)
            continue;
        assert_string_equal(record.implementation, "onednn");
        if (verify_work(&device_ops, *state, work, &config, seed, &record, &error))
            fail_msg("%s: %s", text, error.text);
        device_ops.release(*state, work);
        record_clear(&record);
        ++done[i % 3];
    }
    struct error error;
    for (int i = 0; i < 3; ++i) {
        static const enum precision of[] = {PRECISION_FP32, PRECISION_BF16, PRECISION_FP16};
        assert_true((done[i] > 0) == (onednn_check(of[i], &error) == STATUS_OK));
    }
}

static void read_all(struct device_state *state, struct work *work, enum tensor tensor,
                     double *values, int64_t count)
{
    struct error error;
    for (int64_t i = 0; i < count; ++i)
        assert_int_equal(device_ops.read(state, work, tensor, &i, 1, &values[i], &error), 0);
}

/* Twice in one work, and once in a new one. */
static void results_are_the_same_to_the_bit(void **state)
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
    struct error error;
    if (onednn_check(PRECISION_FP32, &error))
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
            assert_int_equal(device_ops.run(*state, work, INT64_MAX, &error), STATUS_OK);
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

static void no_second_team_is_started(void **state)
{
    struct record record;
    struct error error;
    double seconds[4];
    if (onednn_check(PRECISION_FP32, &error))
        skip();
    int before = threads_count();
    struct work *work = prepare(
        *state, "conv2d batch=4 height=28 width=28 channels=64 stride=1 implementation=onednn",
        &record);
    assert_non_null(work);
    assert_int_equal(device_ops.time(*state, work, false, 4, seconds, &record, &error), STATUS_OK);
    assert_int_equal(threads_count(), before);
    device_ops.release(*state, work);
    record_clear(&record);
}

/* The row's algorithm is the library's name of it, and the kernel's name has it, too. */
static void what_ran_is_named(void **state)
{
    struct record record;
    struct error error;
    if (onednn_check(PRECISION_FP32, &error))
        skip();
    struct work *work =
        prepare(*state, "conv2d batch=1 channels=32 layout=nchw implementation=onednn", &record);
    assert_non_null(work);
    assert_true(record.algorithm[0] != '\0' && record.workspace > 0.0);
    assert_int_equal(device_ops.trace(*state, work, false, &record, &error), STATUS_OK);
    bool named = false;
    for (size_t i = 0; i < record.kernel_count; ++i)
        named |= strncmp(record.kernels[i].name, "onednn_convolution ", 19) == 0 &&
                 strcmp(record.kernels[i].name + 19, record.algorithm) == 0;
    assert_true(named);
    device_ops.release(*state, work);
    record_clear(&record);
}

/* `auto` is oneDNN where it can, else the routine after it. */
static void auto_takes_it_where_it_can(void **state)
{
    static const struct {
        const char *text, *with, *without;
    } cases[] = {
        {"conv2d batch=1 channels=16 filters=16", "onednn", "im2col"},
        {"conv2d batch=1 channels=16 filters=16 precision=fp64", "im2col", "im2col"},
        {"matmul m=64 n=64 k=64", "onednn", "cblas"},
        {"matmul m=64 n=64 k=64 precision=fp64", "cblas", "cblas"},
        {"lstm precision=fp64", "cblas", "cblas"},
    };
    struct error error;
    bool with = onednn_check(PRECISION_FP32, &error) == STATUS_OK;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        struct record record;
        struct work *work = prepare(*state, cases[i].text, &record);
        assert_non_null(work);
        assert_string_equal(record.implementation, with ? cases[i].with : cases[i].without);
        device_ops.release(*state, work);
        record_clear(&record);
    }
    assert_int_equal(onednn_check(PRECISION_FP64, &error), STATUS_UNSUPPORTED);
    assert_int_equal(onednn_check(PRECISION_TF32, &error), STATUS_UNSUPPORTED);
}

static void a_matrix(struct onednn_tensor *tensor, int64_t rows, int64_t columns)
{
    *tensor = (struct onednn_tensor){.precision = PRECISION_FP32,
                                     .axes = 2,
                                     .extents = {rows, columns},
                                     .strides = {columns, 1}};
}

/* A packed tensor is the one that onednn_bind has seen; one reordered is always today's. */
static void packed_tensors_are_copied_once(void **state)
{
    enum { N = 64 };
    static float x[N * N], w[N * N], y[N * N];
    struct onednn_operation operation = {.kind = ONEDNN_MATMUL};
    void *data[ONEDNN_ARGUMENTS] = {
        [ONEDNN_SOURCE] = x, [ONEDNN_WEIGHTS] = w, [ONEDNN_DESTINATION] = y};
    struct onednn *made = NULL;
    struct error error;
    (void)state;
    if (onednn_check(PRECISION_FP32, &error))
        skip();
    a_matrix(&operation.tensors[ONEDNN_SOURCE], N, N);
    a_matrix(&operation.tensors[ONEDNN_WEIGHTS], N, N);
    a_matrix(&operation.tensors[ONEDNN_DESTINATION], N, N);
    operation.tensors[ONEDNN_WEIGHTS].place = ONEDNN_PACKED;
    operation.tensors[ONEDNN_SOURCE].place = ONEDNN_REORDERED;
    assert_int_equal(onednn_create(&operation, NULL, &made, &error), STATUS_OK);
    size_t bytes = (onednn_memory(made) + 64) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);
    for (int i = 0; i < N * N; ++i)
        x[i] = w[i] = (float)(i / N == i % N);
    assert_int_equal(onednn_bind(made, data, memory, &error), STATUS_OK);
    for (int i = 0; i < N * N; ++i)
        x[i] *= 3.0F;
    onednn_run(made, NULL);
    assert_true(y[0] == 3.0F && y[1] == 0.0F && y[N + 1] == 3.0F);
    for (int i = 0; i < N * N; ++i)
        w[i] *= 5.0F;
    onednn_run(made, NULL);
    assert_true(y[0] == 3.0F && y[N * N - 1] == 3.0F);
    onednn_destroy(made);
    free(memory);
}

static void what_it_lacks_is_said(void **state)
{
    (void)state;
    struct onednn_operation operation = {.kind = ONEDNN_MATMUL, .pass = ONEDNN_BACKWARD};
    struct onednn *made = NULL;
    struct error error;
    char text[8];
    a_matrix(&operation.tensors[ONEDNN_SOURCE], 2, 3);
    a_matrix(&operation.tensors[ONEDNN_WEIGHTS], 4, 5);
    a_matrix(&operation.tensors[ONEDNN_DESTINATION], 2, 5);
    assert_int_equal(onednn_create(&operation, NULL, &made, &error), STATUS_UNSUPPORTED);
    operation.pass = ONEDNN_INFERENCE;
    assert_int_equal(onednn_create(&operation, NULL, &made, &error), STATUS_UNSUPPORTED);
    assert_null(made);
    assert_non_null(strstr(error.text, "oneDNN"));
    onednn_describe(text, sizeof text);
    assert_true(memchr(text, '\0', sizeof text) != NULL);
    onednn_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_lacks_is_said),
        cmocka_unit_test_setup_teardown(packed_tensors_are_copied_once, open_device, close_device),
        cmocka_unit_test_setup_teardown(auto_takes_it_where_it_can, open_device, close_device),
        cmocka_unit_test_setup_teardown(what_ran_is_named, open_device, close_device),
        cmocka_unit_test_setup_teardown(no_second_team_is_started, open_device, close_device),
        cmocka_unit_test_setup_teardown(results_are_the_same_to_the_bit, open_device, close_device),
        cmocka_unit_test_setup_teardown(it_agrees_with_the_reference, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
