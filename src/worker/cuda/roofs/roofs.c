#include "worker/cuda/roofs/roofs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "model/quantity.h"
#include "worker/cuda/gpu/check.h"
#include "worker/gpu/memory.h"
#include "worker/cuda/gpu/timer.h"
#include "worker/cuda/profiling/profiler.h"
#include "worker/cuda/roofs/roofs_compute.h"
#include "worker/cuda/roofs/roofs_launch.h"
#include "worker/cuda/roofs/roofs_library.h"
#include "worker/cuda/roofs/roofs_memory.h"
#include "worker/cuda/roofs/roofs_run.h"
#include "worker/cuda/roofs/roofs_samples.h"
#include "worker/cuda/roofs/roofs_transfer.h"

static double theory_of_level(const struct theory *theory, const struct roof_kind *kind)
{
    return theory->bandwidth[kind->level];
}

static double theory_of_shared(const struct theory *theory, const struct roof_kind *kind)
{
    (void)kind;
    return theory->shared_read;
}

static double theory_of_vector(const struct theory *theory, const struct roof_kind *kind)
{
    return theory->vector[kind->precision];
}

static double theory_of_tensor(const struct theory *theory, const struct roof_kind *kind)
{
    return theory->tensor[kind->precision];
}

/* All roofs that a GPU may have. A new kind is a row here, and a row of its family's own table: of
 * kernels (kernels.h), formats, directions or launches. */
static const struct gpu_roof {
    const struct roof_family *family; /* NULL: no GPU has it */
    double (*theory)(const struct theory *theory, const struct roof_kind *kind); /* NULL: none */
} gpu_roofs[ROOF_KINDS] = {
    [ROOF_DRAM_READ] = {&roofs_memory, theory_of_level},
    [ROOF_DRAM_WRITE] = {&roofs_memory, theory_of_level},
    [ROOF_DRAM_COPY] = {&roofs_memory, theory_of_level},
    [ROOF_DRAM_TRIAD] = {&roofs_memory, theory_of_level},
    [ROOF_L2_READ] = {&roofs_memory, theory_of_level},
    [ROOF_L2_WRITE] = {&roofs_memory, NULL}, /* what vendors state of L2 is of reads */
    [ROOF_L2_COPY] = {&roofs_memory, NULL},
    [ROOF_L2_TRIAD] = {&roofs_memory, NULL},
    [ROOF_L2_ATOMIC] = {&roofs_memory, NULL},
    [ROOF_L1_READ] = {&roofs_onchip, theory_of_level},
    [ROOF_SHARED_READ] = {&roofs_onchip, theory_of_shared},
    [ROOF_HOST_TO_DEVICE] = {&roofs_transfer, NULL},
    [ROOF_DEVICE_TO_HOST] = {&roofs_transfer, NULL},
    [ROOF_DEVICE_TO_DEVICE] = {&roofs_transfer, NULL},
    [ROOF_FP64_VECTOR] = {&roofs_vector, theory_of_vector},
    [ROOF_FP32_VECTOR] = {&roofs_vector, theory_of_vector},
    [ROOF_FP16_VECTOR] = {&roofs_vector, theory_of_vector},
    [ROOF_BF16_VECTOR] = {&roofs_vector, theory_of_vector},
    [ROOF_FP64_TENSOR_MMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_TF32_TENSOR_MMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_FP16_TENSOR_MMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_BF16_TENSOR_MMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_FP8_TENSOR_MMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_INT8_TENSOR_MMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_TF32_TENSOR_WGMMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_FP16_TENSOR_WGMMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_BF16_TENSOR_WGMMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_FP8_TENSOR_WGMMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_INT8_TENSOR_WGMMA] = {&roofs_tensor, theory_of_tensor},
    [ROOF_TF32_TENSOR_TCGEN05] = {&roofs_tensor, theory_of_tensor},
    [ROOF_FP16_TENSOR_TCGEN05] = {&roofs_tensor, theory_of_tensor},
    [ROOF_BF16_TENSOR_TCGEN05] = {&roofs_tensor, theory_of_tensor},
    [ROOF_FP8_TENSOR_TCGEN05] = {&roofs_tensor, theory_of_tensor},
    [ROOF_FP4_TENSOR_TCGEN05] = {&roofs_tensor, theory_of_tensor},
    [ROOF_INT8_TENSOR_TCGEN05] = {&roofs_tensor, theory_of_tensor},
    [ROOF_FP64_TENSOR_LIBRARY] = {&roofs_library, theory_of_tensor},
    [ROOF_TF32_TENSOR_LIBRARY] = {&roofs_library, theory_of_tensor},
    [ROOF_FP16_TENSOR_LIBRARY] = {&roofs_library, theory_of_tensor},
    [ROOF_BF16_TENSOR_LIBRARY] = {&roofs_library, theory_of_tensor},
    [ROOF_FP8_TENSOR_LIBRARY] = {&roofs_library, theory_of_tensor},
    [ROOF_FP4_TENSOR_LIBRARY] = {&roofs_library, theory_of_tensor},
    [ROOF_INT8_TENSOR_LIBRARY] = {&roofs_library, theory_of_tensor},
    [ROOF_LAUNCH_HOST] = {&roofs_launch, NULL},
    [ROOF_LAUNCH_LATENCY] = {&roofs_launch, NULL},
    [ROOF_LAUNCH_GAP] = {&roofs_launch, NULL},
    [ROOF_LAUNCH_GAP_GRAPH] = {&roofs_launch, NULL},
    [ROOF_LAUNCH_GAP_DEPENDENT] = {&roofs_launch, NULL},
    [ROOF_LAUNCH_GAP_DEPENDENT_GRAPH] = {&roofs_launch, NULL},
};

