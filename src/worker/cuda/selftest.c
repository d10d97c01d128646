#include "worker/cuda/selftest.h"

#include <math.h>

#include "kernels/kernels.h"
#include "worker/gpu/arena.h"
#include "worker/gpu/vendor.h"
#include "worker/cuda/profile.h"

static const double flops_tolerance = 1e-4, dram_tolerance = 0.005, cache_tolerance = 0.005;

struct selftest {
    struct profiler *profiler;
    struct gpu *gpu;
    FILE *stream;
    void *a, *b, *c; /* owned, on the device */
    int right, wrong;
};

enum { EXPECTED_MOST = 3, ITEMS_MOST = 24 };

struct expectation {
    enum quantity quantity;
    double value, tolerance;
};

/* Unused members are 0. */
struct item {
    struct selftest *test;
    char name[48];
    const struct known_kernel *kernel;
    const struct memory_kernel *memory;
    size_t bytes;
    int repeat;   /* iterations of `kernel`, or passes of `memory` */
    int blocks;   /* with `memory`, each block has a part of its own; 0: blocks share the arrays */
    bool in_dram; /* L2 is flushed around each run, so that data come from device memory */
    cudaError_t (*launch)(const struct item *item, cudaStream_t stream);
    enum quantity tensor; /* the only counted tensor quantity */
    struct expectation expected[EXPECTED_MOST];
    size_t count; /* 0: the counts are printed, not judged */
};

struct items {
    struct item list[ITEMS_MOST];
    size_t count;
};

static struct item *item_add(struct items *items, struct item item)
{
    items->list[items->count] = item;
    return &items->list[items->count++];
}

static enum status item_run(void *argument, struct error *error)
{
    const struct item *item = argument;
    cudaStream_t stream = item->test->gpu->stream;
    TRY(CUDA(item->launch(item, stream)));
    if (item->in_dram)
        TRY(vendor_flush(item->test->gpu, error));
    return CUDA(cudaStreamSynchronize(stream));
}

/* ---- comparison ---- */

static void print(struct selftest *test, const char *name, const char *what, double expected,
                  double counted, bool right)
{
    fprintf(test->stream, "%-26s %-22s %13.8g %13.8g  %s\n", name, what, expected, counted,
            right ? "right" : "WRONG");
    ++*(right ? &test->right : &test->wrong);
}

static void compare(const struct item *item, const char *how, const double values[QUANTITY_COUNT],
                    const struct outcome *outcome)
{
    struct selftest *test = item->test;
    char name[64], text[OUTCOME_TEXT];
    double others = 0.0; /* FLOPs of all other quantities */
    snprintf(name, sizeof name, "%s%s", item->name, how);
    if (outcome->code != COUNTED_YES) {
        outcome_format(outcome, counted_word, text);
        print(test, name, text, NAN, NAN, false);
        return;
    }
    for (size_t i = 0; i < item->count; ++i) {
        const struct expectation *e = &item->expected[i];
        double value = values[e->quantity];
        if (!profiler_has(test->profiler, e->quantity))
            fprintf(test->stream, "%-26s %-22s this chip has no counter for it\n", name,
                    quantity_name[e->quantity]);
        else
            print(test, name, quantity_name[e->quantity], e->value, value,
                  fabs(value - e->value) <= e->tolerance * e->value);
    }
    for (int quantity = 0; quantity <= QUANTITY_TENSOR_INT8; ++quantity) {
        bool own = false;
        for (size_t i = 0; i < item->count; ++i)
            own |= item->expected[i].quantity == (enum quantity)quantity;
        if (!own && !isnan(values[quantity]))
            others += values[quantity];
    }
    print(test, name, "all other FLOPs", 0.0, others, others == 0.0);
}

/* Counts items with the same tensor quantity, as ranges of one collection. */
static enum status check(struct selftest *test, struct item *const *items, size_t count,
                         const char *how, struct error *error)
{
    struct profiled_work works[ITEMS_MOST];
    double values[ITEMS_MOST][QUANTITY_COUNT];
    struct outcome outcome;
    if (count == 0)
        return STATUS_OK;
    for (size_t i = 0; i < count; ++i) /* to prepare the cache, an item runs once uncounted */
        works[i] = (struct profiled_work){item_run, item_run, items[i], NULL};
    TRY(profiler_count(test->profiler, quantity_tensor(items[0]->tensor), works, count, NULL, 0,
                       values, &outcome, error));
    for (size_t i = 0; i < count; ++i)
        if (items[i]->count > 0)
            compare(items[i], how, values[i], &outcome);
        else if (outcome.code == COUNTED_YES)
            fprintf(test->stream, "%s%s: DRAM reads %.0f, writes %.0f\n", items[i]->name, how,
                    values[i][QUANTITY_DRAM_READ], values[i][QUANTITY_DRAM_WRITE]);
    return STATUS_OK;
}

