#include "worker/device_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "worker/gpu/arena.h"
#include "worker/cuda/gpu/gpu.h"
#include "worker/gpu/energy.h"
#include "worker/gpu/prepare.h"
#include "worker/gpu/timing.h"
#include "worker/cuda/profiling/profiler.h"
#include "worker/gpu/roofs.h"
#include "worker/cuda/links.h"
#include "worker/cuda/profile.h"
#include "worker/cuda/selftest.h"
#include "worker/cuda/workloads/cudnn_graph.h"
#include "worker/cuda/workloads/workloads.h"

/* With this many rows in one collection, attaching CUPTI costs 2 ms for each row
 * (docs/measurements.md, "Counters of several rows"). */
enum { COUNT_TOGETHER = 128 };

struct device_state {
    struct gpu gpu;
    char uuid[sizeof((struct device *)0)->uuid];
    struct profiler *profiler;
    struct roofs *roofs; /* NULL: not tuned */
    struct resting_power resting;
};

static enum status device_list(int *count, int addresses[VISIBLE_MAX], struct error *error)
{
    struct visible_gpu gpus[VISIBLE_MAX];
    TRY(gpu_list(count, gpus, error));
    for (int i = 0; i < *count && i < VISIBLE_MAX; ++i)
        addresses[i] = gpus[i].address;
    return STATUS_OK;
}

static void device_close(struct device_state *state)
{
    if (!state)
        return;
    roofs_close(state->roofs);
    profiler_close(state->profiler);
    plan_shelf_destroy(state->gpu.plans);
    gpu_close(&state->gpu);
    free(state);
}

static enum status device_open(int index, struct device_state **state, struct device *device,
                               struct error *error)
{
    struct device_state *result = calloc(1, sizeof *result);
    if (!result)
        return error_set(error, STATUS_SYSTEM, "no memory");
    struct device described = *device;
    result->resting = (struct resting_power){NAN, NAN};
    enum status status = gpu_open(index, &result->gpu, &described, error);
    if (status == STATUS_OK) {
        described.count_together = COUNT_TOGETHER;
        result->gpu.plans = plan_shelf_create();
        result->profiler = profile_open(&result->gpu);
        if (!result->profiler)
            status = error_set(error, STATUS_SYSTEM, "no memory");
    }
    if (status) {
        device_close(result);
        return error_prefix(error, STATUS_DEVICE, "GPU %d", index);
    }
    memcpy(result->uuid, described.uuid, sizeof result->uuid);
    *device = described;
    *state = result;
    return STATUS_OK;
}

static struct device_state *device_watch(const char *pci_id)
{
    struct device_state *watched = calloc(1, sizeof *watched);
    if (watched)
        watched->gpu.nvml = nvml_open(pci_id);
    return watched;
}

static void device_health(struct device_state *state, double health[HEALTH_COUNT])
{
    nvml_health(state->gpu.nvml, health);
}

/* ---- counters and roofs ---- */

static enum status device_try_counters(struct device_state *state, struct device *device,
                                       struct error *error)
{
    enum status status = profile_try(state->profiler, &state->gpu, &device->counters, error);
    if (status != STATUS_DEVICE)
        profiler_detach_counters(state->profiler);
    return status;
}

static enum status device_tune_roofs(struct device_state *state, const struct roof_request *request,
                                     bool prove, bool found[ROOF_KINDS], struct error *error)
{
    struct outcome counters;
    arena_trim(state->gpu.arena);
    TRY(roofs_tune(&state->roofs, &state->gpu, request, found, error));
    if (!prove)
        return STATUS_OK;
    enum status status = profile_try(state->profiler, &state->gpu, &counters, error);
    if (status == STATUS_OK && counters.code == COUNTED_YES)
        status = roofs_prove(state->roofs, state->profiler, error);
    if (status != STATUS_DEVICE)
        profiler_detach_counters(state->profiler);
    return status;
}

static enum status device_measure_roof(struct device_state *state, int kind,
                                       const struct roof_order *order, struct roof *roof,
                                       struct error *error)
{
    return roofs_measure(state->roofs, kind, order, &state->resting, roof, error);
}

static enum status device_keep_busy(struct device_state *state, int kind,
                                    bool (*more)(void *argument), void *argument,
                                    struct error *error)
{
    return roofs_keep_busy(state->roofs, kind, more, argument, error);
}

static void device_release_roofs(struct device_state *state)
{
    roofs_close(state->roofs);
    state->roofs = NULL;
}

/* ---- work ---- */

static const struct implementation implementations[] = {
#define ROW(workload, name, routine, takes) {workload, name, &routine, takes},
    CUDA_WORKLOADS(ROW){0}
#undef ROW
};

static enum status device_prepare(struct device_state *state, const struct config *config,
                                  uint64_t seed, struct work **work, struct record *record,
                                  struct error *error)
{
    return work_create(&state->gpu, implementations, "CUDA", config, seed, work, record, error);
}