enum { TRIAL_RUNS = 3 }; /* of a method */

enum status roofs_reserve(struct roofs *roofs, struct roofs_buffer *buffer, size_t bytes,
                          struct error *error)
{
    void *data;
    if (bytes <= buffer->bytes)
        return STATUS_OK;
    TRY(memory_allocate((double)bytes, "the roofs", &data, error));
    enum status status =
        CUDA(kernel_fill(PRECISION_FP32, data, (int64_t)(bytes / sizeof(float)),
                         fill_make(1, TENSOR_INPUT, 24, 0), 0, roofs->gpu->stream));
    if (status) {
        cudaFree(data);
        return status;
    }
    cudaFree(buffer->data);
    *buffer = (struct roofs_buffer){data, bytes};
    return STATUS_OK;
}

int number_split(int *number, int count)
{
    int taken = *number % count;
    *number /= count;
    return taken;
}

/* ---- the fastest method ---- */

/* Grows elastic iterations until a run takes `aim`, more or less, and gives its time. */
static enum status method_size(struct roofs *roofs, struct winner *winner, double aim,
                               double *seconds, struct error *error)
{
    const double most_growth = 64.0, most = 1e6;
    struct method *method = &winner->method;
    TRY(run_time(roofs, winner, seconds, error));
    while (method->elastic && *seconds < 0.5 * aim && (double)method->iterations < most) {
        double growth = fmin(fmax(aim / *seconds, 2.0), most_growth);
        method->iterations = (int64_t)fmin((double)method->iterations * growth, most);
        TRY(run_time(roofs, winner, seconds, error));
    }
    return STATUS_OK;
}

/* The first run of other code loads it, and finds nothing of what it works on in the cache. */
static enum status method_warm(struct roofs *roofs, const struct winner *tried, struct error *error)
{
    const struct method *method = &tried->method;
    double seconds;
    if (roofs->warm_row == method->row && roofs->warm_choice == method->choice)
        return STATUS_OK;
    TRY(run_time(roofs, tried, &seconds, error));
    roofs->warm_row = method->row;
    roofs->warm_choice = method->choice;
    return STATUS_OK;
}

/* How long a run of each method is to take. All trials of a roof together have little time, so that a
 * roof with many methods has short ones. But in a very short run the begin and the end of the blocks
 * decides which method wins, and not its pace (docs/measurements.md, "Search for the fastest way"). */
static double trial_time(int methods)
{
    const double all = 0.1, least = 1e-3; /* s */
    return fmin(fmax(all / (TRIAL_RUNS * methods), least), SAMPLE_TIME);
}