/* Counts each item alone. reattach: attaches CUPTI for each item. */
static enum status check_each(struct selftest *test, struct items *items, const char *how,
                              bool reattach, struct error *error)
{
    for (size_t i = 0; i < items->count; ++i) {
        struct item *item = &items->list[i];
        if (item->count == 0)
            continue;
        if (reattach)
            profiler_detach_counters(test->profiler);
        TRY(check(test, &item, 1, how, error));
    }
    return STATUS_OK;
}

/* Counts all items whose `tensor` is fp16 in one collection; vector kernels are among them. */
static enum status check_together(struct selftest *test, struct items *items, const char *how,
                                  struct error *error)
{
    struct item *chosen[ITEMS_MOST];
    size_t count = 0;
    for (size_t i = 0; i < items->count; ++i)
        if (items->list[i].tensor == QUANTITY_TENSOR_FP16)
            chosen[count++] = &items->list[i];
    return check(test, chosen, count, how, error);
}

/* ---- FLOPs ---- */

static cudaError_t flops_launch(const struct item *item, cudaStream_t stream)
{
    return item->kernel->launch(item->repeat, item->blocks, stream);
}

static void flops_list(struct selftest *test, const struct known_kernel *kernels,
                       struct items *items)
{
    const int capability = test->gpu->capability, iterations = 4000;
    const int blocks = 4 * test->gpu->multiprocessors;
    items->count = 0;
    for (const struct known_kernel *kernel = kernels; kernel->name; ++kernel) {
        if (capability < kernel->least || capability > kernel->most || items->count == ITEMS_MOST)
            continue;
        struct item *item = item_add(
            items,
            (struct item){.test = test,
                          .kernel = kernel,
                          .repeat = iterations,
                          .blocks = blocks,
                          .launch = flops_launch,
                          /* Vector kernels must count no tensor FLOPs of fp16, although the
                           * tensor pipe may load their constants (HFMA2.MMA). */
                          .tensor = quantity_tensor(kernel->quantity) ? kernel->quantity
                                                                      : QUANTITY_TENSOR_FP16,
                          .expected = {{kernel->quantity, kernel->flops * iterations * blocks,
                                        flops_tolerance}},
                          .count = 1});
        snprintf(item->name, sizeof item->name, "%s", kernel->name);
    }
}

/* Counts each kernel after CUPTI was attached again, while it stays attached, and with others. */
static enum status check_flops(struct selftest *test, struct error *error)
{
    struct items items;
    flops_list(test, known_kernels, &items);
    TRY(check_each(test, &items, "", true, error));
#ifdef ROOFSWEEP_WGMMA
    flops_list(test, known_wgmma_kernels, &items);
    TRY(check_each(test, &items, "", true, error));
    flops_list(test, known_kernels, &items);
#endif
    TRY(check_each(test, &items, ", idle", false, error));
    return check_together(test, &items, ", range", error);
}

/* ---- bytes ---- */

static cudaError_t memory_launch(const struct item *item, cudaStream_t stream)
{
    const int threads = 256;
    const struct selftest *test = item->test;
    return item->memory->launch(test->a, test->b, test->c, item->bytes, item->repeat, item->blocks,
                                threads, stream);
}

static cudaError_t l1_launch(const struct item *item, cudaStream_t stream)
{
    return known_read_l1(item->test->b, item->repeat, item->test->gpu->multiprocessors, stream);
}

static cudaError_t widen_launch(const struct item *item, cudaStream_t stream)
{
    const size_t element = 4; /* bytes of a result's element */
    return known_widen(item->test->a, item->test->b, item->bytes / element,
                       16 * item->test->gpu->multiprocessors, stream);
}

static cudaError_t nothing_launch(const struct item *item, cudaStream_t stream)
{
    (void)item;
    return kernel_empty(stream);
}

static const struct pattern {
    enum memory_pattern id;
    double read, written;     /* arrays */
    double flops_per_element; /* fp32 */
} patterns[] = {{PATTERN_READ, 1, 0, 1},
                {PATTERN_WRITE, 0, 1, 0},
                {PATTERN_COPY, 1, 1, 0},
                {PATTERN_TRIAD, 2, 1, 2}};
/* L2 itself adds the operands, so multiprocessors count no FLOPs. */
static const struct pattern atomic = {PATTERN_ATOMIC, 0, 1, 0};

/* Adds an item with its expected counts: `read` and `written` (byte), `flops` (fp32 FLOPs). A count
 * of 0 is not checked. In device memory counts include the flush and what it writes back. */