static enum status device_time(struct device_state *state, struct work *work, bool cold,
                               int samples, double *seconds, struct record *record,
                               struct error *error)
{
    TRY(timing_run(&state->gpu, work, cold, samples, seconds, record, error));
    if (record)
        record->profiler_ratio = profiler_ratio(state->profiler);
    return STATUS_OK;
}

static enum status device_energy(struct device_state *state, struct work *work, bool cold,
                                 struct record *record, struct error *error)
{
    struct work *stream = work->stream ? work->stream : work; /* energy_run makes its own graph */
    return energy_run(&state->gpu, stream, cold, &state->resting, record, error);
}

static enum status device_trace(struct device_state *state, struct work *work, bool cold,
                                struct record *record, struct error *error)
{
    struct work *stream = work->stream ? work->stream : work; /* timing_graph makes its own graph */
    nvml_others(state->gpu.nvml, record->other_processes, sizeof record->other_processes);
    TRY(timing_graph(&state->gpu, stream, cold, &record->graph_time, error));
    return profile_trace(state->profiler, &state->gpu, work, cold, record, error);
}

static enum status device_count_hardware(struct device_state *state, const struct countable *rows,
                                         size_t count, struct error *error)
{
    return profile_count(state->profiler, &state->gpu, rows, count, error);
}

static bool device_has_room(struct device_state *state, const struct config *config)
{
    return work_has_room(&state->gpu, config);
}

static enum status device_reject(struct device_state *state, struct work *work,
                                 struct record *record, struct error *error)
{
    if (!work->ops->reject)
        return error_set(error, STATUS_UNSUPPORTED, "there is no other algorithm");
    return work->ops->reject(&state->gpu, work, record, error);
}

static enum status device_run(struct device_state *state, struct work *work, int64_t samples,
                              struct error *error)
{
    TRY(work->ops->run(&state->gpu, work, samples, error));
    return vendor_synchronize(&state->gpu, error);
}

static enum status device_read(struct device_state *state, struct work *work, enum tensor tensor,
                               const int64_t *offsets, int64_t count, double *values,
                               struct error *error)
{
    return work_read(&state->gpu, work, tensor, offsets, count, values, error);
}

static enum status device_compute(struct device_state *state, const struct config *config,
                                  const void *results, struct error *error)
{
    if (config->workload == &lstm_workload)
        return lstm_compute(&state->gpu, results, error);
    return error_set(error, STATUS_UNSUPPORTED, "the host computes references");
}

static enum status device_hash(struct device_state *state, struct work *work, uint64_t *hash,
                               struct error *error)
{
    return work_hash(&state->gpu, work, hash, error);
}

static void device_release(struct device_state *state, struct work *work)
{
    (void)state;
    if (!work)
        return;
    profile_release(work);
    work->ops->release(work);
}

static enum status device_self_test(struct device_state *state, FILE *stream, struct error *error)
{
    return selftest_run(state->profiler, &state->gpu, stream, error);
}

/* ---- programs ---- */

static enum status device_program(struct device_state *state, struct program_device *settings,
                                  struct error *error)
{
    static const char name[] = "/libroofsweep-inject.so"; /* in the worker's folder */
    const struct outcome *counters = profiler_counters(state->profiler);
    const size_t room = sizeof settings->library - sizeof name;
    struct error ignored;
    (void)error;
    profiler_detach(state->profiler);
    arena_trim(state->gpu.arena);
    snprintf(settings->visible, sizeof settings->visible, "CUDA_VISIBLE_DEVICES=%s", state->uuid);
    if (folder_of_program(settings->library, room, &ignored) == STATUS_OK)
        strcat(settings->library, name);
    if (access(settings->library, R_OK) != 0)
        settings->library[0] = '\0';
    if (!settings->library[0])
        outcome_set(&settings->counters, COUNTED_REFUSED,
                    "libroofsweep-inject.so is not beside the worker");
    else if (counters->code == OUTCOME_MISSING) /* the program itself tries the counters */
        outcome_set(&settings->counters, COUNTED_YES, NULL);
    else
        settings->counters = *counters;
    return STATUS_OK;
}

const struct device_ops device_ops = {
    .kind = "cuda",
    .description = "NVIDIA GPUs, measured with cuDNN and CUPTI",
    .list = device_list,
    .open = device_open,
    .close = device_close,
    .watch = device_watch,
    .health = device_health,
    .try_counters = device_try_counters,
    .tune_roofs = device_tune_roofs,
    .measure_roof = device_measure_roof,
    .keep_busy = device_keep_busy,
    .measure_links = links_measure,
    .release_roofs = device_release_roofs,
    .prepare = device_prepare,
    .time = device_time,
    .energy = device_energy,
    .trace = device_trace,
    .has_room = device_has_room,
    .count_hardware = device_count_hardware,
    .run = device_run,
    .read = device_read,
    .compute = device_compute,
    .hash = device_hash,
    .reject = device_reject,
    .release = device_release,
    .program = device_program,
    .self_test = device_self_test,
};