/* Work per second, the best of a few runs; after one that shows that it cannot win, no more. */
static enum status trial_rate(struct roofs *roofs, struct winner *tried, double aim, double best,
                              double *rate, struct error *error)
{
    const double hopeless = 0.95;
    double seconds, shortest;
    TRY(method_warm(roofs, tried, error));
    TRY(method_size(roofs, tried, aim, &shortest, error));
    for (int i = 1; i < TRIAL_RUNS && run_work(&tried->method) / shortest > hopeless * best; ++i) {
        TRY(run_time(roofs, tried, &seconds, error));
        shortest = fmin(shortest, seconds);
    }
    *rate = run_work(&tried->method) / shortest;
    return STATUS_OK;
}

/* A winner's samples are all as long. */
static void method_stretch(struct method *method, double rate)
{
    if (method->elastic)
        method->iterations = (int64_t)fmax(1.0, round(rate * SAMPLE_TIME / method->work));
}

static enum status trial(struct roofs *roofs, int kind, int number, struct winner *tried,
                         double aim, double best, double *rate, struct error *error)
{
    TRY(tried->family->prepare(roofs, kind, number, &tried->method, error));
    return trial_rate(roofs, tried, aim, best, rate, error);
}

static enum status device_error_prefix(int kind, const struct winner *tried, struct error *error)
{
    error_prefix(error, "%s, %s", roof_kinds[kind].name,
                 *tried->method.text ? tried->method.text : "before its first run");
    return STATUS_DEVICE;
}

/* Tries one method: *winner becomes it if it is faster than what *winner has. A method that cannot be done is
 * passed over, with the reason of the first such one. Fails only with STATUS_DEVICE. */
static enum status winner_try(struct roofs *roofs, int kind, int number, double aim,
                              struct winner *winner, struct error *error)
{
    struct winner tried = {.family = winner->family};
    struct error reason;
    double rate;
    enum status status = trial(roofs, kind, number, &tried, aim, winner->way.rate, &rate, &reason);
    if (status == STATUS_DEVICE) {
        *error = reason;
        return device_error_prefix(kind, &tried, error);
    }
    if (status && !winner->refusal) {
        winner->refusal = status;
        winner->reason = reason;
    }
    if (status == STATUS_OK && rate > winner->way.rate) {
        winner->method = tried.method;
        winner->way = (struct roof_way){number, rate};
    }
    return STATUS_OK;
}

/* What another device of the model found is taken where it is as fast here. Which neighbour is the fastest to
 * copy to differs from device to device. */
static enum status winner_recall(struct roofs *roofs, int kind, int methods,
                                 const struct roof_way *way, struct winner *winner,
                                 struct error *error)
{
    const double same = 0.97;
    struct winner recalled = *winner;
    if (way->rate <= 0 || way->number >= methods || kind == ROOF_DEVICE_TO_DEVICE)
        return STATUS_OK;
    TRY(winner_try(roofs, kind, way->number, trial_time(methods), &recalled, error));
    if (recalled.way.rate >= same * way->rate)
        *winner = recalled;
    return STATUS_OK;
}

/* If no method can be done, the reason of the first is kept. Fails only with STATUS_DEVICE. */
static enum status winner_find(struct roofs *roofs, int kind, int methods,
                               const struct roof_way *way, struct winner *winner,
                               struct error *error)
{
    TRY(winner_recall(roofs, kind, methods, way, winner, error));
    bool recalled = winner->way.rate > 0;
    for (int i = 0; i < methods && !recalled; ++i)
        TRY(winner_try(roofs, kind, i, trial_time(methods), winner, error));
    if (winner->way.rate > 0) {
        winner->refusal = STATUS_OK;
        method_stretch(&winner->method, winner->way.rate);
    }
    return STATUS_OK;
}

static void winner_init(struct winner *winner, const struct roof_family *family)
{
    *winner = (struct winner){.family = family, .flops_ratio = NAN};
    for (int level = 0; level < LEVEL_COUNT; ++level)
        winner->bytes_ratio[level] = NAN;
}

static enum status kind_tune(struct roofs *roofs, int kind, const struct roof_way *way,
                             struct error *error)
{
    struct winner *winner = &roofs->winners[kind];
    const struct roof_family *family = gpu_roofs[kind].family;
    int methods = family ? family->count(roofs, kind) : 0;
    if (methods == 0 || winner->way.rate > 0)
        return STATUS_OK;
    winner_init(winner, family);
    return winner_find(roofs, kind, methods, way, winner, error);
}