static void movement_add(struct items *items, struct item item, double read, double written,
                         double flops)
{
    const bool in_dram = item.in_dram;
    const double flushed = in_dram ? 2.0 * (double)item.test->gpu->l2_bytes : 0.0;
    const double tolerance = in_dram ? dram_tolerance : cache_tolerance;
    const struct expectation all[EXPECTED_MOST] = {
        {in_dram ? QUANTITY_DRAM_READ : QUANTITY_L2_READ, read + flushed, tolerance},
        {in_dram ? QUANTITY_DRAM_WRITE : QUANTITY_L2_WRITE, written, tolerance},
        {QUANTITY_VECTOR_FP32, flops + flushed / sizeof(float), flops_tolerance},
    };
    struct item *added = item_add(items, item);
    added->tensor = QUANTITY_TENSOR_FP16;
    for (size_t i = 0; i < EXPECTED_MOST; ++i)
        if (all[i].value > 0.0)
            added->expected[added->count++] = all[i];
}

/* In L2 each block has a part of its own. Otherwise two multiprocessors in successive passes may
 * request a line at once, and L2 counts the merged requests once. */
static void pattern_add(struct items *items, struct selftest *test, const struct pattern *pattern,
                        const char *where, size_t bytes, int repeat, bool in_dram)
{
    struct item item = {.test = test,
                        .memory = memory_kernels,
                        .bytes = bytes,
                        .repeat = repeat,
                        .blocks = in_dram ? 0 : test->gpu->multiprocessors,
                        .in_dram = in_dram,
                        .launch = memory_launch};
    double total = (double)bytes * repeat;
    while (item.memory->launch && item.memory->pattern != pattern->id)
        ++item.memory;
    snprintf(item.name, sizeof item.name, "%s, %s", memory_pattern_name[pattern->id], where);
    movement_add(items, item, pattern->read * total, pattern->written * total,
                 pattern->flops_per_element * total / sizeof(float));
}

/* Counts each item alone, and then all in one collection, as rows are counted. The last item is a
 * kernel without work, whose counts are printed. */
static enum status check_bytes(struct selftest *test, size_t largest, struct error *error)
{
    const int passes = 100, rounds = 2000;
    const double in_l1 = (double)KNOWN_L1_CHUNK * test->gpu->multiprocessors * rounds;
    size_t l2_bytes = test->gpu->l2_bytes / 8 / 4096 * 4096;
    struct items items = {.count = 0};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; ++i) {
        pattern_add(&items, test, &patterns[i], "1 GiB", largest, 1, true);
        pattern_add(&items, test, &patterns[i], "256 MiB", largest / 4, 1, true);
        pattern_add(&items, test, &patterns[i], "in L2", l2_bytes, passes, false);
    }
    pattern_add(&items, test, &atomic, "in L2", l2_bytes, passes, false);
    item_add(&items, (struct item){.test = test,
                                   .name = "read, in L1",
                                   .repeat = rounds,
                                   .launch = l1_launch,
                                   .tensor = QUANTITY_TENSOR_FP16,
                                   .expected = {{QUANTITY_L1_READ, in_l1, cache_tolerance}},
                                   .count = 1});
    movement_add(&items,
                 (struct item){.test = test,
                               .name = "fp16 to fp32, 1 GiB",
                               .bytes = largest,
                               .in_dram = true,
                               .launch = widen_launch},
                 0.5 * (double)largest, (double)largest, 0.0);
    item_add(&items, (struct item){.test = test,
                                   .name = "a kernel that does nothing",
                                   .launch = nothing_launch,
                                   .tensor = QUANTITY_TENSOR_FP16});
    TRY(check_each(test, &items, "", false, error));
    return check_together(test, &items, ", batch", error);
}

static enum status check_all(struct selftest *test, struct error *error)
{
    const size_t largest = (size_t)1 << 30;
    void **const arrays[] = {&test->a, &test->b, &test->c};
    TRY(check_flops(test, error));
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) {
        TRY(memory_allocate((double)largest, "the self-test", arrays[i], error));
        TRY(CUDA(cudaMemsetAsync(*arrays[i], 0, largest, test->gpu->stream)));
    }
    TRY(vendor_synchronize(test->gpu, error));
    return check_bytes(test, largest, error);
}

enum status selftest_run(struct profiler *profiler, struct gpu *gpu, FILE *stream,
                         struct error *error)
{
    struct selftest test = {.profiler = profiler, .gpu = gpu, .stream = stream};
    struct outcome outcome;
    TRY(profile_try(profiler, gpu, &outcome, error));
    if (outcome.code != COUNTED_YES) {
        char text[OUTCOME_TEXT];
        outcome_format(&outcome, counted_word, text);
        return error_set(error, STATUS_UNSUPPORTED, "hardware counters: %s", text);
    }
    fprintf(stream, "%-26s %-22s %13s %13s  %s\n", "work", "quantity", "expected", "counted",
            "verdict");
    enum status status = check_all(&test, error);
    if (status != STATUS_DEVICE)
        profiler_detach_counters(profiler);
    cudaFree(test.a);
    cudaFree(test.b);
    cudaFree(test.c);
    TRY(status);
    fprintf(stream, "%d counts are right, %d are wrong\n", test.right, test.wrong);
    return test.wrong ? error_set(error, STATUS_FAILED, "%d counts are wrong", test.wrong)
                      : STATUS_OK;
}
