/* Passes of several parts on a scripted H200 (scripted_cuda.h): which kernels run in which order on
 * which tensors, that cuDNN's convolutions get the step's own tensors, and that all is given back
 * whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "parsed.h"
#include "scripted_bench.h"
#include "scripted_machine.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/check.h"
#include "worker/cuda/workloads/conv2d.h"
#include "worker/cuda/workloads/workloads.h"

/* ---- what stands in for the kernels and for cuDNN's convolutions ---- */

/* What ran, a word each; the arrays of each convolution, by pass; works of cuDNN that there are. */
static char ran[256];
static struct conv2d_arrays seen[CONV2D_BACKWARD_FILTER + 1];
static int parts;

static cudaError_t runs(const char *what, cudaStream_t stream)
{
    strcat(ran, ran[0] ? " " : "");
    strcat(ran, what);
    return script_enqueue(1e-5, stream);
}

static void within(const void *memory, int64_t elements, enum precision precision)
{
    script_within(memory, (size_t)elements * precision_info[precision].bytes, script.own);
}

static const char *const pass_words[] = {"y", "dx", "dw"};

static void arrays_check(const struct conv2d *s, const struct conv2d_arrays *a)
{
    within(a->x, conv2d_x_size(s), s->precision);
    within(a->w, conv2d_w_size(s), s->precision);
    within(a->y, conv2d_y_size(s), s->precision);
    seen[s->pass] = *a;
}

cudaError_t kernel_conv2d(const struct conv2d *s, const struct conv2d_arrays *a,
                          cudaStream_t stream)
{
    char word[16];
    assert_true(s->pass <= CONV2D_BACKWARD_FILTER && s->precision != PRECISION_TF32);
    arrays_check(s, a);
    if (a->b)
        within(a->b, s->filters, s->precision);
    snprintf(word, sizeof word, "%s%s", pass_words[s->pass], a->finish ? "+f" : "");
    return runs(word, stream);
}

cudaError_t kernel_conv2d_finish(const struct conv2d *s, void *y, const void *b,
                                 cudaStream_t stream)
{
    assert_ptr_equal(y, seen[CONV2D_FORWARD].y);
    assert_int_equal(b != NULL, s->bias);
    return runs("f", stream);
}

cudaError_t kernel_conv2d_slope(const struct conv2d *s, void *dz, const void *dy, const void *y,
                                cudaStream_t stream)
{
    within(dz, conv2d_y_size(s), s->precision);
    within(dy, conv2d_y_size(s), s->precision);
    assert_ptr_equal(y, seen[CONV2D_FORWARD].y);
    assert_true(dz != dy && dz != y && dy != y);
    return runs("dz", stream);
}

cudaError_t kernel_conv2d_bias_gradient(const struct conv2d *s, void *db, const void *dz,
                                        cudaStream_t stream)
{
    within(db, s->filters, s->precision);
    within(dz, conv2d_y_size(s), s->precision);
    return runs("db", stream);
}

cudaError_t kernel_update(enum precision precision, void *updated, const void *w, const void *dw,
                          double rate, int64_t count, cudaStream_t stream)
{
    within(updated, count, precision);
    assert_true(rate == CONV2D_LEARNING_RATE && updated != w && updated != dw && w != dw);
    return runs(dw == seen[CONV2D_BACKWARD_FILTER].w ? "w'" : "b'", stream);
}

struct part {
    struct work base;
    struct conv2d shape;
    struct conv2d_memory memory;
};

static enum status part_iterate(struct gpu *gpu, struct work *work, struct error *error)
{
    const struct part *part = (const struct part *)work;
    const struct conv2d_arrays arrays = {
        .x = part->memory.x, .w = part->memory.w, .y = part->memory.y};
    char word[16];
    arrays_check(&part->shape, &arrays);
    snprintf(word, sizeof word, "cudnn-%s", pass_words[part->shape.pass]);
    return CUDA(runs(word, gpu->stream));
}

static void part_release(struct work *work)
{
    --parts;
    free(work);
}

static const struct work_ops part_ops = {.iterate = part_iterate, .release = part_release};

enum status conv2d_part_prepare(struct gpu *gpu, const struct config *config, uint64_t seed,
                                const struct conv2d_memory *memory, struct work **work,
                                struct record *record, struct error *error)
{
    struct part *part = calloc(1, sizeof *part);
    (void)gpu, (void)seed;
    assert_non_null(part);
    part->base.ops = &part_ops;
    part->shape = conv2d_from(config);
    part->memory = *memory;
    assert_false(conv2d_is_step(&part->shape));
    if (script_call() != cudaSuccess) {
        free(part);
        return error_set(error, STATUS_FAILED, "scripted");
    }
    snprintf(record->algorithm, sizeof record->algorithm, "algo-%s", pass_words[part->shape.pass]);
    record->unit = UNIT_TENSOR;
    record->workspace = 100.0;
    ++parts;
    *work = &part->base;
    return STATUS_OK;
}

/* ---- tests ---- */

struct row {
    const char *text;
    work_preparation *prepare;
    const char *before, *runs, *algorithm;
};

static const char shape[] =
    "conv2d batch=2 height=9 width=8 channels=4 filters=6 groups=2 precision=fp16";