/* ---- proof: a run of each winner, counted ---- */

struct proof {
    struct roofs *roofs;
    struct winner *winner;
    struct method method;
};

/* What lies in the caches before and after must not matter: a part of a sample is as exact, because it is many
 * passes over a cache, or one over far more than that. */
static struct method proof_method(const struct method *method)
{
    const int64_t part = 4;
    struct method shorter = *method;
    if (method->elastic)
        shorter.iterations = (method->iterations + part - 1) / part;
    return shorter;
}

static enum status proof_run(void *argument, struct error *error)
{
    const struct proof *proof = argument;
    TRY(proof->winner->family->run(proof->roofs, &proof->method, error));
    return CUDA(cudaStreamSynchronize(proof->roofs->gpu->stream));
}

/* One pass: the next ones find of it what all but the first of a sample find. */
static enum status proof_prepare(void *argument, struct error *error)
{
    struct proof first = *(const struct proof *)argument;
    if (first.method.elastic)
        first.method.iterations = 1;
    return proof_run(&first, error);
}

static bool proof_possible(const struct winner *winner)
{
    return winner->family && winner->family->counted && winner->refusal == STATUS_OK;
}

static void proof_keep(int kind, const struct proof *proof, const double values[QUANTITY_COUNT])
{
    const struct roof_kind *info = &roof_kinds[kind];
    struct winner *winner = proof->winner;
    double expected = run_work(&proof->method), bytes[LEVEL_COUNT];
    if (info->measure == ROOF_COMPUTE) {
        enum quantity quantity = quantity_of(info->precision, info->unit == UNIT_TENSOR);
        winner->flops_ratio = quantity < QUANTITY_COUNT ? values[quantity] / expected : NAN;
        return;
    }
    quantity_bytes(values, bytes);
    for (int level = 0; level < LEVEL_COUNT; ++level)
        winner->bytes_ratio[level] = bytes[level] / expected;
}

/* All as ranges of one collection. Attaching the profiler takes longer than all the rest, and longer
 * still where several devices of a node prove at the same time (docs/measurements.md, "Cost of
 * attaching CUPTI"). Where the collection fails, all roofs stay unproven. */
static enum status winners_prove(struct roofs *roofs, struct profiler *profiler,
                                 struct error *error)
{
    struct proof proofs[ROOF_KINDS];
    struct profiled_work works[ROOF_KINDS];
    double values[ROOF_KINDS][QUANTITY_COUNT];
    int kinds[ROOF_KINDS];
    size_t count = 0;
    struct outcome outcome;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (proof_possible(&roofs->winners[kind])) {
            kinds[count] = kind;
            struct winner *winner = &roofs->winners[kind];
            proofs[count] = (struct proof){roofs, winner, proof_method(&winner->method)};
            works[count] = (struct profiled_work){proof_prepare, proof_run, &proofs[count], NULL};
            ++count;
        }
    if (count == 0)
        return STATUS_OK;
    enum status status =
        profiler_count(profiler, QUANTITY_ALL_TENSORS, works, count, values, &outcome, error);
    if (status == STATUS_DEVICE)
        return status;
    if (status)
        fprintf(stderr, "the roofs stay unproven: %s\n", error->text);
    else if (outcome.code != COUNTED_YES)
        fprintf(stderr, "the roofs stay unproven: %s: %s\n", counted_word[outcome.code],
                outcome.reason);
    else
        for (size_t i = 0; i < count; ++i)
            proof_keep(kinds[i], &proofs[i], values[i]);
    return STATUS_OK;
}

/* ---- tune ---- */

static enum status tune(struct roofs *roofs, struct profiler *profiler,
                        const struct roof_request *request, struct error *error)
{
    TRY(timer_reserve(roofs->gpu->timer, 2 * SAMPLES_MAX, error));
    /* All devices of a node tune at once. What the neighbour copies here would be counted among the
     * proofs: so that comes first, and these last. */
    const int first = ROOF_DEVICE_TO_DEVICE;
    bool all = true;
    if (roof_requested(request, first))
        TRY(kind_tune(roofs, first, &request->ways[first], error));
    for (int kind = 0; kind < ROOF_KINDS; ++kind) {
        all &= !request->later[kind];
        if (kind != first && !request->later[kind] && roof_requested(request, kind))
            TRY(kind_tune(roofs, kind, &request->ways[kind], error));
    }
    return profiler && all ? winners_prove(roofs, profiler, error) : STATUS_OK;
}

enum status roofs_tune(struct roofs **roofs, struct gpu *gpu, struct profiler *profiler,
                       const struct roof_request *request, bool found[ROOF_KINDS],
                       struct error *error)
{
    struct roofs *result = *roofs ? *roofs : calloc(1, sizeof *result);
    *roofs = NULL;
    if (!result)
        return error_set(error, STATUS_SYSTEM, "no memory");
    result->gpu = gpu;
    enum status status = tune(result, profiler, request, error);
    if (status) {
        roofs_close(result);
        return status;
    }
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        found[kind] = result->winners[kind].family != NULL;
    *roofs = result;
    return STATUS_OK;
}

struct roof_way roofs_way(const struct roofs *roofs, int kind)
{
    return roofs->winners[kind].way;
}

void roofs_close(struct roofs *roofs)
{
    if (!roofs)
        return;
    for (int kind = 0; kind < ROOF_KINDS; ++kind)
        if (gpu_roofs[kind].family && gpu_roofs[kind].family->close)
            gpu_roofs[kind].family->close(roofs);
    cudaFree(roofs->operands.data);
    cudaFree(roofs->results.data);
    free(roofs);
}

/* ---- measure ---- */

static void ratios_copy(const struct winner *winner, struct roof *roof)
{
    roof->flops_ratio = winner->flops_ratio;
    memcpy(roof->bytes_ratio, winner->bytes_ratio, sizeof roof->bytes_ratio);
}

static void theory_set(const struct theory *theory, int kind, struct roof *roof)
{
    const struct roof_kind *info = &roof_kinds[kind];
    bool memory = info->level == LEVEL_DRAM;
    double value = gpu_roofs[kind].theory ? gpu_roofs[kind].theory(theory, info) : NAN;
    roof_set_theory(roof, value, memory ? theory->memory_clock : theory->clock,
                    memory ? roof->memory_clock : roof->sm_clock);
}

static enum status measure(struct roofs *roofs, int kind, const struct roof_order *order,
                           struct roof *roof, struct error *error)
{
    struct winner *winner = &roofs->winners[kind];
    const bool compute = roof_kinds[kind].measure == ROOF_COMPUTE;
    snprintf(roof->setting, sizeof roof->setting, "%s", winner->method.text);
    if (!compute || !order->only_sustained)
        TRY(samples_burst(roofs, winner, kind, order->start, roof, error));
    if (order->sustained && compute)
        TRY(samples_sustain(roofs, winner, roof, error));
    if (order->sustained && winner->family->reach)
        TRY(winner->family->reach(roofs, kind, &roof->working_set, error));
    theory_set(&roofs->gpu->theory, kind, roof);
    ratios_copy(winner, roof);
    roof_judge(roof);
    return STATUS_OK;
}

static enum status winner_check(const struct roofs *roofs, int kind, struct error *error)
{
    if (!roofs || !roofs->winners[kind].family)
        return error_set(error, STATUS_FAILED, "%s was not tuned", roof_kinds[kind].name);
    if (roofs->winners[kind].refusal)
        *error = roofs->winners[kind].reason;
    return roofs->winners[kind].refusal;
}

enum status roofs_measure(struct roofs *roofs, int kind, const struct roof_order *order,
                          struct roof *roof, struct error *error)
{
    struct roof measured = *roof;
    TRY(winner_check(roofs, kind, error));
    TRY(measure(roofs, kind, order, &measured, error));
    *roof = measured;
    return STATUS_OK;
}

enum status roofs_hold(struct roofs *roofs, int kind, bool (*more)(void *argument), void *argument,
                       struct error *error)
{
    double seconds;
    TRY(winner_check(roofs, kind, error));
    while (more(argument))
        TRY(run_time(roofs, &roofs->winners[kind], &seconds, error));
    return STATUS_OK;
}