static const struct row rows[] = {
    {"pass=forward", conv2d_plain_prepare, "", "y", "thread-per-element"},
    {"pass=backward-data", conv2d_plain_prepare, "", "dx", "thread-per-element"},
    {"pass=backward-filter", conv2d_plain_prepare, "", "dw", "thread-per-element"},
    {"pass=forward bias=yes", conv2d_plain_prepare, "", "y+f", "thread-per-element"},
    {"pass=forward activation=relu fusion=separate", conv2d_plain_prepare, "", "y f",
     "thread-per-element"},
    {"pass=backward bias=yes", conv2d_plain_prepare, "", "db dx dw", "thread-per-element"},
    {"pass=backward bias=yes activation=tanh", conv2d_plain_prepare, "y+f", "dz db dx dw",
     "thread-per-element"},
    {"pass=training", conv2d_plain_prepare, "", "y dx dw w'", "thread-per-element"},
    {"pass=training bias=yes activation=relu", conv2d_plain_prepare, "", "y+f dz db dx dw w' b'",
     "thread-per-element"},
    {"pass=forward bias=yes", conv2d_step_prepare, "", "cudnn-y f", "algo-y"},
    {"pass=backward", conv2d_step_prepare, "", "cudnn-dx cudnn-dw", "algo-dx; algo-dw"},
    {"pass=backward activation=sigmoid", conv2d_step_prepare, "cudnn-y f", "dz cudnn-dx cudnn-dw",
     "algo-y; algo-dx; algo-dw"},
    {"pass=training bias=yes activation=relu", conv2d_step_prepare, "",
     "cudnn-y f dz db cudnn-dx cudnn-dw w' b'", "algo-y; algo-dx; algo-dw"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static struct config row_config(const struct row *row)
{
    char text[WORKLOAD_TEXT];
    snprintf(text, sizeof text, "%s %s", shape, row->text);
    return parse(text);
}

static void expect_run(const char *first, const char *second)
{
    char expected[sizeof ran];
    snprintf(expected, sizeof expected, "%s%s%s", first, *first && *second ? " " : "", second);
    assert_string_equal(ran, expected);
    ran[0] = '\0';
}

/* Convolutions after the activation's gradient take dz, not dy. */
static void gradients_are_joined(const struct conv2d *s)
{
    if (s->pass != CONV2D_BACKWARD && s->pass != CONV2D_TRAINING)
        return;
    assert_ptr_equal(seen[CONV2D_BACKWARD_DATA].y, seen[CONV2D_BACKWARD_FILTER].y);
    assert_ptr_not_equal(seen[CONV2D_BACKWARD_DATA].x, seen[CONV2D_BACKWARD_FILTER].x);
    assert_ptr_not_equal(seen[CONV2D_BACKWARD_DATA].w, seen[CONV2D_BACKWARD_FILTER].w);
}

static void parts_run_in_their_order(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; ++i) {
        const struct row *row = &rows[i];
        struct config config = row_config(row);
        struct conv2d s = conv2d_from(&config);
        struct work *work = NULL;
        struct record record;
        struct error error;
        record_init(&record);
        ran[0] = '\0';
        if (row->prepare(&bench.gpu, &config, 1, &work, &record, &error))
            fail_msg("%s: %s", row->text, error.text);
        expect_run(row->before, "");
        assert_string_equal(record.algorithm, row->algorithm);
        assert_int_equal(record.unit,
                         row->prepare == conv2d_plain_prepare ? UNIT_VECTOR : UNIT_TENSOR);
        assert_true(record.workspace == 100.0 * parts);
        assert_int_equal(work->ops->iterate(&bench.gpu, work, &error), STATUS_OK);
        expect_run("", row->runs);
        gradients_are_joined(&s);
        assert_int_equal(work->ops->run(&bench.gpu, work, 0, &error), STATUS_OK);
        expect_run(row->before, row->runs);
        work->ops->release(work);
        assert_int_equal(parts, 0);
        record_clear(&record);
    }
}

/* Whichever call fails, the row fails, and nothing is left behind. */
static void failures_leave_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; ++i) {
        struct config config = row_config(&rows[i]);
        enum status status = STATUS_FAILED;
        for (int call = 1; status; ++call) {
            struct work *work = NULL;
            struct record record;
            struct error error;
            record_init(&record);
            ran[0] = '\0';
            arena_trim(bench.gpu.arena);
            script.fail_at = script.calls + call;
            status = rows[i].prepare(&bench.gpu, &config, 1, &work, &record, &error);
            script.fail_at = 0;
            record_clear(&record);
            if (status == STATUS_OK) {
                work->ops->release(work);
                assert_true(call > 3);
            } else {
                assert_null(work);
            }
            assert_int_equal(parts, 0);
        }
    }
}

static void what_is_not_offered_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        work_preparation *prepare;
        const char *reason;
    } refused[] = {
        {"conv2d pass=training layout=auto", conv2d_step_prepare, "name a layout"},
        {"conv2d pass=training bias=yes fusion=fused", conv2d_step_prepare, "plain fuses them"},
        {"conv2d precision=tf32", conv2d_plain_prepare, "tensor units"},
        {"conv2d algorithm=fft", conv2d_plain_prepare, "is cuDNN's"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
        struct config config = parse(refused[i].text);
        struct work *work = NULL;
        struct record record;
        struct error error;
        record_init(&record);
        assert_int_equal(refused[i].prepare(&bench.gpu, &config, 1, &work, &record, &error),
                         STATUS_UNSUPPORTED);
        assert_non_null(strstr(error.text, refused[i].reason));
        record_clear(&record);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, bench_set_up, bench_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_run_in_their_order),
        TEST(failures_leave_nothing),
        TEST(what_is_not_offered_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
